//! Kernels that are available by name, and how they get here.

/// How far a package is from being booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Installed on this machine.
    Installed,
    /// Unpacked in the cache.
    Cached,
    /// In reach of apt.
    Downloadable,
}

/// A kernel that is available by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    /// How to ask for it, such as `debian:6.1.0-56-rt`.
    pub name: String,
    /// Its package.
    pub package: String,
    /// The package's version.
    pub version: String,
    /// Where it is.
    pub state: State,
    /// Size of the download, of one that is downloadable.
    pub download_bytes: Option<u64>,
}

/// What a fetch does meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchProgress<'a> {
    /// What it has begun, for people.
    Step(&'a str),
    /// How much of the download is here.
    Bytes {
        /// So far.
        done: u64,
        /// In the end; 0 if apt does not say it.
        total: u64,
    },
}
