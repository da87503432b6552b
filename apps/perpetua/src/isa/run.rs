//! `perpetua isa run`: a program with buffers from the command line, on a device of this machine or on a server.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use perpetua::device::{BackendKind, Device};
use perpetua::isa::serve::{self, Address, Client, Job};
use perpetua::isa::{Arguments, Executor, LaunchConfig, Memory, MemoryKind, Parameter, Program, fuse_for};
use perpetua_ir::ir::{Scalar, constant};

use super::Source;
use crate::patience::Patience;
use crate::run::picture;
use crate::say::say;
use crate::shape::Shape;
use crate::values::{self, Content};
use crate::{Backend, Failure, files};

#[derive(clap::Args)]
pub(super) struct Args {
    /// The program; several that are element-wise run one after the other as one, in which buffers of one name are one:
    /// PROGRAM:NAME=NEW,… renames buffers, and `perpetua isa explain` shows what becomes of them
    #[arg(required = true, value_name = "PROGRAM")]
    programs: Vec<String>,
    /// A buffer's content: a .npy file, or zeros:N, ones:N, range:N, random:N; N may be rows and columns, in this order, as in zeros:480x640
    #[arg(long = "buffer", value_name = "NAME=CONTENT", value_parser = values::pair)]
    buffers: Vec<(String, String)>,
    /// A pool's size in bytes, or as 64K, 16M, 2G; all of it is zero
    #[arg(long = "pool", value_name = "NAME=SIZE", value_parser = values::pair)]
    pools: Vec<(String, String)>,
    /// A parameter's value
    #[arg(long = "param", visible_alias = "arg", value_name = "NAME=VALUE", value_parser = values::pair)]
    parameters: Vec<(String, String)>,
    /// Write a buffer to a .npy file instead of printing it, or as a picture to a .png file; others that the program writes are printed
    #[arg(long = "out", value_name = "NAME=FILE", value_parser = values::pair)]
    outputs: Vec<(String, String)>,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    untrusted: super::Untrusted,
    /// Where to run it
    #[arg(long, value_enum, default_value_t = Backend::Auto, conflicts_with = "server")]
    backend: Backend,
    #[command(flatten)]
    patience: Patience,
    /// Run it on a server: the address that `perpetua isa serve` listens at
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["untrusted", "budget", "memory"])]
    server: Option<Address>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let sources = args.programs.iter().map(|text| super::renamed(text));
    let sources: Vec<Source> = sources.collect::<Result<_, _>>()?;
    let programs: Vec<Program> = sources.iter().map(|source| source.program.clone()).collect();
    let source = match sources.into_iter().next() {
        Some(one) if programs.len() == 1 => one,
        _ => Source {
            program: super::fused(&programs)?,
            text: None,
        },
    };
    let program = &source.program;
    for (option, given) in [
        ("--buffer", &args.buffers),
        ("--pool", &args.pools),
        ("--param", &args.parameters),
        ("--out", &args.outputs),
    ] {
        let mut seen = HashSet::new();
        if let Some((name, _)) = given.iter().find(|(name, _)| !seen.insert(name)) {
            return Err(format!("{option} {name}=… is there twice: which one is meant?").into());
        }
    }
    let known = |names: Vec<&str>| match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    };
    for (name, _) in args.buffers.iter().chain(&args.outputs) {
        if !program.buffers().any(|buffer| buffer.name == *name) {
            let buffers = known(program.buffers().map(|buffer| buffer.name.as_str()).collect());
            return Err(format!("{} has no buffer `{name}`: it has {buffers}", program.name).into());
        }
    }
    let mut missing = missing(program, args);
    if args.shape.axes() == 0 {
        missing.push("the launch needs --lanes X,Y,Z, or --grid X,Y,Z".to_owned());
    }
    let pools = pools(program, &args.pools)?;
    let mut arguments = Arguments::new();
    for (name, value) in &args.parameters {
        let Some(parameter) = program
            .parameters
            .iter()
            .find(|parameter| parameter.name == *name)
        else {
            let parameters = program.parameters.iter();
            let parameters = known(parameters.map(|parameter| parameter.name.as_str()).collect());
            return Err(format!("{} has no parameter `{name}`: it has {parameters}", program.name).into());
        };
        let bits = constant::parse_constant(parameter.ty, value)
            .map_err(|error| format!("--param {name}: {error}"))?;
        arguments = arguments.with_bytes(name.as_str(), parameter.ty, bits.to_le_bytes());
    }
    values::none_missing(&missing)?;
    // What is too large is not made.
    let named = |(name, text): &(String, String)| {
        let memory = program.memory(name)?;
        values::size_of_named(memory.element, text)
    };
    let sizes = args.buffers.iter().filter_map(named);
    args.untrusted
        .fits(sizes.chain(pools.iter().map(|(_, bytes)| *bytes)))?;
    // All files are read before a device is opened.
    let mut contents = Vec::new();
    for buffer in program.buffers() {
        let Some((_, content)) = args.buffers.iter().find(|(name, _)| *name == buffer.name) else {
            continue;
        };
        let read =
            Content::read(buffer.element, content).map_err(|e| format!("--buffer {}: {e}", buffer.name))?;
        contents.push((buffer.name.clone(), buffer.element, read));
    }
    let places: Vec<_> = args.outputs.iter().map(|(_, file)| PathBuf::from(file)).collect();
    let places: Vec<_> = places
        .iter()
        .map(|place| ("--out", Some(place), &["npy", "png"][..]))
        .collect();
    for text in &args.programs {
        let (path, _) = super::path_and_names(text);
        files::check_places(&places, Some(("the program", path)))?;
    }
    let config = args.shape.config(program.block, args.shape.axes(), None, false)?;
    say(format!(
        "{}: grid {}, block {}",
        program.name, config.grid, config.block
    ));
    if programs.len() > 1 {
        let len = |memory: &Memory| {
            let content = contents.iter().find(|(name, ..)| *name == memory.name);
            content.map(|(_, element, content)| (content.bytes.len() / element.size() as usize) as u64)
        };
        let none = Arguments::new();
        let parts: Vec<(&Program, &Arguments)> = programs.iter().map(|program| (program, &none)).collect();
        fuse_for(&parts, &config, &len)?;
    }
    let is_wanted = |name: &str| {
        let memory = program.memory(name).map(|memory| &memory.kind);
        let changed = matches!(memory, Some(MemoryKind::Buffer { writable: true, .. }));
        changed || args.outputs.iter().any(|(wanted, _)| wanted == name)
    };
    let wanted = contents
        .iter()
        .map(|(name, ..)| is_wanted(name))
        .collect::<Vec<bool>>();
    let results = match &args.server {
        Some(address) => {
            let contents = contents.iter().zip(&wanted);
            let contents = contents.map(|((name, _, content), is_returned)| serve::Content {
                name,
                data: serve::Data::Bytes(&content.bytes),
                is_returned: *is_returned,
            });
            let pools = pools.iter().map(|(name, bytes)| serve::Content {
                name,
                data: serve::Data::Pool(*bytes as u64),
                is_returned: false,
            });
            let contents = contents.chain(pools).collect();
            let job = Job {
                program: program.clone(),
                config,
                arguments,
                contents,
            };
            let mut client = Client::connect(address)?;
            // What it waits for in the server's queue counts as well.
            let _waiting = args.patience.begin(&program.name);
            let results = client.run(&job)?;
            results.into_iter().map(|(_, bytes)| bytes).collect()
        }
        None => here(args, &source, &config, &arguments, (&contents, &pools), &wanted)?,
    };
    let returned = contents.iter().zip(&wanted).filter(|(_, is_wanted)| **is_wanted);
    let mut printed = String::new();
    for (((name, element, content), _), bytes) in returned.zip(&results) {
        let mut places = args
            .outputs
            .iter()
            .filter(|(wanted, _)| wanted == name)
            .peekable();
        let is_printed = places.peek().is_none();
        for (_, file) in places {
            let file = Path::new(file);
            let numbers = picture::Numbers {
                scalar: *element,
                each: 1,
                shape: &content.shape,
            };
            let written = match files::ends_in(file, "png") {
                true => {
                    picture::draw(&numbers, bytes, None).map_err(|error| format!("--out {name}: {error}"))?
                }
                false => values::npy(*element, &content.shape, bytes)?,
            };
            files::write(file, &written)?;
        }
        if is_printed {
            printed += &(values::print(&format!("{name} = "), *element, &content.shape, bytes) + "\n");
        }
    }
    // Files first: whoever reads this may have enough of it.
    super::print(&printed)
}

