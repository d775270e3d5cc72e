//! CPU affinity of threads, and sets of CPUs in the kernel's list form.

use std::fmt;
use std::io;

use serde::{Serialize, Serializer};

use crate::error::check;

/// A set of CPU numbers below [`MAX_CPUS`]. Serialized as a list.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CpuSet {
    words: Vec<libc::c_ulong>,
}

const WORD: usize = libc::c_ulong::BITS as usize;
/// The kernel's largest NR_CPUS. A higher number is damage and would only cost memory.
pub const MAX_CPUS: usize = 8_192;

impl CpuSet {
    /// The set that contains only this CPU.
    #[must_use]
    pub fn of(cpu: u32) -> Self {
        [cpu].into_iter().collect()
    }

    /// Parses a list such as `0-3,8` (the form in the kernel's files); an empty text is the
    /// empty set. `None` for anything else, such as the `(null)` that some kernels print for
    /// an unallocated mask.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut set = Self::default();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) =
                (first.trim().parse().ok()?, last.trim().parse().ok()?);
            if first > last || last >= MAX_CPUS {
                return None;
            }
            (first..=last).for_each(|cpu| set.insert(cpu));
        }
        Some(set)
    }

    fn insert(&mut self, cpu: usize) {
        if cpu >= MAX_CPUS {
            return;
        }
        if self.words.len() <= cpu / WORD {
            self.words.resize(cpu / WORD + 1, 0);
        }
        self.words[cpu / WORD] |= 1 << (cpu % WORD);
    }

    /// Its words, the lowest CPU first, as the system calls take them.
    #[must_use]
    pub fn words(&self) -> &[libc::c_ulong] {
        &self.words
    }

    /// Whether `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        let cpu = cpu as usize;
        self.words.get(cpu / WORD).is_some_and(|word| word >> (cpu % WORD) & 1 == 1)
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..u32::try_from(self.words.len() * WORD).unwrap_or(0)).filter(|cpu| self.contains(*cpu))
    }

    /// Number of CPUs in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The CPUs of this set and those of `other`.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).collect()
    }

    /// The CPUs of this set that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.iter().filter(|cpu| !other.contains(*cpu)).collect()
    }
}

/// Ignores numbers from [`MAX_CPUS`] on.
impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut set = Self::default();
        cpus.into_iter().for_each(|cpu| set.insert(cpu as usize));
        set
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            if first == last {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Binds the calling thread to `cpus`.
///
/// # Errors
/// Those of sched_setaffinity(2): EINVAL if none of the CPUs is online and in the cpuset. The
/// kernel silently drops the others; check with [`get`].
pub fn set(cpus: &CpuSet) -> io::Result<()> {
    set_of(0, cpus)
}

/// [`set`] for a thread by its kernel ID, 0 for the calling one.
///
/// # Errors
/// Those of [`set`], and ESRCH for a thread that has ended.
pub fn set_of(thread: i32, cpus: &CpuSet) -> io::Result<()> {
    // SAFETY: the words are readable for the size given; the number is only looked up.
    let done = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            thread,
            std::mem::size_of_val(&cpus.words[..]),
            cpus.words.as_ptr(),
        )
    };
    check(done).map(|_| ())
}

/// The CPUs that the calling thread may run on.
///
/// # Errors
/// Those of sched_getaffinity(2).
pub fn get() -> io::Result<CpuSet> {
    get_of(0)
}

/// [`get`] for a thread by its kernel ID, 0 for the calling one.
///
/// # Errors
/// Those of [`get`], and ESRCH for a thread that has ended.
pub fn get_of(thread: i32) -> io::Result<CpuSet> {
    let mut words = vec![0 as libc::c_ulong; MAX_CPUS / WORD];
    // SAFETY: the kernel writes at most the size given to the words.
    let bytes = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            thread,
            std::mem::size_of_val(&words[..]),
            words.as_mut_ptr(),
        )
    };
    let bytes = usize::try_from(check(bytes)?).map_err(io::Error::other)?;
    words.truncate(bytes.div_ceil(WORD / 8));
    // Equal sets must have equal words.
    while words.last() == Some(&0) {
        words.pop();
    }
    Ok(CpuSet { words })
}

/// The CPU that the calling thread runs on: by the vDSO where it has that (x86, riscv), otherwise
/// by a system call (getcpu(2)).
#[must_use]
pub fn current_cpu() -> u32 {
    // SAFETY: takes nothing.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// The CPUs that this thread could be bound to: online and in the cpuset, whatever mask it has
/// inherited. Widens the mask for an instant and restores it.
///
/// # Errors
/// Those of the affinity calls.
pub fn reachable() -> io::Result<CpuSet> {
    let inherited = get()?;
    let all: CpuSet = (0..u32::try_from(MAX_CPUS).unwrap_or(0)).collect();
    set(&all)?;
    let reachable = get();
    set(&inherited)?;
    reachable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for (text, written, count) in [
            ("0-3,8\n", "0-3,8", 5),
            ("1", "1", 1),
            ("0,1,2,64-66", "0-2,64-66", 6),
            ("64-65,2,2", "2,64-65", 3),
            ("0-3, 8", "0-3,8", 5),
            ("8191", "8191", 1),
            ("\n", "", 0),
        ] {
            let set = CpuSet::parse(text).unwrap();
            assert_eq!((set.to_string().as_str(), set.len()), (written, count));
            assert_eq!(CpuSet::parse(written), Some(set));
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["(null)", "3-1", "a", "-1", "1-", "1-2-3", "8192", "0-4294967295", "1 2"] {
            assert_eq!(CpuSet::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_number_that_no_cpu_has_costs_no_memory() {
        let set: CpuSet = [3, u32::MAX, 8_192].into_iter().collect();
        assert_eq!((set.to_string().as_str(), set.words.len()), ("3", 1));
        assert!(!set.contains(u32::MAX) && !CpuSet::of(8_192).contains(8_192));
    }

    #[test]
    fn sets_are_put_together_and_taken_from_each_other() {
        let set = |text| CpuSet::parse(text).unwrap();
        assert_eq!(set("0-3,70").without(&set("1,70,99")), set("0,2-3"));
        assert_eq!(set("0-1,70").with(&set("1-2,99")), set("0-2,70,99"));
        assert_eq!(set("").with(&set("1")), set("1"));
        let none = set("70").without(&set("70"));
        assert!(none.is_empty() && none == CpuSet::default());
    }

    #[test]
    fn a_thread_is_bound_and_released() {
        let before = get().unwrap();
        let one = CpuSet::of(before.iter().next().unwrap());
        set(&one).unwrap();
        assert_eq!(get().unwrap(), one);
        assert!(reachable().unwrap().len() >= before.len());
        assert_eq!(get().unwrap(), one);
        set(&before).unwrap();
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        assert!(set(&CpuSet::of(8_191)).is_err());
    }
}
