//! What prints, or panics with, a text. A device writes scalars, so other values are taken apart as `derive(Debug)` writes them; where
//! a value decides what stands in the text, each text has a branch of its own.

use std::collections::VecDeque;

use perpetua_syntax::{
    MESSAGE_VALUES, PrintFormat, PrintNotation, PrintPiece as SyntaxPiece, Scalar as SyntaxScalar,
};

use super::value::Val;
use super::{Emitter, Result};
use crate::front::rust::describe::StructDesc;
use crate::front::rust::infer::methods::{Num, num};
use crate::front::rust::infer::tree::Expr;
use crate::front::rust::infer::ty::{Len, Ty, show};
use crate::ir::{Effect, Inst, PrintPiece, Scalar, Value};

/// Texts of one message up to which it is divided.
const MOST_TEXTS: usize = 64;

/// Elements of an array up to which it is shown.
const MOST_ELEMENTS: u64 = 16;

/// A part of a text that is still to be written.
#[derive(Clone)]
pub(super) enum Part {
    Text(String),
    Value(Val, Ty, PrintFormat),
}

/// A text as far as it is written.
#[derive(Clone, Default)]
struct Written {
    pieces: Vec<PrintPiece>,
    values: Vec<Value>,
}

/// What the text is for.
#[derive(Clone, Copy)]
pub(super) enum Message {
    Print,
    Panic,
}

impl Written {
    fn text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(PrintPiece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(PrintPiece::Text(text.to_owned())),
        }
    }
}

