//! The kernel's trace around a break value: the thread that meets it marks the trace and stops
//! it, and what led there is saved before tracing goes on as it was found.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;

use super::journal::Journal;
use crate::facts::{Activity, FactsRoot};

/// The most bytes of a trace that are saved: its end, where the break is.
pub const MOST_SAVED: usize = 8 << 20;

/// The longest line for the marker, bytes; the kernel takes less than a page.
const LONGEST_MARK: usize = 200;

/// Tracing that is on, with what it takes to stop it at once.
#[derive(Debug)]
pub struct Trace {
    folder: PathBuf,
    marker: File,
    on: File,
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
        Ok(Some(Self { folder, marker, on }))
    }

    /// Marks the trace and stops it: two system calls that allocate nothing, for the thread
    /// that was late. Errors are of no use there; the saved trace shows them.
    #[cold]
    pub fn stop(&self, mark: std::fmt::Arguments<'_>) {
        let mut line = Mark { bytes: [0; LONGEST_MARK], length: 0 };
        let _ = line.write_fmt(mark);
        let _ = (&self.marker).write(&line.bytes[..line.length]);
        let _ = (&self.on).write(b"0");
    }

    /// Writes the end of the trace, at most 16 MiB.
    ///
    /// # Errors
    /// The trace cannot be read, or the file cannot be written.
    pub fn save(&self, to: &mut File) -> io::Result<()> {
        let from = self.folder.join("trace");
        let trace = File::open(&from).and_then(|file| tail(file, MOST_SAVED)).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", from.display()))
        })?;
        to.write_all(&trace)?;
        to.sync_data()
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
        trace.save(&mut File::create(folder.join("saved")).unwrap()).unwrap();
        assert_eq!(fs::read_to_string(folder.join("saved")).unwrap(), file("trace").unwrap());
        assert_eq!(journal.undo(), Vec::<String>::new());
        assert_eq!(file("tracing_on").unwrap(), "1");

        fs::write(root.path("sys/kernel/tracing/events/enable"), "0").unwrap();
        assert!(Trace::arm(&root, &mut journal).unwrap().is_none(), "nothing is traced");
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
