//! `perpetua run`: a kernel of a file, launched with nothing compiled by rustc. [`plan`] makes arguments of the command line, [`launch`]
//! runs them on a device, [`check`] on all there are; [`picture`] draws a buffer, [`watch`] begins anew.

mod check;
mod launch;
pub(crate) mod picture;
mod plan;
mod watch;

use std::io::Write;
use std::path::PathBuf;

use perpetua::device::{Error, Way};
use perpetua_ir::front::rust::FileKernel;
use perpetua_ir::ir::SharedVar;

use super::files;
use super::patience::Patience;
use super::say::say;
use super::shape::Shape;
use super::source::{self, File, Wanted};
use super::stdout::stdout;
use super::values::{self, pair};
use super::whole::from_nought;
use super::{Backend, Failure, open};
use plan::Plan;
#[cfg(feature = "isa")]
pub(crate) use plan::axes;

#[derive(clap::Args)]
#[command(
    mut_arg("lanes", |lanes| lanes.help(
        "How many lanes to run, at least, as X,Y,Z: as many blocks as that needs [default: one for each element of the longest buffer; \
        where the kernel has rows and columns, those of --size, or of a buffer that has some]"
    )),
    after_help = "A content is a .npy file, or zeros:N, ones:N, range:N, random:N; N may be rows and columns, in this order, as in \
        zeros:480x640, whose --size is 640x480. Structs of one type of numbers have a row each, of their numbers in order; \
        others are records, as NumPy's structured arrays are. The width, height and depth of a stencil's grid are those of --size, or of a buffer that \
        has rows and columns, unless --arg says them.\n\n\
        Examples:\n  \
        perpetua run saxpy.rs --arg a=2.0 --buffer x=range:10 --buffer y=ones:10\n  \
        perpetua run saxpy.rs saxpy --arg a=2.0 --buffer x=x.npy --buffer y=y.npy --out y=y.npy\n  \
        perpetua run julia.rs --buffer y=zeros:512x512 --picture y --watch\n  \
        perpetua run sum.rs 'sum::<f32, 256>' --buffer x=random:1024 --buffer y=zeros:4 --check"
)]
pub(super) struct Args {
    /// A Rust file with functions marked #[kernel]
    file: PathBuf,
    /// The kernel, a generic one with its arguments: 'sum::<f32, 256>' [default: the file's only one]
    kernel: Option<String>,
    /// The value of a parameter; one of several numbers has commas between them
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    values: Vec<(String, String)>,
    /// A buffer's content
    #[arg(long = "buffer", value_name = "NAME=CONTENT", value_parser = pair)]
    buffers: Vec<(String, String)>,
    /// Write a buffer to a .npy file; without this and --picture, all that are `&mut` are printed
    #[arg(long = "out", value_name = "NAME=FILE", value_parser = pair)]
    outputs: Vec<(String, String)>,
    /// Draw a buffer, to NAME.png where no file is named. Bytes are grey as they are; of other numbers the least is dark and the greatest bright,
    /// in two colours where some are below zero; three or four for each pixel are red, green, blue (0 to 1, or bytes)
    #[arg(long, value_name = "NAME[=FILE]")]
    picture: Option<String>,
    /// The picture's columns and rows, and how many lanes run where nobody says [default: the buffer's]
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = picture::size)]
    size: Option<[usize; 2]>,
    #[command(flatten)]
    shape: Shape,
    /// Bytes of dynamic shared memory for each block: what `shared_slice` has
    #[arg(long, value_name = "BYTES", default_value_t = 0, allow_negative_numbers = true, value_parser = from_nought::<u32>)]
    shared: u32,
    /// Where to run it
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
    /// Index of the device within the backend (see `perpetua devices`)
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = from_nought::<usize>)]
    device: usize,
    #[command(flatten)]
    patience: Patience,
    /// Run again whenever the file changes
    #[arg(long)]
    watch: bool,
    /// This is one run of a program that watches, and ends when its input does
    #[arg(long, hide = true, conflicts_with = "watch")]
    watched: bool,
    /// Run on all backends that are there and in the interpreter, which looks for races; compare what they computed
    #[arg(long, conflicts_with_all = ["watch", "backend", "device", "outputs", "picture"])]
    check: bool,
    /// With --check: how many steps between neighbouring floats results may be apart [default: 4]
    #[arg(long, value_name = "STEPS", allow_negative_numbers = true, value_parser = from_nought::<u64>)]
    ulp: Option<u64>,
}

