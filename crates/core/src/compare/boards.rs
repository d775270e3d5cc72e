//! Which boards runs are of.

use std::collections::BTreeSet;

use crate::schema::{Run, same_hardware, short_identities};

/// What the board of each run is called, in their order: by the name that it had in its first run.
/// Boards that share a name are told apart by `serial=`, `uuid=` or `mac=` and eight digits behind
/// it, or by numbers if that is not known of all.
#[must_use]
pub fn board_names(runs: &[&Run]) -> Vec<String> {
    let mut boards: Vec<Vec<&Run>> = Vec::new();
    let mut of_runs = Vec::new();
    for run in runs {
        let is_of = |members: &Vec<&Run>| members.iter().all(|one| !one.board.is_other(&run.board));
        let board = boards.iter().position(is_of).unwrap_or(boards.len());
        if board == boards.len() {
            boards.push(Vec::new());
        }
        boards[board].push(run);
        of_runs.push(board);
    }
    let firsts: Vec<&Run> = boards.iter().filter_map(|members| members.first().copied()).collect();
    let names = distinct(&firsts);
    of_runs.into_iter().map(|board| names[board].clone()).collect()
}

/// The names of boards, one run of each.
fn distinct(boards: &[&Run]) -> Vec<String> {
    let mut names: Vec<String> = boards.iter().map(|run| run.board.name.clone()).collect();
    for name in names.clone().into_iter().collect::<BTreeSet<_>>() {
        let sharing: Vec<usize> =
            (0..boards.len()).filter(|at| boards[*at].board.name == name).collect();
        let identities: Vec<_> = sharing.iter().map(|at| &*boards[*at].board.identity).collect();
        let told = short_identities(&identities).filter(|told| are_distinct(told));
        if sharing.len() > 1 {
            for (number, at) in sharing.into_iter().enumerate() {
                let number_or = |told: &Vec<String>| told[number].clone();
                let tells = told.as_ref().map_or_else(|| format!("({})", number + 1), number_or);
                names[at] = format!("{name} {tells}");
            }
        }
    }
    if are_distinct(&names) {
        return names;
    }
    // A board is called what another one's name and number come to.
    (1..).zip(names).map(|(number, name)| format!("{name} [{number}]")).collect()
}

fn are_distinct(names: &[String]) -> bool {
    names.iter().collect::<BTreeSet<_>>().len() == names.len()
}

/// Whether these are runs of several boards.
pub(super) fn are_several(runs: &[&Run]) -> bool {
    pairs(runs).any(|(a, b)| a.board.is_other(&b.board))
}

/// Whether serial number, UUID or MAC address say so.
pub(super) fn differ_in_hardware(runs: &[&Run]) -> bool {
    pairs(runs).any(|(a, b)| same_hardware(&a.board.identity, &b.board.identity) == Some(false))
}

/// Says so if nothing tells two boards apart but their names, which several may have. Not of older
/// records alone, nor of virtual boards, which are what their names say.
pub(super) fn by_name_only(runs: &[&Run]) -> Option<String> {
    let is_by_name = |(a, b): &(&Run, &Run)| {
        let are_real = a.board.lab.is_none() && b.board.lab.is_none();
        let are_older = a.board.identity.is_empty() && b.board.identity.is_empty();
        are_real && !are_older && same_hardware(&a.board.identity, &b.board.identity).is_none()
    };
    let (a, b) = pairs(runs).find(is_by_name)?;
    let is_given = a.board.has_given_name() || b.board.has_given_name();
    Some(format!(
        "boards are told apart by {} only: no serial, UUID or MAC could be read in both {} and {}",
        if is_given { "--board-name" } else { "name and kind" },
        a.run_id,
        b.run_id
    ))
}

