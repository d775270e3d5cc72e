//! The colours of figures and pages, once: as literal values for files and paper, and as
//! properties that follow the reader's light or dark scheme for pages.

use std::fmt::Write as _;

/// What a colour stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// The ground.
    Paper,
    /// Areas on the ground.
    Panel,
    /// Text, and lines that must be seen first.
    Text,
    /// Axes and their labels.
    Soft,
    /// Grid lines.
    Grid,
    /// What missed its deadline, and nothing else.
    Late,
    /// Measured values.
    Data,
    /// Measured values of less weight.
    Minor,
    /// Deadlines.
    Deadline,
    /// One of several curves.
    Curve(usize),
    /// One of several areas that text is written on.
    Tint(usize),
    /// A step of the ramp of counts.
    Ramp([u8; 3]),
}

/// Name, light and dark value of every property. Names that no [`Colour`] has are the page's.
const COLOURS: [(&str, u32, u32); 12] = [
    ("bg", 0xff_ffff, 0x14_181d),
    ("panel", 0xf4_f6f9, 0x1d_232b),
    ("ink", 0x1b_2027, 0xe6_e9ee),
    ("soft", 0x56_6272, 0xa3_afbd),
    ("grid", 0xdb_e0e7, 0x34_3d48),
    ("max", 0xc4_290f, 0xff_7b66),
    ("avg", 0x2b_6cb0, 0x6c_b0f5),
    ("min", 0x85_92a1, 0x8b_98a8),
    ("deadline", 0x7b_2fb5, 0xc7_9bff),
    ("pass", 0x16_733a, 0x5f_d08a),
    ("fail", 0xb3_200b, 0xff_8a75),
    ("doubt", 0x8a_5a00, 0xe9_b949),
];

/// Light and dark colours of curves. Found by a random search for the largest smallest
/// distance (CIE 1976) between any two of them and to [`Colour::Late`], as seen with normal
/// vision, deuteranopia and protanopia (Machado, Oliveira, Fernandes 2009), with a contrast of
/// at least 2.9 to white and 4 to the dark ground.
pub const CURVES: [(u32, u32); 8] = [
    (0x00_4585, 0x54_6af4),
    (0x00_ae4f, 0xc0_9000),
    (0x65_0044, 0x75_ffb0),
    (0xe9_5fe0, 0xd8_9bcb),
    (0x39_755c, 0x10_867b),
    (0x4d_2b10, 0x00_abfc),
    (0xb6_8aaa, 0xde_ff58),
    (0x30_1192, 0xd9_f9f4),
];

/// Light and dark colours of areas that text is written on: as far from each other and from the
/// grey of ordinary areas as [`CURVES`] are, with a contrast of at least 5 to the text.
pub const TINTS: [(u32, u32); 3] =
    [(0xf7_dc5f, 0x6e_6200), (0x8f_b4f5, 0x2c_4cc0), (0xdb_a254, 0x5c_2306)];

impl Colour {
    fn property(self) -> usize {
        match self {
            Self::Paper => 0,
            Self::Panel => 1,
            Self::Text => 2,
            Self::Soft => 3,
            Self::Grid => 4,
            Self::Late => 5,
            Self::Data => 6,
            Self::Minor => 7,
            Self::Deadline => 8,
            Self::Curve(_) | Self::Tint(_) | Self::Ramp(_) => 0,
        }
    }

    /// The value on white paper.
    pub fn light(self) -> [u8; 3] {
        match self {
            Self::Ramp(rgb) => rgb,
            Self::Curve(number) => rgb(CURVES[number % CURVES.len()].0),
            Self::Tint(number) => rgb(TINTS[number % TINTS.len()].0),
            _ => rgb(COLOURS[self.property()].1),
        }
    }

    /// `#rrggbb` on white paper.
    pub fn literal(self) -> String {
        let [r, g, b] = self.light();
        format!("#{r:02x}{g:02x}{b:02x}")
    }

