//! An experiment: several kernels on one kind of board, each booted several times.
//!
//! A board with counted time repeats itself exactly, so a second boot only adds something if
//! some harmless detail differs: replicates differ in the seed of the board's random numbers
//! and in the delay of the first release.

mod contents;
mod folder;
mod kept;
mod known;
mod place;
mod provisions;
mod record;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use punctual_core::channel::{Event, Order};
use punctual_core::hash::sha256;
use punctual_core::plan::Plan;
use punctual_core::schema::Lab;
use punctual_sys::affinity;

pub use folder::{EXPERIMENT, directory_of, make_folder, runs_listed, warning};
pub use place::Place;

use crate::board::BoardSpec;
use crate::bounds::Bounds;
use crate::emulator::Emulator;
use crate::extra::ExtraFile;
use crate::files;
use crate::kernel::Kernel;
use crate::modules::Module;
use crate::observer::Observer;
use crate::qemu::{Boot, End, Guest, Start};
use crate::warm::{self, Origin, Snapshot, Waiter};
use kept::KeptBoards;
use provisions::Provisions;
use record::Record;

/// Seed of the boot whose state is kept.
const KEPT_SEED: u64 = 1;

/// What to boot, how often, and what to run there. Everything is found and checked before the
/// first boot.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The QEMU that boots them.
    pub emulator: Emulator,
    /// The board.
    pub board: BoardSpec,
    /// What each guest measures.
    pub plan: Plan,
    /// The kernels to boot, in order.
    pub kernels: Vec<Kernel>,
    /// How often each kernel is booted.
    pub replicates: u32,
    /// Number of the first of these replicates, from 0. It decides on their seeds.
    pub first_replicate: u32,
    /// The punctual for the board, a static executable.
    pub program: Vec<u8>,
    /// Modules to load besides those of the devices, with their parameters.
    pub modules: Vec<(String, String)>,
    /// Files of the guests' besides punctual.
    pub files: Vec<ExtraFile>,
    /// Parameters after the kernels' own.
    pub parameters: Vec<String>,
    /// Name of the experiment; `None`: one derived from its content, the same whenever it is
    /// repeated.
    pub group: Option<String>,
    /// The command line that requested it.
    pub command: Vec<String>,
    /// Whether guests go on from a kept state of their board instead of booting.
    pub warm: bool,
    /// Guests to run at the same time.
    pub jobs: usize,
    /// Longest time without a sign of life from a guest: CPU time of QEMU, or the host's time
    /// while QEMU uses none.
    pub patience: Duration,
}

/// A guest that has ended.
#[derive(Debug)]
pub struct Done {
    /// Which guest.
    pub place: Place,
    /// How it ended.
    pub end: End,
}

/// The guests of an experiment after their end.
#[derive(Debug)]
pub struct Boots {
    /// Those that ended by themselves, kernel by kernel.
    pub done: Vec<Done>,
    /// Whether [`Follow::pause`] terminated the others.
    pub interrupted: bool,
}

/// The guests of an experiment, by whether their run is there already.
#[derive(Debug)]
pub struct Sorted {
    /// Those whose run is there.
    pub kept: Vec<Place>,
    /// The others.
    pub missing: Vec<Place>,
}

/// Callbacks that follow an experiment.
pub trait Follow {
    /// A guest has been started.
    fn booted(&mut self, place: &Place);
    /// A guest reported something, `wall` after its start.
    fn event(&mut self, place: &Place, event: &Event, wall: Duration);
    /// A guest has ended.
    fn ended(&mut self, place: &Place, end: &End, wall: Duration);
    /// Something about the guests of a kernel takes long.
    fn note(&mut self, kernel: &str, text: &str);
    /// Something about the guests of a kernel is not as it should be.
    fn warn(&mut self, kernel: &str, text: &str);
    /// Called while nothing happens; waits briefly. `true` ends everything.
    fn pause(&mut self) -> bool;
}

