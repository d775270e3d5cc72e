//! The kernel's trace around a break value: the thread that meets it marks the trace and stops
//! it, and what led there is saved before tracing goes on as it was found.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_sys::error;

use super::journal::Journal;
use crate::facts::{Activity, FactsRoot};

/// The most bytes of a trace that are saved: its end, where the break is.
const MOST_SAVED: usize = 8 << 20;

/// The longest line for the marker, bytes; the kernel takes less than a page.
const LONGEST_MARK: usize = 200;

/// Tracing that is on, with what it takes to stop it at once.
#[derive(Debug)]
pub struct Trace {
    folder: PathBuf,
    marker: File,
    on: File,
    /// Whether a break still stops it.
    armed: AtomicBool,
}

impl Trace {
    /// Prepares to stop the trace if something is being traced, and notes in the journal that
    /// `tracing_on` may change. `None` if nothing is traced.
    ///
    /// # Errors
    /// The trace's marker, its switch or the journal cannot be written to.
    pub fn arm(root: &FactsRoot, journal: &mut Journal) -> io::Result<Option<Self>> {
        let Some(folder) = Activity::tracing_folder(root).filter(|_| Activity::read(root).traces())
        else {
            return Ok(None);
        };
        let folder = root.path(folder);
        let open = |name: &str| {
            let path = folder.join(name);
            OpenOptions::new().write(true).open(&path).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot write to {}: {error}", path.display()))
            })
        };
        let (marker, on) = (open("trace_marker")?, open("tracing_on")?);
        journal.will_change(&folder.join("tracing_on"))?;
        Ok(Some(Self { folder, marker, on, armed: AtomicBool::new(true) }))
    }

    /// Marks the trace and stops it: two system calls that allocate nothing, for the thread
    /// that was late. Errors are of no use there; the saved trace shows them.
    #[cold]
    pub fn stop(&self, mark: std::fmt::Arguments<'_>) {
        let mut line = Mark { bytes: [0; LONGEST_MARK], length: 0 };
        let _ = line.write_fmt(mark);
        if self.armed.load(Ordering::Acquire) {
            let _ = (&self.marker).write(&line.bytes[..line.length]);
        }
        if self.armed.load(Ordering::Acquire) {
            let _ = (&self.on).write(b"0");
        }
    }

    /// From now on no break stops it: a thread that did not end with its cell may still meet
    /// one.
    pub fn disarm(&self) {
        self.armed.store(false, Ordering::Release);
    }

    /// Ends the cell of a disarmed trace. If a break has stopped it, saves it to the file that
    /// `make` makes; the journal then lets tracing go on. In every other case the journal forgets
    /// the trace: whoever stopped it meanwhile was not punctual, and what could not be saved
    /// must not be overwritten. `None` without a break.
    pub fn end(
        &self,
        broke: bool,
        make: impl FnOnce() -> io::Result<File>,
        journal: &mut Journal,
    ) -> Option<io::Result<()>> {
        let saved = broke.then(|| make().and_then(|mut file| self.save(&mut file)));
        if !matches!(saved, Some(Ok(()))) {
            self.leave(journal);
        }
        let folder = self.folder.display();
        saved.map(|saved| {
            saved.map_err(|error| {
                let why = error::text(&error);
                let text = format!(
                    "{why}; tracing is left stopped: read {folder}/trace, then write 1 to \
                     {folder}/tracing_on"
                );
                io::Error::new(error.kind(), text)
            })
        })
    }

    /// Lets the journal forget that it may change.
    pub fn leave(&self, journal: &mut Journal) {
        journal.forget(&self.folder.join("tracing_on"));
    }

    /// Writes the end of the trace, at most 8 MiB, to a file that only its owner may read from
    /// then on. If that fails the file is empty: results need the room.
    ///
    /// # Errors
    /// The trace cannot be read, or the file cannot be written.
    fn save(&self, to: &mut File) -> io::Result<()> {
        // A file system without permissions refuses this.
        let _ = to.set_permissions(Permissions::from_mode(0o600));
        let from = self.folder.join("trace");
        let trace = File::open(&from).and_then(|file| tail(file, MOST_SAVED)).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", from.display()))
        })?;
        to.write_all(&trace).and_then(|()| to.sync_data()).inspect_err(|_| {
            let _ = to.set_len(0);
        })
    }
}

/// A line of bounded length, without a heap.
struct Mark {
    bytes: [u8; LONGEST_MARK],
    length: usize,
}

impl std::fmt::Write for Mark {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = &mut self.bytes[self.length..];
        let taken = text.len().min(room.len());
        room[..taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        Ok(())
    }
}

