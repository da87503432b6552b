//! Contents of buffers and values of parameters, from the command line and back. Must not know what is launched on them.

mod number;

use half::f16;
use perpetua_ir::ir::constant::parse_constant;
use perpetua_ir::ir::{Scalar, Type, npy as array_file, records};
use perpetua_ir::ops::eval::float_bits;
use perpetua_ir::plain::misleads;

pub(crate) use number::{is_same, number, steps_between};
pub(crate) use perpetua_ir::ir::array::print_array as print;
pub(crate) use perpetua_ir::ir::npy::write as npy;
pub(crate) use perpetua_ir::ir::records::{print as print_records, write as npy_records};

use super::{files, say};

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
        let Some((kind, shape)) = made(text) else {
            return file(ty, text);
        };
        let shape = extents(shape)?;
        let text = say::short(text);
        let count = shape.iter().try_fold(1usize, |n, extent| n.checked_mul(*extent));
        let Some(count) = count.filter(|count| *count <= MOST) else {
            return Err(format!("{text}: at most {MOST} elements are made here"));
        };
        if let (Some(last), true) = (count.checked_sub(1), kind == "range")
            && let Some(most) = most(ty).filter(|most| last as u128 > *most)
        {
            return Err(format!(
                "{text}: its last number is {last}, and {ty} holds {most} at most"
            ));
        }
        let size = count * ty.size() as usize;
        let mut bytes = room(size).map_err(|why| format!("{text}: {why}"))?;
        if kind == "zeros" {
            bytes.resize(size, 0);
            return Ok(Content { bytes, shape });
        }
        let mut state = 0u64;
        for i in 0..count {
            let bits = match (kind, ty.is_float()) {
                ("ones", true) => float_bits(ty, 1.0),
                ("ones", false) => 1,
                ("range", true) => float_bits(ty, i as f64),
                ("range", false) => i as u64,
                // Uniform in [0, 1).
                (_, true) => float_bits(ty, (random(&mut state) >> 11) as f64 / (1u64 << 53) as f64),
                (_, false) => random(&mut state) >> (64 - ty.bits()),
            };
            let bits = if ty == Scalar::Bool { bits & 1 } else { bits };
            bytes.extend(&bits.to_le_bytes()[..ty.size() as usize]);
        }
        Ok(Content { bytes, shape })
    }

    /// Whether a text names what is made here, rather than a file.
    pub(crate) fn is_made(text: &str) -> bool {
        made(text).is_some()
    }
}

/// An error that says all that is missing, if something is.
pub(crate) fn none_missing(missing: &[String]) -> Result<(), String> {
    match missing {
        [] => Ok(()),
        all => Err(all.join("; ")),
    }
}

/// Bytes of what is named, without making it; nothing of a file.
#[cfg(feature = "isa")]
pub(crate) fn size_of_named(ty: Scalar, text: &str) -> Option<usize> {
    let extents = extents(made(text)?.1).ok()?;
    let size = |size: usize, extent: &usize| size.saturating_mul(*extent);
    Some(extents.iter().fold(ty.size() as usize, size))
}

/// Kind and extents of what is named; nothing else with a colon is meant so, as a path of Windows.
fn made(text: &str) -> Option<(&str, &str)> {
    text.split_once(':').filter(|(kind, _)| KINDS.contains(kind))
}

/// `1000` or `480x640`: how many numbers along each axis, the last index fastest.
pub(crate) fn extents(text: &str) -> Result<Vec<usize>, String> {
    text.split('x')
        .map(|extent| extent.parse())
        .collect::<Result<_, _>>()
        .map_err(|_| {
            let text = say::short(text);
            format!("`{text}` is not a number of elements: write 1000, or 480x640 for rows and columns")
        })
}

/// A file's bytes, and what it is called.
fn bytes_of(path: &str) -> Result<(Vec<u8>, String), String> {
    let name = say::file(path);
    let bytes = files::read(path.as_ref(), u64::MAX).map_err(|error| {
        format!("{name}: {error}; a content is a .npy file, or zeros:N, ones:N, range:N, random:N")
    })?;
    Ok((bytes, name.to_string()))
}

fn file(ty: Scalar, path: &str) -> Result<Content, String> {
    let (bytes, name) = bytes_of(path)?;
    let array = array_file::read(&bytes).map_err(|error| format!("{name}: {error}"))?;
    if array.element != ty {
        let remedy = array_file::name(ty).map(|name| format!(": save its `.astype(\"{name}\")`"));
        return Err(format!(
            "{name} has elements of type {}, the buffer has {ty}{}",
            array.element,
            remedy.unwrap_or_default()
        ));
    }
    Ok(Content {
        bytes: array.bytes.to_vec(),
        shape: array.shape,
    })
}

