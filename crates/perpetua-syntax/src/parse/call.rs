//! Calls: device functions, functions of scalars, methods, constructors, and the language's own functions.

use super::Refusal;
use super::argument::behind;
use super::expr::{peel, usize_literal};
use super::library::copied_within;
use super::path::{is_variant, segment_names, single_name, starts_upper, typed_variant, variant_of};
use super::reader::{Reader, line_of, name_of};
use super::sugar::{binding, block, local};
use super::types::refused_segment;
use crate::ast::{
    BinaryOp, Expr, ExprKind, GenericArg, MemoryArgs, MemoryOrder, MemoryScope, PART, PICK, PathUsage,
    PrintPiece, Scalar, Stmt, StmtKind, Type, TypeMember, UnaryOp,
};
use crate::intrinsic::{Intrinsic, IntrinsicGroup};
use proc_macro2::Span;
use syn::spanned::Spanned;

impl Reader {
    /// A call, with the span that names its line: that of the callee's name.
    pub(super) fn read_call(&mut self, call: &syn::ExprCall) -> (Span, ExprKind) {
        let outer = std::mem::take(&mut self.hoisted);
        let (span, kind) = self.read_call_alone(call);
        let before = std::mem::replace(&mut self.hoisted, outer);
        (span, behind(before, kind, line_of(span)))
    }

    fn read_call_alone(&mut self, call: &syn::ExprCall) -> (Span, ExprKind) {
        let path = match peel(&call.func) {
            syn::Expr::Path(path) => path,
            function @ syn::Expr::Closure(_) => {
                let args = self.read_arguments(call);
                return (call.func.span(), self.apply(function, args).kind);
            }
            other => {
                self.refuse(other, Refusal::CalleeExpr);
                return (call.func.span(), ExprKind::Tuple(Vec::new()));
            }
        };
        let span = path
            .path
            .segments
            .last()
            .map_or(Span::call_site(), |segment| segment.ident.span());
        (span, self.read_path_call(path, call))
    }

    fn read_path_call(&mut self, path: &syn::ExprPath, call: &syn::ExprCall) -> ExprKind {
        if let Some(qself) = &path.qself {
            let member = self.qualified_member(qself, &path.path);
            return self.read_member_call(member, call);
        }
        let path = &path.path;
        if let Some(name) = single_name(path).filter(|name| self.is_local(name)) {
            if let Some(function) = self.named_function(path) {
                return self.read_path_call(&function, call);
            }
            let args = self.read_arguments(call);
            return ExprKind::CallLocal { name, args };
        }
        if let Some((intrinsic, explicit)) = intrinsic_of(path) {
            return self.read_intrinsic(intrinsic, explicit, path, call);
        }
        if let Some(typed) = typed_variant(path, Some(&call.args)) {
            return self.read_expr(&typed).kind;
        }
        if let (Some(variant), [payload]) = (variant_of(path), &call.args.iter().collect::<Vec<_>>()[..]) {
            let payload = Some(Box::new(self.read_expr(payload)));
            return ExprKind::Variant { variant, payload };
        }
        if let Some(read) = self.read_std_call(path, &call.args) {
            return read;
        }
        if let [own, name] = &segment_names(path)[..]
            && own == "Self"
            && self.method.as_ref() == Some(name)
        {
            self.refuse_named(path, Refusal::Recursion, name);
        }
        if let Some((refusal, name)) = self.refused_callee(path) {
            self.refuse_named(path, refusal, &name);
            self.read_exprs(&call.args);
            return ExprKind::Tuple(Vec::new());
        }
        if is_variant(path) {
            let fields = self.read_exprs(&call.args);
            return self.construct(path, fields);
        }
        if let Some(member) = self.called_member(path) {
            return self.read_member_call(member, call);
        }
        if segment_names(path).last().is_some_and(|name| starts_upper(name)) {
            let fields = self.read_exprs(&call.args);
            return self.construct(path, fields);
        }
        if let Some(name) = single_name(path)
            && self.function.as_ref() == Some(&name)
        {
            self.refuse_named(path, Refusal::Recursion, &name);
        }
        let callee = self.path(path, PathUsage::Call);
        ExprKind::Call {
            callee,
            args: self.read_arguments(call),
        }
    }

    fn read_member_call(&mut self, member: TypeMember, call: &syn::ExprCall) -> ExprKind {
        let args = self.read_arguments(call);
        ExprKind::TypeCall {
            member: Box::new(member),
            args,
        }
    }

