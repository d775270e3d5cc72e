//! Who saw that this process was stopped from outside: a SIGCONT, the freezer of its control group, a
//! debugger. Without a witness a long sample is a late kernel: nothing is guessed from a gap.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use punctual_core::format::Record;
use punctual_core::schema::{Cell, Condition, Stop, StoppedBy};
use punctual_core::stats::note_stops;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::fd::has_changed;
use punctual_sys::signal::{Signals, Woken};

use super::run_dir::CellFiles;
use crate::cgroups::{CgroupVersion, OwnCgroups};
use crate::procfs;
use crate::recorder::held::{LongSample, STOPPABLE_NS};

/// How long `cgroup.events` may take to change once more (`CGROUP_FILE_NOTIFY_MIN_INTV`).
const SETTLES: Duration = Duration::from_millis(20);

/// Of more threads than this some are not asked for a debugger.
const MOST_TASKS: usize = 64;

/// The end of a stop: it came after one instant and until another, ns of the clock.
#[derive(Debug)]
struct StopEnd {
    by: StoppedBy,
    name: String,
    after: u64,
    until: u64,
    /// An instant within the stop, ns, and its number, once samples were late by it.
    stop: Option<(u64, usize)>,
}

/// A stop that was found, with its samples so far.
#[derive(Debug)]
struct FoundStop {
    by: StoppedBy,
    name: String,
    /// The first release and the last start that it made late, ns of the clock.
    from: u64,
    to: u64,
    samples: u64,
    missed: u64,
    max_ns: u64,
    /// Whether it is not on disk as it is.
    is_new: bool,
}

impl FoundStop {
    fn told(&self, epoch: u64) -> Stop {
        let from = self.from.max(epoch);
        Stop {
            from_ns: from - epoch,
            length_ns: Some(self.to.saturating_sub(from)),
            by: self.by,
            name: self.name.clone(),
            samples: self.samples,
            missed: self.missed,
            max_ns: self.max_ns,
        }
    }
}

/// The witnesses of a cell, and what they saw.
#[derive(Debug)]
pub(super) struct Witness {
    /// The start of the cell, ns of the clock.
    epoch: u64,
    /// The latest instant at which no SIGCONT was there, ns of the clock.
    clear: u64,
    /// Since when the main thread has not waited, ns of the clock, and whether something interrupted its
    /// wait.
    runs_since: u64,
    was_interrupted: bool,
    ends: Vec<StopEnd>,
    freezer: Freezer,
    tracer: Debugger,
    found: Vec<FoundStop>,
    /// Whether any held sample was of no stop.
    unexplained: bool,
}

impl Witness {
    /// One of a cell that begins at `epoch`, which so far sees only signals.
    pub(super) fn new(epoch: u64) -> Self {
        Self {
            epoch,
            clear: monotonic_ns(),
            runs_since: monotonic_ns(),
            was_interrupted: false,
            ends: Vec::new(),
            freezer: Freezer::default(),
            tracer: Debugger::default(),
            found: Vec::new(),
            unexplained: false,
        }
    }

    /// Begins to look at control groups and debuggers.
    pub(super) fn begin(&mut self) {
        self.freezer = Freezer::find();
        self.tracer = Debugger::of_process();
    }

    /// Looks whether a SIGCONT is there, before the main thread waits or decides.
    pub(super) fn look(&mut self, signals: &Signals) {
        let before = monotonic_ns();
        let is_there = signals.was_continued();
        self.looked(before, is_there, monotonic_ns());
    }

    /// A SIGCONT that comes to a process which runs ends the wait itself. Of one that was stopped the
    /// wait was interrupted, or the main thread did not run for as long.
    fn looked(&mut self, before: u64, is_there: bool, now: u64) {
        let after = match self.was_interrupted {
            true => Some(self.clear),
            false => {
                Some(self.runs_since).filter(|since| now.saturating_sub(*since) >= STOPPABLE_NS)
            }
        };
        if let Some(after) = after.filter(|_| is_there) {
            let (by, name) = (StoppedBy::Signal, String::new());
            self.ends.push(StopEnd { by, name, after, until: now, stop: None });
        }
        self.was_interrupted = false;
        self.clear = before;
    }

