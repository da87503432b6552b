//! The CPU backend's streams where threads meet: nothing hangs, nothing is lost, kernels that panic are errors.
#![cfg(feature = "cpu")]

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use perpetua_device::future::block_on;
use perpetua_device::native::{
    Footprint, NativeArg, NativeKernel, NativeLaunch, NativePrepare, PreparedLaunch, Sharing,
};
use perpetua_device::*;
use perpetua_ir::fault::Fault;
use perpetua_ir::ir::{Access, Param, ParamKind, Type};
use perpetua_ir::verify::verify;

fn signature() -> Signature {
    let kind = ParamKind::Buffer {
        element: Type::U32,
        access: Access::ReadWrite,
    };
    let name = "x".to_owned();
    Signature::new("step", vec![Param { name, kind }])
}

// Adds 1 to each element, after something else.
struct Step {
    x: usize,
    len: usize,
    grid: Dim3,
    block: Dim3,
    before: fn(),
}

// SAFETY: it says nothing of what it accesses, so others may access it at once: its accesses are atomic.
unsafe impl PreparedLaunch for Step {
    fn slabs(&self) -> u64 {
        self.grid.count()
    }

    fn footprints(&self) -> Option<&[Footprint]> {
        None
    }

    unsafe fn run(&self, blocks: Range<u64>, _: Sharing) -> Result<(), Box<Fault>> {
        (self.before)();
        let lanes = self.block.count();
        let x = std::ptr::with_exposed_provenance_mut::<u32>(self.x);
        for i in blocks.start * lanes..(blocks.end * lanes).min(self.len as u64) {
            // SAFETY: the index is inside the buffer, whose words are aligned; what reaches them at once is atomic, too.
            let word = unsafe { AtomicU32::from_ptr(x.add(i as usize)) };
            // Relaxed: each word has one lane, and others' reads need no order.
            word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn after(before: fn(), launch: &NativeLaunch<'_>, args: &[NativeArg<'_>]) -> Option<Arc<dyn PreparedLaunch>> {
    let (x, len) = args[0].as_buffer()?;
    Some(Arc::new(Step {
        x: x.expose_provenance(),
        len,
        grid: launch.grid,
        block: launch.block,
        before,
    }))
}

fn step(launch: &NativeLaunch<'_>, args: &[NativeArg<'_>]) -> Option<Arc<dyn PreparedLaunch>> {
    after(|| {}, launch, args)
}

#[expect(clippy::panic, reason = "a kernel that breaks its contract")]
fn planted() {
    panic!("planted");
}

fn broken(launch: &NativeLaunch<'_>, args: &[NativeArg<'_>]) -> Option<Arc<dyn PreparedLaunch>> {
    after(planted, launch, args)
}

fn compile(device: &Device, prepare: NativePrepare) -> Result<Kernel> {
    let native = NativeKernel {
        name: "step",
        signature,
        prepare,
    };
    let source = KernelSource::Native(&native, None);
    device.compile(&source, &CompileOptions::default())?.only()
}

// ThreadSanitizer takes minutes to name the places of a panic on a busy machine.
const PATIENCE: Duration = Duration::from_secs(if cfg!(perpetua_tsan) { 600 } else { 60 });

// Fails instead of hanging.
fn in_time(work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    let done = wait.recv_timeout(PATIENCE);
    assert!(done.is_ok(), "it hangs, or it panicked");
    done.unwrap_or(Ok(()))
}

const SMALL: usize = 100;
// ThreadSanitizer takes a hundred times as long.
const LARGE: usize = if cfg!(perpetua_tsan) { 17_000 } else { 200_000 };

