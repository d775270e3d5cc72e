//! Where in the kernel time was spent, from the stacks: `copy_process of system call clone`.

use punctual_core::explanation::Explained;

use super::times::{Names, Stretch};

/// What the kernel was doing, as far as it decides what can be preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// In the kernel, called by who knows what.
    Unknown,
    Call,
    Thread,
    Fault,
    Interrupt,
    Softirq,
}

/// Where most of a leg was spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Site {
    pub kind: Kind,
    /// It in words.
    pub place: String,
    /// The innermost function that most of the time was spent below; empty if that is the place.
    pub function: String,
}

impl Site {
    pub fn words(&self) -> String {
        match self.function.as_str() {
            "" => self.place.clone(),
            function if self.kind == Kind::Unknown => format!("{function} below {}", self.place),
            function => format!("{function} of {}", self.place),
        }
    }
}

/// A share of the time, in fifths, from which on a stack stands for all of it.
const MOST: u64 = 4;
/// Deeper stacks are not followed.
const DEEPEST: usize = 64;

/// What interrupts, calls and threads begin with, without what says more than that.
const ENTRIES: [&str; 22] = [
    "do_syscall_64",
    "x64_sys_call",
    "do_fast_syscall_32",
    "do_SYSENTER_32",
    "do_int80_emulation",
    "__do_fast_syscall_32",
    "invoke_syscall",
    "do_el0_svc",
    "call_on_irq_stack",
    "asm_call_irq_on_stack",
    "do_interrupt_handler",
    "kthread",
    "worker_thread",
    "process_one_work",
    "irq_exit_rcu",
    "__irq_exit_rcu",
    "irq_exit",
    "do_softirq_own_stack",
    "do_softirq",
    "__do_softirq",
    "handle_softirqs",
    "__softirqentry_text_start",
];

const ENTRY_STARTS: [&str; 8] =
    ["entry_", "ret_from_fork", "el0_svc", "el0t_", "el1h_", "__el1_", "__el0_", "syscall_enter"];

const CALLS: [&str; 11] = [
    "__x64_sys_",
    "__ia32_sys_",
    "__ia32_compat_sys_",
    "__x64_compat_sys_",
    "__arm64_sys_",
    "__arm64_compat_sys_",
    "__riscv_sys_",
    "__do_compat_sys_",
    "__do_sys_",
    "__se_sys_",
    "ksys_",
];

const FAULTS: [&str; 6] = [
    "asm_exc_page_fault",
    "exc_page_fault",
    "page_fault",
    "do_page_fault",
    "async_page_fault",
    "do_mem_abort",
];

const SOFTIRQS: [&str; 3] = ["__do_softirq", "handle_softirqs", "__softirqentry_text_start"];

const DEVICES: [&str; 5] =
    ["asm_common_interrupt", "common_interrupt", "__common_interrupt", "do_IRQ", "ret_from_intr"];

/// Where arm64 serves interrupts of devices and of timers.
const ANY: [&str; 3] = ["el1_interrupt", "el0_interrupt", "gic_handle_irq"];

const TIMERS_INTERRUPT: &str = "the timer's interrupt";
const ANY_INTERRUPT: &str = "an interrupt";

const TIMERS: [&str; 6] = [
    "hrtimer_interrupt",
    "smp_apic_timer_interrupt",
    "apic_timer_interrupt",
    "__sysvec_apic_timer_interrupt",
    "arch_timer_handler_virt",
    "arch_timer_handler_phys",
];

/// A function's name without what the compiler appends to it.
fn bare(name: &str) -> &str {
    name.split('.').next().filter(|name| !name.is_empty()).unwrap_or(name)
}

/// Whether a function is a way in and says no more than that.
fn is_entry(name: &str) -> bool {
    ENTRIES.contains(&name)
        || ENTRY_STARTS.iter().any(|start| name.starts_with(start))
        || FAULTS.contains(&name)
        || DEVICES.contains(&name)
        || ANY.contains(&name)
        || TIMERS.contains(&name)
        || vector(name).is_some()
}

/// The interrupt that an entry of x86 is for.
fn vector(name: &str) -> Option<&str> {
    let name = name.strip_prefix("asm_").unwrap_or(name).trim_start_matches('_');
    name.strip_prefix("sysvec_")
}

