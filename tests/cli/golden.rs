//! Help and errors, letter by letter. `TRYCMD=overwrite` writes them anew.

#[test]
fn help_and_errors_are_as_recorded() {
    let cases = trycmd::TestCases::new();
    cases.env("LC_ALL", "C.UTF-8").env("COLUMNS", "100").case("../../tests/cli/golden/*.trycmd");
}
