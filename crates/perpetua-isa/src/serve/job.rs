//! Payloads: a job, what is allowed, a result. Reading trusts nothing: it allocates a constant times the payload's bytes.

use perpetua_device::{Dim3, LaunchConfig};
use perpetua_ir::ir::Scalar;

use super::error::Error;
use super::protocol::Code;
use crate::executor::{Arguments, Limits};
use crate::program::{Parameter, Program};
use crate::verify::MAX_DECLARATIONS;

/// A program with all that it needs: one launch, of which nothing is left behind.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The program. Handles in it mean nothing.
    pub program: Program,
    /// Blocks and their size.
    pub config: LaunchConfig,
    /// Values of its parameters.
    pub arguments: Arguments,
    /// What its buffers and pools hold: each of them, by name.
    pub contents: Vec<Content<'a>>,
}

/// A buffer or a pool of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content<'a> {
    /// Its name in the program.
    pub name: &'a str,
    /// What it holds before.
    pub data: Data<'a>,
    /// Whether the result has what it holds afterwards.
    pub is_returned: bool,
}

/// What a buffer or pool holds before a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// A buffer with these bytes.
    Bytes(&'a [u8]),
    /// A buffer of so many bytes, all zero.
    Zeros(u64),
    /// A pool of so many bytes.
    Pool(u64),
}

/// What a server allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// What programs may use.
    pub limits: Limits,
    /// Most bytes of a frame's payload: a job, or its result.
    pub message: u64,
    /// Most milliseconds that a job may run.
    pub milliseconds: u64,
}

impl Job<'_> {
    pub(super) fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        for extent in [self.config.grid, self.config.block] {
            for n in [extent.x, extent.y, extent.z] {
                out.extend(n.to_le_bytes());
            }
        }
        let program = self.program.encode();
        out.extend(within::<u32>("bytes of the program", program.len())?.to_le_bytes());
        out.extend(program);
        let given: Vec<_> = self
            .program
            .parameters
            .iter()
            .filter_map(|parameter| Some((&parameter.name, self.arguments.get(&parameter.name)?)))
            .collect();
        out.extend(within::<u16>("parameters", given.len())?.to_le_bytes());
        for (name, (ty, bytes)) in given {
            text(&mut out, name)?;
            text(&mut out, ty.name())?;
            out.extend(bytes);
        }
        out.extend(within::<u16>("buffers and pools", self.contents.len())?.to_le_bytes());
        for content in &self.contents {
            text(&mut out, content.name)?;
            let (kind, len, bytes) = match content.data {
                Data::Bytes(bytes) => (0u8, bytes.len() as u64, bytes),
                Data::Zeros(len) => (1, len, &[][..]),
                Data::Pool(len) => (2, len, &[][..]),
            };
            out.extend([kind, u8::from(content.is_returned)]);
            out.extend(len.to_le_bytes());
            out.extend(bytes);
        }
        Ok(out)
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Job<'_>, Error> {
        let mut reader = Reader {
            bytes: payload,
            at: 0,
        };
        let mut extent = |what| -> Result<Dim3, Error> {
            let [x, y, z] = [reader.u32(what)?, reader.u32(what)?, reader.u32(what)?];
            match [x, y, z].contains(&0) {
                true => Err(reader.wrong(what, format!("{x} x {y} x {z}: each number is at least 1"))),
                false => Ok(Dim3::new(x, y, z)),
            }
        };
        let (grid, block) = (extent("the grid")?, extent("the block")?);
        let len = reader.u32("the program's length")?;
        let program =
            Program::decode(reader.take(u64::from(len), "the program")?).map_err(|error| Error::Refused {
                code: Code::Program,
                message: error.to_string(),
            })?;
        let declared = program.parameters.len();
        if declared > MAX_DECLARATIONS {
            let why = format!("it has {declared}: at most {MAX_DECLARATIONS} can be");
            return Err(reader.wrong("the program's parameters", why));
        }
        let mut arguments = Arguments::new();
        for _ in 0..reader.u16("the number of parameters")? {
            let name = reader.text("a parameter's name")?;
            if !program.parameters.iter().any(|parameter| parameter.name == name) {
                let why = format!("the program has no parameter {name:?}");
                return Err(reader.wrong("a parameter's name", why));
            }
            if arguments.get(name).is_some() {
                return Err(reader.wrong("a parameter's name", format!("`{name}` is there twice")));
            }
            let ty = reader.text("a parameter's type")?;
            let scalar = Scalar::from_name(ty)
                .ok_or_else(|| reader.wrong("a parameter's type", format!("`{ty}` is no type")))?;
            let bytes: [u8; 8] = reader.array("a parameter's value")?;
            if bytes.iter().skip(scalar.size() as usize).any(|byte| *byte != 0) {
                let why = format!("the bytes behind the {} of {ty} are not zero", scalar.size());
                return Err(reader.wrong("a parameter's value", why));
            }
            arguments = arguments.with_bytes(name, scalar, bytes);
        }
        let is_missing = |parameter: &&Parameter| arguments.get(&parameter.name).is_none();
        if let Some(missing) = program.parameters.iter().find(is_missing) {
            let why = format!("`{}` has no value: send one", missing.name);
            return Err(reader.wrong("the parameters", why));
        }
        let mut contents = Vec::new();
        for _ in 0..reader.u16("the number of buffers")? {
            let name = reader.text("a buffer's name")?;
            let [kind, is_returned] = reader.array("a buffer's kind")?;
            let len = u64::from_le_bytes(reader.array("a buffer's length")?);
            let data = match kind {
                0 => Data::Bytes(reader.take(len, "a buffer's bytes")?),
                1 => Data::Zeros(len),
                2 => Data::Pool(len),
                other => {
                    let why = format!("{other} is none: 0 is bytes, 1 zeros, 2 a pool");
                    return Err(reader.wrong("a buffer's kind", why));
                }
            };
            if is_returned > 1 {
                let why = format!("{is_returned} is neither 0 nor 1");
                return Err(reader.wrong("whether a buffer is returned", why));
            }
            contents.push(Content {
                name,
                data,
                is_returned: is_returned == 1,
            });
        }
        reader.end()?;
        Ok(Job {
            program,
            config: LaunchConfig::new(grid, block),
            arguments,
            contents,
        })
    }
}

