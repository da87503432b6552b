//! `perpetua isa capture`: a kernel of a Rust file as a program.

use std::path::PathBuf;

use perpetua::isa;
use perpetua_ir::front::rust::FileKernel;

use super::super::source::{self, File, Wanted};
use super::super::{Failure, files};

#[derive(clap::Args)]
#[command(
    after_help = "Buffers and parameters keep their names. Structs become a value for each field. What a program has no instruction for (printing, panics, buffers of `bool`) is named.\n\n\
        Examples:\n  \
        perpetua isa capture saxpy.rs\n  \
        perpetua isa capture sum.rs 'sum::<f32, 256>' --out sum.pisa"
)]
pub(super) struct Args {
    /// A Rust file with functions marked #[kernel]
    file: PathBuf,
    /// The kernel, a generic one with its arguments: 'sum::<f32, 256>' [default: the file's only one]
    kernel: Option<String>,
    /// Where to write the program instead of printing it: its text to a name that ends in .pasm, its binary form to one that ends in .pisa
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

// Shows what cannot be captured in its line, which of a parameter is that of its declaration; `None` where it stands elsewhere.
fn not_captured(file: &File<'_>, kernel: &FileKernel, wrong: &isa::CaptureError) -> Option<Failure> {
    let tree = kernel
        .function
        .tree()
        .ok()
        .filter(|tree| tree.file == file.name)?;
    let name = wrong.what.split('`').nth(1);
    let declared = || {
        let found = tree.params.iter().find(|param| Some(&*param.name) == name);
        found.map_or(tree.line, |param| param.line)
    };
    let line = match wrong.line {
        0 => declared(),
        line => line,
    };
    file.marked(&format!("{} cannot be captured: {}", wrong.what, wrong.why), line);
    Some(format!("`{}` is not captured", wrong.kernel).into())
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let text = source::read(&args.file)?;
    let file = File::new(&args.file, &text);
    let wanted = args.kernel.as_deref().map(Wanted::parse).transpose()?;
    let kernel = file.kernel(wanted.as_ref())?;
    let out = ("--out", args.out.as_ref(), &["pisa", "pasm"][..]);
    files::check_places(&[out], Some(("the kernel", &args.file)))?;
    let how = wanted.unwrap_or_default().instantiation(&kernel, 64)?;
    let program = isa::capture(&file.lowered(&kernel, &how)?).map_err(|error| match &error {
        isa::Error::Capture(wrong) => not_captured(&file, &kernel, wrong).unwrap_or_else(|| error.into()),
        _ => error.into(),
    })?;
    match &args.out {
        None => super::print(&program.to_string()),
        Some(out) if files::ends_in(out, "pasm") => files::write(out, program.to_string().as_bytes()),
        Some(out) => super::write(&program, out),
    }
}
