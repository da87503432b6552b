//! Conversions: slices to arrays and integers to others, which may fail; bytes to numbers.

use perpetua_syntax as syntax;
use perpetua_syntax::{BinaryOp, GenericArg, Scalar};

use super::methods;
use super::tree::{Block, Expr, ExprKind};
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

    /// `x.first_chunk::<N>()`, `x.last_chunk::<N>()`.
    pub(super) fn end_chunk(
        &mut self,
        receiver: Expr,
        last: bool,
        generics: &[GenericArg],
        line: u32,
    ) -> Result<Expr> {
        let place = self.deref_all(receiver);
        let (Ty::Slice(element) | Ty::Array(element, _)) = self.types.shallow(&place.ty) else {
            return Err(self.error(line, "slices and arrays have chunks", ""));
        };
        let len = self.types.len_var();
        if let Some(GenericArg::Const(given)) = generics.first() {
            let given = syntax::Type::Array {
                element: Box::new(syntax::Type::Infer),
                len: Box::new(given.clone()),
            };
            let given = self.ty(&given, line)?;
            self.unify(line, &given, &Ty::Array(element, len))?;
        }
        let len = self.len_expr(len, line);
        let place = self.borrow(place, false, line)?;
        self.written(place, None, &Writer(line).end_chunk(&len, last), None, line)
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

    /// A scalar from its bytes: of an integer's the sum, each at its place.
    pub(super) fn of_bytes(&mut self, scalar: Scalar, reversed: bool, bytes: Expr, line: u32) -> Expr {
        let unsigned = methods::unsigned(scalar);
        let ty = Ty::Scalar(unsigned);
        let count = methods::num(scalar, 64).size();
        let mut before = Vec::new();
        let bytes = self.eager(bytes, &mut before, line);
        let mut sum: Option<Expr> = None;
        for i in 0..count {
            let at = if reversed { count - 1 - i } else { i };
            let index = self.make(line, Ty::USIZE, ExprKind::Int(at.into()));
            let array = Expr {
                line,
                ty: bytes.ty.clone(),
                kind: match bytes.kind {
                    ExprKind::Local(id) => ExprKind::Local(id),
                    _ => ExprKind::Zero,
                },
            };
            let byte = ExprKind::Index(Box::new(array), Box::new(index));
            let byte = self.make(line, Ty::Scalar(Scalar::U8), byte);
            let wide = self.make(line, ty.clone(), ExprKind::Cast(Box::new(byte)));
            let amount = self.make(line, Ty::U32, ExprKind::Int((8 * i).into()));
            let (wide, amount) = (Box::new(wide), Box::new(amount));
            let placed = self.make(line, ty.clone(), ExprKind::Binary(BinaryOp::Shl, wide, amount));
            sum = Some(match sum {
                None => placed,
                Some(sum) => {
                    let (sum, placed) = (Box::new(sum), Box::new(placed));
                    self.make(line, ty.clone(), ExprKind::Binary(BinaryOp::BitOr, sum, placed))
                }
            });
        }
        let sum = sum.unwrap_or_else(|| self.make(line, ty, ExprKind::Int(0)));
        let result = Ty::Scalar(scalar);
        let bits = methods::Method::Special(methods::Special::ToBits);
        let value = self.make(line, result.clone(), ExprKind::Method(bits, vec![sum]));
        let block = Block {
            stmts: before,
            value: Some(Box::new(value)),
        };
        self.make(line, result, ExprKind::Block(None, block))
    }
}
