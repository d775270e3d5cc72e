//! A timeout of io_uring (io_uring(7)), by raw system calls: the C libraries have none.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Wait, Waited, from_negated, interrupted_or_error};
use crate::error::called;

const IORING_OP_TIMEOUT: u8 = 11;
const IORING_TIMEOUT_ABS: u32 = 1;
const IORING_ENTER_GETEVENTS: libc::c_uint = 1;
const IORING_OFF_SQES: libc::off_t = 0x1000_0000;
/// Both rings are in one mapping: Linux 5.4.
const IORING_FEAT_SINGLE_MMAP: u32 = 1;

/// `struct io_uring_params` of include/uapi/linux/io_uring.h, with `io_sqring_offsets` and
/// `io_cqring_offsets` in it.
#[repr(C)]
#[derive(Default)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread: [u32; 2],
    features: u32,
    wq_fd: u32,
    resv: [u32; 3],
    /// head, tail, ring_mask, ring_entries, flags, dropped, array, resv1, user_addr.
    sq_off: [u32; 10],
    /// head, tail, ring_mask, ring_entries, overflow, cqes, flags, resv1, user_addr.
    cq_off: [u32; 10],
}

/// `struct io_uring_sqe`, with the fields of a timeout.
#[repr(C)]
struct Submission {
    opcode: u8,
    flags: u8,
    ioprio: u16,
    fd: i32,
    off: u64,
    addr: u64,
    len: u32,
    timeout_flags: u32,
    rest: [u64; 4],
}

/// `struct __kernel_timespec`.
#[repr(C)]
struct Instant {
    seconds: i64,
    nanoseconds: i64,
}

/// Pages of a ring.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    fn new(ring: &OwnedFd, bytes: usize, offset: libc::off_t) -> io::Result<Self> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            let flags = flags | libc::MAP_POPULATE;
            libc::mmap(std::ptr::null_mut(), bytes, access, flags, ring.as_raw_fd(), offset)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// A number at an offset that the kernel gave.
    #[inline(always)]
    fn word(&self, offset: u32) -> &AtomicU32 {
        let offset = offset as usize;
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.bytes);
        // SAFETY: aligned and within the mapping, which lives as long as this; the kernel
        // accesses it as one number, too.
        unsafe { self.start.add(offset).cast::<AtomicU32>().as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this, and no reference to it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A ring with room for one request: IORING_OP_TIMEOUT until an absolute instant, for which
/// one io_uring_enter(2) both asks and waits.
#[derive(Debug)]
pub struct RingTimeout {
    ring: OwnedFd,
    rings: Mapping,
    submissions: Mapping,
    /// Offsets of the tail of submissions, and of the head, the tail and the first result of
    /// completions.
    sq_tail: u32,
    cq_head: u32,
    cq_tail: u32,
    cq_mask: u32,
    cqes: u32,
    /// The instant of the request that is with the kernel, ns; 0 if none is.
    asked_ns: u64,
}

// SAFETY: it owns its mappings, and may be used by one thread at a time.
unsafe impl Send for RingTimeout {}

impl RingTimeout {
    /// A ring without requests.
    ///
    /// # Errors
    /// Those of io_uring_setup(2): ENOSYS without CONFIG_IO_URING, EPERM if
    /// kernel.io_uring_disabled or a filter forbids it.
    pub fn new() -> io::Result<Self> {
        let mut params = Params::default();
        // SAFETY: a valid io_uring_params; the descriptor is checked, and owned by nothing else.
        let ring = unsafe {
            let fd = libc::syscall(libc::SYS_io_uring_setup, 1, &raw mut params);
            let fd = i32::try_from(called("io_uring_setup", fd)?).map_err(io::Error::other)?;
            OwnedFd::from_raw_fd(fd)
        };
        if params.features & IORING_FEAT_SINGLE_MMAP == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let [cq_head, cq_tail, cq_mask, _, _, cqes, ..] = params.cq_off;
        let [_, sq_tail, _, _, _, _, array, ..] = params.sq_off;
        let bytes = (cqes + params.cq_entries * 16).max(array + params.sq_entries * 4) as usize;
        let rings = Mapping::new(&ring, bytes, 0)?;
        let submissions = Mapping::new(&ring, size_of::<Submission>(), IORING_OFF_SQES)?;
        let cq_mask = rings.word(cq_mask).load(Ordering::Relaxed);
        // The only place is always the one to look at.
        rings.word(array).store(0, Ordering::Relaxed);
        Ok(Self { ring, rings, submissions, sq_tail, cq_head, cq_tail, cq_mask, cqes, asked_ns: 0 })
    }

    /// Asks for a timeout, if none is on its way, and waits for it.
    #[inline(always)]
    fn enter(&mut self, release_ns: u64) -> libc::c_long {
        let split = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let instant = Instant {
            seconds: split(release_ns / 1_000_000_000),
            nanoseconds: split(release_ns % 1_000_000_000),
        };
        let is_new = self.asked_ns == 0;
        if is_new {
            self.asked_ns = release_ns;
            let request = Submission {
                opcode: IORING_OP_TIMEOUT,
                flags: 0,
                ioprio: 0,
                fd: -1,
                off: 0,
                addr: (&raw const instant).addr() as u64,
                len: 1,
                timeout_flags: IORING_TIMEOUT_ABS,
                rest: [0; 4],
            };
            // SAFETY: the mapping has room for one request, which the kernel reads, with the
            // instant, during the call below.
            unsafe { self.submissions.start.cast::<Submission>().write(request) };
            let tail = self.rings.word(self.sq_tail);
            tail.store(tail.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        }
        let (ring, submit) = (self.ring.as_raw_fd(), libc::c_uint::from(is_new));
        let none = std::ptr::null::<libc::sigset_t>();
        // SAFETY: an open ring, numbers, and no mask.
        unsafe {
            let (call, flags) = (libc::SYS_io_uring_enter, IORING_ENTER_GETEVENTS);
            libc::syscall(call, ring, submit, 1, flags, none, 0_usize)
        }
    }

    /// The result of the request, if it is done.
    #[inline(always)]
    fn result(&self) -> Option<i32> {
        let head = self.rings.word(self.cq_head).load(Ordering::Relaxed);
        if head == self.rings.word(self.cq_tail).load(Ordering::Acquire) {
            return None;
        }
        // `struct io_uring_cqe`: user_data, res, flags.
        let place = self.cqes + (head & self.cq_mask) * 16 + 8;
        let result = self.rings.word(place).load(Ordering::Relaxed).cast_signed();
        self.rings.word(self.cq_head).store(head.wrapping_add(1), Ordering::Release);
        Some(result)
    }
}

impl Wait for RingTimeout {
    #[inline(always)]
    fn until(&mut self, release_ns: u64) -> io::Result<Waited> {
        loop {
            if self.enter(release_ns) < 0 {
                return interrupted_or_error(io::Error::last_os_error());
            }
            // A signal may end the wait after the kernel took the request.
            let Some(result) = self.result() else { return Ok(Waited::Interrupted) };
            let asked_ns = std::mem::take(&mut self.asked_ns);
            if result != -libc::ETIME {
                return Err(from_negated(result.into()));
            }
            // Or it was for a release that was given up.
            if asked_ns >= release_ns {
                return Ok(Waited::Released);
            }
        }
    }
}
