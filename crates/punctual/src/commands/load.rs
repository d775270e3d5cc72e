//! `punctual load`: runs only a load.

use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use clap::ArgMatches;
use punctual_core::schema::{LoadWork, Outcome};
use punctual_core::units::{SECOND_NS, exact_duration};
use punctual_report::describe;
use punctual_report::text::{Paint, Style, push_parts, push_wrapped};
use punctual_report::words;
use punctual_suite::facts::{CpuTimes, FactsRoot, StrainReader, Ticks, Totals};
use punctual_suite::harness::context::{LoadContext, PartSample};
use punctual_suite::harness::phased::PhasedSpec;
use punctual_suite::harness::phases::PhasedLoad;
use punctual_suite::knobs::Journal;
use punctual_sys::signal::{Signal, Signals};

use crate::ending::Ending;
use crate::{output, request};

/// How often a load that starts is looked at, ns.
const POLL_NS: u64 = 5_000_000;

/// How long a load runs that does not change, ns.
const DEFAULT_DURATION_NS: u64 = 10 * SECOND_NS;

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let text = matches.get_one::<String>("load").map_or("", String::as_str);
    let json = matches.get_flag("json");
    let text = request::placed(matches, text)?;
    let spec = PhasedSpec::parse(&text).map_err(|error| anyhow!(error))?;
    let duration_ns = duration_ns(matches.get_one::<u64>("duration").copied(), &spec)?;
    let signals = Signals::block().context("signals")?;
    let mut journal = Journal::new().context("the journal of what is to be undone")?;
    let started = PhasedLoad::start(&spec, duration_ns, &mut LoadContext::new(&mut journal));
    let mut load = match started {
        Ok(load) => load,
        Err(error) => {
            output::complain(&format!("SKIPPED: load {error}"));
            return Ok(Ending::Judged(Outcome::Skipped));
        }
    };
    let mut watch = Watch::begin(&mut load, duration_ns, json, spec.changes());
    let interrupted = watch.until_the_end(&mut load, &signals, &mut journal)?;
    let (work, _) = load.stop(watch.elapsed());
    if json {
        output::print_json(&work)?;
    } else {
        let mut proof = String::new();
        for part in &work {
            let done = format!("in all: {}", words::work(part));
            push_wrapped(&mut proof, &done, "", 8, output::width());
        }
        output::print(&proof)?;
    }
    Ok(ending(interrupted, &work))
}

fn duration_ns(given: Option<u64>, spec: &PhasedSpec) -> anyhow::Result<u64> {
    let (once, text) = (spec.length_ns(), exact_duration);
    match (given, once) {
        (Some(given), Some(once)) if given < once => bail!(
            "--duration {}: the schedule takes {}; run it for that long, or leave --duration out",
            text(given),
            text(once)
        ),
        _ => Ok(given.or(once).unwrap_or(DEFAULT_DURATION_NS)),
    }
}

fn ending(interrupted: bool, work: &[LoadWork]) -> Ending {
    if interrupted {
        return Ending::Interrupted;
    }
    let troubled = work.iter().any(|part| part.trouble.is_some());
    if troubled { Ending::Failed } else { Ending::Done }
}

/// A load that runs alone.
struct Watch {
    start: Instant,
    duration_ns: u64,
    quiet: bool,
    changes: bool,
    seconds: u64,
    before: Vec<(u32, PartSample)>,
    machine: Machine,
}

