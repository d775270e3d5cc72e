//! The functions of a kernel, by address, and what some of them mean.

use std::collections::HashMap;
use std::ops::Range;

use super::daif::Switches;
use super::kallsyms::{Image, Symbols};
use super::programs::GuestProgram;
use super::vectors::{SLOTS, Vectors};

/// A number of a function; what has no name has one too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Function(u32);

/// The edges of the kernel's code (include/asm-generic/sections.h).
const TEXT: [&str; 2] = ["_stext", "_etext"];

/// The kernel's code, and its address.
pub(super) fn text<'a>(image: &Image<'a>, symbols: &Symbols) -> Option<(u64, &'a [u8])> {
    let [start, end] = TEXT.map(|name| symbols.address(name));
    let (start, end) = (start?, end?);
    Some((start, image.memory(start, end.saturating_sub(start))))
}

/// What a function is for those who follow the kernel from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing in particular.
    Plain,
    /// Code of a process.
    User,
    /// Leads to another function without being one: thunks of indirect calls and returns, and
    /// the jumps behind static calls.
    Thunk,
    /// Changes to another thread's stack (arch/x86/entry/entry_64.S, arch/arm64/kernel/entry.S).
    Switch,
    /// Where a new thread begins.
    Fork,
    /// Where a system call arrives.
    Syscall,
    /// Where an interrupt or an exception arrives.
    Entry,
    /// The interrupt of the CPU's own timer; on arm64, where all interrupts arrive at one place,
    /// any.
    TimerEntry,
    /// An exception after which the instruction is tried again (Intel SDM volume 3, 6.5).
    FaultEntry,
    /// Handles such an exception, if it has no entry of its own (arch/arm64/kernel/entry-common.c).
    Fault,
    /// Returns from an interrupt or an exception.
    Return,
    /// What reads the clock on behalf of a process (kernel/time/timekeeping.c).
    ReadsClock,
    /// What a timer calls that a thread waits for (kernel/time/hrtimer.c, posix-timers.c,
    /// fs/timerfd.c).
    TimerWakes,
    /// Wakes a thread (kernel/sched/core.c).
    Wakeup,
    /// Chooses the next thread (kernel/sched/core.c).
    Scheduler,
    /// Compares a thread that is woken with one that runs, if both have a real-time priority
    /// (kernel/sched/rt.c; another name since 6.6).
    Compares,
    /// Asks for the scheduler (kernel/sched/core.c).
    AsksForSwitch,
}

impl Role {
    /// Whether what was interrupted goes on after it.
    pub(super) fn is_entry(self) -> bool {
        matches!(self, Self::Entry | Self::TimerEntry | Self::FaultEntry)
    }

    /// Whether it has no caller in the kernel.
    pub(super) fn is_outermost(self) -> bool {
        self.is_entry() || matches!(self, Self::Syscall | Self::Fork | Self::User)
    }
}

/// Prefixes of what only leads to other code (arch/x86/lib/retpoline.S, kernel/static_call.c).
const THUNKS: [&str; 6] =
    ["__x86_indirect_", "__x86_return_thunk", "srso_", "retbleed_", "__SCT__", "zen_untrain_ret"];

/// Functions of a meaning, by the name that they have in every version so far.
const ROLES: [(&str, Role); 33] = [
    ("__switch_to_asm", Role::Switch),
    ("__switch_to", Role::Switch),
    ("cpu_switch_to", Role::Switch),
    ("ret_from_fork", Role::Fork),
    ("ret_from_fork_asm", Role::Fork),
    ("asm_sysvec_apic_timer_interrupt", Role::TimerEntry),
    ("asm_exc_page_fault", Role::FaultEntry),
    ("asm_exc_general_protection", Role::FaultEntry),
    ("asm_exc_device_not_available", Role::FaultEntry),
    ("asm_exc_invalid_op", Role::FaultEntry),
    ("native_irq_return_iret", Role::Return),
    ("el1h_64_sync", Role::Entry),
    ("el1h_64_irq", Role::TimerEntry),
    ("el1h_64_error", Role::Entry),
    ("el0t_64_sync", Role::Syscall),
    ("el0t_64_irq", Role::TimerEntry),
    ("el0t_64_error", Role::Syscall),
    ("el0t_32_sync", Role::Syscall),
    ("el0t_32_irq", Role::TimerEntry),
    ("el0_da", Role::Fault),
    ("el1_abort", Role::Fault),
    ("ret_to_kernel", Role::Return),
    ("ktime_get_ts64", Role::ReadsClock),
    ("hrtimer_wakeup", Role::TimerWakes),
    ("posix_timer_fn", Role::TimerWakes),
    ("timerfd_tmrproc", Role::TimerWakes),
    ("timerfd_triggered", Role::TimerWakes),
    ("try_to_wake_up", Role::Wakeup),
    ("__schedule", Role::Scheduler),
    ("check_preempt_curr_rt", Role::Compares),
    ("wakeup_preempt_rt", Role::Compares),
    ("resched_curr", Role::AsksForSwitch),
    ("__resched_curr", Role::AsksForSwitch),
];

