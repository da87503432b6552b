//! Reads one instruction: guard, mnemonic, operands as the opcode's row says.

use std::collections::HashMap;
use std::ops::Range;

use perpetua_ir::ir::{Scalar, constant};
use perpetua_ir::nearest::nearest;

use super::lexer::{Cursor, TokenKind};
use super::mnemonic::{meant, mnemonic};
use super::source::Line;
use crate::declaration;
use crate::diagnostic::AssembleError;
use crate::fault::Fault;
use crate::instruction::{Guard, Index, Instruction, Operand, PREDICATES, Place, Special};
use crate::names::{is_constant, is_reserved, numbered};
use crate::opcode::Slot;
use crate::program::is_name;

type Result<T> = std::result::Result<T, AssembleError>;

/// What was declared so far.
#[derive(Default)]
pub(super) struct Names {
    memories: HashMap<String, u16>,
    parameters: HashMap<String, u16>,
}

impl Names {
    /// That nothing has this name yet.
    pub(super) fn unused(&self, name: &str) -> std::result::Result<(), Fault> {
        match self.memories.contains_key(name) || self.parameters.contains_key(name) {
            false => Ok(()),
            true => Err(declaration::taken("a memory or parameter", name)),
        }
    }

    pub(super) fn memory(&mut self, name: &str, number: u16) {
        self.memories.insert(name.into(), number);
    }

    pub(super) fn parameter(&mut self, name: &str, number: u16) {
        self.parameters.insert(name.into(), number);
    }
}

/// An instruction, and its operands that are names of labels and routines: number, name, place.
pub(super) struct Read {
    pub(super) instruction: Instruction,
    pub(super) named: Vec<(usize, String, Range<usize>)>,
}

pub(super) fn parse(cursor: &mut Cursor<'_>, line: &Line, names: &Names) -> Result<Read> {
    let guard = guard(cursor, line)?;
    let span = cursor.span();
    let Some(word) = cursor.word() else {
        return Err(line.error(span, "an instruction belongs here"));
    };
    let (opcode, ty, from) = mnemonic(word).ok_or_else(|| AssembleError {
        help: meant(word),
        ..line.error(span.clone(), format!("`{word}` is not an instruction"))
    })?;
    let row = opcode.row();
    let missing_type = row.types.is_some() && ty.is_none();
    if missing_type || row.from && from.is_none() {
        let example = if row.from {
            format!("{}.f32.i32", row.name)
        } else {
            format!("{}.f32", row.name)
        };
        return Err(line.error(
            span,
            format!(
                "`{word}` needs {}, as `{example}`",
                if row.from { "two types" } else { "a type" }
            ),
        ));
    }
    let typed = |found: Scalar| Fault::Typed {
        opcode: row.name.clone(),
        found,
    };
    match (row.types, row.from, ty, from) {
        (None, _, Some(found), _) => return Err(line.error(span, typed(found).to_string())),
        (Some(_), false, Some(_), Some(found)) => {
            let message = format!(
                "`{}` has one type: leave one of two out, as `{}.{found}`",
                row.name, row.name
            );
            return Err(line.error(span, message));
        }
        _ => {}
    }
    let mut reader = Operands {
        cursor,
        line,
        names,
        ty,
        from,
        named: Vec::new(),
    };
    let mut operands = Vec::with_capacity(row.operands.len());
    for (i, slot) in row.operands.iter().enumerate() {
        if i > 0 && !reader.cursor.takes(',') {
            let message = format!(
                "`{}` takes {} operands: `,` and one more belong here",
                row.name,
                row.operands.len()
            );
            return Err(line.error(reader.cursor.span(), message));
        }
        operands.push(reader.operand(i, *slot)?);
    }
    let named = reader.named;
    Ok(Read {
        instruction: Instruction {
            guard,
            opcode,
            ty,
            from,
            operands,
        },
        named,
    })
}

// `@p0` or `@!p0`
fn guard(cursor: &mut Cursor<'_>, line: &Line) -> Result<Option<Guard>> {
    if !cursor.takes('@') {
        return Ok(None);
    }
    let negated = cursor.takes('!');
    let span = cursor.span();
    match cursor.word().and_then(predicate) {
        Some(predicate) => Ok(Some(Guard { predicate, negated })),
        None => Err(line.error(
            span,
            "`@` is followed by a predicate, p0 to p15, or by `!` and one",
        )),
    }
}

fn register(word: &str) -> Option<u8> {
    numbered(word, 'r')
}