    /// The main thread has waited, and was woken by something.
    pub(super) fn waited(&mut self, woken: Woken) {
        self.was_interrupted = woken == Woken::Interrupted;
        self.runs_since = monotonic_ns();
    }

    /// Decides about samples of all threads that were taken since it last did so: for each the number
    /// of its stop, or `None` if nobody saw that the process was stopped.
    pub(super) fn decide(&mut self, samples: &[LongSample]) -> Vec<Option<usize>> {
        let traced = self.tracer.look(!samples.is_empty());
        if samples.is_empty() {
            return Vec::new();
        }
        if let Some((after, name)) = self.freezer.look() {
            let until = monotonic_ns();
            let end = StopEnd { by: StoppedBy::Freezer, name, after, until, stop: None };
            self.ends.push(end);
        }
        let span = |held: &LongSample| {
            let at = self.epoch.saturating_add(held.at);
            (at.saturating_sub(held.latency), at)
        };
        let spans: Vec<(u64, u64)> = samples.iter().map(span).collect();
        let mut decided = vec![None; samples.len()];
        self.by_ends(&spans, &mut decided);
        for (span, stop) in spans.iter().zip(&mut decided).filter(|(_, stop)| stop.is_none()) {
            *stop = traced.as_ref().map(|name| self.traced(name, *span));
            self.unexplained |= stop.is_none();
        }
        decided
    }

    /// The samples that were late when an end came. It came between two instants, so that of samples
    /// which do not overlap only some can be of the stop: those that have an instant in common with
    /// the last of the long ones, each at least half as long as the longest.
    fn by_ends(&mut self, spans: &[(u64, u64)], decided: &mut [Option<usize>]) {
        for end in &mut self.ends {
            let may_be = |(from, at): (u64, u64)| at >= end.after && from <= end.until;
            let open = spans.iter().zip(&*decided).filter(|(_, stop)| stop.is_none());
            let open: Vec<_> = open.map(|(span, _)| *span).filter(|span| may_be(*span)).collect();
            let longest = open.iter().map(|(from, at)| at - from).max();
            let Some(longest) = longest else { continue };
            let (within, number) = end.stop.unwrap_or_else(|| {
                let long = open.iter().filter(|(from, at)| at - from >= longest / 2);
                let within = long.map(|(from, _)| *from).max().unwrap_or(end.until);
                self.found.push(FoundStop::new(end.by, &end.name));
                (within, self.found.len() - 1)
            });
            end.stop = Some((within, number));
            for ((from, at), stop) in spans.iter().zip(&mut *decided) {
                if stop.is_none() && may_be((*from, *at)) && (*from..=*at).contains(&within) {
                    *stop = Some(number);
                    self.found[number].reach(*from, *at);
                }
            }
        }
    }

    /// The stop by a debugger that a sample is part of, or a new one.
    fn traced(&mut self, name: &str, (from, at): (u64, u64)) -> usize {
        let is = |found: &FoundStop| {
            found.by == StoppedBy::Debugger && from <= found.to && at >= found.from
        };
        let number = self.found.iter().rposition(is).unwrap_or_else(|| {
            self.found.push(FoundStop::new(StoppedBy::Debugger, name));
            self.found.len() - 1
        });
        self.found[number].reach(from, at);
        number
    }

    /// Counts what a stop with this number made late.
    pub(super) fn count(&mut self, number: usize, held: &LongSample) {
        let found = &mut self.found[number];
        found.is_new = true;
        found.missed = found.missed.saturating_add(held.missed);
        if held.missed == 0 {
            found.samples += 1;
            found.max_ns = found.max_ns.max(held.latency);
        }
    }

