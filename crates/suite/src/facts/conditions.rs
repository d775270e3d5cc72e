//! Conditions that make the numbers suspect: each is one line that names the setting, its
//! effect on the numbers and, if there is one, the remedy.

use punctual_core::schema::{Condition, UNREAD};
use punctual_sys::affinity::CpuSet;

use super::kernel_config::DEBUG_OPTIONS;
use super::power::IdleState;
use super::preemption::boot_parameters;
use super::snapshot::Facts;
use super::unread::sentence;

/// How the measurement itself is set up, which the facts of the board do not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measurement {
    /// Whether the probe threads have a real-time policy.
    pub privileged: bool,
    /// Whether a thread that measures keeps its CPU busy all the time, as throttling concerns
    /// only those.
    pub spins: bool,
    /// Whether the memory of the measuring process is locked.
    pub memory_locked: bool,
    /// Exit latency that `/dev/cpu_dma_latency` is held at, us; `None` if it is not held.
    pub dma_latency_us: Option<u32>,
    /// CPUs that a thread can be bound to: online, and in the cpuset; `None` if not known.
    pub reachable: Option<CpuSet>,
    /// Whether one thread per CPU measures those too that the inherited affinity leaves out.
    pub all_cpus: bool,
}

/// Leaving an idle state of up to 2 us (`C1` on x86, `WFI` on arm64) costs no more than the
/// rest of a wake-up.
const SHALLOW_IDLE_US: u64 = 2;

/// An idle board uses less than this share of its CPUs.
const BUSY_LOAD_PER_CPU: f64 = 0.25;

/// Clock sources that are read from a CPU register, or from a page that the
/// hypervisor fills.
const FAST_CLOCKS: [&str; 10] = [
    "tsc",
    "tsc-early",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "arch_mem_counter",
    "riscv_clocksource",
    "timebase",
    "tod",
    "Constant",
];

type Rule = fn(&Facts, &Measurement) -> Option<String>;

/// Every condition, the most important first.
const RULES: &[(&str, Rule)] = &[
    ("unprivileged", unprivileged),
    ("virtual-machine", virtual_machine),
    ("container", container),
    ("memory-not-locked", memory_not_locked),
    (UNREAD, unread),
    ("load-average", load_average),
    ("clock-source", clock_source),
    ("no-high-res-timers", no_high_res_timers),
    ("frequency-scaling", frequency_scaling),
    ("idle-states", idle_states),
    ("debug-kernel", debug_kernel),
    ("tracing", tracing),
    ("rt-group-sched", rt_group_sched),
    ("rt-throttling", rt_throttling),
    ("fair-server", fair_server),
    ("sched-ext", sched_ext),
    ("idle-poll", idle_poll),
    ("swap-used", swap_used),
    ("smt", smt),
    ("offline-cpus", offline_cpus),
    ("restricted-cpus", restricted_cpus),
    ("nohz-full-ignored", nohz_full_ignored),
    ("isolation-ignored", isolation_ignored),
    ("nohz-off", nohz_off),
    ("numa-balancing", numa_balancing),
    ("tainted", tainted),
];

/// Judges the facts. What could not be read is one condition; any other unknown fact yields none. What concerns only threads that spin
/// is one short condition, the last, if none does.
#[must_use]
pub fn conditions(facts: &Facts, measurement: &Measurement) -> Vec<Condition> {
    let found = RULES.iter().filter_map(|(id, rule)| {
        Some(Condition { id: (*id).to_owned(), text: rule(facts, measurement)? })
    });
    let mut found: Vec<Condition> = found.collect();
    if !measurement.spins {
        let spinning =
            found.extract_if(.., |condition| SPINNING.iter().any(|(id, _)| *id == condition.id));
        let ids: Vec<String> = spinning.map(|condition| condition.id).collect();
        found.extend(not_spinning(&ids));
    }
    found
}

/// Conditions that delay only threads that spin, in a few words with the remedy.
const SPINNING: [(&str, &str); 2] = [
    ("rt-throttling", "RT throttling (sysctl kernel.sched_rt_runtime_us=-1 turns it off)"),
    ("fair-server", "the fair server (debugfs: 0 in sched/fair_server/cpu*/runtime turns it off)"),
];

fn not_spinning(ids: &[String]) -> Option<Condition> {
    let words = SPINNING.iter().filter(|(id, _)| ids.iter().any(|found| found == id));
    let words: Vec<&str> = words.map(|(_, words)| *words).collect();
    (!words.is_empty()).then(|| Condition {
        id: "spinning-threads".to_owned(),
        text: format!(
            "RT threads that spin are stopped at times by {}; no thread that measures here spins",
            words.join(" and ")
        ),
    })
}

