//! Aimed releases: every output says the same, fits, and lets no foreign name through.

mod common;

use common::aims::{self, cell, run, section, target};
use proptest::prelude::*;
use punctual_core::aimed::{AimedCell, AimedRun, Course, Shot, Target};
use punctual_core::preemption::Model;
use punctual_core::sections::Section;
use punctual_report::aimed::{figures, page, table, text};
use unicode_width::UnicodeWidthStr;

fn both() -> [AimedRun; 2] {
    [aims::none(), aims::rt()]
}

fn one(run: &AimedRun) -> &[AimedRun] {
    std::slice::from_ref(run)
}

/// The cells of the first line that begins with a name, from `after` on.
fn row<'a>(text: &'a str, after: &str, name: &str) -> Vec<&'a str> {
    let below = text.split_once(after).unwrap_or_else(|| panic!("{after} in {text}")).1;
    let line = below.lines().find(|line| line.trim_start().starts_with(name));
    let line = line.unwrap_or_else(|| panic!("{name} in {below}"));
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

/// The sentence of a run.
fn said(run: &AimedRun) -> String {
    text(one(run), 900, false).lines().nth(2).unwrap().to_owned()
}

#[test]
fn the_latest_release_comes_first_and_fits_80_columns() {
    insta::assert_snapshot!(text(one(&aims::none()), 80, false));
}

#[test]
fn a_wide_terminal_has_a_line_for_each_target() {
    insta::assert_snapshot!(text(&both(), 120, false));
}

#[test]
fn two_kernels_are_columns_or_rows() {
    insta::assert_snapshot!(format!(
        "{}\n{}",
        table(&both(), 90, false),
        table(&both(), 60, false)
    ));
}

/// Without its style and its figures, which have tests of their own.
#[test]
fn the_page_has_what_the_terminal_has() {
    insta::assert_snapshot!(common::plain(&page(&both()), 3));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let many: Vec<_> = (0..30).map(|_| aims::none()).collect();
    let eight: Vec<_> = (0..8).map(|_| aims::rt()).collect();
    let (both, foreign) = (both(), foreign());
    for width in [60, 80, 120] {
        for all in [&both[..], one(&both[0]), one(&foreign), &many, &eight, &[]] {
            for text in [text(all, width, false), table(all, width, false)] {
                common::check_width(&text, width);
            }
        }
        // What every terminal has of a target, and of the last table.
        let shown = text(&both, width, false);
        assert_eq!(shown.matches("measured  difference\n").count(), 4, "{width}: {shown}");
        let plain = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in ["590.1 us 591.7 us +1.6 us", "437.0 us 591.7 us 1.35", "copy_pte_range"] {
            assert!(plain.contains(words), "{width}: {words} in {shown}");
        }
    }
}

#[test]
fn the_sentence_names_the_section_and_what_samples_found() {
    let latest = "latest: 591.7 us, aimed at a section of 571.2 us from copy_pte_range to \
                  syscall_exit_to_user_mode under hackbench";
    let samples = "; 2,000 samples found at most 437.0 us";
    let mut run = aims::none();
    assert_eq!(said(&run), format!("{latest}{samples}"));
    let bold = text(one(&run), 900, true);
    assert!(bold.contains(&format!("\u{1b}[1m{latest}{samples}\u{1b}[0m")), "{bold}");
    assert!(page(one(&run)).contains(&format!("<b>{}.</b>", said(&run).replace(" us", " µs"))));
    // Of two as late the first.
    run.cells[0].targets[2].measured = Shot::Measured { run: String::new(), latency_ns: 591_700 };
    run.cells[1].targets[0].measured = run.cells[0].targets[2].measured.clone();
    assert_eq!(said(&run), format!("{latest}{samples}"));
    (run.cells[0].samples, run.cells[0].sampled_max_ns) = (1, Some(437_000));
    assert_eq!(said(&run), format!("{latest}; 1 sample found at most 437.0 us"));
    run.cells[0].sampled_max_ns = None;
    assert_eq!(said(&run), latest);
    run.cells[0].load = "none".to_owned();
    assert_eq!(said(&run), latest.replace("under hackbench", "without a load"));
}

