//! Which instructions mean something to the observer, by their bytes.
//!
//! Where interrupts are switched (x86_64): `cli` and every entry through the IDT or `syscall`
//! turn them off, `sti`, `sysret` and `iret` turn them on. Linux has had no other way since
//! 5.12: `local_irq_restore` is a conditional `sti` there. Until 5.11 it is `push; popfq`, whose
//! effect depends on a value that the plugin does not see, and `popfq` is left out: it occurs
//! where nothing changes too. So the stretches with interrupts off are right from 5.12 on.
//!
//! Preemption (x86_64): the kernel counts in a variable of each CPU why it may not switch threads
//! (arch/x86/include/asm/preempt.h). What changes it are additions to an address relative to the
//! instruction, with the prefix GS: its target is known before it is executed. The variable's
//! other bit, whether a switch is needed, is changed by `and` and `or`, which count for nothing.
//!
//! On aarch64 both depend on values of registers, which QEMU tells from version 10 on: interrupts are
//! switched by `msr daif, xN` too, and come back with `eret` as `SPSR_EL1` says; the count is part of
//! each thread (arch/arm64/include/asm/preempt.h), and which thread runs is what was written to
//! `sp_el0` (arch/arm64/include/asm/current.h).

/// What the guest's CPU is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `qemu-system-x86_64`.
    X86_64,
    /// `qemu-system-aarch64`.
    Aarch64,
}

impl Target {
    /// The target that QEMU calls so.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"x86_64" => Some(Self::X86_64),
            b"aarch64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// Where its board has memory; QEMU's `virt` has flash and devices before (hw/arm/virt.c).
    #[must_use]
    pub const fn memory_start(self) -> u64 {
        match self {
            Self::X86_64 => 0,
            Self::Aarch64 => 1 << 30,
        }
    }
}

/// Where QEMU puts an arm64 kernel in memory: behind its own first instructions, at the next address
/// that such a kernel may begin at (hw/arm/boot.c).
const IMAGE: u64 = Target::Aarch64.memory_start() + (2 << 20);

/// Tells the addresses of an arm64 kernel that runs where it is in memory, before its own addresses
/// are mapped. QEMU knows such code by its place in memory, and does not translate it again when it is
/// executed by its own address later.
#[derive(Debug, Clone, Copy)]
pub struct Early {
    /// The kernel's own address of its first byte; `None` once there are processes.
    image: Option<u64>,
}

impl Early {
    /// A kernel with this address of its own, at the start; `None`: it has no other than where it is.
    #[must_use]
    pub const fn new(image: Option<u64>) -> Self {
        Self { image }
    }

    /// What the address of a block that is executed first now is off its own by.
    pub const fn offset(&mut self, address: u64) -> u64 {
        let Some(image) = self.image else { return 0 };
        // Up to 3 GiB of memory; programs are elsewhere.
        if address >> 30 >= 1 && address >> 32 == 0 {
            return image.wrapping_sub(IMAGE);
        }
        if !is_kernel(address) {
            self.image = None;
        }
        0
    }
}

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads the clock: `rdtsc`, `rdtscp`; `mrs xN, cntvct_el0` or `cntvctss_el0`.
    Clock,
    /// `cli`; `msr daifset` with `I`.
    InterruptsOff,
    /// `sti`, and `sysret` to user space, which always runs with interrupts on. `sti` takes
    /// effect after the next instruction, so that `sti; hlt` misses no interrupt. `msr daifclr` with
    /// `I`.
    InterruptsOn,
    /// `msr daif, xN`: interrupts are as [`MASKED`] says in the register with this number.
    Interrupts(u8),
    /// `iret`, `eret`: interrupts are again as they were in what was interrupted.
    Return,
    /// `msr sp_el0, xN`: the thread in the register with this number runs. On the way to user space it
    /// is a stack pointer of that.
    Current(u8),
    /// `pushfq`. An `iret` in the same block returns to these flags: nothing was interrupted, the
    /// kernel only wants the CPU's pipeline emptied (`iret_to_self`). QEMU may cut a block
    /// between the two at the end of its turn; then the `iret` is taken for a return.
    PushFlags,
    /// The CPU halts until an interrupt: `hlt`, `mwait`; `wfi`.
    Halt,
}

/// The bit of `daif` and of a saved state that says that interrupts are off (Arm ARM, C5.2.3).
pub const MASKED: u64 = 1 << 7;

