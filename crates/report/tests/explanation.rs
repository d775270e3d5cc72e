//! Explanations: every output says the same, fits, and lets no foreign name through.

mod common;

use common::explained::{self, Maker};
use proptest::prelude::*;
use punctual_core::explanation::{
    Chosen, Explained, ExplainedCell, Explanation, GuestThread, Held, Hold, Leg, Milestone,
    StackSpan, Turn,
};
use punctual_core::preemption::Model;
use punctual_report::explanation::{Remedy, cause, figures, page, perfetto, text, text_against};
use punctual_report::words::LEGS;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

fn one(sample: Explained, model: Model) -> Explanation {
    let cell = explained::cell("wakeup @ hackbench @ 2s", "hackbench", vec![sample]);
    explained::explanation("6.1.0", model, vec![cell])
}

#[test]
fn the_causes_come_first_and_fit_80_columns() {
    insta::assert_snapshot!(text(&explained::none(), 80, false));
}

#[test]
fn bold_type_marks_what_matters() {
    let text = text(&one(explained::fork(Chosen::Worst, 176), Model::None), 80, true);
    for bold in ["333.9 us late: ", "* 328.2 us", "clear_page_erms"] {
        assert!(text.contains(&format!("\u{1b}[1m{bold}")), "{bold}: {text}");
    }
}

#[test]
fn two_kernels_stand_side_by_side() {
    insta::assert_snapshot!(text_against(&explained::none(), &explained::rt(), 80, false));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let (none, rt) = (explained::none(), explained::rt());
    for width in [60, 80, 120] {
        for text in [text(&none, width, false), text_against(&none, &rt, width, false)] {
            common::check_width(&text, width);
        }
    }
}

#[test]
fn the_sentence_names_leg_place_and_functions() {
    let fork = explained::fork(Chosen::Worst, 176);
    let said = |sample: &Explained, model: Model| cause(sample, model).sentence;
    let none = said(&fork, Model::None);
    for part in [
        " late: ",
        "of system call clone under preempt=none (no scheduling point)",
        "most of it clear_page_erms (5",
        "copy_mc_enhanced_fast_string (3",
    ] {
        assert!(none.contains(part), "{part}: {none}");
    }
    assert!(said(&fork, Model::Full).contains("under preempt=full (preemption off)"));
    assert!(said(&fork, Model::Rt).contains("under PREEMPT_RT (preemption off)"));
    assert!(said(&fork, Model::Unknown).contains("(nothing called the scheduler)"));
    let locked = said(&explained::locked(Chosen::Worst, 96_000), Model::None);
    let off = "96.0 us with interrupts off from _raw_spin_lock_irqsave to \
               _raw_spin_unlock_irqrestore in scsi_queue_rq of the kworker's blk_mq_run_work_fn";
    assert!(locked.contains(off), "{locked}");
    let idle = said(&explained::idle(Chosen::Typical, 1_700), Model::Rt);
    assert!(idle.contains("; the CPU was idle: 1.7 us until it woke up, "), "{idle}");
    assert!(idle.contains(" of the path itself, the longest leg "), "{idle}");
    let softirq = said(&explained::softirq(Chosen::Worst, 90), Model::Full);
    assert!(softirq.contains("of a softirq before it came to the scheduler"), "{softirq}");
    let rival = said(&explained::rival(Chosen::Worst), Model::Full);
    let preferred = "; the CPU was idle, then 3.002 ms in spin_for [spin] of kernel thread spin_all \
                     [spin] while the scheduler preferred another thread";
    assert!(rival.ends_with(preferred), "{rival}");
}

/// A sample before which these threads had the CPU, each until so long before its end.
fn with_threads(mut sample: Explained, turns: &[(u64, &str, u32, i16)]) -> Explained {
    let turn = |(before_end, name, pid, priority): &(u64, &str, u32, i16)| Turn {
        end_ns: sample.latency_ns - before_end,
        thread: Some(GuestThread { name: (*name).to_owned(), pid: *pid, priority: *priority }),
    };
    sample.turns = turns.iter().map(turn).collect();
    sample
}

