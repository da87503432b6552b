//! From the tree to instructions over virtual registers: where values lie, and how lanes part and meet. The lanes that execute are
//! one mask; each construct that divides them keeps the others in masks of its own, as the interpreter does.

mod cast;
mod control;
mod divide;
mod hoist;
mod memory;
mod operation;
mod shift;
mod unary;
mod value;

use std::collections::HashMap;

use super::layout::{
    BLOCK_X, Exchange, GANG_BYTES, GANG_FIRST, GANG_X, Given, Layout, Meeting, SLOT, SUBGROUP_MASK, Site,
    VIEW_BYTES, VIEWS, What,
};
use super::lir::*;
use super::machine::{Cc, Label, MOp};
use super::spread::{Kind, Spreads};
use super::tree::{Act, Frame, Leaving, Node, Tree, V};
use super::{Isa, Refusal, Target};
use crate::interp::program::{Fill, Program, RegionKind};
use hoist::{GANG, LAUNCH, Section};
use perpetua_ir::ir::{Builtin, DeviceOp, Scalar};
use perpetua_ir::ops::BinaryOp;

pub(super) use memory::scale;

/// What lowering gives.
pub(super) struct Lowered {
    pub(super) code: Vec<I>,
    pub(super) classes: Vec<Class>,
    /// Labels used.
    pub(super) labels: u32,
    /// Loops, from the first instruction to the last.
    pub(super) loops: Vec<(usize, usize)>,
    /// Registers of what the host gives, and where it lies.
    pub(super) origins: HashMap<R, Origin>,
    /// Whether code runs one row of all blocks before the next.
    pub(super) by_rows: bool,
    pub(super) sites: Vec<Site>,
    pub(super) layout: Layout,
    /// Points where a gang may wait; their numbers begin with one.
    pub(super) waits: u32,
    /// By the numbers of waits: those at which gangs meet.
    pub(super) meetings: Vec<Option<Meeting>>,
    pub(super) end: Label,
}

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Nowhere,
    General(R),
    Affine(G, i32),
    Vector([R; 2]),
    Mask(R),
    /// The launch filled it in: from which level on it stands in the state, and where.
    Fill(usize, i32),
    /// In the frame.
    Frame(i32),
    /// Number of the lane in its subgroup.
    SubgroupLane,
}

/// A construct that lanes leave by name.
#[derive(Clone, Copy)]
struct Exits {
    /// Where lanes go together.
    exit: Label,
    next: Label,
    /// Where they wait for each other.
    masks: Option<(R, R)>,
}

pub(super) struct Lower<'a> {
    program: &'a Program,
    tree: &'a Tree,
    spreads: &'a Spreads,
    target: Target,
    out: Lowered,
    /// Code under construction, by levels, and the level that instructions go to.
    sections: Vec<Section>,
    at: usize,
    /// Of values that have been computed, from which level on they are known.
    levels: Vec<Option<usize>>,
    given: Vec<(Origin, R)>,
    splats: Vec<hoist::Splat>,
    /// Blocks of the text around.
    depth: usize,
    /// How often values are read.
    reads: Vec<u32>,
    places: Vec<Place>,
    exits: HashMap<Frame, Exits>,
    known: HashMap<(Vec<u8>, usize), i32>,
    /// Loops around, with the counts of their turns where a meeting asks for these.
    turns: Vec<(Frame, R)>,
    /// Where arrays begin in the frame, and bytes of their elements.
    arrays: Vec<(i32, u32)>,
}

