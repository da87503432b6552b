//! The CPU backend's streams where threads meet: nothing hangs, nothing is lost, kernels that panic are errors.
#![cfg(feature = "cpu")]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use perpetua_device::future::block_on;
use perpetua_device::native::{NativeArg, NativeKernel, NativeLaunch};
use perpetua_device::*;
use perpetua_ir::fault::Fault;
use perpetua_ir::ir::{Access, Param, ParamKind, Type};

fn signature() -> Signature {
    let kind = ParamKind::Buffer {
        element: Type::U32,
        access: Access::ReadWrite,
    };
    let name = "x".to_owned();
    Signature::new("step", vec![Param { name, kind }])
}

// Adds 1 to each element.
unsafe fn step(launch: &NativeLaunch, args: &[NativeArg<'_>], blocks: Range<u64>) -> Result<(), Box<Fault>> {
    let Some((x, len)) = args[0].as_buffer() else {
        return Ok(());
    };
    let lanes = launch.block.count();
    for i in blocks.start * lanes..(blocks.end * lanes).min(len as u64) {
        // SAFETY: the index is inside the buffer, and each lane has its own.
        unsafe { *x.cast::<u32>().add(i as usize) += 1 };
    }
    Ok(())
}

#[expect(clippy::panic, reason = "a kernel that breaks its contract")]
unsafe fn broken(_: &NativeLaunch, _: &[NativeArg<'_>], _: Range<u64>) -> Result<(), Box<Fault>> {
    panic!("planted")
}

fn compile(device: &Device, run: native::NativeBody) -> Result<Kernel> {
    let native = NativeKernel {
        name: "step",
        signature,
        accepts: |_, _| true,
        run,
    };
    let source = KernelSource::Native(&native, None);
    device.compile(&source, &CompileOptions::default())?.only()
}

// Fails instead of hanging.
fn within_a_minute(work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    let done = wait.recv_timeout(Duration::from_secs(60));
    assert!(done.is_ok(), "it hangs, or it panicked");
    done.unwrap_or(Ok(()))
}

const SMALL: usize = 100;
const LARGE: usize = 200_000;

#[test]
fn many_threads_share_one_stream() -> Result<()> {
    within_a_minute(|| {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let kernel = compile(&device, step)?;
        let (small, large) = (device.zeros::<u32>(SMALL)?, device.zeros::<u32>(LARGE)?);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| -> Result<()> {
                    for i in 0..50 {
                        device.launch(&kernel, LaunchConfig::linear(SMALL, 64), args![&small])?;
                        device.launch(&kernel, LaunchConfig::linear(LARGE, 64), args![&large])?;
                        match i % 4 {
                            0 => device.synchronize()?,
                            1 => drop(block_on(large.read_async())?),
                            2 => device.default_stream().record()?.synchronize()?,
                            _ => {}
                        }
                    }
                    Ok(())
                });
            }
        });
        assert_eq!(small.read()?, [200; SMALL]);
        assert_eq!(large.read()?, [200; LARGE]);
        Ok(())
    })
}

#[test]
fn every_thread_of_rayons_pool_may_wait() -> Result<()> {
    within_a_minute(|| {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let kernel = compile(&device, step)?;
        let shared = device.default_stream();
        let large = device.zeros::<u32>(LARGE)?;
        rayon::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|_| {
                    for _ in 0..4 {
                        let launched = shared.launch(&kernel, LaunchConfig::linear(LARGE, 64), args![&large]);
                        assert_eq!(launched.and_then(|()| shared.synchronize()), Ok(()));
                    }
                });
            }
        });
        assert_eq!(large.read()?, vec![256; LARGE]);
        Ok(())
    })
}

#[test]
fn a_kernel_that_panics_is_an_error_and_the_stream_works_on() -> Result<()> {
    within_a_minute(|| {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let (good, bad) = (compile(&device, step)?, compile(&device, broken)?);
        for len in [SMALL, LARGE] {
            let x = device.zeros::<u32>(len)?;
            device.launch(&bad, LaunchConfig::linear(len, 64), args![&x])?;
            let error = device.synchronize().expect_err("the kernel panicked");
            assert_eq!(
                error.to_string(),
                "CPU: running a kernel failed: it panicked: planted"
            );
            device.launch(&good, LaunchConfig::linear(len, 64), args![&x])?;
            assert_eq!(x.read()?, vec![1; len]);
        }
        Ok(())
    })
}

#[test]
fn submission_does_not_wait_for_large_work() -> Result<()> {
    static GATE: AtomicBool = AtomicBool::new(false);
    unsafe fn gated(_: &NativeLaunch, _: &[NativeArg<'_>], _: Range<u64>) -> Result<(), Box<Fault>> {
        // Relaxed: the flag carries nothing.
        while !GATE.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Ok(())
    }
    within_a_minute(|| {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let (gated, step) = (compile(&device, gated)?, compile(&device, step)?);
        let x = device.zeros::<u32>(LARGE)?;
        let stream = device.create_stream()?;
        device.synchronize()?;
        stream.launch(&gated, LaunchConfig::linear(LARGE, 64), args![&x])?;
        stream.launch(&step, LaunchConfig::linear(SMALL, 64), args![&x])?;
        let event = stream.record()?;
        let reading = stream.read_async(&x.slice(..SMALL)?);
        assert!(!event.is_complete()?);
        assert!(!stream.is_idle()?);
        GATE.store(true, Ordering::Relaxed);
        // Nobody waits on this thread: the stream gets there by itself.
        assert_eq!(block_on(reading)?, [1; SMALL]);
        assert!(event.is_complete()?);
        Ok(())
    })
}
