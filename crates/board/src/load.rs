//! `punctual-board load`: runs only a load.

use std::time::Instant;

use anyhow::{Context as _, anyhow, bail};
use punctual_core::units::{BareNumber, SECOND_NS};
use punctual_suite::harness::context::LoadContext;
use punctual_suite::harness::phased::PhasedSpec;
use punctual_suite::harness::phases::PhasedLoad;
use punctual_suite::knobs::Journal;
use punctual_sys::signal::{Signal, Signals};

use crate::PROGRAM;
use crate::ending::Ending;
use crate::line::{Line, value};
use crate::numbers::say;

/// How often a load is looked at that changes, ns.
const POLL_NS: u64 = 5_000_000;

/// How long a load runs that does not change, ns.
const USUAL_NS: u64 = 10 * SECOND_NS;

/// Runs it.
pub fn execute(words: &[String]) -> anyhow::Result<Ending> {
    let line = Line::read(words, &[&[value("duration", 'D')]])?;
    let [text] = &line.words[..] else { bail!("load takes one load, such as hackbench+flood") };
    let spec = PhasedSpec::parse(text).map_err(|error| anyhow!(error))?;
    let given = line.time_ns("duration", BareNumber::Seconds)?;
    let duration_ns = given.or(spec.length_ns()).unwrap_or(USUAL_NS);
    let signals = Signals::block().context("signals")?;
    let mut journal = Journal::new().context("the journal of what is to be undone")?;
    let started = PhasedLoad::start(&spec, duration_ns, &mut LoadContext::new(&mut journal));
    let mut load = match started {
        Ok(load) => load,
        Err(error) => {
            eprintln!("{}: SKIPPED: load {error}", PROGRAM.name);
            return Ok(Ending::Skipped);
        }
    };
    let start = Instant::now();
    let elapsed = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    load.begin();
    let mut interrupted = false;
    while elapsed() < duration_ns && !interrupted {
        let due = duration_ns.min(load.due_ns().max(elapsed() + POLL_NS));
        interrupted = matches!(
            signals.wait(due.saturating_sub(elapsed())), Some(signal) if signal != Signal::User1
        );
        if elapsed() >= load.due_ns() && elapsed() < duration_ns {
            load.step(&elapsed, &mut journal);
        }
    }
    let (work, _) = load.stop(elapsed());
    let mut out = String::new();
    for part in &work {
        let counters = part.counters.iter();
        let done: Vec<_> = counters
            .map(|one| format!("{} {} ({:.0}/s)", one.total, one.name, one.per_second))
            .collect();
        let trouble = part.trouble.as_deref().map_or_else(String::new, |text| format!(" ! {text}"));
        out.push_str(&format!("{}: {}{trouble}\n", part.load, done.join(", ")));
    }
    say(&out)?;
    let troubled = work.iter().any(|part| part.trouble.is_some());
    Ok(match (interrupted, troubled) {
        (true, _) => Ending::Interrupted,
        (_, true) => Ending::Failed,
        _ => Ending::Done,
    })
}
