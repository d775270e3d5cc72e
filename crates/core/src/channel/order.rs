//! The order: what the other side is to measure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fixed;
use crate::aim::Aim;
use crate::dither::Dither;
use crate::plan::{CellPlan, Plan, Subject};

/// What the other side is to measure: what its numbers depend on, and nothing else. On a virtual
/// board each byte of it affects them, so names, labels and all that judges stay with the side that
/// orders, and every number is as wide as any other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The cells, in order.
    pub cells: Vec<OrderedCell>,
    /// Warm-up before each cell, ns; 0 for none.
    #[serde(with = "fixed")]
    pub warmup_ns: u64,
    /// What is later is counted while it is measured, ns.
    #[serde(with = "fixed::or_none")]
    pub deadline_ns: Option<u64>,
    /// Every sample above this is kept, ns.
    #[serde(with = "fixed::or_none")]
    pub threshold_ns: Option<u64>,
    /// The virtual board that the other side is, if it is one.
    #[serde(default)]
    pub virtual_board: Option<VirtualBoard>,
    /// Delay of the first release, ns.
    #[serde(with = "fixed")]
    pub phase_ns: u64,
    /// By how much each release is moved.
    #[serde(default)]
    pub dither: Option<Dither>,
    /// The release that is moved to a given instant and ends the run, or none. Its text always has
    /// the same length.
    pub aim: Aim,
    /// Longest time that all may take, ns of the measuring side's time.
    #[serde(with = "fixed")]
    pub limit_ns: u64,
}

/// One cell of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderedCell {
    /// What is measured.
    #[serde(flatten)]
    pub subject: Subject,
    /// Those of its parameters that do not have their default values.
    pub params: BTreeMap<String, String>,
    /// The load; `a+b` if loads run together.
    pub load: String,
    /// How long to measure, ns.
    #[serde(with = "fixed")]
    pub duration_ns: u64,
    /// End after this many samples per thread, if that comes first.
    #[serde(with = "fixed::or_none")]
    pub samples: Option<u64>,
}

impl OrderedCell {
    fn of(plan: &CellPlan) -> Self {
        // No `..`: what is added to a plan is measured with, or judges, and must be decided here.
        let CellPlan { subject, params, load, duration_ns, samples, available: _ } = plan.clone();
        Self { subject, params, load, duration_ns, samples }
    }

    fn plan(&self) -> CellPlan {
        let Self { subject, params, load, duration_ns, samples } = self.clone();
        CellPlan { subject, params, load, duration_ns, samples, available: false }
    }
}

/// What the meaning of a virtual board's numbers depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualBoard {
    /// Instructions per microsecond of the board's time; `None` if time is not counted and the
    /// guest runs freely.
    #[serde(with = "fixed::or_none")]
    pub mips: Option<u64>,
    /// Number of CPUs.
    #[serde(with = "fixed")]
    pub cpus: u64,
    /// The longest time for which one of its CPUs waits for its turn, ns, once the board has
    /// measured it; part of no order.
    #[serde(skip)]
    pub turn_wait_ns: Option<u64>,
}

impl VirtualBoard {
    /// Whether its CPUs execute one after the other, so that a latency may include turns of
    /// others: the board's time goes on while a CPU waits.
    #[must_use]
    pub fn takes_turns(&self) -> bool {
        self.mips.is_some() && self.cpus > 1
    }
}

impl Order {
    /// The order of a plan whose cells are in their canonical form, without an aim, a phase or
    /// moved releases, for a side that is no virtual board.
    #[must_use]
    pub fn of(plan: &Plan, limit_ns: u64) -> Self {
        Self {
            cells: plan.cells.iter().map(OrderedCell::of).collect(),
            warmup_ns: plan.warmup_ns,
            deadline_ns: plan.deadline_ns,
            threshold_ns: None,
            virtual_board: None,
            phase_ns: 0,
            dither: None,
            aim: Aim::NONE,
            limit_ns,
        }
    }

    /// What the side that measures knows of the plan.
    #[must_use]
    pub fn plan(&self) -> Plan {
        Plan {
            deadline_ns: self.deadline_ns,
            warmup_ns: self.warmup_ns,
            cells: self.cells.iter().map(OrderedCell::plan).collect(),
            ..Plan::new(NAME)
        }
    }
}

