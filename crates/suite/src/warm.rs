//! A board whose state is kept, and the boards that go on from there.

use std::fs;

use anyhow::Context;
use punctual_core::channel::{Event, ORDER_FILE, ORDER_PATH};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::{boot, snapshot};

use crate::remote::{Carrier, tell};
use crate::rest;

/// A word on the kernel's command line that makes the board pass 2^31 instructions before it
/// pauses. Tests use it to see what becomes of a state that cannot be used.
pub const PASS: &str = "punctual.pass_instructions";

/// How often a board pauses again if its state cannot be used. Once is enough, unless the number
/// of instructions was close to the next multiple of 2^32.
pub const PASSES: u32 = 2;

/// Pauses this board, and reads the order that is there when it goes on.
fn pause(way_out: &mut dyn Carrier) -> anyhow::Result<Option<Vec<u8>>> {
    tell(way_out, Event::Pausing { at_ns: monotonic_ns() });
    snapshot::pause().context("cannot pause the board")?;
    tell(way_out, Event::Booted { at_ns: monotonic_ns() });
    snapshot::emulator_file(ORDER_FILE).context("cannot read the order")
}

/// Pauses this board when its kernel has come to rest, or in 30 s if it does not: whoever measures
/// waits again. Writes the order that is there when it goes on to [`ORDER_PATH`]. `passes`: whether
/// [`PASS`] is asked for.
///
/// # Errors
/// The board cannot be paused, or there is no order when it goes on.
pub fn pause_for_order(way_out: &mut dyn Carrier, passes: bool) -> anyhow::Result<()> {
    let mut settling = || tell(way_out, Event::Settling { at_ns: monotonic_ns() });
    // Whoever measures waits again, and has the condition.
    rest::wait(&mut settling);
    let pass = || snapshot::pass_instructions().context("cannot pass the time");
    if passes {
        pass()?;
    }
    let mut order = pause(way_out)?;
    for _ in 0..PASSES {
        if order.is_none() {
            // The host cannot use the state: it has executed too many instructions for a 32-bit
            // difference in QEMU, which is right again after as many as that can hold.
            pass()?;
            order = pause(way_out)?;
        }
    }
    let order = order.context("the emulator has no order")?;
    // The kernel seeded its random numbers before it paused: they would be the same for all.
    boot::stir_random_numbers(&order).context("cannot seed the kernel's random numbers")?;
    fs::write(ORDER_PATH, order).with_context(|| format!("cannot write {ORDER_PATH}"))
}
