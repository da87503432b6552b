//! What memory steps take: planned, drawn, given back, and missing.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use common::devices;
use perpetua_device::{BackendKind, Device, MemoryKind};
use perpetua_tensor::{DType, Statistics, Tensor, compile};

fn cpu() -> Device {
    Device::new(BackendKind::Cpu, 0).expect("the CPU")
}

/// A chain that cannot fuse: each result is a product with the next.
fn chain(x: &Tensor, w: &Tensor, links: usize) -> Tensor {
    (0..links).fold(x.clone(), |x, _| x.matmul(w).tanh())
}

const SIDE: usize = 32;
const BYTES: u64 = (SIDE * SIDE * 4) as u64;

fn square(device: &Device) -> Tensor {
    let x = Tensor::linspace(-0.1, 0.1, SIDE * SIDE, device).reshape([SIDE as isize, SIDE as isize]);
    x.realize().expect("a value");
    x
}

#[test]
fn memory_is_used_again_as_soon_as_nothing_reads_it() {
    for device in devices() {
        let w = square(&device);
        let y = chain(&w, &w, 20);
        let plan = Tensor::memory_plan(&[&y]).expect("no error");
        assert_eq!(
            (plan.steps.len(), plan.total(), plan.peak()),
            (20, 20 * BYTES, 2 * BYTES)
        );
        assert_eq!(plan.given, BYTES);
        y.realize().expect("a value");
        // What somebody holds stays.
        let middle = chain(&w, &w, 10);
        let end = chain(&middle, &w, 10);
        let plan = Tensor::memory_plan(&[&end]).expect("no error");
        assert_eq!(plan.peak(), 3 * BYTES);
        end.realize().expect("a value");
        assert_eq!(
            middle.explain().expect("no error").kernels.len(),
            0,
            "it has its value"
        );
        assert_eq!(
            end.to_vec::<f32>().expect("floats"),
            y.to_vec::<f32>().expect("floats")
        );
    }
}

#[test]
fn statistics_say_what_a_computation_took_at_most() {
    // A device of its own, whose statistics nobody else changes.
    let device = cpu();
    let w = square(&device);
    let before = Statistics::of(&device).peak;
    chain(&w, &w, 20).realize().expect("a value");
    let after = Statistics::of(&device).peak;
    assert!(after >= 2 * BYTES && after >= before, "{before}, {after}");
    assert!(device.pool_stats(MemoryKind::Device).in_use < 1 << 30);
}

#[test]
fn tracked_values_are_kept_for_gradients_and_end_with_them() {
    let device = cpu();
    let w = square(&device).tracked();
    let y = chain(&w, &w, 6).sum(..);
    // All of the way there is kept where no gradient is made of it yet.
    let there = Tensor::memory_plan(&[&y]).expect("no error");
    assert!(there.peak() >= 6 * BYTES, "{there}");
    let gradient = y.grad(&[&w]).expect("a gradient").remove(0);
    let both = Tensor::memory_plan(&[&y, &gradient]).expect("no error");
    assert!(both.peak() < both.total() / 2, "{both}");
    Tensor::realize_all(&[&y, &gradient]).expect("values");
    // Another one computes again what it needs.
    let again = y.grad(&[&w]).expect("a gradient").remove(0);
    assert_eq!(
        again.to_vec::<f32>().expect("floats"),
        gradient.to_vec::<f32>().expect("floats")
    );
}

