//! The worst samples of a thread.

use punctual_core::block::Outlier;

use super::WORST;

/// The worst samples; once there are [`WORST`], a heap with the smallest first.
#[derive(Debug)]
pub(super) struct Worst {
    pub(super) kept: Vec<Outlier>,
    /// The smallest of them; only larger samples are inserted.
    pub(super) floor: i64,
}

impl Worst {
    pub(super) fn new() -> Self {
        Self { kept: Vec::with_capacity(WORST), floor: i64::MIN }
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.floor = i64::MIN;
    }

    #[cold]
    #[inline(never)]
    pub(super) fn insert(&mut self, at: u64, latency: i64) {
        let sample = Outlier { at, latency };
        if self.kept.len() < WORST {
            self.kept.push(sample);
            if self.kept.len() < WORST {
                return;
            }
            // In ascending order it is already a heap.
            self.kept.sort_unstable_by_key(|kept| kept.latency);
        } else {
            self.replace_least(sample);
        }
        self.floor = self.kept[0].latency;
    }

    /// Replaces the smallest sample and sifts the new one down to its place.
    fn replace_least(&mut self, sample: Outlier) {
        let mut place = 0;
        while let Some(mut below) = (2 * place + 1 < WORST).then_some(2 * place + 1) {
            if below + 1 < WORST && self.kept[below + 1].latency < self.kept[below].latency {
                below += 1;
            }
            if sample.latency <= self.kept[below].latency {
                break;
            }
            self.kept[place] = self.kept[below];
            place = below;
        }
        self.kept[place] = sample;
    }
}
