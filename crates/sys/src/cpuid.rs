//! What x86 CPUs say of themselves.

#[cfg(target_arch = "x86")]
use std::arch::x86 as arch;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;

/// The registers that `cpuid` fills for a leaf; what a CPU knows no answer to is the
/// answer to another leaf, so that the highest one is to be asked first.
pub(crate) fn leaf(number: u32) -> arch::CpuidResult {
    #[allow(unused_unsafe, reason = "newer compilers have it as a safe function")]
    // SAFETY: every x86 CPU that Linux runs on with std has the instruction.
    unsafe {
        arch::__cpuid(number)
    }
}
