//! Divides a graph into kernels: what is computed where it is needed, and what is stored for others to load.
//!
//! From results to sources, so that all users of an operation are placed before it. An operation is stored if somebody asked for it, if it is a
//! combination or a product that cannot stay inside its only user's kernel, or for one of the reasons of [`Stay`]; all else is computed inside
//! its users' kernels. A kernel computes one result, so what it loads is always complete before it begins: no order of kernels is a circle.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use perpetua_device::{AdapterType, Device};
use smallvec::{SmallVec, smallvec};

use crate::emit::{Group, build};
use crate::graph::{Entry, Graph};
use crate::library::{Library, Use};
use crate::node::Op;
use crate::stay::Stay;

/// Most operations that one kernel computes.
const MOST: usize = 192;
/// Up to this cost an operation is computed again in each kernel that needs it.
const CHEAP: u32 = 8;
/// Up to this cost it is computed again for each repetition.
const REPEATED: u32 = 24;
/// Up to this cost it is computed while a product brings its operands.
const BROUGHT: u32 = 4;
/// For so many elements of itself it is computed for one element of a kernel's result.
const PLACES: usize = 16;

/// How a graph is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    /// Whether operations are fused.
    pub(crate) fuses: bool,
    /// How many buffers a kernel binds.
    pub(crate) most_buffers: usize,
    pub(crate) library: Use,
    /// Whether the host copies views of what is known.
    pub(crate) copies: bool,
    /// Up to so many elements a result is computed by one launch with others.
    pub(crate) together: usize,
}

impl Ways {
    /// Those of a device. Nothing is fused if `PERPETUA_FUSION` is `off`.
    pub(crate) fn of(device: &Device) -> Ways {
        static FUSES: OnceLock<bool> = OnceLock::new();
        let fuses = || std::env::var("PERPETUA_FUSION").map_or(true, |value| value != "off");
        Ways {
            fuses: *FUSES.get_or_init(fuses),
            most_buffers: device.info().limits.max_buffers as usize,
            library: Use::Sooner,
            copies: false,
            // Larger ones take longer than their launch, and software rasterisers go through the code of all results for each.
            together: match device.info().adapter_type {
                AdapterType::Cpu => 1 << 10,
                _ => 1 << 18,
            },
        }
    }
}

/// A graph divided into kernels, in the order in which they run.
pub(crate) struct Plan {
    pub(crate) groups: Vec<Group>,
    /// By operation: why it is stored, if it is.
    pub(crate) stays: Vec<Option<Stay>>,
    /// By operation: the kernels that compute it, by their results.
    pub(crate) homes: Vec<SmallVec<[usize; 2]>>,
    /// What the kernel library computes.
    pub(crate) library: HashMap<usize, Library>,
    /// Whether the host copies views of what is known.
    pub(crate) copies: bool,
    /// How many buffers a kernel binds.
    pub(crate) most_buffers: usize,
    /// Up to so many elements a result is computed by one launch with others.
    pub(crate) together: usize,
}

impl Plan {
    /// Divides a graph.
    pub(crate) fn of(graph: &Graph, ways: Ways) -> Plan {
        let entries = &graph.0;
        let unknown = (0..entries.len()).filter(|number| !entries[*number].is_known);
        let library: HashMap<usize, Library> = unknown
            .filter_map(|number| Some((number, Library::of(graph, number, ways.library)?)))
            .collect();
        let is_function = |entry: &&Entry| !entry.is_known && matches!(entry.tensor.0.op, Op::Function(_));
        let functions = entries
            .iter()
            .filter(is_function)
            .flat_map(|entry| entry.sources.iter().copied());
        let mut division = Division {
            graph,
            costs: costs(graph),
            stays: vec![None; entries.len()],
            homes: vec![SmallVec::new(); entries.len()],
            places: Places::default(),
            wanted: vec![SmallVec::new(); entries.len()],
            kernels: entries.iter().map(|_| None).collect(),
            placed: entries.len(),
            read: library
                .values()
                .flat_map(Library::reads)
                .chain(functions)
                .collect(),
            library,
            ways,
        };
        for number in (0..entries.len()).rev() {
            if !entries[number].is_known {
                division.place(number);
            }
            division.placed = number;
        }
        let groups = division
            .kernels
            .into_iter()
            .flatten()
            .map(|kernel| kernel.group)
            .collect();
        Plan {
            groups,
            stays: division.stays,
            homes: division.homes,
            library: division.library,
            copies: ways.copies,
            most_buffers: ways.most_buffers,
            together: if ways.fuses { ways.together } else { 0 },
        }
    }
}

/// Places of elements, as paths of views from a kernel's result: where a view and what it shows are combined, each element is computed of two of
/// the source's, and again so where that is done once more.
#[derive(Default)]
struct Places {
    /// By path: the kernel.
    homes: Vec<usize>,
    /// Where a path leads through an operation.
    next: HashMap<(u32, usize), u32>,
}

impl Places {
    /// The place of a kernel's result.
    fn begin(&mut self, home: usize) -> u32 {
        self.homes.push(home);
        self.homes.len() as u32 - 1
    }

