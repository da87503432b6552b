//! Expressions of a lane's body: operators, aggregates, names. Calls, places and control flow have files of their own.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::lane::Lane;
use super::language::{global_idiom, name_of, peel};
use super::scope::Name;

impl Lane<'_> {
    /// An expression for its value.
    pub(super) fn expr(&mut self, expr: &syn::Expr) -> TokenStream {
        if let Some((axis, ty)) = global_idiom(expr) {
            let (mode, name) = (&self.mode, ["global_id_x", "global_id_y", "global_id_z"][axis]);
            let name = syn::Ident::new(name, expr.span());
            return match ty {
                Some(ty) => quote!((#mode.#name() as #ty)),
                None => quote!((#mode.#name() as i32)),
            };
        }
        match expr {
            syn::Expr::Paren(paren) => {
                let inner = self.expr(&paren.expr);
                quote!((#inner))
            }
            syn::Expr::Group(group) => {
                let inner = self.expr(&group.expr);
                quote!((#inner))
            }
            syn::Expr::Lit(lit) => quote!(#lit),
            syn::Expr::Path(path) => match name_of(expr).and_then(|name| self.scope.find(name)) {
                Some(Name::Buffer { .. } | Name::Position) => self.refuse(),
                _ => quote!(#path),
            },
            syn::Expr::Unary(unary) => self.unary(unary),
            syn::Expr::Binary(binary) => self.binary(binary),
            syn::Expr::Assign(assign) => self.assign(&assign.left, &assign.right),
            syn::Expr::Cast(cast) => {
                let (value, ty) = (self.expr(&cast.expr), &cast.ty);
                quote_spanned!(cast.span()=> (#value as #ty))
            }
            syn::Expr::Index(_) | syn::Expr::Field(_) => self.value_of(expr),
            syn::Expr::Reference(reference) => self.reference(reference),
            syn::Expr::Tuple(tuple) => {
                let elements = self.exprs(&tuple.elems);
                quote!((#(#elements,)*))
            }
            syn::Expr::Array(array) => {
                let elements = self.exprs(&array.elems);
                quote!([#(#elements),*])
            }
            syn::Expr::Repeat(repeat) => {
                let (value, len) = (self.expr(&repeat.expr), &repeat.len);
                quote!([#value; #len])
            }
            syn::Expr::Struct(literal) => self.struct_literal(literal),
            syn::Expr::Call(call) => self.call(call),
            syn::Expr::MethodCall(call) => self.method_call(call),
            syn::Expr::Macro(expr) => self.macro_call(&expr.mac),
            other => match self.control(other) {
                Some(tokens) => tokens,
                None => self.refuse(),
            },
        }
    }

    pub(super) fn exprs<'e>(&mut self, exprs: impl IntoIterator<Item = &'e syn::Expr>) -> Vec<TokenStream> {
        exprs.into_iter().map(|expr| self.expr(expr)).collect()
    }

    fn unary(&mut self, unary: &syn::ExprUnary) -> TokenStream {
        match unary.op {
            // `-128i8` is a literal; the number without its sign is none.
            syn::UnOp::Neg(_) if matches!(peel(&unary.expr), syn::Expr::Lit(_)) => quote!((#unary)),
            syn::UnOp::Neg(_) => {
                let (native, operand) = (self.setting.native(), self.expr(&unary.expr));
                quote_spanned!(unary.span()=> #native::operators::Operands((#operand, ())).neg())
            }
            syn::UnOp::Deref(_) => {
                let inner = self.expr(&unary.expr);
                quote!((*#inner))
            }
            _ => {
                let (op, operand) = (&unary.op, self.expr(&unary.expr));
                quote!((#op #operand))
            }
        }
    }

    fn binary(&mut self, binary: &syn::ExprBinary) -> TokenStream {
        use syn::BinOp;
        if let Some(op) = compound(&binary.op) {
            return self.compound(op, &binary.left, &binary.right, binary.op.span());
        }
        let (left, right) = (self.expr(&binary.left), self.expr(&binary.right));
        if matches!(
            binary.op,
            BinOp::Add(_)
                | BinOp::Sub(_)
                | BinOp::Mul(_)
                | BinOp::Div(_)
                | BinOp::Rem(_)
                | BinOp::Shl(_)
                | BinOp::Shr(_)
        ) {
            return self.arithmetic(&binary.op, &left, &right, binary.op.span());
        }
        let op = &binary.op;
        quote!((#left #op #right))
    }

    /// An operator that Rust checks or wraps; others stay as they are.
    pub(super) fn arithmetic(
        &self,
        op: &syn::BinOp,
        left: &TokenStream,
        right: &TokenStream,
        span: proc_macro2::Span,
    ) -> TokenStream {
        use syn::BinOp;
        let (name, subject) = match op {
            BinOp::Add(_) => ("add", None),
            BinOp::AddAssign(_) => ("add_assign", None),
            BinOp::Sub(_) => ("sub", None),
            BinOp::SubAssign(_) => ("sub_assign", None),
            BinOp::Mul(_) => ("mul", None),
            BinOp::MulAssign(_) => ("mul_assign", None),
            BinOp::Div(_) => ("div", Some("division")),
            BinOp::DivAssign(_) => ("div_assign", Some("division")),
            BinOp::Rem(_) => ("rem", Some("remainder")),
            BinOp::RemAssign(_) => ("rem_assign", Some("remainder")),
            BinOp::Shl(_) => ("shl", None),
            BinOp::ShlAssign(_) => ("shl_assign", None),
            BinOp::Shr(_) => ("shr", None),
            BinOp::ShrAssign(_) => ("shr_assign", None),
            // Those that only assign change nothing but their value.
            op => return quote!({ let mut changed = #left; changed #op #right; changed }),
        };
        let (native, name) = (self.setting.native(), syn::Ident::new(name, span));
        let site = subject.map(|subject| self.site(span, subject));
        let checked = subject.map(|_| quote!(?));
        quote_spanned!(span=> #native::operators::Operands((#left, #right)).#name(#site)#checked)
    }

    fn struct_literal(&mut self, literal: &syn::ExprStruct) -> TokenStream {
        let path = &literal.path;
        let fields: Vec<TokenStream> = literal
            .fields
            .iter()
            .map(|field| {
                let (member, value) = (&field.member, self.expr(&field.expr));
                quote!(#member: #value)
            })
            .collect();
        let rest = literal.rest.as_ref().map(|rest| {
            let rest = self.expr(rest);
            quote!(..#rest)
        });
        quote!((#path { #(#fields,)* #rest }))
    }
}

/// The operator of a compound assignment.
fn compound(op: &syn::BinOp) -> Option<&syn::BinOp> {
    use syn::BinOp;
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
    .then_some(op)
}
