//! Waits until a kernel that has just booted comes to rest. Kernels go on working when init
//! already runs: since Linux 6.12 the self-tests of the crypto algorithms (`cryptomgr_test`)
//! keep a CPU busy for seconds. What runs beside them is not idle.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use punctual_core::schema::{Condition, NOT_AT_REST};
use punctual_sys::error;

use crate::facts::{CpuTimes, FactsRoot, Ticks};

/// A kernel is at rest if its CPUs were idle for so long; 50 ticks of `/proc/stat` a CPU.
const WINDOW: Duration = Duration::from_millis(500);

/// CPUs that are busy for no more than this share of the window count as idle, thousandths.
const BUSY: u32 = 50;

/// A kernel that does not come to rest within so many windows (30 s) is measured all the same.
const WINDOWS: u32 = 60;

/// Waits until the CPUs were idle for half a second, for up to 30 s. `meanwhile` is called after
/// every window. Returns the condition under which the run then stands, if they never were, or if
/// nobody can say because `/proc/stat` cannot be read.
pub fn wait(meanwhile: &mut dyn FnMut()) -> Option<Condition> {
    below(&FactsRoot::live(), meanwhile)
}

/// [`wait`] by the `/proc/stat` below this root folder.
fn below(root: &FactsRoot, meanwhile: &mut dyn FnMut()) -> Option<Condition> {
    let known = CpuTimes::open(root).and_then(|times| {
        let mut pass = || {
            sleep(WINDOW);
            times.read()
        };
        watch(times.read()?, &mut pass, meanwhile)
    });
    known.unwrap_or_else(|error| {
        Some(Condition {
            id: NOT_AT_REST.to_owned(),
            text: format!(
                "/proc/stat cannot be read ({}): whether the kernel had come to rest before the \
                 plan began is not known",
                error::text(&error)
            ),
        })
    })
}

/// [`wait`] with the ticks after each window from `pass`.
fn watch(
    mut before: Ticks,
    pass: &mut dyn FnMut() -> io::Result<Ticks>,
    meanwhile: &mut dyn FnMut(),
) -> io::Result<Option<Condition>> {
    let mut busy = 0;
    for _ in 0..WINDOWS {
        let after = pass()?;
        // Without a tick nothing is known.
        busy = before.until(&after).map_or(1_000, |share| share.busy);
        if busy <= BUSY {
            return Ok(None);
        }
        before = after;
        meanwhile();
    }
    Ok(Some(Condition {
        id: NOT_AT_REST.to_owned(),
        text: format!(
            "the kernel did not come to rest in {} s: its CPUs were {} % busy before the plan \
             began, and what kept them busy is in these figures",
            (WINDOW * WINDOWS).as_secs(),
            busy.div_ceil(10)
        ),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows until a machine was at rest that is busy for so many ticks of 50 in each; whether
    /// it was.
    fn windows(busy: impl Fn(u32) -> u64) -> (u32, Option<Condition>) {
        let (mut window, mut now) = (0, Ticks::default());
        let mut pass = || {
            let worked = busy(window);
            now.worked += worked;
            now.idle += 50 - worked;
            window += 1;
            Ok(now)
        };
        let mut waited = 0;
        let end = watch(Ticks::default(), &mut pass, &mut || waited += 1).unwrap();
        assert_eq!(waited, window - u32::from(end.is_none()));
        (window, end)
    }

    #[test]
    fn a_machine_is_at_rest_after_half_an_idle_second() {
        assert_eq!(windows(|_| 2), (1, None), "interrupts and kernel threads");
        assert_eq!(windows(|window| if window < 8 { 50 } else { 0 }), (9, None));
    }

    #[test]
    fn one_that_never_is_says_so() {
        let (passed, end) = windows(|_| 3);
        assert_eq!(passed, 60);
        let condition = end.unwrap();
        assert_eq!(condition.id, "not-at-rest");
        assert!(condition.text.contains("in 30 s: its CPUs were 6 % busy"), "{}", condition.text);
    }

    #[test]
    fn without_proc_stat_no_rest_is_claimed() {
        let nowhere = FactsRoot::new(std::path::Path::new("/nonexistent"), Default::default());
        let condition = below(&nowhere, &mut || ()).unwrap();
        assert_eq!(condition.id, "not-at-rest");
        assert!(condition.text.starts_with("/proc/stat cannot be read"), "{}", condition.text);
        assert!(condition.text.ends_with("is not known"), "{}", condition.text);
    }

    #[test]
    fn a_machine_whose_ticks_stand_still_is_not_at_rest() {
        let end = watch(Ticks::default(), &mut || Ok(Ticks::default()), &mut || ()).unwrap();
        assert!(end.is_some());
    }
}
