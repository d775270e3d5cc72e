//! How many samples of each thread have legs.

use std::collections::BTreeMap;

use punctual_core::schema::{Condition, NO_LEGS};
use punctual_core::units::grouped;

use super::super::followed::FollowedThread;

/// By number of the thread.
#[derive(Debug, Default)]
pub(super) struct Matching(BTreeMap<u32, OfThread>);

#[derive(Debug, Default, Clone, Copy)]
struct OfThread {
    samples: u64,
    matched: u64,
    /// Events of the thread.
    steps: u64,
    /// Samples before which it was woken and, by the trace, no CPU was switched to it.
    not_switched: u64,
}

impl OfThread {
    fn unmatched(&self) -> u64 {
        self.samples - self.matched
    }

    /// Whether most samples have no legs: those that have some do not stand for the others.
    fn is_without(&self) -> bool {
        self.unmatched() > self.matched
    }

    /// What is missing, as far as it was seen.
    fn missing(&self) -> String {
        if self.steps == 0 {
            return "the trace has no events of this thread".to_owned();
        }
        let missing = match 2 * self.not_switched > self.unmatched() {
            true => "has no switch of a CPU to this thread",
            false => "has not all steps of its wake-ups",
        };
        if self.matched == 0 {
            return format!("the trace {missing}");
        }
        let [unmatched, samples] = [self.unmatched(), self.samples].map(grouped);
        format!("of {unmatched} of {samples} activations the trace {missing}")
    }
}

impl Matching {
    /// Counts a sample before which, by the trace, the thread was woken and was given a CPU so often.
    pub(super) fn add(&mut self, number: u32, [woken, switched]: [usize; 2], is_matched: bool) {
        let of_thread = self.0.entry(number).or_default();
        of_thread.samples += 1;
        of_thread.matched += u64::from(is_matched);
        of_thread.steps += (woken + switched) as u64;
        of_thread.not_switched += u64::from(woken > 0 && switched == 0);
    }

    /// How many samples have no legs.
    pub(super) fn unmatched(&self) -> u64 {
        self.0.values().map(OfThread::unmatched).sum()
    }

    /// Which threads have samples of which most have no legs, by reason.
    pub(super) fn without(&self, threads: &[FollowedThread]) -> Vec<Condition> {
        let mut by_reason: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for thread in threads {
            let Some(found) = self.0.get(&thread.number).filter(|found| found.is_without()) else {
                continue;
            };
            let why = match &thread.id {
                Err(why) => why.clone(),
                Ok(_) => found.missing(),
            };
            by_reason.entry(why).or_default().push(thread.number);
        }
        let said = |(why, numbers): (String, Vec<u32>)| {
            let of = match numbers[..] {
                [one] => format!("thread {one}"),
                [first, ..] => format!("thread {first} and {} more", numbers.len() - 1),
                [] => String::new(),
            };
            let text = format!("{of}: {why}: its legs are not known");
            Condition { id: NO_LEGS.to_owned(), text }
        };
        by_reason.into_iter().map(said).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(number: u32, id: Result<i32, &str>) -> FollowedThread {
        FollowedThread { number, id: id.map_err(str::to_owned) }
    }

    #[test]
    fn a_thread_without_legs_is_named_with_what_was_seen_and_no_other_reason() {
        let threads = [
            thread(0, Ok(70)),
            thread(1, Ok(71)),
            thread(2, Ok(72)),
            thread(3, Err("without a line")),
            thread(4, Ok(74)),
            thread(5, Ok(75)),
            thread(6, Ok(76)),
        ];
        let mut matching = Matching::default();
        matching.add(0, [1, 2], true);
        matching.add(0, [0, 0], false);
        matching.add(1, [0, 0], false);
        matching.add(1, [0, 0], false);
        matching.add(2, [0, 1], false);
        matching.add(3, [0, 0], false);
        matching.add(5, [0, 0], false);
        matching.add(6, [1, 1], true);
        (0..1_999).for_each(|_| matching.add(6, [1, 0], false));
        assert_eq!(matching.unmatched(), 6 + 1_999);
        let said = matching.without(&threads);
        assert!(said.iter().all(|condition| condition.id == NO_LEGS));
        let texts: Vec<_> = said.iter().map(|condition| &*condition.text).collect();
        let unknown = [
            "thread 6: of 1,999 of 2,000 activations the trace has no switch of a CPU to this thread: \
             its legs are not known",
            "thread 1 and 1 more: the trace has no events of this thread: its legs are not known",
            "thread 2: the trace has not all steps of its wake-ups: its legs are not known",
            "thread 3: without a line: its legs are not known",
        ];
        assert_eq!(texts, unknown);
    }
}
