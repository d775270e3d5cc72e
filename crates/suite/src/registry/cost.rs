//! Costs: the registry entry of a metric, and the operation that is timed.

use std::collections::BTreeMap;
use std::io;

use punctual_core::schema::{Better, Unit};

use super::need::Need;
use super::param::{Default, Kind, Param};
use super::values::Values;

/// Parameters of every metric.
pub const COST_PARAMS: &[Param] = &[Param {
    name: "cpu",
    kind: Kind::Count { low: 0, high: 65_535 },
    default: Default::OfMachine("the first that punctual may run on"),
    help: "CPU that the timed thread is bound to",
}];

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
    /// Creates the operation, in the thread that runs it.
    pub open: fn(&Values) -> io::Result<Box<dyn Operation>>,
}

/// The operation that is timed.
pub trait Operation {
    /// Runs it this many times.
    ///
    /// # Errors
    /// The error that ended it early.
    fn run(&mut self, iterations: u64) -> io::Result<()>;

    /// The same loop without the operation; its time is subtracted.
    fn empty(&mut self, iterations: u64);

    /// The value, in the unit of the entry, of an operation that took `ns`.
    fn value(&self, ns: f64) -> f64;
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
}
