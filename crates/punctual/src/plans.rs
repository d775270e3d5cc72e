//! Plans: those built in, and those in files.

use std::path::Path;

use anyhow::{Context, bail};
use punctual_core::plan::Plan;
use punctual_sys::file;

/// A built-in plan.
pub struct BuiltIn {
    /// Its name, as given to `--plan`.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The text of its TOML file.
    pub text: &'static str,
}

/// The largest file of a plan, bytes.
const MAX_PLAN: u64 = 1 << 20;

/// The plan that runs if none is named.
pub const DEFAULT: &str = "standard";

/// Every built-in plan.
pub static PLANS: &[BuiltIn] = &[
    BuiltIn {
        name: DEFAULT,
        summary: "about a minute: wake-ups on every CPU, idle and under load, and the clock",
        text: include_str!("../../../plans/standard.toml"),
    },
    BuiltIn {
        name: "extended",
        summary: "25 hours: evidence for rare misses, down to one in ten million",
        text: include_str!("../../../plans/extended.toml"),
    },
    BuiltIn {
        name: "full",
        summary: "3 minutes: every probe that the machine allows, and the ways that most differ",
        text: include_str!("../../../plans/full.toml"),
    },
    BuiltIn {
        name: "lab",
        summary: "6 seconds: the frozen measurement of the virtual lab",
        text: include_str!("../../../plans/lab.toml"),
    },
    BuiltIn {
        name: "history",
        summary: "19 seconds: the lab's measurement, long enough for what happens every few seconds",
        text: include_str!("../../../plans/history.toml"),
    },
    BuiltIn {
        name: "koolwal-geode",
        summary: "two days: clock, wake-ups and parallel port, as in the Geode paper",
        text: include_str!("../../../plans/koolwal-geode.toml"),
    },
    BuiltIn {
        name: "arthur-emde-mcguire",
        summary: "5 minutes: the edges of a square wave under load",
        text: include_str!("../../../plans/arthur-emde-mcguire.toml"),
    },
    BuiltIn {
        name: "celf-rtwg",
        summary: "20 hours: RealFeel and cyclictest, as the CE Linux Forum ran them",
        text: include_str!("../../../plans/celf-rtwg.toml"),
    },
    BuiltIn {
        name: "mitsubishi-celf",
        summary: "40 minutes: interrupt and process latency in Mitsubishi's four scenarios",
        text: include_str!("../../../plans/mitsubishi-celf.toml"),
    },
];

impl BuiltIn {
    /// Parses the plan.
    ///
    /// # Errors
    /// It has no such variant.
    pub fn plan(&self, variant: Option<&str>) -> anyhow::Result<Plan> {
        Ok(Plan::from_toml_variant(self.text, variant)?)
    }
}

/// The built-in plan of that name.
pub fn find(name: &str) -> Option<&'static BuiltIn> {
    PLANS.iter().find(|plan| plan.name == name)
}

/// A plan by the name of a built-in one or of a file, in one of its variants.
///
/// # Errors
/// A message that names the file and what is wrong with it, or lists the known plans or variants.
pub fn load(name: &str, variant: Option<&str>) -> anyhow::Result<Plan> {
    if let Some(plan) = find(name) {
        return plan.plan(variant);
    }
    let text = text(name)?;
    Plan::from_toml_variant(&text, variant).with_context(|| format!("plan {name}"))
}

/// Whether the durations and loads of a plan may be replaced; not of one that cannot be read.
pub fn is_adjustable(name: &str) -> bool {
    let adjustable = |text: &str| Plan::is_adjustable(text).unwrap_or(false);
    match find(name) {
        Some(plan) => adjustable(plan.text),
        None => text(name).is_ok_and(|text| adjustable(&text)),
    }
}

