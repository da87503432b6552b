//! Rows in segments: runs of gangs for which each comparison of an index that ascends along the row with a number that the row shares has
//! one result. So such comparisons, and what is made of them, are computed once a segment; and where both ends of a segment are in
//! range its gangs need no checks. Knows accesses by their indices alone.

use super::hoist::{BLOCK, SEGMENT};
use super::*;
use crate::interp::code::tree::walk;
use crate::interp::program::{Length, SharedPlace};
use crate::ir::Axis;

/// What is known of the row that gangs are in.
#[derive(Default)]
pub(super) struct Row {
    /// Values of 64 bits that are sums, with the level from which on the gangs' common part is known.
    rooted: HashMap<V, (Rooted, usize)>,
    /// Sums and differences that exist.
    sums: Vec<((Option<R>, G, GOp), R)>,
    /// Addresses that exist: of a region, at a sum times a size.
    bases: Vec<((u32, Option<R>, u32), R)>,
    /// What holds where the text is; `None` is something else.
    pub(super) conditions: Vec<Option<(V, bool)>>,
    proofs: Vec<Proof>,
    /// Comparisons that bound segments, with their results.
    bounds: Vec<(Below, V)>,
}

/// Indices that are compared with their limit once a segment, where lanes come to them: one, and others greater by constants.
#[derive(PartialEq)]
struct Proof {
    index: Rooted,
    /// By how much at most.
    more: i32,
    limit: i32,
    conditions: Vec<(V, bool)>,
}

/// Beyond this constants are numbers like others.
const FAR: i32 = 1 << 20;

