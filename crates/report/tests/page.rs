//! The report: complete, valid, and in need of nothing else.

mod common;

use common::{latency, primaries};
use punctual_core::preemption::Model;
use punctual_core::run::LoadedRun;
use punctual_core::schema::CellState;
use punctual_report::{Options, figures, html};

fn two() -> [LoadedRun; 2] {
    [
        common::standard("6.1.0-56-rt-amd64", "rt", 1.0),
        common::standard("6.1.0-56-amd64", "voluntary", 9.0),
    ]
}

fn check_page(page: &str) {
    let policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
                  style-src 'unsafe-inline'; img-src data:\">";
    let policy = policy.replace('\'', "&#39;");
    let at = page.replace('\'', "&#39;").find(&policy).unwrap_or_else(|| panic!("no {policy}"));
    assert!(at < page.find("<style").unwrap(), "it holds for what comes after it");
    for forbidden in ["<script", "<link", "@import", "url(", "src=", "srcset", "<iframe"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let loads = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!loads.contains("http://") && !loads.contains("https://"));
    let images = page.matches("<image ").count();
    assert_eq!(images, page.matches("href=\"data:image/png;base64,").count());
    // Every link leads to a place of the page.
    let links: Vec<_> =
        page.split(" href=\"#").skip(1).filter_map(|l| l.split('"').next()).collect();
    assert_eq!(page.matches("href=").count(), images + links.len());
    for id in links {
        assert_eq!(page.matches(&format!(" id=\"{id}\"")).count(), 1, "#{id}");
    }
    for (i, _) in page.match_indices("<th ") {
        assert!(page[i..].starts_with("<th scope="), "{}", &page[i..i + 40]);
    }
    assert!(!page.contains("<th>"));
}

#[test]
fn the_page_needs_nothing_else() {
    let page = html(&two(), &Options::default());
    check_page(&page);
    let order = [
        "class=\"verdict pass\"",
        ">What makes these numbers suspect</h2>",
        ">Summary</h2>",
        ">Figures</h2>",
        ">Tables without and with load</h2>",
        ">Cells</h2>",
        ">Boards and kernels</h2>",
        ">How to read this report</h2>",
        ">Command line</h2>",
    ];
    let places: Vec<_> =
        order.iter().map(|text| page.find(text).unwrap_or_else(|| panic!("{text}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    for id in page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert_eq!(page.matches(&format!(" id=\"{id}\"")).count(), 1, "{id} is not unique");
    }
}

#[test]
fn a_page_of_replicates_is_read_by_kernel() {
    let mut runs = common::experiment(4, 4);
    runs[5].run.conditions.remove(0);
    let page = html(&runs, &Options::default());
    check_page(&page);
    assert_eq!(page.matches("<section class=\"verdict").count(), 4);
    assert!(page.contains("4 kernels, 16 runs on lab"));
    assert!(page.contains(
        "(PREEMPT_NONE: 4 of 4 runs, PREEMPT_VOLUNTARY: 3 of 4 runs, PREEMPT: 4 of 4 runs, \
         PREEMPT_RT: 4 of 4 runs)"
    ));
    assert!(page.contains("wakeup @ idle @ 4s") && !page.contains("@ none @"));
    // Equal command lines stand there once.
    assert_eq!(page.matches("<pre>").count(), 1);
    for run in &runs {
        assert!(page.contains(&run.run.run_id), "every run can be looked up");
    }
    for id in page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert_eq!(page.matches(&format!(" id=\"{id}\"")).count(), 1, "{id} is not unique");
    }
}

#[test]
fn replicates_with_little_in_them_make_a_page() {
    let mut runs = common::experiment(3, 2);
    // Imported: statistics, no recordings.
    runs.iter_mut().for_each(|run| run.cells.clear());
    check_page(&html(&runs, &Options::default()));
    assert_eq!(figures(&runs)[0].name, "spread");
    // One run of a kernel was cut short: its blocks are all there is.
    let mut runs = common::experiment(3, 2);
    for series in primaries(&mut runs[0].cells) {
        series.histogram = None;
        series.behind = None;
    }
    assert_eq!(figures(&runs).iter().filter(|one| one.name.starts_with("histogram")).count(), 8);
    for cell in runs.iter_mut().flat_map(|run| &mut run.run.cells) {
        latency(cell).stats = Default::default();
    }
    check_page(&html(&runs, &Options::default()));
    assert!(figures(&runs).is_empty());
}