    /// The name of its property; none for a colour that is the same in every scheme.
    pub fn name(self) -> Option<String> {
        match self {
            Self::Ramp(_) => None,
            Self::Curve(number) => Some(format!("s{}", number % CURVES.len())),
            Self::Tint(number) => Some(format!("t{}", number % TINTS.len())),
            _ => Some(COLOURS[self.property()].0.to_owned()),
        }
    }
}

fn rgb(value: u32) -> [u8; 3] {
    let [_, r, g, b] = value.to_be_bytes();
    [r, g, b]
}

/// The style sheet of figures in a page: the properties in both schemes, and two classes for
/// each, `f-NAME` to fill and `s-NAME` to stroke.
pub fn style() -> String {
    let curves = CURVES.iter().enumerate();
    let tints = TINTS.iter().enumerate();
    let all: Vec<(String, u32, u32)> = COLOURS
        .iter()
        .map(|(name, light, dark)| ((*name).to_owned(), *light, *dark))
        .chain(curves.map(|(i, (light, dark))| (format!("s{i}"), *light, *dark)))
        .chain(tints.map(|(i, (light, dark))| (format!("t{i}"), *light, *dark)))
        .collect();
    let (mut light, mut dark, mut classes) = (String::new(), String::new(), String::new());
    for (name, on_light, on_dark) in &all {
        let _ = write!(light, "--{name}:#{on_light:06x};");
        let _ = write!(dark, "--{name}:#{on_dark:06x};");
        let _ = write!(classes, ".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}");
    }
    format!(
        ":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}\
         .ramp{{{DARK_RAMP}}}}}\n{classes}\n{}",
        include_str!("style.css")
    )
}

/// Turns light to dark and keeps the hue: few samples are close to the ground in either scheme.
const DARK_RAMP: &str = "filter:invert(1) hue-rotate(180deg)";

#[cfg(test)]
mod tests {
    use super::super::raster;
    use super::*;

    type Rgb = [f64; 3];

