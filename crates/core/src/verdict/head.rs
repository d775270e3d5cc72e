//! The first sentences of a verdict: the largest latency, where and when it was seen, and how
//! many were late.

use super::broke::broke;
use super::rule::Rule;
use super::sentences;
use crate::key;
use crate::schema::{Cell, Episodes, Outcome, PhaseAt, Verdict};
use crate::units::{human_ns, stretch};

/// The first sentence on a cell: its largest latency, with CPU and time. None without samples.
pub(super) fn of_cell(cell: &Cell, verdict: &Verdict, rule: &Rule) -> Option<String> {
    first(cell, place(cell), verdict, rule, &[cell])
}

/// How much longer to measure, if nothing else makes a verdict inconclusive: what does is said before
/// how many were late.
pub(super) fn too_little<'a>(verdict: &Verdict, why: &'a [String]) -> Option<&'a String> {
    let alone = why.first().is_some_and(|first| sentences::says_how_many(first));
    let open = alone && verdict.outcome == Outcome::Inconclusive;
    why.iter().find(|reason| open && sentences::says_too_little(reason))
}

/// The cell that has the latest sample of all: with a deadline the largest one, since that is what is
/// compared with it; without one, what is above the ideal. None without samples.
pub(super) fn latest<'a>(cells: &[&'a Cell], rule: &Rule) -> Option<&'a Cell> {
    // Of equal maxima that of a break is named, else the first.
    let rank = |cell: &Cell| (latest_ns(cell, rule), broke(cell).is_some());
    cells
        .iter()
        .copied()
        .filter(|cell| cell.max_ns().is_some())
        .reduce(|a, b| if rank(b) > rank(a) { b } else { a })
}

/// The first sentence on a run: the maximum of the cell that has the latest sample of all, with cell,
/// CPU and time. None without samples.
pub(super) fn of_run(cells: &[&Cell], verdict: &Verdict, rule: &Rule) -> Option<String> {
    let cell = latest(cells, rule)?;
    let mut words = vec![probe(cell).to_owned(), load(cell).to_owned()];
    words.extend(place(cell));
    first(cell, words, verdict, rule, cells)
}

/// What the latest sample of several cells is found by: itself if it is compared with a deadline, or
/// a first sentence would name another cell than the one that was late; else what is above the ideal.
pub(super) fn latest_ns(cell: &Cell, rule: &Rule) -> Option<i64> {
    match rule.deadline_ns {
        Some(_) => cell.max_ns(),
        None => cell.latest_ns(),
    }
}

/// How many were late, over all threads of some cells. None without a deadline or samples.
pub(super) fn counts<'a>(cells: impl IntoIterator<Item = &'a Cell>, rule: &Rule) -> Option<String> {
    let deadline_ns = rule.deadline_ns.filter(|_| !rule.plumbing)?;
    let mut nouns: Option<&str> = None;
    let (mut late, mut scheduled) = (0_u64, 0_u64);
    let mut exact = true;
    for latency in cells.into_iter().filter_map(Cell::latency) {
        if latency.threads.iter().all(|thread| thread.stats.scheduled == 0) {
            continue;
        }
        let own = latency.primary.nouns.as_str();
        exact &= counted_exactly(latency.episodes.as_ref());
        nouns = Some(if nouns.is_none_or(|known| known == own) { own } else { "releases" });
        for thread in &latency.threads {
            late = late.saturating_add(thread.verdict.exceedances);
            scheduled = scheduled.saturating_add(thread.stats.scheduled);
        }
    }
    Some(sentences::late(late, scheduled, nouns?, deadline_ns, exact))
}

/// Whether late activations were counted when they came, and not in recorded bins, of which the one
/// that contains the deadline counts as a whole.
pub(super) fn counted_exactly(episodes: Option<&Episodes>) -> bool {
    episodes.is_none_or(|episodes| !episodes.in_seconds)
}

/// Adds the reasons that no sentence tells yet.
pub(super) fn add(because: &mut Vec<String>, reasons: Vec<String>) {
    let untold = untold(because, reasons);
    because.extend(untold);
}

/// The reasons that no sentence tells yet, each once.
pub(super) fn untold(because: &[String], reasons: Vec<String>) -> Vec<String> {
    let mut untold: Vec<String> = Vec::new();
    for reason in reasons {
        let within = ["; ", "; this shows: ", ": "].map(|before| format!("{before}{reason}"));
        let told =
            |said: &String| *said == reason || within.iter().any(|within| said.ends_with(within));
        if !because.iter().chain(&untold).any(told) {
            untold.push(reason);
        }
    }
    untold
}

