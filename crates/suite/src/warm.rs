//! A board whose state is kept, and the boards that go on from there.

use std::fs;

use anyhow::Context;
use punctual_core::channel::{Event, ORDER_FILE, ORDER_PATH};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::{boot, snapshot};

use crate::remote::{Carrier, tell};
use crate::rest;

/// Pauses this board when its kernel has come to rest, or in 30 s if it does not: whoever measures
/// waits again. Writes the order that is there when it goes on to [`ORDER_PATH`].
///
/// # Errors
/// The board cannot be paused, or there is no order when it goes on.
pub fn pause_for_order(way_out: &mut dyn Carrier) -> anyhow::Result<()> {
    let mut settling = || tell(way_out, Event::Settling { at_ns: monotonic_ns() });
    rest::wait(&mut settling).context("waiting for the kernel to come to rest")?;
    tell(way_out, Event::Pausing { at_ns: monotonic_ns() });
    snapshot::pause().context("cannot pause the board")?;
    tell(way_out, Event::Booted { at_ns: monotonic_ns() });
    let order = snapshot::emulator_file(ORDER_FILE).context("cannot read the order")?;
    let order = order.context("the emulator has no order")?;
    // The kernel seeded its random numbers before it paused: they would be the same for all.
    boot::stir_random_numbers(&order).context("cannot seed the kernel's random numbers")?;
    fs::write(ORDER_PATH, order).with_context(|| format!("cannot write {ORDER_PATH}"))
}
