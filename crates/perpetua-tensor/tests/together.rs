//! Small kernels of one structure are one launch: how many there are, that nothing else changes, and what stays alone.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use common::devices;
use perpetua_device::{BackendKind, Device};
use perpetua_tensor::{Adam, Statistics, Tensor, compile, testing};
use perpetua_vendor_tools::ptxas;

fn cpu() -> Device {
    Device::new(BackendKind::Cpu, 0).expect("the CPU")
}

const SHAPES: [&[usize]; 12] = [
    &[3],
    &[64, 10],
    &[100],
    &[257],
    &[2, 3, 5],
    &[1000],
    &[32, 31],
    &[128],
    &[10],
    &[256],
    &[255, 2],
    &[1024],
];

fn numbers(shape: &[usize], seed: usize, device: &Device) -> Tensor {
    let n: usize = shape.iter().product();
    let each = (0..n).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0);
    Tensor::from_slice(&each.collect::<Vec<_>>(), shape, device)
}

fn all(seed: usize, device: &Device) -> Vec<Tensor> {
    SHAPES.iter().map(|shape| numbers(shape, seed, device)).collect()
}

/// How many launches so many results of so many buffers each are on a device.
fn launches(results: usize, buffers: usize, device: &Device) -> u64 {
    let room = device.info().limits.max_buffers as usize / buffers;
    let sizes = [16, 12, 8, 6, 4, 3, 2, 1];
    let size = |most: usize| sizes.into_iter().find(|size| *size <= most.max(1)).expect("one");
    let (mut left, mut launches) = (results, 0);
    while left > 0 {
        left -= size(left.min(size(room)));
        launches += 1;
    }
    launches
}

fn bits(all: &[Tensor]) -> Vec<Vec<u64>> {
    all.iter().map(|x| testing::bits(x).expect("values")).collect()
}

/// What a computation launches and compiles.
fn counted<T>(device: &Device, work: impl FnOnce() -> T) -> (T, u64, u64) {
    let before = Statistics::of(device);
    let given = work();
    let after = Statistics::of(device);
    (
        given,
        after.launched - before.launched,
        after.compiled - before.compiled,
    )
}

#[test]
fn a_step_down_twelve_gradients_is_few_launches() {
    for device in devices() {
        let (weights, gradients) = (all(1, &device), all(2, &device));
        let step = |rate: f64| -> Vec<Tensor> {
            let both = weights.iter().zip(&gradients);
            both.map(|(weight, gradient)| weight - gradient * rate).collect()
        };
        let realized = |next: Vec<Tensor>| {
            Tensor::realize_all(&next.iter().collect::<Vec<_>>()).expect("values");
            next
        };
        let (next, launched, _) = counted(&device, || realized(step(0.1)));
        assert_eq!(launched, launches(12, 3, &device), "{device:?}");
        // Another rate compiles nothing.
        let (_, _, compiled) = counted(&device, || realized(step(0.2)));
        assert_eq!(compiled, 0, "{device:?}");
        let alone = step(0.1);
        testing::realize_unfused(&alone.iter().collect::<Vec<_>>()).expect("values");
        assert_eq!(bits(&next), bits(&alone), "{device:?}");
    }
}

#[test]
fn a_step_of_adam_is_few_launches() {
    for device in devices() {
        let (weights, gradients) = (all(1, &device), all(2, &device));
        let mut adam = Adam::new(weights.clone(), 0.01);
        adam.decay = 0.1;
        for step in 0..4 {
            let (done, launched, compiled) = counted(&device, || adam.step_with(&gradients));
            done.expect("a step");
            if step > 0 {
                let expected = 2 * launches(12, 3, &device) + launches(12, 4, &device);
                assert_eq!(launched, expected, "{device:?}");
            }
            assert!(step < 2 || compiled == 0, "{device:?}: {compiled} compiled");
        }
        // Each weight by itself.
        for (place, (weight, gradient)) in weights.iter().zip(&gradients).enumerate() {
            let mut alone = Adam::new([weight.clone()], 0.01);
            alone.decay = 0.1;
            for _ in 0..4 {
                alone.step_with(std::slice::from_ref(gradient)).expect("a step");
            }
            assert_eq!(
                bits(&adam.weights()[place..=place]),
                bits(alone.weights()),
                "{device:?}"
            );
        }
    }
}

