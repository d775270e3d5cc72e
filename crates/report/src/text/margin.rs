//! `punctual compare --not-worse-than`: the judgement and what it rests on.

use punctual_core::compare::{Comparison, FEWEST_REPLICATES, Margin, MarginCell, Standing};

use super::compare::quantity_name;
use super::style::{Paint, Style};
use super::table::{Align, Table};
use super::wrap::{push_parts, push_wrapped};
use crate::words;

/// Columns of the outcome and the space after it.
const INDENT: usize = 14;

/// Whether other kernels are at most some factor worse than the first: a row for each figure, and
/// the outcome. `width` and `colour` as for [`super::summary`].
#[must_use]
pub fn margin(margin: &Margin, comparison: &Comparison, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let names = words::kernel_names(&comparison.groups);
    let noun = words::side_noun(&comparison.groups);
    let base = names.first().map_or("", String::as_str);
    let title = format!(
        "At most {} times {base}? Bounds at {:.0} % confidence, one-sided",
        margin.limit,
        margin.confidence * 100.0
    );
    let mut out = "\n".to_owned();
    push_parts(&mut out, &[(title, Style::Strong)], ("", Style::Plain), 0, width, paint);
    if !margin.cells.is_empty() {
        out.push_str(&table(margin, &names, noun).render(width, paint));
    }
    let (head, style) = head(margin.outcome);
    let first = paint.apply(&format!("{head:<INDENT$}"), style);
    push_wrapped(&mut out, &sentence(margin, noun), &first, INDENT, width);
    out
}

fn head(outcome: Standing) -> (&'static str, Style) {
    match outcome {
        Standing::NotWorse => ("NOT WORSE", Style::Good),
        Standing::Inconclusive => ("INCONCLUSIVE", Style::Doubt),
        Standing::Worse => ("WORSE", Style::Bad),
    }
}

fn table(margin: &Margin, names: &[String], noun: &'static str) -> Table {
    let right = Align::Right;
    let mut table = Table::new(&[
        (noun, Align::Left),
        ("quantity", Align::Left),
        ("runs", right),
        ("ratio", right),
        ("at least", right),
        ("at most", right),
        ("result", Align::Left),
    ])
    .lesser(&["runs"]);
    for cell in margin.cells.chunk_by(|a, b| a.key == b.key) {
        table.heading(words::key_name(&cell[0].key));
        for found in cell {
            table.row(row(found, names).map(|text| (text, Style::Plain)).to_vec());
        }
    }
    table
}

fn row(cell: &MarginCell, names: &[String]) -> [String; 7] {
    let needed = |cell: &MarginCell| match cell.runs_needed {
        _ if cell.of != cell.runs => "not in every run".to_owned(),
        Some(runs) => format!("open: about {runs} runs"),
        None => "open".to_owned(),
    };
    [
        names.get(cell.group).cloned().unwrap_or_default(),
        quantity_name(cell.quantity).to_owned(),
        format!("{} / {}", cell.runs[1], cell.runs[0]),
        words::ratio(cell.ratio),
        words::ratio(cell.lower),
        words::ratio(cell.upper),
        match cell.outcome {
            Standing::NotWorse => "not worse".to_owned(),
            Standing::Worse => "worse".to_owned(),
            Standing::Inconclusive => needed(cell),
        },
    ]
}

fn sentence(margin: &Margin, noun: &str) -> String {
    if let Some(because) = &margin.because {
        return format!(
            "{because}. --replicates {FEWEST_REPLICATES} of `punctual lab run`, or as many runs of each"
        );
    }
    let limit = margin.limit;
    let count = |outcome| margin.cells.iter().filter(|cell| cell.outcome == outcome).count();
    let all = margin.cells.len();
    match margin.outcome {
        Standing::NotWorse => format!(
            "every upper bound is at most {limit}, of {all} figures: the confidence holds for all \
             of them together"
        ),
        Standing::Worse => format!(
            "{} of {all} figures are shown to be more than {limit} times as large, after Holm's \
             correction for their number",
            count(Standing::Worse)
        ),
        Standing::Inconclusive if all == 0 => {
            "no cell has a figure that could be compared".to_owned()
        }
        Standing::Inconclusive => {
            let open = count(Standing::Inconclusive);
            let needed = margin.cells.iter().filter_map(|cell| cell.runs_needed).max();
            let needed = needed.map_or_else(String::new, |runs| {
                format!(
                    ": about {runs} runs of each {noun} would tell, if ratios and spreads stay as \
                     they are"
                )
            });
            format!(
                "{open} of {all} figures are neither shown to be at most {limit} nor above it{needed}"
            )
        }
    }
}
