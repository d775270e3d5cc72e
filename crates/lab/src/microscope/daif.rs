//! Where an arm64 kernel turns interrupts off and on, found in its code
//! (arch/arm64/include/asm/irqflags.h, daifflags.h).

use punctual_observer::event::Event;

use super::kallsyms::Image;

/// `I` in the operand of `daifset` and `daifclr` (Arm ARM, C5.2.3).
const IRQ: u32 = 2;

/// How far what belongs together lies apart, instructions: alternatives stand between.
const NEAR: usize = 8;

/// What an instruction does to interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    /// `mrs xN, daif`, if turning them off comes next.
    Save,
    /// `msr daifset, #2`, or `msr daif` with a constant.
    Off,
    /// `msr daifclr, #2`, or `msr daif` with a constant.
    On,
    /// `msr daif, xN`.
    Restore,
    /// The same, with what the interrupted context had (`local_daif_inherit`).
    Inherit,
    /// `eret`.
    Return,
    /// None of these: `mrs xN, cntvct_el0`.
    Clock,
}

/// Each of them in a kernel's code, by address.
#[derive(Clone, Default)]
pub(super) struct Switches(Vec<(u64, Switch)>);

impl Switches {
    #[cfg(test)]
    pub(super) fn made_up(all: Vec<(u64, Switch)>) -> Self {
        Self(all)
    }

    /// Of an arm64 kernel.
    pub(super) fn find(image: &Image, text: std::ops::Range<u64>) -> Self {
        let code = image.memory(text.start, text.end.saturating_sub(text.start));
        let words = code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        Self::of_code(text.start, &words.collect::<Vec<_>>())
    }

    fn of_code(start: u64, words: &[u32]) -> Self {
        let found = (0..words.len()).filter_map(|at| Some((at, switch(words, at)?)));
        Self(found.map(|(at, switch)| (start + 4 * at as u64, switch)).collect())
    }

    /// Where the clock is read.
    pub(super) fn clocks(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().filter(|(_, switch)| *switch == Switch::Clock).map(|(address, _)| *address)
    }

    /// Those of an executed block, with the counts at which they were executed.
    pub(super) fn executed(&self, block: Event, until: u64) -> impl Iterator<Item = Switched> {
        let start = block.address();
        let end = start.saturating_add(4 * until.saturating_sub(block.at));
        let first = self.0.partition_point(|(address, _)| *address < start);
        let inside = self.0[first..].iter().take_while(move |(address, _)| *address < end);
        inside.map(move |&(address, switch)| Switched {
            spot: Spot { at: block.at + (address - start) / 4, address },
            switch,
        })
    }
}

/// An instruction, and how many were executed before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) at: u64,
    pub(super) address: u64,
}

pub(super) struct Switched {
    pub(super) spot: Spot,
    pub(super) switch: Switch,
}

fn is_daifset(word: u32) -> bool {
    word & 0xffff_f0ff == 0xd503_40df && word >> 8 & IRQ != 0
}

fn switch(words: &[u32], at: usize) -> Option<Switch> {
    let word = words[at];
    Some(match (word & 0xffff_f0ff, word & !0x1f) {
        _ if is_daifset(word) => Switch::Off,
        (0xd503_40ff, _) if word >> 8 & IRQ != 0 => Switch::On,
        (_, 0xd53b_4220) if saves(words, at) => Switch::Save,
        (_, 0xd51b_4220) => written(words, at, word & 0x1f),
        (_, 0xd53b_e040) => Switch::Clock,
        _ if word == 0xd69f_03e0 => Switch::Return,
        _ => return None,
    })
}

/// Whether turning interrupts off comes next. Until 6.2 `local_irq_save` has a branch around it.
fn saves(words: &[u32], at: usize) -> bool {
    let targets = (at + 1..words.len()).take(NEAR).filter_map(|place| {
        let offset = branch(words[place])?;
        place.checked_add_signed(offset)
    });
    targets.chain([at + 1]).any(|from| turns_off(words, from))
}

/// Whether this code turns interrupts off, or calls what does.
fn turns_off(words: &[u32], from: usize) -> bool {
    let near = |from: usize| (from..words.len()).take(NEAR);
    let sets = |from: usize| near(from).any(|place| is_daifset(words[place]));
    sets(from)
        || near(from).any(|place| {
            let called = call(words[place]).and_then(|offset| place.checked_add_signed(offset));
            called.is_some_and(sets)
        })
}

