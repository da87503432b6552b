//! Prints code: bodies, statements, operations. Never fails: what ill-formed code names and the kernel does not have
//! is printed by its number, marked with `#`.

use std::collections::HashMap;
use std::fmt::{self, Write};

use super::words;
use crate::ir::*;

/// Longest text of a single statement, in bytes: what composes a large array is cut off.
const STATEMENT: usize = 200;

/// One statement as a line of text, without what is inside its blocks and without its line number.
pub(crate) fn statement(kernel: &Kernel, body: &Body, inst: &Inst) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = Printer::new(kernel, body, &mut out).head(inst);
    if out.len() > STATEMENT {
        out.truncate(out.floor_char_boundary(STATEMENT));
        out.push('…');
    }
    out
}

/// A body's declarations and statements, one a line, indented.
pub(super) fn body(kernel: &Kernel, body: &Body, params: usize, out: &mut dyn Write) -> fmt::Result {
    let mut printer = Printer::new(kernel, body, out);
    for (i, local) in body.locals.iter().enumerate() {
        printer.word("  local ")?;
        printer.local(LocalId(i as u32))?;
        writeln!(printer.out, ": {}", TypeText(&local.ty))?;
    }
    let mut defined = vec![false; body.values.len()];
    defined.iter_mut().take(params).for_each(|d| *d = true);
    body.block.walk(&mut |stmt| {
        if let Inst::Let(v, _) = stmt.inst
            && let Some(defined) = defined.get_mut(v.0 as usize)
        {
            *defined = true;
        }
    });
    for (i, ty) in body.values.iter().enumerate() {
        if defined.get(i) == Some(&false) {
            writeln!(printer.out, "  unused %{i}: {}", TypeText(ty))?;
        }
    }
    printer.block(&body.block, 1)
}

/// A type as text; the empty tuple, which calls without result give, is `()`.
pub(super) struct TypeText<'a>(pub(super) &'a Type);

impl fmt::Display for TypeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Type::Array(element, n) => write!(f, "[{}; {n}]", TypeText(element)),
            Type::Struct(s) if s.name == "tuple" && s.fields.is_empty() => f.write_str("()"),
            other => write!(f, "{other}"),
        }
    }
}

struct Printer<'a, 'w> {
    kernel: &'a Kernel,
    body: &'a Body,
    /// For each local variable, whether another one of the body has its name.
    twins: Vec<bool>,
    out: &'w mut dyn Write,
}

impl<'a, 'w> Printer<'a, 'w> {
    fn new(kernel: &'a Kernel, body: &'a Body, out: &'w mut dyn Write) -> Self {
        let mut counts = HashMap::new();
        for local in &body.locals {
            *counts.entry(local.name.as_str()).or_insert(0) += 1;
        }
        let twins = body
            .locals
            .iter()
            .map(|local| counts.get(local.name.as_str()) != Some(&1))
            .collect();
        Printer {
            kernel,
            body,
            twins,
            out,
        }
    }

    fn indent(&mut self, depth: usize) -> fmt::Result {
        (0..depth).try_for_each(|_| self.word("  "))
    }

    fn block(&mut self, block: &Block, depth: usize) -> fmt::Result {
        for stmt in &block.0 {
            self.indent(depth)?;
            self.head(&stmt.inst)?;
            if stmt.line != 0 {
                write!(self.out, " @{}", stmt.line)?;
            }
            match &stmt.inst {
                Inst::If(_, then, otherwise) => {
                    self.braced(then, depth)?;
                    if !otherwise.0.is_empty() {
                        self.word(" else")?;
                        self.braced(otherwise, depth)?;
                    }
                }
                Inst::Switch {
                    selector,
                    cases,
                    default,
                } => {
                    self.word(" {\n")?;
                    let selector = self.body.values.get(selector.0 as usize);
                    for (labels, block) in cases {
                        self.indent(depth + 1)?;
                        self.word("case")?;
                        let mut separator = " ";
                        for label in labels {
                            self.word(separator)?;
                            match selector {
                                Some(Type::Scalar(s)) if s.is_int() => scalar(self.out, *s, *label)?,
                                _ => write!(self.out, "bits {label:#x}")?,
                            }
                            separator = ", ";
                        }
                        self.braced(block, depth + 1)?;
                        self.word("\n")?;
                    }
                    self.indent(depth + 1)?;
                    self.word("default")?;
                    self.braced(default, depth + 1)?;
                    self.word("\n")?;
                    self.indent(depth)?;
                    self.word("}")?;
                }
                Inst::Loop(block) | Inst::Labeled(block) => self.braced(block, depth)?,
                _ => {}
            }
            self.word("\n")?;
        }
        Ok(())
    }

