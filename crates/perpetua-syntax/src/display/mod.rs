//! The tree as Rust text: for errors, for reading, and for tests that compare a tree with its source.
//!
//! The text reads back as the same tree but for its lines. Layout is plain: four spaces a level, one statement
//! a line, arms and blocks spread out.

mod control;
mod expr;
mod pattern;

use crate::ast::{Block, ExprKind, Function, Generic, GenericArg, Param, PathId, Stmt, StmtKind, Type};
use std::fmt::{Display, Formatter, Result};

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Printer {
            out: f,
            function: self,
            indent: 0,
        }
        .function()
    }
}

struct Printer<'a, 'b> {
    out: &'a mut Formatter<'b>,
    function: &'a Function,
    indent: usize,
}

impl Printer<'_, '_> {
    fn text(&mut self, text: impl Display) -> Result {
        write!(self.out, "{text}")
    }

    fn new_line(&mut self) -> Result {
        write!(self.out, "\n{:1$}", "", 4 * self.indent)
    }

    /// `items` with commas between them.
    fn list<T>(&mut self, items: &[T], mut print: impl FnMut(&mut Self, &T) -> Result) -> Result {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.text(", ")?;
            }
            print(self, item)?;
        }
        Ok(())
    }

    fn function(&mut self) -> Result {
        let function = self.function;
        self.text(format_args!("fn {}", function.name))?;
        let written = function.written_generics();
        if !written.is_empty() {
            self.text("<")?;
            self.list(written, |printer, generic| match generic {
                Generic::Type { name, bounds, .. } if bounds.is_empty() => printer.text(name),
                Generic::Type { name, bounds, .. } => {
                    printer.text(format_args!("{name}: {}", bounds.join(" + ")))
                }
                Generic::Const { name, ty } => printer.text(format_args!("const {name}: {}", ty.name())),
            })?;
            self.text(">")?;
        }
        self.text("(")?;
        self.list(&function.params, Self::param)?;
        self.text(") ")?;
        if let Some(ret) = &function.ret {
            self.text("-> ")?;
            self.ty(ret)?;
            self.text(" ")?;
        }
        self.block(&function.body)
    }

    fn param(&mut self, param: &Param) -> Result {
        let name = &param.name;
        if param.mutable {
            self.text("mut ")?;
        }
        match &param.ty {
            Type::SelfType if name == "self" => self.text("self"),
            Type::Ref {
                mutable: false,
                target,
            } if name == "self" && **target == Type::SelfType => self.text("&self"),
            Type::Ref {
                mutable: true,
                target,
            } if name == "self" && **target == Type::SelfType => self.text("&mut self"),
            ty => {
                self.text(format_args!("{name}: "))?;
                self.ty(ty)
            }
        }
    }

    fn ty(&mut self, ty: &Type) -> Result {
        match ty {
            Type::Unit => self.text("()"),
            Type::Infer => self.text("_"),
            Type::Scalar(scalar) => self.text(scalar.name()),
            Type::Ref { mutable, target } => {
                self.text(if *mutable { "&mut " } else { "&" })?;
                self.ty(target)
            }
            Type::Slice(element) => {
                self.text("[")?;
                self.ty(element)?;
                self.text("]")
            }
            Type::Array { element, len } => {
                self.text("[")?;
                self.ty(element)?;
                self.text("; ")?;
                self.expr(len)?;
                self.text("]")
            }
            Type::Tuple(elements) => {
                self.text("(")?;
                self.list(elements, Self::ty)?;
                self.text(if elements.len() == 1 { ",)" } else { ")" })
            }
            Type::Named(path) => self.path(*path, ""),
            Type::Generic(index) => self.generic_name(*index),
            Type::SelfType => self.text("Self"),
            Type::Assoc(member) => self.member(member),
            Type::Option(some) => {
                self.text("Option<")?;
                self.ty(some)?;
                self.text(">")
            }
            Type::Result(parts) => {
                self.text("Result<")?;
                self.ty(&parts.0)?;
                self.text(", ")?;
                self.ty(&parts.1)?;
                self.text(">")
            }
            Type::Range(of, closed) => {
                self.text(if *closed { "RangeInclusive<" } else { "Range<" })?;
                self.ty(of)?;
                self.text(">")
            }
            Type::GridPos => self.text("GridPos"),
        }
    }

    fn generic_name(&mut self, index: u32) -> Result {
        let generic = usize::try_from(index)
            .ok()
            .and_then(|index| self.function.generics.get(index));
        self.text(generic.map_or("?", Generic::name))
    }

    fn path(&mut self, id: PathId, before_args: &str) -> Result {
        let function = self.function;
        let Some(path) = function.path(id) else {
            return self.text("?");
        };
        for (index, segment) in path.segments.iter().enumerate() {
            if index > 0 || path.leading_colon {
                self.text("::")?;
            }
            self.text(&segment.name)?;
            self.generic_args(&segment.args, before_args)?;
        }
        Ok(())
    }

    fn generic_args(&mut self, args: &[GenericArg], before: &str) -> Result {
        if args.is_empty() {
            return Ok(());
        }
        self.text(format_args!("{before}<"))?;
        self.list(args, |printer, arg| match arg {
            GenericArg::Type(ty) => printer.ty(ty),
            GenericArg::Const(value) => match &value.kind {
                ExprKind::Int { .. } | ExprKind::Bool(_) | ExprKind::ConstParam(_) => printer.expr(value),
                _ => {
                    printer.text("{ ")?;
                    printer.expr(value)?;
                    printer.text(" }")
                }
            },
        })?;
        self.text(">")
    }

    fn block(&mut self, block: &Block) -> Result {
        if block.stmts.is_empty() && block.value.is_none() {
            return self.text("{}");
        }
        self.text("{")?;
        self.indent += 1;
        for (index, stmt) in block.stmts.iter().enumerate() {
            self.new_line()?;
            let is_end = index + 1 == block.stmts.len() && block.value.is_none();
            self.stmt(stmt, is_end)?;
        }
        if let Some(value) = &block.value {
            self.new_line()?;
            self.expr(value)?;
        }
        self.indent -= 1;
        self.new_line()?;
        self.text("}")
    }

    fn stmt(&mut self, stmt: &Stmt, is_end: bool) -> Result {
        match &stmt.kind {
            StmtKind::Let { pattern, ty, init } => {
                self.text("let ")?;
                self.pattern(pattern)?;
                if let Some(ty) = ty {
                    self.text(": ")?;
                    self.ty(ty)?;
                }
                if let Some(init) = init {
                    self.text(" = ")?;
                    self.expr(init)?;
                }
                self.text(";")
            }
            StmtKind::Expr(expr) => {
                self.expr(expr)?;
                self.text(if expr::ends_in_block(&expr.kind) && !is_end {
                    ""
                } else {
                    ";"
                })
            }
        }
    }
}
