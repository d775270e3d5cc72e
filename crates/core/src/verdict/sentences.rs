//! Numbers as the sentences of a verdict print them.

use crate::rate::Rate;
use crate::schema::{Broke, Episodes, Outcome};
use crate::stats::samples_needed;
use crate::units::{SECOND_NS, exact_duration, grouped, human_ns, percent, stretch};

/// A deadline as it was given, with a space before its unit: `200 us`.
pub(super) fn deadline(ns: u64) -> String {
    let exact = exact_duration(ns);
    let unit = exact.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(exact.len());
    format!("{} {}", &exact[..unit], &exact[unit..])
}

/// An instant of a cell: `at 10.033 s`.
pub(super) fn at(ns: u64) -> String {
    format!("at {}", human_ns(i64::try_from(ns).unwrap_or(i64::MAX)))
}

/// The sample above the break value.
pub(super) fn broke(broke: &Broke) -> String {
    let cpu = broke.cpu.map_or_else(String::new, |cpu| format!(", CPU {cpu}"));
    let at = broke.at_ns.map_or_else(String::new, |ns| format!(", {}", at(ns)));
    format!(
        "{} > break value {} (thread {}{cpu}{at})",
        human_ns(broke.latency_ns),
        deadline(broke.limit_ns),
        broke.thread
    )
}

/// That the sample above the break value is one of a stop.
pub(super) fn broke_by_stop(broke: &Broke) -> String {
    let at = broke.at_ns.map_or_else(String::new, |ns| format!(" {}", at(ns)));
    format!(
        "ended by a sample above the break value {}{at}, which is one of the time in which the process \
         was stopped: nothing is known of a break; run it again",
        deadline(broke.limit_ns)
    )
}

/// How many of how many were late, over one thread or several; if they were not counted exactly, at
/// most how many.
pub(super) fn late(k: u64, n: u64, nouns: &str, deadline_ns: u64, exact: bool) -> String {
    let deadline = deadline(deadline_ns);
    let most = if exact { "" } else { "at most " };
    match k {
        0 => format!("none of {} {nouns} was{LATER_THAN}{deadline}", grouped(n)),
        1 => format!("1 of {} {nouns} was{LATER_THAN}{deadline}", grouped(n)),
        _ => format!("{most}{} of {} {nouns} were{LATER_THAN}{deadline}", grouped(k), grouped(n)),
    }
}

const LATER_THAN: &str = " later than ";

/// Whether a reason is one of [`late`].
pub(super) fn says_how_many(reason: &str) -> bool {
    reason.contains(LATER_THAN)
}

/// What the count of late ones supports. The bound is one of independent events, so that its
/// premise is part of the sentence.
pub(super) fn bound(upper: f64, nouns: &str, level: f64) -> String {
    format!(
        "if late {nouns} come singly, {} late ({} confidence)",
        at_most(upper),
        confidence(level)
    )
}

/// How many times they were late, and what one time is; nothing of none, or of a single late one. Of
/// whole seconds it is not known how long it lasted.
pub(super) fn in_episodes(found: &Episodes) -> Option<String> {
    if found.count == 0 || found.size_sum == 1 {
        return None;
    }
    let is_known = !found.in_seconds && !found.joined;
    let longest = human_ns(i64::try_from(found.longest_ns).unwrap_or(i64::MAX));
    let spanning = match found.count {
        _ if !is_known => String::new(),
        1 => format!(", spanning {longest}"),
        _ => format!(", the longest spanning {longest}"),
    };
    let often = match found.count {
        1 => "once".to_owned(),
        count => format!("{} times", grouped(count)),
    };
    let more = if found.joined { " or more" } else { "" };
    let one = match found.in_seconds {
        true => "seconds with late ones that follow each other are one time",
        false => "late ones at most 1 s apart are one time",
    };
    Some(format!("late {often}{more}{spanning} ({one})"))
}

/// Which of several a verdict rests on: "the worst" is the one with the largest latency, which the
/// first sentence has.
pub(super) fn which(number: usize, nouns: &str, has_largest: bool, outcome: Outcome) -> String {
    match outcome {
        _ if has_largest => format!("the worst of {number} {nouns}"),
        Outcome::Pass => format!("the one of {number} {nouns} that shows least"),
        _ => format!("the one of {number} {nouns} that decides"),
    }
}

