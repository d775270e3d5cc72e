//! Costs: what the registry says of a metric, and what one is made of.

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
    /// One line.
    pub summary: &'static str,
    /// What it does, what it is comparable to, how to read it.
    pub help: &'static str,
    /// What one operation is.
    pub meaning: &'static str,
    /// Its own parameters; those of all metrics come in addition.
    pub params: &'static [Param],
    /// What it needs of the board, whatever its parameters are.
    pub needs: &'static [Need],
    /// Unit of its values.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// Makes the operation, in the thread that runs it.
    pub open: fn(&Values) -> io::Result<Box<dyn Operation>>,
}

/// What is timed.
pub trait Operation {
    /// Does it so many times.
    ///
    /// # Errors
    /// What ended it early.
    fn run(&mut self, iterations: u64) -> io::Result<()>;

    /// The same loop with nothing in it, which is subtracted.
    fn empty(&mut self, iterations: u64);

    /// The value of one operation that took `ns`, in the unit of the entry.
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
