use super::image::tests::{arm64_image, bz_image, vmlinux};
use super::*;
use crate::decompress::tests::gzip;
use crate::testing::Folder;
use punctual_core::hash::sha256;

const STOCK: &[u8] = b"CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n";
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
const APT_GET: &str = r#"
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
fn bookworm(newest: &str) -> String {
    let mut all = stanza("linux-image-amd64", "6.1.192-2", &format!("linux-image-{newest}-amd64"));
    for abi in [newest, "6.1.0-9"] {
        for flavour in ["amd64", "rt-amd64", "cloud-amd64"] {
            all += &stanza(&format!("linux-image-{abi}-{flavour}"), "6.1.192-2", "initramfs-tools");
        }
    }
    all
}

/// A kernel in parts, without the package that depends on them.
fn split(abi: &str, parts: &[&str]) -> String {
    let name = |part: &str| format!("linux-{part}-{abi}-amd64");
    let depends = ["base", "binary", "modules"].map(|part| format!("{} (= 7-1)", name(part)));
    let mut all = stanza(&name("image"), "7-1", &depends.join(", "));
    parts.iter().for_each(|part| all += &stanza(&name(part), "7-1", &name("base")));
    all
}

/// A machine for one test, with a separate cache, root folder and commands.
struct Machine {
    folder: Folder,
    kernels: Kernels,
}

