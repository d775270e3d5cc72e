//! Sections: every output says the same, fits, and lets no foreign name through.

mod common;

use common::sectioned::{self, cell, pair, sections};
use proptest::prelude::*;
use punctual_core::coverage::{Coverage, ExecutedFunction};
use punctual_core::explanation::Hold;
use punctual_core::preemption::Model;
use punctual_core::sections::{CellSections, KindSections, PairSections, Section, Sections};
use punctual_report::sections::{comparison, figures, page, text};
use unicode_width::UnicodeWidthStr;

fn both() -> [Sections; 2] {
    [sectioned::none(), sectioned::rt()]
}

fn one(sections: &Sections) -> &[Sections] {
    std::slice::from_ref(sections)
}

fn empty_kind(how: Hold) -> KindSections {
    KindSections {
        how,
        count: 0,
        total_ns: 0,
        max_ns: 0,
        lengths: Vec::new(),
        over_time: Vec::new(),
        pairs: Vec::new(),
        longest: Vec::new(),
    }
}

#[test]
fn the_longest_section_comes_first_and_fits_80_columns() {
    insta::assert_snapshot!(text(one(&sectioned::none()), 80, false));
}

#[test]
fn two_kernels_stand_side_by_side_where_they_fit() {
    insta::assert_snapshot!(comparison(&both(), 120, false));
}

#[test]
fn two_kernels_stand_below_each_other_where_it_is_narrow() {
    insta::assert_snapshot!(comparison(&both(), 80, false));
}

/// Without its style and its figures, which have tests of their own.
#[test]
fn the_page_has_what_the_terminal_has() {
    insta::assert_snapshot!(common::plain(&page(&both()), 8));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let many: Vec<_> = (0..30).map(|_| sectioned::none()).collect();
    let (both, quiet) = (both(), sectioned::quiet());
    for width in [60, 80, 120] {
        for all in [&both[..], one(&quiet), &many, &[]] {
            for text in [text(all, width, false), comparison(all, width, false)] {
                common::check_width(&text, width);
            }
        }
    }
}

#[test]
fn the_first_sentence_names_the_longest_section_and_its_functions() {
    let mut sections = sectioned::none();
    let kind = &mut sections.cells[0].kinds[1];
    (kind.max_ns, kind.longest[0].length_ns) = (571_200, 571_200);
    let plain = text(one(&sections), 500, false);
    let said = "longest: 571.2 us in which the scheduler is not called, from copy_pte_range to \
                syscall_exit_to_user_mode, most of it clear_page_erms (50 %) and \
                copy_mc_enhanced_fast_string (33 %), in wakeup @ hackbench @ 2s; 2,000 samples \
                found at most 437.0 us";
    assert_eq!(plain.lines().nth(2), Some(said));
    let bold = text(one(&sections), 500, true);
    assert!(bold.contains(&format!("\u{1b}[1m{said}\u{1b}[0m")), "{bold}");
    // Nothing is longer than a section that is as long with interrupts off.
    sections.cells[0].kinds[0].max_ns = 571_200;
    let plain = text(one(&sections), 500, false);
    assert!(plain.contains("\nlongest: 571.2 us with interrupts off, from scsi_queue_rq"));
    // Without the samples of the cell nothing is said of them, and without a list of the longest
    // the pairs know where they are.
    sections.cells[0].sampled_max_ns = None;
    sections.cells[0].kinds[0].longest.clear();
    let plain = text(one(&sections), 500, false);
    let line = plain.lines().nth(2).unwrap();
    assert!(line.ends_with("from scsi_queue_rq to scsi_queue_rq, in wakeup @ hackbench @ 2s"));
}

#[test]
fn what_a_section_means_depends_on_the_model() {
    for (model, words) in [
        (Model::None, "under preempt=none it lasts until the next scheduling point"),
        (Model::Voluntary, "under preempt=voluntary it lasts until the next scheduling point"),
        (Model::Full, "under preempt=full it lasts while preemption or interrupts are off"),
        (Model::Lazy, "for a thread with a real-time policy it lasts while preemption"),
        (Model::Rt, "as below a raw spinlock"),
        (Model::Unknown, "a thread that is woken would wait until it is"),
    ] {
        let sections = Sections { model, ..sectioned::none() };
        for shown in [text(one(&sections), 200, false), page(one(&sections))] {
            assert!(shown.contains(words), "{model}: {shown}");
        }
    }
}

