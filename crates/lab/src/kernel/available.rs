//! Kernels that can be selected by name, and the progress of fetching them.

/// Where a package is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Installed on this machine.
    Installed,
    /// Unpacked in the cache.
    Cached,
    /// Offered by apt.
    Downloadable,
}

/// A kernel that can be selected by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    /// Its name, such as `debian:6.1.0-56-rt`.
    pub name: String,
    /// Its package.
    pub package: String,
    /// The package's version.
    pub version: String,
    /// Where it is.
    pub state: State,
    /// Size of the download, if it still has to be downloaded.
    pub download_bytes: Option<u64>,
    /// Whether none is newer of those whose version begins with the same two numbers, real-time
    /// or not: `debian:6.12` means this one.
    pub latest: bool,
}

/// Progress of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchProgress<'a> {
    /// The step that has begun, for people.
    Step(&'a str),
    /// Something to know about the kernel, for people.
    Note(&'a str),
    /// How much of the download has arrived.
    Bytes {
        /// Bytes so far.
        done: u64,
        /// Bytes in total; 0 if apt does not tell.
        total: u64,
    },
}