/// What all guests of an experiment have in common: all that takes time or can be missing.
pub struct Ready {
    program_sha256: String,
    /// CPUs of this host.
    cpus: Vec<u32>,
    /// What the guests of each kernel are given.
    provisions: Vec<Provisions>,
    /// The folder of what they need only while they run.
    working: Mutex<Option<PathBuf>>,
}

impl Ready {
    /// Guests that are booted from now on keep in this folder what they need only while they run.
    /// It is the caller's to remove, whatever becomes of the guests.
    pub fn work_in(&self, folder: &Path) {
        *self.working.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder.to_owned());
    }

    fn working(&self, place: &Place) -> Result<PathBuf> {
        let folder = self.working.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = folder.as_deref().context("no folder for what guests need while they run")?;
        Ok(folder.join(&place.name))
    }

    /// The same for guests of one of several threads, each of which has a CPU of this host as far
    /// as they reach.
    #[must_use]
    pub fn of_thread(mut self, thread: usize) -> Self {
        let cpu = self.cpus.get(thread % self.cpus.len().max(1)).copied();
        self.cpus = cpu.into_iter().collect();
        self
    }

    /// The modules that a guest is given.
    pub(crate) fn modules(&self, place: &Place) -> &[Module] {
        self.provisions.get(place.kernel).map_or(&[], |given| &given.modules)
    }
}

impl Experiment {
    /// Reads what the guests are given. Writes nothing, and does not look at signals.
    ///
    /// # Errors
    /// Nothing can be booted: a kernel lacks a module.
    pub fn prepare(&self) -> Result<Ready> {
        let of = |kernel| Provisions::of(&self.board, kernel, &self.modules);
        Ok(Ready {
            program_sha256: sha256(&self.program),
            cpus: affinity::get().context("the CPUs of this host")?.iter().collect(),
            provisions: self.kernels.iter().map(of).collect::<Result<_>>()?,
            working: Mutex::default(),
        })
    }

