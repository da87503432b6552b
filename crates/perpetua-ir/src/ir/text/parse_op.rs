//! Reads operations.

use super::cursor::{Result, is_word};
use super::parse::Parser;
use super::parse_code::Scope;
use super::words;
use crate::ir::*;
use crate::ops::{BinaryOp, Gives, TernaryOp, UnaryOp};

impl<'t> Parser<'t> {
    /// The type that an operation names itself, or else the one declared for its value.
    fn own_type(&mut self, declared: &Type) -> Result<Type> {
        if !self.cursor.eat("<") {
            return Ok(declared.clone());
        }
        let ty = self.parse_type()?;
        self.cursor.expect(">")?;
        Ok(ty)
    }

    fn own_scalar(&mut self, declared: &Type) -> Result<Scalar> {
        let start = self.cursor;
        let ty = self.own_type(declared)?;
        ty.as_scalar()
            .ok_or_else(|| start.error(format!("type {ty}"), "a scalar type, such as `<u32>`"))
    }

    pub(super) fn op(&mut self, scope: &Scope<'t>, declared: &Type) -> Result<Op> {
        let start = self.cursor;
        let word = self.cursor.take(is_word);
        if let Some(op) = self.own_typed(word, declared)? {
            return Ok(op);
        }
        self.cursor.space();
        Ok(match word {
            "param" => {
                let at = self.cursor;
                let name = self.cursor.identifier("a parameter's name")?;
                match self.bases.get(name) {
                    Some(Base::Buffer(i)) => Op::Param(*i),
                    _ => return Err(at.expected("a parameter's name")),
                }
            }
            "extract" => {
                let (v, i) = self.value_component(scope)?;
                Op::Extract(v, i)
            }
            "insert" => {
                let (v, i) = self.value_component(scope)?;
                Op::Insert(v, i, self.next_value()?)
            }
            "load" => {
                let place = self.place(scope)?;
                Op::Load(place, self.sync()?)
            }
            "compare_exchange" => {
                let place = self.place(scope)?;
                let expected = self.next_value()?;
                let new = self.next_value()?;
                let sync = self.required_sync()?;
                Op::CompareExchange {
                    place,
                    expected,
                    new,
                    sync,
                }
            }
            "call" => {
                let at = self.cursor;
                let name = self.cursor.identifier("a function's name")?;
                let known = self.functions.get(name).copied();
                let f = known.ok_or_else(|| at.expected("a function defined above"))?;
                self.cursor.expect("(")?;
                let args = self.values()?;
                self.cursor.expect(")")?;
                Op::Call(f, args)
            }
            _ => match self.named(scope, word)? {
                Some(op) => op,
                None => return Err(start.expected("an operation")),
            },
        })
    }

    /// Operations that name a type of their own where it is not the value's.
    fn own_typed(&mut self, word: &str, declared: &Type) -> Result<Option<Op>> {
        Ok(Some(match word {
            "const" => {
                let s = self.own_scalar(declared)?;
                self.cursor.space();
                Op::Const(s, self.constant(s)?)
            }
            "zero" => Op::Zero(self.own_type(declared)?),
            "cast" | "bitcast" => {
                let s = self.own_scalar(declared)?;
                self.cursor.space();
                let v = self.value()?;
                if word == "cast" {
                    Op::Cast(s, v)
                } else {
                    Op::Bitcast(s, v)
                }
            }
            "compose" => {
                let ty = self.own_type(declared)?;
                Op::Compose(ty, self.values()?)
            }
            "len" => {
                let s = self.own_scalar(declared)?;
                self.cursor.space();
                Op::Len(self.base(&Scope::default())?, s)
            }
            _ => return Ok(None),
        }))
    }

    /// Operations of tables: builtins, operators, atomics, operations of the device.
    fn named(&mut self, scope: &Scope<'t>, word: &str) -> Result<Option<Op>> {
        if let Some((builtin, has_axis)) = words::builtin_named(word, Axis::X) {
            if !has_axis {
                return Ok(Some(Op::Builtin(builtin)));
            }
            self.cursor.expect(".")?;
            let axis = self.word("`x`, `y` or `z`", |name| {
                Axis::ALL.into_iter().find(|a| a.name() == name)
            })?;
            return Ok(words::builtin_named(word, axis).map(|(b, _)| Op::Builtin(b)));
        }
        if let Some(op) = word.strip_prefix("atomic_").and_then(words::atomic_named) {
            let place = self.place(scope)?;
            let v = self.next_value()?;
            return Ok(Some(Op::Atomic(op, place, v, self.required_sync()?)));
        }
        if let Some((op, args)) = self.device(word, true)? {
            return Ok(Some(Op::Device(op, args)));
        }
        if let Some(op) = UnaryOp::from_name(word) {
            return Ok(Some(Op::Unary(op, self.value()?)));
        }
        if let Some(op) = BinaryOp::from_name(word) {
            let a = self.value()?;
            return Ok(Some(Op::Binary(op, a, self.next_value()?)));
        }
        if let Some(op) = TernaryOp::from_name(word) {
            let a = self.value()?;
            let b = self.next_value()?;
            return Ok(Some(Op::Ternary(op, a, b, self.next_value()?)));
        }
        Ok(None)
    }

    /// The rest of an operation of the device that begins with `word` and gives a value or, as an effect, none.
    pub(super) fn device(&mut self, word: &str, gives: bool) -> Result<Option<(DeviceOp, Vec<Value>)>> {
        let rows = DeviceOp::all().filter(|op| (op.row().gives != Gives::Nothing) == gives);
        let mut attributes = Vec::new();
        for op in rows {
            let (stem, attribute) = op.row().name;
            if word.strip_prefix(stem) == Some(attribute) {
                return Ok(Some((op, self.values()?)));
            }
            if stem.strip_suffix(' ') == Some(word) {
                attributes.push((attribute, op));
            }
        }
        if attributes.is_empty() {
            return Ok(None);
        }
        let expected: Vec<String> = attributes.iter().map(|(name, _)| format!("`{name}`")).collect();
        let op = self.word(&expected.join(" or "), |word| {
            attributes
                .iter()
                .find(|(name, _)| *name == word)
                .map(|(_, op)| *op)
        })?;
        Ok(Some((op, self.values()?)))
    }

    /// `%3.x`: a value and one of its components.
    fn value_component(&mut self, scope: &Scope<'t>) -> Result<(Value, u32)> {
        let v = self.value()?;
        let index = self.component(scope.values.get(&v.0))?;
        Ok((v, index))
    }
}
