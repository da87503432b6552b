//! Where tests run programs.

use perpetua_isa::{BackendType, Executor};

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