    /// Boots every kernel as often as requested, several guests at a time, and follows them to
    /// their end. Creates run directories in `out`, which must exist. A guest that fails is
    /// reported, and the others go on.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn run(&self, host: &Ready, out: &Path, follow: &mut dyn Follow) -> Result<Boots> {
        self.list(out)?;
        self.boot_all(self.places(), host, out, follow)
    }

    /// The order of a guest, and the initramfs with it.
    fn start(&self, place: &Place, host: &Ready) -> Result<(Order, Vec<u8>)> {
        let kernel = &self.kernels[place.kernel];
        let provisions = &host.provisions[place.kernel];
        let order = contents::order(&self.board, &self.plan, place);
        let given = (!self.warm).then_some(&order);
        let initramfs =
            contents::initramfs(given, provisions, &kernel.release, &self.program, &self.files)?;
        Ok((order, initramfs))
    }

    /// What is on the kernel's command line besides the board's own parameters.
    fn parameters_of(&self, place: &Place) -> Vec<String> {
        let own = &self.kernels[place.kernel].parameters;
        own.iter().chain(&self.parameters).cloned().collect()
    }

    /// Boots these guests as [`Experiment::run`] does all.
    ///
    /// # Errors
    /// The start of one cannot be put together.
    pub fn boot_all(
        &self,
        places: Vec<Place>,
        host: &Ready,
        out: &Path,
        follow: &mut dyn Follow,
    ) -> Result<Boots> {
        let Some(kept) = self.kept(&places, host, out, follow)? else {
            return Ok(Boots { done: Vec::new(), interrupted: true });
        };
        let mut waiting: VecDeque<Place> = places.into();
        let mut running: Vec<(Place, Guest)> = Vec::new();
        let mut done = Vec::new();
        while !(waiting.is_empty() && running.is_empty()) {
            while running.len() < self.jobs.max(1)
                && let Some(place) = waiting.pop_front()
            {
                if let Some(end) = kept.failure(&place, out) {
                    follow.ended(&place, &end, Duration::ZERO);
                    done.push(Done { place, end });
                    continue;
                }
                let snapshot = kept.snapshot(&place);
                match self.boot(&place, out, host, &running, snapshot, None) {
                    Ok(guest) => {
                        follow.booted(&place);
                        running.push((place, guest));
                    }
                    Err(error) => {
                        let troubles = vec![format!("{error:#}")];
                        let end = End { troubles, last_lines: Vec::new() };
                        follow.ended(&place, &end, Duration::ZERO);
                        done.push(Done { place, end });
                    }
                }
            }
            if follow.pause() {
                running.into_iter().for_each(|(_, guest)| guest.abandon());
                return Ok(Boots { done, interrupted: true });
            }
            let mut still = Vec::with_capacity(running.len());
            for (place, mut guest) in running {
                let wall = guest.wall();
                match guest.poll(|event| follow.event(&place, event, wall)) {
                    None => still.push((place, guest)),
                    Some(end) => {
                        follow.ended(&place, &end, wall);
                        done.push(Done { place, end });
                    }
                }
            }
            running = still;
        }
        done.sort_by_key(|done| (done.place.kernel, done.place.replicate));
        Ok(Boots { done, interrupted: false })
    }

    /// The boards that guests go on from, one for each kernel of these; `None` if nothing is wanted
    /// any more.
    fn kept(
        &self,
        places: &[Place],
        host: &Ready,
        out: &Path,
        follow: &mut dyn Follow,
    ) -> Result<Option<KeptBoards>> {
        let mut kept = KeptBoards::default();
        for place in places.iter().filter(|_| self.warm) {
            if kept.has(place.kernel) {
                continue;
            }
            let kernel = &self.kernels[place.kernel];
            let (order, initramfs) = self.start(place, host)?;
            let parameters = self.board.parameters(&self.parameters_of(place));
            let options = self.board.options(&self.emulator.cpu, KEPT_SEED);
            let options = warm::options_to_keep(&options);
            let boot = Boot {
                program: &self.emulator.program,
                options: &options,
                kernel: &kernel.image,
                parameters: &parameters,
                start: Start::Cold(&initramfs),
                dir: out,
                working: out,
                cpu: None,
                patience: self.patience,
                bounds: &Bounds::of(&order, self.patience),
                observer: None,
            };
            let emulator = &self.emulator;
            let origin =
                Origin::new(emulator, &options, &kernel.image_sha256, &parameters, &initramfs);
            let mut waiter = FollowedKernel { kernel: &kernel.name, follow: &mut *follow };
            let Some(found) =
                warm::obtain(&origin, &boot, &initramfs, self.board.memory_mib, &mut waiter)
            else {
                return Ok(None);
            };
            kept.add(place.kernel, found);
        }
        Ok(Some(kept))
    }

    /// All guests, every kernel once before any kernel is booted again.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        Place::all(&self.kernels, self.first_replicate, self.replicates)
    }

    /// Its name: the given one, otherwise one derived from what it boots and measures.
    #[must_use]
    pub fn group(&self) -> String {
        if let Some(group) = &self.group {
            return group.clone();
        }
        let kernels: Vec<_> = self.kernels.iter().map(|kernel| &kernel.image_sha256).collect();
        let what = format!("{:?} {} {kernels:?}", self.plan, self.board.words());
        format!("{}-{}", self.plan.name, &sha256(what.as_bytes())[..8])
    }

    /// Writes a list of the runs that there will be to `out`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn list(&self, out: &Path) -> Result<()> {
        let mut places = self.places();
        places.sort_by_key(|place| (place.kernel, place.replicate));
        let runs: Vec<&str> = places.iter().map(|place| place.name.as_str()).collect();
        let path = out.join(EXPERIMENT);
        let mut list =
            serde_json::json!({"group": self.group(), "board": self.board.words(), "runs": runs});
        // Of a directory that was removed meanwhile nobody needs to know.
        if let Ok(directory) = std::env::current_dir() {
            list["directory"] = serde_json::json!(directory);
        }
        files::replace(&path, format!("{list:#}\n").as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Boots a guest while others are `running`.
    fn boot(
        &self,
        place: &Place,
        out: &Path,
        host: &Ready,
        running: &[(Place, Guest)],
        snapshot: Option<&Snapshot>,
        observer: Option<&Observer>,
    ) -> Result<Guest> {
        let kernel = &self.kernels[place.kernel];
        let (order, initramfs) = self.start(place, host)?;
        let snapshot_sha256 = snapshot.map(|snapshot| snapshot.sha256.clone());
        let lab = Lab { snapshot_sha256, ..self.lab(place, host, &initramfs) };
        let options = lab.options.clone();
        let taken = |cpu: &u32| running.iter().filter(|(_, g)| g.cpu() == Some(*cpu)).count();
        let free = host.cpus.iter().copied().min_by_key(taken);
        // An appended preempt= overrides the kernel's model on purpose: nothing to check then.
        let told = self.parameters.iter().any(|parameter| parameter.starts_with("preempt="));
        let record = Record {
            name: place.name.clone(),
            lab,
            group: self.group(),
            command: self.command.clone(),
            model: kernel.model.filter(|_| !told),
            plan: self.plan.clone(),
            order: order.clone(),
            replicate: place.replicate,
        };
        let (state, text) = (snapshot.map(Snapshot::path), serde_json::to_vec(&order)?);
        let boot = Boot {
            program: &self.emulator.program,
            options: &options,
            kernel: &kernel.image,
            parameters: &self.board.parameters(&self.parameters_of(place)),
            start: match &state {
                Some(state) => Start::Kept { state, order: &text },
                None => Start::Cold(&initramfs),
            },
            dir: &out.join(&place.name),
            working: &host.working(place)?,
            cpu: free.filter(|_| self.board.is_pinned()),
            patience: self.patience,
            bounds: &Bounds::of(&order, self.patience),
            observer,
        };
        Guest::boot(&boot, record.completes())
    }

    /// Boots a guest that is watched.
    pub(crate) fn watched(
        &self,
        place: &Place,
        out: &Path,
        host: &Ready,
        observer: &Observer,
    ) -> Result<Guest> {
        self.boot(place, out, host, &[], None, Some(observer))
    }

    /// The board as it is booted.
    fn lab(&self, place: &Place, host: &Ready, initramfs: &[u8]) -> Lab {
        let (board, kernel) = (&self.board, &self.kernels[place.kernel]);
        let modules = &host.provisions[place.kernel].modules;
        Lab {
            counted: board.mips.is_some(),
            not_exact: board.not_exact(),
            qemu: self.emulator.version.clone(),
            qemu_sha256: self.emulator.sha256.clone(),
            options: board.options(&self.emulator.cpu, place.seed()),
            firmware_sha256: self.emulator.firmware_sha256.clone(),
            arch: board.arch.name().to_owned(),
            cpus: board.cpus,
            memory_mib: board.memory_mib,
            mips: board.mips.unwrap_or(0),
            seed: place.seed(),
            devices: board.all_devices().map(|device| device.name.to_owned()).collect(),
            kernel: kernel.name.clone(),
            kernel_sha256: kernel.image_sha256.clone(),
            modules: modules.iter().map(|module| module.name.clone()).collect(),
            initramfs_sha256: sha256(initramfs),
            initramfs_bytes: initramfs.len() as u64,
            punctual_sha256: host.program_sha256.clone(),
            // Known when there is one.
            snapshot_sha256: None,
        }
    }
}

