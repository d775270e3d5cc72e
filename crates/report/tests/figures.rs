//! The figures of made-up runs: complete, legible, and in one form for every program.

mod common;

use common::phased::phased;
use common::{MS, check_texts, latency, made_up, one, primaries, with_ideal, with_parts};
use punctual_core::interval::Interval;
use punctual_core::preemption::Model;
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Ideal};
use punctual_core::units::human_ns;
use punctual_report::figure::{Figure, WIDTH, left_out};
use punctual_report::figures;

/// The colour of what missed its deadline, in files.
const RED: &str = "#c4290f";

const PULSE: Ideal = Ideal::Pulse { width_ns: 50_000 };
const INTERVAL: Ideal = Ideal::Interval { ns: 20_000, limit_ns: 60_000_000 };

fn two() -> [LoadedRun; 2] {
    [
        common::standard("6.1.0-56-rt-amd64", "rt", 1.0),
        common::standard("6.1.0-56-amd64", "voluntary", 9.0),
    ]
}

/// Its actors had the CPUs 5,000 times as long: for half a day each.
fn for_a_day(mut run: LoadedRun) -> LoadedRun {
    for one in &mut run.cells[0].intervals {
        (one.from, one.to) = (one.from * 5_000, one.from * 5_000 + MS * 5_000);
    }
    run
}

/// Runs of every kind that a report can show.
fn every_kind() -> Vec<(&'static str, Vec<LoadedRun>)> {
    let mut early = common::standard("6.1.0", "rt", 1.0);
    for series in primaries(&mut early.cells) {
        let mut all = punctual_core::histogram::SignedHistogram::new();
        all.merge(series.histogram.as_ref().unwrap());
        all.record(-12_000);
        all.record(3);
        series.histogram = Some(all.sparse());
    }
    let many: Vec<_> = LOADS.map(|load| one("wakeup", load, 1, Some(100 * MS))).into();
    let mut deadlines = two().to_vec();
    deadlines[0].run.verdict.deadline_ns = Some(190_000);
    vec![
        ("one", vec![common::standard("6.1.0-56-rt-amd64", "rt", 1.0)]),
        ("two", two().to_vec()),
        ("deadlines", deadlines),
        ("early", vec![early]),
        ("many", many),
        ("kernels", common::experiment(4, 10)),
        ("all kinds", vec![common::all_kinds("6.1.0", "rt", 1.0)]),
        ("64 threads", vec![one("wakeup", "paper", 64, Some(30_000))]),
        ("90 threads", vec![one("wakeup", "none", 90, Some(30_000))]),
        ("a day", vec![common::day(1_000)]),
        ("pulses", two().map(|run| with_ideal(run, &PULSE, "fall")).to_vec()),
        ("intervals", two().map(|run| with_ideal(run, &INTERVAL, "loop")).to_vec()),
        ("legs", two().map(|run| with_parts(run, &LEGS)).to_vec()),
        ("one leg", vec![with_parts(common::mapped(1, 9), &LEGS[3..])]),
        (
            "legs of kernels",
            common::experiment(4, 10).into_iter().map(|run| with_parts(run, &LEGS)).collect(),
        ),
        ("a map of a day", vec![for_a_day(common::mapped(20, 3))]),
        ("a map", vec![common::mapped(2, 3)]),
        ("phases", vec![phased(&[("none", 5), ("hackbench", 5), ("paper", 5)], 15, Some(MS))]),
        ("many phases", vec![phased(&[("none", 2), (LOADS[0], 2), ("copy", 3)], 600, None)]),
        ("signed", vec![common::evident::signed()]),
        ("latest", vec![common::evident::traced()]),
        ("gaps", vec![common::evident::gapped()]),
        ("a large map", vec![common::mapped(40, 12), common::mapped(3, 8)]),
    ]
}

/// The longest on average has not the longest maximum.
const LEGS: [(&str, f64, i64); 4] = [
    ("interrupt", 10_000.0, 99_000),
    ("wakeup", 500.25, 1_000),
    ("switch", 30_000.0, 64_000),
    ("a leg with a name that is much longer than there is room for it in a table", 4_000.0, 9_000),
];