    /// `|a, b| body`.
    pub(super) fn read_closure(&mut self, closure: &syn::ExprClosure) -> ExprKind {
        if let Some(token) = &closure.asyncness {
            self.refuse(token, Refusal::AsyncBlock);
        }
        self.scoped(|reader| {
            let mut params = Vec::with_capacity(closure.inputs.len());
            for input in &closure.inputs {
                let (pattern, ty) = match input {
                    syn::Pat::Type(typed) => (&*typed.pat, Some(reader.read_type(&typed.ty))),
                    pattern => (pattern, None),
                };
                params.push((reader.read_let_pattern(pattern), ty));
            }
            ExprKind::Closure {
                moved: closure.capture.is_some(),
                params,
                ret: match &closure.output {
                    syn::ReturnType::Default => None,
                    syn::ReturnType::Type(_, ty) => Some(reader.read_type(ty)),
                },
                body: Box::new(reader.read_expr(&closure.body)),
            }
        })
    }

    /// Why a path cannot be called, and the name to report.
    fn refused_callee(&mut self, path: &syn::Path) -> Option<(Refusal, String)> {
        let names = segment_names(path);
        let text = names.join("::");
        match refused_segment(path) {
            Some((Refusal::HeapType | Refusal::StrType, _)) => return Some((Refusal::HeapCall, text)),
            Some(refused) => return Some(refused),
            None => {}
        }
        let is_std = names
            .first()
            .is_some_and(|name| matches!(name.as_str(), "std" | "core" | "alloc"));
        (is_std && self.called_member(path).is_none()).then_some((Refusal::StdCall, text))
    }

    /// `S(1, 2)`, `Shape::Circle(1.0)`: a struct or a variant whose fields have no names.
    pub(super) fn construct(&mut self, path: &syn::Path, fields: Vec<Expr>) -> ExprKind {
        let name = self.read_struct_name(path);
        let fields = fields.into_iter().enumerate();
        ExprKind::StructLiteral {
            name,
            fields: fields.map(|(index, value)| (index.to_string(), value)).collect(),
            base: None,
        }
    }

    /// A method's call.
    pub(super) fn read_method_call(&mut self, call: &syn::ExprMethodCall) -> ExprKind {
        let outer = std::mem::take(&mut self.hoisted);
        let kind = self.read_method_call_alone(call);
        let before = std::mem::replace(&mut self.hoisted, outer);
        behind(before, kind, line_of(call.method.span()))
    }

    fn read_method_call_alone(&mut self, call: &syn::ExprMethodCall) -> ExprKind {
        if let (syn::Expr::Range(range), "contains", [value]) = (
            peel(&call.receiver),
            name_of(&call.method).as_str(),
            &call.args.iter().collect::<Vec<_>>()[..],
        ) {
            let parts = [&range.start, &range.end].map(|end| end.as_ref().map(|end| self.read_expr(end)));
            let closed = matches!(range.limits, syn::RangeLimits::Closed(_));
            return self.read_contains(parts, closed, value);
        }
        if let Some(end) = self.bound_end(call) {
            return end;
        }
        if let (Some((ends, closed)), "contains", Some(value)) = (
            self.bound_range(&call.receiver),
            name_of(&call.method).as_str(),
            call.args.first(),
        ) {
            return self.read_contains(ends.map(Some), closed, value);
        }
        if let (syn::Expr::Range(range), "get" | "get_mut") = (
            call.args.first().map_or(&*call.receiver, peel),
            name_of(&call.method).as_str(),
        ) {
            return self.read_get_part(call, range);
        }
        if let Some(longer) = copied_within(call).or_else(|| self.part_by_name(call)) {
            return self.read_expr(&longer).kind;
        }
        if self.is_chain(call) {
            self.refuse_named(&call.method, Refusal::IteratorValue, &name_of(&call.method));
            return ExprKind::Tuple(Vec::new());
        }
        if let Some(ended) = self.read_chain_end(call) {
            return ended;
        }
        self.read_late_end(call)
    }

    /// A method of what is no iterator.
    pub(super) fn read_plain_method(&mut self, call: &syn::ExprMethodCall) -> ExprKind {
        let name = name_of(&call.method);
        if self.method.as_ref() == Some(&name)
            && matches!(peel(&call.receiver), syn::Expr::Path(path) if path.path.is_ident("self"))
        {
            self.refuse_named(&call.method, Refusal::Recursion, &name);
        }
        if let Some(refusal) = refused_method(&name) {
            self.refuse_named(&call.method, refusal, &name);
        }
        let mut receiver = Box::new(self.read_expr(&call.receiver));
        let generics = match &call.turbofish {
            Some(turbofish) => self.read_generic_args(turbofish),
            None => Vec::new(),
        };
        // What `expect` panics with.
        let args = match (name.as_str(), &call.args.iter().map(peel).collect::<Vec<_>>()[..]) {
            (
                "expect",
                [
                    syn::Expr::Lit(syn::ExprLit {
                        lit: syn::Lit::Str(text),
                        ..
                    }),
                ],
            ) => vec![Expr::new(
                line_of(text.span()),
                ExprKind::Panic {
                    pieces: vec![PrintPiece::Text(text.value())],
                    args: Vec::new(),
                },
            )],
            _ => {
                let receiver = Some((&*call.receiver, &mut *receiver));
                self.read_in_order(receiver, call.args.iter(), |reader, index, arg| {
                    reader.read_method_argument(&name, index, arg)
                })
            }
        };
        ExprKind::MethodCall {
            receiver,
            name,
            generics,
            args,
        }
    }

