//! The plugin: what QEMU calls.

use core::ffi::{c_char, c_int, c_uint, c_void};

use crate::api::{self, Access, Block, Guest, Info, Instruction, OnExecution};
use crate::arguments::{ADDRESSES_MAX, Arguments, List, Refusal, key};
use crate::counter;
use crate::coverage::{self, Coverage};
use crate::decode::{
    Addend, Early, MASKED, Role, Target, Variable, ZERO, addition, is_fault, is_kernel, loaded,
    role, stores_word,
};
use crate::event::{self, Header, Kind, PROTOCOL};
use crate::host::{self, File, Mapped};
use crate::observer::Observer;
use crate::output::{Output, Sink};
use crate::raw::{PluginId, RawBlock};
use crate::registers::{self, Register};
use crate::ring::Ring;
use crate::rules::Rules;
use crate::single::Single;

/// Events that are collected before they are written: 64 KiB.
const BUFFERED: usize = 4096;

/// Halting instructions in a kernel, at most. There is one for each way to be idle.
const HALTS_MAX: usize = 16;

static ARGUMENTS: Single<Arguments> = Single::new(Arguments::NONE);
static OBSERVER: Single<Observer<'static, File>> = Single::new(Observer::new(
    Ring::new(&mut []),
    Output::new(File(1), &mut []),
    Coverage::none(),
    Rules::NONE,
));
static MEMORY: Single<Mapped> = Single::new(Mapped::NONE);
/// Where the thread that runs counts why it may not be switched (aarch64).
static COUNT_PLACE: Single<u64> = Single::new(0);
static TRANSLATION: Single<Translation> = Single::new(Translation {
    target: Target::X86_64,
    early: Early::new(None),
    after_halts: [0; HALTS_MAX],
    numbers: [0; NUMBERS_MAX],
});

/// Different numbers that a kernel adds to its count of why it may not switch threads, at most.
/// Debian's 6.1 and 7.3 have 12.
const NUMBERS_MAX: usize = 64;

/// In which register the function that enables bottom halves is told what to take from the count
/// (`esi`), and the two numbers that there are (SOFTIRQ_DISABLE_OFFSET and SOFTIRQ_LOCK_OFFSET,
/// include/linux/preempt.h).
const BOTTOM_HALVES: (u8, [i64; 2]) = (6, [0x200, 0x201]);

/// What decides how a block is instrumented.
struct Translation {
    target: Target,
    early: Early,
    /// Addresses at which a CPU goes on if it halts with interrupts off, 0 for none: `wfi` on
    /// aarch64. QEMU reports idle CPUs only if each has a thread of its own.
    after_halts: [u64; HALTS_MAX],
    /// What is added to the preempt count, by the numbers that callbacks are given; 0 for none.
    numbers: [i64; NUMBERS_MAX],
}

/// What is known of a block from the instructions before.
#[derive(Default)]
struct Before {
    pushed_flags: bool,
    /// The register that the last instruction loaded with a number.
    loaded: Option<(u8, i64)>,
}

impl Translation {
    /// The number that stands for an addend; `None` if there are too many.
    fn number_of(&mut self, addend: i64) -> Option<u64> {
        let place = self.numbers.iter().position(|known| *known == addend || *known == 0)?;
        *self.numbers.get_mut(place)? = addend;
        Some(place as u64)
    }

    fn is_after_halt(&self, address: u64) -> bool {
        self.after_halts.contains(&address)
    }

    fn note_halt(&mut self, after: u64) {
        if !self.is_after_halt(after)
            && let Some(free) = self.after_halts.iter_mut().find(|address| **address == 0)
        {
            *free = after;
        }
    }

    /// A CPU arrives at an entry, or goes on after a halt, only at the start of a block. These
    /// callbacks come before that of the block itself.
    fn instrument(&mut self, block: &mut Block, arguments: &Arguments) {
        let offset = self.early.offset(block.address());
        let address = block.address().wrapping_add(offset);
        if arguments.entries.contains(address) {
            match self.target {
                Target::X86_64 => block.on_execution(on_interrupt, address),
                Target::Aarch64 => block.on_execution_reading(on_exception, address),
            }
        } else if arguments.clocks.contains(address) {
            block.on_execution(on_asks_for_clock, address);
        } else if arguments.syscalls.contains(address) {
            block.on_execution(on_system_call, address);
        } else if arguments.points.contains(address) {
            block.on_execution(on_point, address);
        } else if arguments.offers.contains(address) {
            block.on_execution(on_offer, address);
        } else if arguments.wakes.contains(address) {
            block.on_execution(on_wake, address);
        } else if self.is_after_halt(address) {
            block.on_execution(on_resume, address);
        }
        let has_milestones = !arguments.milestones.as_slice().is_empty();
        let callback: Option<OnExecution> = match (is_kernel(address), has_milestones) {
            (true, false) => Some(on_block),
            (false, false) => Some(on_user_block),
            (false, true) => Some(on_user_milestone),
            (true, true) => arguments.milestones.contains(address).then_some(on_milestone),
        };
        if let Some(callback) = callback {
            block.on_execution(callback, event::word(Kind::Block, address));
        }
        let mut before = Before::default();
        block.each_instruction(|instruction| {
            let address = instruction.address().wrapping_add(offset);
            self.instrument_one(instruction, address, arguments, &mut before);
        });
    }

