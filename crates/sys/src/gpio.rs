//! An output line of a GPIO chip (include/uapi/linux/gpio.h, version 2, since Linux 5.10).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::Path;

use crate::error::in_call;
use crate::ioctl::{both, ioctl, writes};

const GROUP: u8 = 0xb4;
const GET_CHIPINFO: u32 = writes::<ChipInfo>(GROUP, 0x01);
const GET_LINEINFO: u32 = both::<LineInfo>(GROUP, 0x05);
const GET_LINE: u32 = both::<LineRequest>(GROUP, 0x07);
const SET_CONFIG: u32 = both::<LineConfig>(GROUP, 0x0d);
const SET_VALUES: u32 = both::<LineValues>(GROUP, 0x0f);

const USED: u64 = 1;
const INPUT: u64 = 1 << 2;
const OUTPUT: u64 = 1 << 3;

/// A text of up to 31 bytes.
type Name = [u8; 32];

/// `struct gpiochip_info`.
#[repr(C)]
struct ChipInfo {
    name: Name,
    label: Name,
    lines: u32,
}

/// `struct gpio_v2_line_info`.
#[repr(C)]
struct LineInfo {
    name: Name,
    consumer: Name,
    offset: u32,
    attributes_used: u32,
    flags: u64,
    attributes: [[u64; 2]; 10],
    padding: [u32; 4],
}

/// `struct gpio_v2_line_config`; an attribute comes with its mask of lines.
#[repr(C)]
struct LineConfig {
    flags: u64,
    attributes_used: u32,
    padding: [u32; 5],
    attributes: [[u64; 3]; 10],
}

/// `struct gpio_v2_line_request`.
#[repr(C)]
struct LineRequest {
    offsets: [u32; 64],
    consumer: Name,
    config: LineConfig,
    lines: u32,
    event_buffer_size: u32,
    padding: [u32; 5],
    fd: i32,
}

/// `struct gpio_v2_line_values`; of a request for one line, that is the first.
#[repr(C)]
struct LineValues {
    bits: u64,
    mask: u64,
}

impl LineConfig {
    const fn of(flags: u64) -> Self {
        Self { flags, attributes_used: 0, padding: [0; 5], attributes: [[0; 3]; 10] }
    }
}

/// A line of a GPIO chip that nobody else has, as an output. Dropping it sets it low, and makes it
/// an input if it is to be one.
#[derive(Debug)]
pub struct OutputLine {
    line: OwnedFd,
    then_input: bool,
}

/// Whether a line of a chip is an input.
///
/// # Errors
/// Those of [`OutputLine::take`] but for the line's user and its driver.
pub fn is_input(chip: &Path, number: u32) -> io::Result<bool> {
    Ok(of_line(&open(chip)?, number)?.flags & OUTPUT == 0)
}

impl OutputLine {
    /// Takes a line of a chip such as `/dev/gpiochip0`, by its number from 0, and sets it low.
    /// `then_input` makes it an input at the end.
    ///
    /// # Errors
    /// Those of open(2); `Unsupported` if it is no GPIO chip, or one of a kernel before 5.10;
    /// `InvalidInput` if the chip has no such line; `ResourceBusy` with its user's name if the
    /// line is in use; those of the driver if it cannot be an output.
    pub fn take(chip: &Path, number: u32, then_input: bool) -> io::Result<Self> {
        let chip = open(chip)?;
        let info = of_line(&chip, number)?;
        if info.flags & USED != 0 {
            return Err(in_use(number, &info.consumer));
        }
        let mut request = LineRequest {
            offsets: [0; 64],
            consumer: [0; 32],
            config: LineConfig::of(OUTPUT),
            lines: 1,
            event_buffer_size: 0,
            padding: [0; 5],
            fd: -1,
        };
        request.offsets[0] = number;
        request.consumer[..8].copy_from_slice(b"punctual");
        // SAFETY: the kernel reads and writes the request, all of whose bytes are valid.
        unsafe { ioctl(chip.as_fd(), GET_LINE, &raw mut request) }
            .map_err(|error| in_call("GPIO_V2_GET_LINE", &error))?;
        // SAFETY: the kernel has opened this descriptor for this request alone.
        let line = unsafe { OwnedFd::from_raw_fd(request.fd) };
        Ok(Self { line, then_input })
    }

