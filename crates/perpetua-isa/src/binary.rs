//! The binary form: `PISA`, a version, a checksum, and the program. `page` describes it; opcodes are named, so that a program stays what it
//! is when the table grows. The decoder survives anything: it allocates a constant times the input's size, and gives errors with their
//! byte.

mod page;
mod write;

use perpetua_ir::ir::Scalar;

use crate::error::DecodeError;
use crate::instruction::{Guard, Index, Instruction, Operand, Place, Special};
use crate::opcode::Opcode;
use crate::program::{Label, Memory, MemoryKind, Parameter, Program, Routine};
pub(crate) use page::section;
use write::Writer;

const MAGIC: &[u8; 4] = b"PISA";
/// Version of the form.
pub const VERSION: u16 = 1;
const HEADER: usize = 12;

type Result<T> = std::result::Result<T, DecodeError>;

impl Program {
    /// The program's binary form.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.program(self);
        let mut bytes = Vec::with_capacity(writer.bytes.len() + HEADER);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(crc32fast::hash(&writer.bytes).to_le_bytes());
        bytes.extend(writer.bytes);
        bytes
    }

    /// Reads a binary form. What comes out may still be wrong: [`verify`](crate::verify::verify) it.
    ///
    /// # Errors
    /// If the bytes are not such a form.
    pub fn decode(bytes: &[u8]) -> Result<Program> {
        let Some((header, body)) = bytes.split_at_checked(HEADER) else {
            let begins = bytes.starts_with(MAGIC) || !bytes.is_empty() && MAGIC.starts_with(bytes);
            return Err(match begins {
                true => DecodeError::End {
                    at: bytes.len(),
                    what: "the header",
                },
                false => DecodeError::Magic,
            });
        };
        let word = |at: usize| {
            let bytes = header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u32::from_le_bytes)
        };
        if !header.starts_with(MAGIC) {
            return Err(DecodeError::Magic);
        }
        if word(4) as u16 != VERSION {
            return Err(DecodeError::Version {
                found: word(4) as u16,
                known: VERSION,
            });
        }
        if word(4) >> 16 != 0 {
            return Err(DecodeError::Value {
                at: 6,
                value: (word(4) >> 16).into(),
                what: "zero, which stands here in version 1",
            });
        }
        let (expected, found) = (word(8), crc32fast::hash(body));
        if expected != found {
            return Err(DecodeError::Checksum { expected, found });
        }
        let mut reader = Reader {
            bytes: body,
            at: 0,
            opcodes: Vec::new(),
        };
        let program = reader.program()?;
        match body.len() - reader.at {
            0 => Ok(program),
            count => Err(DecodeError::More { count }),
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    opcodes: Vec<Opcode>,
}