    /// `x.get(a..b)`: the part, where both ends are in it.
    fn read_get_part(&mut self, call: &syn::ExprMethodCall, range: &syn::ExprRange) -> ExprKind {
        let line = line_of(call.method.span());
        let mut stmts = Vec::new();
        let mut name = |reader: &mut Self, what: &str, value: Expr| {
            let name = reader.fresh(what);
            stmts.push(Stmt {
                line,
                kind: StmtKind::Let {
                    pattern: binding(&name, line),
                    ty: (what != "base").then_some(Type::Scalar(Scalar::Usize)),
                    init: Some(value),
                },
            });
            local(&name, line)
        };
        let method = |receiver: Expr, name: &str, args: Vec<Expr>| {
            let kind = ExprKind::MethodCall {
                receiver: Box::new(receiver),
                name: name.to_owned(),
                generics: Vec::new(),
                args,
            };
            Expr::new(line, kind)
        };
        let binary = |op: BinaryOp, left: Expr, right: Expr| {
            let (left, right) = (Box::new(left), Box::new(right));
            Expr::new(line, ExprKind::Binary { op, left, right })
        };
        let how = if call.method == "get" {
            "as_slice"
        } else {
            "as_mut_slice"
        };
        let base = self.read_expr(&call.receiver);
        let base = name(self, "base", method(base, how, Vec::new()));
        let start = match &range.start {
            Some(start) => self.read_expr(start),
            None => usize_literal(line, 0),
        };
        let start = name(self, "start", start);
        let len = method(base.clone(), "len", Vec::new());
        let (end, beyond) = match (&range.end, &range.limits) {
            (None, _) => (len.clone(), None),
            (Some(end), syn::RangeLimits::HalfOpen(_)) => (self.read_expr(end), None),
            (Some(last), syn::RangeLimits::Closed(_)) => {
                let last = self.read_expr(last);
                let last = name(self, "last", last);
                let behind = method(last.clone(), "saturating_add", vec![usize_literal(line, 1)]);
                (behind, Some(binary(BinaryOp::Lt, last, len.clone())))
            }
        };
        let end = name(self, "end", end);
        let ordered = binary(BinaryOp::Le, start.clone(), end.clone());
        let within = beyond.unwrap_or_else(|| binary(BinaryOp::Le, end.clone(), len));
        let there = binary(BinaryOp::And, ordered, within);
        let count = method(end, "wrapping_sub", vec![start.clone()]);
        let part = method(base, PART, vec![start, count]);
        let value = method(part, PICK, vec![there]);
        ExprKind::Block {
            label: None,
            block: block(line, stmts, Some(value)),
        }
    }

    fn read_intrinsic(
        &mut self,
        intrinsic: Intrinsic,
        explicit: bool,
        path: &syn::Path,
        call: &syn::ExprCall,
    ) -> ExprKind {
        let generics = match path.segments.last() {
            Some(segment) => self.read_path_args(&segment.arguments),
            None => Vec::new(),
        };
        let count = intrinsic.arg_count();
        let expected = if explicit { count + 2 } else { count };
        if call.args.len() != expected || generics.len() != intrinsic.generic_count() {
            let usage = usage_of(intrinsic, explicit);
            let (given, args) = (call.args.len(), plural(call.args.len(), "argument"));
            let (types, generic_args) = (generics.len(), plural(generics.len(), "generic argument"));
            let suffix = if explicit { "_explicit" } else { "" };
            let name = format!("{}{suffix}", intrinsic.name());
            let message = if given == expected {
                format!("`{name}` is called with {types} {generic_args}: write `{usage}`")
            } else {
                format!("`{name}` is called with {given} {args}: write `{usage}`")
            };
            self.error(call, message);
        }
        let args = self.read_exprs(call.args.iter().take(count));
        self.check_intrinsic(intrinsic, &generics, &args, call);
        let memory = match (
            explicit,
            call.args.iter().nth(count),
            call.args.iter().nth(count + 1),
        ) {
            (true, Some(order), Some(scope)) => self.read_memory_args(order, scope),
            _ => None,
        };
        ExprKind::Intrinsic {
            intrinsic,
            generics,
            args,
            memory,
        }
    }

