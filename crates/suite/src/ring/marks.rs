//! By which number the trace knows a thread, and in which clock it tells times. In a PID namespace
//! a thread is told another number than the one in events, and no file there has that one
//! (pid_namespaces(7)); in a time namespace its CLOCK_MONOTONIC is shifted (time_namespaces(7)).

use std::io::Read;
use std::path::PathBuf;

use punctual_core::units::human_ns;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::{affinity, error, file, thread};

use super::Switches;
use super::page::Layout;

/// The event of a line that is written to `trace_marker`.
const PRINT: &str = "ftrace/print";

/// By how much the trace's clock may differ from CLOCK_MONOTONIC, ns: it is read without a lock
/// (ktime_get_mono_fast_ns in the kernel).
const INEXACT_NS: u64 = 1_000_000;

/// Nanoseconds by which CLOCK_MONOTONIC of this time namespace is ahead of the trace's, from the
/// text of `/proc/self/timens_offsets`; 0 for none, or a kernel without such namespaces.
pub(super) fn monotonic_offset_ns(text: &str) -> i64 {
    let offset = text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        // Before 5.9 clocks have their numbers there.
        words.next().filter(|name| ["monotonic", "1"].contains(name))?;
        let (seconds, ns): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        seconds.checked_mul(1_000_000_000)?.checked_add(ns)
    });
    offset.unwrap_or(0)
}

/// An instance that traces, in which threads can find themselves.
#[derive(Debug, Clone)]
pub(crate) struct Marks {
    pub(super) instance: PathBuf,
    pub(super) layout: Layout,
    pub(super) offset_ns: i64,
}

impl Marks {
    /// The number by which events name the calling thread: it writes a line into the trace, and
    /// the event of that line has it. What the ring of its CPU had before is gone then.
    ///
    /// # Errors
    /// The line cannot be written or is not in the trace, or its time is not between those at which
    /// it was written: what the trace tells of the thread is not known then.
    pub(crate) fn own_id(&self) -> Result<i32, String> {
        let text = format!("punctual {} {}", thread::id(), monotonic_ns());
        let (first_cpu, before) = (affinity::current_cpu(), monotonic_ns());
        super::write(&self.instance, "trace_marker", &text)?;
        let (after, last_cpu) = (monotonic_ns(), affinity::current_cpu());
        let found = self.find(first_cpu, &text, after)?;
        let found = match found {
            None if last_cpu != first_cpu => self.find(last_cpu, &text, after)?,
            found => found,
        };
        let (id, at) = found
            .ok_or("the trace has no events of this thread (a line that it wrote is not there)")?;
        if (before.saturating_sub(INEXACT_NS)..=after + INEXACT_NS).contains(&at) {
            return Ok(id);
        }
        let off = human_ns(at.abs_diff(before).cast_signed());
        Err(format!("the clock of the trace and that of this thread are {off} apart"))
    }

    /// Looks for the event of a line in the ring of a CPU; returns its thread and its time.
    fn find(&self, cpu: u32, text: &str, until: u64) -> Result<Option<(i32, u64)>, String> {
        let print = Switches(self.instance.clone()).format(PRINT);
        let print = print.ok_or_else(|| format!("this kernel does not trace {PRINT}"))?;
        let (Some(id), Some(line)) = (print.field("common_pid"), print.field("buf")) else {
            return Err(format!("events of {PRINT} without common_pid and buf"));
        };
        let path = self.instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let cannot = |error| format!("{}: {}", path.display(), error::text(&error));
        let mut ring = file::open(&path).map_err(cannot)?;
        let mut page = vec![0; self.layout.length];
        let mut last = 0;
        while last <= until.saturating_add(INEXACT_NS) {
            let length = match ring.read(&mut page) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(cannot(error)),
            };
            for (at, event) in self.layout.events(&page[..length]) {
                last = at.wrapping_add_signed(self.offset_ns);
                let is_print = event.first_chunk() == Some(&print.id.to_ne_bytes());
                if is_print && line.rest(event).starts_with(text.as_bytes()) {
                    let id = id.number(event).and_then(|id| i32::try_from(id).ok());
                    return Ok(id.map(|id| (id, last)));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_time_namespace_is_that_of_its_monotonic_clock() {
        let of = monotonic_offset_ns;
        assert_eq!(of("monotonic      100000         5\nboottime            7         0\n"), {
            100_000_000_000_005
        });
        assert_eq!(of("monotonic          -2 500000000\nboottime 0 0\n"), -1_500_000_000);
        assert_eq!(of("7 9 0\n1 3 0\n"), 3_000_000_000);
        for text in ["", "monotonic", "monotonic x 0", "boottime 5 0", "monotonic 1"] {
            assert_eq!(of(text), 0, "{text}");
        }
        assert_eq!(of(&format!("monotonic {} 0", i64::MAX)), 0);
    }
}