#[test]
fn checkpoints_need_less_at_a_time() {
    let device = cpu();
    let w = square(&device).tracked();
    let peak = |saves: bool| {
        let layer = |x: &Tensor, w: &Tensor| chain(x, w, 8);
        let y = (0..8).fold(w.clone(), |x, _| match saves {
            true => {
                perpetua_tensor::checkpoint(move |x| Ok(layer(&x[0], &x[1])), &[&x, &w]).expect("a value")
            }
            false => layer(&x, &w),
        });
        let gradient = y.sum(..).grad(&[&w]).expect("a gradient").remove(0);
        let plan = Tensor::memory_plan(&[&gradient]).expect("no error");
        (plan.peak() / BYTES, gradient.to_vec::<f32>().expect("floats"))
    };
    let ((kept, gradient), (again, same)) = (peak(false), peak(true));
    assert!(2 * again < kept, "{again} of {kept}");
    // Its parts are added up in another order.
    let size = gradient.iter().fold(0.0f32, |size, x| size.max(x.abs()));
    for (a, b) in gradient.iter().zip(same) {
        assert!((a - b).abs() <= 1e-5 * size, "{a}, {b}");
    }
}

#[test]
fn a_plan_is_drawn() {
    let device = cpu();
    let w = square(&device);
    let plan = Tensor::memory_plan(&[&chain(&w, &w, 3)]).expect("no error");
    let text = plan.to_string();
    assert!(
        text.starts_with("peak 8.0 KiB, 12.0 KiB without reuse, 4.0 KiB given\n"),
        "{text}"
    );
    assert!(
        text.contains("█") && text.contains("▒") && text.contains("tanh f32[32, 32]"),
        "{text}"
    );
    let svg = plan.svg();
    assert_eq!(
        (svg.matches("<g>").count(), svg.matches("</svg>").count()),
        (3, 1)
    );
    assert!(!svg.contains("NaN"));
    let empty = Tensor::memory_plan(&[]).expect("nothing");
    assert_eq!((empty.peak(), empty.svg().contains("NaN")), (0, false));
}

#[test]
fn out_of_memory_is_an_error_after_which_all_else_works() {
    for device in devices() {
        let limit = device.info().limits.max_buffer_bytes;
        let side = 65_000usize;
        let x = square(&device);
        let large = Tensor::ones([side, side], DType::F32, &device);
        // Where so much can be had, more of it cannot.
        if (side * side * 4) as u64 <= limit && device.backend() != BackendKind::Cuda {
            continue;
        }
        let copies: Vec<Tensor> = (0..32).map(|i| &large * i).collect();
        let error = Tensor::realize_all(&copies.iter().collect::<Vec<_>>()).expect_err("it does not fit");
        assert!(error.to_string().contains("memory.rs:"), "{error}");
        drop(copies);
        assert_eq!((&x * 0.0).sum(..).to_vec::<f32>().expect("a number"), [0.0]);
    }
}

#[test]
fn compiled_functions_are_replayed_at_once_and_reuse_their_memory() {
    for device in devices() {
        let w = square(&device);
        let small = w.slice([(..16isize).into(), (..16isize).into()]);
        small.realize().expect("a value");
        let step = compile(|x| Ok(vec![chain(&x[0], &x[1], 12), &x[0] * 2.0]));
        let mut x = small.clone();
        let mut expected = small.clone();
        for at in 0..5 {
            let before = Statistics::of(&device);
            let found = step.call(&[&x, &small]).expect("values");
            let after = Statistics::of(&device);
            // Other tests run on the same device: at least.
            assert!(
                at < 2 || after.replayed > before.replayed,
                "call {at} on {device:?}"
            );
            assert_eq!(
                found[1].to_vec::<f32>().expect("floats"),
                (&x * 2.0).to_vec::<f32>().expect("floats")
            );
            x = &found[0] + &small;
            expected = chain(&expected, &small, 12) + &small;
            assert_eq!(
                x.to_vec::<f32>().expect("floats"),
                expected.to_vec::<f32>().expect("floats")
            );
        }
        // Results stay what they are when it is called again.
        let first = step.call(&[&x, &small]).expect("values").remove(0);
        let values = first.to_vec::<f32>().expect("floats");
        step.call(&[&small, &small]).expect("values");
        assert_eq!(first.to_vec::<f32>().expect("floats"), values);
    }
}