#[test]
fn threads_are_named_if_they_are_known() {
    let fork = explained::fork(Chosen::Worst, 176);
    let of_shell =
        with_threads(fork.clone(), &[(2_000, "sh\u{7}", 57, 120), (0, "probe-0", 60, 19)]);
    let sentence = said_of(&of_shell);
    assert!(sentence.contains("of system call clone by sh"), "{sentence}");
    assert!(!sentence.contains('\u{7}') && !said_of(&fork).contains(" by "), "{sentence}");
    let text = text(&one(of_shell.clone(), Model::None), 120, false);
    let line = text.lines().find(|line| line.contains("threads: ")).unwrap();
    assert!(
        line.contains("(pid 57) ") && line.contains("probe-0 (pid 60, real-time 80) 2.0 us"),
        "{line}"
    );
    assert!(page(&one(of_shell.clone(), Model::None)).contains("(pid 57) "));
    let trace: Value = serde_json::from_str(&perfetto(&one(of_shell, Model::None))).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let threads: Vec<_> = events.iter().filter(|e| e["tid"] == 6 && e["ph"] == "X").collect();
    assert_eq!(threads.len(), 2);
    assert_eq!(threads[1]["name"], "probe-0 (pid 60, real-time 80)");
    assert!((threads[1]["dur"].as_f64().unwrap() - 2.0).abs() < 1e-9, "{}", threads[1]);
}

#[test]
fn a_thread_that_the_scheduler_preferred_is_named() {
    let rival = explained::rival(Chosen::Worst);
    let sentence = |turns: &[(u64, &str, u32, i16)]| said_of(&with_threads(rival.clone(), turns));
    let named = sentence(&[(4_000, "spin", 57, 4), (0, "probe-0", 60, 19)]);
    assert!(
        named.ends_with(" while the scheduler preferred spin (pid 57, real-time 95)"),
        "{named}"
    );
    let first = sentence(&[(4_000, "dl", 57, -1), (0, "probe-0", 60, 19)]);
    assert!(first.ends_with(" preferred dl (pid 57, deadline)"), "{first}");
    // Neither the idle thread nor itself is another.
    for pid in [0, 60] {
        let nobody = sentence(&[(4_000, "swapper/0", pid, 120), (0, "probe-0", 60, 19)]);
        assert!(nobody.ends_with(" preferred another thread"), "{nobody}");
    }
}

fn said_of(sample: &Explained) -> String {
    cause(sample, Model::None).sentence
}

#[test]
fn a_remedy_is_one_that_helps() {
    let remedy = |sample: &Explained, model: Model| {
        let all = cause(sample, model).remedies;
        all.iter().map(Remedy::words).collect::<Vec<_>>().join("; ")
    };
    let fork = explained::fork(Chosen::Worst, 176);
    assert!(remedy(&fork, Model::None).starts_with("preempt=full would have switched here"));
    assert!(!remedy(&fork, Model::Full).contains("preempt=full"));
    assert_eq!(remedy(&fork, Model::Unknown), "");
    // Full preemption does not preempt softirqs, and nothing is left to recommend under
    // PREEMPT_RT.
    let softirq = explained::softirq(Chosen::Worst, 90);
    assert!(!remedy(&softirq, Model::None).contains("preempt=full"));
    assert_eq!(remedy(&softirq, Model::Rt), "");
    let locked = explained::locked(Chosen::Worst, 96_000);
    assert!(remedy(&locked, Model::Full).contains("leave interrupts on"));
    assert_eq!(remedy(&locked, Model::Rt), "");
    let rival = explained::rival(Chosen::Worst);
    assert!(remedy(&rival, Model::Rt).contains("a higher priority"));
    assert_eq!(remedy(&explained::rival(Chosen::Typical), Model::Full), "");
    assert_eq!(remedy(&explained::idle(Chosen::Worst, 700), Model::Full), "");
    assert_eq!(remedy(&explained::fork(Chosen::Typical, 176), Model::None), "");
    let short = said_of(&explained::fork(Chosen::Worst, 0));
    let held = ": no leg is most of it, the longest has 2.4 us in ";
    assert!(short.contains(held), "{short}");
    assert!(
        remedy(&explained::idle(Chosen::Worst, 9_500), Model::Full).contains("cpu_dma_latency")
    );
}

