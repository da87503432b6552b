//! The inside of a row: gangs for which each branch goes where it usually goes, and whose indices are below their lengths. Both are found
//! out once a row, at the first gang and at the last: what ascends along the row is between. They run a third form of their code, with
//! no comparisons of either kind. Knows instructions, not what a kernel computes.

use std::collections::{HashMap, HashSet};

use super::nest::state;
use super::*;

/// What ascends with a gang's first lane (`lane`), or is the same for all gangs of a row: a sum.
#[derive(Clone, Debug, PartialEq)]
struct Sum {
    lane: bool,
    /// What is added, or taken away.
    terms: Vec<(Alu, G)>,
    number: i32,
}

/// What a branch rests on: instructions that make masks.
#[derive(Clone, Debug)]
enum Claim {
    /// All lanes are in the mask, or none is.
    Mask(R, bool),
    /// The scalar is not zero, or is.
    Scalar(G, bool),
    /// Indices from the sum's on, and so many after it, are below the limit.
    Below(Sum, i32, G),
}

/// The third form of a gang's code.
#[derive(Default)]
pub(super) struct Inside {
    /// Its instructions, in order.
    path: Vec<usize>,
    claims: Vec<Claim>,
    sums: HashMap<R, Sum>,
    /// Which instruction makes a mask.
    masks: HashMap<R, usize>,
    /// What rows make, and gangs leave alone.
    outer: HashSet<R>,
}

/// Gangs inside a row that are worth a look at its ends.
const WORTH: i32 = 2;

/// Numbers in sums stay so small that they fit into instructions.
const FAR: i32 = 1 << 20;

impl Inside {
    /// Follows the code of a gang along the usual way; `None` where it has something that only the other forms do.
    pub(super) fn find(program: &Program, lowered: &Lowered, gang: usize) -> Option<Inside> {
        if !lowered.by_rows {
            return None;
        }
        let code = lowered.code.as_slice();
        let last = code.len() - 1;
        let mut inside = Inside::default();
        for i in &code[..gang] {
            i.registers(&mut |r, writes| {
                if writes {
                    inside.outer.insert(r);
                }
            });
        }
        let mut places = HashMap::new();
        for (at, i) in code.iter().enumerate() {
            if let I::Label(l) = i {
                places.insert(*l, at);
            }
        }
        for i in &code[gang + 1..] {
            i.registers(&mut |r, writes| {
                if writes {
                    inside.outer.remove(&r);
                }
            });
        }
        let mut at = gang + 1;
        while at < last {
            let next = inside.step(program, lowered, &places, at)?;
            if next <= at {
                return None;
            }
            at = next;
        }
        inside.drop_unread(code);
        (!inside.claims.is_empty()).then_some(inside)
    }