/// The first sentence: the largest latency, of this cell, at this place, and what that is for a
/// verdict on `judged`.
fn first(
    cell: &Cell,
    words: Vec<String>,
    verdict: &Verdict,
    rule: &Rule,
    judged: &[&Cell],
) -> Option<String> {
    let max_ns = cell.max_ns()?;
    let max = human_ns(max_ns);
    let place = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
    if let Some(broke) = broke(cell).filter(|_| verdict.outcome == Outcome::Break) {
        let limit = sentences::deadline(broke.limit_ns);
        return Some(format!("max {max} > break value {limit}{place}"));
    }
    let Some(deadline_ns) = verdict.deadline_ns else {
        return Some(format!("max {max}, no deadline given{place}"));
    };
    let late = u64::try_from(max_ns).is_ok_and(|max| max > deadline_ns);
    let against = if late { ">" } else { "<=" };
    let deadline = sentences::deadline(deadline_ns);
    let pass = verdict.outcome == Outcome::Pass;
    if let Some(time) = observed(judged).filter(|_| pass && rule.counts_episodes()) {
        let words: String = words.iter().map(|word| format!(", {word}")).collect();
        let text = match rule.allowed().filter(|_| late) {
            Some(much) => format!(
                "late {} in {time}, {much} allowed (max {max} > deadline {deadline}{words})",
                sentences::times(verdict.episodes)
            ),
            None => format!("never later than {deadline} in {time} (max {max}{words})"),
        };
        // What a share is bounded by is a reason of its own.
        let shown = verdict.episode_rate_upper.filter(|_| rule.tolerate.is_none());
        let shown = shown.map(|rate| sentences::at_most_one_in(rate, verdict.confidence));
        let shown = shown.map_or_else(String::new, |shown| format!("; this shows: {shown}"));
        return Some(text + &shown);
    }
    let allowed = rule.allowed().filter(|_| late && pass);
    let allowed = allowed.map_or_else(String::new, |much| format!(", {much} allowed"));
    let text = format!("max {max} {against} deadline {deadline}{allowed}{place}");
    Some(match (verdict.outcome, verdict.upper_bound, cell.latency()) {
        (Outcome::Pass, Some(upper), Some(latency)) => {
            let bound = sentences::bound(upper, &latency.primary.nouns, verdict.confidence);
            format!("{text}; {bound}")
        }
        _ => text,
    })
}

/// The time in which lateness would have been seen, of these cells. None if that is not recorded.
fn observed(cells: &[&Cell]) -> Option<String> {
    let latencies =
        || cells.iter().filter_map(|cell| cell.latency()).filter(|l| l.stats.samples > 0);
    let times: Option<Vec<u64>> = latencies()
        .map(|latency| latency.episodes.as_ref().map(|found| found.observed_ns))
        .collect();
    let times = times?;
    let (least, most) = (times.iter().min()?, times.iter().max()?);
    let [least, most] = [least, most].map(|ns| stretch(*ns));
    let more = if least == most { "" } else { " or more" };
    Some(match times.len() {
        1 => least,
        number => format!("{least}{more} of each of {number} cells"),
    })
}

/// CPU and time of the largest latency of a cell.
fn place(cell: &Cell) -> Vec<String> {
    let max = cell.max_ns();
    let Some(thread) = cell.threads().iter().find(|thread| thread.stats.max == max) else {
        return Vec::new();
    };
    let cpu = thread.placement.cpu.map(|cpu| format!("CPU {cpu}"));
    let among = (!thread.placement.affinity.is_empty())
        .then(|| format!("CPU {} (any)", thread.placement.affinity));
    let at = thread.max_at_ns.map(sentences::at);
    let phase = thread.max_at_ns.and_then(|at| phase(cell, at));
    cpu.or(among).into_iter().chain(at).chain(phase).collect()
}

/// The phase of the load in which an instant was, if it changes.
fn phase(cell: &Cell, at_ns: u64) -> Option<String> {
    Some(match PhaseAt::of(&cell.phases, at_ns)? {
        PhaseAt::Phase(number, phase) => {
            format!("in phase {number}, {}", key::load_name(&phase.load))
        }
        PhaseAt::Change => "while the load changed".to_owned(),
    })
}

/// The probe with its parameters.
fn probe(cell: &Cell) -> &str {
    let probe = key::subject(&cell.key);
    if probe.is_empty() { cell.name() } else { probe }
}

/// The load as people call it.
pub(super) fn load(cell: &Cell) -> &str {
    key::load_name(&cell.load)
}

/// A cell in a few words.
pub(super) fn cell_name(cell: &Cell) -> String {
    format!("{}, {}", probe(cell), load(cell))
}