/// A time as it is printed, ns, and how far it may be off.
fn ns(text: &str) -> (f64, f64) {
    let (number, unit) = text.trim_start_matches("* ").split_once(' ').unwrap();
    let number: f64 = number.replace(',', "").parse().unwrap();
    match unit {
        "ns" => (number, 0.0),
        "us" => (number * 1e3, 50.0),
        "ms" => (number * 1e6, 500.0),
        _ => panic!("{text}"),
    }
}

#[test]
fn the_legs_that_are_shown_add_up_to_the_latency() {
    for explanation in [explained::none(), explained::rt()] {
        for sample in explanation.cells.iter().flat_map(|cell| &cell.samples) {
            let text = text(&one(sample.clone(), Model::Full), 80, false);
            let (mut sum, mut slack) = (0.0, 0.0);
            let mut rows = text.lines().skip_while(|line| !line.starts_with("  leg ")).skip(1);
            for line in rows.by_ref() {
                let (name, value) = line[2..].split_at(12);
                let (value, off) = ns(value.trim());
                slack += off;
                if name.trim() == "latency" {
                    assert!((value - sum).abs() <= slack, "{value} is not {sum}: {text}");
                    break;
                }
                sum += value;
            }
            assert!(sum > 0.0 && rows.next().unwrap().contains("instructions"), "{text}");
        }
    }
}

#[test]
fn the_shares_of_the_functions_are_all_of_it() {
    for sample in explained::none().cells.into_iter().flat_map(|cell| cell.samples) {
        let latency = sample.latency_ns;
        let text = text(&one(sample, Model::Full), 80, false);
        let rows: Vec<&str> = text
            .lines()
            .skip_while(|line| !line.starts_with("  function "))
            .skip(1)
            .take_while(|line| line.ends_with('%'))
            .collect();
        assert!((4..=10).contains(&rows.len()), "{text}");
        let number = |line: &str, back: usize| -> f64 {
            line.split_whitespace().rev().nth(back).unwrap().replace(',', "").parse().unwrap()
        };
        let shares: f64 = rows.iter().map(|line| number(line, 1)).sum();
        let times: f64 = rows.iter().map(|line| number(line, 3)).sum();
        assert!((shares - 100.0).abs() < 0.05 * rows.len() as f64 + 0.01, "{shares}: {text}");
        assert!((times - latency as f64).abs() < 0.5, "{times}: {text}");
    }
}

#[test]
fn the_page_has_every_sample_and_loads_nothing() {
    let explanation = explained::none();
    let page = page(&explanation);
    let samples: usize = explanation.cells.iter().map(|cell| cell.samples.len()).sum();
    common::check_page(&page, 2 * samples, 4);
    for text in ["340", "clear_page_erms", "interrupts off from -18.4 µs", "no call of the"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn figures_are_valid_and_no_two_texts_collide() {
    let named = with_threads(
        explained::fork(Chosen::Worst, 176),
        &[
            (9_000, "sh", 57, 120),
            (8_990, "a", 58, 120),
            (2_000, "kworker/0:1H", 9, 100),
            (0, "probe-0", 60, 19),
        ],
    );
    let named = one(named, Model::None);
    let rows: Vec<String> = figures(&named)[0].texts().into_iter().map(|text| text.text).collect();
    assert!(rows.iter().any(|text| text == "sh (pid 57)"), "{rows:?}");
    for explanation in [explained::none(), explained::rt(), explained::long(), foreign(), named] {
        for figure in figures(&explanation) {
            let (name, svg) = (&figure.name, figure.svg());
            let document = roxmltree::Document::parse(&svg).unwrap();
            assert!(
                document
                    .descendants()
                    .any(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "title")))
            );
            assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{name}");
            for style in ["var(", "<style", "style=", "url("] {
                assert!(!svg.contains(style), "{name}: {style}");
            }
            common::check_texts(&explanation.release, &figure);
        }
    }
}