#[test]
fn many_threads_share_one_stream() -> Result<()> {
    in_time(|| {
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
    in_time(|| {
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
    in_time(|| {
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
    fn gate() {
        // Relaxed: the flag carries nothing.
        while !GATE.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }
    fn gated(launch: &NativeLaunch<'_>, args: &[NativeArg<'_>]) -> Option<Arc<dyn PreparedLaunch>> {
        after(gate, launch, args)
    }
    in_time(|| {
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
        assert_eq!(block_on(reading)?, [2; SMALL]);
        assert!(event.is_complete()?);
        Ok(())
    })
}

#[test]
fn graphs_run_their_launches_in_order() -> Result<()> {
    in_time(|| {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let kernel = compile(&device, step)?;
        for len in [SMALL, LARGE] {
            let x = device.zeros::<u32>(len)?;
            let stream = device.create_stream()?;
            // The zeros come by another stream.
            device.synchronize()?;
            let graph = stream.capture(|stream| {
                (0..20).try_for_each(|_| stream.launch(&kernel, LaunchConfig::linear(len, 64), args![&x]))
            })?;
            assert_eq!(graph.node_count(), 20);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| (0..20).try_for_each(|_| graph.launch(&stream)));
                }
            });
            stream.synchronize()?;
            assert!(x.read()? == vec![1200; len], "{len}");
        }
        Ok(())
    })
}

#[test]
fn a_kernel_that_panics_in_a_graph_leaves_nobody_waiting() -> Result<()> {
    in_time(|| {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let (good, bad) = (compile(&device, step)?, compile(&device, broken)?);
        let x = device.zeros::<u32>(LARGE)?;
        let stream = device.create_stream()?;
        device.synchronize()?;
        let config = LaunchConfig::linear(LARGE, 64);
        let graph = stream.capture(|stream| {
            stream.launch(&good, config, args![&x])?;
            stream.launch(&bad, config, args![&x])?;
            stream.launch(&good, config, args![&x])
        })?;
        graph.launch(&stream)?;
        let error = stream.synchronize().expect_err("the kernel panicked");
        assert_eq!(
            error.to_string(),
            "CPU: running a kernel failed: it panicked: planted"
        );
        stream.launch(&good, config, args![&x])?;
        stream.synchronize()
    })
}

fn compile_text(device: &Device, text: &str) -> Result<Kernel> {
    let source = KernelSource::IrText(text);
    device.compile(&source, &CompileOptions::default())?.only()
}

#[test]
fn whoever_an_event_wakes_may_make_streams() -> Result<()> {
    struct Inline {
        device: Device,
        done: mpsc::Sender<Result<()>>,
    }
    impl Wake for Inline {
        // As executors do that poll where they are woken.
        fn wake(self: Arc<Self>) {
            let _ = self.done.send(self.device.create_stream().map(drop));
        }
    }
    fn pause() {
        std::thread::sleep(Duration::from_millis(50));
    }
    fn slow(launch: &NativeLaunch<'_>, args: &[NativeArg<'_>]) -> Option<Arc<dyn PreparedLaunch>> {
        after(pause, launch, args)
    }
    in_time(|| {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let slow = compile(&device, slow)?;
        let x = device.zeros::<u32>(LARGE)?;
        // There is one stream so far, whose work claims nothing.
        device.launch(&slow, LaunchConfig::linear(LARGE, 64), args![&x])?;
        let event = device.default_stream().record()?;
        let (done, woken) = mpsc::channel();
        let waker = Waker::from(Arc::new(Inline {
            device: device.clone(),
            done,
        }));
        let mut waiting = event.synchronize_async();
        while waiting
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
        {
            woken.recv().unwrap_or(Ok(()))?;
        }
        device.synchronize()
    })
}

#[test]
fn a_graph_that_once_looked_for_races_runs_natively_again() -> Result<()> {
    // What is interpreted adds 100, what is native 1.
    const HUNDRED: &str = "\
kernel step(x: buffer<u32, read_write>) {
  %0: u32 = thread_idx.x
  %1: u32 = load x[%0]
  %2: u32 = const 100
  %3: u32 = add %1, %2
  store x[%0], %3
}
";
    let device = Device::new(BackendKind::Cpu, 0)?;
    let native = NativeKernel {
        name: "step",
        signature,
        prepare: step,
    };
    let verified = HUNDRED.parse().ok().and_then(|kernel| verify(kernel).ok());
    let source = KernelSource::Native(&native, verified.as_ref());
    let kernel = device.compile(&source, &CompileOptions::default())?.only()?;
    let x = device.zeros::<u32>(64)?;
    let stream = device.create_stream()?;
    device.synchronize()?;
    let graph = stream.capture(|stream| {
        (0..2).try_for_each(|_| stream.launch(&kernel, LaunchConfig::new(1, 64), args![&x]))
    })?;
    let cpu = device.context().as_any().downcast_ref::<cpu::CpuContext>();
    for (watched, expect) in [(true, 200), (false, 202), (true, 402), (false, 404)] {
        cpu.into_iter().for_each(|cpu| cpu.detect_races(watched));
        graph.launch(&stream)?;
        assert_eq!(stream.read(&x)?, [expect; 64]);
    }
    Ok(())
}

