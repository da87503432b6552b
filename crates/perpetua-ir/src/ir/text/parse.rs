//! Reads kernels: `FromStr` for [`Kernel`]. Declarations and types here, code in `parse_code`.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use super::cursor::{Cursor, ParseError, Result, is_word};
use super::words;
use crate::ir::*;
use crate::ops::eval::float_bits;
use crate::verify::MAX_TYPE_DEPTH;

/// Largest type that is read, in bytes: far above what the verifier allows, and sums of it cannot overflow.
const MAX_BYTES: u64 = 1 << 30;

/// Largest alignment of a struct that is read.
const MAX_ALIGN: u32 = 256;

impl FromStr for Kernel {
    type Err = ParseError;

    /// Reads a kernel from its text form.
    ///
    /// # Errors
    /// The first place where the text is not one, with what stands there and what was expected.
    fn from_str(text: &str) -> Result<Kernel> {
        let mut parser = Parser {
            cursor: Cursor::new(text),
            kernel: Kernel::new(""),
            structs: HashMap::new(),
            bases: HashMap::new(),
            functions: HashMap::new(),
        };
        loop {
            parser.cursor.gap();
            if parser.declaration()? {
                break;
            }
        }
        parser.cursor.gap();
        match parser.cursor.peek() {
            None => Ok(parser.kernel),
            Some(_) => Err(parser.cursor.expected("nothing after the kernel")),
        }
    }
}

pub(super) struct Parser<'t> {
    pub(super) cursor: Cursor<'t>,
    pub(super) kernel: Kernel,
    /// Structs read so far, each with its depth.
    structs: HashMap<&'t str, (Arc<StructType>, usize)>,
    /// What places can begin with, local variables aside.
    pub(super) bases: HashMap<&'t str, Base>,
    pub(super) functions: HashMap<&'t str, u32>,
}

impl<'t> Parser<'t> {
    /// Reads one declaration; gives whether it was the kernel itself.
    fn declaration(&mut self) -> Result<bool> {
        const WANTED: &str = "`struct`, `const`, `shared`, `fn` or `kernel`";
        let start = self.cursor;
        let word = self.cursor.identifier(WANTED)?;
        self.cursor.space();
        match word {
            "struct" => self.structure()?,
            "const" => self.constant_table()?,
            "shared" => self.shared()?,
            "fn" => self.function()?,
            "kernel" => self.entry()?,
            _ => return Err(start.expected(WANTED)),
        }
        Ok(word == "kernel")
    }

    /// Takes a token that blanks and line ends may surround.
    pub(super) fn token(&mut self, token: &str) -> Result<()> {
        self.cursor.gap();
        self.cursor.expect(token)?;
        self.cursor.gap();
        Ok(())
    }

    /// Reads a list up to `close`, the opening bracket being read; a comma may end it.
    fn list(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        loop {
            self.cursor.gap();
            if self.cursor.eat(close) {
                return Ok(());
            }
            item(self)?;
            self.cursor.gap();
            if !self.cursor.eat(",") {
                self.cursor.gap();
                if self.cursor.eat(close) {
                    return Ok(());
                }
                return Err(self.cursor.expected(format!("`,` or `{close}`")));
            }
        }
    }

    /// `(N)` or `(N, N, N)`: numbers of an attribute.
    fn numbers<const N: usize>(&mut self) -> Result<[u32; N]> {
        let mut out = [0; N];
        self.token("(")?;
        for (i, n) in out.iter_mut().enumerate() {
            if i > 0 {
                self.token(",")?;
            }
            *n = self.cursor.number("a number")?;
        }
        self.cursor.gap();
        self.cursor.expect(")")?;
        Ok(out)
    }

    fn structure(&mut self) -> Result<()> {
        let start = self.cursor;
        let name = self.cursor.identifier("the struct's name")?;
        if self.structs.contains_key(name) {
            return Err(start.error(
                format!("a second struct `{name}`"),
                "a name that is not yet taken",
            ));
        }
        self.cursor.space();
        let mut align = 1;
        if self.cursor.eat_word("align") {
            let at = self.cursor;
            [align] = self.numbers()?;
            if !align.is_power_of_two() || align > MAX_ALIGN {
                return Err(at.error(
                    format!("`({align})`"),
                    format!("a power of two up to {MAX_ALIGN}"),
                ));
            }
        }
        self.token("{")?;
        let mut fields: Vec<(String, Type)> = Vec::new();
        let mut bytes = 0u64;
        let mut depth = 0;
        self.list("}", |this| {
            let field = this.cursor.take(is_word);
            if field.is_empty() {
                return Err(this.cursor.expected("a field's name or `}`"));
            }
            this.token(":")?;
            let at = this.cursor;
            let (ty, inner) = this.measured_type(1)?;
            depth = depth.max(inner);
            bytes = bytes.next_multiple_of(ty.align().max(1).into()) + u64::from(ty.size());
            if bytes > MAX_BYTES {
                return Err(at.error(
                    format!("a struct of {bytes} bytes"),
                    format!("at most {MAX_BYTES}"),
                ));
            }
            fields.push((field.into(), ty));
            Ok(())
        })?;
        if depth + 1 > MAX_TYPE_DEPTH {
            return Err(start.error(
                format!("a struct nested {} deep", depth + 1),
                format!("at most {MAX_TYPE_DEPTH}"),
            ));
        }
        let laid = Arc::new(StructType::repr_c(name, fields, align));
        self.structs.insert(name, (laid, depth + 1));
        Ok(())
    }

