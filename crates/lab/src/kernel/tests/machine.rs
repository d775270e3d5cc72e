//! A machine with made-up archives of Debian.

use super::*;

pub(super) const STOCK: &[u8] = b"CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n";
const RT: &[u8] = b"CONFIG_PREEMPT_RT=y\n";
const LAZY: &[u8] =
    b"CONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y\n";

/// The archive is a folder with the kernels of each release. Without a file a release is gone.
const APT_CACHE: &str = r#"
file=$(dirname "$APT_CONFIG")/read
[ -f "$file" ] || exit 0
case "$1" in
pkgnames) sed -n "s/^Package: \($2.*\)/\1/p" "$file" ;;
show) cat "$file" ;;
esac"#;
pub(super) const APT_GET: &str = r#"
release=$(basename "$(dirname "$APT_CONFIG")")
case "$1" in
-q)
    echo "$release" >>"$tools/updates"
    [ -f "$tools/archive/$release" ] && cp "$tools/archive/$release" "${APT_CONFIG%/*}/read" && exit
    echo "E: The repository 'http://mirror $release Release' does not have a Release file." >&2
    exit 100 ;;
indextargets)
    case "$release" in
    bookworm) echo "bookworm oldstable"; echo "bookworm-security oldstable-security" ;;
    trixie-backports) echo "trixie-backports stable-backports" ;;
    esac ;;
download) p=${2%%=*}; echo "$2" >>"$tools/downloads"; echo "$p" >"${p}_x_amd64.deb" ;;
*) exit 9 ;;
esac"#;
const DPKG_DEB: &str = r#"
[ "$1" = -x ] || exit 9
read -r p <"$2"; r=${p#linux-*-}; new=$3/usr/lib/modules/$r
case "$r" in *-rt-*) c=rt ;; *) c=stock ;; esac
case "$p" in
linux-image-*)
    mkdir -p "$3/boot" "$3/lib/modules/$r/kernel"
    cp "$tools/vmlinuz" "$3/boot/vmlinuz-$r"
    cp "$tools/config-$c" "$3/boot/config-$r" ;;
linux-binary-*) mkdir -p "$new"; cp "$tools/vmlinuz" "$new/vmlinuz" ;;
linux-modules-*) mkdir -p "$new/kernel" ;;
linux-base-*) mkdir -p "$new"; cp "$tools/config-lazy" "$new/config" ;;
esac"#;

/// How apt-cache describes a package.
fn stanza(name: &str, version: &str, depends: &str) -> String {
    format!(
        "Package: {name}\nVersion: {version}\nInstalled-Size: 4\nArchitecture: amd64\n\
         Depends: kmod, {depends}\nSize: 1000000\nDescription: a kernel\n with more\n\n"
    )
}

/// bookworm: 6.1.0-9 and -56, both flavours, and the package that follows the newest.
pub(super) fn bookworm(newest: &str) -> String {
    let mut all = stanza("linux-image-amd64", "6.1.192-2", &format!("linux-image-{newest}-amd64"));
    for abi in [newest, "6.1.0-9"] {
        for flavour in ["amd64", "rt-amd64", "cloud-amd64"] {
            all += &stanza(&format!("linux-image-{abi}-{flavour}"), "6.1.192-2", "initramfs-tools");
        }
    }
    all
}

/// A kernel in parts, without the package that depends on them.
pub(super) fn split(abi: &str, parts: &[&str]) -> String {
    let name = |part: &str| format!("linux-{part}-{abi}-amd64");
    let depends = ["base", "binary", "modules"].map(|part| format!("{} (= 7-1)", name(part)));
    let mut all = stanza(&name("image"), "7-1", &depends.join(", "));
    parts.iter().for_each(|part| all += &stanza(&name(part), "7-1", &name("base")));
    all
}

/// A machine for one test, with a separate cache, root folder and commands.
pub(super) struct Machine {
    pub(super) folder: Folder,
    pub(super) kernels: Kernels,
}

impl Machine {
    pub(super) fn new() -> Self {
        let folder = Folder::new();
        folder.write("tools/vmlinuz", &bz_image(&gzip(&vmlinux())));
        folder.write("tools/config-stock", STOCK);
        folder.write("tools/config-rt", RT);
        folder.write("tools/config-lazy", LAZY);
        folder.write("tools/archive/bookworm", bookworm("6.1.0-56").as_bytes());
        folder.write("root/etc/os-release", b"ID=debian\nVERSION_CODENAME=bookworm\n");
        folder.write("root/usr/share/keyrings/debian-archive-keyring.gpg", b"keys");
        let kernels = Kernels {
            cache: Cache { folder: folder.0.join("cache/kernels") },
            tools: Tools { folder: Some(folder.0.join("tools")) },
            root: folder.0.join("root"),
        };
        let machine = Self { folder, kernels };
        machine.tool("apt-cache", APT_CACHE);
        machine.tool("apt-get", APT_GET);
        machine.tool("dpkg-deb", DPKG_DEB);
        machine.tool("dpkg-query", "exit 1");
        machine
    }

    /// Has a command do this. The script is only read, never executed as a file: a file that
    /// another thread's child still has open for writing cannot be.
    pub(super) fn tool(&self, name: &str, script: &str) {
        let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tool");
        let link = self.folder.0.join("tools").join(name);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(runner, link).unwrap();
        self.folder.write(&format!("tools/{name}.sh"), script.as_bytes());
    }

    pub(super) fn resolve(&self, spec: &str, fetch: bool) -> Result<(Kernel, Vec<String>)> {
        let mut said = Vec::new();
        let mut say = |text: &str| said.push(text.to_owned());
        let mut kernels = self.kernels.resolve(&[spec], Arch::X86_64, None, fetch, &mut say)?;
        Ok((kernels.remove(0), said))
    }

    pub(super) fn error(&self, spec: &str, fetch: bool) -> String {
        format!("{:#}", self.resolve(spec, fetch).unwrap_err())
    }

    pub(super) fn downloads(&self) -> usize {
        self.noted("downloads").len()
    }

    /// The lines that the commands noted.
    pub(super) fn noted(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.0.join("tools").join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(super) fn archive(&self, release: &str, kernels: &str) {
        self.folder.write(&format!("tools/archive/{release}"), kernels.as_bytes());
    }

    /// As if the lists had been read a while ago.
    pub(super) fn forget(&self) {
        let _ = fs::remove_dir_all(self.kernels.cache_folder().join("apt"));
    }
}