impl Emitter<'_> {
    /// What prints, or panics with, a text.
    pub(super) fn formatted(
        &mut self,
        pieces: &[SyntaxPiece],
        args: &[Expr],
        line: u32,
        message: Message,
    ) -> Result<()> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            let ty = self.scope.f.types.deep(&arg.ty, true);
            values.push((self.expr(arg)?, ty));
        }
        self.at(line);
        let mut parts = VecDeque::with_capacity(pieces.len());
        for piece in pieces {
            parts.push_back(match piece {
                SyntaxPiece::Text(text) => Part::Text(text.clone()),
                SyntaxPiece::Arg { index, format } => {
                    let Some((value, ty)) = values.get(*index as usize) else {
                        return Err(self.error(line, "the format names an argument that is not there", ""));
                    };
                    Part::Value(value.clone(), ty.clone(), *format)
                }
            });
        }
        self.write_parts(parts, Written::default(), message, 1, line)
    }

    /// Writes the parts behind what is written, which is one of so many texts.
    fn write_parts(
        &mut self,
        mut parts: VecDeque<Part>,
        mut written: Written,
        message: Message,
        texts: usize,
        line: u32,
    ) -> Result<()> {
        while let Some(part) = parts.pop_front() {
            let (val, ty, format) = match part {
                Part::Text(text) => {
                    written.text(&text);
                    continue;
                }
                Part::Value(val, ty, format) => (val, ty, format),
            };
            if let Ty::Scalar(scalar) = ty {
                self.check_format(scalar, format, line)?;
                if let n @ (Num::I128 | Num::U128) = num(scalar, self.program.width) {
                    let value = self.value_of(&val, line)?;
                    let texts_of = self.wide_texts(value, n, format, line)?;
                    return self.write_alternatives(
                        &texts_of,
                        (&val, format),
                        &parts,
                        &written,
                        message,
                        texts.saturating_mul(texts_of.all.len()),
                        line,
                    );
                }
                // A fault has room for so many.
                if matches!(message, Message::Panic) && written.values.len() >= MESSAGE_VALUES {
                    written.text("…");
                } else {
                    written.pieces.push(PrintPiece::Arg(format));
                    written.values.push(self.value_of(&val, line)?);
                }
                continue;
            }
            if format.notation != PrintNotation::Debug || format.alternate {
                return Err(self.error(
                    line,
                    format!("`{}` is printed with `{{:{format}}}`", show(&ty)).replace("{:}", "{}"),
                    "write `{:?}`, or print its scalars one by one",
                ));
            }
            let Some(alternatives) = self.alternatives(&val, &ty, line)? else {
                let inner = self.taken_apart(&val, &ty, format, line)?;
                inner.into_iter().rev().for_each(|part| parts.push_front(part));
                continue;
            };
            let texts = texts.saturating_mul(alternatives.all.len().max(1));
            return self.write_alternatives(
                &alternatives,
                (&val, format),
                &parts,
                &written,
                message,
                texts,
                line,
            );
        }
        let effect = match message {
            Message::Print => Effect::Print(written.pieces, written.values),
            Message::Panic => Effect::Panic(written.pieces, written.values),
        };
        let done = self.k.effect(effect);
        self.typed(line, done)
    }

    #[expect(clippy::too_many_arguments, reason = "the state of a text that divides")]
    fn write_alternatives(
        &mut self,
        alternatives: &Alternatives,
        (val, format): (&Val, PrintFormat),
        rest: &VecDeque<Part>,
        written: &Written,
        message: Message,
        texts: usize,
        line: u32,
    ) -> Result<()> {
        if texts > MOST_TEXTS {
            return Err(self.error(
                line,
                format!("a message with more than {MOST_TEXTS} texts: its values decide what stands in it"),
                "show fewer enums, options and integers of 128 bits in one message",
            ));
        }
        let mut cases = Vec::with_capacity(alternatives.all.len());
        for (number, case) in &alternatives.all {
            let branch = self.branch(|this| {
                let mut parts = VecDeque::new();
                match case {
                    Case::Parts(own) => parts.extend(own.iter().cloned()),
                    Case::Named(name, fields) => {
                        let fields = fields.iter().map(|(index, field, ty)| {
                            let val = this.component(val, *index, line)?;
                            Ok((field.as_str(), val, ty.clone()))
                        });
                        let fields = fields.collect::<Result<Vec<_>>>()?;
                        parts.extend(in_struct(name, fields, format));
                    }
                }
                parts.extend(rest.iter().cloned());
                this.write_parts(parts, written.clone(), message, texts, line)?;
                Ok(Val::unit())
            })?;
            cases.push((vec![*number], branch.block));
        }
        self.at(line);
        let default = cases.pop().map(|(_, block)| block).unwrap_or_default();
        let selector = alternatives.selector;
        let is_bool = self.num_of(selector, line)? == Scalar::Bool;
        let inst = match cases.len() {
            0 => Inst::Labeled(default),
            1 if is_bool => {
                let other = cases.pop().map(|(_, block)| block).unwrap_or_default();
                Inst::If(selector, default, other)
            }
            _ => Inst::Switch {
                selector,
                cases,
                default,
            },
        };
        self.k.push(inst);
        Ok(())
    }

    /// The texts among which a value decides; `None` where there is one.
    fn alternatives(&mut self, val: &Val, ty: &Ty, line: u32) -> Result<Option<Alternatives>> {
        let field = |index, ty: &Ty| (index, "0".to_owned(), ty.clone());
        let all = match ty {
            Ty::Enum(desc) => {
                let bits = self.ir_type(ty, line)?.as_scalar().map_or(64, Scalar::bits);
                let mask = u64::MAX >> (64 - bits);
                let variants = desc.variants.iter();
                let all = variants
                    .map(|(name, value)| (*value as u64 & mask, Case::Named(name.clone(), Vec::new())));
                return Ok(Some(Alternatives {
                    selector: self.value_of(val, line)?,
                    all: all.collect(),
                }));
            }
            Ty::Option(some) => vec![
                (0, Case::Named("None".to_owned(), Vec::new())),
                (1, Case::Named("Some".to_owned(), vec![field(1, some)])),
            ],
            Ty::Result(ok, err) => vec![
                (0, Case::Named("Err".to_owned(), vec![field(2, err)])),
                (1, Case::Named("Ok".to_owned(), vec![field(1, ok)])),
            ],
            Ty::Struct(desc) if !desc.variants.is_empty() => {
                let variants = (0u64..).zip(&desc.variants).map(|(number, variant)| {
                    let fields = variant.fields.clone().zip(&desc.fields[variant.fields.clone()]);
                    let fields = fields
                        .map(|(index, field)| (index as u32, field.name.clone(), Ty::from_desc(&field.ty)));
                    (number, Case::Named(variant.name.clone(), fields.collect()))
                });
                variants.collect()
            }
            _ => return Ok(None),
        };
        let selector = self.component(val, 0, line)?;
        let selector = self.value_of(&selector, line)?;
        Ok(Some(Alternatives { selector, all }))
    }

    /// The parts of a value that is written in one way.
    fn taken_apart(&mut self, val: &Val, ty: &Ty, format: PrintFormat, line: u32) -> Result<Vec<Part>> {
        match ty {
            Ty::Ref(_, target) => {
                let val = self.dereferenced(val, line)?;
                Ok(vec![Part::Value(val, (**target).clone(), format)])
            }
            Ty::Struct(desc) => {
                let fields = (0..).zip(&desc.fields).map(|(index, field)| {
                    let val = self.component(val, index, line)?;
                    Ok((field.name.as_str(), val, Ty::from_desc(&field.ty)))
                });
                let fields = fields.collect::<Result<Vec<_>>>()?;
                Ok(in_struct(plain_name(desc), fields, format))
            }
            Ty::Tuple(elements) => {
                let elements = self.components(val, elements, line)?;
                let close = if elements.len() == 1 { ",)" } else { ")" };
                Ok(listed("(", elements, close, format))
            }
            Ty::Array(element, Len::Known(n)) if *n <= MOST_ELEMENTS => {
                let elements = vec![(**element).clone(); usize::try_from(*n).unwrap_or(0)];
                let elements = self.components(val, &elements, line)?;
                Ok(listed("[", elements, "]", format))
            }
            ty => Err(self.error(
                line,
                format!("`{}` is printed", show(ty)),
                "print its scalars one by one",
            )),
        }
    }

    fn components(&mut self, val: &Val, types: &[Ty], line: u32) -> Result<Vec<(Val, Ty)>> {
        let parts = (0..).zip(types);
        parts
            .map(|(index, ty)| Ok((self.component(val, index, line)?, ty.clone())))
            .collect()
    }

    /// Refuses a format that Rust has not for the scalar.
    fn check_format(&self, scalar: SyntaxScalar, format: PrintFormat, line: u32) -> Result<()> {
        let fits = match format.notation {
            PrintNotation::LowerHex | PrintNotation::UpperHex => scalar.is_integer(),
            PrintNotation::LowerExp => scalar != SyntaxScalar::Bool,
            PrintNotation::Display | PrintNotation::Debug => true,
        };
        match fits {
            true => Ok(()),
            false => Err(self.error(
                line,
                format!("`{}` is printed with `{{:{format}}}`", scalar.name()),
                "write `{}`, or print its bits as an integer",
            )),
        }
    }
}

