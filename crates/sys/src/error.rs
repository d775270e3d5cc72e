//! Errors of system calls: taken from errno, and worded for people.

use std::io;

/// The errno of a device that fails, and of a terminal that is gone.
pub const EIO: i32 = libc::EIO;

/// The result of a system call, or its errno if the result is negative.
pub(crate) fn check<T: Default + PartialOrd>(result: T) -> io::Result<T> {
    if result < T::default() { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// An error of the same kind that names the system call (or the step) that failed.
pub(crate) fn in_call(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(kind(error), format!("{name}: {error}"))
}

/// The kind of an error. Too many open files, for which std has no kind, are `QuotaExceeded`.
#[must_use]
pub fn kind(error: &io::Error) -> io::ErrorKind {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => io::ErrorKind::QuotaExceeded,
        _ => error.kind(),
    }
}

/// [`check`], with the system call's name in the error.
pub(crate) fn called<T: Default + PartialOrd>(name: &str, result: T) -> io::Result<T> {
    check(result).map_err(|error| in_call(name, &error))
}

/// The text of an error without the "(os error 2)" that std adds, which tells people nothing more.
#[must_use]
pub fn text(error: &io::Error) -> String {
    const MARK: &str = " (os error ";
    let text = error.to_string();
    let mut words = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(MARK) {
        words.push_str(before);
        let after_number = after.trim_start_matches(|c: char| c.is_ascii_digit());
        rest = match after_number.strip_prefix(')') {
            Some(left) if after_number.len() < after.len() => left,
            _ => {
                words.push_str(MARK);
                after
            }
        };
    }
    words + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_put_in_words() {
        assert_eq!(text(&io::Error::from_raw_os_error(2)), "No such file or directory");
        assert_eq!(text(&io::Error::other("no such load")), "no such load");
    }

    #[test]
    fn too_many_open_files_keep_a_kind_when_they_are_put_in_words() {
        for number in [libc::EMFILE, libc::ENFILE] {
            let error = in_call("pipe", &io::Error::from_raw_os_error(number));
            assert_eq!(kind(&error), io::ErrorKind::QuotaExceeded, "{error}");
        }
        let refused = io::Error::from_raw_os_error(libc::EACCES);
        assert_eq!(kind(&refused), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn what_surrounds_a_number_stays() {
        let wrapped = format!("cannot read a: {}; mount it", io::Error::from_raw_os_error(13));
        assert!(wrapped.contains("(os error 13)"));
        assert_eq!(text(&io::Error::other(wrapped)), "cannot read a: Permission denied; mount it");
        for kept in ["a (os error )", "b (os error x)", "c (os error 1", "d (os error "] {
            assert_eq!(text(&io::Error::other(kept)), kept);
        }
    }

    #[test]
    fn results_below_zero_are_errors() {
        assert_eq!(check(0).unwrap(), 0);
        assert_eq!(check(7_i64).unwrap(), 7);
        // SAFETY: closes no descriptor; sets errno.
        let closed = check(unsafe { libc::close(-1) });
        assert_eq!(closed.unwrap_err().raw_os_error(), Some(libc::EBADF));
        // SAFETY: as above.
        let named = called("close", unsafe { libc::close(-1) }).unwrap_err();
        assert_eq!(text(&named), "close: Bad file descriptor");
    }
}
