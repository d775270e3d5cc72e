//! The sides of `compare`: what is told apart, and what is pooled because somebody asked for it.

use std::fs;
use std::process::Command;

use punctual_harness::edit;
use serde_json::{Value, json};

use crate::support::{Scratch, json as parsed, stderr, stdout};

/// Copies of a simulated run as the runs of a folder, each changed by its number.
fn folder(scratch: &Scratch, name: &str, runs: u32, change: impl Fn(u32, &mut Value)) {
    if !scratch.path("one").exists() {
        let run = scratch.punctual("run sim -D 3 --no-report --out one");
        assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    }
    fs::create_dir(scratch.path(name)).unwrap();
    for number in 0..runs {
        let run = scratch.path(name).join(number.to_string());
        let copied = Command::new("cp").arg("-r").arg(scratch.path("one")).arg(&run).status();
        assert!(copied.unwrap().success());
        edit(&run, |value| {
            value["run_id"] = json!(format!("{name}-{number}"));
            change(number, value);
        });
    }
}

/// What a board is known by whose serial number has this digest.
fn serial(digest: u32) -> Value {
    json!([{ "by": "serial", "value": format!("{digest:08x}00000000") }])
}

/// The maximum of a run, us; its 99.9 % quantile is half of that.
fn maximum(value: &mut Value, us: u32) {
    let cell = &mut value["cells"][0];
    cell["max_ns"] = json!(us * 1_000);
    cell["p999_ns"] = json!(us * 500);
    cell["threads"][0]["max_ns"] = json!(us * 1_000);
}

/// How many runs each side has, and its name in the JSON output.
fn sides(scratch: &Scratch, line: &str) -> Vec<(usize, Option<String>)> {
    let compared = scratch.punctual(&format!("compare {line} --json"));
    assert_eq!(compared.status.code(), Some(0), "{line}: {}", stderr(&compared));
    let groups = parsed(&compared)["groups"].as_array().unwrap().clone();
    let side = |group: &Value| {
        let runs = group["runs"].as_array().unwrap().len();
        (runs, group["side"].as_str().map(str::to_owned))
    };
    groups.iter().map(side).collect()
}

fn named(runs: usize, name: &str) -> (usize, Option<String>) {
    (runs, Some(name.to_owned()))
}

const SPREAD: [u32; 8] = [1_000, 1_040, 980, 1_100, 1_020, 1_010, 990, 1_060];

#[test]
fn two_folders_of_one_kernel_are_two_sides() {
    let scratch = Scratch::new("sides");
    let of = |factor: u32| {
        move |number: u32, value: &mut Value| {
            maximum(value, SPREAD[number as usize] * factor / 100);
        }
    };
    folder(&scratch, "before", 8, of(100));
    folder(&scratch, "after", 8, of(130));
    folder(&scratch, "same", 8, of(100));
    assert_eq!(sides(&scratch, "before after"), [named(8, "before"), named(8, "after")]);
    let status = |line: &str| {
        let ended = scratch.punctual(&format!("compare {line} --not-worse-than 1.1"));
        (ended.status.code(), stdout(&ended) + &stderr(&ended))
    };
    let (worse, said) = status("before after");
    assert_eq!(worse, Some(1), "{said}");
    assert!(said.contains("At most 1.1 times before?"), "{said}");
    assert_eq!(status("before same").0, Some(0));
    let (one, said) = status("before");
    assert!(one == Some(4) && said.contains("--by"), "{said}");
    // One folder, or runs one by one, are told apart by what they are; two runs are two sides.
    assert_eq!(sides(&scratch, "before"), [(8, None)]);
    assert_eq!(sides(&scratch, "before/0 after/0"), [named(1, "before/0"), named(1, "after/0")]);
    let pair = stdout(&scratch.punctual("compare before/0 after/0"));
    assert!(pair.contains("one pair proves nothing about the sides"), "{pair}");
    assert_eq!(sides(&scratch, "before/0 before/1 after/0 after/1"), [(4, None)]);
    // Several are joined, in any order.
    assert_eq!(sides(&scratch, "after+same before"), [named(16, "after+same"), named(8, "before")]);
    assert_eq!(
        sides(&scratch, "before/7+before/1 after/3+after/0+after/5"),
        [named(2, "before/7+before/1"), named(3, "after/3+after/0+after/5")]
    );
    fs::rename(scratch.path("same"), scratch.path("a+b")).unwrap();
    assert_eq!(sides(&scratch, "a+b before"), [named(8, "a+b"), named(8, "before")]);
    let said = stdout(&scratch.punctual("compare before after"));
    assert!(said.lines().any(|line| line.trim_start().starts_with("side  ")), "{said}");
    assert!(!said.contains("kernel  "), "{said}");
    let page = scratch.punctual("report before after -o page.html");
    assert_eq!(page.status.code(), Some(0), "{}", stderr(&page));
    let page = fs::read_to_string(scratch.path("page.html")).unwrap();
    assert!(page.contains("<strong>before: ") && page.contains("<strong>after: "));
    let opening = page.find("<table class=\"opening\">").unwrap();
    assert!(opening < page.find("<figure").unwrap(), "the sides come before figures");
    let table = page[opening..].split("</table>").next().unwrap();
    for text in ["<th scope=\"col\">side</th>", "before (8 runs)", "after (8 runs)", "Linux "] {
        assert!(table.contains(text), "{text}: {table}");
    }
}

