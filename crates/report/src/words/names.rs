//! How runs, kernels, cells and threads are called in every output.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use punctual_core::compare::{KernelRuns, SETTINGS};
use punctual_core::key;
use punctual_core::preemption::Model;
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Origin, Placement, Role, Run, Series, Thread};

use super::clean;
use super::numbers::instant;

/// The probe or metric of a cell with the parameters that are not its defaults.
#[must_use]
pub fn probe_name(cell: &Cell) -> String {
    let name = key::subject(&cell.key);
    clean(if name.is_empty() { cell.name() } else { name }).into_owned()
}

/// A cell in a few words: `wakeup · hackbench`.
#[must_use]
pub fn cell_name(cell: &Cell) -> String {
    format!("{} · {}", probe_name(cell), load_name(&cell.load))
}

/// A load as it is printed: the load `none` is called idle, since `none` also names a
/// preemption model.
#[must_use]
pub fn load_name(load: &str) -> Cow<'_, str> {
    clean(key::load_name(load))
}

/// The key of a cell as it is printed: `wakeup @ idle @ 30s`.
#[must_use]
pub fn key_name(key: &str) -> String {
    clean(&key::key_name(key)).into_owned()
}

/// A leg or an aside next to the series that is judged: `leg interrupt`.
#[must_use]
pub fn series_name(series: &Series) -> String {
    let name = clean(&series.name);
    match series.role {
        Role::Primary => name.into_owned(),
        Role::Leg => format!("leg {name}"),
        Role::Aside => format!("aside {name}"),
    }
}

/// The CPU of a thread, or the list of CPUs that it may run on.
#[must_use]
pub fn cpu_name(thread: &Thread) -> String {
    let Placement { cpu, affinity, .. } = &thread.placement;
    match cpu {
        Some(cpu) => cpu.to_string(),
        None if affinity.is_empty() => "unknown".to_owned(),
        None => clean(affinity).into_owned(),
    }
}

/// The preemption model as kernel developers write it.
#[must_use]
pub fn preemption_name(model: Model) -> &'static str {
    model.option().unwrap_or("preemption model unknown")
}

/// Board, kernel, CPUs, clock source and whatever else belongs in the headline.
#[must_use]
pub fn headline(run: &Run) -> Vec<String> {
    if run.origin == Origin::Simulated {
        let board = clean(&run.board.name).into_owned();
        return vec![board, "SIMULATED: nothing of this machine was measured".to_owned()];
    }
    let mut parts = vec![
        clean(&run.board.name).into_owned(),
        format!("Linux {} {}", clean(&run.kernel.release), preemption_name(run.kernel.preemption)),
        format!(
            "{} {} {}",
            run.board.cpus,
            if run.board.cpus == 1 { "CPU" } else { "CPUs" },
            clean(&run.board.cpu_model)
        )
        .trim_end()
        .to_owned(),
    ];
    if let Some(source) = run.facts.get("clock").and_then(|clock| clock.get("source"))
        && let Some(source) = source.as_str()
    {
        parts.push(clean(source).into_owned());
    }
    if let Some(hypervisor) = &run.board.hypervisor {
        parts.push(format!("virtual machine ({})", clean(hypervisor)));
    } else if run.is_virtual {
        parts.push("virtual machine".to_owned());
    }
    if !run.privileged {
        parts.push("not real-time".to_owned());
    }
    parts
}

/// Short names that tell the runs apart: what their reader calls them, else the kernel if that
/// is enough, else board and kernel, else the run's ID.
#[must_use]
pub fn run_names(runs: &[LoadedRun]) -> Vec<String> {
    let kernel = |run: &Run| clean(&run.kernel.release).into_owned();
    let board = |run: &Run| format!("{} {}", clean(&run.board.name), clean(&run.kernel.release));
    let id = |run: &Run| clean(&run.run_id).into_owned();
    let labels: Option<Vec<_>> = runs.iter().map(|run| run.label.as_deref()).collect();
    if let Some(labels) = labels {
        return labels.into_iter().map(|label| clean(label).into_owned()).collect();
    }
    let ways: [&dyn Fn(&Run) -> String; 3] = [&kernel, &board, &id];
    for way in ways {
        let names: Vec<_> = runs.iter().map(|run| way(&run.run)).collect();
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        if sorted.len() == names.len() {
            return names;
        }
    }
    runs.iter().enumerate().map(|(i, run)| format!("{} ({})", id(&run.run), i + 1)).collect()
}

