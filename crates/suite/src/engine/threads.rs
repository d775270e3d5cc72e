//! The threads of a probe: how many, where, with which policy and priority, and when.

use punctual_core::units::{BareNumber, exact_duration, parse_duration_ns};
use punctual_sys::affinity::CpuSet;
use punctual_sys::sched::Policy;

use crate::probes::Kind;
use crate::registry::{Param, Values};

/// Parameters of every probe.
pub const THREAD_PARAMS: &[Param] = &[
    Param {
        name: "threads",
        value: "N",
        default: "1",
        help: "number of threads, or per-cpu (one bound to each CPU)",
    },
    Param {
        name: "policy",
        value: "POLICY",
        default: "fifo",
        help: "scheduling policy: fifo, rr or other",
    },
    Param {
        name: "priority",
        value: "N",
        default: "80",
        help: "real-time priority, 1 to 98 (99 with --force)",
    },
    Param {
        name: "affinity",
        value: "CPUS",
        default: "inherited",
        help: "CPUs as 0-3+8 on a name, 0-3,8 behind -a; auto binds each thread to the next CPU in turn",
    },
];

/// Parameters of every probe with a period.
pub const PERIOD_PARAMS: &[Param] = &[
    Param {
        name: "interval",
        value: "TIME",
        default: "1ms",
        help: "time between releases of a thread, 1us to 1h",
    },
    Param {
        name: "aligned",
        value: "OFFSET",
        default: "spread",
        help: "releases of all threads at once, each thread OFFSET (may be 0us) after the one before; \
else they are spread evenly over the interval",
    },
];

/// One thread as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPlan {
    /// Number, from 0.
    pub number: u32,
    /// CPUs that it is bound to; none: as inherited.
    pub affinity: Option<CpuSet>,
    /// Its first release after the start, ns.
    pub offset_ns: u64,
}

/// All threads of a cell as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadsPlan {
    /// The threads.
    pub threads: Vec<ThreadPlan>,
    /// Scheduling policy.
    pub policy: Policy,
    /// Real-time priority; 0 for a policy that has none.
    pub priority: u32,
    /// Whether policy or priority were asked for, rather than left to the default.
    pub explicit: bool,
    /// Time between releases, ns; 0 without a period.
    pub interval_ns: u64,
}

/// What the machine can give.
#[derive(Debug, Clone)]
pub struct Reach {
    /// CPUs that are online and in the cpuset.
    pub cpus: CpuSet,
    /// CPUs of the inherited mask.
    pub inherited: CpuSet,
    /// Time of one read of CLOCK_MONOTONIC, ns.
    pub clock_cost_ns: u64,
    /// Whether priority 99 is allowed.
    pub force: bool,
}

/// The most threads of one probe.
pub const MAX_THREADS: u64 = 4_096;
const HOUR_NS: u64 = 3_600_000_000_000;

impl ThreadsPlan {
    /// Reads the parameters of threads and period.
    ///
    /// # Errors
    /// A message that names the parameter and what it must be.
    pub fn read(values: &Values, kind: Kind, reach: &Reach) -> Result<Self, String> {
        let policy = values.get("policy", Policy::Fifo, parse_policy)?;
        let priority = priority(values, policy, reach.force)?;
        let interval_ns = if kind.has_interval() { interval(values, kind, reach)? } else { 0 };
        let affinity = values.get("affinity", Affinity::Inherited, parse_affinity)?;
        if let Affinity::Cpus(cpus) = &affinity {
            check_cpus(cpus, &reach.cpus)?;
        }
        let per_cpu = values.text("threads") == Some("per-cpu");
        let cpus: Vec<u32> = match &affinity {
            Affinity::Cpus(cpus) => cpus.iter().collect(),
            _ if per_cpu || affinity == Affinity::Auto => reach.cpus.iter().collect(),
            Affinity::Inherited | Affinity::Auto => reach.inherited.iter().collect(),
        };
        let count = if per_cpu {
            cpus.len() as u64
        } else {
            values.number("threads", 1, 1, MAX_THREADS)?
        };
        let bound = per_cpu || affinity != Affinity::Inherited;
        let step = values.get("aligned", None, |text| {
            parse_duration_ns(text, BareNumber::Microseconds).map(Some)
        })?;
        let offset = |number: u64| match step {
            Some(step) => step.saturating_mul(number),
            None => u64::try_from(u128::from(interval_ns) * u128::from(number) / u128::from(count))
                .unwrap_or(0),
        };
        let threads = (0..count)
            .map(|number| ThreadPlan {
                number: u32::try_from(number).unwrap_or(u32::MAX),
                affinity: bound
                    .then(|| CpuSet::of(cpus[usize::try_from(number).unwrap_or(0) % cpus.len()])),
                offset_ns: offset(number),
            })
            .collect();
        let explicit = values.text("policy").is_some() || values.text("priority").is_some();
        Ok(Self { threads, policy, priority, explicit, interval_ns })
    }

