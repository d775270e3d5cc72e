//! What makes the numbers suspect, each in one line that ends in what it does
//! to them.

use punctual_core::channel::VirtualBoard;
use punctual_core::schema::Condition;
use punctual_sys::affinity::CpuSet;

use super::kernel_config::DEBUG_OPTIONS;
use super::power::IdleState;
use super::preemption::boot_parameters;
use super::snapshot::Facts;

/// How the measurement itself is set up: what the facts of the board do not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measurement {
    /// Whether the probe threads have a real-time policy.
    pub privileged: bool,
    /// Whether the memory of the measuring process is locked.
    pub memory_locked: bool,
    /// Exit latency in us that `/dev/cpu_dma_latency` is held at; `None` where
    /// it is not held.
    pub dma_latency_us: Option<u32>,
}

/// Leaving an idle state of up to 2 us (`C1` on x86, `WFI` on arm64) cannot be
/// told from the rest of a wake-up.
const SHALLOW_IDLE_US: u64 = 2;

/// A board at rest has less than this share of its CPUs in use.
const BUSY_LOAD_PER_CPU: f64 = 0.25;

/// Clock sources that a read takes from a register of the CPU, or from a page
/// that the hypervisor fills.
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

/// Every condition, the ones that weigh most first.
const RULES: &[(&str, Rule)] = &[
    ("unprivileged", unprivileged),
    ("virtual-machine", virtual_machine),
    ("container", container),
    ("memory-not-locked", memory_not_locked),
    ("rt-throttling", rt_throttling),
    ("fair-server", fair_server),
    ("rt-group-sched", rt_group_sched),
    ("clock-source", clock_source),
    ("no-high-res-timers", no_high_res_timers),
    ("frequency-scaling", frequency_scaling),
    ("idle-states", idle_states),
    ("idle-poll", idle_poll),
    ("debug-kernel", debug_kernel),
    ("tracing", tracing),
    ("load-average", load_average),
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

/// What a virtual board's numbers are, and are not.
#[must_use]
pub fn virtual_board(board: &VirtualBoard) -> Condition {
    let Some(mips) = board.mips else {
        return Condition {
            id: "free-running".to_owned(),
            text: "plumbing, not a measurement: the guest runs freely, and its latencies are the \
                   host's noise"
                .to_owned(),
        };
    };
    let mut text = format!(
        "a virtual board: time is counted, {mips} instructions a microsecond; latencies are \
         lengths of code paths, without caches, buses and devices' delays"
    );
    if board.cpus > 1 {
        text.push_str(
            "; its CPUs take turns, so that under load a latency holds turns of the others, which \
             are no work of the kernel",
        );
    }
    for reason in &board.not_exact {
        text.push_str(&format!("; not exact: {reason}"));
    }
    Condition { id: "counted-instructions".to_owned(), text }
}

/// Judges the facts; an unknown fact makes no condition.
#[must_use]
pub fn conditions(facts: &Facts, measurement: &Measurement) -> Vec<Condition> {
    RULES
        .iter()
        .filter_map(|(id, rule)| {
            Some(Condition { id: (*id).to_owned(), text: rule(facts, measurement)? })
        })
        .collect()
}

fn unprivileged(_: &Facts, measurement: &Measurement) -> Option<String> {
    (!measurement.privileged).then(|| {
        "no real-time policy: every other task may run first, \
         and these are not real-time figures"
            .to_owned()
    })
}

fn virtual_machine(facts: &Facts, _: &Measurement) -> Option<String> {
    let name = facts.virtualisation.name()?;
    Some(format!("a virtual machine ({name}): the host's delays are in these figures"))
}

fn container(facts: &Facts, _: &Measurement) -> Option<String> {
    let kind = facts.virtualisation.container.as_deref()?;
    Some(format!(
        "in a container ({kind}): its limits and its neighbours' work are in these figures"
    ))
}

fn memory_not_locked(_: &Facts, measurement: &Measurement) -> Option<String> {
    (!measurement.memory_locked)
        .then(|| "memory is not locked: page faults are in these figures".to_owned())
}

/// Since 6.12 the fair server has taken the place of the throttling, which
/// remains with `RT_GROUP_SCHED` alone.
const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

fn rt_throttling(facts: &Facts, _: &Measurement) -> Option<String> {
    let scheduler = &facts.scheduler;
    let runtime = u64::try_from(scheduler.rt_runtime_us?).ok()?;
    let period = scheduler.rt_period_us?;
    let throttles = version(&facts.kernel.release)? < FAIR_SERVER_SINCE || has_rt_groups(facts);
    (throttles && runtime < period).then(|| {
        format!(
            "real-time work that uses more than {runtime} of {period} us is stopped for the rest: \
             a thread that spins, or many that are busy, can be {} us late by that",
            period - runtime
        )
    })
}

fn fair_server(facts: &Facts, _: &Measurement) -> Option<String> {
    if version(&facts.kernel.release)? < FAIR_SERVER_SINCE {
        return None;
    }
    let servers = facts.scheduler.fair_server.values();
    let strongest = servers.max_by_key(|server| server.runtime_ns);
    let taken = match strongest {
        None => "time that the kernel does not let us read".to_owned(),
        Some(server) if server.runtime_ns == 0 => return None,
        Some(server) => {
            format!("{} of every {} us", server.runtime_ns / 1000, server.period_ns / 1000)
        }
    };
    Some(format!(
        "the fair server may take {taken} from real-time work for tasks that starve: \
         a thread that spins can be late by that"
    ))
}

fn has_rt_groups(facts: &Facts) -> bool {
    facts.scheduler.group_rt_runtime_us.is_some()
        || facts.config.as_ref().is_some_and(|config| config.has("RT_GROUP_SCHED"))
}

fn rt_group_sched(facts: &Facts, _: &Measurement) -> Option<String> {
    match facts.scheduler.group_rt_runtime_us {
        Some(0) => Some(
            "this process's cpu cgroup has no real-time budget (cpu.rt_runtime_us is 0): \
             real-time policies are refused, even to root"
                .to_owned(),
        ),
        _ => has_rt_groups(facts).then(|| {
            "the kernel has RT_GROUP_SCHED: a cgroup's real-time budget can stop its threads, \
             and every real-time wake-up costs more"
                .to_owned()
        }),
    }
}

fn clock_source(facts: &Facts, _: &Measurement) -> Option<String> {
    let source = facts.clock.source.as_deref()?;
    (!FAST_CLOCKS.contains(&source)).then(|| {
        format!(
            "clock source \"{source}\" is read from a device: each time stamp can cost \
             a microsecond and more, and is as coarse as the device"
        )
    })
}

fn no_high_res_timers(facts: &Facts, _: &Measurement) -> Option<String> {
    let resolution = facts.clock.timer_resolution_ns.filter(|&resolution| resolution > 1)?;
    Some(format!(
        "no high-resolution timers: wake-ups come with the tick, up to {} us late",
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
    Some(format!("governor \"{governor}\"{on}: wake-ups after idle will be late"))
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
        "idle state {} is allowed: wake-ups after idle are up to {} us later",
        deepest.name, deepest.exit_latency_us
    ))
}

fn idle_poll(facts: &Facts, _: &Measurement) -> Option<String> {
    let last = boot_parameters(&facts.kernel.command_line, "idle").last()?;
    (last == "poll").then(|| {
        "idle=poll: CPUs spin while idle, so that wake-ups are earlier and SMT siblings slower \
         than without it"
            .to_owned()
    })
}

fn debug_kernel(facts: &Facts, _: &Measurement) -> Option<String> {
    let config = facts.config.as_ref()?;
    let set: Vec<_> = DEBUG_OPTIONS.into_iter().filter(|option| config.has(option)).collect();
    (!set.is_empty()).then(|| {
        format!(
            "a kernel for debugging ({}): latencies are longer than this board's",
            set.join(", ")
        )
    })
}

fn tracing(facts: &Facts, _: &Measurement) -> Option<String> {
    facts.activity.traces().then(|| {
        let tracer = facts.activity.tracer.as_deref();
        let what = tracer.filter(|name| *name != "nop").unwrap_or("events");
        format!("tracing is on ({what}): the tracer's own time is in these figures")
    })
}

fn load_average(facts: &Facts, _: &Measurement) -> Option<String> {
    let [minute, ..] = facts.activity.load_average?;
    let cpus = facts.cpu.online_count();
    (minute > f64::from(cpus) * BUSY_LOAD_PER_CPU).then(|| {
        format!(
            "load average {minute:.2} on {cpus} CPUs before the start: \
             work that is not of the plan is in these figures"
        )
    })
}

fn swap_used(facts: &Facts, _: &Measurement) -> Option<String> {
    let memory = &facts.memory;
    let used = memory.swap_total_bytes?.saturating_sub(memory.swap_free_bytes?);
    (used > 0).then(|| {
        format!(
            "{} MiB of swap in use: loads wait for pages to come back, \
             and do less than they would",
            used.div_ceil(1 << 20)
        )
    })
}

fn smt(facts: &Facts, _: &Measurement) -> Option<String> {
    (facts.cpu.smt_active == Some(true)).then(|| {
        "SMT is on: what a core's other thread does slows the measured one down".to_owned()
    })
}

fn offline_cpus(facts: &Facts, _: &Measurement) -> Option<String> {
    let present = facts.cpu.present.as_ref()?;
    let online = facts.cpu.online.as_ref()?;
    // CPUs that are possible and not there make no difference.
    let offline = present.without(online);
    (!offline.is_empty())
        .then(|| format!("CPU {offline} is offline: with all CPUs these figures would be others"))
}

fn restricted_cpus(facts: &Facts, _: &Measurement) -> Option<String> {
    let allowed = facts.cpu.allowed.as_ref()?;
    let online = facts.cpu.online.as_ref()?;
    // Isolated CPUs are outside every inherited mask, and that is no trouble.
    let isolated = facts.cpu.isolated.clone().unwrap_or_default();
    let kept_out = online.without(allowed).without(&isolated);
    (!kept_out.is_empty()).then(|| {
        format!(
            "affinity or cpuset keeps this process off CPU {kept_out}: \
             unless -a names them, these figures are of CPU {allowed} alone"
        )
    })
}

fn nohz_full_ignored(facts: &Facts, _: &Measurement) -> Option<String> {
    let asked = boot_parameters(&facts.kernel.command_line, "nohz_full").last()?;
    let in_effect = facts.cpu.nohz_full.as_ref();
    in_effect.is_none_or(CpuSet::is_empty).then(|| {
        format!(
            "the kernel ignores nohz_full={asked}: \
             the tick goes on and is in these figures"
        )
    })
}

fn isolation_ignored(facts: &Facts, _: &Measurement) -> Option<String> {
    let asked = boot_parameters(&facts.kernel.command_line, "isolcpus").last()?;
    // With flags alone (as managed_irq) no CPU leaves the load balancing.
    let balanced = asked.contains("managed_irq") && !asked.contains("domain");
    let none = facts.cpu.isolated.as_ref().is_some_and(CpuSet::is_empty);
    (none && !balanced)
        .then(|| format!("the kernel ignores isolcpus={asked}: other tasks are in these figures"))
}

fn nohz_off(facts: &Facts, _: &Measurement) -> Option<String> {
    let last = boot_parameters(&facts.kernel.command_line, "nohz").last()?;
    (last == "off").then(|| {
        "nohz=off: idle CPUs tick too, so that they sleep less deeply \
         and wake-ups are earlier than without it"
            .to_owned()
    })
}

fn numa_balancing(facts: &Facts, _: &Measurement) -> Option<String> {
    (facts.memory.numa_balancing? != 0).then(|| {
        "NUMA balancing is on: it unmaps pages to see who uses them, \
         and the faults are in these figures"
            .to_owned()
    })
}

/// Bits of `kernel.tainted` after which timing is in doubt (the kernel's
/// tainted-kernels document): machine check, bad page, oops, warning, lockup.
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
            "the kernel had trouble since it started ({}): \
             what it does late may be due to that",
            reasons.join(", ")
        )
    })
}

/// Major and minor of a release, as (6, 12) of `6.12.3-rt1`.
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
