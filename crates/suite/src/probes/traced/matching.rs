//! How many samples of each thread have legs.

use std::collections::BTreeMap;

use punctual_core::schema::{Condition, NO_LEGS};

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
}

impl Matching {
    /// Counts a sample of which the trace had so many events.
    pub(super) fn add(&mut self, number: u32, steps: usize, is_matched: bool) {
        let of_thread = self.0.entry(number).or_default();
        of_thread.samples += 1;
        of_thread.matched += u64::from(is_matched);
        of_thread.steps += steps as u64;
    }

    /// How many samples have no legs.
    pub(super) fn unmatched(&self) -> u64 {
        self.0.values().map(|of_thread| of_thread.samples - of_thread.matched).sum()
    }

    /// Which threads have samples and no legs at all, by reason.
    pub(super) fn without(&self, threads: &[FollowedThread]) -> Vec<Condition> {
        let mut by_reason: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for thread in threads {
            let Some(found) = self.0.get(&thread.number).filter(|found| found.matched == 0) else {
                continue;
            };
            let why = match &thread.id {
                Err(why) => why.clone(),
                Ok(_) if found.steps == 0 => "the trace has no events of this thread".to_owned(),
                Ok(_) => "in the trace no wake-up of this thread is whole".to_owned(),
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
        ];
        let mut matching = Matching::default();
        matching.add(0, 3, true);
        matching.add(0, 0, false);
        matching.add(1, 0, false);
        matching.add(1, 0, false);
        matching.add(2, 1, false);
        matching.add(3, 0, false);
        matching.add(5, 0, false);
        assert_eq!(matching.unmatched(), 6);
        let said = matching.without(&threads);
        assert!(said.iter().all(|condition| condition.id == NO_LEGS));
        let texts: Vec<_> = said.iter().map(|condition| &*condition.text).collect();
        let unknown = [
            "thread 2: in the trace no wake-up of this thread is whole: its legs are not known",
            "thread 1 and 1 more: the trace has no events of this thread: its legs are not known",
            "thread 3: without a line: its legs are not known",
        ];
        assert_eq!(texts, unknown);
    }
}
