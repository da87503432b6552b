//! Calls of device functions.

pub(super) mod member;
mod operator;
pub(crate) mod scalar;

use std::rc::Rc;
use std::sync::Arc;

use perpetua_syntax as syntax;
use perpetua_syntax::{FunctionKind, GenericArg};

use super::consteval::constant_expr;
use super::range::next_of;
use super::signature::{convert_type, not_a, path_meaning};
use super::tree::{Expr, ExprKind, Loaded};
use super::ty::Ty;
use super::written::Writer;
use super::{Checker, Result};
use crate::front::rust::describe::{ConstValue, GenericStruct};
use crate::front::rust::resolve::Resolved;
use member::Reach;
use scalar::has_function;

/// An argument of a call.
pub(super) enum Argument<'a> {
    /// As written.
    Syntax(&'a syntax::Expr),
    /// Checked: a receiver or an operand, which is borrowed or dereferenced as the parameter wants it.
    Operand(Expr),
}

impl Argument<'_> {
    /// Its type, where it is checked.
    pub(super) fn ty(&self) -> Option<&Ty> {
        match self {
            Argument::Syntax(_) => None,
            Argument::Operand(expr) => Some(&expr.ty),
        }
    }
}

/// A call's arguments, as written.
pub(super) fn written(args: &[syntax::Expr]) -> Vec<Argument<'_>> {
    args.iter().map(Argument::Syntax).collect()
}

