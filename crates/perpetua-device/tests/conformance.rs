//! The conformance suite on the backends that every machine has.

#[cfg(feature = "cpu")]
use perpetua_device::cpu::CpuContext;
use perpetua_device::{BackendKind, Device, Result, conformance};

/// Runs the cells whose name contains what `PERPETUA_CELLS` says.
fn report(device: &Device) -> Result<()> {
    let part = std::env::var("PERPETUA_CELLS").unwrap_or_default();
    let mut report = conformance::Report::default();
    conformance::run_matching(device, &part, &mut report);
    println!("{device:?}\n{report}");
    assert!(report.passed(), "{report}");
    Ok(())
}

#[test]
fn null() -> Result<()> {
    report(&Device::new(BackendKind::Null, 0)?)
}

#[cfg(feature = "cpu")]
#[test]
fn cpu() -> Result<()> {
    report(&Device::new(BackendKind::Cpu, 0)?)
}

/// The whole suite again with the interpreter's race detector: none of its kernels races.
#[cfg(feature = "cpu")]
#[test]
fn cpu_without_races() -> Result<()> {
    let device = Device::new(BackendKind::Cpu, 0)?;
    let context = device.context().as_any().downcast_ref::<CpuContext>();
    context.expect("the CPU backend's own context").detect_races(true);
    report(&device)
}