pub(super) fn lower(
    program: &Program,
    tree: &Tree,
    spreads: &Spreads,
    target: Target,
) -> Result<Lowered, Refusal> {
    let fills = VIEWS + VIEW_BYTES * program.regions.len();
    let constants = (fills + 8 * program.fills.len()).next_multiple_of(64);
    let shared = |kind| matches!(kind, RegionKind::Shared { .. } | RegionKind::Dynamic);
    let shares = program.regions.iter().any(|region| shared(region.kind));
    let mut lower = Lower {
        program,
        tree,
        spreads,
        target,
        out: Lowered {
            code: Vec::new(),
            classes: vec![Class::Mask],
            labels: 0,
            loops: Vec::new(),
            sites: Vec::new(),
            origins: HashMap::new(),
            by_rows: !tree.meets && !shares,
            layout: Layout {
                fills,
                constants,
                ..Layout::default()
            },
            waits: 0,
            meetings: vec![None],
            end: Label(0),
        },
        sections: (0..=GANG).map(|_| Section::default()).collect(),
        at: GANG,
        levels: vec![None; tree.values.len()],
        given: Vec::new(),
        splats: Vec::new(),
        depth: 0,
        reads: tree.reads(),
        places: vec![Place::Nowhere; tree.values.len()],
        exits: HashMap::new(),
        known: HashMap::new(),
        turns: Vec::new(),
        arrays: Vec::new(),
    };
    lower.arrays();
    // What the assembler and comparisons need of vectors that are masks: bits of lanes, and signs.
    if target.isa != Isa::Avx512 {
        let (lanes, data) = (target.lanes, &mut lower.out.layout.data);
        data.extend((0..lanes).flat_map(|lane| (1u32 << lane).to_le_bytes()));
        data.extend((0..lanes).flat_map(|_| (1u32 << 31).to_le_bytes()));
        data.extend((0..lanes / 2).flat_map(|_| (1u64 << 63).to_le_bytes()));
    }
    let end = lower.label();
    lower.out.end = end;
    lower.block(&tree.nodes, end)?;
    lower.assemble(end);
    lower.meeting_room();
    Ok(lower.out)
}

/// How an operand of this size is given to the host.
fn given((operand, size): &(Operand, u32)) -> (Given, u32) {
    let given = match operand {
        Operand::One(_) => Given::One,
        Operand::Affine(_, step) => Given::Affine(*step),
        Operand::Lanes(..) => Given::Lanes,
        Operand::Mask(_) => Given::Mask,
    };
    (given, *size)
}

