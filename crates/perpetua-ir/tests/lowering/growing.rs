//! What grows at every step is refused, before it takes all memory or never ends.

use perpetua_ir::front::rust::Instantiation;

use crate::refusals::check_text;
use crate::run::lowered;

#[test]
fn what_grows_has_a_bound() {
    check_text(
        "#[device] fn f<const N: usize>(a: u32) -> u32 { if N < 3 { f::<{ N + 1 }>(a) } else { a } }
         #[kernel] fn k(x: &mut [u32]) { x[0] = f::<0>(3); }",
        "program.rs:1: the call of `f` is more than 64 calls deep, each of another function or with other generic arguments: write a loop",
    );
    check_text(
        "#[device] fn f<T: Copy>() -> u32 { f::<(T, T)>() }
         #[kernel] fn k(x: &mut [u32]) { x[0] = f::<u32>(); }",
        "program.rs:1: a generic argument of `f` is made of more than 1024 types: write a loop",
    );
    let pair = "#[derive(Clone, Copy, GpuType)] #[repr(C)] struct P<T, U> { a: T, b: U }";
    check_text(
        &format!(
            "{pair} #[device] fn f<T: Copy>(a: T) -> u32 {{ f::<P<T, T>>(P {{ a: a, b: a }}) }}
             #[kernel] fn k(x: &mut [u32]) {{ x[0] = f::<u32>(3); }}"
        ),
        "program.rs:1: a value's type is made of more than 1024 types: keep what it holds in an array, or in a struct that is not generic",
    );
    for value in ["P { a: v, b: v }", "(v, v)"] {
        let more = format!("let v = {value};").repeat(64);
        check_text(
            &format!("{pair} #[kernel] fn k(x: &mut [u32]) {{ let v = x[0]; {more} }}"),
            "program.rs:1: a value's type is made of more than 1024 types: keep what it holds in an array, or in a struct that is not generic",
        );
    }
    // Sizes that no number holds.
    let twice = "#[derive(Clone, Copy, GpuType)] #[repr(C)] struct P<T> { a: T, b: T }";
    check_text(
        &format!(
            "{twice} #[device] fn f<T: Copy>(a: T) -> u32 {{ f::<P<T>>(P {{ a: a, b: a }}) }}
             #[kernel] fn k(x: &mut [u32]) {{ x[0] = f::<u32>(3); }}"
        ),
        "program.rs:1: the call of `f` is more than 64 calls deep, each of another function or with other generic arguments: write a loop",
    );
    let nested = |levels: usize| format!("{}u32{}", "P<".repeat(levels), ">".repeat(levels));
    check_text(
        &format!("{twice} #[kernel] fn k(x: &[{}]) {{}}", nested(70)),
        &format!(
            "program.rs:1: the struct `{}` has 4294967296 bytes: make it smaller than 4 GiB",
            nested(30)
        ),
    );
    let mut wide: String = (0..22)
        .map(|i| {
            let next = i + 1;
            format!("#[device] fn f{i}<const N: usize>(a: u32) -> u32 {{ f{next}::<{{ N * 2 }}>(a) + f{next}::<{{ N * 2 + 1 }}>(a) }}\n")
        })
        .collect();
    wide += "#[device] fn f22<const N: usize>(a: u32) -> u32 { a } #[kernel] fn k(x: &mut [u32]) { x[0] = f0::<0>(3); }";
    let error = lowered(&wide, "k", &Instantiation::default()).unwrap_err();
    assert!(error.contains("more than 4096 functions"), "{error}");
}
