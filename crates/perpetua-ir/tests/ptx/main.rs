//! PTX: goldens of what is written, and NVIDIA's assembler for every supported generation over all of it.
//! `PERPETUA_BLESS=1` writes the goldens anew.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod control;
mod matrices;
mod memory;
mod operators;
mod random;
mod sharing;
mod stages;
mod targets;
mod unroll;

use std::path::Path;

use perpetua_ir::back::{Source, ptx};
use perpetua_ir::ir::{Kernel, KernelBuilder, TypeError};
use perpetua_ir::verify::{Verified, verify};
use perpetua_vendor_tools::{FunctionUsage, ptxas};

/// What builds a kernel.
pub(crate) type Built = Result<(), TypeError>;

/// The generations that are assembled for, and what the assembler calls them.
pub(crate) const GENERATIONS: [(u32, &str); 4] =
    [(70, "sm_70"), (75, "sm_75"), (80, "sm_80"), (90, "sm_90a")];

pub(crate) fn build(name: &str, f: impl FnOnce(&mut KernelBuilder) -> Built) -> Kernel {
    let mut k = KernelBuilder::new(name);
    f(&mut k).expect("builds");
    k.finish()
}

/// Renders and assembles a kernel for all generations; gives source and resources of the last.
pub(crate) fn assemble(kernel: Kernel) -> (Source, Option<FunctionUsage>) {
    let verified = match verify(kernel.clone()) {
        Ok(verified) => verified,
        Err(errors) => panic!("{errors}\n{kernel}"),
    };
    let mut last = None;
    for generation in GENERATIONS {
        last = Some(assemble_for(&verified, generation));
    }
    last.expect("there are generations")
}

/// Renders and assembles a kernel for one generation.
pub(crate) fn assemble_for(verified: &Verified, (sm, arch): (u32, &str)) -> (Source, Option<FunctionUsage>) {
    let source = ptx::render(verified, sm).expect("renders");
    let usage = match ptxas(&source.text, arch).required(arch) {
        Ok(assembled) => assembled.map(|a| a.usage[0].clone()),
        Err(e) => panic!("{arch}: {e}\n{}\n{}", source.text, verified.kernel()),
    };
    if let (both, Some(_)) = ptx::render_with_wide(verified, sm).expect("renders")
        && let Err(e) = ptxas(&both.text, arch).required(arch)
    {
        panic!("{arch}: {e}\n{}\n{}", both.text, verified.kernel());
    }
    (source, usage)
}

/// Compares what is written for sm_90 with its golden, and assembles it for all.
pub(crate) fn golden(kernel: Kernel) -> Option<FunctionUsage> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/out/ptx")
        .join(format!("{}.ptx", kernel.name));
    let (source, usage) = assemble(kernel);
    if std::env::var_os("PERPETUA_BLESS").is_some_and(|v| v == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &source.text).unwrap();
    } else {
        let old = std::fs::read_to_string(&path)
            .unwrap_or_default()
            .replace("\r\n", "\n");
        assert_eq!(
            source.text,
            old,
            "{}: run with PERPETUA_BLESS=1 to accept",
            path.display()
        );
    }
    usage
}