fn call(name: &str) -> Option<&str> {
    CALLS.iter().find_map(|start| name.strip_prefix(start)).filter(|rest| !rest.is_empty())
}

/// What a function tells of where a stack is, given its caller.
fn place(caller: &str, name: &str) -> Option<(Kind, String)> {
    if caller == "process_one_work" {
        return Some((Kind::Thread, format!("the kworker's {name}")));
    }
    // Threads that were asleep are known from this function on.
    if name == "worker_thread" {
        return Some((Kind::Thread, "a kworker".to_owned()));
    }
    if caller == "kthread" {
        return Some((Kind::Thread, format!("kernel thread {name}")));
    }
    if let Some(call) = call(name) {
        return Some((Kind::Call, format!("system call {call}")));
    }
    if SOFTIRQS.contains(&name) {
        return Some((Kind::Softirq, "a softirq".to_owned()));
    }
    if FAULTS.contains(&name) {
        return Some((Kind::Fault, "a page fault".to_owned()));
    }
    if TIMERS.contains(&name) {
        return Some((Kind::Interrupt, TIMERS_INTERRUPT.to_owned()));
    }
    match vector(name) {
        Some("apic_timer_interrupt") => Some((Kind::Interrupt, TIMERS_INTERRUPT.to_owned())),
        Some(vector) => Some((Kind::Interrupt, format!("interrupt {vector}"))),
        None if DEVICES.contains(&name) => {
            Some((Kind::Interrupt, "a device's interrupt".to_owned()))
        }
        None if ANY.contains(&name) => Some((Kind::Interrupt, ANY_INTERRUPT.to_owned())),
        None => None,
    }
}

/// Where a stack is: what it entered last, and the innermost function of it.
fn site(stack: &[&str]) -> Option<Site> {
    let mut site: Option<Site> = None;
    let mut caller = "";
    for name in stack.iter().map(|name| bare(name)) {
        if let Some((kind, place)) = place(caller, name) {
            // The functions of one call may have the names of others, as ksys_dup3 in dup2.
            let within = site.as_ref().is_some_and(|site: &Site| {
                site.place == place || (kind, site.kind) == (Kind::Call, Kind::Call)
            });
            if !within {
                site = Some(Site { kind, place, function: String::new() });
            }
        } else if !is_entry(name)
            && let Some(site) = &mut site
        {
            site.function = name.to_owned();
        }
        caller = name;
    }
    site.or_else(|| unknown(stack))
}

/// Of a thread that was asleep, the outermost functions are known only once it returns to them.
fn unknown(stack: &[&str]) -> Option<Site> {
    let names = || stack.iter().map(|name| bare(name)).filter(|name| !is_entry(name));
    let outermost = names().next().filter(|name| !name.starts_with('['))?;
    let innermost = names().next_back().filter(|name| *name != outermost).unwrap_or_default();
    let (place, function) = (outermost.to_owned(), innermost.to_owned());
    Some(Site { kind: Kind::Unknown, place, function })
}

