//! Where a kernel says that threads may not be switched, and where it switches them.

use anyhow::{Context, Result, ensure};
use punctual_core::preemption::Model;
use punctual_core::release::version_key;
use punctual_observer::decode::{Addend, Variable, addition, loaded};

use super::arm64;
use super::functions::{Functions, Role, role, text};
use super::kallsyms::{Image, Symbols};
use super::{joined, list};

/// How far into a function the first addition to the preempt count may be.
const WITHIN: u64 = 64;

/// Functions that begin with an addition of one to the preempt count (kernel/locking/spinlock.c).
const LOCKS: [&str; 4] =
    ["_raw_spin_lock", "_raw_spin_lock_irq", "_raw_read_lock", "_raw_spin_trylock"];

/// Where threads are switched (kernel/sched/core.c).
const SWITCHES: &str = "__schedule";

/// Where they are if nothing forbids it; the second one until 5.11. What `cond_resched` and
/// `might_sleep` call, if the preemption model lets them.
const OFFERS: [&str; 2] = ["__cond_resched", "_cond_resched"];

/// Functions that give way in the midst of a lock, whatever forbids preemption meanwhile
/// (`should_resched`; kernel/sched/core.c).
const LOCKED_OFFERS: [&str; 3] =
    ["__cond_resched_lock", "__cond_resched_rwlock_read", "__cond_resched_rwlock_write"];

/// Small functions on behalf of their callers, besides those of locks. On arm64 compilers make such of
/// what is inline in the source (arch/arm64/include/asm/irqflags.h, daifflags.h, preempt.h).
const PASSING: [&str; 18] = [
    "__preempt_count_add",
    "__preempt_count_dec_and_test",
    "__preempt_count_sub",
    "arch_local_irq_disable",
    "arch_local_irq_enable",
    "arch_local_irq_restore",
    "arch_local_irq_save",
    "local_daif_inherit",
    "local_daif_mask",
    "local_daif_restore",
    "__local_bh_disable_ip",
    "__local_bh_enable_ip",
    "preempt_count_add",
    "preempt_count_sub",
    "__SCT__cond_resched",
    "__SCT__might_resched",
    "__cond_resched",
    "rcu_read_unlock_strict",
];

/// The edges of the functions that take and release spin locks
/// (include/asm-generic/vmlinux.lds.h).
const LOCK_TEXT: [&str; 2] = ["__lock_text_start", "__lock_text_end"];

/// What tells the observer of a kernel when a woken thread could not run.
///
/// # Errors
/// It cannot be told of this kernel.
pub(super) fn arguments(
    image: &Image,
    functions: &Functions,
    model: Model,
    release: &str,
) -> Result<Vec<String>> {
    let symbols = functions.symbols();
    let is_arm64 = functions.switches().is_some();
    ensure!(
        is_arm64 || version_key(release) >= version_key("5.12"),
        "sections need Linux 5.12 or later: before, interrupts are turned on by popf too, which \
         cannot be seen from outside"
    );
    let is_cooperative = match model {
        Model::None | Model::Voluntary => true,
        Model::Full | Model::Lazy | Model::Rt => false,
        Model::Unknown => anyhow::bail!("the preemption model of {release} is not known"),
    };
    let count = if is_arm64 { arm64::count(image, symbols) } else { count(image, symbols) };
    // A cooperative kernel may do without the count, and then asks for switches regardless of it.
    let count = match count {
        None if is_cooperative && !is_arm64 => 0,
        count => count.context("where the kernel counts what forbids preemption was not found")?,
    };
    let plain = |name: &str| name.split('.').next() == Some(SWITCHES);
    ensure!(symbols.iter().any(|(.., name)| plain(name)), "the kernel has no function {SWITCHES}");
    let points = list(symbols, |name| plain(name) || LOCKED_OFFERS.contains(&name));
    let mut arguments = vec![
        "stream=1".to_owned(),
        format!("preempt={count:#x}"),
        format!("preemptible={}", u8::from(!is_cooperative)),
        format!("points={points}"),
    ];
    // Without a count the 0 is no place: nothing adds to it.
    let has_places = count != 0 && !is_arm64;
    let counts = if has_places { by_register(image, symbols, count) } else { Vec::new() };
    arguments
        .extend((!counts.is_empty()).then(|| format!("counts={}", joined(counts.into_iter()))));
    if is_arm64 {
        arguments.push(format!("entries={}", joined(functions.vectors())));
        let clocks = functions.entries(|role| role == Role::ReadsClock).into_iter();
        arguments.push(format!("clocks={}", joined(clocks)));
    }
    let offers = list(symbols, |name| OFFERS.contains(&name));
    arguments.extend((!offers.is_empty()).then(|| format!("offers={offers}")));
    let wakes = list(symbols, |name| role(name) == Role::TimerWakes);
    arguments.extend((!wakes.is_empty()).then(|| format!("wakes={wakes}")));
    let looks = if is_arm64 { arm64::looks(image, symbols) } else { looks(image, symbols) };
    let looks = looks.into_iter().take(MOST_LOOKS);
    arguments.extend(Some(format!("looks={}", joined(looks))).filter(|told| told != "looks="));
    let passing = passing(symbols).into_iter();
    let passing: Vec<String> = passing.map(|(from, to)| format!("{from:#x}-{to:#x}")).collect();
    arguments.extend((!passing.is_empty()).then(|| format!("passing={}", passing.join(":"))));
    Ok(arguments)
}