#[test]
fn a_run_is_not_compared_with_itself() {
    let scratch = Scratch::new("twice");
    folder(&scratch, "a", 2, |_, _| ());
    folder(&scratch, "b", 2, |_, _| ());
    for line in ["a/0 a/0", "a a", "a b a", "a a/1", "a/0+b/0 b/0", "a/0 b/0 a/0"] {
        for command in ["compare", "report -o page.html"] {
            let refused = scratch.punctual(&format!("{command} {line}"));
            assert_eq!(refused.status.code(), Some(2), "{command} {line}");
            let said = stderr(&refused);
            assert!(said.contains("cannot be compared with itself"), "{line}: {said}");
        }
    }
    assert!(!scratch.path("page.html").exists());
    // Within a side it counts once, and that is said.
    assert_eq!(sides(&scratch, "a/0+a/0+a/1 b"), [named(2, "a/0+a/0+a/1"), named(2, "b")]);
    let said = stdout(&scratch.punctual("compare a/0+a/0+a/1 b"));
    assert!(said.contains("a-0 is given more than once"), "{said}");
}

#[test]
fn a_folder_of_several_kinds_is_several_sides_and_joined_runs_are_one() {
    let scratch = Scratch::new("kinds");
    let pages = |name: &'static str| {
        move |number: u32, value: &mut Value| {
            let pages = if name == "mixed" && number > 1 { "never" } else { "always" };
            value["facts"]["memory"] = json!({ "transparent_huge_pages": pages });
            let group = if number.is_multiple_of(2) { "day" } else { "night" };
            value["group"] = if name == "nights" { json!(group) } else { Value::Null };
        }
    };
    for (name, runs) in [("mixed", 4), ("plain", 4), ("nights", 4)] {
        folder(&scratch, name, runs, pages(name));
    }
    let split = [named(2, "mixed"), named(2, "mixed"), named(4, "plain")];
    assert_eq!(sides(&scratch, "mixed plain"), split);
    let said = stdout(&scratch.punctual("compare mixed plain"));
    let said: Vec<_> = said.split_whitespace().collect();
    let said = said.join(" ");
    for text in ["the runs of mixed differ in huge-pages, so one argument is several sides", "--by"]
    {
        assert!(said.contains(text), "{text}: {said}");
    }
    let joined = "mixed/0+mixed/1+mixed/2+mixed/3";
    assert_eq!(sides(&scratch, &format!("{joined} plain")), [named(4, joined), named(4, "plain")]);
    // What was measured at another time is a side of its own, unless it is judged as one.
    assert_eq!(sides(&scratch, "nights"), [(2, None), (2, None)]);
    assert!(stdout(&scratch.punctual("compare nights")).contains("day"));
    let pooled = scratch.punctual("pool nights --deadline 5ms");
    assert_ne!(pooled.status.code(), Some(2), "{}", stderr(&pooled));
}

