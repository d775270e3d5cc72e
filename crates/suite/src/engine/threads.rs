//! The threads of a probe: their number, CPUs, policy, priority and releases.

use punctual_sys::affinity::CpuSet;
use punctual_sys::sched::Policy;

use crate::registry::probe::Pace;
use crate::registry::threads::PER_CPU;
use crate::registry::{Value, Values};

/// One thread as requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPlan {
    /// Number, from 0.
    pub number: u32,
    /// CPUs to bind it to; `None`: the inherited mask.
    pub affinity: Option<CpuSet>,
    /// Delay of its first release after the start, ns.
    pub offset_ns: u64,
    /// By how much its priority is below that of the cell.
    pub below: u32,
}

/// All threads of a cell as requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadsPlan {
    /// The threads.
    pub threads: Vec<ThreadPlan>,
    /// Scheduling policy.
    pub policy: Policy,
    /// Real-time priority; 0 for a policy without priorities.
    pub priority: u32,
    /// Whether policy or priority were asked for rather than left at their defaults.
    pub explicit: bool,
    /// Time between releases, ns; 0 without a period.
    pub interval_ns: u64,
    /// Whether they are on the CPUs that [`Reach::per_cpu`] stands for.
    pub on_each_cpu: bool,
}

/// What the machine offers.
#[derive(Debug, Clone)]
pub struct Reach {
    /// CPUs that are online and in the cpuset.
    pub cpus: CpuSet,
    /// CPUs in the inherited mask.
    pub inherited: CpuSet,
    /// CPUs that have a thread each if none are named: those of the inherited mask and isolated
    /// ones. An error is why there are none.
    pub per_cpu: Result<CpuSet, String>,
    /// Cost of reading CLOCK_MONOTONIC once, ns.
    pub clock_cost_ns: u64,
    /// Whether priority 99 is allowed.
    pub force: bool,
}

impl ThreadsPlan {
    /// Reads the parameters of threads and period. A parameter that another one makes
    /// meaningless is set to what takes effect.
    ///
    /// # Errors
    /// A message that names the parameter and what it must be.
    pub fn read(values: &mut Values, pace: Pace, reach: &Reach) -> Result<Self, String> {
        let (policy, priority) = scheduling(values, reach.force)?;
        let interval_ns = interval(values, pace, reach)?;
        let per_cpu = values.word("threads") == Some(PER_CPU);
        let named = values.is_known("affinity") && values.word("affinity") != Some("inherited");
        let bound = per_cpu || named;
        // What is made up is the same whatever else this machine runs.
        let on_each_cpu = bound && values.cpus("affinity").is_none() && pace != Pace::Simulated;
        let cpus: Vec<u32> = match values.cpus("affinity") {
            Some(cpus) => {
                check_cpus(values, cpus, &reach.cpus)?;
                cpus.iter().collect()
            }
            None if on_each_cpu => each_cpu(values, per_cpu, reach)?,
            // Whoever keeps punctual off a CPU (taskset, systemd) means it, unless that CPU is named.
            None => reach.inherited.iter().collect(),
        };
        let count = values.known_number("threads").unwrap_or(cpus.len() as u64);
        let step = values.known_number("aligned");
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
                below: 0,
            })
            .collect();
        let explicit = values.is_given("policy") || values.is_given("priority");
        Ok(Self { threads, policy, priority, explicit, interval_ns, on_each_cpu })
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

/// Policy and priority. A probe without these parameters takes its own policy later.
fn scheduling(values: &mut Values, force: bool) -> Result<(Policy, u32), String> {
    if !values.is_known("policy") {
        return Ok((Policy::Other, 0));
    }
    let policy = match values.text("policy") {
        "rr" => Policy::RoundRobin,
        "other" => Policy::Other,
        // A reservation, which the probe makes.
        "deadline" => Policy::Deadline,
        _ => Policy::Fifo,
    };
    Ok((policy, priority(values, policy, force)?))
}

fn priority(values: &mut Values, policy: Policy, force: bool) -> Result<u32, String> {
    if !policy.is_real_time() {
        if values.is_given("priority") {
            let name = policy.name();
            let why = format!("policy {name} has no priority; leave it out, or use policy=fifo");
            return Err(values.wrong("priority", &why));
        }
        values.set("priority", Value::Number(0));
        return Ok(0);
    }
    match values.word("priority") {
        None => Ok(values.small("priority")),
        Some(_) if force => Ok(99),
        Some(_) => Err(values.wrong(
            "priority",
            "is used by the kernel's own threads (migration, watchdog); add --force to use it anyway",
        )),
    }
}