/// Where system calls arrive. The labels that follow it begin with its name.
const SYSCALL: &str = "entry_SYSCALL_64";

/// What turns interrupts on by `popf`, which is not seen, in kernels of x86 before 5.12
/// (arch/x86/kernel/irqflags.S).
const RESTORES_BY_POPF: &str = "native_restore_fl";

/// The functions of one kernel.
#[derive(Clone)]
pub(super) struct Functions {
    symbols: Symbols,
    /// The kernel's code that stays after the boot.
    text: Range<u64>,
    /// Where exceptions arrive, and what turns interrupts off and on (arm64).
    vectors: Option<Vectors>,
    /// What they lead to.
    arrivals: [Function; SLOTS.len()],
    switches: Switches,
    /// Address, size in bytes and function of each of its modules' functions, by address.
    of_modules: Vec<(u64, u64, Function)>,
    /// The same of its programs, by the names of their threads.
    of_programs: HashMap<String, Vec<(u64, u64, Function)>>,
    /// Where each function begins that the kernel names, which function that is, and whether it is
    /// jumped to from inside itself; by address.
    of_kernel: Vec<(u64, Option<NamedStart>)>,
    names: Vec<String>,
    roles: Vec<Role>,
    /// Whether every instruction that turns interrupts on is seen.
    sees_interrupts_on: bool,
}

/// What a symbol of the kernel names.
#[derive(Debug, Clone, Copy)]
struct NamedStart {
    /// Parts of a function that the compiler moved elsewhere are of the function.
    function: Function,
    /// Nobody calls a part that was moved, or what a vector leads to: it is jumped to from inside
    /// the function.
    is_inside: bool,
}

/// Code of processes.
const USER: Function = Function(0);
/// Code of the kernel that no symbol names, such as what is made while it runs.
const UNNAMED: Function = Function(1);

impl Functions {
    pub(super) fn of(symbols: Symbols) -> Self {
        let mut names = vec!["[user]".to_owned(), "[unnamed]".to_owned()];
        let mut roles = vec![Role::User, Role::Plain];
        let mut known: HashMap<String, Function> = HashMap::new();
        let entry_text = entry_text(&symbols);
        let is_arm64 = symbols.address("el1h_64_irq").is_some();
        let of_symbol = symbols.iter().map(|(address, _, symbol)| {
            let name = plain(symbol);
            let is_label = entry_text.contains(&address);
            let name = if is_label && name.starts_with(SYSCALL) { SYSCALL } else { name };
            *known.entry(name.to_owned()).or_insert_with(|| {
                names.push(name.to_owned());
                roles.push(match name {
                    // There it does much before it calls what changes the stack.
                    "__switch_to" if is_arm64 => Role::Plain,
                    name if is_label => entry_role(name),
                    name => role(name),
                });
                Function(u32::try_from(names.len() - 1).unwrap_or(1))
            })
        });
        let of_symbol: Vec<Function> = of_symbol.collect();
        let vectors = Vectors::of(&symbols);
        let arrivals = SLOTS.map(|name| known.get(name).copied().unwrap_or(UNNAMED));
        let mut starts: Vec<u64> = symbols.iter().map(|(address, ..)| address).collect();
        starts.dedup();
        // Symbols are searched once for each function, not once for each block that is executed.
        let of_kernel = starts.into_iter().map(|start| {
            let function = symbols.function(start).map(|(symbol, _)| {
                let function = of_symbol.get(symbol as usize).copied().unwrap_or(UNNAMED);
                let is_arrival = vectors.is_some() && arrivals.contains(&function);
                NamedStart {
                    function,
                    is_inside: is_arrival || symbols.name(symbol).contains(".cold"),
                }
            });
            (start, function)
        });
        let of_kernel = of_kernel.collect();
        let text = between(&symbols, TEXT).unwrap_or(0..u64::MAX);
        let (of_modules, switches) = (Vec::new(), Switches::default());
        let sees_interrupts_on = !is_arm64 && symbols.address(RESTORES_BY_POPF).is_none();
        Self {
            symbols,
            text,
            vectors,
            arrivals,
            switches,
            of_modules,
            of_programs: HashMap::new(),
            of_kernel,
            names,
            roles,
            sees_interrupts_on,
        }
    }

