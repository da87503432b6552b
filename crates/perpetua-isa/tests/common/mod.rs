//! Where tests run programs.

use perpetua_device::NumericProbe;
use perpetua_device::cpu::CpuContext;
use perpetua_ir::back::Capability;
use perpetua_isa::lower::{Options, lower};
use perpetua_isa::verify::verify;
use perpetua_isa::{BackendType, Executor, Program};

/// An executor on each backend: the CPU; wgpu where it is built in, which then must be there, in software at least; CUDA where there is
/// a device, or where `PERPETUA_MUST_OPEN` names it.
pub(crate) fn executors() -> Vec<Executor> {
    let mut backends = vec![BackendType::Cpu];
    if cfg!(feature = "wgpu") {
        backends.push(BackendType::Wgpu);
    }
    let open = |backend| Executor::new_with_backend(backend).unwrap_or_else(|error| panic!("{error}"));
    let mut executors: Vec<Executor> = backends.into_iter().map(open).collect();
    if cfg!(feature = "cuda") {
        match Executor::new_with_backend(BackendType::Cuda) {
            Ok(executor) => executors.push(executor),
            Err(error) => {
                let must = std::env::var("PERPETUA_MUST_OPEN").unwrap_or_default();
                assert!(must != "cuda", "PERPETUA_MUST_OPEN names CUDA: {error}");
                eprintln!("skipped on CUDA: {error}");
            }
        }
    }
    executors
}

/// The same, and behind them the CPU's interpreter, which looks for races.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn executors_and_detector() -> Vec<Executor> {
    let mut all = executors();
    let detector = Executor::new_with_backend(BackendType::Cpu).unwrap_or_else(|error| panic!("{error}"));
    let context = detector.device().context().as_any().downcast_ref::<CpuContext>();
    context.expect("the CPU backend's own context").detect_races(true);
    all.push(detector);
    all
}

/// A program with its buffers bound.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn bind(program: Program, buffers: &[(&str, u64)]) -> Program {
    buffers.iter().fold(program, |program, (name, handle)| {
        program
            .with_buffer(name, *handle)
            .unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Values in a buffer of their own.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn upload<T: bytemuck::Pod>(executor: &Executor, values: &[T]) -> u64 {
    let handle = executor.allocate_buffer(size_of_val(values)).expect("memory");
    executor.write_buffer(handle, 0, values).expect("a write");
    handle
}

/// Whether sums, products, quotients, roots and `fma` of floats are equal on a device to what the CPU computes, to the bit. Whether the
/// device's own `fma` is exact does not matter: where it is not, integers compute it, but for functions like `exp`.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn computes_exactly(executor: &Executor) -> bool {
    let probe = executor.device().info().numeric_probe.unwrap_or_default();
    let exact_fma = Some(true);
    NumericProbe { exact_fma, ..probe }.is_exact()
}

/// Numbers from -1 to 1, the same for the same seed.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(next).collect()
}

/// The first capability that a program needs and the device lacks: the only reason for which a test may be left out on it.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn missing(executor: &Executor, program: &Program) -> Option<Capability> {
    let info = executor.device().info();
    let options = Options {
        pointer_width: info.pointer_width(),
        is_ordered: info.capabilities.contains(&Capability::DeviceOrdering),
        ..Options::default()
    };
    let verified = verify(program).unwrap_or_else(|error| panic!("{error}"));
    let kernel = lower(&verified, options).unwrap_or_else(|error| panic!("{error}"));
    let mut needs = kernel.facts().capabilities().keys();
    needs.find(|need| !info.capabilities.contains(need)).copied()
}
