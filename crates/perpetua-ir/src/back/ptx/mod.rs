//! PTX for the CUDA driver: users need nothing else. A pure function of a verified kernel; knows nothing of
//! devices. Device functions are inlined, so no calling convention is involved; aggregates are split into the
//! scalars that make them up.
//!
//! In the order of the work: `signature` writes the module's head, parameters and tables; `frame` holds values
//! and variables of the code being written; `statement` writes control flow; `integer`, `float` and `convert`
//! operators; `memory` places, loads and stores, `copy` large values from one place to another; `atomic` what orders or changes memory atomically; `device` what is asked of
//! the device, `subgroup` exchanges among lanes, `matrix` products of matrices that they hold, `stages` and `products` those that teams of lanes multiply in stages; `report` faults and prints. `emit` is the text below them all.

mod atomic;
mod convert;
mod copy;
mod device;
mod emit;
mod float;
mod frame;
mod integer;
mod matrix;
mod memory;
mod products;
mod report;
mod runs;
mod signature;
mod stages;
mod statement;
mod subgroup;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Capability, RenderError, Sm, SmReach, Source};
use crate::ir::{Builtin, Kernel, LocalId, Scalar, Value};
use crate::pass::checks::make_explicit;
use crate::pass::{Sums, expand_library, unroll_indexed, widen};
use crate::verify::{Facts, Verified, require};
use emit::{Emitter, Leaf};
use frame::{Frame, Span};
use memory::{AddressKey, Location};
use products::InFlight;
use stages::Turn;
use subgroup::Mask;

/// The first target with atomic accesses of 16 bytes.
const RESIDENT: u32 = 75;

/// The first target that multiplies matrices of all elements.
const MATRICES: u32 = 80;

/// The target that multiplies in stages.
const STAGES: u32 = 90;

/// Renders a kernel for a generation of GPUs, which a number stands for as well: 75 is `sm_75`. What else the code runs on,
/// [`SmReach`] says.
///
/// The text says the lowest PTX version that its target and instructions need. Parameters are those of
/// [`CudaAbi::Checked`](super::CudaAbi::Checked); the entry point is called as the kernel, but for PTX's one reserved
/// word.
///
/// # Errors
/// [`RenderError::Unsupported`] for a generation that has no such target (`sm_75a`), [`RenderError::Limit`] for a compute capability below 7.0, more than 48 KiB of static shared memory,
/// more than 4,352 bytes of parameters or a block of more than 1,024 lanes.
pub fn render(verified: &Verified, sm: impl Into<Sm>) -> Result<Source, RenderError> {
    render_entries(verified, sm.into(), false).map(|(source, _)| source)
}

/// The same with a second entry point for large grids behind the first, if the kernel is one that [`widen`] makes wide. It has the
/// same fault sites, and one parameter more: behind the kernel's own, a `u32`, how many blocks the grid has along x.
///
/// # Errors
/// As [`render`].
pub fn render_with_wide(
    verified: &Verified,
    sm: impl Into<Sm>,
) -> Result<(Source, Option<WideEntry>), RenderError> {
    render_entries(verified, sm.into(), true)
}

/// A kernel's second entry point: a block of it does what several blocks do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WideEntry {
    /// Its name.
    pub name: String,
    /// How many blocks, neighbours along x, a block stands for.
    pub blocks: u32,
}

fn render_entries(
    verified: &Verified,
    sm: Sm,
    with_wide: bool,
) -> Result<(Source, Option<WideEntry>), RenderError> {
    let capabilities = Capability::ALL.into_iter().filter(|c| match c {
        Capability::Residency => sm.number >= RESIDENT,
        Capability::Matrices => sm.number >= MATRICES,
        // No other generation has these instructions.
        Capability::Stages => (sm.number, sm.reach) == (STAGES, SmReach::Own),
        _ => true,
    });
    require(verified, &capabilities.collect(), &format!("PTX {sm}"))?;
    let unrolled = unroll_indexed(verified);
    let explicit = make_explicit(unrolled.as_ref().unwrap_or(verified));
    let (at_once, facts) = (explicit.dies_at_once(), Arc::clone(explicit.facts()));
    let (kernel, faults, prints) = explicit.into_parts();
    let kernel = expand_library(kernel, Sums::AsWritten);
    signature::check_limits(&kernel, sm)?;
    let (mut text, entry) = Renderer::new(&kernel, &facts, sm, at_once).module();
    let wide = if with_wide { widen(&kernel) } else { None };
    let wide = wide.map(|mut wide| {
        wide.kernel.name = format!("{}_wide", kernel.name);
        let facts = Facts::of(&wide.kernel);
        // A lane that faults goes on with the next block.
        let mut renderer = Renderer::new(&wide.kernel, &facts, sm, false);
        renderer.block_of_faults = Some(wide.block);
        let name = renderer.function(&mut text);
        WideEntry {
            name,
            blocks: wide.blocks,
        }
    });
    let source = Source {
        text,
        entry,
        faults,
        prints,
    };
    Ok((source, wide))
}