    /// Full deuteranopia and protanopia, for linear RGB: G. M. Machado, M. M. Oliveira,
    /// L. A. F. Fernandes, "A Physiologically-based Model for Simulation of Color Vision
    /// Deficiency", IEEE TVCG 15 (6), 2009, table of severity 1.0.
    const EYES: [[Rgb; 3]; 3] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
    ];

    fn times(matrix: &[Rgb; 3], value: Rgb) -> Rgb {
        matrix.map(|row| row.iter().zip(value).map(|(a, b)| a * b).sum())
    }

    /// sRGB (IEC 61966-2-1) to linear light.
    fn linear(rgb: [u8; 3]) -> Rgb {
        rgb.map(|byte| {
            let c = f64::from(byte) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn luminance(rgb: [u8; 3]) -> f64 {
        let [r, g, b] = linear(rgb);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    /// Contrast as in WCAG 2.
    fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// CIE 1976 L*a*b* with D65, of what an eye sees.
    fn lab(rgb: [u8; 3], eye: &[Rgb; 3]) -> Rgb {
        const XYZ: [Rgb; 3] = [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ];
        let seen = times(eye, linear(rgb)).map(|v| v.clamp(0.0, 1.0));
        let [x, y, z] = times(&XYZ, seen);
        let f = |t: f64| {
            if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 }
        };
        let (x, y, z) = (f(x / 0.95047), f(y), f(z / 1.08883));
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn distance(a: [u8; 3], b: [u8; 3], eye: &[Rgb; 3]) -> f64 {
        let (a, b) = (lab(a, eye), lab(b, eye));
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn curves_can_be_told_apart_by_any_eye_on_either_ground() {
        let light: Vec<_> = CURVES.iter().map(|(light, _)| rgb(*light)).collect();
        let dark: Vec<_> = CURVES.iter().map(|(_, dark)| rgb(*dark)).collect();
        let [_, paper_light, paper_dark] = [0, COLOURS[0].1, COLOURS[0].2];
        let [_, late_light, late_dark] = [0, COLOURS[5].1, COLOURS[5].2];
        for (colours, paper, late, least) in
            [(light, paper_light, late_light, 2.9), (dark, paper_dark, late_dark, 4.0)]
        {
            for (i, colour) in colours.iter().enumerate() {
                assert!(contrast(*colour, rgb(paper)) >= least, "{colour:?}");
                for eye in &EYES {
                    for other in colours[..i].iter().chain([&rgb(late)]) {
                        let apart = distance(*colour, *other, eye);
                        assert!(apart >= 20.0, "{colour:?} and {other:?}: {apart}");
                    }
                }
            }
        }
    }

    #[test]
    fn tints_can_be_told_apart_by_any_eye_and_read_on() {
        let [ink, grid] = [2, 4].map(|i| COLOURS[i]);
        let light = TINTS.map(|(light, _)| light);
        let dark = TINTS.map(|(_, dark)| dark);
        for (tints, text, area) in [(light, ink.1, grid.1), (dark, ink.2, grid.2)] {
            for (i, tint) in tints.iter().enumerate() {
                let on = contrast(rgb(*tint), rgb(text));
                assert!(on >= 5.0, "{tint:06x}: {on}");
                for eye in &EYES {
                    for other in tints[..i].iter().chain([&area]) {
                        let apart = distance(rgb(*tint), rgb(*other), eye);
                        assert!(apart >= 20.0, "{tint:06x} and {other:06x}: {apart}");
                    }
                }
            }
        }
    }

    /// The filter of the dark scheme: CSS Filter Effects 1, invert(1) and hue-rotate(180deg).
    fn dark_ramp(rgb: [u8; 3]) -> [u8; 3] {
        // sin 180° is 0 and cos -1: 0.213 - 0.787 and so on.
        const TURN: [Rgb; 3] =
            [[-0.574, 1.430, 0.144], [0.426, 0.430, 0.144], [0.426, 1.430, -0.856]];
        let inverted = rgb.map(|byte| 255.0 - f64::from(byte));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        times(&TURN, inverted).map(|v| v.round().clamp(0.0, 255.0) as u8)
    }

    #[test]
    fn the_ramp_gets_darker_all_the_way_and_lighter_on_dark_ground() {
        assert!(DARK_RAMP.contains("invert(1) hue-rotate(180deg)"));
        let levels: Vec<_> = (1..raster::LEVELS).map(raster::colour).collect();
        for eye in &EYES {
            let light: Vec<_> = levels.iter().map(|c| lab(*c, eye)[0]).collect();
            let dark: Vec<_> = levels.iter().map(|c| lab(dark_ramp(*c), eye)[0]).collect();
            assert!(light.windows(2).all(|pair| pair[1] < pair[0] + 1e-9), "{light:?}");
            assert!(dark.windows(2).all(|pair| pair[1] > pair[0] - 0.6), "{dark:?}");
            // As a grey print has it, the ends are far apart.
            assert!(light[0] - light[light.len() - 1] > 45.0, "{light:?}");
            assert!(dark[dark.len() - 1] - dark[0] > 35.0, "{dark:?}");
        }
        // One sample can be seen on its ground.
        assert!(contrast(levels[0], [255; 3]) > 1.9);
        assert!(contrast(dark_ramp(levels[0]), rgb(COLOURS[0].2)) > 1.9);
    }

    #[test]
    fn properties_and_literals_are_the_same_colours() {
        let sheet = style();
        for colour in
            [Colour::Paper, Colour::Text, Colour::Late, Colour::Deadline, Colour::Curve(9)]
        {
            let name = colour.name().unwrap();
            assert!(sheet.contains(&format!("--{name}:{};", colour.literal())), "{name}");
            assert!(sheet.contains(&format!(".s-{name}{{stroke:var(--{name})}}")), "{name}");
        }
    }
}