    /// Sets the line high or low.
    ///
    /// # Errors
    /// Those of the request `GPIO_V2_LINE_SET_VALUES`.
    #[inline]
    pub fn set(&self, high: bool) -> io::Result<()> {
        let mut values = LineValues { bits: high.into(), mask: 1 };
        // SAFETY: the kernel reads a mask and as many bits.
        unsafe { ioctl(self.line.as_fd(), SET_VALUES, &raw mut values) }
    }
}

impl Drop for OutputLine {
    fn drop(&mut self) {
        let _ = self.set(false);
        if self.then_input {
            let mut config = LineConfig::of(INPUT);
            // SAFETY: the kernel reads the configuration.
            let _ = unsafe { ioctl(self.line.as_fd(), SET_CONFIG, &raw mut config) };
        }
        // Closing the descriptor releases the line.
    }
}

fn open(chip: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(chip)
}

fn of_line(chip: &File, number: u32) -> io::Result<LineInfo> {
    let mut of_chip = ChipInfo { name: [0; 32], label: [0; 32], lines: 0 };
    // SAFETY: the kernel writes the chip's name, label and number of lines.
    unsafe { ioctl(chip.as_fd(), GET_CHIPINFO, &raw mut of_chip) }.map_err(|error| {
        let text = format!("it does not answer as a GPIO chip: GPIO_GET_CHIPINFO: {error}");
        io::Error::new(io::ErrorKind::Unsupported, text)
    })?;
    if number >= of_chip.lines {
        let text = format!("it has no line {number}, only {} of them, from 0 on", of_chip.lines);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut info = LineInfo {
        name: [0; 32],
        consumer: [0; 32],
        offset: number,
        attributes_used: 0,
        flags: 0,
        attributes: [[0; 2]; 10],
        padding: [0; 4],
    };
    // SAFETY: the kernel reads the number and writes the rest, all of whose bytes are valid.
    unsafe { ioctl(chip.as_fd(), GET_LINEINFO, &raw mut info) }.map_err(|error| {
        let text = format!("GPIO_V2_GET_LINEINFO: {error}; it takes Linux 5.10 or later");
        io::Error::new(io::ErrorKind::Unsupported, text)
    })?;
    Ok(info)
}

fn in_use(number: u32, consumer: &Name) -> io::Error {
    let end = consumer.iter().position(|byte| *byte == 0).unwrap_or(consumer.len());
    let by = match String::from_utf8_lossy(&consumer[..end]) {
        name if name.is_empty() => String::new(),
        name => format!(" by \"{}\"", name.escape_debug()),
    };
    io::Error::new(io::ErrorKind::ResourceBusy, format!("line {number} is in use{by}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_kernel_s_numbers() {
        let of_chip = [GET_CHIPINFO, GET_LINEINFO, GET_LINE];
        assert_eq!(of_chip, [0x8044_b401, 0xc100_b405, 0xc250_b407]);
        assert_eq!([SET_CONFIG, SET_VALUES], [0xc110_b40d, 0xc010_b40f]);
    }

    #[test]
    fn what_is_no_chip_is_refused() {
        let error = OutputLine::take(Path::new("/dev/null"), 0, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(error.to_string().contains("GPIO_GET_CHIPINFO: "), "{error}");
    }

    #[test]
    fn the_user_of_a_line_is_named() {
        let mut consumer = [0; 32];
        assert_eq!(in_use(3, &consumer).to_string(), "line 3 is in use");
        consumer[..5].copy_from_slice(b"a\x1bled");
        assert_eq!(in_use(3, &consumer).to_string(), r#"line 3 is in use by "a\u{1b}led""#);
    }
}
