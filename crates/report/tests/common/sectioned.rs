//! Sections made up as a board would have given them.

use std::collections::BTreeMap;

use punctual_core::coverage::{CellCoverage, Coverage, ExecutedFunction, LockingFunction};
use punctual_core::explanation::Hold;
use punctual_core::histogram::{bin_low, bin_of};
use punctual_core::preemption::Model;
use punctual_core::sections::{
    CellSections, KindSections, PairSections, SLICES, Section, Sections,
};

use super::Random;

const WATCHED: u64 = 2_000_000_000;

/// Where sections are: the functions that begin and end them, how many there are, how long they
/// usually are, ns, the callers, and what runs in them with its share of them in percent.
type Place<'a> = ([&'a str; 2], u64, f64, &'a [&'a str], &'a [(&'a str, u64)]);

const CLONE: &[&str] = &[
    "entry_SYSCALL_64_after_hwframe",
    "do_syscall_64",
    "__x64_sys_clone",
    "__do_sys_clone",
    "kernel_clone",
    "copy_process",
    "dup_mm.constprop.0",
    "copy_page_range",
    "copy_pte_range",
    "copy_present_page",
];
const COPY: Place<'_> = (
    ["copy_pte_range", "syscall_exit_to_user_mode"],
    400,
    100_000.0,
    CLONE,
    &[("clear_page_erms", 51), ("copy_mc_enhanced_fast_string", 33), ("copy_pte_range", 7)],
);
const SOFTIRQ: Place<'_> = (
    ["handle_softirqs", "irq_exit_rcu"],
    1_800,
    5_000.0,
    &["asm_common_interrupt", "common_interrupt", "irq_exit_rcu", "handle_softirqs"],
    &[("tcp_v4_rcv", 40), ("__skb_checksum", 24)],
);
const ISSUE: Place<'_> = (
    ["scsi_queue_rq", "scsi_queue_rq"],
    900,
    3_000.0,
    &["kthread", "worker_thread", "process_one_work", "blk_mq_run_work_fn", "scsi_queue_rq"],
    &[("ioread8", 55), ("ata_scsi_queuecmd", 25)],
);
const TIMER: Place<'_> = (
    ["asm_sysvec_apic_timer_interrupt", "irqentry_exit"],
    4_000,
    900.0,
    &["asm_sysvec_apic_timer_interrupt"],
    &[("hrtimer_interrupt", 12), ("__hrtimer_run_queues", 9)],
);

struct One<'a> {
    length: u64,
    at: u64,
    place: &'a Place<'a>,
}

/// The sections at some places, all lengths times a factor.
fn kind(how: Hold, places: &[Place<'_>], factor: f64, seed: u64) -> KindSections {
    let mut random = Random::new(seed);
    let mut all: Vec<One<'_>> = Vec::new();
    for place in places {
        for _ in 0..place.1 {
            let length = (300.0 - place.2 * factor * random.unit().ln()) as u64;
            all.push(One { length, at: random.next() % WATCHED, place });
        }
    }
    let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
    let mut slices: BTreeMap<u64, u64> = BTreeMap::new();
    for one in &all {
        *lengths.entry(bin_low(bin_of(one.length))).or_default() += 1;
        let wide = WATCHED / SLICES as u64;
        let longest = slices.entry(one.at / wide * wide).or_default();
        *longest = one.length.max(*longest);
    }
    let total = |list: &[&One<'_>]| list.iter().map(|one| one.length).sum::<u64>();
    let pair = |place: &Place<'_>| {
        let own: Vec<_> = all.iter().filter(|one| one.place.0 == place.0).collect();
        let mut powers: BTreeMap<u64, u64> = BTreeMap::new();
        own.iter().for_each(|one| *powers.entry(1 << one.length.ilog2()).or_default() += 1);
        PairSections {
            from: place.0[0].to_owned(),
            to: place.0[1].to_owned(),
            count: own.len() as u64,
            total_ns: total(&own),
            max_ns: own.iter().map(|one| one.length).max().unwrap_or(0),
            lengths: powers.into_iter().collect(),
        }
    };
    let mut pairs: Vec<_> = places.iter().map(pair).collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.max_ns));
    let mut longest: Vec<_> = all.iter().collect();
    longest.sort_by_key(|one| std::cmp::Reverse(one.length));
    KindSections {
        how,
        count: all.len() as u64,
        total_ns: total(&all.iter().collect::<Vec<_>>()),
        max_ns: longest.first().map_or(0, |one| one.length),
        lengths: lengths.into_iter().collect(),
        over_time: slices.into_iter().collect(),
        pairs,
        longest: longest.into_iter().take(4).map(|one| section(how, one)).collect(),
    }
}

