//! The engine end to end, with a probe that uses every seam.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use punctual_core::aim::Aim;
use punctual_core::dither::Dither;
use punctual_core::judge::{ByPlan, Unjudged};
use punctual_core::plan::{CellPlan, Plan, Subject};
use punctual_core::run::CellData;
use punctual_core::schema::{Cell, CellState, CostEnd, Outcome, Role, Run, RunState, Tells};
use punctual_sys::affinity;

use super::threads::Reach;
use super::*;

fn cell(subject: Subject, params: &[(&str, &str)]) -> CellPlan {
    let params = params.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    CellPlan {
        subject,
        params: params.collect(),
        load: "none".to_owned(),
        duration_ns: 1_200_000_000,
        samples: None,
        available: false,
    }
}

fn options(out: PathBuf) -> Options {
    Options {
        out: Some(out),
        board_name: None,
        dma_latency_us: None,
        break_ns: None,
        threshold_ns: None,
        sync: SyncPolicy::Cell,
        group: None,
        replicate: None,
        runs: 1,
        phase_ns: 0,
        dither: None,
        aim: Aim::NONE,
        force: false,
        all_cpus: false,
        require_rt: false,
        continued: None,
        virtual_board: None,
        program: Program { name: "punctual", version: "1.2.3" },
        tool_sha256: Some(String::new()),
        conditions: Vec::new(),
    }
}

/// One run at a time: a process has only one journal.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Silent;

impl Observer for Silent {
    fn started(&mut self, _: &Run, _: &Path, _: u64) {}
    fn cell_started(&mut self, _: &Cell, _: usize, _: u64) {}
    fn progress(&mut self, _: &Progress<'_>) {}
    fn snapshot(&mut self) {}
    fn cell_ended(&mut self, _: &Cell) {}
}

/// A folder of one test, removed with it, and the break value of its runs.
struct Place(PathBuf, Option<u64>);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("punctual-engine-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("setting"), "0").unwrap();
        Self(path, None)
    }

    fn run(&self, subject: Subject, params: &[(&str, &str)]) -> Run {
        self.run_for(1_200_000_000, subject, params)
    }

    fn run_for(&self, duration_ns: u64, subject: Subject, params: &[(&str, &str)]) -> Run {
        let mut plan = Plan::new("test");
        plan.warmup_ns = 100_000_000;
        plan.deadline_ns = Some(1_000_000);
        plan.cells.push(CellPlan { duration_ns, ..cell(subject, params) });
        let options = Options { break_ns: self.1, ..options(self.0.join("run")) };
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        run(&plan, &options, &ByPlan, &mut Silent).unwrap().run
    }

    fn exercise(&self, more: &[(&str, &str)]) -> Run {
        self.exercise_for(1_200_000_000, more)
    }

    fn exercise_for(&self, duration_ns: u64, more: &[(&str, &str)]) -> Run {
        let setting = self.0.join("setting");
        let mut params = vec![("setting", setting.to_str().unwrap()), ("policy", "other")];
        params.extend(more);
        self.run_for(duration_ns, Subject::Probe("exercise".to_owned()), &params)
    }

    fn data(&self, cell: &Cell) -> CellData {
        let mut data = CellData::default();
        for file in punctual_core::layout::CELL_FILES {
            data.read(&fs::read(self.0.join("run/cells").join(&cell.dir).join(file)).unwrap());
        }
        data
    }
}

