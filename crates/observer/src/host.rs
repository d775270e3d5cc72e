//! The few calls to the libc that QEMU brings along, on the host.

use core::ffi::{c_int, c_void};

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
