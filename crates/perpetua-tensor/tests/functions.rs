//! Functions with kernels and gradients of their own, hooks, checkpoints, clipped norms.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::devices;
use perpetua_device::{BackendKind, Device, KernelSource, LaunchConfig, Stream, args};
use perpetua_tensor::testing::realize_unfused;
use perpetua_tensor::{
    Argument, DType, Error, Function, Random, Tensor, checkpoint, clip_grad_norm, compile, detect_anomaly,
    grad, no_grad, vmap,
};

fn cpu() -> Device {
    Device::new(BackendKind::Cpu, 0).expect("the CPU")
}

/// `x * y * y`, by a kernel of its own.
struct Product {
    has_gradient: bool,
    is_for_each: bool,
}

const BOTH: Product = Product {
    has_gradient: true,
    is_for_each: true,
};

impl Function for Product {
    fn name(&self) -> &'static str {
        "product"
    }

    fn result(&self, operands: &[Tensor]) -> Result<(Vec<usize>, DType), String> {
        match operands {
            [x, y] if x.shape() == y.shape() && x.dtype() == DType::F32 && y.dtype() == DType::F32 => {
                Ok((x.shape().to_vec(), DType::F32))
            }
            _ => Err("it takes two of f32 with the same shape".into()),
        }
    }

    fn launch(
        &self,
        stream: &Stream,
        operands: &[Argument<'_>],
        result: Argument<'_>,
    ) -> perpetua_device::Result<()> {
        let text = "\
kernel product(x: buffer<f32, read>, y: buffer<f32, read>, r: buffer<f32, read_write>) {
  %0: u32 = thread_idx.x
  %1: u32 = len r
  %2: bool = lt %0, %1
  if %2 {
    %3: f32 = load x[%0]
    %4: f32 = load y[%0]
    %5: f32 = mul %3, %4
    %6: f32 = mul %5, %4
    store r[%0], %6
  }
}
";
        let kernel = stream
            .device()
            .compile(&KernelSource::IrText(text), &Default::default())?
            .only()?;
        let count = result.shape.iter().product();
        let [x, y] = [0, 1].map(|at| operands[at].value.clone());
        stream.launch(
            &kernel,
            LaunchConfig::linear(count, 64),
            args![x, y, result.value],
        )
    }

    fn gradient(&self, operands: &[Tensor], _: &Tensor, gradient: &Tensor) -> Option<Vec<Option<Tensor>>> {
        let (x, y) = (&operands[0], &operands[1]);
        self.has_gradient
            .then(|| vec![Some(y.square() * gradient), Some(x * y * 2.0 * gradient)])
    }

    fn is_for_each(&self) -> bool {
        self.is_for_each
    }
}

fn floats(x: &Tensor) -> Vec<f32> {
    x.to_vec::<f32>().expect("floats")
}

#[test]
fn functions_have_kernels_and_gradients_of_their_own() {
    for device in devices() {
        let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3], &device).tracked();
        let y = Tensor::from_slice(&[3.0f32, 1.0, 2.0], [3], &device).tracked();
        // Views and what is computed are stored for it, and what follows fuses.
        let make = || x.function(BOTH, &[&(&y + 1.0).expand([2, 3])]) + 0.5;
        let (fused, apart) = (make(), make());
        realize_unfused(&[&apart]).expect("a value");
        let expected = [16.5, 8.5, 27.5, 64.5, 20.5, 54.5];
        assert_eq!(
            (floats(&fused), floats(&apart)),
            (expected.to_vec(), expected.to_vec())
        );
        let gradients = make().sum(..).grad(&[&x, &y]).expect("gradients");
        assert_eq!(floats(&gradients[0]), [16.0, 4.0, 9.0, 16.0, 4.0, 9.0]);
        assert_eq!(floats(&gradients[1]), [40.0, 28.0, 54.0]);
        let text = make().explain().expect("no error").to_string();
        assert!(
            text.contains("product f32[2, 3]") && text.contains("a kernel of its own"),
            "{text}"
        );
        // Captured once, and for each of many examples.
        let doubled = compile(|x| Ok(vec![x[0].function(BOTH, &[&x[1]]) * 2.0]));
        let ones = Tensor::ones([2, 3], DType::F32, &device);
        for _ in 0..2 {
            let found = doubled.call(&[&x, &ones]).expect("a value").remove(0);
            assert_eq!(floats(&found), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        }
        let each = vmap(|x| Ok(x[0].function(BOTH, &[&x[1]])), &[&x, &ones]).expect("a value");
        assert_eq!(floats(&each), floats(&x));
        // Higher order: of what its gradient is made of.
        let second = grad(
            |x| {
                grad(|x| x[0].function(BOTH, &[&x[0]]).sum(..), &[&x[0]])
                    .expect("3 x^2")
                    .remove(0)
                    .sum(..)
            },
            &[&x.detach()],
        );
        assert_eq!(
            floats(&second.expect("6 x")[0]),
            [6.0, 12.0, 18.0, 24.0, 30.0, 36.0]
        );
    }
}

