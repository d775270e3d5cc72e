//! What runs, cells, threads and numbers are called in every output.

mod clean;
mod costs;
mod names;
mod notes;
mod numbers;

pub use clean::ascii;
pub use costs::{
    COSTS, against, cost, cost_end, cost_interval, cost_row, costs, repetitions, share,
};
pub use names::{
    cell_name, cpu_name, headline, kernel_names, key_name, labels, letter, load_name, outcome,
    outcomes, preemption_name, probe_name, run_names, run_outcome, runs, series_name,
};
pub use notes::{
    SPREAD, absence, cell_notes, counter, counter_notes, load_note, parts, run_notes, work,
};
pub use numbers::{
    Ends, duration, ends, instant, mean, mean_ends, mean_ns, rate, ratio, span, utc, value,
};
pub use punctual_core::text::{clean, clean_lines};