const LOADS: [&str; 9] = [
    "none",
    "hackbench",
    "process:jobs=1,tree=2,depth=3",
    "process:jobs=1,tree=2,depth=4",
    "copy+blockio:size=512",
    "paper+flood",
    "cmd:a program with a name that is much longer than any line of a figure can be",
    "fork",
    "untar",
];

fn elements<'a>(document: &'a roxmltree::Document<'a>, name: &str) -> Vec<roxmltree::Node<'a, 'a>> {
    let nodes = document.descendants();
    nodes.filter(|n| n.has_tag_name(("http://www.w3.org/2000/svg", name))).collect()
}

fn of_class(svg: &str, class: &str) -> usize {
    let document = roxmltree::Document::parse(svg).unwrap();
    document.descendants().filter(|node| node.attribute("class") == Some(class)).count()
}

fn named<'a>(figures: &'a [Figure], start: &str) -> &'a Figure {
    figures.iter().find(|one| one.name.starts_with(start)).unwrap_or_else(|| panic!("no {start}"))
}

#[test]
fn every_figure_is_valid_and_drawn() {
    let figures = figures(&two());
    // Ranges, a distribution for each of 2 probes, a histogram for each of 2 x 4 cells, and a
    // timeline, return levels and the threads of 2 x 3 of them, which are longer and have several
    // threads; 2 are long enough for the extremal index.
    assert_eq!(figures.len(), 1 + 2 + 8 + 6 + 6 + 6 + 2);
    for figure in &figures {
        let (name, svg) = (&figure.name, figure.svg());
        let document = roxmltree::Document::parse(&svg).unwrap_or_else(|e| panic!("{name}: {e}"));
        for element in ["title", "desc"] {
            assert!(!elements(&document, element).is_empty(), "{name} has no {element}");
        }
        let (element, least) = match name.split('-').next() {
            Some("bars") => ("circle", 2 * 8),
            Some("ccdf") => ("path", 2 * 2),
            Some("histogram" | "threads") => ("path", 5),
            Some("timeline") => ("image", 1),
            Some("returns" | "clusters") => ("circle", 5),
            _ => panic!("{name} is not known"),
        };
        assert!(elements(&document, element).len() >= least, "{name}: too few {element}");
        for node in document.descendants().filter(|n| n.has_attribute("d")) {
            let d = node.attribute("d").unwrap();
            assert!(!d.is_empty() && !d.contains("NaN") && !d.contains("inf"), "{name}: {d}");
        }
    }
}

#[test]
fn a_map_shows_what_was_around_the_worst_sample() {
    let mut run = common::mapped(2, 3);
    let without = figures(&[common::standard("6.1.0", "rt", 1.0)]);
    assert!(without.iter().all(|figure| !figure.name.starts_with("cpus")));
    let figures = figures(&[run.clone()]);
    let map = named(&figures, "cpus-0-00-cpumap");
    assert!(map.title.starts_with("Who had which CPU, 40 ms around the longest activation"));
    // Three actors and their marks in the legend.
    let svg = map.svg();
    assert_eq!(of_class(&svg, "actor"), 6);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let of_actor = |node: &roxmltree::Node<'_, '_>| node.attribute("class") == Some("actor");
    let paths = document.descendants().filter(of_actor).filter_map(|node| node.attribute("d"));
    // 40 turns of each CPU, one of which may be left out.
    let turns: usize = paths.map(|d| d.matches('M').count()).sum();
    assert!((2 * 38 + 3..=2 * 41 + 3).contains(&turns), "{turns}");
    let worst = primaries(&mut run.cells).flat_map(|series| series.outliers.clone());
    let worst = worst.max_by_key(|sample| (sample.latency, std::cmp::Reverse(sample.at))).unwrap();
    let from = worst.at - u64::try_from(worst.latency).unwrap() / 2 - 20 * MS;
    let axis = format!("time since {} after the start", human_ns(from.cast_signed()));
    assert!(map.texts().iter().any(|text| text.text.starts_with(&axis)), "{axis}: {map:?}");
}