/// The largest number of a type that can be met here.
fn most(ty: Scalar) -> Option<u128> {
    match ty {
        Scalar::F16 => Some(f16::MAX.to_f64() as u128),
        Scalar::Bool => Some(1),
        _ if ty.is_float() => None,
        _ if ty.is_signed_int() => Some((1 << (ty.bits() - 1)) - 1),
        _ => Some((1 << ty.bits()) - 1),
    }
}

// The same sequence of bits in every run (splitmix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Memory for so many bytes, or that there is none.
fn room(bytes: usize) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let free = perpetua::device::host::memory_info().free;
    let is_there = free.is_none_or(|free| bytes as u64 <= free) && out.try_reserve_exact(bytes).is_ok();
    match (is_there, free) {
        (true, _) => Ok(out),
        (false, Some(free)) => Err(format!("{bytes} bytes are not to be had here: {free} are free")),
        (false, None) => Err(format!("{bytes} bytes are not to be had here")),
    }
}

/// `NAME=REST`
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let shown = say::short(text);
    match text.split_once('=') {
        Some((name, _)) if name.is_empty() || name.contains(misleads) => {
            Err(format!("`{shown}` has no name in front of its `=`"))
        }
        Some((_, "")) => Err(format!("`{shown}` has nothing behind its `=`")),
        Some((name, rest)) => Ok((name.into(), rest.into())),
        None => Err(format!("`{shown}` has no `=`: write NAME=…")),
    }
}

/// A value's bytes as in memory; one of several numbers is written with commas between them.
pub(crate) fn value(ty: &Type, text: &str) -> Result<Vec<u8>, String> {
    let leaves = ty.leaves();
    let given: Vec<&str> = text.split(',').map(str::trim).collect();
    if given.len() != leaves.len() {
        let shown = say::short(text);
        if leaves.len() == 1 {
            return Err(format!(
                "`{ty}` takes one number, `{shown}` has {}: decimals stand behind a point",
                given.len()
            ));
        }
        return Err(format!(
            "`{ty}` takes {} numbers with commas between them, `{shown}` has {}",
            leaves.len(),
            given.len()
        ));
    }
    let mut bytes = vec![0; ty.size() as usize];
    for ((scalar, offset), text) in leaves.into_iter().zip(given) {
        let bits = parse_constant(scalar, text)
            .map_err(|error| say::name(&error))?
            .to_le_bytes();
        let (at, size) = (offset as usize, scalar.size() as usize);
        bytes[at..at + size].copy_from_slice(&bits[..size]);
    }
    Ok(bytes)
}

/// An element of a buffer as its numbers: vectors, arrays and structs are several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Numbers {
    /// The type of each, and where it stands in the element.
    leaves: Vec<(Scalar, usize)>,
    /// An element's bytes.
    size: usize,
}

impl Numbers {
    /// Of an element type.
    pub(crate) fn of(ty: &Type) -> Numbers {
        let leaves = ty.leaves().into_iter();
        Numbers {
            leaves: leaves.map(|(scalar, offset)| (scalar, offset as usize)).collect(),
            size: ty.size() as usize,
        }
    }

    /// The type of them all; `None` where they differ.
    pub(crate) fn scalar(&self) -> Option<Scalar> {
        let (first, _) = self.leaves.first()?;
        self.leaves
            .iter()
            .all(|(other, _)| other == first)
            .then_some(*first)
    }

    /// How many an element has.
    pub(crate) fn each(&self) -> usize {
        self.leaves.len()
    }

    /// Bytes of an element's numbers, with nothing between.
    fn dense(&self) -> usize {
        self.leaves.iter().map(|(scalar, _)| scalar.size() as usize).sum()
    }

    /// The content of a buffer whose elements mix types of numbers: of a structured array, or of what is named, each number as in an array of
    /// its own type.
    pub(crate) fn content(&self, ty: &Type, text: &str) -> Result<Content, String> {
        if !Content::is_made(text) {
            return records_of(self, ty, text);
        }
        let scalars = self.leaves.iter().map(|(scalar, _)| *scalar);
        let columns: Vec<Content> = scalars
            .map(|scalar| Content::read(scalar, text))
            .collect::<Result<_, _>>()?;
        let shape = columns.first().map_or_else(Vec::new, |first| first.shape.clone());
        let mut bytes = room(columns.iter().map(|column| column.bytes.len()).sum())?;
        for i in 0..shape.iter().product() {
            for ((scalar, _), column) in self.leaves.iter().zip(&columns) {
                let size = scalar.size() as usize;
                bytes.extend(&column.bytes[i * size..(i + 1) * size]);
            }
        }
        Ok(Content { bytes, shape })
    }