    /// Reads a type.
    pub(super) fn parse_type(&mut self) -> Result<Type> {
        self.measured_type(1).map(|(ty, _)| ty)
    }

    /// Reads a type inside `depth - 1` others; gives its own depth too.
    fn measured_type(&mut self, depth: usize) -> Result<(Type, usize)> {
        let start = self.cursor;
        let too_deep = || {
            start.error(
                format!("a type nested more than {MAX_TYPE_DEPTH} deep"),
                "a flatter one",
            )
        };
        if depth > MAX_TYPE_DEPTH {
            return Err(too_deep());
        }
        if self.cursor.eat("()") {
            return Ok((Type::tuple(Vec::new()), 1));
        }
        if self.cursor.eat("[") {
            self.cursor.gap();
            let (element, inner) = self.measured_type(depth + 1)?;
            self.token(";")?;
            let n = self.cursor.number("the array's length")?;
            self.cursor.gap();
            self.cursor.expect("]")?;
            let bytes = u64::from(element.size()).saturating_mul(n.into());
            if bytes > MAX_BYTES {
                return Err(start.error(
                    format!("an array of {bytes} bytes"),
                    format!("at most {MAX_BYTES}"),
                ));
            }
            return Ok((Type::array(element, n), inner + 1));
        }
        let name = self.cursor.identifier("a type")?;
        if let Some(s) = Scalar::from_name(name) {
            return Ok((s.into(), 1));
        }
        if let Some((s, n)) = vector(name) {
            return Ok((Type::Vector(s, n), 2));
        }
        match self.structs.get(name) {
            Some((_, inner)) if depth + inner - 1 > MAX_TYPE_DEPTH => Err(too_deep()),
            Some((s, inner)) => Ok((Type::Struct(s.clone()), *inner)),
            None => Err(start.expected("a type: a scalar, a vector, an array or a struct defined above")),
        }
    }

    fn declare_base(&mut self, start: Cursor<'t>, name: &'t str, base: Base) -> Result<()> {
        match self.bases.insert(name, base) {
            None => Ok(()),
            Some(_) => Err(start.error(format!("a second `{name}`"), "a name that is not yet taken")),
        }
    }

    fn constant_table(&mut self) -> Result<()> {
        let start = self.cursor;
        let name = self.cursor.identifier("the table's name")?;
        self.token(":")?;
        self.token("[")?;
        let element = self.scalar_type()?;
        self.token(";")?;
        let at = self.cursor;
        let count = self.cursor.number("the number of elements")?;
        self.token("]")?;
        self.token("=")?;
        self.token("[")?;
        let mut data = Vec::new();
        self.list("]", |this| {
            data.push(this.constant(element)?);
            Ok(())
        })?;
        if data.len() != count as usize {
            return Err(at.error(format!("`{count}`"), format!("{} elements", data.len())));
        }
        let index = self.kernel.constants.len() as u32;
        self.kernel.constants.push(ConstTable {
            name: name.into(),
            element,
            data,
        });
        self.declare_base(start, name, Base::Constant(index))
    }

    fn shared(&mut self) -> Result<()> {
        let start = self.cursor;
        let name = self.cursor.identifier("the shared variable's name")?;
        self.token(":")?;
        // `[T]` is dynamic, `[T; n]` an array.
        let before = self.cursor;
        let mut ty = None;
        if self.cursor.eat("[") {
            self.cursor.gap();
            let element = self.parse_type()?;
            self.cursor.gap();
            if self.cursor.eat("]") {
                ty = Some(element);
            } else {
                self.cursor = before;
            }
        }
        let dynamic = ty.is_some();
        let ty = match ty {
            Some(ty) => ty,
            None => self.parse_type()?,
        };
        let index = self.kernel.shared.len() as u32;
        self.kernel.shared.push(SharedVar {
            name: name.into(),
            ty,
            dynamic,
        });
        self.declare_base(start, name, Base::Shared(index))
    }

    fn function(&mut self) -> Result<()> {
        let start = self.cursor;
        let name = self.cursor.identifier("the function's name")?;
        self.token("(")?;
        let mut params = Vec::new();
        self.list(")", |this| {
            let name = this.cursor.identifier("a parameter's name")?;
            this.token(":")?;
            params.push((name.to_owned(), this.parse_type()?));
            Ok(())
        })?;
        self.cursor.space();
        let mut result = None;
        if self.cursor.eat("->") {
            self.cursor.space();
            result = Some(self.parse_type()?);
            self.cursor.space();
        }
        let index = self.kernel.functions.len() as u32;
        let body = self.body(params.iter().map(|(_, ty)| ty.clone()).collect())?;
        self.kernel.functions.push(Function {
            name: name.into(),
            params,
            result,
            body,
        });
        match self.functions.insert(name, index) {
            None => Ok(()),
            Some(_) => Err(start.error(
                format!("a second function `{name}`"),
                "a name that is not yet taken",
            )),
        }
    }