/// Left and right end of every part of the bars, bar by bar.
fn bars(figure: &Figure) -> Vec<Vec<[f64; 2]>> {
    let svg = figure.svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let mut bars: Vec<(f64, Vec<[f64; 2]>)> = Vec::new();
    for part in document.descendants().filter(|n| n.attribute("class") == Some("part")) {
        let d = part.attribute("d").unwrap();
        let places: Vec<f64> =
            d.split(['M', 'L', 'H', 'V', 'Z', ' ', ',']).filter_map(|p| p.parse().ok()).collect();
        let [left, top, right] = places[..3] else { panic!("{d}") };
        match bars.last_mut().filter(|(at, _)| at.to_bits() == top.to_bits()) {
            Some((_, parts)) => parts.push([left, right]),
            None => bars.push((top, vec![[left, right]])),
        }
    }
    bars.into_iter().map(|(_, parts)| parts).collect()
}

/// The parts of a bar follow each other, and their lengths have these proportions.
fn check_bar(bar: &[[f64; 2]], lengths: &[f64]) {
    assert_eq!(bar.len(), lengths.len(), "{bar:?}");
    assert!(bar.windows(2).all(|pair| pair[0][1].to_bits() == pair[1][0].to_bits()), "{bar:?}");
    let unit = (bar[bar.len() - 1][1] - bar[0][0]) / lengths.iter().sum::<f64>();
    for ([left, right], length) in bar.iter().zip(lengths) {
        assert!((right - left - length * unit).abs() < 0.2, "{bar:?} {lengths:?}");
    }
}

fn bold_values(figure: &Figure) -> Vec<String> {
    let svg = figure.svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts = elements(&document, "text").into_iter();
    let bold = texts.filter(|n| n.has_attribute("font-weight") && !n.has_attribute("aria-hidden"));
    let inside = bold.filter(|n| n.attribute("class") != Some("title"));
    inside.filter_map(|n| n.text().map(str::to_owned)).collect()
}

#[test]
fn a_bar_of_legs_adds_their_means_up_in_the_order_of_time() {
    let run = one("anything", "none", 1, None);
    let without = figures(std::slice::from_ref(&run));
    assert!(without.iter().all(|one| !one.name.starts_with("breakdown")));
    let figures = figures(&[with_parts(run, &LEGS)]);
    let figure = named(&figures, "breakdown-anything");
    assert_eq!(figure.title, "What the mean activation consists of · anything");
    let bars = bars(figure);
    assert_eq!(bars.len(), 1);
    check_bar(&bars[0], &LEGS.map(|(_, mean, _)| mean));
    // The sum, and the longest maximum, which is not that of the longest mean.
    assert_eq!(bold_values(figure), ["44.5 us in all", "anything · idle", "99.0 us"]);
    let has = |text: &str| figure.texts().iter().any(|one| one.text.starts_with(text));
    assert!(has("switch 30.0 us") && has("wakeup") && !has("aside"), "{figure:?}");
    assert!(has("The legs are those of 11,993 of 12,000 activations."), "{figure:?}");
}

#[test]
fn legs_of_all_loads_and_runs_share_an_axis() {
    let half = LEGS.map(|(name, mean, max)| (name, mean / 2.0, max));
    let [first, second] = two();
    let cells = first.run.cells.iter().filter_map(Cell::latency);
    let wakeups = cells.filter(|latency| latency.probe == "wakeup").count();
    let figures = figures(&[with_parts(first, &LEGS), with_parts(second, &half)]);
    assert_eq!(figures.iter().filter(|one| one.name.starts_with("breakdown")).count(), 2);
    let bars = bars(named(&figures, "breakdown-wakeup"));
    assert_eq!(bars.len(), 2 * wakeups);
    let length = |bar: &[[f64; 2]]| bar[bar.len() - 1][1] - bar[0][0];
    for pair in bars.chunks(2) {
        assert!((length(&pair[0]) - 2.0 * length(&pair[1])).abs() < 0.2, "{pair:?}");
    }
}

