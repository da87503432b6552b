//! `perpetua isa capture`: a kernel of a Rust file as a program.

use std::path::PathBuf;

use perpetua::isa;

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

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let text = source::read(&args.file)?;
    let file = File::new(&args.file, &text);
    let wanted = args.kernel.as_deref().map(Wanted::parse).transpose()?;
    let kernel = file.kernel(wanted.as_ref())?;
    let out = ("--out", args.out.as_ref(), &["pisa", "pasm"][..]);
    files::check_places(&[out], Some(("the kernel", &args.file)))?;
    let how = wanted.unwrap_or_default().instantiation(&kernel, 64)?;
    let program = isa::capture(&file.lowered(&kernel, &how)?)?;
    match &args.out {
        None => super::print(&program.to_string()),
        Some(out) if files::ends_in(out, "pasm") => files::write(out, program.to_string().as_bytes()),
        Some(out) => super::write(&program, out),
    }
}
