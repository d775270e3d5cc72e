//! The kernel's trace ring in binary form, in an instance of this process's own, so that nobody
//! else's tracing is disturbed (Documentation/trace/ftrace.rst, "Instances").

mod format;
mod marks;
mod page;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use punctual_sys::clock::monotonic_ns;
use punctual_sys::{error, file};

pub use self::format::{Field, Format};
pub(crate) use self::marks::Marks;
pub use self::page::{Events, Layout};
use crate::facts::{Activity, FactsRoot};
use crate::knobs::Journal;

/// A ring per CPU, and what is traced into it. The journal removes the instance.
#[derive(Debug)]
pub(crate) struct Ring {
    instance: PathBuf,
    /// Every CPU's number and its ring.
    cpus: Vec<(u32, File)>,
    layout: Layout,
    page: Vec<u8>,
    lost_before: u64,
    /// By how much CLOCK_MONOTONIC is ahead of the trace's clock, ns: in a time namespace.
    offset_ns: i64,
}

impl Ring {
    /// Makes an instance that traces nothing yet, with rings of so many KiB for each CPU, whose
    /// clock is CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// Why there can be none, and what would help.
    pub(crate) fn open(root: &FactsRoot, journal: &mut Journal, kib: u64) -> Result<Self, String> {
        Self::with_tracer(root, journal, kib, None)
    }

    /// [`Ring::open`] with a tracer of `available_tracers`, on these CPUs only. None can be turned on
    /// once the rings are open (tracing_set_tracer in the kernel).
    ///
    /// # Errors
    /// Those of [`Ring::open`], or the kernel refuses the tracer.
    pub(crate) fn with_tracer(
        root: &FactsRoot,
        journal: &mut Journal,
        kib: u64,
        tracer: Option<(&str, &[u32])>,
    ) -> Result<Self, String> {
        let tracing = Activity::tracing_folder(root).ok_or(
            "no tracefs is mounted: mount -t tracefs nodev /sys/kernel/tracing (the kernel needs \
             CONFIG_EVENT_TRACING)",
        )?;
        let instance = journal.trace_instance(&root.path(tracing)).map_err(|error| {
            let help = match error.kind() {
                io::ErrorKind::PermissionDenied => " (tracing needs root, and no lockdown)",
                _ => "",
            };
            format!("{}{help}", error::text(&error))
        })?;
        write(&instance, "tracing_on", "0")?;
        write(&instance, "trace_clock", "mono")?;
        // Before 6.7 the first size that is set in any instance leaves the machine's own ring, whose
        // size nobody has set, at 7 KiB for good. Names of events, even none, give it its size first.
        write(&instance, "set_event", "\n")?;
        write(&instance, "buffer_size_kb", &kib.to_string())?;
        if let Some((name, cpus)) = tracer {
            write(&instance, "tracing_cpumask", &mask(cpus))?;
            write(&instance, "current_tracer", name)?;
        }
        // An instance has the options that the machine's own trace has; this one is for lines.
        let _ = write(&instance, "options/markers", "1");
        let offsets = fs::read_to_string(root.path("/proc/self/timens_offsets"));
        let header = read(&root.path(tracing).join("events/header_page"))?;
        let layout = Layout::parse(&header).ok_or("the pages of the trace ring are unknown")?;
        let mut ring = Self {
            instance,
            cpus: Vec::new(),
            layout,
            page: vec![0; layout.length],
            lost_before: 0,
            offset_ns: marks::monotonic_offset_ns(&offsets.unwrap_or_default()),
        };
        ring.cpus = ring.open_cpus()?;
        Ok(ring)
    }

    fn open_cpus(&self) -> Result<Vec<(u32, File)>, String> {
        let folder = self.instance.join("per_cpu");
        let cannot = |error: &io::Error| format!("{}: {}", folder.display(), error::text(error));
        let mut cpus = Vec::new();
        for entry in fs::read_dir(&folder).map_err(|error| cannot(&error))? {
            let entry = entry.map_err(|error| cannot(&error))?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
            let Some(number) = number else { continue };
            let path = entry.path().join("trace_pipe_raw");
            // Without waiting for events.
            let file = file::open(&path).map_err(|error| cannot(&error))?;
            cpus.push((number, file));
        }
        cpus.sort_by_key(|(number, _)| *number);
        Ok(cpus)
    }

    /// What it takes to change what is traced, for another thread.
    pub(crate) fn switches(&self) -> Switches {
        Switches(self.instance.clone())
    }

    /// What it takes for threads to find themselves in the trace.
    pub(crate) fn marks(&self) -> Marks {
        let Self { instance, layout, offset_ns, .. } = self;
        Marks { instance: instance.clone(), layout: *layout, offset_ns: *offset_ns }
    }

