//! Aimed releases in the terminal: of each run the latest, then what each cell was aimed at and
//! what that measured, and last all cells and runs side by side.

use punctual_core::aimed::{AimedCell, AimedRun, Course, Shot, Target};
use punctual_core::units::grouped;

use super::found::{
    OTHER_COURSE, again, cell_name, difference, latest, passed_over, reason, samples,
};
use super::sentence::sentence;
use super::table::{maxima, runs};
use crate::explanation::times::{function_name, length};
use crate::sections::found::between;
use crate::text::{Align, Paint, Style, Table, push_styled, push_wrapped};
use crate::words;

/// The aimed releases of each run in lines of at most `width` columns.
#[must_use]
pub fn text(all: &[AimedRun], width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    for (number, run) in all.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        of_run(&mut out, run, width, paint);
    }
    // Letters need their runs; a single one has been named above.
    if all.len() > 1 {
        out.push('\n');
        runs(&mut out, all, width, paint);
    }
    if all.len() > 1 || all.iter().any(|run| run.cells.len() > 1) {
        maxima(&mut out, all, width, paint);
    }
    out
}

pub(super) fn title(run: &AimedRun) -> String {
    format!("How late releases of {} can be", words::clean(&run.run))
}

/// `Linux 6.1.0 PREEMPT_RT`.
pub(super) fn kernel(run: &AimedRun) -> String {
    format!("Linux {} {}", words::clean(&run.release), words::preemption_name(run.model))
}

fn of_run(out: &mut String, run: &AimedRun, width: usize, paint: Paint) {
    push_styled(out, &title(run), Style::Strong, ("", 0, width), paint);
    push_wrapped(out, &kernel(run), "", 0, width);
    push_styled(out, &sentence(run), Style::Strong, ("", 2, width), paint);
    for cell in &run.cells {
        out.push('\n');
        of_cell(out, cell, width, paint);
    }
    for caveat in &run.caveats {
        push_wrapped(out, &words::clean(caveat), "  ! ", 4, width);
    }
}

fn of_cell(out: &mut String, cell: &AimedCell, width: usize, paint: Paint) {
    let name = cell_name(&cell.key, cell.course);
    push_styled(out, &name, Style::Strong, ("", 2, width), paint);
    push_styled(out, &samples(cell), Style::Plain, ("  ", 4, width), paint);
    if cell.course == Course::Alone {
        push_wrapped(out, OTHER_COURSE, "  ", 4, width);
    }
    if cell.targets.is_empty() {
        push_wrapped(out, "no section was aimed at", "  ", 4, width);
    } else {
        let wide = targets(cell, true);
        let table = if wide.is_squeezed(width) { targets(cell, false) } else { wide };
        out.push_str(&table.render(width, paint));
    }
    if let Some(passed_over) = passed_over(cell) {
        push_wrapped(out, &passed_over, "  ", 4, width);
    }
}

/// A row for each target, with all that is known of it or, where that is too wide, with a part of
/// it below.
fn targets(cell: &AimedCell, is_wide: bool) -> Table {
    let right = Align::Right;
    let mut columns = vec![("section", right)];
    if is_wide {
        let place = [("from", Align::Left), ("to", Align::Left), ("release", right), ("at", right)];
        columns.extend(place);
    }
    columns.extend([("predicted", right), ("measured", right), ("difference", right)]);
    let mut table = Table::new(&columns);
    let latest = latest(cell).map(|(target, _)| target);
    let plain = |text: String| (text, Style::Plain);
    for target in &cell.targets {
        let section = &target.section;
        let mut row = vec![plain(length(section.length_ns))];
        if is_wide {
            row.extend([&section.from, &section.to].map(|name| plain(function_name(name))));
            row.extend([grouped(target.number), words::instant(target.at_ns)].map(plain));
        }
        row.push(plain(length(target.predicted_ns)));
        let is_latest = latest.is_some_and(|latest| std::ptr::eq(latest, target));
        row.push(match &target.measured {
            Shot::Measured { latency_ns, .. } if is_latest => (length(*latency_ns), Style::Strong),
            Shot::Measured { latency_ns, .. } => plain(length(*latency_ns)),
            Shot::Failed { .. } => ("failed".to_owned(), Style::Doubt),
        });
        row.push(plain(difference(target).unwrap_or_else(|| "-".to_owned())));
        table.row(row);
        if !is_wide {
            table.note(place(target));
        }
        if let Some(again) = again(target) {
            table.note(again);
        }
        if let Shot::Failed { why } = &target.measured {
            table.note(reason(why));
        }
    }
    table
}

/// `release 1,204 at 1.204 s, from X to Y`.
fn place(target: &Target) -> String {
    let between = between(&target.section.from, &target.section.to);
    let (number, at) = (grouped(target.number), words::instant(target.at_ns));
    format!("release {number} at {at}, {between}")
}
