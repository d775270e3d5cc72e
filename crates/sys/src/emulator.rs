//! A channel from a guest to the emulator that runs it: no interrupt, no host time.
//!
//! x86: QEMU's `isa-debugcon`, a port that takes bytes. aarch64: semihosting (Arm's
//! "Semihosting for AArch32 and AArch64", 2.0), the calls that write to the console.
//! Either way the guest stands still, in its own time, while the emulator takes the bytes.

use std::io;

#[cfg(target_arch = "x86_64")]
use debugcon as channel;
#[cfg(target_arch = "aarch64")]
use semihosting as channel;

/// The channel, opened. One process at a time writes to it.
#[derive(Debug)]
pub struct Channel(channel::Handle);

impl Channel {
    /// Opens the channel. Only for a guest that was told that it is there: elsewhere the
    /// port may belong to a device, and the semihosting call is an illegal instruction.
    ///
    /// # Errors
    /// On x86 `Unsupported` if nothing answers, else the errno of `ioperm(2)`.
    pub fn open() -> io::Result<Self> {
        channel::open().map(Self)
    }

    /// Hands bytes to the emulator, all of them.
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

    /// The port that QEMU's `isa-debugcon` has unless told otherwise.
    const PORT: u16 = 0xE9;

    #[derive(Debug)]
    pub struct Handle;

    pub fn open() -> io::Result<Handle> {
        permit(true)?;
        let found: u8;
        // SAFETY: the port is permitted, and reading it has no effect.
        unsafe {
            asm!("in al, dx", in("dx") PORT, out("al") found, options(nomem, nostack, preserves_flags));
        }
        permit(false)?;
        // The device answers with its own number, so that a guest can tell that it is there.
        if u16::from(found) == PORT { Ok(Handle) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    /// The permission is held for the write alone: threads that start while it is held
    /// would inherit it, and the kernel spend time on it at each of their switches.
    pub fn write_all(_: &mut Handle, bytes: &[u8]) -> io::Result<()> {
        permit(true)?;
        // SAFETY: the port is permitted; `rep outsb` reads `bytes` alone, with the
        // direction flag clear as the calling convention has it.
        unsafe {
            asm!(
                "rep outsb",
                in("dx") PORT,
                inout("rsi") bytes.as_ptr() => _,
                inout("rcx") bytes.len() => _,
                options(readonly, nostack, preserves_flags),
            );
        }
        permit(false)
    }

    fn permit(on: bool) -> io::Result<()> {
        let port = libc::c_ulong::from(PORT);
        // SAFETY: ioperm(2) takes no memory of this process.
        if unsafe { libc::syscall(libc::SYS_ioperm, port, 1_u64, libc::c_int::from(on)) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

#[cfg(target_arch = "aarch64")]
mod semihosting {
    use std::arch::asm;
    use std::io;

    /// Writes the byte that is pointed to to the emulator's console. The calls that write
    /// more at once need a handle, whose meaning differs between versions of QEMU.
    const SYS_WRITEC: usize = 0x03;

    #[derive(Debug)]
    pub struct Handle;

    /// Nothing tells whether the emulator listens.
    #[allow(clippy::unnecessary_wraps, reason = "the other channels can fail")]
    pub fn open() -> io::Result<Handle> {
        Ok(Handle)
    }

    #[allow(clippy::unnecessary_wraps, reason = "the other channels can fail")]
    pub fn write_all(_: &mut Handle, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            // SAFETY: the emulator reads the byte, which outlives the call, and writes x0 alone.
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