#[test]
fn the_sentence_says_if_samples_were_later_or_nothing_was_measured() {
    let mut run = aims::none();
    run.cells[0].sampled_max_ns = Some(591_701);
    assert_eq!(
        said(&run),
        "latest: 591.7 us, the largest of 2,000 samples under hackbench; aimed releases took at \
         most 591.7 us"
    );
    run.cells[0].sampled_max_ns = Some(591_700);
    assert!(said(&run).starts_with("latest: 591.7 us, aimed at"));
    run.cells.iter_mut().for_each(|cell| cell.targets.clear());
    assert_eq!(
        said(&run),
        "latest: 591.7 us, the largest of 2,000 samples under hackbench; no aimed release was \
         measured"
    );
    assert_eq!(text(one(&run), 80, false).matches("  no section was aimed at\n").count(), 2);
    assert_eq!(page(one(&run)).matches("<p>No section was aimed at.</p>").count(), 2);
    run.cells.iter_mut().for_each(|cell| cell.sampled_max_ns = None);
    assert_eq!(said(&run), "no release was measured");
}

#[test]
fn latencies_alone_belong_to_another_course() {
    // Those of the course of the samples come first, even if they are not the latest.
    let mut run = aims::rt();
    let latest = "latest: 47.1 us, aimed at a section of 28.5 us from scsi_queue_rq to \
                  scsi_queue_rq under hackbench; 2,000 samples found at most 36.6 us";
    let alone = "52.3 us alone: without the other releases";
    assert_eq!(said(&run), format!("{latest}; {alone}"));
    let belong = "These latencies belong to another course than the samples.";
    for width in [60, 80, 120] {
        let shown = text(one(&run), width, false);
        // Once in the sentence, which may be broken there, then with the cell and the last table.
        let plain = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(plain.matches("alone: without the other releases").count(), 3, "{shown}");
        assert_eq!(plain.matches(belong).count(), 2, "{shown}");
        assert_eq!(row(&shown, "ratio\n", "wakeup @ hackbench @ 2s, alone")[1..].len(), 3);
    }
    let shown = page(one(&run));
    let head = "<h2>wakeup @ hackbench @ 2s, alone: without the other releases</h2>";
    assert!(shown.contains(&format!("{head}<p>{belong}</p>")), "{shown}");
    let later = run.cells[1].clone();
    run.cells[1].targets.remove(0);
    assert_eq!(said(&run), latest, "an equal one is not said");
    run.cells = vec![later];
    assert_eq!(
        said(&run),
        "latest: 52.3 us, aimed at a section of 33.0 us from scsi_queue_rq to scsi_queue_rq under \
         hackbench, alone: without the other releases; in another course, 2,000 samples found at \
         most 36.6 us"
    );
    run.cells[0].sampled_max_ns = Some(60_000);
    assert!(
        said(&run)
            .ends_with("aimed releases took at most 52.3 us, alone: without the other releases")
    );
    // Neither the text nor the table of a run without one speaks of it.
    let without = aims::none();
    for shown in [text(one(&without), 80, false), page(one(&without))] {
        assert!(!shown.contains("alone") && !shown.contains("another course"), "{shown}");
    }
}

#[test]
fn a_target_says_what_was_predicted_and_measured() {
    let made = aims::none();
    let shown = text(one(&made), 200, false);
    let head = ["section", "from", "to", "release", "at", "predicted", "measured", "difference"];
    assert_eq!(row(&shown, "437.0 us\n", "section"), head);
    let ends = ["copy_pte_range", "syscall_exit_to_user_mode"];
    let first = [ends[0], ends[1], "1,204", "1.204 s", "590.1 us", "591.7 us", "+1.6 us"];
    assert_eq!(row(&shown, "difference\n", "571.2 us")[1..], first);
    let failed = [ends[0], ends[1], "804", "804.204 ms", "538.9 us", "failed", "-"];
    assert_eq!(row(&shown, "difference\n", "520.0 us")[1..], failed);
    let after = "520.0 us  copy_pte_range   syscall_exit_to_user_mode      804  804.204 ms   \
                 538.9 us    failed           -\n";
    let below = shown.split_once(after).unwrap_or_else(|| panic!("{shown}")).1;
    let why = "sample 803 came out at 12.4 us instead of 12.3 us";
    assert_eq!(below.lines().next().map(str::trim), Some(why));
    // Earlier than predicted, by 2.45 us, which is rounded up.
    assert_eq!(row(&shown, "difference\n", "431.8 us")[5..], ["450.7 us", "448.3 us", "-2.5 us"]);
    let narrow = text(one(&made), 80, false);
    assert_eq!(row(&narrow, "difference\n", "571.2 us")[1..], first[4..]);
    let place = format!("release 1,204 at 1.204 s, from {} to {}", ends[0], ends[1]);
    assert!(narrow.split_whitespace().collect::<Vec<_>>().join(" ").contains(&place), "{narrow}");
    let page = page(one(&made));
    assert!(page.contains(&format!("<div>{}</div>", why.replace(" us", " µs"))), "{page}");
    assert!(page.contains("<td class=\"n max\">591.7 µs</td><td class=\"n\">+1.6 µs</td>"));
    assert!(page.contains("<td class=\"n doubt\">failed</td><td class=\"n\">–</td>"));
    assert!(page.contains("<span class=\"soft\">measured in 20261122T090003Z-aim-1204</span>"));
}