/// The text of a file.
fn text(name: &str) -> anyhow::Result<String> {
    let path = Path::new(name);
    if !path.exists() {
        let names: Vec<_> = PLANS.iter().map(|plan| plan.name).collect();
        bail!("there is no plan or file \"{name}\"; plans: {}, or a TOML file", names.join(", "));
    }
    file::read_text(path, MAX_PLAN).with_context(|| format!("plan {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::units::SECOND_NS;
    use punctual_core::verdict::observation_needed_ns;
    use punctual_suite::engine;
    use punctual_suite::probes::PROBES;
    use punctual_suite::registry::probe::Pace;

    /// Every periodic cell that is judged is long enough for a PASS. Plans that follow
    /// a publication or the lab have no deadline: they end in no verdict.
    #[test]
    fn built_in_plans_with_a_deadline_can_end_in_pass() {
        let mut judged = Vec::new();
        for built_in in PLANS {
            let plan = built_in.plan(None).unwrap();
            if plan.deadline_ns.is_none() {
                continue;
            }
            judged.push(built_in.name);
            let rate = plan.episodes.per_second();
            let needed = observation_needed_ns(rate, 0, plan.confidence).unwrap();
            for cell in &plan.cells {
                // The first release of a thread may be as late as its interval, and a probe that
                // spins observes nothing in its margin.
                let periodic = cell.subject.name() == "wakeup";
                let spent = if periodic { 1_000_000 } else { cell.duration_ns / 10 };
                let observed = cell.duration_ns - spent;
                assert!(observed >= needed, "{}: {observed} < {needed}", cell.key());
            }
        }
        assert_eq!(judged, ["standard", "extended"]);
    }

    #[test]
    fn built_in_plans_name_what_is_there_or_planned() {
        for built_in in PLANS {
            let plan = built_in.plan(None).unwrap();
            assert_eq!(plan.name, built_in.name);
            engine::canonical(&plan).unwrap_or_else(|error| panic!("{}: {error}", plan.name));
        }
    }

    /// A probe that is added is in the plan of all of them, or this fails.
    #[test]
    fn the_full_plan_has_every_probe_and_no_cell_that_must_be_there() {
        let plan = find("full").unwrap().plan(None).unwrap();
        let of_machine = PROBES.iter().filter(|entry| entry.pace != Pace::Simulated);
        for entry in of_machine {
            let has = plan.cells.iter().any(|cell| cell.subject.name() == entry.name);
            assert!(has, "{} is not in plans/full.toml", entry.name);
        }
        assert!(plan.cells.iter().all(|cell| cell.available));
        assert_eq!(plan.deadline_ns, None);
    }

    /// What the document shows as a plan file is one.
    #[test]
    fn the_plan_file_of_the_document_can_be_read() {
        let document = include_str!("../../../docs/command-line.md");
        let (_, rest) = document.split_once("```toml\n").unwrap();
        let (text, _) = rest.split_once("```").unwrap();
        let plan = Plan::from_toml_variant(text, Some("short")).unwrap();
        assert_eq!((plan.cells.len(), plan.cells[0].duration_ns), (2, 5 * SECOND_NS));
    }

    /// The plans that follow a publication are kept next to its figures, and have a
    /// variant that a virtual board affords.
    #[test]
    fn plans_of_publications_have_figures_and_a_virtual_variant() {
        let figures = include_str!("../../../published/latency.csv");
        let mut followed = 0;
        for built_in in PLANS {
            if built_in.plan(None).unwrap().citation.is_none() {
                continue;
            }
            followed += 1;
            let name = built_in.name;
            assert!(figures.contains(&format!("\n{name},")), "{name}");
            let plan = built_in.plan(Some("virtual")).unwrap();
            assert!(plan.cells.iter().all(|cell| cell.duration_ns <= 5 * SECOND_NS), "{name}");
            assert!(!plan.kernels.is_empty(), "{name}");
            let keys: std::collections::BTreeSet<_> =
                plan.cells.iter().map(|cell| cell.key()).collect();
            assert_eq!(keys.len(), plan.cells.len(), "{name}: two cells are one measurement");
        }
        assert_eq!(followed, 4);
    }
}
