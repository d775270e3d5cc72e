//! A figure as PDF (1.4): vectors, text as text in embedded typefaces, one page of the
//! figure's size, for `\includegraphics`.

use std::fmt::Write as _;
use std::io::{self, Write};

use flate2::{Compression, write::ZlibEncoder};

use super::drawing::{Image, Label, Pen, Point, Shape};
use super::sheet::{Figure, Sheet, TYPE, WIDTH};
use super::theme::Colour;
use super::{raster, typeface};

/// Points in a unit of the figure.
const SCALE: f64 = 0.5;

/// Numbers of the objects that every file has; images follow.
const CATALOG: usize = 1;
const PAGES: usize = 2;
const PAGE: usize = 3;
const CONTENTS: usize = 4;
const INFO: usize = 5;
/// Each of two fonts is a dictionary, its descriptor and its file.
const FONTS: [usize; 2] = [6, 9];
const IMAGES: usize = 12;

impl Figure {
    /// The figure as a PDF file of one page of its size, 12.7 cm wide, with its typefaces
    /// embedded.
    ///
    /// # Errors
    /// Where the compressor refuses, which it does not for a buffer in memory.
    pub fn pdf(&self) -> io::Result<Vec<u8>> {
        // Equal figures give equal bytes: the file has no date.
        let sheet = Sheet::of(self);
        let mut page = Page { out: String::new(), above: sheet.above, images: Vec::new() };
        // The page's origin is at its lower left.
        let (width, height) = (WIDTH * SCALE, sheet.height() * SCALE);
        let _ = writeln!(page.out, "{} 0 0 {} 0 {} cm 1 j", c(SCALE), c(-SCALE), c(height));
        page.colour(Colour::Paper, false);
        let _ = writeln!(page.out, "0 0 {} {} re f", c(WIDTH), c(sheet.height()));
        for shape in &sheet.drawing.shapes {
            page.shape(shape);
        }
        let mut file =
            Objects { bytes: b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n".to_vec(), starts: Vec::new() };
        file.object(CATALOG, &format!("<</Type/Catalog/Pages {PAGES} 0 R>>"));
        file.object(PAGES, &format!("<</Type/Pages/Kids[{PAGE} 0 R]/Count 1>>"));
        let names = 0..page.images.len();
        let images: String = names.map(|i| format!("/I{i} {} 0 R", IMAGES + i)).collect();
        let [regular, bold] = FONTS;
        file.object(
            PAGE,
            &format!(
                "<</Type/Page/Parent {PAGES} 0 R/MediaBox[0 0 {} {}]/Contents {CONTENTS} 0 R/Resources\
                 <</Font<</F0 {regular} 0 R/F1 {bold} 0 R>>/XObject<<{images}>>>>>>",
                c(width),
                c(height)
            ),
        );
        file.stream(CONTENTS, "", page.out.as_bytes())?;
        file.object(INFO, &format!("<</Title {}/Producer(punctual)>>", title(&self.title)));
        for (number, bold) in FONTS.into_iter().zip([false, true]) {
            file.font(number, bold)?;
        }
        for (i, image) in page.images.iter().enumerate() {
            let palette: String = (0..raster::LEVELS)
                .flat_map(raster::colour)
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let entries = format!(
                "/Type/XObject/Subtype/Image/Width {}/Height {}/BitsPerComponent 8/Mask[0 0]\
                 /ColorSpace[/Indexed/DeviceRGB {}<{palette}>]",
                image.width,
                image.rows(),
                raster::LEVELS - 1
            );
            file.stream(IMAGES + i, &entries, &image.levels)?;
        }
        Ok(file.end())
    }
}

/// A text string of the file: UTF-16, which every reader knows.
fn title(text: &str) -> String {
    let digits: String = text.encode_utf16().map(|unit| format!("{unit:04x}")).collect();
    format!("<feff{digits}>")
}

/// A coordinate.
fn c(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The bytes of a file with the places of its objects, which are written in order.
struct Objects {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Objects {
    fn object(&mut self, number: usize, text: &str) {
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(format!("{number} 0 obj\n{text}\nendobj\n").as_bytes());
    }

    fn stream(&mut self, number: usize, entries: &str, content: &[u8]) -> io::Result<()> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content)?;
        let packed = encoder.finish()?;
        self.starts.push(self.bytes.len());
        let head = format!(
            "{number} 0 obj\n<<{entries}/Filter/FlateDecode/Length {}>>\nstream\n",
            packed.len()
        );
        self.bytes.extend_from_slice(head.as_bytes());
        self.bytes.extend_from_slice(&packed);
        self.bytes.extend_from_slice(b"\nendstream\nendobj\n");
        Ok(())
    }

    /// A TrueType font: its dictionary, descriptor and file.
    fn font(&mut self, number: usize, bold: bool) -> io::Result<()> {
        let (name, bytes) = if bold {
            ("Roboto-Bold", typeface::BOLD)
        } else {
            ("Roboto-Regular", typeface::REGULAR)
        };
        let widths = typeface::thousandths((32..=255).map(|byte| Some(decoded(byte))), bold);
        let widths: Vec<_> = widths.iter().map(|w| c(*w)).collect();
        self.object(
            number,
            &format!(
                "<</Type/Font/Subtype/TrueType/BaseFont/{name}/Encoding/WinAnsiEncoding/FirstChar 32\
                 /LastChar 255/Widths[{}]/FontDescriptor {} 0 R>>",
                widths.join(" "),
                number + 1
            ),
        );
        self.object(
            number + 1,
            &format!(
                "<</Type/FontDescriptor/FontName/{name}/Flags 32/FontBBox[-737 -271 1148 1056]\
                 /ItalicAngle 0/Ascent 928/Descent -244/CapHeight 711/StemV {}/FontFile2 {} 0 R>>",
                if bold { 140 } else { 90 },
                number + 2
            ),
        );
        self.stream(number + 2, &format!("/Length1 {}", bytes.len()), bytes)
    }

    fn end(mut self) -> Vec<u8> {
        let table = self.bytes.len();
        let mut text = format!("xref\n0 {}\n0000000000 65535 f \n", self.starts.len() + 1);
        for start in &self.starts {
            let _ = writeln!(text, "{start:010} 00000 n ");
        }
        let _ = write!(
            text,
            "trailer\n<</Size {}/Root {CATALOG} 0 R/Info {INFO} 0 R>>\nstartxref\n{table}\n%%EOF\n",
            self.starts.len() + 1
        );
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes
    }
}

/// Characters of WinAnsiEncoding that are not those of Latin 1 at their place.
const SPECIAL: [(u8, char); 9] = [
    (0x80, '€'),
    (0x85, '…'),
    (0x91, '‘'),
    (0x92, '’'),
    (0x93, '“'),
    (0x94, '”'),
    (0x95, '•'),
    (0x96, '–'),
    (0x97, '—'),
];

/// The byte of a character; a question mark for one that the encoding lacks.
fn encoded(character: char) -> u8 {
    let special = SPECIAL.iter().find(|(_, known)| *known == character).map(|(byte, _)| *byte);
    let same = u8::try_from(character).ok().filter(|byte| matches!(byte, 0x20..=0x7e | 0xa0..));
    special.or(same).unwrap_or(b'?')
}

fn decoded(byte: u8) -> char {
    let special = SPECIAL.iter().find(|(known, _)| *known == byte).map(|(_, c)| *c);
    special.unwrap_or(char::from(byte))
}

/// The operators of the page.
struct Page<'a> {
    out: String,
    above: f64,
    images: Vec<&'a Image>,
}

