//! An experiment: several kernels on one kind of board, each booted several times.
//!
//! A board whose time is counted repeats itself, so that a second boot adds nothing
//! unless something harmless is different: replicates differ in the seed of the board's
//! random numbers and in the delay of the first release.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use punctual_core::guest::{self as protocol, Event, MODULES_PATH, ORDER_PATH, Order};
use punctual_core::hash::sha256;
use punctual_core::plan::Plan;
use punctual_core::schema::{Lab, Run};
use punctual_core::units::utc;
use punctual_sys::affinity;

use crate::board::Board;
use crate::device::Device;
use crate::files;
use crate::guest::{Boot, Complete, End, Guest, emulator_version};
use crate::initramfs::Initramfs;
use crate::kernel::Kernel;
use crate::modules::{self, Module};

/// Time of the board that a plan may take beyond thrice its own.
const SPARE_NS: u64 = 120_000_000_000;

/// The file of an experiment's folder that lists its runs, kernel by kernel.
pub const EXPERIMENT: &str = "experiment.json";

/// What to boot, how often, and what to run there.
pub struct Experiment<'a> {
    /// The board.
    pub board: &'a Board,
    /// What each guest measures.
    pub plan: &'a Plan,
    /// The kernels to boot, in order.
    pub kernels: &'a [Kernel],
    /// How often each is booted.
    pub replicates: u32,
    /// The punctual for the board, a static executable.
    pub program: &'a [u8],
    /// Modules to load beside those of the devices, with their parameters.
    pub modules: &'a [(String, String)],
    /// Parameters behind the kernels' own.
    pub parameters: &'a [String],
    /// The folder of the experiment; it exists.
    pub out: &'a Path,
    /// Name of the experiment.
    pub group: &'a str,
    /// The command line that asked for it.
    pub command: &'a [String],
    /// Guests at a time.
    pub jobs: usize,
    /// Longest time that a guest may give no sign of life, in the host's time.
    pub patience: Duration,
    /// Lets init end, which makes the kernel panic.
    pub crash: bool,
}

/// One guest of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Index of the kernel.
    pub kernel: usize,
    /// Number of the replicate, from 0.
    pub replicate: u32,
    /// Name of its run directory.
    pub name: String,
}

/// A guest that has ended.
#[derive(Debug)]
pub struct Done {
    /// Which one.
    pub place: Place,
    /// How.
    pub end: End,
}

/// Follows an experiment.
pub trait Watch {
    /// A guest was started.
    fn booted(&mut self, place: &Place);
    /// A guest told something, `wall` after its start.
    fn event(&mut self, place: &Place, event: &Event, wall: Duration);
    /// A guest has ended.
    fn ended(&mut self, place: &Place, end: &End, wall: Duration);
    /// Called while nothing happens: waits a little. `true` ends everything.
    fn pause(&mut self) -> bool;
}

/// What the guests of one kernel have in common.
struct Common {
    /// The devices that the kernel drives.
    devices: Vec<&'static Device>,
    modules: Vec<Module>,
    /// The kernel's configuration: facts are read from it.
    config: Option<Vec<u8>>,
}