/// The rows of the table that a report of several runs opens with.
fn opening(page: &str) -> Vec<&str> {
    let table = page.split("<table class=\"opening\">").nth(1).unwrap();
    let body = table.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    body.split("<tr>").skip(1).collect()
}

#[test]
fn the_opening_table_tells_what_was_measured_from_what_was_not() {
    let measured = common::one("wakeup", "none", 1, None);
    let mut empty = measured.clone();
    empty.run.run_id = "empty".to_owned();
    empty.run.verdict = Default::default();
    common::latency(&mut empty.run.cells[0]).stats = Default::default();
    let mut made_up = common::made_up(measured.clone());
    made_up.run.run_id = "made-up".to_owned();
    let page = html(&[measured.clone(), empty, made_up], &Options::default());
    let replicated = page.contains("3 runs on");
    let rows = opening(&page);
    assert!(rows.iter().any(|row| row.contains("NOT MEASURED")), "{replicated} {rows:?}");
    assert!(rows.iter().any(|row| row.contains("SIMULATED")), "{rows:?}");
}

#[test]
fn the_opening_table_says_what_weakens_each_run() {
    let plain = common::one("wakeup", "none", 1, None);
    let mut weak = plain.clone();
    weak.run.run_id = "weak".to_owned();
    (weak.run.privileged, weak.run.is_virtual) = (false, true);
    let page = html(&[plain, weak], &Options::default());
    let rows = opening(&page);
    for label in ["not real-time", "virtual machine"] {
        assert!(!rows[0].contains(label) && rows[1].contains(label), "{label}: {rows:?}");
    }
}

/// The premise of verdicts of before, which count late activations one by one, was in it.
#[test]
fn the_glossary_says_what_is_bounded() {
    let page = html(&[common::one("wakeup", "none", 1, None)], &Options::default());
    assert!(page.contains("<dt>how often lateness begins</dt>"));
    assert!(!page.contains("late activations come singly"));
}

#[test]
fn runs_of_other_durations_are_compared_on_the_page_without_their_maxima() {
    let short = common::one("wakeup", "none", 1, None);
    let mut long = short.clone();
    long.run.run_id = "long".to_owned();
    long.run.cells[0].key = "wakeup @ none @ 1h".to_owned();
    long.run.cells[0].duration_ns = 3_600_000_000_000;
    let runs = [short, long];
    let page = |any_duration| html(&runs, &Options { any_duration, ..Options::default() });
    let (usual, any) = (page(false), page(true));
    check_page(&any);
    assert!(usual.contains("--any-duration compares") && !any.contains("--any-duration compares"));
    assert!(any.contains("wakeup @ idle @ any duration"));
    assert!(
        any.contains("wakeup @ idle: measured for") && any.contains("largest and the smallest")
    );
    // Of cells of other durations not even the table on top has a ratio of maxima.
    assert!(opening(&any)[1].contains("<td class=\"n\">-</td>"), "{}", opening(&any)[1]);
}

#[test]
fn four_kernels_with_eight_runs_each_make_a_small_page() {
    let page = html(&common::experiment(8, 10), &Options::default());
    assert!(page.len() <= 1_500_000, "{} bytes", page.len());
}

#[test]
fn names_from_a_board_cannot_break_the_page() {
    let mut run = common::standard("6.1.0", "rt", 1.0);
    run.run.board.name = "<script>alert(1)</script>".to_owned();
    run.run.cells[0].load = "cmd:\"><script src=x>\u{0}".to_owned();
    run.run.tool.command.push("</pre><script>\u{1b}".to_owned());
    let figures = figures(std::slice::from_ref(&run));
    for figure in figures {
        let (name, svg) = (&figure.name, figure.svg());
        assert!(roxmltree::Document::parse(&svg).is_ok(), "{name}");
    }
    let mut replicates = vec![run.clone(), run.clone(), run.clone()];
    for (number, run) in replicates.iter_mut().enumerate() {
        run.run.run_id = format!("<script>{number}\u{1b}");
        run.run.kernel.release = "<script>\u{1b}".to_owned();
    }
    for runs in [vec![run], replicates] {
        let page =
            html(&runs, &Options { title: Some("<script>".to_owned()), ..Options::default() });
        assert!(!page.contains("<script"));
        assert!(!page.contains('\u{0}') && !page.contains('\u{1b}'));
    }
}

