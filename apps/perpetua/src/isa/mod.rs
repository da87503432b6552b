//! `perpetua isa`: programs in the instruction set, from text to a run.

mod bench;
mod capture;
mod run;
mod serve;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use perpetua::isa::serve::markdown;
use perpetua::isa::{
    Arguments, Assembler, At, Error, Limits, Memory, MemoryKind, Program, fuse, library, lower,
    specification, verify,
};
use perpetua_ir::ir::FaultKind;

use super::run::axes;
use super::say::{self, say};
use super::stdout::stdout;
use super::whole::{counted, from_nought};
use super::{Failure, files, source, values};

/// Largest file with a program that is read.
const MOST_PROGRAM: u64 = 1 << 30;

#[derive(clap::Args)]
#[command(
    after_help = "A program is a file: text (see `perpetua isa spec`) or what `asm` made of it; or the name of one of the library's \
        (`perpetua isa list`).\n\nExamples:\n  \
        perpetua isa run atlas_add_f32 --buffer a=range:8 --buffer b=ones:8 --buffer out=zeros:8 --lanes 8\n  \
        perpetua isa run saxpy.pasm --buffer x=range:8 --buffer y=ones:8 --param a=2 --lanes 8\n  \
        perpetua isa asm saxpy.pasm --out saxpy.pisa\n  \
        perpetua isa capture saxpy.rs --out saxpy.pisa\n  \
        perpetua isa run saxpy.pisa --buffer x=x.npy --buffer y=y.npy --param a=2 --lanes 1000000 --out y=y.npy\n  \
        perpetua isa run atlas_mul_f32:out=t atlas_add_f32:a=t --buffer t=zeros:8 --buffer a=range:8 --buffer b=ones:8 --buffer out=zeros:8 --lanes 8"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Turn a program's text into its binary form
    Asm {
        /// The text
        program: PathBuf,
        /// Where to write it [default: the text's name, ending in .pisa]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Turn a kernel of a Rust file into a program
    Capture(capture::Args),
    /// Print a program as text
    Disasm {
        /// The program
        program: PathBuf,
        /// Where to write the text instead of printing it
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Check a program, without running it
    Verify {
        /// The program
        program: PathBuf,
        #[command(flatten)]
        untrusted: Untrusted,
    },
    /// Print the kernel that a program becomes, in the IR's text form; of several programs, what they are fused to
    #[command(
        after_help = "Fused are element-wise programs that run one after the other. Buffers of one name are one, and all are taken to be \
            equally long, which `Executor::fuse` checks; PROGRAM:NAME=NEW,… renames buffers.\n\nExample:\n  \
            perpetua isa explain atlas_mul_f32:out=t atlas_add_f32:a=t"
    )]
    Explain {
        /// The programs
        #[arg(required = true, value_name = "PROGRAM")]
        programs: Vec<String>,
    },
    /// Print the instruction set
    Spec {
        /// Print the protocol of `serve` instead
        #[arg(long)]
        protocol: bool,
    },
    /// Print the library's programs
    List {
        /// Only those with this in their names
        #[arg(value_name = "PART")]
        part: Option<String>,
    },
    /// Run a program
    Run(Box<run::Args>),
    /// Measure programs beside kernels, copies and plain Rust, and the CPU beside GPUs by size
    Bench(bench::Args),
    /// Run programs of others, over a socket, in processes of their own
    Serve(Box<serve::Args>),
    /// Run one client's programs: what `serve` starts
    #[command(hide = true)]
    ServeChild(serve::Child),
}

/// What an untrusted program is held to.
#[derive(clap::Args)]
struct Untrusted {
    /// Hold the program to limits, as `serve` does: whatever it is, it ends, with an error that names the line; `run` ends it after a minute
    /// if --time-limit says nothing else
    #[arg(long)]
    untrusted: bool,
    /// How many instructions a lane may run in loops, about [default: 100000000]
    #[arg(long, value_name = "N", requires = "untrusted", allow_negative_numbers = true, value_parser = from_nought::<u32>)]
    budget: Option<u32>,
    /// How many bytes all buffers and pools may have together [default: 1073741824]
    #[arg(long, value_name = "BYTES", requires = "untrusted", allow_negative_numbers = true, value_parser = from_nought::<usize>)]
    memory: Option<usize>,
}

