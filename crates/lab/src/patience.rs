//! How long a guest may be silent. A busy host makes a good guest slow, so silence is counted
//! in the time for which QEMU itself used a CPU; in the host's time only while it uses none.

use std::time::Duration;

/// Below this share of a CPU QEMU does nothing: on a board whose idle time is skipped there is
/// always something to execute.
const NOTHING: u32 = 1_000;

/// Time that has passed for a guest: that of the host, and what QEMU used of its CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    pub wall: Duration,
    pub cpu: Duration,
}

impl Passed {
    fn since(self, earlier: Self) -> Self {
        Self {
            wall: self.wall.saturating_sub(earlier.wall),
            cpu: self.cpu.saturating_sub(earlier.cpu),
        }
    }
}

/// Whoever does not look for so long was stopped, perhaps together with QEMU, as by Ctrl-Z.
const BLIND: Duration = Duration::from_secs(10);

/// A guest's last sign of life, and how long the next may take.
#[derive(Debug)]
pub struct Patience {
    most: Duration,
    alive: Passed,
    /// When QEMU was last seen to do something.
    busy: Passed,
    looked: Duration,
}

impl Patience {
    pub fn of(most: Duration) -> Self {
        Self { most, alive: Passed::default(), busy: Passed::default(), looked: Duration::ZERO }
    }

    pub fn sign_of_life(&mut self, at: Passed) {
        (self.alive, self.busy) = (at, at);
    }

    /// Why it is over.
    pub fn ended(&mut self, now: Passed) -> Option<String> {
        let was_blind = now.wall.saturating_sub(self.looked) > BLIND;
        self.looked = now.wall;
        let quiet = now.since(self.busy);
        if was_blind || quiet.cpu > quiet.wall / NOTHING {
            self.busy = now;
        }
        let seconds = self.most.as_secs();
        if now.since(self.alive).cpu > self.most {
            return Some(format!(
                "no sign of life for {seconds} s of QEMU's CPU time: the guest hangs (--patience)"
            ));
        }
        (now.since(self.busy).wall > self.most).then(|| {
            format!(
                "no sign of life for {seconds} s, in which QEMU used no CPU time: it hangs or is \
                 stopped (--patience)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(wall: u64, cpu: u64) -> Passed {
        Passed { wall: Duration::from_secs(wall), cpu: Duration::from_secs(cpu) }
    }

    #[test]
    fn a_busy_host_does_not_make_a_guest_hang() {
        let mut patience = Patience::of(Duration::from_secs(120));
        assert_eq!(patience.ended(passed(4_000, 119)), None, "3 % of a CPU");
        assert!(patience.ended(passed(4_000, 121)).unwrap().contains("120 s of QEMU's CPU time"));
        patience.sign_of_life(passed(4_000, 119));
        assert_eq!(patience.ended(passed(8_000, 230)), None);
    }

    /// When it is over, looked at every second, with so much CPU time used by then, seconds.
    fn over(
        patience: &mut Patience,
        seconds: std::ops::Range<u64>,
        cpu: impl Fn(u64) -> u64,
    ) -> Option<u64> {
        seconds.into_iter().find(|second| patience.ended(passed(*second, cpu(*second))).is_some())
    }

    #[test]
    fn a_stopped_emulator_hangs_in_the_host_s_time() {
        let mut patience = Patience::of(Duration::from_secs(120));
        patience.sign_of_life(passed(50, 40));
        // However long it was at work before.
        assert_eq!(over(&mut patience, 50..1_000, |second| second.min(100)), Some(221));
        assert!(patience.ended(passed(222, 100)).unwrap().contains("used no CPU time"));
    }

    #[test]
    fn what_nobody_has_looked_at_is_not_silent() {
        let mut patience = Patience::of(Duration::from_secs(120));
        assert_eq!(over(&mut patience, 0..60, |second| second), None);
        // Both are stopped for an hour.
        assert_eq!(over(&mut patience, 3_660..3_700, |_| 60), None);
        assert_eq!(over(&mut patience, 3_700..4_000, |_| 60), Some(3_781));
    }
}
