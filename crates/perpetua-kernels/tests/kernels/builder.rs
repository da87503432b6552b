//! Kernels of single instructions: they run on CUDA, and elsewhere the error says why not.

use libtest_mimic::Failed;
use perpetua_device::{BackendKind, LaunchConfig, args};
use perpetua_kernels::ptx::PtxKernel;

use crate::harness::Case;

pub(crate) fn saxpy(case: &mut Case) -> Result<(), Failed> {
    let kernel = PtxKernel::build("saxpy", |k| {
        let a = k.param::<f32>("a");
        let (x, y) = (k.buffer::<f32>("x"), k.buffer_mut::<f32>("y"));
        let i = k.global_id_x();
        let (left, right) = (k.load(&x, i), k.load(&y, i));
        let sum = k.fma(a, left, right);
        k.store(&y, i, sum);
    });
    let stream = case.device.default_stream();
    let x = case
        .device
        .upload(&(0..1000).map(|i| i as f32).collect::<Vec<f32>>())?;
    // More lanes than elements, and poison behind them: nothing is written there.
    let whole = case.device.full(1100, 1.0f32)?;
    let y = whole.slice(..1000)?;
    let launch = |args: &[perpetua_device::KernelArg<'_>]| {
        kernel.launch(&stream, LaunchConfig::linear(1024, 256), args)
    };
    let mistaken = launch(args![3.0f64, &x, &y])
        .err()
        .map(|e| e.to_string())
        .unwrap_or_default();
    if !mistaken
        .starts_with("argument 0 of kernel `saxpy` is a value of type f64, but the parameter is `a: f32`")
    {
        return Err(format!("another error was expected than: {mistaken}").into());
    }
    let done = launch(args![3.0f32, &x, &y]);
    if case.device.backend() != BackendKind::Cuda {
        return match done {
            Err(error) if error.to_string().contains("cannot compile PTX") => Ok(()),
            other => Err(format!("{other:?}, though this device takes no PTX").into()),
        };
    }
    done?;
    let all = whole.read()?;
    let expect = |i: usize| if i < 1000 { 3.0 * i as f32 + 1.0 } else { 1.0 };
    match all.iter().enumerate().find(|(i, found)| **found != expect(*i)) {
        None => Ok(()),
        Some((i, found)) => Err(format!("element {i} is {found}").into()),
    }
}
