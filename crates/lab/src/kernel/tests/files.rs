//! Kernels that are named by a path.

use super::*;
use crate::kernel::image::tests::arm64_image;

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
