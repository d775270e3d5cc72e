//! Which errors are of a kernel, and which of the machine or of what was asked for.

use std::fmt;

/// An error of the kernel: another one may do. Of all other errors no kernel is the cause.
#[derive(Debug)]
pub struct OfKernel(anyhow::Error);

impl fmt::Display for OfKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

// What caused it is in its text.
impl std::error::Error for OfKernel {}

/// The same error, known to be of the kernel.
#[must_use]
pub fn of_kernel(error: anyhow::Error) -> anyhow::Error {
    anyhow::Error::new(OfKernel(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn an_error_of_the_kernel_is_known_behind_other_words_too() {
        let error = anyhow::anyhow!("no PVH entry").context("vmlinux");
        let error = Err::<(), _>(of_kernel(error)).context("debian:rt").unwrap_err();
        assert!(error.is::<OfKernel>());
        assert_eq!(format!("{error:#}"), "debian:rt: vmlinux: no PVH entry");
        assert!(!anyhow::anyhow!("no QEMU").is::<OfKernel>());
    }
}
