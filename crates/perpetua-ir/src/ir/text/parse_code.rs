//! Reads code: bodies, statements, places. Operations are in `parse_op`.

use std::collections::{BTreeMap, HashMap};

use super::cursor::{Result, is_word};
use super::parse::Parser;
use super::words;
use crate::ir::*;
use crate::verify::MAX_BLOCK_DEPTH;

/// The body being read.
#[derive(Default)]
pub(super) struct Scope<'t> {
    /// Types of values, by number: what the text has declared so far.
    pub(super) values: BTreeMap<u32, Type>,
    locals: Vec<Local>,
    /// Local variables by the text after `$`.
    names: HashMap<&'t str, LocalId>,
}

impl<'t> Parser<'t> {
    /// Reads a body in braces. `params` are the types of the values that stand before its first statement.
    pub(super) fn body(&mut self, params: Vec<Type>) -> Result<Body> {
        let mut scope = Scope {
            values: (0u32..).zip(params).collect(),
            ..Scope::default()
        };
        self.cursor.gap();
        self.cursor.expect("{")?;
        loop {
            self.cursor.gap();
            let mut ahead = self.cursor;
            match ahead.take(is_word) {
                "local" => self.local(&mut scope)?,
                "unused" => {
                    self.cursor = ahead;
                    self.cursor.space();
                    self.declared(&mut scope)?;
                    self.end_of_statement()?;
                }
                _ => break,
            }
        }
        let block = self.block(&mut scope, 1)?;
        let mut values = Vec::with_capacity(scope.values.len());
        for (number, ty) in scope.values {
            if number as usize != values.len() {
                return Err(self.cursor.error(
                    format!(
                        "the end of a body that defines %{number} and not %{}",
                        values.len()
                    ),
                    format!("a definition, or `unused %{}: type` at the start", values.len()),
                ));
            }
            values.push(ty);
        }
        Ok(Body {
            values,
            locals: scope.locals,
            block,
        })
    }

    fn end_of_statement(&mut self) -> Result<()> {
        if self.cursor.at_end_of_statement() {
            Ok(())
        } else {
            Err(self.cursor.expected("the end of the statement"))
        }
    }

