//! What runs, cells, threads and numbers are called in every output.

mod clean;
mod cost_sums;
mod cost_table;
mod costs;
mod cpus;
mod legs;
mod names;
mod notes;
mod numbers;
mod outcomes;
mod phases;
mod sides;

pub use clean::ascii;
pub use cost_sums::{
    IndexRow, PUBLISHED, cost_sides, index_about, index_baseline, index_name, index_rows,
    index_value, is_attempted, mean_sentence, trade_about, trade_latency,
};
pub use cost_table::{
    COST_RATIOS, COST_RATIOS_OF_KERNELS, COST_RATIOS_OF_RUNS, CostHead, SECTIONS, compared_parts,
    cost_head, cost_name, cost_parts, cost_ratio, digits, ratio_interval,
};
pub use costs::{COSTS, cost, cost_end, cost_interval, costs, instructions, repetitions, share};
pub use cpus::{CoreTypeRow, core_type_rows, cpus_name};
pub use legs::{
    ALL_LEGS, LEGS, LEGS_TITLE, hold_name, leg_meaning, leg_name, leg_title, section_clause,
    section_meaning, section_name,
};
pub use names::{
    cell_name, cpu_name, headline, kernel_names, key_name, letter, load_name, model_names,
    preemption_name, probe_name, run_names, runs, series_name, watched_kernel,
};
pub use notes::{
    absence, cell_notes, containment, counter, counter_notes, estimates_note, load_note, once,
    parts, run_notes, spread_note, work,
};
pub use numbers::{
    Ends, duration, ends, instant, mean, mean_ends, mean_ns, rate, ratio, span, started_ns, utc,
    value,
};
pub use outcomes::{
    SIMULATED, SIMULATED_IN_PART, VIRTUAL_MACHINE, cell_outcome, compared_labels, compared_outcome,
    labelled, labels, labels_of, labels_pooled, outcome, outcomes, run_outcome, side_labels,
    simulated_run, thread_outcome,
};
pub use phases::{PhaseRow, part_name, phase_rows, schedule_note, with_phases};
pub use punctual_core::compare::side_noun;
pub use punctual_core::text::{clean, clean_lines};
pub use sides::{boards, kernels, settings};