#[test]
fn counts_are_those_of_the_data() {
    let sections = sectioned::none();
    let shown = text(one(&sections), 80, false);
    let row = |text: &str, name: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.trim()
            .split("  ")
            .map(|cell| cell.trim().to_owned())
            .filter(|c| !c.is_empty())
            .collect()
    };
    let table = shown.split_once("  sections ").unwrap().1;
    assert_eq!(row(table, "largest sample"), ["largest sample", "437.0 us"]);
    let kind = &sections.cells[0].kinds[1];
    let cells = row(table, "scheduler not called");
    let share = format!("{:.1} %", kind.total_ns as f64 / 2e9 * 100.0);
    assert_eq!(cells[2..], [share, "7,100".to_owned()]);
    // A whole second of two, and nothing of no time at all.
    let mut made = empty_kind(Hold::Interrupts);
    (made.count, made.total_ns, made.max_ns) = (3, 1_000_000_000, 900_000_000);
    let mut half = sectioned::quiet();
    half.cells[0].kinds = vec![made];
    let table = text(one(&half), 80, false);
    let cells = ["interrupts off", "900.000 ms", "50.0 %", "3"];
    assert_eq!(row(table.split_once("  sections ").unwrap().1, "interrupts off"), cells);
    half.cells[0].watched_ns = 0;
    let table = text(one(&half), 80, false);
    let cells = row(table.split_once("  sections ").unwrap().1, "interrupts off");
    assert_eq!(cells[2..], ["-", "3"]);
}

#[test]
fn a_section_says_when_it_was_and_where() {
    let mut sections = sectioned::none();
    let section = &mut sections.cells[0].kinds[1].longest[0];
    (section.at_ns, section.exact, section.interrupts_off_ns) = (1_204_000_000, true, 18_400);
    let line = "at 1.204 s, from copy_pte_range to syscall_exit_to_user_mode, 18.4 us of it with \
                interrupts off";
    let shown = text(one(&sections), 200, false);
    assert!(shown.contains(line), "{shown}");
    // A deep stack loses its beginning here, and none of it on the page.
    assert!(shown.contains("in … > __x64_sys_clone > ") && !shown.contains("do_syscall_64"));
    let page = page(one(&sections));
    assert!(page.contains("in entry_SYSCALL_64_after_hwframe &gt; do_syscall_64 &gt; "), "{page}");
    sections.cells[0].kinds[1].longest[0].exact = false;
    let shown = text(one(&sections), 200, false);
    assert!(shown.contains(&line.replace("at 1.204 s", "after 1.204 s")), "{shown}");
    // All of a section with interrupts off has them off.
    assert!(!shown.split_once("longest in which").unwrap().0.contains(" of it with "));
}

#[test]
fn what_is_not_listed_is_counted() {
    let mut sections = sectioned::none();
    let list = |count: u64| (0..count).map(pair).collect::<Vec<PairSections>>();
    for (count, last, more) in [
        (10, "begin_9 ", None),
        (11, "begin_9 ", Some("1 more pair of functions\n")),
        (1_244, "begin_9 ", Some("1,234 more pairs of functions\n")),
    ] {
        sections.cells[0].kinds[0].pairs = list(count);
        let shown = text(one(&sections), 80, false);
        assert!(shown.contains(last) && !shown.contains("begin_10 "), "{shown}");
        assert_eq!(shown.contains(" more pair"), more.is_some(), "{shown}");
        assert!(shown.contains(more.unwrap_or("")), "{shown}");
    }
    let page = page(one(&sections));
    assert!(page.contains(">begin_199<") && !page.contains(">begin_200<"));
    assert!(page.contains("<p>1,044 more are in sections.json.</p>"));
    sections.cells[0].kinds[0].pairs = list(200);
    assert!(!punctual_report::sections::page(one(&sections)).contains("more are in"));
    sections.coverage.cells[0].only = (0..201).map(|n| format!("alone_{n}")).collect();
    let page = punctual_report::sections::page(one(&sections));
    assert!(page.contains("alone_199") && !page.contains("alone_200"));
    assert!(page.contains("<p>1 more are in sections.json.</p>"));
}