#[test]
fn kernels_have_the_legs_of_all_their_runs() {
    let runs = common::experiment(4, 10).into_iter().map(|run| with_parts(run, &LEGS));
    let figures = figures(&runs.collect::<Vec<_>>());
    let figure = named(&figures, "breakdown-");
    let bars = bars(figure);
    assert_eq!(bars.len(), 2 * 4);
    bars.iter().for_each(|bar| check_bar(bar, &LEGS.map(|(_, mean, _)| mean)));
    let has = |text: &str| figure.texts().iter().any(|one| one.text.contains(text));
    assert!(has("4 runs pooled") && has("of 40,000 activations."), "{figure:?}");
}

#[test]
fn the_actor_that_had_the_cpus_longest_comes_first() {
    let mut run = one("anything", "none", 1, None);
    let had = |cpu, from, ns, actor| Interval { cpu, from, to: from + ns, actor };
    run.cells[0].intervals = vec![
        had(0, 0, 10 * MS, 0),
        had(0, 20 * MS, 20 * MS, 1),
        had(3, 0, 5 * MS, 1),
        had(3, 5 * MS, 12 * MS, 0),
        had(3, 20 * MS, MS, 2),
        had(3, 50 * MS, 5 * MS, 1),
    ];
    let names = ["interrupt", "softirq RCU", "a thread"].map(str::to_owned);
    run.cells[0].actors = (0..).zip(names).collect();
    let all = figures(&[run]);
    let figure = named(&all, "actors-0-00-anything");
    let bars = bars(figure);
    assert_eq!(bars.len(), 2);
    check_bar(&bars[0], &[20.0, 10.0]);
    check_bar(&bars[1], &[10.0, 12.0, 1.0]);
    let texts: Vec<_> = figure.texts().into_iter().map(|text| text.text).collect();
    let rows =
        ["softirq RCU", "30.000 ms", "3", "20.000 ms", "interrupt", "22.000 ms", "2", "12.000 ms"];
    assert!(texts.windows(rows.len()).any(|found| found == rows), "{texts:?}");
    assert_eq!(bold_values(figure), ["20.000 ms"]);
    let none = figures(&[one("anything", "none", 1, None)]);
    assert!(none.iter().all(|one| !one.name.starts_with("actors")));
}

#[test]
fn a_bar_has_a_few_actors_and_all_others_as_one() {
    let all = figures(&[common::mapped(40, 12)]);
    let figure = named(&all, "actors-0-00-cpumap");
    let bars = bars(figure);
    assert_eq!(bars.len(), 32);
    assert!(bars.iter().all(|bar| bar.len() == 8 + 1));
    for text in ["4 others", "8 more CPUs are not shown"] {
        assert!(figure.texts().iter().any(|one| one.text == text), "no {text}");
    }
}

/// What authors use knows no custom properties, media queries or style sheets.
#[test]
fn a_file_has_its_colours_and_sizes_written_out() {
    for figure in every_kind().iter().flat_map(|(_, runs)| figures(runs)) {
        let (name, svg) = (&figure.name, figure.svg());
        for foreign in ["var(", "@media", "<style", "style=", "url(", "em\"", "%\""] {
            assert!(!svg.contains(foreign), "{name}: {foreign}");
        }
        let document = roxmltree::Document::parse(&svg).unwrap();
        let root = document.root_element();
        let size = |name: &str| root.attribute(name).unwrap().parse::<f64>().unwrap();
        assert!((size("width") - WIDTH).abs() < 0.1 && size("height") > figure.height(), "{name}");
        for node in document.descendants().filter(|n| n.has_attribute("fill")) {
            let fill = node.attribute("fill").unwrap();
            assert!(fill == "none" || fill.starts_with('#'), "{name}: {fill}");
        }
        for element in ["path", "circle", "text"] {
            let bare = elements(&document, element).into_iter().find(|n| !n.has_attribute("fill"));
            assert!(bare.is_none(), "{name}: {bare:?}");
        }
    }
}

