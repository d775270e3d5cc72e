//! Memory with code in it: as many returns as it has cache lines.

use std::io;
use std::ptr::NonNull;

use crate::error::check;

/// Distance of the functions, bytes: at most a cache line.
pub const LINE: usize = 64;

/// Functions that only return, one in each [`LINE`] bytes.
#[derive(Debug)]
pub struct Lines {
    start: NonNull<u8>,
    bytes: usize,
}

impl Lines {
    /// Writes the functions to `bytes` of memory, which can then be executed and no longer
    /// written.
    ///
    /// # Errors
    /// Those of mmap(2) and mprotect(2): `EACCES` where the machine lets nobody execute what was
    /// written, and `Unsupported` on other machines than x86 and aarch64.
    pub fn new(bytes: usize) -> io::Result<Self> {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        const RETURN: &[u8] = &[0xc3];
        #[cfg(target_arch = "aarch64")]
        const RETURN: &[u8] = &0xd65f_03c0_u32.to_le_bytes();
        #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
        const RETURN: &[u8] = &[];
        if RETURN.is_empty() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let bytes = bytes.next_multiple_of(crate::region::page_size());
        // SAFETY: a new mapping at an address that the kernel chooses, written within its length.
        unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
            let lines = Self { start, bytes };
            for at in (0..bytes).step_by(LINE) {
                let to = start.as_ptr().add(at);
                std::ptr::copy_nonoverlapping(RETURN.as_ptr(), to, RETURN.len());
                forget(to);
            }
            check(libc::mprotect(start.as_ptr().cast(), bytes, libc::PROT_READ | libc::PROT_EXEC))?;
            Ok(lines)
        }
    }

    /// Calls every function once. Returns how many there are.
    pub fn call(&self) -> u64 {
        let offsets = (0..self.bytes).step_by(LINE);
        let count = offsets.len() as u64;
        for at in offsets {
            // SAFETY: there is a function at every offset, which takes nothing, changes nothing
            // and returns.
            unsafe {
                let function: extern "C" fn() =
                    std::mem::transmute(self.start.as_ptr().add(at).cast_const());
                function();
            }
        }
        count
    }
}

/// Lets the CPUs fetch anew what was written at this address. x86 does so by itself.
///
/// # Safety
/// The address must be mapped.
unsafe fn forget(_address: *const u8) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: cache maintenance of mapped memory, which user space may do under Linux.
    unsafe {
        std::arch::asm!(
            "dc cvau, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", "isb",
            in(reg) _address, options(nostack),
        );
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // SAFETY: the whole mapping is ours, and none of its functions runs.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_function_in_every_line() {
        let bytes = 16 * crate::region::page_size();
        let lines = Lines::new(bytes).unwrap();
        assert_eq!(lines.call(), (bytes / LINE) as u64);
    }
}
