//! Figures and notes of what weakens or explains a cell, of runs with two cells of two threads.

mod common;

use common::evident::{AT, LEGS, UNTRACED, gapped, signed, traced};
use common::{latency, made_up, one};
use punctual_core::interval::Interval;
use punctual_core::run::LoadedRun;
use punctual_core::schema::Condition;
use punctual_core::units::human_ns;
use punctual_report::figure::Figure;
use punctual_report::{figures, text};

fn of_kind<'a>(figures: &'a [Figure], kind: &str) -> Vec<&'a Figure> {
    figures.iter().filter(|one| one.name.starts_with(kind)).collect()
}

fn texts(figure: &Figure) -> Vec<String> {
    figure.texts().into_iter().map(|text| text.text).collect()
}

fn has(figure: &Figure, text: &str) -> bool {
    texts(figure).iter().any(|one| one == text)
}

/// The outlines of a class, each as its numbers.
fn paths(figure: &Figure, class: &str) -> Vec<Vec<f64>> {
    let svg = figure.svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let nodes = document.descendants().filter(|node| node.attribute("class") == Some(class));
    let numbers = |d: &str| {
        let parts = d.split(['M', 'L', 'H', 'V', 'Z', ' ', ',']);
        parts.filter_map(|part| part.parse().ok()).collect()
    };
    nodes.filter_map(|node| node.attribute("d")).map(numbers).collect()
}

/// What the terminal says of a run in 80 columns, in one line.
fn said(run: &LoadedRun) -> String {
    let shown = text::summary(run, 80, false);
    let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 80, "{shown}");
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn an_interruption_in_pieces_counts_once() {
    let mut run = one("anything", "none", 1, None);
    let (tick, softirq, nobody) = (0, 1, 2);
    let one = |cpu, from, to, actor| Interval { cpu, from, to, actor };
    // On either CPU a softirq of 60 us in two pieces, since the tick interrupts it, and a tick alone.
    let of_cpu = |cpu| {
        [
            one(cpu, 1_000, 2_000, nobody),
            one(cpu, 2_000, 42_000, softirq),
            one(cpu, 42_000, 47_000, tick),
            one(cpu, 47_000, 67_000, softirq),
            one(cpu, 67_000, 68_000, nobody),
            one(cpu, 500_000, 504_000, tick),
        ]
    };
    run.cells[0].intervals = [of_cpu(0), of_cpu(3)].concat();
    let names = ["interrupt local_timer", "softirq TIMER", "untraced"].map(str::to_owned);
    run.cells[0].actors = (0..).zip(names).collect();
    let all = figures(&[run]);
    let rows = texts(of_kind(&all, "actors")[0]);
    for row in [
        ["softirq TIMER", "120.0 us", "2", "60.0 us"],
        ["interrupt local_timer", "18.0 us", "4", "5.0 us"],
        ["untraced", "4.0 us", "2", "2.0 us"],
    ] {
        assert!(rows.windows(4).any(|found| found == row), "{row:?} in {rows:?}");
    }
}

