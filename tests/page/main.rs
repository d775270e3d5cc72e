//! The report as a browser shows it: narrow and wide, light and dark, and printed.

mod browser;
mod forms;
mod picture;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use browser::{Browser, Sheet};
use picture::Picture;
use punctual_harness::{Place, end_of, need, programs, root};

/// The width of a telephone, and that of a desk. px.
const NARROW: u32 = 390;
const WIDE: u32 = 1_280;

/// Each report has more figures than kinds of them.
const LEAST_FIGURES: usize = 7;

fn browser() -> Result<(), String> {
    // Without root a browser in a container has no sandbox of its own.
    programs(&["chromium"]).and(root())
}

/// The kinds of figures that a report has, by the beginning of their titles.
type Kinds = [&'static str; 4];

/// The reports of [`reports`]: of runs that stand for themselves, and of replicates.
const KINDS: [Kinds; 2] = [
    ["Minimum, average", "How often", "Histogram", "Timeline"],
    ["Spread over the runs", "How often", "Histogram", "Timeline"],
];

/// Reports that hold every kind of figure: early samples, missed releases, a load with its
/// work, a deadline; of two runs, and of three, which are shown by kernel.
fn reports(place: &Place) -> [PathBuf; 2] {
    let simulated = "sim:stall=3ms,stall-every=700,shift=12us sim:dist=exponential -D 40";
    for (out, load) in [("r1", "none,copy"), ("r2", "none")] {
        let line =
            format!("run {simulated} --load {load} --deadline 5ms --no-report --json --out {out}");
        place.run(&line).with(0);
    }
    place.run("run wakeup -D 3 --load copy --no-report --out r3 --json").with(0);
    place.run("report r1 r3 -o report.html").with(0);
    place.run("report r1 r2 r3 -o kernels.html").with(0);
    ["report.html", "kernels.html"].map(|name| place.path.join(name))
}

/// The titles of the figures of a page.
fn titles(page: &str) -> Vec<&str> {
    let title = |figure: &'_ str| -> Option<(usize, usize)> {
        let tag = figure.find("<title")?;
        let start = tag + figure[tag..].find('>')? + 1;
        Some((start, start + figure[start..].find('<')?))
    };
    let figures = page.split("<figure>").skip(1);
    figures.map(|figure| title(figure).map_or("", |(start, end)| &figure[start..end])).collect()
}

#[test]
fn the_report_needs_no_network_and_says_nothing_to_the_console() {
    need!(browser());
    let place = Place::new();
    let browser = Browser::new(&place);
    // What a page that does both looks like: else the test would prove nothing.
    let bad = place.path.join("bad.html");
    let text = "<img src=\"http://127.0.0.1:9/a.png\"><script>nothing()</script>";
    fs::write(&bad, text).unwrap();
    let seen = browser.open(&bad);
    assert_eq!(seen.requests, ["http://127.0.0.1:9/a.png"]);
    assert!(seen.console.iter().any(|line| line.contains("ReferenceError")), "{seen:?}");

    for (page, kinds) in reports(&place).iter().zip(KINDS) {
        let seen = browser.open(page);
        assert_eq!(seen.requests, Vec::<String>::new());
        assert_eq!(seen.console, Vec::<String>::new());
        assert!(seen.document.contains("</html>"), "{}", seen.document);
        let text = fs::read_to_string(page).unwrap();
        let figures = titles(&text);
        assert!(figures.len() >= LEAST_FIGURES, "{figures:?}");
        assert_eq!(titles(&seen.document), figures, "the browser keeps every figure");
        for kind in kinds {
            assert!(figures.iter().any(|title| title.contains(kind)), "no {kind}: {figures:?}");
        }
    }
}