#[test]
fn runs_with_little_in_them_make_a_page() {
    check_page(&html(&[], &Options::default()));
    let mut run = common::standard("6.1.0", "rt", 1.0);
    // Imported: statistics, no recordings.
    run.cells.clear();
    check_page(&html(&[run.clone()], &Options::default()));
    for cell in &mut run.run.cells {
        cell.state = CellState::Failed;
        latency(cell).stats = Default::default();
        latency(cell).threads.clear();
    }
    assert!(figures(&[run.clone()]).is_empty());
    check_page(&html(&[run.clone()], &Options::default()));
    run.run.cells.clear();
    check_page(&html(&[run], &Options::default()));
}

#[test]
fn a_recovered_cell_is_drawn_from_its_blocks() {
    let mut run = common::standard("6.1.0", "rt", 1.0);
    for series in primaries(&mut run.cells) {
        series.histogram = None;
        series.behind = None;
    }
    let all = figures(&[run]);
    assert_eq!(all.iter().filter(|one| one.name.starts_with("histogram")).count(), 4);
}

#[test]
fn a_day_makes_a_small_page() {
    let page = html(&[common::day(100)], &Options::default());
    check_page(&page);
    assert!(page.contains("86,400,000"));
    assert!(page.len() <= 2_000_000, "{} bytes", page.len());
}

#[test]
fn runs_of_costs_alone_make_a_page() {
    let mut run = common::all_kinds("6.1.0", "rt", 1.0);
    run.cells.clear();
    run.run.cells.retain(|cell| cell.cost().is_some());
    assert!(figures(std::slice::from_ref(&run)).is_empty());
    let replicates: Vec<_> = (0..4_u32)
        .map(|number| {
            let mut run = run.clone();
            run.run.run_id.push_str(&number.to_string());
            run.run.kernel.preemption = if number < 2 { Model::None } else { Model::Rt };
            run
        })
        .collect();
    for runs in [&replicates[..1], &replicates[..2], &replicates[..]] {
        let page = html(runs, &Options::default());
        check_page(&page);
        assert!(page.contains("lat.syscall") && !page.contains(">Summary</h2>"));
        let names: Vec<_> = figures(runs).into_iter().map(|figure| figure.name).collect();
        assert_eq!(names, if runs.len() > 1 { vec!["costs"] } else { Vec::new() });
    }
}

#[test]
fn every_kind_of_data_is_on_the_page() {
    let runs = [
        common::all_kinds("6.1.0-56-rt-amd64", "rt", 1.0),
        common::all_kinds("6.1.0-56-amd64", "voluntary", 1.2),
    ];
    for runs in [&runs[..1], &runs[..]] {
        let page = html(runs, &Options::default());
        check_page(&page);
        for text in [
            "leg interrupt",
            "aside queue",
            "packets",
            "! 3 lost events (events that the trace buffer dropped)",
            "class=\"bad\">3 lost events",
            "0 overruns",
            "posts to thread 0",
            ">Costs</h2>",
            "118.2 ns",
            "117.0 ns to 119.4 ns",
            "4.32 GB/s",
            "&lt; 2.5 ns",
            "no value: fork: too many processes",
            "target ebx11 (Linux 6.1.0)",
            "the line takes 87 µs",
        ] {
            assert!(page.contains(text), "{text}");
        }
        // Costs are in no table or figure of latencies.
        let summary = page.split(">Summary</h2>").nth(1).unwrap();
        assert!(!summary.split("</table>").next().unwrap().contains("lat.syscall"));
        assert!(figures(runs).iter().all(|one| !one.name.contains("syscall")));
    }
    let page = html(&runs, &Options::default());
    // The system call takes longer and less memory is copied: both are worse.
    assert_eq!(page.matches("class=\"n fail\">worse").count(), 2, "{page}");
}