fn section(how: Hold, one: &One<'_>) -> Section {
    let ([from, to], _, _, stack, functions) = one.place;
    let part = |(name, percent): &(&str, u64)| ((*name).to_owned(), one.length * percent / 100);
    Section {
        at_ns: one.at.cast_signed(),
        exact: !one.length.is_multiple_of(3),
        length_ns: one.length,
        interrupts_off_ns: if how == Hold::Interrupts { one.length } else { one.length / 40 },
        from: (*from).to_owned(),
        to: (*to).to_owned(),
        stack: stack.iter().map(|name| (*name).to_owned()).collect(),
        functions: functions.iter().map(part).collect(),
    }
}

/// A pair of functions with one section.
pub fn pair(number: u64) -> PairSections {
    PairSections {
        from: format!("begin_{number}"),
        to: format!("end_{number}"),
        count: 1,
        total_ns: 10,
        max_ns: 10,
        lengths: vec![(8, 1)],
    }
}

pub fn cell(key: &str, load: &str, kinds: Vec<KindSections>) -> CellSections {
    CellSections {
        key: key.to_owned(),
        load: load.to_owned(),
        watched_ns: WATCHED,
        samples: 2_000,
        sampled_max_ns: Some(437_000),
        kinds,
    }
}

/// What these cells executed: 800 functions in common, and a few of their own.
fn coverage(cells: &[CellSections]) -> Coverage {
    let own = |number: usize| (0..=number).map(move |n| format!("only_{number}_{n}"));
    let blocks = |number: usize| -> Vec<u64> {
        (0..cells.len()).map(|cell| if cell == number { 7 } else { 0 }).collect()
    };
    let shared = (0..800)
        .map(|n| ExecutedFunction { name: format!("both_{n}"), blocks: vec![3; cells.len()] });
    let alone = (0..cells.len()).flat_map(|number| {
        own(number).map(move |name| ExecutedFunction { name, blocks: blocks(number) })
    });
    let locking = |name: String, places| LockingFunction { name, places };
    let cell = |(number, cell): (usize, &CellSections)| CellCoverage {
        key: cell.key.clone(),
        load: cell.load.clone(),
        blocks: 10_000 - number as u64,
        functions: 801 + number as u64,
        locking: 200,
        only: own(number).collect(),
    };
    Coverage {
        functions: 41_000,
        locking: 228,
        blocks: 10_700,
        cells: cells.iter().enumerate().map(cell).collect(),
        executed: shared.chain(alone).collect(),
        unreached: (0..8)
            .map(|n| locking(format!("unreached_{n}"), if n < 2 { 12 - n } else { 1 }))
            .collect(),
    }
}

pub fn sections(release: &str, model: Model, cells: Vec<CellSections>) -> Sections {
    Sections {
        run_id: "5f3a".to_owned(),
        run: format!("20261120T170003Z-lab-{release}-5f3a"),
        release: release.to_owned(),
        model,
        instruction_ns: 1,
        coverage: coverage(&cells),
        cells,
        caveats: vec!["Every instruction takes the same time.".to_owned()],
    }
}

fn made(release: &str, model: Model, factor: f64) -> Sections {
    let off = |places: &[Place<'_>], factor| kind(Hold::Interrupts, places, factor, 3);
    let uncalled = |places: &[Place<'_>], factor| kind(Hold::Scheduler, places, factor, 5);
    let mut loaded = off(&[ISSUE, TIMER], factor.sqrt());
    loaded.pairs.extend((0..13).map(pair));
    let loaded = vec![loaded, uncalled(&[COPY, SOFTIRQ, ISSUE, TIMER], factor)];
    let quiet = vec![off(&[TIMER], 0.7), uncalled(&[TIMER], 0.9)];
    let mut cells = vec![
        cell("wakeup @ hackbench @ 2s", "hackbench", loaded),
        cell("wakeup @ none @ 2s", "none", quiet),
    ];
    cells[1].sampled_max_ns = Some(5_200);
    sections(release, model, cells)
}

/// A kernel without preemption, under a load and without.
pub fn none() -> Sections {
    made("6.1.0-56-amd64", Model::None, 1.0)
}

/// The same under PREEMPT_RT, where the samples are shorter than the sections are.
pub fn rt() -> Sections {
    let mut rt = made("6.1.0-56-rt-amd64", Model::Rt, 0.05);
    rt.cells[0].sampled_max_ns = Some(36_600);
    rt.cells[1].sampled_max_ns = None;
    rt
}

/// A cell that has no sections.
pub fn quiet() -> Sections {
    let nothing = [Hold::Interrupts, Hold::Scheduler].map(|how| kind(how, &[], 1.0, 1));
    sections("6.1.0", Model::Full, vec![cell("wakeup @ none @ 2s", "none", nothing.into())])
}