fn interval(values: &Values, pace: Pace, reach: &Reach) -> Result<u64, String> {
    let interval = pace.interval_ns(values);
    if pace == Pace::Periodic && interval <= reach.clock_cost_ns {
        let why =
            format!("must be longer than one read of the clock, {} ns here", reach.clock_cost_ns);
        return Err(values.wrong("interval", &why));
    }
    Ok(interval)
}

fn each_cpu(values: &Values, per_cpu: bool, reach: &Reach) -> Result<Vec<u32>, String> {
    let name = if per_cpu { "threads" } else { "affinity" };
    let cpus = reach.per_cpu.as_ref().map_err(|why| values.wrong(name, why))?;
    Ok(cpus.iter().collect())
}

fn check_cpus(values: &Values, asked: &CpuSet, reachable: &CpuSet) -> Result<(), String> {
    let missing = asked.without(reachable);
    if missing.is_empty() {
        return Ok(());
    }
    let why = format!(
        "CPU {missing} cannot be used: it does not exist, is offline, or is outside the cpuset \
         (CPUs that can be used: {reachable})"
    );
    Err(values.wrong("affinity", &why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::threads::{PERIOD_PARAMS, THREAD_PARAMS};
    use punctual_core::params::Named;

    fn read(spec: &str, pace: Pace) -> Result<ThreadsPlan, String> {
        let known: Vec<_> = THREAD_PARAMS.iter().chain(PERIOD_PARAMS).copied().collect();
        let mut values = Values::read("p", &known, &Named::parse(spec, "").unwrap().params)?;
        let reach = Reach {
            cpus: CpuSet::parse("0-1,4,70").unwrap(),
            inherited: CpuSet::parse("1,70").unwrap(),
            per_cpu: Ok(CpuSet::parse("1,4,70").unwrap()),
            clock_cost_ns: 30,
            force: false,
        };
        ThreadsPlan::read(&mut values, pace, &reach)
    }

    fn cpus(plan: &ThreadsPlan) -> Vec<String> {
        plan.threads
            .iter()
            .map(|t| t.affinity.as_ref().map_or(String::new(), CpuSet::to_string))
            .collect()
    }

    #[test]
    fn threads_are_bound_as_asked() {
        let plan = |spec| read(spec, Pace::Periodic).unwrap();
        assert_eq!(cpus(&plan("p")), [""]);
        // Beside isolated ones, here 4, only what is named is outside the inherited mask.
        assert_eq!(cpus(&plan("p:threads=per-cpu")), ["1", "4", "70"]);
        assert_eq!(cpus(&plan("p:threads=4,affinity=auto")), ["1", "4", "70", "1"]);
        assert_eq!(cpus(&plan("p:threads=per-cpu,affinity=0-1+4+70")), ["0", "1", "4", "70"]);
        assert_eq!(cpus(&plan("p:threads=per-cpu,affinity=0+70")), ["0", "70"]);
        let made_up = read("p:threads=per-cpu", Pace::Simulated).unwrap();
        assert_eq!((cpus(&made_up), made_up.on_each_cpu), (vec!["1".into(), "70".into()], false));
        assert_eq!(cpus(&plan("p:threads=3,affinity=4+70")), ["4", "70", "4"]);
    }

    #[test]
    fn releases_are_spread_or_aligned() {
        let offsets = |spec| -> Vec<u64> {
            read(spec, Pace::Periodic).unwrap().threads.iter().map(|t| t.offset_ns).collect()
        };
        assert_eq!(offsets("p:threads=4"), [0, 250_000, 500_000, 750_000]);
        assert_eq!(offsets("p:threads=3,aligned=0us"), [0, 0, 0]);
        assert_eq!(offsets("p:threads=3,aligned=15"), [0, 15_000, 30_000]);
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (spec, error) in [
            ("p:interval=0", "interval=0: must be above zero"),
            ("p:interval=20ns", "one read of the clock"),
            ("p:interval=2h", "at most 1h"),
            ("p:interval=1m", "m is a minute"),
            ("p:priority=0", "from 1 to 98"),
            ("p:priority=99", "--force"),
            ("p:policy=other,priority=5", "has no priority"),
            ("p:policy=realtime", "must be fifo, rr or other"),
            ("p:aligned=x", "is not a time"),
            ("p:affinity=2", "CPU 2 cannot be used"),
            ("p:affinity=0-9", "CPU 2-3,5-9 cannot be used"),
            ("p:affinity=x", "list of CPUs"),
            ("p:threads=0", "from 1 to 4096"),
            ("p:colour=red", "no parameter \"colour\"; it has: threads"),
        ] {
            let message = read(spec, Pace::Periodic).unwrap_err();
            assert!(message.contains(error), "{spec}: {message}");
        }
    }

    #[test]
    fn a_spinning_probe_has_no_interval() {
        assert_eq!(read("p", Pace::BackToBack).unwrap().interval_ns, 0);
    }
}
