//! What this process may do on this board: tried, not guessed.

use std::io;

use punctual_sys::sched::{self, Policy};

use crate::facts::Facts;

/// What was granted.
#[derive(Debug, Clone, Default)]
pub struct Privileges {
    /// Why real-time scheduling is refused; `None` if it is allowed.
    pub real_time: Option<String>,
    /// Why memory could not be locked; `None` if it is locked.
    pub memory: Option<String>,
}

impl Privileges {
    /// Tries real-time scheduling in a short-lived thread, and locks the memory, of which the run
    /// takes `more` bytes.
    #[must_use]
    pub fn try_out(facts: &Facts, more: usize) -> Self {
        let tried = std::thread::scope(|scope| {
            std::thread::Builder::new()
                .stack_size(super::thread::STACK_BYTES)
                .spawn_scoped(scope, || sched::set(Policy::Fifo, 1))
                .and_then(|thread| {
                    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
                })
        });
        Self {
            real_time: tried.err().map(|error| why_not(facts, &error)),
            memory: punctual_sys::memory::lock_all(more).err().map(|error| {
                format!("memory cannot be locked: {error}; run as root, or raise the limit on locked memory (ulimit -l)")
            }),
        }
    }

    /// The refusal that no cell is measured with, if both are `required`.
    #[must_use]
    pub fn of(&self, required: bool) -> Option<String> {
        let refusal = self.real_time.as_ref().or(self.memory.as_ref()).filter(|_| required);
        refusal.map(|refusal| format!("{refusal} (--require-rt)"))
    }

    /// Whether both were granted.
    #[must_use]
    pub fn all(&self) -> bool {
        self.real_time.is_none() && self.memory.is_none()
    }
}

/// The reason for a refusal and its remedy. EPERM has three causes, and "run as root" helps
/// with only one of them.
fn why_not(facts: &Facts, error: &io::Error) -> String {
    let refused = format!("real-time scheduling is refused: {error}");
    if error.kind() != io::ErrorKind::PermissionDenied {
        return refused;
    }
    let capable = facts.limits.cap_sys_nice == Some(true);
    if capable && facts.scheduler.group_rt_runtime_us == Some(0) {
        let group = facts.scheduler.cgroups.get("cpu").map_or("", String::as_str);
        return format!(
            "{refused}: the cpu control group {group} has no real-time budget (RT_GROUP_SCHED); give it one in \
             cpu.rt_runtime_us, or move this shell to the root group"
        );
    }
    if capable {
        return format!(
            "{refused}, although this process has CAP_SYS_NICE: a control group without real-time budget \
             (RT_GROUP_SCHED), or a security policy"
        );
    }
    if facts.virtualisation.container.is_some() {
        return format!(
            "{refused}: this container has no CAP_SYS_NICE; start it with --cap-add SYS_NICE"
        );
    }
    if punctual_sys::process::effective_uid() == 0 {
        return format!("{refused}: root without CAP_SYS_NICE; give this process that capability");
    }
    format!("{refused}: run as root, or raise the limit on real-time priority (ulimit -r)")
}
