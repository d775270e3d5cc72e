//! A search as one HTML file that loads nothing.

use maud::{Markup, html};
use punctual_core::search::Found;

use super::{count, ends, how, of_kernel, or_dash, sentence, step, title};
use crate::explanation::times::length;
use crate::html::{document, heads, number, verdict};
use crate::words;

const READ: &str = "Longest is the longest stretch in which a woken thread could not have been \
    switched to, of the guest with the shortest. The score of a mix is the geometric mean over the \
    kernels. Steps: a load alone, a size 4 times as large or as small, another load joined.";

/// The page: the best mix, all mixes by score and by kernel, what each load of the best contributes,
/// and the latest release that was measured.
#[must_use]
pub fn page(found: &Found) -> String {
    let below = html! { p class="made" { (how(found)) } };
    let main = html! {
        (verdict(None, &sentence(found), &html! {}))
        @if found.origin.kernels.len() > 1 { (scores(found)) }
        p class="about" { (READ) }
        @for kernel in 0..found.origin.kernels.len() { (longest(found, kernel)) }
        @if !found.parts.is_empty() { (parts(found)) }
        @if !found.confirmed.is_empty() { (confirmed(found)) }
        (failed(found))
    };
    document(&title(found), &below, &main)
}

fn names(found: &Found) -> Vec<String> {
    found.origin.kernels.iter().map(|kernel| words::clean(&kernel.name).into_owned()).collect()
}

fn scores(found: &Found) -> Markup {
    html! {
        div class="scroll" { table {
            (heads("All kernels", &["load", "step"], &["try", "score"]))
            tbody { @for mix in found.mixes.iter().filter(|mix| mix.score_ns.is_some()) { tr {
                th scope="row" { (words::clean(&mix.load)) }
                td { (step(mix.step)) }
                (number(mix.number.to_string()))
                (number(or_dash(mix.score_ns)))
            } } }
        } }
    }
}

fn longest(found: &Found, kernel: usize) -> Markup {
    let name = names(found).swap_remove(kernel);
    html! {
        div class="scroll" { table {
            (heads(&name, &["load", "from", "to"], &["try", "longest"]))
            tbody { @for (mix, longest) in of_kernel(found, kernel) { tr {
                th scope="row" { (words::clean(&mix.load)) }
                @for end in ends(longest) { td { (end) } }
                (number(mix.number.to_string()))
                (number(length(longest.longest_ns)))
            } } }
        } }
    }
}

fn parts(found: &Found) -> Markup {
    html! {
        div class="scroll" { table {
            (heads(
                "What each load of the best contributes, and executes alone",
                &["load", "kernel"],
                &["without it", "functions", "that lock"],
            ))
            tbody { @for part in &found.parts { @for (at, name) in names(found).iter().enumerate() {
                tr class=(if at == 0 { "first" } else { "" }) {
                    th scope="row" { @if at == 0 { (words::clean(&part.load)) } }
                    td { (name) }
                    (number(or_dash(part.without.by_kernel.get(at).and_then(|longest| {
                        longest.as_ref().map(|longest| longest.longest_ns)
                    }))))
                    (number(count(part.functions.get(at).copied().flatten())))
                    (number(count(part.locking.get(at).copied().flatten())))
                }
            } } }
        } }
    }
}

fn confirmed(found: &Found) -> Markup {
    html! {
        div class="scroll" { table {
            (heads("The latest release", &["kernel"], &["seed", "sampled", "predicted", "aimed"]))
            tbody { @for one in &found.confirmed { tr {
                th scope="row" { (words::clean(&one.kernel)) }
                (number(one.seed.to_string()))
                (number(or_dash(one.sampled_max_ns)))
                (number(or_dash(one.predicted_ns)))
                (number(or_dash(one.aimed_ns)))
            } } }
        } }
    }
}

fn failed(found: &Found) -> Markup {
    let failed: Vec<_> =
        found.mixes.iter().filter_map(|mix| Some((mix, mix.failed.as_ref()?))).collect();
    html! {
        @if !failed.is_empty() { div class="scroll" { table {
            (heads("Mixes that could not run", &["load", "why"], &["try"]))
            tbody { @for (mix, why) in &failed { tr {
                th scope="row" { (words::clean(&mix.load)) }
                td { (words::clean(why)) }
                (number(mix.number.to_string()))
            } } }
        } } }
    }
}
