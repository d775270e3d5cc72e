//! What an aarch64 guest's registers hold. QEMU tells it from version 10 on.

#[cfg(api = "4")]
pub(crate) use version::find;
pub(crate) use version::{ARE_KNOWN, read};

/// A register that the observer reads.
#[derive(Clone, Copy)]
#[cfg_attr(api = "1", allow(dead_code, reason = "nothing tells the numbers apart there"))]
pub(crate) enum Register {
    /// `x0` to `x30`, by number.
    General(u8),
    /// The state that `eret` restores.
    SavedState,
    /// Why the last exception came.
    Syndrome,
}

#[cfg(api = "1")]
mod version {
    use super::Register;

    pub(crate) const ARE_KNOWN: bool = false;

    pub(crate) fn read(_: Register) -> Option<u64> {
        None
    }
}

#[cfg(api = "4")]
mod version {
    use core::ffi::{CStr, c_char, c_int, c_uint};
    use core::ptr::null_mut;

    use super::Register;
    use crate::raw::RawRegister;
    use crate::single::Single;

    pub(crate) const ARE_KNOWN: bool = true;

    /// `GArray` and `GByteArray` (glib/garray.h).
    #[repr(C)]
    struct Array<T> {
        data: *mut T,
        len: c_uint,
    }

    /// `qemu_plugin_reg_descriptor`.
    #[repr(C)]
    struct Descriptor {
        handle: *mut RawRegister,
        name: *const c_char,
        feature: *const c_char,
    }

    unsafe extern "C" {
        fn qemu_plugin_get_registers() -> *mut Array<Descriptor>;
        fn qemu_plugin_read_register(register: *mut RawRegister, to: *mut Array<u8>) -> c_int;
        fn g_byte_array_new() -> *mut Array<u8>;
        fn g_byte_array_set_size(array: *mut Array<u8>, len: c_uint) -> *mut Array<u8>;
    }

    /// How many of [`Register`] there are.
    const COUNT: usize = 33;

    struct Found {
        /// By [`place`]; null if QEMU has none.
        registers: [*mut RawRegister; COUNT],
        /// What was read.
        bytes: *mut Array<u8>,
    }

    static FOUND: Single<Found> =
        Single::new(Found { registers: [null_mut(); COUNT], bytes: null_mut() });

    fn place(register: Register) -> usize {
        match register {
            Register::General(number) => number.min(30).into(),
            Register::SavedState => 31,
            Register::Syndrome => 32,
        }
    }

    /// Which register has this name.
    fn named(name: &[u8]) -> Option<Register> {
        let number = |digits: &[u8]| {
            digits.iter().try_fold(0_u8, |number, digit| {
                let digit = char::from(*digit).to_digit(10)?;
                number.checked_mul(10)?.checked_add(u8::try_from(digit).ok()?)
            })
        };
        match name {
            b"SPSR_EL1" => Some(Register::SavedState),
            b"ESR_EL1" => Some(Register::Syndrome),
            [b'x', digits @ ..] => number(digits).filter(|n| *n <= 30).map(Register::General),
            _ => None,
        }
    }

    /// Finds them, once there is a CPU.
    pub(crate) fn find() {
        // SAFETY: called on the thread of a CPU that exists. The list is never freed.
        let all = unsafe { &*qemu_plugin_get_registers() };
        FOUND.with(|found| {
            for index in 0..all.len as usize {
                // SAFETY: it has so many descriptors.
                let descriptor = unsafe { &*all.data.add(index) };
                let _ = descriptor.feature;
                // SAFETY: QEMU's names are terminated strings.
                let name = unsafe { CStr::from_ptr(descriptor.name) };
                let known = named(name.to_bytes()).map(place);
                if let Some(slot) = known.and_then(|place| found.registers.get_mut(place)) {
                    *slot = descriptor.handle;
                }
            }
            // SAFETY: it has no conditions. The array is never freed.
            found.bytes = unsafe { g_byte_array_new() };
        });
    }

    /// What it holds, in a callback that may read registers. `None`: QEMU has no such register.
    pub(crate) fn read(register: Register) -> Option<u64> {
        FOUND.with(|found| {
            let handle = *found.registers.get(place(register))?;
            (!handle.is_null()).then_some(())?;
            // SAFETY: the array was made when the handles were found, and nobody else has it.
            let bytes = unsafe {
                g_byte_array_set_size(found.bytes, 0);
                qemu_plugin_read_register(handle, found.bytes);
                &*found.bytes
            };
            // SAFETY: glib keeps so many bytes there.
            let read = unsafe { core::slice::from_raw_parts(bytes.data, bytes.len as usize) };
            Some(u64::from_le_bytes(read.try_into().ok()?))
        })
    }
}