    /// Every CPU that a thread is bound to.
    #[must_use]
    pub fn bound_cpus(&self) -> CpuSet {
        self.threads
            .iter()
            .filter_map(|thread| thread.affinity.as_ref())
            .flat_map(CpuSet::iter)
            .collect()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Affinity {
    Inherited,
    Auto,
    Cpus(CpuSet),
}

fn parse_affinity(text: &str) -> Result<Affinity, &'static str> {
    match text {
        "inherited" => Ok(Affinity::Inherited),
        "auto" => Ok(Affinity::Auto),
        list => match CpuSet::parse(&list.replace('+', ",")) {
            Some(cpus) if !cpus.is_empty() => Ok(Affinity::Cpus(cpus)),
            _ => Err("must be a list of CPUs such as 0-3,8, or auto"),
        },
    }
}

fn parse_policy(text: &str) -> Result<Policy, &'static str> {
    match text {
        "fifo" => Ok(Policy::Fifo),
        "rr" => Ok(Policy::RoundRobin),
        "other" => Ok(Policy::Other),
        _ => Err("must be fifo, rr or other"),
    }
}

fn priority(values: &Values, policy: Policy, force: bool) -> Result<u32, String> {
    if !policy.is_real_time() {
        return match values.text("priority") {
            None | Some("0") => Ok(0),
            Some(text) => Err(format!(
                "priority={text}: policy other has no priority; leave it out, or take fifo"
            )),
        };
    }
    let highest = if force { 99 } else { 98 };
    let priority = values.number("priority", 80, 1, highest).map_err(|error| {
        if values.text("priority") == Some("99") {
            format!("{error}; 99 is the kernel's own (migration, watchdog): --force takes it all the same")
        } else {
            error
        }
    })?;
    Ok(u32::try_from(priority).unwrap_or(0))
}

fn interval(values: &Values, kind: Kind, reach: &Reach) -> Result<u64, String> {
    let interval = values
        .get("interval", 1_000_000, |text| parse_duration_ns(text, BareNumber::Microseconds))?;
    let wrong = |why: String| Err(format!("interval={}: {why}", exact_duration(interval)));
    if interval == 0 {
        return wrong("must be above zero".to_owned());
    }
    if kind == Kind::Periodic && interval <= reach.clock_cost_ns {
        return wrong(format!(
            "is not above the cost of reading the clock here, {} ns: nothing could be measured",
            reach.clock_cost_ns
        ));
    }
    if interval > HOUR_NS {
        return wrong("must be at most 1h".to_owned());
    }
    Ok(interval)
}

fn check_cpus(asked: &CpuSet, reachable: &CpuSet) -> Result<(), String> {
    let missing = asked.without(reachable);
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "affinity: CPU {missing} cannot be had: it does not exist, is offline, or is outside the cpuset \
         (CPUs that can be had: {reachable})"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::params::Named;

    fn read(spec: &str, kind: Kind) -> Result<ThreadsPlan, String> {
        let known: Vec<_> = THREAD_PARAMS.iter().chain(PERIOD_PARAMS).copied().collect();
        let values = Values::check(&Named::parse(spec, "").unwrap(), &known)?;
        let reach = Reach {
            cpus: CpuSet::parse("0-1,4,70").unwrap(),
            inherited: CpuSet::parse("1").unwrap(),
            clock_cost_ns: 30,
            force: false,
        };
        ThreadsPlan::read(&values, kind, &reach)
    }

    fn cpus(plan: &ThreadsPlan) -> Vec<String> {
        plan.threads
            .iter()
            .map(|t| t.affinity.as_ref().map_or(String::new(), CpuSet::to_string))
            .collect()
    }

    #[test]
    fn threads_are_bound_as_asked() {
        let plan = |spec| read(spec, Kind::Periodic).unwrap();
        assert_eq!(cpus(&plan("p")), [""]);
        assert_eq!(cpus(&plan("p:threads=per-cpu")), ["0", "1", "4", "70"]);
        assert_eq!(cpus(&plan("p:threads=per-cpu,affinity=0+70")), ["0", "70"]);
        assert_eq!(cpus(&plan("p:threads=3,affinity=auto")), ["0", "1", "4"]);
        assert_eq!(cpus(&plan("p:threads=3,affinity=4+70")), ["4", "70", "4"]);
    }

    #[test]
    fn releases_are_spread_or_aligned() {
        let offsets = |spec| -> Vec<u64> {
            read(spec, Kind::Periodic).unwrap().threads.iter().map(|t| t.offset_ns).collect()
        };
        assert_eq!(offsets("p:threads=4"), [0, 250_000, 500_000, 750_000]);
        assert_eq!(offsets("p:threads=3,aligned=0us"), [0, 0, 0]);
        assert_eq!(offsets("p:threads=3,aligned=15"), [0, 15_000, 30_000]);
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (spec, error) in [
            ("p:interval=0", "interval=0s: must be above zero"),
            ("p:interval=20ns", "cost of reading the clock"),
            ("p:interval=2h", "at most 1h"),
            ("p:interval=1m", "m is a minute"),
            ("p:priority=0", "from 1 to 98"),
            ("p:priority=99", "--force"),
            ("p:policy=other,priority=5", "has no priority"),
            ("p:policy=realtime", "must be fifo, rr or other"),
            ("p:affinity=2", "CPU 2 cannot be had"),
            ("p:affinity=0-9", "CPU 2-3,5-9 cannot be had"),
            ("p:affinity=x", "list of CPUs"),
            ("p:threads=0", "from 1 to 4096"),
            ("p:colour=red", "no parameter \"colour\"; it has: threads"),
        ] {
            let message = read(spec, Kind::Periodic).unwrap_err();
            assert!(message.contains(error), "{spec}: {message}");
        }
    }

    #[test]
    fn a_spinning_probe_has_no_interval() {
        assert_eq!(read("p", Kind::Spinning).unwrap().interval_ns, 0);
    }
}
