//! The plans that come with punctual, and those in files.

use std::path::Path;

use anyhow::{Context, bail};
use punctual_core::plan::Plan;

/// A plan that comes with punctual.
pub struct BuiltIn {
    /// Its name behind `--plan`.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The TOML file.
    pub text: &'static str,
}

/// The plan that is run where none is named.
pub const DEFAULT: &str = "standard";

/// Every plan that comes with punctual.
pub static PLANS: &[BuiltIn] = &[
    BuiltIn {
        name: DEFAULT,
        summary: "about a minute: wake-ups on every CPU, idle and under load, and the clock",
        text: include_str!("../../../plans/standard.toml"),
    },
    BuiltIn {
        name: "extended",
        summary: "25 hours: evidence for rare misses, one in ten million",
        text: include_str!("../../../plans/extended.toml"),
    },
];

impl BuiltIn {
    /// Reads it.
    ///
    /// # Errors
    /// Never for a plan that passed the tests.
    pub fn plan(&self) -> anyhow::Result<Plan> {
        Plan::from_toml(self.text).with_context(|| format!("built-in plan {}", self.name))
    }
}

/// The plan of that name that comes with punctual.
pub fn find(name: &str) -> Option<&'static BuiltIn> {
    PLANS.iter().find(|plan| plan.name == name)
}

/// The plan of a name that comes with punctual, or of a file.
///
/// # Errors
/// A message that names the file and what is wrong with it, or the plans there are.
pub fn load(name: &str) -> anyhow::Result<Plan> {
    if let Some(plan) = find(name) {
        return plan.plan();
    }
    let path = Path::new(name);
    if !path.exists() {
        let names: Vec<_> = PLANS.iter().map(|plan| plan.name).collect();
        bail!("there is no plan or file \"{name}\"; plans: {}, or a TOML file", names.join(", "));
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("plan {name}"))?;
    Plan::from_toml(&text).with_context(|| format!("plan {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::stats::samples_needed;
    use punctual_core::units::SECOND_NS;

    /// Every periodic cell is long enough for a PASS.
    #[test]
    fn built_in_plans_can_end_in_pass() {
        for built_in in PLANS {
            let plan = built_in.plan().unwrap();
            assert_eq!(plan.name, built_in.name);
            let needed = samples_needed(plan.probability, 0, plan.confidence).unwrap();
            for cell in plan.cells.iter().filter(|cell| cell.probe == "wakeup") {
                let per_second = if cell.params.contains_key("interval") { 10_000 } else { 1_000 };
                let releases = cell.duration_ns / SECOND_NS * per_second;
                assert!(releases >= needed, "{}: {releases} < {needed}", cell.key());
            }
        }
    }
}
