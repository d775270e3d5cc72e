//! System calls that are timed: each enters the kernel, whatever a library could answer.

/// The parent's process ID, by the system call's number (getppid(2)).
#[inline(always)]
#[must_use]
#[allow(clippy::useless_conversion, reason = "a c_long has 32 bits on 32-bit machines")]
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