impl Untrusted {
    fn limits(&self) -> Option<Limits> {
        let usual = Limits::default();
        self.untrusted.then(|| Limits {
            instructions: self.budget.unwrap_or(usual.instructions),
            memory: self.memory.unwrap_or(usual.memory),
            ..usual
        })
    }

    // How long a run may take where the user does not say: a budget is each lane's own, and a grid may have many.
    fn time(&self) -> Option<Duration> {
        self.untrusted.then_some(Duration::from_secs(60))
    }

    // Refuses a run whose memory is more than is allowed, before any of it is allocated.
    fn fits(&self, sizes: impl Iterator<Item = usize>) -> Result<(), Failure> {
        let (needed, limits) = (sizes.fold(0, usize::saturating_add), self.limits());
        match limits.map(|limits| limits.memory).filter(|allowed| needed > *allowed) {
            Some(allowed) => Err(format!(
                "the buffers and pools have {needed} bytes, an untrusted program may have {allowed}: --memory {needed} allows them"
            )
            .into()),
            None => Ok(()),
        }
    }
}

// A program, and the name and text of the file it was assembled of.
struct Source {
    program: Program,
    text: Option<(String, String)>,
}

impl Source {
    // That the program is right, and within limits.
    fn verified(&self, limits: Option<Limits>) -> Result<(), Failure> {
        let options = lower::Options {
            budget: limits.map(|limits| limits.instructions),
            ..lower::Options::default()
        };
        let right = verify::verify(&self.program).and_then(|verified| {
            limits.map_or(Ok(()), |limits| limits.check(&verified))?;
            lower::lower(&verified, options)
        });
        right.map(drop).map_err(|error| self.failed(error))
    }

    // The error of a program or its run: what has a place is underlined in the program's text, and where a budget was spent an option gives more.
    fn failed(&self, error: Error) -> Failure {
        if let (Some((name, text)), Some((at, cause))) = (&self.text, place(&error))
            && at.line > 0
            && at.file == *name
        {
            source::File::new(name, text).marked(&cause, at.line);
            return format!("`{}` has a mistake", self.program.name).into();
        }
        let Error::Device(perpetua::device::Error::Fault(fault)) = &error else {
            return error.into();
        };
        let more = match fault.site.kind {
            FaultKind::BudgetSpent => "; --budget N gives it more",
            _ => "",
        };
        match &self.text {
            Some((name, text)) if *name == *fault.source && fault.site.line > 0 => {
                source::File::new(name, text).fault(fault);
                format!("`{}` ended with a fault{more}", self.program.name).into()
            }
            _ => format!("{error}{more}").into(),
        }
    }
}

// Where a program is wrong, and what is.
fn place(error: &Error) -> Option<(&At, String)> {
    match error {
        Error::Verify(wrong) => Some((&wrong.at, wrong.fault.to_string())),
        Error::Kernel { at, message, .. } => Some((at, message.clone())),
        Error::Untrusted { at, why, .. } => {
            Some((at, format!("an untrusted program may not have this: {why}")))
        }
        Error::Large {
            at,
            what,
            found,
            limit,
            ..
        } => Some((
            at,
            format!("{what}: {found}, an untrusted program may have {limit}"),
        )),
        _ => None,
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Asm { program, out } => assemble(program, out.as_deref()),
        Command::Disasm { program: path, out } => {
            let program = read(path)?;
            let mut text = program.to_string();
            match verify::verify(&program) {
                // Names that are none could read as something else.
                Err(error) if !program.is_legible() => return Err(error.into()),
                Err(error) => {
                    let error = error.to_string().replace('\n', " ");
                    text.insert_str(0, &format!("; It is no program that can run: {error}\n"));
                    say(format!("warning: {error}"));
                }
                Ok(_) => {}
            }
            files::check_places(&[("--out", out.as_ref(), &["pasm"])], Some(("the program", path)))?;
            match out {
                Some(out) => files::write(out, text.as_bytes()),
                None => print(&text),
            }
        }
        Command::Verify { program, untrusted } => {
            let source = read_source(program)?;
            source.verified(untrusted.limits())?;
            let read = &source.program;
            print(&format!(
                "{}: ok, {}, {}, {}\n",
                read.name,
                count(read.len(), "instruction"),
                count(read.buffers().count(), "buffer"),
                count(read.parameters.len(), "parameter")
            ))
        }
        Command::Explain { programs } => explain(programs),
        Command::Spec { protocol: false } => print(&specification::markdown()),
        Command::Spec { protocol: true } => print(&markdown()),
        Command::List { part } => list(part.as_deref().unwrap_or_default()),
        Command::Run(args) => run::run(args),
        Command::Capture(args) => capture::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Serve(args) => serve::run(args),
        Command::ServeChild(args) => serve::child(args),
    }
}

