//! A POSIX message queue (mq_overview(7)): a message of one byte is a token.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Token, posted, taken};
use crate::error::called;

/// Messages that fit: more than are ever there. The kernel's default limit is 10.
const MESSAGES: libc::c_long = 8;

/// A queue that has lost its name, so it is gone once nobody has it open.
#[derive(Debug)]
pub struct MessageQueue {
    fd: OwnedFd,
}

impl MessageQueue {
    /// An empty queue.
    ///
    /// # Errors
    /// Those of mq_open(3): ENOSYS if the kernel has none (CONFIG_POSIX_MQUEUE), EMFILE beyond
    /// RLIMIT_MSGQUEUE, ENOSPC beyond fs.mqueue.queues_max.
    pub fn new() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("/punctual-{}-{number}", std::process::id()))?;
        // SAFETY: an all-zero mq_attr is valid.
        let mut size: libc::mq_attr = unsafe { std::mem::zeroed() };
        (size.mq_maxmsg, size.mq_msgsize) = (MESSAGES as _, 1);
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: a NUL-terminated name and a valid mq_attr; the descriptor is checked, and
        // owned by nothing else.
        unsafe {
            let fd = libc::mq_open(name.as_ptr(), flags, 0o600 as libc::mode_t, &raw mut size);
            let fd = OwnedFd::from_raw_fd(called("mq_open", fd)?);
            called("mq_unlink", libc::mq_unlink(name.as_ptr()))?;
            Ok(Self { fd })
        }
    }
}

impl Token for MessageQueue {
    #[inline]
    fn post(&self) -> io::Result<()> {
        let (byte, priority) = (1_u8, 0_u32);
        let none = std::ptr::null::<libc::timespec>();
        // The raw calls, because musl makes its own cancellation points.
        // SAFETY: one readable byte, and no timeout.
        posted(|| unsafe {
            let call = libc::SYS_mq_timedsend;
            libc::syscall(call, self.fd.as_raw_fd(), &raw const byte, 1_usize, priority, none)
        })
    }

    #[inline]
    fn take(&self) -> io::Result<Option<u64>> {
        let mut byte = 0_u8;
        let priority = std::ptr::null_mut::<u32>();
        let none = std::ptr::null::<libc::timespec>();
        // SAFETY: room for the queue's longest message; neither its priority nor a timeout.
        taken(unsafe {
            let call = libc::SYS_mq_timedreceive;
            libc::syscall(call, self.fd.as_raw_fd(), &raw mut byte, 1_usize, priority, none)
        })
    }
}