#[test]
fn no_two_texts_collide_and_none_is_cut_off() {
    for (kind, runs) in every_kind() {
        figures(&runs).iter().for_each(|figure| check_texts(kind, figure));
    }
}

#[test]
fn titles_and_names_are_whole_wherever_they_have_room() {
    let runs: Vec<_> = every_kind().into_iter().filter(|(kind, _)| *kind == "many").collect();
    let figures = figures(&runs[0].1);
    for load in ["depth=3", "depth=4"] {
        // The title of a file is in one line or several.
        let histogram = figures
            .iter()
            .find(|one| one.name.starts_with("histogram") && one.title.contains(load))
            .unwrap();
        let svg = histogram.svg();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let mut texts = elements(&document, "text").into_iter();
        let is_whole = |line: &str| line.contains(load);
        let drawn = texts.any(|text| {
            text.attribute("class") == Some("title") && text.text().is_some_and(is_whole)
        });
        assert!(drawn, "the title of a histogram lacks {load}");
        for kind in ["bars", "ccdf"] {
            let texts = named(&figures, kind).texts();
            assert!(texts.iter().any(|text| text.text.contains(load)), "{kind} lacks {load}");
        }
    }
}

fn ticks(figure: &Figure) -> Vec<String> {
    let svg = figure.svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let ticks = document.descendants().filter(|n| n.attribute("class") == Some("tick"));
    ticks.map(|n| format!("{:?} {:?}", n.attribute("x"), n.text())).collect()
}

#[test]
fn every_cell_of_a_probe_has_the_same_axis_and_begins_where_its_data_do() {
    let figures = figures(&two());
    let of = |probe: &str| -> Vec<Vec<String>> {
        let mine = figures.iter().filter(|one| {
            (one.name.starts_with("histogram") || one.name.starts_with("threads"))
                && one.title.contains(probe)
        });
        mine.map(ticks).collect()
    };
    for probe in ["wakeup", "clock"] {
        let all = of(probe);
        assert!(all.len() >= 2 && all[0].len() >= 3, "{all:?}");
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
        // Figures below each other have the same latency at the same place.
        let ccdf = ticks(named(&figures, &format!("ccdf-{probe}")));
        assert_eq!(ccdf, all[0]);
    }
    // A reading of the clock takes 21 ns, a wake-up 14 us: neither stretches the other's axis.
    assert!(of("wakeup")[0].iter().any(|tick| tick.contains("10 us")));
    assert!(!of("wakeup")[0].iter().any(|tick| tick.contains("ns")));
    assert!(of("clock")[0].iter().any(|tick| tick.contains("20 ns")));
}

#[test]
fn a_few_early_samples_do_not_stretch_the_axis() {
    let kinds = every_kind();
    let (_, runs) = kinds.iter().find(|(kind, _)| *kind == "early").unwrap();
    let labels = ticks(named(&figures(runs), "histogram-0-00"));
    assert!(labels[0].contains("< 10 us"), "{labels:?}");
    assert!(!labels.iter().any(|label| label.contains("ns")), "{labels:?}");
}

#[test]
fn red_is_what_missed_its_deadline() {
    let on_time = one("wakeup", "hackbench", 2, Some(10 * MS));
    for figure in figures(&[on_time, common::standard("6.1", "rt", 1.0)]) {
        assert!(!figure.svg().contains(RED), "{} is red without a miss", figure.name);
    }
    let late = one("wakeup", "hackbench", 2, Some(30_000));
    for figure in figures(&[late]).iter().filter(|one| !one.name.starts_with("ccdf")) {
        assert!(figure.svg().contains(RED), "{} is not red", figure.name);
    }
    let measured = one("wakeup", "hackbench", 2, None);
    for figure in figures(&[measured]) {
        assert!(!figure.svg().contains(RED), "{} is red without a deadline", figure.name);
    }
}

