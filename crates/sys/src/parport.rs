//! The data pins of a parallel port (include/uapi/linux/ppdev.h).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::ptr::null_mut;

use crate::error::in_call;
use crate::ioctl::{ioctl, plain, reads, writes};

const GROUP: u8 = b'p';
const PPRDATA: u32 = writes::<u8>(GROUP, 0x85);
const PPWDATA: u32 = reads::<u8>(GROUP, 0x86);
const PPCLAIM: u32 = plain(GROUP, 0x8b);
const PPEXCL: u32 = plain(GROUP, 0x8f);

/// A parallel port that nobody else has. Dropping it sets the data pins to what they were.
#[derive(Debug)]
pub struct DataPins {
    port: File,
    before: u8,
}

impl DataPins {
    /// Claims the port behind a device such as `/dev/parport0`.
    ///
    /// # Errors
    /// Those of open(2); `ENXIO` if another driver, such as lp, has registered with the port.
    pub fn claim(device: &Path) -> io::Result<Self> {
        let port = OpenOptions::new().read(true).write(true).open(device)?;
        let fd = port.as_fd();
        let mut before = 0_u8;
        // SAFETY: the first two take no argument, the last one writes a byte.
        unsafe {
            // Without it a claim would wait until the other driver releases the port.
            ioctl::<u8>(fd, PPEXCL, null_mut()).map_err(|error| in_call("PPEXCL", &error))?;
            ioctl::<u8>(fd, PPCLAIM, null_mut())?;
            ioctl(fd, PPRDATA, &raw mut before).map_err(|error| in_call("PPRDATA", &error))?;
        }
        Ok(Self { port, before })
    }

    /// Sets the eight data pins.
    ///
    /// # Errors
    /// Those of the request PPWDATA.
    #[inline]
    pub fn set(&self, mut pins: u8) -> io::Result<()> {
        // SAFETY: the kernel reads a byte.
        unsafe { ioctl(self.port.as_fd(), PPWDATA, &raw mut pins) }
    }
}

impl Drop for DataPins {
    fn drop(&mut self) {
        // Closing the device releases the port.
        let _ = self.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_kernel_s_numbers() {
        assert_eq!([PPRDATA, PPWDATA, PPCLAIM, PPEXCL], [0x8001_7085, 0x4001_7086, 0x708b, 0x708f]);
    }

    #[test]
    fn what_is_no_port_is_refused() {
        let error = DataPins::claim(Path::new("/dev/null")).unwrap_err();
        assert!(error.to_string().starts_with("PPEXCL: "), "{error}");
    }
}