/// How long a cell was measured, s.
fn lasted_s(cell: &Cell) -> u64 {
    let [from, to] = [&cell.started, &cell.ended].map(|at| at.as_ref().unwrap().monotonic_ns);
    (to - from) / 1_000_000_000
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_seam_of_a_session_leaves_what_it_found() {
    let place = Place::new("seams");
    let run = place.exercise(&[]);
    let cell = &run.cells[0];
    assert_eq!((run.state, cell.state), (RunState::Complete, CellState::Complete), "{cell:?}");
    let latency = cell.latency().unwrap();
    // Overridden defaults: two threads, one release every 2 ms.
    assert_eq!((latency.threads.len(), latency.interval_ns), (2, Some(2_000_000)));
    assert_eq!((latency.stats.min, latency.stats.max), (Some(100), Some(200)));
    let series: Vec<_> =
        latency.series.iter().map(|s| (s.name.as_str(), s.role, s.stats.max)).collect();
    assert_eq!(
        series,
        [
            ("first", Role::Leg, Some(80)),
            ("queue", Role::Aside, Some(7)),
            ("second", Role::Leg, Some(120))
        ]
    );
    let legs = &latency.threads[0].series;
    assert_eq!((legs[0].max, legs[2].max), (Some(40), Some(60)));
    assert_eq!(legs[0].samples, latency.threads[0].stats.samples);
    assert_eq!(latency.helpers[0].name, "accompanies thread 1");
    let counters: Vec<_> = cell.counters.iter().map(|c| (c.name.as_str(), c.tells)).collect();
    assert_eq!(counters, [("strokes", Tells::Nothing), ("lost", Tells::Loss)]);
    // One for each drain: that of the last one before the measurement is in it.
    assert_eq!(latency.threads[0].series[1].samples, cell.counters[0].total);
    // The setting was changed during the measurement and is restored.
    assert!(cell.conditions.iter().any(|c| c.id == "closed" && c.text == "1"), "{cell:?}");
    assert_eq!(fs::read_to_string(place.0.join("setting")).unwrap(), "0");

    let data = place.data(cell);
    assert_eq!(data.damaged, 0);
    assert!(!data.intervals.is_empty());
    assert_eq!(data.actors.values().collect::<Vec<_>>(), ["ksoftirqd/0"]);
    for (thread, recorded) in latency.threads.iter().zip(&data.threads) {
        let counts: Vec<_> = recorded.series.iter().map(|s| s.moments().count).collect();
        assert_eq!(counts[0], thread.stats.samples);
        assert_eq!((counts[1], counts[3]), (counts[0], counts[0]));
        assert_eq!(counts[2], thread.series[1].samples);
    }
}

#[test]
fn a_bad_counter_forbids_a_pass() {
    let place = Place::new("bad");
    let run = place.exercise(&[("bad", "3")]);
    let verdict = &run.verdict;
    assert_ne!(verdict.outcome, Outcome::Pass);
    assert!(verdict.because.iter().any(|text| text.contains("lost")), "{verdict:?}");
}

#[test]
fn a_session_that_fails_ends_the_cell_and_keeps_what_was_found() {
    let place = Place::new("fails");
    let run = place.exercise(&[("fail", "2")]);
    let cell = &run.cells[0];
    assert_eq!(cell.state, CellState::Failed);
    assert_eq!(cell.reason.as_deref(), Some("the trace ring is gone"));
    assert!(cell.latency().unwrap().stats.samples > 0);
    assert_eq!(fs::read_to_string(place.0.join("setting")).unwrap(), "0");
}

#[test]
fn a_thread_that_fails_or_panics_ends_the_cell_and_what_was_found_is_kept() {
    for (trouble, reason) in [
        ("error", "thread 0: as it was told"),
        ("panic", "thread 0: it panicked: as it was told"),
        ("helper-panic", "accompanies thread 1: it panicked: as it was told"),
    ] {
        let place = Place::new(trouble);
        let run = place.exercise_for(20_000_000_000, &[("trouble", trouble)]);
        let cell = &run.cells[0];
        assert_eq!((cell.state, cell.reason.as_deref()), (CellState::Failed, Some(reason)));
        assert!(lasted_s(cell) < 10, "the other threads were not told to end");
        let latency = cell.latency().unwrap();
        assert_eq!(latency.threads.len(), 2);
        if trouble != "helper-panic" {
            assert!(latency.threads[0].stats.samples > 10, "{latency:?}");
        }
    }
}

#[test]
fn a_thread_that_does_not_end_is_left_and_what_the_others_found_is_kept() {
    let place = Place::new("stuck");
    let run = place.exercise_for(3_600_000_000_000, &[("trouble", "stuck")]);
    let cell = &run.cells[0];
    assert!(lasted_s(cell) < 60, "it waited for the thread");
    assert_eq!((run.state, cell.state), (RunState::Failed, CellState::Failed));
    let reason = cell.reason.as_deref().unwrap();
    assert!(reason.contains("thread 0 (CPU") && reason.contains("did not end"), "{reason}");
    assert_ne!(run.verdict.outcome, punctual_core::schema::Outcome::Pass);
    let [stuck, other] = &cell.latency().unwrap().threads[..] else { panic!("two threads") };
    // Of a stuck thread every whole second that was published counts.
    let blocks: Vec<_> = place.data(cell).threads.iter().map(|t| t.primary().moments()).collect();
    assert!(blocks[0].count > 300, "{blocks:?}");
    assert_eq!(stuck.stats.samples, blocks[0].count);
    assert_eq!((stuck.stats.max, stuck.placement.policy.name()), (Some(100), "other"));
    assert_eq!((other.stats.samples, other.stats.max), (blocks[1].count, Some(200)));
    assert_eq!(fs::read_to_string(place.0.join("setting")).unwrap(), "0");
}

#[test]
fn a_thread_that_panics_before_the_start_skips_the_cell() {
    let place = Place::new("prepare");
    let run = place.exercise(&[("trouble", "prepare-panic")]);
    let cell = &run.cells[0];
    let reason = Some("thread 0: it panicked: as it was told");
    assert_eq!((cell.state, cell.reason.as_deref()), (CellState::Skipped, reason));
    assert!(cell.load_work.is_empty(), "nothing was measured: {:?}", cell.load_work);
    assert_eq!(fs::read_to_string(place.0.join("setting")).unwrap(), "0");
}

#[test]
fn a_thread_that_comes_late_out_of_the_warm_up_takes_part_all_the_same() {
    let place = Place::new("late");
    let run = place.exercise(&[("trouble", "helper-late")]);
    let helped = run.cells[0].conditions.iter().find(|note| note.id == "helped");
    assert_eq!(helped.map(|note| note.text.as_str()), Some("2"), "windows of two");
}

#[test]
fn pairs_hand_over_and_end() {
    let place = Place::new("pairs");
    let probe = Subject::Probe("handoff".to_owned());
    let run = place.run(probe, &[("threads", "2"), ("pause", "100us"), ("policy", "other")]);
    let cell = &run.cells[0];
    assert_eq!(cell.state, CellState::Complete, "{cell:?}");
    let latency = cell.latency().unwrap();
    for thread in &latency.threads {
        assert!(thread.stats.samples > 5, "{thread:?}");
        assert!(thread.stats.min > Some(0), "a token cannot be taken before it is posted");
        assert_eq!(thread.stats.missed, 0);
    }
    assert_eq!(latency.helpers.len(), 2);
    assert_eq!(latency.primary.nouns, "hand-overs");
}

#[test]
fn pairs_hand_over_by_every_means() {
    let entry = crate::probes::find("handoff").unwrap();
    let by = entry.params.iter().find(|param| param.name == "by").unwrap();
    let words: Vec<_> = by.kind.words().iter().map(|choice| choice.value).collect();
    assert!(words.len() >= 9, "{words:?}");
    for word in words {
        let place = Place::new(&format!("by-{word}"));
        let params = [("by", word), ("threads", "2"), ("pause", "200us"), ("policy", "other")];
        let run = place.run_for(200_000_000, Subject::Probe("handoff".to_owned()), &params);
        let cell = &run.cells[0];
        assert_eq!(cell.state, CellState::Complete, "{word}: {cell:?}");
        for thread in &cell.latency().unwrap().threads {
            let stats = &thread.stats;
            // A busy machine leaves few.
            assert!(stats.samples > 2 && stats.min > Some(0), "{word}: {thread:?}");
        }
    }
}

#[test]
fn the_posting_side_has_its_own_cpu_if_it_is_told_to() {
    let place = Place::new("poster");
    let run = |cpu: &str| {
        let probe = Subject::Probe("handoff".to_owned());
        place.run_for(100_000_000, probe, &[("policy", "other"), ("poster-affinity", cpu)])
    };
    let last = affinity::get().unwrap().iter().last().unwrap();
    let there = &run(&last.to_string()).cells[0];
    let helpers = &there.latency().unwrap().helpers;
    assert_eq!(helpers[0].placement.cpu, Some(last), "{helpers:?}");
    fs::remove_dir_all(place.0.join("run")).unwrap();
    let absent = &run("4095").cells[0];
    assert_eq!(absent.state, CellState::Skipped, "{absent:?}");
    assert!(absent.reason.as_ref().unwrap().contains("CPU 4095"), "{absent:?}");
}

#[test]
fn a_cost_stands_in_the_same_frame() {
    let place = Place::new("cost");
    let run = place.run(Subject::Cost("lat.syscall".to_owned()), &[]);
    let cell = &run.cells[0];
    assert_eq!(cell.state, CellState::Complete, "{cell:?}");
    let cost = cell.cost().unwrap();
    assert!(cost.value.is_some_and(|us| us > 0.01), "{cost:?}");
    assert!(cost.repetitions.len() >= 11 || cost.end == Some(CostEnd::TimeLimit), "{cost:?}");
    assert!(cost.placement.cpu.is_some());
    assert!(cell.cpu_utilisation.is_some() && cell.ended.is_some());
}

#[test]
fn the_collector_keeps_clear_of_what_measures() {
    let reach = Reach {
        cpus: affinity::CpuSet::parse("0-3").unwrap(),
        inherited: affinity::CpuSet::parse("2-3").unwrap(),
        per_cpu: Ok(affinity::CpuSet::parse("2-3").unwrap()),
        clock_cost_ns: 30,
        force: false,
    };
    let bound = |subject, params: &[(&str, &str)]| {
        let cell = Prepared::new(&cell(subject, params), &reach, i64::MAX).unwrap();
        cell.bound_cpus().to_string()
    };
    let cost = || Subject::Cost("lat.syscall".to_owned());
    assert_eq!((bound(cost(), &[("cpu", "1")]), bound(cost(), &[])), ("1".into(), "2".into()));
    assert_eq!(bound(Subject::Probe("wakeup".to_owned()), &[("affinity", "0+3")]), "0");
}

#[test]
fn what_was_asked_for_is_written_in_one_way_too() {
    let key = |priority| {
        let mut plan = Plan::new("test");
        plan.cells.push(cell(Subject::Probe("wakeup".to_owned()), &[("priority", priority)]));
        canonical(&plan).unwrap().cells[0].key()
    };
    assert_eq!(key("80"), "wakeup:priority=80 @ none @ 1200ms");
    assert_eq!((key("080"), key("+80")), (key("80"), key("80")));
}

#[test]
fn a_delay_that_no_clock_holds_is_a_usage_error() {
    let place = Place::new("delay");
    let options = options(place.0.join("run"));
    let mut plan = Plan::new("test");
    plan.cells.push(cell(Subject::Probe("sim".to_owned()), &[]));
    let longer = Plan { warmup_ns: u64::MAX - 7, ..plan.clone() };
    let later = Options { phase_ns: u64::MAX - 7, ..options.clone() };
    for (plan, options, what) in [(&longer, &options, "warm-up"), (&plan, &later, "phase")] {
        let error = run(plan, options, &ByPlan, &mut Silent).unwrap_err();
        assert!(error.downcast_ref::<UsageError>().unwrap().0.contains(what), "{error}");
        assert!(!place.0.join("run").exists());
    }
}

#[test]
fn only_a_sample_of_the_measurement_breaks_it_off() {
    for (probe, params) in [
        ("wakeup", &[("policy", "other")][..]),
        ("clock", &[("policy", "other")]),
        ("handoff", &[("policy", "other")]),
        ("sim", &[]),
    ] {
        let mut place = Place::new(probe);
        place.1 = Some(1);
        let run = place.run(Subject::Probe(probe.to_owned()), params);
        let cell = &run.cells[0];
        assert_eq!(cell.reason.as_deref(), Some("a sample was above the break value"), "{probe}");
        let latency = cell.latency().unwrap();
        assert!(latency.stats.samples > 0, "{probe}: its warm-up ended it");
        let broke = latency.broke.as_ref().unwrap_or_else(|| panic!("{probe}: by what"));
        assert_eq!(broke.limit_ns, 1, "{probe}");
        assert!(probe != "sim" || cell.conditions.is_empty(), "{:?}", cell.conditions);
        assert!(broke.latency_ns > 1 && Some(broke.latency_ns) <= latency.stats.max, "{probe}");
        // A busy machine may miss the deadline of a millisecond too, which is worse.
        let late = latency.stats.max > Some(1_000_000);
        let outcome = if late { Outcome::Fail } else { Outcome::Break };
        assert_eq!(run.verdict.outcome, outcome, "{probe}");
    }
}

#[test]
fn a_session_may_record_the_primary_series() {
    let place = Place::new("stamped");
    let run = place.run(Subject::Probe("stamped".to_owned()), &[("policy", "other")]);
    let cell = &run.cells[0];
    assert_eq!(cell.state, CellState::Complete, "{cell:?}");
    let latency = cell.latency().unwrap();
    // What the thread recorded is neither in the warm-up's maximum nor in the statistics.
    assert_eq!(latency.warmup_max_ns, Some(900));
    assert_eq!((latency.stats.min, latency.stats.max), (Some(70), Some(70)));
    assert_eq!(latency.stats.samples, cell.counters[0].total);
    assert_eq!(latency.series[0].stats.max, Some(5_000));
}

#[test]
fn a_policy_that_changed_for_a_while_is_a_condition() {
    let place = Place::new("demoted");
    let run = place.exercise_for(2_500_000_000, &[("trouble", "demoted")]);
    let cell = &run.cells[0];
    let changed = cell.conditions.iter().find(|note| note.id == "thread-changed");
    let text = changed.map(|note| note.text.as_str()).unwrap_or_default();
    assert!(text.contains("other 0 became batch 0 for a while"), "{:?}", cell.conditions);
}

#[test]
fn a_run_goes_on_with_what_is_left_if_no_other_has_continued_it() {
    let place = Place::new("left");
    let run = place.run(Subject::Probe("sim".to_owned()), &[]);
    assert!(run.cells[0].conditions.is_empty(), "{:?}", run.cells[0].conditions);
    let reach = Reach {
        cpus: affinity::CpuSet::parse("0").unwrap(),
        inherited: affinity::CpuSet::parse("0").unwrap(),
        per_cpu: Ok(affinity::CpuSet::parse("0").unwrap()),
        clock_cost_ns: 30,
        force: false,
    };
    let sim = || cell(Subject::Probe("sim".to_owned()), &[]);
    let second = CellPlan { duration_ns: 7_000_000_000, ..sim() };
    let cells = [sim(), second].map(|cell| Prepared::new(&cell, &reach, i64::MAX).unwrap());
    let left: Vec<_> = continued::left(&cells, Some(&run)).map(|c| c.plan.duration_ns).collect();
    assert_eq!(left, [7_000_000_000], "the first has its result");
    assert_eq!(continued::left(&cells, None).count(), 2);

    let store = RunDir::reopen(&place.0.join("run")).unwrap();
    continued::check_unchanged(&run, &store).unwrap();
    let mut of_another = run.clone();
    let again = punctual_core::schema::Continuation {
        started: run.started.clone(),
        kept: 0,
        command: Vec::new(),
    };
    of_another.continued.push(again);
    let text = serde_json::to_vec(&of_another).unwrap();
    fs::write(place.0.join("run/run.json"), text).unwrap();
    let error = continued::check_unchanged(&run, &store).unwrap_err();
    assert!(error.ends_with("another punctual has continued it meanwhile; try again"), "{error}");
}

#[test]
fn no_more_than_asked_for_is_read_back() {
    let place = Place::new("back");
    let mut store = RunDir::create(&place.0.join("run")).unwrap();
    let mut files = store.cell("cell").unwrap();
    let name = "ksoftirqd/0".to_owned();
    let actor = punctual_core::interval::Actor { number: 0, name };
    files.push(&punctual_core::format::Record::Actor(actor));
    let (all, whole) = files.read_back(1 << 20).unwrap();
    assert!(all.len() > 10 && whole);
    assert_eq!(files.read_back(10).unwrap(), (all[..10].to_vec(), false));
}

/// Reads the record whenever a cell begins.
struct Records(PathBuf, Vec<Run>);

impl Observer for Records {
    fn started(&mut self, _: &Run, _: &Path, _: u64) {}
    fn cell_started(&mut self, _: &Cell, _: usize, _: u64) {
        let text = fs::read(self.0.join("run.json")).unwrap();
        self.1.push(serde_json::from_slice(&text).unwrap());
    }
    fn progress(&mut self, _: &Progress<'_>) {}
    fn snapshot(&mut self) {}
    fn cell_ended(&mut self, _: &Cell) {}
}

#[test]
fn a_run_ends_with_its_aimed_release_and_says_so_only_then() {
    let place = Place::new("aimed");
    let mut plan = Plan::new("test");
    plan.warmup_ns = 50_000_000;
    plan.deadline_ns = Some(3_600_000_000_000);
    let wakeup = |duration_ns| CellPlan {
        duration_ns,
        ..cell(Subject::Probe("wakeup".to_owned()), &[("policy", "other"), ("interval", "2ms")])
    };
    plan.cells = vec![wakeup(100_000_000), wakeup(3_600_000_000_000), wakeup(200_000_000)];
    let aim = Aim { cell: 1, release: 40, at_ns: 79_123_456 };
    let dither = Some(Dither::of_seed(1));
    let options = Options { aim, dither, ..options(place.0.join("run")) };
    let mut records = Records(place.0.join("run"), Vec::new());
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let run = run(&plan, &options, &ByPlan, &mut records).unwrap().run;
    drop(alone);
    let written = fs::read(place.0.join("run/run.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Run>(&written).unwrap(), run);
    assert_eq!((run.state, run.aim), (RunState::Complete, Some(aim)));
    let said = |run: &Run| run.conditions.iter().find(|c| c.id == "aimed").map(|c| c.text.clone());
    assert_eq!(
        said(&run).as_deref(),
        Some(
            "aimed: release 40 at 0.079123456 s of wakeup:interval=2ms,policy=other @ idle @ 1h; \
             the course after it is another one"
        )
    );
    assert_eq!(records.1.len(), 2, "cells that began");
    assert!(records.1.iter().all(|run| run.aim.is_none() && said(run).is_none()));

    let [before, aimed, after] = &run.cells[..] else { panic!("three cells") };
    assert_eq!(before.latency().unwrap().stats.scheduled, 50);
    assert_eq!(aimed.state, CellState::Complete);
    assert!(lasted_s(aimed) < 30, "it went on");
    let stats = &aimed.latency().unwrap().stats;
    assert_eq!((stats.scheduled, stats.samples + stats.missed), (40, 40));
    let data = place.data(aimed);
    assert_eq!((data.damaged, data.threads[0].primary().moments().count), (0, stats.samples));
    let reason =
        "the run ends with the aimed release of wakeup:interval=2ms,policy=other @ idle @ 1h";
    assert_eq!((after.state, after.reason.as_deref()), (CellState::Skipped, Some(reason)));
    assert_eq!(after.verdict.outcome, Outcome::Skipped);
    assert_ne!(run.verdict.outcome, Outcome::Pass);
}

#[test]
fn a_cell_that_has_its_samples_before_the_aimed_release_says_so() {
    let place = Place::new("unreached");
    let mut plan = Plan::new("test");
    plan.warmup_ns = 0;
    let wakeup = cell(Subject::Probe("wakeup".to_owned()), &[("policy", "other")]);
    plan.cells = vec![CellPlan { samples: Some(3), ..wakeup }];
    let aim = Aim { cell: 0, release: 1_100, at_ns: 1_199_000_000 };
    let options = Options { aim, ..options(place.0.join("run")) };
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let run = run(&plan, &options, &ByPlan, &mut Silent).unwrap().run;
    assert_eq!((run.state, run.aim), (RunState::Complete, Some(aim)));
    let said = run.conditions.iter().find(|condition| condition.id == "aimed").unwrap();
    assert!(said.text.contains("ended before its release 1,100"), "{}", said.text);
}

#[test]
fn what_cannot_be_aimed_at_is_a_usage_error() {
    let place = Place::new("unaimed");
    let mut plan = Plan::new("test");
    let of = |probe: &str, params| cell(Subject::Probe(probe.to_owned()), params);
    plan.cells = vec![
        of("wakeup", &[("policy", "other")]),
        of("wakeup", &[("timer", "posix")]),
        of("wakeup", &[("threads", "2")]),
        of("clock", &[]),
        cell(Subject::Cost("lat.syscall".to_owned()), &[]),
    ];
    let dither = Dither::of_seed(1);
    let ninth = 8_000_000 + dither.offset_ns(8, 1_000_000);
    let by_itself = "does not wait for each release by itself";
    let within = "must be within the 1200ms of wakeup";
    for (cell, release, at_ns, why) in [
        (5, 10, 9_000_000, "the plan has 5 cells"),
        (1, 10, 9_000_000, by_itself),
        (2, 10, 9_000_000, "has 2 threads"),
        (3, 10, 9_000_000, by_itself),
        (4, 10, 9_000_000, by_itself),
        (0, 10, ninth, within),
        (0, 10, 1_200_000_000, within),
        (0, 1_201, 1_199_999_999, within),
        (0, u64::MAX, u64::MAX, within),
    ] {
        let aim = Aim { cell, release, at_ns };
        let options = Options { aim, dither: Some(dither.clone()), ..options(place.0.join("run")) };
        let error = run(&plan, &options, &ByPlan, &mut Silent).unwrap_err();
        let text = &error.downcast_ref::<UsageError>().unwrap().0;
        assert!(text.contains(why) && text.starts_with("it cannot be aimed at release"), "{text}");
        assert!(!place.0.join("run").exists());
    }
    let reach = Reach {
        cpus: affinity::CpuSet::parse("0").unwrap(),
        inherited: affinity::CpuSet::parse("0").unwrap(),
        per_cpu: Ok(affinity::CpuSet::parse("0").unwrap()),
        clock_cost_ns: 30,
        force: false,
    };
    let cells = [Prepared::new(&plan.cells[0], &reach, i64::MAX).unwrap()];
    for (release, at_ns) in [(10, ninth + 1), (1, 0), (1_200, 1_199_999_999), (2, 1_100_000_000)] {
        let aim = Aim { cell: 0, release, at_ns };
        assert_eq!(aimed::refused(aim, &cells, Some(&dither)), None, "{}", aim.words());
    }
}

#[test]
fn what_measures_without_judging_leaves_all_that_a_judgement_needs() {
    let place = Place::new("unjudged");
    let mut plan = Plan::new("test");
    plan.deadline_ns = Some(12_000);
    let setting = place.0.join("setting");
    let setting = [("setting", setting.to_str().unwrap()), ("policy", "other")];
    for (probe, params) in [("sim", &[][..]), ("exercise", &setting)] {
        plan.cells.push(cell(Subject::Probe(probe.to_owned()), params));
    }
    let of = |name: &str, judge: &dyn Judge| {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        run(&plan, &options(place.0.join(name)), judge, &mut Silent).unwrap().run
    };
    let judged = of("judged", &ByPlan);
    let mut unjudged = of("unjudged", &Unjudged);
    assert!(judged.judged && !unjudged.judged);
    assert_eq!(unjudged.verdict.outcome, Outcome::None);
    assert_ne!(judged.verdict.outcome, Outcome::None);
    punctual_core::judge::judge_record(&mut unjudged);
    assert!(unjudged.judged);
    let [one, other] = [&judged, &unjudged].map(|run| &run.cells[0]);
    assert_eq!(one.verdict, other.verdict, "the cell of simulated time, which repeats itself");
    assert_eq!(unjudged.verdict.outcome, judged.verdict.outcome);
}