    /// Writes what was found of stops since it last did so: a run that is killed tells of them too.
    pub(super) fn write(&mut self, files: &mut CellFiles) {
        for (number, found) in (0..).zip(&mut self.found).filter(|(_, found)| found.is_new) {
            found.is_new = false;
            files.push(&Record::Stop { number, stop: found.told(self.epoch) });
        }
    }

    /// Puts into a cell that has ended when it was stopped. Nothing tells of a cost for how long.
    pub(super) fn tell(&self, cell: &mut Cell) {
        // Its time does not stop.
        if cell.is_simulated() {
            return;
        }
        cell.stops = self.found.iter().map(|found| found.told(self.epoch)).collect();
        // Those by which no sample was late.
        let is_untold = |end: &&StopEnd| {
            end.by == StoppedBy::Signal && end.stop.is_none() && end.until >= self.epoch
        };
        cell.stops.extend(
            self.ends.iter().filter(is_untold).map(|end| Stop {
                from_ns: end.after.saturating_sub(self.epoch),
                ..Stop::default()
            }),
        );
        cell.stops.sort_by_key(|stop| stop.from_ns);
        note_stops(cell);
        let unseen = self.freezer.unseen.as_ref().filter(|_| self.unexplained);
        cell.conditions.extend(unseen.map(|path| Condition {
            id: "freezer-unseen".to_owned(),
            text: format!(
                "samples of 5 ms and more count as late although the control group may have been \
                 frozen meanwhile: nothing tells of a freeze by {}; do not freeze it while it \
                 measures, or use version 2",
                path.display()
            ),
        }));
    }
}

impl FoundStop {
    fn new(by: StoppedBy, name: &str) -> Self {
        let (name, to) = (name.to_owned(), 0);
        Self { by, name, from: u64::MAX, to, samples: 0, missed: 0, max_ns: 0, is_new: true }
    }

    fn reach(&mut self, from: u64, at: u64) {
        (self.from, self.to) = (self.from.min(from), self.to.max(at));
    }
}

/// The freezers of the control groups that this process is in.
#[derive(Debug, Default)]
struct Freezer {
    /// `cgroup.events` of version 2, of the own group and those above it, and the names of the groups.
    events: Vec<(File, String)>,
    /// Since when nothing has come, ns of the clock.
    since: u64,
    /// `freezer.state` of version 1, which tells of nothing that is over.
    unseen: Option<PathBuf>,
}

impl Freezer {
    fn find() -> Self {
        let since = monotonic_ns();
        let Ok(own) = OwnCgroups::read() else { return Self::default() };
        let [groups] = own.with_parents(["freezer"]);
        // The root of a hierarchy has no such file.
        let state = |(_, folder, version): &(PathBuf, PathBuf, CgroupVersion)| {
            let path = folder.join("freezer.state");
            (*version == CgroupVersion::V1 && path.exists()).then_some(path)
        };
        let unified = own.unified();
        let folders = unified.iter().flat_map(|path| path.ancestors());
        let mut this = Self {
            events: folders.filter_map(events_of).collect(),
            since,
            unseen: groups.iter().find_map(state),
        };
        this.look();
        this
    }

    /// Whether any of the groups was frozen or thawed since the last look, which was at an instant, ns
    /// of the clock; the name of the group. A group that holds this process stays populated, so that
    /// nothing else can have changed.
    fn look(&mut self) -> Option<(u64, String)> {
        let (since, now) = (self.since, monotonic_ns());
        self.since = now;
        let mut frozen = None;
        for (file, name) in &self.events {
            if has_changed(file.as_fd()).unwrap_or(false) {
                frozen = Some((since, name.clone()));
            }
        }
        if frozen.is_some() {
            // The kernel tells of the end 10 ms after the beginning at the earliest.
            std::thread::sleep(SETTLES);
        }
        for (file, _) in &mut self.events {
            // Changes count from what was read.
            let _ = file.rewind().and_then(|()| file.read_to_string(&mut String::new()));
        }
        frozen
    }
}

fn events_of(folder: &Path) -> Option<(File, String)> {
    let mut file = File::open(folder.join("cgroup.events")).ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.contains("frozen ").then(|| (file, folder.display().to_string()))
}

