//! Patterns of the elements of slices and arrays. What they meet stays a reference: a slice is no value, and an element is
//! looked at only where it is there.

use super::expr::binds;
use super::value::{Src, Val};
use super::{Emitter, Result};
use crate::front::rust::infer::tree::{Expr, Pat, always_matches, borrows_mut};
use crate::front::rust::infer::ty::{Len, Ty};
use crate::ir::{Scalar, Type, Value};
use crate::ops::BinaryOp;

/// The elements in front, what is between, the elements behind.
type Elements<'p> = (&'p [Pat], Option<&'p Pat>, &'p [Pat]);

impl Emitter<'_> {
    /// What a pattern meets: of a slice a reference to it, and of what the pattern changes.
    pub(super) fn matched(&mut self, e: &Expr, changed: bool) -> Result<Val> {
        match self.ty(&e.ty) {
            Ty::Slice(_) => self.src(e).map(Val::Ref),
            Ty::Ref(..) => self.expr(e),
            _ if changed => self.src(e).map(Val::Ref),
            _ => self.expr(e),
        }
    }

    /// A part of what a pattern meets; of a reference, a reference to the part.
    pub(super) fn part_met(&mut self, val: &Val, index: u32, line: u32) -> Result<Val> {
        let Val::Ref(src) = val else {
            return self.component(val, index, line);
        };
        Ok(match self.field(src.clone(), index, line)? {
            Src::Val(inner) if matches!(*inner, Val::Ref(_)) => *inner,
            src => Val::Ref(src),
        })
    }

    /// What a pattern meets, as a value of its type.
    pub(super) fn value_met(&mut self, val: &Val, ty: &Ty, line: u32) -> Result<Val> {
        match (val, ty) {
            (Val::Ref(src), ty) if !matches!(ty, Ty::Ref(..)) => self.load(src, line),
            _ => Ok(val.clone()),
        }
    }

    /// What a reference refers to, as the pattern `inner` takes it.
    pub(super) fn behind(&mut self, val: &Val, inner: &Pat, line: u32) -> Result<Val> {
        match meets_elements(inner) || borrows_mut(inner) {
            true => Ok(val.clone()),
            false => self.dereferenced(val, line),
        }
    }

    /// An element, counted from the end where `back`: then the last is 1.
    fn element_met(&mut self, val: &Val, of: Option<u64>, at: u64, back: bool, line: u32) -> Result<Val> {
        let src = match (val, of) {
            (Val::Ref(src), _) => src.clone(),
            (val, Some(n)) => return self.component(val, (if back { n - at } else { at }) as u32, line),
            (val, None) => Src::Val(Box::new(val.clone())),
        };
        let usize_scalar = self.usize_scalar();
        let mut index = self.constant(usize_scalar, at);
        if back {
            let len = self.count_met(&src, of, line)?;
            index = self.binary(BinaryOp::Sub, len, index, line)?;
        }
        self.element_there(src, index, &array_of(of), line).map(Val::Ref)
    }

    fn count_met(&mut self, src: &Src, of: Option<u64>, line: u32) -> Result<Value> {
        self.length(src, &array_of(of), line)
    }

    /// Whether what is met has as many elements, and each matches.
    pub(super) fn test_elements(
        &mut self,
        (front, rest, back): Elements<'_>,
        of: Option<u64>,
        val: &Val,
        ty: &Ty,
        line: u32,
    ) -> Result<Option<Value>> {
        let (Ty::Slice(element) | Ty::Array(element, _)) = ty else {
            return Err(self.error(line, "a pattern of elements meets what has none", ""));
        };
        let n = (front.len() + back.len()) as u64;
        let mut all = None;
        if let (None, Val::Ref(src)) = (of, val)
            && (rest.is_none() || n > 0)
        {
            let len = self.count_met(src, of, line)?;
            let usize_scalar = self.usize_scalar();
            let n = self.constant(usize_scalar, n);
            let op = if rest.is_some() {
                BinaryOp::Ge
            } else {
                BinaryOp::Eq
            };
            all = Some(self.binary(op, len, n, line)?);
        }
        for (at, back, pat) in numbered(front, back) {
            if always_matches(pat) {
                continue;
            }
            let look = |this: &mut Self| {
                let met = this.element_met(val, of, at, back, line)?;
                let met = this.dereferenced_unless(&met, pat, line)?;
                match this.test(pat, &met, element, line)? {
                    Some(test) => Ok(test),
                    None => Ok(this.constant(Scalar::Bool, 1)),
                }
            };
            all = Some(match all {
                Some(before) => self.logic_with(true, before, line, look)?,
                None => look(self)?,
            });
        }
        Ok(all)
    }

    /// An element as its pattern takes it: a name for a reference to it takes that.
    fn dereferenced_unless(&mut self, met: &Val, pat: &Pat, line: u32) -> Result<Val> {
        match pat {
            Pat::Borrow(_) => Ok(met.clone()),
            pat if borrows_mut(pat) => Ok(met.clone()),
            _ => self.dereferenced(met, line),
        }
    }

    /// Binds the names of a pattern that matches.
    pub(super) fn bind_elements(
        &mut self,
        (front, rest, back): Elements<'_>,
        of: Option<u64>,
        val: &Val,
        line: u32,
    ) -> Result<()> {
        for (at, back, pat) in numbered(front, back) {
            if !binds(pat) {
                continue;
            }
            let met = self.element_met(val, of, at, back, line)?;
            match (pat, &met) {
                // The element itself, not a copy.
                (Pat::Borrow(id) | Pat::BorrowMut(id), Val::Ref(_)) => self.bind(*id, met, line)?,
                _ => {
                    let met = self.dereferenced_unless(&met, pat, line)?;
                    self.bind_pattern(pat, met, line)?;
                }
            }
        }
        match rest {
            Some(Pat::Binding(id)) => {
                let between = self.between(front.len() as u64, back.len() as u64, of, val, line)?;
                self.bind(*id, between, line)
            }
            Some(Pat::Borrow(id)) => {
                let between = self.between(front.len() as u64, back.len() as u64, of, val, line)?;
                self.bind(*id, Val::Ref(Src::Val(Box::new(between))), line)
            }
            _ => Ok(()),
        }
    }

    /// The elements between: a part of a slice, an array of an array's.
    fn between(&mut self, front: u64, back: u64, of: Option<u64>, val: &Val, line: u32) -> Result<Val> {
        if let Some(n) = of {
            let mut values = Vec::new();
            for at in front..n - back {
                let met = self.element_met(val, of, at, false, line)?;
                let met = self.dereferenced(&met, line)?;
                values.push(self.value_of(&met, line)?);
            }
            let Some(first) = values.first() else {
                return Err(self.error(line, "a name for no elements", "write `..` without it"));
            };
            let element = self.typed(line, self.k.type_of(*first))?.clone();
            let ty = Type::Array(std::sync::Arc::new(element), values.len() as u32);
            return self.compose(ty, values, line).map(Val::Value);
        }
        let Val::Ref(src) = val else {
            return Err(self.error(line, "a pattern of a slice's elements meets a value", ""));
        };
        let len = self.count_met(src, of, line)?;
        let usize_scalar = self.usize_scalar();
        let (skipped, outside) = (
            self.constant(usize_scalar, front),
            self.constant(usize_scalar, front + back),
        );
        let len = self.binary(BinaryOp::Sub, len, outside, line)?;
        self.cut(src, skipped, len, line).map(Val::Ref)
    }
}

/// The patterns with where their elements are: from the front, or from the end.
fn numbered<'p>(front: &'p [Pat], back: &'p [Pat]) -> impl Iterator<Item = (u64, bool, &'p Pat)> {
    let behind = back.len() as u64;
    let front = (0..).zip(front).map(|(at, pat)| (at, false, pat));
    front.chain((0..).zip(back).map(move |(i, pat)| (behind - i, true, pat)))
}

/// The type of an array of as many elements; of a slice any other.
fn array_of(of: Option<u64>) -> Ty {
    match of {
        Some(n) => Ty::Array(std::rc::Rc::new(Ty::unit()), Len::Known(n)),
        None => Ty::unit(),
    }
}

/// Whether a pattern is one of elements.
fn meets_elements(pat: &Pat) -> bool {
    match pat {
        Pat::Slice { .. } => true,
        Pat::At(_, inner) => meets_elements(inner),
        Pat::Or(cases) => cases.iter().any(meets_elements),
        _ => false,
    }
}
