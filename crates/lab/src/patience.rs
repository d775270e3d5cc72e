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

/// A guest's last sign of life, and how long the next may take.
#[derive(Debug)]
pub struct Patience {
    most: Duration,
    alive: Passed,
}

impl Patience {
    pub fn of(most: Duration) -> Self {
        Self { most, alive: Passed::default() }
    }

    pub fn sign_of_life(&mut self, at: Passed) {
        self.alive = at;
    }

    /// Why it is over.
    pub fn ended(&self, now: Passed) -> Option<String> {
        let silent = now.since(self.alive);
        let seconds = self.most.as_secs();
        if silent.cpu > self.most {
            return Some(format!(
                "no sign of life for {seconds} s of QEMU's CPU time: the guest hangs (--patience)"
            ));
        }
        (silent.wall > self.most && silent.cpu < silent.wall / NOTHING).then(|| {
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

    #[test]
    fn a_stopped_emulator_hangs_in_the_host_s_time() {
        let mut patience = Patience::of(Duration::from_secs(120));
        patience.sign_of_life(passed(50, 40));
        assert_eq!(patience.ended(passed(170, 40)), None);
        assert!(patience.ended(passed(171, 40)).unwrap().contains("used no CPU time"));
    }
}
