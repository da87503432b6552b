//! Operations that may fault, and the indices of places: which check stands before each. Knows nothing of control flow.

use super::super::found::{Check, Checked, Proof};
use super::exit::Exit;
use super::{Here, Rewriter, push};
use crate::ir::{
    Base, Block, Effect, FaultKind, Inst, Local, LocalId, Op, ParamKind, Place, Scalar, Step, Stmt, Type,
    Value,
};
use crate::ops::{BinaryOp, TernaryOp};

/// The length that an index is checked against.
enum Length {
    Of(Base),
    Fixed(u32),
}

impl Rewriter<'_> {
    /// Notes a check that is made, or why it need not be.
    fn note(&mut self, what: Checked, subject: &str, proof: Option<Proof>, here: Here) {
        self.found.checks.push(Check {
            line: here.line,
            statement: here.at,
            what,
            subject: subject.to_owned(),
            proof,
        });
    }

    pub(super) fn operation(&mut self, v: Value, op: &Op, here: Here, out: &mut Vec<Stmt>) {
        let line = here.line;
        match op {
            Op::Load(place, _) => {
                let bad = self.place(place, Checked::Load, here, out);
                match bad {
                    Some(bad) => self.guarded(v, op, bad, here, out),
                    None => push(out, line, Inst::Let(v, op.clone())),
                }
                match bad {
                    Some(_) => self.known.define_opaque(v, &self.values),
                    None => self.known.define(v, op, &self.values),
                }
            }
            Op::Atomic(_, place, ..) | Op::CompareExchange { place, .. } => {
                self.place(place, Checked::Atomic, here, out);
                if matches!(here.exit, Exit::Walk) && self.maybe_dead {
                    let dead = self.dead(line, out);
                    self.guarded(v, op, dead, here, out);
                } else {
                    push(out, line, Inst::Let(v, op.clone()));
                }
                self.known.define_opaque(v, &self.values);
            }
            Op::Binary(kind @ (BinaryOp::Div | BinaryOp::Rem), a, b) => {
                match self.scalar(*a).filter(|s| s.is_int() && self.checked) {
                    Some(s) => self.division(v, *kind, s, *a, *b, here, out),
                    None => {
                        push(out, line, Inst::Let(v, op.clone()));
                        self.known.define(v, op, &self.values);
                    }
                }
            }
            Op::Call(f, _) => {
                push(out, line, Inst::Let(v, op.clone()));
                self.known.define_opaque(v, &self.values);
                if self.faulting.get(*f as usize).copied().unwrap_or(false) {
                    let dead = self.dead(line, out);
                    let mut inner = Vec::new();
                    self.leave(here, &mut inner);
                    push(out, line, Inst::If(dead, Block(inner), Block::default()));
                }
            }
            _ => {
                push(out, line, Inst::Let(v, op.clone()));
                self.known.define(v, op, &self.values);
            }
        }
    }

    /// Appends `v = op`, or zero where `bad` holds.
    fn guarded(&mut self, v: Value, op: &Op, bad: Value, here: Here, out: &mut Vec<Stmt>) {
        let ty = self.values.get(v.0 as usize).cloned().unwrap_or(Type::BOOL);
        let line = here.line;
        self.locals.push(Local {
            name: "guarded".into(),
            ty: ty.clone(),
        });
        let slot = Place::local(LocalId(self.locals.len() as u32 - 1));
        let zero = self.let_(line, Op::Zero(ty.clone()), ty.clone(), out);
        push(out, line, Inst::Do(Effect::Store(slot.clone(), zero, None)));
        let mut inner = Vec::new();
        let got = self.let_(line, op.clone(), ty, &mut inner);
        push(&mut inner, line, Inst::Do(Effect::Store(slot.clone(), got, None)));
        push(out, line, Inst::If(bad, Block::default(), Block(inner)));
        push(out, line, Inst::Let(v, Op::Load(slot, None)));
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one division and where it stands"
    )]
    fn division(
        &mut self,
        v: Value,
        kind: BinaryOp,
        s: Scalar,
        a: Value,
        b: Value,
        here: Here,
        out: &mut Vec<Stmt>,
    ) {
        let line = here.line;
        let subject = if kind == BinaryOp::Div {
            "division"
        } else {
            "remainder"
        };
        let divisor = self.known.of(b);
        let mut bad = None;
        let proof = self.known.non_zero(divisor);
        self.note(Checked::Divisor, subject, proof, here);
        if proof.is_none() {
            let zero = self.constant(line, s, 0, out);
            let is_zero = self.compare(line, BinaryOp::Eq, b, zero, out);
            self.site(FaultKind::DivisionByZero, subject, &[a], here);
            let fault = Effect::fault(FaultKind::DivisionByZero, vec![a]);
            bad = self.fault(is_zero, fault, &[b], here, out);
            if bad.is_none() {
                self.known.learn_non_zero(divisor, line);
            }
        }
        let dividend = self.known.of(a);
        let constant = self.known.constant(b);
        let may_overflow = s.is_signed_int()
            && constant.is_none_or(|c| c == -1)
            && !self.known.is_non_negative(divisor)
            && !self.known.is_non_negative(dividend);
        if s.is_signed_int() {
            let proof = match constant {
                Some(c) if c != -1 => Proof::Constant,
                _ => Proof::NotNegative,
            };
            self.note(Checked::Overflow, subject, (!may_overflow).then_some(proof), here);
        }
        if may_overflow {
            let least = self.constant(line, s, 1 << (s.bits() - 1), out);
            let mut overflows = self.compare(line, BinaryOp::Eq, a, least, out);
            if constant.is_none() {
                let minus_one = self.constant(line, s, u64::MAX >> (64 - s.bits()), out);
                let by_minus_one = self.compare(line, BinaryOp::Eq, b, minus_one, out);
                overflows = self.compare(line, BinaryOp::And, overflows, by_minus_one, out);
            }
            self.site(FaultKind::DivisionOverflow, subject, &[a, b], here);
            let fault = Effect::fault(FaultKind::DivisionOverflow, vec![a, b]);
            let overflow = self.fault(overflows, fault, &[a, b], here, out);
            bad = self.either(bad, overflow, line, out);
        }
        match bad {
            Some(bad) => {
                let one = self.constant(line, s, 1, out);
                let select = Op::Ternary(TernaryOp::Select, bad, one, b);
                let safe = self.let_(line, select, s.into(), out);
                push(out, line, Inst::Let(v, Op::Binary(kind, a, safe)));
                self.known.define_opaque(v, &self.values);
            }
            None => {
                let op = Op::Binary(kind, a, b);
                push(out, line, Inst::Let(v, op.clone()));
                self.known.define(v, &op, &self.values);
            }
        }
    }

    fn either(
        &mut self,
        a: Option<Value>,
        b: Option<Value>,
        line: u32,
        out: &mut Vec<Stmt>,
    ) -> Option<Value> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.compare(line, BinaryOp::Or, a, b, out)),
            (a, b) => a.or(b),
        }
    }

    /// Checks the indices of a place. Where the lane walks on: the value that says whether one is out of bounds.
    pub(super) fn place(
        &mut self,
        place: &Place,
        what: Checked,
        here: Here,
        out: &mut Vec<Stmt>,
    ) -> Option<Value> {
        let mut bad = None;
        for (index, length) in self.indices(place) {
            let one = self.index((place.base, what), index, length, here, out);
            bad = self.either(bad, one, here.line, out);
        }
        bad
    }

    fn index(
        &mut self,
        (base, what): (Base, Checked),
        index: Value,
        length: Length,
        here: Here,
        out: &mut Vec<Stmt>,
    ) -> Option<Value> {
        if !self.checked {
            return None;
        }
        let line = here.line;
        let number = self.known.of(index);
        let limit = match length {
            Length::Of(base) => self.known.len(base),
            Length::Fixed(n) => self.known.int(n.into()),
        };
        let subject = self.subject(base);
        let made = self
            .made
            .iter()
            .find(|(pair, ..)| *pair == (number, limit))
            .copied();
        let proof = self.known.in_bounds(number, limit);
        let earlier = made.map(|(.., line)| Proof::Checked(line));
        self.note(what, &subject, proof.or(earlier), here);
        if proof.is_some() {
            return None;
        }
        if let Some((_, bad, _)) = made {
            // Where dead lanes do not come, the earlier check has passed.
            let walks = matches!(here.exit, Exit::Walk);
            self.relied |= !walks;
            return walks.then_some(bad);
        }
        let from = self.scalar(index)?;
        // Sign extension turns a negative index into one beyond every length.
        let wide = if from.bits() == 64 || matches!(length, Length::Of(_)) && self.kernel.pointer_width == 64
        {
            Scalar::U64
        } else {
            Scalar::U32
        };
        let widened = if from == wide {
            index
        } else {
            self.let_(line, Op::Cast(wide, index), wide.into(), out)
        };
        let len = match length {
            Length::Of(base) => self.let_(line, Op::Len(base, wide), wide.into(), out),
            Length::Fixed(n) => self.constant(line, wide, n.into(), out),
        };
        let beyond = self.compare(line, BinaryOp::Ge, widened, len, out);
        self.site(FaultKind::IndexOutOfBounds, &subject, &[index, len], here);
        let fault = Effect::fault(FaultKind::IndexOutOfBounds, vec![index, len]);
        let bad = self.fault(beyond, fault, &[index], here, out);
        match bad {
            Some(bad) => self.made.push(((number, limit), bad, line)),
            None => self.known.learn_in_bounds(number, limit, line),
        }
        bad
    }

    /// The indices of a place and the lengths that they must be below.
    fn indices(&self, place: &Place) -> Vec<(Value, Length)> {
        let mut found = Vec::new();
        let mut steps = place.path.iter();
        let mut first = |length: Length, found: &mut Vec<(Value, Length)>| {
            if let Some(Step::Index(v)) = steps.next() {
                found.push((*v, length));
            }
        };
        let mut ty = match place.base {
            Base::Local(id) => match self.locals.get(id.0 as usize) {
                Some(local) => local.ty.clone(),
                None => return found,
            },
            Base::Shared(i) => match self.kernel.shared.get(i as usize) {
                Some(var) => {
                    if var.dynamic {
                        first(Length::Of(place.base), &mut found);
                    }
                    var.ty.clone()
                }
                None => return found,
            },
            Base::Buffer(i) => match self.kernel.params.get(i as usize).map(|p| &p.kind) {
                Some(ParamKind::Buffer { element, .. }) => {
                    first(Length::Of(place.base), &mut found);
                    element.clone()
                }
                _ => return found,
            },
            Base::Constant(i) => match self.kernel.constants.get(i as usize) {
                Some(table) => {
                    first(Length::Fixed(table.data.len() as u32), &mut found);
                    table.element.into()
                }
                None => return found,
            },
        };
        for step in steps {
            let next = match (step, &ty) {
                (Step::Index(v), Type::Array(element, n)) => {
                    found.push((*v, Length::Fixed(*n)));
                    Some((**element).clone())
                }
                (Step::Index(_), _) => None,
                (Step::Field(i), other) => other.component(*i),
            };
            match next {
                Some(next) => ty = next,
                None => break,
            }
        }
        found
    }

    fn subject(&self, base: Base) -> String {
        match base {
            Base::Local(id) => self.locals.get(id.0 as usize).map(|l| &l.name),
            Base::Shared(i) => self.kernel.shared.get(i as usize).map(|s| &s.name),
            Base::Buffer(i) => self.kernel.params.get(i as usize).map(|p| &p.name),
            Base::Constant(i) => self.kernel.constants.get(i as usize).map(|c| &c.name),
        }
        .cloned()
        .unwrap_or_default()
    }
}
