//! No load: the machine is left alone.

use crate::registry::load::{Form, LoadEntry};

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "none",
    summary: "nothing: the machine is left alone",
    help: "Starts no process. The CPU utilisation that the cell records shows whether the \
           machine was idle in fact.",
    main_param: "",
    params: &[],
    counters: &[],
    needs: &[],
    form: Form::Idle,
};
