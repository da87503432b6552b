//! Assignments, printing, panics, and `unreachable!()`.

use perpetua_syntax::{BinaryOp as SyntaxOp, PrintNotation, PrintPiece as SyntaxPiece};

use super::value::{Binding, Src};
use super::{Emitter, Result};
use crate::front::rust::infer::tree::{Expr, ExprKind};
use crate::front::rust::infer::ty::{Ty, show};
use crate::ir::{Effect, FaultKind, PrintPiece, Value};

impl Emitter<'_> {
    pub(super) fn assign(&mut self, place: &Expr, value: &Expr, line: u32) -> Result<()> {
        if self.ty(&place.ty).is_unit() {
            self.expr(value)?;
            return Ok(());
        }
        if let ExprKind::Local(id) = &place.kind
            && let Some(Binding::Kept(slot)) = self.scope.bindings.get(id.0 as usize)
        {
            let slot = slot.clone();
            let val = self.expr(value)?;
            self.at(line);
            return self.put(&slot, &val, line);
        }
        self.not_kept(place)?;
        let value = self.value(value)?;
        let place = self.place(place)?;
        self.at(line);
        self.store(&place, value, line)
    }

    pub(super) fn compound_assign(
        &mut self,
        op: SyntaxOp,
        place: &Expr,
        value: &Expr,
        line: u32,
    ) -> Result<()> {
        // Of scalars, Rust computes the right side first.
        let value = self.value(value)?;
        self.not_kept(place)?;
        let place = self.place(place)?;
        self.at(line);
        let old = self.load(&Src::Place(place.clone()), line)?;
        let old = self.value_of(&old, line)?;
        let new = self.operator(op, old, value, line)?;
        self.store(&place, new, line)
    }

    pub(super) fn unreachable(&mut self, line: u32) -> Result<()> {
        let done = self.k.effect(Effect::Fault(FaultKind::Unreachable, Vec::new()));
        self.typed(line, done)
    }

    /// What prints, or panics with, a text.
    pub(super) fn formatted(
        &mut self,
        pieces: &[SyntaxPiece],
        args: &[Expr],
        line: u32,
        effect: impl FnOnce(Vec<PrintPiece>, Vec<Value>) -> Effect,
    ) -> Result<()> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            let ty = self.ty(&arg.ty);
            if !matches!(ty, Ty::Scalar(_)) {
                return Err(self.error(
                    arg.line,
                    format!("`{}` is printed", show(&ty)),
                    "print its scalars one by one",
                ));
            }
            values.push((self.value(arg)?, ty));
        }
        self.at(line);
        let (mut out, mut printed) = (Vec::new(), Vec::new());
        for piece in pieces {
            match piece {
                SyntaxPiece::Text(text) => out.push(PrintPiece::Text(text.clone())),
                SyntaxPiece::Arg { index, format } => {
                    let Some((value, ty)) = values.get(*index as usize) else {
                        return Err(self.error(line, "the format names an argument that is not there", ""));
                    };
                    let fits = match (format.notation, ty) {
                        (PrintNotation::LowerHex | PrintNotation::UpperHex, Ty::Scalar(s)) => s.is_integer(),
                        (PrintNotation::LowerExp, ty) => *ty != Ty::Scalar(perpetua_syntax::Scalar::Bool),
                        _ => true,
                    };
                    if !fits {
                        return Err(self.error(
                            line,
                            format!("`{}` is printed with `{{:{format}}}`", show(ty)),
                            "write `{}`, or print its bits as an integer",
                        ));
                    }
                    out.push(PrintPiece::Arg(*format));
                    printed.push(*value);
                }
            }
        }
        let done = self.k.effect(effect(out, printed));
        self.typed(line, done)
    }
}
