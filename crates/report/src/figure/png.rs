//! A figure as PNG, two pixels a unit, on white.

use std::io;

use ttf_parser::OutlineBuilder;
use zeno::{Cap, Command, Fill, Join, Mask, Stroke, Style, Vector};

use super::drawing::{Image, Label, Pen, Point, Shape};
use super::sheet::{Figure, Sheet, TYPE, WIDTH};
use super::theme::Colour;
use super::{raster, typeface};

/// Pixels in a unit of the figure.
const SCALE: f64 = 2.0;

impl Figure {
    /// The figure as a PNG file, 1440 pixels wide, on white.
    ///
    /// # Errors
    /// Where the encoder refuses, which it does not for a buffer in memory.
    pub fn png(&self) -> io::Result<Vec<u8>> {
        let sheet = Sheet::of(self);
        let mut canvas = Canvas::new(WIDTH, sheet.height(), sheet.above);
        for shape in &sheet.drawing.shapes {
            canvas.shape(shape);
        }
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, canvas.width, canvas.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Balanced);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(canvas.pixels.as_flattened())?;
        writer.finish()?;
        Ok(file)
    }
}

struct Canvas {
    width: u32,
    height: u32,
    /// Units of the figure above its origin.
    above: f64,
    pixels: Vec<[u8; 3]>,
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "sizes of figures in pixels fit, and `as` saturates"
)]
impl Canvas {
    fn new(width: f64, height: f64, above: f64) -> Self {
        let (width, height) = ((width * SCALE).ceil() as u32, (height * SCALE).ceil() as u32);
        let pixels = vec![Colour::Paper.light(); width as usize * height as usize];
        Self { width, height, above, pixels }
    }

    fn place(&self, (x, y): Point) -> Vector {
        Vector::new((x * SCALE) as f32, ((y + self.above) * SCALE) as f32)
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Path { lines, closed, paint, .. } => {
                for line in lines.chunks(if paint.fill.is_some() { lines.len() } else { 1 }) {
                    let path = self.polylines(line, *closed);
                    self.paint(&path, paint);
                }
            }
            Shape::Circle { at, radius, paint, .. } => {
                let path = self.circle(*at, *radius);
                self.paint(&path, paint);
            }
            Shape::Text(label) => self.text(label),
            Shape::Image(image) => self.image(image),
        }
    }

    fn polylines(&self, lines: &[Vec<Point>], closed: bool) -> Vec<Command> {
        let mut path = Vec::new();
        for line in lines {
            for (number, point) in line.iter().enumerate() {
                let at = self.place(*point);
                path.push(if number == 0 { Command::MoveTo(at) } else { Command::LineTo(at) });
            }
            if closed {
                path.push(Command::Close);
            }
        }
        path
    }

    fn circle(&self, (x, y): Point, radius: f64) -> Vec<Command> {
        const CORNERS: u32 = 32;
        let corner = |i: u32| {
            let angle = f64::from(i) / f64::from(CORNERS) * std::f64::consts::TAU;
            (x + radius * angle.cos(), y + radius * angle.sin())
        };
        self.polylines(&[(0..CORNERS).map(corner).collect()], true)
    }

    fn paint(&mut self, path: &[Command], paint: &Pen) {
        if let Some(colour) = paint.fill {
            self.fill(path, Style::Fill(Fill::NonZero), colour);
        }
        if let Some(colour) = paint.stroke {
            let dashes: Vec<f32> = paint.dash.iter().map(|d| (d * SCALE) as f32).collect();
            let mut stroke = Stroke::new((paint.width * SCALE) as f32);
            stroke.join(Join::Round).cap(Cap::Butt);
            if !dashes.is_empty() {
                stroke.dash(&dashes, 0.0);
            }
            self.fill(path, Style::Stroke(stroke), colour);
        }
    }

    fn fill(&mut self, path: &[Command], style: Style<'_>, colour: Colour) {
        let (mask, placed) = Mask::new(path).style(style).render();
        let width = placed.width as usize;
        if width == 0 {
            return;
        }
        let colour = colour.light();
        for (row, coverage) in mask.chunks(width).enumerate() {
            let y = i64::from(placed.top) + row as i64;
            for (column, share) in coverage.iter().enumerate() {
                let x = i64::from(placed.left) + column as i64;
                self.blend(x, y, colour, *share);
            }
        }
    }

    fn blend(&mut self, x: i64, y: i64, colour: [u8; 3], share: u8) {
        let inside =
            (0..i64::from(self.width)).contains(&x) && (0..i64::from(self.height)).contains(&y);
        if share == 0 || !inside {
            return;
        }
        let at = y as usize * self.width as usize + x as usize;
        if let Some(pixel) = self.pixels.get_mut(at) {
            for (below, above) in pixel.iter_mut().zip(colour) {
                let mixed = u32::from(*below) * (255 - u32::from(share))
                    + u32::from(above) * u32::from(share);
                *below = ((mixed + 127) / 255) as u8;
            }
        }
    }

    fn text(&mut self, label: &Label) {
        let width = typeface::width(&label.text, TYPE, label.bold);
        let left = label.left(width);
        let at = self.place((left, label.baseline(TYPE)));
        let mut glyphs = Glyphs { path: Vec::new(), at };
        typeface::outline(&label.text, TYPE * SCALE, label.bold, &mut glyphs);
        let mut halo = Stroke::new((3.0 * SCALE) as f32);
        halo.join(Join::Round);
        self.fill(&glyphs.path, Style::Stroke(halo), Colour::Paper);
        self.fill(&glyphs.path, Style::Fill(Fill::NonZero), label.colour);
    }

    fn image(&mut self, image: &Image) {
        let from = self.place((image.left, image.top));
        let to = self.place((image.right, image.bottom));
        let (rows, width) = (image.rows() as f64, image.width as f64);
        for y in from.y.round() as i64..to.y.round() as i64 {
            let row =
                ((y as f64 + 0.5 - f64::from(from.y)) / f64::from(to.y - from.y) * rows) as usize;
            for x in from.x.round() as i64..to.x.round() as i64 {
                let column = ((x as f64 + 0.5 - f64::from(from.x)) / f64::from(to.x - from.x)
                    * width) as usize;
                let level = image.levels.get(row * image.width + column).copied().unwrap_or(0);
                if level > 0 && column < image.width {
                    self.blend(x, y, raster::colour(level), 255);
                }
            }
        }
    }
}

/// Outlines of glyphs as a path that begins at a place.
struct Glyphs {
    path: Vec<Command>,
    at: Vector,
}

impl Glyphs {
    fn point(&self, x: f32, y: f32) -> Vector {
        Vector::new(self.at.x + x, self.at.y + y)
    }
}

impl OutlineBuilder for Glyphs {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.push(Command::MoveTo(self.point(x, y)));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.push(Command::LineTo(self.point(x, y)));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.path.push(Command::QuadTo(self.point(x1, y1), self.point(x, y)));
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let (a, b, c) = (self.point(x1, y1), self.point(x2, y2), self.point(x, y));
        self.path.push(Command::CurveTo(a, b, c));
    }

    fn close(&mut self) {
        self.path.push(Command::Close);
    }
}
