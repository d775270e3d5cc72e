//! What this process runs on: the kernel's names and the hypervisor.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;

/// The kernel's names from `uname(2)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uname {
    /// Host name (`uname -n`).
    pub node: String,
    /// Release, such as `6.1.0-56-rt-amd64` (`uname -r`).
    pub release: String,
    /// Version, such as `#1 SMP PREEMPT_RT Debian 6.1.192-1` (`uname -v`).
    pub version: String,
    /// Architecture, such as `x86_64` (`uname -m`). A process with a 32-bit personality sees
    /// the 32-bit name.
    pub machine: String,
}

/// Names of the running kernel.
///
/// # Errors
/// The errno of `uname(2)`.
pub fn uname() -> io::Result<Uname> {
    let mut names = MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: `names` is a writable utsname, and any byte is a valid c_char.
    let names = unsafe {
        if libc::uname(names.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        names.assume_init()
    };
    let text = |field: &[libc::c_char]| {
        // SAFETY: uname(2) ends every field with a NUL within its array.
        let text = unsafe { CStr::from_ptr(field.as_ptr()) };
        text.to_string_lossy().into_owned()
    };
    Ok(Uname {
        node: text(&names.nodename),
        release: text(&names.release),
        version: text(&names.version),
        machine: text(&names.machine),
    })
}

/// The twelve-character signature of the hypervisor in CPUID leaf 0x4000_0000, such as
/// `KVMKVMKVM`; `None` without a hypervisor, and on CPUs other than x86.
#[must_use]
pub fn hypervisor_signature() -> Option<String> {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    {
        use crate::cpuid::leaf;

        // Physical CPUs never set bit 31 of ECX; without it the leaves at 0x4000_0000 return
        // the data of the highest basic leaf.
        if leaf(1).ecx & (1 << 31) == 0 {
            return None;
        }
        let name = leaf(0x4000_0000);
        let letters: Vec<u8> =
            [name.ebx, name.ecx, name.edx].into_iter().flat_map(u32::to_le_bytes).collect();
        let text = String::from_utf8_lossy(&letters);
        Some(text.trim_matches(['\0', ' ']).to_owned())
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
    None
}

/// What an x86 CPU reports of its model and features, a line a leaf: `00000007.0` (leaf and part,
/// hexadecimal), EAX, EBX, ECX, EDX. Without what differs between the CPUs of one machine (the
/// APIC ID) and changes while it runs (OSXSAVE). Empty on other CPUs. Source: Intel SDM volume
/// 2A, CPUID.
#[must_use]
pub fn cpuid() -> Vec<String> {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    {
        use crate::cpuid::subleaf;

        const LEAVES: [(u32, u32); 7] =
            [(0, 0), (1, 0), (7, 0), (7, 1), (0x8000_0000, 0), (0x8000_0001, 0), (0x8000_0008, 0)];
        let there = |number: u32| number <= subleaf(number & 0x8000_0000, 0).eax;
        let line = |(number, part)| {
            let mut of = subleaf(number, part);
            if number == 1 {
                of.ebx &= 0x00ff_ffff;
                of.ecx &= !(1 << 27);
            }
            let [a, b, c, d] = [of.eax, of.ebx, of.ecx, of.edx];
            format!("{number:08x}.{part} {a:08x} {b:08x} {c:08x} {d:08x}")
        };
        LEAVES.into_iter().filter(|(number, _)| there(*number)).map(line).collect()
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_in_proc() {
        let names = uname().unwrap();
        let read = |name: &str| {
            let path = format!("/proc/sys/kernel/{name}");
            std::fs::read_to_string(path).unwrap().trim_end().to_owned()
        };
        assert_eq!(names.release, read("osrelease"));
        assert_eq!(names.version, read("version"));
        assert_eq!(names.node, read("hostname"));
    }

    #[test]
    fn signature_is_there_where_the_cpu_says_so() {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flag = cpuinfo
            .lines()
            .find(|line| line.starts_with("flags"))
            .is_some_and(|line| line.split_whitespace().any(|word| word == "hypervisor"));
        assert_eq!(hypervisor_signature().is_some(), flag);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn cpuid_has_the_features_that_proc_names() {
        let leaves = cpuid();
        assert_eq!(leaves, cpuid());
        let registers = |leaf: &str| {
            let line = leaves.iter().find(|line| line.starts_with(leaf)).unwrap();
            let words = line.split(' ').skip(1);
            words.map(|word| u32::from_str_radix(word, 16).unwrap()).collect::<Vec<_>>()
        };
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap();
        let has = |name: &str| flags.split_whitespace().any(|flag| flag == name);
        assert_eq!(registers("00000001.0")[2] & 1 != 0, has("pni"));
        assert_eq!(registers("80000001.0")[3] & (1 << 29) != 0, has("lm"));
        assert!(has("lm"));
    }
}
