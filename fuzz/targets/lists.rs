//! Lists of cells, names with parameters, specifications of loads and probes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_core::params::{Named, split_list};
use punctual_suite::loads::LoadSpec;
use punctual_suite::probes;

fuzz_target!(|text: &str| {
    for part in split_list(text) {
        let _ = LoadSpec::parse(&part);
        let Ok(named) = Named::parse(&part, "groups") else { continue };
        let written = named.to_string();
        if named.name != "cmd" && named.params.values().all(|value| !value.is_empty()) {
            assert_eq!(Named::parse(&written, "groups").as_ref(), Ok(&named), "{written}");
        }
        let _ = probes::read(&named.name, &named.params);
    }
});