type Contents = [(String, Scalar, Content)];

// What the buffers that are wanted hold after a run on a device of this machine.
fn here(
    args: &Args,
    source: &Source,
    config: &LaunchConfig,
    arguments: &Arguments,
    (contents, pools): (&Contents, &[(String, usize)]),
    wanted: &[bool],
) -> Result<Vec<Vec<u8>>, Failure> {
    let executor = Executor::on(Device::new(BackendKind::from(args.backend), 0)?);
    let buffers = contents.iter().map(|(_, _, content)| content.bytes.len());
    args.untrusted
        .fits(buffers.chain(pools.iter().map(|(_, bytes)| *bytes)))?;
    let executor = match args.untrusted.limits() {
        Some(limits) => executor.untrusted(limits),
        None => executor,
    };
    let mut program = source.program.clone();
    let mut handles = Vec::new();
    for (name, _, content) in contents {
        let handle = executor.allocate_buffer(content.bytes.len())?;
        executor.write_buffer(handle, 0, &content.bytes)?;
        program = program.with_buffer(name, handle)?;
        handles.push((handle, content.bytes.len()));
    }
    for (name, bytes) in pools {
        let handle = executor.allocate_pool(*bytes)?;
        program = program.with_buffer(name, handle)?;
    }
    let waiting = args.patience.begin_within(&program.name, args.untrusted.time());
    let done = executor.execute(&program, config, arguments);
    done.and_then(|()| executor.synchronize())
        .map_err(|error| source.failed(error))?;
    drop(waiting);
    let returned = handles
        .into_iter()
        .zip(wanted)
        .filter(|(_, is_wanted)| **is_wanted);
    let read = returned.map(|((handle, len), _)| Ok(executor.read_buffer::<u8>(handle, 0, len)?));
    read.collect()
}

