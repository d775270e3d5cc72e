//! `punctual run --continue`: what a run that was cut short was asked to do.

use anyhow::ensure;
use punctual_core::aim::Aim;
use punctual_core::plan::Plan;
use punctual_core::schema::{BoardKind, Origin, Run};
use punctual_suite::engine::{Options, SyncPolicy};

use crate::request::PROGRAM;
use crate::store;

/// The plan of a run that was cut short, and the options that it was started with.
///
/// # Errors
/// There is no such run, it is still being written, or it was not measured by `punctual run`.
pub fn request(name: &str) -> anyhow::Result<(Plan, Options)> {
    let dir = store::find_one(name)?;
    let run = store::load(&dir)?.run;
    let here = run.origin != Origin::Imported && run.board.kind == BoardKind::Local;
    ensure!(here, "{}: only a run that `punctual run` has begun can be continued", dir.display());
    let plan = run.plan.clone();
    Ok((plan, Options { out: Some(dir), ..options(run) }))
}

fn options(run: Run) -> Options {
    let engine = run.facts.get("engine");
    let number = |key: &str| engine?.get(key)?.as_u64();
    let is = |key: &str, value: &str| engine.and_then(|e| e.get(key)?.as_str()) == Some(value);
    Options {
        out: None,
        board_name: Some(run.board.name.clone()),
        dma_latency_us: number("dma_latency_us").and_then(|us| u32::try_from(us).ok()),
        break_ns: number("break_ns"),
        threshold_ns: number("threshold_ns"),
        sync: if is("sync", SyncPolicy::Block.name()) {
            SyncPolicy::Block
        } else {
            SyncPolicy::Cell
        },
        group: run.group.clone(),
        replicate: run.replicate,
        runs: 1,
        phase_ns: run.phase_ns,
        dither: run.dither.clone(),
        aim: run.aim.unwrap_or(Aim::NONE),
        // It was allowed when the run began.
        force: true,
        all_cpus: engine.and_then(|e| e.get("all_cpus")?.as_bool()).unwrap_or(false),
        require_rt: engine.and_then(|e| e.get("require_rt")?.as_bool()).unwrap_or(false),
        continued: Some(Box::new(run)),
        program: PROGRAM,
        virtual_board: None,
        tool_sha256: None,
        conditions: Vec::new(),
    }
}
