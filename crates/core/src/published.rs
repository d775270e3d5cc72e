//! Figures that papers have published, as `published/` has them: costs by the names of LMbench's
//! summary, latencies, and what is doubtful about them.

mod csv;

use serde::Serialize;

/// A publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Citation {
    /// What it is called here.
    pub name: &'static str,
    /// Who wrote what.
    pub title: &'static str,
    /// What must be said wherever its figures are shown.
    pub doubts: &'static [&'static str],
}

/// Every publication, as the README of `published/` has them.
pub static CITATIONS: &[Citation] = &[
    Citation {
        name: "koolwal-geode",
        title: "Kushal Koolwal (VersaLogic): Investigating latency effects of the Linux real-time \
                Preemption Patches (PREEMPT_RT) on AMD's GEODE LX Platform",
        doubts: &[
            "prose of the 24 h cyclictest: \"average 23 us (RT) against 2 us\" quotes the minima; \
             the averages are 43.29 and 36.5.",
            "Multi-second cyclictest values on 2.6.26-1-486 and 2.6.18-4-486 are accumulated \
             backlog of kernels without high-resolution timers, not wake-up latency.",
            "The 24 h cyclictest header says 18,000,000 cycles, the sample counts 65.5 million.",
            "lpptest's 300,000 responses take about two minutes at its own rate, not one.",
            "gtod: a standard deviation of 52.0764 with a maximum of 52075 over 10^6 samples is \
             one single outlier.",
            "exec slower than sh on 2.6.26-1-486 cannot be; some context-switch columns cannot \
             be assigned.",
        ],
    },
    Citation {
        name: "arthur-emde-mcguire",
        title: "Siro Arthur, Carsten Emde, Nicholas Mc Guire (Lanzhou University, OSADL): \
                Assessment of the Realtime Preemption Patches (RT-Preempt) and their impact on the \
                general purpose performance of the system",
        doubts: &["520 and 500 us may be 52 and 50 us misread; \"600 GHz\" is 600 MHz; one \
             repeated 600 MHz row is the 1 GHz board; PREEMPT_RT was watched for minutes, RTAI \
             and RTLinux for hours under a different load."],
    },
    Citation {
        name: "celf-rtwg",
        title: "CE Linux Forum Realtime Working Group: realtime testing methods and results \
                (ETRI, Samsung, IGEL, Mitsubishi, Toshiba)",
        doubts: &["\"ping per 100 nano sec\" cannot be."],
    },
    Citation {
        name: "mitsubishi-celf",
        title: "Mitsubishi Electric, 2006: realtime performance of Embedded Linux (CE Linux Forum)",
        doubts: &[],
    },
];

const COSTS: &str = include_str!("../../../published/cost.csv");
const LATENCIES: &str = include_str!("../../../published/latency.csv");

/// A published cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedCost {
    /// The machine.
    pub platform: String,
    /// The kernel as the publication calls it.
    pub kernel: String,
    /// The name in the table of costs.
    pub column: String,
    /// Unit of the value.
    pub unit: String,
    /// The value; absent where the publication has none.
    pub value: Option<f64>,
    /// What is doubtful about it.
    pub note: Option<String>,
}

/// Published latencies. Numbers are texts: some are ranges or bounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedLatency {
    /// The machine.
    pub platform: String,
    /// The kernel as the publication calls it.
    pub kernel: String,
    /// The program or method.
    pub test: String,
    /// The load.
    pub load: String,
    /// How long it was measured.
    pub duration: String,
    /// Unit of the values.
    pub unit: String,
    /// Smallest latency.
    pub min: Option<String>,
    /// Mean latency.
    pub avg: Option<String>,
    /// Largest latency.
    pub max: Option<String>,
    /// What is doubtful about them.
    pub note: Option<String>,
}

/// The citation of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Citation> {
    CITATIONS.iter().find(|citation| citation.name == name)
}

impl Citation {
    /// Its costs, blank ones too, in the order of the publication.
    #[must_use]
    pub fn costs(&self) -> Vec<PublishedCost> {
        let mine = csv::rows(COSTS).filter(|row| row.get("citation") == self.name);
        let cost = |row: csv::Fields| PublishedCost {
            platform: row.get("platform").to_owned(),
            kernel: row.get("kernel").to_owned(),
            column: column(row.get("metric")).to_owned(),
            unit: row.get("unit").to_owned(),
            value: row.get("value").parse().ok(),
            note: row.some("note"),
        };
        mine.map(cost).collect()
    }

    /// Its latencies, in the order of the publication.
    #[must_use]
    pub fn latencies(&self) -> Vec<PublishedLatency> {
        let mine = csv::rows(LATENCIES).filter(|row| row.get("citation") == self.name);
        let latency = |row: csv::Fields| PublishedLatency {
            platform: row.get("platform").to_owned(),
            kernel: row.get("kernel").to_owned(),
            test: row.get("test").to_owned(),
            load: row.get("load").to_owned(),
            duration: row.get("duration").to_owned(),
            unit: row.get("unit").to_owned(),
            min: row.some("min"),
            avg: row.some("avg"),
            max: row.some("max"),
            note: row.some("note"),
        };
        mine.map(latency).collect()
    }
}

/// The name of a published metric in the table of costs.
fn column(metric: &str) -> &str {
    metric.strip_prefix("ctxsw ").unwrap_or(metric)
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = include_str!("../../../published/README.md");

    /// The README without its line ends and the citation before a doubt.
    fn readme() -> String {
        README.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn citations_and_doubts_are_those_of_the_readme() {
        let rows =
            README.lines().filter(|line| line.starts_with("| ") && !line.contains("citation"));
        let rows: Vec<_> = rows.map(str::to_owned).collect();
        let ours = CITATIONS.iter().map(|c| format!("| {} | {} |", c.name, c.title));
        assert_eq!(rows, ours.collect::<Vec<_>>());
        let doubts = CITATIONS.iter().flat_map(|citation| citation.doubts);
        for doubt in doubts.clone() {
            assert!(readme().contains(doubt), "{doubt}");
        }
        assert_eq!(README.lines().filter(|line| line.starts_with("- ")).count(), doubts.count());
    }

    #[test]
    fn every_row_belongs_to_a_citation() {
        let costs: usize = CITATIONS.iter().map(|c| c.costs().len()).sum();
        let latencies: usize = CITATIONS.iter().map(|c| c.latencies().len()).sum();
        assert_eq!(costs, COSTS.lines().count() - 1);
        assert_eq!(latencies, LATENCIES.lines().count() - 1);
    }

    #[test]
    fn values_are_read_as_printed() {
        let costs = find("koolwal-geode").unwrap().costs();
        let of = |kernel: &str, column: &str| {
            let found = costs.iter().find(|c| c.kernel == kernel && c.column == column);
            found.unwrap_or_else(|| panic!("{column}"))
        };
        let switch = of("2.6.26-rt1-ebx11", "2p/0K");
        assert_eq!((switch.value, &*switch.unit), (Some(230.6), "us"));
        assert!(switch.note.as_deref().unwrap().starts_with("OCR lost a row"));
        let rpc = of("2.6.26-vl-custom", "RPC/UDP").note.as_deref();
        assert_eq!(rpc, Some("column ambiguous (RPC/UDP,TCP or TCP,RPC/TCP)"));
        assert_eq!(of("2.6.26-1-486", "tlb").value, None);
        let latencies = find("celf-rtwg").unwrap().latencies();
        assert!(latencies.iter().any(|row| row.max.as_deref() == Some("30-35")));
        assert_eq!(find("nobody"), None);
    }
}
