//! Functions that the reader accepts.

use perpetua_syntax::{FunctionKind, decode, encode, parse};

#[test]
fn smoke() {
    let src = r#"
fn k<T: Copy, const N: usize>(data: &mut [f32], n: i32, m: half::f16) where T: Add<Output = T> {
    let idx = block_idx_x() * block_dim_x() + thread_idx_x();
    if idx >= n { return; }
    let tile = workgroup_array::<[f32; N * 2]>();
    'a: for i in (0..10).rev().step_by(2) { if i == 3 { break 'a; } else if i == 4 { continue } }
    atomic_add_explicit(&mut data[0], 1.0, Ordering::Relaxed, Scope::Device);
    let x = match idx { 0 => 1, 1..=3 | -5 => 2, MAX => 3, Mode::A => 4, v if v > 3 => v, _ => unreachable!() };
    gpu_println!("a {} {x:>8.3} {{}}", n);
    data[idx as usize] = f32::max(T::MAX, std::f32::consts::PI) + helper::<N>(Vec2 { x: 1.0, ..Vec2(1.0, 2.0) }, 1e3f32);
}
"#;
    let item: syn::ItemFn = syn::parse_str(src).unwrap();
    let read = parse::read_function(&item, FunctionKind::Kernel, "x.rs").unwrap();
    let bytes = encode(&read.tree);
    assert_eq!(decode(&bytes).unwrap(), read.tree);
}
