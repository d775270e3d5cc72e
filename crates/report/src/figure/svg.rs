//! A figure, inside a page or as a file.

use maud::{Markup, PreEscaped, html};

use crate::subject::Subject;

/// Colours and strokes, for light, dark and paper. One text for the page and
/// for figures in files of their own.
pub(crate) const STYLE: &str = include_str!("style.css");

/// Width of every figure in its own units; the page scales it.
pub const WIDTH: f64 = 720.0;

/// One figure.
#[derive(Debug, Clone)]
pub struct Figure {
    /// File name without its ending, unique in the report.
    pub name: String,
    /// What it shows, drawn at its head and read out by screen readers.
    pub title: String,
    /// What is to be seen in it, for those who cannot see it.
    pub description: String,
    pub(super) height: f64,
    pub(super) body: Markup,
}

impl Figure {
    /// The figure for a page that already contains the style sheet.
    #[must_use]
    pub fn inline(&self) -> Markup {
        self.svg(None)
    }

    /// The figure as a separate file: style sheet and background included.
    #[must_use]
    pub fn file(&self) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n",
            self.svg(Some(STYLE)).into_string()
        )
    }

    fn svg(&self, style: Option<&str>) -> Markup {
        let (title, desc) = (format!("{}-title", self.name), format!("{}-desc", self.name));
        html! {
            svg class="figure" xmlns="http://www.w3.org/2000/svg" role="img"
                viewBox=(format!("0 0 {WIDTH} {:.0}", self.height))
                aria-labelledby=(format!("{title} {desc}")) {
                title id=(title) { (self.title) }
                desc id=(desc) { (self.description) }
                @if let Some(style) = style {
                    style { (PreEscaped(style)) }
                    rect class="back" width="100%" height="100%" {}
                }
                text class="name" x="4" y="18" { (shortened(&self.title, 62)) }
                (self.body)
            }
        }
    }
}

/// A file name for a figure of one cell: unique by its numbers, readable by its words.
pub(crate) fn file_name(kind: &str, subject: &Subject<'_>) -> String {
    let (run, cell) = subject.at;
    let name: String = format!("{}-{}", subject.latency.probe, subject.cell.load)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(40)
        .collect();
    format!("{kind}-{run}-{cell:02}-{}", name.trim_end_matches('-'))
}

/// A description with the subject's note.
pub(crate) fn described(subject: &Subject<'_>, text: String) -> String {
    match &subject.note {
        Some(note) => format!("{text} Shown: {note}."),
        None => text,
    }
}

pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}