#[test]
fn what_was_executed_is_said_of_each_cell_and_of_all() {
    let mut sections = sectioned::none();
    let row = |sections: &Sections, name: &str| -> Vec<String> {
        let text = text(one(sections), 100, false);
        let table =
            text.split("What was executed of the kernel's 41,000 functions\n").nth(1).unwrap();
        let line = table.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        let words = line.split("  ").map(str::trim).filter(|word| !word.is_empty());
        words.skip(1).map(str::to_owned).collect()
    };
    assert_eq!(row(&sections, "wakeup @ hackbench"), ["801", "2.0 %", "1", "200", "10,000"]);
    assert_eq!(row(&sections, "wakeup @ idle"), ["802", "2.0 %", "2", "200", "9,999"]);
    assert_eq!(row(&sections, "all cells"), ["803", "2.0 %", "220", "10,700"]);
    let said = |sections: &Sections, sentence: &str| {
        assert!(text(one(sections), 500, false).contains(&format!("\n  {sentence}\n")));
        assert!(page(one(sections)).contains(&format!("<p>{sentence}.</p>")));
    };
    said(
        &sections,
        "8 of 228 functions that take a spin lock or forbid preemption were not executed, such as \
         unreached_0 (12 places), unreached_1 (11 places), unreached_2",
    );
    sections.coverage.unreached.clear();
    said(&sections, "all 228 functions that take a spin lock or forbid preemption were executed");

    // Of one cell there is nothing to be added up, and nothing that others have not executed.
    let alone = sectioned::quiet();
    let shown = text(one(&alone), 80, false) + &page(one(&alone));
    assert!(!shown.contains("all cells") && !shown.contains("that only"), "{shown}");
    assert_eq!(row(&alone, "wakeup @ idle"), ["801", "2.0 %", "-", "200", "10,000"]);
    sections.coverage = Coverage::default();
    let nothing = text(one(&sections), 80, false) + &page(one(&sections));
    assert!(!nothing.contains("executed"), "{nothing}");
}

#[test]
fn functions_that_one_kernel_executed_are_told_by_cell() {
    let mut both = both();
    let executed = &mut both[1].coverage.executed;
    let own = |name: &str| ExecutedFunction { name: name.to_owned(), blocks: vec![1, 0] };
    // What compilers append makes no other function, and only one of the cells executed these.
    executed[0].name.push_str(".constprop.0");
    executed.remove(1);
    executed.extend([own("rt_spin_lock"), own("a.part.0 [m]")]);
    let shown = comparison(&both, 100, false);
    let table = shown.split_once("Functions that one kernel executed\n").unwrap().1;
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|row| row.first() == Some(&"B"))
        .collect();
    assert_eq!(rows[..2], [["B", "2", "1", "800"], ["B", "0", "1", "801"]], "{table}");
    let page = page(&both);
    let has = |text: &str| assert!(page.contains(text), "{text} in {page}");
    has("<p>a.part.0 [m], rt_spin_lock</p>");
    has("<p>both_1</p>");
    // A run by itself has nothing to be compared with.
    let alone = punctual_report::sections::page(one(&both[0])) + &text(one(&both[0]), 80, false);
    assert!(!alone.contains("one kernel executed"), "{alone}");
}

#[test]
fn runs_without_a_cell_are_shown_beside_those_that_have_it() {
    let mut both = both();
    both[0].cells.remove(1);
    both[1].cells[0].kinds.remove(0);
    let shown = comparison(&both, 120, false);
    let lines: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect())
        .collect();
    let row = |name: &str, nth: usize| {
        lines.iter().filter(|row| row.first() == Some(&name)).nth(nth).unwrap()
    };
    assert_eq!(row("interrupts off", 0)[2], "-");
    assert_eq!(row("largest sample", 0)[1..], ["437.0 us", "36.6 us"]);
    assert_eq!(row("interrupts off", 1)[1], "-");
    assert_eq!(row("largest sample", 1)[1..], ["-", "-"]);
    let narrow = comparison(&both, 60, false);
    assert!(narrow.lines().any(|line| line.split_whitespace().eq(["B", "-"])), "{narrow}");
    // Two figures for each of four kinds.
    assert_eq!(figures(&both).len(), 8);
}

#[test]
fn ratios_are_those_of_the_first_run() {
    let mut both = both();
    both[0].cells[0].kinds[1].max_ns = 400_000;
    both[1].cells[0].kinds[1].max_ns = 100_000;
    let shown = comparison(&both, 80, false);
    let below = shown.split_once("hackbench @ 2s · scheduler not called").unwrap().1;
    let row: Vec<_> = below.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(row[..4], ["B", "100.0", "us", "0.250"]);
}

#[test]
fn figures_are_valid_and_no_two_texts_collide() {
    let many: Vec<_> = (0..12).map(|_| sectioned::rt()).collect();
    let both = both();
    for all in [&both[..], one(&both[0]), &many, one(&foreign()), one(&sectioned::quiet())] {
        let figures = figures(all);
        common::check_figures("sections", &figures);
    }
    for figure in figures(&both).into_iter().take(2) {
        assert!(figure.pdf().unwrap().starts_with(b"%PDF-1.4\n"));
        assert!(figure.png().unwrap().starts_with(b"\x89PNG"));
    }
}

