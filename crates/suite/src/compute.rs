//! Work that takes a known CPU time.

use punctual_sys::clock::thread_cpu_ns;

/// Computes until the calling thread has had so much more CPU time, ns, however long that takes;
/// returns how much it was.
pub(crate) fn compute(ns: u64) -> u64 {
    let begun = thread_cpu_ns();
    let mut used = 0;
    while used < ns {
        used = thread_cpu_ns() - begun;
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_what_it_is_to_take() {
        for ns in [0, 1, 300_000] {
            let before = thread_cpu_ns();
            let used = compute(ns);
            assert!((ns..=thread_cpu_ns() - before).contains(&used), "{used}");
        }
    }
}
