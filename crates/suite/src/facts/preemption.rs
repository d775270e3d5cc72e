//! The preemption model of the running kernel.

use punctual_core::preemption::{Model, version_has};
use serde::Serialize;

use super::kernel_config::KernelConfig;
use super::root::{FactsRoot, marked_word};

/// The preemption model, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preemption {
    /// The model.
    pub model: Model,
    /// The source, for readers who doubt it.
    pub found: String,
    /// How ordinary tasks are preempted in a kernel with `PREEMPT_RT`, full or lazy: since 6.12
    /// it has both, and debugfs tells which one runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinary: Option<Model>,
}

/// Lists the models with the active one in parentheses; readable by root only.
const LIVE_MODEL: &str = "/sys/kernel/debug/sched/preempt";

/// Finds the preemption model.
///
/// What the running kernel says comes first (`/sys/kernel/realtime`, the version, debugfs),
/// then the boot parameter, then the configuration, which under `PREEMPT_DYNAMIC` has only the
/// default.
#[must_use]
pub fn preemption(
    root: &FactsRoot,
    version: &str,
    command_line: &str,
    config: Option<&KernelConfig>,
) -> Preemption {
    let is = |model, found: &str| Preemption { model, found: found.to_owned(), ordinary: None };
    let rt = |found: &str| Preemption { ordinary: live(root), ..is(Model::Rt, found) };
    if root.flag("sys/kernel/realtime") == Some(true) {
        return rt("/sys/kernel/realtime");
    }
    match Model::in_version(version) {
        Some(Model::Rt) => return rt("kernel version"),
        Some(model) => return is(model, "kernel version"),
        None => {}
    }
    // From 5.12 to 5.16 the version does not tell whether the model can change.
    let can_change = version_has(version, "PREEMPT_DYNAMIC")
        || config.is_some_and(|config| config.has("PREEMPT_DYNAMIC"))
        || root.exists(LIVE_MODEL);
    if can_change {
        return dynamic(root, command_line, config);
    }
    let by_config = built_in(config).map(|(model, option)| is(model, &option));
    // Lazy preemption also calls itself PREEMPT; only the configuration tells.
    if version_has(version, "PREEMPT") {
        return by_config
            .filter(|found| matches!(found.model, Model::Lazy | Model::Full))
            .unwrap_or_else(|| is(Model::Full, "kernel version"));
    }
    by_config.unwrap_or_else(|| {
        is(Model::Unknown, "the version names none, and no configuration can be read")
    })
}

/// The model that the kernel was built with, and the option that tells.
fn built_in(config: Option<&KernelConfig>) -> Option<(Model, String)> {
    let config = config?;
    let model = Model::built_in(|option| config.has(option))?;
    Some((model, format!("CONFIG_{} in {}", model.option()?, config.source)))
}

fn dynamic(root: &FactsRoot, command_line: &str, config: Option<&KernelConfig>) -> Preemption {
    let live = || Some((live(root)?, LIVE_MODEL.to_owned()));
    let told = || {
        let model = Model::at_boot(boot_parameters(command_line, "preempt"))?;
        Some((model, "preempt= on the command line".to_owned()))
    };
    let default = || {
        let (model, option) = built_in(config)?;
        Some((model, format!("default of PREEMPT_DYNAMIC: {option}")))
    };
    let (model, found) = live().or_else(told).or_else(default).unwrap_or((
        Model::Unknown,
        "PREEMPT_DYNAMIC without preempt= on the command line; \
         neither debugfs nor a configuration can be read"
            .to_owned(),
    ));
    Preemption { model, found, ordinary: None }
}

/// The model that runs, by debugfs.
fn live(root: &FactsRoot) -> Option<Model> {
    marked_word(&root.text(LIVE_MODEL)?)?.parse().ok()
}

/// The values of `name=` on the kernel's command line; words after `--` are for init.
pub(super) fn boot_parameters<'a>(
    command_line: &'a str,
    name: &'a str,
) -> impl Iterator<Item = &'a str> {
    command_line
        .split_whitespace()
        .take_while(|word| *word != "--")
        .filter_map(move |word| word.strip_prefix(name)?.strip_prefix('='))
}