    #[cfg(test)]
    pub(super) fn set_switches(&mut self, switches: Switches) {
        self.switches = switches;
    }

    /// Finds what turns interrupts off and on in the code of an arm64 kernel.
    pub(super) fn find_switches(&mut self, image: &Image) {
        self.switches = Switches::find(image, self.text.clone());
    }

    /// What [`Functions::find_switches`] has found; `None` of other kernels.
    pub(super) fn switches(&self) -> Option<&Switches> {
        self.vectors.as_ref().map(|_| &self.switches)
    }

    /// Whether the observer sees every instruction that turns interrupts on; on arm64 half of them
    /// are not told apart from those that leave them off.
    pub(super) fn sees_interrupts_on(&self) -> bool {
        self.sees_interrupts_on
    }

    /// Adds functions of modules: address, size in bytes, and name. Of several at one address the
    /// first is taken.
    pub(super) fn add_modules(&mut self, all: Vec<(u64, u64, String)>) {
        for (address, size, name) in all.into_iter().filter(|(address, ..)| is_kernel(*address)) {
            let function = self.add(name, Role::Plain);
            self.of_modules.push((address, size, function));
        }
        sort(&mut self.of_modules);
    }

    /// Adds functions of programs, named `[PROGRAM] FUNCTION`.
    pub(super) fn add_programs(&mut self, all: Vec<GuestProgram>) {
        for GuestProgram { thread, functions } in all {
            let mut known = Vec::new();
            for (address, size, name) in functions {
                known.push((address, size, self.add(format!("[{thread}] {name}"), Role::User)));
            }
            sort(&mut known);
            self.of_programs.insert(thread, known);
        }
    }

    fn add(&mut self, name: String, role: Role) -> Function {
        self.names.push(name);
        self.roles.push(role);
        u32::try_from(self.names.len() - 1).map_or(UNNAMED, Function)
    }

    /// The function of a process that a thread of this name executes at an address.
    pub(super) fn of_process(&self, thread: Option<&str>, address: u64) -> Function {
        let program = thread.and_then(|name| self.of_programs.get(name));
        program.and_then(|all| inside(all, address)).map_or(USER, |(function, _)| function)
    }

    /// The function at an address, and how far inside it is.
    pub(super) fn at(&self, address: u64) -> (Function, u64) {
        if !is_kernel(address) {
            return (USER, 1);
        }
        if let Some((slot, offset)) = self.vectors.as_ref().and_then(|all| all.at(address)) {
            return (self.arrivals[slot], offset);
        }
        let next = self.of_kernel.partition_point(|(start, _)| *start <= address);
        let before = next.checked_sub(1).map(|place| self.of_kernel[place]);
        let Some((start, Some(NamedStart { function, is_inside }))) = before else {
            return self.of_module(address).unwrap_or((UNNAMED, 1));
        };
        let offset = address - start;
        (function, if is_inside { offset.max(1) } else { offset })
    }

    /// Where the function begins that an address is in, and its name. `None` for processes, for what
    /// has no name, for the padding before a function, for what only runs at boot, and for parts
    /// that the compiler moved elsewhere.
    pub(super) fn whole(&self, address: u64) -> Option<(u64, &str)> {
        let Some((symbol, offset)) = self.symbols.function(address) else {
            let (function, offset) = self.of_module(address)?;
            return Some((address - offset, self.name(function)));
        };
        let name = self.symbols.name(symbol);
        let is_one =
            self.text.contains(&address) && !name.starts_with("__pfx_") && !name.contains(".cold");
        is_one.then(|| (address - offset, plain(name)))
    }

    /// How many functions [`Functions::whole`] knows.
    pub(super) fn count(&self) -> usize {
        let mut starts: Vec<u64> = self.symbols.iter().map(|(address, ..)| address).collect();
        starts.dedup();
        starts.retain(|start| self.whole(*start).is_some_and(|(whole, _)| whole == *start));
        starts.len() + self.of_modules.len()
    }