#[test]
fn a_report_of_kernels_opens_with_one_table_and_their_spread() {
    let page = html(&common::experiment(4, 4), &Options::default());
    let table = page.find("class=\"opening\"").expect("the table");
    let figure = page.find("<svg").expect("a figure");
    let verdict = page.find("<section class=\"verdict").expect("a verdict");
    assert!(table < figure && figure < verdict, "{table} {figure} {verdict}");
    assert!(page[figure..verdict].contains("Spread over the runs"));
    assert_eq!(
        page.matches("Spread over the runs").count(),
        page[..verdict].matches("Spread over the runs").count()
    );
    let table = page[table..].split("</table>").next().unwrap();
    for text in ["PREEMPT_NONE (4 runs)", "4 FAIL", "500.3 µs", "1.00", "3 FAIL", "1 PASS"] {
        assert!(table.contains(text), "{text}: {table}");
    }
    assert_eq!(table.matches("<tr>").count(), 1 + 4);
    assert!(table.contains("<th scope=\"col\">kernel</th>"), "{table}");
    assert!(table.contains("Linux 6.1.0-56-rt-amd64 PREEMPT_RT · lab"), "{table}");
    // Facts are folded once for each kernel.
    let facts =
        page.split(">Boards and kernels: the first run of each kernel</h2>").nth(1).unwrap();
    let facts = facts.split("<h2").next().unwrap();
    assert_eq!(facts.matches("<details>").count(), 4);
}

#[test]
fn a_virtual_board_was_measured_when_its_host_says() {
    let mut run = common::standard("6.1.0", "rt", 1.0);
    run.run.started.realtime_ns = 1_577_836_801_000_000_000;
    let made = |run: &LoadedRun| {
        let page = html(std::slice::from_ref(run), &Options::default());
        let made = page.split("<p class=\"made\">").nth(1).unwrap();
        (made.split("</p>").next().unwrap().to_owned(), page)
    };
    assert!(made(&run).0.starts_with("2020-01-01 00:00 UTC"));
    run.run.board.lab = Some(punctual_core::schema::Lab::default());
    let (made, page) = made(&run);
    assert!(made.starts_with("2026-11-20 17:00 UTC"), "{made}");
    assert!(page.contains("clock of the board") && page.contains("2020-01-01 00:00:01 UTC to "));
}

#[test]
fn the_title_is_followed_by_when_and_how() {
    let page = html(&[common::standard("6.1.0", "rt", 1.0)], &Options::default());
    let made = page.split("<p class=\"made\">").nth(1).unwrap().split("</p>").next().unwrap();
    for text in ["2026-11-20 17:00 UTC · 5 cells, ", "fifo 80, 1 ms", "punctual 0.1.0"] {
        assert!(made.contains(text), "{text}: {made}");
    }
    for link in ["#s-summary", "#s-figures", "#s-command-line"] {
        assert!(page.contains(&format!("href=\"{link}\"")), "{link}");
    }
}

#[test]
fn only_what_is_late_is_red() {
    let late = |page: &str| page.matches("max late\"").count();
    let pass = html(&[common::standard("6.1.0", "rt", 1.0)], &Options::default());
    let fail = html(&[common::standard("6.1.0", "voluntary", 9.0)], &Options::default());
    assert_eq!(late(&pass), 0);
    assert!(late(&fail) >= 2, "{}", late(&fail));
    for page in [pass, fail] {
        assert!(!page.contains("\">fifo 80"), "no policy has the colour of a verdict");
        assert!(!page.contains(" us<") && page.contains(" µs<"));
    }
}

#[test]
fn interrupts_are_a_table_by_cpu() {
    let mut run = common::standard("6.1.0", "rt", 1.0);
    let counted = |n: u64| serde_json::json!({"LOC": {"cpus": {"0": n, "1": 3}, "description": "Local timer", "total": n + 3}});
    for (group, n) in
        [("interrupts_before", 1), ("interrupts_during", 1_777), ("interrupts_after", 2)]
    {
        run.run.facts.insert(group.to_owned(), counted(n));
    }
    let page = html(&[run], &Options::default());
    let table = page.split("Interrupts during the measurement").nth(1).unwrap();
    let table = table.split("</table>").next().unwrap();
    for text in ["CPU 0", "CPU 1", "LOC", "1,780", "1,777", ">3<"] {
        assert!(table.contains(text), "{text}: {table}");
    }
    assert!(!page.contains("interrupts_before") && !page.contains("interrupts_during"));
}

#[test]
fn no_half_of_a_table_is_empty() {
    let mut run = common::standard("6.1.0", "rt", 1.0);
    run.run.cells.retain(|cell| cell.load == "none");
    run.cells.clear();
    let page = html(&[run], &Options::default());
    assert!(page.contains("W/O load") && !page.contains(">W/ load<"));
    assert!(!page.contains("not measured"));
}