    fn braced(&mut self, block: &Block, depth: usize) -> fmt::Result {
        self.word(" {\n")?;
        self.block(block, depth + 1)?;
        self.indent(depth)?;
        self.word("}")
    }

    /// The statement's own line: up to the brace for those with blocks.
    fn head(&mut self, inst: &Inst) -> fmt::Result {
        match inst {
            Inst::Let(v, op) => {
                match self.body.values.get(v.0 as usize) {
                    Some(ty) => write!(self.out, "%{}: {} = ", v.0, TypeText(ty))?,
                    None => write!(self.out, "%{}: ? = ", v.0)?,
                }
                self.op(op, self.body.values.get(v.0 as usize))
            }
            Inst::Do(effect) => self.effect(effect),
            Inst::If(v, ..) => write!(self.out, "if %{}", v.0),
            Inst::Switch { selector, .. } => write!(self.out, "switch %{}", selector.0),
            Inst::Loop(_) => self.out.write_str("loop"),
            Inst::Labeled(_) => self.out.write_str("block"),
            Inst::Break(depth) => write!(self.out, "break {depth}"),
            Inst::Continue(depth) => write!(self.out, "continue {depth}"),
            Inst::Return(None) => self.out.write_str("return"),
            Inst::Return(Some(v)) => write!(self.out, "return %{}", v.0),
        }
    }

    fn word(&mut self, word: &str) -> fmt::Result {
        self.out.write_str(word)
    }

    /// An operation's name with the type that it names itself, which is left out where the value's declared type
    /// says the same.
    fn typed(&mut self, name: &str, own: &Type, declared: Option<&Type>) -> fmt::Result {
        self.word(name)?;
        if Some(own) != declared {
            write!(self.out, "<{}>", TypeText(own))?;
        }
        Ok(())
    }

    fn op(&mut self, op: &Op, declared: Option<&Type>) -> fmt::Result {
        match op {
            Op::Const(s, bits) => {
                self.typed("const", &(*s).into(), declared)?;
                self.word(" ")?;
                scalar(self.out, *s, *bits)
            }
            Op::Zero(ty) => self.typed("zero", ty, declared),
            Op::Param(i) => {
                self.word("param ")?;
                self.param_name(*i)
            }
            Op::Builtin(b) => {
                let (name, axis) = words::builtin(*b);
                self.word(name)?;
                match axis {
                    Some(axis) => write!(self.out, ".{}", axis.name()),
                    None => Ok(()),
                }
            }
            Op::Unary(op, a) => write!(self.out, "{} %{}", op.name(), a.0),
            Op::Binary(op, a, b) => write!(self.out, "{} %{}, %{}", op.name(), a.0, b.0),
            Op::Ternary(op, a, b, c) => write!(self.out, "{} %{}, %{}, %{}", op.name(), a.0, b.0, c.0),
            Op::Cast(to, a) => {
                self.typed("cast", &(*to).into(), declared)?;
                write!(self.out, " %{}", a.0)
            }
            Op::Bitcast(to, a) => {
                self.typed("bitcast", &(*to).into(), declared)?;
                write!(self.out, " %{}", a.0)
            }
            Op::Compose(ty, parts) => {
                self.typed("compose", ty, declared)?;
                self.values(" ", parts)
            }
            Op::Extract(a, i) => {
                write!(self.out, "extract %{}", a.0)?;
                self.component(self.body.values.get(a.0 as usize), *i)
            }
            Op::Insert(a, i, part) => {
                write!(self.out, "insert %{}", a.0)?;
                self.component(self.body.values.get(a.0 as usize), *i)?;
                write!(self.out, ", %{}", part.0)
            }
            Op::Load(place, sync) => {
                self.word("load ")?;
                self.place(place)?;
                self.sync(sync.as_ref())
            }
            Op::Len(base, s) => {
                self.typed("len", &(*s).into(), declared)?;
                self.word(" ")?;
                self.base(*base)
            }
            Op::Atomic(op, place, v, sync) => {
                write!(self.out, "atomic_{} ", op.name())?;
                self.place(place)?;
                write!(self.out, ", %{}", v.0)?;
                self.sync(Some(sync))
            }
            Op::CompareExchange {
                place,
                expected,
                new,
                sync,
            } => {
                self.word("compare_exchange ")?;
                self.place(place)?;
                write!(self.out, ", %{}, %{}", expected.0, new.0)?;
                self.sync(Some(sync))
            }
            Op::Device(op, args) => self.device(*op, args),
            Op::Call(f, args) => {
                match self.kernel.functions.get(*f as usize) {
                    Some(f) => write!(self.out, "call {}(", f.name)?,
                    None => write!(self.out, "call function#{f}(")?,
                }
                self.values("", args)?;
                self.word(")")
            }
        }
    }