impl Reader<'_> {
    fn byte(&mut self, what: &'static str) -> Result<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte.ok_or(DecodeError::End {
            at: HEADER + self.at,
            what,
        })
    }

    fn wrong(&self, value: u64, what: &'static str) -> DecodeError {
        DecodeError::Value {
            at: HEADER + self.at,
            value,
            what,
        }
    }

    fn number(&mut self, what: &'static str) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(self.wrong(bits, what));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.wrong(value, what))
    }

    fn small<T: TryFrom<u64>>(&mut self, what: &'static str) -> Result<T> {
        let value = self.number(what)?;
        T::try_from(value).map_err(|_| self.wrong(value, what))
    }

    // How many elements follow: each has a byte at least.
    fn count(&mut self, what: &'static str) -> Result<usize> {
        let count = self.number(what)?;
        match usize::try_from(count) {
            Ok(count) if count <= self.bytes.len() - self.at => Ok(count),
            _ => Err(DecodeError::End {
                at: HEADER + self.bytes.len(),
                what,
            }),
        }
    }

    fn text(&mut self, what: &'static str) -> Result<String> {
        let len = self.count(what)?;
        let bytes = self.bytes.get(self.at..self.at + len).unwrap_or_default();
        let text = std::str::from_utf8(bytes).map_err(|wrong| DecodeError::Value {
            at: HEADER + self.at + wrong.valid_up_to(),
            value: bytes.get(wrong.valid_up_to()).copied().unwrap_or_default().into(),
            what: "UTF-8",
        })?;
        self.at += len;
        Ok(text.into())
    }

    fn list<T>(
        &mut self,
        what: &'static str,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = self.count(what)?;
        (0..count).map(|_| read(self)).collect()
    }

    fn optional_scalar(&mut self) -> Result<Option<Scalar>> {
        let code = self.byte("a type")?;
        match code.checked_sub(1).map(|code| Scalar::ALL.get(usize::from(code))) {
            None => Ok(None),
            Some(Some(ty)) => Ok(Some(*ty)),
            Some(None) => Err(self.wrong(code.into(), "a type")),
        }
    }

    fn scalar(&mut self) -> Result<Scalar> {
        self.optional_scalar()?.ok_or_else(|| self.wrong(0, "a type"))
    }

    fn special(&mut self) -> Result<Special> {
        let code = self.number("a special")?;
        let found = usize::try_from(code)
            .ok()
            .and_then(|code| Special::all().nth(code));
        found.ok_or_else(|| self.wrong(code, "a special"))
    }

    fn program(&mut self) -> Result<Program> {
        self.opcodes = self.list("opcodes", |reader| {
            let name = reader.text("an opcode")?;
            Opcode::from_name(&name).ok_or_else(|| DecodeError::Opcode {
                at: HEADER + reader.at,
                name: name.chars().take(64).collect(),
            })
        })?;
        Ok(Program {
            name: self.text("the name")?,
            source: self.text("the source")?,
            block: match self.number("the block")? {
                0 => None,
                1 => Some([
                    self.small("an extent")?,
                    self.small("an extent")?,
                    self.small("an extent")?,
                ]),
                other => return Err(self.wrong(other, "the size of a block or none: 0 or 1")),
            },
            memories: self.list("memories", Reader::memory)?,
            parameters: self.list("parameters", |reader| {
                Ok(Parameter {
                    name: reader.text("a parameter")?,
                    ty: reader.scalar()?,
                })
            })?,
            routines: self.list("routines", Reader::routine)?,
        })
    }

    fn memory(&mut self) -> Result<Memory> {
        let name = self.text("a memory")?;
        let element = self.scalar()?;
        let kind = match self.number("a kind of memory")? {
            code @ 0..=3 => MemoryKind::Buffer {
                writable: code & 1 != 0,
                handle: match code & 2 {
                    0 => None,
                    _ => Some(self.number("a handle")?),
                },
            },
            4 => MemoryKind::Shared {
                len: self.small("a length")?,
            },
            5 => MemoryKind::Constants(self.list("constants", |reader| reader.number("a constant"))?),
            code @ 6..=7 => MemoryKind::Pool {
                handle: match code {
                    6 => None,
                    _ => Some(self.number("a handle")?),
                },
            },
            other => return Err(self.wrong(other, "a kind of memory")),
        };
        Ok(Memory { name, element, kind })
    }

    fn routine(&mut self) -> Result<Routine> {
        Ok(Routine {
            name: self.text("a routine")?,
            labels: self.list("labels", |reader| {
                Ok(Label {
                    name: reader.text("a label")?,
                    at: reader.small("a place")?,
                })
            })?,
            code: self.list("instructions", Reader::instruction)?,
            lines: self.list("lines", |reader| reader.small("a line"))?,
        })
    }

    fn instruction(&mut self) -> Result<Instruction> {
        let guard = match self.small::<u16>("a guard")? {
            0 => None,
            code @ 1..=512 => Some(Guard {
                predicate: ((code - 1) / 2) as u8,
                negated: (code - 1) % 2 != 0,
            }),
            code => return Err(self.wrong(code.into(), "a guard")),
        };
        let opcode = self.number("an opcode")?;
        let found = usize::try_from(opcode)
            .ok()
            .and_then(|i| self.opcodes.get(i))
            .copied();
        Ok(Instruction {
            guard,
            opcode: found.ok_or_else(|| self.wrong(opcode, "an opcode of this program"))?,
            ty: self.optional_scalar()?,
            from: self.optional_scalar()?,
            operands: self.list("operands", Reader::operand)?,
        })
    }

    fn operand(&mut self) -> Result<Operand> {
        Ok(match self.byte("an operand")? {
            0 => Operand::Register(self.small("a register")?),
            1 => Operand::Predicate(self.small("a predicate")?),
            2 => Operand::Immediate(self.number("a constant")?),
            3 => Operand::Special(self.special()?),
            4 => Operand::Parameter(self.small("a parameter")?),
            5 => Operand::Length(self.small("a memory")?),
            6 => {
                let memory = self.small("a memory")?;
                let (first, second) = (self.part()?, self.part()?);
                let offset = self.number("an offset")?;
                Operand::Place(Place {
                    memory,
                    first,
                    second,
                    offset: (offset >> 1) as i64 ^ -((offset & 1) as i64),
                })
            }
            7 => Operand::Label(self.small("a label")?),
            8 => Operand::Routine(self.small("a routine")?),
            9 => Operand::Count(self.small("a count")?),
            10 => Operand::Pool(self.small("a pool")?),
            other => return Err(self.wrong(other.into(), "a kind of operand")),
        })
    }

    fn part(&mut self) -> Result<Option<Index>> {
        Ok(match self.byte("an index")? {
            0 => None,
            1 => Some(Index::Register(self.small("a register")?)),
            2 => Some(Index::Special(self.special()?)),
            3 => Some(Index::Parameter(self.small("a parameter")?)),
            other => return Err(self.wrong(other.into(), "a kind of index")),
        })
    }
}
