//! Keeps CPUs out of idle states that take long to leave.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use punctual_sys::error;

/// The kernel's interface (Documentation/power/pm_qos_interface.rst); the value is in effect
/// while the file is open.
pub const DEVICE: &str = "/dev/cpu_dma_latency";

/// A limit on the exit latency of idle states. It ends when this is dropped or the process
/// ends, so it needs no journal entry.
#[derive(Debug)]
pub struct DmaLatency {
    file: File,
}

impl DmaLatency {
    /// Allows no idle state with an exit latency above `latency_us`; 0 keeps CPUs polling.
    ///
    /// # Errors
    /// The device is missing, is not writable or refuses the value; the text says which and
    /// names the remedy.
    pub fn hold(latency_us: u32) -> io::Result<Self> {
        Self::hold_at(Path::new(DEVICE), latency_us)
    }

    fn hold_at(device: &Path, latency_us: u32) -> io::Result<Self> {
        let value = i32::try_from(latency_us).map_err(|_| {
            let text =
                format!("a DMA latency of {latency_us} us is more than the kernel's {}", i32::MAX);
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        let failed = |error: io::Error| {
            let advice = match error.kind() {
                io::ErrorKind::PermissionDenied => "run as root, or with --dma-latency none",
                io::ErrorKind::NotFound => {
                    "the kernel has no CONFIG_CPU_IDLE or /dev is bare; use --dma-latency none"
                }
                _ => "use --dma-latency none",
            };
            let text = format!(
                "cannot hold {} at {latency_us} us: {}; {advice}",
                device.display(),
                error::text(&error)
            );
            io::Error::new(error.kind(), text)
        };
        let mut file = OpenOptions::new().read(true).write(true).open(device).map_err(failed)?;
        file.write_all(&value.to_ne_bytes()).map_err(failed)?;
        Ok(Self { file })
    }

    /// The exit latency in effect, us: the smallest of all holders'.
    ///
    /// # Errors
    /// The errno of `read(2)`.
    pub fn effective_us(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.file.rewind()?;
        self.file.read_exact(&mut bytes)?;
        u32::try_from(i32::from_ne_bytes(bytes)).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_do() {
        let missing = DmaLatency::hold_at(Path::new("/nonexistent/latency"), 0).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let text = missing.to_string();
        assert!(text.contains("/nonexistent/latency at 0 us"), "{text}");
        assert!(text.contains("--dma-latency none"), "{text}");
        let large = DmaLatency::hold(u32::MAX).unwrap_err();
        assert_eq!(large.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn the_kernel_takes_the_value() {
        match DmaLatency::hold(7) {
            // Another holder may be stricter.
            Ok(mut held) => assert!(held.effective_us().unwrap() <= 7),
            Err(error) => assert_ne!(punctual_sys::process::effective_uid(), 0, "{error}"),
        }
    }
}
