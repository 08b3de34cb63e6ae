//! What the compiler says about mistakes in markers. One mistake a case, named for it.
//!
//! `tests/ui` holds the mistakes with the expected words (`TRYBUILD=overwrite` rewrites them), `tests/pass` what
//! must compile. The cases are slow to build, so they show that each sort of complaint arrives at its token;
//! every single complaint has its test in `rbuilder-syntax`.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
    cases.pass("tests/pass/*.rs");
}