#[test]
fn a_cell_of_a_few_seconds_has_no_timeline() {
    let mut spec = one("wakeup", "none", 1, None);
    assert!(spec.run.cells[0].duration_ns >= 10_000_000_000);
    assert_eq!(left_out(std::slice::from_ref(&spec)), None);
    spec.run.cells[0].duration_ns = 2_000_000_000;
    spec.cells[0].threads[0].series[0].blocks.truncate(2);
    let runs = [spec];
    assert!(figures(&runs).iter().all(|figure| !figure.name.starts_with("timeline")));
    assert!(left_out(&runs).unwrap().contains("no timeline"));
    assert!(punctual_report::html(&runs, &Default::default()).contains(left_out(&runs).unwrap()));
}

#[test]
fn every_figure_of_made_up_latencies_says_so() {
    let measured = one("wakeup", "none", 2, None);
    let all = figures(&[made_up(measured.clone())]);
    assert!(all.len() >= 5);
    for figure in &all {
        assert!(figure.title.starts_with("SIMULATED · "), "{}: {}", figure.name, figure.title);
        assert!(figure.svg().contains(">SIMULATED · "), "{}: not drawn", figure.name);
    }
    assert!(
        figures(std::slice::from_ref(&measured)).iter().all(|f| !f.title.contains("SIMULATED"))
    );
    let mut mixed = measured.clone();
    mixed.run.cells.extend(made_up(measured.clone()).run.cells);
    mixed.cells.extend(measured.cells);
    let mixed = figures(&[mixed]);
    assert!(named(&mixed, "bars").title.starts_with("in part SIMULATED · "));
    assert!(!named(&mixed, "histogram-0-00").title.contains("SIMULATED"));
    assert!(named(&mixed, "histogram-0-01").title.starts_with("SIMULATED · "));
}

#[test]
fn an_idle_cell_has_no_strip_of_work() {
    let mut idle = one("wakeup", "none", 1, None);
    let busy = one("wakeup", "hackbench", 1, None);
    // Its record has the counter of the load all the same, at zero.
    idle.cells[0].work =
        busy.cells[0].work.iter().map(|(s, part, _)| (*s, *part, vec![0])).collect();
    let (idle, busy) = (figures(&[idle]), figures(&[busy]));
    let strips = |figures: &[Figure]| of_class(&named(figures, "timeline").svg(), "work");
    assert_eq!((strips(&idle), strips(&busy)), (0, 1));
    assert!(named(&idle, "timeline").title.contains("idle"));
}

#[test]
fn strips_of_work_reach_the_end_of_the_cell() {
    let mut run = one("wakeup", "hackbench", 1, None);
    // As in a real run, whose last second is not recorded.
    let last = run.cells[0].work.iter().map(|(second, _, _)| *second).max().unwrap();
    run.cells[0].work.retain(|(second, _, _)| *second < last);
    let end = |run: &LoadedRun| {
        let svg = named(&figures(std::slice::from_ref(run)), "timeline").svg();
        let strip = svg.split("class=\"work\"").nth(1).unwrap();
        let d = strip.split(" d=\"").nth(1).unwrap().split('"').next().unwrap();
        let places = d
            .split(['M', 'H', 'V', 'Z', 'L'])
            .filter_map(|part| part.split(' ').next()?.parse::<f64>().ok());
        (places.fold(0.0, f64::max), svg.contains("hatched"))
    };
    let whole = (680.0, false);
    assert_eq!(end(&run), whole);
    // What was done in it is in the sum; without a sum it is not known.
    run.run.cells[0].load_work[0].counters.clear();
    assert!(end(&run).0 < 640.0);
}

