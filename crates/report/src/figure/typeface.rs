//! The typeface of figures in files, and how much room a text takes.
//!
//! Roboto, regular and bold, by Google, under the Apache licence 2.0, reduced to Latin 1 and
//! some signs. A page is shown in the reader's typeface instead, which may be wider.

use std::sync::OnceLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

pub const REGULAR: &[u8] = include_bytes!("type/Roboto-Regular.ttf");
pub const BOLD: &[u8] = include_bytes!("type/Roboto-Bold.ttf");

/// Size of the type that figures are laid out for, units of a figure: that of narrow screens,
/// which is the largest.
pub const LARGEST: f64 = 19.0;
/// Half the height of capitals, and the reach above and below the baseline, as shares of the
/// size.
pub const HALF_CAPITAL: f64 = 0.35;
pub const ASCENT: f64 = 0.78;
pub const DESCENT: f64 = 0.22;
/// How much wider other typefaces are: `DejaVu Sans`, the widest of the usual ones, by this much.
const WIDER: f64 = 1.2;
/// Stands for characters that the typeface lacks. They may be as wide as they are high.
const MISSING: char = '\u{fffd}';

fn face(bold: bool) -> Option<&'static Face<'static>> {
    static FACES: OnceLock<[Option<Face<'static>>; 2]> = OnceLock::new();
    let faces = FACES.get_or_init(|| [REGULAR, BOLD].map(|bytes| Face::parse(bytes, 0).ok()));
    faces[usize::from(bold)].as_ref()
}

fn glyph(face: &Face<'_>, c: char) -> Option<GlyphId> {
    face.glyph_index(c)
}

/// Width of a character as a share of the size.
fn advance(face: &Face<'_>, c: char) -> f64 {
    match glyph(face, c) {
        Some(id) => {
            f64::from(face.glyph_hor_advance(id).unwrap_or(0)) / f64::from(face.units_per_em())
        }
        None => 1.0,
    }
}

/// Width of a text in the typeface of files.
pub fn width(text: &str, size: f64, bold: bool) -> f64 {
    face(bold).map_or(0.0, |face| text.chars().map(|c| advance(face, c)).sum::<f64>() * size)
}

/// Width that a text may take in any usual typeface.
pub fn room(text: &str, size: f64, bold: bool) -> f64 {
    width(text, size, bold) * WIDER
}

/// The text, or as much of its beginning as has room in the largest type, with an ellipsis.
pub fn cut(text: &str, within: f64) -> String {
    cut_at(text, within, LARGEST, true)
}

fn cut_at(text: &str, within: f64, size: f64, bold: bool) -> String {
    if room(text, size, bold) <= within {
        return text.to_owned();
    }
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let fits = |end: &usize| room(&format!("{}…", &text[..*end]), size, bold) <= within;
    let end = ends.partition_point(fits).checked_sub(1).map_or(0, |i| ends[i]);
    format!("{}…", text[..end].trim_end())
}

/// The text in lines that have room in bold type of a size, broken at spaces and after commas;
/// the last of `most` lines is cut.
pub fn wrapped(text: &str, within: f64, size: f64, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find([' ', ',']).map_or(rest.len(), |at| at + 1);
        let (word, after) = rest.split_at(end);
        let line = lines.last().map_or("", String::as_str);
        let longer = format!("{line}{word}");
        if line.is_empty() || room(longer.trim_end(), size, true) <= within {
            lines.pop();
            lines.push(longer);
        } else if lines.len() < most {
            lines.push(word.to_owned());
        } else {
            let longer = format!("{line}{rest}");
            lines.pop();
            lines.push(longer);
            break;
        }
        rest = after;
    }
    lines.iter().map(|line| cut_at(line.trim_end(), within, size, true)).collect()
}

/// Draws a text from the origin to the right, in units of the figure, downward.
pub fn outline(text: &str, size: f64, bold: bool, to: &mut impl OutlineBuilder) {
    let Some(face) = face(bold) else { return };
    let scale = size / f64::from(face.units_per_em());
    let mut x = 0.0;
    for c in text.chars() {
        let shown = glyph(face, c).or_else(|| glyph(face, MISSING));
        if let Some(id) = shown {
            face.outline_glyph(id, &mut Moved { to, x, scale });
        }
        x += advance(face, c) * size;
    }
}

/// Moves outlines from the units of a typeface to their place.
struct Moved<'a, B> {
    to: &'a mut B,
    x: f64,
    scale: f64,
}

impl<B> Moved<'_, B> {
    #[allow(clippy::cast_possible_truncation, reason = "places on paper have a few digits")]
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        ((self.x + f64::from(x) * self.scale) as f32, (-f64::from(y) * self.scale) as f32)
    }
}

impl<B: OutlineBuilder> OutlineBuilder for Moved<'_, B> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.to.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.to.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.to.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.to.curve_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.to.close();
    }
}

/// Widths of the characters of a font in PDF, thousandths of the size.
pub fn thousandths(chars: impl Iterator<Item = Option<char>>, bold: bool) -> Vec<f64> {
    let width = |c: Option<char>| {
        let (c, face) = (c?, face(bold)?);
        Some(advance(face, c) * 1000.0)
    };
    chars.map(|c| width(c).unwrap_or(0.0).round()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_weights_have_what_figures_are_written_with() {
        for bold in [false, true] {
            let face = face(bold).unwrap();
            for c in (' '..='~').chain("·…–—µ≤≥−\u{fffd}".chars()) {
                assert!(face.glyph_index(c).is_some(), "{c}");
            }
        }
        assert!(width("m", 10.0, false) > width("i", 10.0, false));
        assert!((width("max", 10.0, true) - width("max", 10.0, false)).abs() > 0.01);
    }

    #[test]
    fn texts_are_cut_and_broken_by_their_width() {
        let narrow = "i".repeat(30);
        assert_eq!(cut(&narrow, 200.0), narrow);
        let wide = cut(&"W".repeat(30), 200.0);
        assert!(wide.ends_with('…') && room(&wide, LARGEST, true) <= 200.0, "{wide}");
        assert_eq!(cut("abc", 0.0), "…");
        let text = "wakeup:threads=per-cpu,policy=fifo · process:jobs=1,tree=2";
        let lines = wrapped(text, 400.0, LARGEST, 3);
        assert!(lines.len() > 1 && lines.concat().replace(' ', "") == text.replace(' ', ""));
        assert!(lines.iter().all(|line| room(line, LARGEST, true) <= 400.0), "{lines:?}");
        let cut = wrapped(text, 250.0, LARGEST, 2);
        assert!(cut.len() == 2 && cut[1].ends_with('…'), "{cut:?}");
        assert_eq!(wrapped("", 100.0, LARGEST, 2), [""]);
    }
}
