//! A small palette image as PNG, in a `data:` URI.

use std::io;

use super::drawing::Pen;
use super::theme::Colour;

/// Levels of the palette. Level 0 is transparent: an empty place shows the page, dark or
/// light.
pub const LEVELS: u8 = 64;

/// Colours from the lowest count to the highest: every eighth of the first three quarters of
/// viridis (S. van der Walt, N. Smith, matplotlib 1.5, CC0), from its light part to its dark end.
/// Lightness falls all the way, so grey paper and any eye keep the order.
const STOPS: [[f64; 3]; 7] = [
    [94.0, 201.0, 98.0],
    [40.0, 174.0, 128.0],
    [33.0, 145.0, 140.0],
    [44.0, 114.0, 142.0],
    [59.0, 82.0, 139.0],
    [71.0, 45.0, 123.0],
    [68.0, 1.0, 84.0],
];

/// The colour of a level from 1 to `LEVELS - 1`.
#[must_use]
pub fn colour(level: u8) -> [u8; 3] {
    let last = (STOPS.len() - 1) as f64;
    let place = f64::from(level.saturating_sub(1)) / f64::from(LEVELS - 2) * last;
    let index = place.floor().min(last - 1.0);
    let part = place - index;
    let stop = |i: f64| {
        STOPS.iter().enumerate().find(|(k, _)| *k as f64 == i).map_or([0.0; 3], |(_, s)| *s)
    };
    let (a, b) = (stop(index), stop(index + 1.0));
    let mut rgb = [0; 3];
    for ((out, a), b) in rgb.iter_mut().zip(a).zip(b) {
        *out = byte(a + (b - a) * part);
    }
    rgb
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and colours fit in a byte"
)]
fn byte(value: f64) -> u8 {
    value.round() as u8
}

/// The paint of a level in a legend.
#[must_use]
pub fn ramp(level: u8) -> Pen {
    Pen::area("ramp", Colour::Ramp(colour(level)))
}

/// The image as a `data:image/png;base64,` URI. `pixels` are levels, row by row
/// from the top, `width` in each row.
///
/// # Errors
/// Where the encoder refuses: a width of zero, or pixels that do not fill rows.
pub fn data_uri(pixels: &[u8], width: usize) -> io::Result<String> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "no whole rows of pixels");
    let rows = pixels.len().checked_div(width).ok_or_else(invalid)?;
    let width = u32::try_from(width).map_err(|_| invalid())?;
    let height = u32::try_from(rows).map_err(|_| invalid())?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Balanced);
    let palette: Vec<u8> = (0..LEVELS).flat_map(colour).collect();
    encoder.set_palette(palette);
    encoder.set_trns(vec![0_u8]);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(format!("data:image/png;base64,{}", base64(&file)))
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            if i <= chunk.len() {
                let digit = word >> (18 - 6 * i) & 63;
                out.push(char::from(DIGITS[digit as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_agrees_with_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn the_palette_runs_from_the_first_stop_to_the_last() {
        assert_eq!(colour(1), [94, 201, 98]);
        assert_eq!(colour(LEVELS - 1), [68, 1, 84]);
    }

    #[test]
    fn images_without_whole_rows_are_refused() {
        assert!(data_uri(&[1, 2, 3], 2).is_err());
        assert!(data_uri(&[], 0).is_err());
        assert!(data_uri(&[1, 2, 3, 4], 2).unwrap().starts_with("data:image/png;base64,iVBOR"));
    }
}
