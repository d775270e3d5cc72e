//! Refuses system calls to this process and its descendants with a seccomp filter, as container
//! runtimes do; for tests of what happens then.

use std::io;

use crate::error::called;

/// The number of a system call.
pub type CallNumber = libc::c_long;

/// Number of timer_create(2).
pub const TIMER_CREATE: CallNumber = libc::SYS_timer_create;
/// Number of timerfd_create(2).
pub const TIMERFD_CREATE: CallNumber = libc::SYS_timerfd_create;
/// Number of socket(2).
pub const SOCKET: CallNumber = libc::SYS_socket;
/// Number of memfd_create(2).
pub const MEMFD_CREATE: CallNumber = libc::SYS_memfd_create;

/// A system call that is refused.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    /// Its number.
    pub call: CallNumber,
    /// If not 0: refused only if its first argument has one of these bits.
    pub bits: u32,
    /// The errno that it then fails with.
    pub errno: i32,
}

impl Refusal {
    /// What Docker's default profile refuses to a container without `CAP_SYS_ADMIN`, of the
    /// system calls that make namespaces and mounts (moby, `profiles/seccomp/default.json`).
    #[must_use]
    pub fn of_docker() -> Vec<Self> {
        /// Every `CLONE_NEW…` of clone(2).
        const NAMESPACES: u32 = 0x7e02_0000;
        let always = |call| Self { call, bits: 0, errno: libc::EPERM };
        vec![
            Self { call: libc::SYS_clone, bits: NAMESPACES, errno: libc::EPERM },
            Self { call: libc::SYS_clone3, bits: 0, errno: libc::ENOSYS },
            always(libc::SYS_unshare),
            always(libc::SYS_setns),
            always(libc::SYS_mount),
            always(libc::SYS_umount2),
        ]
    }

    /// Every way in which musl makes a process, but not threads, and not clone3(2), which musl does
    /// not use and by which a test starts the program.
    #[must_use]
    pub fn of_forks() -> Vec<Self> {
        /// The signal at the end of a child (clone(2)); a thread has none.
        const EXIT_SIGNAL: u32 = 0xff;
        vec![
            Self { call: libc::SYS_clone, bits: EXIT_SIGNAL, errno: libc::EPERM },
            #[cfg(target_arch = "x86_64")]
            Self { call: libc::SYS_fork, bits: 0, errno: libc::EPERM },
            #[cfg(target_arch = "x86_64")]
            Self { call: libc::SYS_vfork, bits: 0, errno: libc::EPERM },
        ]
    }
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

// Offsets in struct seccomp_data (linux/seccomp.h); the low word of the first argument.
const CALL: u32 = 0;
const ARCH: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IF_BITS: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Refuses these system calls from now on; there is no way back. Without `CAP_SYS_ADMIN`, this
/// process and its descendants gain no privileges by exec either.
///
/// # Errors
/// `Unsupported` on other architectures than x86_64 and aarch64; otherwise those of prctl(2).
pub fn refuse(calls: &[Refusal]) -> io::Result<()> {
    if ARCHITECTURE == 0 {
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    let program = program(calls)?;
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: numbers, and a program that outlives the call and is only read.
    unsafe {
        called("prctl(PR_SET_NO_NEW_PRIVS)", libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        let mode = libc::SECCOMP_MODE_FILTER;
        let set = libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter);
        called("prctl(PR_SET_SECCOMP)", set)?;
    }
    Ok(())
}

fn program(calls: &[Refusal]) -> io::Result<Vec<libc::sock_filter>> {
    let mut program = vec![
        step(LOAD, ARCH, 0, 0)?,
        // System calls of another architecture have other numbers.
        step(IF_EQUAL, ARCHITECTURE, 1, 0)?,
        step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0)?,
    ];
    for refusal in calls {
        let errno = u32::try_from(refusal.errno).map_err(io::Error::other)?;
        let call = u32::try_from(refusal.call).map_err(io::Error::other)?;
        let refused = step(RETURN, libc::SECCOMP_RET_ERRNO | errno, 0, 0)?;
        program.push(step(LOAD, CALL, 0, 0)?);
        if refusal.bits == 0 {
            program.extend([step(IF_EQUAL, call, 0, 1)?, refused]);
        } else {
            program.extend([
                step(IF_EQUAL, call, 0, 3)?,
                step(LOAD, FIRST_ARGUMENT, 0, 0)?,
                step(IF_BITS, refusal.bits, 0, 1)?,
                refused,
            ]);
        }
    }
    program.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0)?);
    Ok(program)
}

/// One instruction; `so` and `not` are how many to skip if its test is true or false.
fn step(code: u32, k: u32, so: u8, not: u8) -> io::Result<libc::sock_filter> {
    let code = u16::try_from(code).map_err(io::Error::other)?;
    Ok(libc::sock_filter { code, jt: so, jf: not, k })
}