/// Left and right end, top and tooltip of every box.
fn boxes(svg: &str) -> Vec<(f64, f64, f64, String)> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let nodes = document.descendants().filter(|node| {
        node.attribute("class").is_some_and(|class| class.split(' ').any(|one| one == "frame"))
    });
    let numbers = |d: &str| -> Vec<f64> {
        d.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|n| n.parse().ok()).collect()
    };
    let all = nodes.map(|node| {
        let d = numbers(node.attribute("d").unwrap());
        let title = node.children().find(|one| one.tag_name().name() == "title").unwrap();
        (d[0], d[2], d[1], title.text().unwrap().to_owned())
    });
    all.collect()
}

#[test]
fn boxes_lie_below_their_callers_and_say_their_time() {
    let figures = figures(&explained::none());
    for figure in &figures {
        let all = boxes(&figure.svg());
        let top = all.iter().map(|one| one.2).fold(f64::MAX, f64::min);
        for (left, right, at, note) in all.iter().filter(|one| one.2 > top) {
            let caller = all.iter().find(|(l, r, t, _)| {
                (t - (at - 20.0)).abs() < 0.1 && *l <= left + 0.11 && *r >= right - 0.75
            });
            assert!(caller.is_some(), "{}: {note} hangs in the air", figure.name);
        }
    }
    let timeline = boxes(&figures[2].svg());
    assert!(timeline.iter().any(|one| one.3.starts_with("clear_page_erms: 950 ns, ")));
    let entries = timeline.iter().filter(|one| one.3.starts_with("do_syscall_64: "));
    assert_eq!(entries.count(), 2, "two stacks begin with the same function");
    let stacks = boxes(&figures[3].svg());
    let clear: Vec<_> =
        stacks.iter().filter(|one| one.3.starts_with("clear_page_erms: ")).collect();
    assert!(clear.len() == 1 && clear[0].3.contains("167200 ns"), "{clear:?}");
    // The stacks are those of the same time, so their boxes are as wide.
    let share = (clear[0].1 - clear[0].0) / (680.0 - 84.0);
    let all = explained::fork(Chosen::Worst, 176).latency_ns as f64;
    assert!((share - 167_200.0 / all).abs() < 0.005, "{share}");
}

#[test]
fn many_spans_make_a_small_page() {
    let long = explained::long();
    let page = page(&long);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    let all = boxes(&figures(&long)[0].svg());
    assert!(all.len() > 300, "{} boxes", all.len());
    // What is too short for a box of its own is counted.
    assert!(page.contains(" short calls: "));
}

#[test]
fn paper_has_the_figures_too() {
    for figure in figures(&explained::rt()).into_iter().take(2) {
        assert!(figure.pdf().unwrap().starts_with(b"%PDF-1.4\n"));
        assert!(figure.png().unwrap().starts_with(b"\x89PNG"));
    }
}

fn events(explanation: &Explanation) -> Vec<Value> {
    let json: Value = serde_json::from_str(&perfetto(explanation)).unwrap();
    assert_eq!(json["displayTimeUnit"], "ns");
    json["traceEvents"].as_array().unwrap().clone()
}