// `1 buffer`, `2 buffers`
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn print(text: &str) -> Result<(), Failure> {
    Ok(stdout()?.write_all(text.as_bytes())?)
}

// The programs, and what they are fused to; the kernel of one.
fn explain(programs: &[String]) -> Result<(), Failure> {
    let kernel = |program: &Program| -> Result<String, Failure> {
        let kernel = lower::lower(&verify::verify(program)?, lower::Options::default())?;
        Ok(kernel.kernel().to_string())
    };
    if let [one] = programs {
        return print(&kernel(&renamed(one)?.program)?);
    }
    let programs: Vec<Program> = programs
        .iter()
        .map(|name| Ok::<_, Failure>(renamed(name)?.program))
        .collect::<Result<_, _>>()?;
    let fused = fused(&programs)?;
    let before: Vec<String> = programs.iter().map(Program::to_string).collect();
    print(&format!(
        "; {} programs, one after the other\n\n{}\n; fused, for buffers that are equally long\n\n{fused}\n; as a kernel\n\n{}",
        programs.len(),
        before.join("\n"),
        kernel(&fused)?
    ))
}

// One program for several, for buffers that are equally long, and short.
fn fused(programs: &[Program]) -> Result<Program, Failure> {
    let none = Arguments::new();
    let parts: Vec<(&Program, &Arguments)> = programs.iter().map(|program| (program, &none)).collect();
    Ok(fuse(&parts, &|_| Some(1))?.0)
}

// The path in `PROGRAM` or `PROGRAM:NAME=NEW,…`, and the names; a file may have that name as it stands.
fn path_and_names(text: &str) -> (&Path, Option<&str>) {
    match text.rsplit_once(':') {
        Some((path, names)) if names.contains('=') && !Path::new(text).exists() => {
            (Path::new(path), Some(names))
        }
        _ => (Path::new(text), None),
    }
}

fn renamed(text: &str) -> Result<Source, Failure> {
    let (path, names) = path_and_names(text);
    let mut source = read_source(path)?;
    let program = &mut source.program;
    for name in names.into_iter().flat_map(|names| names.split(',')) {
        let (old, new) = values::pair(name)?;
        let Some(memory) = program.memories.iter_mut().find(|memory| memory.name == old) else {
            return Err(format!("{} has no buffer `{old}`", program.name).into());
        };
        memory.name = new;
    }
    Ok(source)
}

// The library's programs, a line for those that differ in their type alone; where some are named, with what a run of them takes.
fn list(part: &str) -> Result<(), Failure> {
    let mut text = String::new();
    for family in library::families() {
        let types: Vec<&str> = family.types.iter().map(|ty| ty.name()).collect();
        let names = match types.as_slice() {
            [] => family.stem.clone(),
            types => format!("{}_{{{}}}", family.stem, types.join(",")),
        };
        let all = types.iter().map(|ty| format!("{}_{ty}", family.stem));
        let mut all = all.chain(types.is_empty().then(|| family.stem.clone()));
        let first = all.clone().next();
        let named = all.find(|name| name.contains(part));
        let Some(shown) = named.or(first.filter(|_| names.contains(part))) else {
            continue;
        };
        text += &format!("{names}\n    {}\n", family.doc);
        if !part.is_empty() {
            text += &signature(&shown)?;
        }
    }
    match text.is_empty() {
        true => Err(format!("the library has no program with `{part}` in its name").into()),
        false => print(&text),
    }
}