#[test]
fn explanations_say_so() {
    let device = cpu();
    let next: Vec<Tensor> = all(1, &device).iter().map(|x| x * 2.0 + 1.0).collect();
    let all: Vec<&Tensor> = next.iter().collect();
    let explanation = Tensor::explain_all(&all).expect("no error");
    assert_eq!(explanation.kernels.len(), 1);
    let says = "stored: its value was asked for; 12 results of one structure by one launch";
    let text = explanation.to_string();
    assert!(text.contains(says) && explanation.svg().contains(says), "{text}");
    assert!(text.contains("f32[257]") && text.contains("f32[1024]"), "{text}");
    let plan = Tensor::memory_plan(&all).expect("no error");
    let elements: usize = SHAPES.iter().map(|shape| shape.iter().product::<usize>()).sum();
    assert_eq!((plan.steps.len(), plan.peak()), (1, 4 * elements as u64));
}

#[test]
fn a_structure_has_few_kernels() {
    let device = cpu();
    let all = |n: usize| -> Vec<Tensor> { (0..n).map(|i| numbers(&[i + 2], i, &device).erf()).collect() };
    let (_, launched, compiled) = counted(&device, || {
        for n in 1..40 {
            Tensor::realize_all(&all(n).iter().collect::<Vec<_>>()).expect("values");
        }
    });
    assert_eq!(compiled, 8);
    let expected: u64 = (1..40).map(|n| launches(n, 2, &device)).sum();
    assert_eq!(launched, expected);
}

#[test]
fn what_needs_each_other_is_apart() {
    for device in devices() {
        let x: Vec<Tensor> = all(1, &device).into_iter().take(2).collect();
        let step = |x: &Tensor| x * 2.0 + 1.0;
        // Three of one structure behind each other, all asked for, and sums, which need the second.
        let chains = x.iter().map(|x| {
            let a = step(x);
            let b = step(&a);
            [step(&b), b.clone(), a, b.sum(..)]
        });
        let chains: Vec<[Tensor; 4]> = chains.collect();
        let roots: Vec<Tensor> = (0..4)
            .flat_map(|at| chains.iter().map(move |chain| chain[at].clone()))
            .collect();
        let (done, launched, _) = counted(&device, || Tensor::realize_all(&roots.iter().collect::<Vec<_>>()));
        done.expect("values");
        assert_eq!(launched, 5, "{device:?}: three times two together, and two sums");
        for (at, x) in x.iter().enumerate() {
            let expected = step(&step(&step(x)));
            assert_eq!(bits(&roots[at..=at]), bits(&[expected]), "{device:?}");
        }
    }
}

#[test]
fn what_is_large_or_another_structure_is_alone() {
    let device = cpu();
    let alone = |all: [Tensor; 2]| {
        let (done, launched, _) = counted(&device, || Tensor::realize_all(&[&all[0], &all[1]]));
        done.expect("values");
        launched
    };
    let x = numbers(&[1 << 10], 1, &device);
    let y = numbers(&[(1 << 10) + 1], 1, &device);
    assert_eq!(alone([&x * 2.0, numbers(&[9], 1, &device) * 2.0]), 1);
    assert_eq!(alone([&y * 2.0, numbers(&[9], 1, &device) * 2.0]), 2);
    assert_eq!(alone([&x * 2.0, numbers(&[9], 1, &device) + 2.0]), 2);
    // A part of what is large would keep it.
    let part = |x: &Tensor| x.slice([perpetua_tensor::Slice::from(1..10)]) * 2.0;
    assert_eq!(alone([part(&y), part(&numbers(&[100], 1, &device))]), 2);
    assert_eq!(alone([part(&x), part(&numbers(&[100], 1, &device))]), 1);
    // Nothing is launched together where nothing is fused.
    let parts = [part(&x), part(&numbers(&[100], 1, &device))];
    let before = Statistics::of(&device).launched;
    testing::realize_unfused(&[&parts[0], &parts[1]]).expect("values");
    assert_eq!(Statistics::of(&device).launched - before, 4);
}