/// What one class of shapes is drawn as, with what it says.
fn drawn(svg: &str, class: &str, attribute: &str) -> Vec<(String, String)> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let nodes = document.descendants().filter(|node| node.attribute("class") == Some(class));
    let all = nodes.map(|node| {
        let title = node.children().find(|one| one.tag_name().name() == "title");
        let note = title.and_then(|title| title.text()).unwrap_or("");
        (node.attribute(attribute).unwrap_or("").to_owned(), note.to_owned())
    });
    all.collect()
}

#[test]
fn kernels_are_curves_of_one_figure_and_panels_of_the_other() {
    let figures = figures(&both());
    let named = |name: &str| figures.iter().find(|one| one.name == name).unwrap().svg();
    let lengths = named("lengths-scheduler-00-hackbench");
    let curves = drawn(&lengths, "curve", "d");
    let notes: Vec<_> =
        curves.iter().map(|(_, note)| note.as_str()).filter(|n| !n.is_empty()).collect();
    assert_eq!(notes.len(), 2);
    assert!(
        notes[0].starts_with("A PREEMPT_NONE, max ") && notes[1].starts_with("B PREEMPT_RT, max ")
    );
    let spots: Vec<_> =
        drawn(&lengths, "spot", "cx").into_iter().filter(|(_, n)| !n.is_empty()).collect();
    assert_eq!(spots[0].1, "PREEMPT_NONE: the samples found at most 437.0 us");
    let x = |at: usize| spots[at].0.parse::<f64>().unwrap();
    assert!(x(0) > x(1), "{spots:?}");
    let over_time = named("longest-scheduler-00-hackbench");
    assert_eq!(drawn(&over_time, "sampled", "d").len(), 2 + 1, "one in the legend");
    assert_eq!(drawn(&over_time, "maxline", "d").len(), 2);
    let points: Vec<_> =
        drawn(&over_time, "point", "cx").into_iter().filter(|(_, n)| !n.is_empty()).collect();
    assert_eq!(points.len(), 2 * 4);
    assert!(
        points[0].1.contains(", from copy_pte_range to syscall_exit_to_user_mode"),
        "{points:?}"
    );
    // The second cell of the second run has no sample to compare with.
    assert_eq!(drawn(&named("longest-scheduler-01-none"), "sampled", "d").len(), 1 + 1);
}

#[test]
fn all_figures_have_one_axis_of_lengths() {
    let axes: Vec<Vec<String>> = figures(&both())
        .iter()
        .filter(|figure| figure.name.starts_with("lengths"))
        .map(|figure| {
            let svg = figure.svg();
            let document = roxmltree::Document::parse(&svg).unwrap();
            let ticks = document.descendants().filter(|n| n.attribute("class") == Some("tick"));
            let place =
                |n: roxmltree::Node<'_, '_>| format!("{:?} {:?}", n.attribute("x"), n.text());
            ticks.map(place).collect()
        })
        .collect();
    assert_eq!(axes.len(), 4);
    assert!(axes[0].len() >= 3 && axes.iter().all(|axis| *axis == axes[0]), "{axes:?}");
}

#[test]
fn nothing_is_said_of_nothing() {
    assert_eq!([text(&[], 80, false), comparison(&[], 80, false)], ["", ""]);
    assert!(figures(&[]).is_empty() && page(&[]).ends_with("</html>"));
    let no_cells = sections("6.1.0", Model::None, Vec::new());
    let no_kinds =
        sections("6.1.0", Model::None, vec![cell("wakeup @ none @ 2s", "none", Vec::new())]);
    let quiet = sectioned::quiet();
    for sections in [no_cells, no_kinds, quiet.clone()] {
        let all = [sections.clone(), sections.clone()];
        for shown in [text(one(&sections), 80, false), comparison(&all, 80, false), page(&all)] {
            assert!(shown.contains("no section was found"), "{shown}");
        }
        assert!(figures(&all).is_empty());
    }
    let shown = text(one(&quiet), 80, false);
    let row =
        shown.lines().find(|line| line.starts_with("  interrupts off  ") && line.ends_with(" 0"));
    assert!(row.is_some_and(|row| row.split_whitespace().nth(2) == Some("-")), "{shown}");
    assert!(page(one(&quiet)).contains("<p>interrupts off: no section was found.</p>"));
}

#[test]
fn the_page_loads_nothing_and_every_table_has_heads() {
    let page = page(&both());
    common::check_page(&page, 8, 2);
    assert!(page.contains("437.0 µs"));
}

