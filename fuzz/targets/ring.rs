//! Pages of the kernel's trace ring, and the texts that say what is in them.

use std::sync::LazyLock;

use punctual_suite::ring::{Format, Layout};

static LAYOUT: LazyLock<Layout> = LazyLock::new(|| {
    Layout::parse(
        "field: u64 timestamp;\toffset:0;\tsize:8;\n\
         field: local_t commit;\toffset:8;\tsize:8;\n\
         field: char data;\toffset:16;\tsize:4080;\n",
    )
    .unwrap()
});

pub fn target(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let format = Format::parse(&text);
    let layouts = [Some(*LAYOUT), Layout::parse(&text)];
    for (_, event) in layouts.iter().flatten().flat_map(|layout| layout.events(bytes)) {
        assert!(event.len() <= bytes.len());
        for name in ["pid", "comm", "name"] {
            let field = format.as_ref().and_then(|format| format.field(name));
            let _ = field.map(|field| (field.number(event), field.text(event)));
        }
    }
}
