//! Where members of the kernel's structures are, from the type information that it carries (BTF,
//! Documentation/bpf/btf.rst).

use super::kallsyms::{Image, Symbols};
use crate::elf::{u16_at, u32_at};

/// `BTF_MAGIC`, and the only version.
const MAGIC: u16 = 0xeb9f;

/// `BTF_KIND_STRUCT`.
const STRUCT: u32 = 4;

/// Bytes of a type, of which some kinds have more after them.
const TYPE: usize = 12;

/// Bytes of a member.
const MEMBER: usize = 12;

/// The edges of a kernel's type information (include/asm-generic/vmlinux.lds.h).
pub(super) const EDGES: [&str; 2] = ["__start_BTF", "__stop_BTF"];

/// What it begins with: magic, version, no flags, and its header's length.
const BEGIN: [u8; 8] = [0x9f, 0xeb, 1, 0, 24, 0, 0, 0];

/// The type information of a kernel. Only with CONFIG_KALLSYMS_ALL its edges have names, which Debian's
/// arm64 has from 6.12 on.
pub(super) fn of<'a>(image: &Image<'a>, symbols: &Symbols) -> &'a [u8] {
    match EDGES.map(|name| symbols.address(name)) {
        [Some(start), Some(stop)] => image.memory(start, stop.saturating_sub(start)),
        _ => image.from(&BEGIN),
    }
}

/// Where these members of a structure begin, bytes. `None`: it has no such structure, or not all
/// of them, or one begins between two bytes.
pub(super) fn offsets<const N: usize>(
    btf: &[u8],
    structure: &str,
    members: [&str; N],
) -> Option<[u64; N]> {
    let word = |at: usize| usize::try_from(u32_at(btf, at)?).ok();
    (u16_at(btf, 0)? == MAGIC).then_some(())?;
    let header = word(4)?;
    let part = |at: usize| {
        let start = header.checked_add(word(at)?)?;
        btf.get(start..start.checked_add(word(at + 4)?)?)
    };
    let (types, names) = (part(8)?, part(16)?);
    let is_called = |at: u32, name: &str| {
        let rest = usize::try_from(at).ok().and_then(|at| names.get(at..));
        rest.and_then(|rest| rest.strip_prefix(name.as_bytes())?.first()) == Some(&0)
    };
    let mut at = 0;
    loop {
        let (name, info) = (u32_at(types, at)?, u32_at(types, at + 4)?);
        let (kind, count) = (info >> 24 & 0x1f, usize::try_from(info & 0xffff).ok()?);
        let more = at + TYPE;
        if kind == STRUCT && is_called(name, structure) {
            let has_bitfields = info >> 31 == 1;
            let offset = |member: &str| {
                let all = (0..count).map(|number| more + number * MEMBER);
                let mut found =
                    all.filter(|at| u32_at(types, *at).is_some_and(|n| is_called(n, member)));
                let bits = u32_at(types, found.next()? + 8)?;
                let bits = if has_bitfields { bits & 0xff_ffff } else { bits };
                (bits % 8 == 0).then_some(u64::from(bits / 8))
            };
            let mut found = [0; N];
            for (place, member) in found.iter_mut().zip(members) {
                *place = offset(member)?;
            }
            return Some(found);
        }
        at = more + length(kind, count)?;
    }
}

/// Bytes after a type of this kind (include/uapi/linux/btf.h); `None`: there is no such kind.
fn length(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Pointers, forward declarations, names and qualifiers of types, functions, floats, tags.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables, tags of declarations.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Enumerations, and what functions take.
        6 | 13 => 8 * count,
        // Structures and unions, sections, enumerations of 64 bits.
        4 | 5 | 15 | 19 => MEMBER * count,
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Type information with some types before and in `task_struct`: its members and their places
    /// in bits.
    pub(in super::super) fn made_up(members: &[(&str, u32)]) -> Vec<u8> {
        made_up_of("task_struct", members)
    }

    /// The same of another structure, whose name has as many letters.
    pub(in super::super) fn made_up_of(structure: &str, members: &[(&str, u32)]) -> Vec<u8> {
        let mut names = format!("\0int\0{structure}\0{structure}_old\0").into_bytes();
        let mut types = Vec::new();
        let mut add = |words: &[u32]| words.iter().for_each(|w| types.extend(w.to_le_bytes()));
        add(&[1, 1 << 24, 4, 32]);
        add(&[0, 3 << 24, 0, 1, 1, 4]);
        // A structure whose name begins like that which is looked for.
        add(&[17, 4 << 24 | 1, 8, 1, 1, 0]);
        add(&[0, 6 << 24 | 2, 4, 1, 0, 1, 1]);
        add(&[5, 1 << 31 | 4 << 24 | u32::try_from(members.len()).unwrap(), 4_096]);
        for (member, bits) in members {
            // A member of a bit's size, but for its place.
            add(&[u32::try_from(names.len()).unwrap(), 1, 1 << 24 | bits]);
            names.extend(member.bytes().chain([0]));
        }
        let lengths = [types.len(), names.len()].map(|length| u32::try_from(length).unwrap());
        let mut all = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, lengths[0], lengths[0], lengths[1]] {
            all.extend(word.to_le_bytes());
        }
        all.extend(types);
        all.extend(names);
        all
    }

    #[test]
    fn members_are_found_by_name() {
        let btf = made_up(&[("pid", 80), ("tgid", 112), ("bit", 3), ("comm", 8_000)]);
        assert_eq!(offsets(&btf, "task_struct", ["comm", "pid"]), Some([1_000, 10]));
        assert_eq!(offsets(&btf, "task_struct", ["co"]), None);
        assert_eq!(offsets(&btf, "task_struct", ["bit"]), None);
        assert_eq!(offsets(&btf, "task", ["pid"]), None);
    }

    #[test]
    fn nothing_cut_short_or_damaged_is_believed() {
        let btf = made_up(&[("pid", 80), ("comm", 8_000)]);
        for length in 0..btf.len() {
            assert_eq!(offsets(&btf[..length], "task_struct", ["pid", "comm"]), None, "{length}");
        }
        for at in 0..btf.len() {
            for byte in [0, 0x7f, 0xff] {
                let mut damaged = btf.clone();
                damaged[at] = byte;
                let _ = offsets(&damaged, "task_struct", ["pid"]);
            }
        }
    }
}
