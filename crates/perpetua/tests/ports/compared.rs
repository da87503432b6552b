//! The kernels of this program do what their functions do as plain Rust.

use perpetua::kernel::check::compare::compare_all;

#[test]
fn kernels_do_what_their_functions_do() {
    let found = compare_all("crates/perpetua/tests/ports/", 12).unwrap();
    assert!(found.same > 60, "{found:#?}");
}
