//! `--by`: what makes the sides of a comparison.

use punctual_core::compare::{ComparedSide, SETTINGS, Setting, board_names};
use punctual_core::run::LoadedRun;
use punctual_core::schema::Run;
use punctual_report::words;

/// What tells the runs of the sides apart; all else is pooled.
#[derive(Debug, Clone)]
pub enum By {
    /// Release and preemption model.
    Kernel,
    /// The board: by what its hardware tells, else by its name and kind.
    Board,
    /// The group that runs were measured as, such as one `lab run`.
    Group,
    /// The day on which they began, UTC.
    Date,
    /// A setting of the machine.
    Setting(&'static Setting),
}

impl By {
    /// Reads the value of `--by`.
    ///
    /// # Errors
    /// It is none of these; the text says which there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "kernel" => Ok(Self::Kernel),
            "board" => Ok(Self::Board),
            "group" => Ok(Self::Group),
            "date" => Ok(Self::Date),
            _ => text
                .strip_prefix("setting:")
                .and_then(Setting::named)
                .map(Self::Setting)
                .ok_or_else(|| {
                    let names: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
                    format!(
                        "kernel, board, group, date, or setting:NAME with one of {}",
                        names.join(", ")
                    )
                }),
        }
    }

    /// Gives each of the runs its side.
    pub fn make_sides(&self, runs: &mut [LoadedRun]) {
        let records: Vec<&Run> = runs.iter().map(|run| &run.run).collect();
        let names = match self {
            // Two boards may have one name, and one board two.
            Self::Board => board_names(&records),
            _ => records.iter().map(|run| self.name(run)).collect(),
        };
        for (run, name) in runs.iter_mut().zip(names) {
            run.side = Some(ComparedSide { name, whole: true });
        }
    }

    /// What the side of a run is called.
    fn name(&self, run: &Run) -> String {
        match self {
            Self::Kernel => format!("{} {}", run.kernel.preemption, run.kernel.release),
            Self::Board => run.board.name.clone(),
            Self::Group => run.group.clone().unwrap_or_else(|| "no group".to_owned()),
            Self::Date => words::utc(words::started_ns(run))
                .map_or_else(|| "no date".to_owned(), |text| text.chars().take(10).collect()),
            Self::Setting(setting) => {
                let value = setting.of(run).unwrap_or_else(|| "unknown".to_owned());
                format!("{}={value}", setting.name)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_way_to_tell_runs_apart_is_refused_with_those_that_are() {
        assert!(matches!(By::parse("setting:governor"), Ok(By::Setting(_))));
        for wrong in ["", "kernels", "setting:", "setting:mood"] {
            let said = By::parse(wrong).unwrap_err();
            assert!(said.contains("board") && said.contains("huge-pages"), "{said}");
        }
    }
}