#[test]
fn a_release_that_was_aimed_again_says_so() {
    let mut made = aims::none();
    let targets = &mut made.cells[0].targets;
    let first = targets[0].clone();
    let measured = Shot::Measured { run: "aim1-round2".to_owned(), latency_ns: 594_300 };
    targets.insert(1, Target { predicted_ns: 594_200, round: 2, measured, ..first });
    let again = "round 2: aimed again, in the course of the release above";
    for shown in [text(one(&made), 80, false), text(one(&made), 200, false), page(one(&made))] {
        let plain = shown.replace('µ', "u");
        let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(plain.matches(again).count(), 1, "{shown}");
        let (above, below) = plain.split_once(again).unwrap();
        // It stands below its own numbers, or beside them on the page.
        assert!(above.contains("591.7 us"), "{shown}");
        assert!(above.contains("594.3 us") || below.contains("594.3 us"), "{shown}");
    }
    // All rounds were measured, so the latest of them counts.
    assert!(said(&made).starts_with("latest: 594.3 us, aimed at a section"), "{}", said(&made));
    assert_eq!(made.cells[0].max_ns(), Some(594_300));
    // Files of older versions know one round only.
    let text = serde_json::to_string(&made.cells[0].targets[0]).unwrap();
    let older: Target = serde_json::from_str(&text.replace("\"round\":1,", "")).unwrap();
    assert_eq!(older, made.cells[0].targets[0]);
}

#[test]
fn differences_are_exact_up_to_the_largest_numbers() {
    for (predicted, measured, text) in [
        (1_000, 1_000, "0 ns"),
        (1_000, 1_036, "+36 ns"),
        (u64::MAX, 0, "-9223372036.855 s"),
        (0, u64::MAX, "+9223372036.855 s"),
        (u64::MAX, u64::MAX - 1, "-1 ns"),
    ] {
        let mut made = target(section("a", "b", 5), 2, Some(measured));
        made.predicted_ns = predicted;
        let made = run("6.1.0", Model::None, vec![cell("none", Course::Sampled, 1, vec![made])]);
        let shown = punctual_report::aimed::text(one(&made), 120, false);
        assert_eq!(row(&shown, "difference\n", "5 ns").last(), Some(&text), "{shown}");
    }
}

#[test]
fn what_was_passed_over_is_counted() {
    let rest = "passed over: the CPU was idle both before and after, so the time is not known \
                exactly";
    for (count, words) in [
        (0, None),
        (1, Some("1 longer section was ")),
        (1_204, Some("1,204 longer sections were ")),
    ] {
        let mut run = aims::rt();
        run.cells[0].passed_over = count;
        for shown in [text(one(&run), 200, false), page(one(&run))] {
            assert_eq!(shown.contains("passed over"), words.is_some(), "{shown}");
            assert!(words.is_none_or(|words| shown.contains(&format!("{words}{rest}"))), "{shown}");
        }
    }
}

#[test]
fn maxima_stand_side_by_side_with_their_ratio() {
    let mut both = both();
    both[0].cells.push(cell("stress", Course::Sampled, 0, Vec::new()));
    let wide = table(&both, 120, false);
    let heads = ["A sampled", "aimed", "ratio", "B sampled", "aimed", "ratio"];
    assert_eq!(row(&wide, "\n\n", "A sampled"), heads);
    let values = ["437.0 us", "591.7 us", "1.35", "36.6 us", "47.1 us", "1.29"];
    assert_eq!(row(&wide, "ratio\n", "wakeup @ hackbench @ 2s  ")[1..], values);
    assert_eq!(
        row(&wide, "ratio\n", "wakeup @ hackbench @ 2s, alone")[1..],
        ["-", "-", "-", "36.6 us", "52.3 us", "1.43"]
    );
    // Chance was luckier than the aim; and nothing is no part of anything.
    let values = ["24.4 us", "22.9 us", "0.939", "-", "-", "-"];
    assert_eq!(row(&wide, "ratio\n", "wakeup @ idle")[1..], values);
    assert_eq!(row(&wide, "ratio\n", "wakeup @ stress")[1..4], ["0 ns", "-", "-"]);
    let narrow = table(&both, 60, false);
    let below = "wakeup @ hackbench @ 2s\n";
    assert_eq!(row(&narrow, below, "A "), ["A", "437.0 us", "591.7 us", "1.35"]);
    assert_eq!(row(&narrow, below, "B "), ["B", "36.6 us", "47.1 us", "1.29"]);
    assert_eq!(row(&narrow, "wakeup @ idle @ 2s\n", "B "), ["B", "-", "-", "-"]);
    // One run has no letter.
    let single = table(one(&both[0]), 60, false);
    assert_eq!(row(&single, "\n\n", "sampled"), ["sampled", "aimed", "ratio"]);
    assert!(single.starts_with("Linux 6.1.0-56-amd64 PREEMPT_NONE\n"), "{single}");
}

