//! The preemption model of the running kernel.

use serde::Serialize;

use super::kernel_config::KernelConfig;
use super::root::{FactsRoot, marked_word};

/// The preemption model, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preemption {
    /// `none`, `voluntary`, `full`, `lazy`, `rt` or `unknown`.
    pub model: &'static str,
    /// What told it, for readers who doubt it.
    pub found: String,
}

/// Lists the models, the one in use in parentheses; root only.
const LIVE_MODEL: &str = "/sys/kernel/debug/sched/preempt";

/// Models that a kernel with `PREEMPT_DYNAMIC` can be told to use.
const DYNAMIC: [&str; 4] = ["none", "voluntary", "full", "lazy"];

/// Configuration options of the models, in the order in which they are asked.
const BUILT: [(&str, &str); 4] = [
    ("PREEMPT_LAZY", "lazy"),
    ("PREEMPT", "full"),
    ("PREEMPT_VOLUNTARY", "voluntary"),
    ("PREEMPT_NONE", "none"),
];

/// Finds the preemption model.
///
/// The kernel's word comes first (`/sys/kernel/realtime`, the version, debugfs),
/// then what it was told at boot, then what it was built with: under
/// `PREEMPT_DYNAMIC` the configuration holds only the default.
#[must_use]
pub fn preemption(
    root: &FactsRoot,
    version: &str,
    command_line: &str,
    config: Option<&KernelConfig>,
) -> Preemption {
    let is = |model: &'static str, found: &str| Preemption { model, found: found.to_owned() };
    if root.flag("sys/kernel/realtime") == Some(true) {
        return is("rt", "/sys/kernel/realtime");
    }
    let words: Vec<&str> = version.split_whitespace().collect();
    // The patches for 5.4 and older print it as two words.
    if words.contains(&"PREEMPT_RT") || words.windows(2).any(|pair| pair == ["PREEMPT", "RT"]) {
        return is("rt", "kernel version");
    }
    // From 5.12 to 5.16 the version does not tell that the model can change.
    let can_change = words.contains(&"PREEMPT_DYNAMIC")
        || config.is_some_and(|config| config.has("PREEMPT_DYNAMIC"))
        || root.exists(LIVE_MODEL);
    if can_change {
        return dynamic(root, command_line, config);
    }
    let built = |config: &KernelConfig| {
        let (option, model) = BUILT.iter().find(|(option, _)| config.has(option))?;
        Some(is(model, &format!("CONFIG_{option} in {}", config.source)))
    };
    // Lazy preemption calls itself PREEMPT too: only the configuration tells.
    let by_config = config.and_then(built);
    if words.contains(&"PREEMPT") {
        return by_config
            .filter(|found| ["lazy", "full"].contains(&found.model))
            .unwrap_or_else(|| is("full", "kernel version"));
    }
    by_config.unwrap_or_else(|| {
        is("unknown", "the version names none, and no configuration can be read")
    })
}

fn dynamic(root: &FactsRoot, command_line: &str, config: Option<&KernelConfig>) -> Preemption {
    let known = |word: &str| DYNAMIC.into_iter().find(|model| *model == word);
    let live = || {
        let text = root.text(LIVE_MODEL)?;
        Some((known(marked_word(&text)?)?, LIVE_MODEL.to_owned()))
    };
    let told = || {
        let model = boot_parameters(command_line, "preempt").filter_map(known);
        Some((model.last()?, "preempt= on the command line".to_owned()))
    };
    let default = || {
        let config = config?;
        let (option, model) = BUILT.iter().find(|(option, _)| config.has(option))?;
        let found = format!("default of PREEMPT_DYNAMIC: CONFIG_{option} in {}", config.source);
        Some((*model, found))
    };
    let (model, found) = live().or_else(told).or_else(default).unwrap_or((
        "unknown",
        "PREEMPT_DYNAMIC without preempt= on the command line; \
         neither debugfs nor a configuration can be read"
            .to_owned(),
    ));
    Preemption { model, found }
}

/// The values of `name=` on the kernel's command line; what follows `--` is
/// for init.
pub(super) fn boot_parameters<'a>(
    command_line: &'a str,
    name: &'a str,
) -> impl Iterator<Item = &'a str> {
    command_line
        .split_whitespace()
        .take_while(|word| *word != "--")
        .filter_map(move |word| word.strip_prefix(name)?.strip_prefix('='))
}
