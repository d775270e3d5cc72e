//! Which thread the CPU executes, and what it is called.
//!
//! The observer sees the instruction of `__switch_to_asm` that loads the stack pointer of the thread
//! that is switched to (arch/x86/entry/entry_64.S), or that of `cpu_switch_to` which loads where it
//! goes on (arch/arm64/kernel/entry.S), and reads that thread in the guest's memory.

use punctual_core::explanation::GuestThread;
use punctual_observer::event::{Event, Kind, bytes_of};
use punctual_observer::tasks::{SIZE, Task};

use super::btf;
use super::kallsyms::{Image, Symbols};

/// Where threads are switched.
const SWITCH: &str = "__switch_to_asm";

/// `mov offset(%rsi), %rsp`, before its offset of four bytes.
const LOAD: [u8; 3] = [0x48, 0x8b, 0xa6];

/// Where they are on arm64.
const SWITCH_ARM64: &str = "cpu_switch_to";

/// `ldr lr, [x8]`: the last of the registers that a thread has kept, 12 words after the first.
const LOAD_ARM64: u32 = 0xf940_011e;
const BEFORE: u32 = 12 * 8;

/// What tells the observer to follow threads: where they are switched, and what is where in one.
/// Nothing if the kernel does not show it.
pub(super) fn arguments(image: &Image, symbols: &Symbols) -> Vec<String> {
    let found = switch(image, symbols).or_else(|| switch_arm64(image, symbols));
    let Some((place, stack)) = found else { return Vec::new() };
    let fields = btf::offsets(btf::of(image, symbols), "task_struct", ["pid", "prio", "comm"]);
    let task =
        fields.map(|[pid, prio, comm]| format!("task={stack:#x}:{pid:#x}:{prio:#x}:{comm:#x}"));
    [format!("switch={place:#x}")].into_iter().chain(task).collect()
}

/// The instruction's address, and its offset.
fn switch(image: &Image, symbols: &Symbols) -> Option<(u64, u32)> {
    let start = symbols.address(SWITCH)?;
    let code = image.memory(start, symbols.rest_of_function(start));
    let at = code.windows(LOAD.len()).position(|bytes| bytes == LOAD)?;
    let offset = code.get(at + LOAD.len()..)?.first_chunk().copied()?;
    Some((start + at as u64, u32::from_le_bytes(offset)))
}

fn switch_arm64(image: &Image, symbols: &Symbols) -> Option<(u64, u32)> {
    let start = symbols.address(SWITCH_ARM64)?;
    let code = image.memory(start, symbols.rest_of_function(start)).as_chunks::<4>().0;
    let words: Vec<u32> = code.iter().map(|word| u32::from_le_bytes(*word)).collect();
    // `mov x10, #offset`, from the start of a thread to these registers.
    let offset = words.iter().find(|word| **word & 0xffe0_001f == 0xd280_000a)? >> 5 & 0xffff;
    let at = words.iter().position(|word| *word == LOAD_ARM64)?;
    Some((start + 4 * at as u64, offset + BEFORE))
}

/// Which threads run one after the other: from which count of instructions on. Those of which
/// nothing is known but that they are others than the ones before are `None`.
pub(super) fn turns(events: &[Event]) -> Vec<(u64, Option<GuestThread>)> {
    let mut turns: Vec<(u64, Option<GuestThread>)> = Vec::new();
    let mut read = Vec::new();
    for event in events {
        match event.kind() {
            Some(Kind::Switch) => {
                read.clear();
                turns.push((event.at, None));
            }
            Some(Kind::Task) => {
                read.extend(bytes_of(event.value()));
                if let (Some((_, thread)), Ok(bytes)) =
                    (turns.last_mut(), <[u8; SIZE]>::try_from(&read[..]))
                {
                    *thread = Some(named(&Task::of(bytes)));
                }
            }
            _ => {}
        }
    }
    turns
}

fn named(task: &Task) -> GuestThread {
    let length = task.name.iter().position(|byte| *byte == 0).unwrap_or(task.name.len());
    GuestThread {
        name: String::from_utf8_lossy(&task.name[..length]).into_owned(),
        pid: task.pid,
        // -1 in one byte.
        priority: if task.prio == u8::MAX { -1 } else { task.prio.into() },
    }
}

