//! How much of the guest's course the observer keeps for the samples that are explained.

use punctual_observer::arguments::RING_DEFAULT;

use super::wanted::Wanted;

/// The largest ring, events: 64 MiB. What a sample needs beyond it is spilled.
const RING_MOST: u64 = 1 << 22;

/// Events before the release: where callers and those who hold something are looked for.
const BEFORE: u64 = 1 << 16;

/// Instructions before the release, likewise.
const INSTRUCTIONS_BEFORE: u64 = 1 << 22;

/// What the observer is told, and how far back its events are kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Arguments of the observer.
    pub(super) arguments: Vec<String>,
    /// Instructions before a sample.
    pub(super) reach: u64,
}

impl Room {
    /// For samples of a board on which an instruction takes so long, ns.
    pub(super) fn of(wanted: &[Wanted], instruction_ns: u64) -> Self {
        let instructions = |sample: &Wanted| sample.recorded.latency_ns / instruction_ns.max(1);
        // At most one event for each instruction: the shortest blocks have one, and what else is an
        // event is rare.
        let events = |sample: &Wanted| instructions(sample).saturating_add(BEFORE);
        let most = wanted.iter().map(events).max().unwrap_or(0);
        let ring = most.clamp(RING_DEFAULT, RING_MOST).next_power_of_two();
        let mut courses: Vec<(u64, u64, u64)> = wanted
            .iter()
            .filter(|sample| events(sample) > ring)
            .map(|sample| (sample.begin, sample.known_from, sample.ordinal))
            .collect();
        courses.sort_unstable();
        let mut apart: Vec<(u64, u64, u64)> = Vec::new();
        for (cell, from, to) in courses {
            match apart.last_mut().filter(|last| last.0 == cell && from <= last.2) {
                Some(last) => last.2 = last.2.max(to),
                None => apart.push((cell, from, to)),
            }
        }
        let kept: Vec<String> =
            apart.iter().map(|(cell, from, to)| format!("{cell}.{from}-{cell}.{to}")).collect();
        let kept = (!kept.is_empty()).then(|| format!("keep={}", kept.join(":")));
        let most = wanted.iter().map(instructions).max().unwrap_or(0);
        Self {
            arguments: [format!("ring={ring}")].into_iter().chain(kept).collect(),
            // Instructions that fault count more than once, and take no time.
            reach: most.saturating_add(most / 4).saturating_add(INSTRUCTIONS_BEFORE),
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::explanation::Chosen;

    use super::super::sample::Recorded;
    use super::*;

    const MS: u64 = 1_000_000;

    fn wanted(begin: u64, known_from: u64, ordinal: u64, latency_ns: u64) -> Wanted {
        let recorded = Recorded { chosen: Chosen::Worst, at_ns: 0, latency_ns, missed: 0 };
        Wanted { cell: 0, begin, ordinal, known_from, recorded }
    }

    #[test]
    fn the_ring_has_room_for_the_latest_and_what_is_longer_is_spilled() {
        let told = |all: &[Wanted]| Room::of(all, 4).arguments;
        assert_eq!(told(&[]), ["ring=1048576"]);
        assert_eq!(told(&[wanted(1, 1, 2, 100_000)]), ["ring=1048576"]);
        assert_eq!(told(&[wanted(1, 1, 2, 5 * MS)]), ["ring=2097152"]);
        // 4.1 million instructions.
        assert_eq!(told(&[wanted(1, 1, 2, 16 * MS)]), ["ring=4194304"]);
        let late = [
            wanted(2, 0, 9, 26 * MS),
            wanted(1, 7, 8, 60 * MS),
            wanted(1, 3, 4, 16 * MS),
            wanted(2, 8, 10, 30 * MS),
            wanted(2, 11, 12, 26 * MS),
        ];
        assert_eq!(told(&late), ["ring=4194304", "keep=1.7-1.8:2.0-2.10:2.11-2.12"]);
        // On a slower board the same is fewer instructions.
        assert_eq!(Room::of(&late, 40).arguments, ["ring=2097152"]);
    }

    #[test]
    fn what_is_kept_reaches_back_beyond_the_release() {
        let reach = Room::of(&[wanted(1, 1, 2, 60 * MS)], 4).reach;
        assert_eq!(reach, 15_000_000 + 3_750_000 + (1 << 22));
    }
}