    /// Takes what is in the rings: of each CPU all events in their order, with their time, ns of
    /// CLOCK_MONOTONIC. What comes meanwhile may stay for the next call: others may make events
    /// faster than this thread can take them.
    ///
    /// # Errors
    /// Those of read(2).
    pub(crate) fn read(&mut self, each: &mut dyn FnMut(u32, u64, &[u8])) -> io::Result<()> {
        let begin = monotonic_ns();
        for (cpu, file) in &mut self.cpus {
            let mut last = 0;
            while last < begin {
                match file.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => {
                        let events = self.layout.events(&self.page[..length]);
                        for (time, event) in events {
                            last = time.wrapping_add_signed(self.offset_ns);
                            each(*cpu, last, event);
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Begins a window at an instant of CLOCK_MONOTONIC, ns: what was lost in the warm-up is
    /// forgotten with it. Called too late, it forgets nothing: what was lost may have been of the
    /// window.
    pub(crate) fn begin(&mut self, at: u64) {
        if monotonic_ns() <= at {
            self.lost_before = self.lost_ever();
        }
    }

    /// How many events were lost in the window, for want of room or because the writer was
    /// interrupted too often.
    pub(crate) fn lost(&self) -> u64 {
        self.lost_ever() - self.lost_before
    }

    fn lost_ever(&self) -> u64 {
        let of = |cpu: u32| {
            let path = self.instance.join(format!("per_cpu/cpu{cpu}/stats"));
            read(&path).map_or(0, |text| lost(&text))
        };
        self.cpus.iter().map(|(cpu, _)| of(*cpu)).sum()
    }
}

/// CPUs as the kernel writes masks: 32 in each word, the first ones last.
fn mask(cpus: &[u32]) -> String {
    let last = cpus.iter().max().map_or(0, |cpu| cpu / 32);
    let word = |word: u32| {
        let of_word = cpus.iter().filter(|cpu| *cpu / 32 == word);
        format!("{:x}", of_word.fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32)))
    };
    (0..=last).rev().map(word).collect::<Vec<_>>().join(",")
}

/// The losses in the text of `per_cpu/cpuN/stats`.
fn lost(stats: &str) -> u64 {
    let counts = stats.lines().filter_map(|line| {
        let (name, count) = line.split_once(':')?;
        ["overrun", "commit overrun", "dropped events"]
            .contains(&name)
            .then(|| count.trim().parse::<u64>().ok())?
    });
    counts.sum()
}

/// What is traced in an instance.
#[derive(Debug, Clone)]
pub(crate) struct Switches(PathBuf);

impl Switches {
    /// The layout of an event such as `sched/sched_switch`; `None` if this kernel has none.
    pub(crate) fn format(&self, event: &str) -> Option<Format> {
        Format::parse(&fs::read_to_string(self.file(event, "format")).ok()?)
    }

    /// The names of a group of events, such as `irq_vectors`; none if this kernel has none.
    pub(crate) fn group(&self, system: &str) -> Vec<String> {
        let folder = fs::read_dir(self.0.join("events").join(system));
        let entries = folder.into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Traces an event.
    ///
    /// # Errors
    /// The kernel refuses; the text has its file.
    pub(crate) fn enable(&self, event: &str) -> Result<(), String> {
        write_to(&self.file(event, "enable"), "1")
    }

    /// Traces an event only if a condition on its fields holds
    /// (Documentation/trace/events.rst, "Event filtering").
    ///
    /// # Errors
    /// The kernel refuses; the text has its file.
    pub(crate) fn filter(&self, event: &str, condition: &str) -> Result<(), String> {
        write_to(&self.file(event, "filter"), condition)
    }

    /// Begins to trace.
    ///
    /// # Errors
    /// The kernel refuses; the text has its file.
    pub(crate) fn start(&self) -> Result<(), String> {
        write(&self.0, "tracing_on", "1")
    }

    fn file(&self, event: &str, name: &str) -> PathBuf {
        self.0.join("events").join(event).join(name)
    }
}

/// The text of a file of tracefs, some of which give all to the first read(2) and nothing to
/// another, or make it anew for each.
fn read(path: &Path) -> Result<String, String> {
    let mut bytes = vec![0; 16 << 10];
    let length = File::open(path)
        .and_then(|mut file| file.read(&mut bytes))
        .map_err(|error| format!("{}: {}", path.display(), error::text(&error)))?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

fn write(folder: &Path, name: &str, value: &str) -> Result<(), String> {
    write_to(&folder.join(name), value)
}

fn write_to(path: &Path, value: &str) -> Result<(), String> {
    let written = OpenOptions::new().write(true).truncate(true).open(path);
    written.and_then(|mut file| file.write_all(value.as_bytes())).map_err(|error| {
        format!("cannot write \"{value}\" to {}: {}", path.display(), error::text(&error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_those_of_the_kernel() {
        assert_eq!(mask(&[0, 1, 5]), "23");
        // Its words need no leading zeros (bitmap_parse).
        assert_eq!(mask(&[0, 33, 64]), "1,2,1");
    }

    #[test]
    fn every_kind_of_loss_counts() {
        let stats = "entries: 9\noverrun: 5\ncommit overrun: 2\nbytes: 7\n\
                     oldest event ts:   1.5\nnow ts: 2.5\ndropped events: 3\nread events: 4\n";
        assert_eq!(lost(stats), 10);
        assert_eq!(lost(""), 0);
    }
}