/// The variable of the CPU that functions add one to when they take a lock. Its name, and what
/// it is part of, changed with versions (`__preempt_count`, `pcpu_hot`).
pub(super) fn count(image: &Image, symbols: &Symbols) -> Option<u64> {
    LOCKS.iter().find_map(|name| {
        let address = symbols.address(name)?;
        let code = image.memory(address, WITHIN);
        // Both encodings of `inc`.
        (0..code.len()).find_map(|at| {
            [7, 8].iter().find_map(|length| {
                let bytes = code.get(at..at + length)?;
                let found = addition(bytes, address + at as u64)?;
                match (found.what, found.target) {
                    (Addend::Number(1), Variable::At(target)) => Some(target),
                    _ => None,
                }
            })
        })
    })
}

/// The half of an address that instructions have in them.
const LOW: u64 = 0xffff_ffff;

/// Instructions that add to the count by its address in a register, which the compiler loads if
/// it needs the address several times: those after it in the same function.
pub(super) fn by_register(image: &Image, symbols: &Symbols, count: u64) -> Vec<u64> {
    let Some((start, text)) = text(image, symbols) else { return Vec::new() };
    // The address is of 32 bits, or sign-extended ones.
    let low = count & LOW;
    let places = text.windows(4).enumerate().filter(|(_, four)| *four == &low.to_le_bytes()[..4]);
    let mut found = Vec::new();
    for (place, _) in places {
        // By what is before the number: that of 32 bits may have a prefix, which may as well be
        // the end of the instruction before, whose register is then used in vain.
        let loads = [3, 2, 1].iter().filter_map(|before| {
            let at = place.checked_sub(*before)?;
            let (register, number) = loaded(text.get(at..place + 4)?)?;
            (number.cast_unsigned() & LOW == low).then_some((at, register))
        });
        let additions = |(load, register): (usize, u8)| -> Vec<u64> {
            let rest = symbols.rest_of_function(start + load as u64);
            let end = load.saturating_add(usize::try_from(rest).unwrap_or(0));
            let adds = |at: &usize| {
                [3, 4, 5, 7, 8].iter().any(|length| {
                    let bytes = text.get(*at..at + length);
                    let found = bytes.and_then(|bytes| addition(bytes, start + *at as u64));
                    found.is_some_and(|found| found.target == Variable::In(register))
                })
            };
            (load..end.min(text.len())).filter(adds).map(|at| start + at as u64).collect()
        };
        found.extend(loads.map(additions).find(|all| !all.is_empty()).unwrap_or_default());
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// At most so many places; the observer has room for twice that.
const MOST_LOOKS: usize = 512;

/// A test of one bit of the word that a register points to: how a flag of the current thread is
/// tested.
struct FlagTest {
    /// The register that has the address.
    from: u8,
    mask: u8,
}

/// Bytes that may lie between the load of flags and their test.
const BETWEEN: usize = 8;

/// Bytes of a load, what is between, and a test.
const LONGEST_TEST: usize = 5 + BETWEEN + 4;

impl FlagTest {
    /// `mov (%from),%to` and soon `test $mask,%to`, or `testb $mask,(%from)`, as compilers write
    /// them.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (rex, rest) = match bytes {
            [rex @ 0x40..=0x4f, rest @ ..] => (*rex, rest),
            _ => (0, bytes),
        };
        let [opcode @ (0x8b | 0xf6), modrm, rest @ ..] = rest else { return None };
        let (low, field) = (modrm & 7, modrm >> 3 & 7);
        let (base, rest) = match (modrm >> 6, low, rest) {
            (0, 4, [0x24, rest @ ..]) | (1, 5, [0, rest @ ..]) => (low, rest),
            (0, 0..=3 | 6 | 7, rest) => (low, rest),
            _ => return None,
        };
        let from = base | (rex & 1) << 3;
        if *opcode == 0xf6 {
            return (field == 0).then(|| Some(Self { from, mask: *rest.first()? }))?;
        }
        let to = field | (rex & 4) << 1;
        let mask = (0..BETWEEN).find_map(|gap| match *rest.get(gap..)? {
            [0xa8, mask, ..] if to == 0 => Some(mask),
            [0xf6, modrm, mask, ..] if to < 8 && modrm == 0xc0 | to => Some(mask),
            [0x41, 0xf6, modrm, mask, ..] if to >= 8 && modrm == 0xc0 | to & 7 => Some(mask),
            _ => None,
        });
        (rex & 8 != 0).then_some(())?;
        Some(Self { from, mask: mask? })
    }
}