/// Name of the plan of an order.
const NAME: &str = "order";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preemption::Model;
    use crate::rate::Rate;
    use serde_json::{from_str, to_string, to_value};

    const PLAN: &str =
        "name = \"x\"\n[[cell]]\nprobe = \"wakeup:interval=2ms\"\nload = [\"none\"]\n";

    fn order(aim: Aim) -> Order {
        Order {
            virtual_board: Some(VirtualBoard { mips: Some(250), cpus: 1, turn_wait_ns: None }),
            dither: Some(Dither::of_seed(1)),
            aim,
            ..Order::of(&Plan::from_toml(PLAN).unwrap(), 1)
        }
    }

    #[test]
    fn an_order_is_as_long_whatever_it_is_aimed_at() {
        let none = to_string(&order(Aim::NONE)).unwrap();
        assert_eq!(from_str::<Order>(&none).unwrap(), order(Aim::NONE));
        for (cell, release, at_ns) in
            [(0, 1, 0), (2, 1_491, 1_493_810_000), (u32::MAX, u64::MAX, u64::MAX)]
        {
            let aimed = order(Aim { cell, release, at_ns });
            let text = to_string(&aimed).unwrap();
            assert_eq!((text.len(), from_str::<Order>(&text).unwrap()), (none.len(), aimed));
        }
    }

    #[test]
    fn an_order_is_as_long_whatever_its_numbers_are() {
        let one = order(Aim::NONE);
        let mut other = Order {
            warmup_ns: 0,
            deadline_ns: Some(1),
            threshold_ns: Some(u64::MAX - 1),
            virtual_board: Some(VirtualBoard { mips: None, cpus: 4, turn_wait_ns: Some(7) }),
            phase_ns: 618_034,
            limit_ns: u64::MAX,
            ..one.clone()
        };
        other.cells[0].duration_ns = 1;
        other.cells[0].samples = Some(1_000);
        let [one, text] = [&one, &other].map(|order| to_string(order).unwrap());
        assert_eq!(one.len(), text.len(), "{one}\n{text}");
        let read: Order = from_str(&text).unwrap();
        other.virtual_board.as_mut().unwrap().turn_wait_ns = None;
        assert_eq!(read, other);
    }

    #[test]
    fn an_order_has_nothing_that_only_judges_or_names() {
        let plan = Plan::from_toml(PLAN).unwrap();
        let mut renamed = Plan {
            name: "y, variant z".to_owned(),
            variant: Some("z".to_owned()),
            citation: Some("a paper".to_owned()),
            kernels: vec![Model::Rt],
            episodes: Rate::of_per_second(1e-3).unwrap(),
            tolerate_episodes: Some(Rate::SIX_A_MINUTE),
            tolerate: Some(0.5),
            probability: Some(1e-6),
            singly: true,
            confidence: 0.5,
            ..plan.clone()
        };
        renamed.cells[0].available = true;
        assert_eq!(Order::of(&renamed, 1), Order::of(&plan, 1));
        let known = Order::of(&renamed, 1).plan();
        assert_eq!(
            Order::of(&known, 1),
            Order::of(&plan, 1),
            "what is measured with comes through"
        );
        // The deadline does: what is later is counted while it is measured.
        let judged = Plan { deadline_ns: Some(1_000_000), ..plan.clone() };
        assert_ne!(Order::of(&judged, 1), Order::of(&plan, 1));
    }

    #[test]
    fn a_damaged_order_is_refused() {
        let whole = to_value(order(Aim::NONE)).unwrap();
        for (key, value, says) in [
            ("aim", "00000000.0000000000000000.000000000000000x", "aim: must be three numbers"),
            ("warmup_ns", "12", "must have 20 digits"),
            ("limit_ns", "99999999999999999999", "must have 20 digits"),
            ("phase_ns", "+0000000000000000001", "must have 20 digits"),
        ] {
            let mut json = whole.clone();
            json[key] = value.into();
            let error = from_str::<Order>(&json.to_string()).unwrap_err().to_string();
            assert!(error.contains(says), "{key}: {error}");
        }
    }
}
