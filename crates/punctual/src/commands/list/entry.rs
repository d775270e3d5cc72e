//! One entry of a list with everything known about it, in the form of the JSON output.

use punctual_core::params::Named;
use punctual_core::plan::{CellPlan, Plan, Subject};
use punctual_core::schema::{Better, CostSection};
use punctual_suite::harness::phased::PhasedSpec;
use punctual_suite::probes;
use punctual_suite::registry::cost::{Column, CostEntry};
use punctual_suite::registry::load::LoadEntry;
use punctual_suite::registry::probe::ProbeEntry;
use punctual_suite::registry::{Need, Param};
use serde::Serialize;

use crate::plans;

#[derive(Serialize)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) help: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) needs: Vec<NeedState>,
    #[serde(flatten)]
    pub(super) plan: Option<PlanParts>,
    #[serde(flatten)]
    pub(super) cost: Option<CostParts>,
}

/// What a cost has besides.
#[derive(Serialize)]
pub(super) struct CostParts {
    pub(super) unit: &'static str,
    pub(super) better: Better,
    pub(super) section: CostSection,
    pub(super) columns: Vec<ColumnName>,
}

/// A column of the table of costs, and the key of the metric that it is.
#[derive(Serialize)]
pub(super) struct ColumnName {
    pub(super) name: &'static str,
    pub(super) key: String,
}

#[derive(Serialize)]
pub(super) struct PlanParts {
    pub(super) citation: Option<String>,
    pub(super) kernels: Vec<String>,
    pub(super) variants: Vec<String>,
    pub(super) cells: usize,
    /// Number of cells whose probe and loads are in this version.
    pub(super) cells_in_this_version: usize,
}

#[derive(Serialize)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) default: String,
    pub(super) help: String,
}

/// A need, and whether this board meets it.
#[derive(Serialize)]
pub(super) struct NeedState {
    /// The value of a parameter that needs it; absent if it is always needed.
    pub(super) with: Option<String>,
    pub(super) need: &'static str,
    pub(super) met: bool,
}

fn entry(name: &str, summary: &str, help: &str, params: &[Param], needs: &[Need]) -> Entry {
    let always = needs.iter().map(|need| state(need, None));
    let of_words = params.iter().flat_map(|param| {
        param.kind.words().iter().flat_map(|word| {
            let with = format!("{}={}", param.name, word.value);
            word.needs.iter().map(move |need| state(need, Some(with.clone())))
        })
    });
    Entry {
        name: name.to_owned(),
        summary: summary.to_owned(),
        help: help.to_owned(),
        parameters: params.iter().map(parameter).collect(),
        needs: always.chain(of_words).collect(),
        plan: None,
        cost: None,
    }
}

fn parameter(param: &Param) -> Parameter {
    Parameter {
        name: param.name,
        value: param.kind.placeholder(),
        default: param.default.to_string(),
        help: param.full_help(),
    }
}

fn state(need: &Need, with: Option<String>) -> NeedState {
    NeedState { with, need: need.what, met: (need.met)() }
}

pub(super) fn of_probe(probe: &ProbeEntry) -> Entry {
    let params = if probe.is_planned() { Vec::new() } else { probe.all_params() };
    entry(probe.name, probe.summary, probe.help, &params, probe.needs)
}

pub(super) fn of_load(load: &LoadEntry) -> Entry {
    entry(load.name, load.summary, load.help, &load.all_params(), load.needs)
}

pub(super) fn of_cost(cost: &CostEntry) -> Entry {
    let column = |column: &Column| ColumnName {
        name: column.name,
        key: Named { name: cost.name.to_owned(), params: column.given() }.to_string(),
    };
    let parts = CostParts {
        unit: cost.unit.name(),
        better: cost.better,
        section: cost.section,
        columns: cost.columns.iter().map(column).collect(),
    };
    let params = cost.all_params();
    Entry { cost: Some(parts), ..entry(cost.name, cost.summary, cost.help, &params, cost.needs) }
}

pub(super) fn of_plan(built_in: &plans::BuiltIn) -> Entry {
    let parts = built_in.plan(None).ok().map(|plan| PlanParts {
        cells: plan.cells.len(),
        cells_in_this_version: plan.cells.iter().filter(|cell| is_there(cell)).count(),
        citation: plan.citation,
        kernels: plan.kernels.iter().map(ToString::to_string).collect(),
        variants: Plan::variants(built_in.text).unwrap_or_default(),
    });
    Entry { plan: parts, ..entry(built_in.name, built_in.summary, built_in.text, &[], &[]) }
}

fn is_there(cell: &CellPlan) -> bool {
    let load = PhasedSpec::parse(&cell.load).is_ok();
    let subject = match &cell.subject {
        Subject::Probe(name) => probes::find(name).is_ok_and(|probe| !probe.is_planned()),
        Subject::Cost(_) => true,
    };
    load && subject
}