/// Short names that tell sides apart: what their reader calls them if that is enough, else the
/// preemption model, with the release, the reader's name, the board, the group and settings as far
/// as they are needed and differ, and a number for those that share all of these.
#[must_use]
pub fn kernel_names(groups: &[KernelRuns]) -> Vec<String> {
    let sides: Vec<String> = groups.iter().filter_map(|group| group.side.clone()).collect();
    let kernels: Vec<_> = groups.iter().map(|group| (group.preemption, &*group.kernel)).collect();
    let models = groups.iter().map(|group| group.preemption).collect::<BTreeSet<_>>();
    let tell = models.len() < groups.len() || groups.iter().any(|group| group.whole);
    if sides.len() == groups.len() && tell && are_distinct(&sides) {
        return sides.iter().map(|side| clean(side).into_owned()).collect();
    }
    let mut names: Vec<String> =
        kernels.iter().map(|(model, _)| model.option().unwrap_or("unknown").to_owned()).collect();
    for part in parts_of_names(groups) {
        if are_distinct(&names) {
            return names;
        }
        // What all have in common tells nothing.
        if part.iter().any(|of| *of != part[0]) {
            names.iter_mut().zip(&part).filter(|(_, of)| !of.is_empty()).for_each(|(name, of)| {
                name.push(' ');
                name.push_str(&clean(of));
            });
        }
    }
    if are_distinct(&names) { names } else { numbered(&names) }
}

/// What may be added to the names of sides, one after the other.
fn parts_of_names(groups: &[KernelRuns]) -> Vec<Vec<String>> {
    let all = |of: &dyn Fn(&KernelRuns) -> String| groups.iter().map(of).collect::<Vec<_>>();
    let mut parts = vec![
        all(&|group| group.kernel.clone()),
        all(&|group| group.side.clone().unwrap_or_default()),
        all(&|group| group.board.clone()),
        all(&|group| group.group.clone().unwrap_or_default()),
    ];
    parts.extend(SETTINGS.iter().map(|setting| {
        all(&|group| {
            let value = group.settings.get(setting.name);
            value.map_or_else(String::new, |value| format!("{}={value}", setting.name))
        })
    }));
    parts
}

fn are_distinct(names: &[String]) -> bool {
    names.iter().collect::<BTreeSet<_>>().len() == names.len()
}

/// Those that are there twice get the number of their place.
fn numbered(names: &[String]) -> Vec<String> {
    let shared = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let name = |(i, name): (usize, &String)| match shared(name) {
        true => format!("{name} ({})", i + 1),
        false => name.clone(),
    };
    names.iter().enumerate().map(name).collect()
}

/// The same of kernels alone, by models and releases.
#[must_use]
pub fn model_names(kernels: &[(Model, &str)]) -> Vec<String> {
    let model = |(model, _): &(Model, &str)| model.option().unwrap_or("unknown").to_owned();
    let both = |kernel: &(Model, &str)| format!("{} {}", model(kernel), clean(kernel.1));
    let count = |of: &dyn Fn(&(Model, &str)) -> String| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        kernels.iter().for_each(|kernel| *counts.entry(of(kernel)).or_default() += 1);
        counts
    };
    let shared = count(&both);
    let models_tell = count(&model).into_values().all(|count| count == 1);
    let name = |(i, kernel): (usize, &(Model, &str))| match both(kernel) {
        _ if models_tell => model(kernel),
        with_release if shared.get(&with_release) == Some(&1) => with_release,
        with_release => format!("{with_release} ({})", i + 1),
    };
    kernels.iter().enumerate().map(name).collect()
}

