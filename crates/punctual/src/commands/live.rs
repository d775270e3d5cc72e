//! The table of threads that a terminal shows during a run.

use std::io;

use clap::ArgMatches;
use punctual_core::units::{exact_duration, grouped, human_ns};
use punctual_report::words;
use punctual_suite::engine::ThreadProgress;

/// Whether the table is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Live {
    /// If the terminal has rows for all threads.
    IfItFits,
    /// Always, if necessary only the threads with the largest latencies.
    Always,
    /// Never.
    Never,
}

impl Live {
    /// As the options say.
    pub fn of(matches: &ArgMatches) -> Self {
        match (matches.get_flag("live"), matches.get_flag("no-live")) {
            (true, _) => Self::Always,
            (_, true) => Self::Never,
            _ => Self::IfItFits,
        }
    }
}

/// Rows besides those of the threads: two of headings, a note on threads left out, the
/// progress line, and two that leave the last command in sight.
const OTHER_ROWS: usize = 6;

/// Columns and rows of the terminal on stderr, where the table is drawn.
pub fn size() -> Option<(usize, usize)> {
    let (width, height) = terminal_size::terminal_size_of(io::stderr())?;
    Some((width.0.into(), height.0.into()))
}

const HEADINGS: [&str; 9] =
    ["T", "CPU", "policy", "samples", "min", "last 1s", "avg", "max", "missed"];

/// The table, without a line feed at its end, for a terminal of `(columns, rows)`. `last 1s` is
/// the largest latency of the last second that was collected.
pub fn table(
    key: &str,
    interval_ns: Option<u64>,
    threads: &[ThreadProgress],
    live: Live,
    (columns, rows): (usize, usize),
) -> Option<String> {
    let room = rows.saturating_sub(OTHER_ROWS);
    let fits = match live {
        Live::IfItFits => threads.len() <= room,
        Live::Always => room > 0,
        Live::Never => false,
    };
    if !fits || threads.is_empty() {
        return None;
    }
    let mut shown: Vec<_> = threads.iter().enumerate().collect();
    if threads.len() > room {
        shown.sort_by_key(|(_, thread)| std::cmp::Reverse(thread.moments.max));
        shown.truncate(room);
        shown.sort_by_key(|(number, _)| *number);
    }
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(shown.iter().map(|(number, thread)| row(*number, thread)));
    let widths: Vec<_> = (0..HEADINGS.len())
        .map(|n| lines.iter().map(|line| line[n].len()).max().unwrap_or(0))
        .collect();
    let wide = widths.iter().sum::<usize>() + 2 * (widths.len() - 1) > columns;
    let gap = if wide { " " } else { "  " };
    let every =
        interval_ns.map_or_else(String::new, |ns| format!(", every {}", exact_duration(ns)));
    let mut text = vec![format!("{}{every}", words::key_name(key))];
    text.extend(lines.iter().map(|line| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        cells.collect::<Vec<_>>().join(gap)
    }));
    let left_out = threads.len() - shown.len();
    if left_out > 0 {
        text.push(format!("the worst of {} threads", threads.len()));
    }
    // A line that wraps would be left behind when the table is drawn again.
    let cut = text.iter().map(|line| line.chars().take(columns).collect::<String>());
    Some(cut.collect::<Vec<_>>().join("\n"))
}

fn row(number: usize, thread: &ThreadProgress) -> [String; 9] {
    let ThreadProgress { cpu, scheduling, moments, last } = thread;
    let known = |count: u64, ns: i64| if count == 0 { "-".to_owned() } else { human_ns(ns) };
    [
        number.to_string(),
        cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string()),
        scheduling.clone(),
        grouped(moments.count),
        known(moments.count, moments.min),
        known(last.count, last.max),
        moments.mean().map_or_else(|| "-".to_owned(), words::mean_ns),
        known(moments.count, moments.max),
        grouped(moments.missed),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::block::Moments;

    fn thread(cpu: Option<u32>, count: u64, max: i64) -> ThreadProgress {
        let sum = i128::from(count) * 10_000;
        let moments = Moments { count, missed: 3, min: 2_000, max, sum, ..Moments::EMPTY };
        let last = Moments { max: max / 2, ..moments };
        ThreadProgress { cpu, scheduling: "fifo 80".to_owned(), moments, last }
    }

    #[test]
    fn the_table_has_a_row_per_thread_and_fits_80_columns() {
        let threads = [
            thread(Some(0), 2_000, 81_500),
            thread(None, 86_400_000, 69_882_123),
            ThreadProgress {
                moments: Moments::EMPTY,
                last: Moments::EMPTY,
                ..thread(Some(127), 0, 0)
            },
        ];
        let text =
            table("wakeup @ none @ 10s", Some(1_000_000), &threads, Live::IfItFits, (80, 24));
        assert_eq!(
            text.unwrap(),
            "wakeup @ idle @ 10s, every 1ms\n\
             T  CPU   policy     samples     min    last 1s      avg        max  missed\n\
             0    0  fifo 80       2,000  2.0 us    40.8 us  10.0 us    81.5 us       3\n\
             1    -  fifo 80  86,400,000  2.0 us  34.941 ms  10.0 us  69.882 ms       3\n\
             2  127  fifo 80           0       -          -        -          -       0"
        );
        let narrow = table("a\u{1b}[2Jb", None, &threads, Live::Always, (20, 24)).unwrap();
        assert!(narrow.lines().all(|line| line.chars().count() <= 20), "{narrow}");
        assert!(narrow.starts_with("a\u{fffd}[2Jb\n"), "{narrow}");
    }

    #[test]
    fn a_small_terminal_has_the_worst_threads_on_request_only() {
        let threads: Vec<_> =
            (0..64).map(|n| thread(Some(n), 9, i64::from(n % 7) * 1_000)).collect();
        let of = |live, rows| table("k", None, &threads, live, (80, rows));
        assert_eq!(of(Live::IfItFits, 69), None);
        assert_eq!(of(Live::IfItFits, 70).unwrap().lines().count(), 66);
        assert_eq!(of(Live::Never, 200), None);
        assert_eq!(of(Live::Always, 6), None, "no room at all");
        let text = of(Live::Always, 10).unwrap();
        assert_eq!(text.lines().count(), 2 + 4 + 1, "{text}");
        assert_eq!(text.matches("6.0 us").count(), 4, "{text}");
        assert!(text.ends_with("the worst of 64 threads"), "{text}");
        assert_eq!(table("k", None, &[], Live::Always, (80, 24)), None, "a cost has no threads");
    }
}