    fn effect(&mut self, effect: &Effect) -> fmt::Result {
        match effect {
            Effect::Store(place, v, sync) => {
                self.word("store ")?;
                self.place(place)?;
                write!(self.out, ", %{}", v.0)?;
                self.sync(sync.as_ref())
            }
            Effect::Device(op, args) => self.device(*op, args),
            Effect::Print(pieces, args) | Effect::Panic(pieces, args) => {
                self.word(match effect {
                    Effect::Print(..) => "print",
                    _ => "panic",
                })?;
                let mut args = args.iter();
                let mut separator = " ";
                for piece in pieces {
                    self.word(separator)?;
                    separator = ", ";
                    match piece {
                        PrintPiece::Text(text) => string(self.out, text)?,
                        PrintPiece::Arg(format) => {
                            match args.next() {
                                Some(v) => write!(self.out, "%{}", v.0)?,
                                None => self.word("%?")?,
                            }
                            if *format != PrintFormat::default() {
                                write!(self.out, " \":{format}\"")?;
                            }
                        }
                    }
                }
                for v in args {
                    write!(self.out, "{separator}surplus %{}", v.0)?;
                    separator = ", ";
                }
                Ok(())
            }
            Effect::Fault(kind, subject, operands) => {
                write!(self.out, "fault {}", kind.name())?;
                if !subject.is_empty() {
                    self.out.write_char(' ')?;
                    string(self.out, subject)?;
                }
                self.values(" ", operands)
            }
        }
    }

    fn device(&mut self, op: DeviceOp, args: &[Value]) -> fmt::Result {
        let (stem, attribute) = op.row().name;
        write!(self.out, "{stem}{attribute}")?;
        self.values(" ", args)
    }

    fn values(&mut self, before: &str, values: &[Value]) -> fmt::Result {
        let mut separator = before;
        for v in values {
            write!(self.out, "{separator}%{}", v.0)?;
            separator = ", ";
        }
        Ok(())
    }

    fn sync(&mut self, sync: Option<&Sync>) -> fmt::Result {
        match sync {
            Some(s) => write!(self.out, " {} {}", words::order(s.order), s.scope.name()),
            None => Ok(()),
        }
    }

    fn param_name(&mut self, i: u32) -> fmt::Result {
        match self.kernel.params.get(i as usize) {
            Some(p) => self.out.write_str(&p.name),
            None => write!(self.out, "param#{i}"),
        }
    }

    fn base(&mut self, base: Base) -> fmt::Result {
        match base {
            Base::Buffer(i) => self.param_name(i),
            Base::Shared(i) => match self.kernel.shared.get(i as usize) {
                Some(s) => self.out.write_str(&s.name),
                None => write!(self.out, "shared#{i}"),
            },
            Base::Local(id) => self.local(id),
            Base::Constant(i) => match self.kernel.constants.get(i as usize) {
                Some(c) => self.out.write_str(&c.name),
                None => write!(self.out, "const#{i}"),
            },
        }
    }