/// The texts among which a value decides.
pub(super) struct Alternatives {
    /// What decides.
    pub(super) selector: Value,
    /// For each of its values the text.
    pub(super) all: Vec<(u64, Case)>,
}

/// One of several texts.
pub(super) enum Case {
    /// A variant: its name and its fields.
    Named(String, Vec<FieldAt>),
    /// What these parts give.
    Parts(Vec<Part>),
}

/// A field: its index among the parts, its name and its type.
pub(super) type FieldAt = (u32, String, Ty);

/// A struct's name without its arguments.
fn plain_name(desc: &StructDesc) -> &str {
    match &desc.of {
        Some((of, _)) => &of.name,
        None => &desc.name,
    }
}

/// A struct or a variant.
fn in_struct(name: &str, fields: Vec<(&str, Val, Ty)>, format: PrintFormat) -> Vec<Part> {
    let tuple = fields.first().is_some_and(|(field, ..)| *field == "0");
    let mut parts = vec![Part::Text(name.to_owned())];
    if fields.is_empty() {
        return parts;
    }
    if tuple {
        let fields = fields.into_iter().map(|(_, val, ty)| (val, ty)).collect();
        parts.extend(listed("(", fields, ")", format));
        return parts;
    }
    for (i, (field, val, ty)) in fields.into_iter().enumerate() {
        let before = if i == 0 { " { " } else { ", " };
        parts.push(Part::Text(format!("{before}{field}: ")));
        parts.push(Part::Value(val, ty, format));
    }
    parts.push(Part::Text(" }".to_owned()));
    parts
}

fn listed(open: &str, values: Vec<(Val, Ty)>, close: &str, format: PrintFormat) -> Vec<Part> {
    let mut parts = vec![Part::Text(open.to_owned())];
    for (i, (val, ty)) in values.into_iter().enumerate() {
        if i > 0 {
            parts.push(Part::Text(", ".to_owned()));
        }
        parts.push(Part::Value(val, ty, format));
    }
    parts.push(Part::Text(close.to_owned()));
    parts
}
