//! What the threads of `cpumap` do, as the parameter `model` says.

use punctual_core::units::{BareNumber, SECOND_NS, parse_duration_ns};

/// One thread's work, and its scheduling if it is not that of the cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) work: Work,
    pub(super) rank: Option<Rank>,
}

/// When a thread wants a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Always.
    Spin,
    /// Always, but it calls sched_yield(2) after every look at the clock.
    Yield,
    /// For so long after every release, both ns.
    Periodic { work_ns: u64, period_ns: u64 },
}

/// Scheduling of a thread of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// The policy of the cell at this priority.
    Priority(u32),
    /// `SCHED_OTHER`.
    Other,
}

/// Reads `MODEL[@PRIORITY|@other]+…`.
pub(super) fn parse(text: &str) -> Result<Vec<Model>, String> {
    text.split('+').map(one).collect()
}

fn one(text: &str) -> Result<Model, String> {
    let (work, rank) = match text.split_once('@') {
        None => (text, None),
        Some((work, "other")) => (work, Some(Rank::Other)),
        Some((work, number)) => {
            let number = number.parse().ok().filter(|number| (1..=98).contains(number));
            let number = number.ok_or("after @ comes a priority from 1 to 98, or other")?;
            (work, Some(Rank::Priority(number)))
        }
    };
    let work = match work.split_once(':') {
        None if work == "cpu" => Work::Spin,
        None if work == "yield" => Work::Yield,
        Some(("periodic", times)) => periodic(times)?,
        _ => return Err("must be cpu, yield or periodic:WORK/PERIOD, joined by +".to_owned()),
    };
    Ok(Model { work, rank })
}

fn periodic(times: &str) -> Result<Work, String> {
    let (work, period) = times.split_once('/').ok_or("periodic needs WORK/PERIOD")?;
    let ns =
        |text| parse_duration_ns(text, BareNumber::Microseconds).map_err(|error| error.to_string());
    let (work_ns, period_ns) = (ns(work)?, ns(period)?);
    if work_ns == 0 || work_ns >= period_ns || period_ns > 60 * SECOND_NS {
        return Err("needs 0 < WORK < PERIOD, and PERIOD at most 60s".to_owned());
    }
    Ok(Work::Periodic { work_ns, period_ns })
}

impl Work {
    /// Thousandths of a CPU that it takes if it spins for all but `margin` percent.
    pub(super) fn share(self, margin: u64) -> u64 {
        match self {
            Self::Spin | Self::Yield => 1_000 - 10 * margin,
            Self::Periodic { work_ns, period_ns } => {
                work_ns.saturating_mul(1_000).div_ceil(period_ns)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_read_as_they_are_written() {
        let of = |work, rank| Model { work, rank };
        let periodic = Work::Periodic { work_ns: 500_000, period_ns: 10_000_000 };
        assert_eq!(
            parse("cpu+yield@other+periodic:500us/10ms@90").unwrap(),
            [
                of(Work::Spin, None),
                of(Work::Yield, Some(Rank::Other)),
                of(periodic, Some(Rank::Priority(90)))
            ]
        );
        assert_eq!((periodic.share(10), Work::Spin.share(10)), (50, 900));
        for wrong in [
            "",
            "cpu+",
            "cpu:1",
            "cpu@99",
            "yield@",
            "periodic",
            "periodic:1ms",
            "periodic:2ms/1ms",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
