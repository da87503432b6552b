//! On which device actors live.

use perpetua_actors::{Backend, LaunchOptions, PerpetuaRuntime, echo};
use perpetua_device::{Device, MemoryKind};

#[test]
fn actors_live_on_the_device_that_was_asked_for() {
    let device = Device::new(Backend::Cpu, 0).unwrap();
    let runtime = PerpetuaRuntime::builder()
        .in_batches()
        .device(&device)
        .build_blocking()
        .unwrap();
    let before = device.pool_stats(MemoryKind::Device);
    let kernel = runtime.launch_blocking("echo", LaunchOptions::default()).unwrap();
    let _: echo::Echo = kernel.ask_blocking(&echo::Echo::default()).unwrap();
    let after = device.pool_stats(MemoryKind::Device);
    assert!(after.allocations > before.allocations, "{before:?}, {after:?}");
    assert_eq!(runtime.backend().kind, Backend::Cpu);
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    for builder in [
        PerpetuaRuntime::builder(),
        PerpetuaRuntime::builder().in_batches(),
        PerpetuaRuntime::builder().resident(),
    ] {
        let error = builder.device(7).build_blocking().err().unwrap().to_string();
        assert!(error.contains('7'), "{error}");
    }
}
