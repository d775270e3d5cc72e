//! System calls to be timed: each one enters the kernel, even if a library caches the answer.

/// The parent's PID (getppid(2)), by the raw system call.
#[inline(always)]
#[must_use]
#[allow(clippy::useless_conversion, reason = "a c_long has 32 bits on 32-bit machines")]
pub fn getppid() -> i64 {
    // SAFETY: getppid takes no arguments and cannot fail.
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