#[test]
fn a_setting_that_differs_beside_the_kernel_is_said_and_shown_on_the_page() {
    let scratch = Scratch::new("beside");
    for (name, release, governor) in
        [("old", "6.1.0", "performance"), ("new", "6.6.0", "powersave")]
    {
        folder(&scratch, name, 3, |_, value| {
            value["kernel"]["release"] = json!(release);
            value["facts"]["power"] = json!({ "frequency": [{ "governor": governor }] });
        });
    }
    let compared = parsed(&scratch.punctual("compare old new --json"));
    assert_eq!(compared["differences"][0]["what"], "setting governor");
    let said = compared["caveats"].to_string();
    let text = "governor differs too: performance with Linux 6.1.0 (";
    assert!(said.contains(text) && said.contains("the kernel is not the only cause"), "{said}");
    // Of one folder they are called by their kernels.
    fs::create_dir(scratch.path("all")).unwrap();
    for run in ["old/0", "old/1", "new/0", "new/1"] {
        let to = scratch.path("all").join(run.replace('/', "-"));
        fs::rename(scratch.path(run), to).unwrap();
    }
    let said = stdout(&scratch.punctual("compare all"));
    assert!(said.lines().any(|line| line.trim_start().starts_with("kernel  ")), "{said}");
    let page = scratch.punctual("report all -o page.html");
    assert_eq!(page.status.code(), Some(0), "{}", stderr(&page));
    let page = fs::read_to_string(scratch.path("page.html")).unwrap();
    let table = page.split("<table class=\"opening\">").nth(1).unwrap();
    let table = table.split("</table>").next().unwrap().replace("<wbr>", "");
    for text in ["kernel", "Linux 6.1.0 ", "governor=performance", "governor=powersave"] {
        assert!(table.contains(text), "{text}: {table}");
    }
}

#[test]
fn boards_and_settings_are_pooled_only_if_that_is_asked_for() {
    let scratch = Scratch::new("settings");
    folder(&scratch, "farm", 8, |number, value| {
        let pages = if number % 2 == 0 { "always" } else { "never" };
        value["facts"]["memory"] = json!({ "transparent_huge_pages": pages });
        value["board"]["name"] = json!(format!("x86-{}", number / 4));
        value["board"]["identity"] = serial(number / 4);
        value["group"] = json!("night");
    });
    let found = sides(&scratch, "farm");
    assert_eq!(found.iter().map(|(runs, _)| *runs).collect::<Vec<_>>(), [2, 2, 2, 2]);
    let said = stdout(&scratch.punctual("compare farm"));
    for name in ["x86-0 huge-pages=always", "x86-1 huge-pages=never", "setting huge-pages"] {
        assert!(said.contains(name), "{name}: {said}");
    }
    let by = |what: &str| sides(&scratch, &format!("farm --by {what}"));
    assert_eq!(by("board"), [named(4, "x86-0"), named(4, "x86-1")]);
    assert_eq!(
        by("setting:huge-pages"),
        [named(4, "huge-pages=always"), named(4, "huge-pages=never")]
    );
    assert_eq!(by("group"), [named(8, "night")]);
    let said = stdout(&scratch.punctual("compare farm --by group"));
    assert!(said.contains("night  2 boards · Linux"), "{said}");
    assert!(said.contains("all runs are of one side"), "{said}");
    assert_eq!(by("kernel").len(), 1);
    assert_eq!(by("date").len(), 1);
    let wrong = scratch.punctual("compare farm --by mood");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("setting:NAME"), "{}", stderr(&wrong));
    // Nor are they judged as one.
    let pooled = scratch.punctual("pool farm --deadline 5ms");
    assert_eq!(pooled.status.code(), Some(2));
    assert!(stderr(&pooled).contains("settings"), "{}", stderr(&pooled));
}