/// Names as an attacker would have written them.
fn foreign() -> Sections {
    let bad = "<script>alert(1)</script>\u{1b}[2J\"&\u{202e}\n";
    let mut sections = sectioned::none();
    for kind in sections.cells.iter_mut().flat_map(|cell| &mut cell.kinds) {
        for pair in &mut kind.pairs {
            (pair.from, pair.to) = (bad.to_owned(), bad.to_owned());
        }
        for section in &mut kind.longest {
            (section.from, section.to) = (bad.repeat(9), bad.to_owned());
            section.stack = vec![bad.to_owned(); 30];
            section.functions = vec![(bad.to_owned(), section.length_ns)];
        }
    }
    for function in &mut sections.coverage.unreached {
        function.name = bad.repeat(9);
    }
    for cell in &mut sections.coverage.cells {
        (cell.key, cell.only) = (bad.repeat(3), vec![bad.repeat(9)]);
    }
    for (number, cell) in sections.cells.iter_mut().enumerate() {
        (cell.key, cell.load) = (format!("{number}{}", bad.repeat(3)), bad.repeat(3));
    }
    let Sections { run_id, run, release, caveats, .. } = &mut sections;
    for text in [run_id, run, release] {
        *text = bad.repeat(3);
    }
    caveats.push(bad.to_owned());
    sections
}

#[test]
fn foreign_names_are_cleaned() {
    let foreign = [foreign(), foreign()];
    let texts = [text(&foreign, 80, false), comparison(&foreign, 80, false)];
    texts.iter().for_each(|text| common::check_width(text, 80));
    common::check_foreign(&texts, &page(&foreign), &figures(&foreign));
}

fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..5_000_u64, any::<u64>(), Just(u64::MAX)]
}

fn twos() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((numbers(), numbers()), 0..6)
}

fn found() -> impl Strategy<Value = Section> {
    let functions = prop::collection::vec((".{0,6}", numbers()), 0..4);
    let stack = prop::collection::vec(".{0,6}", 0..12);
    ([numbers(), numbers(), numbers()], any::<bool>(), ".{0,6}", ".{0,6}", stack, functions)
        .prop_map(|([at_ns, length_ns, interrupts_off_ns], exact, from, to, stack, functions)| {
            let at_ns = at_ns.cast_signed();
            Section { at_ns, exact, length_ns, interrupts_off_ns, from, to, stack, functions }
        })
}

fn kinds() -> impl Strategy<Value = KindSections> {
    let how = prop_oneof![Just(Hold::Interrupts), Just(Hold::Scheduler)];
    let pair = (".{0,6}", ".{0,6}", [numbers(), numbers(), numbers()], twos());
    let pairs = pair.prop_map(|(from, to, [count, total_ns, max_ns], lengths)| PairSections {
        from,
        to,
        count,
        total_ns,
        max_ns,
        lengths,
    });
    let lists = (prop::collection::vec(pairs, 0..14), prop::collection::vec(found(), 0..4));
    (how, [numbers(), numbers(), numbers()], twos(), twos(), lists).prop_map(
        |(how, [count, total_ns, max_ns], lengths, over_time, (pairs, longest))| KindSections {
            how,
            count,
            total_ns,
            max_ns,
            lengths,
            over_time,
            pairs,
            longest,
        },
    )
}

fn runs() -> impl Strategy<Value = Sections> {
    let kinds = prop::collection::vec(kinds(), 0..4);
    let cell = (0..3_u8, numbers(), prop::option::of(numbers()), kinds);
    let cells = cell.prop_map(|(key, watched_ns, sampled_max_ns, kinds)| CellSections {
        key: format!("wakeup @ {key}"),
        load: key.to_string(),
        watched_ns,
        samples: watched_ns,
        sampled_max_ns,
        kinds,
    });
    let model = prop::sample::select(Model::ALL.to_vec());
    let coverage = [numbers(), numbers(), numbers(), numbers()];
    (prop::collection::vec(cells, 0..3), model, coverage, ".{0,6}").prop_map(
        |(cells, model, [instruction_ns, functions, locking, own], release)| {
            let mut sections = sections(&release, model, cells);
            sections.instruction_ns = instruction_ns;
            let coverage = &mut sections.coverage;
            (coverage.functions, coverage.locking) = (functions, locking);
            coverage.cells.iter_mut().for_each(|cell| cell.functions = own);
            sections
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_panics_whatever_was_recorded(all in prop::collection::vec(runs(), 0..4)) {
        for width in [60, 80] {
            for text in [text(&all, width, false), comparison(&all, width, false)] {
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
