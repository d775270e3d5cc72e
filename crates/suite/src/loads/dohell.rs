//! Ingo Molnar's script.

use crate::registry::load::{Form, LoadEntry};

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "dohell",
    summary: "disk, hackbench, flood and tree together",
    help: "Ingo Molnar's dohell: the copy of a big file, hackbench, a flood ping of localhost, and du \
           of /. Parts that end are started again, and a part that cannot start is named in the \
           result while the others run.",
    main_param: "",
    params: &[],
    counters: &[],
    needs: &[],
    form: Form::Composite(&["disk", "flood", "hackbench", "tree"]),
};
