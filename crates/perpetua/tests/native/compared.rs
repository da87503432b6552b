//! The kernels of this program do what their functions do as plain Rust, but for those that the language takes otherwise on purpose.

use perpetua::kernel::check::compare::compare_all;

#[test]
fn kernels_do_what_their_functions_do() {
    let differences = compare_all("crates/perpetua/tests/native/", 12).unwrap_err().0;
    let mut names: Vec<&str> = differences.iter().map(|one| &*one.kernel).collect();
    names.sort_unstable();
    // A `clone` that is no copy, and names of one text that `macro_rules!` keeps apart.
    assert_eq!(
        names,
        ["cloned", "two_names", "two_names_in_a_call"],
        "{differences:#?}"
    );
}