impl Checker<'_> {
    /// `path(args)`.
    pub(super) fn call(
        &mut self,
        path: u32,
        args: &[syntax::Expr],
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        let entry = self.loaded.tree.paths.get(path as usize);
        let generics: Vec<GenericArg> = entry.map_or_else(Vec::new, |p| p.args().to_vec());
        let name = entry
            .and_then(|p| p.segments.last())
            .map(|last| last.name.clone());
        match path_meaning(&self.loaded, path, line)?.clone() {
            Resolved::Device(def) => {
                let callee = self.program.load(&def)?;
                self.call_loaded(&callee, None, written(args), &generics, line)
            }
            meaning @ (Resolved::Type(_) | Resolved::GenericStruct(_)) => {
                let own = match &meaning {
                    Resolved::GenericStruct(of) => self.named_instance(of, &[], line)?,
                    Resolved::Type(desc) => Ty::from_desc(desc),
                    _ => Ty::unit(),
                };
                self.function_call(&own, None, &name.unwrap_or_default(), &generics, args, hint, line)
            }
            other => Err(not_a(&self.loaded, path, line, "a function", &other)),
        }
    }

    /// A call of a function, with a receiver before the arguments where it is a method. `own`: of which type it is, where that has
    /// generic parameters.
    pub(super) fn call_loaded(
        &mut self,
        callee: &Rc<Loaded>,
        own: Option<&Ty>,
        args: Vec<Argument<'_>>,
        written: &[GenericArg],
        line: u32,
    ) -> Result<Expr> {
        let tree = callee.tree.clone();
        if tree.kind != FunctionKind::Device {
            return Err(self.error(
                line,
                format!("`{}` is a kernel, and kernels are not called", tree.name),
                "move its code to a function with `#[device]`",
            ));
        }
        let given = args.len();
        if given != tree.params.len() {
            return Err(self.error(
                line,
                format!(
                    "`{}` takes {} arguments, {given} were given",
                    tree.name,
                    tree.params.len()
                ),
                "",
            ));
        }
        let generics = self.call_generics(callee, written, line)?;
        if let Some(own) = own {
            self.bind_own(callee, &generics, own, line)?;
        }
        let convert = |c: &mut Self, ty: &syntax::Type, line| {
            convert_type(c.program, callee, &generics, &mut c.types, ty, line)
        };
        let mut checked: Vec<Option<Expr>> = Vec::with_capacity(given);
        let mut closures = Vec::new();
        for (i, (param, arg)) in tree.params.iter().zip(args).enumerate() {
            // Closures last: what they take is known from the other arguments.
            if let Argument::Syntax(arg) = arg
                && (is_closure(arg) || is_iterator(&tree, &param.ty))
            {
                closures.push((i, param, arg));
                checked.push(None);
                continue;
            }
            let ty = convert(self, &param.ty, param.line)?;
            checked.push(Some(match arg {
                Argument::Syntax(arg) => self.expr_as(arg, &ty)?,
                Argument::Operand(arg) => self.receiver(arg, &ty, line)?,
            }));
        }
        for (i, param, arg) in closures {
            let expected = self.closure_signature(callee, &generics, &param.ty, param.line)?;
            let mut arg = self.closure_argument(arg, expected)?;
            let line = arg.line;
            match (&param.ty, self.types.shallow(&arg.ty)) {
                // `&mut it` is a closure that goes on in `it`, whether a reference to an iterator is asked for or an iterator.
                (syntax::Type::Ref { mutable, .. }, Ty::Closure(_)) => {
                    arg = self.borrow(arg, *mutable, line)?
                }
                (syntax::Type::Generic(_), Ty::Ref(_, of))
                    if matches!(self.types.shallow(&of), Ty::Closure(_)) =>
                {
                    arg = self.deref(arg);
                }
                _ => {}
            }
            let ty = convert(self, &param.ty, param.line)?;
            let arg = self.coerce(arg, &ty)?;
            if let Some(slot) = checked.get_mut(i) {
                *slot = Some(arg);
            }
        }
        let checked = checked.into_iter().flatten().collect();
        let ret = match &tree.ret {
            Some(ret) => convert(self, ret, tree.line)?,
            None => Ty::unit(),
        };
        self.calls.push((callee.clone(), generics.clone(), line));
        Ok(Expr {
            line,
            ty: ret,
            kind: ExprKind::Call(callee.clone(), generics, checked),
        })
    }

    /// A closure, or a reference to one, as an argument.
    pub(super) fn closure_argument(
        &mut self,
        arg: &syntax::Expr,
        expected: Option<(Vec<Ty>, Ty)>,
    ) -> Result<Expr> {
        match &arg.kind {
            syntax::ExprKind::Closure { .. } => self.closure(arg, expected),
            syntax::ExprKind::RangeArgument { next, .. } if expected.is_some() => {
                self.closure_argument(next, expected)
            }
            syntax::ExprKind::Function(call) if let Some((params, _)) = &expected => {
                let closure = closure_of(call, params.len());
                self.closure(&closure, expected)
            }
            syntax::ExprKind::Unary {
                op: syntax::UnaryOp::RefMut,
                operand,
            } if expected.is_some() && self.is_next_place(operand)? => {
                let next = self.closure(&next_of(operand), expected)?;
                self.borrow(next, true, arg.line)
            }
            syntax::ExprKind::Unary { op, operand } => {
                let operand = self.closure_argument(operand, expected)?;
                self.borrow(operand, *op == syntax::UnaryOp::RefMut, arg.line)
            }
            _ => {
                let value = self.expr(arg, None)?;
                match (expected, self.range_of(&value.ty)) {
                    (Some(_), Some((_, false))) => self.items_by_next(value),
                    (Some(_), None) if self.has_next(&value.ty, arg.line)? => self.items_by_next(value),
                    (Some(_), Some((_, true))) => {
                        let cause = "a `RangeInclusive` that a call gives stands for an iterator";
                        Err(self.error(arg.line, cause, "write `.into_iter()` behind it"))
                    }
                    _ => Ok(value),
                }
            }
        }
    }

    /// A receiver as the method's first parameter: borrowed or dereferenced as needed.
    fn receiver(&mut self, receiver: Expr, param: &Ty, line: u32) -> Result<Expr> {
        match self.types.shallow(param) {
            Ty::Ref(mutable, _) => {
                let receiver = match self.types.shallow(&receiver.ty) {
                    Ty::Ref(..) => receiver,
                    _ => self.borrow(receiver, mutable, line)?,
                };
                self.coerce(receiver, param)
            }
            _ => {
                let receiver = self.deref_all(receiver);
                self.coerce(receiver, param)
            }
        }
    }

    /// `f32::max(a, b)`, `T::from(x)`, `<T as Trait>::zero()`; `Trait::f(x)`, whose type the first argument says, or what is
    /// expected of the call.
    pub(super) fn type_call(
        &mut self,
        member: &syntax::TypeMember,
        args: &[syntax::Expr],
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        let (ty, via, name) = (&member.ty, member.via.as_deref(), member.name.as_str());
        if let (Some("Sum" | "Product"), []) = (via, args) {
            let ty = self.ty(ty, line)?;
            return Ok(self.make(line, ty, ExprKind::Identity(name == "product")));
        }
        if let (Some("Try"), [value]) = (via, args) {
            let value = self.expr(value, None)?;
            let to = hint.map(|hint| self.types.shallow(hint));
            let good = match &to {
                Some(Ty::Option(of) | Ty::Result(of, _)) => {
                    self.unify(line, of, &value.ty)?;
                    (to.clone(), matches!(to, Some(Ty::Option(_))))
                }
                _ => (None, true),
            };
            let (Some(ty), option) = good else {
                return Err(self.error(
                    line,
                    "whether this gives an `Option` or a `Result` is not known here",
                    "say it: `|all, item| -> Option<u32> { … }`",
                ));
            };
            let variant = if option {
                syntax::Variant::Some
            } else {
                syntax::Variant::Ok
            };
            return Ok(self.variant_of(variant, Some(value), &ty, line));
        }
        if let (Some("array"), [function]) = (via, args) {
            let written = self.ty(ty, line)?;
            let len = match (
                self.types.shallow(&written),
                hint.map(|hint| self.types.shallow(hint)),
            ) {
                (Ty::Array(_, len), _) | (_, Some(Ty::Array(_, len))) => len,
                _ => self.types.len_var(),
            };
            let len = self.len_expr(len, line);
            return self.expr(&Writer(line).mapped(&len, function, |index| index), hint);
        }
        if let (syntax::Type::Infer, [left, right], Some(op)) = (ty, args, operator::called(via, name)) {
            return self.binary(op, left, right, line);
        }
        if *ty != syntax::Type::Infer {
            let own = self.ty(ty, line)?;
            return self.function_call(&own, via, name, &[], args, hint, line);
        }
        let expected = hint.map(|hint| self.types.shallow(hint));
        match (args, expected) {
            ([receiver, rest @ ..], _) if name != "from" => {
                let receiver = self.expr(receiver, None)?;
                self.method_of(receiver, via, name, &[], rest, hint, line)
            }
            (_, Some(own)) if !matches!(own, Ty::Var(_)) => {
                self.function_call(&own, via, name, &[], args, hint, line)
            }
            _ => {
                let of = via.unwrap_or("Trait");
                Err(self.error(
                    line,
                    format!("which type's `{of}::{name}` is meant is not known here"),
                    format!("name the type: `T::{name}(…)`"),
                ))
            }
        }
    }

    /// The function `name` of a type.
    #[expect(clippy::too_many_arguments, reason = "each is a part of the call as written")]
    pub(super) fn function_call(
        &mut self,
        own: &Ty,
        via: Option<&str>,
        name: &str,
        generics: &[GenericArg],
        args: &[syntax::Expr],
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        let own = self.types.shallow(own);
        let scalar = match own {
            Ty::Scalar(scalar) => Some(scalar),
            _ => None,
        };
        // What the language has comes behind what bounds the type, and before all else.
        let known = scalar.is_some_and(|scalar| has_function(scalar, name));
        let reach = if known { Reach::Bounds } else { Reach::All };
        let functions = self.functions_of(&own, via, name, reach, line)?;
        if !functions.is_empty() {
            return self.call_one_of(functions, written(args), generics, line);
        }
        if let ("default", [], Ty::Array(..) | Ty::Tuple(_) | Ty::Option(_)) = (name, args, &own) {
            return self.default_of(&own, line);
        }
        if let ("default", []) = (name, args)
            && let Some(value) = host_default(&own)
        {
            self.program.calls_host.set(true);
            return Ok(constant_expr("default()", value, line));
        }
        if let ("default", []) = (name, args)
            && generic_of(&own).is_some_and(|of| of.defaults_by_fields())
        {
            self.program.calls_host.set(true);
            return Ok(self.make(line, own, ExprKind::Default));
        }
        match (scalar, args) {
            (None, [value]) if name == "try_from" && matches!(own, Ty::Array(..)) => {
                let value = self.expr(value, None)?;
                self.try_array(value, &own, line)
            }
            (Some(scalar), [value]) if name == "try_from" && scalar.is_integer() => {
                let value = self.expr(value, None)?;
                self.try_integer(value, scalar, line)
            }
            (Some(scalar), _) => self.scalar_call(scalar, name, args, line),
            // A method by its type's name.
            (None, [receiver, rest @ ..])
                if matches!(own, Ty::Array(..) | Ty::Tuple(_)) || name == "clone" =>
            {
                let receiver = self.expr_as(receiver, &own)?;
                self.method_of(receiver, via, name, generics, rest, hint, line)
            }
            _ => {
                let (shown, of) = (
                    self.show(&own),
                    via.map(|of| format!("{of} for ")).unwrap_or_default(),
                );
                let or = match name {
                    "default" => format!(", or before `#[derive(Default)]` of `{shown}`"),
                    _ => String::new(),
                };
                Err(self.error(
                    line,
                    format!("`{shown}` has no function `{name}` that kernels can call"),
                    format!("write `#[device]` before `impl {of}{shown}`, the block that has it{or}"),
                ))
            }
        }
    }

    /// `Default` of types that are made of others.
    fn default_of(&mut self, own: &Ty, line: u32) -> Result<Expr> {
        let of = |c: &mut Self, part: &Ty| c.function_call(part, None, "default", &[], &[], None, line);
        let kind = match own {
            Ty::Array(element, len) => ExprKind::Repeat(Box::new(of(self, element)?), *len),
            Ty::Tuple(parts) => {
                let parts = parts.iter().map(|part| of(self, part));
                ExprKind::Tuple(parts.collect::<Result<_>>()?)
            }
            _ => return Ok(self.variant_of(syntax::Variant::None, None, own, line)),
        };
        Ok(self.make(line, own.clone(), kind))
    }
}