fn pairs<'a>(runs: &'a [&'a Run]) -> impl Iterator<Item = (&'a Run, &'a Run)> {
    let others = |(at, a): (usize, &&'a Run)| {
        let a = *a;
        runs[at + 1..].iter().map(move |b| (a, *b))
    };
    runs.iter().enumerate().flat_map(others)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cell, compared, run, virtual_board};
    use super::*;
    use crate::schema::{BoardIdentity, IdentityKind};

    /// A run of a board that is known by these, such as `uuid 1`.
    fn of_board(id: &str, name: &str, known_by: &[&str]) -> Run {
        let kinds =
            [IdentityKind::Serial, IdentityKind::Uuid, IdentityKind::Mac, IdentityKind::Name];
        let identity = |text: &&str| {
            let (by, content) = text.split_once(' ').unwrap();
            BoardIdentity::of(kinds.into_iter().find(|kind| kind.name() == by).unwrap(), content)
        };
        let mut run = run(id, "rt", vec![cell("x", 10, 20)]);
        run.board.name = name.to_owned();
        run.board.identity = known_by.iter().map(identity).collect();
        run
    }

    /// How many runs each side has, what differs, and the caveats on boards.
    fn comes_to(runs: &[Run]) -> (Vec<usize>, Vec<String>, Vec<String>) {
        let comparison = compared(runs.to_vec());
        let sizes = comparison.groups.iter().map(|group| group.runs.len()).collect();
        let differ = comparison.differences.into_iter().map(|found| found.what).collect();
        let caveats = comparison.caveats.into_iter();
        (sizes, differ, caveats.filter(|text| text.contains("told apart by")).collect())
    }

    #[test]
    fn boards_of_one_name_are_two_by_what_both_tell() {
        let board = |id: &str, serial: &str| of_board(id, "x86", &[serial]);
        let runs = [board("a", "serial 1"), board("b", "serial 1"), board("c", "serial 2")];
        let (sizes, differ, said) = comes_to(&runs);
        assert_eq!((sizes, differ), (vec![2, 1], vec!["identity of the board".to_owned()]));
        assert_eq!(said, [""; 0]);
        // One that was measured as root and not as root is one.
        let root = of_board("a", "x86", &["uuid 1", "mac 5"]);
        let runs = [root, of_board("b", "x86", &["mac 5"]), of_board("c", "x86", &["mac 6"])];
        assert_eq!(comes_to(&runs).0, [2, 1]);
        let records: Vec<&Run> = runs.iter().collect();
        let names = board_names(&records);
        let mac = |run: &Run| {
            let known = &run.board.identity;
            known.iter().find(|one| one.by == IdentityKind::Mac).unwrap().value[..8].to_owned()
        };
        assert_eq!(names, [0, 0, 2].map(|at| format!("x86 mac={}", mac(&runs[at]))));
    }

    #[test]
    fn a_board_of_two_host_names_is_one_and_of_two_given_names_two() {
        let runs = [of_board("a", "dhcp-1", &["mac 5"]), of_board("b", "dhcp-2", &["mac 5"])];
        let (sizes, differ, _) = comes_to(&runs);
        assert_eq!((sizes, differ), (vec![2], vec![]), "what a board is called moves no latency");
        let records: Vec<&Run> = runs.iter().collect();
        assert_eq!(board_names(&records), ["dhcp-1", "dhcp-1"]);
        let mut given = runs.clone();
        given[1] = of_board("b", "tuned", &["mac 5", "name tuned"]);
        let (sizes, differ, _) = comes_to(&given);
        assert_eq!((sizes, differ), (vec![1, 1], vec!["name of the board".to_owned()]));
        // One name that was given to two boards makes them no one board.
        let pair = [("a", "mac 5"), ("b", "mac 6")]
            .map(|(id, mac)| of_board(id, "tuned", &[mac, "name tuned"]));
        assert_eq!(comes_to(&pair).0, [1, 1]);
    }

    #[test]
    fn boards_that_only_names_tell_apart_are_said_to_be() {
        let said = |runs: &[Run]| comes_to(runs).2;
        let named = |id: &str, name: &str| of_board(id, name, &[&format!("name {name}")]);
        let runs = [named("a", "x"), named("b", "x"), named("c", "y")];
        assert_eq!(comes_to(&runs).0, [2, 1]);
        assert_eq!(
            said(&runs),
            [
                "boards are told apart by --board-name only: no serial, UUID or MAC could be read in \
              both a and b"
            ]
        );
        let unlike = [of_board("a", "x", &["uuid 1"]), of_board("b", "x", &["mac 1"])];
        assert!(said(&unlike)[0].contains("by name and kind only"), "{:?}", said(&unlike));
        assert_eq!(said(&runs[..1]), [""; 0]);
        // Older records, and virtual boards.
        assert_eq!(said(&[of_board("a", "x", &[]), of_board("b", "x", &[])]), [""; 0]);
        let mut of_lab = runs[..2].to_vec();
        of_lab.iter_mut().enumerate().for_each(|(at, run)| virtual_board(run, at as u64, 0));
        assert_eq!(said(&of_lab), [""; 0]);
    }

    #[test]
    fn names_of_boards_differ_whatever_they_are() {
        let mut runs = ["a", "b", "c"].map(|id| of_board(id, "x", &[]));
        runs[1].board.fingerprint = "another".to_owned();
        runs[2].board.name = "x (2)".to_owned();
        let records: Vec<&Run> = runs.iter().collect();
        assert_eq!(board_names(&records), ["x (1) [1]", "x (2) [2]", "x (2) [3]"]);
        assert_eq!(board_names(&records[..2]), ["x (1)", "x (2)"]);
        assert_eq!(board_names(&records[1..]), ["x", "x (2)"]);
    }
}