/// The offset of a conditional branch, instructions (Arm ARM, C4.1.86): `b.cond` and `cbz` have it
/// in 19 bits, `tbz` in 14.
fn branch(word: u32) -> Option<isize> {
    let bits = match word >> 24 & 0x7f {
        0x54 | 0x34 | 0x35 => 19,
        0x36 | 0x37 => 14,
        _ => return None,
    };
    let signed = (word << (27 - bits)).cast_signed() >> (32 - bits);
    isize::try_from(signed).ok()
}

/// The offset of `bl`, instructions.
fn call(word: u32) -> Option<isize> {
    let offset = (word << 6).cast_signed() >> 6;
    if word >> 26 == 0x25 { isize::try_from(offset).ok() } else { None }
}

/// What is written by `msr daif, xN`.
fn written(words: &[u32], at: usize, register: u32) -> Switch {
    let before = words[..at].iter().rev().take(NEAR);
    let of_constant = |value: u32| if value & 0x80 == 0 { Switch::On } else { Switch::Off };
    if register == 31 {
        return of_constant(0);
    }
    for word in before {
        // `mov xN, #constant`, in either width.
        if word & 0x7fe0_001f == 0x5280_0000 | register {
            return of_constant(word >> 5 & 0xffff);
        }
        // `and xN, xN, #0x3c0`, the flags of what was interrupted.
        if *word == 0x927a_0c00 | register << 5 | register {
            return Switch::Inherit;
        }
        let is_jump = branch(*word).is_some() || word >> 26 & 0x1f == 5 || word >> 25 == 0x6b;
        if is_jump {
            break;
        }
    }
    Switch::Restore
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0xffff_8000_0800_0000;

    fn found(words: &[u32]) -> Vec<(usize, Switch)> {
        let all = Switches::of_code(START, words).0;
        all.into_iter()
            .map(|(at, switch)| (usize::try_from((at - START) / 4).unwrap(), switch))
            .collect()
    }

    /// Of Debian's 6.1 and 6.12.
    #[test]
    fn instructions_are_told_apart_by_what_is_around_them() {
        let save = [
            0xd503_233f,
            0xd53b_4220,
            0x1219_0001,
            0x3400_0061,
            0xd503_23bf,
            0xd65f_03c0,
            0xd503_201f,
            0xd280_0c01,
            0xd503_43df,
        ];
        assert_eq!(found(&save), [(1, Switch::Save), (8, Switch::Off)]);
        // The same, but it calls what turns them off.
        let call = [0xd53b_4233, 0x1219_0260, 0x3400_0040, 0xd65f_03c0, 0x9400_0009];
        let mut calls = call.to_vec();
        calls.resize(13, 0xd503_201f);
        calls.push(0xd503_43df);
        assert_eq!(found(&calls), [(0, Switch::Save), (13, Switch::Off)]);
        let reads = [0xd503_233f, 0xd53b_4220, 0xd503_23bf, 0xd65f_03c0];
        assert_eq!(found(&reads), [], "arch_local_save_flags");
        let constants = [0xd280_1801, 0xd51b_4221, 0xd51b_423f, 0x5280_0002, 0xd51b_4222];
        assert_eq!(found(&constants), [(1, Switch::Off), (2, Switch::On), (4, Switch::On)]);
        assert_eq!(found(&[0xf940_8660, 0x927a_0c00, 0xd51b_4220]), [(2, Switch::Inherit)]);
        assert_eq!(found(&[0xd503_233f, 0xd51b_4220]), [(1, Switch::Restore)]);
        assert_eq!(found(&[0xd280_1801, 0x3400_0041, 0xd51b_4221]), [(2, Switch::Restore)]);
        let others = [0xd503_43ff, 0xd503_4fdf, 0xd69f_03e0, 0xd53b_e040];
        let kinds = [Switch::On, Switch::Off, Switch::Return, Switch::Clock];
        assert_eq!(found(&others).into_iter().map(|(_, switch)| switch).collect::<Vec<_>>(), kinds);
        // Only debugging and errors.
        assert_eq!(found(&[0xd503_44df, 0xd503_48ff, 0xd503_201f]), []);
    }
}