/// The same operations on tensors of several shapes, by a seed.
fn random(seed: u64, device: &Device) -> Vec<Tensor> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % n
    };
    let shapes: [&[usize]; 4] = [&[5], &[7, 30], &[300], &[2, 2, 2]];
    let mut all: Vec<Tensor> = (0..8).map(|i| numbers(shapes[i % 4], i, device)).collect();
    for _ in 0..40 {
        let x = all[next(all.len())].clone();
        let y = all[next(all.len())].clone();
        all.push(match next(7) {
            0 => &x * 0.5 + 1.0,
            1 => x.abs().sqrt(),
            2 if x.shape() == y.shape() => &x - &y,
            3 => (&x - x.mean(..)).tanh(),
            4 => x.flip(-1) * 0.25,
            5 => x.greater(0.0).select(&x, 0.125),
            _ => &x * x.sum_keep(-1).sin(),
        });
    }
    (0..12).map(|_| all[next(all.len())].clone()).collect()
}

#[test]
fn random_graphs_have_the_bits_of_each_by_itself() {
    for device in devices() {
        let cases = if device.backend() == BackendKind::Cpu {
            60
        } else {
            8
        };
        for seed in 1..=cases {
            let (together, alone) = (random(seed, &device), random(seed, &device));
            Tensor::realize_all(&together.iter().collect::<Vec<_>>()).expect("values");
            testing::realize_unfused(&alone.iter().collect::<Vec<_>>()).expect("values");
            assert_eq!(bits(&together), bits(&alone), "seed {seed} on {device:?}");
        }
    }
}

#[test]
fn what_is_captured_is_launched_together_too() {
    for device in devices() {
        let step = compile(|x: &[Tensor]| Ok(x.iter().map(|x| (x * 0.5).exp()).collect::<Vec<_>>()));
        let given = all(3, &device);
        let operands: Vec<&Tensor> = given.iter().collect();
        for call in 0..4 {
            let (found, launched, _) = counted(&device, || step.call(&operands).expect("values"));
            let expected: Vec<Tensor> = given.iter().map(|x| (x * 0.5).exp()).collect();
            assert_eq!(bits(&found), bits(&expected), "{device:?}");
            assert!(
                call > 0 || launched == launches(12, 2, &device),
                "{device:?}: {launched}"
            );
        }
    }
}

#[test]
fn a_place_that_is_not_there_is_still_an_error() {
    for device in devices() {
        let x = numbers(&[100], 1, &device);
        let at = |place: i32| x.take(&Tensor::from_slice(&[place, 1, 2], [3], &device), 0);
        let (good, bad) = (at(5), at(100));
        let done = Tensor::realize_all(&[&good, &bad]).and_then(|()| bad.to_vec::<f32>());
        assert!(done.is_err(), "{device:?}");
        assert_eq!(at(7).to_vec::<f32>().expect("values").len(), 3, "{device:?}");
    }
}

#[test]
fn nvidias_assembler_takes_what_is_launched_together() {
    let device = cpu();
    let results: Vec<Tensor> = all(1, &device).iter().map(|x| (x * 0.5).exp()).collect();
    let texts = testing::ptx(&results.iter().collect::<Vec<_>>()).expect("PTX");
    assert_eq!(texts.len() as u64, launches(12, 2, &device));
    for text in texts {
        let Some(assembled) = ptxas(&text, "sm_90a").required("together").expect("machine code") else {
            return;
        };
        let usage = &assembled.usage[0];
        assert_eq!((usage.stack_bytes, usage.spill_store_bytes), (0, 0), "{usage:?}");
    }
}
