//! What x86 CPUs report about themselves.

#[cfg(target_arch = "x86")]
use std::arch::x86 as arch;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;

/// The registers that `cpuid` fills for a leaf. For a leaf above the highest supported one a
/// CPU returns the data of another leaf, so ask for the highest one first.
pub(crate) fn leaf(number: u32) -> arch::CpuidResult {
    subleaf(number, 0)
}

/// The same for a leaf that has several parts.
pub(crate) fn subleaf(number: u32, part: u32) -> arch::CpuidResult {
    #[allow(unused_unsafe, reason = "it is a safe function in newer compilers")]
    // SAFETY: every x86 CPU that std's Linux targets support has the instruction.
    unsafe {
        arch::__cpuid_count(number, part)
    }
}