    /// Notes an instruction; which one follows.
    fn step(
        &mut self,
        program: &Program,
        lowered: &Lowered,
        places: &HashMap<Label, usize>,
        at: usize,
    ) -> Option<usize> {
        let code = lowered.code.as_slice();
        match &code[at] {
            I::At(_) | I::Label(_) | I::Join { .. } => return Some(at + 1),
            I::Jump(to) | I::Other { to, .. } | I::Leave { direct: to, .. } => {
                return places.get(to).copied();
            }
            I::Part { c, other, .. } => {
                let takes = takes(code, at, *places.get(other)?);
                let decided = self.decided(code, *c, takes);
                self.claims.push(Claim::Mask(*c, takes));
                return decided.then(|| if takes { at + 1 } else { places[other] });
            }
            I::GJump { cc, a, to } => {
                let to = *places.get(to)?;
                let jumps = !takes(code, at, to);
                let known = a.reg().is_none_or(|r| self.outer.contains(&r));
                self.claims.push(Claim::Scalar(*a, jumps == (*cc == Cc::Ne)));
                return known.then_some(if jumps { to } else { at + 1 });
            }
            I::GGang { d, at: GANG_X } => self.sum(
                *d,
                Some(Sum {
                    lane: true,
                    terms: Vec::new(),
                    number: 0,
                }),
            ),
            I::GMov { w: true, d, s } => self.sum(*d, self.value(*s)),
            // Lanes' numbers in a row are small.
            I::GExtend { signed: false, d, a } | I::GMov { w: false, d, s: a } => {
                let lane = self
                    .value(*a)
                    .filter(|s| s.lane && s.terms.is_empty() && s.number == 0);
                self.sum(*d, lane);
            }
            I::GBin {
                op: op @ (GOp::Add | GOp::Sub),
                w: true,
                d,
                a,
                b,
            } => {
                let sum = self.value(*a).zip(self.value(*b));
                self.sum(*d, sum.and_then(|(a, b)| a.plus(*op, &b)));
            }
            I::MLogic { d, .. }
            | I::MMov { d, .. }
            | I::MConst { d, .. }
            | I::MFromG { d, .. }
            | I::MBelow { d, .. }
            | I::MKeep { d, .. } => {
                if self.masks.insert(*d, at).is_some() {
                    return None;
                }
            }
            I::Access {
                site,
                shape,
                base,
                limit,
                ins,
                steps,
                ..
            } => {
                let What::Access(access, AccessKind::Load | AccessKind::Store) =
                    lowered.sites[*site as usize].what
                else {
                    return None;
                };
                let place = &program.accesses[access as usize];
                let usual = *steps == 1
                    && place.steps.len() == 1
                    && place.steps[0].length == Length::Region
                    && place.steps[0].ty.size() == 8
                    && matches!(shape, Shape::Run(_) | Shape::One);
                let (Operand::One(index) | Operand::Affine(index, _)) = ins.first()? else {
                    return None;
                };
                let sum = self
                    .value(*index)
                    .filter(|s| usual && s.lane == matches!(shape, Shape::Run(_)))?;
                let known = |g: &G| g.reg().is_none_or(|r| self.outer.contains(&r));
                if !known(limit) || !known(base) {
                    return None;
                }
                self.bound(sum, *limit);
            }
            I::XBin { .. }
            | I::XUnary { .. }
            | I::XShift { .. }
            | I::XConvert { .. }
            | I::XWiden { .. }
            | I::XNarrow { .. }
            | I::XMov { .. }
            | I::XSplat { .. }
            | I::XLoad { .. }
            | I::XCompare { .. }
            | I::XBlend { .. }
            | I::XFma { .. }
            | I::XFromM { .. }
            | I::GGang { .. }
            | I::GBin { .. }
            | I::GUnary { .. }
            | I::GCompare { .. }
            | I::GSelect { .. }
            | I::GExtend { .. }
            | I::MFromX { .. }
            | I::MPair { .. } => {}
            _ => return None,
        }
        // Another value of the same register is no sum that is known.
        if let I::GBin {
            op: GOp::Mul | GOp::And | GOp::Or | GOp::Xor | GOp::Shl | GOp::Shr | GOp::Sar | GOp::Choose(_),
            d,
            ..
        }
        | I::GBin { w: false, d, .. }
        | I::GUnary { d, .. }
        | I::GCompare { d, .. }
        | I::GSelect { d, .. }
        | I::GExtend { signed: true, d, .. } = &code[at]
        {
            self.sum(*d, None);
        }
        self.path.push(at);
        Some(at + 1)
    }

    fn sum(&mut self, d: R, sum: Option<Sum>) {
        match sum {
            Some(sum) => {
                self.sums.insert(d, sum);
            }
            None => {
                self.sums.remove(&d);
            }
        }
    }

    fn value(&self, g: G) -> Option<Sum> {
        let none = Sum {
            lane: false,
            terms: Vec::new(),
            number: 0,
        };
        match g {
            G::R(r) if self.outer.contains(&r) => Some(Sum {
                terms: vec![(Alu::Add, g)],
                ..none
            }),
            G::R(r) => self.sums.get(&r).cloned(),
            G::Imm(number) => (number.abs() < FAR).then_some(Sum { number, ..none }),
            G::State(_) => Some(Sum {
                terms: vec![(Alu::Add, g)],
                ..none
            }),
        }
    }