/// The debugger of this process.
#[derive(Debug, Default)]
struct Debugger {
    /// `/proc`, or none if nobody looks.
    proc: Option<PathBuf>,
    /// That of the last look.
    attached: Option<String>,
}

impl Debugger {
    fn of_process() -> Self {
        let mut this = Self { proc: Some("/proc".into()), attached: None };
        this.look(true);
        this
    }

    /// The debugger that is attached, or was at the last look. Without `needed` it looks only for the
    /// end of one that was.
    fn look(&mut self, needed: bool) -> Option<String> {
        let proc = self.proc.as_ref().filter(|_| needed || self.attached.is_some())?;
        let now = tracer(proc);
        let before = std::mem::replace(&mut self.attached, now.clone());
        now.or(before)
    }
}

/// Number and name of the debugger of any thread of this process.
fn tracer(proc: &Path) -> Option<String> {
    let of = |folder: &Path| {
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let tracer: u64 = procfs::values(&status, "TracerPid").next()?.parse().ok()?;
        (tracer > 0).then_some(tracer)
    };
    let own = proc.join("self");
    let tasks = fs::read_dir(own.join("task")).into_iter().flatten().flatten();
    let number = of(&own).or_else(|| tasks.take(MOST_TASKS).find_map(|task| of(&task.path())))?;
    let name = fs::read_to_string(proc.join(number.to_string()).join("comm")).unwrap_or_default();
    Some(match name.trim() {
        "" => format!("process {number}"),
        name => format!("process {number}, {name}"),
    })
}