/// Every beginning has an end, inner ones first, and time never goes back.
fn check_balance(events: &[Value]) {
    let mut open: std::collections::BTreeMap<(u64, u64), (u64, f64)> = Default::default();
    for event in events {
        let track = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        let at = event["ts"].as_f64().unwrap();
        assert!(at >= 0.0, "{event}");
        let (depth, now) = open.entry(track).or_default();
        match event["ph"].as_str().unwrap() {
            "B" => *depth += 1,
            "E" => *depth = depth.checked_sub(1).unwrap_or_else(|| panic!("{event} ends nothing")),
            "X" => assert!(event["dur"].as_f64().unwrap() >= 0.0, "{event}"),
            "M" => continue,
            _ => panic!("{event}"),
        }
        if event["ph"] != "X" {
            assert!(at >= *now, "{event} is before {now}");
            *now = at;
        }
    }
    assert!(open.values().all(|(depth, _)| *depth == 0), "{open:?}");
}

#[test]
fn the_trace_parses_and_its_events_balance() {
    let explanation = explained::none();
    let events = events(&explanation);
    check_balance(&events);
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    let samples: usize = explanation.cells.iter().map(|cell| cell.samples.len()).sum();
    assert_eq!([named("process_name"), named("thread_name")], [samples, 5 * samples]);
    assert_eq!(named("clear_page_erms"), 176);
    let of = |name: &str, pid: usize| {
        events.iter().find(|event| event["name"] == name && event["pid"] == pid).unwrap()
    };
    // Two stacks that begin with the same function.
    let entries = |event: &&Value| event["name"] == "do_syscall_64" && event["pid"] == 2;
    assert_eq!(events.iter().filter(entries).count(), 2);
    // Microseconds to the nanosecond, from the release.
    let leg = of("interrupt", 2);
    assert_eq!((leg["ts"].as_f64(), leg["dur"].as_f64()), (Some(0.0), Some(1.51)));
    let held = of("interrupts off", 4);
    assert_eq!((held["ts"].as_f64(), held["dur"].as_f64()), (Some(0.0), Some(96.0)));
    assert_eq!(held["args"]["from_ns"], -18_400);
    let process = of("process_name", 3);
    assert_eq!(process["args"]["name"], "wakeup @ hackbench @ 2s · 2nd worst");
}

#[test]
fn differences_are_those_of_the_same_rank() {
    let (mut a, mut b) = (explained::none(), explained::none());
    a.cells[0].samples =
        vec![explained::fork(Chosen::Typical, 0), explained::fork(Chosen::Worst, 10)];
    b.cells[0].samples = vec![explained::fork(Chosen::Worst, 30)];
    let text = text_against(&a, &b, 80, false);
    assert!(!text.contains("hackbench @ 2s · typical"), "{text}");
    let row = text.lines().find(|line| line.starts_with("  clear_page_erms ")).unwrap();
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells, ["clear_page_erms", "9.5 us", "28.5 us", "+19.0 us", "3.00"]);
    let same = text_against(&a, &a, 80, false);
    assert!(same.contains(" 0 ns   1.00") && !same.contains('+') && !same.contains("only in"));
    assert!(same.contains("no function's own time differs"), "{same}");
}

/// Names as an attacker would have written them.
fn foreign() -> Explanation {
    let bad = "<script>alert(1)</script>\u{1b}[2J\"&\u{202e}\n";
    let mut made = Maker::new(Chosen::Worst, false);
    made.run(1_000, &[&[bad]]);
    made.leg(Milestone::Interrupt);
    made.run(50_000, &[&["do_syscall_64", &format!("__x64_sys_{bad}"), bad]]);
    made.run(20_000, &[&["kthread", bad]]);
    made.held(Hold::Scheduler, None, 71_000, [bad, bad]);
    made.leg(Milestone::Schedule);
    let named = with_threads(made.0, &[(9_000, bad, 57, 120), (0, bad, 60, 19)]);
    let mut explanation = one(named, Model::None);
    let Explanation { run_id, run, release, cells, .. } = &mut explanation;
    let ExplainedCell { key, load, .. } = &mut cells[0];
    for text in [run_id, run, release, key, load] {
        *text = bad.repeat(3);
    }
    explanation.caveats = vec![bad.to_owned()];
    explanation
}

