//! A driver in user space (UIO) for the device `edu` of QEMU, which raises an interrupt when it is
//! told to (docs/specs/edu.rst of QEMU; Documentation/driver-api/uio-howto.rst of Linux).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::clock::monotonic_ns;
use crate::region::page_size;
use crate::token::Token;

/// PCI vendor and device, as `/sys/bus/pci/devices/…/vendor` and `device` have them.
pub const EDU_IDS: [&str; 2] = ["0x1234", "0x11e8"];

/// Whether a folder of `/sys/bus/pci/devices` is that of an `edu`.
#[must_use]
pub fn is_edu(folder: &Path) -> bool {
    ["vendor", "device"].iter().zip(EDU_IDS).all(|(file, id)| {
        std::fs::read_to_string(folder.join(file)).is_ok_and(|text| text.trim() == id)
    })
}

/// The first `edu` below a folder such as `/sys/bus/pci/devices`, by its address.
#[must_use]
pub fn first_edu(devices: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(devices).ok()?.flatten().map(|entry| entry.path());
    entries.filter(|folder| is_edu(folder)).min()
}

// Registers, by their offset in bytes.
const IDENTITY: usize = 0x00;
const STATUS: usize = 0x24;
const RAISE: usize = 0x60;
const ACKNOWLEDGE: usize = 0x64;

/// The upper byte of the command register in the configuration space, and its bit that turns the
/// interrupt off (Interrupt Disable, PCI 2.3).
const COMMAND_HIGH: u64 = 5;
const INTERRUPT_OFF: u8 = 1 << 2;

/// The first page of the device's registers. Dropping it unmaps it.
#[derive(Debug)]
struct Registers {
    start: NonNull<u32>,
}

// SAFETY: the device serves each access by itself, in whatever thread it is made.
unsafe impl Send for Registers {}
// SAFETY: as above.
unsafe impl Sync for Registers {}

impl Registers {
    fn map(resource: &File) -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page_size(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                resource.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)? })
    }

    #[inline(always)]
    fn read(&self, register: usize) -> u32 {
        // SAFETY: a register of the page that is mapped, aligned to its four bytes.
        unsafe { self.start.byte_add(register).read_volatile() }
    }

    #[inline(always)]
    fn write(&self, register: usize, value: u32) {
        // SAFETY: as above. None of the registers written here makes the device access memory.
        unsafe { self.start.byte_add(register).write_volatile(value) };
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this, and no reference into it exists.
        unsafe { libc::munmap(self.start.as_ptr().cast(), page_size()) };
    }
}

/// The device under `uio_pci_generic`. A token is an interrupt: posted by a write to the device,
/// taken by the read of the UIO device that returns when the kernel has handled it.
#[derive(Debug)]
pub struct Edu {
    uio: File,
    config: File,
    registers: Registers,
    /// The upper byte of the command register with the interrupt on.
    command: u8,
    /// Interrupts that the kernel had counted at the last read, 0 before the first.
    seen: AtomicU32,
    lost: AtomicU64,
}

impl Edu {
    /// Opens a device by its folder in `/sys/bus/pci/devices` and its UIO device such as
    /// `/dev/uio0`.
    ///
    /// # Errors
    /// Those of open(2), mmap(2) and of reading the configuration space; `InvalidData` if it is not
    /// an `edu`.
    pub fn open(folder: &Path, uio: &Path) -> io::Result<Self> {
        let writable = |path: &Path| File::options().read(true).write(true).open(path);
        let config = writable(&folder.join("config"))?;
        let mut command = [0];
        config.read_exact_at(&mut command, COMMAND_HIGH)?;
        let registers = Registers::map(&writable(&folder.join("resource0"))?)?;
        // The upper half is the version.
        if registers.read(IDENTITY) & 0xffff != 0x00ed {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not answer as edu"));
        }
        let command = command[0] & !INTERRUPT_OFF;
        let (seen, lost) = (AtomicU32::new(0), AtomicU64::new(0));
        let edu = Self { uio: writable(uio)?, config, registers, command, seen, lost };
        edu.acknowledge()?;
        Ok(edu)
    }

    /// Interrupts that the kernel counted between two reads that returned besides the second one's.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Takes the interrupt back in the device, and lets the next one through: the kernel's handler
    /// has turned it off.
    fn acknowledge(&self) -> io::Result<()> {
        self.registers.write(ACKNOWLEDGE, self.registers.read(STATUS));
        self.config.write_all_at(&[self.command], COMMAND_HIGH)
    }

    fn count(&self, now: u32) {
        let seen = self.seen.swap(now, Ordering::Relaxed);
        if seen != 0 {
            let lost = now.wrapping_sub(seen).saturating_sub(1);
            self.lost.fetch_add(lost.into(), Ordering::Relaxed);
        }
    }
}

impl Token for Edu {
    #[inline]
    fn post(&self) -> io::Result<()> {
        // What was noted of this token is to be seen by whoever the interrupt wakes.
        fence(Ordering::SeqCst);
        self.registers.write(RAISE, 1);
        Ok(())
    }

    #[inline]
    fn take(&self) -> io::Result<Option<u64>> {
        let mut count = 0_u32;
        // SAFETY: the buffer has the four bytes that the read asks for.
        let got =
            unsafe { libc::read(self.uio.as_raw_fd(), (&raw mut count).cast(), size_of::<u32>()) };
        if got < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(None) } else { Err(error) };
        }
        let now = monotonic_ns();
        self.count(count);
        self.acknowledge()?;
        Ok(Some(now))
    }
}

impl Drop for Edu {
    fn drop(&mut self) {
        // The last interrupt may not have been taken.
        let _ = self.acknowledge();
    }
}