impl Allowed {
    pub(super) fn encode(&self) -> Vec<u8> {
        let Limits {
            instructions,
            memory,
            size,
        } = self.limits;
        let numbers = [
            self.message,
            self.milliseconds,
            memory as u64,
            instructions.into(),
            size as u64,
        ];
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Allowed, Error> {
        let mut reader = Reader {
            bytes: payload,
            at: 0,
        };
        let mut number = || -> Result<u64, Error> { Ok(u64::from_le_bytes(reader.array("the limits")?)) };
        let (message, milliseconds) = (number()?, number()?);
        let (memory, instructions, size) = (number()?, number()?, number()?);
        // Of later versions' limits only these are known.
        Ok(Allowed {
            limits: Limits {
                instructions: u32::try_from(instructions).unwrap_or(u32::MAX),
                memory: usize::try_from(memory).unwrap_or(usize::MAX),
                size: usize::try_from(size).unwrap_or(usize::MAX),
            },
            message,
            milliseconds,
        })
    }
}

/// Bytes of a buffer or pool.
pub(super) fn len(content: &Content<'_>) -> u64 {
    match content.data {
        Data::Bytes(bytes) => bytes.len() as u64,
        Data::Zeros(len) | Data::Pool(len) => len,
    }
}

/// What buffers hold after a job, by name.
pub(super) fn encode_result(contents: &[(&str, Vec<u8>)]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    out.extend(within::<u16>("buffers", contents.len())?.to_le_bytes());
    for (name, bytes) in contents {
        text(&mut out, name)?;
        out.extend((bytes.len() as u64).to_le_bytes());
        out.extend(bytes);
    }
    Ok(out)
}

pub(super) fn decode_result(payload: &[u8]) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut reader = Reader {
        bytes: payload,
        at: 0,
    };
    let mut contents = Vec::new();
    for _ in 0..reader.u16("the number of buffers")? {
        let name = reader.text("a buffer's name")?.to_owned();
        let len = u64::from_le_bytes(reader.array("a buffer's length")?);
        contents.push((name, reader.take(len, "a buffer's bytes")?.to_vec()));
    }
    reader.end()?;
    Ok(contents)
}

/// What the server answered instead of a result.
pub(super) fn decode_error(payload: &[u8]) -> Result<(Code, String), Error> {
    let mut reader = Reader {
        bytes: payload,
        at: 0,
    };
    let number = reader.u16("the code")?;
    let code = Code::from_code(number)
        .ok_or_else(|| reader.wrong("the code", format!("{number} is none of the protocol's table")))?;
    let message = reader.text("the message")?.to_owned();
    reader.end()?;
    Ok((code, message))
}

fn text(out: &mut Vec<u8>, text: &str) -> Result<(), Error> {
    out.extend(within::<u16>("bytes of a name", text.len())?.to_le_bytes());
    out.extend(text.as_bytes());
    Ok(())
}