    /// One comparison for all indices that differ by numbers.
    fn bound(&mut self, sum: Sum, limit: G) {
        for claim in &mut self.claims {
            if let Claim::Below(known, more, l) = claim
                && *l == limit
                && (known.lane, &known.terms) == (sum.lane, &sum.terms)
            {
                let least = known.number.min(sum.number);
                *more = (known.number + *more).max(sum.number) - least;
                known.number = least;
                return;
            }
        }
        self.claims.push(Claim::Below(sum, 0, limit));
    }

    /// Whether the ends of a row can tell that a mask has all lanes, or none.
    fn decided(&self, code: &[I], m: R, all: bool) -> bool {
        if m == CURRENT {
            return all;
        }
        let Some(at) = self.masks.get(&m) else {
            return self.outer.contains(&m);
        };
        match &code[*at] {
            I::MBelow { below, .. } => {
                let known = below.n.reg().is_none_or(|r| self.outer.contains(&r));
                let sum = self.value(below.base).filter(|sum| sum.lane && known);
                sum.is_some() && !(below.equal && all != below.not)
            }
            I::MLogic { op, a, b, .. } => match both(*op, *a, *b, all) {
                Some((true, [a, b])) => self.decided(code, a.0, a.1) && self.decided(code, b.0, b.1),
                Some((false, [a, b])) => self.decided(code, a.0, a.1) || self.decided(code, b.0, b.1),
                None => false,
            },
            I::MMov { s: m, .. } | I::MKeep { m, .. } => self.decided(code, *m, all),
            I::MConst { ones, .. } => *ones == all,
            I::MFromG { a, .. } => a.reg().is_none_or(|r| self.outer.contains(&r)),
            _ => false,
        }
    }

    /// Leaves out what nothing reads any more: conditions that are known.
    fn drop_unread(&mut self, code: &[I]) {
        let mut read = HashSet::new();
        let mut kept = Vec::new();
        for at in self.path.drain(..).rev() {
            let (mut wanted, mut writes) = (false, false);
            code[at].registers(&mut |r, is_written| {
                writes |= is_written;
                wanted |= is_written && (read.contains(&r) || self.outer.contains(&r));
            });
            if wanted || !writes || matches!(code[at], I::Access { .. }) {
                code[at].registers(&mut |r, is_written| {
                    if !is_written {
                        read.insert(r);
                    }
                });
                kept.push(at);
            }
        }
        kept.reverse();
        self.path = kept;
    }
}

impl Sum {
    fn plus(mut self, op: GOp, other: &Sum) -> Option<Sum> {
        let adds = op == GOp::Add;
        if other.lane && (!adds || self.lane) {
            return None;
        }
        self.lane |= other.lane;
        for (alu, g) in &other.terms {
            self.terms.push(match (alu, adds) {
                (alu, true) => (*alu, *g),
                (Alu::Add, false) => (Alu::Sub, *g),
                _ => (Alu::Add, *g),
            });
        }
        self.number = if adds {
            self.number + other.number
        } else {
            self.number - other.number
        };
        (self.number.abs() < FAR && self.terms.len() < 8).then_some(self)
    }
}

/// Whether the usual way goes into the block between a branch and `to`: not where that leaves the kernel, else where nothing stands
/// behind it.
fn takes(code: &[I], branch: usize, to: usize) -> bool {
    let does = |i: &&I| !matches!(i, I::At(_) | I::Label(_) | I::Join { .. });
    let inside = code.get(branch + 1..to).unwrap_or_default();
    if matches!(
        inside.iter().filter(does).next_back(),
        Some(I::Leave { .. } | I::Jump(_) | I::Other { .. })
    ) {
        return false;
    }
    code[to..code.len() - 1].iter().find(does).is_none()
}

/// An operation on masks as what both operands have to be (`true`), or one of them.
fn both(op: MOp, a: R, b: R, all: bool) -> Option<(bool, [(R, bool); 2])> {
    Some(match op {
        MOp::And => (all, [(a, all), (b, all)]),
        MOp::Or => (!all, [(a, all), (b, all)]),
        MOp::AndNot => (all, [(a, !all), (b, all)]),
        MOp::Xor if b == CURRENT => (true, [(a, !all), (b, true)]),
        MOp::Xor | MOp::Xnor => return None,
    })
}