impl Args {
    /// What `--picture` names, and where it goes.
    fn picture(&self) -> Option<(&str, PathBuf)> {
        let text = self.picture.as_deref()?;
        Some(match text.split_once('=') {
            Some((name, file)) => (name, file.into()),
            None => (text, format!("{text}.png").into()),
        })
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if args.ulp.is_some() && !args.check {
        return Err("--ulp says something to --check only: leave it out".into());
    }
    if args.watch {
        return watch::run(&args.file);
    }
    if args.watched {
        watch::end_with_parent();
    }
    match once(args) {
        Err(error) if args.watched && super::is_closed_pipe(&*error) => std::process::exit(watch::UNHEARD),
        done => done,
    }
}

fn once(args: &Args) -> Result<(), Failure> {
    let text = source::read(&args.file)?;
    let file = File::new(&args.file, &text);
    let wanted = args.kernel.as_deref().map(Wanted::parse).transpose()?;
    let kernel = file.kernel(wanted.as_ref())?;
    let job = Job {
        args,
        file,
        kernel: &kernel,
        wanted: wanted.unwrap_or_default(),
    };
    let picture = args.picture();
    let arrays: Vec<PathBuf> = args.outputs.iter().map(|(_, file)| file.into()).collect();
    let mut places: Vec<files::Output<'_>> = arrays
        .iter()
        .map(|file| ("--out", Some(file), &["npy"][..]))
        .collect();
    places.push(("--picture", picture.as_ref().map(|(_, file)| file), &["png"]));
    files::check_places(&places, Some(("the kernel", &args.file)))?;
    // What is wrong with the command line is said before a device is opened.
    let plan = job.plan(64)?;
    if args.check {
        return check::run(&job, &plan);
    }
    if let Some((name, _)) = &picture
        && let Some(buffer) = plan.buffers().find(|buffer| buffer.name == *name)
    {
        picture::judge(&picture::Numbers::of(buffer)?, args.size)
            .map_err(|error| format!("--picture {name}: {error}"))?;
    }
    let device = open(args.backend, args.device)?;
    let plan = match device.info().pointer_width() {
        64 => plan,
        width => job.plan(width)?,
    };
    if let Some(note) = plan.small_blocks(&args.shape) {
        say(note);
    }
    let begins = |way| {
        let by = match way {
            Way::Driver => String::new(),
            way => format!(", by {way}"),
        };
        let (backend, name) = (device.backend(), &device.info().name);
        say(format!("{} on {backend} ({name}){by}", plan.text()));
    };
    let results = launch::launch(&device, &plan, false, args.patience, begins)
        .map_err(|error| job.failed(error, &plan, ""))?;
    deliver(args, &plan, &results, picture)
}

/// What the command line asks for.
struct Job<'a> {
    args: &'a Args,
    file: File<'a>,
    kernel: &'a FileKernel,
    wanted: Wanted<'a>,
}

impl Job<'_> {
    /// Kernel and arguments for devices whose `usize` has so many bits.
    fn plan(&self, pointer_width: u32) -> Result<Plan, Failure> {
        let how = self.wanted.instantiation(self.kernel, pointer_width)?;
        Plan::new(
            self.args,
            self.file.lowered(self.kernel, &how)?,
            self.kernel.is_stencil(),
        )
    }

    /// Shows a fault where it happened. `place`: what it ran on, where that is not said yet.
    fn failed(&self, error: Error, plan: &Plan, place: &str) -> Failure {
        match error {
            Error::Fault(fault) => {
                self.file.fault(&fault);
                let is_dynamic = |var: &SharedVar| var.dynamic && var.name == fault.site.subject;
                let remedy = match plan.kernel.kernel().shared.iter().any(is_dynamic) {
                    true => format!(
                        ": `{}` has the dynamic shared memory of the launch, {} bytes; --shared BYTES gives it more",
                        fault.site.subject, self.args.shared
                    ),
                    false => String::new(),
                };
                format!("`{}` ended with a fault{place}{remedy}", self.kernel.name).into()
            }
            Error::Race(race) => {
                self.file.race(&race);
                let name = &self.kernel.name;
                format!("`{name}` has a race: put `sync_threads()` between both where one block does both, or make both atomic").into()
            }
            error => error.into(),
        }
    }
}

/// Writes, draws or prints what came of it.
fn deliver(
    args: &Args,
    plan: &Plan,
    results: &[Vec<u8>],
    picture: Option<(&str, PathBuf)>,
) -> Result<(), Failure> {
    let mut all = plan.buffers().zip(results);
    for (name, file) in &args.outputs {
        if let Some((buffer, bytes)) = all.clone().find(|(buffer, _)| buffer.name == *name) {
            let array = match buffer.numbers.scalar() {
                Some(scalar) => values::npy(scalar, &buffer.shape, bytes),
                None => values::npy_records(&buffer.element, &buffer.shape, bytes),
            };
            let array = array.map_err(|error| format!("--out {name}: {error}"))?;
            files::write(file.as_ref(), &array)?;
        }
    }
    if let Some((name, file)) = &picture
        && let Some((buffer, bytes)) = all.clone().find(|(buffer, _)| buffer.name == *name)
    {
        let png = picture::draw(&picture::Numbers::of(buffer)?, bytes, args.size)
            .map_err(|error| format!("--picture {name}: {error}"))?;
        files::write(file, &png)?;
    }
    if args.outputs.is_empty() && picture.is_none() {
        return all.try_for_each(|(buffer, bytes)| {
            if !buffer.writable {
                return Ok(());
            }
            let before = format!("{} = ", buffer.name);
            let text = match buffer.numbers.scalar() {
                Some(scalar) => values::print(&before, scalar, &buffer.shape, bytes),
                None => values::print_records(&before, &buffer.element, &buffer.shape, bytes),
            };
            Ok(writeln!(stdout()?, "{text}")?)
        });
    }
    Ok(())
}
