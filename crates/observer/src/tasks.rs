//! What is known of a thread, from the guest's memory.

/// Bytes of a name (`TASK_COMM_LEN`, include/linux/sched.h).
pub const NAME: usize = 16;

/// Bytes that are known of a thread: its name, its priority, its number.
pub const SIZE: usize = NAME + 1 + 4;

/// Where these are in the kernel's structure of a thread (`task_struct`), bytes from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    /// The stack pointer of a thread that does not run.
    pub stack: u64,
    /// `pid`, of 4 bytes.
    pub pid: u64,
    /// `prio`, of 4 bytes.
    pub prio: u64,
    /// `comm`.
    pub comm: u64,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its name, up to 15 bytes.
    pub name: [u8; NAME],
    /// Priority as the scheduler has it, small ones first: 0 to 98 real-time (99 minus the user's
    /// number), 100 to 139 others, 255 (-1) deadline.
    pub prio: u8,
    /// Its number, which threads have one each of.
    pub pid: u32,
}

impl Fields {
    /// Reads the thread whose stack pointer is at this place of the memory. `None`: it is not all
    /// there.
    #[must_use]
    pub fn read(self, place: u64, mut byte: impl FnMut(u64) -> Option<u8>) -> Option<[u8; SIZE]> {
        let start = place.checked_sub(self.stack)?;
        let mut all = [0; SIZE];
        let parts = [(self.comm, NAME), (self.prio, 1), (self.pid, 4)];
        let mut places = all.iter_mut();
        for (field, length) in parts {
            for at in 0..length as u64 {
                *places.next()? = byte(start.checked_add(field)?.checked_add(at)?)?;
            }
        }
        Some(all)
    }
}

impl Task {
    /// As it was read.
    #[must_use]
    pub fn of(bytes: [u8; SIZE]) -> Self {
        let [name @ .., prio, a, b, c, d] = bytes;
        Self { name, prio, pid: u32::from_le_bytes([a, b, c, d]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: Fields = Fields { stack: 100, pid: 40, prio: 20, comm: 60 };

    #[test]
    fn a_thread_is_read_from_memory() {
        let mut memory = vec![0; 1_000];
        memory[500 + 60..500 + 68].copy_from_slice(b"kswapd0\0");
        memory[500 + 20..500 + 24].copy_from_slice(&49_u32.to_le_bytes());
        memory[500 + 40..500 + 44].copy_from_slice(&70_000_u32.to_le_bytes());
        let read =
            |place: u64| FIELDS.read(place, |at| memory.get(usize::try_from(at).ok()?).copied());
        let task = Task::of(read(600).unwrap());
        assert_eq!((&task.name[..8], task.prio, task.pid), (&b"kswapd0\0"[..], 49, 70_000));
        for outside in [0, 99, 1_040, u64::MAX] {
            assert_eq!(read(outside), None, "{outside}");
        }
        assert_eq!(Fields { comm: u64::MAX, ..FIELDS }.read(600, |_| Some(0)), None);
    }
}
