//! One number that identifies a kind of board.

use punctual_core::hash::sha256;
use punctual_sys::affinity::CpuSet;

use super::cpu::Cpu;
use super::state::Memory;
use super::virtualisation::Hardware;

/// SHA-256 (hexadecimal) of what identifies the hardware: equal for equal boards, and for one
/// board under any kernel.
///
/// It includes only what neither a reboot nor another kernel changes: CPU models and the
/// number of possible CPUs, DMI and device-tree names, the size of the memory, the
/// architecture. No serial numbers: two boards of one kind are equal.
#[must_use]
pub fn fingerprint(machine: &str, cpu: &Cpu, hardware: &Hardware, memory: &Memory) -> String {
    let known = |text: &Option<String>| text.clone().unwrap_or_default();
    let possible = cpu.possible.as_ref().or(cpu.present.as_ref());
    let parts = [
        ("machine", machine.to_owned()),
        ("cpu", cpu.model.clone()),
        ("cpus", possible.map_or(0, CpuSet::len).to_string()),
        ("vendor", known(&hardware.vendor)),
        ("product", known(&hardware.product)),
        ("board", known(&hardware.board)),
        ("device tree", known(&hardware.device_tree_model)),
        ("memory", installed_bytes(memory.total_bytes.unwrap_or(0)).to_string()),
    ];
    let text: String = parts.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    sha256(text.as_bytes())
}

/// Rounds the memory that the kernel manages up to what is likely installed: to an eighth of
/// the power of two below it, and to a half if that is below 512 MiB. The kernel image, firmware
/// and crash kernels take a few per cent, of small boards a tenth, which differ between kernels.
fn installed_bytes(managed: u64) -> u64 {
    let granule =
        managed.checked_ilog2().map_or(1, |log| (1 << log) / if log < 29 { 2 } else { 8 });
    managed.checked_next_multiple_of(granule.max(1)).unwrap_or(managed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn two_kernels_see_the_same_memory_installed() {
        // 4 GiB of which firmware and two kernels take different parts.
        assert_eq!(installed_bytes(3_794 * MIB), 3_840 * MIB);
        assert_eq!(installed_bytes(3_732 * MIB), 3_840 * MIB);
        // 16 GiB and 256 MiB, less some per cent.
        assert_eq!(installed_bytes(15_880 * MIB), 16_384 * MIB);
        assert_eq!(installed_bytes(248 * MIB), 256 * MIB);
        // Linux 6.1 and 6.12 on a virtual board.
        assert_eq!(installed_bytes(225 * MIB), 256 * MIB);
        assert_eq!(installed_bytes(217 * MIB), 256 * MIB);
        assert_eq!(installed_bytes(0), 0);
        assert_eq!(installed_bytes(u64::MAX), u64::MAX);
    }
}
