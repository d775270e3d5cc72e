//! Where a kernel takes locks and forbids preemption, by the bytes of its code.
//!
//! Only what is as good as certain, on x86 by four bytes that name an address: a direct call or jump to
//! the start of a function that takes a lock, and an addition to the preempt count. The instruction
//! that turns interrupts off (`cli`) is a single byte, which may as well be part of another one,
//! and on kernels for Xen it is only written at boot: it is not looked for.

use punctual_observer::decode::{Addend, Variable, addition};

use super::arm64;
use super::functions::{Functions, text};
use super::kallsyms::{Image, Symbols};
use super::preempt::{by_register, count, passing};

/// What functions begin with that take a lock with which preemption is off
/// (include/linux/spinlock_api_smp.h, rwlock_api_smp.h). With PREEMPT_RT too: the locks that
/// threads sleep on have other names there (`rt_spin_lock`). Where taking a lock is inline, as in arm64
/// kernels that do not count, what waits for it is called.
const LOCKS: [&str; 9] = [
    "queued_read_lock_slowpath",
    "queued_spin_lock_slowpath",
    "queued_write_lock_slowpath",
    "_raw_spin_lock",
    "_raw_spin_trylock",
    "_raw_read_lock",
    "_raw_read_trylock",
    "_raw_write_lock",
    "_raw_write_trylock",
];

/// A direct call, and a direct jump.
const TO: [u8; 2] = [0xe8, 0xe9];

/// Bytes of a call or jump.
const LENGTH: usize = 5;

/// The prefix of a variable of the CPU.
const GS: u8 = 0x65;

/// Bytes of the longest addition: prefixes, operation, address, number.
const LONGEST: usize = 12;

/// The addresses of the instructions that take a lock or add to the preempt count, ascending. What
/// only does so for its caller has none.
pub(super) fn places(image: &Image, functions: &Functions) -> Vec<u64> {
    let symbols = functions.symbols();
    let locks: Vec<u64> = symbols
        .iter()
        .filter(|(.., name)| LOCKS.iter().any(|lock| name.starts_with(lock)))
        .map(|(address, ..)| address)
        .collect();
    let mut places = match functions.switches() {
        Some(_) => arm64::locking(image, symbols, &locks),
        None => x86(image, symbols, &locks),
    };
    let passing = passing(symbols);
    places.retain(|at| !passing.iter().any(|(start, end)| (*start..*end).contains(at)));
    places
}

fn x86(image: &Image, symbols: &Symbols, locks: &[u64]) -> Vec<u64> {
    let Some((start, text)) = text(image, symbols) else { return Vec::new() };
    let count = count(image, symbols);
    let by_register = count.map(|count| by_register(image, symbols, count)).unwrap_or_default();
    let takes = |at: usize, address: u64| {
        let bytes = |length: usize| text.get(at..at + length);
        match text[at] {
            opcode if TO.contains(&opcode) => bytes(LENGTH).is_some_and(|bytes| {
                let by = i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
                let target = address.wrapping_add(LENGTH as u64).wrapping_add_signed(by.into());
                locks.binary_search(&target).is_ok()
            }),
            GS => (3..=LONGEST).any(|length| {
                let found = bytes(length).and_then(|bytes| addition(bytes, address));
                found.is_some_and(|found| {
                    let is_count = match found.target {
                        Variable::At(place) => Some(place) == count,
                        Variable::In(_) => by_register.binary_search(&address).is_ok(),
                    };
                    is_count && matches!(found.what, Addend::Number(1..))
                })
            }),
            _ => false,
        }
    };
    let places = text.iter().enumerate().filter_map(|(at, _)| {
        let address = start + at as u64;
        takes(at, address).then_some(address)
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::super::preempt::tests::{BASE, kernel};
    use super::*;
    use crate::arch::Arch;

    const COUNT: i32 = 0x10_0000;

    /// An instruction at this place that names another by its distance, before `rest`.
    fn to(at: i32, opcode: &[u8], target: i32, rest: &[u8]) -> Vec<u8> {
        let next = at + i32::try_from(opcode.len() + 4 + rest.len()).unwrap();
        [opcode, &(target - next).to_le_bytes(), rest].concat()
    }

    #[test]
    fn locks_are_taken_where_their_functions_are_called_and_the_count_grows() {
        let (inc, dec, add) = ([0x65, 0xff, 0x05], [0x65, 0xff, 0x0d], [0x65, 0x81, 0x05]);
        let (call, jump) = ([0xe8], [0xe9]);
        let low = u32::try_from(BASE & 0xffff_ffff).unwrap() + COUNT.unsigned_abs();
        let load = [&[0x48, 0xc7, 0xc6][..], &low.to_le_bytes()].concat();
        let instructions = [
            // Of a lock itself, by which the count is known.
            (0x04, to(0x04, &inc, COUNT, &[])),
            (0x100, to(0x100, &call, 0x00, &[])),
            (0x108, to(0x108, &jump, 0x20, &[])),
            // Into a function, and to one that releases.
            (0x110, to(0x110, &call, 0x01, &[])),
            (0x118, to(0x118, &call, 0x40, &[])),
            (0x120, to(0x120, &inc, COUNT, &[])),
            (0x128, to(0x128, &dec, COUNT, &[])),
            (0x130, to(0x130, &inc, COUNT + 4, &[])),
            (0x140, to(0x140, &add, COUNT, &0x200_i32.to_le_bytes())),
            (0x150, to(0x150, &add, COUNT, &(-0x200_i32).to_le_bytes())),
            // By its address in rsi, and of another one in rdi.
            (0x160, load),
            (0x168, vec![0x65, 0xff, 0x06]),
            (0x170, vec![0x65, 0xff, 0x0e]),
            (0x178, vec![0x65, 0xff, 0x07]),
            // Cut short by the end.
            (0x1fe, vec![0xe8, 0]),
        ];
        let mut code = vec![0x90; 0x200];
        for (at, bytes) in instructions {
            code[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        let names = [
            (0, "_stext"),
            (0, "__lock_text_start"),
            (0, "_raw_spin_lock"),
            (0x20, "_raw_write_lock_irqsave"),
            (0x40, "_raw_spin_unlock"),
            (0x60, "__lock_text_end"),
            (0x60, "one"),
            (0x200, "_etext"),
        ];
        let names = names.map(|(at, name)| (BASE + at, 'T', name));
        let symbols = Symbols::made_up(names.into_iter());
        let file = kernel(&code);
        let image = Image::read(&file, Arch::X86_64).unwrap();
        let expected = [0x100, 0x108, 0x120, 0x140, 0x168].map(|at| BASE + at);
        assert_eq!(places(&image, &Functions::of(symbols)), expected);
    }
}