/// The bound on the rate of late episodes, which is one on how often lateness begins, under the load
/// that was tested. The time is rounded down, the number up.
pub(super) fn at_most_one_in(rate: f64, level: f64) -> String {
    format!(
        "lateness begins at most once in {} on average{} ({} confidence), under this load",
        time_below(1.0 / rate),
        an_hour(rate),
        confidence(level)
    )
}

/// How often an hour that is, if it is more than once.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn an_hour(rate: f64) -> String {
    let times = (rate * 3_600.0 * (1.0 - 1e-9)).ceil();
    if times > 1.0 { format!(", {} times an hour", grouped(times as u64)) } else { String::new() }
}

/// What share of runs may be late within the time that each of them observed.
pub(super) fn share_of_runs(late: u64, runs: u64, upper: f64, time: &str, level: f64) -> String {
    let seen = match late {
        0 => format!("{runs} runs, none late in {time}"),
        _ => format!("{late} of {runs} runs late in {time} or more"),
    };
    if late == runs {
        return format!("{seen}: no upper bound on the share of runs that are late");
    }
    format!(
        "{seen}; up to {} % of runs like these may {}be late ({} confidence)",
        (upper * 100.0).ceil(),
        if late == 0 { "still " } else { "" },
        confidence(level)
    )
}

/// What share of runs may not pass a soft deadline, of which lateness by itself says nothing.
pub(super) fn share_of_passes(passed: u64, runs: u64, upper: f64, level: f64) -> String {
    let seen = match passed {
        0 => return format!("none of {runs} runs passes by itself"),
        _ if passed == runs => format!("{runs} runs, each passes by itself"),
        _ => format!("{passed} of {runs} runs pass by themselves"),
    };
    format!(
        "{seen}; up to {} % of runs like these may {}not ({} confidence)",
        (upper * 100.0).ceil(),
        if passed == runs { "still " } else { "" },
        confidence(level)
    )
}

/// A time in seconds, rounded down to three digits.
fn time_below(seconds: f64) -> String {
    let (unit, name) = match seconds {
        _ if seconds < 120.0 => (1.0, "s"),
        _ if seconds < 7_200.0 => (60.0, "min"),
        _ if seconds < 172_800.0 => (3_600.0, "h"),
        _ => (86_400.0, "days"),
    };
    let value = seconds / unit;
    let digits = if value < 1.0 { 1e3 } else { 10.0 };
    // A bound that was given as one in 10 s is not to read as one in 9.9 s.
    let down = (value * digits * (1.0 + 1e-9)).floor() / digits;
    format!("{down:.*} {name}", if value < 1.0 { 3 } else { 1 })
}

/// How often: `once`, `9 times`.
pub(super) fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", grouped(count)) }
}

/// That a rate was found to be too high.
pub(super) fn too_often(allowed: Rate, level: f64) -> String {
    format!(
        "lateness begins more often than {allowed}, which is allowed ({} confidence)",
        confidence(level)
    )
}

/// That episodes do not come independently.
pub(super) fn clustered(found: &Episodes) -> String {
    format!(
        "lateness comes in clusters ({} times if late ones at most 1 s apart are one time, {} if it \
         is 10 s): how often it begins says little of how often something goes wrong, and a soft \
         deadline is not judged by it",
        grouped(found.count),
        grouped(found.count_10s)
    )
}

/// What share of activations is late at most.
pub(super) fn share(upper: f64, nouns: &str, level: f64) -> String {
    format!(
        "{} late of all {nouns} ({} confidence), by the means of stretches of the run, if this time \
         is like the time asked about",
        at_most(upper),
        confidence(level)
    )
}

/// The same, by how often lateness begins and how long it lasts.
pub(super) fn share_by_longest(upper: f64, nouns: &str, longest_ns: u64, level: f64) -> String {
    format!(
        "{} late of all {nouns} ({} confidence), if nothing makes them late for longer than {} at a \
         time",
        at_most(upper),
        confidence(level),
        stretch(longest_ns)
    )
}

/// Nobody measures for longer than ten years, ns.
const PRACTICAL_NS: u64 = 10 * 365 * 24 * 3_600 * SECOND_NS;