impl Lower<'_> {
    fn rooted(&self, v: V) -> Option<(Rooted, usize)> {
        let first = Rooted {
            lane: None,
            sum: None,
            constant: 0,
        };
        match self.tree.values[v.index()].fill {
            Some(fill) => match self.program.fills.get(fill as usize) {
                Some((_, Fill::Builtin(Builtin::ThreadIdx(Axis::X)))) if self.out.by_rows => {
                    Some((first, LAUNCH))
                }
                _ => None,
            },
            None => self.row.rooted.get(&v).copied(),
        }
    }

    /// Notes what an operation computes, where that is a sum; then there is nothing to do.
    pub(super) fn root(&mut self, act: &Act, outs: &[V]) -> Result<bool, Refusal> {
        let [out] = outs else { return Ok(false) };
        let info = &self.tree.values[out.index()];
        if !self.out.by_rows
            || info.variable
            || info.array.is_some()
            || self.spreads.kind(*out) != Kind::Affine(1)
        {
            return Ok(false);
        }
        let rooted = match act {
            Act::Move(a) => self.rooted(*a),
            Act::Cast(_, _, a) if self.spreads.is_small(*a) => self.rooted(*a),
            Act::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), s, a, b) if s.size() == 8 => {
                match (self.rooted(*a), self.rooted(*b)) {
                    (Some(sum), None) => self.plus(sum, *b, *op)?,
                    (None, Some(sum)) if *op == BinaryOp::Add => self.plus(sum, *a, *op)?,
                    _ => None,
                }
            }
            _ => None,
        };
        let Some(rooted) = rooted else { return Ok(false) };
        self.row.rooted.insert(*out, rooted);
        self.levels[out.index()] = Some(GANG);
        Ok(true)
    }

    fn plus(
        &mut self,
        (index, level): (Rooted, usize),
        v: V,
        op: BinaryOp,
    ) -> Result<Option<(Rooted, usize)>, Refusal> {
        if self.spreads.kind(v) != Kind::Uniform || self.level(v) > BLOCK {
            return Ok(None);
        }
        let adds = op == BinaryOp::Add;
        if let Some(bits) = self.spreads.constant(v) {
            let by = i32::try_from(bits as i64).ok();
            let sum = by.and_then(|by| match adds {
                true => index.constant.checked_add(by),
                false => index.constant.checked_sub(by),
            });
            if let Some(constant) = sum.filter(|sum| sum.abs() < FAR) {
                return Ok(Some((Rooted { constant, ..index }, level)));
            }
        }
        let level = level.max(self.level(v));
        let g = self.g(v)?;
        if let (None, true, G::R(r)) = (index.sum, adds, g) {
            let sum = Some(r);
            return Ok(Some((Rooted { sum, ..index }, level)));
        }
        let op = if adds { GOp::Add } else { GOp::Sub };
        let sum = self.shared(level, (index.sum, g, op));
        let sum = Some(sum);
        Ok(Some((Rooted { sum, ..index }, level)))
    }

    /// A sum or difference that all gangs of a row share.
    fn shared(&mut self, level: usize, key: (Option<R>, G, GOp)) -> R {
        if let Some((_, r)) = self.row.sums.iter().find(|(known, _)| *known == key) {
            return *r;
        }
        let (d, (a, b, op)) = (self.general(), key);
        let a = a.map_or(G::Imm(0), G::R);
        self.sections[level].code.push(I::GBin { op, w: true, d, a, b });
        self.row.sums.push((key, d));
        d
    }

    /// Where a sum lies that is wanted as a number.
    pub(super) fn rooted_place(&mut self, v: V) -> Option<Place> {
        let (index, _) = self.rooted(v)?;
        let lane = self.given(GANG, Origin::Gang(GANG_X));
        let mut sum = lane;
        let parts = [
            index.sum.map(G::R),
            (index.constant != 0).then_some(G::Imm(index.constant)),
        ];
        for b in parts.into_iter().flatten() {
            let (op, w, d, a) = (GOp::Add, true, self.general(), G::R(sum));
            self.sections[GANG].given.push(I::GBin { op, w, d, a, b });
            sum = d;
        }
        Some(Place::Affine(G::R(sum), 1))
    }

    /// Lowers a comparison that has one result in a segment; whether it is one.
    pub(super) fn decide(&mut self, act: &Act, outs: &[V]) -> Result<bool, Refusal> {
        let (Act::Binary(op, s, a, b), [out]) = (act, outs) else {
            return Ok(false);
        };
        let (equal, not) = match op {
            BinaryOp::Lt => (false, false),
            BinaryOp::Ge => (false, true),
            BinaryOp::Eq => (true, false),
            BinaryOp::Ne => (true, true),
            _ => return Ok(false),
        };
        let Some((index, _)) = self.rooted(*a) else {
            return Ok(false);
        };
        let info = &self.tree.values[out.index()];
        let known = self.spreads.kind(*b) == Kind::Uniform && self.level(*b) <= BLOCK;
        if info.variable
            || info.array.is_some()
            || !known
            || !s.is_int()
            || !equal && !self.spreads.is_small(*a)
        {
            return Ok(false);
        }
        let text = std::mem::replace(&mut self.at, SEGMENT);
        let mut base = G::R(self.given(SEGMENT, Origin::Gang(GANG_X)));
        let parts = [
            index.sum.map(G::R),
            (index.constant != 0).then_some(G::Imm(index.constant)),
        ];
        for b in parts.into_iter().flatten() {
            let (op, w, d, a) = (GOp::Add, true, self.general(), base);
            self.put(I::GBin { op, w, d, a, b });
            base = G::R(d);
        }
        let (signed, w) = (s.is_signed_int(), !equal || s.size() == 8);
        let mut n = self.g(*b)?;
        if s.size() == 4 && w {
            let d = self.general();
            self.put(I::GExtend { signed, d, a: n });
            n = G::R(d);
        }
        let below = Below {
            signed,
            base,
            n,
            equal,
            w,
            not,
        };
        let lazy = false;
        let put = self.mask_for(*out, |lower, d| lower.put(I::MBelow { below, d, lazy }));
        self.row.bounds.push((below, *out));
        self.at = text;
        put?;
        self.levels[out.index()] = Some(SEGMENT);
        Ok(true)
    }

    /// What is to hold for lanes to come to this point of the text; `None` if segments do not tell.
    fn conditions(&self) -> Option<Vec<(V, bool)>> {
        let settled = |(v, _): &(V, bool)| match self.spreads.kind(*v) {
            Kind::Uniform => self.level(*v) <= BLOCK,
            _ => {
                self.tree.values[v.index()].bool
                    && !self.tree.values[v.index()].variable
                    && self.level(*v) <= SEGMENT
            }
        };
        self.row.conditions.iter().map(|c| c.filter(settled)).collect()
    }

    /// The address of an access that needs no check where its segment's ends are in range, and its index.
    pub(super) fn proven(
        &mut self,
        place: &SharedPlace,
        shape: Shape,
        index: &[V],
    ) -> Result<Option<(Proven, Operand)>, Refusal> {
        let ([step], [v]) = (place.steps.as_slice(), index) else {
            return Ok(None);
        };
        let usual = self.out.by_rows
            && self.innermost() == GANG
            && step.length == Length::Region
            && step.ty.size() == 8
            && matches!(step.stride, 1 | 2 | 4 | 8);
        let Some(conditions) = self.conditions().filter(|_| usual) else {
            return Ok(None);
        };
        let run = matches!(shape, Shape::Run(_));
        let (mut rooted, level) = match shape {
            Shape::Run(_) => match self.rooted(*v) {
                Some(found) => found,
                None => return Ok(None),
            },
            Shape::One if self.spreads.kind(*v) == Kind::Uniform && self.level(*v) <= BLOCK => {
                let first = Rooted {
                    lane: None,
                    sum: None,
                    constant: 0,
                };
                match self.plus((first, LAUNCH), *v, BinaryOp::Add)? {
                    Some(found) => found,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let view = VIEWS + VIEW_BYTES * place.region as usize;
        let limit = (view + if run { 16 } else { 8 }) as i32;
        let operand = match run {
            true => {
                let lane = Some(self.given(GANG, Origin::Gang(GANG_X)));
                Operand::Rooted(Rooted { lane, ..rooted })
            }
            false => self.operand(*v)?,
        };
        let base = self.base(place.region, rooted.sum, step.stride, level);
        rooted.lane = run.then(|| self.given(SEGMENT, Origin::Gang(GANG_X)));
        let same = |p: &&mut Proof| {
            let constant = rooted.constant;
            (Rooted { constant, ..p.index }, p.limit) == (rooted, limit) && p.conditions == conditions
        };
        match self.row.proofs.iter_mut().find(same) {
            Some(known) => {
                let least = known.index.constant.min(rooted.constant);
                known.more = (known.index.constant + known.more).max(rooted.constant) - least;
                known.index.constant = least;
            }
            None => self.row.proofs.push(Proof {
                index: rooted,
                more: 0,
                limit,
                conditions,
            }),
        }
        let lane = run.then(|| self.given(GANG, Origin::Gang(GANG_X)));
        let proven = Proven {
            base,
            lane,
            scale: step.stride.trailing_zeros() as u8,
            disp: rooted.constant * step.stride as i32,
        };
        Ok(Some((proven, operand)))
    }

    /// The address of a region's element.
    fn base(&mut self, region: u32, sum: Option<R>, stride: u32, level: usize) -> R {
        let key = (region, sum, stride);
        if let Some((_, r)) = self.row.bases.iter().find(|(known, _)| *known == key) {
            return *r;
        }
        let view = (VIEWS + VIEW_BYTES * region as usize) as i32;
        let base = match sum {
            None => self.given(LAUNCH, Origin::State(view)),
            Some(sum) => {
                let (offset, d) = (self.general(), self.general());
                let code = &mut self.sections[level].code;
                let (w, a, b) = (true, G::R(sum), G::Imm(stride as i32));
                let op = GOp::Mul;
                code.push(I::GBin {
                    op,
                    w,
                    d: offset,
                    a,
                    b,
                });
                let (op, a, b) = (GOp::Add, G::R(offset), G::State(view));
                code.push(I::GBin { op, w, d, a, b });
                d
            }
        };
        self.row.bases.push((key, base));
        base
    }

    /// Ends the segment before the gang for which a comparison has another result, unless what it is part of does not depend on it: a
    /// conjunction of which something else is false, or a disjunction of which something is true.
    fn bound(&mut self) -> Result<(), Refusal> {
        let bounds = std::mem::take(&mut self.row.bounds);
        if bounds.is_empty() {
            return Ok(());
        }
        let mut users: HashMap<V, (BinaryOp, V, V)> = HashMap::new();
        walk(&self.tree.nodes, &mut |node| {
            if let Node::Op { act, outs, .. } = node
                && let (Act::Binary(op @ (BinaryOp::And | BinaryOp::Or), Scalar::Bool, a, b), [out]) =
                    (act, outs.as_slice())
            {
                users.insert(*a, (*op, *b, *out));
                users.insert(*b, (*op, *a, *out));
            }
        });
        for (below, v) in bounds {
            let (past, mut part, mut whole) = (self.label(), v, None);
            while let Some((op, other, out)) = users.get(&part).copied()
                && self.reads[part.index()] == 1
                && *whole.get_or_insert(op) == op
            {
                if self.spreads.kind(other) == Kind::Uniform && self.level(other) <= BLOCK {
                    let (a, to) = (self.g(other)?, past);
                    let cc = if op == BinaryOp::And { Cc::E } else { Cc::Ne };
                    self.put(I::GJump { cc, a, to });
                }
                part = out;
            }
            self.put(I::Bound { below });
            self.put(I::Label(past));
        }
        Ok(())
    }

    /// Compares the indices of accesses, at both ends of a segment, where there are lanes that come to them.
    pub(super) fn prove(&mut self) -> Result<(), Refusal> {
        self.at = SEGMENT;
        self.bound()?;
        let mut proofs = std::mem::take(&mut self.row.proofs);
        if proofs.is_empty() {
            self.at = GANG;
            return Ok(());
        }
        self.put(I::Ends);
        while let Some(first) = proofs.first() {
            let conditions = first.conditions.clone();
            let (now, later) = proofs
                .into_iter()
                .partition(|p: &Proof| p.conditions == conditions);
            let (now, to): (Vec<Proof>, Label) = (now, self.label());
            proofs = later;
            for (v, is) in conditions {
                let jump = match (self.place(v), is) {
                    (Place::Mask(m), true) => I::MJumpNone { m, to },
                    (Place::Mask(m), false) => I::MJumpAll { m, to },
                    _ => {
                        let (a, cc) = (self.g(v)?, if is { Cc::E } else { Cc::Ne });
                        I::GJump { cc, a, to }
                    }
                };
                self.put(jump);
            }
            for Proof {
                index, more, limit, ..
            } in now
            {
                self.put(I::Prove { index, more, limit });
            }
            self.put(I::Label(to));
        }
        self.at = GANG;
        Ok(())
    }
}
