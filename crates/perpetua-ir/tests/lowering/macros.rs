//! Macros that a file defines: what their names mean.

use perpetua_cpu::interp::{Arg, BufferRef};
use perpetua_ir::front::rust::Instantiation;

use crate::run::{kernel, launch, lowered};

/// Functions that macros make have the parameters that are written, and locals of callers are none of a macro's names.
#[test]
fn macros_of_files_keep_names_apart() {
    let text = "
        macro_rules! vector { ($name:ident, $($field:ident),+) => {
            #[derive(Clone, Copy, GpuType)]
            #[repr(C)]
            struct $name { $($field: f32),+ }
            #[device]
            impl $name {
                fn dot(self, other: $name) -> f32 { 0.0 $(+ self.$field * other.$field)+ }
                fn scaled(self, by: f32) -> Self { $name { $($field: self.$field * by),+ } }
                fn splat(v: f32) -> $name { $name { $($field: v),+ } }
            }
        } }
        vector!(Pair, u, v);
        macro_rules! summed { ($p:expr) => {{ let Pair { u, v: w } = $p; let Pair { u: again, .. } = $p; u + w * again }} }
        #[device] fn base() -> f32 { 100.0 }
        macro_rules! above { ($v:expr) => { $v + base() } }
        macro_rules! kernels { ($($name:ident => $op:tt),*) => { $(
            #[kernel] fn $name(x: &mut [f32], by: f32) { let v = x[0] $op by; x[0] = above!(v); }
        )* } }
        kernels!(added => +, product => *);
        macro_rules! count { () => { 0.0 }; ($first:tt $($rest:tt)*) => { 1.0 + count!($($rest)*) } }
        macro_rules! named { ($x:ident) => { 1.0 }; (_) => { 2.0 } }
        #[kernel] fn counted(x: &mut [f32]) {
            x[0] = count!(a += b) + 10.0 * count!(a <<= -b ..=) + 100.0 * named!(_);
        }
        #[kernel] fn k(x: &mut [f32]) {
            let base = 3.0;
            let u = 2.0;
            x[0] = above!(base) + summed!(Pair::splat(u).scaled(4.0)) * 1000.0 + Pair::splat(base).dot(Pair { u, v: 1.0 }) * 1e6;
        }";
    let wrong = "macro_rules! names_x { ($i:expr) => { x[$i] } } #[kernel] fn k(x: &mut [f32]) { x[0] = names_x!(1); }";
    let how = Instantiation::default();
    let mut x = vec![0.0f32];
    let mut run = |name: &str, args: &[f32]| {
        let mut args: Vec<Arg<'_>> = args
            .iter()
            .map(|arg| Arg::Value(bytemuck::bytes_of(arg)))
            .collect();
        args.insert(0, Arg::Buffer(BufferRef::from_slice(&mut x)));
        launch(&kernel(text, name, &how), [1, 1, 1], [1, 1, 1], &args).unwrap();
        drop(args);
        x[0]
    };
    assert_eq!(run("k", &[]), 103.0 + (8.0 + 64.0) * 1000.0 + 9.0 * 1e6);
    assert_eq!(run("added", &[1.0]), 9_072_204.0);
    assert_eq!(run("product", &[0.0]), 100.0);
    // A token tree is a token as Rust divides text, and `_` is no name.
    assert_eq!(run("counted", &[]), 3.0 + 10.0 * 5.0 + 100.0 * 2.0);
    let error = lowered(wrong, "k", &how).unwrap_err();
    assert!(
        error.contains("not the parameter `x` of the function that calls it"),
        "{error}"
    );
}
