//! A page of the trace ring in binary form, as `per_cpu/cpuN/trace_pipe_raw` gives it
//! (include/linux/ring_buffer.h and kernel/trace/ring_buffer.c).

use super::format::{Field, field};

/// What the first word of an event says besides the length of its data, in words of 4 bytes.
const DATA_MAX: u32 = 28;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Bits of `commit` that are not part of the length: events before this page were lost, and how
/// many stands behind its data.
const MISSED: u64 = 0b11 << 30;

/// The bits of a time that a single event carries.
const STAMP_BITS: u32 = 59;

/// Where the parts of a page are.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    stamp: Field,
    commit: Field,
    data: usize,
    /// Length of a page, bytes.
    pub(super) length: usize,
}

impl Layout {
    /// Reads the text of `events/header_page`. `None` if it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<_> = text.lines().filter_map(field).collect();
        let part = |name: &str| parts.iter().find(|(known, _)| known == name).map(|part| part.1);
        let (data, end) = (part("data")?.range()?.start, part("data")?.range()?.end);
        // The kernel's largest subbuffer has 128 pages.
        let length = Some(end).filter(|length| *length > data && *length <= 128 << 16)?;
        Some(Self { stamp: part("timestamp")?, commit: part("commit")?, data, length })
    }

    /// The events of a page, each with its time, in the order of the ring; ends at what cannot
    /// be one.
    pub fn events<'a>(&self, page: &'a [u8]) -> Events<'a> {
        let time = self.stamp.number(page).unwrap_or(0);
        let commit = self.commit.number(page).map_or(0, |commit| commit & !MISSED & 0xffff_ffff);
        let data = page.get(self.data..).unwrap_or(&[]);
        let end = usize::try_from(commit).unwrap_or(0).min(data.len());
        Events { rest: &data[..end], time }
    }
}

/// The events of a page.
#[derive(Debug)]
pub struct Events<'a> {
    rest: &'a [u8],
    /// Of the event before, in the clock of the trace.
    time: u64,
}

impl<'a> Events<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let head = self.word()?;
            // Bit fields: the order of x86_64 and aarch64, which are little-endian.
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            match kind {
                // Nothing more was written to this page.
                PADDING if delta == 0 => return None,
                PADDING => {
                    let length = usize::try_from(self.word()?).ok()?.checked_sub(4)?;
                    self.take(length)?;
                }
                TIME_EXTEND => {
                    let more = (u64::from(self.word()?) << 27) + delta;
                    self.time = self.time.wrapping_add(more);
                }
                TIME_STAMP => {
                    let stamp = (u64::from(self.word()?) << 27) + delta;
                    let mut time = self.time >> STAMP_BITS << STAMP_BITS | stamp;
                    if time < self.time {
                        time = time.wrapping_add(1 << STAMP_BITS);
                    }
                    self.time = time;
                }
                0 => {
                    self.time = self.time.wrapping_add(delta);
                    let length = usize::try_from(self.word()?).ok()?.checked_sub(4)?;
                    return Some((self.time, self.take(length)?));
                }
                1..=DATA_MAX => {
                    self.time = self.time.wrapping_add(delta);
                    return Some((self.time, self.take(kind as usize * 4)?));
                }
                32.. => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn page(time: u64, words: &[u32], flags: u64) -> Vec<u8> {
        let mut page = time.to_ne_bytes().to_vec();
        page.extend_from_slice(&((words.len() as u64 * 4) | flags).to_ne_bytes());
        page.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        // What an earlier round of the ring has left.
        while page.len() < 4096 {
            page.extend([head(1, 1), 7].iter().flat_map(|word| word.to_ne_bytes()));
        }
        page.truncate(4096);
        page
    }

    fn head(kind: u32, delta: u32) -> u32 {
        kind | delta << 5
    }

    fn found(page: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let layout = Layout::parse(HEADER).unwrap();
        assert_eq!(layout.length, 4096);
        layout.events(page).map(|(time, data)| (time, data.to_vec())).collect()
    }

    #[test]
    fn events_of_every_kind_are_found_with_their_times() {
        let words = [
            [head(2, 5), 1, 2].as_slice(),
            // One of 12 bytes that was discarded.
            &[head(PADDING, 1), 12, 8, 9],
            // 2^27 ns and 3 more, then 4.
            &[head(TIME_EXTEND, 3), 1],
            &[head(1, 4), 3],
            // One with its length in a word.
            &[head(0, 0), 8, 4],
            &[head(TIME_STAMP, 7), 2],
            &[head(1, 1), 5],
            // Nothing more, although what stands there looks like it.
            &[head(PADDING, 0), 4, head(1, 1), 6],
        ]
        .concat();
        let data = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let start = 1 << 60 | 100;
        let after = start + 5 + (1 << 27) + 3 + 4;
        let stamp = (1 << 60 | 2 << 27) + 7;
        let all = [
            (start + 5, data(&[1, 2])),
            (after, data(&[3])),
            (after, data(&[4])),
            (stamp + 1, data(&[5])),
        ];
        assert_eq!(found(&page(start, &words, 0)), all);
        let flagged = found(&page(start, &[head(1, 5), 3], 0b11 << 30));
        assert_eq!(flagged, [(start + 5, data(&[3]))], "lost events are no length");
    }

    #[test]
    fn what_is_no_page_ends_early_and_does_no_harm() {
        assert_eq!(found(&[]), []);
        assert_eq!(found(&page(0, &[head(28, 0), 1], 0)), [], "an event longer than the page");
        assert_eq!(found(&page(0, &[head(0, 0), 3], 0)), [], "a length that is none");
        let mut large = page(u64::MAX, &[head(1, 9), 1], 0);
        large[8..16].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert_eq!(found(&large)[0], (8, vec![1, 0, 0, 0]));
        assert!(Layout::parse("field: char data;\toffset:16;\tsize:99999999;\n").is_none());
    }
}
