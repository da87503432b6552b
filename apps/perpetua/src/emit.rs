//! `perpetua emit`: a file's kernels as the text of a target, or the kernels around a handler of actors.

mod handler;

use std::io::{Write, stdout};
use std::path::PathBuf;

use clap::ValueEnum;
use perpetua_ir::back::{Capability, CudaAbi, Sm, Target, render};
use perpetua_ir::front::rust::{FunctionDef, GenericValue, Instantiation, kernels_in_file, lower};
use perpetua_ir::verify::{Verified, verify};

use super::Failure;
use super::say::say;

#[derive(clap::Args)]
pub(super) struct Args {
    /// A Rust file with functions marked #[kernel]; names that lead out of it are errors
    file: PathBuf,
    /// The kernel to print, a generic one with its arguments: 'sum::<f32, 256>'; all of them if left out
    kernel: Option<String>,
    /// The handler (marked #[ring_kernel]) whose kernel to print: the one that stays on the device, where the target can keep it
    #[arg(long, value_name = "NAME", conflicts_with = "kernel")]
    handler: Option<String>,
    /// With --handler: the kernel that handles a batch of messages, also where one could stay
    #[arg(long, requires = "handler")]
    batched: bool,
    /// What to print it as
    #[arg(long, value_enum, default_value_t = Form::Ptx)]
    target: Form,
    /// Compute capability for PTX, times ten: 75, or 90a with what that generation alone has
    #[arg(long, default_value = "75", value_name = "SM")]
    sm: Sm,
    /// Block size for WGSL, as X,Y,Z
    #[arg(long, value_delimiter = ',', num_args = 1..=3, default_values_t = [64u32], value_name = "N")]
    block: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// PTX, as the CUDA driver takes it
    Ptx,
    /// CUDA C++; as in WGSL and MSL, names end in an underscore, that of the kernel too
    Cuda,
    /// WGSL, for wgpu
    Wgsl,
    /// Metal Shading Language
    Msl,
    /// Assembly of the CPU's machine code, for this machine's vectors; lines of the source are comments
    Cpu,
    /// Perpetua's intermediate representation
    Ir,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let name = args.file.display().to_string();
    let text = std::fs::read_to_string(&args.file).map_err(|e| format!("{name}: {e}"))?;
    if let Some(wanted) = &args.handler {
        return handler::run(&text, &name, wanted, args);
    }
    let all = kernels_in_file(&text, &name)?;
    let known: Vec<&str> = all.iter().map(|(name, _)| &**name).collect();
    if known.is_empty() {
        return Err(format!("{name} has no function marked #[kernel]").into());
    }
    let (wanted, generics) = match &args.kernel {
        Some(wanted) => split(wanted)?,
        None => ("", Vec::new()),
    };
    if args.kernel.is_some() && !known.contains(&wanted) {
        return Err(format!("{name} has no kernel `{wanted}`; it has: {}", known.join(", ")).into());
    }
    let mut failed = Vec::new();
    for (kernel, function) in &all {
        if args.kernel.is_some() && wanted != kernel {
            continue;
        }
        match text_of(kernel, function, &generics, args) {
            Ok(text) => writeln!(stdout(), "{text}")?,
            Err(error) if all.len() == 1 || args.kernel.is_some() => return Err(error),
            // The others are printed all the same.
            Err(error) => {
                say(format!("error: {error}"));
                failed.push(&**kernel);
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let (count, names) = (failed.len(), failed.join(", "));
    Err(format!("{count} of {} kernels could not be printed: {names}", all.len()).into())
}

/// `name::<a, b>` as name and arguments.
fn split(wanted: &str) -> Result<(&str, Vec<&str>), Failure> {
    let Some((name, rest)) = wanted.split_once("::<") else {
        return Ok((wanted.trim(), Vec::new()));
    };
    let Some(list) = rest.trim_end().strip_suffix('>') else {
        return Err(format!("`{wanted}` lacks its closing >, as in 'sum::<f32, 256>'").into());
    };
    let arguments = list
        .split(',')
        .map(str::trim)
        .filter(|argument| !argument.is_empty());
    Ok((name.trim(), arguments.collect()))
}

/// WGSL has 64-bit integers only where the device has them: `usize` takes 32 bits there, as on wasm32.
fn pointer_width(target: Form) -> u32 {
    if target == Form::Wgsl { 32 } else { 64 }
}

/// A kernel as the target's text.
fn text_of(kernel: &str, function: &FunctionDef, generics: &[&str], args: &Args) -> Result<String, Failure> {
    let params = &function.tree()?.generics;
    if params.len() != generics.len() {
        let names: Vec<&str> = params.iter().map(|param| param.name()).collect();
        return Err(match names.join(", ") {
            names if names.is_empty() => format!("`{kernel}` is not generic: leave its arguments out"),
            names => {
                format!("`{kernel}` is generic: name its arguments, as '{kernel}::<{names}>' with values")
            }
        }
        .into());
    }
    let generics = params.iter().zip(generics);
    let how = Instantiation {
        pointer_width: pointer_width(args.target),
        generics: generics
            .map(|(param, text)| GenericValue::parse(param, text))
            .collect::<Result<_, _>>()?,
        ..Instantiation::default()
    };
    print(function, &how, args)
}

/// A function, lowered so, as the target's text.
fn print(function: &FunctionDef, how: &Instantiation, args: &Args) -> Result<String, Failure> {
    let verified = verify(lower(function, how)?)?;
    let size = |i: usize| args.block.get(i).copied().unwrap_or(1);
    let target = match args.target {
        Form::Ir => return Ok(verified.kernel().to_string()),
        Form::Cpu => return assembly(&verified, args),
        Form::Ptx => Target::Ptx { sm: args.sm },
        Form::Cuda => Target::CudaC {
            abi: CudaAbi::Checked,
        },
        Form::Msl => Target::Msl,
        Form::Wgsl => Target::Wgsl {
            capabilities: Capability::ALL
                .into_iter()
                .filter(|c| {
                    use Capability::{DeviceOrdering, Print, Residency};
                    !matches!(c, Print | DeviceOrdering | Residency)
                })
                .collect(),
            block: [size(0), size(1), size(2)],
            dynamic_shared: 0,
            distinct: false,
        },
    };
    Ok(render(&verified, &target)?.text)
}

/// A kernel as assembly; for AVX-512 where this machine has no vectors that code can be made for.
#[cfg(target_arch = "x86_64")]
fn assembly(kernel: &Verified, args: &Args) -> Result<String, Failure> {
    use perpetua_ir::interp::{MachineCode, Width};

    let width = Width::detect().last().copied().unwrap_or(Width::Sixteen);
    let code = MachineCode::generate(kernel, width).map_err(|why| why.to_string())?;
    let source = std::fs::read_to_string(&args.file).unwrap_or_default();
    let name = &kernel.kernel().name;
    Ok(format!(
        "; kernel {name}, {} lanes side by side\n{}",
        width.lanes(),
        code.assembly(&source)
    ))
}

#[cfg(not(target_arch = "x86_64"))]
fn assembly(_: &Verified, _: &Args) -> Result<String, Failure> {
    Err("machine code is listed on x86-64 alone".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
        #[kernel] fn plain(y: &mut [u32]) { y[0] = 1; }
        #[kernel] fn fill<T: Element, const N: usize>(y: &mut [T]) { for i in 0..N { y[i] = y[0]; } }
    ";

    fn check(wanted: &str, expect: &str) {
        check_as(Form::Ir, wanted, expect);
    }

    fn check_as(target: Form, wanted: &str, expect: &str) {
        let all = kernels_in_file(FILE, "k.rs").unwrap();
        let (name, generics) = split(wanted).unwrap();
        let (_, function) = all.iter().find(|(kernel, _)| kernel == name).unwrap();
        let args = Args {
            file: "k.rs".into(),
            kernel: None,
            handler: None,
            batched: false,
            target,
            sm: 75.into(),
            block: vec![64],
        };
        let found = match text_of(name, function, &generics, &args) {
            Ok(text) => text,
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expect), "{found}");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_cpus_code_is_printed_with_its_lines() {
        check_as(Form::Cpu, "plain", "; kernel plain");
        check_as(Form::Cpu, "plain", "\n; 2: ");
        check_as(Form::Cpu, "fill::<f32, 16>", "  ret");
    }

    #[test]
    fn generic_kernels_take_their_arguments_on_the_command_line() {
        check("plain", "kernel");
        check("fill::<f16, 16>", "f16");
        check(
            "fill",
            "`fill` is generic: name its arguments, as 'fill::<T, N>' with values",
        );
        check("plain::<3>", "`plain` is not generic: leave its arguments out");
        check(
            "fill::<f16, f16>",
            "`N` takes a constant of type `usize`, found `f16`",
        );
        assert!(split("fill::<f16").is_err());
    }
}