/// The comments at the head of a trace, which name its columns, and its last whole lines of
/// at most `most` bytes.
fn tail(trace: impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut reader = BufReader::new(trace);
    let mut head = Vec::new();
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 && line.starts_with(b"#") && head.len() < most {
        head.append(&mut line);
    }
    let (mut end, mut left_out) = (line, 0_usize);
    let mut piece = vec![0; 64 * 1024];
    loop {
        let got = match reader.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        end.extend_from_slice(&piece[..got]);
        if end.len() > 2 * most || got == 0 && end.len() > most {
            let from = end.len() - most;
            let line_end = end[from..].iter().position(|byte| *byte == b'\n');
            let from = from + line_end.map_or(0, |at| at + 1);
            end.drain(..from);
            left_out += from;
        }
        if got == 0 {
            break;
        }
    }
    if left_out > 0 {
        head.extend_from_slice(format!("# {left_out} bytes before this are left out\n").as_bytes());
    }
    head.append(&mut end);
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A tracefs of plain files that traces, in a folder of its own.
    fn traces(name: &str) -> (PathBuf, FactsRoot) {
        let folder = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let tracing = folder.join("sys/kernel/tracing");
        fs::create_dir_all(tracing.join("events")).unwrap();
        for (file, text) in [
            ("current_tracer", "nop"),
            ("events/enable", "X"),
            ("tracing_on", "1"),
            ("trace_marker", ""),
            ("trace", "# tracer: nop\n one\n two\n"),
        ] {
            fs::write(tracing.join(file), text).unwrap();
        }
        let root = FactsRoot::new(&folder, FactsRoot::live().native().clone());
        (folder, root)
    }

    #[test]
    fn a_break_marks_the_trace_stops_it_and_leaves_it_as_it_was() {
        let (folder, root) = traces("trace");
        let file = |name: &str| fs::read_to_string(root.path("sys/kernel/tracing").join(name));
        let mut journal = Journal::in_folder(&folder.join("journal")).unwrap();
        let trace = Trace::arm(&root, &mut journal).unwrap().unwrap();
        assert_eq!(file("tracing_on").unwrap(), "1", "not before the break");
        trace.stop(format_args!("late by {} ns", 7));
        assert_eq!(file("trace_marker").unwrap(), "late by 7 ns");
        assert_eq!(file("tracing_on").unwrap(), "0");
        let saved = folder.join("saved");
        trace.disarm();
        trace.end(true, || File::create(&saved), &mut journal).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&saved).unwrap(), file("trace").unwrap());
        assert_eq!(fs::metadata(&saved).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(journal.undo(), Vec::<String>::new());
        assert_eq!(file("tracing_on").unwrap(), "1");

        fs::write(root.path("sys/kernel/tracing/events/enable"), "0").unwrap();
        assert!(Trace::arm(&root, &mut journal).unwrap().is_none(), "nothing is traced");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_others_stopped_or_cannot_be_saved_stays_stopped() {
        let (folder, root) = traces("trace-left");
        let on = root.path("sys/kernel/tracing/tracing_on");
        let mut journal = Journal::in_folder(&folder.join("journal")).unwrap();
        let mut end = |broke: bool, stop: &dyn Fn(&Trace)| {
            fs::write(&on, "1").unwrap();
            let trace = Trace::arm(&root, &mut journal).unwrap().unwrap();
            stop(&trace);
            trace.disarm();
            let full = || Err(io::ErrorKind::StorageFull.into());
            let saved = trace.end(broke, full, &mut journal);
            assert_eq!(journal.undo(), Vec::<String>::new());
            (saved.map(|saved| saved.unwrap_err().to_string()), fs::read_to_string(&on).unwrap())
        };
        let by_another = |_: &Trace| fs::write(&on, "0").unwrap();
        assert_eq!(end(false, &by_another), (None, "0".to_owned()));
        let (said, now) = end(true, &|trace| trace.stop(format_args!("late")));
        let said = said.unwrap();
        assert!(said.contains("tracing is left stopped: read /"), "{said}");
        assert_eq!(now, "0");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_thread_that_outlives_its_cell_stops_nothing() {
        let (folder, root) = traces("trace-late");
        let file = |name: &str| fs::read_to_string(root.path("sys/kernel/tracing").join(name));
        let mut journal = Journal::in_folder(&folder.join("journal")).unwrap();
        let trace = Trace::arm(&root, &mut journal).unwrap().unwrap();
        trace.disarm();
        trace.stop(format_args!("late"));
        assert_eq!(file("tracing_on").unwrap(), "1");
        assert_eq!(file("trace_marker").unwrap(), "");
        drop(journal);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn of_a_long_trace_the_head_and_the_last_lines_are_kept() {
        let lines: String = (0..5_000).map(|n| format!("line {n}\n")).collect();
        let text = format!("# tracer: nop\n#\n{lines}");
        let kept = String::from_utf8(tail(text.as_bytes(), 100).unwrap()).unwrap();
        assert!(kept.starts_with("# tracer: nop\n#\n# "), "{kept}");
        assert!(kept.ends_with("line 4998\nline 4999\n"), "{kept}");
        let own: Vec<_> = kept.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(own.len() >= 9 && own.iter().all(|line| line.starts_with("line ")), "{kept}");
        assert!(own.iter().map(|line| line.len() + 1).sum::<usize>() <= 100);
        assert_eq!(tail(text.as_bytes(), 1 << 20).unwrap(), text.as_bytes());
    }
}