#[test]
fn what_a_function_refuses_or_lacks_is_an_error() {
    let device = cpu();
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2], &device).tracked();
    let says = |error: Error, words: &str| {
        let text = error.to_string();
        assert!(text.contains(words) && text.contains("functions.rs:"), "{text}");
    };
    let refused = x.function(BOTH, &[&Tensor::ones([3], DType::F32, &device)]);
    says(
        refused.check().expect_err("2 and 3"),
        "`product` of f32[2] and f32[3]: it takes two of f32",
    );
    let none = Product {
        has_gradient: false,
        is_for_each: false,
    };
    let y = x.function(none, &[&x]).sum(..);
    says(
        y.grad(&[&x]).expect_err("it has none"),
        "`product` has no gradient",
    );
    let none = || Product {
        has_gradient: false,
        is_for_each: false,
    };
    let mapped = vmap(|x| Ok(x[0].function(none(), &[&x[0]])), &[&x]);
    says(mapped.expect_err("it does not say so"), "is_for_each");
    let hooked = x.with_hook(|gradient| gradient.sum(..)).sum(..);
    says(
        hooked.grad(&[&x]).expect_err("a number"),
        "the gradient's shape and type",
    );
}

#[test]
fn checkpoints_record_again_and_keep_nothing() {
    let device = cpu();
    let times = Arc::new(AtomicUsize::new(0));
    let w = Tensor::from_slice(&[0.5f32, -1.5], [2], &device).tracked();
    let layer = |x: &Tensor| {
        let times = Arc::clone(&times);
        let f = move |x: &[Tensor]| {
            times.fetch_add(1, Ordering::Relaxed);
            Ok((&x[0] * &x[1]).tanh() + &x[0])
        };
        checkpoint(f, &[x, &w]).expect("a value")
    };
    let plain = |x: &Tensor| (x * &w).tanh() + x;
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2], &device).tracked();
    let (saved, kept) = (layer(&layer(&layer(&x))), plain(&plain(&plain(&x))));
    assert_eq!(floats(&saved), floats(&kept));
    assert_eq!(times.load(Ordering::Relaxed), 3);
    let of = |y: &Tensor| -> Vec<Vec<f32>> {
        y.sum(..)
            .grad(&[&x, &w])
            .expect("gradients")
            .iter()
            .map(floats)
            .collect()
    };
    assert_eq!(of(&saved), of(&kept));
    assert_eq!(times.load(Ordering::Relaxed), 6);
    // Gradients of gradients.
    let second = |y: &Tensor| {
        let first = y.sum(..).grad_tracked(&[&w]).expect("a gradient").remove(0);
        floats(&first.square().sum(..).grad(&[&w]).expect("another")[0])
    };
    assert_eq!(second(&layer(&x)), second(&plain(&x)));
    // Of each example.
    let rows = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2], &device).tracked();
    let of_rows = |f: &dyn Fn(&Tensor) -> Tensor| {
        let all = vmap(|x| Ok(f(&x[0])), &[&rows]).expect("rows");
        floats(&all.sum(..).grad(&[&rows]).expect("a gradient")[0])
    };
    assert_eq!(of_rows(&layer), of_rows(&plain));
    assert_eq!(of_rows(&|x| x.with_hook(|g| g * 2.0)), [2.0; 4]);
}

#[test]
fn hooks_see_gradients_and_nothing_is_tracked_where_that_is_said() {
    let device = cpu();
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2], &device).tracked();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let y = (&x * 3.0).with_hook(move |gradient| {
        count.fetch_add(gradient.len(), Ordering::Relaxed);
        gradient * 10.0
    });
    assert_eq!(floats(&y), [3.0, 6.0]);
    assert_eq!(seen.load(Ordering::Relaxed), 0);
    assert_eq!(
        floats(&y.sum(..).grad(&[&x]).expect("a gradient")[0]),
        [30.0, 30.0]
    );
    assert_eq!(seen.load(Ordering::Relaxed), 2);
    let inside = no_grad(|| {
        assert!(x.tracked().is_tracked());
        no_grad(|| ());
        &x * 2.0
    });
    assert!(!inside.is_tracked() && (&x * 2.0).is_tracked());
}

