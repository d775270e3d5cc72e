//! Why a cost could not be measured, with what can be done about it.

use std::io::{self, ErrorKind};

use punctual_sys::error::{kind, text};

use crate::registry::cost::CostEntry;

/// What refused a metric, and what to do where that follows from the kind of the error. Errors of
/// other kinds say it themselves, or nothing can be done.
pub(super) fn advised(error: &io::Error, entry: &CostEntry) -> String {
    let has = |name| entry.params.iter().any(|param| param.name == name);
    let advice = match kind(error) {
        ErrorKind::OutOfMemory if has("size") => Some("choose a smaller size"),
        ErrorKind::OutOfMemory if has("groups") => Some("choose fewer groups"),
        ErrorKind::OutOfMemory if has("kb") && has("procs") => {
            Some("choose a smaller kb, or fewer procs")
        }
        kind => advice(kind, has("dir")),
    };
    match advice {
        Some(advice) => format!("{}: {advice}", text(error)),
        None => text(error),
    }
}

fn advice(kind: ErrorKind, has_files: bool) -> Option<&'static str> {
    use ErrorKind as Kind;
    match kind {
        // EAGAIN of fork(2) and pthread_create(3).
        Kind::WouldBlock => {
            Some("raise the limit on processes (ulimit -u, pids.max of the control group)")
        }
        Kind::NetworkUnreachable
        | Kind::NetworkDown
        | Kind::HostUnreachable
        | Kind::AddrNotAvailable => Some("bring the loopback device up (ip link set lo up)"),
        Kind::TimedOut | Kind::ConnectionRefused => {
            Some("see whether a packet filter stops what goes through the loopback device")
        }
        Kind::PermissionDenied if has_files => Some(
            "choose another dir, or see whether a container's filter of system calls (seccomp) or a \
             security module refuses it",
        ),
        Kind::PermissionDenied => Some(
            "see whether a container's filter of system calls (seccomp) or a security module \
             refuses it",
        ),
        // An area of a disk, or open files.
        Kind::QuotaExceeded if has_files => {
            Some("choose another dir, or raise the limit (quota; ulimit -n, fs.file-max)")
        }
        Kind::QuotaExceeded => Some("raise the limit on open files (ulimit -n, fs.file-max)"),
        Kind::StorageFull if has_files => Some("free some space, or choose another dir"),
        Kind::OutOfMemory => Some("free some memory"),
        Kind::NotFound | Kind::NotADirectory | Kind::ReadOnlyFilesystem if has_files => {
            Some("choose another dir")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::find;

    fn of(metric: &str, errno: i32) -> String {
        let error = io::Error::from_raw_os_error(errno);
        let named = io::Error::new(kind(&error), format!("a call: {}", text(&error)));
        advised(&named, find(metric).unwrap())
    }

    #[test]
    fn what_can_be_done_is_told_with_the_reason() {
        // Numbers of asm-generic/errno.h, which x86_64 and aarch64 share.
        for (metric, errno, says) in [
            ("lat.fork", 11, "ulimit -u"),
            ("lat.udp", 101, "lo up"),
            ("lat.tcp", 110, "packet filter"),
            ("lat.udp", 1, "seccomp"),
            ("lat.stat", 13, "choose another dir"),
            ("lat.stat", 30, "choose another dir"),
            ("lat.mmap", 28, "free some space"),
            ("bw.mem", 12, "choose a smaller size"),
            ("sys.tlb", 12, "free some memory"),
            ("ctx", 12, "smaller kb"),
            ("time.hackbench", 12, "choose fewer groups"),
            ("ctx", 24, "ulimit -n"),
            ("lat.select", 23, "fs.file-max"),
        ] {
            let said = of(metric, errno);
            assert!(
                said.starts_with("a call: ") && said.contains(says),
                "{metric} {errno}: {said}"
            );
            assert!(!said.contains("os error"), "{said}");
        }
        // Nothing of this kind has a folder.
        assert!(!of("lat.fork", 30).contains("dir"));
        assert!(of("lat.pipe", 32).ends_with("pipe"));
    }
}