impl Experiment<'_> {
    /// Boots every kernel as often as asked for, some at a time, and follows the guests to
    /// their end. A guest that fails is told of, and the others go on.
    ///
    /// # Errors
    /// Where nothing can be booted: no QEMU, a module that no kernel has.
    pub fn run(&self, watch: &mut dyn Watch) -> anyhow::Result<(Vec<Done>, bool)> {
        let qemu = emulator_version(self.board.arch)?;
        let program_sha256 = sha256(self.program);
        let common: Vec<Common> =
            self.kernels.iter().map(|kernel| self.common(kernel)).collect::<Result<_, _>>()?;
        self.list()?;
        let mut waiting: VecDeque<Place> = self.places().into();
        let cpus: Vec<u32> = affinity::get().context("the CPUs of this host")?.iter().collect();
        let mut running: Vec<(Place, Guest)> = Vec::new();
        let mut done = Vec::new();
        while !(waiting.is_empty() && running.is_empty()) {
            while running.len() < self.jobs.max(1)
                && let Some(place) = waiting.pop_front()
            {
                let lab = self.lab(&place, &common[place.kernel], &qemu, &program_sha256);
                let taken =
                    |cpu: &u32| running.iter().filter(|(_, g)| g.cpu() == Some(*cpu)).count();
                let cpu = cpus.iter().copied().min_by_key(taken).filter(|_| self.board.is_pinned());
                match self.boot(&place, lab, &common[place.kernel], cpu) {
                    Ok(guest) => {
                        watch.booted(&place);
                        running.push((place, guest));
                    }
                    Err(error) => {
                        let troubles = vec![format!("{error:#}")];
                        let end = End { troubles, last_lines: Vec::new() };
                        watch.ended(&place, &end, Duration::ZERO);
                        done.push(Done { place, end });
                    }
                }
            }
            if watch.pause() {
                running.into_iter().for_each(|(_, guest)| guest.abandon());
                return Ok((done, true));
            }
            let mut still = Vec::with_capacity(running.len());
            for (place, mut guest) in running {
                let wall = guest.wall();
                match guest.poll(|event| watch.event(&place, event, wall)) {
                    None => still.push((place, guest)),
                    Some(end) => {
                        watch.ended(&place, &end, wall);
                        done.push(Done { place, end });
                    }
                }
            }
            running = still;
        }
        done.sort_by_key(|done| (done.place.kernel, done.place.replicate));
        Ok((done, false))
    }

    fn list(&self) -> anyhow::Result<()> {
        let mut places = self.places();
        places.sort_by_key(|place| (place.kernel, place.replicate));
        let runs: Vec<&str> = places.iter().map(|place| place.name.as_str()).collect();
        let path = self.out.join(EXPERIMENT);
        let list =
            serde_json::json!({"group": self.group, "board": self.board.words(), "runs": runs});
        files::replace(&path, format!("{list:#}\n").as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// The guests, each kernel once before any is booted again.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        let names = names(self.kernels);
        let place = |replicate: u32| {
            names.iter().enumerate().map(move |(kernel, name)| Place {
                kernel,
                replicate,
                name: format!("{name}-{replicate}"),
            })
        };
        (0..self.replicates).flat_map(place).collect()
    }

    fn common(&self, kernel: &Kernel) -> anyhow::Result<Common> {
        let read = |path: &PathBuf| {
            fs::read(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let config = kernel.config.as_ref().map(read).transpose()?;
        let mut devices = self.board.devices.clone();
        let drives = |device: &&&'static Device| {
            let names: Vec<&str> = device.modules.iter().map(|(name, _)| *name).collect();
            names.is_empty()
                || kernel
                    .modules
                    .as_ref()
                    .is_some_and(|folder| modules::closure(folder, &kernel.release, &names).is_ok())
        };
        devices.extend(self.board.measured.iter().filter(drives));
        let wanted: Vec<&str> = self.wanted(&devices).map(|(name, _)| name).collect();
        if wanted.is_empty() {
            return Ok(Common { devices, modules: Vec::new(), config });
        }
        let folder = kernel.modules.as_ref().with_context(|| {
            format!(
                "{}: the modules {} are needed: name their folder with --modules",
                kernel.name,
                wanted.join(", ")
            )
        })?;
        let modules = modules::closure(folder, &kernel.release, &wanted)
            .with_context(|| kernel.name.clone())?;
        for (name, parameters) in self.modules.iter().filter(|(_, text)| !text.is_empty()) {
            let name = name.replace('-', "_");
            ensure!(
                modules.iter().any(|module| module.name == name),
                "{}: {name} is built in: give its parameters on the kernel's command line \
                 (--append {name}.{parameters})",
                kernel.name
            );
        }
        Ok(Common { devices, modules, config })
    }

    /// The modules that are asked for, with their parameters.
    fn wanted<'b>(&'b self, devices: &'b [&Device]) -> impl Iterator<Item = (&'b str, &'b str)> {
        let devices = devices.iter().flat_map(|device| device.modules.iter().copied());
        devices.chain(self.modules.iter().map(|(name, text)| (name.as_str(), text.as_str())))
    }

    fn lab(&self, place: &Place, common: &Common, qemu: &str, program_sha256: &str) -> Lab {
        let (board, kernel) = (self.board, &self.kernels[place.kernel]);
        let seed = seed(place.replicate);
        Lab {
            counted: board.mips.is_some(),
            not_exact: board.not_exact(),
            qemu: qemu.to_owned(),
            options: board.options(seed),
            arch: board.arch.name().to_owned(),
            cpus: board.cpus,
            memory_mib: board.memory_mib,
            mips: board.mips.unwrap_or(0),
            seed,
            devices: board.all_devices().map(|device| device.name.to_owned()).collect(),
            kernel: kernel.name.clone(),
            kernel_sha256: kernel.image_sha256.clone(),
            modules: common.modules.iter().map(|module| module.name.clone()).collect(),
            // Not known before the initramfs is made.
            initramfs_sha256: String::new(),
            punctual_sha256: program_sha256.to_owned(),
        }
    }

    fn boot(
        &self,
        place: &Place,
        lab: Lab,
        common: &Common,
        cpu: Option<u32>,
    ) -> anyhow::Result<Guest> {
        let kernel = &self.kernels[place.kernel];
        let order = self.order(place, &lab, common);
        let initramfs = self.initramfs(&order, common, &kernel.release)?;
        let lab = Lab { initramfs_sha256: sha256(&initramfs), ..lab };
        let parameters: Vec<String> =
            kernel.parameters.iter().chain(self.parameters).cloned().collect();
        let dir = self.out.join(&place.name);
        let boot = Boot {
            arch: self.board.arch,
            options: &lab.options,
            kernel: &kernel.image,
            parameters: &self.board.parameters(&parameters),
            initramfs: &initramfs,
            dir: &dir,
            cpu,
            patience: self.patience,
        };
        Guest::boot(&boot, self.complete(place, lab.clone()))
    }

    /// Holds nothing of the host, nor of the kernels that are booted beside this one: a guest's
    /// numbers are the same in every experiment that has it.
    fn order(&self, place: &Place, lab: &Lab, common: &Common) -> Order {
        let parameters: BTreeMap<String, &str> = self
            .wanted(&common.devices)
            .map(|(name, text)| (name.replace('-', "_"), text))
            .collect();
        let modules = common.modules.iter().map(|module| protocol::Module {
            file: module.file_name.clone(),
            parameters: parameters.get(&module.name).copied().unwrap_or_default().to_owned(),
        });
        let takes = |duration: u64| duration.saturating_add(self.plan.warmup_ns);
        let cells = self.plan.cells.iter();
        let plan_ns = cells.fold(0_u64, |sum, cell| sum.saturating_add(takes(cell.duration_ns)));
        Order {
            plan: self.plan.clone(),
            board: format!("virtual-{}", self.board.arch.name()),
            lab: Lab {
                qemu: String::new(),
                options: Vec::new(),
                kernel: String::new(),
                kernel_sha256: String::new(),
                punctual_sha256: String::new(),
                ..lab.clone()
            },
            replicate: Some(place.replicate),
            phase_ns: phase_ns(place.replicate),
            modules: modules.collect(),
            writes: common
                .devices
                .iter()
                .flat_map(|device| device.writes)
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect(),
            expects: self.board.devices.iter().map(|device| device.file.to_owned()).collect(),
            limit_ns: plan_ns.saturating_mul(3).saturating_add(SPARE_NS),
            crash: self.crash,
        }
    }

    /// The same bytes for the same order, program and modules.
    fn initramfs(&self, order: &Order, common: &Common, release: &str) -> anyhow::Result<Vec<u8>> {
        let mut files = Initramfs::new()?;
        let relative = |path: &'static str| path.trim_start_matches('/');
        for folder in ["proc", "sys", "tmp", "run", relative(MODULES_PATH)] {
            files.directory(folder)?;
        }
        files.file(relative(ORDER_PATH), 0o444, &serde_json::to_vec(order)?)?;
        for module in &common.modules {
            let path = format!("{}/{}", relative(MODULES_PATH), module.file_name);
            files.file(&path, 0o444, &module.bytes)?;
        }
        if let Some(config) = &common.config {
            files.file(&format!("boot/config-{release}"), 0o444, config)?;
        }
        files.file("init", 0o755, self.program)?;
        Ok(files.finish())
    }

    fn complete(&self, place: &Place, lab: Lab) -> Complete {
        let kernel = &self.kernels[place.kernel];
        // A model that the command line asks for is no other than the one that was asked for.
        let told = self.parameters.iter().any(|parameter| parameter.starts_with("preempt="));
        let model = kernel.model.filter(|_| !told);
        let name = kernel.name.clone();
        let command = self.command.to_vec();
        let group = self.group.to_owned();
        let run_id = run_id(&place.name, &lab.initramfs_sha256);
        Box::new(move |run: &mut Run| {
            if let Some(model) = model {
                let found = &run.kernel.preemption;
                ensure!(
                    *found == model.as_str(),
                    "{name} was to boot with the preemption model {model}, and runs with {found}"
                );
            }
            run.run_id.clone_from(&run_id);
            run.tool.command.clone_from(&command);
            run.group = Some(group.clone());
            run.board.lab = Some(lab.clone());
            Ok(())
        })
    }
}

