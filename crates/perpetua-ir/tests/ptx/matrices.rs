//! Matrices that a warp's lanes hold together.

use perpetua_ir::back::{Capability, RenderError, ptx};
use perpetua_ir::ir::Kernel;
use perpetua_ir::verify::{Verified, verify};

use crate::assemble_for;

/// Loads rows from shared memory and multiplies them; what `between` says happens between loading and use.
fn kernel(between: &str) -> Verified {
    let text = format!(
        "shared room: [[u32; 4]; 64]
kernel k(x: buffer<f32, read_write>) block_size(64, 1, 1) {{
  %0: u32 = thread_idx.x
  %1: [u32; 4] = zero
  store room[%0], %1
  barrier
  %2: [u32; 4] = load room[%0]
  {between}
  %3: [u32; 4] = matrix_rows %2
  %4: [u32; 4] = matrix_columns %2
  %5: u32 = extract %4.0
  %6: u32 = extract %4.1
  %7: [u32; 2] = compose %5, %6
  %8: [f32; 4] = zero
  %9: [f32; 4] = matrix_multiply_f16 %3, %7, %8
  %10: [f32; 4] = matrix_multiply_bf16 %3, %7, %9
  %11: [f32; 4] = matrix_multiply_tf32 %3, %7, %10
  %12: f32 = extract %11.3
  store x[%0], %12
}}
"
    );
    let kernel: Kernel = text.parse().unwrap();
    verify(kernel).unwrap()
}

#[test]
fn rows_come_from_memory_only_while_it_stays_as_it_is() {
    let cases = [
        ("", true),
        ("%13: u32 = add %0, %0", true),
        ("barrier", false),
        ("store room[%0], %1", false),
        ("%13: f32 = const 1.0\n  store x[%0], %13", false),
    ];
    for (between, from_memory) in cases {
        let verified = kernel(between);
        for generation in [(80, "sm_80"), (90, "sm_90a")] {
            let (source, _) = assemble_for(&verified, generation);
            let count = |what: &str| source.text.matches(what).count();
            let expected = if from_memory { [2, 0, 0] } else { [0, 32, 4] };
            let found = ["ldmatrix.sync", "shfl.sync", "movmatrix.sync"].map(count);
            assert_eq!(found, expected, "{between}:\n{}", source.text);
            assert_eq!(count("mma.sync.aligned.m16n8k16"), 2);
            assert_eq!(count("mma.sync.aligned.m16n8k8"), 1);
        }
    }
}

#[test]
fn older_generations_lack_them() {
    match ptx::render(&kernel(""), 75) {
        Err(RenderError::Lacks { capability, .. }) => assert_eq!(capability, Capability::Matrices),
        other => panic!("{other:?}"),
    }
}
