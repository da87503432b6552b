//! Method calls: the receiver's type decides.

use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::{GenericArg, Scalar};

use super::call::member::{Callee, Reach};
use super::call::{Argument, written};
use super::methods;
use super::order::ordering;
use super::tree::{Expr, ExprKind, GridMethod, Pat, Settled, Stmt, StmtKind};
use super::ty::{Kind, Ty};
use super::written::{RECEIVER, Writer};
use super::{Checker, Conversion, Result};
use crate::front::rust::error::LowerError;

impl Checker<'_> {
    /// `receiver.name(args)`.
    pub(super) fn method_call(
        &mut self,
        receiver: &syntax::Expr,
        name: &str,
        generics: &[GenericArg],
        args: &[syntax::Expr],
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        if let (syntax::EITHER, [first, second]) = (name, args) {
            return self.either(receiver, first, second, line);
        }
        if let (syntax::PICK, [there]) = (name, args) {
            let item = self.expr(receiver, None)?;
            let there = self.expr_as(there, &Ty::BOOL)?;
            let ty = Ty::Option(Rc::new(item.ty.clone()));
            return Ok(self.make(line, ty, ExprKind::Tuple(vec![there, item])));
        }
        if name.starts_with('[')
            && let Some(read) = self.readers_method(receiver, name, args, hint, line)?
        {
            return Ok(read);
        }
        // What a conversion gives is said behind it.
        let wanted = match (&receiver.kind, name, hint) {
            (syntax::ExprKind::MethodCall { name: of, .. }, "unwrap" | "expect", Some(hint))
                if of == "try_into" =>
            {
                Some(Ty::Result(Rc::new(hint.clone()), Rc::new(Ty::unit())))
            }
            _ => None,
        };
        let receiver = self.expr(receiver, wanted.as_ref())?;
        self.method_of(receiver, None, name, generics, args, hint, line)
    }

    /// An item of one of two iterators. What both refer to is copied, since a reference has one place.
    fn either(
        &mut self,
        there: &syntax::Expr,
        first: &syntax::Expr,
        second: &syntax::Expr,
        line: u32,
    ) -> Result<Expr> {
        let there = self.expr_as(there, &Ty::BOOL)?;
        let first = self.expr(first, None)?;
        let second = self.expr(second, Some(&first.ty.clone()))?;
        self.unify(line, &first.ty, &second.ty)?;
        let shared = match self.types.shallow(&first.ty) {
            Ty::Ref(false, target) => !matches!(self.types.shallow(&target), Ty::Slice(_)),
            _ => false,
        };
        let [first, second] = match shared {
            true => [first, second].map(|item| self.deref(item)),
            false => [first, second],
        };
        let ty = first.ty.clone();
        let kind = ExprKind::If(Box::new(there), Self::into_block(first), Some(Box::new(second)));
        let item = self.make(line, ty, kind);
        if shared {
            self.borrow(item, false, line)
        } else {
            Ok(item)
        }
    }

    /// The method `name`, of the trait `via` where the source says so, on a receiver.
    #[expect(clippy::too_many_arguments, reason = "each is a part of the call as written")]
    pub(super) fn method_of(
        &mut self,
        receiver: Expr,
        via: Option<&str>,
        name: &str,
        generics: &[GenericArg],
        args: &[syntax::Expr],
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        if name == "into" && args.is_empty() {
            return self.into(receiver, hint, line);
        }
        let ty = self.peeled(&receiver.ty);
        if let Some(range) = self.range_of(&ty) {
            return self.range_method(receiver, range, name, args, line);
        }
        if let Some(item) = self.steps_of(&ty) {
            return self.steps_method(receiver, item, name, args, line);
        }
        let known = match &ty {
            Ty::Scalar(scalar) => methods::lookup(*scalar, name).is_ok(),
            Ty::Array(..) | Ty::Slice(_) => matches!(
                name,
                "len"
                    | "is_empty"
                    | "swap"
                    | "fill"
                    | "clone"
                    | "contains"
                    | "copy_from_slice"
                    | "reverse"
                    | "map"
            ),
            _ => false,
        };
        if matches!(ty, Ty::Struct(_) | Ty::Instance(..) | Ty::Enum(_))
            && (args.is_empty() && name == "into_iter"
                || matches!(&receiver.kind, ExprKind::Local(_))
                    && matches!(
                        (name, args),
                        ("len" | syntax::INDEXED, []) | (syntax::ELEMENT, [_])
                    ))
        {
            let next = self.functions_of(&ty, Some("Iterator"), "next", Reach::All, line)?;
            if !next.is_empty() {
                return self.user_iterator(receiver, name, next, line);
            }
        }
        // The greatest of references is one of them.
        if let (Ty::Ref(false, _), [other], "min" | "max", Some("Ord")) =
            (self.types.shallow(&receiver.ty), args, name, via)
            && matches!(ty, Ty::Struct(_) | Ty::Instance(..) | Ty::Enum(_))
        {
            return self.extreme(receiver, name, other, line);
        }
        let reach = if known { Reach::Bounds } else { Reach::All };
        let functions = self.functions_of(&ty, via, name, reach, line)?;
        if !functions.is_empty() {
            // Native code tells methods apart by name: it takes one that a scalar, an array or a slice has itself.
            self.program.calls_host.set(true);
            let mut all = vec![Argument::Operand(receiver)];
            all.extend(written(args));
            return match name {
                "clone" => self.call_one_of(functions, all, generics, line),
                _ => self.call_method_of(functions, all, generics, line),
            };
        }
        // Of references, `Ord` has them: the result is one of the references.
        if let (Ty::Ref(false, _), [other], "min" | "max") = (self.types.shallow(&receiver.ty), args, name)
            && (matches!(ty, Ty::Tuple(_) | Ty::Array(..)) || matches!(ty, Ty::Scalar(s) if !s.is_float()))
        {
            return self.extreme(receiver, name, other, line);
        }
        // What `Ord` has of values, by the order that the type has.
        if let ([other], "min" | "max", Ty::Struct(_) | Ty::Instance(..) | Ty::Enum(_)) = (args, name, &ty)
            && !self
                .functions_of(&ty, Some("Ord"), "cmp", Reach::All, line)?
                .is_empty()
        {
            self.program.calls_host.set(true);
            let receiver = self.deref_all(receiver);
            return self.extreme(receiver, name, other, line);
        }
        if name == "clone" && !matches!(ty, Ty::Scalar(_)) {
            self.program.calls_host.set(true);
        }
        match &ty {
            Ty::Option(_) | Ty::Result(..) if name == "clone" && args.is_empty() => {
                Ok(self.deref_all(receiver))
            }
            Ty::Option(_) | Ty::Result(..) => match self.option_method(receiver, name, args, line)? {
                Some(found) => Ok(found),
                None => {
                    let shown = self.show(&ty);
                    Err(self.error(
                        line,
                        format!("`{shown}` has no method `{name}` in kernels"),
                        "use `match`, `if let` or `?`",
                    ))
                }
            },
            Ty::Scalar(_) | Ty::Var(_) if name == "try_into" && args.is_empty() => {
                let to = match hint.map(|hint| self.types.shallow(hint)) {
                    Some(Ty::Result(to, _)) => self.types.shallow(&to),
                    _ => Ty::unit(),
                };
                match to {
                    Ty::Scalar(to) if to.is_integer() => self.try_integer(receiver, to, line),
                    own @ (Ty::Struct(_) | Ty::Instance(..) | Ty::Enum(_)) => {
                        let functions =
                            self.functions_of(&own, Some("TryFrom"), "try_from", Reach::All, line)?;
                        self.call_one_of(functions, vec![Argument::Operand(receiver)], &[], line)
                    }
                    _ => Err(self.error(
                        line,
                        "what `try_into` converts to is not known here",
                        "name the type: `u8::try_from(value)`",
                    )),
                }
            }
            Ty::Scalar(scalar) => {
                let receiver = self.deref_all(receiver);
                self.scalar_method(*scalar, receiver, name, args, line)
            }
            Ty::Struct(_) | Ty::Instance(..) | Ty::Enum(_) if name == "clone" && args.is_empty() => {
                Ok(self.deref_all(receiver))
            }
            Ty::Enum(_) if ty == ordering() => self.ordering_method(receiver, name, args, line),
            Ty::Struct(_) | Ty::Instance(..) | Ty::Enum(_) => {
                let shown = self.show(&ty);
                let remedy = match self.has_next(&ty, line)? {
                    true => format!(
                        "write `.into_iter().{name}(…)`: behind `into_iter` kernels know it for an iterator"
                    ),
                    false => format!("write `#[device]` before the `impl` block of `{shown}` that has it"),
                };
                Err(self.error(
                    line,
                    format!("`{shown}` has no method `{name}` that kernels can call"),
                    remedy,
                ))
            }
            Ty::Tuple(_) | Ty::Array(..) | Ty::Slice(_)
                if matches!((name, args), ("cmp" | "partial_cmp", [_])) =>
            {
                let [other] = args else {
                    return Err(self.error(line, format!("`{name}` compares two values"), ""));
                };
                self.order_by_parts(receiver, name == "partial_cmp", other, line)
            }
            Ty::Tuple(_) | Ty::Array(..) if matches!((name, args), ("min" | "max", [_])) => {
                let [other] = args else {
                    return Err(self.error(line, format!("`{name}` compares two values"), ""));
                };
                let receiver = self.deref_all(receiver);
                self.extreme(receiver, name, other, line)
            }
            Ty::Tuple(_) | Ty::Array(..) if name == "clamp" && args.len() == 2 => {
                let mut clamped = self.deref_all(receiver);
                for (extreme, bound) in ["max", "min"].into_iter().zip(args) {
                    clamped = self.extreme(clamped, extreme, bound, line)?;
                }
                Ok(clamped)
            }
            Ty::Slice(_) | Ty::Array(..) if matches!((name, args), ("first_chunk" | "last_chunk", [])) => {
                self.end_chunk(receiver, name == "last_chunk", generics, line)
            }
            Ty::Slice(_) | Ty::Array(..) => self.slice_method(receiver, name, args, hint, line),
            Ty::GridPos => self.grid_method(name, args, line),
            Ty::Tuple(_) if name == "clone" && args.is_empty() => Ok(self.deref_all(receiver)),
            // Methods of `Ord`, which rustc finds before it knows which integer it is; those of a reference take references.
            Ty::Var(_)
                if let ([other], "min" | "max") = (args, name)
                    && self.types.kind(&ty) == Some(Kind::Int)
                    && (via.is_some() || !matches!(self.types.shallow(&receiver.ty), Ty::Ref(..))) =>
            {
                self.extreme(receiver, name, other, line)
            }
            Ty::Var(_)
                if let ([other], "cmp" | "partial_cmp") = (args, name)
                    && self.types.kind(&ty).is_some_and(|kind| kind != Kind::General) =>
            {
                let other = self.expr(other, None)?;
                let other = self.deref_all(other);
                self.unify(line, &ty, &other.ty.clone())?;
                let first = self.deref_all(receiver);
                match self.types.shallow(&other.ty) {
                    // Which is refused.
                    Ty::Scalar(float) if name == "cmp" && float.is_float() => {
                        self.scalar_method(float, first, name, args, line)
                    }
                    Ty::Scalar(scalar) => self.order(scalar, (first, other), name, line),
                    of => Err(self.ambiguous(&of, name, line)),
                }
            }
            Ty::Var(_) => Err(self.ambiguous(&ty, name, line)),
            _ => {
                let shown = self.show(&ty);
                Err(self.error(line, format!("`{shown}` has no method `{name}` in kernels"), ""))
            }
        }
    }

    /// What a loop asks of a type that is an iterator: a place for it, as many items as there may be, and the next one, without which
    /// the loop is left.
    fn user_iterator(&mut self, receiver: Expr, name: &str, next: Vec<Callee>, line: u32) -> Result<Expr> {
        let w = Writer(line);
        match name {
            "into_iter" if matches!(self.types.shallow(&receiver.ty), Ty::Ref(true, _)) => Ok(receiver),
            "into_iter" => {
                let id = self.declare("__iterator", receiver.ty.clone(), true, line);
                let local = self.local(id, line);
                let value = self.borrow(local, true, line)?;
                let bind = Stmt {
                    line,
                    kind: StmtKind::Let(Pat::Binding(id), Some(receiver)),
                };
                Ok(self.behind_stmts(vec![bind], value, line))
            }
            "len" => self.expr(&w.most(Scalar::Usize), Some(&Ty::USIZE)),
            syntax::INDEXED => {
                let shown = self.show(&self.peeled(&receiver.ty));
                Err(self.not_indexed(&shown, line))
            }
            _ => {
                let item = self.call_method_of(next, vec![Argument::Operand(receiver)], &[], line)?;
                self.item_or_leave(item, line)
            }
        }
    }

    /// Why an iterator's items are not asked for by their places.
    pub(super) fn not_indexed(&self, shown: &str, line: u32) -> LowerError {
        self.error(
            line,
            format!("`{shown}` gives one item after the other, and here they are asked for otherwise"),
            "`rev`, `chain`, `cycle`, `len`, `peek`, `clone` and comparisons take slices, arrays and ranges: write a loop over the iterator, or `clone` \
             its value before `into_iter`",
        )
    }

    /// What a `next` gave; without an item the loop around is left.
    pub(super) fn item_or_leave(&mut self, item: Expr, line: u32) -> Result<Expr> {
        let (w, held) = (Writer(line), "held");
        let leave = w.block_expr(vec![w.leave()], None);
        let arms = vec![
            (w.pattern(syntax::Variant::Some, Some(held)), w.local(held)),
            (None, leave),
        ];
        let body = w.arms(w.local(RECEIVER), arms);
        self.written(item, None, &body, None, line)
    }

    /// `receiver.into()`: `From` of what is expected, or a conversion of scalars.
    pub(super) fn into(&mut self, receiver: Expr, hint: Option<&Ty>, line: u32) -> Result<Expr> {
        if let Some(to) = hint.map(|hint| self.types.shallow(hint)) {
            let functions = self.functions_of(&to, Some("From"), "from", Reach::All, line)?;
            let scalars = matches!(to, Ty::Scalar(_))
                && matches!(self.peeled(&receiver.ty), Ty::Scalar(_) | Ty::Var(_));
            if !functions.is_empty() && !scalars {
                return self.call_one_of(functions, vec![Argument::Operand(receiver)], &[], line);
            }
        }
        let known = hint.is_some_and(|hint| !matches!(self.types.shallow(hint), Ty::Var(_)));
        let to = self.types.var(Kind::General);
        if known {
            let receiver = self.deref_all(receiver);
            return Ok(self.make(line, to, ExprKind::Convert(Box::new(receiver), true)));
        }
        let by = Settled::default();
        self.conversions.push(Conversion {
            from: receiver.ty.clone(),
            to: to.clone(),
            by: Rc::clone(&by),
            line,
        });
        Ok(self.make(line, to, ExprKind::Into(Box::new(receiver), by)))
    }

    /// Finds the functions of conversions whose types are known by now.
    pub(super) fn settle_conversions(&mut self) -> Result<()> {
        while let Some(Conversion { from, to, by, line }) = self.conversions.pop() {
            let to = self.types.shallow(&to);
            if matches!(to, Ty::Scalar(_) | Ty::Var(_))
                && matches!(self.peeled(&from), Ty::Scalar(_) | Ty::Var(_))
            {
                continue;
            }
            let functions = self.functions_of(&to, Some("From"), "from", Reach::All, line)?;
            if functions.is_empty() {
                continue;
            }
            let value = self.hidden(from, line);
            let args = vec![Argument::Operand(self.local(value, line))];
            let call = self.call_one_of(functions, args, &[], line)?;
            let call = self.coerce(call, &to)?;
            // Each is settled once.
            let _ = by.set((value, call));
        }
        Ok(())
    }

    fn grid_method(&mut self, name: &str, args: &[syntax::Expr], line: u32) -> Result<Expr> {
        let near = |x, y, z| Some(GridMethod::Near([x, y, z]));
        let method = match (name, args.len()) {
            ("x", 0) => Some(GridMethod::Coordinate(0)),
            ("y", 0) => Some(GridMethod::Coordinate(1)),
            ("z", 0) => Some(GridMethod::Coordinate(2)),
            ("idx", 0) => Some(GridMethod::Idx),
            ("center", 1) => near(0, 0, 0),
            ("north", 1) => near(0, -1, 0),
            ("south", 1) => near(0, 1, 0),
            ("west", 1) => near(-1, 0, 0),
            ("east", 1) => near(1, 0, 0),
            ("up", 1) => near(0, 0, -1),
            ("down", 1) => near(0, 0, 1),
            ("at", 3 | 4) => Some(GridMethod::At),
            _ => None,
        };
        let Some(method) = method else {
            return Err(self.error(
                line,
                format!("`GridPos` has no method `{name}` with {} arguments", args.len()),
                "it has x(), y(), z(), idx(), north(grid), south, east, west, up, down, at(grid, dx, dy) and at(grid, dx, dy, dz)",
            ));
        };
        self.deep |= match method {
            GridMethod::Coordinate(axis) => axis == 2,
            GridMethod::Near([_, _, z]) => z != 0,
            GridMethod::At => args.len() == 4,
            GridMethod::Idx => false,
        };
        let mut checked = Vec::new();
        let mut ty = Ty::USIZE;
        let mut rest = args.iter();
        if matches!(method, GridMethod::Near(_) | GridMethod::At)
            && let Some(grid) = rest.next()
        {
            let grid = self.expr(grid, None)?;
            let grid = self.deref_all(grid);
            let Ty::Slice(element) = self.types.shallow(&grid.ty) else {
                let shown = self.show(&grid.ty);
                return Err(self.error(
                    line,
                    format!("`{name}` takes a grid, not a `{shown}`"),
                    "give it a slice parameter",
                ));
            };
            ty = (*element).clone();
            checked.push(grid);
        }
        for offset in rest {
            checked.push(self.expr_as(offset, &Ty::Scalar(Scalar::I32))?);
        }
        Ok(Expr {
            line,
            ty,
            kind: ExprKind::Grid(method, checked),
        })
    }

    /// A method of scalars that is code in the language.
    pub(super) fn written_method(
        &mut self,
        how: methods::Written,
        scalar: Scalar,
        receiver: Expr,
        name: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Expr> {
        let receiver = self.deref_all(receiver);
        match how {
            methods::Written::Checked => self.checked(scalar, receiver, name, args, line),
            methods::Written::Order => self.order_method(scalar, receiver, name, args, line),
            methods::Written::TotalOrder => self.total_order(scalar, receiver, args, line),
            methods::Written::Then => self.then_some(receiver, name, args, line),
            methods::Written::Further => {
                let num = methods::num(scalar, 64);
                let body = Writer(line).number(name, scalar, num.is_signed_int(), num.bits());
                let known = methods::lookup(scalar, name).ok();
                let (Some(body), Some(signature)) = (body, known) else {
                    let cause = format!("`{}` has no method `{name}` in kernels", scalar.name());
                    return Err(self.error(line, cause, ""));
                };
                let other = match (args.first(), signature.args.first()) {
                    (Some(other), Some(ty)) => Some(self.expr_as(other, ty)?),
                    _ => None,
                };
                self.written(receiver, other, &body, None, line)
            }
            methods::Written::Ascii => {
                let Some(body) = Writer(line).ascii(name, args.len()) else {
                    return Err(self.error(line, format!("`u8` has no method `{name}` in kernels"), ""));
                };
                let other = match args.first() {
                    Some(other) => {
                        let other = self.expr(other, None)?;
                        Some(self.deref_all(other))
                    }
                    None => None,
                };
                self.written(receiver, other, &body, None, line)
            }
        }
    }
}