impl Lower<'_> {
    /// Whether the processor has an instruction.
    fn has(&self, op: BinaryOp, s: Scalar) -> bool {
        self.target.has(op, s)
    }

    fn put(&mut self, i: I) {
        self.sections[self.at].code.push(i);
    }

    fn label(&mut self) -> Label {
        self.out.labels += 1;
        Label(self.out.labels - 1)
    }

    fn fresh(&mut self, class: Class) -> R {
        self.out.classes.push(class);
        R(self.out.classes.len() as u32 - 1)
    }

    fn general(&mut self) -> R {
        self.fresh(Class::General)
    }

    fn vector(&mut self) -> R {
        self.fresh(Class::Vector)
    }

    fn mask(&mut self) -> R {
        self.fresh(Class::Mask)
    }

    /// Bytes of a vector.
    fn bytes(&self) -> u32 {
        self.target.lanes * 4
    }

    fn arrays(&mut self) {
        // Gangs that meet have their entries at the beginning of their frames.
        let mut at = if self.tree.meets { GANG_BYTES as i32 } else { 0 };
        for elements in &self.tree.arrays {
            let wide = elements.iter().any(|v| self.tree.values[v.index()].size == 8);
            let bytes = self.bytes() * if wide { 2 } else { 1 };
            self.arrays.push((at, bytes));
            for v in elements {
                self.places[v.index()] = Place::Frame(at);
                at += bytes as i32;
            }
        }
        let layout = &mut self.out.layout;
        layout.waiting = (at as usize).next_multiple_of(64);
        layout.frame = layout.waiting + 64;
    }

    fn size(&self, v: V) -> u32 {
        self.tree.values[v.index()].size
    }

    /// Vectors that a value takes.
    fn parts(&self, v: V) -> usize {
        if self.size(v) == 8 { 2 } else { 1 }
    }

    /// A constant of the state; its offset.
    fn constant(&mut self, bytes: &[u8], align: usize) -> i32 {
        if let Some(at) = self.known.get(&(bytes.to_vec(), align)) {
            return *at;
        }
        let data = &mut self.out.layout.data;
        data.resize(data.len().next_multiple_of(align), 0);
        let at = (self.out.layout.constants + data.len()) as i32;
        data.extend(bytes);
        self.known.insert((bytes.to_vec(), align), at);
        at
    }

    /// A scalar constant, to be splatted.
    fn splat(&mut self, bits: u64) -> X {
        X::Splat(self.constant(&bits.to_le_bytes(), 8))
    }

    /// `step` times each lane's number: 32 bits wide, or of one half of the lanes 64.
    fn iota(&mut self, step: i32, wide: bool, part: usize) -> X {
        let mut bytes = Vec::new();
        if wide {
            let half = self.target.lanes as usize / 2;
            for lane in part * half..(part + 1) * half {
                bytes.extend((i64::from(step) * lane as i64).to_le_bytes());
            }
        } else {
            for lane in 0..self.target.lanes as i32 {
                bytes.extend(step.wrapping_mul(lane).to_le_bytes());
            }
        }
        X::State(self.constant(&bytes, 64))
    }

    fn logic(&mut self, op: MOp, d: R, a: R, b: R) {
        self.put(I::MLogic { op, d, a, b });
    }

    fn compare(&mut self, op: BinaryOp, s: Scalar, a: R, b: X) -> R {
        let d = self.mask();
        self.put(I::XCompare { op, s, d, a, b });
        d
    }

    /// A value as an operand of a call.
    fn operand(&mut self, v: V) -> Result<Operand, Refusal> {
        Ok(match self.place(v) {
            Place::General(_) | Place::Fill(..) => Operand::One(self.g(v)?),
            Place::Affine(g, step) => Operand::Affine(g, step),
            Place::Mask(m) => Operand::Mask(m),
            _ => Operand::Lanes(self.x(v)?, self.parts(v) as u32),
        })
    }

    /// Operands and results of what the host does.
    fn both(&mut self, ins: &[V], outs: &[V]) -> Result<[Vec<(Operand, u32)>; 2], Refusal> {
        let mut operands = Vec::new();
        for v in ins {
            operands.push((self.operand(*v)?, self.size(*v)));
        }
        let mut results = Vec::new();
        for v in outs {
            let result = match self.place(*v) {
                Place::General(r) => Operand::One(G::R(r)),
                Place::Mask(m) => Operand::Mask(m),
                _ => Operand::Lanes(self.vectors_for(*v), self.parts(*v) as u32),
            };
            results.push((result, self.size(*v)));
        }
        Ok([operands, results])
    }

    fn site(&mut self, what: What, pc: u32, ins: &[(Operand, u32)], outs: &[(Operand, u32)]) -> u32 {
        self.out.sites.push(Site {
            what,
            pc,
            always: false,
            ins: ins.iter().map(given).collect(),
            outs: outs.iter().map(given).collect(),
        });
        self.out.sites.len() as u32 - 1
    }

    /// Calls the host: right for every operation.
    fn call(
        &mut self,
        what: What,
        pc: u32,
        ins: &[V],
        outs: &[V],
        skip: Option<Label>,
    ) -> Result<(), Refusal> {
        let [operands, results] = self.both(ins, outs)?;
        let site = self.site(what, pc, &operands, &results);
        self.out.sites[site as usize].always = true;
        self.put(I::Call {
            site,
            ins: operands.into_iter().map(|(o, _)| o).collect(),
            outs: results.into_iter().map(|(o, _)| o).collect(),
            skip,
        });
        Ok(())
    }

    /// Waits for the other gangs, where lanes may exchange something.
    fn meet(
        &mut self,
        pc: u32,
        at: u32,
        exchange: Option<(DeviceOp, Scalar)>,
        ins: &[V],
        outs: &[V],
    ) -> Result<(), Refusal> {
        let [ins, outs] = self.both(ins, outs)?;
        // Made again sooner than kept in the gang's frame.
        self.forget(0);
        self.out.waits += 1;
        let id = self.out.waits;
        self.out.meetings.resize(id as usize, None);
        self.out.meetings.push(Some(Meeting {
            at,
            pc,
            loops: self.turns.iter().map(|(frame, _)| *frame).collect(),
            exchange: exchange.map(|(op, s)| Exchange {
                op,
                s,
                ins: ins.iter().map(given).collect(),
                outs: outs.iter().map(given).collect(),
            }),
        }));
        self.put(I::Meet {
            id,
            turns: self.turns.iter().map(|(_, r)| *r).collect(),
            ins: ins.into_iter().map(|(o, _)| o).collect(),
            outs: outs.into_iter().map(|(o, _)| o).collect(),
        });
        Ok(())
    }

    /// Room in frames for what meetings need.
    fn meeting_room(&mut self) {
        let meetings = || self.out.meetings.iter().flatten();
        let depth = meetings().map(|m| m.loops.len()).max().unwrap_or(0);
        let exchanges = meetings().filter_map(|m| m.exchange.as_ref());
        let slots = exchanges.map(|e| e.ins.len() + e.outs.len()).max().unwrap_or(0);
        let layout = &mut self.out.layout;
        layout.turns = layout.frame;
        layout.exchange = (layout.turns + 8 * depth).next_multiple_of(64);
        layout.frame = layout.exchange + slots * SLOT;
    }

    fn operation(&mut self, pc: u32, at: u32, act: &Act, outs: &[V], skip: Label) -> Result<(), Refusal> {
        self.hoisted(act, outs, |lower| {
            lower.put(I::At(pc));
            lower.act(pc, at, act, outs, skip)
        })
    }

    fn act(&mut self, pc: u32, at: u32, act: &Act, outs: &[V], skip: Label) -> Result<(), Refusal> {
        match act {
            Act::Unary(op, s, a) => self.unary(pc, *op, *s, *a, outs[0]),
            Act::Binary(op, s, a, b) => self.binary(pc, *op, *s, [*a, *b], outs[0]),
            Act::Divide(op, s, a, b, site) => self.divide(pc, *op, *s, [*a, *b], *site, outs[0], skip),
            Act::Ternary(op, s, a, b, c) => self.ternary(pc, *op, *s, [*a, *b, *c], outs[0]),
            Act::Cast(from, to, a) => self.cast(pc, *from, *to, *a, outs[0]),
            Act::Move(from) => {
                let masked = !self.spreads.plain[at as usize];
                self.copy(*from, outs[0], masked)
            }
            Act::Access {
                access,
                kind,
                index,
                values,
            } => self.access(pc, *access, *kind, index, values, outs, skip),
            Act::PrivateLoad { place, array, index } => {
                self.private(pc, *place, *array, index, &[], outs, skip)
            }
            Act::PrivateStore {
                place,
                array,
                index,
                values,
            } => self.private(pc, *place, *array, index, values, outs, skip),
            Act::Barrier => self.meet(pc, at, None, &[], &[]),
            Act::Exchange(op, s, ins) => self.meet(pc, at, Some((*op, *s)), ins, outs),
            Act::Fence => {
                self.put(I::Fence);
                Ok(())
            }
            Act::Clock => self.call(What::Clock, pc, &[], outs, None),
            Act::Print(site, args) => self.call(What::Print(*site), pc, args, &[], None),
            Act::Fault(site, operands) => self.call(What::Fault(*site), pc, operands, &[], Some(skip)),
        }
    }

    fn copy(&mut self, from: V, to: V, masked: bool) -> Result<(), Refusal> {
        if let Some(d) = self.scalar_for(to) {
            let s = self.g(from)?;
            self.put(I::GMov { w: true, d, s });
            return Ok(());
        }
        if let Place::Mask(d) = self.place(to) {
            let m = self.m(from)?;
            self.settle_mask(d, m, masked);
            return Ok(());
        }
        if let (Place::Fill(level, at), Place::Vector(d), false) = (self.place(from), self.place(to), masked)
            && level == LAUNCH
        {
            let wide = self.parts(to) == 2;
            for d in d.into_iter().take(self.parts(to)) {
                let a = X::Splat(at);
                self.put(I::XLoad { d, a, wide });
            }
            return Ok(());
        }
        let x = self.x(from)?;
        self.settle(to, x, masked)
    }
}
