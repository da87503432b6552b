//! Runs a kernel natively and in the interpreter, and compares.

use std::fmt::Debug;

use perpetua::device::native::{NativeArg, NativeLaunch};
use perpetua::device::{BackendKind, Buffer, CompileOptions, Device, Error, KernelSource, KernelSpec};
use perpetua::prelude::*;

/// A buffer's content or a value, before and after a launch.
pub(crate) trait Argument {
    /// Launches read it, and may change it.
    fn upload(&self, device: &Device) -> Box<dyn Uploaded + '_>;
    /// As native code gets it.
    fn native(&self) -> NativeArg<'_>;
}

pub(crate) trait Uploaded {
    fn arg(&self) -> perpetua::device::KernelArg<'_>;
    /// What became of it, as text that shows each bit.
    fn read(&self) -> Vec<u8>;
}

/// A buffer's content.
pub(crate) struct B<'a, T>(pub(crate) &'a [T]);

/// A value.
pub(crate) struct V<T>(pub(crate) T);

struct Content<T>(Buffer<T>);

impl<T: GpuType> Argument for B<'_, T> {
    fn upload(&self, device: &Device) -> Box<dyn Uploaded + '_> {
        Box::new(Content(device.upload(self.0).unwrap_or_else(|e| panic!("{e}"))))
    }

    fn native(&self) -> NativeArg<'_> {
        NativeArg::Buffer {
            ptr: self.0.as_ptr().cast_mut().cast(),
            len: self.0.len(),
        }
    }
}

impl<T: GpuType> Uploaded for Content<T> {
    fn arg(&self) -> perpetua::device::KernelArg<'_> {
        self.0.arg()
    }

    fn read(&self) -> Vec<u8> {
        let values = self.0.read().unwrap_or_else(|e| panic!("{e}"));
        perpetua::device::layout::with_bytes(&values, <[u8]>::to_vec)
    }
}

impl<T: GpuType> Argument for V<T> {
    fn upload(&self, _: &Device) -> Box<dyn Uploaded + '_> {
        Box::new(V(self.0))
    }

    fn native(&self) -> NativeArg<'_> {
        let bytes = std::ptr::from_ref(&self.0).cast::<u8>();
        // SAFETY: the value's own bytes; the types of these tests have no padding.
        NativeArg::Value(unsafe { std::slice::from_raw_parts(bytes, size_of::<T>()) })
    }
}

impl<T: GpuType> Uploaded for V<T> {
    fn arg(&self) -> perpetua::device::KernelArg<'_> {
        self.0.into()
    }

    fn read(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// What a launch left: the buffers' bytes, and the fault's text.
type Outcome = (Vec<Vec<u8>>, Option<Error>);

fn run(device: &Device, source: &KernelSource<'_>, config: LaunchConfig, args: &[&dyn Argument]) -> Outcome {
    let kernel = device
        .compile(source, &CompileOptions::default())
        .and_then(|module| module.only())
        .unwrap_or_else(|e| panic!("{e}"));
    let uploaded: Vec<_> = args.iter().map(|arg| arg.upload(device)).collect();
    let list: Vec<_> = uploaded.iter().map(|arg| arg.arg()).collect();
    if let Err(error) = device.launch(&kernel, config, &list) {
        panic!("{}: {error}", kernel.name());
    }
    let fault = device.synchronize().err();
    (uploaded.iter().map(|arg| arg.read()).collect(), fault)
}

/// The lanes that must be proven.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Proven {
    All,
    None,
    Exactly(u64),
    AtLeast(u64),
    /// There is no native code for it: it runs as machine code.
    Elsewhere,
}

