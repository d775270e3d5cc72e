//! Costs: the registry entry of a metric, and the operation that is timed.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io;

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::affinity::{self, CpuSet};

use super::need::Need;
use super::param::{Choice, Default, Kind, Param, Value};
use super::values::Values;

/// Parameters of every metric.
pub const COST_PARAMS: &[Param] = &[Param {
    name: "cpu",
    kind: Kind::Count { low: 0, high: 65_535 },
    default: Default::OfMachine("the first that punctual may run on"),
    help: "CPU that the timed thread is bound to",
}];

/// The parameter of metrics with two sides: where the side that is not timed runs. Its process or
/// thread is bound to [`peer_cpus`], and named by `peers` of the operation.
pub const PEER: Param = Param {
    name: "peer",
    kind: Kind::Or(
        &[
            Choice::of("same", "the CPU of the timed thread"),
            Choice::of("other", "another CPU that punctual may run on"),
            Choice::of("any", "where the scheduler puts it, of those that punctual may run on"),
        ],
        &Kind::Cpus,
    ),
    default: Default::Value("same"),
    help: "CPUs of the other processes or threads that take part",
};

/// The CPUs that the other side is to be bound to, of a metric that takes [`PEER`]. Whoever runs
/// the metric has put the CPUs in the place of the word; if nobody has, they are those of the
/// calling thread.
///
/// # Errors
/// There is no such CPU: no other one, or none at all.
pub fn peer_cpus(values: &Values) -> io::Result<CpuSet> {
    let none = |why: &str| Err(io::Error::new(io::ErrorKind::NotFound, why.to_owned()));
    match values.cpus(PEER.name) {
        Some(cpus) if cpus.is_empty() => none("there is no other CPU that punctual may run on"),
        Some(cpus) => Ok(cpus.clone()),
        None if values.word(PEER.name) == Some("other") => {
            let others = affinity::reachable()?.without(&CpuSet::of(affinity::current_cpu()));
            match others.iter().next() {
                Some(cpu) => Ok(CpuSet::of(cpu)),
                None => none("there is no other CPU that punctual may run on"),
            }
        }
        None => affinity::get(),
    }
}

/// Puts the CPUs that the word of [`PEER`] stands for in its place. `cpu` is that of the timed
/// thread, `usable` are those that punctual may run on.
pub(crate) fn settle_peer(values: &mut Values, cpu: u32, usable: &CpuSet) {
    let cpus = match values.word(PEER.name) {
        Some("same") => CpuSet::of(cpu),
        Some("other") => usable.iter().find(|other| *other != cpu).into_iter().collect(),
        Some("any") => usable.clone(),
        _ => return,
    };
    values.set(PEER.name, Value::Cpus(cpus));
}

/// The name of a peer that all is timed in, instead of the thread of the cell.
pub const IS_TIMED: &str = "is timed";

/// A process or thread that takes part in an operation and is not the timed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// What it does, such as "echoes".
    pub name: String,
    /// Its kernel ID.
    pub id: i32,
}

/// One metric of the registry.
#[derive(Debug)]
pub struct CostEntry {
    /// Name, such as `lat.syscall`.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// A paragraph for help: what it times, what it compares with, how to read it.
    pub help: &'static str,
    /// What one operation is.
    pub meaning: &'static str,
    /// Its own parameters; those common to all metrics are added.
    pub params: &'static [Param],
    /// What it needs of the board, whatever its parameters.
    pub needs: &'static [Need],
    /// Unit of its values.
    pub unit: Unit,
    /// Whether lower or higher values are better.
    pub better: Better,
    /// The part of the table of costs that it stands in.
    pub section: CostSection,
    /// Its columns in the table of costs, each with a name of its own; a metric that stands there
    /// once has one, one that is run by its name only has none.
    pub columns: &'static [Column],
    /// Creates what is measured, in the thread that measures it.
    pub open: fn(&Values) -> io::Result<Method>,
}

/// A column of the table of costs: parameters of a metric, and what others call it.
#[derive(Debug)]
pub struct Column {
    /// The name in published tables of LMbench's summary, an alias of the metric with these
    /// parameters; of a column that is not in them, one in their style.
    pub name: &'static str,
    /// Those parameters that are not the metric's own defaults.
    pub params: &'static [(&'static str, &'static str)],
}

