//! CPU masks in the kernel's list form, as `0-3,8`.

use serde::{Serialize, Serializer};

/// The kernel's own limit (`NR_CPUS`) is 8192; a higher number in a list is
/// damage, and would only cost memory.
const MAX_CPU: u32 = 65_535;

/// A set of CPUs, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuList(Vec<u32>);

impl CpuList {
    /// Reads the list form; an empty text is the empty set.
    ///
    /// `None` where the text is anything else (as `(null)`, which some kernels
    /// print for a mask that was never made).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut cpus = Vec::new();
        for range in text.trim().split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            if first > last || last > MAX_CPU {
                return None;
            }
            cpus.extend(first..=last);
        }
        Some(Self::from_iter(cpus))
    }

    /// The CPUs, ascending.
    #[must_use]
    pub fn cpus(&self) -> &[u32] {
        &self.0
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `cpu` is in it.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        Self(cpus)
    }
}

impl std::fmt::Display for CpuList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ranges = self.0.chunk_by(|&cpu, &next| cpu + 1 == next);
        for (i, range) in ranges.enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match range {
                [only] => write!(f, "{comma}{only}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

impl Serialize for CpuList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_kernels_print() {
        let cpus = |text| CpuList::parse(text).map(|list| list.cpus().to_vec());
        assert_eq!(cpus("0"), Some(vec![0]));
        assert_eq!(cpus("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(cpus("\n"), Some(vec![]));
        assert_eq!(cpus("64-65,2"), Some(vec![2, 64, 65]));
    }

    #[test]
    fn refuses_what_is_no_list() {
        for text in ["(null)", "3-1", "a", "1-", "-1", "0-4294967295", "70000"] {
            assert_eq!(CpuList::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn prints_what_it_reads(cpus in proptest::collection::btree_set(0u32..300, 0..80)) {
            let list = CpuList::from_iter(cpus);
            prop_assert_eq!(CpuList::parse(&list.to_string()), Some(list));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = CpuList::parse(&text);
        }
    }
}