fn unprivileged(_: &Facts, measurement: &Measurement) -> Option<String> {
    (!measurement.privileged).then(|| {
        "no real-time policy: every other task may run first, so these are not real-time \
         figures"
            .to_owned()
    })
}

fn virtual_machine(facts: &Facts, _: &Measurement) -> Option<String> {
    let name = facts.virtualisation.name()?;
    Some(format!("virtual machine ({name}): the host's delays are part of these figures"))
}

fn container(facts: &Facts, _: &Measurement) -> Option<String> {
    let kind = facts.virtualisation.container.as_deref()?;
    Some(format!(
        "container ({kind}): its limits and its neighbours' work are part of these figures"
    ))
}

fn memory_not_locked(_: &Facts, measurement: &Measurement) -> Option<String> {
    (!measurement.memory_locked).then(|| {
        "memory is not locked: page faults are part of these figures (raise RLIMIT_MEMLOCK \
             or grant CAP_IPC_LOCK)"
            .to_owned()
    })
}

/// In 6.12 the fair server replaced RT throttling, which remains only with `RT_GROUP_SCHED`.
const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

fn rt_throttling(facts: &Facts, _: &Measurement) -> Option<String> {
    let scheduler = &facts.scheduler;
    let runtime = u64::try_from(scheduler.rt_runtime_us?).ok()?;
    let period = scheduler.rt_period_us?;
    let throttles = version(&facts.kernel.release)? < FAIR_SERVER_SINCE || has_rt_groups(facts);
    (throttles && runtime < period).then(|| {
        format!(
            "RT throttling is on (sched_rt_runtime_us={runtime}): RT tasks that use more than {} \
             of any {} are stopped for up to {} (sysctl kernel.sched_rt_runtime_us=-1 turns it off)",
            whole(runtime),
            whole(period),
            whole(period - runtime)
        )
    })
}

/// Microseconds in the largest unit that gives a whole number.
fn whole(us: u64) -> String {
    match us {
        us if us > 0 && us.is_multiple_of(1_000_000) => format!("{} s", us / 1_000_000),
        us if us > 0 && us.is_multiple_of(1_000) => format!("{} ms", us / 1_000),
        us => format!("{us} us"),
    }
}

fn fair_server(facts: &Facts, _: &Measurement) -> Option<String> {
    if version(&facts.kernel.release)? < FAIR_SERVER_SINCE {
        return None;
    }
    let servers = facts.scheduler.fair_server.values();
    let strongest = servers.max_by_key(|server| server.runtime_ns);
    let budget = match strongest {
        None => "; its budget could not be read (needs debugfs)".to_owned(),
        Some(server) if server.runtime_ns == 0 => return None,
        Some(server) => format!(
            ", for {} of every {} (debugfs: sched/fair_server)",
            whole(server.runtime_ns / 1_000),
            whole(server.period_ns / 1_000)
        ),
    };
    Some(format!(
        "the fair (DL) server may preempt RT tasks to run starved SCHED_OTHER tasks{budget}"
    ))
}

fn sched_ext(facts: &Facts, _: &Measurement) -> Option<String> {
    let found = facts.scheduler.sched_ext.as_ref().filter(|found| found.state != "disabled")?;
    let name = found.ops.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    Some(format!(
        "the sched_ext scheduler{name} is loaded: it decides when SCHED_OTHER tasks run, loads \
         among them, and not the kernel's own (end its program to unload it)"
    ))
}

fn has_rt_groups(facts: &Facts) -> bool {
    facts.scheduler.group_rt_runtime_us.is_some()
        || facts.config.as_ref().is_some_and(|config| config.has("RT_GROUP_SCHED"))
}

fn rt_group_sched(facts: &Facts, _: &Measurement) -> Option<String> {
    match facts.scheduler.group_rt_runtime_us {
        Some(0) => Some(
            "this process's cpu cgroup has no real-time budget (cpu.rt_runtime_us=0): real-time \
             policies are refused, even to root"
                .to_owned(),
        ),
        _ => has_rt_groups(facts).then(|| {
            "the kernel has RT_GROUP_SCHED: RT tasks can be throttled by their cgroup's budget, \
             and every RT wake-up costs more"
                .to_owned()
        }),
    }
}