#[test]
fn the_last_table_of_the_text_is_that_of_the_runs() {
    let both = both();
    let alone = table(&both, 80, false);
    let (shown, caveat) = alone.split_once("  ! ").unwrap();
    assert_eq!(caveat, "Every instruction takes the same time.\n");
    assert!(text(&both, 80, false).ends_with(&format!("\n\n{shown}")));
    // One cell of one run has nothing to stand beside.
    let mut run = aims::none();
    assert!(text(one(&run), 80, false).contains("sampled"));
    run.cells.truncate(1);
    assert!(!text(one(&run), 80, false).contains("sampled"));
}

#[test]
fn figures_are_valid_and_no_two_texts_collide() {
    let many: Vec<_> = (0..12).map(|_| aims::rt()).collect();
    let both = both();
    for all in [&both[..], one(&both[0]), &many, one(&foreign())] {
        let figures = figures(all);
        assert!(figures.len() > 1);
        common::check_figures("aimed", &figures);
    }
    let figure = &figures(&both)[0];
    assert!(figure.pdf().unwrap().starts_with(b"%PDF-1.4\n"));
    assert!(figure.png().unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn figures_show_every_measured_release_and_the_largest_sample() {
    let figures = figures(&both());
    let names: Vec<_> = figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["aimed-00-hackbench", "aimed-01-none", "aimed-02-hackbench"]);
    let alone = "How late a release can be · wakeup @ hackbench @ 2s, alone: without the other \
                 releases";
    assert_eq!(figures[2].title, alone);
    let svg = figures[0].svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    // Class, place and note of the circles that are not of the legend.
    let circles: Vec<(String, f64, String)> = document
        .descendants()
        .filter(|node| node.tag_name().name() == "circle")
        .filter_map(|node| {
            let note = node.children().find(|one| one.tag_name().name() == "title")?.text()?;
            let x = node.attribute("cx")?.parse().ok()?;
            Some((node.attribute("class")?.to_owned(), x, note.to_owned()))
        })
        .collect();
    let of = |class: &str| circles.iter().filter(|one| one.0 == class).collect::<Vec<_>>();
    // The failed one has no place.
    let (dots, spots) = (of("dot"), of("spot"));
    assert_eq!((dots.len(), spots.len()), (2 + 2, 2));
    assert_eq!(
        dots[0].2,
        "PREEMPT_NONE: 591.7 us, aimed at a section of 571.2 us from copy_pte_range to \
         syscall_exit_to_user_mode"
    );
    assert_eq!(spots[0].2, "PREEMPT_NONE: the samples found at most 437.0 us");
    assert!(dots[0].1 > dots[1].1 && dots[1].1 > spots[0].1 && spots[0].1 > dots[2].1);
    // All cells have one axis.
    let axis = |svg: &str| {
        let document = roxmltree::Document::parse(svg).unwrap();
        let ticks = document.descendants().filter(|n| n.attribute("class") == Some("tick"));
        let ticks = ticks.map(|n| format!("{:?} {:?}", n.attribute("x"), n.text()));
        ticks.collect::<Vec<_>>()
    };
    assert!(axis(&svg).len() >= 3);
    assert!(figures.iter().all(|figure| axis(&figure.svg()) == axis(&svg)));
}

#[test]
fn nothing_is_said_of_nothing() {
    assert_eq!([text(&[], 80, false), table(&[], 80, false)], ["", ""]);
    assert!(figures(&[]).is_empty() && page(&[]).ends_with("</html>"));
    let mut empty = cell("none", Course::Alone, 0, Vec::new());
    (empty.samples, empty.sampled_max_ns) = (0, None);
    for cells in [Vec::new(), vec![empty]] {
        let all = [(); 2].map(|()| run("6.1.0", Model::None, cells.clone()));
        for shown in [text(&all, 80, false), page(&all)] {
            assert_eq!(shown.matches("no release was measured").count(), 2, "{shown}");
            assert_eq!(shown.contains("no samples"), !cells.is_empty(), "{shown}");
        }
        assert!(table(&all, 80, false).starts_with("A  Linux 6.1.0 PREEMPT_NONE · "));
        assert!(figures(&all).is_empty());
    }
}

#[test]
fn the_page_loads_nothing_and_every_table_has_heads() {
    let page = page(&both());
    common::check_page(&page, 3, 2);
    assert!(page.contains("437.0 µs"));
}

/// Names as an attacker would have written them, and the largest numbers.
fn foreign() -> AimedRun {
    let bad = "<script>alert(1)</script>\u{1b}[2J\"&\u{202e}\n";
    let mut run = aims::none();
    run.cells.push(cell("stress", Course::Alone, u64::MAX, Vec::new()));
    for (number, cell) in run.cells.iter_mut().enumerate() {
        (cell.key, cell.load) = (format!("{number}{}", bad.repeat(3)), bad.repeat(3));
        (cell.samples, cell.passed_over) = (u64::MAX, u64::MAX);
        for target in &mut cell.targets {
            target.section = section(&bad.repeat(9), bad, u64::MAX);
            (target.number, target.at_ns) = (u64::MAX, u64::MAX);
            match &mut target.measured {
                Shot::Measured { run, latency_ns } => {
                    (*run, *latency_ns) = (bad.repeat(3), u64::MAX);
                }
                Shot::Failed { why } => *why = bad.repeat(30),
            }
        }
    }
    let AimedRun { run_id, run: name, release, caveats, .. } = &mut run;
    for text in [run_id, name, release] {
        *text = bad.repeat(3);
    }
    caveats.push(bad.to_owned());
    run
}

#[test]
fn foreign_names_are_cleaned() {
    let foreign = [foreign(), foreign()];
    let texts = [text(&foreign, 80, false), table(&foreign, 80, false)];
    common::check_foreign(&texts, &page(&foreign), &figures(&foreign));
}

#[test]
fn a_failure_without_a_reason_says_so() {
    let mut run = aims::none();
    run.cells[0].targets[1].measured = Shot::Failed { why: " ".to_owned() };
    for shown in [text(one(&run), 80, false), page(one(&run))] {
        assert!(shown.contains("no reason recorded"), "{shown}");
    }
}

fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..5_000_u64, any::<u64>(), Just(u64::MAX)]
}

