//! `perpetua emit`: a file's kernels as the text of a target, or the kernels around a handler of actors.

mod handler;
mod unite;

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use perpetua_ir::back::{Capability, CudaAbi, Sm, Target, render};
use perpetua_ir::front::rust::{FileKernel, FunctionDef, Instantiation, lower};
use perpetua_ir::verify::{Verified, verify};

use super::Failure;
use super::files;
use super::say::{file as file_name, name, say, short};
use super::source::{self, File, Wanted};
use super::stdout::stdout;
use super::whole::from_nought;

#[derive(clap::Args)]
pub(super) struct Args {
    /// A Rust file with functions marked #[kernel]; names that lead out of it are errors, and #[cfg] counts as on this machine, with debug
    /// assertions and without features
    file: PathBuf,
    /// The kernel to print, a generic one with its arguments: 'sum::<f32, 256>'; all of them if left out
    kernel: Option<String>,
    /// The handler (marked #[ring_kernel]) whose kernel to print: the one that stays on the device, where the target can keep it
    #[arg(long, value_name = "NAME", conflicts_with = "kernel")]
    handler: Option<String>,
    /// With --handler: the kernel that handles a batch of messages, also where one could stay
    #[arg(long, requires = "handler", conflicts_with = "kernel")]
    batched: bool,
    /// What to print it as
    #[arg(long, value_enum, default_value_t = Form::Ptx)]
    target: Form,
    /// For PTX: compute capability times ten, 75 [default], or 90a with what that generation alone has
    #[arg(long, value_name = "SM", value_parser = sm)]
    sm: Option<Sm>,
    /// For WGSL: lanes of a block as X, X,Y or X,Y,Z [default: 64]
    #[arg(long, value_name = "LANES", allow_hyphen_values = true, value_parser = block)]
    block: Option<Block>,
    /// Write each kernel to a file of its own in a folder, instead of all as one text
    #[arg(long, value_name = "FOLDER", conflicts_with = "handler")]
    out_dir: Option<PathBuf>,
}

/// A kernel with its name and how to lower it.
pub(super) type NamedKernel = (String, FunctionDef, Instantiation);

/// The kernels around a file's handlers of actors, those that stay on a device and those for batches.
pub(super) fn handlers(file: &File<'_>) -> Result<Vec<NamedKernel>, Failure> {
    handler::kernels(file)
}

/// A target of PTX's, not one whose code is that of another.
fn sm(text: &str) -> Result<Sm, String> {
    let sm: Sm = text
        .parse()
        .map_err(|e: <Sm as std::str::FromStr>::Err| name(&e.to_string()))?;
    match sm.named() {
        Some((named, _)) if named != sm => Err(format!(
            "no PTX is written for {sm} by that name; that for {named} runs there"
        )),
        _ => Ok(sm),
    }
}

/// Lanes of a block.
#[derive(Clone, Copy, Debug)]
struct Block([u32; 3]);

/// Most lanes that a block of any WGSL device has.
const MOST_LANES: u64 = 1024;

