//! What a guest starts with: its order, and the initramfs that contains it.

use anyhow::Result;
use punctual_core::aim::Aim;
use punctual_core::channel::{MODULES_PATH, ORDER_PATH, Order, SETUP_PATH};
use punctual_core::dither::Dither;
use punctual_core::plan::Plan;

use super::place::Place;
use super::provisions::Provisions;
use crate::board::BoardSpec;
use crate::extra::ExtraFile;
use crate::initramfs::Initramfs;

/// Time of the board that a plan may take beyond three times its planned duration, ns.
const SPARE_NS: u64 = 120_000_000_000;

/// Contains nothing about the host, the other kernels of the experiment, or how its runs are named
/// and judged, so a guest's numbers are the same in every experiment.
pub(super) fn order(board: &BoardSpec, plan: &Plan, place: &Place) -> Order {
    let takes = |duration: u64| duration.saturating_add(plan.warmup_ns);
    let plan_ns =
        plan.cells.iter().fold(0_u64, |sum, cell| sum.saturating_add(takes(cell.duration_ns)));
    Order {
        virtual_board: Some(board.virtual_board()),
        // All samples are kept where a repeat of the run can explain them.
        threshold_ns: board.mips.map(|_| 0),
        phase_ns: place.phase_ns(),
        dither: Some(Dither::of_seed(place.seed())),
        aim: place.aim.unwrap_or(Aim::NONE),
        ..Order::of(plan, plan_ns.saturating_mul(3).saturating_add(SPARE_NS))
    }
}

/// The initramfs of a guest for a kernel of this release; without an order, that of a board that
/// is kept. The same order, provisions, program and files give the same bytes.
///
/// # Errors
/// A file of 4 GiB or more, or two files with the same name.
pub(super) fn initramfs(
    order: Option<&Order>,
    provisions: &Provisions,
    release: &str,
    program: &[u8],
    extra: &[ExtraFile],
) -> Result<Vec<u8>> {
    let mut files = Initramfs::new()?;
    let relative = |path: &'static str| path.trim_start_matches('/');
    for folder in ["proc", "sys", "tmp", "run", relative(MODULES_PATH)] {
        files.directory(folder)?;
    }
    if let Some(order) = order {
        files.file(relative(ORDER_PATH), 0o444, &serde_json::to_vec(order)?)?;
    }
    files.file(relative(SETUP_PATH), 0o444, &serde_json::to_vec(&provisions.setup)?)?;
    for module in &provisions.modules {
        let path = format!("{}/{}", relative(MODULES_PATH), module.file_name);
        files.file(&path, 0o444, &module.bytes)?;
    }
    if let Some(config) = &provisions.config {
        files.file(&format!("boot/config-{release}"), 0o444, config)?;
    }
    files.file("init", 0o755, program)?;
    for file in extra {
        files.file(&file.path, file.mode, &file.content)?;
    }
    Ok(files.finish())
}
