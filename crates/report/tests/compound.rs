//! Samples that several held up: each has its own length and its own remedy.

mod common;

use common::{culprits, explained};
use punctual_core::explanation::{Chosen, Explained, ExplainedCell, Explanation, Unexplained};
use punctual_core::preemption::Model;
use punctual_report::explanation::{Remedy, cause, page, text, text_against};

fn remedies(sample: &Explained, model: Model) -> Vec<String> {
    cause(sample, model).remedies.iter().map(Remedy::words).collect()
}

#[test]
fn a_softirq_and_a_thread_after_it_have_their_own_lengths() {
    let both = culprits::softirq_then_thread(1_500_000, 900_000, true);
    let expected = "2.407 ms late: 1.500 ms in flood [flood] of a softirq before it came to the \
                    scheduler, then 901.1 us in spin_for [spin] of kernel thread spin_all [spin] \
                    while the scheduler preferred fifo98 (pid 1234, real-time 98)";
    assert_eq!(cause(&both, Model::Full).sentence, expected);
    let softirq = "Nothing preempts a softirq; under PREEMPT_RT a thread of higher priority does.";
    let thread = "A thread of the same or a higher priority runs first, under every model: give \
                  this one a higher priority, or that one a lower.";
    let both_help = [format!("For the 1.500 ms: {softirq}"), format!("For the 901.1 us: {thread}")];
    assert_eq!(remedies(&both, Model::Full), both_help);
    // Nobody is said to have had what nobody is known to have had.
    let one = culprits::softirq_then_thread(1_500_000, 900_000, false);
    let sentence = cause(&one, Model::Full).sentence;
    assert!(
        sentence
            .ends_with(" of a softirq before it came to the scheduler, 902.5 us not attributed"),
        "{sentence}"
    );
    assert_eq!(remedies(&one, Model::Full), [softirq]);
}

#[test]
fn a_leg_belongs_to_one_if_it_has_all_but_a_fiftieth() {
    let sentence = |softirq, thread| {
        cause(&culprits::softirq_then_thread(softirq, thread, true), Model::Full).sentence
    };
    let all = sentence(987_000, 8_000);
    assert!(all.contains(": 997.5 us in flood [flood] of a softirq before "), "{all}");
    assert!(!all.contains("fifo98"), "{all}");
    let most = sentence(970_000, 25_000);
    assert!(most.contains(": 970.0 us in flood [flood] of a softirq before "), "{most}");
    assert!(most.contains(", then 26.1 us in spin_for [spin] "), "{most}");
    let least = sentence(8_000, 987_000);
    assert!(least.contains(": 997.5 us in spin_for [spin] of kernel thread "), "{least}");
    assert!(!least.contains("softirq"), "{least}");
}

#[test]
fn interrupts_off_after_preemption_have_their_own_length() {
    let both = culprits::preemption_then_interrupts(500_000, 300_000);
    let expected = "805.8 us late: 500.0 us in hold_preempt_off [hold] of kernel thread hold_all \
                    [hold] under preempt=full (preemption off), then 300.0 us with interrupts off \
                    from hold_irqs_off [hold] to hold_irqs_off [hold] in hold_irqs_off [hold] of \
                    kernel thread hold_all [hold]";
    assert_eq!(cause(&both, Model::Full).sentence, expected);
    let helps = "For the 500.0 us: Preemption was off, as below a spinlock; PREEMPT_RT preempts \
                 most of those.";
    assert_eq!(remedies(&both, Model::Full), [helps]);
}

#[test]
fn holds_of_two_legs_are_both_told() {
    let both = culprits::interrupts_then_preemption(400_000, 390_000);
    let sentence = cause(&both, Model::Full).sentence;
    let expected = "795.6 us late: 400.0 us with interrupts off from _raw_spin_lock_irq to \
                    _raw_spin_unlock_irq in hold_irqs_off [hold] of kernel thread hold_all [hold], \
                    then 391.4 us in hold_preempt_off [hold] of kernel thread hold_all [hold] under \
                    preempt=full (preemption off)";
    assert_eq!(sentence, expected);
    let starts = remedies(&both, Model::Full);
    assert!(starts[0].starts_with("For the 400.0 us: Under PREEMPT_RT most spinlocks "));
    assert!(starts[1].starts_with("For the 391.4 us: Preemption was off, "), "{starts:?}");
    // A tenth of the latency is worth a word, less is not.
    let short = cause(&culprits::interrupts_then_preemption(700_000, 40_000), Model::Full);
    assert!(!short.sentence.contains("hold_preempt_off"), "{}", short.sentence);
}