/// How long a run must be for a PASS at this rate, if `late` seconds of it held a late episode.
pub(super) fn needs_time(
    rate: Rate,
    needed_ns: Option<u64>,
    observed: &Observed,
    late: u64,
) -> String {
    let seen = stretch(observed.ns);
    let Some(needed) = needed_ns.filter(|ns| *ns <= PRACTICAL_NS) else {
        return format!("{seen}{TOO_SHORT}no practical time shows at most {rate}");
    };
    let without = if late == 0 { "without lateness" } else { "without more lateness" };
    format!(
        "{seen}{TOO_SHORT}{} {without} are needed to show at most {rate}; run with {}",
        stretch(needed),
        observed.long_enough(needed)
    )
}

const TOO_SHORT: &str = " are too short: ";
const TOO_FEW: &str = " are too few: ";

/// Whether a reason is one of [`needs_time`] or [`needs`].
pub(super) fn says_too_little(reason: &str) -> bool {
    reason.contains(TOO_SHORT) || reason.contains(TOO_FEW)
}

/// How long was observed, and what ended that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed {
    /// Time in which lateness would have been seen, ns.
    pub ns: u64,
    /// Its share of the time that is asked for with -D, above 0.
    pub share: f64,
    /// The samples per thread that ended it, if it was not that time.
    pub ended_after: Option<u64>,
}

impl Observed {
    /// The -D, or the -l, by which so many ns are observed.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a duration is rounded up to seconds, a number of samples to two digits"
    )]
    pub fn long_enough(&self, needed_ns: u64) -> String {
        match self.ended_after {
            Some(samples) if self.ns > 0 => {
                let each = self.ns as f64 / samples as f64;
                format!("-l {}", two_digits((needed_ns as f64 / each).ceil() as u64))
            }
            _ => format!("-D {}", asked(round_up((needed_ns as f64 / self.share) as u64))),
        }
    }
}

/// A number rounded up to two digits.
fn two_digits(number: u64) -> u64 {
    let unit = 10_u64.pow(number.max(1).ilog10().saturating_sub(1));
    number.div_ceil(unit).saturating_mul(unit)
}

/// That a probability is none of time.
pub(super) fn no_rate() -> String {
    "the plan's probability says nothing of time, and this probe has no interval: --at-most 6/min \
     asks for a rate, --singly counts one by one"
        .to_owned()
}

/// A duration as it is given to -D: in seconds up to ten minutes.
fn asked(ns: u64) -> String {
    if ns < 600 * SECOND_NS { format!("{}s", ns / SECOND_NS) } else { exact_duration(ns) }
}

/// Why a soft deadline was failed.
pub(super) fn intolerable(tolerated: f64, level: f64) -> String {
    format!(
        "this is more than the allowed {} % ({} confidence)",
        percent(tolerated),
        confidence(level)
    )
}

/// An upper bound of a share, never smaller than it is: `at most 1 in 10,016 is`.
fn at_most(bound: f64) -> String {
    match one_in(bound) {
        Some(n) => format!("at most 1 in {} is", grouped(n)),
        None => format!("at most {:.1} % are", (bound * 1e3).ceil() / 10.0),
    }
}

/// The n of "1 in n", rounded down; none if half or more exceed.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn one_in(bound: f64) -> Option<u64> {
    // Exactly 1/n must not become n - 1.
    let n = (1.0 / bound * (1.0 + 4.0 * f64::EPSILON)).floor();
    (n >= 2.0).then_some(n as u64)
}

/// A confidence in percent: `95 %`, `99.9 %`.
pub(super) fn confidence(c: f64) -> String {
    let percent = format!("{:.6}", c * 100.0);
    let percent = percent.trim_end_matches('0').trim_end_matches('.');
    format!("{percent} %")
}

/// How long a run must be for `k` late ones in total to leave an upper bound of at most
/// `target`. The samples of two runs cannot be added up, so this is the whole length.
pub(super) fn needs(
    target: f64,
    k: u64,
    scheduled: u64,
    interval_ns: Option<u64>,
    nouns: &str,
    level: f64,
) -> String {
    let (measured, percent) = (grouped(scheduled), percent(target));
    let Some(needed) = samples_needed(target, k, level) else {
        return format!(
            "{measured} {nouns}{TOO_FEW}no practical number shows at most {percent} % late"
        );
    };
    let option = interval_ns.and_then(|interval| needed.checked_mul(interval));
    let option = match option {
        Some(ns) => format!("-D {}", exact_duration(round_up(ns))),
        None => format!("-l {needed}"),
    };
    let calm = if k > 0 { ", if no more are late" } else { "" };
    format!(
        "{measured} {nouns}{TOO_FEW}{} are needed to show at most {percent} % late; run with \
         {option}{calm}",
        grouped(needed)
    )
}

