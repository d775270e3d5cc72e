//! Sections of made-up courses.

use punctual_observer::event::{Header, PROTOCOL};

use super::super::functions::tests::{address, functions};
use super::*;

const INSTRUCTION_NS: u64 = 4;

/// Places are such as `read+4`, and `user`.
type Step = (u64, Kind, &'static str);

/// The observer's output.
fn written(functions: &Functions, course: &[Step]) -> Vec<u8> {
    let mut bytes = Header { protocol: PROTOCOL, api: 1 }.to_bytes().to_vec();
    let mut put = |event: Event| bytes.extend(event.to_bytes());
    let mut steps = course.iter().peekable();
    while let Some((at, kind, place)) = steps.next() {
        // As many blocks as follow.
        let value = match kind {
            Kind::DumpBegin => {
                steps.clone().take_while(|(_, kind, _)| *kind != Kind::DumpEnd).count() as u64
            }
            _ => address(functions, place),
        };
        put(Event::new(*at, *kind, value));
    }
    put(Event::new(99_999, Kind::End, 0));
    bytes
}

fn watched(course: &[Step]) -> Watched {
    let functions = functions();
    read(&written(&functions, course)[..], &functions, 10, INSTRUCTION_NS).unwrap()
}

/// The kinds of the first cell, with its samples' readings of the clock.
fn kinds(course: &[Step], read_ns: &[u64]) -> [KindSections; 2] {
    let found = watched(course).cells[0].kinds(read_ns, INSTRUCTION_NS, &functions());
    found.unwrap().try_into().unwrap()
}

/// A stretch with interrupts off that is among the longest, of which no block is known.
fn off(from: u64, to: u64) -> [Step; 4] {
    [
        (from, Kind::InterruptsOff, "read+4"),
        (to, Kind::DumpBegin, "user"),
        (to, Kind::DumpEnd, "user"),
        (to, Kind::InterruptsOn, "copy+8"),
    ]
}

fn sample(clock: u64) -> [Step; 2] {
    [(clock, Kind::Clock, "user"), (clock + 10, Kind::Sample, "user")]
}

#[test]
fn everything_is_counted_by_length_and_function() {
    let course = [
        (100, Kind::Begin, "user"),
        (200, Kind::InterruptsOff, "read+4"),
        (260, Kind::InterruptsOn, "copy+8"),
        (300, Kind::Held, "entry+1"),
        (310, Kind::InterruptsOff, "read.cold+4"),
        (330, Kind::InterruptsOn, "copy+9"),
        (400, Kind::Free, "entry+3"),
        (410, Kind::InterruptsOff, "entry+1"),
        (411, Kind::InterruptsOn, "entry+1"),
        (500, Kind::Clock, "user"),
        (510, Kind::Sample, "user"),
    ];
    let [off, held] = kinds(&course, &[10_000]);
    assert_eq!((off.how, off.count, off.total_ns, off.max_ns), (Hold::Interrupts, 3, 324, 240));
    assert_eq!((held.how, held.count, held.total_ns, held.max_ns), (Hold::Scheduler, 1, 400, 400));
    let pair = |from: &str, to: &str, count, total_ns, max_ns, lengths: &[(u64, u64)]| {
        let (from, to, lengths) = (from.to_owned(), to.to_owned(), lengths.to_vec());
        PairSections { from, to, count, total_ns, max_ns, lengths }
    };
    let of_functions = [
        pair("read", "copy", 2, 320, 240, &[(64, 1), (128, 1)]),
        pair("entry", "entry", 1, 4, 4, &[(4, 1)]),
    ];
    assert_eq!(off.pairs, of_functions);
    assert_eq!(held.pairs, [pair("entry", "entry", 1, 400, 400, &[(256, 1)])]);
    assert_eq!(off.lengths.iter().map(|(_, count)| count).sum::<u64>(), 3);
    assert!(off.lengths.iter().zip([4, 80, 240]).all(|((low, _), ns)| *low <= ns));
    // 300 instructions before the clock was read.
    assert_eq!(off.over_time, [(8_800, 240)]);
    assert!(off.longest.is_empty(), "nothing was written of them");
}

#[test]
fn a_section_has_its_stack_its_functions_and_the_time_without_interrupts() {
    let course = [
        (100, Kind::Begin, "user"),
        (300, Kind::Held, "read+4"),
        (310, Kind::InterruptsOff, "read+4"),
        (330, Kind::InterruptsOn, "read+6"),
        (340, Kind::InterruptsOff, "read+8"),
        (400, Kind::DumpBegin, ""),
        (250, Kind::Block, "user"),
        (260, Kind::Block, "entry+0"),
        (290, Kind::Block, "read+0"),
        (360, Kind::Block, "copy+0"),
        (400, Kind::DumpEnd, "user"),
        // Interrupts are still off.
        (400, Kind::Free, "copy+8"),
        (400, Kind::Held, "copy+8"),
        (420, Kind::InterruptsOn, "copy+9"),
        (430, Kind::Free, "copy+9"),
        (500, Kind::Clock, "user"),
        (510, Kind::Sample, "user"),
    ];
    let [off, held] = kinds(&course, &[10_000]);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let section = Section {
        at_ns: 10_000 - 800,
        exact: true,
        length_ns: 400,
        interrupts_off_ns: 80 + 240,
        from: "read".to_owned(),
        to: "copy".to_owned(),
        stack: names(&["entry", "read"]),
        functions: vec![("read".to_owned(), 240), ("copy".to_owned(), 160)],
    };
    assert_eq!(held.longest, [section]);
    assert_eq!((held.count, held.total_ns), (2, 520));
    assert_eq!((off.count, off.total_ns), (2, 80 + 320));
}

#[test]
fn what_faults_takes_no_time() {
    let course = [
        (100, Kind::Begin, "user"),
        (200, Kind::Held, "read+4"),
        (210, Kind::Interrupt, "asm_exc_page_fault+0"),
        (210, Kind::InterruptsOff, "asm_exc_page_fault+0"),
        (250, Kind::InterruptsOn, "native_irq_return_iret+0"),
        (300, Kind::Free, "read+4"),
        (400, Kind::Interrupt, "asm_sysvec_apic_timer_interrupt+0"),
        (400, Kind::InterruptsOff, "asm_sysvec_apic_timer_interrupt+0"),
        (450, Kind::InterruptsOn, "native_irq_return_iret+0"),
        (500, Kind::Clock, "user"),
        (510, Kind::Sample, "user"),
    ];
    let watched = watched(&course);
    assert_eq!(watched.cells[0].samples[0].clock, 499);
    let [off, held] = kinds(&course, &[10_000]);
    assert_eq!((held.max_ns, off.max_ns, off.total_ns), (99 * 4, 50 * 4, 90 * 4));
}

#[test]
fn a_time_is_exact_unless_the_cpu_was_idle_on_both_sides() {
    let idle = |at| [(at, Kind::Idle, "entry+1"), (at, Kind::Resume, "entry+2")];
    let course = [
        &[(100, Kind::Begin, "user")][..],
        &off(200, 201),
        &sample(1_000),
        &off(1_100, 1_102),
        // Idle in the middle of one: it began before.
        &[(1_250, Kind::InterruptsOff, "read+4")],
        &idle(1_252),
        &off(1_253, 1_253)[1..],
        &off(1_400, 1_404),
        &[(2_000, Kind::Clock, "user")],
        // Before the sample is noted, but after its clock was read.
        &off(2_002, 2_007),
        &[(2_010, Kind::Sample, "user")],
        &idle(2_050),
        &off(2_100, 2_106),
        &idle(2_200),
        &sample(2_500),
    ]
    .concat();
    let [off, _] = kinds(&course, &[50_000, 100_000, 200_000]);
    let found: Vec<_> = off.longest.iter().map(|of| (of.length_ns, of.at_ns, of.exact)).collect();
    let expected = [
        (24, 100_000 + 400, false),
        (20, 100_000 + 8, true),
        (16, 100_000 - 2_400, true),
        (12, 50_000 + 1_000, true),
        (8, 50_000 + 400, true),
        (4, 50_000 - 3_200, true),
    ];
    assert_eq!(found, expected);
    assert!(off.longest.iter().all(|of| of.stack.is_empty() && of.functions.is_empty()));
}

#[test]
fn only_sections_of_the_cell_before_its_last_sample_count() {
    let cell = |at: u64| {
        [
            // Of its warm-up, even if it ends later.
            &off(at - 20, at - 10)[..],
            &[(at - 5, Kind::InterruptsOff, "read+4"), (at, Kind::Begin, "user")],
            &off(0, at + 5)[1..],
            &off(at + 10, at + 11),
            &sample(at + 50),
            &off(at + 100, at + 300),
            &[(at + 400, Kind::Finish, "user")],
            &off(at + 500, at + 600),
        ]
        .concat()
    };
    let watched = watched(&[cell(1_000), cell(2_000)].concat());
    assert_eq!((watched.cells.len(), watched.strays), (2, 0));
    for cell in &watched.cells {
        let found = cell.kinds(&[1_000], INSTRUCTION_NS, &functions()).unwrap();
        assert_eq!((found[OFF].count, found[OFF].total_ns, found[OFF].longest.len()), (1, 4, 1));
        assert_eq!(found[HELD].count, 0);
        let error = cell.kinds(&[1, 2], INSTRUCTION_NS, &functions()).unwrap_err();
        assert_eq!(error.to_string(), "1 samples were watched, and 2 recorded");
    }
}

#[test]
fn each_cell_has_the_blocks_that_were_written_before_its_end() {
    let cell = |at: u64, block: &'static str| {
        let begin = [(at, Kind::Begin, "user")];
        let end = [(at + 60, Kind::Executed, block), (at + 60, Kind::Finish, "user")];
        [&begin[..], &sample(at + 50), &end].concat()
    };
    let stray = [(1_900, Kind::Executed, "fault+0")];
    let course = [&cell(1_000, "read+4")[..], &stray, &cell(2_000, "copy+0")].concat();
    let functions = functions();
    let blocks: Vec<Vec<u64>> =
        watched(&course).cells.into_iter().map(|cell| cell.blocks).collect();
    assert_eq!(blocks, [[address(&functions, "read+4")], [address(&functions, "copy+0")]]);
}

