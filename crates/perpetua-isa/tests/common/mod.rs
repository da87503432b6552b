//! Where tests run programs.

use perpetua_device::cpu::CpuContext;
use perpetua_isa::{BackendType, Executor, Program};

/// An executor on each backend: the CPU; wgpu where it is built in, which then must be there, in software at least; CUDA where there is
/// a device.
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
            Err(error) => eprintln!("skipped on CUDA: {error}"),
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
