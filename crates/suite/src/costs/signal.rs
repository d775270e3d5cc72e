//! Signals, and faults that arrive as signals.

use std::io;

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::faults::{ReadOnlyPage, ask_self, install_handler, signal_self};

use super::apart::{Apart, Once, Scale, ns_of, timed, worked_out};
use crate::registry::cost::{Column, CostEntry, Method};
use crate::registry::{Choice, Default, Kind, Param, Values};

pub(super) const SIGNAL: CostEntry = CostEntry {
    name: "lat.signal",
    summary: "installing a handler, or handling a signal (sig inst, sig hdl)",
    help: "Installs a handler for SIGUSR1, or has the process send SIGUSR1 to itself with such a \
handler, which counts. From the latter, kill(2) with signal 0 is subtracted: a signal's delivery, its \
handler and the return are left. A process of one thread is timed, because in one with threads the \
signal would go to any of them. Comparable to sig inst and sig hdl in LMbench's summary.",
    meaning: "one sigaction, the empty loop subtracted; or one signal from kill to the return of its \
handler, a kill with signal 0 subtracted",
    params: &[Param {
        name: "op",
        kind: Kind::Choice(&[
            Choice::of("install", "sigaction(2)"),
            Choice::of("handle", "delivery, handler and return"),
        ]),
        default: Default::Value("handle"),
        help: "what is timed",
    }],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Processor,
    columns: &[
        Column { name: "sig inst", params: &[("op", "install")] },
        Column { name: "sig hdl", params: &[] },
    ],
    open: open_signal,
};

pub(super) const PROTFAULT: CostEntry = CostEntry {
    name: "lat.protfault",
    summary: "a write to a read-only page, without the signal that tells of it (prot fault)",
    help: "Writes to a page that is read-only, in a process of one thread. The handler of SIGSEGV \
counts and returns to the write, which faults again. What the signal alone takes is subtracted: that \
of lat.signal, timed in turn with it. What is left is the fault as such, a small difference of two \
times that are much larger. Comparable to prot fault in LMbench's summary.",
    meaning: "one fault until the return of its handler, less one signal as in lat.signal; mean of \
250, median of 21 turns",
    params: &[],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::FilesAndMemory,
    columns: &[Column { name: "prot fault", params: &[] }],
    open: |_| {
        worked_out(None, || {
            install_handler()?;
            Ok(ProtFault { page: ReadOnlyPage::new()? })
        })
    },
};

fn open_signal(values: &Values) -> io::Result<Method> {
    if values.text("op") == "install" {
        return timed(None, Scale::Us(1.0), || Ok(Install));
    }
    timed(None, Scale::Us(1.0), || {
        install_handler()?;
        Ok(Handle)
    })
}

struct Install;

impl Apart for Install {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        (0..iterations).try_for_each(|_| install_handler())
    }
}

struct Handle;

impl Apart for Handle {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        signal_self(iterations)
    }

    fn empty(&mut self, iterations: u64) -> io::Result<()> {
        ask_self(iterations)
    }
}

/// Faults, signals and questions that are timed in turn, so that all three see the machine alike; so
/// many that the call with which the last fault ends does not matter.
const FAULTS: u64 = 250;
/// Of so many turns the median counts: a turn that lost the CPU may come out negative.
const TURNS: usize = 21;

struct ProtFault {
    page: ReadOnlyPage,
}

impl Once for ProtFault {
    fn measure(&mut self) -> io::Result<f64> {
        let mut turns = [0.0; TURNS];
        for ns in &mut turns {
            self.page.protect()?;
            let fault = ns_of(|| self.page.fault(FAULTS))?;
            let signal = ns_of(|| signal_self(FAULTS))?;
            *ns = fault - (signal - ns_of(|| ask_self(FAULTS))?);
        }
        turns.sort_unstable_by(f64::total_cmp);
        #[allow(clippy::cast_precision_loss, reason = "a small number")]
        Ok(turns[TURNS / 2] / FAULTS as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use crate::costs::apart::tests::{leaves_nothing, value};

    #[test]
    fn handling_takes_more_than_installing_and_both_take_something() {
        let install = value("lat.signal:op=install", 10_000);
        let handle = value("lat.signal:op=handle", 10_000);
        assert!(install > 0.0 && handle > install, "{install} us, {handle} us");
        leaves_nothing("lat.signal", 1);
        leaves_nothing("lat.signal:op=install", 1);
    }

    #[test]
    fn a_fault_takes_some_time_of_its_own() {
        let fault = value("lat.protfault", 1);
        assert!(fault < 20.0 * value("lat.signal", 10_000), "{fault} us");
        leaves_nothing("lat.protfault", 1);
    }
}