    /// The text after `$`: a name, and a number where the name is not enough.
    fn local_name(&mut self) -> Result<&'t str> {
        let start = self.cursor;
        self.cursor.identifier("a local variable's name")?;
        if self.cursor.eat("#") {
            self.cursor.number("the variable's number")?;
        }
        let length = start.rest().len() - self.cursor.rest().len();
        Ok(start.rest().get(..length).unwrap_or(""))
    }

    fn local(&mut self, scope: &mut Scope<'t>) -> Result<()> {
        self.cursor.expect("local")?;
        self.cursor.space();
        self.cursor.expect("$")?;
        let start = self.cursor;
        let full = self.local_name()?;
        let (name, number) = full.split_once('#').map_or((full, None), |(n, i)| (n, Some(i)));
        let index = scope.locals.len();
        if number.is_some_and(|n| n != index.to_string()) {
            return Err(start.error(format!("`{full}`"), format!("`{name}#{index}`")));
        }
        self.cursor.space();
        self.cursor.expect(":")?;
        self.cursor.space();
        let ty = self.parse_type()?;
        scope.locals.push(Local {
            name: name.into(),
            ty,
        });
        if scope.names.insert(full, LocalId(index as u32)).is_some() {
            return Err(start.error(
                format!("a second local variable `{full}`"),
                format!("`{full}#{index}`"),
            ));
        }
        self.end_of_statement()
    }

    /// Reads `%3: type` and enters it into the table of values.
    fn declared(&mut self, scope: &mut Scope<'t>) -> Result<(Value, Type)> {
        let start = self.cursor;
        let v = self.value()?;
        self.cursor.space();
        self.cursor.expect(":")?;
        self.cursor.space();
        let ty = self.parse_type()?;
        match scope.values.get(&v.0) {
            Some(other) if *other != ty => Err(start.error(
                format!("%{} of type {ty}", v.0),
                format!("type {other}, which it had before"),
            )),
            Some(_) => Ok((v, ty)),
            None => {
                scope.values.insert(v.0, ty.clone());
                Ok((v, ty))
            }
        }
    }

    pub(super) fn value(&mut self) -> Result<Value> {
        if !self.cursor.eat("%") {
            return Err(self.cursor.expected("a value, such as `%0`"));
        }
        self.cursor.number("a value's number").map(Value)
    }

    /// `, %3`
    pub(super) fn next_value(&mut self) -> Result<Value> {
        self.cursor.space();
        self.cursor.expect(",")?;
        self.cursor.space();
        self.value()
    }

    /// Values separated by commas, perhaps none.
    pub(super) fn values(&mut self) -> Result<Vec<Value>> {
        let mut out = Vec::new();
        self.cursor.space();
        if self.cursor.peek() == Some('%') {
            out.push(self.value()?);
            while self.separated() {
                out.push(self.value()?);
            }
        }
        Ok(out)
    }

    /// Takes a comma and the blanks around it, if there is one.
    pub(super) fn separated(&mut self) -> bool {
        self.cursor.space();
        let more = self.cursor.eat(",");
        self.cursor.space();
        more
    }

    /// `@12`, if it stands here.
    fn line(&mut self) -> Result<u32> {
        self.cursor.space();
        if self.cursor.eat("@") {
            self.cursor.number("a line number")
        } else {
            Ok(0)
        }
    }

    /// Reads statements up to the closing brace, which is read too.
    fn block(&mut self, scope: &mut Scope<'t>, depth: usize) -> Result<Block> {
        if depth > MAX_BLOCK_DEPTH {
            return Err(self.cursor.error(
                format!("blocks nested more than {MAX_BLOCK_DEPTH} deep"),
                "a function for the inner ones",
            ));
        }
        let mut out = Vec::new();
        loop {
            self.cursor.gap();
            if self.cursor.eat("}") {
                return Ok(Block(out));
            }
            out.push(self.statement(scope, depth)?);
        }
    }

    fn braced(&mut self, scope: &mut Scope<'t>, depth: usize) -> Result<Block> {
        self.cursor.space();
        self.cursor.expect("{")?;
        self.block(scope, depth + 1)
    }

    fn statement(&mut self, scope: &mut Scope<'t>, depth: usize) -> Result<Stmt> {
        if self.cursor.peek() == Some('%') {
            let (v, ty) = self.declared(scope)?;
            self.cursor.space();
            self.cursor.expect("=")?;
            self.cursor.space();
            let op = self.op(scope, &ty)?;
            return self.simple(Inst::Let(v, op));
        }
        let start = self.cursor;
        let word = self.cursor.take(is_word);
        self.cursor.space();
        match word {
            "if" => {
                let condition = self.value()?;
                let line = self.line()?;
                let then = self.braced(scope, depth)?;
                let mut ahead = self.cursor;
                ahead.gap();
                let mut otherwise = Block::default();
                if ahead.eat_word("else") {
                    self.cursor = ahead;
                    otherwise = self.braced(scope, depth)?;
                }
                let inst = Inst::If(condition, then, otherwise);
                Ok(Stmt { line, inst })
            }
            "switch" => self.switch(scope, depth),
            "loop" => {
                let line = self.line()?;
                let inst = Inst::Loop(self.braced(scope, depth)?);
                Ok(Stmt { line, inst })
            }
            "block" => {
                let line = self.line()?;
                let inst = Inst::Labeled(self.braced(scope, depth)?);
                Ok(Stmt { line, inst })
            }
            "break" => {
                let depth = self
                    .cursor
                    .number("how many constructs to skip: `break 0` leaves the innermost")?;
                self.simple(Inst::Break(depth))
            }
            "continue" => {
                let depth = self
                    .cursor
                    .number("how many constructs to skip, such as `continue 0`")?;
                self.simple(Inst::Continue(depth))
            }
            "return" => {
                let value = match self.cursor.peek() {
                    Some('%') => Some(self.value()?),
                    _ => None,
                };
                self.simple(Inst::Return(value))
            }
            "store" => {
                let place = self.place(scope)?;
                let v = self.next_value()?;
                let sync = self.sync()?;
                self.simple(Inst::Do(Effect::Store(place, v, sync)))
            }
            "print" => self.formatted(Effect::Print),
            "panic" => self.formatted(Effect::Panic),
            "fault" => {
                let kind = self.word("a fault's name, such as `division_by_zero`", words::fault_named)?;
                self.cursor.space();
                let subject = match self.cursor.peek() {
                    Some('"') => self.cursor.string()?,
                    _ => String::new(),
                };
                let operands = self.values()?;
                self.simple(Inst::Do(Effect::Fault(kind, subject.into(), operands)))
            }
            _ => match self.device(word, false)? {
                Some((op, args)) => self.simple(Inst::Do(Effect::Device(op, args))),
                None => Err(start.expected("a statement or `}`")),
            },
        }
    }

    fn simple(&mut self, inst: Inst) -> Result<Stmt> {
        let line = self.line()?;
        self.end_of_statement()?;
        Ok(Stmt { line, inst })
    }

    fn formatted(&mut self, effect: impl FnOnce(Vec<PrintPiece>, Vec<Value>) -> Effect) -> Result<Stmt> {
        let (mut pieces, mut args) = (Vec::new(), Vec::new());
        if matches!(self.cursor.peek(), Some('"' | '%')) {
            loop {
                match self.cursor.peek() {
                    Some('"') => pieces.push(PrintPiece::Text(self.cursor.string()?)),
                    _ => {
                        args.push(self.value()?);
                        pieces.push(PrintPiece::Arg(self.print_format()?));
                    }
                }
                if !self.separated() {
                    break;
                }
            }
        }
        self.simple(Inst::Do(effect(pieces, args)))
    }

    /// A format behind an argument, such as `":>8.3"`; none is the default.
    fn print_format(&mut self) -> Result<PrintFormat> {
        self.cursor.space();
        if self.cursor.peek() != Some('"') {
            return Ok(PrintFormat::default());
        }
        let start = self.cursor;
        let text = self.cursor.string()?;
        text.strip_prefix(':')
            .and_then(|spec| spec.parse().ok())
            .ok_or_else(|| start.expected("a format such as `\":>8.3\"`"))
    }

    fn switch(&mut self, scope: &mut Scope<'t>, depth: usize) -> Result<Stmt> {
        let selector = self.value()?;
        let scalar = scope.values.get(&selector.0).and_then(Type::as_scalar);
        let line = self.line()?;
        self.cursor.space();
        self.cursor.expect("{")?;
        let mut cases = Vec::new();
        loop {
            self.cursor.gap();
            let start = self.cursor;
            match self.cursor.take(is_word) {
                "case" => {
                    let mut labels = Vec::new();
                    self.cursor.space();
                    if self.cursor.peek() != Some('{') {
                        loop {
                            // Without a selector's type, labels are written by their bits alone.
                            labels.push(self.constant(scalar.unwrap_or(Scalar::U64))?);
                            if !self.separated() {
                                break;
                            }
                        }
                    }
                    cases.push((labels, self.braced(scope, depth + 1)?));
                }
                "default" => {
                    let default = self.braced(scope, depth + 1)?;
                    self.cursor.gap();
                    self.cursor.expect("}")?;
                    let inst = Inst::Switch {
                        selector,
                        cases,
                        default,
                    };
                    return Ok(Stmt { line, inst });
                }
                _ => return Err(start.expected("`case` or `default`")),
            }
        }
    }

    /// An order and a scope, if they stand here.
    pub(super) fn sync(&mut self) -> Result<Option<Sync>> {
        self.cursor.space();
        match self.cursor.peek() {
            Some(c) if is_word(c) => {
                let order = self.word(
                    "`relaxed`, `acquire`, `release`, `acq_rel` or `seq_cst`",
                    words::order_named,
                )?;
                self.cursor.space();
                let scope = self.word("`block`, `device` or `system`", words::scope_named)?;
                Ok(Some(Sync { order, scope }))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn required_sync(&mut self) -> Result<Sync> {
        let sync = self.sync()?;
        sync.ok_or_else(|| {
            self.cursor
                .expected("an order and a scope, such as `relaxed device`")
        })
    }

    pub(super) fn base(&mut self, scope: &Scope<'t>) -> Result<Base> {
        const WANTED: &str = "a buffer, shared variable, constant table or `$local`";
        let start = self.cursor;
        if self.cursor.eat("$") {
            let name = self.local_name()?;
            let id = scope.names.get(name).copied();
            return id
                .map(Base::Local)
                .ok_or_else(|| start.error(format!("`${name}`"), "a local variable of this body"));
        }
        let name = self.cursor.identifier(WANTED)?;
        let known = self.bases.get(name).copied();
        known.ok_or_else(|| start.expected(WANTED))
    }

    pub(super) fn place(&mut self, scope: &Scope<'t>) -> Result<Place> {
        let base = self.base(scope)?;
        let declared = match base {
            Base::Local(id) => scope.locals.get(id.0 as usize).map(|l| (l.ty.clone(), false)),
            Base::Buffer(i) => self.kernel.params.get(i as usize).map(|p| match &p.kind {
                ParamKind::Buffer { element, .. } => (element.clone(), true),
                ParamKind::Value(ty) => (ty.clone(), false),
            }),
            Base::Shared(i) => self
                .kernel
                .shared
                .get(i as usize)
                .map(|s| (s.ty.clone(), s.dynamic)),
            Base::Constant(i) => self
                .kernel
                .constants
                .get(i as usize)
                .map(|c| (c.element.into(), true)),
        };
        let (mut ty, mut run) = match declared {
            Some((ty, run)) => (Some(ty), run),
            None => (None, false),
        };
        let mut path = Vec::new();
        loop {
            if self.cursor.eat("[") {
                self.cursor.space();
                path.push(Step::Index(self.value()?));
                self.cursor.space();
                self.cursor.expect("]")?;
                if !std::mem::take(&mut run) {
                    ty = match ty {
                        Some(Type::Array(element, _)) => Some((*element).clone()),
                        _ => None,
                    };
                }
            } else if self.cursor.peek() == Some('.') {
                let index = self.component(ty.as_ref().filter(|_| !run))?;
                path.push(Step::Field(index));
                ty = ty.filter(|_| !run).and_then(|ty| ty.component(index));
                run = false;
            } else {
                return Ok(Place { base, path });
            }
        }
    }

    /// `.name` or `.3`: a component of a value of type `ty`.
    pub(super) fn component(&mut self, ty: Option<&Type>) -> Result<u32> {
        self.cursor.expect(".")?;
        let start = self.cursor;
        if let Some(Type::Struct(s)) = ty {
            let name = self.cursor.take(is_word);
            if let Some(i) = s.fields.iter().position(|f| f.name == name) {
                return Ok(i as u32);
            }
            self.cursor = start;
            if !self.cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
                return Err(start.expected(format!("a field of `{}`", s.name)));
            }
        }
        self.cursor.number("a component's number")
    }
}