    fn instrument_one(
        &mut self,
        instruction: &mut Instruction,
        address: u64,
        arguments: &Arguments,
        before: &mut Before,
    ) {
        if arguments.begin == Some(address) {
            instruction.on_execution(on_begin, address);
        }
        if arguments.sample == Some(address) {
            instruction.on_execution(on_sample, address);
        }
        if arguments.finish == Some(address) {
            instruction.on_execution(on_finish, address);
        }
        if arguments.switch == Some(address) {
            instruction.on_access(on_switch, address);
        }
        if arguments.looks.contains(address) {
            instruction.on_execution(on_look, address);
        }
        let (bytes, size) = instruction.bytes();
        let bytes = bytes.get(..size).unwrap_or_default();
        let is_empty = |list: &List<ADDRESSES_MAX>| list.as_slice().is_empty();
        let follows_interrupts = is_empty(&arguments.milestones)
            && (self.target == Target::X86_64 || !is_empty(&arguments.entries));
        match role(self.target, bytes, address) {
            Some(Role::Clock) if !is_kernel(address) => instruction.on_execution(on_clock, address),
            Some(Role::Clock) if is_empty(&arguments.clocks) => {}
            Some(Role::Clock) => instruction.on_execution(on_kernel_clock, address),
            Some(Role::PushFlags) => before.pushed_flags = true,
            Some(Role::Halt) => {
                self.note_halt(address.wrapping_add(size as u64));
                instruction.on_execution(on_halt, address);
            }
            Some(_) if !follows_interrupts => {}
            Some(Role::Interrupts(register)) => {
                instruction
                    .on_execution_reading(on_interrupts, event::packed(register.into(), address));
            }
            Some(Role::Current(register)) => {
                instruction.on_execution_reading(on_current, register.into());
            }
            Some(Role::Return) if self.target == Target::Aarch64 => {
                instruction.on_execution_reading(on_exception_return, address);
            }
            Some(Role::InterruptsOff) => instruction.on_execution(on_interrupts_off, address),
            Some(Role::InterruptsOn) => instruction.on_execution(on_interrupts_on, address),
            Some(Role::Return) if !before.pushed_flags => {
                instruction.on_execution(on_return, address);
            }
            Some(Role::Return) | None => {}
        }
        let Some(target) = arguments.preempt.filter(|_| is_kernel(address)) else { return };
        if self.target == Target::Aarch64 {
            if stores_word(bytes, target) {
                instruction.on_access(on_store, address);
            }
        } else {
            let is_target = |variable| match variable {
                Variable::At(place) => place == target,
                Variable::In(_) => arguments.counts.contains(address),
            };
            self.instrument_count(instruction, bytes, is_target, before);
        }
    }

    /// Follows the preempt count, which is the variable that `is_target` knows.
    fn instrument_count(
        &mut self,
        instruction: &mut Instruction,
        bytes: &[u8],
        is_target: impl Fn(Variable) -> bool,
        before: &mut Before,
    ) {
        let address = instruction.address();
        let loaded = loaded(bytes);
        let last = core::mem::replace(&mut before.loaded, loaded);
        if let Some((register, number)) = loaded
            && register == BOTTOM_HALVES.0
            && BOTTOM_HALVES.1.contains(&number)
        {
            instruction.on_execution(on_bottom_halves, number.unsigned_abs());
        }
        let Some(addition) = addition(bytes, address).filter(|of| is_target(of.target)) else {
            return;
        };
        let number = match addition.what {
            Addend::Number(number) => Some(number),
            Addend::Register(register) => {
                last.filter(|loaded| loaded.0 == register).map(|loaded| loaded.1)
            }
        };
        let place = number.map(|number| self.number_of(number));
        match place {
            Some(Some(place)) => {
                instruction.on_execution(on_preempt_count, event::packed(place, address));
            }
            // Counted wrong from here on, which is seen and told in user space.
            Some(None) => {}
            None => instruction.on_execution(on_bottom_halves_enabled, address),
        }
    }
}

