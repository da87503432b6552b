//! Atomic accesses, with their orders and scopes in PTX's memory model. A sequentially consistent access is one
//! behind a `fence.sc`.

use super::Renderer;
use super::emit::{Leaf, emit};
use super::frame::Span;
use super::integer::{arithmetic, bits};
use crate::ir::{AtomicOp, MemOrder, Place, Scalar, Scope, Sync, Type};
use crate::ops::{BinaryOp, UnaryOp};

/// A scope's name.
pub(super) fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Block => "cta",
        Scope::Device => "gpu",
        Scope::System => "sys",
    }
}

impl Renderer<'_> {
    /// Fences for a sequentially consistent access; gives the order for the access itself, `sequential` if so.
    fn order(&mut self, sync: Sync, sequential: &'static str) -> &'static str {
        match sync.order {
            MemOrder::Relaxed => "relaxed",
            MemOrder::Acquire => "acquire",
            MemOrder::Release => "release",
            MemOrder::AcqRel => "acq_rel",
            MemOrder::SeqCst => {
                emit!(self, "fence.sc.{}", scope(sync.scope));
                sequential
            }
        }
    }

    pub(super) fn atomic_load(&mut self, place: &Place, s: Scalar, sync: Sync) -> Leaf {
        let Some(at) = self.location(place) else {
            return Leaf::Imm(0);
        };
        let order = self.order(sync, "acquire");
        let d = self.out.register(s);
        let (scope, space, ty) = (scope(sync.scope), at.space.name(), bits(s));
        emit!(self, "ld.{order}.{scope}.{space}.{ty} {d}, {}", at.at(0));
        d
    }

    /// Declares the register of 128 bits, through which alone four words move at once.
    fn declare_whole(&mut self) {
        const WHOLE: &str = ".reg .b128 %whole";
        if !self.variables.iter().any(|v| v == WHOLE) {
            self.variables.push(WHOLE.into());
        }
    }

    /// Reads four words at once.
    pub(super) fn load_whole(&mut self, place: &Place, ty: &Type, sync: Sync) -> Span {
        let Some(at) = self.location(place) else {
            return self.span([Leaf::Imm(0); 4]);
        };
        let (low, high) = (self.out.wide(), self.out.wide());
        let (scope, space) = (scope(sync.scope), at.space.name());
        self.declare_whole();
        emit!(self, "ld.relaxed.{scope}.{space}.b128 %whole, {}", at.at(0));
        emit!(self, "mov.b128 {{{low}, {high}}}, %whole");
        let mut leaves = Vec::with_capacity(4);
        for (i, (s, _)) in ty.leaves().into_iter().enumerate() {
            let d = self.out.register(s);
            let pair = if i < 2 { low } else { high };
            if i % 2 == 0 {
                emit!(self, "mov.b64 {{{d}, _}}, {pair}");
            } else {
                emit!(self, "mov.b64 {{_, {d}}}, {pair}");
            }
            leaves.push(d);
        }
        self.span(leaves)
    }

    /// Writes four words at once.
    pub(super) fn store_whole(&mut self, place: &Place, value: Span, sync: Sync) {
        let Some(at) = self.location(place) else {
            return;
        };
        let leaves: Vec<Leaf> = self
            .leaves_of(value)
            .into_iter()
            .map(|leaf| self.in_register(leaf, Scalar::U32))
            .collect();
        let [a, b, c, d] = leaves[..] else { return };
        let (low, high) = (self.out.wide(), self.out.wide());
        emit!(self, "mov.b64 {low}, {{{a}, {b}}}");
        emit!(self, "mov.b64 {high}, {{{c}, {d}}}");
        let (scope, space) = (scope(sync.scope), at.space.name());
        self.declare_whole();
        emit!(self, "mov.b128 %whole, {{{low}, {high}}}");
        emit!(self, "st.relaxed.{scope}.{space}.b128 {}, %whole", at.at(0));
    }

    pub(super) fn atomic_store(&mut self, place: &Place, s: Scalar, a: Leaf, sync: Sync) {
        let Some(at) = self.location(place) else {
            return;
        };
        let order = self.order(sync, "relaxed");
        let (scope, space, ty) = (scope(sync.scope), at.space.name(), bits(s));
        emit!(self, "st.{order}.{scope}.{space}.{ty} {}, {a}", at.at(0));
    }

    pub(super) fn atomic(&mut self, op: AtomicOp, place: &Place, s: Scalar, a: Leaf, sync: Sync) -> Leaf {
        let Some(at) = self.location(place) else {
            return Leaf::Imm(0);
        };
        let order = self.order(sync, "acq_rel");
        let (op, a) = match op {
            AtomicOp::Sub => (AtomicOp::Add, self.unary_negation(s, a)),
            other => (other, a),
        };
        let a = self.in_register(a, s);
        let address = at.at(0);
        let head = format!("{order}.{}.{}", scope(sync.scope), at.space.name());
        if s.is_float() && matches!(op, AtomicOp::Min | AtomicOp::Max) {
            let op = if op == AtomicOp::Min {
                BinaryOp::Min
            } else {
                BinaryOp::Max
            };
            return self.exchange_loop(op, s, a, &head, &address);
        }
        let (stem, ty) = match op {
            AtomicOp::Add | AtomicOp::Sub if s == Scalar::I64 => ("add", "u64"),
            AtomicOp::Add | AtomicOp::Sub => ("add", arithmetic(s)),
            AtomicOp::Min => ("min", arithmetic(s)),
            AtomicOp::Max => ("max", arithmetic(s)),
            AtomicOp::And => ("and", bits(s)),
            AtomicOp::Or => ("or", bits(s)),
            AtomicOp::Xor => ("xor", bits(s)),
            AtomicOp::Exchange => ("exch", bits(s)),
        };
        let d = self.out.register(s);
        emit!(self, "atom.{head}.{stem}.{ty} {d}, {address}, {a}");
        d
    }

    fn unary_negation(&mut self, s: Scalar, a: Leaf) -> Leaf {
        if s.is_float() {
            self.unary(UnaryOp::Neg, s, a)
        } else {
            // Also of an unsigned integer: the difference wraps.
            self.three(&format!("sub.{}", arithmetic(s)), s, Leaf::Imm(0), a)
        }
    }

    /// Replaces what is there by its combination with `a` until nobody was faster.
    fn exchange_loop(&mut self, op: BinaryOp, s: Scalar, a: Leaf, head: &str, address: &str) -> Leaf {
        let (again, ty) = (self.out.label(), bits(s));
        let (old, expected) = (self.out.register(s), self.out.register(s));
        let relaxed = match head.split_once('.') {
            Some((_, rest)) => format!("relaxed.{rest}"),
            None => head.into(),
        };
        emit!(self, "ld.{relaxed}.{ty} {old}, {address}");
        self.out.place(again);
        self.copy(expected, old, s);
        let new = self.binary(op, s, expected, a, s);
        emit!(self, "atom.{head}.cas.{ty} {old}, {address}, {expected}, {new}");
        let p = self.out.pred();
        emit!(self, "setp.ne.{ty} {p}, {old}, {expected}");
        emit!(self, "@{p} bra {again}");
        old
    }

    pub(super) fn compare_exchange(
        &mut self,
        place: &Place,
        s: Scalar,
        (expected, new): (Leaf, Leaf),
        sync: Sync,
    ) -> Leaf {
        let Some(at) = self.location(place) else {
            return Leaf::Imm(0);
        };
        let order = self.order(sync, "acq_rel");
        let d = self.out.register(s);
        let (scope, space, ty) = (scope(sync.scope), at.space.name(), bits(s));
        let (expected, new) = (self.in_register(expected, s), self.in_register(new, s));
        emit!(
            self,
            "atom.{order}.{scope}.{space}.cas.{ty} {d}, {}, {expected}, {new}",
            at.at(0)
        );
        d
    }
}
