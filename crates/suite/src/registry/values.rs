//! The parameters of one probe, load or cost, read against its registry entry.

use std::collections::BTreeMap;

use punctual_sys::affinity::CpuSet;

use super::need::Need;
use super::param::{Default, Param, Value};

/// Parameters that have been read: each has the value that takes effect.
#[derive(Debug, Clone)]
pub struct Values {
    of: String,
    values: Vec<Slot>,
}

#[derive(Debug, Clone)]
struct Slot {
    param: Param,
    value: Option<Value>,
    given: bool,
    /// Whether any code asked for it. A parameter that no code asks for has no effect, and a
    /// test finds it.
    #[cfg(test)]
    asked: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl Values {
    /// Reads `given` as parameters of `of`; the others get their defaults.
    ///
    /// # Errors
    /// A message that names an unknown parameter and lists the known ones, or names one whose
    /// value is wrong or missing.
    pub fn read(
        of: &str,
        params: &[Param],
        given: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
        if let Some(unknown) = given.keys().find(|key| params.iter().all(|p| p.name != **key)) {
            let names: Vec<_> = params.iter().map(|param| param.name).collect();
            let hint = super::near::hint(unknown, names.iter().copied());
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!("{of} has no parameter \"{unknown}\"{hint}; it has: {names}"));
        }
        let values = params.iter().map(|param| one(of, param, given.get(param.name)));
        Ok(Self { of: of.to_owned(), values: values.collect::<Result<_, _>>()? })
    }

    /// A number that has a value: a count, ns, bytes or percent.
    ///
    /// # Panics
    /// The registry has no such number, or its default depends on the machine and has not been
    /// set. Either is a bug, which the registry's tests find.
    #[must_use]
    pub fn number(&self, key: &str) -> u64 {
        match self.value(key) {
            Some(Value::Number(number)) => *number,
            other => panic!("{}: {key} is no number: {other:?}", self.of),
        }
    }

    /// A number of a smaller type.
    ///
    /// # Panics
    /// As for [`Values::number`]; also if the registry's range exceeds that of the type.
    #[must_use]
    pub fn small<T: TryFrom<u64>>(&self, key: &str) -> T {
        let number = self.number(key);
        T::try_from(number).unwrap_or_else(|_| panic!("{}: {key}={number} is too large", self.of))
    }

    /// A number, if it was given or has a default by now.
    #[must_use]
    pub fn known_number(&self, key: &str) -> Option<u64> {
        match self.value(key) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// A text or word that has a value.
    ///
    /// # Panics
    /// As for [`Values::number`].
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        match self.value(key) {
            Some(Value::Text(text)) => text,
            Some(Value::Word(word)) => word,
            other => panic!("{}: {key} is no text: {other:?}", self.of),
        }
    }

