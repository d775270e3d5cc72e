//! A run with every kind of data.

use std::collections::BTreeMap;

use punctual_core::block::{Block, Moments};
use punctual_core::histogram::SignedHistogram;
use punctual_core::plan::{CellPlan, Subject};
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::*;

use super::{CellSpec, MS, Shape, cell, fill, latency, placement, standard};

/// A run with a cell of every kind of data: legs and an aside, a helper, counters, costs and
/// two machines.
pub fn all_kinds(kernel: &str, preemption: &str, worse: f64) -> LoadedRun {
    let mut run = standard(kernel, preemption, 1.0);
    run.run.cells.truncate(1);
    run.cells.truncate(1);
    let deadline = run.run.plan.deadline_ns;
    with_legs(latency(&mut run.run.cells[0]), &mut run.cells[0], deadline);
    run.run.cells[0].counters = vec![
        counter("lost events", "events that the trace buffer dropped", 3, Tells::Loss),
        counter("overruns", "buffers that came too late", 0, Tells::Loss),
        counter("wake-ups", "of the handler's thread", 15_000, Tells::Nothing),
    ];
    let costs = [
        cost("lat.syscall", Unit::Ns, Some(118.2 * worse), Some(CostEnd::Precise)),
        cost(
            "bw.memory",
            Unit::MegabytesPerSecond,
            Some(4_321.0 / worse),
            Some(CostEnd::TimeLimit),
        ),
        cost("lat.empty", Unit::Ns, None, Some(CostEnd::NotMeasurable)),
        cost("lat.fork", Unit::Us, None, None),
    ];
    for (number, what) in (1..).zip(costs) {
        let plan = CellPlan {
            subject: Subject::Cost(what.metric.clone()),
            params: BTreeMap::new(),
            load: "hackbench".to_owned(),
            duration_ns: 1_000 * MS,
            samples: None,
            available: false,
        };
        let (state, reason) = match what.end {
            Some(_) => (CellState::Complete, None),
            None => (CellState::Failed, Some("fork: too many processes".to_owned())),
        };
        let (key, dir) = (plan.key(), plan.dir(number));
        let cell = Cell::new(key, dir, plan.load, plan.duration_ns, What::Cost(what));
        run.run.cells.push(Cell { state, reason, ..cell });
        run.cells.push(CellData::default());
    }
    let spec = CellSpec {
        probe: "respond-gpio",
        load: "none",
        seconds: 3,
        interval: MS,
        threads: 1,
        shape: Shape { base: 21_000.0, spread: 900.0, rare: 300, tail: 4_000.0 },
        stall: None,
    };
    let (mut response, data) = cell(&spec, 5, None);
    let side = |role, board: &str| Side {
        role,
        board: board.to_owned(),
        kernel: "6.1.0".to_owned(),
        run_id: None,
    };
    response.what = What::Response(Response {
        sides: vec![side(SideRole::Target, "ebx11"), side(SideRole::Host, "bench")],
        line_ns: Some(87_000),
        latency: latency(&mut response).clone(),
    });
    run.run.cells.push(response);
    run.cells.push(data);
    run
}

/// Adds a leg, which is half of each sample, and an aside in packets.
fn with_legs(latency: &mut Latency, data: &mut CellData, deadline: Option<u64>) {
    let series = |name: &str, meaning: &str, role, unit| Series {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        role,
        unit,
        stats: Stats::default(),
    };
    latency.series = vec![
        series("interrupt", "from the timer's expiry to its handler", Role::Leg, Unit::Ns),
        series("queue", "packets that waited", Role::Aside, Unit::Packets),
    ];
    for thread in &mut data.threads {
        for (number, scale) in [(1, 2), (2, 4_000)] {
            let mut moments = Moments::EMPTY;
            let mut histogram = SignedHistogram::new();
            for outlier in thread.primary().outliers.clone() {
                let value = outlier.latency / scale;
                histogram.record(value);
                moments.merge(&Moments {
                    count: 1,
                    min: value,
                    max: value,
                    max_at: outlier.at,
                    sum: i128::from(value),
                    sum_sq: u128::from(value.unsigned_abs()).pow(2),
                    ..Moments::EMPTY
                });
            }
            let block = Block { thread: 0, series: 1, index: 0, moments, coarse: Vec::new() };
            let series = thread.series_mut(number);
            series.histogram = Some(histogram.sparse());
            series.blocks = vec![block];
        }
    }
    fill(latency, data, deadline);
    latency.helpers =
        vec![Helper { name: "posts to thread 0".to_owned(), placement: placement(1) }];
}

fn counter(name: &str, meaning: &str, total: u64, tells: Tells) -> Counter {
    Counter { name: name.to_owned(), meaning: meaning.to_owned(), total, tells }
}

fn cost(metric: &str, unit: Unit, value: Option<f64>, end: Option<CostEnd>) -> Cost {
    Cost {
        metric: metric.to_owned(),
        meaning: format!("what {metric} times"),
        unit,
        better: if unit == Unit::MegabytesPerSecond { Better::More } else { Better::Less },
        value,
        low: value.map(|value| value * 0.99),
        high: value.map(|value| value * 1.01).or(Some(2.5)),
        confidence: 0.95,
        iterations: 10_000,
        repetitions: value.map_or_else(Vec::new, |value| vec![value * 1.01, value, value * 0.99]),
        spread: value.map(|_| 0.004),
        end,
        placement: placement(1),
        ..Cost::default()
    }
}