#[test]
fn a_graphs_kernel_that_waits_for_another_stream_holds_no_buffer_of_its_neighbours() -> Result<()> {
    const UNTIL: &str = "\
kernel until(y: buffer<u32, read_write>) {
  %0: u32 = const 0
  loop {
    %1: u32 = load y[%0]
    %2: bool = ne %1, %0
    if %2 {
      break 0
    }
  }
}
";
    in_time(|| {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let (step, until) = (compile(&device, step)?, compile_text(&device, UNTIL)?);
        let (x, y) = (device.zeros::<u32>(LARGE)?, device.zeros::<u32>(1)?);
        let (waits, tells) = (device.create_stream()?, device.create_stream()?);
        device.synchronize()?;
        let graph = waits.capture(|stream| {
            stream.launch(&step, LaunchConfig::linear(LARGE, 64), args![&x])?;
            stream.launch(&until, LaunchConfig::new(1, 1), args![&y])
        })?;
        std::thread::scope(|scope| {
            let launched = scope.spawn(|| graph.launch(&waits).and_then(|()| waits.synchronize()));
            while tells.read(&x)?[0] == 0 {
                std::thread::yield_now();
            }
            tells.fill(&x, 7)?;
            tells.fill(&y, 1)?;
            tells.synchronize()?;
            assert_eq!(launched.join().ok(), Some(Ok(())));
            Ok(())
        })
    })
}

// Panics when it is woken, and counts.
struct Planted(AtomicUsize);

impl Wake for Planted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        planted();
    }
}

#[test]
fn a_waker_that_panics_takes_nobody_with_it() -> Result<()> {
    static GATE: AtomicBool = AtomicBool::new(false);
    fn gate() {
        // Relaxed: the flag carries nothing.
        while !GATE.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }
    fn gated(launch: &NativeLaunch<'_>, args: &[NativeArg<'_>]) -> Option<Arc<dyn PreparedLaunch>> {
        after(gate, launch, args)
    }
    in_time(|| {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let (gated, step) = (compile(&device, gated)?, compile(&device, step)?);
        let x = device.zeros::<u32>(LARGE)?;
        let stream = device.create_stream()?;
        stream.launch(&gated, LaunchConfig::linear(LARGE, 64), args![&x])?;
        let event = stream.record()?;
        let planted = Arc::new(Planted(AtomicUsize::new(0)));
        let (waker, ours) = (Waker::from(Arc::clone(&planted)), thread::current());
        let mut bad = [stream.synchronize_async(), event.synchronize_async()];
        for future in &mut bad {
            assert!(
                future
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        }
        // Behind those whose waker panics.
        let mut good = [stream.synchronize_async(), event.synchronize_async()];
        let unpark = Waker::from(Arc::new(Unpark(ours)));
        for future in &mut good {
            assert!(
                future
                    .as_mut()
                    .poll(&mut Context::from_waker(&unpark))
                    .is_pending()
            );
        }
        GATE.store(true, Ordering::Relaxed);
        for future in &mut good {
            while future
                .as_mut()
                .poll(&mut Context::from_waker(&unpark))
                .is_pending()
            {
                thread::park();
            }
        }
        assert!(planted.0.load(Ordering::SeqCst) > 0);
        // The stream's thread is there, and no error was made up.
        stream.launch(&step, LaunchConfig::linear(LARGE, 64), args![&x])?;
        assert_eq!(block_on(stream.read_async(&x))?, vec![2; LARGE]);
        Ok(())
    })
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_capture_that_panics_ends() -> Result<()> {
    let device = Device::new(BackendKind::Cpu, 0)?;
    let stream = device.create_stream()?;
    let x = device.zeros::<u32>(SMALL)?;
    let caught = catch_unwind(AssertUnwindSafe(|| {
        stream.capture(|stream| {
            stream.fill(&x, 1)?;
            planted();
            Ok(())
        })
    }));
    assert!(caught.is_err());
    stream.fill(&x, 2)?;
    assert_eq!(stream.read(&x)?, [2; SMALL]);
    Ok(())
}
