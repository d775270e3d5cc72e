//! `/proc/interrupts` before and after a cell.

use std::collections::BTreeMap;

use serde::Serialize;

use super::root::FactsRoot;

/// Interrupts since boot, by the name of their line (`24`, `LOC`, `IPI0`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Interrupts {
    /// The lines with non-zero counts.
    pub lines: BTreeMap<String, Line>,
}

/// One line: an interrupt and its source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Controller, trigger and device, as the kernel prints them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Counts by CPU, without zeros; empty for counters of the whole machine (`ERR`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cpus: BTreeMap<u32, u64>,
    /// Total over all CPUs.
    pub total: u64,
}

impl Interrupts {
    /// Reads `/proc/interrupts`; empty if it cannot be read.
    #[must_use]
    pub fn read(root: &FactsRoot) -> Self {
        let text = root.text("proc/interrupts").unwrap_or_default();
        Self::parse(&text)
    }

    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let cpus: Vec<u32> = lines
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
            .collect();
        let counted = lines.filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            let line = Line::parse(rest, &cpus);
            (line.total > 0).then(|| (name.trim().to_owned(), line))
        });
        Self { lines: counted.collect() }
    }

    /// What was counted between this reading and a `later` one, without zeros. A line whose
    /// number was given to another device meanwhile counts from 0.
    #[must_use]
    pub fn until(&self, later: &Self) -> Self {
        let nothing = Line::default();
        let differences = later.lines.iter().filter_map(|(name, after)| {
            let before = self.lines.get(name);
            let before = before.filter(|before| before.description == after.description);
            let difference = before.unwrap_or(&nothing).until(after);
            (difference.total > 0).then(|| (name.clone(), difference))
        });
        Self { lines: differences.collect() }
    }
}

impl Line {
    fn parse(rest: &str, cpus: &[u32]) -> Self {
        let mut rest = rest.trim();
        let mut counts = Vec::with_capacity(cpus.len());
        while counts.len() < cpus.len() {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let Ok(count) = word.parse::<u64>() else {
                break;
            };
            counts.push(count);
            rest = after.trim_start();
        }
        let per_cpu = counts.len() == cpus.len();
        let counted = cpus.iter().copied().zip(counts.iter().copied());
        Self {
            description: rest.split_whitespace().collect::<Vec<_>>().join(" "),
            total: sum(counts.iter().copied()),
            cpus: counted.filter(|&(_, count)| per_cpu && count > 0).collect(),
        }
    }

    fn until(&self, later: &Self) -> Self {
        let cpus: BTreeMap<u32, u64> = later
            .cpus
            .iter()
            .map(|(&cpu, &after)| (cpu, passed(self.cpus.get(&cpu).copied(), after)))
            .filter(|&(_, count)| count > 0)
            .collect();
        let total = if later.cpus.is_empty() {
            passed(Some(self.total), later.total)
        } else {
            sum(cpus.values().copied())
        };
        Self { description: later.description.clone(), cpus, total }
    }
}

fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// Interrupts between two counts. The kernel counts in 32 bits: a count that fell from the
/// upper half has wrapped; one that fell from the lower half was reset (the device's driver
/// was reloaded).
fn passed(before: Option<u64>, after: u64) -> u64 {
    const WRAP: u64 = 1 << 32;
    let before = before.unwrap_or(0);
    match after.checked_sub(before) {
        Some(count) => count,
        None if (WRAP / 2..WRAP).contains(&before) => after + WRAP - before,
        None => after,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "           CPU0       CPU2       \n\
        \x2024:          1          0  IO-APIC   5-edge      ACPI:Ged\n\
        \x2026:          0          7  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
        LOC:      43180      51361   Local timer interrupts\n\
        RES: 4294967290          0   Rescheduling interrupts\n\
        NMI:          0          0   Non-maskable interrupts\n\
        ERR:          3\n";

    #[test]
    fn reads_sparse_cpus_and_counters_of_the_machine() {
        let all = Interrupts::parse(BEFORE);
        let line = &all.lines["26"];
        assert_eq!(line.description, "PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0");
        assert_eq!(line.cpus, BTreeMap::from([(2, 7)]));
        assert_eq!(all.lines["LOC"].total, 94_541);
        assert_eq!(all.lines["ERR"].total, 3);
        assert!(all.lines["ERR"].cpus.is_empty());
        assert!(!all.lines.contains_key("NMI"));
    }

    #[test]
    fn counts_between_two_readings() {
        let after = "           CPU0       CPU2       CPU3\n\
            \x2024:          1          0          0  IO-APIC   5-edge      ACPI:Ged\n\
            \x2026:          0          9          1  PCI-MSIX-0000:00:09.0   1-edge  nvme0q1\n\
            LOC:      43280      51361         50   Local timer interrupts\n\
            RES:          4          0          0   Rescheduling interrupts\n\
            ERR:          5\n";
        let between = Interrupts::parse(BEFORE).until(&Interrupts::parse(after));
        let totals: Vec<_> =
            between.lines.iter().map(|(name, line)| (name.as_str(), line.total)).collect();
        // 26 belongs to another device now; RES wrapped.
        assert_eq!(totals, [("26", 10), ("ERR", 2), ("LOC", 150), ("RES", 10)]);
        assert_eq!(between.lines["LOC"].cpus, BTreeMap::from([(0, 100), (3, 50)]));
    }

    #[test]
    fn a_counter_set_back_counts_from_zero() {
        assert_eq!(passed(Some(500), 20), 20);
        assert_eq!(passed(Some(u64::from(u32::MAX)), 0), 1);
        assert_eq!(passed(Some(u64::MAX), 7), 7);
    }

    #[test]
    fn damage_reads_as_nothing() {
        for text in ["", "\n", "CPU0\n: \n", "no cpus\n1: 5 x\n", "CPU0\nLOC 5"] {
            assert!(Interrupts::parse(text).lines.is_empty(), "{text:?}");
        }
    }
}
