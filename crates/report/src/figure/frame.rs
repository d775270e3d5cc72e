//! The rectangle that a figure draws in, its axes and the lines across it.

use maud::{Markup, html};

use super::svg::{WIDTH, shortened};

/// A plotting area, in units of the figure.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

/// Room for labels such as `100 us` in the large type of narrow screens.
pub const LEFT: f64 = 74.0;
/// Right end of every plotting area.
pub const RIGHT: f64 = WIDTH - 16.0;
/// Room for a label such as `deadline 200 us` in the large type of narrow screens.
const LABEL_ROOM: f64 = 175.0;
/// Top of the first plotting area: below the title and the axis' name.
pub const TOP: f64 = 54.0;

impl Frame {
    /// An area of this height at the usual place.
    pub fn standard(height: f64) -> Self {
        Self { left: LEFT, right: RIGHT, top: TOP, bottom: TOP + height }
    }

    /// The border.
    pub fn border(&self) -> Markup {
        html! {
            rect class="frame" x=(n(self.left)) y=(n(self.top))
                width=(n(self.right - self.left)) height=(n(self.bottom - self.top)) {}
        }
    }

    /// Horizontal axis: grid lines, labels and the axis' name below.
    pub fn x_axis(&self, ticks: &[(f64, Option<String>)], name: &str) -> Markup {
        html! {
            @for (x, label) in ticks {
                path class=(grid(label)) d=(format!("M{} {}V{}", n(*x), n(self.top), n(self.bottom))) {}
                @if let Some(label) = label {
                    // A label in the middle of the last tick would be cut by the edge.
                    @let cut = x + 34.0 > WIDTH;
                    @let (x, anchor) = if cut { (WIDTH - 2.0, "end") } else { (*x, "middle") };
                    text class="soft tick" x=(n(x)) y=(n(self.bottom + 20.0)) text-anchor=(anchor) { (label) }
                }
            }
            text class="soft" x=(n(self.right)) y=(n(self.bottom + 42.0)) text-anchor="end" { (name) }
        }
    }

    /// Vertical axis: grid lines, labels and the axis' name above its upper end.
    pub fn y_axis(&self, ticks: &[(f64, Option<String>)], name: &str) -> Markup {
        html! {
            @for (y, label) in ticks {
                path class=(grid(label)) d=(format!("M{} {}H{}", n(self.left), n(*y), n(self.right))) {}
                @if let Some(label) = label {
                    text class="soft" x=(n(self.left - 6.0)) y=(n(*y)) dy="0.35em" text-anchor="end" { (label) }
                }
            }
            text class="soft" x="4" y=(n(self.top - 10.0)) { (name) }
        }
    }

    /// A remark above the right end, next to the name of the vertical axis, cut to
    /// what fits in the large type of narrow screens.
    pub fn note(&self, text: &str) -> Markup {
        html! {
            text class="soft" x=(n(self.right)) y=(n(self.top - 10.0)) text-anchor="end" { (shortened(text, 64)) }
        }
    }

    /// A vertical line with its label on its right, away from the samples, or on
    /// its left if there is no room on the right. `row` keeps labels of several lines apart.
    pub fn vertical(&self, x: f64, class: &str, label: &str, row: f64) -> Markup {
        let (anchor, shift) =
            if x + LABEL_ROOM > self.right { ("end", -5.0) } else { ("start", 5.0) };
        html! {
            path class=(class) d=(format!("M{} {}V{}", n(x), n(self.top), n(self.bottom))) {}
            text class=(format!("halo {}", text_class(class))) x=(n(x + shift)) y=(n(self.top + 15.0 + 22.0 * row))
                text-anchor=(anchor) { (label) }
        }
    }

    /// A horizontal line with its label above its right end.
    pub fn horizontal(&self, y: f64, class: &str, label: &str) -> Markup {
        html! {
            path class=(class) d=(format!("M{} {}H{}", n(self.left), n(y), n(self.right))) {}
            text class=(format!("halo {}", text_class(class))) x=(n(self.right - 5.0)) y=(n(y - 5.0))
                text-anchor="end" { (label) }
        }
    }

    /// The shaded band of an axis for latencies of zero and below.
    pub fn band(&self, x: (f64, f64), y: (f64, f64)) -> Markup {
        html! {
            rect class="band" x=(n(x.0.min(x.1))) y=(n(y.0.min(y.1)))
                width=(n((x.1 - x.0).abs())) height=(n((y.1 - y.0).abs())) {}
        }
    }
}

fn grid(label: &Option<String>) -> &'static str {
    if label.is_some() { "grid" } else { "fine" }
}

fn text_class(line: &str) -> &'static str {
    if line == "deadline" { "deadlinetext" } else { "maxtext" }
}

/// A coordinate with a tenth of a unit: finer than any screen shows.
pub fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// A count as a tick is labelled: `1`, `100`, `10 k`, `1 M`.
pub fn count_label(count: f64) -> String {
    let (value, unit) = match count {
        v if v >= 0.999e12 => (v / 1e12, " T"),
        v if v >= 0.999e9 => (v / 1e9, " G"),
        v if v >= 0.999e6 => (v / 1e6, " M"),
        v if v >= 9.99e3 => (v / 1e3, " k"),
        v => (v, ""),
    };
    format!("{value:.0}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(n(12.04), "12");
        assert_eq!(n(-0.26), "-0.3");
        for (count, text) in [(1.0, "1"), (1e3, "1000"), (1e4, "10 k"), (2e6, "2 M"), (1e9, "1 G")]
        {
            assert_eq!(count_label(count), text);
        }
    }
}
