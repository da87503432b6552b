//! `perpetua emit`: a file's kernels as the text of a target.

use std::path::PathBuf;

use clap::ValueEnum;
use perpetua_ir::back::{Capability, CudaAbi, Target, render};
use perpetua_ir::front::rust::{Instantiation, kernels_in_file, lower};
use perpetua_ir::verify::verify;

use super::Failure;

#[derive(clap::Args)]
pub(super) struct Args {
    /// A Rust file with functions marked #[kernel]; names that lead out of it are errors
    file: PathBuf,
    /// The kernel to print; all of them if left out
    kernel: Option<String>,
    /// What to print it as
    #[arg(long, value_enum, default_value_t = Form::Ptx)]
    target: Form,
    /// Compute capability for PTX, times ten
    #[arg(long, default_value_t = 75, value_name = "SM")]
    sm: u32,
    /// Work-group size for WGSL, as X,Y,Z
    #[arg(long, value_delimiter = ',', num_args = 1..=3, default_values_t = [64u32], value_name = "N")]
    block: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// PTX, as the CUDA driver takes it
    Ptx,
    /// CUDA C++
    Cuda,
    /// WGSL, for wgpu
    Wgsl,
    /// Metal Shading Language
    Msl,
    /// Perpetua's intermediate representation
    Ir,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let name = args.file.display().to_string();
    let text = std::fs::read_to_string(&args.file).map_err(|e| format!("{name}: {e}"))?;
    let all = kernels_in_file(&text, &name)?;
    let known: Vec<&str> = all.iter().map(|(name, _)| &**name).collect();
    if known.is_empty() {
        return Err(format!("{name} has no function marked #[kernel]").into());
    }
    if let Some(wanted) = &args.kernel
        && !known.contains(&&**wanted)
    {
        return Err(format!("{name} has no kernel `{wanted}`; it has: {}", known.join(", ")).into());
    }
    // WGSL has 64-bit integers only where the device has them: `usize` takes 32 bits there, as on wasm32.
    let how = Instantiation {
        pointer_width: if args.target == Form::Wgsl { 32 } else { 64 },
        ..Instantiation::default()
    };
    for (kernel, function) in &all {
        if args.kernel.as_ref().is_some_and(|wanted| wanted != kernel) {
            continue;
        }
        let verified = verify(lower(function, &how)?)?;
        let size = |i: usize| args.block.get(i).copied().unwrap_or(1);
        let target = match args.target {
            Form::Ir => {
                println!("{}", verified.kernel());
                continue;
            }
            Form::Ptx => Target::Ptx { sm: args.sm },
            Form::Cuda => Target::CudaC {
                abi: CudaAbi::Checked,
            },
            Form::Msl => Target::Msl,
            Form::Wgsl => Target::Wgsl {
                capabilities: Capability::ALL
                    .into_iter()
                    .filter(|c| !matches!(c, Capability::Print | Capability::DeviceOrdering))
                    .collect(),
                block: [size(0), size(1), size(2)],
                dynamic_shared: 0,
            },
        };
        println!("{}", render(&verified, &target)?.text);
    }
    Ok(())
}
