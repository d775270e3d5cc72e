//! Whether the load of a cell held: what was measured under a load that died or idled says
//! nothing about that load.

use crate::schema::{Cell, LoadPhase, LoadWork};
use crate::units::{SECOND_NS, grouped, stretch};

/// A load may be gone for so long between two runs of it, ns.
const GONE_LIMIT_NS: u64 = SECOND_NS;
/// It may be idle for one part in so many of the measurement.
const IDLE_PARTS: u64 = 100;

/// What speaks against each part of the load, one sentence per part.
pub(super) fn did_not_hold(cell: &Cell) -> impl Iterator<Item = String> {
    let window_ns = cell.window_ns();
    cell.load_work.iter().filter_map(move |part| {
        let phase = part.phase.and_then(|number| cell.phases.get(usize::try_from(number).ok()?));
        sentence(part, phase.map_or(window_ns, LoadPhase::worked_ns))
    })
}

fn sentence(part: &LoadWork, measured_ns: u64) -> Option<String> {
    let mut faults = Vec::new();
    if part.deaths > 0 {
        let times = if part.deaths == 1 { "once" } else { "times" };
        let count = if part.deaths == 1 { String::new() } else { grouped(part.deaths) + " " };
        faults.push(format!("died {count}{times}"));
    }
    // A cell can be too short for a second without a load.
    if part.gone_ns > GONE_LIMIT_NS || part.gone_ns > measured_ns / 2 {
        faults.push(format!("was gone for {}", stretch(part.gone_ns)));
    }
    if part.idle_ns > measured_ns / IDLE_PARTS {
        faults.push(format!(
            "did no work in {} of {}",
            stretch(part.idle_ns),
            stretch(measured_ns)
        ));
    }
    let (last, others) = faults.split_last()?;
    let faults = match others {
        [] => last.clone(),
        _ => format!("{} and {last}", others.join(", ")),
    };
    let why = part.trouble.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    let phase = part
        .phase
        .map_or_else(String::new, |number| format!(" in phase {}", u64::from(number) + 1));
    Some(format!("the load did not hold: {} {faults}{phase}{why}", part.load))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{AtWork, Latency, TimeBase, What};

    fn cell(part: LoadWork) -> Cell {
        let what = What::Latency(Latency::default());
        let cell = Cell::new("k".into(), "00-k".into(), part.load.clone(), 60 * SECOND_NS, what);
        Cell { load_work: vec![part], ..cell }
    }

    fn said(part: LoadWork) -> Vec<String> {
        did_not_hold(&cell(LoadWork { load: "copy".into(), ..part })).collect()
    }

    #[test]
    fn a_load_that_works_holds() {
        for part in [
            LoadWork::default(),
            LoadWork { restarts: 1_000, idle_seconds: 59, ..LoadWork::default() },
            LoadWork { gone_ns: SECOND_NS, ..LoadWork::default() },
            LoadWork { idle_ns: 600_000_000, ..LoadWork::default() },
            LoadWork { trouble: Some("cut short".into()), ..LoadWork::default() },
        ] {
            assert_eq!(said(part), Vec::<String>::new());
        }
    }

    #[test]
    fn a_load_that_was_never_there_does_not_hold_in_a_short_cell_either() {
        let part = LoadWork { load: "copy".into(), gone_ns: SECOND_NS / 2, ..LoadWork::default() };
        let short = Cell { duration_ns: SECOND_NS / 2, ..cell(part) };
        assert_eq!(did_not_hold(&short).count(), 1);
    }

    #[test]
    fn each_way_not_to_hold_is_said() {
        for (part, expected) in [
            (LoadWork { deaths: 1, ..LoadWork::default() }, "copy died once"),
            (LoadWork { gone_ns: SECOND_NS + 1, ..LoadWork::default() }, "copy was gone for 1.0 s"),
            (
                LoadWork { idle_ns: 600_000_001, ..LoadWork::default() },
                "copy did no work in 600.000 ms of 60.0 s",
            ),
            (
                LoadWork {
                    deaths: 5,
                    gone_ns: 27 * SECOND_NS,
                    idle_ns: 26 * SECOND_NS,
                    trouble: Some("exited with status 3".into()),
                    ..LoadWork::default()
                },
                "copy died 5 times, was gone for 27.0 s and did no work in 26.0 s of 60.0 s \
                 (exited with status 3)",
            ),
        ] {
            assert_eq!(said(part), [format!("the load did not hold: {expected}")]);
        }
    }

    #[test]
    fn a_part_of_a_phase_is_weighed_against_the_time_it_was_to_work() {
        let idle = LoadWork { idle_ns: 400_000_000, phase: Some(1), ..LoadWork::default() };
        let mut cell = cell(LoadWork { load: "copy".into(), ..idle });
        assert_eq!(did_not_hold(&cell).count(), 0, "of a minute");
        let at_work = vec![AtWork { from_ns: 31 * SECOND_NS, to_ns: 40 * SECOND_NS }];
        cell.phases = vec![LoadPhase::default(), LoadPhase { at_work, ..LoadPhase::default() }];
        assert_eq!(
            did_not_hold(&cell).collect::<Vec<_>>(),
            ["the load did not hold: copy did no work in 400.000 ms of 9.0 s in phase 2"]
        );
    }

    #[test]
    fn idleness_is_weighed_against_what_was_measured() {
        let idle = LoadWork { idle_ns: 6 * SECOND_NS, ..LoadWork::default() };
        let mut cell = Cell { duration_ns: 3_600 * SECOND_NS, ..cell(idle) };
        assert_eq!(did_not_hold(&cell).count(), 0);
        let at = |monotonic_ns| Some(TimeBase { monotonic_ns, ..TimeBase::default() });
        (cell.started, cell.ended) = (at(SECOND_NS), at(11 * SECOND_NS));
        assert_eq!(did_not_hold(&cell).count(), 1, "it was ended after 10 s");
    }
}