#[test]
fn two_boards_of_one_name_are_two_sides_and_one_of_two_names_is_one() {
    let scratch = Scratch::new("boards");
    folder(&scratch, "farm", 4, |number, value| {
        value["board"]["name"] = json!("board");
        value["board"]["identity"] = serial(number / 2);
    });
    assert_eq!(sides(&scratch, "farm"), [(2, None), (2, None)]);
    let said = stdout(&scratch.punctual("compare farm"));
    assert!(said.contains("serial=00000001") && said.contains("identity of the board"), "{said}");
    let by = sides(&scratch, "farm --by board");
    let pooled = scratch.punctual("pool farm --deadline 5ms");
    assert_eq!((by.len(), pooled.status.code()), (2, Some(2)), "{by:?}");
    // The host name changed with the network.
    folder(&scratch, "moved", 4, |number, value| {
        value["board"]["name"] = json!(format!("dhcp-{number}"));
        value["board"]["identity"] = serial(7);
    });
    assert_eq!(sides(&scratch, "moved"), [(4, None)]);
    assert_eq!(sides(&scratch, "moved --by board"), [named(4, "dhcp-0")]);
    // Given names tell apart, and compare says so if nothing else can.
    for (name, of) in [("left", "a"), ("right", "b")] {
        let run = format!("run sim -D 3 --no-report --board-name {name} --out {of}");
        assert_eq!(scratch.punctual(&run).status.code(), Some(0));
        edit(&scratch.path(of), |value| {
            let known = value["board"]["identity"].as_array().unwrap();
            let given: Vec<_> = known.iter().filter(|one| one["by"] == "name").cloned().collect();
            assert_eq!(given.len(), 1);
            value["board"]["identity"] = json!(given);
        });
    }
    let said = stdout(&scratch.punctual("compare a b"));
    assert!(said.contains("told apart by --board-name only"), "{said}");
}

#[test]
fn the_largest_maximum_is_that_of_all_cells_and_nothing_in_common_is_an_error() {
    let scratch = Scratch::new("common");
    folder(&scratch, "a", 3, |_, _| ());
    folder(&scratch, "b", 3, |number, value| {
        value["kernel"]["preemption"] = json!("rt");
        if number == 1 {
            let mut other = value["cells"][0].clone();
            other["key"] = json!("clock @ none @ 3s");
            value["cells"].as_array_mut().unwrap().push(other);
            let cell = &mut value["cells"][1];
            cell["max_ns"] = json!(3_000_000);
            cell["threads"][0]["max_ns"] = json!(3_000_000);
            let planned = value["plan"]["cells"][0].clone();
            value["plan"]["cells"].as_array_mut().unwrap().push(planned);
        }
    });
    let said = stdout(&scratch.punctual("compare a b"));
    assert!(said.contains("largest maximum 3.000 ms in b-1"), "{said}");
    let compared = parsed(&scratch.punctual("compare a b --json"));
    assert_eq!(compared["groups"][1]["max_ns"], 3_000_000);
    let page = scratch.punctual("report a b -o page.html");
    assert_eq!(page.status.code(), Some(0), "{}", stderr(&page));
    let page = fs::read_to_string(scratch.path("page.html")).unwrap();
    let table = page.split("<table class=\"opening\">").nth(1).unwrap();
    assert!(table.split("</table>").next().unwrap().contains("3.000 ms"), "{table}");
    let run = scratch.punctual("run clock -D 1 --no-report --out other");
    assert!(matches!(run.status.code(), Some(0)), "{}", stderr(&run));
    let nothing = scratch.punctual("compare one other");
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("no cell in common"), "{}", stderr(&nothing));
}
