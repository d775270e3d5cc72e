//! A figure as SVG: inside a page, where the style sheet colours it, and as a file for any
//! program, with every colour, size and style written out.

use maud::{Markup, PreEscaped, html};

use super::drawing::{Anchor, Drawing, Image, Label, Pen, Point, Shape};
use super::frame::n;
use super::raster;
use super::sheet::{Figure, Sheet, TYPE, WIDTH};
use super::theme::Colour;

/// What a reader's program falls back to, in this order: free typefaces, then its own.
const FAMILY: &str = "Roboto,Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif";

impl Figure {
    /// The figure for a page that contains [`style`]. Its title is not drawn.
    pub(crate) fn inline(&self) -> Markup {
        inline(self)
    }

    /// The figure as an SVG file: colours and sizes are literal values, and no style sheet is
    /// needed.
    #[must_use]
    pub fn svg(&self) -> String {
        file(self)
    }
}

/// The figure for a page that already contains the style sheet. Its title is in the page.
pub fn inline(figure: &Figure) -> Markup {
    let (title, desc) = (format!("{}-title", figure.name), format!("{}-desc", figure.name));
    html! {
        svg class="figure" xmlns="http://www.w3.org/2000/svg" role="img"
            viewBox=(format!("0 0 {WIDTH} {}", n(figure.height)))
            aria-labelledby=(format!("{title} {desc}")) {
            title id=(title) { (figure.title) }
            desc id=(desc) { (figure.description) }
            (shapes(&figure.drawing, true))
        }
    }
}