extern "C" fn translate(_id: PluginId, block: *mut RawBlock) {
    // SAFETY: this is the translation callback.
    let mut block = unsafe { Block::new(block) };
    TRANSLATION.with(|translation| {
        ARGUMENTS.with(|arguments| translation.instrument(&mut block, arguments));
    });
}

extern "C" fn on_block(_cpu: c_uint, word: *mut c_void) {
    OBSERVER.with(|guest| guest.block(counter::now(), word.addr() as u64));
}

extern "C" fn on_user_block(_cpu: c_uint, word: *mut c_void) {
    OBSERVER.with(|guest| guest.user_block(counter::now(), word.addr() as u64));
}

extern "C" fn on_milestone(_cpu: c_uint, word: *mut c_void) {
    OBSERVER.with(|guest| guest.milestone(counter::now(), word.addr() as u64));
}

extern "C" fn on_user_milestone(_cpu: c_uint, word: *mut c_void) {
    OBSERVER.with(|guest| guest.user_milestone(counter::now(), word.addr() as u64));
}

extern "C" fn on_system_call(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.system_call(counter::now(), address.addr() as u64));
}

extern "C" fn on_point(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.scheduling_point(counter::now(), address.addr() as u64));
}

extern "C" fn on_offer(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.scheduling_offer(counter::now(), address.addr() as u64));
}

extern "C" fn on_look(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.look(counter::now(), address.addr() as u64));
}

extern "C" fn on_preempt_count(_cpu: c_uint, word: *mut c_void) {
    let (place, address) = event::unpacked(word.addr() as u64);
    let number = TRANSLATION.with(|all| all.numbers.get(place).copied().unwrap_or_default());
    OBSERVER.with(|guest| guest.preempt_count_add(counter::now(), address, number));
}

extern "C" fn on_bottom_halves(_cpu: c_uint, number: *mut c_void) {
    OBSERVER.with(|guest| guest.enables_bottom_halves(number.addr() as i64));
}

extern "C" fn on_bottom_halves_enabled(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.bottom_halves_enabled(counter::now(), address.addr() as u64));
}

extern "C" fn on_begin(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.begin(counter::now(), address.addr() as u64));
}

extern "C" fn on_sample(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| {
        ARGUMENTS.with(|all| guest.sample(counter::now(), address.addr() as u64, &all.dumps));
    });
}

extern "C" fn on_finish(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.finish(counter::now(), address.addr() as u64));
}

extern "C" fn on_clock(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.clock(counter::now(), address.addr() as u64));
}

extern "C" fn on_halt(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.halt(counter::now(), address.addr() as u64));
}

extern "C" fn on_resume(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.resume(counter::now(), address.addr() as u64));
}

extern "C" fn on_interrupt(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.interrupt(counter::now(), address.addr() as u64));
}

extern "C" fn on_exception(_cpu: c_uint, address: *mut c_void) {
    let (at, vector) = (counter::now(), address.addr() as u64);
    let syndrome = registers::read(Register::Syndrome);
    OBSERVER.with(|guest| {
        match syndrome {
            Some(syndrome) if is_fault(vector, syndrome) => guest.fault(at, vector),
            Some(_) => {}
            None => guest.lost(),
        }
        guest.interrupt(at, vector);
    });
}

extern "C" fn on_exception_return(_cpu: c_uint, address: *mut c_void) {
    let state = registers::read(Register::SavedState);
    OBSERVER.with(|guest| match state {
        Some(state) => {
            let is_off = state & MASKED != 0;
            guest.exception_return(counter::now(), address.addr() as u64, is_off);
        }
        None => guest.lost(),
    });
}

extern "C" fn on_interrupts(_cpu: c_uint, word: *mut c_void) {
    let (number, address) = event::unpacked(word.addr() as u64);
    let flags = general(number);
    OBSERVER.with(|guest| match flags {
        Some(flags) => guest.interrupts_are(counter::now(), address, flags & MASKED != 0),
        None => guest.lost(),
    });
}

extern "C" fn on_current(_cpu: c_uint, number: *mut c_void) {
    let thread = general(number.addr());
    let offset = ARGUMENTS.with(|arguments| arguments.preempt);
    match (thread, offset) {
        (Some(thread), Some(offset)) if is_kernel(thread) => {
            COUNT_PLACE.with(|place| *place = thread.wrapping_add(offset));
        }
        (Some(_), _) => {}
        (None, _) => OBSERVER.with(Observer::lost),
    }
}

/// What is in the register that an instruction names by this number.
fn general(number: usize) -> Option<u64> {
    match u8::try_from(number).ok()? {
        ZERO => Some(0),
        number => registers::read(Register::General(number)),
    }
}