#[test]
fn every_thread_has_a_line_and_its_maximum() {
    for threads in [2_u32, 9, 64] {
        let run = one("wakeup", "paper", threads, Some(30_000));
        let figures = figures(std::slice::from_ref(&run));
        let figure = named(&figures, "threads");
        let svg = figure.svg();
        let number = usize::try_from(threads).unwrap();
        // A line in the plot and a piece of it in the box.
        assert_eq!(of_class(&svg, "thread"), 2 * number, "{threads}");
        assert_eq!(of_class(&svg, "maximum"), number, "{threads}");
        let document = roxmltree::Document::parse(&svg).unwrap();
        let all = &run.run.cells[0].latency().unwrap().threads;
        let worst = all.iter().max_by_key(|thread| thread.stats.max).unwrap();
        let max = punctual_core::units::human_ns(worst.stats.max.unwrap());
        let bold: Vec<_> = elements(&document, "text")
            .into_iter()
            .filter(|n| n.attribute("class") == Some("maximum") && n.has_attribute("font-weight"))
            .filter_map(|n| n.text())
            .collect();
        assert_eq!(bold, [format!("CPU {}  {max}", worst.placement.cpu.unwrap())]);
    }
}

#[test]
fn the_maxima_of_very_many_threads_are_side_by_side() {
    let run = one("wakeup", "paper", 65, Some(30_000));
    let figures = figures(std::slice::from_ref(&run));
    let svg = named(&figures, "threads").svg();
    assert_eq!(of_class(&svg, "dot"), 65);
    assert_eq!(of_class(&svg, "thread"), 0);
}

#[test]
fn pulses_have_a_figure_of_both_edges_and_nothing_else_has() {
    let run = one("anything", "none", 1, None);
    let drawn = |run: &LoadedRun| figures(std::slice::from_ref(run));
    assert!(drawn(&run).iter().all(|one| !one.name.starts_with("persistence")));
    let figures = drawn(&with_ideal(run, &PULSE, "fall"));
    let figure = named(&figures, "persistence");
    let svg = figure.svg();
    assert_eq!(of_class(&svg, "ideal"), 2);
    let document = roxmltree::Document::parse(&svg).unwrap();
    assert_eq!(elements(&document, "image").len(), 1);
    assert!(
        svg.contains("12,000 pulses over each other") && svg.contains("ends at 50 us"),
        "{svg}"
    );
}

#[test]
fn a_timeline_of_intervals_has_the_ideal_the_limit_and_the_parts() {
    let run = one("anything", "none", 1, None);
    let of = |run: &LoadedRun| {
        let svg = named(&figures(std::slice::from_ref(run)), "timeline").svg();
        let lines = ["ideal", "limit", "part"].map(|class| of_class(&svg, class));
        (lines, ["ideal 20 us", "limit 60 ms", "loop, max"].map(|text| svg.contains(text)))
    };
    assert_eq!(of(&run), ([0; 3], [false; 3]));
    // Each line is drawn, and named.
    assert_eq!(of(&with_ideal(run, &INTERVAL, "loop")), ([2; 3], [true; 3]));
}

#[test]
fn a_cell_of_one_thread_has_no_figure_of_threads() {
    let figures = figures(&[one("wakeup", "paper", 1, None)]);
    assert!(figures.iter().all(|one| !one.name.starts_with("threads")));
}

/// PDF and PNG, as far as can be seen without a program that draws them.
#[test]
fn paper_has_forms_of_its_own() {
    let runs = two();
    let figures = figures(&runs);
    for figure in [named(&figures, "bars"), named(&figures, "timeline-1-02")] {
        let pdf = figure.pdf().unwrap();
        assert!(pdf.starts_with(b"%PDF-1.4\n") && pdf.ends_with(b"%%EOF\n"));
        assert_eq!(pdf, figure.pdf().unwrap(), "equal figures give equal bytes");
        let text = String::from_utf8_lossy(&pdf);
        assert_eq!(text.matches("/FontFile2").count(), 2, "the typefaces are embedded");
        // Every object is where the table says.
        let table = text.rfind("\nxref\n").is_some();
        assert!(table);
        let start: usize =
            text.rsplit("startxref\n").next().unwrap().lines().next().unwrap().parse().unwrap();
        assert!(pdf[start..].starts_with(b"xref\n"));
        let rows = String::from_utf8_lossy(&pdf[start..]).into_owned();
        let places = rows.lines().filter(|line| line.ends_with(" n "));
        for (number, row) in places.enumerate() {
            let at: usize = row[..10].parse().unwrap();
            assert!(pdf[at..].starts_with(format!("{} 0 obj", number + 1).as_bytes()), "{row}");
        }
        let png = figure.png().unwrap();
        let size = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert!(png.starts_with(b"\x89PNG") && size(16) == 1_440 && size(20) > 400);
    }
}

