//! The figures of a report.

use maud::{Markup, html};

use crate::figure::{Figure, Place};

/// How to read the figures.
pub struct Captions {
    pub overview: &'static str,
    pub histograms: &'static str,
    pub timelines: &'static str,
}

const THREADS: &str = "A line is the histogram of one thread; the box has their maxima, the worst \
    one bold.";

const LEGS: &str = "Each leg has the time from the end of the one before; together they are the \
    latency of a sample. The latest activation has a time line of its own. Means of legs add up, as the bars show; their quantiles and maxima do not. \
    The interrupt latency is the t1 of the papers, and the whole is their t2.";

const RETURNS: &str = "Maxima of blocks of time on Gumbel paper, with nothing fitted: how long it takes \
    on average until a latency is exceeded. If seconds are independent, the lines of all lengths are \
    one; where that of seconds is above, what exceeds lasts or comes again within seconds. A bend is a \
    second cause. The extremal index is 1 if samples above a threshold come singly, and one over the \
    number of those that come together in a second.";

const CPUS: &str = "A row is a CPU, a colour who had it. Bars add up what was recorded of the whole \
    cell; maps say when it was. Where a row of a map is empty nobody had the CPU of whom something \
    is known: it was idle, or had by others while no thread waited for it. Short times are drawn \
    wider than they are in maps. A time goes on after what interrupts it, and counts once.";

const COSTS: &str = "How many times worse each cost is than that of the first kernel: a bandwidth of half \
    is twice as bad. A line across the end of a bar is the 95 % interval of its ratio. A kernel that is \
    further down and further left than another in the trade is both earlier and cheaper.";

/// Of runs that stand for themselves.
pub const CAPTIONS: Captions = Captions {
    overview: "A curve far to the right at its lower end has rare, long latencies: the maximum is \
        its end. Missed periods are counted with their actual delay.",
    histograms: "Every bar is the true number of samples in its width. Latencies of zero and \
        below are in the band \"early\"; values with a sign, such as deviations, have a linear axis.",
    timelines: "Colour is the number of samples per column and latency bin, logarithmic. Below: the \
        load's work, which shows any gaps.",
};

/// The figures, and the sentence on those that are left out.
pub fn section(figures: &[(Place, Figure)], left_out: Option<&str>, captions: &Captions) -> Markup {
    let group = |place: Place, name: &str, about: &str, class: &str| {
        let list = || figures.iter().filter(|(at, _)| *at == place).map(|(_, figure)| figure);
        html! {
            @if list().next().is_some() {
                h3 { (name) }
                p class="about" { (about) }
                div class=(class) { @for figure in list() { figure { figcaption { (figure.title) } (figure.inline()) } } }
            }
        }
    };
    html! {
        @if !figures.is_empty() {
            section {
                h2 { "Figures" }
                @if figures.iter().any(|(place, _)| *place != Place::Costs) {
                p class="about" { "One latency axis for all cells and kernels of a probe; it covers every sample, and begins where all but 0.1 % of them are. The few below are in a band at its start. If more than 0.1 % are below zero it is linear." }
                }
                (group(Place::Overview, "All cells", captions.overview, "stack"))
                (group(Place::Legs, "Legs", LEGS, "grid"))
                (group(Place::Histograms, "Histograms", captions.histograms, "grid"))
                (group(Place::Threads, "Threads", THREADS, "grid"))
                (group(Place::Timelines, "Timelines", captions.timelines, "stack"))
                (group(Place::Returns, "Return levels and clusters", RETURNS, "grid"))
                (group(Place::Cpus, "CPUs", CPUS, "stack"))
                (group(Place::Costs, "Costs", COSTS, "stack"))
                @if let Some(why) = left_out { p class="about" { (why) } }
            }
        }
    }
}