/// Number of the register that is always 0.
pub const ZERO: u8 = 31;

/// Whether an instruction writes a word to an address in a register plus this many bytes (aarch64):
/// `str wN, [xN, #offset]`.
#[must_use]
pub fn stores_word(bytes: &[u8], offset: u64) -> bool {
    let word = bytes.try_into().map_or(0, u32::from_le_bytes);
    word & 0xffc0_0000 == 0xb900_0000 && u64::from(word >> 10 & 0xfff) * 4 == offset
}

/// Whether an exception with this syndrome, at this vector, is an access to memory that is tried again
/// (aarch64): synchronous, and a data abort (Arm ARM, D1.4.1.3 and D24.2.40).
#[must_use]
pub const fn is_fault(vector: u64, syndrome: u64) -> bool {
    vector >> 7 & 3 == 0 && matches!(syndrome >> 26 & 0x3f, 0x24 | 0x25)
}

/// Whether an address is the kernel's: on both architectures its half of the addresses is the
/// upper one. Firmware and the code that unpacks a kernel run in the lower one and count as user
/// space.
#[must_use]
pub const fn is_kernel(address: u64) -> bool {
    address >> 63 == 1
}

/// What an instruction adds to a variable of the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addition {
    /// The variable.
    pub target: Variable,
    /// What is added.
    pub what: Addend,
}

/// Where a variable of the CPU is, without the base that GS has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variable {
    /// At this address.
    At(u64),
    /// At the address in the register with this number.
    In(u8),
}

/// What is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addend {
    /// This number.
    Number(i64),
    /// What is in the register with this number.
    Register(u8),
}

/// What an instruction at this address adds to a variable of the CPU, if it does (x86_64): `inc`,
/// `dec`, `add`, `sub` and `xadd` with the prefix GS, and an address relative to the instruction or
/// in a register.
#[must_use]
pub fn addition(bytes: &[u8], address: u64) -> Option<Addition> {
    let [0x65, rest @ ..] = bytes else { return None };
    let (rex, rest) = match rest {
        [rex @ 0x40..=0x4f, rest @ ..] => (*rex, rest),
        _ => (0, rest),
    };
    let (opcode, rest) = match rest {
        [0x0f, 0xc1, rest @ ..] => (0xc1, rest),
        [opcode @ (0x01 | 0x29 | 0x81 | 0x83 | 0xff), rest @ ..] => (*opcode, rest),
        _ => return None,
    };
    let [modrm, rest @ ..] = rest else { return None };
    let next = address.wrapping_add(bytes.len() as u64);
    let (target, immediate) = match (modrm & 0xc7, rest) {
        (0x05, &[a, b, c, d, ref immediate @ ..]) => {
            let displacement = i64::from(i32::from_le_bytes([a, b, c, d]));
            (Variable::At(next.wrapping_add_signed(displacement)), immediate)
        }
        (low @ (0..=3 | 6 | 7), immediate) => (Variable::In(low | (rex & 1) << 3), immediate),
        _ => return None,
    };
    let field = modrm >> 3 & 7;
    let register = Addend::Register(field | (rex & 4) << 1);
    let what = match (opcode, field, immediate) {
        (0xff, 0, []) => Addend::Number(1),
        (0xff, 1, []) => Addend::Number(-1),
        (0x83, 0, [n]) => Addend::Number(n.cast_signed().into()),
        (0x83, 5, [n]) => Addend::Number(-i64::from(n.cast_signed())),
        (0x81, 0, &[a, b, c, d]) => Addend::Number(i32::from_le_bytes([a, b, c, d]).into()),
        (0x81, 5, &[a, b, c, d]) => Addend::Number(-i64::from(i32::from_le_bytes([a, b, c, d]))),
        (0x01 | 0xc1, _, []) => register,
        _ => return None,
    };
    Some(Addition { target, what })
}

