//! Arrays, structs, and the memory that they fill.

use super::value::{Src, Val};
use super::{Emitter, Result};
use crate::front::rust::infer::tree::Expr;
use crate::front::rust::infer::ty::{Len, Ty};
use crate::ir::{Op, Place, Scalar, Step, Type, Value};

/// Elements up to which a repeated value is composed rather than stored by a loop.
pub(super) const COMPOSED_ELEMENTS: u64 = 16;

impl Emitter<'_> {
    pub(super) fn array_expr(&mut self, elements: &[Expr], e: &Expr) -> Result<Value> {
        let parts = elements
            .iter()
            .map(|e| self.value(e))
            .collect::<Result<Vec<_>>>()?;
        self.at(e.line);
        let ty = self.ir_type(&e.ty, e.line)?;
        self.compose(ty, parts, e.line)
    }

    /// How many elements a repeated value has.
    pub(super) fn repeats(&self, len: Len, line: u32) -> Result<u64> {
        match self.scope.f.types.len(len) {
            Len::Known(n) => Ok(n),
            Len::Var(_) => Err(self.error(
                line,
                "how many elements the array has is not known",
                "give the type: `let a: [f32; 4] = …`",
            )),
        }
    }

    pub(super) fn repeat_expr(&mut self, value: &Expr, n: u64, e: &Expr) -> Result<Val> {
        let value = self.value(value)?;
        self.at(e.line);
        if n <= COMPOSED_ELEMENTS || self.known(value) == Some(0) {
            return self.repeat(value, e);
        }
        let place = self.filled(value, e)?;
        self.load(&Src::Place(place), e.line)
    }

    /// Zeros of a type.
    pub(super) fn zero_expr(&mut self, e: &Expr) -> Result<Val> {
        let ty = self.ty(&e.ty);
        self.zero_val(&ty, e.line)
    }

    fn zero_val(&mut self, ty: &Ty, line: u32) -> Result<Val> {
        match ty {
            Ty::Tuple(elements) => elements
                .iter()
                .map(|element| self.zero_val(element, line))
                .collect::<Result<_>>()
                .map(Val::Tuple),
            // Nobody looks at it.
            Ty::Ref(_, target) if matches!(**target, Ty::Slice(_)) => {
                Ok(Val::Ref(Src::Val(Box::new(Val::unit()))))
            }
            Ty::Ref(_, target) => {
                let target = self.zero_val(target, line)?;
                Ok(Val::Ref(Src::Val(Box::new(target))))
            }
            ty => {
                let ty = self.ir_type(ty, line)?;
                let done = self.k.op(Op::Zero(ty));
                Ok(Val::Value(self.typed(line, done)?))
            }
        }
    }

    pub(super) fn len_expr(&mut self, place: &Expr, line: u32) -> Result<Value> {
        let src = self.src(place)?;
        self.at(line);
        let ty = self.ty(&place.ty);
        self.length(&src, &ty, line)
    }

    /// An aggregate from its parts; of zeros alone it is a zero.
    pub(super) fn compose(&mut self, ty: Type, parts: Vec<Value>, line: u32) -> Result<Value> {
        let zero = !parts.is_empty() && parts.iter().all(|p| self.known(*p) == Some(0));
        let done = self.k.op(if zero {
            Op::Zero(ty)
        } else {
            Op::Compose(ty, parts)
        });
        self.typed(line, done)
    }

    /// An array of one value, as a value.
    pub(super) fn repeat(&mut self, value: Value, e: &Expr) -> Result<Val> {
        let ty = self.ir_type(&e.ty, e.line)?;
        if self.known(value) == Some(0) {
            let done = self.k.op(Op::Zero(ty));
            return Ok(Val::Value(self.typed(e.line, done)?));
        }
        let n = ty.component_count() as usize;
        Ok(Val::Value(self.compose(ty, vec![value; n], e.line)?))
    }

    /// A new variable of an array type, each element the value.
    pub(super) fn filled(&mut self, value: Value, e: &Expr) -> Result<Place> {
        let ty = self.ir_type(&e.ty, e.line)?;
        let n = u64::from(ty.component_count());
        let place = Place::local(self.k.local("filled", ty));
        self.zero(&place, e.line)?;
        self.fill(&place, n, value, e.line)?;
        Ok(place)
    }

    /// Stores zero in the whole of a variable: its parts may only be stored to after that.
    pub(super) fn zero(&mut self, place: &Place, line: u32) -> Result<()> {
        let ty = self.typed(line, self.k.place_type(place))?;
        let done = self.k.op(Op::Zero(ty));
        let zero = self.typed(line, done)?;
        self.store(place, zero, line)
    }

    /// Stores the value in each of an array's elements.
    pub(super) fn fill(&mut self, array: &Place, n: u64, value: Value, line: u32) -> Result<()> {
        let zero = self.constant(Scalar::U32, 0);
        let end = self.constant(Scalar::U32, n);
        self.counted(zero, end, line, |this, i| {
            this.store(&array.clone().step(Step::Index(i)), value, line)
        })
    }

    pub(super) fn struct_expr(
        &mut self,
        fields: &[(u32, Expr)],
        base: Option<&Expr>,
        e: &Expr,
    ) -> Result<Value> {
        let ty = self.ir_type(&e.ty, e.line)?;
        let mut given = Vec::with_capacity(fields.len());
        for (index, field) in fields {
            given.push((*index, self.value(field)?));
        }
        let base = match base {
            Some(base) => Some(self.expr(base)?),
            None => None,
        };
        self.at(e.line);
        let mut parts = Vec::new();
        for i in 0..ty.component_count() {
            let part = match (given.iter().find(|(index, _)| *index == i), &base) {
                (Some((_, value)), _) => *value,
                (None, Some(base)) => {
                    let part = self.component(base, i, e.line)?;
                    self.value_of(&part, e.line)?
                }
                (None, None) => return Err(self.error(e.line, "a field has no value", "")),
            };
            parts.push(part);
        }
        self.compose(ty, parts, e.line)
    }

    pub(super) fn swap(&mut self, place: &Expr, a: &Expr, b: &Expr, line: u32) -> Result<()> {
        let (array, ty) = (self.src(place)?, self.ty(&place.ty));
        let (a, b) = (self.value(a)?, self.value(b)?);
        self.at(line);
        let a = self.element(array.clone(), a, &ty, line)?;
        let b = self.element(array, b, &ty, line)?;
        let (x, y) = (self.load(&a, line)?, self.load(&b, line)?);
        let (x, y) = (self.value_of(&x, line)?, self.value_of(&y, line)?);
        self.store_at(&a, y, line)?;
        self.store_at(&b, x, line)
    }

    pub(super) fn fill_expr(&mut self, place: &Expr, value: &Expr, line: u32) -> Result<()> {
        let src = self.src(place)?;
        let value = self.value(value)?;
        self.at(line);
        let ty = self.ty(&place.ty);
        let end = self.length(&src, &ty, line)?;
        if !matches!(src, Src::Place(_) | Src::Part(_) | Src::OneOf(..)) {
            return Err(self.error(line, "`fill` works on memory", ""));
        }
        let s = self.num_of(end, line)?;
        let zero = self.constant(s, 0);
        self.counted(zero, end, line, |this, i| {
            let at = this.element_there(src.clone(), i, &ty, line)?;
            this.store_at(&at, value, line)
        })
    }
}
