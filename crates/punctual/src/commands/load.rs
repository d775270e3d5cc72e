//! `punctual load`: runs only a load.

use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::ArgMatches;
use punctual_core::schema::{LoadWork, Outcome};
use punctual_core::units::SECOND_NS;
use punctual_report::describe;
use punctual_report::text::{Paint, Style, push_parts, push_wrapped};
use punctual_report::words;
use punctual_suite::facts::{CpuTimes, FactsRoot, StrainReader, Ticks, Totals};
use punctual_suite::harness::context::{LoadContext, PartSample};
use punctual_suite::harness::set::LoadSet;
use punctual_suite::harness::spec::LoadSpec;
use punctual_suite::knobs::Journal;
use punctual_sys::signal::{Signal, Signals};

use crate::ending::Ending;
use crate::{output, request};

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let text = matches.get_one::<String>("load").map_or("", String::as_str);
    let duration_ns = matches.get_one::<u64>("duration").copied().unwrap_or(0);
    let json = matches.get_flag("json");
    let text = request::placed(matches, text)?;
    let spec = LoadSpec::parse(&text).map_err(|error| anyhow!(error))?;
    let signals = Signals::block().context("signals")?;
    let mut journal = Journal::new().context("the journal of what is to be undone")?;
    let mut load = match LoadSet::start(&spec, &mut LoadContext::new(&mut journal)) {
        Ok(load) => load,
        Err(error) => {
            output::complain(&format!("SKIPPED: load {error}"));
            return Ok(Ending::Judged(Outcome::Skipped));
        }
    };
    load.mark_start();
    let interrupted = watch(&mut load, &signals, duration_ns, json)?;
    let work = load.stop();
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

fn ending(interrupted: bool, work: &[LoadWork]) -> Ending {
    if interrupted {
        return Ending::Interrupted;
    }
    let troubled = work.iter().any(|part| part.trouble.is_some());
    if troubled { Ending::Failed } else { Ending::Done }
}

/// Polls the load every second until its time is over; returns whether a signal ended it.
fn watch(
    load: &mut LoadSet,
    signals: &Signals,
    duration_ns: u64,
    quiet: bool,
) -> anyhow::Result<bool> {
    let start = Instant::now();
    let elapsed = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut before = load.sample();
    let mut machine = Machine::new();
    let mut seconds = 0_u64;
    while elapsed() < duration_ns {
        let due = (seconds + 1).saturating_mul(SECOND_NS).min(duration_ns);
        match signals.wait(due.saturating_sub(elapsed())) {
            None | Some(Signal::User1) => {}
            Some(_) => return Ok(true),
        }
        if elapsed() < (seconds + 1).saturating_mul(SECOND_NS) {
            continue;
        }
        seconds += 1;
        let now = load.sample();
        if !quiet {
            output::print(&line(seconds, &before, &now, &machine.since(), output::width()))?;
        }
        before = now;
    }
    Ok(false)
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
    before: &[PartSample],
    now: &[PartSample],
    machine: &[String],
    width: usize,
) -> String {
    let parts = now.iter().zip(before).map(|(now, before)| part(before, now));
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