impl Machine {
    fn new() -> Self {
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
    fn tool(&self, name: &str, script: &str) {
        let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tool");
        let link = self.folder.0.join("tools").join(name);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(runner, link).unwrap();
        self.folder.write(&format!("tools/{name}.sh"), script.as_bytes());
    }

    fn resolve(&self, spec: &str, fetch: bool) -> Result<(Kernel, Vec<String>)> {
        let mut said = Vec::new();
        let mut say = |text: &str| said.push(text.to_owned());
        let mut kernels = self.kernels.resolve(&[spec], Arch::X86_64, None, fetch, &mut say)?;
        Ok((kernels.remove(0), said))
    }

    fn error(&self, spec: &str, fetch: bool) -> String {
        format!("{:#}", self.resolve(spec, fetch).unwrap_err())
    }

    fn downloads(&self) -> usize {
        self.noted("downloads").len()
    }

    /// The lines that the commands noted.
    fn noted(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.0.join("tools").join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn archive(&self, release: &str, kernels: &str) {
        self.folder.write(&format!("tools/archive/{release}"), kernels.as_bytes());
    }

    /// As if the lists had been read a while ago.
    fn forget(&self) {
        let _ = fs::remove_dir_all(self.kernels.cache_folder().join("apt"));
    }
}

#[test]
fn a_missing_kernel_is_fetched_once() {
    let machine = Machine::new();
    let missing = machine.error("debian:full", false);
    assert!(missing.contains("download it with `punctual lab fetch debian:full`"), "{missing}");
    assert_eq!(machine.noted("updates"), [""; 0], "there may be no network");
    machine.kernels.list(Arch::X86_64, &mut |_| ()).unwrap();
    let missing = machine.error("debian:full", false);
    assert!(missing.contains("punctual lab fetch debian:full"), "{missing}");
    let exact = ["debian:6.1.0-56-rt"];
    let resolved = machine.kernels.resolve(&exact, Arch::Aarch64, None, false, &mut |_| ());
    let other = resolved.unwrap_err().to_string();
    assert!(other.contains("punctual lab fetch --board aarch64 debian:6.1.0-56-rt"), "{other}");
    assert_eq!(machine.downloads(), 0);

    let (kernel, said) = machine.resolve("debian:full", true).unwrap();
    let bytes = bz_image(&gzip(&vmlinux()));
    let cache = machine.kernels.cache_folder();
    let package = cache.join("debian/linux-image-6.1.0-56-amd64_6.1.192-2");
    let expected = Kernel {
        name: "debian:full".into(),
        arch: Arch::X86_64,
        image: cache.join("vmlinux").join(sha256(&bytes)),
        image_sha256: sha256(&bytes),
        release: "6.1.0-56-amd64".into(),
        parameters: vec!["preempt=full".into()],
        model: Some(Model::Full),
        config: Some(package.join("boot/config-6.1.0-56-amd64")),
        modules: Some(package.join("lib/modules/6.1.0-56-amd64")),
        package: Some("linux-image-6.1.0-56-amd64 6.1.192-2".into()),
    };
    assert_eq!(kernel, expected);
    assert_eq!(fs::read(&kernel.image).unwrap(), vmlinux());
    assert_eq!(said[0], "fetching linux-image-6.1.0-56-amd64 6.1.192-2, 1 MB");

    let (kernel, said) = machine.resolve("debian:6.1.0-56", true).unwrap();
    assert_eq!((kernel.parameters.len(), kernel.model), (0, Some(Model::Voluntary)));
    assert_eq!(said, [""; 0]);
    machine.resolve("debian:none", true).unwrap();
    assert_eq!(machine.downloads(), 1);

    let (kernel, _) = machine.resolve("debian:rt", true).unwrap();
    assert_eq!((kernel.parameters.len(), kernel.model), (0, Some(Model::Rt)));
    assert_eq!(machine.downloads(), 2);
    let left: Vec<_> = fs::read_dir(cache).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "{left:?}");
}

#[test]
fn without_meta_packages_the_newest_name_counts() {
    let machine = Machine::new();
    let without = bookworm("6.1.0-56").replace("linux-image-amd64", "linux-image-other-amd64");
    machine.archive("bookworm", &without);
    let (kernel, _) = machine.resolve("debian:rt", true).unwrap();
    assert_eq!(kernel.release, "6.1.0-56-rt-amd64");
}

#[test]
fn what_is_here_is_used_where_a_newer_one_cannot_be_fetched() {
    let machine = Machine::new();
    machine.kernels.fetch("debian:6.1.0-9-rt", Arch::X86_64, &mut |_| ()).unwrap();
    machine.tool(
        "apt-get",
        "echo 'W: x' >&2; echo 'E: Failed to fetch http://deb  Temporary failure' >&2; exit 100",
    );
    for name in ["debian:rt", "debian:6.1-rt"] {
        let (kernel, said) = machine.resolve(name, true).unwrap();
        assert_eq!(kernel.release, "6.1.0-9-rt-amd64");
        let last = said.last().unwrap();
        assert!(last.contains("apt-get: Failed to fetch http://deb  Temporary failure"), "{last}");
        assert!(last.ends_with("using debian:6.1.0-9 instead"), "{last}");
    }
    let error = machine.error("debian:none", true);
    assert!(error.contains("`punctual lab fetch debian:6.1.0-56`; or give the path"), "{error}");
    assert_eq!(machine.resolve("debian:rt", false).unwrap().0.release, "6.1.0-9-rt-amd64");
    // Nothing of 6.12 is here, and nobody says what bookworm has now.
    machine.forget();
    assert!(machine.error("debian:6.12-rt", true).contains("Temporary failure"));
    assert!(machine.error("debian:bookworm-rt", true).contains("Temporary failure"));
}

#[test]
fn names_without_a_version_mean_one_release_whatever_was_fetched_by_its_version() {
    let machine = Machine::new();
    machine.archive("trixie-backports", &split("7.3.4+deb13", &["binary", "modules", "base"]));
    let fetch = |spec| machine.kernels.fetch(spec, Arch::X86_64, &mut |_| ()).unwrap().name;
    assert_eq!(fetch("debian:7.3.4+deb13"), "debian:7.3.4+deb13");
    assert_eq!(fetch("debian:none"), "debian:6.1.0-56", "not the newer one that is here");

    let both = |machine: &Machine| {
        let mut said = Vec::new();
        let mut say = |text: &str| said.push(text.to_owned());
        let specs = ["debian:none", "debian:rt"];
        let kernels = machine.kernels.resolve(&specs, Arch::X86_64, None, false, &mut say);
        kernels.map(|kernels| (kernels.into_iter().map(|k| k.release).collect::<Vec<_>>(), said))
    };
    let error = both(&machine).unwrap_err().to_string();
    assert!(error.contains("debian:rt for x86_64 (debian:6.1.0-56-rt) is not"), "{error}");
    assert_eq!(fetch("debian:rt"), "debian:6.1.0-56-rt");
    let expected = ["6.1.0-56-amd64", "6.1.0-56-rt-amd64"];
    assert_eq!(both(&machine).unwrap().0, expected);

    // The distribution has a newer kernel, which is not here: the newest with both models is.
    machine.archive("bookworm", &bookworm("6.1.0-57"));
    machine.forget();
    machine.kernels.list(Arch::X86_64, &mut |_| ()).unwrap();
    let (releases, said) = both(&machine).unwrap();
    assert_eq!(releases, expected);
    assert!(said[0].ends_with("using debian:6.1.0-56 instead"), "{said:?}");
}

#[test]
fn kernels_are_named_by_series_and_by_release() {
    let machine = Machine::new();
    let all = ["binary", "modules", "base"];
    let backports =
        split("7.2.9+deb13", &all) + &split("7.3.4+deb13", &all) + &split("7.1.3+deb13", &[]);
    machine.archive("trixie-backports", &backports);
    let release = |spec: &str| machine.resolve(spec, true).map(|(kernel, _)| kernel.release);
    for (name, expected) in [
        ("debian:6.1", "6.1.0-56-amd64"),
        ("debian:6.1-rt", "6.1.0-56-rt-amd64"),
        ("debian:7.3-lazy", "7.3.4+deb13-amd64"),
        ("debian:7.2", "7.2.9+deb13-amd64"),
        ("debian:bookworm-none", "6.1.0-56-amd64"),
        ("debian:oldstable", "6.1.0-56-amd64"),
        ("debian:trixie-backports", "7.3.4+deb13-amd64"),
        ("debian:stable-backports-full", "7.3.4+deb13-amd64"),
    ] {
        assert_eq!(release(name).unwrap(), expected, "{name}");
    }
    let error = machine.error("debian:6.12", true);
    assert!(error.ends_with("has no kernel 6.12; it has 6.1, 7.2, 7.3"), "{error}");
    let error = machine.error("debian:trixie", true);
    assert!(error.contains("'http://mirror trixie Release' does not have"), "{error}");
    let error = machine.error("debian:stable", true);
    assert!(error.contains("no release of Debian is stable now"), "{error}");
    let error = machine.error("debian:7.1.3+deb13", true);
    assert!(
        error.contains("no package linux-image-7.1.3+deb13-amd64"),
        "its image is gone: {error}"
    );
    let error = machine.error("debian:7.3-none", true);
    assert!(error.contains("has no preemption model none: since Linux 7.0"), "{error}");

    let models = |machine: &Machine| {
        machine
            .kernels
            .own_models(Arch::X86_64, false, &mut |_| ())
            .iter()
            .map(Model::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(models(&machine), "none voluntary full rt");
    machine.archive("bookworm", &bookworm("7.4.1+deb12"));
    machine.forget();
    assert_eq!(models(&machine), "full lazy rt", "by what is here");
    machine.kernels.list(Arch::X86_64, &mut |_| ()).unwrap();
    assert_eq!(models(&machine), "full lazy rt");
}

#[test]
fn a_kernel_without_a_model_is_booted_with_all_that_it_has() {
    let machine = Machine::new();
    machine.archive("sid", &split("7.3.4+deb14", &["binary", "modules", "base"]));
    let models = |name: &str| {
        let mut said = Vec::new();
        let mut say = |text: &str| said.push(text.to_owned());
        let all = machine.kernels.with_all_models(name, Arch::X86_64, true, &mut say).unwrap();
        (all.into_iter().map(|kernel| kernel.name).collect::<Vec<_>>(), said)
    };
    let (names, _) = models("debian:6.1");
    let expected =
        ["none", "voluntary", "full", "rt"].map(|model| format!("debian:6.1.0-56-{model}"));
    assert_eq!(names, expected);
    let (names, said) = models("debian:7.3");
    assert_eq!(names, ["debian:7.3.4+deb14-lazy", "debian:7.3.4+deb14-full"]);
    let last = said.last().unwrap();
    assert!(last.starts_with("debian:7.3.4+deb14-rt is left out: Debian has no package"), "{last}");
    assert_eq!(models("debian:6.1-full").0, ["debian:6.1.0-56-full"]);
    let newest = machine.kernels.newest_series(Arch::X86_64, false, &mut |_| ());
    assert_eq!(newest.unwrap(), "7.3");
}

#[test]
fn a_kernel_in_parts_is_put_together() {
    let machine = Machine::new();
    machine.archive("sid", &split("7.3.4+deb14", &["binary", "modules", "base"]));
    let (kernel, said) = machine.resolve("debian:7.3-lazy", true).unwrap();
    assert_eq!(kernel.parameters, ["preempt=lazy"]);
    let folder = "debian/linux-image-7.3.4+deb14-amd64_7-1/usr/lib/modules/7.3.4+deb14-amd64";
    let folder = machine.kernels.cache_folder().join(folder);
    assert_eq!((kernel.config, kernel.modules), (Some(folder.join("config")), Some(folder)));
    assert!(said.iter().any(|said| said.ends_with("7-1, 3 MB")), "{said:?}");
    assert_eq!(machine.downloads(), 3);
    machine.resolve("debian:7.3-full", true).unwrap();
    assert_eq!(machine.downloads(), 3);
}

#[test]
fn a_kernel_of_which_only_the_image_is_left_boots_without_modules() {
    let machine = Machine::new();
    machine.archive("sid", &split("7.1.13+deb14", &["binary"]));
    let (kernel, said) = machine.resolve("debian:7.1", true).unwrap();
    assert_eq!((kernel.config, kernel.modules, kernel.model), (None, None, None));
    let told = said.iter().any(|said| {
        said.contains("no linux-base-7.1.13+deb14-amd64 and no linux-modules-7.1.13+deb14-amd64")
    });
    assert!(told, "{said:?}");
}

#[test]
fn lists_are_read_once_and_anew_for_what_they_lack() {
    let machine = Machine::new();
    machine.resolve("debian:none", true).unwrap();
    machine.resolve("debian:full", true).unwrap();
    assert_eq!(machine.noted("updates"), ["bookworm"], "the others are not needed");
    machine.kernels.list(Arch::X86_64, &mut |_| ()).unwrap();
    // Those that are gone are tried again.
    assert_eq!(machine.noted("updates").len(), releases::RELEASES.len());
    let folder = machine.kernels.cache_folder().join("apt/amd64/bookworm");
    let config = fs::read_to_string(folder.join("apt.conf")).unwrap();
    assert!(config.contains("Dir::Etc::parts \"/dev/null\""), "{config}");
    let sources = fs::read_to_string(folder.join("sources.list")).unwrap();
    let expected = "debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main\n";
    assert!(sources.contains(expected), "{sources}");
    assert!(sources.contains("/debian-security bookworm-security main\n"), "{sources}");

    let older = std::time::SystemTime::now() - std::time::Duration::from_secs(200_000);
    let file = fs::File::open(folder.join("kernels")).unwrap();
    file.set_modified(older).unwrap();
    machine.archive("bookworm", &bookworm("6.1.0-57"));
    assert_eq!(machine.resolve("debian:none", true).unwrap().0.release, "6.1.0-56-amd64");
    let (kernel, _) = machine.resolve("debian:6.1.0-57", true).unwrap();
    assert_eq!(kernel.release, "6.1.0-57-amd64");
    assert_eq!(machine.resolve("debian:none", true).unwrap().0.release, "6.1.0-57-amd64");

    // An old list is better than none.
    file.set_modified(older).unwrap();
    fs::File::open(folder.join("kernels")).unwrap().set_modified(older).unwrap();
    let without = "-q) echo 'E: no network' >&2; exit 100 ;;\nupdate)";
    machine.tool("apt-get", &APT_GET.replace("-q)", without));
    let mut said = Vec::new();
    let mut say = |text: &str| said.push(text.to_owned());
    assert!(!machine.kernels.list(Arch::X86_64, &mut say).unwrap().is_empty());
    let told = "using the list of Debian bookworm of 2 days ago";
    assert!(said.iter().any(|said| said == told), "{said:?}");
    assert!(said.iter().any(|said| said.ends_with("apt-get: no network")), "{said:?}");
    let tried = said.iter().filter(|said| said.starts_with("reading")).count();
    assert_eq!(tried, 1, "where one mirror cannot be reached, the others cannot: {said:?}");
}

#[test]
fn an_installed_kernel_is_used_as_it_is() {
    let machine = Machine::new();
    machine.tool(
        "dpkg-query",
        "echo 'ii  linux-image-6.1.0-56-amd64 amd64 6.1.200-1'; \
         echo 'rc  linux-image-6.1.0-58-amd64 amd64 6.1.201-1'; \
         echo 'ii  linux-image-6.1.0-59-amd64 amd64 6.1.202-1'",
    );
    let folder = &machine.folder;
    folder.write("root/boot/vmlinuz-6.1.0-56-amd64", &bz_image(b"BZh9"));
    folder.write("root/boot/config-6.1.0-56-amd64", STOCK);
    folder.write("root/lib/modules/6.1.0-56-amd64/kernel/a.ko", b"");
    let (kernel, said) = machine.resolve("debian:none", true).unwrap();
    assert_eq!(kernel.package.unwrap(), "linux-image-6.1.0-56-amd64 6.1.200-1");
    assert_eq!(kernel.image, folder.0.join("root/boot/vmlinuz-6.1.0-56-amd64"));
    assert!(said.iter().any(|said| said.contains("compressed with bzip2")), "{said:?}");
    assert_eq!(machine.downloads(), 0);

    let mut said = Vec::new();
    let mut say = |text: &str| said.push(text.to_owned());
    let list = machine.kernels.list(Arch::X86_64, &mut say).unwrap();
    let brief: Vec<_> = list.iter().map(|a| (a.name.as_str(), a.state, a.download_bytes)).collect();
    let offered = |name| (name, State::Downloadable, Some(1_000_000));
    assert_eq!(
        brief,
        [
            offered("debian:6.1.0-9"),
            offered("debian:6.1.0-9-rt"),
            offered("debian:6.1.0-56"),
            ("debian:6.1.0-56", State::Installed, None),
            offered("debian:6.1.0-56-rt"),
        ]
    );
    assert_eq!(said.iter().filter(|said| said.contains("Release file")).count(), 6, "{said:?}");
}

#[test]
fn errors_say_what_to_do() {
    let machine = Machine::new();
    let error = machine.error("debian:6.1.0-20-rt", true);
    let near = "the nearest are debian:6.1.0-9-rt, debian:6.1.0-56-rt";
    assert!(error.ends_with(near), "{error}");
    let path = machine.kernels.fetch("/boot/x", Arch::X86_64, &mut |_| ()).unwrap_err();
    assert!(path.to_string().contains("is a path"), "{path}");
    assert!(machine.error("debian:fast", true).ends_with(FORMS));

    let large = bookworm("6.1.0-56").replace("Installed-Size: 4", "Installed-Size: 9000000000000");
    machine.archive("bookworm", &large);
    machine.forget();
    let error = machine.error("debian:rt", true);
    assert!(error.contains("set PUNCTUAL_CACHE"), "{error}");
    machine.archive("bookworm", &bookworm("6.1.0-56"));
    machine.forget();
    machine.tool("dpkg-deb", "mkdir -p $3/boot; echo 'dpkg-deb: error: paste killed' >&2; exit 2");
    let error = machine.error("debian:rt", true);
    assert!(error.contains("disk") && error.ends_with("dpkg-deb: error: paste killed"), "{error}");
    machine.tool("dpkg-deb", "mkdir -p $3/boot");
    let error = machine.error("debian:rt", true);
    assert!(error.contains("lacks a kernel"), "{error}");
    machine.tool("apt-get", &APT_GET.replace("download)", "download) exit ;; other)"));
    let error = machine.error("debian:rt", true);
    assert!(error.ends_with("apt-get downloaded nothing"), "{error}");
    machine.tool(
        "apt-get",
        &APT_GET.replace("download)", "download) echo 'E: 404  Not Found' >&2; exit 100 ;; other)"),
    );
    let error = machine.error("debian:rt", true);
    assert!(error.ends_with("apt-get: 404  Not Found"), "{error}");
    assert_eq!(machine.kernels.cache.packages().unwrap(), []);

    machine.forget();
    machine.tool("apt-cache", "exit 100");
    let error = machine.error("debian:rt", true);
    assert_eq!(error, "Debian bookworm has no kernel for x86_64");
    fs::remove_dir_all(machine.folder.0.join("tools")).unwrap();
    let error = machine.error("debian:rt", true);
    assert!(error.starts_with("apt-get is not installed"), "{error}");
    assert!(error.ends_with("give the path of a kernel instead"), "{error}");
    fs::remove_dir_all(machine.folder.0.join("root/usr")).unwrap();
    let error = machine.error("debian:rt", true);
    assert!(error.contains("install debian-archive-keyring"), "{error}");
}

#[test]
fn a_download_tells_its_progress() {
    let machine = Machine::new();
    let mut bytes = Vec::new();
    let available = machine
        .kernels
        .fetch("debian:6.1.0-56", Arch::X86_64, &mut |progress| {
            if let FetchProgress::Bytes { done, total } = progress {
                bytes.push((done, total));
            }
        })
        .unwrap();
    assert_eq!((available.name.as_str(), available.state), ("debian:6.1.0-56", State::Cached));
    assert_eq!(bytes.last(), Some(&(27, 1_000_000)));
}

#[test]
fn image_files_say_what_they_are() {
    let machine = Machine::new();
    let folder = &machine.folder;
    folder.write("k/vmlinuz", &bz_image(&gzip(&vmlinux())));
    folder.write("k/config-6.1.0-56-amd64", STOCK);
    folder.write("k/vmlinux", &vmlinux());
    folder.write("k/Image", &arm64_image());
    folder.write("k/note", b"text");
    let at = |name| folder.0.join(name).to_str().unwrap().to_owned();

    let (kernel, _) = machine.resolve(&at("k/vmlinuz"), false).unwrap();
    let named = |kernel: &Kernel| (kernel.name.clone(), kernel.release.clone());
    let release = "6.1.0-56-amd64".to_owned();
    assert_eq!(named(&kernel), (release.clone(), release.clone()));
    assert_eq!(kernel.model, Some(Model::Voluntary));
    assert_eq!((kernel.modules, kernel.package), (None, None));
    let (kernel, _) = machine.resolve(&at("k/vmlinux"), false).unwrap();
    assert_eq!(kernel.image, folder.0.join("k/vmlinux"));
    // A name of its own says more than the release; a `config` beside it need not be its.
    folder.write("other/late-irq", &vmlinux());
    folder.write("other/config", STOCK);
    let (kernel, _) = machine.resolve(&at("other/late-irq"), false).unwrap();
    assert_eq!(named(&kernel), ("late-irq".to_owned(), release));
    assert_eq!(kernel.config, None);
    folder.write("6.1.0-56-amd64/vmlinuz", &bz_image(&gzip(&vmlinux())));
    folder.write("6.1.0-56-amd64/config", STOCK);
    let (kernel, _) = machine.resolve(&at("6.1.0-56-amd64/vmlinuz"), false).unwrap();
    assert_eq!(kernel.config, Some(folder.0.join("6.1.0-56-amd64/config")));
    assert_eq!(kernel.model, Some(Model::Voluntary));

    let resolve = |arch, modules: Option<&Path>| {
        machine
            .kernels
            .resolve(&[&at("k/Image")], arch, modules, false, &mut |_| ())
            .map(|mut kernels| kernels.remove(0))
    };
    let kernel = resolve(Arch::Aarch64, Some(&folder.0)).unwrap();
    assert_eq!((kernel.model, kernel.modules), (None, Some(folder.0.clone())));
    assert!(resolve(Arch::Aarch64, Some(&folder.0.join("gone"))).is_err());
    let error = resolve(Arch::X86_64, None).unwrap_err().to_string();
    assert!(error.ends_with("is a kernel for aarch64, but the board is x86_64"), "{error}");
    assert!(machine.error(&at("k/note"), false).contains("neither a bzImage"));
    let gone = machine.error(&at("k/gone"), false);
    assert!(gone.contains("(os error 2)") && gone.ends_with(FORMS), "{gone}");
    assert!(machine.error(&at("k"), false).contains("no .config"));
}

#[test]
fn a_build_tree_has_its_own_modules() {
    let machine = Machine::new();
    let folder = &machine.folder;
    let tree = folder.0.join("linux");
    let spec = tree.to_str().unwrap();
    folder.write("linux/.config", b"CONFIG_X86_64=y\nCONFIG_PVH=y\nCONFIG_PREEMPT=y\n");
    assert!(machine.error(spec, false).contains("has not been built"));
    folder.write("linux/arch/x86/boot/bzImage", &bz_image(&gzip(&vmlinux())));
    assert!(machine.error(spec, false).contains("kernel.release"));
    folder.write("linux/include/config/kernel.release", b"6.19.0-rc1+\n");
    let (kernel, _) = machine.resolve(spec, false).unwrap();
    assert_eq!((kernel.name.as_str(), kernel.release.as_str()), ("linux", "6.19.0-rc1+"));
    assert_eq!((kernel.model, &kernel.modules), (Some(Model::Full), &Some(tree.clone())));
    assert_eq!(fs::read(&kernel.image).unwrap(), vmlinux());

    folder.write("linux/vmlinux", &vmlinux());
    assert_eq!(machine.resolve(spec, false).unwrap().0.image, tree.join("vmlinux"));
    folder.write("linux/.config", b"CONFIG_X86_64=y\n");
    assert_ne!(machine.resolve(spec, false).unwrap().0.image, tree.join("vmlinux"));
    folder.write("linux/.config", b"CONFIG_ARM64=y\n");
    assert!(machine.error(spec, false).contains("no CONFIG_X86_64"));
}
