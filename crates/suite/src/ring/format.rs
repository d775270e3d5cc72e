//! How the kernel lays out an event, from its `format` file in tracefs.

use std::ops::Range;

/// The layout of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// What the event's first two bytes say.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

/// Where a number or a text is in an event, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
}

impl Format {
    /// Reads the text of `events/<system>/<event>/format` (Documentation/trace/events.rst).
    /// `None` if it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        Some(Self { id, fields: text.lines().filter_map(field).collect() })
    }

    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field)
    }
}

/// The name and place of a field: `field:pid_t pid; offset:24; size:4; signed:1;`.
pub(super) fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let name = parts.next()?.rsplit([' ', '*']).next()?;
    let name = name.split('[').next().unwrap_or(name).to_owned();
    let [mut offset, mut size] = [None, None];
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse().ok(),
            Some(("size", number)) => size = number.parse().ok(),
            _ => {}
        }
    }
    Some((name, Field { offset: offset?, size: size? }))
}

impl Field {
    pub(super) fn range(self) -> Option<Range<usize>> {
        Some(self.offset..self.offset.checked_add(self.size)?)
    }

    /// The number in an event, zero-extended; `None` if the event is too short, or the field is
    /// no number.
    pub fn number(self, event: &[u8]) -> Option<u64> {
        let bytes = event.get(self.range()?)?;
        Some(match bytes.len() {
            1 => bytes[0].into(),
            2 => u16::from_ne_bytes(bytes.try_into().ok()?).into(),
            4 => u32::from_ne_bytes(bytes.try_into().ok()?).into(),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// What an event has from this field on, for an array whose length its format does not tell;
    /// nothing if the event is too short.
    pub(super) fn rest(self, event: &[u8]) -> &[u8] {
        event.get(self.offset..).unwrap_or(&[])
    }

    /// The text in an event: an array of characters, or a `__data_loc`, whose number has the
    /// offset of the characters in its lower half and their count in its upper one.
    pub fn text(self, event: &[u8]) -> Option<String> {
        let bytes = if self.size == 4 {
            let place = self.number(event)?;
            let from = usize::try_from(place & 0xffff).ok()?;
            event.get(from..from + usize::try_from(place >> 16).ok()?)?
        } else {
            event.get(self.range()?)?
        };
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDLER: &str = "name: irq_handler_entry\nID: 225\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;\n\
        \tfield:void * function;\toffset:32;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"irq=%d name=%s\", REC->irq, __get_str(name)\n";

    #[test]
    fn numbers_and_texts_are_where_the_kernel_says() {
        let format = Format::parse(HANDLER).unwrap();
        assert_eq!(format.id, 225);
        let field = |name| format.field(name).unwrap();
        let mut event = vec![0; 40];
        event[8..12].copy_from_slice(&77_u32.to_ne_bytes());
        event[12..16].copy_from_slice(&(5_u32 << 16 | 40).to_ne_bytes());
        event[16..20].copy_from_slice(b"spun");
        event[32..40].copy_from_slice(&u64::MAX.to_ne_bytes());
        event.extend_from_slice(b"edu0\0");
        assert_eq!(field("irq").number(&event), Some(77));
        assert_eq!(field("function").number(&event), Some(u64::MAX));
        assert_eq!(field("name").text(&event).unwrap(), "edu0");
        assert_eq!(field("comm").text(&event).unwrap(), "spun");
        assert_eq!(field("comm").rest(&event)[..4], *b"spun");
        assert!(field("comm").rest(&event[..9]).is_empty());
        assert_eq!(format.field("absent"), None);
        for length in 0..event.len() {
            let _ = (field("name").text(&event[..length]), field("comm").text(&event[..length]));
        }
        assert_eq!(field("name").text(&event[..44]), None, "it does not go on after the event");
        assert_eq!(Format::parse("name: x\n"), None);
    }
}
