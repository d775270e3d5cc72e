//! What a supervisor says of its part, line by line.

use super::order::{END, TROUBLE};

/// The lines of one supervisor, as far as they have been read.
#[derive(Debug, Default)]
pub(super) struct Status {
    partial_line: Vec<u8>,
    gave_up: bool,
}

impl Status {
    /// Takes in what has been read, however it is cut; returns the last complete line's text.
    pub(super) fn take_in(&mut self, bytes: &[u8]) -> Option<String> {
        self.partial_line.extend_from_slice(bytes);
        let mut last = None;
        while let Some(end) = self.partial_line.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.partial_line.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]);
            self.gave_up |= line.starts_with(END);
            let text = line.strip_prefix(END).or(line.strip_prefix(TROUBLE));
            last = Some(text.unwrap_or(&line).to_owned());
        }
        last
    }

    /// Whether any line has said that the part is given up.
    pub(super) fn has_given_up(&self) -> bool {
        self.gave_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_given_up_stays_so_however_its_last_line_is_cut() {
        let text = format!("{TROUBLE}exit 3\n{END}exit 3 (5 times at once)\n");
        for cut in 0..=text.len() {
            let (first, rest) = text.as_bytes().split_at(cut);
            let mut status = Status::default();
            let read = [status.take_in(first), status.take_in(rest), status.take_in(b"")];
            assert!(status.has_given_up(), "cut at {cut}");
            let said = read.into_iter().flatten().last();
            assert_eq!(said.as_deref(), Some("exit 3 (5 times at once)"), "cut at {cut}");
        }
    }

    #[test]
    fn trouble_alone_is_no_end() {
        let mut status = Status::default();
        assert_eq!(status.take_in(format!("{TROUBLE}exit 3\n").as_bytes()).unwrap(), "exit 3");
        assert_eq!(status.take_in(b"half a li"), None);
        assert!(!status.has_given_up());
    }
}
