//! The order: what the other side is to measure.

use serde::{Deserialize, Serialize};

use crate::aim::Aim;
use crate::dither::Dither;
use crate::plan::Plan;

/// What the other side is to measure. It contains everything that its numbers depend on and
/// nothing else, because on a virtual board each of its bytes affects them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The plan to run.
    pub plan: Plan,
    /// Name of the board for the record.
    pub board: String,
    /// The virtual board that the other side is, if it is one.
    #[serde(default)]
    pub virtual_board: Option<VirtualBoard>,
    /// Name of the group of runs that this one belongs to; `None` if the ordering side records
    /// that.
    #[serde(default)]
    pub group: Option<String>,
    /// Number of the run within its group, from 0.
    #[serde(default)]
    pub replicate: Option<u32>,
    /// Delay of the first release, ns.
    #[serde(default)]
    pub phase_ns: u64,
    /// By how much each release is moved.
    #[serde(default)]
    pub dither: Option<Dither>,
    /// The release that is moved to a given instant and ends the run, or none. Its text always has
    /// the same length.
    #[serde(default)]
    pub aim: Aim,
    /// Longest time that the plan may take, ns of the measuring side's time.
    pub limit_ns: u64,
    /// SHA-256 of the measuring program, hexadecimal, if the ordering side knows it: the other
    /// side then need not compute it.
    #[serde(default)]
    pub tool_sha256: Option<String>,
}

/// What the meaning of a virtual board's numbers depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualBoard {
    /// Instructions per microsecond of the board's time; `None` if time is not counted and the
    /// guest runs freely.
    pub mips: Option<u32>,
    /// Number of CPUs.
    pub cpus: u32,
    /// Why a repeated run may not give the same nanoseconds.
    #[serde(default)]
    pub not_exact: Vec<String>,
    /// The longest time for which one of its CPUs waits for its turn, ns, once the board has
    /// measured it; part of no order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_str, to_string, to_value};

    fn order(aim: Aim) -> Order {
        Order {
            plan: Plan::new("x"),
            board: "virtual-x86_64".to_owned(),
            virtual_board: Some(VirtualBoard::default()),
            group: None,
            replicate: Some(0),
            phase_ns: 0,
            dither: Some(Dither::of_seed(1)),
            aim,
            limit_ns: 1,
            tool_sha256: None,
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
    fn an_order_of_before_is_one_without_an_aim_and_a_damaged_one_is_refused() {
        let mut json = to_value(order(Aim::NONE)).unwrap();
        json["aim"] = "00000000.0000000000000000.000000000000000x".into();
        let error = from_str::<Order>(&json.to_string()).unwrap_err().to_string();
        assert!(error.contains("aim: must be three numbers"), "{error}");
        json.as_object_mut().unwrap().remove("aim");
        assert_eq!(from_str::<Order>(&json.to_string()).unwrap(), order(Aim::NONE));
    }
}
