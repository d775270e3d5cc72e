//! What a load puts on the machine: interrupts, context switches, and how long tasks waited for
//! CPUs, memory and I/O. Cheap enough to read once a second.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use punctual_core::block::Strain;
use punctual_core::schema::{CellStrain, Pressure};

use super::root::FactsRoot;

/// What Linux says of pressure, in the order of [`Strain::pressure`]
/// (Documentation/accounting/psi.rst).
const PRESSURE: [&str; 3] = ["proc/pressure/cpu", "proc/pressure/memory", "proc/pressure/io"];

/// Bytes by which the buffer grows: `/proc/stat` has a line for each CPU and a number for each
/// interrupt.
const CHUNK: usize = 16 << 10;

/// Totals since boot; `None` for what the kernel does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    interrupts: Option<u64>,
    switches: Option<u64>,
    /// How long at least one task waited for each of CPUs, memory and I/O, us.
    waited_us: [Option<u64>; 3],
}

impl Totals {
    /// What came between this reading and a later one; counters that went back count as unchanged.
    #[must_use]
    pub fn until(&self, later: &Self, elapsed: Duration) -> Strain {
        let between = |from: Option<u64>, to: Option<u64>| Some(to?.saturating_sub(from?));
        let elapsed_us = elapsed.as_micros();
        let share = |waited_us: u64| {
            let thousandths = (u128::from(waited_us) * 1000).checked_div(elapsed_us)?;
            // The kernel adds a wait when it looks, which may be a little later.
            u32::try_from(thousandths.min(1000)).ok()
        };
        let pressure =
            [0, 1, 2].map(|one| between(self.waited_us[one], later.waited_us[one]).and_then(share));
        Strain {
            interrupts: between(self.interrupts, later.interrupts),
            switches: between(self.switches, later.switches),
            pressure,
        }
    }

    /// The same on average; `None` if no time has passed.
    #[must_use]
    pub fn on_average(&self, later: &Self, elapsed: Duration) -> Option<CellStrain> {
        let found = self.until(later, elapsed);
        let seconds = elapsed.as_secs_f64();
        #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = |count: Option<u64>| count.map(|count| count as f64 / seconds);
        let [cpu, memory, io] = found.pressure.map(|share| Some(f64::from(share?) / 1e3));
        (seconds > 0.0).then(|| CellStrain {
            interrupts_per_second: rate(found.interrupts),
            switches_per_second: rate(found.switches),
            pressure: Pressure { cpu, memory, io },
        })
    }
}

/// The files, kept open.
#[derive(Debug)]
pub struct StrainReader {
    stat: Option<File>,
    pressure: [Option<File>; 3],
    buffer: Vec<u8>,
}

impl StrainReader {
    /// Opens what there is below the root folder: a kernel may lack pressure (`CONFIG_PSI`, `psi=0`).
    #[must_use]
    pub fn open(root: &FactsRoot) -> Self {
        let open = |path: &str| File::open(root.path(path)).ok();
        Self { stat: open("proc/stat"), pressure: PRESSURE.map(open), buffer: vec![0; CHUNK] }
    }

    /// The totals of now.
    pub fn read(&mut self) -> Totals {
        let mut totals = Totals::default();
        if let Some(stat) = &self.stat
            && let Ok(text) = whole(stat, &mut self.buffer)
        {
            totals.interrupts = after(text, b"intr ");
            totals.switches = after(text, b"ctxt ");
        }
        for (file, waited) in self.pressure.iter().zip(&mut totals.waited_us) {
            if let Some(file) = file
                && let Ok(text) = whole(file, &mut self.buffer)
            {
                *waited = some_us(text);
            }
        }
        totals
    }
}

/// A file's whole text, read again from its start.
fn whole<'a>(file: &File, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
    let mut length = 0;
    loop {
        if length == buffer.len() {
            buffer.resize(length + CHUNK, 0);
        }
        match file.read_at(&mut buffer[length..], length as u64)? {
            0 => return Ok(&buffer[..length]),
            more => length += more,
        }
    }
}

/// The number at the beginning of a line's rest.
fn after(text: &[u8], start: &[u8]) -> Option<u64> {
    let rest = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(start))?;
    number(rest.split(|&byte| byte == b' ').next()?)
}

/// The total of the line `some`: at least one task waited.
fn some_us(text: &[u8]) -> Option<u64> {
    let line = text.split(|&byte| byte == b'\n').find(|line| line.starts_with(b"some "))?;
    let mut words = line.split(|&byte| byte == b' ');
    number(words.find_map(|word| word.strip_prefix(b"total="))?)
}

fn number(digits: &[u8]) -> Option<u64> {
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_and_damage_is_not() {
        let stat = b"cpu  1 2 3\ncpu0 1 2 3\nintr 1234 5 6\nctxt 99\nbtime 7\n";
        assert_eq!((after(stat, b"intr "), after(stat, b"ctxt ")), (Some(1234), Some(99)));
        assert_eq!(after(b"intr x\n", b"intr "), None);
        assert_eq!(after(b"", b"ctxt "), None);
        let psi = b"some avg10=1.00 avg60=0.00 avg300=0.00 total=4567\nfull avg10=0 total=1\n";
        assert_eq!(some_us(psi), Some(4567));
        for damaged in ["", "full total=1", "some total=", "some avg10=1"] {
            assert_eq!(some_us(damaged.as_bytes()), None, "{damaged}");
        }
    }

    #[test]
    fn what_came_between() {
        let reading = |interrupts, waited| Totals {
            interrupts: Some(interrupts),
            switches: None,
            waited_us: [Some(waited), None, Some(0)],
        };
        let strain = reading(10, 100).until(&reading(30, 500_100), Duration::from_secs(1));
        assert_eq!((strain.interrupts, strain.switches), (Some(20), None));
        assert_eq!(strain.pressure, [Some(500), None, Some(0)]);
        let most = reading(9, 0).until(&reading(1, 3_000_000), Duration::from_secs(1));
        assert_eq!((most.interrupts, most.pressure[0]), (Some(0), Some(1000)));
        assert_eq!(reading(1, 1).until(&reading(2, 2), Duration::ZERO).pressure[0], None);
    }

    #[test]
    fn this_machine_switches_between_threads() {
        let mut reader = StrainReader::open(&FactsRoot::live());
        let (before, start) = (reader.read(), std::time::Instant::now());
        (0..50).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
        let strain = before.until(&reader.read(), start.elapsed());
        assert!(strain.switches.unwrap() >= 50, "{strain:?}");
        assert!(strain.interrupts.unwrap() > 0, "{strain:?}");
    }
}