/// What is drawn in the area of each figure.
fn figures_are_drawn(sheet: &Sheet, picture: &Picture, form: &str) {
    assert!(sheet.figures.len() >= LEAST_FIGURES, "{form}: {sheet:?}");
    for (number, area) in sheet.figures.iter().enumerate() {
        let name = format!("{form}: figure {number} {area:?}");
        assert!(area.width > 200.0 && area.height > 80.0, "{name}");
        assert!(area.x >= 0.0 && area.x + area.width <= f64::from(sheet.width), "{name}: cut off");
        let look = picture.look(area);
        // Lines, letters and their smoothed edges; colours for what is measured.
        assert!(look.colours >= 24, "{name}: {look:?}");
        assert!(look.chromatic >= 3, "{name}: {look:?}");
        assert!((0.005..0.9).contains(&look.drawn), "{name}: {look:?}");
    }
}

#[test]
fn every_figure_is_drawn_narrow_and_wide_light_and_dark() {
    need!(browser());
    let place = Place::new();
    let browser = Browser::new(&place);
    // A page that is too wide, with an empty figure.
    let bad = place.path.join("bad.html");
    fs::write(&bad, "<figure></figure><div style=\"width:600px\">x</div>").unwrap();
    let wide = place.path.join("wide.html");
    fs::write(&wide, "<div class=scroll style=overflow-x:auto><p style=width:2000px>x</div>")
        .unwrap();
    assert_eq!(browser.measure(&wide, WIDE).hidden.len(), 1);
    let sheet = browser.measure(&bad, NARROW);
    assert!(sheet.content_width > NARROW, "{sheet:?}");
    let empty = browser.draw(&bad, &sheet, false).look(&sheet.figures[0]);
    assert!(empty.colours < 3, "{empty:?}");

    for page in &reports(&place) {
        for width in [NARROW, WIDE] {
            let sheet = browser.measure(page, width);
            assert_eq!(sheet.content_width, width, "nothing to be scrolled sideways");
            if width == WIDE {
                assert_eq!(sheet.hidden, Vec::<String>::new(), "no column is out of sight");
            }
            let mut grounds = Vec::new();
            for dark in [false, true] {
                let picture = browser.draw(page, &sheet, dark);
                figures_are_drawn(&sheet, &picture, &format!("{width} px, dark {dark}"));
                grounds.push(picture.brightness_at(2, 2));
            }
            assert!(grounds[0] > 200 && grounds[1] < 80, "light and dark grounds: {grounds:?}");
        }
    }
}

fn pages_of(pdf: &Path, place: &Place) -> Vec<Picture> {
    let mut render = Command::new("pdftoppm");
    render.args(["-r", "50", "-png"]).arg(pdf).arg(place.path.join("sheet"));
    end_of(render).with(0);
    let files = fs::read_dir(&place.path).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("sheet") && name.ends_with(".png")
        })
        .collect();
    files.sort();
    files.iter().map(|path| Picture::read(path)).collect()
}

#[test]
fn the_report_prints() {
    need!(browser());
    need!(programs(&["pdftotext", "pdftoppm"]));
    let place = Place::new();
    let [page, _] = reports(&place);
    let pdf = Browser::new(&place).print(&page);
    let mut read = Command::new("pdftotext");
    read.arg("-layout").arg(&pdf).arg("-");
    let text = end_of(read).with(0).stdout;
    let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let document = fs::read_to_string(&page).unwrap();
    for title in titles(&document) {
        // A long name may be broken; its beginning says which figure it is.
        let start: String = title.chars().take(24).collect();
        assert!(words.contains(start.trim()), "\"{start}\" is not printed");
    }
    for part in ["PASS", "samples", "missed", "copy", "What makes these numbers suspect"] {
        assert!(words.contains(part), "\"{part}\" is not printed");
    }
    let sheets = pages_of(&pdf, &place);
    assert!(sheets.len() >= 4, "{} sheets", sheets.len());
    for (number, sheet) in sheets.iter().enumerate() {
        let look = sheet.look(&sheet.whole());
        assert!(look.colours > 8, "sheet {number} is blank: {look:?}");
        assert!(sheet.brightness_at(2, 2) > 240, "sheet {number} is printed on dark ground");
    }
}