#[cfg(test)]
pub(super) mod tests {
    use punctual_observer::event::values;

    use super::super::arm64::tests::{ARM64, arm64_kernel};
    use super::super::btf::EDGES;
    use super::super::btf::tests::made_up;
    use super::super::preempt::tests::{BASE, kernel};
    use super::*;
    use crate::arch::Arch;

    #[test]
    fn the_switch_and_the_thread_are_found_in_the_image() {
        // push %rbp; mov %rsp,0x1518(%rdi); mov 0x1518(%rsi),%rsp; jmp
        let code = b"\x55\x48\x89\xa7\x18\x15\0\0\x48\x8b\xa6\x18\x15\0\0\xe9";
        let btf = made_up(&[("pid", 80), ("prio", 32), ("comm", 8_000)]);
        let bytes = [&code[..], &[0; 16], &btf].concat();
        let end = BASE + bytes.len() as u64;
        let symbols = |switch: &'static str| {
            let names =
                [(BASE, switch), (BASE + 16, "next"), (BASE + 32, EDGES[0]), (end, EDGES[1])];
            Symbols::made_up(names.into_iter().map(|(at, name)| (at, 'T', name)))
        };
        let file = kernel(&bytes);
        let image = Image::read(&file, Arch::X86_64).unwrap();
        let switch = format!("switch={:#x}", BASE + 8);
        let task = "task=0x1518:0xa:0x4:0x3e8".to_owned();
        assert_eq!(arguments(&image, &symbols(SWITCH)), [switch.clone(), task]);
        assert_eq!(arguments(&image, &symbols("switch_to")), [""; 0]);
        let without = kernel(code);
        let without = Image::read(&without, Arch::X86_64).unwrap();
        assert_eq!(arguments(&without, &symbols(SWITCH)), [switch]);
    }

    #[test]
    fn the_switch_of_an_arm64_kernel_is_found_in_its_image() {
        // mov x10, #0xb80; add x8, x0, x10; str lr, [x8]; add x8, x1, x10; ldr lr, [x8]
        let code = [0xd281_700a, 0x8b0a_0008, 0xf900_011e, 0x8b0a_0028, 0xf940_011e];
        let file = arm64_kernel(&code, &[]);
        let image = Image::read(&file, Arch::Aarch64).unwrap();
        let start = ARM64;
        let names = [(start, SWITCH_ARM64), (start + 20, "next")];
        let symbols = Symbols::made_up(names.into_iter().map(|(at, name)| (at, 'T', name)));
        assert_eq!(switch_arm64(&image, &symbols), Some((start + 16, 0xb80 + 96)));
        let names = [(start, SWITCH_ARM64), (start + 16, "next")];
        let symbols = Symbols::made_up(names.into_iter().map(|(at, name)| (at, 'T', name)));
        assert_eq!(switch_arm64(&image, &symbols), None, "it has no load");
    }

    /// A thread that gets the CPU, as the observer writes it.
    pub(in super::super) fn switched(at: u64, name: &str, prio: u8, pid: u32) -> Vec<Event> {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(16, 0);
        bytes.push(prio);
        bytes.extend(pid.to_le_bytes());
        let words = values(&bytes).map(|value| Event::new(at, Kind::Task, value));
        [Event::new(at, Kind::Switch, 0x1000)].into_iter().chain(words).collect()
    }

    #[test]
    fn threads_are_read_as_they_come() {
        let mut events = switched(5, "kworker/0:1-even", 120, 70_000);
        events.push(Event::new(7, Kind::Switch, 0x2000));
        events.extend(switched(9, "dl", 255, 8));
        let thread =
            |name: &str, pid, priority| Some(GuestThread { name: name.to_owned(), pid, priority });
        let expected =
            [(5, thread("kworker/0:1-even", 70_000, 120)), (7, None), (9, thread("dl", 8, -1))];
        assert_eq!(turns(&events), expected);
        // Without all of it, it has no name.
        assert_eq!(turns(&events[..3]), [(5, None)]);
    }
}
