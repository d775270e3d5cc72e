//! The releases of Debian whose kernels can be named. A new one is a line here.

/// A release of Debian and its suites in the archive. Backports are a release of their own: their
/// kernels are those of a later one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Release {
    pub(super) name: &'static str,
    pub(super) suites: &'static [&'static str],
}

/// From the oldest to the newest. A release that is gone from the mirror is told of and left out.
pub(super) const RELEASES: [Release; 7] = [
    Release { name: "bullseye", suites: &["bullseye", "bullseye-security"] },
    Release { name: "bookworm", suites: &["bookworm", "bookworm-updates", "bookworm-security"] },
    Release { name: "bookworm-backports", suites: &["bookworm-backports"] },
    Release { name: "trixie", suites: &["trixie", "trixie-updates", "trixie-security"] },
    Release { name: "trixie-backports", suites: &["trixie-backports"] },
    Release { name: "forky", suites: &["forky", "forky-security"] },
    Release { name: "sid", suites: &["sid"] },
];