    /// What the kernel names, without its modules.
    pub(super) fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Where functions of these roles begin.
    pub(super) fn entries(&self, chosen: impl Fn(Role) -> bool) -> Vec<u64> {
        let addresses = self.symbols.iter().map(|(address, ..)| address).chain(self.vectors());
        let begins = |address: &u64| {
            let (function, offset) = self.at(*address);
            offset == 0 && chosen(self.role(function))
        };
        addresses.filter(begins).collect()
    }

    /// The first of 2 GiB in which the kernel's code and that of its modules lies: the last ones that
    /// there are, or what is around the kernel (arm64: modules are before it, within reach of a jump;
    /// arch/arm64/kernel/module.c).
    pub(super) fn neighbourhood(&self) -> u64 {
        match self.vectors {
            None => 0xffff_ffff_8000_0000,
            Some(_) => (self.text.start & !0xfff).saturating_sub(1 << 30),
        }
    }

    /// Where exceptions arrive (arm64).
    pub(super) fn vectors(&self) -> impl Iterator<Item = u64> + '_ {
        self.vectors.iter().flat_map(Vectors::starts)
    }

    fn of_module(&self, address: u64) -> Option<(Function, u64)> {
        inside(&self.of_modules, address)
    }

    pub(super) fn role(&self, function: Function) -> Role {
        self.roles.get(function.0 as usize).copied().unwrap_or(Role::Plain)
    }

    pub(super) fn name(&self, function: Function) -> &str {
        self.names.get(function.0 as usize).map_or("", String::as_str)
    }
}

/// Puts functions in order, one at each address: the first.
fn sort(all: &mut Vec<(u64, u64, Function)>) {
    all.sort_by_key(|(address, ..)| *address);
    all.dedup_by_key(|(address, ..)| *address);
}

/// The function of these, in order, that an address is in, and how far inside it is.
fn inside(all: &[(u64, u64, Function)], address: u64) -> Option<(Function, u64)> {
    let next = all.partition_point(|(start, ..)| *start <= address);
    let (start, size, function) = *all.get(next.checked_sub(1)?)?;
    let offset = address - start;
    (offset < size).then_some((function, offset))
}

/// Whether it is in the kernel's half.
fn is_kernel(address: u64) -> bool {
    address >> 63 == 1
}

/// The name in the kernel's source. A compiler adds `.isra.0`, `.constprop.0`, `.part.0`, `.cold`
/// and, with clang, `.llvm.` and a number.
pub(super) fn plain(symbol: &str) -> &str {
    match symbol.find('.') {
        Some(dot) if dot > 0 => &symbol[..dot],
        _ => symbol,
    }
}

/// The code between processes and the kernel (arch/x86/entry/entry_64.S). Many of its names are
/// labels on the way in or out, not functions.
fn entry_text(symbols: &Symbols) -> Range<u64> {
    between(symbols, ["__entry_text_start", "__entry_text_end"]).unwrap_or(0..0)
}

fn between(symbols: &Symbols, edges: [&str; 2]) -> Option<Range<u64>> {
    let address = |wanted: &str| symbols.iter().find(|(.., name)| *name == wanted).map(|s| s.0);
    let [start, end] = edges.map(address);
    Some(start?..end?)
}

fn entry_role(name: &str) -> Role {
    match role(name) {
        Role::Plain if name.starts_with("asm_") => Role::Entry,
        Role::Plain if name == SYSCALL => Role::Syscall,
        Role::Plain => Role::Thunk,
        role => role,
    }
}

