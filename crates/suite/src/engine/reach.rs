//! On which CPUs threads can be, and which of them one thread per CPU measures.

use anyhow::Context;
use punctual_core::schema::Condition;
use punctual_sys::affinity::{self, CpuSet};

use super::api::Options;
use super::threads::Reach;
use crate::facts::foreign::{self, Bound};
use crate::facts::{FactsRoot, cpu};

/// Foreign threads that a text names; of the others it tells the number.
const NAMED: usize = 4;

/// What this machine offers to a run with these options, and the condition that holds if a cell has
/// one thread per CPU.
///
/// # Errors
/// The affinity of this thread is not known.
pub(super) fn find(
    options: &Options,
    clock_cost_ns: u64,
) -> anyhow::Result<(Reach, Option<Condition>)> {
    let live = FactsRoot::live();
    let cpus = affinity::reachable().context("the CPUs that can be used")?;
    let inherited = affinity::get().context("the inherited affinity")?;
    // On one CPU every thread is bound to it, and a virtual board runs nothing of others.
    let alone = cpus.len() < 2 || options.virtual_board.is_some();
    let foreign = if alone { Vec::new() } else { foreign::bound(&live.path("proc")) };
    let all = options.all_cpus;
    let (per_cpu, foreign) =
        one_thread_each(&cpus, &inherited, &cpu::kept_free(&live), foreign, all);
    let (per_cpu, condition) = told(per_cpu, &foreign, all);
    Ok((Reach { cpus, inherited, per_cpu, clock_cost_ns, force: options.force }, condition))
}

/// The CPUs that one thread per CPU measures, and the foreign threads that are bound to CPUs that it
/// would measure, or does with `all`.
fn one_thread_each(
    cpus: &CpuSet,
    inherited: &CpuSet,
    kept_free: &CpuSet,
    mut foreign: Vec<Bound>,
    all: bool,
) -> (CpuSet, Vec<Bound>) {
    // Isolated CPUs are in no inherited mask, though nobody has kept punctual off them.
    let isolated = kept_free.without(&kept_free.without(cpus));
    let wanted = if all { cpus.clone() } else { inherited.with(&isolated) };
    foreign.retain(|one| wanted.contains(one.cpu));
    let taken = foreign.iter().filter(|_| !all).map(|one| one.cpu).collect();
    (wanted.without(&taken), foreign)
}

/// The CPUs, or why there are none, and what is said of the foreign threads.
fn told(
    per_cpu: CpuSet,
    foreign: &[Bound],
    all: bool,
) -> (Result<CpuSet, String>, Option<Condition>) {
    if foreign.is_empty() {
        return (Ok(per_cpu), None);
    }
    let cpus: CpuSet = foreign.iter().map(|one| one.cpu).collect();
    let who = named(foreign);
    if per_cpu.is_empty() {
        let why = format!(
            "real-time threads of other programs are bound to every CPU ({who}): end them, or \
             measure beside them with --all-cpus"
        );
        return (Err(why), None);
    }
    let (one, is, it) = if cpus.len() == 1 { ("CPU", "is", "it") } else { ("CPUs", "are", "them") };
    let (id, text) = if all {
        (
            "cpus-shared",
            format!(
                "real-time threads of other programs are bound to {one} {cpus} ({who}): with \
                 --all-cpus {it} {is} measured beside them, and their work is part of these figures",
                it = if cpus.len() == 1 { "it" } else { "they" },
            ),
        )
    } else {
        (
            "cpus-left-out",
            format!(
                "{one} {cpus} {is} not measured: real-time threads of other programs are bound to \
                 {it} ({who}); end them, or add --all-cpus"
            ),
        )
    };
    (Ok(per_cpu), Some(Condition { id: id.to_owned(), text }))
}

fn named(foreign: &[Bound]) -> String {
    let names: Vec<String> =
        foreign.iter().take(NAMED).map(|one| format!("CPU {}: {one}", one.cpu)).collect();
    let more = match foreign.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CpuSet {
        CpuSet::parse(text).unwrap()
    }

    fn thread(cpu: u32) -> Bound {
        Bound { cpu, name: "cycle".to_owned(), thread: 4711, scheduling: "fifo 95".to_owned() }
    }

    /// Six CPUs of which 4-5 are isolated and 6 is in another cpuset; started on 0-2.
    fn measured(foreign: &[u32], all: bool) -> (Result<CpuSet, String>, Option<Condition>) {
        let foreign = foreign.iter().map(|cpu| thread(*cpu)).collect();
        let (cpus, inherited, kept_free) = (set("0-5"), set("0-2"), set("4-6"));
        let (per_cpu, foreign) = one_thread_each(&cpus, &inherited, &kept_free, foreign, all);
        told(per_cpu, &foreign, all)
    }

    #[test]
    fn isolated_cpus_are_measured_and_those_that_affinity_forbids_are_not() {
        assert_eq!(measured(&[], false), (Ok(set("0-2,4-5")), None));
        assert_eq!(measured(&[], true), (Ok(set("0-5")), None));
        // What is bound where nothing is measured is not told.
        assert_eq!(measured(&[3, 6], false), (Ok(set("0-2,4-5")), None));
    }

    #[test]
    fn the_cpu_of_a_foreign_real_time_thread_is_left_out_by_name() {
        let (cpus, condition) = measured(&[5], false);
        assert_eq!(cpus, Ok(set("0-2,4")));
        let condition = condition.unwrap();
        assert_eq!(condition.id, "cpus-left-out");
        let says = "CPU 5 is not measured: real-time threads of other programs are bound to it (CPU \
                    5: cycle (4711, fifo 95)); end them, or add --all-cpus";
        assert_eq!(condition.text, says);
        let (cpus, condition) = measured(&[0, 1, 2, 4, 4], false);
        assert_eq!(cpus, Ok(set("5")));
        let text = condition.unwrap().text;
        assert!(text.starts_with("CPUs 0-2,4 are not measured"), "{text}");
        assert!(text.contains("CPU 4: cycle (4711, fifo 95) and 1 more)"), "{text}");
    }

    #[test]
    fn all_cpus_are_measured_if_that_is_asked_for() {
        let (cpus, condition) = measured(&[3, 5, 6], true);
        assert_eq!(cpus, Ok(set("0-5")));
        let condition = condition.unwrap();
        assert_eq!(condition.id, "cpus-shared");
        assert!(condition.text.contains("bound to CPUs 3,5 (CPU 3: cycle"), "{}", condition.text);
    }

    #[test]
    fn a_machine_without_a_free_cpu_is_refused() {
        let (cpus, condition) = measured(&[0, 1, 2, 4, 5], false);
        assert!(cpus.unwrap_err().contains("--all-cpus") && condition.is_none());
    }
}
