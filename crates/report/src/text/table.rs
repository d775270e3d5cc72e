//! Tables of aligned columns for a terminal.

use unicode_width::UnicodeWidthStr;

use super::style::{Paint, Style};

/// Which side of a column its texts keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

enum Row {
    Cells(Vec<(String, Style)>),
    Note(String),
    Heading(String),
}

/// A table under construction.
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Row>,
}

const INDENT: &str = "  ";
const GAP: &str = "  ";

impl Table {
    /// A table with these column heads and no rows.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; it may be shorter than the head.
    pub fn row(&mut self, cells: Vec<(String, Style)>) {
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a line of text below the last row, which is wrapped and takes no
    /// part in the alignment.
    pub fn note(&mut self, text: String) {
        self.rows.push(Row::Note(text));
    }

    /// Adds a separate line above the rows that follow.
    pub fn heading(&mut self, text: String) {
        self.rows.push(Row::Heading(text));
    }

    /// The table as lines; notes are wrapped at `width` columns.
    pub fn render(&self, width: usize, paint: Paint) -> String {
        let widths = self.widths();
        let heads: Vec<_> =
            self.columns.iter().map(|(head, _)| ((*head).to_owned(), Style::Faint)).collect();
        let mut out = self.line(&heads, &widths, paint);
        for row in &self.rows {
            match row {
                Row::Cells(cells) => out.push_str(&self.line(cells, &widths, paint)),
                Row::Heading(text) => out.push_str(&format!("{INDENT}{text}\n")),
                Row::Note(text) => {
                    for line in wrap(text, width.saturating_sub(6).max(20)) {
                        out.push_str(&format!("      {}\n", paint.apply(&line, Style::Faint)));
                    }
                }
            }
        }
        out
    }

    /// Columns of the terminal that the widest row takes.
    pub fn width(&self) -> usize {
        let widths = self.widths();
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        INDENT.len() + gaps + widths.iter().sum::<usize>()
    }

    fn widths(&self) -> Vec<usize> {
        let heads = self.columns.iter().enumerate();
        heads.map(|(i, (head, _))| self.column_width(i).max(head.width())).collect()
    }

    fn column_width(&self, column: usize) -> usize {
        self.rows
            .iter()
            .filter_map(|row| match row {
                Row::Cells(cells) => cells.get(column).map(|(text, _)| text.width()),
                Row::Note(_) | Row::Heading(_) => None,
            })
            .max()
            .unwrap_or(0)
    }

    fn line(&self, cells: &[(String, Style)], widths: &[usize], paint: Paint) -> String {
        let mut line = INDENT.to_owned();
        for (i, ((text, style), (_, align))) in cells.iter().zip(&self.columns).enumerate() {
            if i > 0 {
                line.push_str(GAP);
            }
            let room = widths.get(i).copied().unwrap_or(0);
            let pad = " ".repeat(room.saturating_sub(text.width()));
            // Padding stays outside the escape sequences: a terminal would underline it
            // or cut it off.
            match align {
                Align::Left => line.push_str(&format!("{}{pad}", paint.apply(text, *style))),
                Align::Right => line.push_str(&format!("{pad}{}", paint.apply(text, *style))),
            }
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

/// Breaks a text at spaces into lines of at most `width` columns; a longer word
/// keeps its own line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Appends a text, wrapped at `width`, with `first` before its first line and `indent`
/// spaces before the others.
pub fn push_wrapped(out: &mut String, text: &str, first: &str, indent: usize, width: usize) {
    for (i, line) in wrap(text, width.saturating_sub(indent).max(20)).iter().enumerate() {
        if i == 0 {
            out.push_str(first);
        } else {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(line);
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_width_not_by_bytes() {
        let mut table = Table::new(&[("name", Align::Left), ("max", Align::Right)]);
        table.row(vec![("数".into(), Style::Plain), ("1 µs".into(), Style::Strong)]);
        table.row(vec![("abcdef".into(), Style::Plain), ("10 us".into(), Style::Plain)]);
        assert_eq!(
            table.render(80, Paint::off()),
            "  name      max\n  数       1 µs\n  abcdef  10 us\n"
        );
    }

    #[test]
    fn text_wraps_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable x", 4), ["unbreakable", "x"]);
        assert!(wrap("", 10).is_empty());
    }
}
