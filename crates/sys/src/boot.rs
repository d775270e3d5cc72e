//! What only a machine's init process does: mounts, kernel modules, the restart.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// Whether this process is the machine's init.
#[must_use]
pub fn is_init() -> bool {
    std::process::id() == 1
}

/// Mounts one of the kernel's file systems (`proc`, `sysfs`, `tmpfs`, …) on a folder
/// (mount(2)), without set-user-ID programs.
///
/// # Errors
/// The errno of `mount(2)`; `InvalidInput` for a path that contains a NUL.
pub fn mount(kind: &str, on: &Path, options: &str) -> io::Result<()> {
    let kind = CString::new(kind)?;
    let on = CString::new(on.as_os_str().as_encoded_bytes())?;
    let options = CString::new(options)?;
    // SAFETY: four NUL-terminated strings that outlive the call.
    let done = unsafe {
        libc::mount(
            kind.as_ptr(),
            on.as_ptr(),
            kind.as_ptr(),
            libc::MS_NOSUID,
            options.as_ptr().cast(),
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Makes all random numbers that the kernel gives from now on depend on these bytes as well
/// (random(4)).
///
/// # Errors
/// Those of writing `/dev/urandom` and of `ioctl(2)` with `RNDRESEEDCRNG`, which Linux has since
/// 4.14; `ENODATA` if the kernel has no random numbers yet.
pub fn stir_random_numbers(bytes: &[u8]) -> io::Result<()> {
    /// `_IO('R', 0x07)` of linux/random.h.
    const RNDRESEEDCRNG: libc::c_ulong = 0x5207;
    let mut pool = File::options().write(true).open("/dev/urandom")?;
    pool.write_all(bytes)?;
    // SAFETY: the request takes no argument.
    if unsafe { libc::syscall(libc::SYS_ioctl, pool.as_raw_fd(), RNDRESEEDCRNG, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Loads a module from its file (finit_module(2)). A module that is already loaded is no error.
///
/// # Errors
/// The errno of `finit_module(2)`: `ENOEXEC` for a module of another kernel, `ENOENT` for a
/// symbol that no loaded module provides; `InvalidInput` for a NUL in the parameters.
pub fn load_module(file: &File, parameters: &str) -> io::Result<()> {
    let parameters = CString::new(parameters)?;
    // SAFETY: an open file, a NUL-terminated string that outlives the call, no flags.
    let done =
        unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), parameters.as_ptr(), 0) };
    if done != 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) };
    }
    Ok(())
}

/// Brings the loopback interface up (netdevice(7)); the kernel then assigns its address.
///
/// # Errors
/// The errno of `socket(2)` or `ioctl(2)`.
pub fn raise_loopback() -> io::Result<()> {
    // SAFETY: zeroes are a valid ifreq: an empty name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *place = libc::c_char::from_ne_bytes([*byte]);
    }
    let flags = libc::IFF_UP | libc::IFF_RUNNING | libc::IFF_LOOPBACK;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).map_err(io::Error::other)?;
    // SAFETY: takes numbers only.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and ours.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // The number's type differs between C libraries.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "0x8914")]
    let set_flags = libc::SIOCSIFFLAGS as libc::Ioctl;
    // SAFETY: an open socket, and an ifreq that outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), set_flags, &raw const request) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Syncs all file systems and restarts the machine (reboot(2)). An emulator that was told not
/// to restart exits.
///
/// # Errors
/// The errno of `reboot(2)`. It returns only on failure.
pub fn restart() -> io::Result<()> {
    // SAFETY: neither call takes memory of this process.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_AUTOBOOT);
    }
    Err(io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_the_kernels() {
        assert!(!is_init());
        let nowhere = Path::new("/proc/self/no-such-folder");
        assert!(mount("proc", nowhere, "").is_err());
        assert_eq!(
            mount("proc", Path::new("a\0b"), "").unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
        let file = File::open("/proc/self/exe").unwrap();
        assert!(load_module(&file, "").is_err());
    }
}