fn predicate(word: &str) -> Option<u8> {
    numbered(word, 'p').filter(|p| usize::from(*p) < PREDICATES)
}

fn special(word: &str) -> Option<Special> {
    let name = word.strip_prefix('%')?;
    Special::all().find(|special| special.name() == name)
}

// What to write for an index that is computed.
fn special_hint(word: &str) -> Option<String> {
    let stem = word.strip_prefix('%').unwrap_or_default();
    if Special::all().any(|special| special.name().strip_suffix(".x") == Some(stem)) {
        return Some(format!("there are `{word}.x`, `{word}.y` and `{word}.z`"));
    }
    let axis = word
        .strip_prefix("%gid.")
        .filter(|axis| matches!(*axis, "x" | "y" | "z"))?;
    Some(match axis {
        "x" => "the lane's index along x is `%gid`".into(),
        axis => format!(
            "the lane's index along {axis} is what `mad.u64 r0, %ctaid.{axis}, %ntid.{axis}, %tid.{axis}` gives"
        ),
    })
}

/// A constant of a type.
pub(super) fn immediate(ty: Scalar, cursor: &mut Cursor<'_>, line: &Line) -> Result<u64> {
    let start = cursor.span().start;
    let sign = match (cursor.takes('-'), cursor.takes('+')) {
        (true, _) => "-",
        _ => "",
    };
    let text = match cursor.next() {
        Some(TokenKind::Number(_)) if ty == Scalar::Bool => {
            let message = "a predicate, p0 to p15, `true` or `false` belongs here";
            return Err(line.error(cursor.since(start), message));
        }
        Some(TokenKind::Number(text)) => text,
        Some(TokenKind::Word(word)) if is_constant(word) => word,
        _ => {
            return Err(line.error(
                cursor.since(start),
                format!("a constant of type {ty} belongs here"),
            ));
        }
    };
    constant::parse_constant(ty, &format!("{sign}{text}"))
        .map_err(|message| line.error(cursor.since(start), message))
}

struct Operands<'a, 'b> {
    cursor: &'a mut Cursor<'b>,
    line: &'a Line,
    names: &'a Names,
    ty: Option<Scalar>,
    from: Option<Scalar>,
    named: Vec<(usize, String, Range<usize>)>,
}

impl Operands<'_, '_> {
    fn error(&self, span: Range<usize>, message: impl Into<String>) -> AssembleError {
        self.line.error(span, message)
    }

    fn operand(&mut self, number: usize, slot: Slot) -> Result<Operand> {
        let span = self.cursor.span();
        match slot {
            Slot::Write(ty) => {
                let found = self.cursor.word();
                let is_predicate = ty.of(self.ty, self.from) == Some(Scalar::Bool);
                let operand = match is_predicate {
                    true => found.and_then(predicate).map(Operand::Predicate),
                    false => found.and_then(register).map(Operand::Register),
                };
                let expected = if is_predicate {
                    "a predicate, p0 to p15"
                } else {
                    "a register, r0 to r255"
                };
                operand.ok_or_else(|| self.error(span, format!("{expected}, belongs here")))
            }
            Slot::Read(ty) => match ty.of(self.ty, self.from) {
                Some(ty) => self.value(ty),
                None => Err(self.error(span, "this instruction needs a type")),
            },
            Slot::Place(..) => self.place(),
            Slot::Pool => self.memory("a pool's name belongs here").map(Operand::Pool),
            Slot::Label | Slot::Routine => {
                let Some(name) = self.cursor.word() else {
                    let what = if slot == Slot::Label {
                        "a label"
                    } else {
                        "a routine's name"
                    };
                    return Err(self.error(span, format!("{what} belongs here")));
                };
                self.named.push((number, name.into(), span));
                Ok(if slot == Slot::Label {
                    Operand::Label(0)
                } else {
                    Operand::Routine(0)
                })
            }
            Slot::Run | Slot::Sums => {
                let found = self.cursor.word().and_then(register).map(Operand::Register);
                found.ok_or_else(|| self.error(span, "the first of several registers belongs here"))
            }
            Slot::Count => {
                let count = match self.cursor.next() {
                    Some(TokenKind::Number(text)) => {
                        constant::integer(text).and_then(|n| u32::try_from(n).ok())
                    }
                    _ => None,
                };
                let count = count.filter(|n| *n > 0).map(Operand::Count);
                count.ok_or_else(|| self.error(span, "a positive number belongs here"))
            }
        }
    }

