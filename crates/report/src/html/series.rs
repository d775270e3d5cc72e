//! The statistics of a cell's series: the primary one, its legs and what else was measured.

use maud::{Markup, html};
use punctual_core::schema::{Latency, Stats, Unit};
use punctual_core::units::grouped;

use super::parts::{heads, mean_of, number, of};
use crate::words;

/// Quantiles of every series over all threads.
pub fn quantiles(latency: &Latency) -> Markup {
    let primary = &latency.primary;
    let primary = format!("{}: {}", words::clean(&primary.name), words::clean(&primary.meaning));
    html! {
        div class="scroll" { table {
            (heads("Distribution", &["series"], &["max", "p99.99", "p99.9", "p99", "p50", "avg", "std dev", "min", "values", "early"]))
            tbody {
                (rows(&primary, Unit::Ns, &latency.stats))
                @for series in &latency.series {
                    @let name = format!("{}: {}", words::series_name(series), words::clean(&series.meaning));
                    (rows(&name, series.unit, &series.stats))
                }
            }
        } }
    }
}

fn rows(name: &str, unit: Unit, s: &Stats) -> Markup {
    let c = &s.corrected;
    html! {
        tr {
            th scope="row" { (name) }
            td class="n max" { (of(unit, s.max)) }
            @for value in [s.p9999, s.p999, s.p99, s.p50] { (number(of(unit, value))) }
            (number(mean_of(unit, s.avg)))
            (number(mean_of(unit, s.stddev)))
            (number(of(unit, s.min)))
            (number(grouped(s.samples)))
            (number(grouped(s.early)))
        }
        @if s.missed > 0 || c.from_bins {
            tr {
                th scope="row" { "corrected: missed releases with their actual delay" @if c.from_bins { " (partly from bins)" } }
                td {}
                @for value in [c.p9999, c.p999, c.p99, c.p50] { (number(of(unit, value))) }
                td {} td {} td {}
                (number(grouped(c.samples)))
                td {}
            }
        }
    }
}
