//! System V semaphores (sysvipc(7)). The kernel keeps a set of them until somebody removes it.

use std::io;

use super::{Token, posted, taken};
use crate::error::{called, check};

/// A set of semaphores of one key.
#[derive(Debug, Clone, Copy)]
pub struct Semaphores {
    id: libc::c_int,
}

/// One of a set.
#[derive(Debug)]
pub struct Semaphore {
    id: libc::c_int,
    number: libc::c_ushort,
}

#[repr(align(8))]
struct Aligned([u32; 64]);

/// A key that nobody has.
///
/// # Panics
/// Never: there are fewer sets than keys.
#[must_use]
pub fn free_key() -> i32 {
    // 0 is IPC_PRIVATE.
    let of_this = i32::try_from(std::process::id()).unwrap_or(1).wrapping_mul(64);
    (1..).map(|n| of_this.wrapping_add(n)).find(|key| *key != 0 && !is_there(*key)).unwrap()
}

fn is_there(key: i32) -> bool {
    // SAFETY: takes numbers only.
    unsafe { libc::semget(key, 0, 0) >= 0 }
}

/// Whether the kernel has System V semaphores (CONFIG_SYSVIPC).
#[must_use]
pub fn is_supported() -> bool {
    // SAFETY: takes numbers only.
    let refused = check(unsafe { libc::semget(1, 0, 0) });
    refused.is_ok() || refused.is_err_and(|error| error.raw_os_error() != Some(libc::ENOSYS))
}

impl Semaphores {
    /// Makes `count` semaphores at 0, which only this user may use. They stay until they are
    /// removed.
    ///
    /// # Errors
    /// `AlreadyExists` if there are some of this key; otherwise those of semget(2): ENOSPC if
    /// the limits of kernel.sem are reached.
    pub fn make(key: i32, count: u32) -> io::Result<Self> {
        let count = libc::c_int::try_from(count).map_err(io::Error::other)?;
        // SAFETY: takes numbers only.
        let id = unsafe { libc::semget(key, count, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
        Ok(Self { id: called("semget", id)? })
    }

    /// Those of a key, if this user made them.
    #[must_use]
    pub fn of_key(key: i32) -> Option<Self> {
        // SAFETY: takes numbers only.
        let id = check(unsafe { libc::semget(key, 0, 0o600) }).ok()?;
        // `struct semid_ds`, which the libc crate lacks for musl, begins with the key and the
        // user and group of the owner and of the maker; it has some 100 bytes.
        let mut state = Aligned([0_u32; 64]);
        // SAFETY: room for a semid_ds, aligned as its longest field.
        check(unsafe { libc::semctl(id, 0, libc::IPC_STAT, &raw mut state) }).ok()?;
        let owner = state.0[3];
        (owner == crate::process::effective_uid()).then_some(Self { id })
    }

    /// Removes them. Who waits for one gets an error.
    ///
    /// # Errors
    /// Those of semctl(2), such as EINVAL if they are removed already.
    pub fn remove(self) -> io::Result<()> {
        // SAFETY: takes numbers only.
        called("semctl", unsafe { libc::semctl(self.id, 0, libc::IPC_RMID) }).map(drop)
    }

    /// One of them, counted from 0.
    #[must_use]
    pub fn one(self, number: u16) -> Semaphore {
        Semaphore { id: self.id, number }
    }
}

impl Semaphore {
    #[inline(always)]
    fn change(&self, by: libc::c_short) -> libc::c_long {
        let mut change = libc::sembuf { sem_num: self.number, sem_op: by, sem_flg: 0 };
        // SAFETY: one valid sembuf.
        libc::c_long::from(unsafe { libc::semop(self.id, &raw mut change, 1) })
    }
}

impl Token for Semaphore {
    #[inline]
    fn post(&self) -> io::Result<()> {
        posted(|| self.change(1))
    }

    #[inline]
    fn take(&self) -> io::Result<Option<u64>> {
        taken(self.change(-1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_found_by_its_key_until_it_is_removed() {
        assert!(is_supported());
        let key = free_key();
        assert!(Semaphores::of_key(key).is_none());
        let made = Semaphores::make(key, 3).unwrap();
        let again = Semaphores::make(key, 3).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_ne!(free_key(), key);
        assert_eq!(Semaphores::of_key(key).unwrap().id, made.id);
        made.remove().unwrap();
        assert!(Semaphores::of_key(key).is_none());
        assert!(made.remove().is_err());
    }
}
