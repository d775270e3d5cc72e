//! Settings of a machine that move latencies: runs that differ in one of them are no replicates.

use serde_json::Value;

use crate::schema::Run;

/// A setting: what people call it, and where it is in `facts` of `run.json`. Loads are told apart by
/// cells.
#[derive(Debug)]
pub struct Setting {
    /// Its name, as in `--by setting:NAME`.
    pub name: &'static str,
    /// The group of facts, and the keys below it; lists are gone through.
    pub path: &'static str,
}

/// All of them, in the order in which differences are told.
pub const SETTINGS: &[Setting] = &[
    Setting { name: "governor", path: "power.frequency.governor" },
    Setting { name: "idle-governor", path: "power.idle_governor" },
    Setting { name: "boost", path: "power.boost" },
    Setting { name: "isolated", path: "cpu.isolated" },
    Setting { name: "nohz-full", path: "cpu.nohz_full" },
    Setting { name: "smt", path: "cpu.smt_active" },
    Setting { name: "microcode", path: "cpu.microcode" },
    Setting { name: "huge-pages", path: "memory.transparent_huge_pages" },
    Setting { name: "rt-runtime", path: "scheduler.rt_runtime_us" },
    Setting { name: "rt-period", path: "scheduler.rt_period_us" },
    Setting { name: "irq-affinity", path: "activity.default_irq_affinity" },
    Setting { name: "timer-migration", path: "scheduler.timer_migration" },
];

impl Setting {
    /// The one with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// Its value in a run; several different ones with a comma between them. `None` if the run could
    /// not read it.
    #[must_use]
    pub fn of(&self, run: &Run) -> Option<String> {
        let (group, keys) = self.path.split_once('.')?;
        let mut found = Vec::new();
        collect(run.facts.get(group)?, keys, &mut found);
        found.sort_unstable();
        found.dedup();
        (!found.is_empty()).then(|| found.join(","))
    }
}

fn collect(value: &Value, keys: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, keys, found)),
        Value::Object(fields) => {
            let (key, rest) = keys.split_once('.').unwrap_or((keys, ""));
            if let Some(value) = fields.get(key) {
                collect(value, rest, found);
            }
        }
        Value::Null => (),
        // Nothing has a key below a number or a text.
        _ if !keys.is_empty() => (),
        // A set of no CPUs.
        Value::String(text) if text.is_empty() => found.push("none".to_owned()),
        Value::String(text) => found.push(text.clone()),
        other => found.push(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_document_lists_each_and_where_it_is() {
        let document = include_str!("../../../../docs/run-format.md");
        for Setting { name, path } in SETTINGS {
            let row = format!("| `{name}` | `{path}` |");
            assert!(document.contains(&row), "docs/run-format.md lacks {row}");
        }
    }

    #[test]
    fn a_setting_is_read_where_it_is_recorded() {
        let seed = include_str!("../../../../fuzz/seeds/run_json/simulated");
        let mut run: Run = serde_json::from_str(seed).unwrap();
        let of = |run: &Run, name: &str| Setting::named(name).unwrap().of(run);
        let power = |governors: &[&str]| {
            let policies = governors.iter().map(|name| json!({ "governor": name }));
            json!({ "frequency": policies.collect::<Vec<_>>(), "idle_governor": "menu" })
        };
        run.facts.insert("power".to_owned(), power(&["powersave", "performance", "powersave"]));
        assert_eq!(of(&run, "governor").as_deref(), Some("performance,powersave"));
        assert_eq!(of(&run, "idle-governor").as_deref(), Some("menu"));
        run.facts.insert("power".to_owned(), power(&[]));
        assert_eq!(of(&run, "governor"), None);
        run.facts.insert("cpu".to_owned(), json!({ "smt_active": false }));
        assert_eq!(of(&run, "smt").as_deref(), Some("false"));
        run.facts.insert("cpu".to_owned(), json!({ "isolated": "", "nohz_full": "2-3" }));
        assert_eq!(of(&run, "isolated").as_deref(), Some("none"));
        assert_eq!(of(&run, "nohz-full").as_deref(), Some("2-3"));
        run.facts.insert("scheduler".to_owned(), json!({ "rt_runtime_us": -1 }));
        assert_eq!(of(&run, "rt-runtime").as_deref(), Some("-1"));
    }
}
