//! What the threads of a cell recorded, as `run.json` has it: the one way from samples to
//! the statistics of threads and cells.

use super::summary::{Recorded, summarise};
use crate::schema::{Latency, Stats, Thread};

/// What one thread leaves.
#[derive(Debug, Clone)]
pub struct Measured<'a> {
    /// Where and how it ran; its statistics are filled in.
    pub thread: Thread,
    /// What it recorded, by the number of the series: the first one is the primary one.
    pub series: Vec<Recorded<'a>>,
    /// Releases later than the deadline, missed ones included.
    pub exceedances: u64,
}

/// Fills in the statistics of `latency` and of its threads, which it replaces. They are still
/// to be judged ([`crate::verdict::judge_threads`]).
pub fn assemble(latency: &mut Latency, measured: Vec<Measured<'_>>) {
    let over_all = |number: usize| {
        let recorded = measured.iter().filter_map(|one| one.series.get(number).copied());
        summarise(&recorded.collect::<Vec<_>>())
    };
    latency.stats = over_all(0);
    for (series, number) in latency.series.iter_mut().zip(1..) {
        series.stats = over_all(number);
    }
    let others = latency.series.len();
    latency.threads = measured.into_iter().map(|one| thread_of(one, others)).collect();
}

fn thread_of(measured: Measured<'_>, others: usize) -> Thread {
    let Measured { mut thread, series, exceedances } = measured;
    let mut statistics = (0..=others).map(|number| {
        series.get(number).map_or_else(Stats::default, |one| summarise(std::slice::from_ref(one)))
    });
    thread.stats = statistics.next().unwrap_or_default();
    thread.series = statistics.collect();
    let primary = series.first().map(|recorded| recorded.moments);
    thread.max_at_ns = primary.filter(|m| m.count > 0).map(|moments| moments.max_at);
    thread.verdict.exceedances = exceedances;
    thread
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Moments;
    use crate::histogram::{SignedHistogram, SignedSparse};
    use crate::schema::{Role, Series, Unit};
    use crate::stats::Counts;

    fn samples(values: &[i64]) -> (Moments, SignedSparse) {
        let (mut moments, mut histogram) = (Moments::EMPTY, SignedHistogram::new());
        for (value, at) in values.iter().zip(1..) {
            histogram.record(*value);
            moments.merge(&Moments {
                count: 1,
                min: *value,
                max: *value,
                max_at: at,
                sum: i128::from(*value),
                ..Moments::EMPTY
            });
        }
        (moments, histogram.sparse())
    }

    fn recorded((moments, histogram): &(Moments, SignedSparse)) -> Recorded<'_> {
        let counts = Counts::Fine(histogram);
        Recorded { moments: *moments, counts, behind: None, from_bins: false }
    }

    #[test]
    fn every_series_has_its_statistics_by_thread_and_over_all() {
        let leg = |name: &str| Series {
            name: name.to_owned(),
            meaning: String::new(),
            role: Role::Leg,
            unit: Unit::Ns,
            stats: Stats::default(),
        };
        let mut latency =
            Latency { series: vec![leg("interrupt"), leg("thread")], ..Latency::default() };
        let all = [samples(&[9, 30]), samples(&[4, 10]), samples(&[5, 20]), samples(&[50])];
        let measured = |thread, series: &[usize]| Measured {
            thread: Thread { thread, offset_ns: 7, ..Thread::default() },
            series: series.iter().map(|at| recorded(&all[*at])).collect(),
            exceedances: u64::from(thread),
        };
        // The second thread has lost what it recorded of the last series.
        assemble(&mut latency, vec![measured(0, &[0, 1, 2]), measured(1, &[3, 1])]);
        let maxima: Vec<_> = latency.series.iter().map(|series| series.stats.max).collect();
        assert_eq!((latency.stats.max, maxima), (Some(50), vec![Some(10), Some(20)]));
        assert_eq!((latency.stats.samples, latency.series[1].stats.samples), (3, 2));
        let of_threads: Vec<_> = latency
            .threads
            .iter()
            .map(|t| (t.stats.max, t.max_at_ns, t.series[0].max, t.series[1].max))
            .collect();
        assert_eq!(
            of_threads,
            [(Some(30), Some(2), Some(10), Some(20)), (Some(50), Some(1), Some(10), None)]
        );
        assert_eq!((latency.threads[1].verdict.exceedances, latency.threads[1].offset_ns), (1, 7));
    }
}
