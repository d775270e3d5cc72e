//! Periodic interrupts of a real-time clock (rtc(4)).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::ptr::{null_mut, without_provenance_mut};

use libc::c_ulong;

use crate::ioctl::{ioctl, plain, reads, writes};

const GROUP: u8 = b'p';
const RTC_PIE_ON: u32 = plain(GROUP, 0x05);
const RTC_PIE_OFF: u32 = plain(GROUP, 0x06);
const RTC_IRQP_READ: u32 = writes::<c_ulong>(GROUP, 0x0b);
const RTC_IRQP_SET: u32 = reads::<c_ulong>(GROUP, 0x0c);

/// An open real-time clock, which only one program at a time can have. The kernel turns its
/// periodic interrupt off when it is closed.
///
/// Close it, and call all but [`Rtc::wait`], in a thread without real-time priority: to turn the
/// interrupt off or change its rate the kernel spins until the interrupt's callback has ended
/// (`rtc_update_hrtimer` of drivers/rtc/interface.c). On PREEMPT_RT that is a thread of low
/// priority, and the callback is not over when it has woken a thread that waits.
#[derive(Debug)]
pub struct Rtc {
    file: File,
}

impl Rtc {
    /// Opens a clock such as `/dev/rtc0`.
    ///
    /// # Errors
    /// Those of open(2): EBUSY if another program has it.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)? })
    }

    /// The rate of its periodic interrupt, Hz.
    ///
    /// # Errors
    /// Those of ioctl(2): ENOTTY if it is no real-time clock.
    pub fn rate(&self) -> io::Result<u64> {
        let mut hz: c_ulong = 0;
        self.ask(RTC_IRQP_READ, &raw mut hz)?;
        #[allow(clippy::useless_conversion, reason = "a c_ulong has 32 bits on 32-bit machines")]
        Ok(hz.into())
    }

    /// Sets that rate, 1 to 8,192 Hz.
    ///
    /// # Errors
    /// Those of ioctl(2): EACCES above `/sys/class/rtc/rtcN/max_user_freq` without
    /// CAP_SYS_RESOURCE.
    pub fn set_rate(&self, hz: u64) -> io::Result<()> {
        // The number itself is where another request has an address.
        let hz = usize::try_from(hz).unwrap_or(usize::MAX);
        self.ask(RTC_IRQP_SET, without_provenance_mut(hz))
    }

    /// Turns the periodic interrupt on.
    ///
    /// # Errors
    /// Those of ioctl(2): EACCES as for [`Rtc::set_rate`].
    pub fn start(&self) -> io::Result<()> {
        self.ask(RTC_PIE_ON, null_mut())
    }

    /// Turns it off.
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub fn stop(&self) -> io::Result<()> {
        self.ask(RTC_PIE_OFF, null_mut())
    }

    /// Waits for an interrupt and returns how many there were since the last wait; `None` if a
    /// signal ended it (see [`crate::thread::accept_wakes`]).
    ///
    /// # Errors
    /// Those of read(2), except EINTR.
    #[inline(always)]
    pub fn wait(&self) -> io::Result<Option<u64>> {
        let mut data: c_ulong = 0;
        let (fd, size) = (self.file.as_raw_fd(), size_of::<c_ulong>());
        // SAFETY: the buffer has the bytes that the read asks for.
        if unsafe { libc::read(fd, (&raw mut data).cast(), size) } < 0 {
            return interrupted(io::Error::last_os_error());
        }
        // The lowest byte says of what kind they were; only one kind is on.
        #[allow(clippy::useless_conversion, reason = "a c_ulong has 32 bits on 32-bit machines")]
        Ok(Some((data >> 8).into()))
    }

    /// A request whose argument is a number or the address of an unsigned long.
    fn ask(&self, request: u32, argument: *mut c_ulong) -> io::Result<()> {
        // SAFETY: RTC_IRQP_READ writes to the caller's unsigned long, the others to nothing.
        unsafe { ioctl(self.file.as_fd(), request, argument) }
    }
}

#[cold]
fn interrupted(error: io::Error) -> io::Result<Option<u64>> {
    if error.kind() == io::ErrorKind::Interrupted { Ok(None) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn requests_are_those_of_the_kernel() {
        // As strace shows them for 64-bit programs.
        assert_eq!((RTC_IRQP_READ, RTC_IRQP_SET), (0x8008_700b, 0x4008_700c));
    }

    #[test]
    fn what_is_no_clock_says_so() {
        let rtc = Rtc::open(Path::new("/dev/null")).unwrap();
        for refused in [rtc.rate().map(drop), rtc.set_rate(64), rtc.start(), rtc.stop()] {
            assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        }
    }
}
