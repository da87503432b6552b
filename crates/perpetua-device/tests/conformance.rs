//! The conformance suite on the backends that every machine has.

use perpetua_device::{BackendKind, Device, Result, conformance};

fn passes(kind: BackendKind, part: &str) -> Result<()> {
    let device = Device::new(kind, 0)?;
    let mut report = conformance::Report::default();
    conformance::run_matching(&device, part, &mut report);
    println!("{device:?}\n{report}");
    assert!(report.passed(), "{report}");
    Ok(())
}

#[test]
fn null() -> Result<()> {
    passes(BackendKind::Null, "")
}

#[cfg(feature = "cpu")]
#[test]
fn cpu() -> Result<()> {
    passes(
        BackendKind::Cpu,
        &std::env::var("PERPETUA_CELLS").unwrap_or_default(),
    )
}