fn block(text: &str) -> Result<Block, String> {
    let sizes: Vec<&str> = text.split(',').collect();
    let (mut lanes, count) = ([1; 3], sizes.len());
    if count > 3 {
        return Err(format!("these are {count} sizes; a block has one to three"));
    }
    for (lane, size) in lanes.iter_mut().zip(sizes) {
        *lane = match from_nought(size) {
            Ok(size) if size > 0 => size,
            Ok(_) => return Err("a block needs a lane at least along each axis".into()),
            Err(error) => return Err(format!("`{}`: {error}", short(size))),
        };
    }
    let product = lanes.iter().map(|n| u128::from(*n)).product::<u128>();
    if product > u128::from(MOST_LANES) {
        return Err(format!(
            "{product} lanes are more than the {MOST_LANES} that a block may have"
        ));
    }
    Ok(Block(lanes))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// PTX, as the CUDA driver takes it
    Ptx,
    /// CUDA C++; as in WGSL and MSL, names end in an underscore, that of the kernel too
    #[value(alias = "cuda")]
    CudaC,
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
    for (option, is_given, target) in [
        ("--sm", args.sm.is_some(), Form::Ptx),
        ("--block", args.block.is_some(), Form::Wgsl),
    ] {
        if is_given && args.target != target {
            let target = target
                .to_possible_value()
                .map_or_else(String::new, |t| t.get_name().to_owned());
            return Err(format!("{option} says something to --target {target} only: leave it out").into());
        }
    }
    let text = source::read(&args.file)?;
    let file = File::new(&args.file, &text);
    if let Some(wanted) = &args.handler {
        return handler::run(&file, wanted, args);
    }
    let wanted = args.kernel.as_deref().map(Wanted::parse).transpose()?;
    let all = file.kernels(wanted.as_ref())?;
    let wanted = wanted.unwrap_or_default();
    let (mut failed, mut texts) = (Vec::new(), Vec::new());
    for kernel in &all {
        let name = &*kernel.name;
        match text_of(&file, kernel, &wanted, args) {
            Ok(text) => texts.push((name, text)),
            Err(error) => match error.downcast_ref() {
                Some(error) => {
                    file.not_lowered(error);
                    failed.push(name);
                }
                None if all.len() == 1 => return Err(error),
                // The others are printed all the same.
                None => {
                    say(format!("error: {error}"));
                    failed.push(name);
                }
            },
        }
    }
    match &args.out_dir {
        Some(folder) => written(&texts, folder, args)?,
        None => {
            let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
            if !texts.is_empty() {
                writeln!(stdout()?, "{}", as_one(&texts, args.target))?;
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let (count, names) = (failed.len(), failed.join(", "));
    Err(format!("{count} of {} kernels could not be printed: {names}", all.len()).into())
}

/// What is printed of several kernels.
fn as_one(texts: &[String], target: Form) -> String {
    match target {
        Form::Cpu | Form::Ir => texts.join("\n"),
        Form::CudaC | Form::Msl | Form::Ptx | Form::Wgsl if texts.len() > 1 => unite::unite(texts),
        _ => texts.concat(),
    }
}

/// Writes each kernel to a file of its own.
fn written(texts: &[(&str, String)], folder: &Path, args: &Args) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|e| match folder.exists() {
        true => format!("--out-dir {}: this is no folder; name one", file_name(folder)),
        false => format!("--out-dir {}: {e}", file_name(folder)),
    })?;
    let extension = match args.target {
        Form::Ptx => "ptx",
        Form::CudaC => "cu",
        Form::Wgsl => "wgsl",
        Form::Msl => "metal",
        Form::Cpu => "s",
        Form::Ir => "ir",
    };
    let mut names = HashSet::new();
    let place = |kernel: &str| {
        // Kernels of two modules may have one name.
        let mut name = kernel.to_owned();
        while !names.insert(name.clone()) {
            name.push('_');
        }
        folder.join(format!("{name}.{extension}"))
    };
    let places: Vec<PathBuf> = texts.iter().map(|(kernel, _)| *kernel).map(place).collect();
    let outputs: Vec<files::Output<'_>> = places
        .iter()
        .map(|place| ("--out-dir", Some(place), &[][..]))
        .collect();
    files::check_places(&outputs, Some(("the source", &args.file)))?;
    let mut all = places.iter().zip(texts);
    all.try_for_each(|(place, (_, text))| files::write(place, text.as_bytes()))
}

/// What a WGSL text needs that the language itself lacks, and no directive in it asks for.
fn needs(kernel: &Verified) -> String {
    const ADDED: [(Capability, &str, &str); 3] = [
        (Capability::Int64, "64-bit integers", "SHADER_INT64"),
        (Capability::Float64, "f64", "SHADER_F64"),
        (
            Capability::Atomic64,
            "64-bit atomics",
            "SHADER_INT64_ATOMIC_ALL_OPS",
        ),
    ];
    let asked = ADDED
        .iter()
        .filter(|(capability, ..)| kernel.facts().needs(*capability));
    asked
        .map(|(_, what, feature)| {
            format!("// needs {what}, which WGSL lacks: naga takes them where wgpu's feature {feature} is on; browsers do not\n")
        })
        .collect()
}

/// `usize` takes 32 bits in WGSL, as on wasm32.
fn pointer_width(target: Form) -> u32 {
    if target == Form::Wgsl { 32 } else { 64 }
}

/// A kernel as the target's text.
fn text_of(
    file: &File<'_>,
    kernel: &FileKernel,
    wanted: &Wanted<'_>,
    args: &Args,
) -> Result<String, Failure> {
    let how = wanted.instantiation(kernel, pointer_width(args.target))?;
    if let (Some(Block(asked)), Some(required)) = (args.block, how.block_size.or(how.stencil.tile))
        && asked != required
    {
        let [x, y, z] = required;
        let error = format!(
            "--block: `{}` requires blocks of {x},{y},{z}: leave it out",
            kernel.name
        );
        return Err(error.into());
    }
    print(file, &kernel.function, &how, args)
}

/// A function, lowered so, as the target's text.
fn print(
    file: &File<'_>,
    function: &FunctionDef,
    how: &Instantiation,
    args: &Args,
) -> Result<String, Failure> {
    let verified = verify(lower(function, how)?)?;
    let target = match args.target {
        Form::Ir => return Ok(verified.kernel().to_string()),
        Form::Cpu => return assembly(file, &verified),
        Form::Ptx => Target::Ptx {
            sm: args.sm.unwrap_or(Sm::from(75)),
        },
        Form::CudaC => Target::CudaC {
            abi: CudaAbi::Checked,
        },
        Form::Msl => Target::Msl,
        Form::Wgsl => Target::wgsl(args.block.map_or([64, 1, 1], |block| block.0)),
    };
    let head = match args.target {
        Form::Wgsl => needs(&verified),
        _ => String::new(),
    };
    Ok(head + &render(&verified, &target)?.text)
}

/// A kernel as assembly; for AVX-512 where this machine has no vectors that code can be made for.
#[cfg(target_arch = "x86_64")]
fn assembly(file: &File<'_>, kernel: &Verified) -> Result<String, Failure> {
    use perpetua_cpu::interp::{MachineCode, Width};

    let width = Width::detect().last().copied().unwrap_or(Width::Sixteen);
    let code = MachineCode::generate(kernel, width).map_err(|why| {
        format!(
            "`{}` has no machine code for the CPU, whose interpreter runs it: {why}",
            kernel.kernel().name
        )
    })?;
    let name = &kernel.kernel().name;
    let text = file.within(&kernel.kernel().source, |file| code.assembly(file.text));
    Ok(format!(
        "; kernel {name}, {} lanes side by side\n{text}",
        width.lanes()
    ))
}

#[cfg(not(target_arch = "x86_64"))]
fn assembly(_: &File<'_>, _: &Verified) -> Result<String, Failure> {
    Err("machine code is listed on x86-64 alone".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
        #[kernel] fn plain(y: &mut [u32]) { y[0] = 1; }
        #[kernel] fn fill<T: Element, const N: usize>(y: &mut [T]) { for i in 0..N { y[i] = y[0]; } }
    ";

    fn args(target: Form) -> Args {
        Args {
            file: "k.rs".into(),
            kernel: None,
            handler: None,
            batched: false,
            target,
            sm: None,
            block: None,
            out_dir: None,
        }
    }

    fn check(wanted: &str, expect: &str) {
        check_as(Form::Ir, wanted, expect);
    }

    fn check_as(target: Form, wanted: &str, expect: &str) {
        let file = File::new("k.rs", FILE);
        let wanted = Wanted::parse(wanted).unwrap();
        let kernel = &file.kernels(Some(&wanted)).unwrap()[0];
        let found = match text_of(&file, kernel, &wanted, &args(target)) {
            Ok(text) => text,
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expect), "{found}");
    }

    #[test]
    fn options_that_mean_nothing_are_refused() {
        let check = |option: &str, value: &str, expect: &str| {
            let found = match option {
                "sm" => sm(value).map(drop),
                _ => block(value).map(drop),
            };
            match found {
                Ok(()) => assert_eq!(expect, "", "{value}"),
                Err(found) => assert!(!expect.is_empty() && found.contains(expect), "{value}: {found}"),
            }
        };
        check("block", "8", "");
        check("block", "8,8,16", "");
        check("block", "0", "a block needs a lane");
        check("block", "1,2,3,4", "these are 4 sizes");
        check("block", "32,33", "1056 lanes are more than the 1024");
        check("block", "x", "`x`: it must be a whole number from 0 to");
        check("block", "8x8", "a comma parts sizes here: 8,8");
        check("sm", "90a", "");
        check("sm", "120", "");
        check(
            "sm",
            "9999",
            "no PTX is written for sm_9999 by that name; that for sm_120 runs there",
        );
        check("sm", "banana", "`banana` is no compute capability");
    }

    #[test]
    fn a_files_name_is_written_out() {
        let file = File::new("s\u{1b}[31m\n.rs", FILE);
        let wanted = Wanted::parse("plain").unwrap();
        let kernel = &file.kernels(Some(&wanted)).unwrap()[0];
        let text = text_of(&file, kernel, &wanted, &args(Form::Ptx)).unwrap();
        assert!(
            text.starts_with("// lines are of s\\u{1b}[31m\\n.rs\n.version"),
            "{text:.80}"
        );
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_cpus_code_is_printed_with_its_lines() {
        check_as(Form::Cpu, "plain", "; kernel plain");
        check_as(Form::Cpu, "plain", "\n; 2: ");
        check_as(Form::Cpu, "fill::<f32, 16>", "  ret");
        let calls = (0..14).map(|i| {
            format!(
                "#[device] fn f{i}(x: f32) -> f32 {{ f{}(x) + f{}(x * 2.0) }}",
                i + 1,
                i + 1
            )
        });
        let text = calls.collect::<Vec<_>>().join("\n")
            + "\n#[device] fn f14(x: f32) -> f32 { x * x }\n#[kernel] fn k(y: &mut [f32]) { y[0] = f0(y[0]); }\n";
        let file = File::new("k.rs", &text);
        let kernel = &file.kernels(None).unwrap()[0];
        let found = text_of(&file, kernel, &Wanted::default(), &args(Form::Cpu))
            .unwrap_err()
            .to_string();
        assert!(found.contains("more than 20000 operations"), "{found}");
    }

    /// One text of kernels that share functions, types and tables, and differ in what has one name, for each target's tools.
    #[test]
    fn several_kernels_are_one_text_that_the_tools_accept() {
        use perpetua_vendor_tools::{naga, nvrtc, ptxas, tint};
        const FILE: &str = "
            mod a { pub const TABLE: [f32; 2] = [1.0, 2.0]; #[device] pub fn twice(x: f32) -> f32 { x * 2.0 } }
            mod b { #[device] pub fn thrice(x: f32) -> f32 { x.sin() * 3.0 } }
            use a::*;
            use b::*;
            #[derive(Clone, Copy, GpuType)] #[repr(C)] struct P { x: f32, y: f32 }
            #[device] fn shift(p: P, by: f32) -> P { P { x: p.x + twice(by), y: thrice(p.y) } }
            #[kernel] fn one(x: &mut [P]) { let i = global_id_x(); x[i] = shift(x[i], TABLE[i % 2]); }
            #[kernel] fn two(x: &[P], y: &mut [f32], n: u32) {
                let t = shared_array::<[f32; 64]>();
                let i = global_id_x();
                t[thread_idx_x() as usize] = shift(x[i % 8], n as f32).x;
                sync_threads();
                y[i] = t[63 - thread_idx_x() as usize] / TABLE[i % 2];
            }
            #[kernel] fn three(y: &[f32], t: &mut [i32]) { let i = global_id_x(); t[i] = 7 / (y[i] as i32); }
            mod c {
                #[kernel] fn three(t: &mut [u64], p: u64) { t[0] = t[1] / p; }
            }
        ";
        let file = File::new("k.rs", FILE);
        let all = file.kernels(None).unwrap();
        assert_eq!(all.len(), 4);
        let whole = |target: Form, kernels: usize| {
            let args = args(target);
            let text = |kernel: &FileKernel| text_of(&file, kernel, &Wanted::default(), &args).unwrap();
            as_one(&all[..kernels].iter().map(text).collect::<Vec<_>>(), target)
        };
        let ptx = whole(Form::Ptx, 4);
        assert_eq!(ptx.matches(".version").count(), 1);
        assert_eq!(ptx.matches(".entry").count(), 4);
        ptxas(&ptx, "sm_75").required("four kernels as PTX").unwrap();
        let cuda = whole(Form::CudaC, 4);
        assert_eq!(cuda.matches("struct P_ {").count(), 1, "{cuda}");
        nvrtc(&cuda, "sm_75").required("four kernels as CUDA C").unwrap();
        let wgsl = whole(Form::Wgsl, 3);
        assert_eq!(wgsl.matches("struct P_ {").count(), 1, "{wgsl}");
        assert_eq!(wgsl.matches("@compute").count(), 3);
        naga(&wgsl, &[]).required("three kernels as WGSL").unwrap();
        tint(&wgsl, &[]).required("three kernels as WGSL").unwrap();
        let wide = whole(Form::Wgsl, 4);
        assert!(
            wide.starts_with("// needs 64-bit integers, which WGSL lacks"),
            "{wide:.200}"
        );
        naga(&wide, &["shader_int64"])
            .required("four kernels as WGSL")
            .unwrap();
        let msl = whole(Form::Msl, 4);
        assert_eq!(msl.matches("using namespace metal;").count(), 1);
        assert!(msl.contains("kernel void three2_("), "{msl}");
        perpetua_vendor_tools::MslProgram::compile(&msl, "three2_")
            .required("four kernels as MSL")
            .unwrap();
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
        assert!(Wanted::parse("fill::<f16").is_err());
    }
}
