//! A channel from a guest to its emulator that uses no interrupt and no host time.
//!
//! On x86 it is QEMU's `isa-debugcon`, an I/O port that takes bytes. On aarch64 it is
//! semihosting (Arm's "Semihosting for AArch32 and AArch64", 2.0), the calls that write to the
//! console. In both cases guest time stands still while the emulator takes the bytes.

use std::io;

#[cfg(target_arch = "x86_64")]
use debugcon as channel;
#[cfg(target_arch = "aarch64")]
use semihosting as channel;

/// The open channel. Only one process at a time may write to it.
#[derive(Debug)]
pub struct Channel(channel::Handle);

impl Channel {
    /// Opens the channel. Only for a guest that was told of it: elsewhere the port may belong
    /// to a device, and the semihosting call is an illegal instruction.
    ///
    /// # Errors
    /// On x86 `Unsupported` if nothing answers; otherwise the errno of `ioperm(2)`.
    pub fn open() -> io::Result<Self> {
        channel::open().map(Self)
    }

    /// Sends all bytes to the emulator.
    ///
    /// # Errors
    /// The errno of `ioperm(2)`.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        channel::write_all(&mut self.0, bytes)
    }
}

#[cfg(target_arch = "x86_64")]
mod debugcon {
    use std::arch::asm;
    use std::io;

    use crate::ports::permitted;

    /// Default port of QEMU's `isa-debugcon`.
    const PORT: u16 = 0xE9;

    #[derive(Debug)]
    pub struct Handle;

    pub fn open() -> io::Result<Handle> {
        let found = permitted(PORT, 1, || {
            let found: u8;
            // SAFETY: the port is permitted, and reading it has no effect.
            unsafe {
                asm!("in al, dx", in("dx") PORT, out("al") found, options(nomem, nostack, preserves_flags));
            }
            found
        })?;
        // The device answers with its port number, so a guest can tell that it exists.
        if u16::from(found) == PORT { Ok(Handle) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    pub fn write_all(_: &mut Handle, bytes: &[u8]) -> io::Result<()> {
        permitted(PORT, 1, || {
            // SAFETY: the port is permitted; `rep outsb` only reads `bytes`, with the direction
            // flag clear as the calling convention requires.
            unsafe {
                asm!(
                    "rep outsb",
                    in("dx") PORT,
                    inout("rsi") bytes.as_ptr() => _,
                    inout("rcx") bytes.len() => _,
                    options(readonly, nostack, preserves_flags),
                );
            }
        })
    }
}

#[cfg(target_arch = "aarch64")]
mod semihosting {
    use std::arch::asm;
    use std::io;

    /// Writes the byte at a pointer to the emulator's console. The calls that write more at
    /// once need a handle, whose meaning differs between versions of QEMU.
    const SYS_WRITEC: usize = 0x03;

    #[derive(Debug)]
    pub struct Handle;

    /// Nothing tells whether the emulator is listening.
    #[allow(clippy::unnecessary_wraps, reason = "the other channels can fail")]
    pub fn open() -> io::Result<Handle> {
        Ok(Handle)
    }

    #[allow(clippy::unnecessary_wraps, reason = "the other channels can fail")]
    pub fn write_all(_: &mut Handle, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            // SAFETY: the emulator reads the byte, which outlives the call, and writes only x0.
            unsafe {
                asm!(
                    "hlt #0xF000",
                    inout("x0") SYS_WRITEC => _,
                    in("x1") byte,
                    options(readonly, nostack, preserves_flags),
                );
            }
        }
        Ok(())
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod channel {
    use std::io;

    #[derive(Debug)]
    pub struct Handle;

    pub fn open() -> io::Result<Handle> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn write_all(_: &mut Handle, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
