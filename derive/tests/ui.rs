//! The compiler's output for mistakes in markers. Each case is named after its mistake.
//!
//! `tests/ui` holds the mistakes and the expected output, which `TRYBUILD=overwrite` rewrites.
//! `tests/pass` holds code that must compile. The cases are slow to build, so they only check that
//! errors point at the right token. `rbuilder-syntax` tests the individual messages.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
    cases.pass("tests/pass/*.rs");
}