/// A load of a variable of the CPU: `mov %gs:variable,%register`.
fn variable_load(bytes: &[u8], address: u64) -> Option<(u64, u8)> {
    let &[0x65, rex @ (0x48 | 0x4c), 0x8b, modrm, ref rest @ ..] = bytes else { return None };
    let register = modrm >> 3 & 7 | (rex & 4) << 1;
    let word = |at: usize| Some(i32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
    match (modrm & 0xc7, rest.first()?) {
        (0x05, _) => Some(((address + 8).wrapping_add_signed(word(0)?.into()), register)),
        (0x04, 0x25) => Some((i64::from(word(1)?).cast_unsigned(), register)),
        _ => None,
    }
}

const LOAD: u8 = 0x8b;
const STORE: u8 = 0x89;

/// A `mov` between a register and a place on the stack: its opcode, the register, the place.
fn on_stack(bytes: &[u8]) -> Option<(u8, u8, i32)> {
    let &[rex @ (0x48 | 0x4c), opcode @ (LOAD | STORE), modrm, 0x24, ref rest @ ..] = bytes else {
        return None;
    };
    let place = match modrm & 0xc7 {
        0x04 => 0,
        0x44 => i32::from(rest.first()?.cast_signed()),
        0x84 => i32::from_le_bytes(rest.get(..4)?.try_into().ok()?),
        _ => return None,
    };
    Some((opcode, modrm >> 3 & 7 | (rex & 4) << 1, place))
}

/// How far behind a load of the current thread its register is taken to have it still: two or three
/// instructions.
const SOON: usize = 16;

fn is_just(at: usize, load: usize) -> bool {
    load > 0 && at.saturating_sub(load) <= SOON
}

/// Whether functions leave a register as it was (System V ABI).
fn is_kept(register: u8) -> bool {
    matches!(register, 3 | 5 | 12..=15)
}

/// Where code looks whether the current thread is to give way (`need_resched`): some keeps a lock
/// for long, but gives way in between, such as `zap_pte_range` (mm/memory.c). Which variable is the
/// current thread, and which bit it is, is learned from `schedule`, which looks as long as it is
/// set (kernel/sched/core.c).
fn looks(image: &Image, symbols: &Symbols) -> Vec<u64> {
    let mut found = Vec::new();
    let Some((current, mask)) = flag(image, symbols) else { return found };
    let Some((start, text)) = text(image, symbols) else { return found };
    // The registers that have the current thread, in this function, and the places on its stack.
    let (mut holding, mut until) = (0_u16, 0);
    let mut saved = Vec::new();
    let mut last_load = (0, 0_u8);
    for at in 0..text.len() {
        let address = start + at as u64;
        if address >= until {
            (holding, until) = (0, address + symbols.rest_of_function(address).max(1));
            saved.clear();
        }
        let rest = &text[at..text.len().min(at + LONGEST_TEST)];
        if let Some((variable, register)) = variable_load(rest, address)
            && variable == current
        {
            last_load = (at, register);
            holding |= u16::from(is_kept(register)) << register;
        }
        match on_stack(rest) {
            Some((STORE, register, place))
                if register == last_load.1 && is_just(at, last_load.0) =>
            {
                saved.push(place);
            }
            Some((LOAD, register, place)) if saved.contains(&place) => last_load = (at, register),
            _ => {}
        }
        let is_current = |of: &FlagTest| {
            let just = of.from == last_load.1 && is_just(at, last_load.0);
            just || holding >> of.from & 1 == 1
        };
        if FlagTest::read(rest).is_some_and(|of| of.mask == mask && is_current(&of)) {
            found.push(address);
        }
    }
    found
}

/// Where a CPU has its current thread, and the bit of its flags that says to give way.
fn flag(image: &Image, symbols: &Symbols) -> Option<(u64, u8)> {
    let start = symbols.address("schedule")?;
    let code = image.memory(start, symbols.rest_of_function(start));
    let after = |at: usize| code.get(at..code.len().min(at + LONGEST_TEST));
    let loads = (0..code.len()).filter_map(|at| variable_load(after(at)?, start + at as u64));
    let loads: Vec<(u64, u8)> = loads.collect();
    (0..code.len()).find_map(|at| {
        let test = FlagTest::read(after(at)?).filter(|test| test.mask.is_power_of_two())?;
        let (current, _) = loads.iter().find(|(_, register)| *register == test.from)?;
        Some((*current, test.mask))
    })
}

/// Starts and ends of code that stands for its callers, ascending; no two ranges touch.
pub(super) fn passing(symbols: &Symbols) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let edges = LOCK_TEXT.map(|name| symbols.address(name));
    if let [Some(start), Some(end)] = edges {
        ranges.push((start, end));
    }
    let mut all = symbols.iter().peekable();
    while let Some((start, _, name)) = all.next() {
        let end = all.peek().map_or(start, |next| next.0);
        // Copies of what is inline in the source.
        if PASSING.contains(&name) || name.starts_with("__raw_spin_") {
            ranges.push((start, end));
        }
    }
    ranges.sort_unstable();
    ranges.retain(|(start, end)| start < end);
    ranges.dedup_by(|next, before| {
        let touches = next.0 <= before.1;
        if touches {
            before.1 = before.1.max(next.1);
        }
        touches
    });
    ranges
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const BASE: u64 = 0xffff_ffff_8100_0000;

    fn symbols() -> Symbols {
        let names = [
            (0x000, "__lock_text_start"),
            (0x000, "_raw_spin_lock"),
            (0x040, "_raw_spin_unlock"),
            (0x080, "__lock_text_end"),
            (0x080, "__local_bh_enable_ip"),
            (0x0c0, "__schedule.constprop.0"),
            (0x100, "__cond_resched"),
            (0x140, "__cond_resched_lock"),
            (0x180, "last"),
        ];
        Symbols::made_up(names.into_iter().map(|(at, name)| (BASE + at, 'T', name)))
    }

    #[test]
    fn what_stands_for_its_caller_does_not_touch() {
        let expected = [(0x000, 0x0c0), (0x100, 0x140)];
        let expected = expected.map(|(a, b)| (BASE + a, BASE + b));
        assert_eq!(passing(&symbols()), expected);
    }

    /// A kernel with this code from BASE on.
    pub(in super::super) fn kernel(code: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0_u8; 64 + 56];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, b"\x7fELF\x02\x01");
        put(18, &[62]);
        put(32, &64_u64.to_le_bytes());
        put(54, &[56, 0, 1]);
        for (at, value) in [(0, 1), (8, 64 + 56), (16, BASE), (32, code.len() as u64)] {
            put(64 + at, &value.to_le_bytes());
        }
        bytes.extend_from_slice(code);
        bytes
    }

    #[test]
    fn additions_by_an_address_in_a_register_are_found_after_it_is_loaded() {
        let add_rsi = [0x65, 0xff, 0x0e];
        let add_r14 = [0x65, 0x41, 0xff, 0x0e];
        let found = |count: u64, load: &[u8]| {
            let function =
                [&add_rsi[..], &add_r14, load, &[0x90], &add_rsi, &add_r14, &[0x65, 0xff, 0x0f]];
            let function = function.concat();
            // The next one has not loaded it.
            let code = [&function[..], &add_rsi, &add_r14, &[0x90; 8]].concat();
            let names =
                [(0, "_stext"), (0, "one"), (function.len(), "two"), (code.len(), "_etext")];
            let names = names.map(|(at, name)| (BASE + at as u64, 'T', name));
            let symbols = Symbols::made_up(names.into_iter());
            let bytes = kernel(&code);
            let image = Image::read(&bytes, crate::arch::Arch::X86_64).unwrap();
            let all = by_register(&image, &symbols, count);
            let after = BASE + 7 + load.len() as u64 + 1;
            let at = |place: u64| all.contains(&(after + place));
            assert!(all.len() <= 1, "{all:?}");
            ["rsi", "r14", "rdi"]
                .into_iter()
                .zip([0, 3, 7])
                .find(|(_, place)| at(*place))
                .map(|f| f.0)
        };
        // mov $0x1fb40,%esi; $…,%r14d; $…,%rsi; $…,%r14
        let count = 0x1_fb40;
        assert_eq!(found(count, &[0xbe, 0x40, 0xfb, 1, 0]), Some("rsi"));
        assert_eq!(found(count, &[0x41, 0xbe, 0x40, 0xfb, 1, 0]), Some("r14"));
        assert_eq!(found(count, &[0x48, 0xc7, 0xc6, 0x40, 0xfb, 1, 0]), Some("rsi"));
        assert_eq!(found(count, &[0x49, 0xc7, 0xc6, 0x40, 0xfb, 1, 0]), Some("r14"));
        // mov $0x41,%al; mov $0x1fb40,%edi
        assert_eq!(found(count, &[0xb0, 0x41, 0xbf, 0x40, 0xfb, 1, 0]), Some("rdi"));
        // cmp $0x1fb40,%esi
        assert_eq!(found(count, &[0x81, 0xfe, 0x40, 0xfb, 1, 0]), None);
        let count = 0xffff_ffff_83f4_d028;
        assert_eq!(found(count, &[0x48, 0xc7, 0xc6, 0x28, 0xd0, 0xf4, 0x83]), Some("rsi"));
        assert_eq!(found(count, &[0x48, 0xc7, 0xc6, 0x29, 0xd0, 0xf4, 0x83]), None);
    }

    /// Of `schedule` in Debian's 6.1: `mov 0x0(%rbp),%rax; decl %gs:...; test $0x8,%al`, and others
    /// that mean the same.
    #[test]
    fn tests_of_a_flag_are_read() {
        let of = |bytes: &[u8]| FlagTest::read(bytes).map(|test| (test.from, test.mask));
        let with_between = [0x48, 0x8b, 0x45, 0, 0x65, 0xff, 0x0d, 0x0b, 0xcd, 0x5c, 0x7e, 0xa8, 8];
        assert_eq!(of(&with_between), Some((5, 8)));
        assert_eq!(of(&[0x48, 0x8b, 0, 0xa8, 8]), Some((0, 8)));
        assert_eq!(of(&[0x49, 0x8b, 0x04, 0x24, 0xa8, 0x10]), Some((12, 0x10)));
        assert_eq!(of(&[0x4c, 0x8b, 0x03, 0x41, 0xf6, 0xc0, 8]), Some((3, 8)));
        assert_eq!(of(&[0x48, 0x8b, 0x13, 0xf6, 0xc2, 8]), Some((3, 8)));
        assert_eq!(of(&[0xf6, 0x00, 8]), Some((0, 8)));
        assert_eq!(of(&[0x48, 0x8b, 0x40, 0x28, 0xa8, 8]), None, "another field");
        assert_eq!(of(&[0x8b, 0, 0xa8, 8]), None, "a word of 32 bits");
        assert_eq!(of(&[0x48, 0x8b, 0]), None);
        let spilled = [0x4c, 0x89, 0x84, 0x24, 0x90, 0, 0, 0];
        assert_eq!(on_stack(&spilled), Some((STORE, 8, 0x90)));
        assert_eq!(on_stack(&[0x48, 0x8b, 0x44, 0x24, 0x58]), Some((LOAD, 0, 0x58)));
        assert_eq!(on_stack(&[0x48, 0x8b, 0x45, 0x58]), None);
        let rip = [0x65, 0x48, 0x8b, 0x05, 0x47, 0xfe, 0xd0, 0x02];
        let current = 0xffff_ffff_8200_0000_u64 + 8 + 0x02d0_fe47;
        assert_eq!(variable_load(&rip, 0xffff_ffff_8200_0000), Some((current, 0)));
        let absolute = [0x65, 0x48, 0x8b, 0x2c, 0x25, 0x80, 0xfb, 1, 0];
        assert_eq!(variable_load(&absolute, 0), Some((0x1fb80, 5)));
    }

    #[test]
    fn looks_are_those_at_the_current_thread() {
        const CURRENT: [u8; 4] = [0x80, 0xfb, 1, 0];
        let load = |rex: u8, modrm: u8| [&[0x65, rex, 0x8b, modrm, 0x25][..], &CURRENT].concat();
        let test = [0x48, 0x8b, 0, 0xa8, 8];
        // In rbp, which others keep; on the stack; in rax, just loaded, and of something else.
        let schedule =
            [&[0x90][..], &load(0x48, 0x2c), &[0x90; 40], &[0x48, 0x8b, 0x45, 0, 0xa8, 8]].concat();
        let spilled = [
            &load(0x48, 0x34)[..],
            &[0x48, 0x89, 0x74, 0x24, 0x10],
            &[0x90; 40],
            &[0x48, 0x8b, 0x44, 0x24, 0x10],
            &test,
        ]
        .concat();
        let plain = [&load(0x48, 0x04)[..], &test, &[0x90; 40], &test].concat();
        let other_bit = [&load(0x48, 0x04)[..], &[0x48, 0x8b, 0, 0xa8, 4]].concat();
        // What another function has loaded or saved is of no use.
        let others = [&[0x90; 40][..], &[0x48, 0x8b, 0x44, 0x24, 0x10], &test].concat();
        let functions = [&schedule, &spilled, &plain, &other_bit, &others];
        let starts = functions.iter().scan(0, |at, code| {
            let start = *at;
            *at += code.len();
            Some(start)
        });
        let starts: Vec<usize> = starts.collect();
        let code: Vec<u8> = functions.into_iter().flatten().copied().collect();
        let names = ["schedule", "spilled", "plain", "other_bit", "others"];
        let named = [(0, "_stext")].into_iter().chain(starts.iter().copied().zip(names));
        let named = named.chain([(code.len(), "_etext")]);
        let symbols = Symbols::made_up(named.map(|(at, name)| (BASE + at as u64, 'T', name)));
        let bytes = kernel(&code);
        let image = Image::read(&bytes, crate::arch::Arch::X86_64).unwrap();
        assert_eq!(flag(&image, &symbols), Some((0x1_fb80, 8)));
        let expected = [starts[1] - 6, starts[2] - 5, starts[2] + 9];
        let expected = expected.map(|at| BASE + at as u64);
        assert_eq!(looks(&image, &symbols), expected);
    }

    #[test]
    fn a_kernel_that_cannot_be_followed_is_refused() {
        // A file without any code.
        let bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0";
        let image = Image::read(bytes, crate::arch::Arch::X86_64).unwrap();
        let functions = Functions::of(symbols());
        let of = |model, release| arguments(&image, &functions, model, release);
        let error = |model, release| of(model, release).unwrap_err().to_string();
        assert!(error(Model::None, "5.10.0-46-amd64").contains("5.12 or later"));
        assert!(error(Model::Unknown, "6.1.0").contains("not known"));
        assert!(error(Model::Full, "6.1.0").contains("not found"));
        let told = of(Model::None, "6.1.0").unwrap();
        assert!(told.contains(&"preempt=0x0".to_owned()), "{told:?}");
        let points = format!("points={:#x}:{:#x}", BASE + 0xc0, BASE + 0x140);
        assert!(told.contains(&points), "{told:?}");
        assert!(told.contains(&"preemptible=0".to_owned()), "{told:?}");
        // mov $0,%esi; decl %gs:(%rsi): of a variable that has no place, not of the count.
        let bytes = kernel(&[0xbe, 0, 0, 0, 0, 0x65, 0xff, 0x0e, 0x90, 0x90]);
        let image = Image::read(&bytes, crate::arch::Arch::X86_64).unwrap();
        let names = [(0, "_stext"), (0, "__schedule"), (10, "_etext"), (10, "last")];
        let symbols = Symbols::made_up(names.into_iter().map(|(at, name)| (BASE + at, 'T', name)));
        let told = arguments(&image, &Functions::of(symbols), Model::None, "6.1.0").unwrap();
        assert!(!told.iter().any(|one| one.starts_with("counts=")), "{told:?}");
    }
}
