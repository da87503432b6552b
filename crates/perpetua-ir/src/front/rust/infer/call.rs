//! Calls of device functions and of functions of the scalar types.

use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::{FunctionKind, GenericArg, Scalar};

use super::methods::{self, NoMethod};
use super::signature::{convert_type, not_a, path_meaning};
use super::tree::{Expr, ExprKind, Loaded};
use super::ty::Ty;
use super::{Checker, Result};
use crate::front::rust::resolve::Resolved;

impl Checker<'_> {
    /// `path(args)`.
    pub(super) fn call(&mut self, path: u32, args: &[syntax::Expr], line: u32) -> Result<Expr> {
        let def = match path_meaning(&self.loaded, path, line)? {
            Resolved::Device(def) => def.clone(),
            other => return Err(not_a(&self.loaded, path, line, "a function", other)),
        };
        let callee = self.program.load(&def)?;
        let written: Vec<GenericArg> = self
            .loaded
            .tree
            .paths
            .get(path as usize)
            .map_or_else(Vec::new, |p| p.args().to_vec());
        self.call_loaded(&callee, None, args, &written, line)
    }

    /// A call of a function, with a receiver where it is a method.
    pub(super) fn call_loaded(
        &mut self,
        callee: &Rc<Loaded>,
        receiver: Option<Expr>,
        args: &[syntax::Expr],
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
        let given = args.len() + usize::from(receiver.is_some());
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
        let convert = |c: &mut Self, ty: &syntax::Type, line| {
            convert_type(c.program, callee, &generics, &mut c.types, ty, line)
        };
        let mut checked = Vec::with_capacity(given);
        let mut params = tree.params.iter();
        if let Some(receiver) = receiver
            && let Some(param) = params.next()
        {
            let ty = convert(self, &param.ty, param.line)?;
            checked.push(self.receiver(receiver, &ty, line)?);
        }
        for (param, arg) in params.zip(args) {
            let ty = convert(self, &param.ty, param.line)?;
            checked.push(self.expr_as(arg, &ty)?);
        }
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

    /// `f32::max(a, b)`, `T::from(x)`.
    pub(super) fn type_call(
        &mut self,
        ty: &syntax::Type,
        name: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Expr> {
        let result = self.ty(ty, line)?;
        let Ty::Scalar(scalar) = self.types.shallow(&result) else {
            let shown = self.show(&result);
            return Err(self.error(
                line,
                format!("`{shown}::{name}` is not known here"),
                "functions of generic types work where the type is a scalar: call a `#[device]` function by name",
            ));
        };
        let generic = matches!(ty, syntax::Type::Generic(_));
        let convert = |value: Expr, lossless: bool| Expr {
            line,
            ty: result.clone(),
            kind: ExprKind::Convert(Box::new(value), lossless),
        };
        match (name, args) {
            ("from", [arg]) => {
                let arg = self.expr(arg, None)?;
                Ok(convert(arg, !generic))
            }
            ("from_bits", [arg]) if scalar.is_float() => {
                let bits = self.expr_as(arg, &Ty::Scalar(methods::unsigned(scalar)))?;
                Ok(Expr {
                    line,
                    ty: result,
                    kind: ExprKind::Method(methods::Method::Special(methods::Special::ToBits), vec![bits]),
                })
            }
            ("default", []) if scalar == Scalar::Bool => Ok(Expr {
                line,
                ty: result,
                kind: ExprKind::Bool(false),
            }),
            ("default" | "zero", []) if scalar.is_float() => Ok(Expr {
                line,
                ty: result,
                kind: ExprKind::Float("0".into()),
            }),
            ("one", []) if scalar.is_float() => Ok(Expr {
                line,
                ty: result,
                kind: ExprKind::Float("1".into()),
            }),
            ("default" | "zero", []) => Ok(Expr {
                line,
                ty: result,
                kind: ExprKind::Int(0),
            }),
            ("one", []) => Ok(Expr {
                line,
                ty: result,
                kind: ExprKind::Int(1),
            }),
            (name, [arg]) if name.strip_prefix("from_").and_then(Scalar::from_name).is_some() => {
                let from = name.strip_prefix("from_").and_then(Scalar::from_name);
                let arg = self.expr_as(arg, &Ty::Scalar(from.unwrap_or(scalar)))?;
                Ok(convert(arg, false))
            }
            (_, [receiver, rest @ ..]) => {
                let receiver = self.expr_as(receiver, &result)?;
                self.scalar_method(scalar, receiver, name, rest, line)
            }
            _ => Err(self.error(line, format!("`{}` has no function `{name}`", scalar.name()), "")),
        }
    }

    /// A method of a scalar.
    pub(super) fn scalar_method(
        &mut self,
        scalar: Scalar,
        receiver: Expr,
        name: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Expr> {
        let signature = methods::lookup(scalar, name).map_err(|no| {
            let cause = format!("`{}` has no method `{name}` in kernels", scalar.name());
            let remedy = match no {
                NoMethod::Unknown if name.starts_with("checked_") => {
                    "there is no Option: compare before, or use `overflowing_…`, `saturating_…` or `wrapping_…`"
                        .to_owned()
                }
                NoMethod::Unknown => "write it as a `#[device]` function".to_owned(),
                NoMethod::Domain(domain) => format!("{domain} have it: convert with `as`"),
            };
            self.error(line, cause, remedy)
        })?;
        if signature.args.len() != args.len() {
            return Err(self.error(
                line,
                format!(
                    "`{name}` takes {} arguments after its receiver, {} were given",
                    signature.args.len(),
                    args.len()
                ),
                "",
            ));
        }
        let mut checked = vec![receiver];
        for (arg, ty) in args.iter().zip(&signature.args) {
            checked.push(self.expr_as(arg, ty)?);
        }
        Ok(Expr {
            line,
            ty: signature.result,
            kind: ExprKind::Method(signature.method, checked),
        })
    }
}