#[test]
fn foreign_names_are_cleaned() {
    let foreign = foreign();
    let texts = [text(&foreign, 80, false), text_against(&foreign, &foreign, 80, false)];
    texts.iter().for_each(|text| common::check_width(text, 80));
    common::check_foreign(&texts, &page(&foreign), &figures(&foreign));
    let json = perfetto(&foreign);
    assert!(
        !json.contains("\\u001b") && !json.contains(common::is_foreign) && !json.contains("\\n"),
        "{json}"
    );
    check_balance(&events(&foreign));
}

fn spans() -> impl Strategy<Value = Vec<StackSpan>> {
    let stack = prop::collection::vec(prop_oneof![0..4_u32, Just(u32::MAX)], 0..6);
    let end = prop_oneof![0..1_000_u64, Just(u64::MAX)];
    prop::collection::vec(
        (end, stack).prop_map(|(end_ns, stack)| StackSpan { end_ns, stack }),
        0..12,
    )
}

fn samples() -> impl Strategy<Value = Explained> {
    let milestone = prop::sample::select(LEGS.to_vec());
    let ends = prop_oneof![0..1_000_u64, Just(u64::MAX)];
    let legs = prop::collection::vec((milestone, ends), 0..8);
    let how = prop_oneof![Just(Hold::Interrupts), Just(Hold::Scheduler), Just(Hold::Preferred)];
    let times = (any::<Option<i64>>(), any::<i64>());
    let held = prop::collection::vec((how, times, ".{0,4}", ".{0,4}"), 0..4);
    let names = prop::collection::vec(".{0,6}", 0..4);
    let numbers = (any::<u64>(), prop_oneof![0..1_000_u64, any::<u64>()], any::<bool>());
    let thread = (".{0,6}", 0..4_u32, any::<i16>());
    let thread = thread.prop_map(|(name, pid, priority)| GuestThread { name, pid, priority });
    let end = prop_oneof![0..1_000_u64, Just(u64::MAX)];
    let turn = (end, prop::option::of(thread));
    let turns =
        prop::collection::vec(turn.prop_map(|(end_ns, thread)| Turn { end_ns, thread }), 0..5);
    let all = ((spans(), turns), legs, held, names, numbers);
    all.prop_map(|((spans, turns), legs, held, functions, numbers)| {
        let mut made = Maker::new(Chosen::Worst, numbers.2);
        (made.0.spans, made.0.turns) = (spans, turns);
        made.0.functions = functions;
        made.0.latency_ns = numbers.1;
        (made.0.missed, made.0.instructions, made.0.at_ns) = (numbers.0, numbers.0, numbers.0);
        made.0.legs = legs.into_iter().map(|(until, end_ns)| Leg { until, end_ns }).collect();
        let held = held.into_iter().map(|(how, (from_ns, to_ns), began_in, ended_in)| Held {
            how,
            from_ns,
            to_ns,
            began_in,
            ended_in,
        });
        made.0.held = held.collect();
        made.0
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_panics_whatever_was_recorded(sample in samples(), number in 0..Model::ALL.len()) {
        let made = one(sample, Model::ALL[number]);
        for text in [text(&made, 80, false), text_against(&made, &made, 80, false)] {
            let widest = text.lines().map(UnicodeWidthStr::width).max().unwrap();
            prop_assert!(widest <= 80, "{}", text);
        }
        prop_assert!(page(&made).ends_with("</html>"));
        check_balance(&events(&made));
        for figure in figures(&made) {
            let svg = figure.svg();
            prop_assert!(roxmltree::Document::parse(&svg).is_ok(), "{}", svg);
        }
    }
}
