//! System calls that are timed: each enters the kernel, whatever a library could answer.

/// The parent's process ID, by the system call's number (getppid(2)).
#[inline(always)]
#[must_use]
pub fn getppid() -> i64 {
    // SAFETY: getppid takes nothing and cannot fail.
    i64::from(unsafe { libc::syscall(libc::SYS_getppid) })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_parent_is_the_same_as_the_library_says() {
        // SAFETY: takes nothing.
        assert_eq!(super::getppid(), i64::from(unsafe { libc::getppid() }));
    }
}