/// The register that an instruction loads with a number, and the number (x86_64): `mov`.
#[must_use]
pub fn loaded(bytes: &[u8]) -> Option<(u8, i64)> {
    let (rex, rest) = match bytes {
        [rex @ 0x40..=0x4f, rest @ ..] => (*rex, rest),
        _ => (0, bytes),
    };
    let high = (rex & 1) << 3;
    match *rest {
        [opcode @ 0xb8..=0xbf, a, b, c, d] if rex & 8 == 0 => {
            Some((opcode & 7 | high, u32::from_le_bytes([a, b, c, d]).into()))
        }
        [0xc7, modrm @ 0xc0..=0xc7, a, b, c, d] if rex & 8 != 0 => {
            Some((modrm & 7 | high, i32::from_le_bytes([a, b, c, d]).into()))
        }
        _ => None,
    }
}

/// The role of an instruction at this address, if it has any.
#[must_use]
pub fn role(target: Target, bytes: &[u8], address: u64) -> Option<Role> {
    let role = match target {
        Target::X86_64 => x86_64(bytes),
        Target::Aarch64 => aarch64(u32::from_le_bytes(bytes.try_into().ok()?)),
    }?;
    // User space could not do the others.
    (is_kernel(address) || role == Role::Clock).then_some(role)
}

fn x86_64(bytes: &[u8]) -> Option<Role> {
    match without_prefixes(bytes) {
        [0xfa] => Some(Role::InterruptsOff),
        [0xfb] | [0x0f, 0x07] => Some(Role::InterruptsOn),
        [0xcf] => Some(Role::Return),
        [0x9c] => Some(Role::PushFlags),
        [0xf4] | [0x0f, 0x01, 0xc9] => Some(Role::Halt),
        [0x0f, 0x31] | [0x0f, 0x01, 0xf9] => Some(Role::Clock),
        _ => None,
    }
}

/// The instruction without legacy prefixes and REX, none of which changes a role: they only
/// select the width of `iret` and `sysret`, or have no effect.
fn without_prefixes(mut bytes: &[u8]) -> &[u8] {
    while let [0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3, rest @ ..] = bytes {
        bytes = rest;
    }
    // In 32-bit code these are instructions of their own, of one byte: nothing follows.
    if let [0x40..=0x4f, rest @ ..] = bytes { rest } else { bytes }
}