#[cfg(test)]
impl Witness {
    /// A SIGCONT came between two instants, ns of the clock.
    pub(super) fn was_continued_between(&mut self, after: u64, until: u64) {
        let (by, name) = (StoppedBy::Signal, String::new());
        self.ends.push(StopEnd { by, name, after, until, stop: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_sys::signal::Signal;

    const MS: u64 = 1_000_000;

    /// A witness of a cell that began at 10 s.
    fn witness() -> Witness {
        Witness { clear: 0, ..Witness::new(10_000 * MS) }
    }

    /// Samples by start and latency, ms.
    fn held(samples: &[(u64, u64)]) -> Vec<LongSample> {
        let one = |(at, latency): &(u64, u64)| LongSample {
            at: at * MS,
            latency: latency * MS,
            missed: 0,
            place: 0,
        };
        samples.iter().map(one).collect()
    }

    fn continued(witness: &mut Witness, after: u64, until: u64) {
        let [after, until] = [after, until].map(|ms| (10_000 + ms) * MS);
        witness.was_continued_between(after, until);
    }

    fn cell() -> Cell {
        use punctual_core::schema::{Latency, What};
        let what = What::Latency(Latency::default());
        Cell::new(String::new(), String::new(), String::new(), 1, what)
    }

    #[test]
    fn without_a_witness_nothing_is_a_stop_however_long_it_is() {
        let mut witness = witness();
        assert_eq!(witness.decide(&held(&[(3_000, 2_000), (3_100, 20)])), [None, None]);
        witness.freezer.unseen = Some("/sys/fs/cgroup/freezer/x/freezer.state".into());
        let mut cell = cell();
        witness.tell(&mut cell);
        assert!(cell.stops.is_empty());
        let [unseen] = &cell.conditions[..] else { panic!("{:?}", cell.conditions) };
        assert!(unseen.id == "freezer-unseen" && unseen.text.contains("freezer/x"), "{unseen:?}");
    }

    #[test]
    fn only_what_was_late_when_it_was_continued_is_of_the_stop() {
        let mut witness = witness();
        continued(&mut witness, 2_050, 5_000);
        // Two threads; a sample that was late before, one after it, and one that began later.
        let samples =
            held(&[(5_000, 2_000), (5_001, 1_999), (2_500, 300), (5_300, 200), (4_990, 20)]);
        let decided = witness.decide(&samples);
        assert_eq!(decided, [Some(0), Some(0), None, None, None]);
        // A thread whose sample comes with the next second, and one that is not of the stop.
        let later = held(&[(5_002, 2_002), (6_500, 100)]);
        assert_eq!(witness.decide(&later), [Some(0), None]);
        for (number, held) in
            samples.iter().zip(&decided).filter_map(|(held, of)| Some(((*of)?, held)))
        {
            witness.count(number, held);
        }
        witness.count(0, &LongSample { missed: 1_999, ..samples[0] });
        let mut cell = cell();
        witness.tell(&mut cell);
        let [stop] = &cell.stops[..] else { panic!("{:?}", cell.stops) };
        assert_eq!((stop.from_ns, stop.length_ns), (3_000 * MS, Some(2_002 * MS)));
        assert_eq!((stop.samples, stop.missed, stop.max_ns), (2, 1_999, 2_000 * MS));
    }

    #[test]
    fn each_signal_has_its_own_stop_and_one_without_samples_is_told() {
        let mut witness = witness();
        continued(&mut witness, 0, 1_000);
        continued(&mut witness, 1_000, 2_000);
        continued(&mut witness, 2_000, 3_000);
        let decided = witness.decide(&held(&[(2_950, 900), (999, 500)]));
        assert_eq!(decided, [Some(1), Some(0)]);
        let mut cell = cell();
        witness.tell(&mut cell);
        let lengths: Vec<_> =
            cell.stops.iter().map(|stop| stop.length_ns.map(|ns| ns / MS)).collect();
        assert_eq!(lengths, [Some(500), None, Some(900)]);
        let mut simulated = cell;
        (simulated.stops, simulated.latency_mut().unwrap().simulated) = (Vec::new(), true);
        witness.tell(&mut simulated);
        assert!(simulated.stops.is_empty());
    }

    #[test]
    fn a_signal_that_continues_nothing_is_no_witness() {
        let mut witness = witness();
        let mut comes = |woken, ran_for: u64| {
            witness.looked(10_000 * MS, false, 10_000 * MS);
            witness.waited(woken);
            witness.runs_since = 11_000 * MS;
            let now = (11_000 + ran_for) * MS;
            witness.looked(now, true, now);
            witness.ends.pop().map(|end| (end.after / MS, end.until / MS))
        };
        // As timeout(1) sends it, after SIGTERM.
        assert_eq!(comes(Woken::By(Signal::Terminate), 1), None);
        assert_eq!(comes(Woken::By(Signal::Continued), 1), None);
        assert_eq!(comes(Woken::InTime, 1), None);
        // It was stopped while it waited, and while it did something else.
        assert_eq!(comes(Woken::Interrupted, 1), Some((10_000, 11_001)));
        assert_eq!(comes(Woken::InTime, 2_000), Some((11_000, 13_000)));
    }

    #[test]
    fn a_debugger_is_named_while_it_is_attached_and_no_longer() {
        let folder = std::env::temp_dir().join(format!("punctual-tracer-{}", std::process::id()));
        let own = folder.join("self/task/7");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir_all(folder.join("42")).unwrap();
        fs::write(folder.join("42/comm"), "gdb\n").unwrap();
        fs::write(folder.join("self/status"), "Name:\tpunctual\nTracerPid:\t0\n").unwrap();
        let traced =
            |pid: u32| fs::write(own.join("status"), format!("TracerPid:\t{pid}\n")).unwrap();
        let mut witness = witness();
        witness.tracer = Debugger { proc: Some(folder.clone()), attached: None };
        traced(42);
        assert_eq!(witness.decide(&held(&[(1_000, 400), (1_001, 300)])), [Some(0), Some(0)]);
        traced(0);
        witness.decide(&[]);
        assert_eq!(witness.decide(&held(&[(3_000, 400)])), [None]);
        let mut cell = cell();
        witness.tell(&mut cell);
        let stop = &cell.stops[0];
        assert_eq!((stop.by, stop.name.as_str()), (StoppedBy::Debugger, "process 42, gdb"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
