//! What follows from the rest of a cost's cell, for programs that read no more of it.

use super::cell::{Cell, CellState, What};
use super::cost::{Cost, CostEnd, CostStatus};

impl Cell {
    /// Writes `status` and `note` of a cost, which follow from the rest.
    pub fn settle_cost(&mut self) {
        if let What::Cost(cost) = &mut self.what {
            cost.status = status_of(cost, self.state);
            cost.note = self.reason.clone().or_else(|| remark(cost));
        }
    }
}

fn status_of(cost: &Cost, state: CellState) -> CostStatus {
    match state {
        CellState::Skipped => CostStatus::Skipped,
        CellState::Failed => CostStatus::Failed,
        CellState::Interrupted => CostStatus::Interrupted,
        CellState::Pending | CellState::Running => CostStatus::Pending,
        CellState::Complete | CellState::Recovered => match (cost.end, cost.value) {
            (Some(CostEnd::NotMeasurable), _) => CostStatus::NotMeasurable,
            (_, Some(_)) => CostStatus::Measured,
            (_, None) => CostStatus::Pending,
        },
    }
}

/// What is to be said of repetitions that ended by themselves.
fn remark(cost: &Cost) -> Option<String> {
    match cost.end? {
        CostEnd::Precise => None,
        CostEnd::NotMeasurable => Some(
            "not measurable: it cannot be told from the clock's resolution and from what is \
             subtracted"
                .to_owned(),
        ),
        CostEnd::TimeLimit => Some(match cost.half_width() {
            Some(half) => format!("time limit: interval +/- {:.1} %", half * 100.0),
            None => match cost.repetitions.len() {
                1 => "time limit: 1 repetition, too few for an interval".to_owned(),
                some => format!("time limit: {some} repetitions, too few for an interval"),
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(state: CellState, reason: Option<&str>, cost: Cost) -> (CostStatus, Option<String>) {
        let what = What::Cost(cost);
        let mut cell = Cell::new("k".into(), "k".into(), "none".into(), 1, what);
        (cell.state, cell.reason) = (state, reason.map(str::to_owned));
        cell.settle_cost();
        let cost = cell.cost().unwrap();
        (cost.status, cost.note.clone())
    }

    #[test]
    fn a_status_says_how_it_came_out_and_a_note_why() {
        let of = |end, value| Cost { end: Some(end), value, ..Cost::default() };
        let precise = of(CostEnd::Precise, Some(2.0));
        let done = CellState::Complete;
        assert_eq!(settled(done, None, precise.clone()), (CostStatus::Measured, None));
        let wide = Cost { low: Some(1.9), high: Some(2.1), ..of(CostEnd::TimeLimit, Some(2.0)) };
        let note = Some("time limit: interval +/- 5.0 %".to_owned());
        assert_eq!(settled(done, None, wide), (CostStatus::Measured, note));
        let few = Cost { repetitions: vec![2.0; 3], ..of(CostEnd::TimeLimit, Some(2.0)) };
        let note = Some("time limit: 3 repetitions, too few for an interval".to_owned());
        assert_eq!(settled(done, None, few), (CostStatus::Measured, note));
        let none = settled(done, None, of(CostEnd::NotMeasurable, None));
        assert!(none.0 == CostStatus::NotMeasurable && none.1.unwrap().contains("resolution"));
        for (state, status) in [
            (CellState::Skipped, CostStatus::Skipped),
            (CellState::Failed, CostStatus::Failed),
            (CellState::Interrupted, CostStatus::Interrupted),
            (CellState::Pending, CostStatus::Pending),
        ] {
            let why = Some("why".to_owned());
            assert_eq!(settled(state, Some("why"), precise.clone()), (status, why));
        }
    }

    #[test]
    fn names_of_statuses_are_those_recorded() {
        for status in [
            CostStatus::Pending,
            CostStatus::Measured,
            CostStatus::NotMeasurable,
            CostStatus::Skipped,
            CostStatus::Failed,
            CostStatus::Interrupted,
        ] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.name());
        }
    }
}