fn aarch64(word: u32) -> Option<Role> {
    let [low, ..] = word.to_le_bytes();
    let register = low & 0x1f;
    // The operand of `daifset` and `daifclr`.
    let has_irq = word & 0x200 != 0;
    Some(match (word & !0x1f, word & !0xf00) {
        _ if word == 0xd503_207f => Role::Halt,
        _ if word == 0xd69f_03e0 => Role::Return,
        (0xd53b_e040 | 0xd53b_e0c0, _) => Role::Clock,
        (0xd51b_4220, _) => Role::Interrupts(register),
        (0xd518_4100, _) => Role::Current(register),
        (_, 0xd503_40df) if has_irq => Role::InterruptsOff,
        (_, 0xd503_40ff) if has_irq => Role::InterruptsOn,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    const USER: u64 = 0x0000_7fff_f7fc_1000;

    #[test]
    fn x86_instructions_have_their_roles() {
        let of = |bytes: &[u8]| role(Target::X86_64, bytes, KERNEL);
        assert_eq!(of(&[0xfa]), Some(Role::InterruptsOff));
        assert_eq!(of(&[0xfb]), Some(Role::InterruptsOn));
        assert_eq!(of(&[0x48, 0xcf]), Some(Role::Return));
        assert_eq!(of(&[0x48, 0x0f, 0x07]), Some(Role::InterruptsOn));
        assert_eq!(of(&[0x0f, 0x07]), Some(Role::InterruptsOn));
        assert_eq!(of(&[0x9c]), Some(Role::PushFlags));
        assert_eq!(of(&[0xf4]), Some(Role::Halt));
        assert_eq!(of(&[0x0f, 0x01, 0xc9]), Some(Role::Halt));
        // A patched alternative may carry a segment prefix.
        assert_eq!(of(&[0x3e, 0xfa]), Some(Role::InterruptsOff));
    }

    #[test]
    fn x86_instructions_that_only_look_alike_have_none() {
        let of = |bytes: &[u8]| role(Target::X86_64, bytes, KERNEL);
        let others: [&[u8]; 7] = [
            &[],
            &[0x9d],             // popfq
            &[0x0f, 0x05],       // syscall
            &[0x0f, 0x01, 0xca], // clac
            &[0xb0, 0xfa],       // mov $0xfa,%al
            &[0x48, 0x89, 0xfb], // mov %rdi,%rbx
            &[0x48],
        ];
        for bytes in others {
            assert_eq!(of(bytes), None, "{bytes:x?}");
        }
    }

    #[test]
    fn clocks_are_read_everywhere_and_interrupts_switched_in_the_kernel() {
        for bytes in [&[0x0f, 0x31][..], &[0x0f, 0x01, 0xf9], &[0xf3, 0x0f, 0x31]] {
            assert_eq!(role(Target::X86_64, bytes, USER), Some(Role::Clock));
            assert_eq!(role(Target::X86_64, bytes, KERNEL), Some(Role::Clock));
        }
        assert_eq!(role(Target::X86_64, &[0xfa], USER), None);
        assert_eq!(role(Target::X86_64, &[0xf4], USER), None);
    }

    /// Of Debian's 6.1, 6.12 and 7.3.
    #[test]
    fn additions_to_a_variable_of_the_cpu_are_read() {
        let of = |bytes: &[u8], address| addition(bytes, address).map(|a| (a.target, a.what));
        let add_esi = [0x65, 0x01, 0x35, 0x61, 0x68, 0xf7, 0x7e];
        assert_eq!(
            of(&add_esi, 0xffff_ffff_810a_92d8),
            Some((Variable::At(0x1fb40), Addend::Register(6)))
        );
        let add_rax = [0x65, 0x48, 0x01, 0x05, 0xb4, 0xb9, 0xbd, 0x02];
        let known = Some((Variable::At(0xffff_ffff_83f4_d028), Addend::Register(0)));
        assert_eq!(of(&add_rax, 0xffff_ffff_8137_166c), known);
        let xadd = [0x65, 0x48, 0x0f, 0xc1, 0x05, 0xbc, 0x90, 0x4c, 0x02];
        assert_eq!(of(&xadd, 0xffff_ffff_81a8_3f63), known);
        let in_register = |bytes: &[u8]| of(bytes, KERNEL);
        let minus_one = Addend::Number(-1);
        assert_eq!(in_register(&[0x65, 0xff, 0x0e]), Some((Variable::In(6), minus_one)));
        assert_eq!(in_register(&[0x65, 0x49, 0xff, 0x0e]), Some((Variable::In(14), minus_one)));
        assert_eq!(in_register(&[0x65, 0x48, 0xff, 0x43, 0x08]), None, "with a displacement");
        let number = |bytes: &[u8]| of(bytes, KERNEL).map(|(_, what)| what);
        for (bytes, n) in [
            (&[0x65, 0xff, 0x05, 0, 0, 0, 0][..], 1),
            (&[0x65, 0x48, 0xff, 0x0d, 0, 0, 0, 0], -1),
            (&[0x65, 0x83, 0x05, 0, 0, 0, 0, 0xff], -1),
            (&[0x65, 0x81, 0x05, 0, 0, 0, 0, 0, 2, 0, 0], 0x200),
            (&[0x65, 0x48, 0x81, 0x2d, 0, 0, 0, 0, 0, 0, 1, 0], -0x1_0000),
        ] {
            assert_eq!(number(bytes), Some(Addend::Number(n)), "{bytes:x?}");
        }
        let others: [&[u8]; 7] = [
            &[],
            &[0xff, 0x05, 0, 0, 0, 0],                         // without GS
            &[0x65, 0xff, 0x04, 0x25, 0, 0, 0, 0],             // absolute
            &[0x65, 0x81, 0x25, 0, 0, 0, 0, 255, 255, 255, 0], // and
            &[0x65, 0x8b, 0x05, 0, 0, 0, 0],                   // mov
            &[0x65, 0x0f, 0xb1, 0x15, 0, 0, 0, 0],             // cmpxchg
            &[0x65, 0xff, 0x05, 0, 0],
        ];
        for bytes in others {
            assert_eq!(number(bytes), None, "{bytes:x?}");
        }
    }

    #[test]
    fn loaded_numbers_are_read() {
        assert_eq!(loaded(&[0xbe, 0, 2, 0, 0]), Some((6, 0x200)));
        assert_eq!(loaded(&[0x41, 0xb8, 1, 0, 0, 0]), Some((8, 1)));
        assert_eq!(loaded(&[0x48, 0xc7, 0xc0, 0, 0, 0xff, 0xff]), Some((0, -0x1_0000)));
        assert_eq!(loaded(&[0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 128]), None);
        assert_eq!(loaded(&[0x89, 0xf0]), None);
    }

    #[test]
    fn aarch64_instructions_have_their_roles() {
        let of = |word: u32, address| role(Target::Aarch64, &word.to_le_bytes(), address);
        assert_eq!(of(0xd53b_e040, USER), Some(Role::Clock));
        assert_eq!(of(0xd53b_e05f, USER), Some(Role::Clock));
        assert_eq!(of(0xd53b_e0c3, USER), Some(Role::Clock));
        assert_eq!(of(0xd53b_e043, KERNEL), Some(Role::Clock));
        assert_eq!(of(0xd503_207f, KERNEL), Some(Role::Halt));
        assert_eq!(of(0xd503_43df, KERNEL), Some(Role::InterruptsOff));
        assert_eq!(of(0xd503_42ff, KERNEL), Some(Role::InterruptsOn));
        assert_eq!(of(0xd51b_4233, KERNEL), Some(Role::Interrupts(19)));
        assert_eq!(of(0xd51b_423f, KERNEL), Some(Role::Interrupts(ZERO)));
        assert_eq!(of(0xd69f_03e0, KERNEL), Some(Role::Return));
        assert_eq!(of(0xd518_4101, KERNEL), Some(Role::Current(1)));
        assert_eq!(of(0xd503_44df, KERNEL), None, "daifset of errors");
        assert_eq!(of(0xd503_48ff, KERNEL), None, "daifclr of debugging");
        assert_eq!(of(0xd53b_4233, KERNEL), None, "mrs x19, daif");
        assert_eq!(of(0xd538_4101, KERNEL), None, "mrs x1, sp_el0");
        assert_eq!(of(0xd518_4101, USER), None);
        assert_eq!(of(0xd503_201f, KERNEL), None, "nop");
        assert_eq!(of(0xd53b_e020, USER), None, "cntpct_el0");
        assert_eq!(role(Target::Aarch64, &[0x7f, 0x20], KERNEL), None);
    }

    #[test]
    fn stores_to_a_place_in_a_thread_are_read() {
        let of = |word: u32, offset| stores_word(&word.to_le_bytes(), offset);
        // str w1, [x0, #8]
        assert!(of(0xb900_0801, 8) && !of(0xb900_0801, 16));
        assert!(of(0xb900_1273, 16));
        assert!(!of(0xf900_0401, 8), "str x1, [x0, #8]");
        assert!(!of(0xb940_0801, 8), "ldr w1, [x0, #8]");
        assert!(!stores_word(&[1, 8, 0], 8));
    }

    #[test]
    fn only_accesses_to_memory_are_tried_again() {
        const VECTORS: u64 = 0xffff_8000_0801_0800;
        let (current, lower, call) = (0x25 << 26 | 7, 0x24 << 26, 0x15 << 26);
        assert!(is_fault(VECTORS + 0x200, current) && is_fault(VECTORS + 0x400, lower));
        assert!(!is_fault(VECTORS + 0x400, call));
        // An interrupt leaves the syndrome as it was.
        assert!(!is_fault(VECTORS + 0x280, current) && !is_fault(VECTORS + 0x480, lower));
    }

    #[test]
    fn a_kernel_runs_at_other_addresses_before_there_are_processes() {
        const OWN: u64 = 0xffff_8000_0800_0000;
        let mut early = Early::new(Some(OWN));
        let own = |early: &mut Early, address: u64| address.wrapping_add(early.offset(address));
        assert_eq!(own(&mut early, 0x4020_0040), OWN + 0x40);
        assert_eq!(own(&mut early, OWN + 0x80), OWN + 0x80);
        assert_eq!(own(&mut early, 0x40e9_b2c0), OWN + 0xc9_b2c0);
        assert_eq!(own(&mut early, 0x20_1000), 0x20_1000);
        assert_eq!(own(&mut early, 0x4020_0040), 0x4020_0040, "of a process");
        assert_eq!(own(&mut Early::new(None), 0x4020_0040), 0x4020_0040);
    }

    #[test]
    fn targets_are_known_by_name() {
        assert_eq!(Target::named(b"x86_64"), Some(Target::X86_64));
        assert_eq!(Target::named(b"aarch64"), Some(Target::Aarch64));
        assert_eq!(Target::named(b"i386"), None);
    }
}
