//! The conformance suite on GPU backends. wgpu always runs (a software adapter will do); CUDA is reported as ignored
//! where there is none.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use perpetua_device::{BackendKind, Device, conformance};

/// Runs the cells whose name contains `part` on each device of a backend.
fn passes(kind: BackendKind, index: usize) -> Result<(), Failed> {
    let device = Device::new(kind, index)?;
    let mut report = conformance::Report::default();
    let part = std::env::var("PERPETUA_CELLS").unwrap_or_default();
    conformance::run_matching(&device, &part, &mut report);
    println!("{device:?}\n{report}");
    if report.passed() {
        Ok(())
    } else {
        Err(report.to_string().into())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let wgpu = Trial::test("wgpu", || passes(BackendKind::Wgpu, 0));
    let cuda = match Device::new(BackendKind::Cuda, 0) {
        Ok(_) => Trial::test("cuda", || passes(BackendKind::Cuda, 0)),
        Err(error) => {
            eprintln!("no CUDA device: {error}");
            Trial::test("cuda", || Ok(()))
                .with_kind("needs CUDA")
                .with_ignored_flag(true)
        }
    };
    libtest_mimic::run(&arguments, vec![wgpu, cuda]).exit_code()
}
