//! An explanation in the terminal: of each cell first the causes, then what shows them.

use punctual_core::explanation::{
    Chosen, Explained, ExplainedCell, Explanation, Held, Unexplained,
};
use punctual_core::preemption::Model;
use punctual_core::units::{grouped, human_ns};

use super::remedy::Remedy;
use super::sentence::cause;
use super::threads;
use super::times::{
    Asked, asked, first, function_name, leg_ns, length, longest, own_all, percent, rank_name,
    rest_ns,
};
use crate::text::{Align, Paint, Style, Table, push_pairs, push_styled, push_wrapped};
use crate::words;

/// Functions of a sample that are listed.
pub(super) const FUNCTIONS: usize = 8;
/// Columns before the sentence of a sample.
const INDENT: usize = 13;
/// Marks the longest leg where there is no bold type.
pub(super) const MARK: &str = "*";

/// The explanation in lines of at most `width` columns.
#[must_use]
pub fn text(explanation: &Explanation, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    let run = words::clean(&explanation.run);
    let Explanation { release, model, instruction_ns, .. } = explanation;
    let kernel = words::watched_kernel(release, *model, *instruction_ns);
    push_styled(&mut out, &title(&run), Style::Strong, ("", 0, width), paint);
    push_wrapped(&mut out, &kernel, "", 0, width);
    for cell in &explanation.cells {
        out.push('\n');
        let key = words::key_name(&cell.key);
        push_styled(&mut out, &key, Style::Strong, ("", 0, width), paint);
        if cell.samples.is_empty() && cell.unexplained.is_empty() {
            push_wrapped(&mut out, "no samples", "  ", 2, width);
        }
        causes(&mut out, cell, explanation.model, width, paint);
        if cell.samples.is_empty() {
            continue;
        }
        out.push('\n');
        out.push_str(&legs(cell).render_whole(1, width, paint));
        push_wrapped(&mut out, &format!("{MARK} the longest leg"), "  ", 4, width);
        for (number, sample) in cell.samples.iter().enumerate() {
            out.push('\n');
            let head = format!("{}: {}", rank_name(cell, number), facts(sample));
            push_styled(&mut out, &head, Style::Strong, ("  ", 4, width), paint);
            for line in shown(sample) {
                push_styled(&mut out, &line, Style::Plain, ("  ", 4, width), paint);
            }
            out.push_str(&functions(sample).render(width, paint));
        }
    }
    if !explanation.cells.is_empty() {
        out.push('\n');
        push_styled(&mut out, "Legs", Style::Strong, ("", 0, width), paint);
        let pair = |leg| (words::leg_name(leg).to_owned(), words::leg_meaning(leg).to_owned());
        push_pairs(&mut out, &words::LEGS.map(pair), width);
    }
    for caveat in &explanation.caveats {
        push_wrapped(&mut out, &words::clean(caveat), "  ! ", 4, width);
    }
    out
}

pub(super) fn title(run: &str) -> String {
    format!("Why samples of {run} were late")
}

/// The sentence of every sample, and remedies below the first one that they are for.
fn causes(out: &mut String, cell: &ExplainedCell, model: Model, width: usize, paint: Paint) {
    let style = |chosen| match chosen {
        Chosen::Typical => Style::Plain,
        Chosen::Worst | Chosen::At => Style::Strong,
    };
    let mut said = Vec::new();
    for one in asked(cell) {
        let (name, chosen, sentence, remedies) = match one {
            Asked::Explained(number, sample) => {
                let cause = cause(sample, model);
                (rank_name(cell, number), sample.chosen, cause.sentence, cause.remedies)
            }
            Asked::Unexplained(name, sample) => {
                (name, sample.chosen, unexplained(sample), Vec::new())
            }
        };
        let name = format!("  {name:<11}");
        push_styled(out, &sentence, style(chosen), (&name, INDENT, width), paint);
        for remedy in remedies.iter().map(Remedy::words) {
            if !said.contains(&remedy) {
                let first = " ".repeat(INDENT);
                push_styled(out, &remedy, Style::Plain, (&first, INDENT, width), paint);
                said.push(remedy);
            }
        }
    }
}

/// `41.203 ms late at 1.204 s; not explained: what is known begins after the release`.
pub(super) fn unexplained(sample: &Unexplained) -> String {
    let (late, at) = (length(sample.latency_ns), words::instant(sample.at_ns));
    format!("{late} late at {at}; not explained: {}", words::clean(&sample.why))
}

