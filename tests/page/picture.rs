//! Pictures, and whether something is drawn in them.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// A part of a picture. px.
#[derive(Debug, Clone)]
pub struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// What an area looks like.
#[derive(Debug)]
pub struct Look {
    /// How many colours there are.
    pub colours: usize,
    /// How many of them are no grey.
    pub chromatic: usize,
    /// Share of the pixels that are not of the most frequent colour.
    pub drawn: f64,
}

pub struct Picture {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    pub fn read(path: &Path) -> Self {
        let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut decoder = png::Decoder::new(BufReader::new(file));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let samples = info.color_type.samples();
        let pixel = |p: &[u8]| if samples < 3 { [p[0]; 3] } else { [p[0], p[1], p[2]] };
        let pixels = bytes[..info.buffer_size()].chunks_exact(samples).map(pixel).collect();
        Self { width: info.width as usize, pixels }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.pixels.len() / self.width
    }

    /// The mean colour of each of `columns` times `rows` fields that the picture is divided into.
    pub fn fields(&self, columns: usize, rows: usize) -> Vec<[f64; 3]> {
        let mut sums = vec![([0.0; 3], 0.0); columns * rows];
        let height = self.height();
        for (number, pixel) in self.pixels.iter().enumerate() {
            let (x, y) = (number % self.width, number / self.width);
            let (sum, count) = &mut sums[y * rows / height * columns + x * columns / self.width];
            sum.iter_mut().zip(pixel).for_each(|(sum, byte)| *sum += f64::from(*byte));
            *count += 1.0;
        }
        sums.iter().map(|(sum, count): &([f64; 3], f64)| sum.map(|v| v / count.max(1.0))).collect()
    }

    pub fn whole(&self) -> Area {
        let number = |n: usize| f64::from(u32::try_from(n).unwrap());
        let height = self.pixels.len() / self.width;
        Area { x: 0.0, y: 0.0, width: number(self.width), height: number(height) }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "pixels of a page; a float cast saturates"
    )]
    pub fn look(&self, area: &Area) -> Look {
        let (left, top) = (area.x as usize, area.y as usize);
        let (wide, high) = (area.width as usize, area.height as usize);
        let mut counts: HashMap<[u8; 3], usize> = HashMap::new();
        for row in self.pixels.chunks_exact(self.width).skip(top).take(high) {
            for pixel in row.iter().skip(left).take(wide) {
                *counts.entry(*pixel).or_default() += 1;
            }
        }
        let all: usize = counts.values().sum();
        let most = counts.values().max().copied().unwrap_or(0);
        let coloured = |[r, g, b]: &&[u8; 3]| r.max(g).max(b) - r.min(g).min(b) > 40;
        Look {
            colours: counts.len(),
            chromatic: counts.keys().filter(coloured).count(),
            drawn: (all - most) as f64 / all.max(1) as f64,
        }
    }

    /// Brightness of a pixel, 0 to 255.
    pub fn brightness_at(&self, x: usize, y: usize) -> u8 {
        let [r, g, b] = self.pixels[y * self.width + x];
        r.max(g).max(b) / 2 + r.min(g).min(b) / 2
    }
}
