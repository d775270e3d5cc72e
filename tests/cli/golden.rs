//! Help and errors, letter by letter. `TRYCMD=overwrite` writes them anew.

#[test]
fn help_and_errors_are_as_recorded() {
    trycmd::TestCases::new().case("../../tests/cli/golden/*.trycmd");
}
