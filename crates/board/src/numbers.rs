//! The numbers of a run, a line a thread.

use std::io::Write as _;

use punctual_core::schema::{Cell, CellState, Condition, Cost, Latency, Run};
use punctual_core::text::clean;
use punctual_core::units::{exact_duration, grouped, human_ns};

/// Prints to stdout.
///
/// # Errors
/// It cannot be written.
pub fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    Ok(out.write_all(text.as_bytes()).and_then(|()| out.flush())?)
}

/// Releases of a run that were later than the deadline.
pub fn later(run: &Run) -> u64 {
    run.cells.iter().map(later_in).sum()
}

fn later_in(cell: &Cell) -> u64 {
    cell.threads().iter().map(|thread| thread.verdict.exceedances).sum()
}

/// Whether a sample was above the break value.
pub fn broke(run: &Run) -> bool {
    run.cells.iter().filter_map(Cell::latency).any(|latency| latency.broke.is_some())
}

const HEADINGS: [&str; 7] = ["CPUs", "min", "avg", "p99.9", "max", "samples", "missed"];

/// The table, the conditions by their names, and what was later than the deadline.
pub fn of(run: &Run) -> String {
    let mut out = String::new();
    let deadline = run.plan.deadline_ns.map(exact_duration);
    for cell in &run.cells {
        out.push_str(&format!("{}\n", clean(&cell.key)));
        if let Some(latency) = cell.latency() {
            latencies(&mut out, latency);
        }
        if let Some(cost) = cell.cost() {
            out.push_str(&format!("  {}\n", value_of(cost)));
        }
        for work in cell.load_work.iter().filter(|work| !work.counters.is_empty()) {
            let rate = |counter: &punctual_core::schema::WorkCounter| {
                format!("{:.0} {}/s", counter.per_second, counter.name)
            };
            let rates: Vec<_> = work.counters.iter().map(rate).collect();
            out.push_str(&format!("  load {}: {}\n", clean(&work.load), rates.join(", ")));
        }
        if cell.state != CellState::Complete {
            let reason = cell.reason.as_deref().unwrap_or("no reason is known");
            let state = format!("{:?}", cell.state).to_uppercase();
            out.push_str(&format!("  {state}: {}\n", clean(reason)));
        }
        named(&mut out, &cell.conditions);
        if let Some(deadline) = deadline.as_ref().filter(|_| cell.latency().is_some()) {
            out.push_str(&format!("  {} later than {deadline}\n", grouped(later_in(cell))));
        }
    }
    named(&mut out, &run.conditions);
    if let Some(deadline) = deadline {
        let count = grouped(later(run));
        out.push_str(&format!("{count} later than the deadline of {deadline}\n"));
    }
    out
}

fn named(out: &mut String, conditions: &[Condition]) {
    if !conditions.is_empty() {
        let ids: Vec<_> = conditions.iter().map(|condition| clean(&condition.id)).collect();
        out.push_str(&format!("  ! {}\n", ids.join(" ")));
    }
}

fn latencies(out: &mut String, latency: &Latency) {
    if latency.threads.is_empty() {
        return;
    }
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(latency.threads.iter().map(|thread| {
        let stats = &thread.stats;
        let known = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), human_ns);
        #[allow(clippy::cast_possible_truncation, reason = "an average of i64")]
        let avg = stats.avg.map(|ns| ns.round() as i64);
        [
            clean(&thread.placement.affinity).into_owned(),
            known(stats.min),
            known(avg),
            known(stats.p999),
            known(stats.max),
            grouped(stats.samples),
            grouped(stats.missed),
        ]
    }));
    let widths = std::array::from_fn::<_, 7, _>(|column| {
        rows.iter().map(|row| row[column].len()).max().unwrap_or(0)
    });
    for row in rows {
        for (text, width) in row.iter().zip(widths) {
            out.push_str(&format!("  {text:>width$}"));
        }
        out.push('\n');
    }
}

fn value_of(cost: &Cost) -> String {
    let unit = cost.unit.name();
    let ends = |end: Option<f64>| end.map_or_else(|| "-".to_owned(), |end| format!("{end:.3}"));
    let value =
        cost.value.map_or_else(|| cost.status.name().to_owned(), |value| format!("{value:.3}"));
    format!("{value} {unit} ({} to {})", ends(cost.low), ends(cost.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ending::Ending;
    use punctual_core::plan::Plan;
    use punctual_core::schema::{Placement, Stats, Thread, What};

    #[test]
    fn numbers_are_told_and_none_is_judged() {
        let simulated = include_bytes!("../../../fuzz/seeds/run_json/simulated");
        let mut run: Run = serde_json::from_slice(simulated).unwrap();
        run.plan.deadline_ns = Some(1_000_000);
        let mut thread = Thread {
            placement: Placement { affinity: "0-1".to_owned(), ..Placement::default() },
            stats: Stats {
                samples: 5_000,
                min: Some(2_100),
                avg: Some(3_400.4),
                p999: Some(9_900),
                max: Some(40_100),
                missed: 2,
                ..Stats::default()
            },
            ..Thread::default()
        };
        thread.verdict.exceedances = 3;
        let what = What::Latency(Latency { threads: vec![thread], ..Latency::default() });
        let mut cell =
            Cell::new("wakeup @ none @ 5s".to_owned(), String::new(), "none".to_owned(), 1, what);
        cell.state = CellState::Skipped;
        cell.reason = Some("there is no\u{1b}[2J device".to_owned());
        run.cells = vec![cell];
        run.conditions = vec![Condition { id: "virtual-machine".to_owned(), text: "x".to_owned() }];
        let text = of(&run);
        for line in [
            "wakeup @ none @ 5s\n",
            "  CPUs     min     avg   p99.9      max  samples  missed\n",
            "   0-1  2.1 us  3.4 us  9.9 us  40.1 us    5,000       2\n",
            "  3 later than 1ms\n",
            "  SKIPPED: there is no\u{fffd}[2J device\n",
            "  ! virtual-machine\n",
            "3 later than the deadline of 1ms\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
        assert!(!text.contains("PASS") && !text.contains("FAIL"), "{text}");
        assert_eq!(Ending::of(&run, false, true), Ending::Later);
        assert_eq!(Ending::of(&run, true, true), Ending::Interrupted);
        run.plan = Plan::from_toml("name = \"x\"\n[[cell]]\nprobe = \"wakeup\"").unwrap();
        run.cells[0].latency_mut().unwrap().threads.clear();
        assert_eq!(Ending::of(&run, false, true), Ending::Skipped);
        assert_eq!(Ending::of(&run, false, false), Ending::Failed);
    }
}