/// Follows the boot of a kernel's board that is to be kept.
struct FollowedKernel<'a> {
    kernel: &'a str,
    follow: &'a mut dyn Follow,
}

impl Waiter for FollowedKernel<'_> {
    fn note(&mut self, text: &str) {
        self.follow.note(self.kernel, text);
    }

    fn warn(&mut self, text: &str) {
        self.follow.warn(self.kernel, text);
    }

    fn pause(&mut self) -> bool {
        self.follow.pause()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::testing::kernel;
    use crate::testing::emulator;
    use punctual_core::aim::Aim;

    /// The initramfs and the record of the last kernel's second boot, of a plan that measures the
    /// same whatever it is called.
    fn last(kernels: &[&str], group: &str, qemu: &str, aim: Option<Aim>) -> (Vec<u8>, Lab) {
        let text = "name = \"x\"\ndeadline = \"1ms\"\n[[cell]]\nprobe = \"wakeup\"\n";
        let plan = Plan::from_toml(text).unwrap();
        planned(Plan { name: group.to_owned(), ..plan }, kernels, group, qemu, aim)
    }

    fn planned(
        plan: Plan,
        kernels: &[&str],
        group: &str,
        qemu: &str,
        aim: Option<Aim>,
    ) -> (Vec<u8>, Lab) {
        let emulator = emulator(qemu);
        let experiment = Experiment {
            emulator,
            board: BoardSpec::default(),
            plan,
            kernels: kernels.iter().map(|name| kernel(name)).collect(),
            replicates: 2,
            first_replicate: 0,
            program: b"punctual".to_vec(),
            modules: Vec::new(),
            files: Vec::new(),
            parameters: Vec::new(),
            group: Some(group.to_owned()),
            command: vec![group.to_owned()],
            warm: false,
            jobs: 1,
            patience: Duration::MAX,
        };
        let place = Place { aim, ..experiment.places().pop().unwrap() };
        let host = Ready {
            program_sha256: sha256(b"punctual"),
            cpus: vec![0],
            provisions: kernels.iter().map(|_| Provisions::default()).collect(),
            working: Mutex::default(),
        };
        let Experiment { board, plan, program, .. } = &experiment;
        let order = contents::order(board, plan, &place);
        let provisions = &host.provisions[place.kernel];
        let initramfs =
            contents::initramfs(Some(&order), provisions, "6.1.0", program, &[]).unwrap();
        let lab = experiment.lab(&place, &host, &initramfs);
        (initramfs, lab)
    }

    #[test]
    fn a_guest_is_told_nothing_of_the_experiment_around_it() {
        let (alone, lab) = last(&["debian:rt"], "a", "7.2.22", None);
        let kernels = ["debian:none", "/home/me/vmlinux"];
        let (among, other) = last(&kernels, "longer name", "9.0.0", None);
        assert!(alone == among, "the same board, plan and replicate");
        // The record of it says what was booted all the same.
        assert_eq!((lab.kernel.as_str(), lab.qemu.as_str()), ("debian:rt", "7.2.22"));
        assert_eq!((other.kernel.as_str(), other.qemu.as_str()), ("/home/me/vmlinux", "9.0.0"));
        assert_eq!(lab.initramfs_sha256, sha256(&among));
    }

    #[test]
    fn hosts_that_name_and_judge_in_another_way_start_the_same_guest() {
        let text = "name = \"x\"\ndeadline = \"1ms\"\n[[cell]]\nprobe = \"wakeup\"\n";
        let plan = Plan::from_toml(text).unwrap();
        let of = |plan: &Plan, group| planned(plan.clone(), &["debian:rt"], group, "7.2", None);
        let renamed = Plan {
            name: "y, variant z".to_owned(),
            variant: Some("z".to_owned()),
            citation: Some("a paper of this host".to_owned()),
            confidence: 0.999,
            tolerate: Some(0.01),
            probability: Some(1e-9),
            ..plan.clone()
        };
        let (one, other) = (of(&plan, "a"), of(&renamed, "a longer group"));
        assert_eq!(one.1.initramfs_sha256, other.1.initramfs_sha256);
        // As long, and another one: what is later is counted while it is measured.
        let judged = of(&Plan { deadline_ns: Some(2_000_000), ..plan }, "a");
        assert!(judged.0.len() == one.0.len() && judged.0 != one.0);
    }

    #[test]
    fn a_guest_with_an_aimed_release_starts_with_as_much_as_without() {
        let of = |aim| last(&["debian:rt"], "a", "7.2.22", aim).0;
        let plain = of(None);
        for (release, at_ns) in [(1, 0), (1_491, 1_493_810_000), (u64::MAX, u64::MAX)] {
            let aimed = of(Some(Aim { cell: 2, release, at_ns }));
            assert!(aimed.len() == plain.len() && aimed != plain, "release {release}");
        }
    }
}