/// How a value is come by.
pub enum Method {
    /// An operation is timed: as many as the clock resolves, an empty loop subtracted.
    Timed(Box<dyn Operation>),
    /// It is worked out from several times.
    Direct(Box<dyn Direct>),
}

/// What is no time of one operation, such as the ratio of two.
pub trait Direct {
    /// Measures it once; the value, in the unit of the entry. `None` if it cannot be told from
    /// nothing.
    ///
    /// # Errors
    /// The error that ended it early.
    fn measure(&mut self) -> io::Result<Option<f64>>;

    /// The processes and threads that take part besides the timed one, for the record; asked
    /// before the first time and after the last.
    fn peers(&self) -> Vec<Peer> {
        Vec::new()
    }
}

/// The operation that is timed.
pub trait Operation {
    /// What must be there before it runs this many times; not timed.
    ///
    /// # Errors
    /// The error that ended it early.
    fn prepare(&mut self, _iterations: u64) -> io::Result<()> {
        Ok(())
    }

    /// Runs it this many times.
    ///
    /// # Errors
    /// The error that ended it early.
    fn run(&mut self, iterations: u64) -> io::Result<()>;

    /// Clears away what it left; not timed.
    ///
    /// # Errors
    /// The error that ended it early.
    fn tidy(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The same loop without the operation, or with what is not meant to count; its time is
    /// subtracted.
    ///
    /// # Errors
    /// The error that ended it early.
    fn empty(&mut self, iterations: u64) -> io::Result<()> {
        loop_alone(iterations);
        Ok(())
    }

    /// The value, in the unit of the entry, of an operation that took `ns`.
    fn value(&self, ns: f64) -> f64;

    /// The processes and threads that take part besides the timed one, for the record; asked
    /// before the first run and after the last.
    fn peers(&self) -> Vec<Peer> {
        Vec::new()
    }
}

/// The loop that calls an operation, without one.
pub(crate) fn loop_alone(iterations: u64) {
    for iteration in 0..iterations {
        black_box(iteration);
    }
}

impl CostEntry {
    /// Every parameter that it takes.
    #[must_use]
    pub fn all_params(&self) -> Vec<Param> {
        self.params.iter().chain(COST_PARAMS).copied().collect()
    }

    /// Reads its parameters.
    ///
    /// # Errors
    /// A message that names the metric, the parameter and what is wrong with it.
    pub fn read(&self, given: &BTreeMap<String, String>) -> Result<Values, String> {
        Values::read(self.name, &self.all_params(), given)
    }

    /// The column of the table of costs that these parameters are; `cpu` does not matter.
    #[must_use]
    pub fn column(&self, values: &Values) -> Option<&'static Column> {
        let mut given = values.canonical();
        COST_PARAMS.iter().for_each(|param| {
            given.remove(param.name);
        });
        self.columns.iter().find(|column| column.given() == given)
    }
}

impl Column {
    /// Its parameters.
    #[must_use]
    pub fn given(&self) -> BTreeMap<String, String> {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.params.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(word: &str, cpu: u32, usable: &str) -> io::Result<CpuSet> {
        let given = BTreeMap::from([(PEER.name.to_owned(), word.to_owned())]);
        let mut values = Values::read("x", &[PEER], &given).unwrap();
        settle_peer(&mut values, cpu, &CpuSet::parse(usable).unwrap());
        peer_cpus(&values)
    }

    #[test]
    fn the_other_side_runs_where_the_word_says() {
        for (word, cpu, usable, expected) in [
            ("same", 1, "0-3", "1"),
            ("other", 0, "0-3", "1"),
            ("other", 2, "0-3", "0"),
            ("any", 2, "0-3", "0-3"),
            ("2-3", 0, "0-3", "2-3"),
        ] {
            assert_eq!(peers(word, cpu, usable).unwrap().to_string(), expected, "{word} {cpu}");
        }
        let error = peers("other", 0, "0").unwrap_err().to_string();
        assert_eq!(error, "there is no other CPU that punctual may run on");
    }

    #[test]
    fn a_word_that_nobody_has_settled_means_the_cpus_of_the_caller() {
        let values = Values::read("x", &[PEER], &BTreeMap::new()).unwrap();
        assert_eq!(peer_cpus(&values).unwrap(), affinity::get().unwrap());
    }
}