// What a run of a program of the library takes.
fn signature(name: &str) -> Result<String, Failure> {
    let program = library::library(name)?;
    let kernel = lower::lower(&verify::verify(&program)?, lower::Options::default())?;
    let memory = |memory: &Memory| {
        let (name, element) = (&memory.name, memory.element);
        Some(match memory.kind {
            MemoryKind::Buffer { writable: true, .. } => format!("--buffer {name}=… ({element}, written)"),
            MemoryKind::Buffer { .. } => format!("--buffer {name}=… ({element})"),
            MemoryKind::Pool { .. } => format!("--pool {name}=SIZE"),
            MemoryKind::Shared { .. } | MemoryKind::Constants(_) => return None,
        })
    };
    let mut words: Vec<String> = program.memories.iter().filter_map(memory).collect();
    let parameters = program.parameters.iter();
    words.extend(parameters.map(|parameter| format!("--param {}=… ({})", parameter.name, parameter.ty)));
    let lanes = ["X", "X,Y", "X,Y,Z"][axes(kernel.kernel()) - 1];
    words.push(match program.block {
        Some([x, y, z]) => format!("--lanes {lanes} (in blocks of {x} x {y} x {z})"),
        None => format!("--lanes {lanes}"),
    });
    Ok(format!("    {name}: {}\n", words.join(" ")))
}

// A program in either form, or one of the library's.
fn read(path: &Path) -> Result<Program, Failure> {
    Ok(read_source(path)?.program)
}

fn read_source(path: &Path) -> Result<Source, Failure> {
    let without_text = |program| Source { program, text: None };
    let name = say::file(path);
    let bytes =
        match files::read(path, MOST_PROGRAM) {
            Ok(bytes) => bytes,
            Err(error) => {
                let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                return match (error.kind(), is_name) {
                    (ErrorKind::NotFound, true) => {
                        library::library(&name).map(without_text).map_err(|missing| {
                            match missing {
                    Error::NoProgram { name, help } => format!(
                        "there is no file `{name}`, and no program of this name in the library: {help}"
                    )
                    .into(),
                    other => other.into(),
                }
                        })
                    }
                    _ => Err(format!("{name}: {error}").into()),
                };
            }
        };
    if is_binary(path, &bytes) {
        let program = Program::decode(&bytes).map_err(|error| format!("{name}: {error}"))?;
        return Ok(without_text(program));
    }
    if path.extension().is_some_and(|extension| extension == "rs") {
        return Err(format!(
            "{name}: Rust is no program of the instruction set: `perpetua run {name}` launches its kernels, and `perpetua isa capture {name}` \
             makes a program of one"
        )
        .into());
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| format!("{name}: neither a text nor the binary form of a program"))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let assembled = Assembler::new().include_from(folder).assemble(&name, &text);
    // Whoever prints it says that it is an error.
    let program = assembled.map_err(|error| error.to_string().trim_start_matches("error: ").to_owned())?;
    Ok(Source {
        program,
        text: Some((name, text)),
    })
}

// Whether a file is a program's binary form, of whichever version, perhaps cut off.
fn is_binary(path: &Path, bytes: &[u8]) -> bool {
    const MAGIC: &[u8] = b"PISA";
    let is_named = files::ends_in(path, "pisa");
    match bytes.strip_prefix(MAGIC) {
        Some(rest) => is_named || rest.get(1) == Some(&0) || std::str::from_utf8(bytes).is_err(),
        None => is_named && !bytes.is_empty() && MAGIC.starts_with(bytes),
    }
}

fn assemble(path: &Path, out: Option<&Path>) -> Result<(), Failure> {
    if files::read(path, MOST_PROGRAM).is_ok_and(|bytes| is_binary(path, &bytes)) {
        return Err(format!("{} is a program's binary form already", say::file(path)).into());
    }
    let source = read_source(path)?;
    let program = &source.program;
    verify::verify(program).map_err(|error| source.failed(error))?;
    let out = out.map_or_else(|| path.with_extension("pisa"), Path::to_path_buf);
    files::check_places(&[("--out", Some(&out), &["pisa"])], Some(("the text", path)))?;
    write(program, &out)
}

// A program's binary form as a file.
fn write(program: &Program, out: &Path) -> Result<(), Failure> {
    let bytes = program.encode();
    files::write_silently(out, &bytes)?;
    say(format!(
        "{}: {}, {} bytes",
        say::file(out),
        counted(program.len() as u64, "instruction", "instructions"),
        bytes.len()
    ));
    Ok(())
}
