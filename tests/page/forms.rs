//! Figures in files, as other programs draw them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_harness::{Place, end_of, need, programs};

use crate::picture::Picture;

fn figures(place: &Place) -> Vec<PathBuf> {
    let simulated = "sim:threads=2,stall=3ms,stall-every=700,shift=12us -D 40";
    for (out, load) in [("r1", "none,copy"), ("r2", "none")] {
        let line =
            format!("run {simulated} --load {load} --deadline 1ms --no-report --json --out {out}");
        place.run(&line);
    }
    place.run("report r1 r2 -o r.html --figures figs").with(0);
    let files = fs::read_dir(place.path.join("figs")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == "svg")).collect();
    files.sort();
    files
}

/// The SVG by librsvg, the PDF by poppler, and the PNG, all of the PNG's width.
fn forms(svg: &Path) -> [Picture; 3] {
    let png = Picture::read(&svg.with_extension("png"));
    let width = png.width().to_string();
    let drawn = svg.with_extension("rsvg");
    let mut render = Command::new("rsvg-convert");
    end_of({
        render.args(["-w", &width]).arg(svg).arg("-o").arg(&drawn);
        render
    })
    .with(0);
    let mut print = Command::new("pdftoppm");
    end_of({
        print.args(["-png", "-singlefile", "-scale-to-y", "-1", "-scale-to-x", &width]);
        print.arg(svg.with_extension("pdf")).arg(svg.with_extension("poppler"));
        print
    })
    .with(0);
    [Picture::read(&drawn), Picture::read(&svg.with_extension("poppler.png")), png]
}

/// Mean difference of corresponding fields, 0 to 255.
fn difference(a: &Picture, b: &Picture) -> f64 {
    let (a, b) = (a.fields(90, 45), b.fields(90, 45));
    let parts = a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).abs());
    parts.sum::<f64>() / (90.0 * 45.0 * 3.0)
}

#[test]
fn every_figure_is_drawn_alike_by_the_programs_of_authors() {
    need!(programs(&["rsvg-convert", "pdftoppm", "pdffonts"]));
    let place = Place::new();
    // A style sheet with custom properties, as a browser would draw it: all black.
    let bad = place.path.join("bad.svg");
    let text = "<svg xmlns='http://www.w3.org/2000/svg' width='720' height='90'>\
        <style>:root{--bg:#fff}rect{fill:var(--bg)}</style><rect width='720' height='90'/></svg>";
    fs::write(&bad, text).unwrap();
    let mut render = Command::new("rsvg-convert");
    render.arg(&bad).arg("-o").arg(place.path.join("bad.png"));
    end_of(render).with(0);
    let black = Picture::read(&place.path.join("bad.png"));
    assert_eq!((black.look(&black.whole()).colours, black.brightness_at(9, 9)), (1, 0));

    let all = figures(&place);
    let kinds: Vec<_> =
        all.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    for kind in ["bars", "ccdf", "histogram", "threads", "timeline"] {
        assert!(kinds.iter().any(|name| name.starts_with(kind)), "no {kind}: {kinds:?}");
    }
    let pictures: Vec<_> = all.iter().map(|path| forms(path)).collect();
    for (path, forms) in all.iter().zip(&pictures) {
        for (form, picture) in ["svg", "pdf", "png"].iter().zip(forms) {
            let look = picture.look(&picture.whole());
            let name = format!("{} as {form}: {look:?}", path.display());
            assert!(look.colours >= 24 && look.chromatic >= 3, "{name}");
            assert!((0.02..0.9).contains(&look.drawn), "{name}");
            assert!(picture.brightness_at(2, 2) > 250, "{name}: the ground is not white");
            assert!(picture.height().abs_diff(forms[2].height()) <= 2, "{name}");
            let apart = difference(picture, &forms[2]);
            assert!(apart < 3.0, "{name}: differs from the PNG by {apart}");
        }
        let mut fonts = Command::new("pdffonts");
        fonts.arg(path.with_extension("pdf"));
        let fonts = end_of(fonts).with(0).stdout;
        assert_eq!(fonts.matches(" yes ").count(), 2, "the typefaces are embedded: {fonts}");
    }
    // Different figures differ by more: the comparison sees something.
    assert!(difference(&pictures[0][0], &pictures[1][2]) > 3.0);
}