/// Renders one kernel.
struct Renderer<'k> {
    kernel: &'k Kernel,
    facts: &'k Facts,
    /// Name of the entry point.
    entry: String,
    sm: Sm,
    /// Whether a lane that faults ends there, so that nothing after a fault statement runs.
    at_once: bool,
    out: Emitter,
    frame: Frame<'k>,
    /// Leaves of all values and variables, in runs.
    leaves: Vec<Leaf>,
    /// Numbers of the first fault and print site of each function, then of the kernel's body.
    first_sites: Vec<(u32, u32)>,
    /// 64-bit registers that extend a word: the word and whether its sign was extended.
    widened_words: HashMap<Leaf, (Leaf, bool)>,
    /// Words whose bits are those of a half register, in the lower half or, where that is said, in the upper one.
    halves: HashMap<Leaf, (u32, bool)>,
    /// What 64-bit sums with a constant are made of.
    sums: HashMap<Leaf, (Leaf, i64)>,
    builtins: HashMap<Builtin, Leaf>,
    /// Leaves of each value parameter in use.
    parameters: HashMap<u32, Span>,
    /// Address and length in elements of each buffer parameter in use.
    pointers: HashMap<u32, Leaf>,
    lengths: HashMap<u32, Leaf>,
    /// Addresses of module and function variables in use, by name.
    symbols: HashMap<String, Leaf>,
    /// Element addresses that are valid here.
    addresses: Vec<(AddressKey, Leaf)>,
    /// Values of four words that are the shared memory at an address, as nothing has changed it since.
    in_shared: Vec<(Value, Location)>,
    /// Declarations of the function's variables in memory.
    variables: Vec<String>,
    /// Set once the lane has faulted; none in kernels where that ends it.
    dead: Option<Leaf>,
    /// The number plus one of the site where the lane has faulted, in kernels that catch faults.
    caught: Option<Leaf>,
    /// Whether the kernel waits for something that comes while it runs.
    stays: bool,
    /// The variable that holds the block's index along x, where it is not the launch's.
    block_of_faults: Option<LocalId>,
    /// Registers of the common report of faults that end the lane: site, operands.
    report: Option<[Leaf; 3]>,
    /// The lanes that run together here, where subgroup operations need it.
    mask: Option<Mask>,
    /// The value that tells the team that fills stages from the others.
    parts_teams: Option<Value>,
    /// The turn of the team whose code is being written.
    turn: Option<Turn>,
    /// Products that are under way, in the order in which they began.
    in_flight: Vec<InFlight>,
    /// Words that were last stored to a variable while products were under way.
    meanwhile: Vec<Leaf>,
    /// Weights that have been rounded before a product began that is written in front of theirs.
    rounded_ahead: Option<(Value, Vec<Leaf>)>,
    /// What is the same in all lanes that run together here.
    uniform: HashSet<Leaf>,
}

impl Renderer<'_> {
    /// What the launch supplies.
    fn builtin(&mut self, builtin: Builtin) -> Leaf {
        let special = match (builtin, self.kernel.block_size) {
            (Builtin::BlockDim(axis), Some(size)) => return Leaf::Imm(size[axis as usize].into()),
            (Builtin::SubgroupSize, _) => return Leaf::Imm(32),
            (Builtin::ThreadIdx(axis), _) => format!("%tid.{}", axis.name()),
            (Builtin::BlockIdx(axis), _) => format!("%ctaid.{}", axis.name()),
            (Builtin::BlockDim(axis), _) => format!("%ntid.{}", axis.name()),
            (Builtin::GridDim(axis), _) => format!("%nctaid.{}", axis.name()),
            (Builtin::SubgroupLane, _) => "%laneid".into(),
        };
        if let Some(leaf) = self.builtins.get(&builtin) {
            return *leaf;
        }
        let d = self.out.word();
        emit::emit_once!(self, "mov.u32 {d}, {special}");
        self.builtins.insert(builtin, d);
        d
    }

    /// The address of a variable, 32 bits wide in shared memory, else 64.
    fn symbol(&mut self, name: &str, shared: bool) -> Leaf {
        if let Some(leaf) = self.symbols.get(name) {
            return *leaf;
        }
        let d = if shared {
            let d = self.out.word();
            emit::emit_once!(self, "mov.u32 {d}, {name}");
            d
        } else {
            let d = self.out.wide();
            emit::emit_once!(self, "mov.u64 {d}, {name}");
            d
        };
        self.symbols.insert(name.into(), d);
        d
    }

    /// A scalar in 64 bits, extended by its type.
    fn in_64_bits(&mut self, s: Scalar, a: Leaf) -> Leaf {
        let to = if s.is_signed_int() {
            Scalar::I64
        } else {
            Scalar::U64
        };
        self.cast(s, to, a)
    }
}
