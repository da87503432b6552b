//! Compiling: as futures, once for all who ask, up to a bound; and a backend of a crate outside, found by its name.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod slow;

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Once};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use perpetua_device::fault::FaultRegistry;
use perpetua_device::future::block_on;
use perpetua_device::*;
use perpetua_ir::ir::{Access, KernelBuilder, Place, Type};
use perpetua_ir::verify::{Verified, verify};

/// A kernel that no other number gives.
fn numbered(n: u32) -> Verified {
    let mut k = KernelBuilder::new("numbered");
    let out = k.buffer("out", Type::U32, Access::ReadWrite);
    let (zero, own) = (k.u32(0), k.u32(n));
    k.store(Place::element(out, zero), own).unwrap();
    verify(k.finish()).unwrap()
}

/// A device of the slow backend, for one test at a time: the count of its kernels is the process's.
fn slow_device() -> (Device, MutexGuard<'static, ()>) {
    static ONE: Mutex<()> = Mutex::new(());
    static REGISTER: Once = Once::new();
    REGISTER.call_once(|| register_backend(slow::ENTRY).unwrap());
    let guard = ONE.lock().unwrap_or_else(|e| e.into_inner());
    (Device::new(slow::KIND, 0).unwrap(), guard)
}

fn compiled() -> usize {
    slow::COMPILED.load(Ordering::SeqCst)
}

#[test]
fn a_backend_from_outside_is_opened_by_its_name() {
    let (_, _guard) = slow_device();
    let kind = BackendKind::from_name("slow").expect("registered");
    assert_eq!(
        (kind, kind.name(), kind.to_string().as_str()),
        (slow::KIND, "slow", "slow")
    );
    let device = Device::new(kind, 0).unwrap();
    assert_eq!(device.backend(), slow::KIND);
    assert_eq!(format!("{device:?}"), "slow device 0: slow device");
    assert!(
        backends()
            .iter()
            .any(|entry| entry.kind == kind && entry.order.is_none())
    );
    assert_ne!(
        Device::new(BackendKind::Auto, 0).map(|d| d.backend()),
        Ok(kind),
        "by name only"
    );
    let taken = "there is one of this name";
    let no_name = "a name is made of ASCII letters";
    for (name, cause) in [
        ("slow", taken),
        ("Slow", taken),
        ("null", taken),
        ("CPU", taken),
        ("Auto", taken),
        ("", no_name),
        ("my backend", no_name),
    ] {
        let kind = BackendKind::Other(name);
        let entry = BackendEntry { kind, ..slow::ENTRY };
        let error = register_backend(entry).expect_err(name).to_string();
        let expect = format!("registering a backend as `{name}`: {cause}");
        assert!(error.starts_with(&expect), "{error}");
    }
    let error = Device::new(BackendKind::Other("nobody's"), 0).expect_err("not registered");
    let error = error.to_string();
    assert!(
        error.starts_with("there is no backend `nobody's`; there are `cuda`, "),
        "{error}"
    );
    assert!(error.contains("`cpu`, ") && error.contains("`slow`"), "{error}");
}

#[test]
fn what_failed_or_has_ended_keeps_nothing() {
    struct Counted;
    impl Wake for Counted {
        fn wake(self: Arc<Self>) {}
    }
    let (device, _guard) = slow_device();
    let (source, options) = (KernelSource::Ptx("none"), CompileOptions::default());
    let failed = device.compile(&source, &options).map(drop);
    failed.expect_err("the null device takes no PTX");
    let failed = block_on(device.compile_async(&source, &options)).map(drop);
    failed.expect_err("as before");
    assert_eq!(device.module_count(), 0, "what cannot be compiled is not kept");
    let counted = Arc::new(Counted);
    let waker = Waker::from(Arc::clone(&counted));
    let mut future = device.compile_ir_async(&numbered(5));
    let mut poll = || future.as_mut().poll(&mut Context::from_waker(&waker));
    while poll().is_pending() {
        std::thread::yield_now();
    }
    drop((future, waker));
    // The compiler's own thread drops its clones when it has woken them.
    let begun = Instant::now();
    while Arc::strong_count(&counted) > 1 && begun.elapsed() < Duration::from_secs(10) {
        std::thread::yield_now();
    }
    assert_eq!(Arc::strong_count(&counted), 1, "nobody is to be woken any more");
    assert_eq!(device.module_count(), 1);
}

#[test]
fn a_future_does_not_hold_the_thread_and_its_kernel_is_compiled_once() {
    let (device, _guard) = slow_device();
    let before = compiled();
    let begun = Instant::now();
    let kernel = numbered(1);
    let mut futures: Vec<_> = (0..4).map(|_| device.compile_ir_async(&kernel)).collect();
    let mut cx = Context::from_waker(Waker::noop());
    for future in &mut futures {
        assert!(matches!(future.as_mut().poll(&mut cx), Poll::Pending));
    }
    assert!(
        begun.elapsed() < Duration::from_millis(40),
        "the compiler takes 50 ms"
    );
    // The first, whose poll began it, goes: the others drive it.
    drop(futures.remove(0));
    let last = futures.pop().expect("three are left");
    block_on(last).unwrap();
    for future in futures {
        block_on(future).unwrap();
    }
    device.compile_ir(&kernel).unwrap();
    assert_eq!(compiled() - before, 1);
}

