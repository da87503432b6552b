//! Integers and conditions as the probe follows them. What it cannot follow is `None`, and is looked at for its accesses
//! only.
//!
//! Every expression here has the type that it has in the function: what says its type stands in it. Where only literals
//! do, inference may have learnt the type elsewhere; such numbers are *soft*, and the probe trusts them only while
//! they fit every integer type.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;

use super::language::{Index, global_idiom, index_function, intrinsic_of, is_integer, name_of, peel};
use super::probe::Follow;
use super::scope::Name;

/// An integer that the probe follows.
pub(super) struct Known {
    /// An expression of type `Affine<T>`.
    pub(super) tokens: TokenStream,
    /// Whether only literals say its type.
    pub(super) soft: bool,
    /// Whether it is a constant or a parameter's field, which may be no number: its methods may be of another's making.
    pub(super) loose: bool,
}

impl Follow<'_> {
    fn hard(&self, tokens: TokenStream) -> Option<Known> {
        Some(Known {
            tokens,
            soft: false,
            loose: false,
        })
    }

    fn loose(&self, tokens: TokenStream) -> Option<Known> {
        Some(Known {
            tokens,
            soft: false,
            loose: true,
        })
    }

    /// An integer. It contains no access to memory.
    pub(super) fn integer(&mut self, expr: &syn::Expr) -> Option<Known> {
        let p = self.probe.clone();
        if let Some((axis, ty)) = global_idiom(expr) {
            let global = self.global(axis);
            let ty = ty.map_or(quote!(i32), |ty| quote!(#ty));
            return self.hard(quote!(#p.cast::<_, #ty>(#global)));
        }
        match peel(expr) {
            syn::Expr::Lit(lit) => match &lit.lit {
                syn::Lit::Int(int) if int.suffix().is_empty() => Some(Known {
                    tokens: quote!(#p.literal(0, #lit)),
                    soft: true,
                    loose: false,
                }),
                syn::Lit::Int(int) if !int.suffix().starts_with('f') => self.hard(quote!(#p.uniform(#lit))),
                syn::Lit::Byte(_) => self.hard(quote!(#p.uniform(#lit))),
                _ => None,
            },
            syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => match peel(&unary.expr) {
                syn::Expr::Lit(lit) => match &lit.lit {
                    syn::Lit::Int(int) if int.suffix().is_empty() => Some(Known {
                        tokens: quote!(#p.negative_literal(0, #unary)),
                        soft: true,
                        loose: false,
                    }),
                    syn::Lit::Int(int) if !int.suffix().starts_with('f') => {
                        self.hard(quote!(#p.uniform(#unary)))
                    }
                    _ => None,
                },
                inner => {
                    let known = self.integer(inner)?;
                    let tokens = &known.tokens;
                    Some(Known {
                        tokens: quote!(#tokens.negated()),
                        ..known
                    })
                }
            },
            syn::Expr::Path(_) => self.named(expr),
            syn::Expr::Field(_) => self.uniform_field(expr),
            syn::Expr::Cast(cast) if is_integer(&cast.ty) => {
                let (inner, ty) = (self.integer(&cast.expr)?.tokens, &cast.ty);
                self.hard(quote!(#p.cast::<_, #ty>(#inner)))
            }
            syn::Expr::Binary(binary) => self.operator(binary),
            syn::Expr::Call(call) => self.index(call),
            syn::Expr::MethodCall(call) => self.method(call),
            syn::Expr::If(branch) => self.chosen(branch),
            syn::Expr::Block(block) if block.label.is_none() => match &block.block.stmts[..] {
                [syn::Stmt::Expr(value, None)] => self.integer(value),
                _ => None,
            },
            _ => None,
        }
    }

    /// A name: a local that the probe follows, or a constant.
    fn named(&mut self, expr: &syn::Expr) -> Option<Known> {
        let p = &self.probe;
        if let Some(name) = name_of(expr) {
            match self.scope.find(name) {
                Some(Name::Known { soft, loose }) => {
                    return Some(Known {
                        tokens: quote!(#name),
                        soft,
                        loose,
                    });
                }
                Some(_) => return None,
                None => {}
            }
        }
        // A constant by the rules of case. Of another type than a number it could not be computed with.
        let syn::Expr::Path(path) = peel(expr) else {
            return None;
        };
        let last = path.path.segments.last()?.ident.unraw().to_string();
        let shouts = last
            .chars()
            .all(|c| c.is_uppercase() || c.is_ascii_digit() || c == '_');
        if shouts {
            self.loose(quote!(#p.uniform(#path)))
        } else {
            None
        }
    }

    /// A field of a parameter, the same for all lanes.
    fn uniform_field(&mut self, expr: &syn::Expr) -> Option<Known> {
        let mut root = peel(expr);
        while let syn::Expr::Field(field) = root {
            root = peel(&field.base);
        }
        let is_uniform = name_of(root).and_then(|name| self.scope.find(name)) == Some(Name::Uniform);
        let p = &self.probe;
        if is_uniform {
            self.loose(quote!(#p.uniform(#expr)))
        } else {
            None
        }
    }

    fn operator(&mut self, binary: &syn::ExprBinary) -> Option<Known> {
        use syn::BinOp;
        let p = self.probe.clone();
        let (left, right) = (self.integer(&binary.left)?, self.integer(&binary.right)?);
        let (a, b) = (&left.tokens, &right.tokens);
        let shift = matches!(binary.op, BinOp::Shl(_) | BinOp::Shr(_));
        let tokens = match binary.op {
            BinOp::Add(_) => quote!(#a.plus(#b)),
            BinOp::Sub(_) => quote!(#a.minus(#b)),
            BinOp::Mul(_) => quote!(#a.times(#b)),
            BinOp::Div(_) => quote!(#p.div(#a, #b)),
            BinOp::Rem(_) => quote!(#p.rem(#a, #b)),
            BinOp::BitAnd(_) => quote!(#p.and(#a, #b)),
            BinOp::Shl(_) => quote!(#p.shl(#a, #b)),
            BinOp::Shr(_) => quote!(#p.shr(#a, #b)),
            _ => return None,
        };
        Some(Known {
            tokens,
            soft: left.soft && (shift || right.soft),
            loose: left.loose && right.loose,
        })
    }

    fn index(&mut self, call: &syn::ExprCall) -> Option<Known> {
        let syn::Expr::Path(path) = peel(&call.func) else {
            return None;
        };
        let function = index_function(intrinsic_of(&path.path)?)?;
        let (p, axis) = (self.probe.clone(), function.axis);
        let wide = match function.what {
            Index::Thread => quote!(#p.thread(#axis)),
            Index::Block => quote!(#p.block(#axis)),
            Index::BlockDim => quote!(#p.block_dim(#axis)),
            Index::GridDim => quote!(#p.grid_dim(#axis)),
            Index::Global => self.global(axis),
            Index::GlobalSize => quote!(#p.global_size(#axis)),
        };
        self.hard(if function.cuda {
            quote!(#p.cast::<_, i32>(#wide))
        } else {
            wide
        })
    }

    fn global(&self, axis: usize) -> TokenStream {
        let p = &self.probe;
        if self.merged {
            quote!(#p.global(#axis))
        } else {
            quote!(#p.global_of_group(#axis))
        }
    }

    fn method(&mut self, call: &syn::ExprMethodCall) -> Option<Known> {
        let p = self.probe.clone();
        let name = call.method.unraw().to_string();
        match name_of(&call.receiver).and_then(|name| self.scope.find(name)) {
            Some(Name::Buffer { .. }) if name == "len" => {
                let receiver = &call.receiver;
                return self.hard(quote!(#p.uniform(#receiver.len())));
            }
            Some(Name::Position) => {
                let grid = &self.grid;
                return match name.as_str() {
                    "x" => self.hard(quote!(#p.global(0usize))),
                    "y" => self.hard(quote!(#p.global(1usize))),
                    "z" => self.hard(quote!(#p.global(2usize))),
                    "idx" => self.hard(quote!(#p.idx(&#grid))),
                    _ => None,
                };
            }
            _ => {}
        }
        let receiver = self.integer(&call.receiver)?;
        if receiver.loose {
            return None;
        }
        let mut args = Vec::new();
        for arg in &call.args {
            args.push(self.integer(arg)?);
        }
        let soft = receiver.soft && args.iter().all(|arg| arg.soft);
        let a = &receiver.tokens;
        let args: Vec<&TokenStream> = args.iter().map(|arg| &arg.tokens).collect();
        let tokens = match (name.as_str(), &args[..]) {
            ("wrapping_add", [b]) => quote!(#a.plus(#b)),
            ("wrapping_sub", [b]) => quote!(#a.minus(#b)),
            ("wrapping_mul", [b]) => quote!(#a.times(#b)),
            ("saturating_sub", [b]) => quote!(#p.saturating_sub(#a, #b)),
            ("min", [b]) => quote!(#p.min(#a, #b)),
            ("max", [b]) => quote!(#p.max(#a, #b)),
            ("clamp", [b, c]) => quote!(#p.clamp(#a, #b, #c)),
            _ => return None,
        };
        Some(Known {
            tokens,
            soft,
            loose: false,
        })
    }

    /// `if … { a } else { b }`.
    fn chosen(&mut self, branch: &syn::ExprIf) -> Option<Known> {
        let [syn::Stmt::Expr(then, None)] = &branch.then_branch.stmts[..] else {
            return None;
        };
        let then = self.integer(then)?;
        let (_, otherwise) = branch.else_branch.as_ref()?;
        let otherwise = self.integer(otherwise)?;
        let truth = self.guard(branch)?;
        let (p, native) = (&self.probe, &self.native);
        let (a, b) = (&then.tokens, &otherwise.tokens);
        Some(Known {
            tokens: quote! {
                match #truth {
                    #native::Truth::Always => #a,
                    #native::Truth::Never => #b,
                    #native::Truth::Perhaps => #p.either(#a, #b),
                }
            },
            soft: then.soft && otherwise.soft,
            loose: then.loose && otherwise.loose,
        })
    }

    /// A condition as an expression of type `Truth`, if the probe can follow any of it; it contains no access to memory.
    pub(super) fn pure_condition(&mut self, expr: &syn::Expr) -> Option<TokenStream> {
        let (p, native) = (self.probe.clone(), self.native.clone());
        match peel(expr) {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Bool(value),
                ..
            }) => Some(quote!(#native::Truth::of(#value))),
            syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Not(_)) => {
                let inner = self.pure_condition(&unary.expr)?;
                Some(quote!(#inner.not()))
            }
            syn::Expr::Binary(binary) => {
                use syn::BinOp;
                let (a, b) = (
                    self.integer(&binary.left)?.tokens,
                    self.integer(&binary.right)?.tokens,
                );
                Some(match binary.op {
                    BinOp::Lt(_) => quote!(#p.lt(#a, #b)?),
                    BinOp::Gt(_) => quote!(#p.lt(#b, #a)?),
                    BinOp::Ge(_) => quote!(#p.ge(#a, #b)?),
                    BinOp::Le(_) => quote!(#p.ge(#b, #a)?),
                    BinOp::Eq(_) => quote!(#p.eq(#a, #b)?),
                    BinOp::Ne(_) => quote!(#p.eq(#a, #b)?.not()),
                    _ => return None,
                })
            }
            syn::Expr::Path(_) => {
                let name = name_of(expr)?;
                let flag =
                    self.flags.contains(&name.to_string()) && self.scope.find(name) == Some(Name::Uniform);
                flag.then(|| quote!(#native::Truth::of(#name)))
            }
            _ => None,
        }
    }
}