impl Watch {
    fn begin(load: &mut PhasedLoad, duration_ns: u64, quiet: bool, changes: bool) -> Self {
        let start = Instant::now();
        load.begin();
        let before = load.sample();
        let machine = Machine::new();
        Self { start, duration_ns, quiet, changes, seconds: 0, before, machine }
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Polls the load every second until its time is over; returns whether a signal ended it.
    fn until_the_end(
        &mut self,
        load: &mut PhasedLoad,
        signals: &Signals,
        journal: &mut Journal,
    ) -> anyhow::Result<bool> {
        while self.elapsed() < self.duration_ns {
            let second = (self.seconds + 1).saturating_mul(SECOND_NS);
            let due = second.min(self.duration_ns).min(load.due_ns().max(self.elapsed() + POLL_NS));
            match signals.wait(due.saturating_sub(self.elapsed())) {
                None | Some(Signal::User1) => {}
                Some(_) => return Ok(true),
            }
            if self.elapsed() >= second {
                self.seconds += 1;
                self.tell(load)?;
            }
            self.change(load, journal);
        }
        Ok(false)
    }

    fn tell(&mut self, load: &mut PhasedLoad) -> anyhow::Result<()> {
        let now = load.sample();
        let machine = self.machine.since();
        let between = self.changes && now.is_empty();
        if !self.quiet && !between {
            output::print(&line(self.seconds, &self.before, &now, &machine, output::width()))?;
        }
        self.before = now;
        Ok(())
    }

    fn change(&mut self, load: &mut PhasedLoad, journal: &mut Journal) {
        if self.elapsed() < load.due_ns() || self.elapsed() >= self.duration_ns {
            return;
        }
        let start = self.start;
        let elapsed = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if load.step(&elapsed, journal).is_some() {
            self.before = load.sample();
        }
    }
}

/// What the machine went through in a second.
struct Machine {
    times: Option<CpuTimes>,
    ticks: Option<Ticks>,
    strain: StrainReader,
    totals: (Totals, Instant),
}

impl Machine {
    fn new() -> Self {
        let times = CpuTimes::open(&FactsRoot::live()).ok();
        let ticks = times.as_ref().and_then(|times| times.read().ok());
        let mut strain = StrainReader::open(&FactsRoot::live());
        let totals = (strain.read(), Instant::now());
        Self { times, ticks, strain, totals }
    }

    /// Since the last call, in words.
    fn since(&mut self) -> Vec<String> {
        let ticks = self.times.as_ref().and_then(|times| times.read().ok());
        let share = self.ticks.zip(ticks).and_then(|(before, now)| before.until(&now));
        self.ticks = ticks;
        let now = (self.strain.read(), Instant::now());
        let (before, at) = std::mem::replace(&mut self.totals, now);
        let strain = before.on_average(&self.totals.0, self.totals.1.duration_since(at));
        let busy = share.map(|share| format!("CPUs busy {:.0} %", f64::from(share.busy) / 10.0));
        busy.into_iter().chain(strain.iter().flat_map(describe::strain)).collect()
    }
}

/// What each part did in one second: `3 s  hackbench 41.2 k messages/s · flood stopped: …`.
fn line(
    second: u64,
    before: &[(u32, PartSample)],
    now: &[(u32, PartSample)],
    machine: &[String],
    width: usize,
) -> String {
    let known = now.iter().filter_map(|(number, now)| {
        let before = before.iter().find(|(part, _)| part == number);
        before.map(|(_, before)| (before, now))
    });
    let parts = known.map(|(before, now)| part(before, now));
    let first = format!("{second:4} s  ");
    let mut out = String::new();
    let parts: Vec<_> =
        parts.chain(machine.iter().cloned()).map(|part| (part, Style::Plain)).collect();
    push_parts(&mut out, &parts, (&first, Style::Plain), 8, width, Paint::new(false));
    out
}

fn part(before: &PartSample, now: &PartSample) -> String {
    if let Some(reason) = &now.died {
        return format!("{} stopped: {reason}", now.load);
    }
    let counters = now.counters.iter().zip(&before.counters);
    let rates: Vec<_> = counters
        .map(|((name, to), (_, from))| {
            #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
            let done = to.saturating_sub(*from) as f64;
            words::rate(name, done)
        })
        .collect();
    format!("{} {}", now.load, rates.join(", "))
}
