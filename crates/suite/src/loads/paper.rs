//! The script of the Geode paper.

use crate::registry::load::{Form, LoadEntry};

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "paper",
    summary: "compile, copy, flood, hackbench at nice 10 and tree together",
    help: "The load script of the Geode paper: a compile, dd from /dev/zero to /dev/null, a \
           flood ping of localhost, hackbench at nice, and du of /. Defects of \
           the script are fixed: the compile restarts when it is done, children are ended, and a \
           part that cannot start is named in the result while the others run.",
    main_param: "",
    params: &[],
    counters: &[],
    needs: &[],
    // 10 is the default of nice(1).
    form: Form::Composite(&["compile", "copy", "flood", "hackbench:nice=10", "tree"]),
};