extern "C" fn on_store(_cpu: c_uint, access: Access, place: u64, address: *mut c_void) {
    if COUNT_PLACE.with(|count| *count == place) {
        let (at, count) = (counter::now().wrapping_sub(1), access.word());
        OBSERVER.with(|guest| guest.preempt_count_is(at, address.addr() as u64, count.into()));
    }
}

extern "C" fn on_asks_for_clock(_cpu: c_uint, _: *mut c_void) {
    OBSERVER.with(Observer::asks_for_clock);
}

extern "C" fn on_kernel_clock(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.kernel_clock(counter::now(), address.addr() as u64));
}

extern "C" fn on_wake(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.wake(counter::now(), address.addr() as u64));
}

extern "C" fn on_interrupts_off(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.interrupts_off(counter::now(), address.addr() as u64));
}

extern "C" fn on_interrupts_on(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.interrupts_on(counter::now(), address.addr() as u64));
}

extern "C" fn on_return(_cpu: c_uint, address: *mut c_void) {
    OBSERVER.with(|guest| guest.interrupt_return(counter::now(), address.addr() as u64));
}

extern "C" fn on_switch(_cpu: c_uint, access: Access, address: u64, _: *mut c_void) {
    let Some(place) = access.place(address) else { return };
    let fields = ARGUMENTS.with(|arguments| arguments.task);
    let start = TRANSLATION.with(|translation| translation.target.memory_start());
    let byte = |memory: &Mapped, at: u64| memory.byte(at.checked_sub(start)?);
    let task = MEMORY.with(|memory| fields?.read(place, |at| byte(memory, at)));
    OBSERVER.with(|guest| guest.switch(counter::now(), place, task));
}

extern "C" fn on_end(_id: PluginId, _: *mut c_void) {
    OBSERVER.with(|guest| guest.end(counter::now()));
}

/// What QEMU calls first. Another result than 0 makes it refuse the plugin and end.
#[unsafe(no_mangle)]
extern "C" fn qemu_plugin_install(
    id: PluginId,
    info: *const Info,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: this is the function that it must be from.
    let guest = unsafe { Guest::new(info) };
    // SAFETY: likewise.
    let read = unsafe {
        api::each_argument(count, arguments, |argument| {
            let read = ARGUMENTS.with(|all| all.read(argument));
            read.map_err(|refusal| (key(argument), refusal))
        })
    };
    match read.and_then(|()| start(&guest).map_err(|refusal| (&b"the guest"[..], refusal))) {
        Ok(()) => {
            api::register(id, translate, on_end);
            0
        }
        Err((what, refusal)) => {
            for part in [b"punctual's observer: ", what, b" ", refusal.as_bytes(), b"\n"] {
                // There is nowhere else to say it.
                let _ = File(2).write(part);
            }
            -1
        }
    }
}

fn start(guest: &Guest) -> Result<(), Refusal> {
    let target = Target::named(guest.target).ok_or("is neither x86_64 nor aarch64")?;
    if !guest.is_system || guest.cpus != 1 {
        return Err("is not a system with one CPU");
    }
    ARGUMENTS.with(|arguments| {
        let follows = !arguments.entries.as_slice().is_empty() || arguments.preempt.is_some();
        if target == Target::Aarch64 && follows && !registers::ARE_KNOWN {
            return Err("is aarch64, which is followed from QEMU 10 on: no entries, no preempt");
        }
        let slots = usize::try_from(arguments.ring()).ok().and_then(host::events);
        let no_memory = "is not watched: there is no memory for the ring";
        let (slots, buffer) = slots.zip(host::buffer(BUFFERED)).ok_or(no_memory)?;
        let coverage = match arguments.cover {
            Some(start) => {
                let words = host::words(coverage::WORDS).zip(host::words(coverage::INDEX));
                let (words, index) =
                    words.ok_or("is not watched: there is no memory for blocks")?;
                Coverage::new(start, words, index)
            }
            None => Coverage::none(),
        };
        if let Some(path) = &arguments.memory {
            let memory = Mapped::of(path).ok_or("is not watched: its memory cannot be read")?;
            MEMORY.with(|place| *place = memory);
        }
        TRANSLATION.with(|translation| {
            (translation.target, translation.early) = (target, Early::new(arguments.image));
        });
        OBSERVER.with(|guest| {
            let output = Output::new(File(arguments.output().into()), buffer);
            *guest = Observer::new(Ring::new(slots), output, coverage, Rules::of(arguments));
            guest.introduce(Header { protocol: PROTOCOL, api: u32::from(api::VERSION) });
        });
        Ok(())
    })
}
