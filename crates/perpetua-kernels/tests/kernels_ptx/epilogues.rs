//! What products in stages do before they store costs no memory, and makes no product wait.

use perpetua::prelude::*;
use perpetua_kernels::{Beside, Element, Epilogue, Factors, Gate, GemmKernel, Kernel};
use perpetua_vendor_tools::ptxas;

/// Of a bias for each column.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Bias {
    unit: u8,
}

#[device]
impl Epilogue for Bias {
    fn apply(element: f32, beside: f32) -> f32 {
        element + beside
    }
}

#[test]
fn epilogues() {
    for (rows, columns) in [(256, 256), (128, 128), (64, 128)] {
        for beside in [Beside::Columns, Beside::Elements] {
            for n in [512, 511] {
                let kernel = GemmKernel::staged(512, n, 512)
                    .with_element(Element::Bf16)
                    .with_tile(rows, columns)
                    .with_epilogue::<Bias>(beside);
                let ptx = kernel.ptx_for(90).unwrap();
                let Some(assembled) = ptxas(&ptx, "sm_90a").required("epilogue").unwrap() else {
                    return;
                };
                let usage = &assembled.usage[0];
                println!("{rows} x {columns} of {n}: {usage:?}");
                assert_eq!((usage.stack_bytes, usage.spill_store_bytes), (0, 0), "{usage:?}");
                let complaints = ["serializ", "C75", "setmaxnreg", "warning"];
                let complains = complaints.iter().find(|word| assembled.log.contains(**word));
                assert_eq!(complains, None, "{}", assembled.log);
            }
        }
    }
}

/// Half of one column, times another.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Halved {
    unit: u8,
}

#[device]
impl Gate for Halved {
    fn join(gate: f32, value: f32) -> f32 {
        gate / (1.0 + (-gate).exp()) * value
    }
}

/// Columns that are joined, and integers of which floats are made.
#[test]
fn gates_and_scaled_integers() {
    for (rows, columns) in [(256, 256), (128, 128), (64, 128), (128, 64)] {
        for n in [512, 510] {
            let of = |factors, element| {
                GemmKernel::staged(512, n, 512)
                    .with_factors(factors)
                    .with_element(element)
                    .with_transposed(false, true)
                    .with_tile(rows, columns)
            };
            for (what, kernel) in [
                ("bf16", of(Factors::Bf16, Element::Bf16).with_gate::<Halved>()),
                ("f32", of(Factors::Bf16, Element::F32).with_gate::<Halved>()),
                ("i8", of(Factors::I8, Element::F16).with_gate::<Halved>()),
                (
                    "i8, scaled",
                    of(Factors::I8, Element::Bf16).with_epilogue::<Bias>(Beside::Columns),
                ),
            ] {
                let ptx = kernel.ptx_for(90).unwrap();
                let Some(assembled) = ptxas(&ptx, "sm_90a").required("gate").unwrap() else {
                    return;
                };
                let usage = &assembled.usage[0];
                println!("{what}, {rows} x {columns} of {n}: {usage:?}");
                assert_eq!((usage.stack_bytes, usage.spill_store_bytes), (0, 0), "{usage:?}");
                let complaints = ["serializ", "C75", "setmaxnreg", "warning"];
                let complains = complaints.iter().find(|word| assembled.log.contains(**word));
                assert_eq!(complains, None, "{}", assembled.log);
            }
        }
    }
}
