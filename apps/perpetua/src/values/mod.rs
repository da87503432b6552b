//! Contents of buffers and values of parameters, from the command line and back. Must not know what is launched on them.

mod npy;
mod number;
mod print;

use perpetua_ir::ir::constant::parse_constant;
use perpetua_ir::ir::{Scalar, Type};

pub(crate) use npy::write as npy;
pub(crate) use number::{is_same, number, steps_between};
pub(crate) use print::print;

/// A buffer's content: numbers, the last index fastest.
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) shape: Vec<usize>,
}

/// Most elements that the command line makes.
const MOST: usize = 1 << 33;

const KINDS: [&str; 4] = ["zeros", "ones", "range", "random"];

impl Content {
    /// Of a file, or of what is named: `zeros:N` and its like.
    pub(crate) fn read(ty: Scalar, text: &str) -> Result<Content, String> {
        let made = text.split_once(':').filter(|(kind, _)| KINDS.contains(kind));
        let Some((kind, shape)) = made else {
            return file(ty, text);
        };
        let shape = extents(shape)?;
        let count = shape.iter().try_fold(1usize, |n, extent| n.checked_mul(*extent));
        let Some(count) = count.filter(|count| *count <= MOST) else {
            return Err(format!("{text}: at most {MOST} elements are made here"));
        };
        let mut state = 0u64;
        let mut bytes = Vec::with_capacity(count * ty.size() as usize);
        for i in 0..count {
            let bits = match (kind, ty.is_float()) {
                ("zeros", _) => 0,
                ("ones", true) => float(ty, 1.0),
                ("ones", false) => 1,
                ("range", true) => float(ty, i as f64),
                ("range", false) => i as u64,
                // Uniform in [0, 1).
                (_, true) => float(ty, (random(&mut state) >> 11) as f64 / (1u64 << 53) as f64),
                (_, false) => random(&mut state) >> (64 - ty.bits()),
            };
            let bits = if ty == Scalar::Bool { bits & 1 } else { bits };
            bytes.extend(&bits.to_le_bytes()[..ty.size() as usize]);
        }
        Ok(Content { bytes, shape })
    }
}

/// `1000` or `480x640`: how many numbers along each axis, the last index fastest.
pub(crate) fn extents(text: &str) -> Result<Vec<usize>, String> {
    text.split('x')
        .map(|extent| extent.parse())
        .collect::<Result<_, _>>()
        .map_err(|_| {
            format!("`{text}` is no number of elements: write 1000, or 480x640 for rows and columns")
        })
}

fn file(ty: Scalar, path: &str) -> Result<Content, String> {
    let bytes = std::fs::read(path).map_err(|error| {
        format!("{path}: {error}; a content is a .npy file, or zeros:N, ones:N, range:N, random:N")
    })?;
    let array = npy::read(&bytes).map_err(|error| format!("{path}: {error}"))?;
    if array.element != ty {
        return Err(format!(
            "{path} has elements of type {}, the buffer has {ty}",
            array.element
        ));
    }
    Ok(Content {
        bytes: array.bytes,
        shape: array.shape,
    })
}

// The same sequence of bits in every run (splitmix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn float(ty: Scalar, value: f64) -> u64 {
    // The text form has every float type's rounding; what is more than the type holds is infinite.
    parse_constant(ty, &format!("{value:?}"))
        .or_else(|_| parse_constant(ty, "inf"))
        .unwrap_or_default()
}

