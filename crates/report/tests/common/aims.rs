//! Aimed releases made up as a board would have given them.

use punctual_core::aimed::{AimedCell, AimedRun, Course, Shot, Target};
use punctual_core::preemption::Model;
use punctual_core::sections::Section;

pub fn section(from: &str, to: &str, length_ns: u64) -> Section {
    Section {
        at_ns: 1_203_400_000,
        exact: true,
        length_ns,
        interrupts_off_ns: length_ns / 40,
        from: from.to_owned(),
        to: to.to_owned(),
        stack: vec!["do_syscall_64".to_owned(), from.to_owned()],
        functions: vec![("clear_page_erms".to_owned(), length_ns / 2)],
    }
}

/// A target whose release measured this many ns, or nothing.
pub fn target(section: Section, number: u64, latency_ns: Option<u64>) -> Target {
    let measured = match latency_ns {
        Some(latency_ns) => {
            Shot::Measured { run: format!("20261122T090003Z-aim-{number}"), latency_ns }
        }
        None => Shot::Failed {
            why: format!("sample {} came out at 12.4 us instead of 12.3 us", number - 1),
        },
    };
    let predicted_ns = section.length_ns + 18_900;
    let at_ns = number * 1_000_000 + 204_000;
    Target { section, number, at_ns, predicted_ns, round: 1, measured }
}

pub fn cell(load: &str, course: Course, sampled: u64, targets: Vec<Target>) -> AimedCell {
    AimedCell {
        key: format!("wakeup @ {load} @ 2s"),
        load: load.to_owned(),
        course,
        samples: 2_000,
        sampled_max_ns: Some(sampled),
        passed_over: 0,
        targets,
    }
}

pub fn run(release: &str, model: Model, cells: Vec<AimedCell>) -> AimedRun {
    AimedRun {
        run_id: "5f3a".to_owned(),
        run: format!("20261120T170003Z-lab-{release}-5f3a"),
        release: release.to_owned(),
        model,
        cells,
        caveats: vec!["Every instruction takes the same time.".to_owned()],
    }
}

/// A kernel without preemption, under a load and without.
pub fn none() -> AimedRun {
    let copy = |ns| section("copy_pte_range", "syscall_exit_to_user_mode", ns);
    let mut loaded = cell(
        "hackbench",
        Course::Sampled,
        437_000,
        vec![
            target(copy(571_200), 1_204, Some(591_700)),
            target(copy(520_000), 804, None),
            target(section("handle_softirqs", "irq_exit_rcu", 431_800), 1_811, Some(448_250)),
        ],
    );
    loaded.passed_over = 3;
    let timer = section("asm_sysvec_apic_timer_interrupt", "irqentry_exit", 4_000);
    let quiet = cell("none", Course::Sampled, 24_400, vec![target(timer, 17, Some(22_900))]);
    run("6.1.0-56-amd64", Model::None, vec![loaded, quiet])
}

/// The same under PREEMPT_RT, and one cell in which nothing was released before.
pub fn rt() -> AimedRun {
    let lock = |ns| section("scsi_queue_rq", "scsi_queue_rq", ns);
    let loaded = cell(
        "hackbench",
        Course::Sampled,
        36_600,
        vec![target(lock(28_500), 512, Some(47_100)), target(lock(28_100), 511, Some(47_100))],
    );
    let mut alone = cell("hackbench", Course::Alone, 36_600, loaded.targets.clone());
    alone.targets[0] = target(lock(33_000), 512, Some(52_300));
    run("6.1.0-56-rt-amd64", Model::Rt, vec![loaded, alone])
}
