//! CPU time from `/proc/stat`, cheap enough to read once a second.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::root::FactsRoot;

/// The first line has at most ten numbers of twenty digits, and five letters.
const FIRST_LINE_BYTES: usize = 256;

/// CPU time since boot, in ticks of 1/`USER_HZ` (10 ms on all architectures that punctual
/// supports). `user` and `nice` include guest time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks {
    /// user + nice + system + irq + softirq.
    pub worked: u64,
    /// idle + iowait.
    pub idle: u64,
    /// Time in which a virtual CPU had work but the hypervisor ran others.
    pub steal: u64,
}

/// Time that the hypervisor gave to others while a virtual CPU had work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stolen {
    /// The sum over all CPUs, ns, in steps of 10 ms.
    pub ns: u64,
    /// The same in millionths of one CPU's time.
    pub of_a_cpu: u64,
}

/// Shares of the time between two readings, in thousandths. Two CPUs have 200 ticks per
/// second, so a share over one second is exact to 5.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Not idle: working or stolen.
    pub busy: u32,
    /// Given to others by the hypervisor; part of `busy`.
    pub steal: u32,
}

impl Ticks {
    /// Reads the numbers after the name of a `cpu` line. Kernels before 2.6.11 have no steal
    /// column; it is then 0.
    fn parse(numbers: &[u8]) -> Option<Self> {
        let mut columns = [0u64; 8];
        let mut filled = 0;
        let words = numbers.split(|&byte| byte == b' ');
        for word in words.filter(|word| !word.is_empty()).take(columns.len()) {
            columns[filled] = decimal(word)?;
            filled += 1;
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal] = columns;
        (filled >= 4).then(|| Self {
            worked: [nice, system, irq, softirq]
                .iter()
                .fold(user, |sum, &ticks| sum.wrapping_add(ticks)),
            idle: idle.wrapping_add(iowait),
            steal,
        })
    }

    /// What was stolen from this reading to a later one; `None` if no time has passed.
    #[must_use]
    pub fn stolen_until(&self, later: &Self, elapsed: Duration) -> Option<Stolen> {
        const TICK_NS: u64 = 10_000_000;
        let ns = later.steal.saturating_sub(self.steal).saturating_mul(TICK_NS);
        let of_a_cpu = (u128::from(ns) * 1_000_000).checked_div(elapsed.as_nanos())?;
        Some(Stolen { ns, of_a_cpu: u64::try_from(of_a_cpu).unwrap_or(u64::MAX) })
    }

    /// Shares of the time from this reading to a later one; `None` if no tick has passed. A
    /// counter that went back (iowait does, and all do when a CPU goes offline) counts as
    /// unchanged.
    #[must_use]
    pub fn until(&self, later: &Self) -> Option<Share> {
        let worked = later.worked.saturating_sub(self.worked);
        let idle = later.idle.saturating_sub(self.idle);
        let steal = later.steal.saturating_sub(self.steal);
        let all = u128::from(worked) + u128::from(idle) + u128::from(steal);
        let thousandths = |ticks: u128| {
            let rounded = (ticks * 1000 + all / 2).checked_div(all)?;
            u32::try_from(rounded).ok()
        };
        Some(Share {
            busy: thousandths(u128::from(worked) + u128::from(steal))?,
            steal: thousandths(u128::from(steal))?,
        })
    }
}

fn decimal(word: &[u8]) -> Option<u64> {
    word.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// `/proc/stat`, kept open.
#[derive(Debug)]
pub struct CpuTimes {
    file: File,
}

impl CpuTimes {
    /// Opens `/proc/stat` below the root folder.
    ///
    /// # Errors
    /// The errno of `open(2)`.
    pub fn open(root: &FactsRoot) -> io::Result<Self> {
        let file = File::open(root.path("proc/stat"))?;
        Ok(Self { file })
    }

    /// The sum over all CPUs. Allocates nothing; one system call.
    ///
    /// # Errors
    /// The errno of `pread(2)`, or `InvalidData` if the first line is not the sum over all CPUs.
    pub fn read(&self) -> io::Result<Ticks> {
        let mut buffer = [0; FIRST_LINE_BYTES];
        let length = self.file.read_at(&mut buffer, 0)?;
        buffer[..length]
            .split(|&byte| byte == b'\n')
            .next()
            .and_then(|line| Ticks::parse(line.strip_prefix(b"cpu ")?))
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// The time of each CPU that is online.
#[must_use]
pub fn per_cpu(root: &FactsRoot) -> BTreeMap<u32, Ticks> {
    let text = root.text("proc/stat").unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let (cpu, numbers) = line.strip_prefix("cpu")?.split_once(' ')?;
            Some((cpu.parse().ok()?, Ticks::parse(numbers.as_bytes())?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_old_and_new_kernels() {
        let old = Ticks::parse(b" 10 1 5 100").unwrap();
        assert_eq!((old.worked, old.idle, old.steal), (16, 100, 0));
        let new = Ticks::parse(b" 16802 2 5290 285317 1103 4 103 58 7 9").unwrap();
        assert_eq!(new.worked, 16_802 + 2 + 5_290 + 4 + 103);
        assert_eq!((new.idle, new.steal), (285_317 + 1_103, 58));
        for damaged in ["", "1 2 3", "1 2 x 4", "1 2 3 99999999999999999999"] {
            assert_eq!(Ticks::parse(damaged.as_bytes()), None, "{damaged}");
        }
    }

    #[test]
    fn shares_between_readings() {
        let ticks = |worked, idle, steal| Ticks { worked, idle, steal };
        let share = ticks(100, 100, 0).until(&ticks(150, 240, 10)).unwrap();
        assert_eq!((share.busy, share.steal), (300, 50));
        assert_eq!(ticks(5, 5, 5).until(&ticks(5, 5, 5)), None);
        // iowait went back: the rest still adds up to the whole.
        let share = ticks(0, 100, 0).until(&ticks(10, 90, 0)).unwrap();
        assert_eq!(share.busy, 1000);
        let most = ticks(u64::MAX, 0, u64::MAX);
        assert_eq!(ticks(0, 0, 0).until(&most).unwrap().steal, 500);
    }

    #[test]
    fn stolen_time_is_that_of_one_cpu() {
        let ticks = |steal| Ticks { worked: 1, idle: 1, steal };
        let second = Duration::from_secs(1);
        let stolen = ticks(5).stolen_until(&ticks(7), second).unwrap();
        assert_eq!(stolen, Stolen { ns: 20_000_000, of_a_cpu: 20_000 });
        assert_eq!(ticks(5).stolen_until(&ticks(4), second).unwrap().ns, 0);
        assert_eq!(ticks(5).stolen_until(&ticks(7), Duration::ZERO), None);
    }

    #[test]
    fn this_machine_s_time_moves_on() {
        let times = CpuTimes::open(&FactsRoot::live()).unwrap();
        let first = times.read().unwrap();
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 100 {
            std::hint::spin_loop();
        }
        let share = first.until(&times.read().unwrap()).unwrap();
        assert!((1..=1000).contains(&share.busy), "{share:?}");
        assert!(!per_cpu(&FactsRoot::live()).is_empty());
    }
}
