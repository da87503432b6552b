//! Conversions that may fail: slices to arrays, integers to others.

use perpetua_syntax::Scalar;

use super::tree::Expr;
use super::ty::{Kind, Ty};
use super::written::Writer;
use super::{Checker, Result};

impl Checker<'_> {
    /// `<[T; N]>::try_from(slice)`: a copy, or the same behind a reference.
    pub(super) fn try_array(&mut self, value: Expr, to: &Ty, line: u32) -> Result<Expr> {
        let place = self.deref_all(value);
        let (Ty::Slice(element) | Ty::Array(element, _)) = self.types.shallow(&place.ty) else {
            let (from, to) = (self.show(&place.ty), self.show(to));
            return Err(self.error(line, format!("`{from}` does not become `{to}` by `try_into`"), ""));
        };
        let (array, shared) = match self.types.shallow(to) {
            Ty::Ref(_, target) => ((*target).clone(), true),
            own => (own, false),
        };
        let len = self.types.len_var();
        self.unify(line, &array, &Ty::Array(element, len))?;
        let len = self.len_expr(len, line);
        let place = self.borrow(place, false, line)?;
        self.written(place, None, &Writer(line).to_array(&len, shared), None, line)
    }

    /// `u8::try_from(value)` and its kin.
    pub(super) fn try_integer(&mut self, value: Expr, to: Scalar, line: u32) -> Result<Expr> {
        let value = self.deref_all(value);
        let integer = match self.types.shallow(&value.ty) {
            Ty::Scalar(from) => from.is_integer(),
            other => self.types.kind(&other) == Some(Kind::Int),
        };
        if !integer {
            let (from, to) = (self.show(&value.ty), to.name());
            return Err(self.error(
                line,
                format!("`{from}` does not become `{to}` by `try_into`"),
                "convert with `as`",
            ));
        }
        self.written(value, None, &Writer(line).to_integer(to), None, line)
    }
}