/// A duration rounded up to what people would ask for: seconds, or minutes from ten minutes,
/// or hours from ten hours.
fn round_up(ns: u64) -> u64 {
    let unit = match ns / SECOND_NS {
        0..600 => 1,
        600..36_000 => 60,
        _ => 3_600,
    };
    ns.div_ceil(unit * SECOND_NS).saturating_mul(unit * SECOND_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn centuries_are_no_time_to_run_for() {
        let needs = |years: u64| {
            let needed = years * 365 * 24 * 3_600 * SECOND_NS;
            let observed = Observed { ns: 0, share: 1.0, ended_after: None };
            needs_time(Rate::SIX_A_MINUTE, Some(needed), &observed, 0)
        };
        assert!(needs(9).contains("run with -D "), "{}", needs(9));
        assert!(needs(34).contains("no practical time shows at most 6/min"), "{}", needs(34));
    }

    #[test]
    fn numbers_read_as_people_say_them() {
        assert_eq!(deadline(200_000), "200 us");
        assert_eq!(deadline(1_500_000), "1500 us");
        assert_eq!(confidence(0.95), "95 %");
        assert_eq!(confidence(0.999), "99.9 %");
        assert_eq!(at_most(1e-4), "at most 1 in 10,000 is");
        assert_eq!(at_most(0.7), "at most 70.0 % are");
        assert_eq!(at_most(1.0), "at most 100.0 % are");
    }

    #[test]
    fn what_is_missing_is_said_as_the_option_that_is_long_enough() {
        let needs = |target, k, scheduled, interval| {
            needs(target, k, scheduled, interval, "activations", 0.95)
        };
        assert_eq!(
            needs(1e-4, 0, 9_956, Some(1_000_000)),
            "9,956 activations are too few: 29,956 are needed to show at most 0.01 % late; run with \
             -D 30s"
        );
        assert!(needs(1e-6, 0, 0, Some(1_000_000)).ends_with("run with -D 50min"));
        assert!(needs(1e-9, 0, 0, Some(1_000_000)).ends_with("run with -D 833h"));
        assert_eq!(
            needs(1e-2, 3, 500, None),
            "500 activations are too few: 773 are needed to show at most 1 % late; run with -l 773, \
             if no more are late"
        );
    }

    #[test]
    fn what_ended_by_its_samples_is_to_have_more_of_them() {
        let observed = |ended_after| Observed { ns: SECOND_NS, share: 1.0, ended_after };
        assert_eq!(observed(Some(1_000)).long_enough(29_957_322_736), "-l 30000");
        assert_eq!(observed(Some(900)).long_enough(29_957_322_736), "-l 27000");
        assert_eq!(observed(None).long_enough(29_957_322_736), "-D 30s");
        let nothing = Observed { ns: 0, ..observed(Some(1)) };
        assert_eq!(nothing.long_enough(29_957_322_736), "-D 30s");
        assert_eq!([1, 9, 10, 99, 101, 29_957].map(two_digits), [1, 9, 10, 99, 110, 30_000]);
    }

    #[test]
    fn a_duration_is_rounded_up_and_never_down() {
        for (seconds, rounded) in [(0, 0), (1, 1), (599, 599), (601, 660), (36_001, 39_600)] {
            assert_eq!(round_up(seconds * SECOND_NS), rounded * SECOND_NS);
        }
        assert_eq!(round_up(29_956_000_000), 30 * SECOND_NS);
    }

    proptest! {
        #[test]
        fn one_in_n_is_never_less_than_the_bound(bound in 1e-12_f64..0.5) {
            let n = one_in(bound).unwrap();
            prop_assert!(1.0 / n as f64 >= bound * (1.0 - 1e-14));
            prop_assert!(1.0 / (n as f64 + 1.0) < bound);
        }
    }
}
