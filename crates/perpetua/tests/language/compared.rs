//! The kernels of this program, those of the libraries that are linked to it among them, do what their functions do as plain Rust.

use perpetua::kernel::check::compare::compare_all;

#[test]
fn kernels_do_what_their_functions_do() {
    let found = compare_all("crates/perpetua", 12).unwrap();
    assert!(found.same > 250, "{found:#?}");
}