#[test]
fn what_was_watched_begins_after_the_warm_up() {
    let begin = [(100, Kind::Begin, "user")];
    let ns = |course: &[Step], read_ns: &[u64]| {
        watched(course).cells[0].watched_ns(read_ns, INSTRUCTION_NS)
    };
    let busy = [&begin[..], &sample(1_000), &sample(2_000)].concat();
    assert_eq!(ns(&busy, &[50_000, 54_000]), 4_000 + 3_600);
    let idle = [&begin[..], &[(500, Kind::Idle, "entry+1")], &sample(1_000)].concat();
    assert_eq!(ns(&idle, &[50_000]), 50_000);
    assert_eq!(ns(&begin, &[]), 0);
}

#[test]
fn two_courses_are_the_same_up_to_the_first_longer_section_that_differs() {
    let held =
        |at: u64, length: u64| [(at, Kind::Held, "read+4"), (at + length, Kind::Free, "read+8")];
    let cell = |second: [Step; 2]| {
        let begin = [(0, Kind::Begin, "user")];
        let last = sample(30_000);
        let course = [&begin[..], &held(100, 2_000), &second, &held(20_000, 3_000), &last].concat();
        watched(&course).cells.remove(0)
    };
    let whole = cell(held(10_000, 4_000));
    assert_eq!(whole.differs(&cell(held(10_000, 4_000)), u64::MAX), None);
    // Short ones may differ.
    assert_eq!(cell(held(10_000, 10)).differs(&cell(held(11_000, 20)), u64::MAX), None);
    for other in [held(10_001, 3_999), held(10_000, 4_001), held(10_000, 10)] {
        let other = cell(other);
        assert_eq!(whole.differs(&other, 20_000), Some(10_000));
        assert!(other.differs(&whole, 20_000).is_some());
        assert_eq!(whole.differs(&other, 9_000), None);
    }
}

#[test]
fn nothing_cut_short_is_taken_for_whole() {
    let functions = functions();
    let course = [&[(100, Kind::Begin, "user")][..], &off(200, 210), &sample(300)].concat();
    let bytes = written(&functions, &course);
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length], &functions, 1, INSTRUCTION_NS).is_err(), "{length}");
    }
    assert!(read(&bytes[..], &functions, 1, INSTRUCTION_NS).is_ok());
}

#[test]
fn a_cell_without_samples_does_not_collect_everything() {
    let stretch = |at: u64| [(at, Kind::Held, "read+4"), (at + 1, Kind::Free, "read+8")];
    let most = MOST_PENDING as u64;
    let begin = [(0, Kind::Begin, "user")];
    let course: Vec<Step> =
        begin.into_iter().chain((0..most + 10).flat_map(|n| stretch(10 + 2 * n))).collect();
    let cell = watched(&course).cells.remove(0);
    assert_eq!((cell.kinds[HELD].count, cell.pending.len()), (most + 1, 9));
}
