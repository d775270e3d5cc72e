//! Real runs of every probe and every load, with nothing left behind; every
//! command on what they leave.

mod commands;
mod everything;
mod leftovers;
mod schema;
mod simulated;
