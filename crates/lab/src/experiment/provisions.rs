//! What the guests of one kernel are given: modules, device set-up, the configuration.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use punctual_core::channel::{BoardSetup, ModuleFile};
use punctual_sys::file;

use crate::board::BoardSpec;
use crate::device::Device;
use crate::kernel::{Kernel, MOST_CONFIG};
use crate::modules::{self, Module};

/// What the guests of one kernel have in common.
#[derive(Debug, Default)]
pub(super) struct Provisions {
    /// Modules in the order of loading.
    pub(super) modules: Vec<Module>,
    /// What is written and checked before the plan runs.
    pub(super) setup: BoardSetup,
    /// The kernel's configuration, for the guest's facts.
    pub(super) config: Option<Vec<u8>>,
}

impl Provisions {
    /// Collects what a board and these further modules, with their parameters, need from a kernel.
    ///
    /// # Errors
    /// A module is missing, is built in and cannot take parameters, or cannot be read.
    pub(super) fn of(
        board: &BoardSpec,
        kernel: &Kernel,
        further: &[(String, String)],
    ) -> Result<Self> {
        let devices = devices(board, kernel);
        let of_devices = devices.iter().flat_map(|device| device.modules.iter().copied());
        let further = further.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let wanted: Vec<(&str, &str)> = of_devices.chain(further.clone()).collect();
        let modules = with_dependencies(kernel, &wanted)?;
        for (name, parameters) in further.filter(|(_, text)| !text.is_empty()) {
            ensure!(
                modules.iter().any(|module| module.is(name)),
                "{}: {name} is built in: give its parameters on the kernel's command line \
                 (--append {name}.{parameters})",
                kernel.name
            );
        }
        // If a module is requested twice, the last parameters count.
        let parameters = |module: &Module| {
            let of = wanted.iter().rev().find(|(asked, _)| module.is(asked));
            of.map_or("", |(_, text)| text).to_owned()
        };
        let files = modules.iter().map(|module| ModuleFile {
            file: module.file_name.clone(),
            parameters: parameters(module),
        });
        let writes = devices.iter().flat_map(|device| device.writes);
        let setup = BoardSetup {
            modules: files.collect(),
            writes: writes.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(),
            expects: board.devices.iter().map(|device| device.file.to_owned()).collect(),
        };
        let config = kernel.config.as_deref().map(read).transpose()?;
        Ok(Self { modules, setup, config })
    }
}

/// The requested devices, and those of the measured ones for which the kernel has a driver.
fn devices(board: &BoardSpec, kernel: &Kernel) -> Vec<&'static Device> {
    let drives = |device: &&&'static Device| {
        let names: Vec<&str> = device.modules.iter().map(|(name, _)| *name).collect();
        let found = |folder| modules::closure(Some(folder), &kernel.release, &names).is_ok();
        names.is_empty() || kernel.modules.as_deref().is_some_and(found)
    };
    let measured = board.measured.iter().filter(drives);
    board.devices.iter().chain(measured).copied().collect()
}

fn with_dependencies(kernel: &Kernel, wanted: &[(&str, &str)]) -> Result<Vec<Module>> {
    let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let folder = kernel.modules.as_deref();
    let named: Vec<&str> = names.iter().copied().filter(|name| !modules::is_path(name)).collect();
    ensure!(
        folder.is_some() || named.is_empty(),
        "{} needs the modules {}: give their folder with --modules",
        kernel.name,
        named.join(", ")
    );
    modules::closure(folder, &kernel.release, &names).with_context(|| kernel.name.clone())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    file::read(path, MOST_CONFIG).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::find;
    use crate::elf::{X86_64, tests::file};
    use crate::kernel::testing::kernel;
    use crate::testing::Folder;

    fn board(device: &str) -> BoardSpec {
        BoardSpec { devices: vec![find(device).unwrap()], ..BoardSpec::default() }
    }

    #[test]
    fn modules_devices_and_writes_become_a_setup() {
        let folder = Folder::new();
        let module = |depends: &str| {
            let info = format!("depends={depends}\0vermagic=6.1.0 SMP\0");
            file(X86_64, ".modinfo", info.as_bytes())
        };
        folder.write("kernel/uio.ko", &module(""));
        folder.write("kernel/uio-pci-generic.ko", &module("uio"));
        folder.write("kernel/loop.ko", &module(""));
        let kernel = Kernel { modules: Some(folder.0.clone()), ..kernel("debian:rt") };
        let further = [("loop".to_owned(), "max_loop=1".to_owned())];
        let setup = Provisions::of(&board("edu"), &kernel, &further).unwrap().setup;
        let of = |file: &str, parameters: &str| ModuleFile {
            file: file.to_owned(),
            parameters: parameters.to_owned(),
        };
        let expected =
            [of("uio.ko", ""), of("uio-pci-generic.ko", ""), of("loop.ko", "max_loop=1")];
        assert_eq!(setup.modules, expected);
        assert_eq!(setup.writes[0].1, "1234 11e8");
        assert_eq!(setup.expects, ["/dev/uio0"]);
    }

    #[test]
    fn a_module_by_its_path_takes_parameters() {
        let folder = Folder::new();
        folder.write("my-hold.ko", &file(X86_64, ".modinfo", b"vermagic=6.1.0 SMP\0"));
        let path = folder.0.join("my-hold.ko").display().to_string();
        let further = [(path, "length=60ms".to_owned())];
        let setup = Provisions::of(&BoardSpec::default(), &kernel("vmlinux"), &further);
        let expected =
            ModuleFile { file: "my-hold.ko".to_owned(), parameters: "length=60ms".to_owned() };
        assert_eq!(setup.unwrap().setup.modules, [expected]);
    }

    #[test]
    fn what_a_kernel_lacks_is_named() {
        let error = |kernel: &Kernel, further: &[(String, String)]| {
            format!("{:#}", Provisions::of(&board("rtc"), kernel, further).unwrap_err())
        };
        let brd = [("brd".to_owned(), "rd_nr=1".to_owned())];
        let without = kernel("vmlinux");
        let text = error(&without, &brd);
        assert!(text.starts_with("vmlinux needs the modules brd: "), "{text}");
        let folder = Folder::new();
        folder.write("modules.builtin", b"kernel/brd.ko\n");
        let builtin = Kernel { modules: Some(folder.0.clone()), ..without };
        let text = error(&builtin, &brd);
        assert!(
            text.contains("brd is built in") && text.contains("--append brd.rd_nr=1"),
            "{text}"
        );
    }
}
