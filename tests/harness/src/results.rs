//! Results of long tests, as text that is kept.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Prints a result and adds it to the file that `RESULTS` names, if it is set.
pub fn keep(text: &str) {
    println!("{text}");
    if let Some(path) = std::env::var_os("RESULTS") {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| writeln!(file, "{text}\n")).unwrap();
    }
}

/// Counts in rows and columns, with their sums.
#[derive(Debug)]
pub struct Tally<const N: usize> {
    title: String,
    columns: [&'static str; N],
    rows: Vec<(String, [u64; N])>,
}

impl<const N: usize> Tally<N> {
    /// Without rows.
    pub fn new(title: &str, columns: [&'static str; N]) -> Self {
        Self { title: title.to_owned(), columns, rows: Vec::new() }
    }

    /// Adds to a row, which is made if it is not there.
    pub fn add(&mut self, row: &str, numbers: [u64; N]) {
        let at = self.rows.iter().position(|(name, _)| name == row).unwrap_or_else(|| {
            self.rows.push((row.to_owned(), [0; N]));
            self.rows.len() - 1
        });
        self.rows[at].1.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
    }

    /// Rows in the order of their names.
    pub fn sorted(mut self) -> Self {
        self.rows.sort();
        self
    }

    /// The sum of each column.
    pub fn sums(&self) -> [u64; N] {
        std::array::from_fn(|column| self.rows.iter().map(|(_, numbers)| numbers[column]).sum())
    }

    /// The table, with a row of sums; no number where nothing was counted.
    pub fn text(&self) -> String {
        let names = self.rows.iter().map(|(name, _)| name.len());
        let width = names.chain([self.title.len()]).max().unwrap_or(0);
        let mut text = format!("{:<width$}", self.title);
        self.columns.iter().for_each(|name| write!(text, "  {name:>5}").unwrap());
        for (name, numbers) in self.rows.iter().chain([&("all".to_owned(), self.sums())]) {
            write!(text, "\n{name:<width$}").unwrap();
            for (number, column) in numbers.iter().zip(self.columns) {
                let shown = if *number > 0 { number.to_string() } else { ".".to_owned() };
                let width = column.len().max(5);
                write!(text, "  {shown:>width$}").unwrap();
            }
        }
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}
