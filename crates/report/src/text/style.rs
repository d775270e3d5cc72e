//! Colours of a terminal.

use punctual_core::schema::Outcome;

/// How a text stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As the rest.
    Plain,
    /// The number that matters: a maximum.
    Strong,
    /// Heads and notes.
    Faint,
    /// A pass.
    Good,
    /// Doubt: a condition, an inconclusive or skipped verdict.
    Doubt,
    /// A failure.
    Bad,
}

/// Whether styles become escape sequences.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    colour: bool,
}

impl Paint {
    /// With escape sequences if `colour`.
    pub fn new(colour: bool) -> Self {
        Self { colour }
    }

    /// Plain text.
    #[cfg(test)]
    pub fn off() -> Self {
        Self::new(false)
    }

    /// The text in its style.
    pub fn apply(self, text: &str, style: Style) -> String {
        let code = match style {
            _ if !self.colour || text.is_empty() => return text.to_owned(),
            Style::Plain => return text.to_owned(),
            Style::Strong => "1",
            Style::Faint => "2",
            Style::Good => "1;32",
            Style::Doubt => "1;33",
            Style::Bad => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// The style of an outcome.
pub fn of_outcome(outcome: Outcome) -> Style {
    match outcome {
        Outcome::None => Style::Strong,
        Outcome::Pass => Style::Good,
        Outcome::Skipped | Outcome::Inconclusive => Style::Doubt,
        Outcome::Break | Outcome::Fail => Style::Bad,
    }
}