/// Where most of a time, ns, was spent that consists of these. If no stack stands for most of it,
/// then where the largest part of it was, if that is at least half.
pub(super) fn of(sample: &Explained, all: &[Stretch<'_>], whole: u64) -> Option<Site> {
    let names = Names::of(&sample.functions);
    let common = common(all, whole);
    let named: Vec<&str> = common.iter().map(|number| names.get(*number)).collect();
    site(&named).or_else(|| largest(all, &names, whole))
}

/// What functions say of whether the code below them can be preempted, by their numbers.
pub(super) struct Contexts {
    entered: Vec<Option<Entered>>,
    names: Names,
}

/// What was entered with a function.
enum Entered {
    Softirq,
    /// It, in words.
    Interrupt(String),
    /// What calls the timers that expired.
    Timers,
    /// The scheduler.
    Scheduler,
}

/// What keeps code from being preempted, by its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context<'a> {
    /// A thread.
    Thread,
    /// The scheduler, which is between two threads.
    Scheduler,
    /// A softirq, on the way out of an interrupt or in a thread.
    Softirq { in_interrupt: bool },
    /// An interrupt, in words.
    Interrupt(&'a str),
    /// A timer's function, by its name.
    Timer(&'a str),
}

impl Context<'_> {
    /// Whether it is what a timer's interrupt does, as far as its stack tells.
    pub fn may_be_timers(self) -> bool {
        match self {
            Self::Timer(_) => true,
            Self::Interrupt(words) => [TIMERS_INTERRUPT, ANY_INTERRUPT].contains(&words),
            _ => false,
        }
    }
}

/// What calls the functions of timers that expired (kernel/time/hrtimer.c).
const CALLERS: [&str; 2] = ["__hrtimer_run_queues", "__run_hrtimer"];

/// What chooses the next thread (kernel/sched/core.c).
const SCHEDULER: &str = "__schedule";

impl Contexts {
    pub fn of(sample: &Explained) -> Self {
        let names = Names::of(&sample.functions);
        Self { entered: Self::entered(&names, sample.functions.len()), names }
    }

    fn entered(names: &Names, count: usize) -> Vec<Option<Entered>> {
        let entered = |number| {
            let name = bare(names.get(number));
            if CALLERS.contains(&name) {
                return Some(Entered::Timers);
            }
            if name == SCHEDULER {
                return Some(Entered::Scheduler);
            }
            match place("", name)? {
                (Kind::Softirq, _) => Some(Entered::Softirq),
                (Kind::Interrupt, words) => Some(Entered::Interrupt(words)),
                _ => None,
            }
        };
        (0..).take(count).map(entered).collect()
    }

    /// Whether it is the function itself that calls those of timers.
    pub fn calls_timers(&self, stack: &[u32]) -> bool {
        let top = stack.last().and_then(|number| self.entered.get(*number as usize));
        matches!(top, Some(Some(Entered::Timers)))
    }

    pub fn of_stack(&self, stack: &[u32]) -> Context<'_> {
        let mut context = Context::Thread;
        let mut in_interrupt = false;
        let mut calls_timers = false;
        for number in stack {
            let entered = self.entered.get(*number as usize).and_then(Option::as_ref);
            match (entered, context) {
                (Some(Entered::Softirq), _) => context = Context::Softirq { in_interrupt },
                (Some(Entered::Interrupt(words)), _) => {
                    context = Context::Interrupt(words);
                    in_interrupt = true;
                }
                (Some(Entered::Scheduler), _) => context = Context::Scheduler,
                (None, Context::Interrupt(_)) if calls_timers => {
                    context = Context::Timer(self.names.get(*number));
                }
                _ => {}
            }
            calls_timers = matches!(entered, Some(Entered::Timers));
        }
        context
    }
}

