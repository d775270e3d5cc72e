//! A run under a load that changes on a schedule.

use punctual_core::phases::length_ns;
use punctual_core::stats::phases_by_blocks;

use super::*;

/// The loads of the phases and their seconds, once; the cell is `seconds` long. Every load but the
/// first is at work 300 ms after its phase has begun.
pub fn phased(phases: &[(&'static str, u64)], seconds: u64, deadline: Option<u64>) -> LoadedRun {
    let load: Vec<_> = phases.iter().map(|(load, s)| format!("{load} for {s}s")).collect();
    let load: &'static str = load.join(" then ").leak();
    let once = length_ns(load).expect("a schedule") / (1_000 * MS);
    let shape = Shape { base: 16_000.0, spread: 9_000.0, rare: 4_000, tail: 40_000.0 };
    let stall = Some(3 * MS);
    let spec = CellSpec { probe: "wakeup", load, seconds, interval: MS, threads: 2, shape, stall };
    let mut run = run("6.1.0", "rt", deadline, &[spec]);
    let (cell, data) = (&mut run.run.cells[0], &mut run.cells[0]);
    let whole = |(load, s): &(&str, u64)| LoadPhase {
        load: (*load).to_owned(),
        for_ns: s * 1_000 * MS,
        ..LoadPhase::default()
    };
    cell.phases = phases.iter().map(whole).collect();
    let (mut at, mut turn) = (0, 0);
    while at < seconds {
        let number = turn % phases.len();
        let end = (at + phases[number].1).min(seconds);
        let late = if turn == 0 { 0 } else { 300 * MS };
        data.phases.push((number as u32, at * 1_000 * MS + late, end * 1_000 * MS));
        (at, turn) = (end, turn + 1);
    }
    assert!(turn as u64 >= seconds / once);
    (data.work, cell.load_work) = (Vec::new(), Vec::new());
    for (part, (load, _)) in (0..).zip(phases) {
        let mut total = 0;
        let own: Vec<_> = data.phases.iter().filter(|one| one.0 == part).copied().collect();
        for second in own.iter().flat_map(|one| one.1 / (1_000 * MS)..one.2 / (1_000 * MS)) {
            total += 100;
            let totals = if *load == "none" { Vec::new() } else { vec![total] };
            data.work.push((second, part, totals));
        }
        let counter = WorkCounter { name: "loops".to_owned(), total, per_second: 100.0 };
        let counters = if *load == "none" { Vec::new() } else { vec![counter] };
        let load = (*load).to_owned();
        cell.load_work.push(LoadWork { load, phase: Some(part), counters, ..LoadWork::default() });
    }
    let limits = Limits { interval: MS, ..Limits::of_deadline(deadline) };
    phases_by_blocks(cell, data, &limits);
    run
}
