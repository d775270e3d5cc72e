//! Which threads had the CPU before a sample was taken.

use punctual_core::explanation::{Explained, GuestThread};

use super::times::{IDLE, first, function_name, length};

/// More threads than these are one entry.
const SHOWN: usize = 5;

/// A thread's turn between two times; no thread if its name is not known.
struct Part<'a> {
    thread: Option<&'a GuestThread>,
    from: u64,
    to: u64,
}

/// The turns between two times, ns since the release.
fn parts(sample: &Explained, from: u64, to: u64) -> impl Iterator<Item = Part<'_>> {
    let mut before = 0;
    sample.turns.iter().filter_map(move |turn| {
        let begin = before;
        before = before.max(turn.end_ns);
        let (from, to) = (begin.max(from), before.min(to));
        (from < to).then_some(Part { thread: turn.thread.as_ref(), from, to })
    })
}

/// Time by thread between two times, in the order in which they came first.
fn shares(sample: &Explained, from: u64, to: u64) -> Vec<(Option<&GuestThread>, u64)> {
    let mut all: Vec<(Option<&GuestThread>, u64)> = Vec::new();
    let pid = |thread: Option<&GuestThread>| thread.map(|thread| thread.pid);
    for part in parts(sample, from, to) {
        match all.iter_mut().find(|(known, _)| pid(*known) == pid(part.thread)) {
            Some((_, sum)) => *sum += part.to - part.from,
            None => all.push((part.thread, part.to - part.from)),
        }
    }
    all
}

/// When which thread began and ended, by its description.
pub(crate) fn slices(sample: &Explained) -> Vec<(u64, u64, String)> {
    parts(sample, 0, u64::MAX).map(|part| (part.from, part.to, of(part.thread))).collect()
}

fn of(thread: Option<&GuestThread>) -> String {
    thread.map_or_else(|| "another".to_owned(), described)
}

/// When which thread got the CPU and lost it; of several with one number always the first, so that
/// one thread is one.
pub(super) fn turns(sample: &Explained) -> Vec<(u64, u64, Option<&GuestThread>)> {
    let mut known: Vec<&GuestThread> = Vec::new();
    let all = parts(sample, 0, u64::MAX).map(|part| {
        let thread = part.thread.map(|thread| {
            let first = known.iter().find(|known| known.pid == thread.pid).copied();
            if first.is_none() {
                known.push(thread);
            }
            first.unwrap_or(thread)
        });
        (part.from, part.to, thread)
    });
    all.collect()
}

/// The thread that was measured: it has the CPU at last.
pub(super) fn measured(sample: &Explained) -> Option<&GuestThread> {
    sample.turns.last()?.thread.as_ref()
}

/// The thread that had the CPU for most of the time between two times; none if that is not known.
pub(super) fn foremost(sample: &Explained, from: u64, to: u64) -> Option<&GuestThread> {
    shares(sample, from, to).into_iter().max_by_key(|(_, ns)| *ns)?.0
}

/// `hackbench`, as it may be printed.
pub(super) fn name(thread: &GuestThread) -> String {
    if thread.pid == 0 { IDLE.to_owned() } else { function_name(&thread.name) }
}

/// `spinner (pid 57, real-time 95)`.
pub(super) fn described(thread: &GuestThread) -> String {
    let priority = match (thread.realtime(), thread.priority) {
        (Some(priority), _) => format!(", real-time {priority}"),
        (None, -1) => ", deadline".to_owned(),
        (None, _) => String::new(),
    };
    match thread.pid {
        0 => name(thread),
        pid => format!("{} (pid {pid}{priority})", name(thread)),
    }
}

/// `threads: hackbench (pid 105) 16.7 us, probe-0 (pid 125, real-time 80) 2.5 us`, in the order in
/// which they came first; none if they are not known.
pub(super) fn line(sample: &Explained) -> Option<String> {
    let shares = shares(sample, 0, u64::MAX);
    let all: Vec<_> = shares.into_iter().map(|(thread, ns)| (of(thread), ns)).collect();
    let (shown, others, rest) = first(&all, SHOWN);
    let mut parts: Vec<String> =
        shown.iter().map(|(name, ns)| format!("{name} {}", length(*ns))).collect();
    if others > 0 {
        parts.push(format!("{others} others {}", length(rest)));
    }
    (!parts.is_empty()).then(|| format!("threads: {}", parts.join(", ")))
}
