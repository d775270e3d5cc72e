//! Which kernel a name means.

use super::*;

#[test]
fn without_meta_packages_the_newest_name_counts() {
    let machine = Machine::new();
    let without = bookworm("6.1.0-56").replace("linux-image-amd64", "linux-image-other-amd64");
    machine.archive("bookworm", &without);
    let (kernel, _) = machine.resolve("debian:rt", true).unwrap();
    assert_eq!(kernel.release, "6.1.0-56-rt-amd64");
}

#[test]
fn what_is_here_is_used_where_a_newer_one_cannot_be_fetched() {
    let machine = Machine::new();
    machine.kernels.fetch("debian:6.1.0-9-rt", Arch::X86_64, &mut |_| ()).unwrap();
    machine.tool(
        "apt-get",
        "echo 'W: x' >&2; echo 'E: Failed to fetch http://deb  Temporary failure' >&2; exit 100",
    );
    for name in ["debian:rt", "debian:6.1-rt"] {
        let (kernel, said) = machine.resolve(name, true).unwrap();
        assert_eq!(kernel.release, "6.1.0-9-rt-amd64");
        let last = said.last().unwrap();
        assert!(last.contains("apt-get: Failed to fetch http://deb  Temporary failure"), "{last}");
        assert!(last.ends_with("using debian:6.1.0-9 instead"), "{last}");
    }
    let error = machine.error("debian:none", true);
    assert!(error.contains("`punctual lab fetch debian:6.1.0-56`; or give the path"), "{error}");
    assert_eq!(machine.resolve("debian:rt", false).unwrap().0.release, "6.1.0-9-rt-amd64");
    // Nothing of 6.12 is here, and nobody says what bookworm has now.
    machine.forget();
    assert!(machine.error("debian:6.12-rt", true).contains("Temporary failure"));
    assert!(machine.error("debian:bookworm-rt", true).contains("Temporary failure"));
}

#[test]
fn names_without_a_version_mean_one_release_whatever_was_fetched_by_its_version() {
    let machine = Machine::new();
    machine.archive("trixie-backports", &split("7.3.4+deb13", &["binary", "modules", "base"]));
    let fetch = |spec| machine.kernels.fetch(spec, Arch::X86_64, &mut |_| ()).unwrap().name;
    assert_eq!(fetch("debian:7.3.4+deb13"), "debian:7.3.4+deb13");
    assert_eq!(fetch("debian:none"), "debian:6.1.0-56", "not the newer one that is here");

    let both = |machine: &Machine| {
        let mut said = Vec::new();
        let mut say = |text: &str| said.push(text.to_owned());
        let specs = ["debian:none", "debian:rt"];
        let kernels = machine.kernels.resolve(&specs, Arch::X86_64, None, false, &mut say);
        kernels.map(|kernels| (kernels.into_iter().map(|k| k.release).collect::<Vec<_>>(), said))
    };
    let error = both(&machine).unwrap_err().to_string();
    assert!(error.contains("debian:rt for x86_64 (debian:6.1.0-56-rt) is not"), "{error}");
    assert_eq!(fetch("debian:rt"), "debian:6.1.0-56-rt");
    let expected = ["6.1.0-56-amd64", "6.1.0-56-rt-amd64"];
    assert_eq!(both(&machine).unwrap().0, expected);

    // The distribution has a newer kernel, which is not here: the newest with both models is.
    machine.archive("bookworm", &bookworm("6.1.0-57"));
    machine.forget();
    machine.kernels.list(Arch::X86_64, &mut |_| ()).unwrap();
    let (releases, said) = both(&machine).unwrap();
    assert_eq!(releases, expected);
    assert!(said[0].ends_with("using debian:6.1.0-56 instead"), "{said:?}");
}

#[test]
fn kernels_are_named_by_series_and_by_release() {
    let machine = Machine::new();
    let all = ["binary", "modules", "base"];
    let backports =
        split("7.2.9+deb13", &all) + &split("7.3.4+deb13", &all) + &split("7.1.3+deb13", &[]);
    machine.archive("trixie-backports", &backports);
    let release = |spec: &str| machine.resolve(spec, true).map(|(kernel, _)| kernel.release);
    for (name, expected) in [
        ("debian:6.1", "6.1.0-56-amd64"),
        ("debian:6.1-rt", "6.1.0-56-rt-amd64"),
        ("debian:7.3-lazy", "7.3.4+deb13-amd64"),
        ("debian:7.2", "7.2.9+deb13-amd64"),
        ("debian:bookworm-none", "6.1.0-56-amd64"),
        ("debian:oldstable", "6.1.0-56-amd64"),
        ("debian:trixie-backports", "7.3.4+deb13-amd64"),
        ("debian:stable-backports-full", "7.3.4+deb13-amd64"),
    ] {
        assert_eq!(release(name).unwrap(), expected, "{name}");
    }
    let error = machine.error("debian:6.12", true);
    assert!(error.ends_with("has no kernel 6.12; it has 6.1, 7.2, 7.3"), "{error}");
    let error = machine.error("debian:trixie", true);
    assert!(error.contains("'http://mirror trixie Release' does not have"), "{error}");
    let error = machine.error("debian:stable", true);
    assert!(error.contains("no release of Debian is stable now"), "{error}");
    let error = machine.error("debian:7.1.3+deb13", true);
    assert!(
        error.contains("no package linux-image-7.1.3+deb13-amd64"),
        "its image is gone: {error}"
    );
    let error = machine.error("debian:7.3-none", true);
    assert!(error.contains("has no preemption model none: since Linux 7.0"), "{error}");

    let models = |machine: &Machine| {
        machine
            .kernels
            .own_models(Arch::X86_64, false, &mut |_| ())
            .iter()
            .map(Model::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(models(&machine), "none voluntary full rt");
    machine.archive("bookworm", &bookworm("7.4.1+deb12"));
    machine.forget();
    assert_eq!(models(&machine), "full lazy rt", "by what is here");
    machine.kernels.list(Arch::X86_64, &mut |_| ()).unwrap();
    assert_eq!(models(&machine), "full lazy rt");
}

#[test]
fn a_kernel_without_a_model_is_booted_with_all_that_it_has() {
    let machine = Machine::new();
    machine.archive("sid", &split("7.3.4+deb14", &["binary", "modules", "base"]));
    let models = |name: &str| {
        let mut said = Vec::new();
        let mut say = |text: &str| said.push(text.to_owned());
        let all = machine.kernels.with_all_models(name, Arch::X86_64, true, &mut say).unwrap();
        (all.into_iter().map(|kernel| kernel.name).collect::<Vec<_>>(), said)
    };
    let (names, _) = models("debian:6.1");
    let expected =
        ["none", "voluntary", "full", "rt"].map(|model| format!("debian:6.1.0-56-{model}"));
    assert_eq!(names, expected);
    let (names, said) = models("debian:7.3");
    assert_eq!(names, ["debian:7.3.4+deb14-lazy", "debian:7.3.4+deb14-full"]);
    let last = said.last().unwrap();
    assert!(last.starts_with("debian:7.3.4+deb14-rt is left out: Debian has no package"), "{last}");
    assert_eq!(models("debian:6.1-full").0, ["debian:6.1.0-56-full"]);
    let newest = machine.kernels.newest_series(Arch::X86_64, false, &mut |_| ());
    assert_eq!(newest.unwrap(), "7.3");
}