    fn entry(&mut self) -> Result<()> {
        self.kernel.name = self.cursor.identifier("the kernel's name")?.into();
        self.token("(")?;
        self.list(")", |this| {
            let start = this.cursor;
            let name = this.cursor.identifier("a parameter's name")?;
            this.token(":")?;
            let kind = if this.cursor.eat_word("buffer") {
                this.token("<")?;
                let element = this.parse_type()?;
                this.token(",")?;
                let access = this.word("`read` or `read_write`", words::access_named)?;
                this.cursor.gap();
                this.cursor.expect(">")?;
                ParamKind::Buffer { element, access }
            } else {
                ParamKind::Value(this.parse_type()?)
            };
            let index = this.kernel.params.len() as u32;
            this.kernel.params.push(Param {
                name: name.into(),
                kind,
            });
            this.declare_base(start, name, Base::Buffer(index))
        })?;
        loop {
            self.cursor.gap();
            let start = self.cursor;
            if self.cursor.peek() == Some('{') {
                break;
            }
            const WANTED: &str =
                "`{` or one of `source`, `block_size`, `checks`, `contract`, `stages`, `pointer_width`";
            match self.cursor.identifier(WANTED)? {
                "source" => {
                    self.cursor.gap();
                    self.kernel.source = self.cursor.string()?.into();
                }
                "block_size" => self.kernel.block_size = Some(self.numbers()?),
                "checks" => {
                    self.token("(")?;
                    self.kernel.checks = self.word("`on`, `explicit` or `off`", words::checks_named)?;
                    self.cursor.gap();
                    self.cursor.expect(")")?;
                }
                "contract" => self.kernel.contract = true,
                "stages" => self.kernel.stages = Some(self.stages()?),
                "pointer_width" => [self.kernel.pointer_width] = self.numbers()?,
                _ => return Err(start.expected(WANTED)),
            }
        }
        self.kernel.body = self.body(Vec::new())?;
        Ok(())
    }

    /// Takes a word that `named` knows.
    pub(super) fn word<T>(&mut self, expected: &str, named: impl Fn(&str) -> Option<T>) -> Result<T> {
        let start = self.cursor;
        named(self.cursor.take(is_word)).ok_or_else(|| start.expected(expected))
    }

    /// Takes a scalar type.
    pub(super) fn scalar_type(&mut self) -> Result<Scalar> {
        self.word("a scalar type", Scalar::from_name)
    }

    /// Takes a scalar's value and gives its bits.
    pub(super) fn constant(&mut self, s: Scalar) -> Result<u64> {
        let start = self.cursor;
        let wrong = || start.expected(format!("a value of type {s}"));
        if self.cursor.eat_word("bits") {
            self.cursor.space();
            let at = self.cursor;
            self.cursor.expect("0x")?;
            let digits = self.cursor.take(|c| c.is_ascii_hexdigit());
            return u64::from_str_radix(digits, 16)
                .map_err(|_| at.error(format!("`0x{digits:.20}`"), "up to 64 bits in hexadecimal"));
        }
        let text = self
            .cursor
            .take(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-'));
        if text.is_empty() {
            return Err(wrong());
        }
        let bits = match s {
            Scalar::Bool => match text {
                "true" => Some(1),
                "false" => Some(0),
                _ => None,
            },
            Scalar::F16 | Scalar::BF16 => float(text).map(|v| float_bits(s, v)),
            // Not by way of f64: rounding twice can differ.
            Scalar::F32 => float(text).and_then(|_| text.parse::<f32>().ok().map(|v| v.to_bits().into())),
            Scalar::F64 => float(text).map(f64::to_bits),
            _ => integer(s, text),
        };
        bits.ok_or_else(|| {
            start.error(
                format!("`{}`", text.chars().take(40).collect::<String>()),
                format!("a value of type {s}"),
            )
        })
    }
}

/// A float's value, NaN excepted: that is written by its bits.
fn float(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|v| !v.is_nan())
}

/// An integer's bits, if it fits.
fn integer(s: Scalar, text: &str) -> Option<u64> {
    let v: i128 = text.parse().ok()?;
    let (low, high) = if s.is_signed_int() {
        (-(1i128 << (s.bits() - 1)), (1i128 << (s.bits() - 1)) - 1)
    } else {
        (0, (1i128 << s.bits()) - 1)
    };
    let mask = u64::MAX >> (64 - s.bits());
    (low..=high).contains(&v).then_some(v as u64 & mask)
}

/// The vector type called `name`.
fn vector(name: &str) -> Option<(Scalar, u8)> {
    let (scalar, n) = name.rsplit_once('x')?;
    let n = n.parse().ok().filter(|n| (2..=4).contains(n))?;
    Some((Scalar::from_name(scalar)?, n))
}
