//! What is no kernel's function is found.
#![allow(clippy::unwrap_used, reason = "tests")]

use perpetua_ir::front::rust::{Instantiation, kernels_in_file};

use super::super::super::entry::Entry;
use super::*;

/// The kernel of this text, and what is called in place of its function.
fn judged(text: &str, plain: Plain) -> String {
    let kernel = kernels_in_file(text, "k.rs").unwrap().remove(0);
    let entry = Entry::new("k", kernel.function, Instantiation::default, None);
    let kernel = KernelFn::new(Box::leak(Box::new(entry)));
    let subject = Subject::new(kernel).unwrap_or_else(|why| panic!("{why}"));
    match tried(&subject, "k", plain, 12) {
        Ok(Judged::Same) => "same".to_owned(),
        Ok(Judged::Faulted) => "faulted".to_owned(),
        Ok(Judged::Left(why)) => why.to_owned(),
        Err(difference) => difference.what,
    }
}

const DOUBLE: &str = "#[kernel]
fn k(x: &mut [f32], by: u32) {
    let i = global_id_x();
    if i < x.len() {
        x[i] = x[i] * 2.0 + by as f32;
    }
}";

#[test]
fn a_function_is_its_kernel() {
    let told = judged(DOUBLE, |args| {
        let (mut x, by) = (args.slice::<f32>(), args.value::<u32>());
        args.run(&mut || {
            let i = super::super::super::index::global_id_x();
            if i < x.len() {
                x[i] = x[i] * 2.0 + by as f32;
            }
        });
        args.left(&x);
    });
    assert_eq!(told, "same");
}

#[test]
fn one_that_stores_something_else_is_not() {
    let told = judged(DOUBLE, |args| {
        let (mut x, by) = (args.slice::<f32>(), args.value::<u32>());
        args.run(&mut || {
            let i = super::super::super::index::global_id_x();
            if i < x.len() && i != 3 {
                x[i] = x[i] * 2.0 + by as f32;
            }
        });
        args.left(&x);
    });
    assert!(
        told.starts_with("argument 0 in the interpreter: element 3 is "),
        "{told}"
    );
}

#[test]
fn one_that_panics_is_not() {
    let told = judged(DOUBLE, |args| {
        let (x, _) = (args.slice::<f32>(), args.value::<u32>());
        args.run(&mut || assert!(x.is_empty(), "full"));
        args.left(&x);
    });
    assert_eq!(told, "the kernel ends, the function panics: full");
}

#[test]
fn one_that_does_not_fault_is_not() {
    let text = "#[kernel] fn k(x: &mut [u32]) { x[x.len()] = 1; }";
    let told = judged(text, |args| {
        let x = args.slice::<u32>();
        args.run(&mut || {});
        args.left(&x);
    });
    assert!(
        told.starts_with("the function ends, the kernel faults: "),
        "{told}"
    );
}

#[test]
fn what_does_not_end_is_left() {
    let text = "#[kernel] fn k(x: &mut [u32]) { loop { x[0] = x[0] + 1; } }";
    let told = judged(text, |args| {
        let x = args.slice::<u32>();
        args.run(&mut || panic!("called"));
        args.left(&x);
    });
    assert_eq!(told, "it takes long");
}
