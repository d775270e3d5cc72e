//! `punctual lab kernels` and `punctual lab fetch`.

use clap::ArgMatches;
use indicatif::{ProgressBar, ProgressStyle};
use punctual_core::units::grouped;
use punctual_lab::kernel::{Available, FetchProgress, State};
use punctual_report::text::{Align, Paint, Style, Table, push_wrapped};
use serde_json::json;

use super::asked::{arch, of_user};
use crate::ending::Ending;
use crate::output;

/// Lists the kernels that can be selected by name.
pub fn list(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let kernels = of_user()?;
    let available = kernels.list(arch(matches), &mut |text| output::complain(text))?;
    if matches.get_flag("json") {
        print_json(&available)?;
        return Ok(Ending::Done);
    }
    let mut table = Table::new(&[
        ("name", Align::Left),
        ("version", Align::Left),
        ("state", Align::Left),
        ("download", Align::Right),
    ]);
    let all = matches.get_flag("all");
    let is_shown = |one: &&Available| all || one.latest || one.state != State::Downloadable;
    for one in available.iter().filter(is_shown) {
        let size = one
            .download_bytes
            .map_or_else(String::new, |bytes| format!("{} MB", grouped(bytes.div_ceil(1_000_000))));
        let full = format!("{}, {} {}", one.name, one.package, one.version);
        let cells = [&one.name, &one.version, state(one), &size];
        table.named_row(cells.map(|cell| (cell.to_owned(), Style::Plain)).into(), full);
    }
    let width = output::width();
    let mut text = table.render(width, Paint::new(output::colour()));
    let hidden = available.len() - available.iter().filter(is_shown).count();
    if hidden > 0 {
        let hidden = format!("and {hidden} older ones, which --all shows");
        push_wrapped(&mut text, &hidden, "", 0, width);
    }
    let names = "debian:none, voluntary, full, lazy and rt mean the kernel of this machine's \
                 Debian, or of the stable one; debian:6.12-rt the newest 6.12; debian:sid-lazy \
                 that of a release. A kernel image (with --modules DIR) or a build tree can be \
                 given as well";
    push_wrapped(&mut text, names, "", 0, width);
    let cache = format!("cache: {}", kernels.cache_folder().display());
    push_wrapped(&mut text, &cache, "", 7, width);
    output::print(&text)?;
    Ok(Ending::Done)
}

fn print_json(kernels: &[Available]) -> anyhow::Result<()> {
    let list = kernels.iter().map(|one| {
        json!({
            "name": one.name,
            "package": one.package,
            "version": one.version,
            "state": state(one),
            "download_bytes": one.download_bytes,
        })
    });
    output::print_json(&list.collect::<Vec<_>>())
}

fn state(one: &Available) -> &'static str {
    match one.state {
        State::Installed => "installed",
        State::Cached => "cached",
        State::Downloadable => "downloadable",
    }
}

/// Downloads kernels to the cache.
pub fn fetch(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let (arch, json) = (arch(matches), matches.get_flag("json"));
    let quiet = matches.get_flag("quiet") || json;
    let mut all = Vec::new();
    let kernels = of_user()?;
    for name in matches.get_many::<String>("kernels").into_iter().flatten() {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(0) };
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {percent} %  {wide_msg}") {
            bar.set_style(style.progress_chars("##-"));
        }
        let fetched = kernels.fetch(name, arch, &mut |progress| match progress {
            FetchProgress::Step(text) => bar.set_message(text.to_owned()),
            FetchProgress::Note(text) => bar.suspend(|| output::complain(text)),
            FetchProgress::Bytes { done, total } => {
                bar.set_length(total);
                bar.set_position(done);
            }
        });
        bar.finish_and_clear();
        let fetched = fetched?;
        if !quiet {
            output::print(&format!(
                "{name}: {} {}, {}\n",
                fetched.package,
                fetched.version,
                state(&fetched)
            ))?;
        }
        all.push(fetched);
    }
    if json {
        print_json(&all)?;
    }
    Ok(Ending::Done)
}