/// The figure as a file. Programs that draw SVG know neither custom properties nor media
/// queries, `paint-order` and `image-rendering` rarely: none is used.
pub fn file(figure: &Figure) -> String {
    let sheet = Sheet::of(figure);
    let (top, height) = (-sheet.above, sheet.height());
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
            width=(n(WIDTH)) height=(n(height)) viewBox=(format!("0 {} {WIDTH} {}", n(top), n(height)))
            font-family=(FAMILY) font-size=(TYPE) {
            title { (figure.title) }
            desc { (figure.description) }
            rect x="0" y=(n(top)) width=(WIDTH) height=(n(height)) fill=(Colour::Paper.literal()) {}
            (shapes(&sheet.drawing, false))
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", markup.into_string())
}

fn shapes(drawing: &Drawing, page: bool) -> Markup {
    html! { @for shape in &drawing.shapes { (self::shape(shape, page)) } }
}

fn shape(shape: &Shape, page: bool) -> Markup {
    match shape {
        Shape::Path { lines, closed, paint, note } => {
            let attributes = attributes(paint, page);
            let d = lines.iter().map(|line| data(line, *closed)).collect::<String>();
            element("path", &format!("{attributes} d=\"{d}\""), note.as_deref())
        }
        Shape::Circle { at, radius, paint, note } => {
            let place = format!(" cx=\"{}\" cy=\"{}\" r=\"{}\"", n(at.0), n(at.1), n(*radius));
            element("circle", &(attributes(paint, page) + &place), note.as_deref())
        }
        Shape::Text(label) => text(label, page),
        Shape::Image(image) => picture(image, page),
    }
}

/// An element whose attributes are numbers and our own words.
fn element(name: &str, attributes: &str, note: Option<&str>) -> Markup {
    html! {
        (PreEscaped(format!("<{name}{attributes}")))
        @if let Some(note) = note {
            (PreEscaped(">")) title { (note) } (PreEscaped(format!("</{name}>")))
        } @else { (PreEscaped("/>")) }
    }
}

fn attributes(paint: &Pen, page: bool) -> String {
    let mut classes = vec![paint.class.to_owned()];
    let mut out = String::new();
    for (kind, colour) in [("fill", paint.fill), ("stroke", paint.stroke)] {
        match colour {
            Some(colour) => match colour.name().filter(|_| page) {
                Some(name) => classes.push(format!("{}-{name}", &kind[..1])),
                None => out.push_str(&format!(" {kind}=\"{}\"", colour.literal())),
            },
            None if kind == "fill" => out.push_str(" fill=\"none\""),
            None => {}
        }
    }
    if paint.stroke.is_some() {
        out.push_str(&format!(" stroke-width=\"{}\" stroke-linejoin=\"round\"", paint.width));
    }
    if !paint.dash.is_empty() {
        let dash: Vec<_> = paint.dash.iter().map(f64::to_string).collect();
        out.push_str(&format!(" stroke-dasharray=\"{}\"", dash.join(" ")));
    }
    format!(" class=\"{}\"{out}", classes.join(" ").trim())
}

fn data(line: &[Point], closed: bool) -> String {
    let mut out = String::new();
    let mut before: Option<(String, String)> = None;
    for (x, y) in line {
        let (x, y) = (n(*x), n(*y));
        match &before {
            None => out.push_str(&format!("M{x} {y}")),
            Some((px, py)) if *px == x && *py == y => {}
            Some((px, _)) if *px == x => out.push_str(&format!("V{y}")),
            Some((_, py)) if *py == y => out.push_str(&format!("H{x}")),
            Some(_) => out.push_str(&format!("L{x} {y}")),
        }
        before = Some((x, y));
    }
    if closed {
        out.push('Z');
    }
    out
}

fn text(label: &Label, page: bool) -> Markup {
    let anchor = match label.anchor {
        Anchor::Start => None,
        Anchor::Middle => Some("middle"),
        Anchor::End => Some("end"),
    };
    let x = n(label.at.0);
    if page {
        let colour = label.colour.name().map_or_else(String::new, |name| format!("f-{name}"));
        let bold = if label.bold { "bold" } else { "" };
        let class = format!("{} halo {colour} {bold}", label.class);
        return html! {
            text class=(class.trim()) x=(x) y=(n(label.at.1)) dy=[label.centred.then_some("0.35em")]
                text-anchor=[anchor] { (label.text) }
        };
    }
    let (y, weight) = (n(label.baseline(TYPE)), label.bold.then_some("bold"));
    let class = (!label.class.is_empty()).then_some(label.class);
    let paper = Colour::Paper.literal();
    html! {
        // The halo first: not every program can draw a stroke below its fill.
        text x=(x) y=(y) text-anchor=[anchor] font-weight=[weight] fill="none" stroke=(paper)
            stroke-width="3" stroke-linejoin="round" aria-hidden="true" { (label.text) }
        text class=[class] x=(x) y=(y) text-anchor=[anchor] font-weight=[weight]
            fill=(label.colour.literal()) { (label.text) }
    }
}

fn picture(image: &Image, page: bool) -> Markup {
    // Programs that smooth pixels blur at most one of these.
    let (levels, width) = if page { (image.levels.clone(), image.width) } else { enlarged(image) };
    let (x, y) = (n(image.left), n(image.top));
    let (w, h) = (n(image.right - image.left), n(image.bottom - image.top));
    match raster::data_uri(&levels, width) {
        Err(error) => html! { text x=(x) y=(n(image.top + 40.0)) { "no image: " (error) } },
        Ok(uri) if page => html! {
            image class="ramp" href=(uri) x=(x) y=(y) width=(w) height=(h) preserveAspectRatio="none"
                style="image-rendering:pixelated" {}
        },
        Ok(uri) => html! {
            image xlink:href=(uri) x=(x) y=(y) width=(w) height=(h) preserveAspectRatio="none" {}
        },
    }
}

/// The same pixels, as often as it takes for two of them to a unit of the figure.
fn enlarged(image: &Image) -> (Vec<u8>, usize) {
    let times = |length: f64, pixels: usize| -> usize {
        (1..64).find(|k| (k * pixels) as f64 >= 2.0 * length).unwrap_or(64)
    };
    let across = times(image.right - image.left, image.width.max(1));
    let down = times(image.bottom - image.top, image.rows().max(1));
    let mut levels = Vec::with_capacity(image.levels.len() * across * down);
    for row in image.levels.chunks(image.width.max(1)) {
        let wide: Vec<u8> = row.iter().flat_map(|level| vec![*level; across]).collect();
        (0..down).for_each(|_| levels.extend_from_slice(&wide));
    }
    (levels, image.width * across)
}
