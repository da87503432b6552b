//! Products whose tiles and slices were measured, or come from a file that says anything.

use std::fs;
use std::time::Duration;

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua_device::{Buffer, args};
use perpetua_ir::back::Capability;
use perpetua_kernels::{Choices, Element, Error, GemmKernel, Kernel, reference};

use crate::harness::{Case, in_f64};

pub(crate) fn tuned(case: &mut Case) -> Result<(), Failed> {
    let folder = std::env::temp_dir().join(format!(
        "perpetua-tuned-{}-{}",
        case.device.backend().name(),
        std::process::id()
    ));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let outcome = in_folder(case, &Choices::at(folder.join("choices.txt")));
    fs::remove_dir_all(&folder)?;
    outcome
}

const LONG: Duration = Duration::from_micros(10);

fn in_folder(case: &mut Case, choices: &Choices) -> Result<(), Failed> {
    let stream = case.device.default_stream();
    let device = case.device.clone();
    let has = |capability| device.info().capabilities.contains(&capability);
    let [m, n, k] = [17, 72, 520];
    let numbers = |case: &mut Case, len| -> Vec<f32> { (0..len).map(|_| case.number()).collect() };
    let (a, b) = (numbers(case, m * k), numbers(case, k * n));
    let halves = |x: &[f32]| -> Vec<f16> { x.iter().copied().map(f16::from_f32).collect() };
    let exactly = |x: &[f16]| in_f64(&x.iter().map(|x| x.to_f32()).collect::<Vec<_>>());
    let (a, b) = (halves(&a), halves(&b));
    let expected = reference::gemm([m, n, k], [false; 2], &exactly(&a), &exactly(&b));
    let (a, b) = (case.device.upload(&a)?, case.device.upload(&b)?);
    let right = |c: &Buffer<f16>, what: &str| -> Result<(), Failed> {
        let found = c.read()?;
        let off = found.iter().zip(&expected).position(|(found, (sum, size))| {
            let bound = 1e-3 * sum.abs() + k as f64 * 2.4e-7 * size + 1e-4;
            (f64::from(found.to_f32()) - sum).abs() > bound
        });
        match off {
            Some(at) => Err(format!("{what}: element {at} is {}, not {}", found[at], expected[at].0).into()),
            None => Ok(()),
        }
    };
    let mut open = Vec::new();
    if has(Capability::Stages) {
        open.push(GemmKernel::staged(m, n, k));
    }
    if has(Capability::Matrices) {
        open.push(GemmKernel::tensor_core(m, n, k));
    }
    for kernel in open {
        let _ = fs::remove_file(choices.path());
        let c = case.device.full(m * n, f16::NAN)?;
        let all = args![&a, &b, &c];
        let found = kernel.tune(&stream, all, LONG, choices)?;
        right(&c, "while it is tuned")?;
        if !(found.seconds > 0.0 && found.seconds <= found.untuned_seconds) {
            return Err(format!("{found:?}").into());
        }
        let again = kernel.with_choices(&case.device, choices)?;
        if again == kernel
            || kernel
                .with_transposed(true, false)
                .with_choices(&case.device, choices)?
                == again
        {
            return Err(format!("{again:?}: not what was kept").into());
        }
        let text = fs::read_to_string(choices.path())?;
        let line = text.lines().last().ok_or("nothing was kept")?.to_owned();
        let key = line.rsplitn(3, '\t').nth(2).ok_or("a line has parts")?;
        let [rows, columns] = found.choice.tile();
        if !line.ends_with(&format!("\t{rows}x{columns}\t{}", found.choice.slices())) {
            return Err(format!("{line}: not {found:?}").into());
        }
        // Whatever a file says, a launch computes the product.
        for said in [
            "256x256\t1",
            "128x256\t2",
            "128x128\t3",
            "64x128\t2",
            "128x64\t1",
            "128x64\t0",
            "64x128\t32",
            "256x128\t1",
            "7x9\t1",
            "0x0\t0",
            "128x256\t18446744073709551615",
            "18446744073709551615x1\t1",
        ] {
            fs::write(choices.path(), format!("perpetua choices 1\n{key}\t{said}\n"))?;
            c.write(&vec![f16::NAN; m * n])?;
            kernel.with_choices(&case.device, choices)?.launch(&stream, all)?;
            right(&c, said)?;
        }
        // A file that is none stays, and nothing is measured for it.
        fs::write(choices.path(), "a letter")?;
        c.write(&vec![f16::ZERO; m * n])?;
        let refused = kernel.tune(&stream, all, LONG, choices);
        if !matches!(refused, Err(Error::Choices { .. }))
            || fs::read(choices.path())? != b"a letter"
            || c.read()? != vec![f16::ZERO; m * n]
        {
            return Err(format!("{refused:?}, or something was written").into());
        }
        let _ = fs::remove_file(choices.path());
    }
    let x = case.device.zeros::<f32>(64)?;
    let refused = GemmKernel::tiled(8, 8, 8, 16).tune(&stream, args![&x, &x, &x], LONG, choices);
    let expected = Error::NothingToChoose { kernel: "gemm_tiled" };
    if refused != Err(expected.clone()) {
        return Err(format!("{refused:?}").into());
    }
    if has(Capability::Matrices) {
        let x = case.device.zeros::<bf16>(64)?;
        let few = GemmKernel::tensor_core(8, 8, 8).with_element(Element::Bf16);
        let refused = few.tune(&stream, args![&x, &x, &x], LONG, choices);
        if !matches!(refused, Err(Error::NothingToChoose { .. })) {
            return Err(format!("{refused:?}").into());
        }
    }
    match choices.path().exists() {
        true => Err("something was kept of what leaves nothing open".into()),
        false => Ok(()),
    }
}
