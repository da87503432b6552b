//! `perpetua explain`: what becomes of a kernel's lines: which checks stand, where lanes part, how memory is reached. Tells what the
//! compiler's own analyses have found; finds out nothing itself.

mod draw;
mod remarks;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use clap::ValueEnum;
use perpetua_cpu::interp::{MachineCode, Note, Noted, Width};
use perpetua_ir::pass::checks::{Check, Checked, make_explicit};
use perpetua_ir::verify::{Verified, partings};

use super::Failure;
use super::source::{self, File, Wanted};
use super::stdout::stdout;
use super::text::{columns, wrapped};
use remarks::{Found, Side};

#[derive(clap::Args)]
pub(super) struct Args {
    /// A Rust file with functions marked #[kernel]
    file: PathBuf,
    /// The kernel to explain, a generic one with its arguments: 'sum::<f32, 256>'; all of them if left out
    kernel: Option<String>,
    /// Say what is so on this target alone
    #[arg(long, value_enum)]
    target: Option<Target>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Machine code of this machine's processor
    Cpu,
    /// NVIDIA GPUs
    #[value(alias = "cuda-c", alias = "ptx")]
    Cuda,
    /// Browsers, and GPUs through wgpu
    Wgsl,
    /// Apple's GPUs
    Msl,
}

impl Target {
    fn side(self) -> Side {
        match self {
            Target::Cpu => Side::Cpu,
            Target::Cuda | Target::Wgsl | Target::Msl => Side::Gpu,
        }
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let text = source::read(&args.file)?;
    let file = File::new(&args.file, &text);
    let wanted = args.kernel.as_deref().map(Wanted::parse).transpose()?;
    let all = file.kernels(wanted.as_ref())?;
    let wanted = wanted.unwrap_or_default();
    // WGSL's `usize` has 32 bits.
    let pointer_width = if args.target == Some(Target::Wgsl) { 32 } else { 64 };
    let width = Width::detect().last().copied().unwrap_or(Width::Sixteen);
    for kernel in &all {
        let how = wanted.instantiation(kernel, pointer_width)?;
        let verified = file.lowered(kernel, &how)?;
        let side = args.target.map(Target::side);
        let told = file.within(&verified.kernel().source, |file| {
            explained(file, &verified, kernel.lacks_native, side, width, columns())
        });
        write!(anstream::AutoStream::auto(stdout()?), "{told}")?;
    }
    Ok(())
}

/// What there is to say about a kernel, drawn under its lines.
fn explained(
    file: &File<'_>,
    kernel: &Verified,
    lacks_native: Option<(&str, u32)>,
    side: Option<Side>,
    width: Width,
    columns: usize,
) -> String {
    let explicit = make_explicit(kernel);
    let notes = MachineCode::notes(kernel, width);
    let found = Found {
        text: file.text,
        checks: explicit.checks(),
        notes: notes.as_deref().unwrap_or_default(),
        reasons: &partings(kernel),
        lanes: width.lanes(),
        side,
    };
    let remarks = found.remarks();
    let mut head = format!("{}: kernel `{}`", file.name, kernel.kernel().name);
    if side != Some(Side::Cpu) {
        let _ = write!(head, "; {}", counted(explicit.checks()));
    }
    if side != Some(Side::Gpu) {
        head += &match &notes {
            Ok(notes) => format!("; on the CPU, {}", ways(notes, width)),
            Err(why) => format!("; on the CPU, the interpreter runs it: {why}"),
        };
        head += &match lacks_native {
            Some((what, line)) => format!("; in a crate, too: native code lacks {what} (line {line})"),
            None => "; in a crate, as native code, if all that it calls has some".to_owned(),
        };
    }
    let mut out = wrapped(&head, 2, columns);
    out.push('\n');
    out += &draw::under_lines(file.text, &remarks, columns);
    out.push('\n');
    out
}

/// How many checks there are.
fn counted(checks: &[Check]) -> String {
    let is_index = |check: &&Check| matches!(check.what, Checked::Load | Checked::Store | Checked::Atomic);
    let all = checks.iter().filter(is_index).count();
    let made = checks
        .iter()
        .filter(is_index)
        .filter(|c| c.proof.is_none())
        .count();
    match (all, made) {
        (0, _) => "no index".to_owned(),
        (1, 0) => "its index needs no check on GPUs".to_owned(),
        (_, 0) => format!("none of its {all} indices needs a check on GPUs"),
        (1, _) => "its index is checked on GPUs".to_owned(),
        (all, made) => format!("{made} of {all} indices checked on GPUs"),
    }
}

/// How the processor runs a kernel.
fn ways(notes: &[Note], width: Width) -> String {
    let vectors = width.instructions();
    let evaluated = notes
        .iter()
        .filter(|note| matches!(note.what, Noted::Host(_)))
        .count();
    let lanes = width.lanes();
    match evaluated {
        0 => format!("{lanes} lanes side by side by {vectors}"),
        1 => format!("{lanes} lanes side by side by {vectors}, one operation lane by lane"),
        n => format!("{lanes} lanes side by side by {vectors}, {n} operations lane by lane"),
    }
}

#[cfg(test)]
mod tests;