    /// A local variable: its name, with its number where the name is not unique in the body.
    fn local(&mut self, id: LocalId) -> fmt::Result {
        let Some(local) = self.body.locals.get(id.0 as usize) else {
            return write!(self.out, "$local#{}", id.0);
        };
        write!(self.out, "${}", local.name)?;
        if self.twins.get(id.0 as usize) == Some(&true) {
            write!(self.out, "#{}", id.0)?;
        }
        Ok(())
    }

    /// Type at the start of a place's path, if it has one.
    fn base_type(&self, base: Base) -> Option<(Type, bool)> {
        match base {
            Base::Buffer(i) => match &self.kernel.params.get(i as usize)?.kind {
                ParamKind::Buffer { element, .. } => Some((element.clone(), true)),
                ParamKind::Value(_) => None,
            },
            Base::Shared(i) => self
                .kernel
                .shared
                .get(i as usize)
                .map(|s| (s.ty.clone(), s.dynamic)),
            Base::Local(id) => self.body.locals.get(id.0 as usize).map(|l| (l.ty.clone(), false)),
            Base::Constant(i) => {
                let table = self.kernel.constants.get(i as usize)?;
                Some((table.element.into(), true))
            }
        }
    }

    fn place(&mut self, place: &Place) -> fmt::Result {
        self.base(place.base)?;
        let mut at = self.base_type(place.base);
        for step in &place.path {
            match step {
                Step::Index(v) => {
                    write!(self.out, "[%{}]", v.0)?;
                    at = match at {
                        Some((ty, true)) => Some((ty, false)),
                        Some((Type::Array(element, _), false)) => Some(((*element).clone(), false)),
                        _ => None,
                    };
                }
                Step::Field(i) => {
                    let here = at.filter(|(_, run)| !run).map(|(ty, _)| ty);
                    self.component(here.as_ref(), *i)?;
                    at = here.and_then(|ty| ty.component(*i)).map(|ty| (ty, false));
                }
            }
        }
        Ok(())
    }

    /// `.name` of a struct's field, `.3` of anything else.
    fn component(&mut self, ty: Option<&Type>, index: u32) -> fmt::Result {
        match ty {
            Some(Type::Struct(s)) => match s.fields.get(index as usize) {
                Some(field) => write!(self.out, ".{}", field.name),
                None => write!(self.out, ".{index}"),
            },
            _ => write!(self.out, ".{index}"),
        }
    }
}

/// A constant's value: decimal where that gives the same bits again, else its bits.
pub(super) fn scalar(out: &mut dyn Write, s: Scalar, bits: u64) -> fmt::Result {
    if s.bits() < 64 && bits >> s.bits() != 0 {
        return write!(out, "bits {bits:#x}");
    }
    let float = |out: &mut dyn Write, v: f64| {
        if v.is_nan() {
            write!(out, "bits {bits:#x}")
        } else {
            write!(out, "{v:?}")
        }
    };
    match s {
        Scalar::Bool => write!(out, "{}", bits != 0),
        Scalar::I8 => write!(out, "{}", bits as i8),
        Scalar::I16 => write!(out, "{}", bits as i16),
        Scalar::I32 => write!(out, "{}", bits as i32),
        Scalar::I64 => write!(out, "{}", bits as i64),
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => write!(out, "{bits}"),
        Scalar::F16 => float(out, half::f16::from_bits(bits as u16).to_f64()),
        Scalar::BF16 => float(out, half::bf16::from_bits(bits as u16).to_f64()),
        Scalar::F32 => {
            let v = f32::from_bits(bits as u32);
            if v.is_nan() {
                write!(out, "bits {bits:#x}")
            } else {
                write!(out, "{v:?}")
            }
        }
        Scalar::F64 => float(out, f64::from_bits(bits)),
    }
}

/// A string literal with Rust's escapes.
pub(super) fn string(out: &mut dyn Write, text: &str) -> fmt::Result {
    write!(out, "{text:?}")
}
