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

/// What kernels decide, again in strips and as machine code of each width but the widest, which `cpu` runs.
#[cfg(all(feature = "cpu", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod widths {
    use super::*;
    use perpetua_cpu::interp::Width;

    fn report_at(count: usize) -> Result<()> {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let context = device.context().as_any().downcast_ref::<CpuContext>();
        assert!(context.is_some(), "the CPU backend's own context");
        context.into_iter().for_each(|cpu| cpu.assume_widths(count));
        report(&device)
    }

    #[test]
    fn cpu_in_strips() -> Result<()> {
        report_at(0)
    }

    #[test]
    fn cpu_at_narrower_widths() -> Result<()> {
        (1..Width::detect().len()).try_for_each(report_at)
    }
}

/// Kernels that come as IR run as machine code where the processor has the instructions; else the reason has a name.
#[cfg(all(feature = "cpu", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[test]
fn what_stays_in_the_interpreter_says_why() -> Result<()> {
    use perpetua_cpu::interp::{Refusal, Width};
    use perpetua_device::{CompileOptions, KernelSource, Way};

    fn verified(text: &str) -> perpetua_ir::verify::Verified {
        let kernel = text
            .parse::<perpetua_ir::ir::Kernel>()
            .expect("the text is a kernel's");
        perpetua_ir::verify::verify(kernel).expect("it verifies")
    }

    let device = Device::new(BackendKind::Cpu, 0)?;
    let why = |text: &str, options: &CompileOptions| -> Result<Option<String>> {
        let kernel = device
            .context()
            .compile(&KernelSource::Ir(&verified(text)), options)?;
        Ok(match kernel.get_function(&kernel.function_names()[0])?.way() {
            Way::Interpreter(why) => Some(why),
            way => {
                assert!(matches!(way, Way::MachineCode(_)), "{way}");
                None
            }
        })
    };
    let plain = "kernel k(x: buffer<u32, read_write>) {\n  %0: u32 = const 0\n  store x[%0], %0\n}\n";
    let votes = "kernel v(x: buffer<u32, read_write>) {\n  %0: u32 = const 0\n  %1: u32 = subgroup_reduce_add %0\n  store x[%0], %1\n}\n";
    let options = CompileOptions::default();
    if Width::detect().is_empty() {
        assert_eq!(why(plain, &options)?, Some(Refusal::Processor.to_string()));
        return Ok(());
    }
    assert_eq!(why(plain, &options)?, None);
    assert_eq!(why(votes, &options)?, None);
    let interpret = CompileOptions {
        interpret: true,
        ..options
    };
    assert_eq!(why(plain, &interpret)?, Some("it was asked for".to_owned()));
    let context = device.context().as_any().downcast_ref::<CpuContext>();
    context.expect("the CPU backend's own context").assume_widths(0);
    assert_eq!(why(plain, &options)?, Some("it was asked for".to_owned()));
    Ok(())
}
