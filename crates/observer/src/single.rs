//! The plugin's globals.

use core::cell::UnsafeCell;

/// A global of the plugin.
///
/// One thread at a time uses any of these, and never two borrows at once: boards have one CPU
/// (checked when the plugin is installed), QEMU translates and executes it on one host thread,
/// installs the plugin before that thread exists, and calls the plugin's end on that thread or
/// after stopping it. No callback calls another, nor anything that could. The exception is an
/// error for which QEMU ends at once, on its main thread: then what was written last may be torn.
pub(crate) struct Single<T>(UnsafeCell<T>);

// SAFETY: one thread at a time, as said above.
unsafe impl<T> Sync for Single<T> {}

impl<T> Single<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Lends the value to `f`, which must not use this same global again.
    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the only borrow, by the rule above and that of this function.
        f(unsafe { &mut *self.0.get() })
    }

    /// Where the value is, for a global that translated code writes to.
    #[cfg(api = "1")]
    pub(crate) const fn place(&self) -> *mut T {
        self.0.get()
    }
}
