//! Tables of aligned columns that fit a terminal.

use std::borrow::Cow;
use std::iter;

use unicode_width::UnicodeWidthStr;

use super::style::{Paint, Style};
use super::wrap::{cut, push_wrapped};

/// Which side of a column its texts keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Names, which may be cut where the terminal is narrow.
    Left,
    /// Lists of CPUs, which may be cut too.
    List,
    /// Numbers, which are never cut.
    Right,
}

enum Row {
    Cells {
        cells: Vec<(String, Style)>,
        /// What is written below the row if one of its names is cut.
        full: Option<String>,
    },
    Note(String),
    Heading(String),
}

/// A table under construction.
pub struct Table {
    columns: Vec<(Cow<'static, str>, Align)>,
    rows: Vec<Row>,
    /// Width of the longest cell of each column, its head apart.
    widest: Vec<usize>,
    /// The first to go where the table does not fit.
    lesser: Vec<&'static str>,
}

/// The columns that are printed, and how wide each is.
struct Layout(Vec<(usize, usize)>);

const INDENT: &str = "  ";
const GAP: &str = "  ";

/// Columns that are kept even where nothing fits.
const LEAST_COLUMNS: usize = 2;

/// A name is cut to this width before a column goes; and if none is left to go, to that.
const LEAST_NAME: usize = 12;
const LEAST_STUMP: usize = 6;

impl Table {
    /// A table with these column heads and no rows.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        let columns = columns.iter().map(|(head, align)| (Cow::Borrowed(*head), *align));
        Self::headed(columns.collect())
    }