/// `NAME=REST`
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, rest) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` has no `=`: write NAME=…"))?;
    Ok((name.into(), rest.into()))
}

/// A value's bytes as in memory; one of several numbers is written with commas between them.
pub(crate) fn value(ty: &Type, text: &str) -> Result<Vec<u8>, String> {
    let leaves = ty.leaves();
    let given: Vec<&str> = text.split(',').map(str::trim).collect();
    if given.len() != leaves.len() {
        return Err(format!(
            "`{ty}` takes {} numbers with commas between them, `{text}` has {}",
            leaves.len(),
            given.len()
        ));
    }
    let mut bytes = vec![0; ty.size() as usize];
    for ((scalar, offset), text) in leaves.into_iter().zip(given) {
        let bits = parse_constant(scalar, text)?.to_le_bytes();
        let (at, size) = (offset as usize, scalar.size() as usize);
        bytes[at..at + size].copy_from_slice(&bits[..size]);
    }
    Ok(bytes)
}

/// An element of a buffer as numbers of one type: vectors, arrays and structs of such are several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Numbers {
    pub(crate) scalar: Scalar,
    /// Where each number of an element stands in it.
    offsets: Vec<usize>,
    /// An element's bytes.
    size: usize,
}

impl Numbers {
    /// Of an element type; or why it has no such form.
    pub(crate) fn of(ty: &Type) -> Result<Numbers, String> {
        let leaves = ty.leaves();
        match leaves.first() {
            Some((scalar, _)) if leaves.iter().all(|(other, _)| other == scalar) => Ok(Numbers {
                scalar: *scalar,
                offsets: leaves.iter().map(|(_, offset)| *offset as usize).collect(),
                size: ty.size() as usize,
            }),
            _ => Err(format!(
                "its elements `{ty}` mix types of numbers, which arrays do not: launch it from a program of your own"
            )),
        }
    }

    /// How many an element has.
    pub(crate) fn each(&self) -> usize {
        self.offsets.len()
    }

    /// An array's bytes as a buffer has them.
    pub(crate) fn pack(&self, numbers: &[u8]) -> Vec<u8> {
        let width = self.scalar.size() as usize;
        let elements = numbers.chunks_exact(width * self.each());
        let mut out = vec![0; elements.len() * self.size];
        for (to, from) in out.chunks_exact_mut(self.size).zip(elements) {
            for (at, number) in self.offsets.iter().zip(from.chunks_exact(width)) {
                to[*at..*at + width].copy_from_slice(number);
            }
        }
        out
    }

    /// A buffer's bytes as an array has them.
    pub(crate) fn unpack(&self, elements: &[u8]) -> Vec<u8> {
        let width = self.scalar.size() as usize;
        let mut out = Vec::with_capacity(elements.len());
        for element in elements.chunks_exact(self.size) {
            for at in &self.offsets {
                out.extend(&element[*at..*at + width]);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_made_of_their_names() {
        let check = |ty: Scalar, text: &str, expect: Result<&[u8], &str>| {
            let found = Content::read(ty, text).map(|content| content.bytes);
            match (found, expect) {
                (Ok(found), Ok(expect)) => assert_eq!(found, expect, "{text}"),
                (Err(found), Err(expect)) => assert!(found.contains(expect), "{text}: {found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        };
        check(Scalar::U8, "range:2x2", Ok(&[0, 1, 2, 3]));
        check(Scalar::F32, "ones:1", Ok(&[0, 0, 128, 63]));
        check(Scalar::Bool, "ones:2", Ok(&[1, 1]));
        check(Scalar::U8, "zeros:many", Err("`many` is no number of elements"));
        check(Scalar::U8, "zeros:2x", Err("is no number of elements"));
        check(Scalar::U8, "zeros:99999999999", Err("at most 8589934592"));
        check(
            Scalar::U8,
            "zeros:99999999999x99999999999",
            Err("at most 8589934592"),
        );
        check(Scalar::U8, "nothing.npy", Err("nothing.npy: No such file"));
    }

    #[test]
    fn values_and_elements_of_several_numbers() {
        let pair = Type::tuple(vec![Type::Scalar(Scalar::U8), Type::Scalar(Scalar::U16)]);
        assert_eq!(value(&pair, "1, 2").unwrap(), [1, 0, 2, 0]);
        assert!(value(&pair, "1").unwrap_err().contains("takes 2 numbers"));
        assert!(value(&Type::U32, "x").unwrap_err().contains("`x` is no integer"));
        assert!(Numbers::of(&pair).unwrap_err().contains("mix types of numbers"));
        let three = Numbers::of(&Type::Vector(Scalar::U8, 3)).unwrap();
        assert_eq!(three.pack(&[1, 2, 3, 4, 5, 6]), [1, 2, 3, 0, 4, 5, 6, 0]);
        assert_eq!(three.unpack(&[1, 2, 3, 9, 4, 5, 6, 9]), [1, 2, 3, 4, 5, 6]);
    }
}