pub(super) fn role(name: &str) -> Role {
    // Since 6.16 code that runs before the kernel is mapped has this prefix.
    let plain = name.trim_start_matches("__pi_");
    if THUNKS.iter().any(|prefix| plain.starts_with(prefix)) {
        return Role::Thunk;
    }
    ROLES.iter().find(|(known, _)| *known == name).map_or(Role::Plain, |(_, role)| *role)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Bytes of each made-up function.
    const LENGTH: u64 = 0x100;

    const FIRST: u64 = 0xffff_ffff_8100_0000;

    const NAMES: [&str; 28] = [
        "entry",
        "read",
        "read.cold",
        "copy",
        "fault",
        "__schedule",
        "__switch_to_asm",
        "__switch_to",
        "ret_from_fork",
        "__x86_indirect_thunk_rax",
        "__entry_text_start",
        "entry_SYSCALL_64",
        "entry_SYSCALL_64_after_hwframe",
        "asm_sysvec_apic_timer_interrupt",
        "asm_exc_page_fault",
        "error_return",
        "native_irq_return_iret",
        "__entry_text_end",
        "hrtimer_interrupt",
        "hrtimer_wakeup",
        "try_to_wake_up",
        "check_preempt_curr_rt",
        "resched_curr",
        "exit_to_user_mode_prepare",
        "_raw_spin_lock_irqsave",
        "_raw_spin_unlock_irqrestore",
        "do_nanosleep.isra.0",
        "last",
    ];

    pub(in super::super) fn functions() -> Functions {
        let symbols = NAMES.iter().zip(0..).map(|(name, n)| (FIRST + n * LENGTH, 'T', *name));
        Functions::of(Symbols::made_up(symbols))
    }

    const ARM64: u64 = 0xffff_8000_0801_0000;

    /// Of a made-up arm64 kernel: a symbol every 256 bytes, but for its vectors.
    pub(in super::super) fn arm64_functions() -> Functions {
        const NAMES: [&str; 25] = [
            "_stext",
            "__entry_text_start",
            "el1h_64_sync",
            "el1h_64_irq",
            "el0t_64_sync",
            "el0t_64_irq",
            "ret_to_kernel",
            "__entry_text_end",
            "el1_interrupt",
            "el1_abort",
            "el0_da",
            "el0_svc",
            "read",
            "copy",
            "arch_local_irq_save",
            "arch_local_irq_restore",
            "_raw_spin_lock_irqsave",
            "hrtimer_wakeup",
            "try_to_wake_up",
            "__schedule",
            "__switch_to",
            "cpu_switch_to",
            "ktime_get_ts64",
            "arch_counter_get_cntvct",
            "_etext",
        ];
        let named =
            NAMES.iter().zip(0..).map(|(name, n)| (ARM64 + 0x1000 + n * LENGTH, 'T', *name));
        let vectors = [(ARM64, 'T', "vectors"), (ARM64 + 0x800, 't', "__bad_stack")];
        let last = (ARM64 + 0x8000, 'T', "last");
        Functions::of(Symbols::made_up(vectors.into_iter().chain(named).chain([last])))
    }

    #[test]
    fn vectors_of_arm64_are_the_functions_that_they_lead_to() {
        let functions = arm64_functions();
        let at = |address| {
            let (function, offset) = functions.at(address);
            (functions.name(function).to_owned(), functions.role(function), offset)
        };
        let irq = |offset| ("el1h_64_irq".to_owned(), Role::TimerEntry, offset);
        assert_eq!(at(ARM64 + 0x280), irq(0));
        assert_eq!(at(ARM64 + 0x2ff), irq(0x7f));
        let label = address(&functions, "el1h_64_irq+0");
        assert_eq!(at(label), irq(1), "where the vector jumps to is no arrival");
        assert_eq!(at(ARM64 + 0x400).1, Role::Syscall);
        assert_eq!(at(ARM64 + 0x480).0, "el0t_64_irq");
        let of = |name: &str| at(address(&functions, name)).1;
        assert_eq!(of("ret_to_kernel+4"), Role::Return);
        assert_eq!(of("__switch_to+0"), Role::Plain, "only cpu_switch_to changes the stack");
        assert_eq!(of("cpu_switch_to+0"), Role::Switch);
        let timers = functions.entries(|role| role == Role::TimerEntry);
        assert_eq!(timers, [ARM64 + 0x280, ARM64 + 0x480]);
        assert!(functions.switches().is_some() && self::functions().switches().is_none());
        assert_eq!(functions.vectors().collect::<Vec<_>>()[..2], [ARM64, ARM64 + 0x80]);
        // A GiB before `_stext`, and the last two.
        assert_eq!(functions.neighbourhood(), 0xffff_8000_0801_1000 - (1 << 30));
        assert_eq!(self::functions().neighbourhood(), u64::MAX - (2 << 30) + 1);
    }

    /// The address of a place such as `read+4`; `user` is one of a process.
    pub(in super::super) fn address(functions: &Functions, place: &str) -> u64 {
        let Some((name, offset)) = place.split_once('+') else { return 0x40_1000 };
        // Where interrupts arrive.
        let slot = SLOTS.iter().position(|slot| place == format!("vector {slot}+0"));
        if let Some(slot) = slot {
            return ARM64 + 0x80 * slot as u64;
        }
        let start = functions.symbols.address(name).unwrap_or_else(|| panic!("no {name}"));
        start + offset.parse::<u64>().unwrap()
    }

    #[test]
    fn functions_of_modules_have_names_where_the_kernel_has_none() {
        const MODULE: u64 = 0xffff_ffff_c0a0_0000;
        let mut functions = functions();
        let read = address(&functions, "read+0");
        let of = |address: u64, size, name: &str| (address, size, format!("{name} [hold]"));
        functions.add_modules(vec![
            of(MODULE + 0x40, 0x20, "second"),
            of(MODULE, 0x40, "first"),
            of(MODULE, 0x10, "alias"),
            of(0x40_1000, 0x10, "user"),
            of(read, 0x10, "false"),
            of(u64::MAX - 0xf, u64::MAX, "last"),
        ]);
        let at = |address| {
            let (function, offset) = functions.at(address);
            (functions.name(function).to_owned(), offset)
        };
        let named = |name: &str, offset| (format!("{name} [hold]"), offset);
        assert_eq!(at(MODULE), named("first", 0), "a call");
        assert_eq!(at(MODULE + 0x3f), named("first", 0x3f));
        assert_eq!(at(MODULE + 0x40), named("second", 0));
        assert_eq!(at(u64::MAX), named("last", 0xf));
        for address in [MODULE - 1, MODULE + 0x60] {
            assert_eq!(at(address), ("[unnamed]".to_owned(), 1));
        }
        assert_eq!(at(read), ("read".to_owned(), 0));
        assert_eq!(at(0x40_1000).0, "[user]");
    }

    #[test]
    fn functions_of_programs_belong_to_threads_of_their_name() {
        let mut functions = functions();
        let program = |thread: &str, name: &str| GuestProgram {
            thread: thread.to_owned(),
            functions: vec![(0x40_1000, 0x20, name.to_owned())],
        };
        functions.add_programs(vec![program("burn", "spin"), program("other", "main")]);
        let of = |thread, address| {
            let function = functions.of_process(thread, address);
            assert_eq!(functions.role(function), Role::User);
            functions.name(function).to_owned()
        };
        assert_eq!(of(Some("burn"), 0x40_101f), "[burn] spin");
        assert_eq!(of(Some("other"), 0x40_1000), "[other] main");
        assert_eq!([of(Some("burn"), 0x40_1020), of(Some("sh"), 0x40_1000)], ["[user]"; 2]);
        assert_eq!(of(None, 0x40_1000), "[user]");
        assert_eq!(functions.name(functions.at(0x40_1000).0), "[user]");
    }

    #[test]
    fn whole_functions_are_those_that_can_run_after_the_boot() {
        let all = [
            (0x0, 'T', "_stext"),
            (0x0, 't', "__pfx_read"),
            (0x10, 'T', "read.isra.0"),
            (0x10, 't', "alias"),
            (0x40, 't', "read.cold"),
            (0x80, 'd', "data"),
            (0x90, 'T', "_etext"),
            (0x90, 'T', "start_kernel"),
            (0xa0, 'T', "last"),
        ];
        let symbols = all.into_iter().map(|(at, kind, name)| (FIRST + at, kind, name));
        let mut functions = Functions::of(Symbols::made_up(symbols));
        assert_eq!(functions.count(), 1);
        assert_eq!(functions.whole(FIRST + 0x11), Some((FIRST + 0x10, "read")));
        for at in [0x0, 0x40, 0x41, 0x80, 0x90, 0x91, 0xa0] {
            assert_eq!(functions.whole(FIRST + at), None, "{at:#x}");
        }
        assert_eq!(functions.whole(0x40_1000), None);
        let module = FIRST + 0x4000_0000;
        functions.add_modules(vec![(module, 0x10, "held_get [hold]".to_owned())]);
        assert_eq!(functions.count(), 2);
        assert_eq!(functions.whole(module + 0xf), Some((module, "held_get [hold]")));
    }

    #[test]
    fn parts_of_a_function_have_its_number() {
        let functions = functions();
        let at = |place: &str| functions.at(address(&functions, place));
        assert_eq!(at("read+0"), (at("read+7").0, 0));
        assert_eq!(at("read.cold+0"), (at("read+7").0, 1), "not a call");
        assert_eq!(functions.name(at("do_nanosleep.isra.0+0").0), "do_nanosleep");
        assert_eq!(functions.role(at("user").0), Role::User);
        assert_eq!(at("entry_SYSCALL_64_after_hwframe+8").0, at("entry_SYSCALL_64+0").0);
        assert_eq!(functions.role(at("error_return+0").0), Role::Thunk);
        assert_eq!(functions.role(at("asm_exc_page_fault+0").0), Role::FaultEntry);
        assert_eq!(functions.role(at("read+0").0), Role::Plain);
        assert_eq!(functions.name(functions.at(u64::MAX - 5).0), "[unnamed]");
    }
}