/// The generic struct of which the type is an instance.
fn generic_of(own: &Ty) -> Option<&Arc<GenericStruct>> {
    match own {
        Ty::Instance(of, _) => Some(of),
        Ty::Struct(desc) => desc.of.as_ref().map(|(of, _)| of),
        _ => None,
    }
}

/// The `Default` of a type on the host.
fn host_default(own: &Ty) -> Option<ConstValue> {
    match own {
        Ty::Struct(desc) => desc.default,
        Ty::Enum(desc) => desc.default,
        _ => None,
    }?()
}

/// The closure of so many parameters that makes a call with them.
fn closure_of(call: &syntax::Expr, count: usize) -> syntax::Expr {
    let line = call.line;
    let names = (0..count).map(|index| format!("argument {index}"));
    let local = |name| syntax::Expr::new(line, syntax::ExprKind::Local(name));
    let mut given = names.clone().map(local);
    let mut body = call.clone();
    match &mut body.kind {
        syntax::ExprKind::Call { args, .. } | syntax::ExprKind::TypeCall { args, .. } => args.extend(given),
        syntax::ExprKind::Variant { payload, .. } => *payload = given.next().map(Box::new),
        syntax::ExprKind::StructLiteral { fields, .. } => {
            fields.extend(given.enumerate().map(|(index, value)| (index.to_string(), value)));
        }
        _ => {}
    }
    let binding = |name| syntax::Pattern {
        line,
        kind: syntax::PatternKind::Binding { name, mutable: false },
    };
    let kind = syntax::ExprKind::Closure {
        moved: false,
        params: names.map(|name| (binding(name), None)).collect(),
        ret: None,
        body: Box::new(body),
    };
    syntax::Expr::new(line, kind)
}

/// Whether a parameter is an iterator, which is a function that gives the next item.
fn is_iterator(callee: &syntax::Function, param: &syntax::Type) -> bool {
    let param = match param {
        syntax::Type::Ref { target, .. } => target,
        param => param,
    };
    let syntax::Type::Generic(index) = param else {
        return false;
    };
    matches!(
        callee.generics.get(*index as usize),
        Some(syntax::Generic::Type { call: Some((params, Some(syntax::Type::Option(_)))), .. }) if params.is_empty()
    )
}

/// Whether an argument is a closure, or a reference to one.
fn is_closure(arg: &syntax::Expr) -> bool {
    match &arg.kind {
        syntax::ExprKind::Closure { .. }
        | syntax::ExprKind::Function(_)
        | syntax::ExprKind::RangeArgument { .. } => true,
        syntax::ExprKind::Unary {
            op: syntax::UnaryOp::Ref | syntax::UnaryOp::RefMut,
            operand,
        } => is_closure(operand),
        _ => false,
    }
}
