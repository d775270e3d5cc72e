//! The load under which kernels can be latest, as a search found it: as text and page.

mod page;
mod text;

pub use page::page;
pub use text::text;

use punctual_core::search::{Found, Longest, Scored, Step};
use punctual_core::units::{exact_duration, grouped};

use crate::explanation::times::{function_name, length};
use crate::words;

/// What heads a search.
fn title(found: &Found) -> String {
    let kernels = &found.origin.kernels;
    let names: Vec<_> = kernels.iter().map(|kernel| words::clean(&kernel.name)).collect();
    format!("The load under which {} can be latest", names.join(", "))
}

/// How it was searched.
fn how(found: &Found) -> String {
    let origin = &found.origin;
    let last = origin.seed + origin.replicates.saturating_sub(1);
    let seeds = match origin.replicates {
        0 | 1 => format!("with the seed {}", origin.seed),
        _ => format!("with the seeds {} to {last}, of which the shortest counts", origin.seed),
    };
    let guests = found.mixes.len() as u64 * origin.replicates * origin.kernels.len() as u64;
    let end = if found.spent {
        "the budget ended the search: a larger one goes on with it"
    } else {
        "no step helped any more"
    };
    format!(
        "{} mixes of {} loads in {} of {} tries, each watched for {} {seeds}; {end}",
        grouped(found.mixes.len() as u64),
        grouped(origin.loads.len() as u64),
        grouped(guests),
        grouped(found.budget),
        exact_duration(origin.duration_ns)
    )
}

/// What was found, in a sentence.
fn sentence(found: &Found) -> String {
    let Some((best, score)) = best(found) else { return "no load could run".to_owned() };
    let load = words::clean(&best.load).into_owned();
    let several = found.origin.kernels.len() > 1;
    let what = if several { ", the geometric mean of the kernels," } else { "" };
    format!("under {load} a woken thread could not have run for {}{what}", length(score))
        .trim_end_matches(',')
        .to_owned()
}

fn best(found: &Found) -> Option<(&Scored, u64)> {
    let best = found.mixes.first()?;
    Some((best, best.score_ns?))
}

/// The mixes that ran on a kernel, the longest there first.
fn of_kernel(found: &Found, kernel: usize) -> Vec<(&Scored, &Longest)> {
    let ran = |mix: &'_ Scored| mix.by_kernel.get(kernel).is_some_and(Option::is_some);
    let mut mixes: Vec<(&Scored, &Longest)> = found
        .mixes
        .iter()
        .filter(|mix| ran(mix))
        .filter_map(|mix| Some((mix, mix.by_kernel.get(kernel)?.as_ref()?)))
        .collect();
    mixes.sort_by_key(|(mix, longest)| (std::cmp::Reverse(longest.longest_ns), mix.number));
    mixes
}

fn step(step: Step) -> &'static str {
    match step {
        Step::Alone => "alone",
        Step::Size => "size",
        Step::Mix => "mix",
        Step::Without => "without",
    }
}

fn or_dash(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), length)
}

fn count(number: Option<u64>) -> String {
    number.map_or_else(|| "-".to_owned(), grouped)
}

fn ends(longest: &Longest) -> [String; 2] {
    [function_name(&longest.from), function_name(&longest.to)]
}