    /// The numbers of an array's bytes.
    pub(crate) fn split<'a>(&'a self, mut bytes: &'a [u8]) -> impl Iterator<Item = (Scalar, &'a [u8])> {
        let scalars = self.leaves.iter().cycle().map(|(scalar, _)| *scalar);
        scalars.map_while(move |scalar| {
            let (number, rest) = bytes.split_at_checked(scalar.size() as usize)?;
            bytes = rest;
            Some((scalar, number))
        })
    }

    /// An array's bytes as a buffer has them.
    pub(crate) fn pack(&self, numbers: Vec<u8>) -> Result<Vec<u8>, String> {
        let dense = self.dense();
        if dense == self.size {
            return Ok(numbers);
        }
        let elements = numbers.chunks_exact(dense);
        let mut out = room(elements.len() * self.size)?;
        out.resize(elements.len() * self.size, 0);
        for (to, from) in out.chunks_exact_mut(self.size).zip(elements) {
            for ((_, at), (_, number)) in self.leaves.iter().zip(self.split(from)) {
                to[*at..*at + number.len()].copy_from_slice(number);
            }
        }
        Ok(out)
    }

    /// A buffer's bytes as an array has them.
    pub(crate) fn unpack(&self, elements: Vec<u8>) -> Vec<u8> {
        if self.dense() == self.size {
            return elements;
        }
        let mut out = Vec::with_capacity(elements.len());
        for element in elements.chunks_exact(self.size) {
            for (scalar, at) in &self.leaves {
                out.extend(&element[*at..*at + scalar.size() as usize]);
            }
        }
        out
    }
}

/// The content of a file with a structured array.
fn records_of(numbers: &Numbers, ty: &Type, path: &str) -> Result<Content, String> {
    let (bytes, name) = bytes_of(path)?;
    let found = records::read(&bytes).map_err(|error| format!("{name}: {error}"))?;
    let wanted = numbers.leaves.iter().map(|(scalar, _)| *scalar);
    if !wanted.clone().eq(found.numbers.iter().copied()) {
        let list = |scalars: Vec<Scalar>| {
            scalars
                .iter()
                .map(Scalar::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        return Err(format!(
            "{name} has records of {}, the buffer's elements `{ty}` have {}",
            list(found.numbers.clone()),
            list(wanted.collect())
        ));
    }
    let fields = records::fields(ty);
    if found.fields.len() == fields.len() && found.fields != fields {
        return Err(format!(
            "{name} has records with the fields {}, the buffer's elements `{ty}` have {}: give them the same names in the same order",
            found.fields.join(", "),
            fields.join(", ")
        ));
    }
    Ok(Content {
        bytes: found.dense(),
        shape: found.shape,
    })
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
        check(
            Scalar::U8,
            "zeros:many",
            Err("`many` is not a number of elements"),
        );
        check(Scalar::U8, "zeros:2x", Err("is not a number of elements"));
        check(Scalar::U8, "zeros:99999999999", Err("at most 8589934592"));
        check(
            Scalar::U8,
            "zeros:99999999999x99999999999",
            Err("at most 8589934592"),
        );
        check(Scalar::U8, "nothing.npy", Err("nothing.npy: No such file"));
        let all = perpetua::device::host::memory_info().total;
        if all.is_some_and(|all| all < 64 << 30) {
            check(
                Scalar::F64,
                "range:8589934592",
                Err("68719476736 bytes are not to be had here"),
            );
        }
    }

    #[test]
    fn values_and_elements_of_several_numbers() {
        let pair = Type::tuple(vec![Type::Scalar(Scalar::U8), Type::Scalar(Scalar::U16)]);
        assert_eq!(value(&pair, "1, 2").unwrap(), [1, 0, 2, 0]);
        assert!(value(&pair, "1").unwrap_err().contains("takes 2 numbers"));
        assert!(
            value(&Type::U32, "x")
                .unwrap_err()
                .contains("`x` is not an integer")
        );
        assert!(
            value(&Type::F32, "1e999")
                .unwrap_err()
                .contains("`1e999` is more than f32 holds")
        );
        assert_eq!(
            value(&Type::F32, "-inf").unwrap(),
            f32::NEG_INFINITY.to_le_bytes()
        );
        let mixed = Numbers::of(&pair);
        assert_eq!((mixed.scalar(), mixed.each()), (None, 2));
        assert_eq!(
            mixed.pack(vec![1, 2, 3, 4, 5, 6]).unwrap(),
            [1, 0, 2, 3, 4, 0, 5, 6]
        );
        assert_eq!(mixed.unpack(vec![1, 9, 2, 3, 4, 9, 5, 6]), [1, 2, 3, 4, 5, 6]);
        let made = mixed.content(&pair, "range:2").unwrap();
        assert_eq!((made.bytes, made.shape), (vec![0, 0, 0, 1, 1, 0], vec![2]));
        let three = Numbers::of(&Type::Vector(Scalar::U8, 3));
        assert_eq!(
            three.pack(vec![1, 2, 3, 4, 5, 6]).unwrap(),
            [1, 2, 3, 0, 4, 5, 6, 0]
        );
        assert_eq!(three.unpack(vec![1, 2, 3, 9, 4, 5, 6, 9]), [1, 2, 3, 4, 5, 6]);
    }
}