#[test]
fn replicates_are_drawn_by_kernel() {
    let runs = common::experiment(4, 10);
    let figures = figures(&runs);
    let of = |kind: &str| figures.iter().filter(|one| one.name.starts_with(kind)).count();
    // Two cells: a distribution for each, a histogram and a timeline for each kernel too.
    assert_eq!(["spread", "ccdf", "histogram", "timeline", "bars"].map(of), [1, 2, 8, 8, 0]);
    let svg = named(&figures, "spread").svg();
    // Every run of every cell has its maximum and its average, and the legend has one; that of
    // late ones too.
    let classes = ["dot", "mean", "median"].map(|class| of_class(&svg, class));
    assert_eq!(classes, [2 * 16 + 2, 2 * 16 + 1, 2 * 4 + 1]);
    assert!(svg.contains("deadline 200 us"));
    for figure in &figures {
        let (name, svg) = (&figure.name, figure.svg());
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
        if name.starts_with("ccdf") {
            assert_eq!(of_class(&svg, "curve"), 2 * 4, "{name}: a curve and its legend each");
        }
    }
}

#[test]
fn a_kernel_has_the_samples_of_all_its_runs() {
    let runs = common::experiment(4, 10);
    let rt = runs.iter().filter(|run| run.run.kernel.preemption == Model::Rt);
    let cells: Vec<_> = rt.map(|run| &run.run.cells[1]).collect();
    let max = cells.iter().map(|cell| cell.max_ns().unwrap()).max().unwrap();
    let worst = cells.iter().position(|cell| cell.max_ns() == Some(max)).unwrap();
    let figures = figures(&runs);
    let histogram = named(&figures, "histogram-3-01").svg();
    assert!(histogram.contains("40,000 samples from"));
    assert!(histogram.contains(&format!("max {}", punctual_core::units::human_ns(max))));
    let timeline = named(&figures, "timeline-3-01").svg();
    assert!(timeline.contains("(worst of 4 runs)") && timeline.contains("10,000 samples over"));
    assert!(timeline.contains(&format!("20261120T170003Z-lab-rt-r{worst}")));
}

#[test]
fn extreme_latencies_stay_on_the_axes() {
    for (low, high) in
        [(-1, 0), (0, 0), (1, 1), (i64::MIN, i64::MAX), (-5_000, -4_000), (i64::MAX, i64::MAX)]
    {
        let mut run = common::standard("6.1.0", "rt", 1.0);
        for series in primaries(&mut run.cells) {
            let mut histogram = punctual_core::histogram::SignedHistogram::new();
            histogram.record(low);
            histogram.record(high);
            series.histogram = Some(histogram.sparse());
            for block in &mut series.blocks {
                block.coarse = vec![(punctual_core::block::coarse_bin(low), 1)];
                (block.moments.min, block.moments.max) = (low, high);
            }
        }
        for cell in &mut run.run.cells {
            let stats = &mut latency(cell).stats;
            (stats.min, stats.max, stats.avg) = (Some(low), Some(high), Some(low as f64));
        }
        let mut replicates = vec![run.clone(), run.clone(), run.clone()];
        for (number, run) in replicates.iter_mut().enumerate() {
            run.run.run_id.push_str(&number.to_string());
        }
        for figure in figures(&[run]).into_iter().chain(figures(&replicates)) {
            let (name, svg) = (&figure.name, figure.svg());
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name} of {low} and {high}");
            let document = roxmltree::Document::parse(&svg).unwrap();
            for x in document
                .descendants()
                .filter_map(|n| n.attribute("x").or(n.attribute("cx")))
                .filter_map(|x| x.parse::<f64>().ok())
            {
                assert!((0.0..=720.0).contains(&x), "{name} of {low} and {high}: {x}");
            }
        }
    }
}