    fn value(&mut self, ty: Scalar) -> Result<Operand> {
        let span = self.cursor.span();
        let Some(TokenKind::Word(word)) = self.cursor.peek() else {
            return immediate(ty, self.cursor, self.line).map(Operand::Immediate);
        };
        if is_constant(word) {
            return immediate(ty, self.cursor, self.line).map(Operand::Immediate);
        }
        self.cursor.next();
        if word == "len" && self.cursor.takes('(') {
            let memory = self.memory("the name of a memory belongs here")?;
            return match self.cursor.takes(')') {
                true => Ok(Operand::Length(memory)),
                false => Err(self.error(self.cursor.span(), "`)` belongs here")),
            };
        }
        let found = match ty {
            Scalar::Bool => predicate(word).map(Operand::Predicate),
            _ => register(word).map(Operand::Register),
        };
        let found = found
            .or_else(|| special(word).map(Operand::Special))
            .or_else(|| self.names.parameters.get(word).map(|i| Operand::Parameter(*i)));
        found.ok_or_else(|| AssembleError {
            help: match word.starts_with('%') {
                true => special_hint(word).or_else(|| {
                    nearest(
                        word,
                        Special::all()
                            .map(|s| format!("%{}", s.name()))
                            .collect::<Vec<_>>()
                            .iter()
                            .map(String::as_str),
                    )
                }),
                false if self.names.memories.contains_key(word) => {
                    Some(format!("an element is loaded first: `ldg.{ty} r0, {word}[…]`"))
                }
                false => nearest(word, self.names.parameters.keys().map(String::as_str)),
            },
            ..self.error(
                span,
                match ty {
                    Scalar::Bool => format!("`{word}` is no predicate"),
                    _ => format!("`{word}` is no register, constant, special or parameter"),
                },
            )
        })
    }

    fn memory(&mut self, message: &str) -> Result<u16> {
        let span = self.cursor.span();
        let word = self.cursor.word();
        let found = word.and_then(|name| self.names.memories.get(name)).copied();
        found.ok_or_else(|| match word {
            Some(word) if is_name(word) && !is_reserved(word) => AssembleError {
                help: nearest(word, self.names.memories.keys().map(String::as_str)).or_else(|| {
                    Some(format!(
                        "it is declared in front of its first use: `.buffer {word}: f32`, `.shared`, `.const` or `.pool`"
                    ))
                }),
                ..self.error(span, format!("there is no memory `{word}`"))
            },
            _ => self.error(span, message),
        })
    }

    // `name[part ± part …]`
    fn place(&mut self) -> Result<Operand> {
        let memory = self.memory("an element of a memory belongs here, as `x[r0]`")?;
        if !self.cursor.takes('[') {
            return Err(self.error(self.cursor.span(), "`[` and an index belong here"));
        }
        let mut place = Place {
            memory,
            first: None,
            second: None,
            offset: 0,
        };
        let mut negative = self.cursor.takes('-');
        loop {
            self.part(&mut place, negative)?;
            if self.cursor.takes(']') {
                return Ok(Operand::Place(place));
            }
            negative = self.cursor.takes('-');
            if !negative && !self.cursor.takes('+') {
                return Err(self.error(self.cursor.span(), "`]`, `+` or `-` belongs here"));
            }
        }
    }

    fn part(&mut self, place: &mut Place, negative: bool) -> Result<()> {
        let span = self.cursor.span();
        let part = match self.cursor.next() {
            Some(TokenKind::Number(text)) => {
                let value = constant::integer(text).map(|value| if negative { -value } else { value });
                let sum = value.and_then(|value| i64::try_from(i128::from(place.offset) + value).ok());
                place.offset = sum.ok_or_else(|| self.error(span, "this offset does not fit 64 bits"))?;
                return Ok(());
            }
            Some(TokenKind::Word(word)) => register(word)
                .map(Index::Register)
                .or_else(|| special(word).map(Index::Special))
                .or_else(|| self.names.parameters.get(word).map(|i| Index::Parameter(*i))),
            _ => None,
        };
        let Some(part) = part else {
            return Err(self.error(span, "a register, special, parameter or number belongs here"));
        };
        let room = if place.first.is_none() {
            &mut place.first
        } else {
            &mut place.second
        };
        if negative || room.is_some() {
            let message = "an index is at most two parts that vary, added up, and a constant";
            return Err(self.error(span, message));
        }
        *room = Some(part);
        Ok(())
    }
}
