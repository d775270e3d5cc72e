//! Lists of cells, names with parameters, specifications of loads and probes.

use punctual_core::params::{Named, split_list};
use punctual_suite::harness::phased::PhasedSpec;
use punctual_suite::probes;

pub fn target(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    for part in split_list(text) {
        if let Ok(load) = PhasedSpec::parse(&part) {
            let again = PhasedSpec::parse(load.canonical()).map(|load| load.canonical().to_owned());
            assert_eq!(again.as_deref(), Ok(load.canonical()), "{part}");
        }
        let Ok(named) = Named::parse(&part, "groups") else { continue };
        let written = named.to_string();
        if named.name != "cmd" && named.params.values().all(|value| !value.is_empty()) {
            assert_eq!(Named::parse(&written, "groups").as_ref(), Ok(&named), "{written}");
        }
        if let Ok(values) = probes::find(&named.name).and_then(|probe| probe.read(&named.params)) {
            assert!(values.canonical().iter().all(|(key, text)| values.effective()[key] == *text));
        }
    }
}
