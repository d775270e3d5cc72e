use super::*;

fn offered(line: &str) -> Vec<String> {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    offer(&words).candidates.into_iter().map(|candidate| candidate.word).collect()
}

fn paths(line: &str) -> Paths {
    offer(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).paths
}

#[test]
fn names_complete_where_they_can_stand() {
    for (line, expected) in [
        ("ru", &["run"][..]),
        ("run wak", &["wakeup"]),
        ("run clock wak", &["wakeup"]),
        ("run clock,wak", &["clock,wakeup"]),
        ("run lat.sys", &["lat.syscall"]),
        ("run -p 80 wak", &["wakeup"]),
        ("run -Sp90 wak", &["wakeup"]),
        ("run -t wak", &["wakeup"]),
        ("run -t per", &["per-cpu"]),
        ("run -a a", &["auto"]),
        ("run --policy r", &["rr"]),
        ("run --timer=re", &["--timer=relative"]),
        ("run --load hack", &["hackbench"]),
        ("run wakeup --load none,hack", &["none,hackbench"]),
        ("run --load none,flood+hack", &["none,flood+hackbench"]),
        ("run --load hackbench:mo", &["hackbench:mode="]),
        ("run --load none,hackbench:mode=th", &["none,hackbench:mode=thread"]),
        ("run wakeup:timer=posix,al", &["wakeup:timer=posix,aligned="]),
        ("run wakeup:timer=r", &["wakeup:timer=relative"]),
        ("run --plan koo", &["koolwal-geode"]),
        ("run --sync b", &["block"]),
        ("run --dead", &["--deadline"]),
        ("compare --published koo", &["koolwal-geode"]),
        ("run -- wak", &["wakeup"]),
        ("load hack", &["hackbench"]),
        ("list koo", &["koolwal-geode"]),
        ("lab ch", &["check"]),
        ("lab run --kernel debian:none,debian:r", &["debian:none,debian:rt"]),
        ("completions el", &["elvish"]),
        ("run --board-name wak", &[]),
        ("run nonsense:x", &[]),
        ("load hackbench floo", &[]),
    ] {
        assert_eq!(offered(line), expected, "{line}");
    }
}

#[test]
fn paths_are_left_to_the_shell() {
    for (line, expected) in [
        ("run --out ", Paths::Folders),
        ("run --continue ", Paths::Folders),
        ("run --plan ", Paths::Files),
        ("show ", Paths::Folders),
        ("run ", Paths::None),
        ("report -o ", Paths::Files),
    ] {
        assert_eq!(paths(line), expected, "{line}");
    }
}

/// Every option of every command is offered, with the same words as in its help.
#[test]
fn every_option_is_offered() {
    fn walk(command: &Command, line: &str, count: &mut usize) {
        for arg in command.get_arguments().filter(|arg| arg.get_long().is_some()) {
            let name = format!("--{}", arg.get_long().unwrap());
            let found = offered(&format!("{line}{name}"));
            assert!(found.contains(&name), "{line}{name}: {found:?}");
            *count += 1;
        }
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            walk(below, &format!("{line}{} ", below.get_name()), count);
        }
    }
    let mut whole = cli::command();
    whole.build();
    let mut count = 0;
    walk(&whole, "", &mut count);
    assert!(count > 60, "{count}");
}
