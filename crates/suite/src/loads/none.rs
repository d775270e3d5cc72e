//! No load: the machine is left alone.

use crate::registry::load::{Form, LoadEntry};

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "none",
    summary: "nothing: the machine is left alone",
    help: "Starts no process. The recorded CPU utilisation shows whether the machine really was \
           idle.",
    main_param: "",
    params: &[],
    counters: &[],
    needs: &[],
    form: Form::Idle,
};
