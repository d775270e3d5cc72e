//! The table of threads, in a real terminal.

use punctual_harness::{need, programs};

use crate::support::Scratch;
use crate::terminal::Terminal;

/// Starts a run in a terminal of so many rows. When it has ended, `ended` and its status follow.
fn start(scratch: &Scratch, name: &str, (columns, rows): (u16, u16), options: &str) -> Terminal {
    let line = format!(
        "NO_COLOR=1 {} run wakeup -t 4 --policy other -i 10000 -D 1h --no-warmup --no-report \
         --out {name} {options}; echo ended $?; sleep 1000",
        env!("CARGO_BIN_EXE_punctual")
    );
    Terminal::new(name, &scratch.path(""), (columns, rows), &line)
}

fn has_table(screen: &str) -> bool {
    screen.contains("last 1s")
}

fn samples(screen: &str) -> Option<u64> {
    let row = screen.lines().find(|line| line.trim_start().starts_with("0  "))?;
    row.split_whitespace().nth(3)?.replace(',', "").parse().ok()
}

#[test]
fn the_table_is_drawn_in_place_and_removed_at_the_end() {
    need!(programs(&["tmux"]));
    let scratch = Scratch::new("live");
    let terminal = start(&scratch, "live", (80, 24), "");
    let counts = |screen: &str| samples(screen).is_some_and(|count| count > 0);
    let first = terminal.wait("a table", counts);
    assert!(first.contains("wakeup:"), "{first}");
    let before = samples(&first);
    let screen = terminal.wait("newer figures", |screen| samples(screen) > before);
    assert_eq!(screen.matches("last 1s").count(), 1, "drawn below itself:\n{screen}");
    let rows = screen.lines().filter(|line| line.contains(" other ")).count();
    assert_eq!(rows, 4, "{screen}");
    terminal.press(&["C-c"]);
    let screen = terminal.wait("the end", |screen| screen.contains("ended 130"));
    assert!(!has_table(&screen), "{screen}");
}

#[test]
fn a_low_terminal_has_a_table_only_on_request() {
    need!(programs(&["tmux"]));
    let scratch = Scratch::new("live-low");
    let few = start(&scratch, "low", (80, 9), "");
    few.wait("progress", |screen| screen.contains("max "));
    assert!(!has_table(&few.screen()), "{}", few.screen());
    let asked = start(&scratch, "asked", (80, 9), "--live");
    asked.wait("the worst threads", |screen| screen.contains("the worst of 4 threads"));
    let never = start(&scratch, "never", (80, 30), "--no-live");
    never.wait("progress", |screen| screen.contains("max "));
    assert!(!has_table(&never.screen()), "{}", never.screen());
    for terminal in [few, asked, never] {
        terminal.press(&["C-c"]);
        terminal.wait("the end", |screen| screen.contains("ended 130"));
    }
}

/// A line that wraps would be left behind by every redrawing of it.
#[test]
fn progress_does_not_wrap_on_a_narrow_terminal() {
    need!(programs(&["tmux"]));
    let scratch = Scratch::new("live-narrow");
    let terminal = start(&scratch, "narrow", (60, 20), "--no-live");
    let shows = |time: &str| {
        let screen = terminal.wait("progress", |screen| screen.contains(time));
        let bars = screen.lines().skip_while(|line| !line.contains("cell 1 of 1"));
        let below: Vec<_> = bars.filter(|line| !line.trim().is_empty()).collect();
        assert_eq!(below.len(), 1, "{screen}");
    };
    shows("0:02 of 1:00:00");
    shows("0:04 of 1:00:00");
    terminal.press(&["C-c"]);
    terminal.wait("the end", |screen| screen.contains("ended 130"));
}
