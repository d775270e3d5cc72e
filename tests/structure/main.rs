//! The shape of the sources: what imports what, how long files are, how types are named.

mod circles;
mod names;
mod sources;

use std::collections::BTreeMap;
use std::fs;

use circles::circles;
use names::imports;
use sources::{Crate, File};

/// No file is longer, tests apart. Lines.
const LONGEST_FILE: usize = 500;
/// Nor is the file in the middle. Lines.
const MEDIAN_FILE: usize = 150;

/// Every crate of the program: those of `crates/`.
fn crates() -> Vec<Crate> {
    let folder = punctual_harness::sources().join("crates");
    let mut folders: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders.iter().map(|folder| Crate::read(folder)).collect()
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut found = Vec::new();
    for one in crates() {
        let imports = imports(&one);
        assert!(one.files.len() < 5 || imports.len() > 5, "{}: imports are not seen", one.name);
        found.extend(circles(&imports).into_iter().map(|circle| circle.describe(&one, &imports)));
    }
    assert!(found.is_empty(), "{} circles:\n{}", found.len(), found.join("\n"));
}

#[test]
fn no_file_is_long() {
    let crates = crates();
    let files: Vec<&File> = crates.iter().flat_map(|one| &one.files).collect();
    assert!(files.len() > 100, "only {} files were found", files.len());
    let mut lengths: Vec<usize> = files.iter().map(|file| file.lines).collect();
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    println!("{} files, median {median} lines, longest {:?}", files.len(), lengths.last());
    let long = files.iter().filter(|file| file.lines > LONGEST_FILE);
    let long: Vec<_> = long.map(|file| format!("{}: {} lines", file.path, file.lines)).collect();
    assert!(long.is_empty(), "longer than {LONGEST_FILE} lines: {long:#?}");
    assert!(median <= MEDIAN_FILE, "the median file has {median} lines");
}

#[test]
fn no_type_name_stands_twice_in_a_crate() {
    let mut twice = Vec::new();
    for one in crates() {
        let mut bearers: BTreeMap<&str, Vec<&sources::Type>> = BTreeMap::new();
        for file in &one.files {
            for bearer in &file.types {
                bearers.entry(&bearer.name).or_default().push(bearer);
            }
        }
        for (name, bearers) in bearers.into_iter().filter(|(_, bearers)| bearers.len() > 1) {
            // One for each architecture, say, is one.
            let mut conditions: Vec<&str> =
                bearers.iter().map(|one| one.condition.as_str()).collect();
            conditions.sort_unstable();
            conditions.dedup();
            if conditions.len() == bearers.len() && !conditions.contains(&"") {
                continue;
            }
            let places: Vec<_> = bearers.iter().map(|one| one.place.as_str()).collect();
            twice.push(format!("{}: {name}: {}", one.name, places.join(", ")));
        }
    }
    assert!(twice.is_empty(), "{} names:\n{}", twice.len(), twice.join("\n"));
}

/// What the checks above must see, in a crate that was written for them.
mod seen {
    use super::*;

    fn read(files: &[(&str, &str)]) -> Crate {
        let folder = punctual_harness::Folder::new("structure");
        for (path, text) in files {
            let path = folder.path("src").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Crate::read(folder.root())
    }

    /// The files of each circle.
    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let one = read(files);
        let short = |file: &usize| one.files[*file].path.rsplit_once("src/").unwrap().1.to_owned();
        let circles = circles(&imports(&one));
        circles.iter().map(|circle| circle.files.iter().map(short).collect()).collect()
    }

    #[test]
    fn two_that_import_each_other_are_a_circle() {
        let lib = ("lib.rs", "mod a; mod b; mod c;");
        let a = ("a.rs", "use crate::b::B; pub struct A(B);");
        let b = ("b.rs", "use crate::c; pub struct B; fn f() { c::f() }");
        assert_eq!(found(&[lib, a, b, ("c.rs", "pub fn f() {}")]), [[""; 0]; 0]);
        let back = ("c.rs", "pub fn f() { let _: Option<super::a::A> = None; }");
        assert_eq!(found(&[lib, a, b, back]), [["a.rs", "b.rs", "c.rs"]]);
        let test = ("c.rs", "pub fn f() {} #[cfg(test)] mod tests { use crate::a::A; }");
        assert_eq!(found(&[lib, a, b, test]), [[""; 0]; 0]);
        let quoted = ("c.rs", "/// crate::a::A\npub fn f() -> &'static str { \"crate::a::A\" }");
        assert_eq!(found(&[lib, a, b, quoted]), [[""; 0]; 0]);
        let expanded = ("c.rs", "pub fn f() { println!(\"{:?}\", crate::a::A) }");
        assert_eq!(found(&[lib, a, b, expanded]), [["a.rs", "b.rs", "c.rs"]]);
    }

    #[test]
    fn a_name_is_of_the_file_that_defines_it() {
        // What is exported again is imported from where it is; to export is no import.
        let lib = ("lib.rs", "mod room; mod user;");
        let room = ("room/mod.rs", "mod one; mod two; pub use one::One; pub use two::*;");
        let two = ("room/two.rs", "use super::One; pub struct Two(One);");
        let one = ("room/one.rs", "pub struct One;");
        let user = ("user.rs", "use crate::room::{One, Two as Other}; struct U(One, Other);");
        assert_eq!(found(&[lib, room, one, two, user]), [[""; 0]; 0]);
        let back = ("room/one.rs", "use super::Two; pub struct One(Two);");
        assert_eq!(found(&[lib, room, back, two, user]), [["room/one.rs", "room/two.rs"]]);
    }

    #[test]
    fn a_parent_is_made_of_its_children_but_not_of_a_stranger() {
        let lib = ("lib.rs", "mod room; mod user;");
        let room = ("room/mod.rs", "mod one; pub struct Two(one::One);");
        let one = ("room/one.rs", "pub struct One; fn f(_: super::Two) {}");
        let user = ("user.rs", "use crate::room::Two; pub struct User(Two);");
        assert_eq!(found(&[lib, room, one, user]), [[""; 0]; 0]);
        let room = ("room/mod.rs", "mod one; pub struct Two(one::One, crate::user::User);");
        assert_eq!(found(&[lib, room, one, user]), [["room/mod.rs", "user.rs"]]);
    }

    #[test]
    fn lines_and_types_of_tests_are_left_out() {
        let text = "pub struct A;\nmod inner {\n  enum B {}\n}\n\n#[cfg(test)]\nmod tests {\n  \
                    struct A;\n}\n";
        let one = read(&[("lib.rs", text)]);
        assert_eq!(one.files[0].lines, 5);
        let names: Vec<_> = one.files[0].types.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["A", "B"]);
    }
}
