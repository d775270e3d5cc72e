//! Which experiments can be watched from outside, and where their punctual is seen at work.

use anyhow::{Context, ensure};
use punctual_core::plan::CellPlan;
use punctual_core::schema::Marks;
use punctual_core::units::{SECOND_NS, exact_duration, grouped};
use punctual_lab::experiment::Experiment;
use punctual_lab::{microscope, program};
use punctual_report::words;
use punctual_suite::probes;
use punctual_suite::recorder::ABOVE_CAP;

/// Where the board's punctual can be seen at work.
///
/// # Errors
/// It does not say so.
pub fn marks(experiment: &Experiment) -> anyhow::Result<Marks> {
    program::marks(&experiment.program).context(
        "the board's punctual does not say where it can be seen at work: it is an older one, or was \
         not built for a fixed address (.cargo/config.toml)",
    )
}

/// What boards and cells must be like to be watched: the releases of one thread are told apart, and
/// the times of all are known.
///
/// # Errors
/// One is not, and which.
pub fn check(experiment: &Experiment) -> anyhow::Result<()> {
    microscope::watchable(&experiment.board)?;
    for cell in &experiment.plan.cells {
        let threads = cell.params.get("threads").map_or("1", String::as_str);
        let is_wakeup = cell.subject.name() == "wakeup";
        ensure!(
            is_wakeup,
            "{}: only the probe wakeup can be watched",
            words::key_name(&cell.key())
        );
        ensure!(
            threads == "1",
            "{}: its {threads} threads cannot be told apart from outside: watch it with one thread \
             (wakeup:threads=1)",
            words::key_name(&cell.key())
        );
        kept(cell)?;
    }
    Ok(())
}

/// Checks that a board keeps all samples of a cell. Only releases that are missed have none.
fn kept(cell: &CellPlan) -> anyhow::Result<()> {
    let values = probes::find(cell.subject.name()).and_then(|entry| entry.read(&cell.params));
    let interval_ns = values.ok().and_then(|values| values.known_number("interval")).unwrap_or(0);
    if interval_ns == 0 {
        return Ok(());
    }
    let releases = cell.duration_ns.div_ceil(interval_ns);
    let most = ABOVE_CAP as u64;
    ensure!(
        cell.samples.unwrap_or(releases).min(releases) <= most,
        "{}: {} releases, and a board keeps only the first {} samples of a cell: watch it for at most \
         {} (-D), or with a longer interval (-i)",
        words::key_name(&cell.key()),
        grouped(releases),
        grouped(most),
        exact_duration(rounded(most * interval_ns))
    );
    Ok(())
}

/// Not longer, and short to write.
fn rounded(ns: u64) -> u64 {
    let unit = [SECOND_NS, 1_000_000, 1_000].into_iter().find(|unit| ns >= 10 * unit).unwrap_or(1);
    ns - ns % unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_watched_is_a_time_that_people_write() {
        let of = |ns| exact_duration(rounded(ns));
        assert_eq!(of(1_638_400_000), "1638ms");
        assert_eq!(of(163_840_000_000), "163s");
        assert_eq!([of(81_920_000), of(1_638_400), of(16_384)], ["81ms", "1638us", "16us"]);
    }
}