/// The stack below which most of the time was spent.
fn common(all: &[Stretch<'_>], whole: u64) -> Vec<u32> {
    let mut common = Vec::new();
    let mut below: Vec<&Stretch<'_>> = all.iter().collect();
    while common.len() < DEEPEST {
        let depth = common.len();
        let next = below.iter().filter_map(|one| Some((*one.stack.get(depth)?, one.ns())));
        let Some((number, ns)) = most(next) else { break };
        if ns.saturating_mul(5) < whole.saturating_mul(MOST) {
            break;
        }
        below.retain(|one| one.stack.get(depth) == Some(&number));
        common.push(number);
    }
    common
}

/// What the largest part of the time was spent in.
fn largest(all: &[Stretch<'_>], names: &Names, whole: u64) -> Option<Site> {
    let sites = all.iter().filter_map(|one| {
        let stack = one.stack.iter().take(DEEPEST).map(|number| names.get(*number));
        Some((site(&stack.collect::<Vec<_>>())?, one.ns()))
    });
    let sites: Vec<(Site, u64)> = sites.collect();
    let places = sites.iter().map(|(site, ns)| ((site.kind, site.place.as_str()), *ns));
    let ((kind, place), ns) = most(places)?;
    let site = Site { kind, place: place.to_owned(), function: String::new() };
    (ns.saturating_mul(2) >= whole).then_some(site)
}

/// The key with the largest sum; of equal ones the first in their order.
fn most<K: Ord + Copy>(parts: impl Iterator<Item = (K, u64)>) -> Option<(K, u64)> {
    let mut sums = std::collections::BTreeMap::new();
    for (key, ns) in parts {
        let sum: &mut u64 = sums.entry(key).or_default();
        *sum = sum.saturating_add(ns);
    }
    sums.into_iter().rev().max_by_key(|(_, sum)| *sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(stack: &[&str]) -> String {
        site(stack).map_or_else(String::new, |site| site.words())
    }

    #[test]
    fn a_stack_is_named_by_what_it_entered_last() {
        let call = ["entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__x64_sys_clone"];
        assert_eq!(words(&call), "system call clone");
        let within = [&call[..], &["__do_sys_clone", "kernel_clone", "copy_process"]].concat();
        assert_eq!(words(&within), "copy_process of system call clone");
        let timer = ["asm_sysvec_apic_timer_interrupt", "sysvec_apic_timer_interrupt"];
        assert_eq!(words(&[&within[..], &timer].concat()), "the timer's interrupt");
        let softirq = ["irq_exit_rcu", "handle_softirqs", "net_rx_action"];
        let all = [&within[..], &timer, &softirq].concat();
        assert_eq!(words(&all), "net_rx_action of a softirq");
    }

    #[test]
    fn a_stack_says_what_keeps_it_from_being_preempted() {
        const TIMER: [&str; 2] = ["asm_sysvec_apic_timer_interrupt", "hrtimer_interrupt"];
        let context = |parts: &[&[&str]]| {
            let functions: Vec<String> = parts.concat().into_iter().map(str::to_owned).collect();
            let stack: Vec<u32> = (0..).take(functions.len()).collect();
            let contexts = Contexts {
                entered: Contexts::entered(&Names::of(&functions), functions.len()),
                names: Names::of(&functions),
            };
            format!("{:?}", contexts.of_stack(&stack))
        };
        let timer = "Interrupt(\"the timer's interrupt\")";
        assert_eq!(context(&[&["__x64_sys_read", "vfs_read"]]), "Thread");
        assert_eq!(context(&[&["vfs_read"], &TIMER]), timer);
        assert_eq!(context(&[&["schedule", "__schedule", "pick_next_task"]]), "Scheduler");
        let preempted = ["irqentry_exit", "preempt_schedule_irq", "__schedule"];
        assert_eq!(context(&[&TIMER, &preempted]), "Scheduler");
        let queues = ["__hrtimer_run_queues"];
        assert_eq!(context(&[&TIMER, &queues]), timer);
        let called = context(&[&TIMER, &queues, &["late [late]", "ktime_get"]]);
        assert_eq!(called, "Timer(\"late [late]\")");
        let softirq = ["irq_exit_rcu", "handle_softirqs", "net_rx_action"];
        let on_top = context(&[&TIMER, &softirq]);
        assert_eq!(on_top, "Softirq { in_interrupt: true }");
        let of_thread = context(&[&["kthread", "run_ksoftirqd"], &softirq[1..]]);
        assert_eq!(of_thread, "Softirq { in_interrupt: false }");
        assert_eq!(context(&[&["main"], &softirq[1..], &TIMER]), timer);
    }

    #[test]
    fn a_call_keeps_the_name_that_it_was_entered_with() {
        assert_eq!(words(&["__x64_sys_dup2", "ksys_dup3"]), "system call dup2");
    }

    #[test]
    fn threads_and_arm_are_known() {
        let thread = ["ret_from_fork_asm", "ret_from_fork", "kthread", "worker_thread"];
        assert_eq!(words(&thread), "a kworker");
        let work = ["worker_thread", "process_one_work", "wb_workfn.part.0", "wb_writeback"];
        assert_eq!(words(&work), "wb_writeback of the kworker's wb_workfn");
        assert_eq!(words(&["ret_from_fork", "kthread", "kswapd"]), "kernel thread kswapd");
        let asleep = ["purge_vmap_node", "reclaim_list_global", "kmem_cache_free"];
        assert_eq!(words(&asleep), "kmem_cache_free below purge_vmap_node");
        let arm = [
            "el0t_64_sync",
            "el0t_64_sync_handler",
            "el0_svc",
            "do_el0_svc",
            "el0_svc_common.constprop.0",
            "invoke_syscall",
            "__arm64_sys_read",
            "ksys_read",
            "vfs_read",
        ];
        assert_eq!(words(&arm), "vfs_read of system call read");
        let interrupt = ["el1h_64_irq", "el1_interrupt", "gic_handle_irq"];
        assert_eq!(words(&interrupt), "an interrupt");
        let timer = [&interrupt[..], &["arch_timer_handler_virt", "hrtimer_interrupt"]].concat();
        assert_eq!(words(&timer), "the timer's interrupt");
        assert_eq!(words(&["asm_exc_page_fault", "exc_page_fault"]), "a page fault");
        assert_eq!(words(&["[user]"]), "");
    }
}