impl<M: Lanes> Emitter<'_, M> {
    /// At a row's beginning: looks at its ends, and goes on with the gangs outside, or with all.
    pub(super) fn look_inside(&mut self, inside: &Inside) {
        let (bytes, lanes) = (GANG_BYTES as i32, self.lanes as i32);
        let (all, outside) = (self.asm.label(), self.asm.label());
        let asm = &mut self.asm;
        asm.mov_imm(A, 0);
        asm.store(8, Mem::at(M::STATE, INSIDE), A);
        // All but the first gang and the last one.
        asm.mov(true, A, state::<M>(ROW_END));
        asm.alu(Alu::Sub, true, A, Rm::Reg(M::KEPT));
        asm.alu_imm(Alu::Sub, true, Rm::Reg(A), (2 + WORTH) * bytes);
        asm.jcc(Cc::B, all);
        asm.alu_imm(Alu::Add, true, Rm::Reg(M::KEPT), bytes);
        asm.alu_imm(Alu::Add, true, Rm::Reg(A), WORTH * bytes);
        // So many lanes lie between the first of the first and that of the last gang, if each has all of its.
        asm.shift_imm(
            Shift::Right,
            true,
            A,
            (GANG_BYTES as u32 / self.lanes).trailing_zeros() as u8,
        );
        asm.store(8, Mem::at(M::STATE, SPAN), A);
        asm.mov(true, C, state::<M>(ROW_END));
        asm.mov(true, D, Rm::Mem(Mem::at(C, GANG_X - bytes)));
        asm.alu(Alu::Sub, true, D, Rm::Mem(Mem::at(M::KEPT, GANG_X)));
        asm.alu(Alu::Compare, true, D, Rm::Reg(A));
        asm.jcc(Cc::Ne, outside);
        asm.alu_imm(Alu::Sub, true, state::<M>(SPAN), lanes);
        for claim in &inside.claims {
            match claim {
                Claim::Mask(m, all) => self.hold(inside, *m, *all, outside),
                Claim::Scalar(a, is) => {
                    let a = self.g_in(*a, A);
                    self.asm.test(false, a);
                    self.asm.jcc(if *is { Cc::E } else { Cc::Ne }, outside);
                }
                Claim::Below(sum, more, limit) => self.hold_below(sum, *more, *limit, outside),
            }
        }
        self.asm.store(8, Mem::at(M::STATE, INSIDE), M::KEPT);
        self.asm.place(outside);
        self.asm.alu_imm(Alu::Sub, true, Rm::Reg(M::KEPT), bytes);
        self.asm.place(all);
    }

    /// A sum at the first gang inside.
    fn first(&mut self, sum: &Sum, to: Gpr) {
        match sum.lane {
            true => self.asm.load(8, to, Mem::at(M::KEPT, GANG_X)),
            false => self.asm.mov_imm(to, 0),
        }
        for (alu, g) in &sum.terms {
            self.g_alu(*alu, true, to, *g);
        }
        if sum.number != 0 {
            self.asm.alu_imm(Alu::Add, true, Rm::Reg(to), sum.number);
        }
    }

    /// Both ends are compared: between them no sum passes the greatest number, for it would have come by the limit.
    fn hold_below(&mut self, sum: &Sum, more: i32, limit: G, outside: Label) {
        self.first(sum, A);
        self.g_alu(Alu::Compare, true, A, limit);
        self.asm.jcc(Cc::Ae, outside);
        if !sum.lane && more == 0 {
            return;
        }
        if sum.lane {
            self.asm.alu(Alu::Add, true, A, state::<M>(SPAN));
        }
        if more > 0 {
            self.asm.alu_imm(Alu::Add, true, Rm::Reg(A), more);
        }
        self.g_alu(Alu::Compare, true, A, limit);
        self.asm.jcc(Cc::Ae, outside);
    }

    /// Goes on if all lanes inside are in a mask, or none is; else to `outside`.
    fn hold(&mut self, inside: &Inside, m: R, all: bool, outside: Label) {
        let code = self.lowered.code.as_slice();
        if m == CURRENT {
            return;
        }
        let Some(at) = inside.masks.get(&m) else {
            let m = self.m_in(m, self.k7);
            return self.asm.kjump(all, m, outside);
        };
        match &code[*at] {
            I::MBelow { below, .. } => {
                let Some(sum) = inside.value(below.base) else {
                    return self.asm.jmp(outside);
                };
                self.hold_order(&sum, *below, all != below.not, outside);
            }
            I::MLogic { op, a, b, .. } => match both(*op, *a, *b, all) {
                Some((true, parts)) => {
                    for (m, all) in parts {
                        self.hold(inside, m, all, outside);
                    }
                }
                Some((false, parts)) => {
                    let holds = self.asm.label();
                    let can = parts.map(|(m, all)| inside.decided(code, m, all));
                    for (number, (m, all)) in parts.into_iter().enumerate() {
                        let last = number == 1 || !can[1];
                        let next = if last { outside } else { self.asm.label() };
                        if can[number] {
                            self.hold(inside, m, all, next);
                            if !last {
                                self.asm.jmp(holds);
                                self.asm.place(next);
                            }
                        } else if !last {
                            self.asm.place(next);
                        }
                    }
                    self.asm.place(holds);
                }
                None => self.asm.jmp(outside),
            },
            I::MMov { s: m, .. } | I::MKeep { m, .. } => self.hold(inside, *m, all, outside),
            I::MConst { .. } => {}
            I::MFromG { a, .. } => {
                self.g_copy(*a, A);
                self.asm.alu_imm(Alu::And, false, Rm::Reg(A), 1);
                self.asm.test(false, A);
                self.asm.jcc(if all { Cc::E } else { Cc::Ne }, outside);
            }
            _ => self.asm.jmp(outside),
        }
    }

    /// The comparison is true of all lanes inside, or of none.
    fn hold_order(&mut self, sum: &Sum, below: Below, all: bool, outside: Label) {
        self.first(sum, A);
        let lanes = self.lanes as i32;
        if below.equal {
            // The number lies before the first lane or behind the last one.
            self.g_copy(below.n, C);
            self.asm.alu(Alu::Sub, below.w, C, Rm::Reg(A));
            self.asm.mov(true, A, state::<M>(SPAN));
            self.asm.alu_imm(Alu::Add, true, Rm::Reg(A), lanes);
            self.asm.alu(Alu::Compare, below.w, C, Rm::Reg(A));
            return self.asm.jcc(Cc::B, outside);
        }
        if all {
            self.asm.alu(Alu::Add, true, A, state::<M>(SPAN));
            self.asm.alu_imm(Alu::Add, true, Rm::Reg(A), lanes - 1);
        }
        self.g_alu(Alu::Compare, true, A, below.n);
        self.asm.jcc(
            match (below.signed, all) {
                (true, true) => Cc::Ge,
                (true, false) => Cc::L,
                (false, true) => Cc::Ae,
                (false, false) => Cc::B,
            },
            outside,
        );
    }

    /// The gangs inside, one after the other; then the last of the row.
    pub(super) fn inside(&mut self, inside: &Inside, layout: &Layout) {
        let lowered = self.lowered;
        let (again, gang) = (self.asm.label(), self.nest.gang);
        self.asm.place(self.nest.inside);
        self.asm.kall(self.k);
        self.asm.place(again);
        (self.full, self.proven) = (true, true);
        for at in &inside.path {
            self.instruction(*at, &lowered.code[*at], layout);
        }
        self.proven = false;
        let bytes = GANG_BYTES as i32;
        let asm = &mut self.asm;
        asm.alu_imm(Alu::Add, true, Rm::Reg(M::KEPT), bytes);
        asm.mov(true, A, state::<M>(ROW_END));
        asm.alu_imm(Alu::Sub, true, Rm::Reg(A), bytes);
        asm.alu(Alu::Compare, true, M::KEPT, Rm::Reg(A));
        asm.jcc(Cc::B, again);
        asm.jmp(gang);
    }
}