fn clock_source(facts: &Facts, _: &Measurement) -> Option<String> {
    let source = facts.clock.source.as_deref()?;
    (!FAST_CLOCKS.contains(&source)).then(|| {
        format!(
            "clock source \"{source}\" is read from a device: each time stamp may cost a \
             microsecond or more, and is as coarse as the device"
        )
    })
}

fn no_high_res_timers(facts: &Facts, _: &Measurement) -> Option<String> {
    let resolution = facts.clock.timer_resolution_ns.filter(|&resolution| resolution > 1)?;
    Some(format!(
        "high-resolution timers are off: wake-ups come with the tick, up to {} us late (needs \
         CONFIG_HIGH_RES_TIMERS, and no highres=off)",
        resolution / 1000
    ))
}

fn frequency_scaling(facts: &Facts, _: &Measurement) -> Option<String> {
    let scaling: Vec<_> = facts.power.frequency.iter().filter(|policy| policy.scales()).collect();
    let governor = scaling.first()?.governor.as_deref()?;
    let same = scaling.iter().filter(|policy| policy.governor.as_deref() == Some(governor));
    let cpus: CpuSet = same.flat_map(|policy| policy.cpus.iter()).collect();
    let on = if cpus.len() < facts.cpu.online_count() as usize {
        format!(" on CPU {cpus}")
    } else {
        String::new()
    };
    Some(format!(
        "governor \"{governor}\"{on}: wake-ups after idle will be late (use \"performance\")"
    ))
}

fn idle_states(facts: &Facts, measurement: &Measurement) -> Option<String> {
    let held = measurement.dma_latency_us.map(u64::from);
    let allowed = |state: &IdleState| held.is_none_or(|held| state.exit_latency_us <= held);
    let deepest = facts
        .power
        .idle
        .iter()
        .flat_map(|group| &group.states)
        .filter(|state| !state.disabled && allowed(state))
        .max_by_key(|state| state.exit_latency_us)
        .filter(|state| state.exit_latency_us > SHALLOW_IDLE_US)?;
    Some(format!(
        "idle state {} is allowed: wake-ups after idle are up to {} us later (--dma-latency 0 \
         prevents it)",
        deepest.name, deepest.exit_latency_us
    ))
}

fn idle_poll(facts: &Facts, _: &Measurement) -> Option<String> {
    let last = boot_parameters(&facts.kernel.command_line, "idle").last()?;
    (last == "poll").then(|| {
        "idle=poll: CPUs spin while idle, so wake-ups are earlier and SMT siblings slower than \
         without it"
            .to_owned()
    })
}

fn debug_kernel(facts: &Facts, _: &Measurement) -> Option<String> {
    let config = facts.config.as_ref()?;
    let set: Vec<_> = DEBUG_OPTIONS.into_iter().filter(|option| config.has(option)).collect();
    (!set.is_empty()).then(|| {
        format!(
            "the kernel has debug options ({}): latencies are longer than with a production kernel",
            set.join(", ")
        )
    })
}

fn tracing(facts: &Facts, _: &Measurement) -> Option<String> {
    facts.activity.traces().then(|| {
        let tracer = facts.activity.tracer.as_deref();
        let what = tracer.filter(|name| *name != "nop").unwrap_or("events");
        format!(
            "tracing is on ({what}): the tracer's own time is part of these figures (write 0 to \
             tracing_on)"
        )
    })
}

fn load_average(facts: &Facts, _: &Measurement) -> Option<String> {
    let [minute, ..] = facts.activity.load_average?;
    let cpus = facts.cpu.online_count();
    (minute > f64::from(cpus) * BUSY_LOAD_PER_CPU).then(|| {
        format!(
            "load average {minute:.2} on {cpus} CPUs before the start: other work than the plan's \
             is part of these figures"
        )
    })
}

fn swap_used(facts: &Facts, _: &Measurement) -> Option<String> {
    let memory = &facts.memory;
    let used = memory.swap_total_bytes?.saturating_sub(memory.swap_free_bytes?);
    (used > 0).then(|| {
        format!(
            "{} MiB of swap in use: loads wait for pages to be read back, and do less work",
            used.div_ceil(1 << 20)
        )
    })
}

fn smt(facts: &Facts, _: &Measurement) -> Option<String> {
    (facts.cpu.smt_active == Some(true)).then(|| {
        "SMT is on: work on a core's other thread slows the measured one down (write off to \
         /sys/devices/system/cpu/smt/control)"
            .to_owned()
    })
}

