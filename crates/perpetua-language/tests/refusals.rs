//! What the macros refuse, at the span that the user wrote, with what to write instead.

#[test]
fn refusals_stand_at_their_span() {
    trybuild::TestCases::new().compile_fail("tests/refusals/*.rs");
}
