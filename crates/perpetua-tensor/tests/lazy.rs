//! What is recorded: drawn before it is computed, or computed at once in an eager scope, refused where it is too large, and with random numbers when it is replayed.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use common::{check, devices, values};
use perpetua_device::{BackendKind, Device};
use perpetua_tensor::{DType, Random, Slice, Statistics, Tensor, compile, eager, vmap};

#[test]
fn an_explanation_is_drawn() {
    let device = Device::new(BackendKind::Cpu, 0).expect("the CPU");
    let x = Tensor::ones([64, 64], DType::F32, &device);
    x.realize().expect("ones");
    let hidden = x.matmul(&x).relu();
    let both = hidden.matmul(&x) + hidden.softmax(-1);
    let explanation = both.explain().expect("it can be explained");
    let kernels = explanation.kernels.len();
    assert_eq!(kernels, 3, "{explanation}");
    let drawn = explanation.svg();
    let count = |what: &str| drawn.matches(what).count();
    // A box each and the background; what is stored in between is read twice, and the softmax once.
    assert_eq!(
        (count("<rect "), count("marker-end")),
        (kernels + 1, 3),
        "{drawn}"
    );
    assert_eq!(count("given: f32[64, 64]"), 2, "{drawn}");
    for (operations, stay) in &explanation.kernels {
        assert!(
            operations
                .iter()
                .all(|operation| drawn.contains(operation.as_str())),
            "{drawn}"
        );
        assert!(drawn.contains(stay.reason()), "{drawn}");
    }
    // What is known needs no kernel.
    both.realize().expect("values");
    assert_eq!(
        both.explain()
            .expect("nothing to explain")
            .svg()
            .matches("<rect ")
            .count(),
        1
    );
}

#[test]
fn eager_operations_are_computed_at_once_and_mean_the_same() {
    for device in devices() {
        let x = values(DType::F32, &[9, 50], 3, &device);
        let work = |x: &Tensor| {
            let x = x.tracked();
            let y = (x.softmax(-1) * 2.0)
                .matmul(x.transpose())
                .relu()
                .concat(&[&x], 1);
            let slope = y.square().sum(..).grad(&[&x]).expect("a gradient").remove(0);
            (y.detach(), slope)
        };
        let ((y, slope), (eager_y, eager_slope)) = (work(&x), eager(|| work(&x)));
        // Nothing is left to do.
        assert_eq!(eager_y.explain().expect("no error").kernels.len(), 0);
        for (a, b) in [(y, eager_y), (slope, eager_slope)] {
            let bits = |x: &Tensor| perpetua_tensor::testing::bits(x).expect("bits");
            let nan = |x: &Tensor| bits(&x.isnan());
            assert_eq!(nan(&a), nan(&b));
            assert_eq!(bits(&a.isnan().select(0.0, &a)), bits(&b.isnan().select(0.0, &b)));
        }
        // What cannot be computed says so at once, with its line; what is recorded without values still is.
        let one = x.slice([Slice::from(0), Slice::from(0)]);
        let line = line!() + 1;
        let long = || one.expand([1 << 17, 1 << 17]) + 1.0;
        long().check().expect("it is only recorded");
        let error = eager(|| long().check())
            .expect_err("no tensor is so large")
            .to_string();
        assert!(
            error.contains(&format!("lazy.rs:{line}: ")) && error.contains("work in parts"),
            "{error}"
        );
        let twice = eager(|| compile(|x| Ok(vec![&x[0] * 2.0])).call(&[&x]))
            .expect("a value")
            .remove(0);
        check("compiled in an eager scope", &twice);
        let each = eager(|| vmap(|x| Ok(x[0].sum(..)), &[&x])).expect("a value");
        check("each in an eager scope", &each);
    }
}

#[test]
fn the_environment_makes_a_program_eager() {
    const CHILD: &str = "PERPETUA_TEST_IS_CHILD";
    let launched = || {
        let device = Device::new(BackendKind::Cpu, 0).expect("the CPU");
        let x = Tensor::from_slice(&[1.0f32, -1.0], [2], &device);
        let _never_read = x.exp().sqrt();
        let elsewhere = std::thread::spawn(move || {
            let _never_read = x.sin();
            Statistics::of(&device).launched
        });
        elsewhere.join().expect("it does not panic")
    };
    if std::env::var_os(CHILD).is_some() {
        assert_eq!(launched(), 3);
        return;
    }
    let child = |value: &str| {
        std::process::Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "the_environment_makes_a_program_eager"])
            .envs([(CHILD, "1"), ("PERPETUA_EAGER", value)])
            .output()
            .expect("it runs")
    };
    let eager = child("1");
    assert!(
        eager.status.success(),
        "{}",
        String::from_utf8_lossy(&eager.stdout)
    );
    assert!(!child("0").status.success());
}

