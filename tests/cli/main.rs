//! The command line, end to end: golden help and errors, simulated runs with
//! exact expectations, run directories that are damaged, runs that are killed, exact
//! comparison and sets of runs.

mod completion;
mod cost;
mod cpus;
mod damage;
mod directory;
mod ends;
mod events;
mod evidence;
mod exact;
mod export;
mod foreign;
mod golden;
mod live;
mod many_cells;
mod not_worse;
mod one_judge;
mod phases;
mod planned;
mod published;
mod series;
mod sides;
mod signals;
mod simulated;
mod support;
mod terminal;
mod usage;
mod width;