// What a program takes that the command line does not give it.
fn missing(program: &Program, args: &Args) -> Vec<String> {
    let is_given = |given: &[(String, String)], name: &str| given.iter().any(|(known, _)| known == name);
    let memories = program.memories.iter().filter_map(|memory| {
        let name = &memory.name;
        match memory.kind {
            MemoryKind::Buffer { .. } if !is_given(&args.buffers, name) => {
                let element = memory.element;
                Some(format!("the buffer `{name}` ({element}) needs --buffer {name}=…"))
            }
            MemoryKind::Pool { .. } if !is_given(&args.pools, name) => {
                Some(format!("the pool `{name}` needs --pool {name}=SIZE"))
            }
            _ => None,
        }
    });
    let parameters = program.parameters.iter();
    let parameters = parameters.filter(|parameter| !is_given(&args.parameters, &parameter.name));
    let parameters = parameters
        .map(|Parameter { name, ty }| format!("the parameter `{name}: {ty}` needs --param {name}=…"));
    memories.chain(parameters).collect()
}

// The sizes of pools, of a command line that names only such.
fn pools(program: &Program, given: &[(String, String)]) -> Result<Vec<(String, usize)>, Failure> {
    let pools = program.memories.iter();
    let names: Vec<&str> = pools
        .filter(|memory| matches!(memory.kind, MemoryKind::Pool { .. }))
        .map(|memory| memory.name.as_str())
        .collect();
    if let Some((name, _)) = given.iter().find(|(name, _)| !names.contains(&name.as_str())) {
        return Err(match names.join(", ") {
            known if known.is_empty() => format!("{} has no pool: leave --pool {name} out", program.name),
            known => format!("{} has no pool `{name}`: it has {known}", program.name),
        }
        .into());
    }
    let size = |(name, text): &(String, String)| -> Result<(String, usize), Failure> {
        let size = super::serve::size(text).map_err(|error| format!("--pool {name}={text}: {error}"))?;
        let size =
            usize::try_from(size).map_err(|_| format!("--pool {name}={text}: no address reaches so far"))?;
        Ok((name.clone(), size))
    };
    given.iter().map(size).collect()
}
