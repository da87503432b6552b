//! Arguments and shape of a launch, from the command line and the kernel's signature. Must not know devices.

use perpetua::device::LaunchConfig;
use perpetua_ir::ir::{Access, Axis, Builtin, Inst, Kernel, Op, ParamKind, Type};
use perpetua_ir::verify::Verified;

use super::Args;
use crate::Failure;
use crate::shape::Shape;
use crate::values::{self, Content, Numbers};

/// Lanes of a block along x below which the processor's vectors stay mostly empty.
const FEW: u32 = 16;

/// A kernel with all that its launch needs.
pub(super) struct Plan {
    pub(super) kernel: Verified,
    pub(super) arguments: Vec<Argument>,
    pub(super) config: LaunchConfig,
}

pub(super) enum Argument {
    Value(Type, Vec<u8>),
    Buffer(Buffer),
}

pub(super) struct Buffer {
    pub(super) name: String,
    pub(super) element: Type,
    pub(super) numbers: Numbers,
    /// Whether the kernel may change it.
    pub(super) writable: bool,
    pub(super) shape: Vec<usize>,
    /// Its content, as the device has it.
    pub(super) bytes: Vec<u8>,
}

impl Plan {
    /// `stencil`: whether the extents of a grid stand behind all that the source names.
    pub(super) fn new<'a>(args: &'a Args, kernel: Verified, stencil: bool) -> Result<Plan, Failure> {
        let signature = kernel.kernel();
        check_names(args, signature)?;
        let (mut arguments, mut missing): (Vec<Argument>, _) = (Vec::new(), Vec::new());
        let axes = axes(signature);
        // The extents stand last.
        let extents = if stencil { extents(signature) } else { 0 };
        let own = signature.params.len().saturating_sub(extents);
        for (at, param) in signature.params.iter().enumerate() {
            let name = &param.name;
            let given = |all: &'a [(String, String)]| Some(&*all.iter().find(|(given, _)| given == name)?.1);
            match &param.kind {
                ParamKind::Value(ty) => match given(&args.values) {
                    Some(text) => {
                        let bytes =
                            values::value(ty, text).map_err(|error| format!("--arg {name}: {error}"))?;
                        arguments.push(Argument::Value(ty.clone(), bytes));
                    }
                    None => match at.checked_sub(own) {
                        Some(axis) => match rows_and_columns(args, buffers(&arguments), axes.max(2)) {
                            Some(lanes) => {
                                let bytes = values::value(ty, &lanes[axis].to_string());
                                arguments.push(Argument::Value(ty.clone(), bytes?));
                            }
                            None => missing.push(format!(
                                "the grid's {name} is not known: give a buffer rows and columns, as zeros:480x640, or --arg {name}=…"
                            )),
                        },
                        None => missing.push(format!("the parameter `{name}: {ty}` needs --arg {name}=…")),
                    },
                },
                ParamKind::Buffer { element, access } => match given(&args.buffers) {
                    Some(content) => {
                        arguments.push(Argument::Buffer(Buffer::new(name, content, element, *access)?));
                    }
                    None => missing.push(format!("the buffer `{name}` ({element}) needs --buffer {name}=…")),
                },
            }
        }
        values::none_missing(&missing)?;
        let plan = Plan {
            config: LaunchConfig::default(),
            kernel,
            arguments,
        };
        let kernel = plan.kernel.kernel();
        let meets = !kernel.shared.is_empty() || plan.kernel.facts().synchronises();
        let (axes, lanes) = plan.lanes(args, axes);
        let config = args.shape.config(kernel.block_size, axes, lanes, meets)?;
        Ok(Plan {
            config: config.with_shared_bytes(args.shared),
            ..plan
        })
    }

    pub(super) fn buffers(&self) -> impl Iterator<Item = &Buffer> + Clone {
        buffers(&self.arguments)
    }

    /// How many axes lanes differ along, and how many there are where nobody says: one for each element of the longest buffer; where the kernel
    /// tells rows from columns, those of the picture, or of a buffer that has some.
    fn lanes(&self, args: &Args, axes: usize) -> (usize, Option<[u64; 3]>) {
        let length = |buffer: &Buffer| (buffer.bytes.len() / buffer.element.size().max(1) as usize) as u64;
        let longest = self.buffers().map(length).max();
        if axes >= 2 {
            let lanes = rows_and_columns(args, self.buffers(), axes);
            // Which lane of its block one is, or its subgroup, is a number: blocks in a row have all of them.
            if lanes.is_some() || block_axes(self.kernel.kernel()) >= 2 {
                return (axes, lanes);
            }
        }
        (1, longest.map(|longest| [longest, 1, 1]))
    }

    /// That blocks are small only because no larger ones make so many lanes exactly, where nobody chose them.
    pub(super) fn small_blocks(&self, shape: &Shape) -> Option<String> {
        let (grid, block) = (self.config.grid, self.config.block);
        let chosen = shape.chooses_blocks() || self.kernel.kernel().block_size.is_some();
        (!chosen && block.x < FEW && grid.x > FEW).then(|| {
            format!(
                "(no block of {FEW} to 256 lanes makes {} lanes exactly; if the kernel tests its index, --block 256 is many times faster)",
                u64::from(grid.x) * u64::from(block.x)
            )
        })
    }

    /// Name and shape, for people.
    pub(super) fn text(&self) -> String {
        let name = &self.kernel.kernel().name;
        format!("{name}: grid {}, block {}", self.config.grid, self.config.block)
    }
}