fn offline_cpus(facts: &Facts, _: &Measurement) -> Option<String> {
    let present = facts.cpu.present.as_ref()?;
    let online = facts.cpu.online.as_ref()?;
    // CPUs that are possible but not present make no difference.
    let offline = present.without(online);
    (!offline.is_empty())
        .then(|| format!("CPU {offline} is offline: results may differ with all CPUs online"))
}

fn unread(facts: &Facts, _: &Measurement) -> Option<String> {
    sentence(&facts.unread)
}

fn restricted_cpus(facts: &Facts, measurement: &Measurement) -> Option<String> {
    let allowed = facts.cpu.allowed.as_ref()?;
    let online = facts.cpu.online.as_ref()?;
    let kept_out = online.without(allowed);
    let outside = match &measurement.reachable {
        Some(reachable) => kept_out.without(reachable),
        None => CpuSet::default(),
    };
    // Isolated CPUs are outside every inherited mask by design.
    let masked = match measurement.all_cpus {
        true => CpuSet::default(),
        false => kept_out.without(&outside).without(&facts.cpu.kept_free()),
    };
    let rest = online.without(&outside).without(&masked);
    let mut said = Vec::new();
    if !outside.is_empty() {
        said.push(format!(
            "a cpuset keeps this process off CPU {outside}: start it in a control group that has \
             these CPUs"
        ));
    }
    if !masked.is_empty() {
        said.push(format!(
            "its affinity keeps this process off CPU {masked}: name these CPUs with -a, or add \
             --all-cpus"
        ));
    }
    (!said.is_empty())
        .then(|| format!("{}; these figures are only those of CPU {rest}", said.join("; ")))
}

fn nohz_full_ignored(facts: &Facts, _: &Measurement) -> Option<String> {
    let asked = boot_parameters(&facts.kernel.command_line, "nohz_full").last()?;
    let in_effect = facts.cpu.nohz_full.as_ref();
    in_effect.is_none_or(CpuSet::is_empty).then(|| {
        format!(
            "the kernel ignores nohz_full={asked}: the tick keeps running and is part of these \
             figures"
        )
    })
}

fn isolation_ignored(facts: &Facts, _: &Measurement) -> Option<String> {
    let asked = boot_parameters(&facts.kernel.command_line, "isolcpus").last()?;
    // Flags alone (such as managed_irq) take no CPU out of load balancing.
    let balanced = asked.contains("managed_irq") && !asked.contains("domain");
    let none = facts.cpu.isolated.as_ref().is_some_and(CpuSet::is_empty);
    (none && !balanced)
        .then(|| format!("the kernel ignores isolcpus={asked}: other tasks run on these CPUs too"))
}

fn nohz_off(facts: &Facts, _: &Measurement) -> Option<String> {
    let last = boot_parameters(&facts.kernel.command_line, "nohz").last()?;
    (last == "off").then(|| {
        "nohz=off: idle CPUs keep ticking and sleep less deeply, so wake-ups are earlier than \
         without it"
            .to_owned()
    })
}

fn numa_balancing(facts: &Facts, _: &Measurement) -> Option<String> {
    (facts.memory.numa_balancing? != 0).then(|| {
        "NUMA balancing is on: it unmaps pages to see who uses them, and these faults are part \
         of the figures (sysctl kernel.numa_balancing=0)"
            .to_owned()
    })
}

/// Bits of `kernel.tainted` that cast doubt on timing (see the kernel's tainted-kernels
/// document): machine check, bad page, oops, warning, lockup.
const TAINTS: &[(u32, &str)] =
    &[(4, "machine check"), (5, "bad page"), (7, "oops"), (9, "warning"), (14, "lockup")];

fn tainted(facts: &Facts, _: &Measurement) -> Option<String> {
    let bits = facts.activity.tainted?;
    let reasons: Vec<_> = TAINTS
        .iter()
        .filter(|(bit, _)| bits & (1 << bit) != 0)
        .map(|(_, reason)| *reason)
        .collect();
    (!reasons.is_empty()).then(|| {
        format!(
            "the kernel reported trouble since it was booted ({}), which may make it late",
            reasons.join(", ")
        )
    })
}

/// Major and minor version of a release: (6, 12) for `6.12.3-rt1`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_releases() {
        assert_eq!(version("6.12.3-rt1"), Some((6, 12)));
        assert_eq!(version("6.1.0-56-rt-amd64"), Some((6, 1)));
        assert_eq!(version("7.0-rc1"), Some((7, 0)));
        assert_eq!(version("unknown"), None);
    }

    #[test]
    fn ids_are_unique() {
        let ids: std::collections::BTreeSet<_> = RULES.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), RULES.len());
    }
}
