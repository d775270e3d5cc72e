//! Call stacks of a kernel, from the blocks that it executed.
//!
//! A block at the first instruction of another function is a call, or a jump that ends in one; a
//! block further inside is where a call returned to, or an interrupt. Nothing needs to be read
//! from the guest, so it does not matter which compiler built the kernel and whether it keeps
//! frame pointers. What is below the first block is unknown until the code returns to it.

use super::functions::{Function, Functions, Role};

/// A stretch of instructions with one stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Instructions executed before it.
    pub(super) from: u64,
    /// Functions, callers first. Empty: the CPU is idle.
    pub(super) stack: Vec<Function>,
}

/// Follows the stack from block to block.
pub(super) struct Stacks<'a> {
    functions: &'a Functions,
    stack: Vec<Function>,
    /// Whether an interrupt has just returned.
    returns: bool,
    /// The function that executed last.
    last: Option<Function>,
    /// Everything from here on belongs to a stack whose callers are not all known yet.
    revealed_from: usize,
    stretches: Vec<Stretch>,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(functions: &'a Functions) -> Self {
        Self {
            functions,
            stack: Vec::new(),
            returns: false,
            last: None,
            revealed_from: 0,
            stretches: Vec::new(),
        }
    }

    /// A block at this address begins after `at` instructions.
    pub(super) fn block(&mut self, at: u64, address: u64) {
        self.block_of(None, at, address);
    }

    /// The same in a thread of this name, by which the programs of processes are known.
    pub(super) fn block_of(&mut self, thread: Option<&str>, at: u64, address: u64) {
        let (function, offset) = self.functions.at(address);
        if self.returns {
            self.leave_interrupt();
        }
        match self.functions.role(function) {
            // Code that only leads to other code: what called it goes on.
            Role::Thunk => return,
            Role::Return => {
                self.returns = true;
                return;
            }
            Role::User => {
                self.stack.clear();
                self.stack.push(self.functions.of_process(thread, address));
                self.revealed_from = self.stretches.len();
            }
            _ if self.has_switched(function, offset) => {
                self.stack.clear();
                self.stack.push(function);
                self.revealed_from = self.stretches.len();
            }
            _ => self.step(function, offset),
        }
        self.last = Some(function);
        self.returns = false;
        self.note(at);
    }

    /// The CPU is idle from here on, until the next block.
    pub(super) fn idle(&mut self, at: u64) {
        let stack = std::mem::take(&mut self.stack);
        self.note(at);
        self.stack = stack;
    }

    /// All stretches, in order.
    pub(super) fn finish(self) -> Vec<Stretch> {
        self.stretches
    }

    /// Whether the CPU has changed to another thread: `__switch_to` returns on its stack. A new
    /// thread begins at the start of `ret_from_fork`.
    fn has_switched(&self, function: Function, offset: u64) -> bool {
        let switches = |f: Function| self.functions.role(f) == Role::Switch;
        let begins = self.functions.role(function) == Role::Fork;
        self.last.is_some_and(switches) && !switches(function) && (offset > 0 || begins)
    }

    fn step(&mut self, function: Function, offset: u64) {
        let from_user =
            self.stack.last().is_some_and(|top| self.functions.role(*top) == Role::User);
        if from_user {
            self.stack.clear();
            self.revealed_from = self.stretches.len();
        }
        if self.stack.last() == Some(&function) {
            return;
        }
        if offset == 0 || self.stack.is_empty() {
            self.stack.push(function);
            return;
        }
        match self.stack.iter().rposition(|caller| *caller == function) {
            Some(place) => self.stack.truncate(place + 1),
            // As long as the outermost function is not known, nor are all that can be returned to.
            None if !self.is_complete() => self.reveal(function),
            // The one on top cannot return to what has not called it: it has jumped there.
            None => {
                self.stack.pop();
                self.stack.push(function);
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.stack.iter().any(|function| self.functions.role(*function).is_outermost())
    }

    /// What was interrupted goes on, perhaps with the first block of a function.
    fn leave_interrupt(&mut self) {
        let entry = self.stack.iter().rposition(|f| self.functions.role(*f).is_entry());
        if let Some(place) = entry {
            self.stack.truncate(place);
        }
    }

    /// The code has returned to a function below all that are known: it called them.
    fn reveal(&mut self, caller: Function) {
        for stretch in &mut self.stretches[self.revealed_from..] {
            if !stretch.stack.is_empty() {
                stretch.stack.insert(0, caller);
            }
        }
        self.stack.clear();
        self.stack.push(caller);
    }

    fn note(&mut self, at: u64) {
        match self.stretches.last_mut() {
            Some(last) if last.stack == self.stack => {}
            Some(last) if last.from == at => last.stack.clone_from(&self.stack),
            _ => self.stretches.push(Stretch { from: at, stack: self.stack.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::functions::tests::{address, functions};
    use super::*;

    /// The stacks after blocks at these places, such as `vfs_read+4`; `idle` and `user` as well.
    fn stacks(course: &[&str]) -> Vec<String> {
        let functions = functions();
        let mut stacks = Stacks::new(&functions);
        for (at, place) in course.iter().enumerate() {
            match *place {
                "idle" => stacks.idle(at as u64),
                place => stacks.block(at as u64, address(&functions, place)),
            }
        }
        let text = |stretch: Stretch| {
            let names = stretch.stack.iter().map(|f| functions.name(*f));
            format!("{} {}", stretch.from, names.collect::<Vec<_>>().join(";"))
        };
        stacks.finish().into_iter().map(text).collect()
    }

    #[test]
    fn calls_and_returns_are_followed() {
        let course = ["user", "entry+0", "read+0", "copy+0", "copy+8", "read+4", "entry+9", "user"];
        let expected = [
            "0 [user]",
            "1 entry",
            "2 entry;read",
            "3 entry;read;copy",
            "5 entry;read",
            "6 entry",
            "7 [user]",
        ];
        assert_eq!(stacks(&course), expected);
    }

    #[test]
    fn a_function_that_was_jumped_to_returns_to_its_caller_s_caller() {
        let course = ["user", "entry+0", "read+0", "copy+0", "entry+9"];
        assert_eq!(stacks(&course).last().unwrap(), "4 entry");
        // Also if that caller is not known yet, as of a thread that was asleep.
        let asleep = ["__switch_to+0", "__schedule+50", "read+0", "copy+0", "fault+9"];
        let expected = [
            "1 fault;__schedule",
            "2 fault;__schedule;read",
            "3 fault;__schedule;read;copy",
            "4 fault",
        ];
        assert_eq!(stacks(&asleep)[1..], expected);
    }

    #[test]
    fn what_was_interrupted_goes_on() {
        let interrupt = ["asm_sysvec_apic_timer_interrupt+0", "hrtimer_interrupt+0"];
        let way_out =
            ["asm_sysvec_apic_timer_interrupt+9", "error_return+0", "native_irq_return_iret+0"];
        let mut course =
            vec!["user", "entry_SYSCALL_64+0", "entry_SYSCALL_64_after_hwframe+0", "read+0"];
        course.extend(interrupt.iter().chain(&way_out));
        // It came between a call and the first instruction of what was called.
        course.extend(["copy+0", "read+4", "entry_SYSCALL_64_after_hwframe+7"]);
        let expected = [
            "0 [user]",
            "1 entry_SYSCALL_64",
            "3 entry_SYSCALL_64;read",
            "4 entry_SYSCALL_64;read;asm_sysvec_apic_timer_interrupt",
            "5 entry_SYSCALL_64;read;asm_sysvec_apic_timer_interrupt;hrtimer_interrupt",
            "6 entry_SYSCALL_64;read;asm_sysvec_apic_timer_interrupt",
            "9 entry_SYSCALL_64;read;copy",
            "10 entry_SYSCALL_64;read",
            "11 entry_SYSCALL_64",
        ];
        assert_eq!(stacks(&course), expected);
    }

    #[test]
    fn a_jump_into_another_function_keeps_the_callers() {
        let course = ["user", "entry_SYSCALL_64+0", "read+0", "copy+0", "fault+8", "read+4"];
        let expected = ["4 entry_SYSCALL_64;read;fault", "5 entry_SYSCALL_64;read"];
        assert_eq!(stacks(&course)[4..], expected);
    }

    #[test]
    fn callers_are_known_once_the_code_returns_to_them() {
        let course = ["copy+8", "fault+0", "copy+9", "read+4", "entry+9"];
        let expected = [
            "0 entry;read;copy",
            "1 entry;read;copy;fault",
            "2 entry;read;copy",
            "3 entry;read",
            "4 entry",
        ];
        assert_eq!(stacks(&course), expected);
    }

    #[test]
    fn each_thread_has_a_stack_of_its_own() {
        let course = [
            "user",
            "entry+0",
            "read+0",
            "__schedule+0",
            "__switch_to_asm+0",
            "__switch_to+0",
            // The other thread went to sleep in copy.
            "__schedule+50",
            "copy+9",
            "user",
        ];
        let found = stacks(&course);
        assert_eq!(found[5], "5 entry;read;__schedule;__switch_to_asm;__switch_to");
        assert_eq!(&found[6..], ["6 copy;__schedule", "7 copy", "8 [user]"]);
        let new = ["entry+0", "__schedule+0", "__switch_to+0", "ret_from_fork+0", "read+0"];
        assert_eq!(stacks(&new).last().unwrap(), "4 ret_from_fork;read");
    }

    #[test]
    fn thunks_and_moved_parts_are_no_functions() {
        let course = [
            "user",
            "entry+0",
            "__x86_indirect_thunk_rax+0",
            "read+0",
            "read.cold+0",
            "copy+0",
            "read+4",
        ];
        let expected = ["0 [user]", "1 entry", "3 entry;read", "5 entry;read;copy", "6 entry;read"];
        assert_eq!(stacks(&course), expected);
    }

    #[test]
    fn an_idle_cpu_has_no_stack_and_goes_on_where_it_was() {
        let course = ["entry+0", "read+0", "idle", "copy+0", "read+4"];
        let expected = ["0 entry", "1 entry;read", "2 ", "3 entry;read;copy", "4 entry;read"];
        assert_eq!(stacks(&course), expected);
    }
}
