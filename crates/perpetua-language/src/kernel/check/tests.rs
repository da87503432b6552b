//! What is found of kernels that no `#[kernel]` has registered, so that no check of this crate finds them.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::super::entry::Entry;
use super::*;
use perpetua_ir::front::rust::{GenericValue, TypeDesc, kernels_in_file};
use perpetua_syntax::Scalar;

const TEXT: &str = "#[kernel]
fn parted(x: &mut [f32]) {
    if global_id_x() > 3 {
        sync_threads();
    }
    x[0] = 1.0;
}
#[kernel]
fn stepped(x: &mut [f32]) {
    x[0] = x[1].half_up();
}
#[kernel]
fn generic<T>(x: &mut [T]) {
    x[0] = x[1].half_up();
}
#[kernel]
fn wide(x: &mut [f64]) {
    x[0] = x[1].sin();
}
#[kernel]
fn fine(x: &mut [f32]) {
    x[0] = 1.0;
}";

/// The kernel of a name in `TEXT`, in a file that is called so.
fn entry(name: &str, file: &str, how: fn() -> Instantiation) -> KernelFn {
    let all = kernels_in_file(TEXT, file).unwrap();
    let kernel = all.into_iter().find(|kernel| kernel.name == name).unwrap();
    let name: &'static str = Box::leak(kernel.name.into_boxed_str());
    KernelFn::new(Box::leak(Box::new(Entry::new(name, kernel.function, how, None))))
}

fn float() -> Instantiation {
    Instantiation {
        generics: vec![GenericValue::Type(TypeDesc::Scalar(Scalar::F32))],
        ..Instantiation::default()
    }
}

#[test]
fn each_kernel_is_judged_once() {
    let own = |kernel| Registered::new(kernel);
    let known = [
        own(|| entry("parted", "src/k.rs", Instantiation::default)),
        own(|| entry("stepped", "src/k.rs", Instantiation::default)),
        own(|| entry("stepped", "/elsewhere/src/k.rs", Instantiation::default)),
        own(|| entry("fine", "/here/src/k.rs", Instantiation::default)),
        own(|| entry("wide", "src/k.rs", Instantiation::default)),
        Registered {
            instance: || "k::generic::kernel::Instance<f32>",
            ..own(|| entry("generic", "/elsewhere/src/k.rs", float))
        },
    ];
    let found = answered(&known, Path::new("/here"), String::new());
    let shown = |text: &str| {
        let lines = text.lines().map(|line| line.split(BETWEEN).collect::<Vec<_>>());
        let lines = lines.map(|parts| match *parts.as_slice() {
            ["kernel", name, file, line] => format!("{name} {file}:{line}"),
            ["refused", target, file, line, start, end, cause] => {
                let place = TEXT.get(start.parse().unwrap()..end.parse().unwrap()).unwrap();
                let cause = cause.split(':').next().unwrap();
                format!("  {target} {file}:{line} `{place}` {cause}")
            }
            _ => panic!("{parts:?}"),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let expected = "parted src/k.rs:2
   src/k.rs:4 `` the barrier is not reached by all lanes of a block together
stepped src/k.rs:9
   src/k.rs:10 `x[1].half_up()` `f32` has no method `half_up` in kernels
fine /here/src/k.rs:21
wide src/k.rs:17
  MSL src/k.rs:0 `` kernel `wide` (line 18) needs f64, which MSL lacks
  WGSL src/k.rs:0 `` kernel `wide` (line 18) needs functions of f64 such as sin and exp, which WGSL lacks
generic::<f32> /elsewhere/src/k.rs:13
   /elsewhere/src/k.rs:14 `x[1].half_up()` `f32` has no method `half_up` in kernels";
    assert_eq!(shown(&found), expected);
    // What another program has found is not found again.
    assert_eq!(answered(&known, Path::new("/here"), found.clone()), found);
}

#[test]
fn refusals_are_told_with_their_places() {
    let known = Registered::new(|| entry("stepped", "src/k.rs", Instantiation::default));
    let text = CheckError::Refused(refusals(known, false)).to_string();
    assert_eq!(
        text,
        "src/k.rs:10: kernel `stepped`: `f32` has no method `half_up` in kernels: write it as a `#[device]` function"
    );
}
