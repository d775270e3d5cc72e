//! Kernels that are found, fetched and read.

mod files;
mod machine;
mod names;

use super::image::tests::{bz_image, vmlinux};
use super::*;
use crate::decompress::tests::gzip;
use crate::testing::Folder;
use machine::{APT_GET, Machine, STOCK, bookworm, split};
use punctual_core::hash::sha256;

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
fn a_cached_kernel_that_has_changed_is_noticed() {
    let machine = Machine::new();
    let (kernel, _) = machine.resolve("debian:full", true).unwrap();
    // The payload is unpacked anew, once.
    fs::write(&kernel.image, b"another kernel").unwrap();
    let (_, said) = machine.resolve("debian:full", false).unwrap();
    assert!(said.len() == 1 && said[0].contains("has changed since it was unpacked"), "{said:?}");
    assert_eq!(fs::read(&kernel.image).unwrap(), vmlinux());
    assert_eq!(machine.resolve("debian:full", false).unwrap().1, [""; 0]);
    // One of an older punctual has no sum yet.
    fs::remove_file(sums::beside(&kernel.image)).unwrap();
    assert_eq!(machine.resolve("debian:full", false).unwrap().1, [""; 0]);
    assert_eq!(sums::single(&kernel.image), sums::Single::Same);

    let root = machine.kernels.cache_folder().join("debian/linux-image-6.1.0-56-amd64_6.1.192-2");
    fs::remove_file(root.join(".punctual-sha256")).unwrap();
    machine.resolve("debian:full", false).unwrap();
    assert!(sums::are_kept(&root), "from its next use on");
    let config = kernel.config.unwrap();
    let before = fs::read(&config).unwrap();
    fs::write(&config, b"CONFIG_PREEMPT_RT=y\n").unwrap();
    let error = machine.resolve("debian:full", true).unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("config-6.1.0-56-amd64 has changed since it was fetched"), "{text}");
    assert!(!error.is::<OfKernel>(), "no commit cures it");
    fs::write(&config, before).unwrap();
    machine.resolve("debian:full", true).unwrap();
    // What is removed is fetched anew.
    fs::remove_dir_all(&root).unwrap();
    machine.resolve("debian:full", true).unwrap();
    assert_eq!(machine.downloads(), 2);
}

#[test]
fn a_kernel_that_is_missing_is_told_from_what_no_kernel_cures() {
    let machine = Machine::new();
    machine.resolve("debian:full", true).unwrap();
    let of_kernel = |spec: &str| machine.resolve(spec, false).unwrap_err().is::<OfKernel>();
    machine.folder.write("text", b"no kernel");
    machine.folder.write("tree/.config", b"CONFIG_X86_64=y\n");
    for name in ["gone", "text", "tree"] {
        assert!(of_kernel(machine.folder.0.join(name).to_str().unwrap()), "{name}");
    }
    assert!(of_kernel("debian:6.1.0-20"), "not on this machine");
    assert!(of_kernel("debian:6.1.0-56-lazy"), "it has no such model");
    assert!(!of_kernel("debian:fast"));
    // Without apt no kernel is found.
    fs::remove_file(machine.folder.0.join("tools/apt-get")).unwrap();
    machine.forget();
    let error = machine.resolve("debian:sid", true).unwrap_err();
    assert!(!error.is::<OfKernel>(), "{error:#}");
}

#[test]
fn a_cache_that_others_can_replace_is_warned_of() {
    use std::os::unix::fs::PermissionsExt as _;

    let machine = Machine::new();
    assert_eq!(machine.kernels.warning(), None, "there is none yet");
    machine.resolve("debian:full", true).unwrap();
    assert_eq!(machine.kernels.warning(), None);
    let above = machine.kernels.cache_folder().parent().unwrap();
    fs::set_permissions(above, fs::Permissions::from_mode(0o777)).unwrap();
    let text = machine.kernels.warning().unwrap();
    assert!(text.contains("every user") && text.contains("PUNCTUAL_CACHE"), "{text}");
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
