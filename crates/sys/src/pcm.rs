//! Playback through the kernel's own interface for PCM devices, without alsa-lib
//! (include/uapi/sound/asound.h, sound/core/pcm_native.c).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::null_mut;

use libc::{c_int, c_uint, c_ulong};

use crate::error::{check, in_call};
use crate::ioctl::{both, ioctl, plain, reads};

/// Samples of a frame: every device plays stereo.
const CHANNELS: u32 = 2;

const GROUP: u8 = b'A';
const HW_PARAMS: u32 = both::<HwParams>(GROUP, 0x11);
const SW_PARAMS: u32 = both::<SwParams>(GROUP, 0x13);
const PREPARE: u32 = plain(GROUP, 0x40);
const DROP: u32 = plain(GROUP, 0x43);
const WRITEI_FRAMES: u32 = reads::<Transfer>(GROUP, 0x50);

/// `struct snd_mask`.
type Mask = [u32; 8];

/// `struct snd_interval`; the flags are openmin, openmax, integer and empty.
#[repr(C)]
#[derive(Clone, Copy)]
struct Interval {
    min: c_uint,
    max: c_uint,
    flags: c_uint,
}

/// `struct snd_pcm_hw_params`.
#[repr(C)]
struct HwParams {
    flags: c_uint,
    /// Access, format and subformat.
    masks: [Mask; 3],
    reserved_masks: [Mask; 5],
    /// From `SNDRV_PCM_HW_PARAM_SAMPLE_BITS` to `TICK_TIME`.
    intervals: [Interval; 12],
    reserved_intervals: [Interval; 9],
    requested: c_uint,
    changed: c_uint,
    info: c_uint,
    sample_bits: c_uint,
    rate_numerator: c_uint,
    rate_denominator: c_uint,
    fifo_frames: c_ulong,
    reserved: [u8; 64],
}

/// `struct snd_pcm_sw_params`.
#[repr(C)]
struct SwParams {
    timestamp_mode: c_int,
    period_step: c_uint,
    sleep_min: c_uint,
    avail_min: c_ulong,
    transfer_align: c_ulong,
    start_threshold: c_ulong,
    stop_threshold: c_ulong,
    silence_threshold: c_ulong,
    silence_size: c_ulong,
    boundary: c_ulong,
    protocol: c_uint,
    timestamp_type: c_uint,
    reserved: [u8; 56],
}

/// `struct snd_xferi`.
#[repr(C)]
struct Transfer {
    result: libc::c_long,
    buffer: *const i16,
    frames: c_ulong,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<HwParams>() == 608 && size_of::<SwParams>() == 136);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Transfer>() == 24);

/// What is played, in the terms of ALSA: periods of frames.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    /// Frames a second.
    pub rate: u32,
    /// Frames of a period, which is what is written at a time.
    pub period: u32,
    /// Periods that the buffer has room for.
    pub periods: u32,
}

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The period is in the buffer.
    All,
    /// The buffer had run dry before (`EPIPE`); nothing plays until it is filled again.
    Dry,
    /// A signal came first. The next write goes on with the same period.
    Interrupted,
}

/// A device that plays silence, 16 bits in stereo.
#[derive(Debug)]
pub struct Playback {
    device: File,
    stream: Stream,
    silence: Vec<i16>,
    /// Frames of the current period that are in the buffer.
    done: u32,
}

impl Playback {
    /// Opens a device such as `/dev/snd/pcmC0D0p`. It plays once its buffer is full, and stops
    /// when that has run dry.
    ///
    /// # Errors
    /// Those of open(2), `EBUSY` if another program plays; `EINVAL` of `HW_PARAMS` if the device
    /// cannot play such a stream.
    pub fn open(device: &Path, stream: Stream) -> io::Result<Self> {
        // A device in use would be waited for without it; alsa-lib opens it like this, too.
        let mut options = OpenOptions::new();
        let device = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open(device)?;
        let mut hardware = HwParams::of(stream);
        let mut software = SwParams::of(stream);
        // SAFETY: the kernel reads and writes structures of its layout, any bytes of which are
        // values; fcntl takes plain numbers.
        unsafe {
            ioctl(device.as_fd(), HW_PARAMS, &raw mut hardware)
                .map_err(|error| in_call("HW_PARAMS", &error))?;
            ioctl(device.as_fd(), SW_PARAMS, &raw mut software)
                .map_err(|error| in_call("SW_PARAMS", &error))?;
            let flags = check(libc::fcntl(device.as_raw_fd(), libc::F_GETFL))?;
            check(libc::fcntl(device.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK))?;
        }
        let silence = vec![0; (stream.period * CHANNELS) as usize];
        Ok(Self { device, stream, silence, done: 0 })
    }

