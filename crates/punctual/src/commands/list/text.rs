//! Lists for people.

use punctual_core::schema::Better;
use punctual_report::text::{push_wrapped, wrap};

use super::entry::{ColumnName, CostParts, Entry, NeedState, PlanParts};

/// Lines are not made longer than this on a wide terminal: they are hard to read.
const LONGEST: usize = 100;

/// Names that are longer stand on a line of their own.
const LONGEST_NAME: usize = 24;

/// One kind: its title, then one line per entry with its details.
pub(super) fn section(kind: &str, entries: &[Entry], width: usize) -> String {
    let width = width.min(LONGEST);
    let title = match kind {
        "planned_probes" => "probes that are planned, not in this version",
        kind => kind,
    };
    let lengths = entries.iter().map(|entry| entry.name.chars().count());
    let column = lengths.max().unwrap_or(0).min(LONGEST_NAME);
    let indent = column + 4;
    let mut out = format!("{title}\n");
    for entry in entries {
        let mut first = format!("  {:column$}  ", entry.name);
        if entry.name.chars().count() > column {
            push_wrapped(&mut out, &entry.name, "  ", 4, width);
            first = " ".repeat(indent);
        }
        push_wrapped(&mut out, &entry.summary, &first, indent, width);
        for need in &entry.needs {
            push_wrapped(&mut out, &need_text(need), &" ".repeat(indent), indent + 2, width);
        }
        let lines = entry.plan.iter().flat_map(plan_lines);
        for line in lines.chain(entry.cost.iter().flat_map(column_lines)) {
            push_wrapped(&mut out, &line, &" ".repeat(indent + 2), indent + 2, width);
        }
    }
    out
}

/// One entry with everything known about it.
pub(super) fn details(entry: &Entry, width: usize) -> String {
    let width = width.min(LONGEST);
    let mut out = String::new();
    push_wrapped(&mut out, &format!("{}: {}", entry.name, entry.summary), "", 2, width);
    out.push('\n');
    let plan = entry.plan.iter().flat_map(plan_lines);
    let plan: Vec<_> = plan.chain(entry.cost.iter().flat_map(cost_lines)).collect();
    plan.iter().for_each(|line| push_wrapped(&mut out, line, "", 0, width));
    if !plan.is_empty() {
        out.push('\n');
    }
    // The help of a plan is its file.
    if entry.help.contains('\n') {
        out.push_str(&entry.help);
    } else {
        push_wrapped(&mut out, &entry.help, "", 0, width);
    }
    if !entry.parameters.is_empty() {
        out.push_str("\nparameters\n");
    }
    for param in &entry.parameters {
        let line = format!("{}={}  [default: {}]", param.name, param.value, param.default);
        let line =
            if line.len() + 2 <= width { line } else { wrap(&line, width - 6).join("\n      ") };
        out.push_str(&format!("  {line}\n"));
        push_wrapped(&mut out, &param.help, "      ", 6, width);
    }
    for need in &entry.needs {
        out.push('\n');
        push_wrapped(&mut out, &need_text(need), "", 2, width);
    }
    out
}

/// The columns of a cost in the table.
fn column_lines(cost: &CostParts) -> Vec<String> {
    let name = |column: &ColumnName| format!("\"{}\"", column.name);
    let names: Vec<_> = cost.columns.iter().map(name).collect();
    if names.is_empty() { Vec::new() } else { vec![format!("columns: {}", names.join(", "))] }
}

/// Those with their keys, and what its values are.
fn cost_lines(cost: &CostParts) -> Vec<String> {
    let better = if cost.better == Better::Less { "less" } else { "more" };
    let columns =
        cost.columns.iter().map(|column| format!("\"{}\" is {}", column.name, column.key));
    [format!("in {}, {better} is better", cost.unit)].into_iter().chain(columns).collect()
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