/// A column for each sample, and the longest leg of each marked.
fn legs(cell: &ExplainedCell) -> Table {
    let samples = || cell.samples.iter();
    let ranks = (0..cell.samples.len()).map(|number| (rank_name(cell, number), Align::Right));
    let columns: Vec<_> = std::iter::once(("leg", Align::Left)).chain(ranks).collect();
    let mut table = Table::new(&columns);
    let plain = |text: String| (text, Style::Plain);
    for leg in words::LEGS {
        if samples().all(|sample| leg_ns(sample, leg).is_none()) {
            continue;
        }
        let length = |sample: &Explained| {
            let text = leg_ns(sample, leg).map_or_else(|| "-".to_owned(), length);
            match longest(sample).filter(|longest| longest.until == leg) {
                Some(_) => (format!("{MARK} {text}"), Style::Strong),
                None => plain(text),
            }
        };
        table.row(row(plain(words::leg_name(leg).to_owned()), samples().map(length)));
    }
    if samples().any(|sample| rest_ns(sample) > 0) {
        let rest = samples().map(|sample| plain(length(rest_ns(sample))));
        table.row(row(plain("not known".to_owned()), rest));
    }
    let all = samples().map(|sample| (length(sample.latency_ns), Style::Strong));
    table.row(row(plain("latency".to_owned()), all));
    let counts = samples().map(|sample| plain(grouped(sample.instructions)));
    table.row(row(plain("instructions".to_owned()), counts));
    table
}

fn row(
    name: (String, Style),
    cells: impl Iterator<Item = (String, Style)>,
) -> Vec<(String, Style)> {
    std::iter::once(name).chain(cells).collect()
}

/// `340.1 us at 1.204 s, 3 releases missed`.
pub(super) fn facts(sample: &Explained) -> String {
    let missed = match sample.missed {
        0 => String::new(),
        1 => ", 1 release missed".to_owned(),
        more => format!(", {} releases missed", grouped(more)),
    };
    format!("{} at {}{missed}", length(sample.latency_ns), words::instant(sample.at_ns))
}

/// Who held the kernel, and which threads had the CPU.
pub(super) fn shown(sample: &Explained) -> Vec<String> {
    held(sample).into_iter().chain(threads::line(sample)).collect()
}

/// `interrupts off from -12.0 us to 98.0 us (110.0 us), between spin_lock and spin_unlock`.
fn held(sample: &Explained) -> Vec<String> {
    let line = |held: &Held| {
        let [began, ended] = [&held.began_in, &held.ended_in].map(|name| function_name(name));
        let (from, after) = match held.from_ns {
            Some(from) => {
                (human_ns(from), format!(" ({})", human_ns(held.to_ns.saturating_sub(from))))
            }
            None => ("before what is known".to_owned(), String::new()),
        };
        let (name, to) = (words::hold_name(held.how), human_ns(held.to_ns));
        format!("{name} from {from} to {to}{after}, between {began} and {ended}")
    };
    sample.held.iter().map(line).collect()
}

/// The functions that took the time, and the rest of them in a line.
fn functions(sample: &Explained) -> Table {
    let right = Align::Right;
    let columns = [("function", Align::Left), ("own time", right), ("share", right)];
    let mut table = Table::new(&columns);
    for (number, [name, time, share]) in function_rows(sample).into_iter().enumerate() {
        let style = if number == 0 { Style::Strong } else { Style::Plain };
        table.row(vec![(name, style), (time, style), (share, Style::Plain)]);
    }
    table
}

/// Name, own time and share of the functions that are listed, and of all others.
pub(super) fn function_rows(sample: &Explained) -> Vec<[String; 3]> {
    let own = own_all(sample);
    let whole: u64 = own.iter().map(|(_, ns)| *ns).sum();
    let (shown, others, rest) = first(&own, FUNCTIONS);
    let row = |name: &str, ns: u64| [name.to_owned(), exact(ns), percent(ns, whole)];
    let mut rows: Vec<_> = shown.iter().map(|(name, ns)| row(name, *ns)).collect();
    if others > 0 {
        rows.push(row(&format!("{} others", grouped(others as u64)), rest));
    }
    rows
}

/// A time to the nanosecond: what is counted in instructions is known that well.
pub(super) fn exact(ns: u64) -> String {
    format!("{} ns", grouped(ns))
}