fn within<T: TryFrom<usize>>(what: &'static str, found: usize) -> Result<T, Error> {
    T::try_from(found).map_err(|_| Error::Send {
        what,
        found: found as u64,
        limit: (1 << (8 * size_of::<T>())) - 1,
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn wrong(&self, what: &'static str, why: String) -> Error {
        Error::Payload {
            at: self.at,
            what,
            why,
        }
    }

    fn take(&mut self, len: u64, what: &'static str) -> Result<&'a [u8], Error> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let Some(taken) = taken else {
            let why = format!("{len} bytes are announced, {} are there", rest.len());
            return Err(self.wrong(what, why));
        };
        self.at += taken.len();
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    fn u16(&mut self, what: &'static str) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    fn text(&mut self, what: &'static str) -> Result<&'a str, Error> {
        let len = self.u16(what)?;
        let bytes = self.take(len.into(), what)?;
        std::str::from_utf8(bytes).map_err(|error| self.wrong(what, error.to_string()))
    }

    fn end(&self) -> Result<(), Error> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            more => Err(self.wrong("the end", format!("{more} bytes follow it"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload() -> Vec<u8> {
        let program =
            ".program p\n.buffer x: f32\n.buffer y: f32\n.pool heap\n.param a: f32\n stg.f32 x[0], a\n";
        let job = Job {
            program: program.parse().expect("a program"),
            config: LaunchConfig::new((3, 2, 1), 64),
            arguments: Arguments::new().with("a", 2.5f32),
            contents: vec![
                Content {
                    name: "x",
                    data: Data::Bytes(&[1, 2, 3, 4]),
                    is_returned: true,
                },
                Content {
                    name: "y",
                    data: Data::Zeros(1 << 40),
                    is_returned: false,
                },
                Content {
                    name: "heap",
                    data: Data::Pool(1 << 16),
                    is_returned: true,
                },
            ],
        };
        job.encode().expect("short")
    }

    #[test]
    fn a_job_is_what_was_written() {
        let bytes = payload();
        let read = Job::decode(&bytes).expect("a job");
        assert_eq!(read.config, LaunchConfig::new((3, 2, 1), 64));
        assert_eq!(
            read.arguments.get("a"),
            Some((Scalar::F32, [0, 0, 32, 64, 0, 0, 0, 0]))
        );
        assert_eq!(read.contents[1].data, Data::Zeros(1 << 40));
        assert_eq!(read.encode().expect("short"), bytes);
    }

    #[test]
    fn nothing_else_is_a_job() {
        let good = payload();
        for len in 0..good.len() {
            assert!(Job::decode(&good[..len]).is_err(), "{len} bytes");
        }
        // Any byte may be anything: an error or another job, never a panic.
        for at in 0..good.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                drop(Job::decode(&bad));
            }
        }
        let more = [&good[..], &[0]].concat();
        let error = Job::decode(&more).expect_err("more").to_string();
        assert!(error.contains("1 bytes follow it"), "{error}");
        let value = [0, 0, 32, 64, 0, 0, 0, 0];
        let value_at = good
            .windows(8)
            .position(|bytes| bytes == value)
            .expect("the parameter");
        let refused = |at: usize, byte: u8, part: &str| {
            let mut bad = good.clone();
            bad[at] = byte;
            let error = Job::decode(&bad).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        };
        refused(0, 0, "the grid: 0 x 2 x 1: each number is at least 1");
        refused(12, 0, "the block: 0 x 1 x 1");
        let [name, count] = [value_at - 6, value_at - 10];
        assert_eq!((good[name], good[count]), (b'a', 1));
        refused(name, b'b', "the program has no parameter \"b\"");
        refused(count, 0, "`a` has no value");
        refused(value_at + 4, 1, "the bytes behind the 4 of f32 are not zero");
        let mut forged = good;
        let at = forged.len() - 8;
        forged[at - 2] = 3;
        let error = Job::decode(&forged).expect_err("a kind").to_string();
        assert!(error.contains("3 is none: 0 is bytes"), "{error}");
    }

    #[test]
    fn answers_are_what_was_written() {
        let contents = [("x", vec![1, 2, 3]), ("long", Vec::new())];
        let bytes = encode_result(&contents).expect("short");
        let read = decode_result(&bytes).expect("a result");
        assert!(
            read.iter()
                .map(|(name, bytes)| (name.as_str(), bytes.clone()))
                .eq(contents)
        );
        let allowed = Allowed {
            limits: Limits::default(),
            message: 5,
            milliseconds: 6,
        };
        assert_eq!(Allowed::decode(&allowed.encode()).expect("limits"), allowed);
        assert!(Allowed::decode(&[0; 39]).is_err());
    }
}
