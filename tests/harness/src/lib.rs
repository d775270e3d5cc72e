//! What the tests of punctual share. Nothing here is part of the program.
//!
//! A test that needs something of the machine says so with [`need!`]: if it is missing the
//! test fails under `CI` and is skipped, with a printed reason, anywhere else.

mod alternating;
pub mod cyclictest;
mod ended;
mod folder;
pub mod histogram;
mod mounts;
mod needs;
mod place;
pub mod processes;
pub mod registry;
mod results;
mod runs;
#[cfg(feature = "schema")]
pub mod schema;
mod usage;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

pub use alternating::alternating;
pub use ended::{Ended, end_of, text, waited};
pub use folder::{Folder, MARK};
pub use mounts::{Namespace, Tmpfs};
pub use needs::{board, programs, refused, release, root, skipped, user_namespaces};
pub use place::Place;
pub use results::{Tally, keep};
pub use runs::{cell_file, conditions, count, edit, items, make_virtual, run_json};
pub use usage::{Usage, has_time, megabytes, usage};

/// Ends a test if something that it needs is missing: a failure under `CI`, else a printed
/// reason. Takes a `Result<T, String>` and gives its `T`.
#[macro_export]
macro_rules! need {
    ($needed:expr) => {
        match $needed {
            Ok(value) => value,
            Err(reason) => return $crate::skipped(&reason.to_string()),
        }
    };
}

/// The folder of the sources.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Waits until something is so, at most `limit`.
pub fn until(limit: Duration, mut so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if so() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Undoes something when it is dropped, after a failed assertion too.
pub struct Undo<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for Undo<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