#[test]
fn threads_that_sleep_and_tasks_share_one_compilation() {
    let (device, _guard) = slow_device();
    let (before, kernel) = (compiled(), numbered(2));
    std::thread::scope(|scope| {
        for i in 0..8 {
            let (device, kernel) = (&device, &kernel);
            scope.spawn(move || match i % 2 {
                0 => device.compile_ir(kernel).unwrap(),
                _ => block_on(device.compile_ir_async(kernel)).unwrap(),
            });
        }
    });
    assert_eq!(compiled() - before, 1);
}

#[test]
fn a_future_that_all_have_dropped_goes_on_for_who_asks_next() {
    let (device, _guard) = slow_device();
    let (before, kernel) = (compiled(), numbered(3));
    let mut cx = Context::from_waker(Waker::noop());
    let mut dropped = device.compile_ir_async(&kernel);
    assert!(dropped.as_mut().poll(&mut cx).is_pending());
    drop(dropped);
    device.compile_ir(&kernel).unwrap();
    assert_eq!(compiled() - before, 1);
}

#[test]
fn all_who_wait_are_told_of_an_error_and_the_next_tries_again() {
    let (device, _guard) = slow_device();
    let before = compiled();
    let (source, options) = (KernelSource::Ptx("none"), CompileOptions::default());
    let futures = [0, 1].map(|_| device.compile_async(&source, &options));
    for future in futures {
        let error = block_on(future)
            .map(drop)
            .expect_err("the null device takes no PTX");
        assert!(matches!(error, Error::SourceUnsupported { .. }), "{error}");
    }
    assert_eq!(compiled() - before, 1, "they waited for one");
    device
        .compile(&source, &options)
        .map(drop)
        .expect_err("as before");
    assert_eq!(compiled() - before, 2);
}

#[test]
fn a_compiler_that_panics_leaves_the_next_free_to_try() {
    struct Panics;
    // SAFETY: no kernel ever has its id, since each attempt to compile it ends in the panic.
    unsafe impl KernelSpec for Panics {
        fn name(&self) -> &str {
            "panics"
        }
        fn id(&self) -> KernelId {
            KernelId::of(&[b"panics"])
        }
        fn verified(&self, _: u32) -> Result<std::sync::Arc<Verified>> {
            panic!("on purpose")
        }
        fn native(&self) -> Option<native::NativeKernel> {
            None
        }
    }
    let device = Device::new(BackendKind::Null, 0).unwrap();
    for _ in 0..2 {
        let device = &device;
        let asked = std::thread::scope(|scope| scope.spawn(move || device.kernel(&Panics)).join());
        assert!(asked.is_err(), "the panic comes out");
    }
}

#[test]
fn ten_thousand_kernels_leave_no_more_than_are_kept() -> Result<()> {
    let registered = FaultRegistry::global().len();
    let kinds = match cfg!(feature = "cpu") {
        true => vec![BackendKind::Null, BackendKind::Cpu],
        false => vec![BackendKind::Null],
    };
    for kind in kinds {
        let device = Device::new(kind, 0)?;
        assert_eq!(device.module_count(), 0);
        let first = device.compile_ir(&numbered(0))?;
        for n in 1..=10_000 {
            device.compile_ir(&numbered(n))?;
        }
        assert_eq!(device.module_count(), DEFAULT_MODULES);
        device.set_module_limit(10);
        assert_eq!(device.module_count(), 10);
        assert!(FaultRegistry::global().len() <= registered + DEFAULT_MODULES);
        // Who holds a kernel keeps it; and the last ones are the ones that stayed.
        let out = device.zeros::<u32>(1)?;
        device.launch(&first, LaunchConfig::new(1, 1), args![&out])?;
        out.read()?;
        let last = device.compile_ir(&numbered(10_000))?;
        let again = device.compile_ir(&numbered(10_000))?;
        assert!(std::sync::Arc::ptr_eq(last.function(), again.function()));
    }
    Ok(())
}

#[test]
fn a_waiting_future_is_woken() {
    let (device, _guard) = slow_device();
    let kernel = numbered(4);
    // Both wait asleep, so only a wake-up ends them.
    let mut first = pin!(device.compile_ir_async(&kernel));
    let second = device.compile_ir_async(&kernel);
    let other = std::thread::spawn(move || block_on(second).map(drop));
    block_on(first.as_mut()).unwrap();
    other.join().unwrap().unwrap();
}
