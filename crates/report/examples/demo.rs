//! Writes reports over made-up runs to a folder: `demo FOLDER`. With `demo FOLDER
//! day` the run of a day, and how long its report took; with `demo FOLDER lab`
//! the same for an experiment of four kernels with eight runs each; with `demo FOLDER
//! explain` explanations, with `demo FOLDER sections` sections, with `demo FOLDER evident` signed
//! values, latest activations and longest gaps.

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::time::Instant;

use punctual_report::{Options, explanation, figures, html, sections, text};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "demo".into()));
    std::fs::create_dir_all(&folder)?;
    let word = arguments.next().unwrap_or_default();
    if word == "day" || word == "lab" {
        let runs = if word == "day" { vec![common::day(1)] } else { common::experiment(8, 20) };
        let start = Instant::now();
        let page = html(&runs, &Options::default());
        println!("{} bytes of HTML in {:?}", page.len(), start.elapsed());
        return std::fs::write(folder.join(word).with_extension("html"), page);
    }
    if word == "explain" {
        return explain(&folder);
    }
    if word == "sections" {
        return find_sections(&folder);
    }
    if word == "evident" {
        return evident(&folder);
    }
    let mut rt = common::standard("6.1.0-56-rt-amd64", "rt", 1.0);
    let stock = common::standard("6.1.0-56-amd64", "voluntary", 9.0);
    std::fs::write(folder.join("one.html"), html(std::slice::from_ref(&rt), &Options::default()))?;
    print!("{}", text::summary(&rt, 100, true));
    print!("{}", text::summary(&stock, 100, true));
    rt.run.privileged = false;
    let both = [rt, stock];
    std::fs::write(folder.join("two.html"), html(&both, &Options::default()))?;
    for figure in figures(&both) {
        let path = folder.join(&figure.name);
        std::fs::write(path.with_extension("svg"), figure.svg())?;
        std::fs::write(path.with_extension("pdf"), figure.pdf()?)?;
        std::fs::write(path.with_extension("png"), figure.png()?)?;
    }
    Ok(())
}

fn evident(folder: &Path) -> std::io::Result<()> {
    use common::evident::{gapped, signed, traced};
    for (name, run) in [("signed", signed()), ("traced", traced()), ("gapped", gapped())] {
        print!("{}", text::summary(&run, 80, false));
        let page = html(std::slice::from_ref(&run), &Options::default());
        std::fs::write(folder.join(name).with_extension("html"), page)?;
        for figure in figures(&[run]) {
            let path = folder.join(format!("{name}-{}", figure.name));
            std::fs::write(path.with_extension("svg"), figure.svg())?;
        }
    }
    Ok(())
}

fn explain(folder: &Path) -> std::io::Result<()> {
    let (none, rt) = (common::explained::none(), common::explained::rt());
    print!("{}", explanation::text(&none, 80, true));
    print!("\n{}", explanation::text_against(&none, &rt, 80, true));
    for (name, one) in [("none", none), ("long", common::explained::long())] {
        let start = Instant::now();
        let page = explanation::page(&one);
        println!("{name}: {} bytes of HTML in {:?}", page.len(), start.elapsed());
        std::fs::write(folder.join(name).with_extension("html"), page)?;
        std::fs::write(folder.join(name).with_extension("json"), explanation::perfetto(&one))?;
        for figure in explanation::figures(&one) {
            let path = folder.join(format!("{name}-{}", figure.name));
            std::fs::write(path.with_extension("svg"), figure.svg())?;
            std::fs::write(path.with_extension("pdf"), figure.pdf()?)?;
            std::fs::write(path.with_extension("png"), figure.png()?)?;
        }
    }
    Ok(())
}

fn find_sections(folder: &Path) -> std::io::Result<()> {
    let (none, rt) = (common::sectioned::none(), common::sectioned::rt());
    let one = std::slice::from_ref(&none);
    print!("{}", sections::text(one, 80, true));
    let both = [none.clone(), rt];
    print!("\n{}", sections::comparison(&both, 80, true));
    print!("\n{}", sections::comparison(&both, 120, true));
    for (name, all) in [("one", one), ("two", &both[..])] {
        std::fs::write(folder.join(format!("sections-{name}.html")), sections::page(all))?;
        for figure in sections::figures(all) {
            let path = folder.join(format!("{name}-{}", figure.name));
            std::fs::write(path.with_extension("svg"), figure.svg())?;
        }
    }
    Ok(())
}
