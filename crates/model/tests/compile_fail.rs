//! `Armed` cannot be forged: these programs must not compile, and for the right reason.

#[test]
fn armed_cannot_be_forged() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