    /// The place of an operation's source that its element at a place is computed of.
    fn through(&mut self, path: u32, number: usize) -> u32 {
        let home = self.homes[path as usize];
        let next = self.homes.len() as u32;
        *self.next.entry((path, number)).or_insert_with(|| {
            self.homes.push(home);
            next
        })
    }
}

/// Whether an element is computed of others of its sources than the one at its own place.
fn moves(op: &Op) -> bool {
    matches!(
        op,
        Op::Reshape
            | Op::Permute { .. }
            | Op::Expand
            | Op::Slice { .. }
            | Op::Flip { .. }
            | Op::Pad { .. }
            | Op::Reduce { .. }
            | Op::Segments { .. }
            | Op::Product
            | Op::Function(_)
    )
}

struct Kernel {
    group: Group,
    /// What it computes.
    operations: usize,
    /// What it would load if nothing more was computed inside.
    reads: Vec<usize>,
}

struct Division<'a> {
    graph: &'a Graph,
    costs: Vec<u32>,
    stays: Vec<Option<Stay>>,
    homes: Vec<SmallVec<[usize; 2]>>,
    places: Places,
    /// By operation: the places of its elements that kernels compute.
    wanted: Vec<SmallVec<[u32; 2]>>,
    /// By the operation whose result they store.
    kernels: Vec<Option<Kernel>>,
    /// Operations from this one on have their place.
    placed: usize,
    library: HashMap<usize, Library>,
    /// What its kernels read.
    read: HashSet<usize>,
    ways: Ways,
}