#[test]
fn values_with_a_sign_have_a_linear_axis_around_zero() {
    let run = signed();
    let figures = figures(std::slice::from_ref(&run));
    let histograms = of_kind(&figures, "histogram");
    assert_eq!(histograms.len(), 2);
    for (number, figure) in histograms.iter().enumerate() {
        assert!(has(figure, "deviation, linear") && has(figure, "0"), "{figure:?}");
        let texts = texts(figure);
        assert!(!texts.iter().any(|text| text == "early" || text.starts_with("<")), "{texts:?}");
        assert!(figure.svg().contains("4,094 of them below zero"), "{number}");
        // Zero is a line; no bar is on both sides, and both sides have as many.
        let zero = paths(figure, "zero")[0][0];
        let bars = paths(figure, "count").concat();
        let below = bars.iter().filter(|x| **x < zero - 1.0).count();
        assert!(below > 0, "{bars:?}");
    }
    // The second cell reaches ten times as far, on the same axis.
    let reach = |figure: &Figure| {
        let all = paths(figure, "count");
        let left = all[0][0];
        paths(figure, "zero")[0][0] - left
    };
    let ratio = reach(histograms[1]) / reach(histograms[0]);
    assert!((8.0..=11.0).contains(&ratio), "{ratio}");
    for kind in ["bars", "ccdf", "timeline", "threads"] {
        let all = of_kind(&figures, kind);
        assert!(!all.is_empty(), "{kind}");
        for figure in all {
            let texts = texts(figure);
            assert!(texts.iter().any(|text| text.contains("-20 us")), "{kind}: {texts:?}");
            assert!(!texts.iter().any(|text| text == "early"), "{kind}: {texts:?}");
        }
    }
    // A few early samples of a latency are no sign.
    let mut few = one("wakeup", "none", 2, None);
    latency(&mut few.run.cells[0]).stats.early = 5;
    let all = punctual_report::figures(&[few]);
    assert!(of_kind(&all, "histogram").iter().all(|one| !one.svg().contains("\"zero\"")));
}

#[test]
fn the_terminal_says_how_many_are_below_zero() {
    let run = signed();
    let said = said(&run);
    assert!(said.contains("4,094 of 8,192 intervals below zero, the least -2.0 us"), "{said}");
    assert!(said.contains("the least -20.5 us") && !said.contains("early"), "{said}");
}

#[test]
fn the_latest_activation_is_drawn_with_its_legs() {
    let figures = figures(&[traced()]);
    let latest = of_kind(&figures, "latest");
    assert_eq!(latest.len(), 2);
    assert_eq!(latest[0].title, "The latest activation · timed · idle");
    let total: i64 = LEGS.iter().sum();
    let about = format!("{}, thread 1 on CPU 1, 4.218 s after the start", human_ns(total));
    for figure in &latest {
        assert!(texts(figure).iter().any(|text| text.starts_with(&about)), "{figure:?}");
        assert!(texts(figure).join(" ").contains("In the longest leg spin (PID 12) had the CPU."));
        for name in ["release", "start", "switch", "user"] {
            assert!(has(figure, name), "no {name}: {figure:?}");
        }
        // A mark for each instant, and a part of the bar for each leg, as long as it was.
        assert_eq!(paths(figure, "instant").len(), 5);
        let parts = paths(figure, "part");
        assert_eq!(parts.len(), 4);
        let length = |part: &Vec<f64>| part[2] - part[0];
        let all: f64 = parts.iter().map(length).sum();
        for (part, ns) in parts.iter().zip(LEGS) {
            let share = ns as f64 / total as f64;
            assert!((length(part) - share * all).abs() < 0.3, "{parts:?}");
        }
    }
    // From, to and length of a leg, to the nanosecond where that is recorded.
    let rows = texts(latest[0]);
    let row = ["switch", "14.6 us", "3.027 ms", "3.012 ms"];
    assert!(rows.windows(4).any(|found| found == row), "{rows:?}");
    assert!(!latest[0].svg().contains("rounded"));
    // Without samples of the trace nothing is drawn, nor of a probe without legs.
    assert!(of_kind(&punctual_report::figures(&[one("a", "none", 2, None)]), "latest").is_empty());
}

#[test]
fn a_latest_activation_without_legs_is_told_from_the_latest_traced_one() {
    let run = traced();
    let figures = figures(std::slice::from_ref(&run));
    let figure = of_kind(&figures, "latest")[1];
    assert_eq!(figure.title, "The latest traced activation · timed · hackbench");
    let untraced = human_ns(UNTRACED);
    let shown = texts(figure).join(" ");
    let later = format!("The latest activation, {untraced} of thread 0, has no legs in the trace.");
    assert!(shown.contains(&later) && shown.contains("lengths are rounded"), "{shown}");
    let said = said(&run);
    let note = format!(
        "the latest activation, {untraced} of thread 0, has no legs in the trace; the latest \
         traced one, {} of thread 1: interrupt",
        human_ns(LEGS.iter().sum())
    );
    assert!(said.contains(&note), "{said}");
    assert_eq!(said.matches("the latest activation with legs").count(), 1, "{said}");
}