fn targets() -> impl Strategy<Value = Target> {
    let section = ([numbers(), numbers()], any::<bool>(), ".{0,40}", ".{0,6}").prop_map(
        |([at_ns, length_ns], exact, from, to)| {
            let made = section(&from, &to, length_ns);
            Section { at_ns: at_ns.cast_signed(), exact, ..made }
        },
    );
    let measured = prop_oneof![
        (".{0,6}", numbers()).prop_map(|(run, latency_ns)| Shot::Measured { run, latency_ns }),
        ".{0,99}".prop_map(|why| Shot::Failed { why }),
    ];
    (section, [numbers(), numbers(), numbers()], any::<u32>(), measured).prop_map(
        |(section, [number, at_ns, predicted_ns], round, measured)| Target {
            section,
            number,
            at_ns,
            predicted_ns,
            round,
            measured,
        },
    )
}

fn runs() -> impl Strategy<Value = AimedRun> {
    let course = prop_oneof![Just(Course::Sampled), Just(Course::Alone)];
    let list = prop::collection::vec(targets(), 0..4);
    let key = prop_oneof![Just("wakeup @ a".to_owned()), ".{0,70}"];
    let counts = [numbers(), numbers()];
    let cell = (key, ".{0,6}", course, counts, prop::option::of(numbers()), list);
    let cell =
        cell.prop_map(|(key, load, course, [samples, passed_over], sampled_max_ns, targets)| {
            AimedCell { key, load, course, samples, sampled_max_ns, passed_over, targets }
        });
    let model = prop::sample::select(Model::ALL.to_vec());
    (prop::collection::vec(cell, 0..3), model, ".{0,6}")
        .prop_map(|(cells, model, release)| run(&release, model, cells))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_panics_whatever_was_recorded(all in prop::collection::vec(runs(), 0..4)) {
        for width in [60, 80, 120] {
            for text in [text(&all, width, false), table(&all, width, false)] {
                let widest = text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
                prop_assert!(widest <= width, "{}", text);
            }
        }
        prop_assert!(page(&all).ends_with("</html>"));
        for figure in figures(&all) {
            let svg = figure.svg();
            prop_assert!(roxmltree::Document::parse(&svg).is_ok(), "{}", svg);
            prop_assert!(!svg.contains("NaN"), "{}", svg);
        }
    }
}