#[test]
fn norms_are_clipped_and_accumulated_gradients_step() {
    let device = cpu();
    let of = |x: &[f32]| Tensor::from_slice(x, [x.len()], &device);
    let gradients = [of(&[3.0, 0.0]), of(&[4.0]).cast(DType::F16)];
    let norm_of = |most| {
        let (clipped, norm) = clip_grad_norm(&gradients, most);
        let clipped: Vec<f32> = clipped.iter().flat_map(|x| floats(&x.cast(DType::F32))).collect();
        (clipped, floats(&norm.expect("of two")))
    };
    assert_eq!(norm_of(10.0), (vec![3.0, 0.0, 4.0], vec![5.0]));
    assert_eq!(norm_of(2.5), (vec![1.5, 0.0, 2.0], vec![5.0]));
    assert!(clip_grad_norm(&[], 1.0).1.is_none());
    let (clipped, norm) = clip_grad_norm(&[of(&[f32::INFINITY, 1.0])], 1.0);
    assert_eq!(floats(&clipped[0]), [f32::INFINITY, 1.0]);
    assert_eq!(floats(&norm.expect("of one")), [f32::INFINITY]);
    // A step of the mean over parts of a batch is one of the whole batch.
    let rows = Random::new(7, &device).normal([8, 3]);
    let start = of(&[0.1, -0.2, 0.3]);
    let loss = |w: &Tensor, rows: &Tensor| rows.matmul(w).square().mean(..);
    let mut whole = perpetua_tensor::Adam::new([start.clone()], 0.1);
    let at_once = loss(&whole.weights()[0], &rows);
    whole.step(&at_once).expect("a step");
    let mut parts = perpetua_tensor::Adam::new([start], 0.1);
    let w = parts.weights()[0].clone();
    for part in rows.split(&[4, 4], 0) {
        (loss(&w, &part) * 0.5).backward().expect("a gradient");
    }
    let gradient = w.gradient().expect("it was asked for");
    parts.step_with(&[gradient]).expect("a step");
    for (a, b) in floats(&whole.weights()[0])
        .iter()
        .zip(floats(&parts.weights()[0]))
    {
        assert!((a - b).abs() < 1e-5, "{a}, {b}");
    }
    let error = parts.step_with(&[]).expect_err("one is missing").to_string();
    assert!(error.contains("0 gradients for 1 weights"), "{error}");
}

#[test]
fn the_first_nan_is_found_with_its_operator_line_and_index() {
    for device in devices() {
        let x = Tensor::from_slice(&[4.0f32, 1.0, 0.0, 9.0], [2, 2], &device).tracked();
        let says = |result: perpetua_tensor::Result<Vec<f32>>, words: &str| {
            let text = result.expect_err("there is one").to_string();
            assert!(text.contains(words) && text.contains("functions.rs:"), "{text}");
        };
        // Behind it everything is NaN.
        let y = || ((&x - 2.0).sqrt() * 3.0).sum(..).exp();
        says(
            detect_anomaly(|| y().to_vec()),
            "`sqrt` of f32[2, 2] gave NaN, first at [0, 1]",
        );
        assert!(y().to_vec::<f32>().expect("nobody looks")[0].is_nan());
        // In a gradient: 0 times infinity, of the square root at 0.
        let z = || (&x * 0.0).sqrt().sum(..);
        assert_eq!(detect_anomaly(|| z().to_vec::<f32>()).expect("zeros"), [0.0]);
        // In compiled functions, too, however often they have run.
        let compiled = compile(|x| Ok(vec![(&x[0] - 2.0).log() * 3.0]));
        let good = Tensor::from_slice(&[3.0f32, 4.0], [2], &device);
        for _ in 0..3 {
            compiled.call(&[&good]).expect("logarithms");
        }
        let bad = Tensor::from_slice(&[3.0f32, 1.0], [2], &device);
        let line = line!() - 6;
        let error = detect_anomaly(|| compiled.call(&[&bad]).map(|_| ()))
            .expect_err("NaN")
            .to_string();
        assert!(
            error.contains(&format!(":{line}: `log` of f32[2] gave NaN, first at [1]")),
            "{error}"
        );
        detect_anomaly(|| compiled.call(&[&good]).map(|_| ())).expect("none");
        let given = Tensor::from_slice(&[f32::NAN, 1.0], [2], &device);
        let error = detect_anomaly(|| compiled.call(&[&given]).map(|_| ()))
            .expect_err("NaN")
            .to_string();
        assert!(
            error.contains("`from_slice` of f32[2] gave NaN, first at [0]"),
            "{error}"
        );
        let gradient = || z().grad(&[&x]).map(|mut all| all.remove(0));
        says(detect_anomaly(|| gradient()?.to_vec()), "`multiply` of f32[2, 2]");
        // What was there before, and what sorting fills up with.
        let given = Tensor::from_slice(&[1.0f32, f32::NAN, 0.5], [3], &device);
        says(
            detect_anomaly(|| (&given + 1.0).to_vec()),
            "`from_slice` of f32[3] gave NaN, first at [1]",
        );
        let sorted = detect_anomaly(|| {
            x.reshape([-1])
                .slice([(..3isize).into()])
                .sort(0, false)
                .to_vec::<f32>()
        });
        assert_eq!(sorted.expect("no NaN"), [0.0, 1.0, 4.0]);
    }
}