    /// The chosen word, if the value is one.
    #[must_use]
    pub fn word(&self, key: &str) -> Option<&'static str> {
        match self.value(key) {
            Some(Value::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// The CPUs, if the value is a list of them.
    #[must_use]
    pub fn cpus(&self, key: &str) -> Option<&CpuSet> {
        match self.value(key) {
            Some(Value::Cpus(cpus)) => Some(cpus),
            _ => None,
        }
    }

    /// Whether the parameter was given, whatever its value.
    #[must_use]
    pub fn is_given(&self, key: &str) -> bool {
        self.values.iter().any(|one| one.param.name == key && one.given)
    }

    /// Whether the parameter has a value by now.
    #[must_use]
    pub fn is_known(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Sets the value that takes effect: the machine has decided on the default, or another
    /// parameter makes this one meaningless.
    pub fn set(&mut self, key: &str, value: Value) {
        if let Some(one) = self.values.iter_mut().find(|one| one.param.name == key) {
            one.value = Some(value);
        }
    }

    /// An error message about one parameter, worded like those about its range.
    #[must_use]
    pub fn wrong(&self, key: &str, why: &str) -> String {
        format!("{}: {}", self.of, self.wrong_one(key, why))
    }

    /// The same where the name of what it is a parameter of is said anyway.
    #[must_use]
    pub fn wrong_one(&self, key: &str, why: &str) -> String {
        let one = self.values.iter().find(|one| one.param.name == key);
        let text = one.and_then(Slot::text).unwrap_or_default();
        format!("{key}={text}: {why}")
    }

    /// The parameters that were given and differ from their defaults, in canonical form, so
    /// that equal measurements have equal keys.
    #[must_use]
    pub fn canonical(&self) -> BTreeMap<String, String> {
        let given = self.values.iter().filter(|one| one.given);
        let texts = given.filter_map(|one| Some((one.param, one.text()?)));
        texts
            .filter(|(param, text)| default_text(param).as_ref() != Some(text))
            .map(|(param, text)| (param.name.to_owned(), text))
            .collect()
    }

    /// Every parameter as it takes effect. Defaults that depend on the machine are missing
    /// until they are set.
    #[must_use]
    pub fn effective(&self) -> BTreeMap<String, String> {
        let known = self.values.iter().filter_map(|one| Some((one.param.name, one.text()?)));
        known.map(|(name, text)| (name.to_owned(), text)).collect()
    }

    /// What the board must have for the chosen words.
    pub fn needs(&self) -> impl Iterator<Item = Need> {
        self.values.iter().flat_map(|one| {
            let chosen = one.param.kind.words().iter();
            let chosen = chosen.filter(|choice| one.value == Some(Value::Word(choice.value)));
            chosen.flat_map(|choice| choice.needs.iter().copied())
        })
    }

    fn value(&self, key: &str) -> Option<&Value> {
        let one = self.values.iter().find(|one| one.param.name == key)?;
        #[cfg(test)]
        one.asked.store(true, std::sync::atomic::Ordering::Relaxed);
        one.value.as_ref()
    }

    /// The parameters that no code has asked for.
    #[cfg(test)]
    pub(crate) fn unasked(&self) -> std::collections::BTreeSet<&'static str> {
        let asked = |one: &&Slot| one.asked.load(std::sync::atomic::Ordering::Relaxed);
        self.values.iter().filter(|one| !asked(one)).map(|one| one.param.name).collect()
    }
}

impl Slot {
    fn new(param: &Param, value: Option<Value>, given: bool) -> Self {
        Self {
            param: *param,
            value,
            given,
            #[cfg(test)]
            asked: std::sync::Arc::default(),
        }
    }

    fn text(&self) -> Option<String> {
        self.value.as_ref().map(|value| self.param.kind.text(value))
    }
}

fn one(of: &str, param: &Param, given: Option<&String>) -> Result<Slot, String> {
    let wrong = |text: &str, error| format!("{of}: {}={text}: {error}", param.name);
    let text = match (given, param.default) {
        (Some(text), _) => text.as_str(),
        (None, Default::Value(text)) => text,
        (None, Default::OfMachine(_)) => return Ok(Slot::new(param, None, false)),
        (None, Default::Required) => {
            let value = param.kind.placeholder();
            return Err(format!(
                "{of}: {} must be given, for example {of}:{0}={value}",
                param.name
            ));
        }
    };
    let value = param.kind.parse(text).map_err(|error| wrong(text, error))?;
    Ok(Slot::new(param, Some(value), given.is_some()))
}

fn default_text(param: &Param) -> Option<String> {
    let Default::Value(text) = param.default else { return None };
    param.kind.parse(text).ok().map(|value| param.kind.text(&value))
}

#[cfg(test)]
mod tests {
    use super::super::param::{Choice, Kind, any_text};
    use super::*;
    use punctual_core::units::BareNumber;

    const PARAMS: &[Param] = &[
        Param {
            name: "loops",
            kind: Kind::Count { low: 1, high: 100 },
            default: Default::Value("10"),
            help: "",
        },
        Param {
            name: "pause",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 0, high: u64::MAX },
            default: Default::Value("1ms"),
            help: "",
        },
        Param {
            name: "jobs",
            kind: Kind::Count { low: 1, high: 9 },
            default: Default::OfMachine("one per CPU"),
            help: "",
        },
        Param {
            name: "mode",
            kind: Kind::Choice(&[Choice::of("a", ""), Choice::of("b", "")]),
            default: Default::Value("a"),
            help: "",
        },
        Param {
            name: "dir",
            kind: Kind::Text { value: "DIR", check: any_text },
            default: Default::OfMachine("/var/tmp"),
            help: "",
        },
    ];

    fn read(pairs: &[(&str, &str)]) -> Result<Values, String> {
        let given = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Values::read("load", PARAMS, &given)
    }

    fn canonical(pairs: &[(&str, &str)]) -> String {
        let values = read(pairs).unwrap().canonical();
        values.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn equal_measurements_are_written_alike() {
        assert_eq!(canonical(&[("loops", "10"), ("pause", "1000"), ("mode", "a")]), "");
        assert_eq!(canonical(&[("pause", "0.5ms"), ("mode", "b")]), "mode=b,pause=500us");
        assert_eq!(canonical(&[("jobs", "02")]), "jobs=2");
    }

    #[test]
    fn what_the_machine_decides_is_known_once_it_has() {
        let mut values = read(&[]).unwrap();
        assert_eq!((values.known_number("jobs"), values.number("loops")), (None, 10));
        assert!(!values.effective().contains_key("jobs"));
        values.set("jobs", Value::Number(4));
        assert_eq!(values.effective()["jobs"], "4");
        assert!(values.canonical().is_empty(), "it was not given");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (key, text, error) in [
            ("loops", "101", "load: loops=101: must be a whole number from 1 to 100"),
            (
                "loop",
                "1",
                "load has no parameter \"loop\"; did you mean \"loops\"? it has: loops, pause, jobs, mode, dir",
            ),
            ("mode", "c", "load: mode=c: must be a or b"),
        ] {
            assert_eq!(read(&[(key, text)]).unwrap_err().replace("?; it", "? it"), error);
        }
    }
}