#[test]
fn shapes_that_no_device_holds_are_errors_at_once() {
    const LARGE: usize = 1 << 40;
    let device = Device::new(BackendKind::Cpu, 0).expect("the CPU");
    let one = Tensor::ones([1, 1], DType::F32, &device);
    let none = Tensor::zeros([0, 1, 1], DType::F32, &device);
    type Large<'a> = (&'a str, Box<dyn Fn() -> Tensor + 'a>);
    let all: [Large<'_>; 10] = [
        ("sum", Box::new(|| one.expand([LARGE, LARGE]).sum(..))),
        ("mean", Box::new(|| one.expand([LARGE, LARGE]).mean(1))),
        ("all", Box::new(|| one.expand([LARGE, LARGE]).all(..))),
        (
            "sum of none",
            Box::new(|| none.expand([0, LARGE, LARGE]).sum([1, 2])),
        ),
        (
            "zeros",
            Box::new(|| Tensor::zeros([usize::MAX, 2], DType::F32, &device).max(0)),
        ),
        ("tile", Box::new(|| one.tile(usize::MAX, 0).tile(2, 0).sum(..))),
        (
            "repeat",
            Box::new(|| one.repeat(LARGE, 0).repeat(LARGE, 1).var(..)),
        ),
        (
            "pad",
            Box::new(|| one.pad([(LARGE, LARGE), (LARGE, LARGE)], 0.0).prod(..)),
        ),
        (
            "outer",
            Box::new(|| {
                let long = one.reshape([1]).expand([LARGE]);
                long.outer(&long).tensordot(&long, 1)
            }),
        ),
        (
            "einsum",
            Box::new(|| {
                let long = one.expand([1, LARGE]);
                long.einsum(&[&long], "ij,kl->jl")
            }),
        ),
    ];
    for (name, large) in all {
        let error = large().check().expect_err(name).to_string();
        assert!(
            error.contains("lazy.rs:") && error.contains("work in parts"),
            "{name}: {error}"
        );
    }
}

#[test]
fn random_streams_are_operands_of_what_is_recorded_once() -> perpetua_tensor::Result<()> {
    for device in devices() {
        let drawn = compile(|x| {
            let random = Random::from_stream(&x[0]);
            Ok(vec![
                random.bits([3, 50]),
                random.bits([3, 50]),
                random.normal([7]),
                random.integers(0, 6, [1000]),
            ])
        });
        let (given, other) = (
            Random::new(1 << 40 | 9, &device),
            Random::new(1 << 40 | 9, &device),
        );
        let mut seen: Vec<Vec<u32>> = Vec::new();
        for _ in 0..3 {
            let all = drawn.call(&[&given.stream()])?;
            // The first of a stream are those that it gives where it comes from.
            let bits = all[0].to_vec::<u32>()?;
            assert_eq!(bits, other.bits([3, 50]).to_vec::<u32>()?);
            seen.extend([bits, all[1].to_vec::<u32>()?]);
            assert!(all[2].to_vec::<f32>()?.iter().all(|x| x.abs() < 6.0));
            let dice = all[3].bincount(6).to_vec::<i32>()?;
            assert!(dice.iter().all(|count| (120..215).contains(count)), "{dice:?}");
        }
        assert_eq!(drawn.captures(), 1);
        for (i, bits) in seen.iter().enumerate() {
            assert!(seen[..i].iter().all(|other| other != bits), "draw {i}");
        }
        // What a second draw is: the second word of the counter, by the plain evaluator.
        let stream = given.stream();
        let random = Random::from_stream(&stream);
        let _first = random.bits([1]);
        check("a second draw", &random.bits([40]));
        let wrong = Random::from_stream(&stream.cast(DType::I32)).bits([2]);
        let error = wrong.check().expect_err("no stream").to_string();
        assert!(error.contains("four `u32`"), "{error}");
        let inner = Random::from_stream(&stream)
            .stream()
            .check()
            .expect_err("none")
            .to_string();
        assert!(inner.contains("hand in several"), "{inner}");
    }
    Ok(())
}