impl<'a> Page<'a> {
    fn colour(&mut self, colour: Colour, stroke: bool) {
        let operator = if stroke { "RG" } else { "rg" };
        let parts: Vec<_> =
            colour.light().iter().map(|byte| format!("{:.4}", f64::from(*byte) / 255.0)).collect();
        let _ = writeln!(self.out, "{} {operator}", parts.join(" "));
    }

    fn shape(&mut self, shape: &'a Shape) {
        match shape {
            Shape::Path { lines, closed, paint, .. } => {
                self.prepare(paint);
                for line in lines {
                    for (number, (x, y)) in line.iter().enumerate() {
                        let operator = if number == 0 { "m" } else { "l" };
                        let _ = writeln!(self.out, "{} {} {operator}", c(*x), c(*y + self.above));
                    }
                    if *closed {
                        self.out.push_str("h\n");
                    }
                }
                self.paint(paint);
            }
            Shape::Circle { at, radius, paint, .. } => {
                self.prepare(paint);
                self.circle(*at, *radius);
                self.paint(paint);
            }
            Shape::Text(label) => self.text(label),
            Shape::Image(image) => {
                let (w, h) = (image.right - image.left, image.bottom - image.top);
                let (x, y) = (image.left, image.bottom + self.above);
                // An image's first row is at the top of its square, and this page hangs down.
                let _ = writeln!(
                    self.out,
                    "q {} 0 0 {} {} {} cm /I{} Do Q",
                    c(w),
                    c(-h),
                    c(x),
                    c(y),
                    self.images.len()
                );
                self.images.push(image);
            }
        }
    }

