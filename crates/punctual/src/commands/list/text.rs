//! Lists for people.

use super::entry::{Entry, NeedState, PlanParts};
use crate::{output, store};

/// One kind: its title, then one line per entry with its details.
pub(super) fn section(kind: &str, entries: &[Entry]) -> String {
    let title = match kind {
        "planned_probes" => "probes that are planned, not in this version",
        "planned_loads" => "loads that are planned, not in this version",
        kind => kind,
    };
    let width = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    let mut out = format!("{title}\n");
    if entries.is_empty() {
        out.push_str(&format!("  none in ./{}\n", store::RUNS));
    }
    for entry in entries {
        out.push_str(&format!("  {:width$}  {}\n", entry.name, entry.summary));
        for need in &entry.needs {
            out.push_str(&format!("  {:width$}  {}\n", "", need_text(need)));
        }
        for line in entry.plan.iter().flat_map(plan_lines) {
            out.push_str(&wrapped(&line, &format!("  {:width$}    ", "")));
        }
    }
    out
}

/// One entry with everything known about it.
pub(super) fn details(entry: &Entry) -> String {
    let mut out = format!("{}: {}\n\n", entry.name, entry.summary);
    let lines: String = entry.plan.iter().flat_map(plan_lines).map(|l| wrapped(&l, "")).collect();
    if !lines.is_empty() {
        out.push_str(&format!("{lines}\n"));
    }
    // The help of a plan is its file.
    let verbatim = entry.help.contains('\n');
    let help = if verbatim { entry.help.clone() } else { wrapped(&entry.help, "") };
    out.push_str(&help);
    if !entry.parameters.is_empty() {
        out.push_str("\nparameters\n");
    }
    for param in &entry.parameters {
        out.push_str(&format!("  {}={}  [default: {}]\n", param.name, param.value, param.default));
        out.push_str(&wrapped(&param.help, "      "));
    }
    for need in &entry.needs {
        out.push_str(&format!("\n{}\n", need_text(need)));
    }
    out
}

fn plan_lines(plan: &PlanParts) -> Vec<String> {
    let list = |what: &str, names: &[String]| {
        (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
    };
    let citation = plan.citation.as_ref().map(|text| format!("follows {text}"));
    let missing = (plan.cells_in_this_version < plan.cells).then(|| {
        format!(
            "{} of {} cells in this version; the others are SKIPPED",
            plan.cells_in_this_version, plan.cells
        )
    });
    let lines =
        [missing, citation, list("kernels", &plan.kernels), list("variants", &plan.variants)];
    lines.into_iter().flatten().collect()
}

fn need_text(need: &NeedState) -> String {
    let with = need.with.as_ref().map_or_else(String::new, |with| format!("{with} "));
    let met = if need.met { "met here" } else { "NOT met here: cells with it are SKIPPED" };
    format!("{with}needs {}: {met}", need.need)
}

/// Wraps text between words for the terminal.
fn wrapped(text: &str, indent: &str) -> String {
    let width = output::width().min(100).saturating_sub(indent.len()).max(20);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}