impl Buffer {
    fn new(name: &str, content: &str, element: &Type, access: Access) -> Result<Buffer, Failure> {
        let failed = |error: String| format!("--buffer {name}: {error}");
        let numbers = Numbers::of(element);
        let Some(scalar) = numbers.scalar() else {
            let Content { bytes, shape } = numbers.content(element, content).map_err(failed)?;
            return Ok(Buffer {
                name: name.to_owned(),
                element: element.clone(),
                writable: access == Access::ReadWrite,
                bytes: numbers.pack(bytes).map_err(failed)?,
                numbers,
                shape,
            });
        };
        let (Content { bytes, mut shape }, each) =
            (Content::read(scalar, content).map_err(failed)?, numbers.each());
        let count = bytes.len() / scalar.size() as usize;
        let bytes = match (each, Content::is_made(content)) {
            (1, _) => bytes,
            // What is made by a number of elements has that many.
            (_, true) => {
                shape.push(each);
                Content::read(scalar, &format!("{content}x{each}"))
                    .map_err(failed)?
                    .bytes
            }
            _ if count.is_multiple_of(each) => bytes,
            _ => {
                let error =
                    format!("{count} numbers make no whole elements `{element}`, which have {each} each");
                return Err(failed(error).into());
            }
        };
        Ok(Buffer {
            name: name.to_owned(),
            element: element.clone(),
            writable: access == Access::ReadWrite,
            bytes: numbers.pack(bytes).map_err(failed)?,
            numbers,
            shape,
        })
    }
}

/// Every name of the command line is a parameter's, of its kind.
fn check_names(args: &Args, kernel: &Kernel) -> Result<(), Failure> {
    let values = args.values.iter().map(|(name, _)| ("--arg", &**name, false));
    let buffers = args.buffers.iter().map(|(name, _)| ("--buffer", &**name, true));
    let outputs = args.outputs.iter().map(|(name, _)| ("--out", &**name, true));
    let picture = args.picture();
    let picture = picture.iter().map(|(name, _)| ("--picture", *name, true));
    let mut seen = std::collections::HashSet::new();
    for (option, name, wants_buffer) in values.chain(buffers).chain(outputs).chain(picture) {
        if !seen.insert((option, name)) {
            return Err(format!("{option} {name}: it is given twice; leave one out").into());
        }
        let found = kernel.params.iter().find(|param| param.name == name);
        let is_buffer = |kind: &ParamKind| matches!(kind, ParamKind::Buffer { .. });
        match found {
            Some(param) if is_buffer(&param.kind) == wants_buffer => {}
            Some(_) if wants_buffer => {
                return Err(
                    format!("{option} {name}: `{name}` is no buffer: give it with --arg {name}=…").into(),
                );
            }
            Some(_) => {
                return Err(
                    format!("{option} {name}: `{name}` is a buffer: give it with --buffer {name}=…").into(),
                );
            }
            None => {
                let known = kernel
                    .params
                    .iter()
                    .filter(|param| is_buffer(&param.kind) == wants_buffer);
                let known: Vec<&str> = known.map(|param| &*param.name).collect();
                let what = if wants_buffer { "buffer" } else { "parameter" };
                return Err(match known.is_empty() {
                    true => format!("{option}: kernel `{}` has no {what}s", kernel.name),
                    false => format!(
                        "{option}: kernel `{}` has no {what} `{name}`; it has: {}",
                        kernel.name,
                        known.join(", ")
                    ),
                }
                .into());
            }
        }
    }
    Ok(())
}

fn buffers(arguments: &[Argument]) -> impl Iterator<Item = &Buffer> + Clone {
    arguments.iter().filter_map(|argument| match argument {
        Argument::Buffer(buffer) => Some(buffer),
        Argument::Value(..) => None,
    })
}

/// How many extents a stencil's grid has: a parameter of the user's has the name of none of them, or they have longer ones.
fn extents(stencil: &Kernel) -> usize {
    let last = stencil.params.last();
    match last.is_some_and(|last| last.name.ends_with("depth")) {
        true => 3,
        false => 2,
    }
}

/// Extents of so many axes, the innermost first: those of the picture, or of the first buffer that has some, one that is written before others.
fn rows_and_columns<'a>(
    args: &Args,
    buffers: impl Iterator<Item = &'a Buffer>,
    axes: usize,
) -> Option<[u64; 3]> {
    if let (2, Some([width, height])) = (axes, args.size) {
        return Some([width as u64, height as u64, 1]);
    }
    let mut all: Vec<&Buffer> = buffers.filter(|buffer| buffer.shape.len() >= axes).collect();
    all.sort_by_key(|buffer| !buffer.writable);
    let mut lanes = [1; 3];
    for (lanes, extent) in lanes.iter_mut().zip(all.first()?.shape[..axes].iter().rev()) {
        *lanes = *extent as u64;
    }
    Some(lanes)
}

/// How many axes a kernel tells apart.
pub(crate) fn axes(kernel: &Kernel) -> usize {
    most_axes(kernel, |builtin| match builtin {
        Builtin::ThreadIdx(axis) | Builtin::BlockIdx(axis) => Some(axis),
        _ => None,
    })
}

/// How many axes of blocks a kernel tells apart.
fn block_axes(kernel: &Kernel) -> usize {
    most_axes(kernel, |builtin| match builtin {
        Builtin::BlockIdx(axis) => Some(axis),
        _ => None,
    })
}

fn most_axes(kernel: &Kernel, axis_of: impl Fn(Builtin) -> Option<Axis>) -> usize {
    let mut axes = 1;
    for body in kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]) {
        body.block.walk(&mut |stmt| {
            if let Inst::Let(_, Op::Builtin(builtin)) = &stmt.inst
                && let Some(axis) = axis_of(*builtin)
            {
                axes = axes.max(match axis {
                    Axis::X => 1,
                    Axis::Y => 2,
                    Axis::Z => 3,
                });
            }
        });
    }
    axes
}
