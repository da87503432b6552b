//! Calls of functions and methods of the scalar types.

use perpetua_syntax as syntax;
use perpetua_syntax::Scalar;

use super::Argument;
use super::member::Reach;
use crate::front::rust::infer::methods::{self, NoMethod};
use crate::front::rust::infer::tree::{Expr, ExprKind};
use crate::front::rust::infer::ty::Ty;
use crate::front::rust::infer::{Checker, Result};
use crate::ops::Domain;

impl Checker<'_> {
    pub(super) fn scalar_call(
        &mut self,
        scalar: Scalar,
        name: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Expr> {
        let result = Ty::Scalar(scalar);
        let convert = |value: Expr, lossless: bool| Expr {
            line,
            ty: result.clone(),
            kind: ExprKind::Convert(Box::new(value), lossless),
        };
        // A user's trait may have these.
        if let ("zero" | "one", []) = (name, args) {
            let functions = self.functions_of(&result, None, name, Reach::All, line)?;
            if !functions.is_empty() {
                return self.call_one_of(functions, Vec::new(), &[], line);
            }
        }
        match (name, args) {
            ("from", [arg]) => {
                let arg = self.expr(arg, None)?;
                if !matches!(self.types.shallow(&arg.ty), Ty::Scalar(_) | Ty::Var(_)) {
                    let functions = self.functions_of(&result, Some("From"), name, Reach::All, line)?;
                    if !functions.is_empty() {
                        return self.call_one_of(functions, vec![Argument::Operand(arg)], &[], line);
                    }
                }
                // A bound such as `T: From<u8>` types a literal.
                let literal = self.types.kind(&arg.ty).is_some();
                Ok(convert(arg, !literal))
            }
            ("from_bits", [arg]) if scalar.is_float() => {
                let bits = self.expr_as(arg, &Ty::Scalar(methods::unsigned(scalar)))?;
                Ok(Expr {
                    line,
                    ty: result,
                    kind: ExprKind::Method(methods::Method::Special(methods::Special::ToBits), vec![bits]),
                })
            }
            ("from_le_bytes" | "from_ne_bytes" | "from_be_bytes", [arg]) => {
                let bytes = self.expr_as(arg, &methods::bytes(scalar))?;
                Ok(self.of_bytes(scalar, name == "from_be_bytes", bytes, line))
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
            ("from_f32", [arg]) => {
                let arg = self.expr_as(arg, &Ty::Scalar(Scalar::F32))?;
                Ok(convert(arg, false))
            }
            ("from_f64", [arg]) => {
                let arg = self.expr_as(arg, &Ty::Scalar(Scalar::F64))?;
                let narrow = methods::Method::Special(methods::Special::FromF64);
                Ok(self.make(line, result, ExprKind::Method(narrow, vec![arg])))
            }
            (_, [receiver, rest @ ..]) => {
                // Some take a reference.
                let receiver = self.expr(receiver, Some(&result))?;
                let receiver = self.deref_all(receiver);
                let receiver = self.coerce(receiver, &result)?;
                self.scalar_method(scalar, receiver, name, rest, line)
            }
            _ => Err(self.error(line, format!("`{}` has no function `{name}`", scalar.name()), "")),
        }
    }

    /// A method of a scalar.
    pub(in super::super) fn scalar_method(
        &mut self,
        scalar: Scalar,
        receiver: Expr,
        name: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Expr> {
        if let Some(how) = methods::written(scalar, name, args.len()) {
            return self.written_method(how, scalar, receiver, name, args, line);
        }
        let signature = methods::lookup(scalar, name).map_err(|no| {
            let cause = format!("`{}` has no method `{name}` in kernels", scalar.name());
            let remedy = match no {
                NoMethod::Unknown if name.starts_with("checked_") => {
                    "compare before: `checked_add`, `checked_div`, `checked_pow` and their kin are there"
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

/// Functions of scalar types beside their methods: name, arguments, the types, result.
pub(crate) const FUNCTIONS: &[(&str, &str, Domain, &str)] = &[
    ("from", "value", Domain::Any, "`Self`"),
    ("try_from", "value", Domain::Int, "`Result<Self, _>`"),
    ("default", "", Domain::Any, "`Self`"),
    ("zero", "", Domain::Number, "`Self`, of `num_traits`"),
    ("one", "", Domain::Number, "`Self`, of `num_traits`"),
    ("from_bits", "bits", Domain::Float, "`Self`"),
    ("from_le_bytes", "bytes", Domain::Number, "`Self`"),
    ("from_ne_bytes", "bytes", Domain::Number, "`Self`"),
    ("from_be_bytes", "bytes", Domain::Number, "`Self`"),
    ("from_f32", "value", Domain::Single, "`Self`, of `half`"),
    ("from_f64", "value", Domain::Single, "`Self`, of `half`"),
];

/// Whether the language has this function of a scalar type.
pub(super) fn has_function(scalar: Scalar, name: &str) -> bool {
    let ir = methods::num(scalar, 64).like();
    let known = FUNCTIONS
        .iter()
        .any(|(known, _, domain, _)| *known == name && domain.contains(ir));
    known || methods::lookup(scalar, name).is_ok()
}
