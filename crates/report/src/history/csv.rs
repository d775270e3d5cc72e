//! A history as comma-separated values.

use std::fmt::Write as _;

use punctual_core::compare::Span;
use punctual_core::history::History;

/// A line for each kernel and cell, after a line of names; values in ns. What is not known is
/// empty.
#[must_use]
pub fn csv(history: &History) -> String {
    let mut out = String::from(
        "series,release,model,cell,boots,max_lowest_ns,max_median_ns,max_highest_ns,\
         p999_median_ns,avg_median_ns,min_lowest_ns,version\n",
    );
    for kernel in &history.kernels {
        for (key, spread) in history.cells.iter().zip(&kernel.cells) {
            let Some(spread) = spread else { continue };
            let whole = |span: Option<Span<i64>>, read: fn(Span<i64>) -> f64| {
                span.map_or_else(String::new, |span| read(span).to_string())
            };
            let fields = [
                kernel.series.clone(),
                kernel.release.clone(),
                kernel.model.as_str().to_owned(),
                key.clone(),
                spread.runs.to_string(),
                whole(spread.max_ns, |span| span.lowest as f64),
                whole(spread.max_ns, |span| span.median),
                whole(spread.max_ns, |span| span.highest as f64),
                whole(spread.p999_ns, |span| span.median),
                spread.avg_ns.map_or_else(String::new, |span| format!("{:.1}", span.median)),
                whole(spread.min_ns, |span| span.lowest as f64),
                kernel.version.clone(),
            ];
            let _ = writeln!(out, "{}", fields.map(|field| quoted(&field)).join(","));
        }
    }
    out
}

/// A field of RFC 4180.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        assert_eq!(quoted("wakeup @ none"), "wakeup @ none");
        assert_eq!(quoted("a,b \"c\""), "\"a,b \"\"c\"\"\"");
    }
}
