//! All targets in one program: what they have in common is built and linked once. The
//! environment variable TARGET names the one to run; ./run sets it.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

mod expand;
mod frames;

/// Declares the targets, and finds one by its name.
macro_rules! targets {
    ($($name:ident)*) => {
        mod targets {
            $(pub mod $name;)*
        }

        fn target(name: &str) -> Option<fn(&[u8])> {
            match name {
                $(stringify!($name) => Some(targets::$name::target),)*
                _ => None,
            }
        }
    };
}

targets! {
    apt
    appended
    channel
    channel_large
    cpus
    drawn
    durations
    experiment
    facts
    journals
    kernels
    lists
    modules
    plans
    records
    records_large
    recovered
    ring
    run_json
    symbols
}

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| panic!("TARGET=\"{name}\": there is no such target"))
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