/// `Linux 6.1.0 PREEMPT_RT · an instruction takes 1 ns`, of a kernel that was watched.
#[must_use]
pub fn watched_kernel(release: &str, model: Model, instruction_ns: u64) -> String {
    let (release, model) = (clean(release), preemption_name(model));
    format!("Linux {release} {model} · an instruction takes {}", instant(instruction_ns))
}

/// `8 runs`.
#[must_use]
pub fn runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

/// A letter for a run or a curve: `A` to `Z`, then `A1` to `Z1` and so on.
#[must_use]
pub fn letter(i: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(i % 26).unwrap_or(0));
    if i < 26 { letter.to_string() } else { format!("{letter}{}", i / 26) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_named_by_their_model_first() {
        let side = |preemption: &str, kernel: &str| KernelRuns {
            kernel: kernel.to_owned(),
            preemption: preemption.parse().unwrap_or_default(),
            ..KernelRuns::default()
        };
        let names = |sides: &[(&str, &str)]| {
            kernel_names(&sides.iter().map(|(p, k)| side(p, k)).collect::<Vec<_>>())
        };
        assert_eq!(
            names(&[("none", "6.1"), ("rt", "6.1"), ("", "6.1")]),
            ["PREEMPT_NONE", "PREEMPT_RT", "unknown"]
        );
        assert_eq!(
            names(&[("rt", "6.1"), ("rt", "6.6"), ("full", "6.6")]),
            ["PREEMPT_RT 6.1", "PREEMPT_RT 6.6", "PREEMPT 6.6"]
        );
        assert_eq!(names(&[("rt", "6.1"), ("rt", "6.1")]), ["PREEMPT_RT (1)", "PREEMPT_RT (2)"]);
    }

    #[test]
    fn sides_of_one_kernel_are_named_by_what_tells_them_apart() {
        let side = |name: Option<&str>, model: &str, board: &str, governor: &str| KernelRuns {
            side: name.map(str::to_owned),
            board: board.to_owned(),
            kernel: "6.1".to_owned(),
            preemption: model.parse().unwrap(),
            settings: [("governor", governor.to_owned())].into(),
            ..KernelRuns::default()
        };
        let (before, after) = (Some("before"), Some("after"));
        for (sides, names) in [
            (
                vec![side(before, "rt", "x", "a"), side(after, "rt", "x", "b")],
                vec!["before", "after"],
            ),
            (
                vec![side(before, "none", "x", "a"), side(after, "rt", "x", "a")],
                vec!["PREEMPT_NONE", "PREEMPT_RT"],
            ),
            (
                vec![side(None, "rt", "x", "a"), side(None, "rt", "y", "a")],
                vec!["PREEMPT_RT x", "PREEMPT_RT y"],
            ),
            (
                vec![side(None, "rt", "x", "a"), side(None, "rt", "x", "b")],
                vec!["PREEMPT_RT governor=a", "PREEMPT_RT governor=b"],
            ),
            (
                vec![
                    side(before, "rt", "x", "a"),
                    side(before, "none", "x", "a"),
                    side(after, "rt", "x", "a"),
                ],
                vec!["PREEMPT_RT before", "PREEMPT_NONE before", "PREEMPT_RT after"],
            ),
        ] {
            assert_eq!(kernel_names(&sides), names);
        }
    }

    #[test]
    fn sides_of_two_groups_are_named_by_them() {
        let side = |group: &str| KernelRuns {
            preemption: Model::Rt,
            group: Some(group.to_owned()),
            ..KernelRuns::default()
        };
        assert_eq!(
            kernel_names(&[side("day"), side("night")]),
            ["PREEMPT_RT day", "PREEMPT_RT night"]
        );
    }

    #[test]
    fn a_thread_of_a_run_that_was_cut_short_has_an_unknown_cpu() {
        let name = |cpu, affinity: &str| {
            let placement =
                Placement { cpu, affinity: affinity.to_owned(), ..Placement::default() };
            cpu_name(&Thread { placement, ..Thread::default() })
        };
        assert_eq!(
            [name(Some(3), "3"), name(None, "0-1"), name(None, "")],
            ["3", "0-1", "unknown"]
        );
    }
}