    /// What an intrinsic's arguments must look like.
    fn check_intrinsic(
        &mut self,
        intrinsic: Intrinsic,
        generics: &[GenericArg],
        args: &[Expr],
        call: &syn::ExprCall,
    ) {
        match intrinsic.group() {
            IntrinsicGroup::Shared => {
                if let Some(GenericArg::Const(_)) = generics.first() {
                    let (name, usage) = (intrinsic.name(), usage_of(intrinsic, false));
                    self.error(&call.func, format!("`{name}` takes a type: write `{usage}`"));
                }
                self.check_dynamic(intrinsic, generics, call);
            }
            IntrinsicGroup::Atomic => {
                let fits = match args.first().map(|place| &place.kind) {
                    Some(ExprKind::Unary { op: UnaryOp::Ref, .. }) => intrinsic == Intrinsic::AtomicLoad,
                    Some(
                        ExprKind::Unary {
                            op: UnaryOp::RefMut, ..
                        }
                        | ExprKind::Local(_),
                    )
                    | None => true,
                    Some(_) => false,
                };
                if !fits && let Some(place) = call.args.first() {
                    self.refuse_named(place, Refusal::AtomicPlace, intrinsic.name());
                }
            }
            IntrinsicGroup::CudaIndex
            | IntrinsicGroup::Index
            | IntrinsicGroup::Sync
            | IntrinsicGroup::Resident
            | IntrinsicGroup::Fast
            | IntrinsicGroup::Subgroup => {}
        }
    }

    fn read_memory_args(&mut self, order: &syn::Expr, scope: &syn::Expr) -> Option<MemoryArgs> {
        let read_order = match enum_variant(order, "Ordering").as_deref() {
            Some("Relaxed") => Some(MemoryOrder::Relaxed),
            Some("Acquire") => Some(MemoryOrder::Acquire),
            Some("Release") => Some(MemoryOrder::Release),
            Some("AcqRel") => Some(MemoryOrder::AcqRel),
            Some("SeqCst") => Some(MemoryOrder::SeqCst),
            _ => None,
        };
        let read_scope = match enum_variant(scope, "Scope").as_deref() {
            Some("Block") => Some(MemoryScope::Block),
            Some("Device") => Some(MemoryScope::Device),
            Some("System") => Some(MemoryScope::System),
            _ => None,
        };
        if read_order.is_none() {
            let message = "the order of an atomic is part of its code: write `Ordering::Relaxed`, `Acquire`, \
                           `Release`, `AcqRel` or `SeqCst`";
            self.error(order, message);
        }
        if read_scope.is_none() {
            let message = "the scope of an atomic is part of its code: write `Scope::Block`, `Device` or \
                           `System`";
            self.error(scope, message);
        }
        Some(MemoryArgs {
            order: read_order?,
            scope: read_scope?,
        })
    }
}

/// The intrinsic that a callee names: by itself, or through the crate `perpetua`.
fn intrinsic_of(path: &syn::Path) -> Option<(Intrinsic, bool)> {
    let last = path.segments.last()?;
    let first = path.segments.first()?;
    (path.segments.len() == 1 || first.ident == "perpetua").then_some(())?;
    Intrinsic::lookup(&name_of(&last.ident))
}

/// The variant in `Enum::Variant`, or in a bare `Variant`.
fn enum_variant(expr: &syn::Expr, enum_name: &str) -> Option<String> {
    let syn::Expr::Path(path) = peel(expr) else {
        return None;
    };
    let mut names = segment_names(&path.path);
    let variant = names.pop()?;
    names
        .pop()
        .is_none_or(|before| before == enum_name)
        .then_some(variant)
}

/// How a call of an intrinsic is written.
fn usage_of(intrinsic: Intrinsic, explicit: bool) -> String {
    let (name, signature) = (intrinsic.name(), intrinsic.signature());
    match intrinsic {
        Intrinsic::SharedArray => format!("{name}::<[f32; 256]>()"),
        Intrinsic::SharedSlice => format!("{name}::<f32>()"),
        Intrinsic::StageFactors | Intrinsic::StageTwins => {
            format!("{name}::<[[[bf16; 64]; 128]; 4], [[[bf16; 64]; 256]; 4]>{signature}")
        }
        _ if explicit => {
            let stem = signature.trim_end_matches(')');
            format!("{name}_explicit{stem}, Ordering::Relaxed, Scope::Device)")
        }
        _ => format!("{name}{signature}"),
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 {
        noun.to_owned()
    } else {
        format!("{noun}s")
    }
}

/// Why a method of the standard library is not in the language; names that a user's own methods may well have
/// are left to the lowering, which knows the receiver's type.
fn refused_method(name: &str) -> Option<Refusal> {
    match name {
        "to_vec" | "to_string" | "to_owned" | "into_boxed_slice" | "as_ptr" | "as_mut_ptr" | "as_str" => {
            Some(Refusal::HeapMethod)
        }
        _ => None,
    }
}
