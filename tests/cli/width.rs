//! No output is wider than the terminal that it is for.

use std::fs;

use punctual_harness::text;
use unicode_width::UnicodeWidthStr;

use crate::support::{Scratch, json, stdout};

const PROBES: &str = "sim:dist=exponential,shift=12us,seed=77 sim:stall=3ms,stall-every=700 -t 3";

/// What punctual prints for a terminal of this width.
fn printed(scratch: &Scratch, line: &str, width: usize) -> String {
    let mut command = scratch.command(line);
    let output = command.env("COLUMNS", width.to_string()).output().unwrap();
    assert!(output.stderr.is_empty(), "{line}: {}", text(&output.stderr));
    stdout(&output)
}

/// A cache with a list that has just been read, of kernels with names as long as Debian's are.
fn lists(scratch: &Scratch) {
    let stanzas = ["cloud-amd64", "rt-amd64", "amd64"].map(|flavour| {
        format!(
            "Package: linux-image-6.12.48+deb13-{flavour}\n\
             Version: 6.12.48-1~bpo12+1+very-long-version\nArchitecture: amd64\nSize: 101000000\n"
        )
    });
    let releases = "bullseye bookworm bookworm-backports trixie trixie-backports forky sid";
    for release in releases.split(' ') {
        let folder = scratch.path("cache/kernels/apt/amd64").join(release);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("kernels"), format!("Suite: x\n\n{}", stanzas.join("\n"))).unwrap();
    }
}

#[test]
fn the_list_of_kernels_is_not_wider_than_the_terminal() {
    let scratch = Scratch::new("width-kernels");
    lists(&scratch);
    for width in [60, 80, 120] {
        let mut command = scratch.command("lab kernels --board x86_64");
        command.env("COLUMNS", width.to_string());
        let output = command.env("PUNCTUAL_CACHE", scratch.path("cache")).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
        let text = stdout(&output);
        assert!(text.contains("downloadable") && text.contains("cache:"), "{text}");
        let (wide, longest) = widest(&text);
        assert!(wide <= width, "{wide} of {width} columns: {longest}\n{text}");
    }
}

#[test]
fn errors_are_not_wider_than_the_terminal() {
    let scratch = Scratch::new("width-errors");
    let plan = format!("name = \"{}\"\ncells = 3\n", "x".repeat(90));
    fs::write(scratch.path("plan.toml"), plan).unwrap();
    for line in ["show no-such-run", "run wakup -D 1", "run --plan plan.toml", "list no-such-thing"]
    {
        let said = |width: usize| {
            let output = scratch.command(line).env("COLUMNS", width.to_string()).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{line}");
            text(&output.stderr)
        };
        for width in [60, 80, 120] {
            let said = said(width);
            let (wide, longest) = widest(&said);
            assert!(wide <= width, "{line}: {wide} of {width} columns: {longest}");
        }
    }
}

/// The widest line, with its columns.
fn widest(text: &str) -> (usize, &str) {
    text.lines().map(|line| (line.width(), line)).max_by_key(|(width, _)| *width).unwrap_or((0, ""))
}

/// Names of probes, loads and costs; the help of a plan is its file, as it was written.
fn names(scratch: &Scratch) -> Vec<String> {
    let list = json(&scratch.punctual("list --json"));
    let kinds = ["probes", "loads", "costs"].map(|kind| list[kind].as_array().unwrap().clone());
    kinds.into_iter().flatten().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn no_output_is_wider_than_the_terminal() {
    let scratch = Scratch::new("width");
    for (out, more) in [("a", "--deadline 5ms"), ("b", "--deadline 1ms --load none,cmd:/not/there")]
    {
        let line = format!("run {PROBES} -D 20 {more} --no-report --out punctual-runs/{out}");
        let output = scratch.punctual(&line);
        assert_ne!(output.status.code(), Some(2), "{line}: {}", text(&output.stderr));
    }
    let mut lines: Vec<String> = [
        "list",
        "list --planned",
        "list runs",
        "show a",
        "show b --all",
        "compare a b",
        "compare a+b --by board",
        "compare --exact a b",
        "pool a b --deadline 5ms",
        "plan-length --at-most 1/d",
        "show a --extremes",
        "restore --dry-run",
        "load none -D 1",
    ]
    .map(str::to_owned)
    .into();
    lines.extend(names(&scratch).iter().map(|name| format!("list {name}")));
    assert!(lines.len() > 20, "the registries are listed: {lines:?}");
    for width in [60, 80, 120] {
        let mut all = lines.clone();
        // Examples in help are not broken, so that they can be pasted.
        let helps = ["", "run", "lab run", "lab check", "compare", "show", "report", "list"];
        all.extend(helps.iter().filter(|_| width >= 80).map(|of| format!("{of} --help")));
        all.push(format!("run sim:seed=5 -t 2 -D 2 -q --deadline 1ms --no-report --out w{width}"));
        for line in &all {
            let text = printed(&scratch, line, width);
            assert!(!text.is_empty(), "{line}");
            let (wide, longest) = widest(&text);
            assert!(wide <= width, "{line}: {wide} of {width} columns: {longest}\n{text}");
        }
    }
}

/// A width that nobody can mean is no width.
#[test]
fn columns_is_a_number_or_nothing() {
    let scratch = Scratch::new("columns");
    let of = |columns: &str| {
        let output = scratch.command("list").env("COLUMNS", columns).output().unwrap();
        stdout(&output)
    };
    let usual = stdout(&scratch.punctual("list"));
    assert_eq!([of(""), of("0"), of("wide")], [usual.clone(), usual.clone(), usual]);
    assert_eq!(of("1"), of("40"));
}

#[test]
fn a_locale_without_utf_8_gets_ascii() {
    let scratch = Scratch::new("locale");
    scratch.punctual("run sim -t 2 -D 1 --no-report --board-name bücher --out r");
    let shown = |name: &str, value: &str| {
        let mut command = scratch.command("show r");
        let output = command.env_remove("LC_ALL").env(name, value).output().unwrap();
        stdout(&output)
    };
    let (utf8, plain) = (shown("LC_ALL", "de_DE.UTF-8"), shown("LANG", "C"));
    assert!(utf8.starts_with("bücher · SIMULATED: "), "{utf8}");
    assert!(plain.starts_with("b?cher | SIMULATED: ") && plain.is_ascii(), "{plain}");
    assert_eq!(plain.lines().count(), utf8.lines().count());
}

#[test]
fn errors_print_foreign_names_clean() {
    let scratch = Scratch::new("foreign");
    for line in ["show \u{1b}[2Jx", "show a\u{202e}gpj", "list \u{7}x", "run \u{1b}]0;x -D 1"] {
        let output = scratch.punctual(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line:?}: {said}");
        let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(said.contains('\u{fffd}') && !said.contains(bad), "{said:?}");
    }
}