#[test]
fn a_latest_activation_needs_no_note_if_its_legs_add_up() {
    let mut run = traced();
    run.run.cells.iter_mut().for_each(|cell| cell.conditions.clear());
    // One of the legs is what the others leave.
    let leg = &mut run.cells[0].threads[1].series[2].outliers;
    leg.retain(|sample| sample.at != AT);
    let figures = figures(&[run]);
    let latest = of_kind(&figures, "latest");
    assert_eq!(latest.len(), 1, "that of the second cell has no legs");
    let rows = texts(latest[0]);
    let row = ["wakeup", "12.3 us", "14.6 us", "2.2 us"];
    assert!(rows.windows(4).any(|found| found == row), "{rows:?}");
}

#[test]
fn the_longest_gap_of_a_map_is_marked_with_its_length_and_owner() {
    let figures = figures(&[gapped()]);
    let maps = of_kind(&figures, "cpus");
    assert_eq!(maps.len(), 2);
    let labels = ["longest gap 3.000 ms: spin", "longest gap 2.000 ms, of that other 1.500 ms"];
    for (figure, label) in maps.iter().zip(labels) {
        assert!(has(figure, label), "no {label}: {figure:?}");
        assert!(figure.description.contains(label), "{}", figure.description);
        // A line down to the gap, and its outline: both in the row of CPU 0, the first.
        let paths = paths(figure, "longest");
        let [line, outline] = &paths[..] else { panic!("{paths:?}") };
        let middle = f64::midpoint(outline[0], outline[2]);
        assert!((line[0] - middle).abs() < 0.2 && outline[1] < 120.0, "{paths:?}");
    }
    let width = |figure: &Figure| {
        let outline = &paths(figure, "longest")[1];
        outline[2] - outline[0]
    };
    // 3 and 2 of 30 ms.
    let share = 596.0 / 30.0;
    assert!((width(maps[0]) - 3.0 * share).abs() < 0.3, "{}", width(maps[0]));
    assert!((width(maps[1]) - 2.0 * share).abs() < 0.3, "{}", width(maps[1]));
}

#[test]
fn a_hypervisor_is_named_where_it_gave_time_to_others() {
    let run = gapped();
    let all = figures(std::slice::from_ref(&run));
    let maps = of_kind(&all, "cpus");
    let shown = maps.iter().map(|map| texts(map).join(" ")).collect::<Vec<_>>();
    assert!(!shown[0].contains("steal"), "{shown:?}");
    // Of the second of the gap, not of the next one or of the whole cell.
    assert!(
        shown[1].contains(
            "Longest gap: in that second the hypervisor gave 12.4 % of the CPUs' time to"
        )
    );
    let said = said(&run);
    let note = "the hypervisor gave 3.4 % of the CPUs' time to others (steal): a possible cause of \
                the longest gaps";
    assert_eq!(said.matches(note).count(), 1, "{said}");
    assert!(!self::said(&made_up(run.clone())).contains("steal"));
    // A condition of the cell says it better.
    let mut told = run.clone();
    let text = "the hypervisor ran others for 1.310 s".to_owned();
    told.run.cells[1].conditions.push(Condition { id: "steal".to_owned(), text: text.clone() });
    let told = self::said(&told);
    assert!(told.contains(&text) && !told.contains(note), "{told}");
    // Without a record of that second it is that of the cell.
    let mut unknown = run;
    unknown.cells[1].system.clear();
    let all = figures(&[unknown]);
    let map = of_kind(&all, "cpus")[1];
    assert!(texts(map).join(" ").contains("in this cell the hypervisor gave 3.4 %"), "{map:?}");
}
