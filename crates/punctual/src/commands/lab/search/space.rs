//! What a search tries: the loads of the registry, and which of their parameters are sizes.

use std::collections::BTreeMap;

use anyhow::{anyhow, bail, ensure};
use punctual_core::params::Named;
use punctual_core::search::FACTOR;
use punctual_suite::harness::spec::LoadSpec;
use punctual_suite::loads;
use punctual_suite::registry::load::{Form, LoadEntry};
use punctual_suite::registry::{Default, Kind, Param};

/// Parameters that say how the work is done or what is left free, not how much of it there is.
const NO_SIZES: [&str; 4] = ["level", "nice", "reserve", "seed"];

/// The loads that are tried unless others are named: all that are parts and can do without a
/// parameter. Composites are mixes of these.
pub fn all() -> Vec<Named> {
    let can = |entry: &&LoadEntry| {
        let must = |param: &Param| matches!(param.default, Default::Required);
        matches!(entry.form, Form::Part(_)) && !entry.params.iter().any(must)
    };
    let plain = |entry: &LoadEntry| Named { name: entry.name.to_owned(), params: BTreeMap::new() };
    loads::LOADS.iter().filter(can).map(plain).collect()
}

/// The loads that were named.
///
/// # Errors
/// One is unknown, is no single load, or is named twice.
pub fn named(texts: &[String]) -> anyhow::Result<Vec<Named>> {
    let mut loads: Vec<Named> = Vec::new();
    for text in texts {
        let spec = LoadSpec::parse(text).map_err(|error| anyhow!("{error}"))?;
        let [part] = spec.parts() else {
            bail!("--load {text}: a search mixes loads itself; name its parts, separated by commas")
        };
        ensure!(
            matches!(part.entry.form, Form::Part(_)),
            "--load {text}: a search starts from what does something"
        );
        let load = Named::parse(spec.canonical(), part.entry.main_param)?;
        ensure!(
            loads.iter().all(|known| known.name != load.name),
            "--load {text}: {} is named twice, and a search changes its sizes itself",
            load.name
        );
        loads.push(load);
    }
    Ok(loads)
}

/// The parameters of a load that are sizes: counts, sizes, times and choices.
pub fn sizes(load: &str) -> Vec<String> {
    let params = loads::find(load).map_or(&[][..], |entry| entry.params);
    let is_size = |param: &&Param| {
        let kinds = matches!(
            param.kind,
            Kind::Count { .. } | Kind::Size { .. } | Kind::Time { .. } | Kind::Choice(_)
        );
        kinds && !NO_SIZES.contains(&param.name)
    };
    params.iter().filter(is_size).map(|param| param.name.to_owned()).collect()
}

/// A load with a size one step larger or smaller than what took effect.
pub fn resized(
    load: &Named,
    size: &str,
    larger: bool,
    took_effect: &BTreeMap<String, String>,
) -> Option<Named> {
    let param = loads::find(&load.name)?.params.iter().find(|param| param.name == size)?;
    let text = param.kind.step(took_effect.get(size)?, larger, FACTOR)?;
    let mut resized = load.clone();
    resized.params.insert(size.to_owned(), text);
    let spec = LoadSpec::parse(&resized.to_string()).ok()?;
    // Equal loads are written alike, so that none is tried twice.
    Named::parse(spec.canonical(), "").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_of_the_registry_are_tried_and_composites_are_not() {
        let names: Vec<String> = all().into_iter().map(|load| load.name).collect();
        for load in loads::LOADS {
            let is_tried = names.iter().any(|name| name == load.name);
            let is_part = matches!(load.form, Form::Part(_)) && load.name != "cmd";
            assert_eq!(is_tried, is_part, "{}", load.name);
        }
    }

    #[test]
    fn sizes_are_stepped_from_what_took_effect() {
        assert_eq!(sizes("hackbench"), ["groups", "loops", "mode", "ipc"]);
        assert_eq!(
            (sizes("syscalls"), sizes("console")),
            (vec!["jobs".into()], vec!["rate".into()])
        );
        let effect = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
        };
        let [load] = &named(&["hackbench".to_owned()]).unwrap()[..] else { panic!() };
        let took = effect(&[("groups", "2"), ("loops", "100"), ("mode", "process")]);
        let step = |load: &Named, size: &str, larger| {
            resized(load, size, larger, &took).map(|load| load.to_string())
        };
        assert_eq!(step(load, "groups", true).as_deref(), Some("hackbench:groups=8"));
        assert_eq!(step(load, "mode", true).as_deref(), Some("hackbench:mode=thread"));
        assert_eq!(step(load, "mode", false), None);
        // A step back to the default is the load as it was.
        let large = Named::parse("hackbench:loops=400", "groups").unwrap();
        let back = resized(&large, "loops", false, &effect(&[("loops", "400")])).unwrap();
        assert_eq!(back.to_string(), "hackbench");
    }

    #[test]
    fn what_cannot_be_searched_is_refused() {
        let refused = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            named(&texts).unwrap_err().to_string()
        };
        assert!(refused(&["hackbensh"]).contains("did you mean \"hackbench\"?"));
        assert!(refused(&["paper"]).contains("name its parts"));
        assert!(refused(&["none"]).contains("does something"));
        assert!(refused(&["timers", "timers:9"]).contains("timers is named twice"));
    }
}