    /// The same with heads that are made.
    pub fn headed(columns: Vec<(Cow<'static, str>, Align)>) -> Self {
        let widest = vec![0; columns.len()];
        Self { columns, rows: Vec::new(), widest, lesser: Vec::new() }
    }

    /// Names the columns that are left out, one after the other, where the table is too wide
    /// for the terminal. A column "ratio" goes with the one before it.
    pub fn lesser(mut self, columns: &[&'static str]) -> Self {
        self.lesser = columns.to_vec();
        self
    }

    /// Adds a row; it may be shorter than the head.
    pub fn row(&mut self, cells: Vec<(String, Style)>) {
        self.push(cells, None);
    }

    /// Adds a row whose names are written in full below it if they have to be cut.
    pub fn named_row(&mut self, cells: Vec<(String, Style)>, full: String) {
        self.push(cells, Some(full));
    }

    fn push(&mut self, cells: Vec<(String, Style)>, full: Option<String>) {
        for (widest, (text, _)) in self.widest.iter_mut().zip(&cells) {
            *widest = text.width().max(*widest);
        }
        self.rows.push(Row::Cells { cells, full });
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

    /// The table as lines of at most `width` columns: first names are cut, then lesser columns
    /// left out, then the last ones.
    pub fn render(&self, width: usize, paint: Paint) -> String {
        self.band(&self.fitting(width), width, paint, true)
    }

    /// The table with all of its columns: where they do not fit, the rest of them is a table
    /// below, which begins with the first `lead` columns again. Names are cut where they would
    /// take more than half of the width.
    pub fn render_whole(&self, lead: usize, width: usize, paint: Paint) -> String {
        let lead_fits = |longest: &usize| self.layout(0..lead, *longest).width() <= width / 2;
        let longest = (LEAST_STUMP..=width).rev().find(lead_fits).unwrap_or(LEAST_STUMP);
        let all = self.layout(0..self.columns.len(), longest);
        let (leading, mut rest) = all.0.split_at(lead.min(all.0.len()));
        let mut out = String::new();
        let mut is_first = true;
        while is_first || !rest.is_empty() {
            let mut count = rest.len();
            let with = |count: usize| Layout([leading, &rest[..count]].concat());
            while count > 1 && with(count).width() > width {
                count -= 1;
            }
            out.push_str(&self.band(&with(count), width, paint, is_first));
            rest = &rest[count..];
            is_first = false;
        }
        out
    }

    /// Whether the lesser columns are all left out at this width, or names have to be cut.
    pub fn is_squeezed(&self, width: usize) -> bool {
        self.layout(0..self.columns.len(), usize::MAX).width() > width
    }

    fn band(&self, layout: &Layout, width: usize, paint: Paint, notes: bool) -> String {
        let heads: Vec<_> = self
            .columns
            .iter()
            .map(|(head, _)| (head.clone().into_owned(), Style::Faint))
            .collect();
        let mut out = self.line(&heads, layout, paint);
        for row in &self.rows {
            match row {
                Row::Cells { cells, full } => {
                    out.push_str(&self.line(cells, layout, paint));
                    if let Some(full) = full.as_ref().filter(|_| notes && layout.cuts(cells)) {
                        note(&mut out, full, width, paint);
                    }
                }
                Row::Heading(text) => push_wrapped(&mut out, text, INDENT, INDENT.len(), width),
                Row::Note(text) if notes => note(&mut out, text, width, paint),
                Row::Note(_) => {}
            }
        }
        out
    }

    fn fitting(&self, width: usize) -> Layout {
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        let drops = iter::once(None).chain(self.lesser.iter().map(Some));
        for lesser in drops {
            if let Some(lesser) = lesser {
                self.leave_out(&mut kept, lesser);
            }
            if let Some(layout) = self.cut_to(&kept, LEAST_NAME, width) {
                return layout;
            }
        }
        loop {
            match self.cut_to(&kept, LEAST_STUMP, width) {
                Some(layout) => return layout,
                None if kept.len() > LEAST_COLUMNS => drop(kept.pop()),
                None => return self.layout(kept.iter().copied(), LEAST_STUMP),
            }
        }
    }

    fn leave_out(&self, kept: &mut Vec<usize>, name: &str) {
        let Some(at) = kept.iter().position(|column| self.columns[*column].0 == name) else {
            return;
        };
        kept.remove(at);
        while kept.get(at).is_some_and(|column| self.columns[*column].0 == "ratio") {
            kept.remove(at);
        }
    }

    /// The layout with names as long as the width allows, but not shorter than `least`.
    fn cut_to(&self, kept: &[usize], least: usize, width: usize) -> Option<Layout> {
        let at = |longest| self.layout(kept.iter().copied(), longest);
        let longest = at(usize::MAX).0.iter().map(|(_, wide)| *wide).max().unwrap_or(0);
        // No cell longer than the line fits, and a name may be as long as a file.
        let most = longest.min(width);
        let lengths = (least.min(most)..=most).rev();
        lengths.map(at).find(|layout| layout.width() <= width)
    }

    fn layout(&self, columns: impl IntoIterator<Item = usize>, longest_name: usize) -> Layout {
        let wide = |column: usize| {
            let (head, align) = &self.columns[column];
            let wide = self.widest[column];
            let wide = if *align == Align::Right { wide } else { wide.min(longest_name) };
            (column, wide.max(head.width()))
        };
        Layout(columns.into_iter().map(wide).collect())
    }

    fn line(&self, cells: &[(String, Style)], layout: &Layout, paint: Paint) -> String {
        let mut line = INDENT.to_owned();
        for (place, (column, room)) in layout.0.iter().enumerate() {
            let Some((text, style)) = cells.get(*column) else { continue };
            if place > 0 {
                line.push_str(GAP);
            }
            let text = cut(text, *room);
            let pad = " ".repeat(room.saturating_sub(text.width()));
            // Padding stays outside the escape sequences: a terminal would underline it
            // or cut it off.
            match self.columns[*column].1 {
                Align::Left => line.push_str(&format!("{}{pad}", paint.apply(&text, *style))),
                _ => line.push_str(&format!("{pad}{}", paint.apply(&text, *style))),
            }
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

impl Layout {
    fn width(&self) -> usize {
        let gaps = GAP.len() * self.0.len().saturating_sub(1);
        INDENT.len() + gaps + self.0.iter().map(|(_, wide)| wide).sum::<usize>()
    }

    fn cuts(&self, cells: &[(String, Style)]) -> bool {
        let is_cut = |(column, room): &(usize, usize)| {
            cells.get(*column).is_some_and(|(text, _)| text.width() > *room)
        };
        self.0.iter().any(is_cut)
    }
}

fn note(out: &mut String, text: &str, width: usize, paint: Paint) {
    let mut lines = String::new();
    push_wrapped(&mut lines, text, "", 0, width.saturating_sub(6));
    for line in lines.lines() {
        out.push_str(&format!("      {}\n", paint.apply(line, Style::Faint)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(texts: &[&str]) -> Vec<(String, Style)> {
        texts.iter().map(|text| ((*text).to_owned(), Style::Plain)).collect()
    }

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

    fn numbers() -> Table {
        let right = Align::Right;
        let heads = [("name", Align::Left), ("max", right), ("ratio", right), ("p99", right)];
        let mut table = Table::new(&heads).lesser(&["p99", "max"]);
        let cells = plain(&["a-name-of-twenty-six-signs", "1.000 ms", "1.00", "2.000 ms"]);
        table.named_row(cells, "in full: a-name-of-twenty-six-signs".to_owned());
        table
    }

    #[test]
    fn names_are_cut_before_columns_go() {
        let lines = |width: usize| {
            let text = numbers().render(width, Paint::off());
            assert!(text.lines().all(|line| line.width() <= width), "{width}: {text}");
            text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
        };
        let row = "a-name-of-twenty-six-signs  1.000 ms   1.00  2.000 ms";
        assert_eq!(lines(60)[1..], [row]);
        assert_eq!(lines(50)[1], "a-name-of-twenty-six…  1.000 ms   1.00  2.000 ms");
        assert_eq!(lines(50)[2], "in full: a-name-of-twenty-six-signs");
        assert_eq!(lines(40)[1], "a-name-of-twenty-six…  1.000 ms   1.00");
        assert_eq!(lines(26)[1], "a-name-of-twenty-six-si…");
        assert_eq!(lines(60)[0].split_whitespace().count(), 4);
    }

    #[test]
    fn a_whole_table_goes_on_below() {
        let text = numbers().render_whole(1, 46, Paint::off());
        let first: Vec<_> = text.lines().map(|line| line.split_whitespace().next()).collect();
        let name = Some("a-name-of-twenty-six…");
        assert_eq!(first, [Some("name"), name, Some("in"), Some("name"), name], "{text}");
        assert!(text.lines().all(|line| line.width() <= 46), "{text}");
        assert_eq!(numbers().render_whole(1, 80, Paint::off()).lines().count(), 2);
    }

    /// Every length of the name in turn would take minutes.
    #[test]
    fn a_name_as_long_as_a_file_is_cut_at_once() {
        let mut table = Table::new(&[("name", Align::Left), ("max", Align::Right)]);
        table.row(plain(&[&"x".repeat(200_000), "1.000 ms"]));
        let text = table.render(40, Paint::off());
        assert_eq!(text.lines().nth(1).map(UnicodeWidthStr::width), Some(40), "{text}");
    }
}
