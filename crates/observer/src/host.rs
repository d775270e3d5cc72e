//! The few calls to the libc that QEMU brings along, on the host.

use core::ffi::{c_char, c_int, c_void};

use crate::arguments::PATH_MAX;
use crate::event::{Event, SIZE};
use crate::output::Sink;

unsafe extern "C" {
    fn write(file: c_int, bytes: *const c_void, len: usize) -> isize;
    fn mmap(
        address: *mut c_void,
        len: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn lseek(file: c_int, offset: i64, whence: c_int) -> i64;
    fn __errno_location() -> *mut c_int;
    fn abort() -> !;
}

/// Memory for this many events, until QEMU ends. `None`: there is not enough.
pub(crate) fn events(count: usize) -> Option<&'static mut [Event]> {
    // SAFETY: zero is an event.
    unsafe { map(count) }
}

/// Memory for the bytes of this many events, likewise.
pub(crate) fn buffer(count: usize) -> Option<&'static mut [[u8; SIZE]]> {
    // SAFETY: zeros are bytes.
    unsafe { map(count) }
}

/// This many words that are zero, likewise.
pub(crate) fn words(count: usize) -> Option<&'static mut [u64]> {
    // SAFETY: zero is a word.
    unsafe { map(count) }
}

/// # Safety
/// Bytes that are zero are a `T`.
unsafe fn map<T>(count: usize) -> Option<&'static mut [T]> {
    const READ_WRITE: c_int = 3;
    /// With room set aside only once it is used, which most of the words for coverage never are.
    const PRIVATE_ANONYMOUS_NORESERVE: c_int = 0x4022;
    let bytes = count.checked_mul(size_of::<T>())?;
    // SAFETY: new memory, which nothing else uses.
    let memory = unsafe {
        mmap(core::ptr::null_mut(), bytes, READ_WRITE, PRIVATE_ANONYMOUS_NORESERVE, -1, 0)
    };
    // SAFETY: it has room for them, begins with a page, is zero, and is never unmapped.
    (memory.addr() != usize::MAX)
        .then(|| unsafe { core::slice::from_raw_parts_mut(memory.cast(), count) })
}

/// A file in memory, which others write to.
pub(crate) struct Mapped {
    start: *const u8,
    length: u64,
}

impl Mapped {
    pub(crate) const NONE: Self = Self { start: core::ptr::null(), length: 0 };

    /// The file with this name, ended by a zero, at its present length. `None`: it cannot be had.
    pub(crate) fn of(path: &[u8; PATH_MAX]) -> Option<Self> {
        const READ_ONLY_CLOEXEC: c_int = 0x8_0000;
        const END: c_int = 2;
        const READ: c_int = 1;
        const SHARED: c_int = 1;
        (path.last() == Some(&0)).then_some(())?;
        // SAFETY: a name ended by a zero.
        let file = unsafe { open(path.as_ptr().cast(), READ_ONLY_CLOEXEC) };
        (file >= 0).then_some(())?;
        // SAFETY: it is open.
        let length = u64::try_from(unsafe { lseek(file, 0, END) }).ok()?;
        let bytes = usize::try_from(length).ok()?;
        // SAFETY: new memory, which stays though the file's number does, too, until QEMU ends.
        let start = unsafe { mmap(core::ptr::null_mut(), bytes, READ, SHARED, file, 0) };
        (start.addr() != usize::MAX).then_some(Self { start: start.cast(), length })
    }

    /// A byte of it.
    pub(crate) fn byte(&self, at: u64) -> Option<u8> {
        let place = usize::try_from(at).ok().filter(|_| at < self.length)?;
        // SAFETY: inside of what was mapped. The guest may write to it, so it is read as it is.
        Some(unsafe { self.start.add(place).read_volatile() })
    }
}

/// A file of QEMU's, by its number.
#[derive(Debug)]
pub(crate) struct File(pub(crate) c_int);

impl Sink for File {
    fn write(&mut self, bytes: &[u8]) -> Option<usize> {
        const EINTR: c_int = 4;
        loop {
            // SAFETY: the bytes are borrowed meanwhile.
            let written = unsafe { write(self.0, bytes.as_ptr().cast(), bytes.len()) };
            match usize::try_from(written) {
                Ok(0) => return None,
                Ok(written) => return Some(written),
                // SAFETY: both glibc and musl have this thread's error there.
                Err(_) if unsafe { *__errno_location() } == EINTR => {}
                Err(_) => return None,
            }
        }
    }
}

/// Nothing here panics. If it did, going on would give a wrong account of the guest's course.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    let _ = File(2).write(b"punctual's observer has a bug and ends QEMU\n");
    // SAFETY: it only ends the process.
    unsafe { abort() }
}
