//! What `packaging/demo` says of the figures of README, with a punctual that boots nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use punctual_harness::{Ended, Folder, end_of, sources};

const TABLE: &str = "  kernel   max\n  wakeup @ idle @ 2s\n  PREEMPT_RT   24.7 us\n";

/// A punctual whose guests are of these parts and have this table.
const PUNCTUAL: &str = r#"#!/bin/sh
if [ "$1" = lab ]; then
    [ -z "$REFUSES" ] || exit 69
    for guest in debian-none-0 debian-rt-0; do
        mkdir -p "$6/$guest"
        cat >"$6/$guest/run.json" <<END
{
  "board": {
      "qemu": "7.2.22 (Debian)",
      "qemu_sha256": "aa01",
      "firmware_sha256": "aa02",
      "kernel_sha256": "$guest",
      "punctual_sha256": "$PROGRAM"
  }
}
END
    done
    echo "lab $*"
    exit 0
fi
echo "heading"
cat "$TABLE"
echo
echo "  kernel   quantity"
echo "What differs"
"#;

struct Demo(Folder);

impl Demo {
    fn new() -> Self {
        let folder = Folder::new("demo");
        fs::create_dir(folder.path("packaging")).unwrap();
        fs::copy(sources().join("packaging/demo"), folder.path("packaging/demo")).unwrap();
        fs::write(folder.path("punctual"), PUNCTUAL).unwrap();
        for script in ["punctual", "packaging/demo"] {
            fs::set_permissions(folder.path(script), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(folder.path("table"), TABLE).unwrap();
        let readme = "before\n<!-- demo: table -->\n```\nold\n```\n<!-- end -->\nbetween\n\
                      <!-- demo: made of -->\n```\n```\n<!-- end -->\nafter\n";
        fs::write(folder.path("README.md"), readme).unwrap();
        Self(folder)
    }

    fn run(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ended {
        let mut demo = self.0.command("sh");
        demo.args(["packaging/demo", "./punctual"]).args(arguments);
        demo.env("PROGRAM", "aa03").env("TABLE", self.0.path("table"));
        demo.envs(variables.iter().copied());
        end_of(demo)
    }
}

#[test]
fn figures_are_those_of_readme_or_it_is_said_what_differs() {
    let demo = Demo::new();
    demo.run(&[("README", "update")], &[]).with(0);
    let readme = fs::read_to_string(demo.0.path("README.md")).unwrap();
    assert!(
        readme.contains(&format!("<!-- demo: table -->\n```\n{TABLE}```\n<!-- end -->\nbetween"))
    );
    assert!(readme.contains("board program  aa03\nQEMU           aa01\n"), "{readme}");
    assert!(readme.ends_with("after\n") && readme.starts_with("before\n"), "{readme}");

    let same = demo.run(&[], &[]).with(0);
    assert!(same.stdout.ends_with("\nthese are README's figures\n"), "{same:?}");
    // Another program: the figures may be the same by chance, and are not README's.
    let other = demo.run(&[("PROGRAM", "bb")], &[]).with(0);
    other.says(&["those of another course: the board program differs", "board program bb"]);
    fs::write(demo.0.path("table"), TABLE.replace("24.7", "24.8")).unwrap();
    demo.run(&[], &[]).with(2).says(&["although all that they depend on is the same", "24.8 us"]);
    demo.run(&[("PROGRAM", "bb")], &[]).with(0).says(&["the board program differs"]);
}

#[test]
fn what_the_lab_says_goes_through() {
    let demo = Demo::new();
    demo.run(&[("REFUSES", "yes")], &[]).with(69);
    let with_arguments = demo.run(&[], &["--out", "mine"]).with(0);
    assert!(!with_arguments.stdout.contains("README"), "{with_arguments:?}");
    with_arguments.says(&["lab run --replicates 4 --out mine"]);
}