impl Division<'_> {
    fn op(&self, number: usize) -> &Op {
        &self.graph.0[number].tensor.0.op
    }

    fn place(&mut self, number: usize) {
        let entry = &self.graph.0[number];
        let mut homes: SmallVec<[usize; 2]> = SmallVec::new();
        for user in &entry.users {
            for home in &self.homes[*user] {
                if !homes.contains(home) {
                    homes.push(*home);
                }
            }
        }
        let wanted = self.wanted(number);
        let times = |own: &Self, home: usize| {
            let here = wanted
                .iter()
                .filter(|path| own.places.homes[**path as usize] == home);
            here.count()
        };
        let is_often = homes.iter().any(|home| times(self, *home) > PLACES);
        match self.stay(number, &homes, is_often) {
            None => {
                for home in &homes {
                    let reads = self.reads_with(*home, number);
                    let times = times(self, *home);
                    if let Some(kernel) = &mut self.kernels[*home] {
                        kernel.operations += times;
                        kernel.reads = reads;
                    }
                }
                self.homes[number] = homes;
                self.wanted[number] = wanted;
            }
            Some(stay) => {
                self.wanted[number] = smallvec![self.places.begin(number)];
                self.stays[number] = Some(stay);
                self.homes[number] = smallvec![number];
                let mut reads = entry.sources.to_vec();
                reads.sort_unstable();
                reads.dedup();
                self.kernels[number] = Some(Kernel {
                    group: Group {
                        output: number,
                        inside: Vec::new(),
                    },
                    operations: 1,
                    reads,
                });
            }
        }
    }

    // The places of its elements that its users compute with.
    fn wanted(&mut self, number: usize) -> SmallVec<[u32; 2]> {
        let graph = self.graph;
        let mut wanted: SmallVec<[u32; 2]> = SmallVec::new();
        for user in &graph.0[number].users {
            let of_user = &graph.0[*user];
            let moves = match self.op(*user) {
                Op::Gather { .. } => graph.0[number].tensor.shape() != of_user.tensor.shape(),
                op => moves(op),
            };
            for at in 0..self.wanted[*user].len() {
                let path = self.wanted[*user][at];
                wanted.push(if moves {
                    self.places.through(path, *user)
                } else {
                    path
                });
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    // Why it is stored, or nothing. A combination or product that stays inside becomes part of its kernel's group.
    fn stay(&mut self, number: usize, homes: &[usize], is_often: bool) -> Option<Stay> {
        let (entry, fuses) = (&self.graph.0[number], self.ways.fuses);
        if entry.is_root || homes.is_empty() {
            return Some(Stay::Asked);
        }
        let is_looked_up = |user: &usize| {
            let source = self.graph.0[*user].sources.first();
            matches!(self.op(*user), Op::Gather { .. }) && source == Some(&number)
        };
        if entry.users.iter().any(is_looked_up) {
            return Some(Stay::Gathered);
        }
        let is_number = matches!(self.op(number), Op::Scalar { .. });
        if *self.op(number) == Op::Variable {
            return Some(Stay::Variable);
        }
        if matches!(self.op(number), Op::Function(_)) {
            return Some(Stay::Function);
        }
        if self.library.contains_key(&number) {
            return Some(Stay::Library);
        }
        if self.read.contains(&number) {
            return Some(Stay::Read);
        }
        if !fuses && !is_number {
            return Some(Stay::Off);
        }
        // A view that the library's launches describe is nowhere but in other kernels.
        let is_view = |home: &usize| {
            self.library
                .get(home)
                .is_some_and(|of| of.views().contains(&number))
        };
        let homes: SmallVec<[usize; 2]> = homes.iter().copied().filter(|home| !is_view(home)).collect();
        if homes.is_empty() {
            return None;
        }
        if is_often && !is_number && !matches!(self.op(number), Op::Coordinate { .. }) {
            return Some(Stay::Often);
        }
        for home in &homes {
            let Some(kernel) = &self.kernels[*home] else {
                continue;
            };
            if kernel.operations >= MOST && !is_number {
                return Some(Stay::Long);
            }
            let reads = self.reads_with(*home, number);
            let buffers = reads.iter().filter(|read| self.is_buffer(**read)).count();
            if buffers + 1 > self.ways.most_buffers {
                return Some(Stay::Buffers);
            }
        }
        match self.op(number) {
            Op::Reduce { .. } => (!self.stays_inside(number, &homes)).then_some(Stay::Combination),
            Op::Segments { .. } => Some(Stay::Combination),
            Op::Product => (!self.stays_inside(number, &homes)).then_some(Stay::Product),
            _ => self.dear(number, &homes),
        }
    }

    fn dear(&self, number: usize, homes: &[usize]) -> Option<Stay> {
        let (entry, cost) = (&self.graph.0[number], self.costs[number]);
        if homes.len() > 1 && cost > CHEAP {
            return Some(Stay::Shared);
        }
        let repeats = |user: &usize| {
            let times = self.graph.0[*user].tensor.len() / entry.tensor.len().max(1);
            matches!(self.op(*user), Op::Expand) && times >= 4
        };
        if cost > REPEATED && entry.users.iter().any(repeats) {
            return Some(Stay::Repeated);
        }
        let is_brought = |home: &usize| match &self.kernels[*home] {
            Some(kernel) => {
                let product = kernel
                    .group
                    .inside
                    .iter()
                    .chain([home])
                    .find(|at| matches!(self.op(**at), Op::Product));
                product.is_some_and(|product| number < *product)
            }
            None => false,
        };
        (cost > BROUGHT && homes.iter().any(is_brought)).then_some(Stay::Brought)
    }

    // Whether the only kernel that needs a combination can compute it in passing: tried by building it.
    fn stays_inside(&mut self, number: usize, homes: &[usize]) -> bool {
        let &[home] = homes else { return false };
        let Some(kernel) = &self.kernels[home] else {
            return false;
        };
        let members = || kernel.group.inside.iter().copied().chain([home]);
        let form = |at: usize| match self.op(at) {
            Op::Product => Some(None),
            Op::Reduce { axes, .. } => {
                let source = self.graph.0[at].sources.first()?;
                Some(Some((self.graph.0[*source].tensor.shape(), axes)))
            }
            _ => None,
        };
        let own = form(number);
        // One product and nothing else, or combinations over the same rows.
        let fits = |other: usize| match (&own, form(other)) {
            (_, None) => true,
            (Some(Some(own)), Some(Some(other))) => *own == other,
            _ => false,
        };
        if !members().all(fits) {
            return false;
        }
        let mut group = kernel.group.clone();
        group.inside.insert(0, number);
        let placed = self.placed;
        let is_stored =
            |at: usize| at < placed && at != number || self.stays[at].is_some() || self.graph.0[at].is_known;
        if build(self.graph, &group, &is_stored).is_err() {
            return false;
        }
        if let Some(kernel) = &mut self.kernels[home] {
            kernel.group = group;
        }
        true
    }

    // What a kernel reads if it computes an operation itself.
    fn reads_with(&self, home: usize, number: usize) -> Vec<usize> {
        let Some(kernel) = &self.kernels[home] else {
            return Vec::new();
        };
        let mut reads = kernel.reads.clone();
        reads.retain(|read| *read != number);
        for source in &self.graph.0[number].sources {
            // What has its place inside already is no buffer.
            if !reads.contains(source) {
                reads.push(*source);
            }
        }
        reads
    }

    fn is_buffer(&self, number: usize) -> bool {
        !matches!(
            self.op(number),
            Op::Scalar { .. } | Op::Coordinate { .. } | Op::Random { .. }
        )
    }
}

/// About how many instructions an element takes, where everything is computed anew but combinations and products.
fn costs(graph: &Graph) -> Vec<u32> {
    let mut costs: Vec<u32> = Vec::with_capacity(graph.0.len());
    for entry in &graph.0 {
        let node = &entry.tensor.0;
        let own = match &node.op {
            _ if entry.is_known => 1,
            Op::Random { .. } => 64,
            Op::Reduce { .. } | Op::Segments { .. } | Op::Product => 1,
            Op::Unary(op) if op.row().cuda == perpetua_ir::ops::Spelling::Library => 16,
            Op::Binary(op) if op.row().cuda == perpetua_ir::ops::Spelling::Library => 24,
            _ => 1,
        };
        let below: u32 = match &node.op {
            Op::Reduce { .. } | Op::Segments { .. } | Op::Product => 0,
            _ => {
                let mut sources = entry.sources.clone();
                sources.dedup();
                sources
                    .iter()
                    .fold(0, |sum: u32, source| sum.saturating_add(costs[*source]))
            }
        };
        costs.push(below.saturating_add(own));
    }
    costs
}