/// As many lanes as this are proven.
pub(crate) fn proves(kernel: KernelFn, config: LaunchConfig, args: &[&dyn Argument], proven: Proven) {
    let name = kernel.name();
    if let Proven::Elsewhere = proven {
        assert!(kernel.native().is_none(), "`{name}` has native code");
        return;
    }
    assert!(kernel.native().is_some(), "`{name}` has no native code");
    let launch = NativeLaunch {
        grid: config.grid,
        block: config.block,
        shared_bytes: 0,
        overlaps: &[],
    };
    let native: Vec<_> = args.iter().map(|arg| arg.native()).collect();
    let lanes = kernel
        .proven(&launch, &native)
        .unwrap_or_else(|| panic!("`{name}`: arguments"));
    #[cfg(debug_assertions)]
    if let Some(Err(wrong)) = kernel.audit(&launch, &native) {
        panic!("`{name}`: {wrong}");
    }
    let all = config.lanes();
    let fits = match proven {
        Proven::All => lanes == all,
        Proven::None => lanes == 0,
        Proven::Exactly(n) => lanes == n,
        Proven::AtLeast(n) => lanes >= n,
        Proven::Elsewhere => false,
    };
    assert!(
        fits,
        "`{name}`: {lanes} of {all} lanes are proven, expected {proven:?}"
    );
}

/// Runs both; they must agree. Gives the fault of the native run, and the interpreter's.
fn compare(
    kernel: KernelFn,
    config: LaunchConfig,
    args: &[&dyn Argument],
    proven: Proven,
) -> (Option<Error>, Option<Error>) {
    let name = kernel.name();
    proves(kernel, config, args, proven);
    let device = Device::new(BackendKind::Cpu, 0).unwrap_or_else(|e| panic!("{e}"));
    let verified = kernel
        .verified(usize::BITS)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    let native = kernel.native();
    let source = match &native {
        // Its native body, also where the device would take machine code.
        Some(native) => KernelSource::Native(native, Some(&verified)),
        None => KernelSource::Spec(&kernel),
    };
    let (bytes, fault) = run(&device, &source, config, args);
    let source = KernelSource::Spec(&kernel.interpreted());
    let (expected, expected_fault) = run(&device, &source, config, args);
    match (&fault, &expected_fault) {
        (None, None) | (Some(Error::Fault(_)), Some(Error::Fault(_))) => {}
        other => panic!("`{name}`: natively and interpreted {other:?}"),
    }
    // Beside a fault, what lanes of other blocks did is unspecified.
    if fault.is_none() || config.grid.count() == 1 {
        for (i, (native, interpreted)) in bytes.iter().zip(&expected).enumerate() {
            if let Some(at) = native.iter().zip(interpreted).position(|(a, b)| a != b) {
                let word = |bytes: &[u8]| bytes[at / 8 * 8..].iter().take(8).copied().collect::<Vec<u8>>();
                let (native, interpreted) = (word(native), word(interpreted));
                panic!(
                    "`{name}`: argument {i} differs at byte {at}: {native:?}, interpreted {interpreted:?}"
                );
            }
        }
    }
    if let (Some(Error::Fault(native)), Some(Error::Fault(interpreted))) = (&fault, &expected_fault) {
        assert_eq!(native.site.kind, interpreted.site.kind, "`{name}`");
        if config.lanes() == 1 {
            assert_eq!(native, interpreted, "`{name}`");
        }
    }
    (fault, expected_fault)
}

/// Runs both; they must agree. Gives the fault of the native run.
pub(crate) fn check(
    kernel: KernelFn,
    config: LaunchConfig,
    args: &[&dyn Argument],
    proven: Proven,
) -> Option<Error> {
    compare(kernel, config, args, proven).0
}

/// The same where one lane faults: both must tell of it in the same words.
pub(crate) fn only_fault(kernel: KernelFn, config: LaunchConfig, args: &[&dyn Argument], proven: Proven) {
    match compare(kernel, config, args, proven) {
        (Some(native), Some(interpreted)) => assert_eq!(native, interpreted, "`{}`", kernel.name()),
        other => panic!("`{}`: {other:?}", kernel.name()),
    }
}

/// The same where nothing faults.
pub(crate) fn agree(kernel: KernelFn, config: LaunchConfig, args: &[&dyn Argument], proven: Proven) {
    let fault = check(kernel, config, args, proven);
    assert!(fault.is_none(), "`{}`: {fault:?}", kernel.name());
}

/// Numbers of any kind, from `seed`.
pub(crate) fn numbers<T: Debug>(count: usize, seed: u64, make: impl Fn(u64) -> T) -> Vec<T> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            make(state >> 24)
        })
        .collect()
}