/// Seed of a replicate's random numbers.
fn seed(replicate: u32) -> u64 {
    u64::from(replicate) + 1
}

/// Delay of a replicate's first release: multiples of the golden ratio, modulo a
/// millisecond, lie apart however many they are.
fn phase_ns(replicate: u32) -> u64 {
    u64::from(replicate) * 618_034 % 1_000_000
}

/// Names for run directories: the kernels', of letters that need no quotes, no two alike.
fn names(kernels: &[Kernel]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for kernel in kernels {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._+".contains(c) { c } else { '-' };
        let name: String = kernel.name.chars().map(plain).collect();
        let name = name.trim_matches(['-', '.']);
        let mut free = name.to_owned();
        let mut number = 1;
        while names.contains(&free) {
            number += 1;
            free = format!("{name}-no{number}");
        }
        names.push(free);
    }
    names
}

/// Unique, and by time: the guest's own clock starts on the same day in every boot.
fn run_id(name: &str, initramfs_sha256: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let bits = sha256(format!("{name} {initramfs_sha256} {now_ns}").as_bytes());
    format!("{}-{name}-{}", utc(now_ns), &bits[..8])
}

/// Makes the folder of an experiment.
///
/// # Errors
/// Where it exists or cannot be made.
pub fn make_folder(out: &Path) -> anyhow::Result<PathBuf> {
    if let Some(parent) = out.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    fs::create_dir(out).with_context(|| {
        format!(
            "cannot make {}; an experiment is never overwritten: name another folder with --out",
            out.display()
        )
    })?;
    // QEMU runs with this folder's path, wherever it is started.
    out.canonicalize().with_context(|| out.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;

    fn kernel(name: &str) -> Kernel {
        Kernel {
            name: name.to_owned(),
            arch: Arch::X86_64,
            image: PathBuf::from("/boot/vmlinuz"),
            image_sha256: sha256(name.as_bytes()),
            release: "6.1.0".to_owned(),
            parameters: Vec::new(),
            model: None,
            config: None,
            modules: None,
            package: None,
        }
    }

    #[test]
    fn no_two_run_directories_have_one_name() {
        let kernels = ["vmlinux", "vmlinux-no2", "vmlinux", "-vmlinux", "a b"].map(kernel);
        assert_eq!(
            names(&kernels),
            ["vmlinux", "vmlinux-no2", "vmlinux-no3", "vmlinux-no4", "a-b"]
        );
    }

    /// The initramfs of the last kernel's second boot.
    fn initramfs(kernels: &[&str], group: &str, qemu: &str) -> Vec<u8> {
        let kernels: Vec<Kernel> = kernels.iter().map(|name| kernel(name)).collect();
        let board = Board {
            arch: Arch::X86_64,
            cpus: 1,
            memory_mib: 256,
            mips: Some(250),
            devices: Vec::new(),
            measured: Vec::new(),
        };
        let experiment = Experiment {
            board: &board,
            plan: &Plan::new("x"),
            kernels: &kernels,
            replicates: 2,
            program: b"punctual",
            modules: &[],
            parameters: &[],
            out: Path::new("/nowhere"),
            group,
            command: &[group.to_owned()],
            jobs: 1,
            patience: Duration::MAX,
            crash: false,
        };
        let place = experiment.places().pop().unwrap();
        let common = Common { devices: Vec::new(), modules: Vec::new(), config: None };
        let lab = experiment.lab(&place, &common, qemu, &sha256(b"punctual"));
        let order = experiment.order(&place, &lab, &common);
        experiment.initramfs(&order, &common, "6.1.0").unwrap()
    }

    #[test]
    fn a_guest_is_told_nothing_of_the_experiment_around_it() {
        let alone = initramfs(&["debian:rt"], "a", "7.2.22");
        let among = initramfs(&["debian:none", "/home/me/vmlinux"], "longer name", "9.0.0");
        assert!(alone == among, "the same board, plan and replicate");
    }
}