    /// Fills the buffer from the start, and with that starts to play.
    ///
    /// # Errors
    /// Those of `PREPARE` and of writes.
    pub fn refill(&mut self) -> io::Result<()> {
        self.request(DROP)?;
        self.request(PREPARE)?;
        self.done = 0;
        let mut filled = 0;
        while filled < self.stream.periods {
            match self.write()? {
                Written::All => filled += 1,
                Written::Interrupted => {}
                Written::Dry => return Err(io::Error::other("it ran dry while it was filled")),
            }
        }
        Ok(())
    }

    /// Writes a period, once there is room for it.
    ///
    /// # Errors
    /// Those of `WRITEI_FRAMES`: `EIO` if the device plays nothing for ten seconds.
    pub fn write(&mut self) -> io::Result<Written> {
        while self.done < self.stream.period {
            let at = (self.done * CHANNELS) as usize;
            let mut transfer = Transfer {
                result: 0,
                buffer: self.silence[at..].as_ptr(),
                frames: c_ulong::from(self.stream.period - self.done),
            };
            // SAFETY: the buffer is valid for so many frames; the kernel writes the result only.
            let asked = unsafe { ioctl(self.device.as_fd(), WRITEI_FRAMES, &raw mut transfer) };
            match asked.map_err(|error| (error.raw_os_error(), error)) {
                Ok(()) => self.done += u32::try_from(transfer.result).unwrap_or(0),
                Err((Some(libc::EPIPE), _)) => return Ok(Written::Dry),
                Err((Some(libc::EINTR), _)) => return Ok(Written::Interrupted),
                Err((_, error)) => return Err(in_call("WRITEI_FRAMES", &error)),
            }
        }
        self.done = 0;
        Ok(Written::All)
    }

    fn request(&self, request: u32) -> io::Result<()> {
        // SAFETY: neither request takes an argument.
        unsafe { ioctl::<u8>(self.device.as_fd(), request, null_mut()) }
    }
}

impl HwParams {
    fn of(stream: Stream) -> Self {
        const ANY: Interval = Interval { min: 0, max: c_uint::MAX, flags: 0 };
        const INTEGER: c_uint = 1 << 2;
        // Places from SNDRV_PCM_HW_PARAM_SAMPLE_BITS on.
        const SIZES: [usize; 4] = [2, 3, 5, 7];
        let mut intervals = [ANY; 12];
        let wanted = [CHANNELS, stream.rate, stream.period, stream.periods];
        for (place, value) in SIZES.into_iter().zip(wanted) {
            intervals[place] = Interval { min: value, max: value, flags: INTEGER };
        }
        let only = |bit: u32| [1 << bit, 0, 0, 0, 0, 0, 0, 0];
        const RW_INTERLEAVED: u32 = 3;
        const S16_LE: u32 = 2;
        const STANDARD: u32 = 0;
        Self {
            flags: 0,
            masks: [only(RW_INTERLEAVED), only(S16_LE), only(STANDARD)],
            reserved_masks: [[0; 8]; 5],
            intervals,
            reserved_intervals: [Interval { min: 0, max: 0, flags: 0 }; 9],
            requested: !0,
            changed: 0,
            info: !0,
            sample_bits: 0,
            rate_numerator: 0,
            rate_denominator: 0,
            fifo_frames: 0,
            reserved: [0; 64],
        }
    }
}

impl SwParams {
    fn of(stream: Stream) -> Self {
        let period = c_ulong::from(stream.period);
        let buffer = period * c_ulong::from(stream.periods);
        Self {
            timestamp_mode: 0,
            period_step: 1,
            sleep_min: 0,
            avail_min: period,
            transfer_align: 1,
            start_threshold: buffer,
            stop_threshold: buffer,
            silence_threshold: 0,
            silence_size: 0,
            boundary: 0,
            protocol: 0,
            timestamp_type: 0,
            reserved: [0; 56],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn structures_are_laid_out_as_the_kernel_s() {
        assert_eq!(offset_of!(HwParams, intervals), 4 + 3 * 32 + 5 * 32);
        assert_eq!(offset_of!(HwParams, requested), 512);
        assert_eq!(offset_of!(HwParams, fifo_frames), 536);
        assert_eq!(offset_of!(SwParams, avail_min), 16);
        assert_eq!(offset_of!(SwParams, protocol), 72);
        let requests = [HW_PARAMS, SW_PARAMS, PREPARE, DROP, WRITEI_FRAMES];
        assert_eq!(requests, [0xc260_4111, 0xc088_4113, 0x4140, 0x4143, 0x4018_4150]);
    }

    #[test]
    fn what_is_no_pcm_device_is_refused() {
        let stream = Stream { rate: 44_100, period: 128, periods: 3 };
        let error = Playback::open(Path::new("/dev/null"), stream).unwrap_err();
        assert!(error.to_string().starts_with("HW_PARAMS: "), "{error}");
    }
}