    fn prepare(&mut self, paint: &Pen) {
        if let Some(colour) = paint.fill {
            self.colour(colour, false);
        }
        if let Some(colour) = paint.stroke {
            self.colour(colour, true);
            let dash: Vec<_> = paint.dash.iter().map(|d| c(*d)).collect();
            let _ = writeln!(self.out, "{} w [{}] 0 d", c(paint.width), dash.join(" "));
        }
    }

    fn paint(&mut self, paint: &Pen) {
        self.out.push_str(match (paint.fill, paint.stroke) {
            (Some(_), Some(_)) => "B\n",
            (Some(_), None) => "f\n",
            (None, Some(_)) => "S\n",
            (None, None) => "n\n",
        });
    }

    /// Four curves, each of which keeps to its quarter within 0.03 % of the radius.
    fn circle(&mut self, (x, y): Point, r: f64) {
        const K: f64 = 0.552_285;
        let y = y + self.above;
        let _ = writeln!(self.out, "{} {} m", c(x + r), c(y));
        let mut quarter = |a: f64, b: f64| {
            // From the angle of (a, b) to that a quarter further.
            let (p, q) = (-b, a);
            let points = [
                (x + r * (a + K * p), y + r * (b + K * q)),
                (x + r * (p + K * a), y + r * (q + K * b)),
                (x + r * p, y + r * q),
            ];
            for (px, py) in points {
                let _ = write!(self.out, "{} {} ", c(px), c(py));
            }
            self.out.push_str("c\n");
        };
        for (a, b) in [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)] {
            quarter(a, b);
        }
        self.out.push_str("h\n");
    }

    fn text(&mut self, label: &Label) {
        let bytes: Vec<u8> = label.text.chars().map(encoded).collect();
        let shown: String = bytes.iter().map(|byte| decoded(*byte)).collect();
        let width = typeface::width(&shown, TYPE, label.bold);
        let x = label.left(width);
        let y = label.baseline(TYPE) + self.above;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.colour(Colour::Paper, true);
        self.colour(label.colour, false);
        // First the halo, then the text itself. Only text stands upright on this page.
        let font = u8::from(label.bold);
        for mode in [1, 0] {
            let _ = writeln!(
                self.out,
                "BT /F{font} {} Tf {mode} Tr 3 w [] 0 d 1 0 0 -1 {} {} Tm <{digits}> Tj ET",
                c(TYPE),
                c(x),
                c(y)
            );
        }
    }
}