#[test]
fn two_timers_that_were_called_first_are_two() {
    let sample = culprits::timers(300_000, 200_000);
    let expected = "504.5 us late: 300.1 us in late_first [late], which another timer calls, then \
                    200.0 us in late_second [late], which another timer calls";
    assert_eq!(cause(&sample, Model::None).sentence, expected);
    let both = remedies(&sample, Model::None);
    assert!(both[0].starts_with("For the 300.1 us and 200.0 us: Nothing preempts what a timer "));
    assert_eq!(both.len(), 1);
    assert_eq!(remedies(&sample, Model::Rt), [""; 0]);
}

#[test]
fn timers_that_wake_others_are_told_with_all_of_their_time() {
    let sentence =
        |before, after| cause(&culprits::timer_storm(before, after, 940), Model::None).sentence;
    // A microsecond each, with the queue's part.
    let storm = "in timerfd_tmrproc, which another timer calls";
    for (before, after) in [(1_000, 0), (0, 1_000)] {
        let one = sentence(before, after);
        assert!(one.contains(&format!(" late: 1.001 ms {storm}")), "{one}");
    }
    let both = sentence(600, 300);
    assert!(both.contains(&format!(": 601.1 us {storm}")), "{both}");
    assert!(both.contains(&format!(", then 300.8 us {storm}")), "{both}");
}

#[test]
fn an_interrupt_right_after_the_timers_is_no_part_of_the_path() {
    let sentence = cause(&culprits::device(200_000), Model::Full).sentence;
    let device = ": 201.4 us in storm_handler [storm] of a device's interrupt before it came to the \
                  scheduler";
    assert!(sentence.ends_with(device), "{sentence}");
}

#[test]
fn many_pieces_are_told_by_who_had_them() {
    let sentence = cause(&culprits::interrupted(20), Model::None).sentence;
    let storm = " 200.0 us in storm_handler [storm] of a device's interrupt before it came to the \
                 scheduler in 20 pieces, then 160.0 us in vfs_read of system call read under \
                 preempt=none (no scheduling point) in 20 pieces";
    assert!(sentence.ends_with(storm), "{sentence}");
    let twice = cause(&culprits::interrupted(2), Model::None).sentence;
    assert_eq!(twice.matches(", then ").count(), 3, "{twice}");
}

/// A cell of which the worst sample and the third were not explained.
fn partly() -> Explanation {
    let unexplained = |after, latency_ns| Unexplained {
        chosen: Chosen::Worst,
        after,
        at_ns: 1_204_000_000,
        latency_ns,
        why: "what is known begins after the release\u{1b}".to_owned(),
    };
    let samples = vec![
        explained::fork(Chosen::Typical, 0),
        culprits::softirq_then_thread(1_500_000, 900_000, true),
    ];
    let cell = ExplainedCell {
        key: "wakeup @ hackbench @ 2s".to_owned(),
        load: "hackbench".to_owned(),
        samples,
        unexplained: vec![unexplained(1, 60_000_000), unexplained(2, 2_000_000)],
    };
    explained::explanation("6.1.0", Model::None, vec![cell])
}

#[test]
fn a_sample_that_was_not_explained_has_its_own_sentence_and_leaves_the_others() {
    let partly = partly();
    let text = text(&partly, 120, false);
    let not = |name: &str, ns: &str| {
        format!(
            "  {name:<11}{ns} late at 1.204 s; not explained: what is known begins after the release\u{fffd}"
        )
    };
    let lines: Vec<&str> = text.lines().collect();
    let place = |line: &str| {
        lines.iter().position(|one| *one == line).unwrap_or_else(|| panic!("{line}: {text}"))
    };
    let starts = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap();
    let order = [
        starts("  typical    9.5 us late"),
        place(&not("worst", "60.000 ms")),
        starts("  2nd worst  2.407 ms late: 1.500 ms in "),
        place(&not("3rd worst", "2.000 ms")),
    ];
    assert!(order.is_sorted(), "{text}");
    assert!(text.contains("  2nd worst: 2.407 ms at 1.204 s"), "{text}");
    let page = page(&partly);
    assert!(page.contains("<b>worst</b>: 60.000 ms late at 1.204 s; not explained: "), "{page}");
    assert!(page.contains("<b>2nd worst</b>: 2.407 ms late: "));
    let against = text_against(&partly, &partly, 200, false);
    let says = "A, wakeup @ hackbench @ 2s · worst: 60.000 ms late at 1.204 s; not explained: ";
    assert!(against.contains(says), "{against}");
}

#[test]
fn a_cell_of_which_nothing_was_explained_says_why() {
    let mut partly = partly();
    partly.cells[0].samples.clear();
    let text = text(&partly, 120, false);
    assert!(text.contains("  2nd worst  2.000 ms late at 1.204 s; not explained: "), "{text}");
    assert!(!text.contains("no samples") && !text.contains("the longest leg"), "{text}");
    assert!(page(&partly).contains("not explained: "));
}