#[test]
fn a_checked_capture_says_what_changed() {
    let device = cpu();
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2], &device);
    let state = std::cell::RefCell::new((1.0, x.clone(), 0isize));
    let f = compile(|x| {
        let (factor, other, axis) = &*state.borrow();
        Ok(vec![(&x[0] * *factor + other).flip(*axis).exp()])
    })
    .checked();
    let call = |words: &str| {
        let result = f.call(&[&x]);
        match words {
            "" => assert_eq!(result.expect("it is the same")[0].len(), 2),
            _ => {
                let text = result.expect_err(words).to_string();
                assert!(
                    text.contains(words) && text.contains("must be an operand"),
                    "{text}"
                );
            }
        }
    };
    call("");
    call("");
    state.borrow_mut().0 = 2.0;
    call("`full` f32[2]");
    state.borrow_mut().0 = 1.0;
    call("");
    state.borrow_mut().1 = Tensor::ones([2], DType::F32, &device);
    call("`full` f32[2]");
    // Constants that are made inside are the same if their values are.
    state.borrow_mut().1 = Tensor::from_slice(&[1.0f32, 2.0], [2], &device);
    call("");
    state.borrow_mut().1 = Tensor::from_slice(&[1.0f32, 2.5], [2], &device);
    call("`from_slice` f32[2]");
    // So are tensors that were computed before.
    let computed = |by: f32| {
        let sum = &x + f64::from(by);
        sum.realize().expect("a value");
        sum
    };
    let other = std::cell::RefCell::new(computed(1.0));
    let f = compile(|x| {
        Ok(vec![
            &x[0] * &*other.borrow() + Tensor::from_slice(&[7.0f32], [1], &device),
        ])
    })
    .checked();
    for (by, is_same) in [(1.0, true), (1.0, true), (2.0, false), (1.0, true)] {
        *other.borrow_mut() = computed(by);
        let found = f.call(&[&x]);
        assert_eq!(found.is_ok(), is_same, "{by}");
        if let Err(error) = found {
            assert!(error.to_string().contains("`add` f32[2]"), "{error}");
        }
    }
    let reads = compile(|x| Ok(vec![&x[0] * x[0].to_vec::<f32>()?[0]]));
    let text = reads.call(&[&x]).expect_err("there is no value").to_string();
    assert!(text.contains("there are no values yet"), "{text}");
    // Few captures serve many extents.
    let f = compile(|x| {
        let counts = Tensor::coordinates(x[0].shape(), 0, x[0].device()).less(&x[1]);
        Ok(vec![
            counts.select(&x[0], f64::NEG_INFINITY).softmax(0),
            x[0].sum(..),
        ])
    })
    .with_growing(0);
    for n in 1..40 {
        let x = Tensor::linspace(0.0, 1.0, n, &device);
        let found = f.call(&[&x]).expect("values");
        let (a, b) = (floats(&found[0]), floats(&x.softmax(0)));
        assert_eq!(a.len(), n);
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() < 1e-6, "{a}, {b}");
        }
    }
    assert_eq!(f.captures(), 7);
    let text = f.call(&[&x.sum(..)]).expect_err("a number").to_string();
    assert!(text.contains("no axis 0 that could grow"), "{text}");
}

#[test]
fn results_that_do_not_grow_are_not_cut() -> perpetua_tensor::Result<()> {
    let product = compile(|x| Ok(vec![x[0].transpose().matmul(&x[0]), &x[0] + 1.0])).with_growing(0);
    for n in [3, 4, 5] {
        let x = Tensor::ones([n, 4], DType::F32, &cpu());
        let results = product.call(&[&x])?;
        let shapes: Vec<&[usize]> = results.iter().map(Tensor::shape).collect();
        assert_eq!(shapes, [&[4, 4][..], &[n, 4]]);
        assert_eq!(results[0].to_vec::<f32>()?, [n as f32; 16]);
    }
    Ok(())
}

#[test]
fn a_checkpoint_gives_no_tensor_a_wrong_gradient() -> perpetua_tensor::Result<()> {
    let cpu = cpu();
    let w = Tensor::from_slice(&[2.0f32], [1], &cpu).tracked();
    let x = Tensor::from_slice(&[3.0f32], [1], &cpu);
    let own = w.clone();
    let kept = checkpoint(move |x| Ok(&x[0] * &own), &[&x]);
    assert!(matches!(kept, Err(Error::NoGradient { .. })), "{kept:?}");
    let given = checkpoint(|x| Ok(&x[0] * &x[1]), &[&x, &w])?;
    assert_eq!(given.sum(..).grad(&[&w])?[0].to_vec::<f32>()?, [3.0]);
    Ok(())
}
