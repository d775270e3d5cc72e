//! What costs are compared of: the kernels, or the runs of one kernel.

use punctual_core::compare::{Comparison, CostRow, MatchedCost, ToFirst};
use punctual_core::schema::CellState;

use crate::words;
use crate::words::CostHead;

/// A kernel, or a run.
pub(crate) struct Side {
    /// What it is called.
    pub name: String,
    /// Its runs.
    runs: Vec<usize>,
    /// Index of the kernel, if it is one.
    group: Option<usize>,
}

/// All of them, the first one first.
pub(crate) fn of(comparison: &Comparison) -> Vec<Side> {
    let names = words::cost_sides(comparison);
    let side = |(number, name): (usize, String)| {
        let group = comparison.groups.get(number).filter(|_| comparison.has_costs_by_kernel());
        Side {
            name,
            runs: group.map_or_else(|| vec![number], |group| group.runs.clone()),
            group: group.map(|_| number),
        }
    };
    names.into_iter().enumerate().map(side).collect()
}

impl Side {
    fn rows<'a>(&'a self, cost: &'a MatchedCost) -> impl Iterator<Item = &'a CostRow> {
        cost.rows.iter().filter(|row| self.runs.contains(&row.run))
    }

    /// Its value: of a kernel the median over its runs. Empty if nothing was measured.
    pub fn value(&self, cost: &MatchedCost, head: &CostHead) -> String {
        let spread = self.group.and_then(|group| cost.spreads.get(group));
        if let Some(value) = spread.and_then(|spread| spread.value) {
            return head.value(cost.unit, value.median);
        }
        // Of the bounds of several runs the highest holds for all.
        let bound = self.rows(cost).filter(|row| row.is_measured());
        let bound = bound.max_by(|a, b| f64::total_cmp(&top(a), &top(b)));
        bound.map_or_else(String::new, |row| {
            head.cost(cost.unit, row.end, row.value, (row.low, row.high))
        })
    }

    /// Instructions that its value stands for; empty without any.
    pub fn instructions(&self, cost: &MatchedCost) -> String {
        let count = match self.group {
            Some(group) => cost.spreads.get(group).and_then(|s| Some(s.instructions?.median)),
            None => self.rows(cost).find_map(|row| row.instructions),
        };
        count.map_or_else(String::new, words::digits)
    }

    /// How it stands to the first.
    pub fn to_first(&self, cost: &MatchedCost) -> ToFirst {
        let found = match self.group {
            Some(group) => cost.spreads.get(group).map(|spread| spread.to_first),
            None => self.rows(cost).next().map(|row| row.to_first),
        };
        found.unwrap_or_default()
    }

    /// Why it has no value.
    fn absence(&self, cost: &MatchedCost) -> Option<String> {
        let mut rows = self.rows(cost).peekable();
        if rows.peek().is_none() {
            return Some("not asked for".to_owned());
        }
        let rows: Vec<_> = rows.collect();
        if rows.iter().any(|row| row.is_measured()) {
            return None;
        }
        let reason = rows.iter().find_map(|row| row.reason.as_deref());
        Some(reason.map_or_else(
            || match rows.first().map(|row| row.state) {
                Some(CellState::Skipped) => "skipped".to_owned(),
                _ => "not measured to its end".to_owned(),
            },
            |reason| words::clean(reason).into_owned(),
        ))
    }
}

fn top(row: &CostRow) -> f64 {
    row.high.or(row.value).unwrap_or(f64::NEG_INFINITY)
}

/// Why cells of the table are blank, each reason once: `blank: exec proc of PREEMPT_RT: no memory`.
pub(crate) fn absences(comparison: &Comparison, sides: &[Side]) -> Vec<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for side in sides {
        for cost in &comparison.costs {
            let Some(reason) = side.absence(cost) else { continue };
            let reason = format!("of {}: {reason}", side.name);
            let name = words::clean(cost.name()).into_owned();
            match found.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(name),
                None => found.push((reason, vec![name])),
            }
        }
    }
    let note =
        |(reason, names): (String, Vec<String>)| format!("blank: {} {reason}", names.join(", "));
    found.into_iter().map(note).collect()
}

/// How values and ratios are to be read.
pub(crate) fn about(comparison: &Comparison) -> String {
    let how = if comparison.is_replicated() {
        words::COST_RATIOS_OF_KERNELS
    } else {
        words::COST_RATIOS_OF_RUNS
    };
    let has_ratios =
        comparison.costs.iter().flat_map(|cost| &cost.rows).any(|row| row.to_first.ratio.is_some());
    if has_ratios { format!("{} {how}", words::COST_RATIOS) } else { how.to_owned() }
}
