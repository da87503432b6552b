//! Elements that mix types of numbers, as NumPy has them: structured arrays, read, written and printed. Here the numbers of an element lie
//! one behind the other, as they do in files. Must not know where they come from.

use super::array::{numbers_as_words, print_words};
use super::npy::{behind, descr, end, file, scalar, shape, short, text};
use super::{Scalar, Type};

/// Most parts of an element: numbers, gaps, and the records around them.
const MOST: usize = 1 << 17;
/// How deep the brackets of a header may nest.
const DEEPEST: u32 = 16;

/// An array of records.
#[derive(Debug, PartialEq)]
pub struct Records<'a> {
    /// Names of an element's fields.
    pub fields: Vec<String>,
    /// Types of its numbers, in order, those of fields within fields in their place.
    pub numbers: Vec<Scalar>,
    /// Extents.
    pub shape: Vec<usize>,
    /// Where each number begins in an element, in bytes.
    offsets: Vec<usize>,
    /// Bytes of an element.
    size: usize,
    bytes: &'a [u8],
}

impl Records<'_> {
    /// The numbers of all elements, one behind the other, with nothing between.
    pub fn dense(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for element in self.bytes.chunks_exact(self.size.max(1)) {
            for (scalar, at) in self.numbers.iter().zip(&self.offsets) {
                out.extend(element.iter().skip(*at).take(scalar.size() as usize));
            }
        }
        out
    }
}

/// A literal of Python's in a header.
enum Literal<'a> {
    /// In brackets or parentheses.
    List(Vec<Literal<'a>>),
    Text(&'a str),
    Number(usize),
}

/// Reads a literal; what stands behind it, too.
fn literal(text: &str, depth: u32) -> Option<(Literal<'_>, &str)> {
    let text = text.trim_start();
    let first = text.chars().next()?;
    if let Some(closing) = match first {
        '[' => Some(']'),
        '(' => Some(')'),
        _ => None,
    } {
        let (mut list, mut rest) = (Vec::new(), text.get(1..)?.trim_start());
        loop {
            if let Some(rest) = rest.strip_prefix(closing) {
                return Some((Literal::List(list), rest));
            }
            let (item, behind) = literal(rest, depth.checked_sub(1)?)?;
            list.push(item);
            let behind = behind.trim_start();
            rest = match behind.strip_prefix(',') {
                Some(rest) => rest.trim_start(),
                None if behind.starts_with(closing) => behind,
                None => return None,
            };
        }
    }
    if first == '\'' || first == '"' {
        let (inner, rest) = text.get(1..)?.split_once(first)?;
        return Some((Literal::Text(inner), rest));
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(digits)?;
    Some((Literal::Number(number.parse().ok()?), rest))
}

/// The extents of a field that is an array.
fn extents(shape: &Literal<'_>) -> Option<usize> {
    match shape {
        Literal::Number(n) => Some(*n),
        Literal::List(all) => all
            .iter()
            .try_fold(1usize, |n, extent| n.checked_mul(extents(extent)?)),
        Literal::Text(_) => None,
    }
}

/// What is known of an element so far.
#[derive(Default)]
struct Element {
    numbers: Vec<Scalar>,
    offsets: Vec<usize>,
    size: usize,
    /// What was added: an empty one among it takes time, too.
    parts: usize,
}

/// Adds a type's numbers to those of a record: their types and places.
fn add(ty: &Literal<'_>, all: &mut Element) -> Result<Vec<String>, String> {
    let unknown = || "a record's fields are not written as NumPy does".to_owned();
    if all.parts == MOST {
        return Err(format!("a record of more than {MOST} parts"));
    }
    all.parts += 1;
    match ty {
        Literal::Text(name) => {
            if let Some(bytes) = name.strip_prefix("|V") {
                let bytes: usize = bytes.parse().map_err(|_| unknown())?;
                all.size = all.size.checked_add(bytes).ok_or_else(unknown)?;
                return Ok(Vec::new());
            }
            let Some(scalar) = scalar(name) else {
                return Err(format!(
                    "a field `{}`: integers and floats are read, little-endian",
                    short(name)
                ));
            };
            all.numbers.push(scalar);
            all.offsets.push(all.size);
            let size = all.size.checked_add(scalar.size() as usize);
            all.size = size.ok_or_else(unknown)?;
            Ok(Vec::new())
        }
        Literal::List(fields) => {
            let mut names = Vec::new();
            for field in fields {
                let Literal::List(parts) = field else {
                    return Err(unknown());
                };
                let (name, ty, shape) = match &parts[..] {
                    [name, ty] => (name, ty, None),
                    [name, ty, shape] => (name, ty, Some(shape)),
                    _ => return Err(unknown()),
                };
                let name = match name {
                    Literal::Text(name) => *name,
                    // A title and the name.
                    Literal::List(both) => match both.last() {
                        Some(Literal::Text(name)) => *name,
                        _ => return Err(unknown()),
                    },
                    Literal::Number(_) => return Err(unknown()),
                };
                let count = shape.map_or(Some(1), extents).ok_or_else(unknown)?;
                for _ in 0..count {
                    add(ty, all)?;
                }
                // What lies between fields has no name.
                names.extend((!name.is_empty()).then(|| name.to_owned()));
            }
            Ok(names)
        }
        Literal::Number(_) => Err(unknown()),
    }
}

/// Reads a structured array.
///
/// # Errors
/// Says why the bytes are none: integers, floats and bool are read, little-endian, the last index fastest.
pub fn read(bytes: &[u8]) -> Result<Records<'_>, String> {
    let (header, begin) = text(bytes)?;
    let missing = "the header has no `descr`";
    let (ty, _) = literal(behind(header, "descr").ok_or(missing)?, DEEPEST)
        .ok_or("a record's fields are not written as NumPy does")?;
    if matches!(ty, Literal::Text(_)) {
        return Err("its elements are numbers, and the buffer's are records: save a structured array".into());
    }
    let mut all = Element::default();
    let fields = add(&ty, &mut all)?;
    let shape = shape(header)?;
    let end = end(begin, all.size, &shape)?;
    let Some(bytes) = bytes.get(begin..end) else {
        return Err(format!(
            "{} bytes of elements are not enough for the shape {shape:?}",
            bytes.len() - begin
        ));
    };
    Ok(Records {
        fields,
        numbers: all.numbers,
        shape,
        offsets: all.offsets,
        size: all.size,
        bytes,
    })
}

/// A type without the arrays around it, whose extents are the last of the shape.
fn within<'a>(mut ty: &'a Type, shape: &[usize]) -> (&'a Type, Vec<usize>) {
    let mut shape = shape.to_vec();
    while let Type::Array(element, len) = ty {
        shape.push(*len as usize);
        ty = element;
    }
    (ty, shape)
}

/// The names of a struct's fields, as NumPy has them; those of a tuple are numbers in Rust.
pub fn fields(ty: &Type) -> Vec<String> {
    let (ty, _) = within(ty, &[]);
    let Type::Struct(of) = ty else { return Vec::new() };
    let name = |name: &String| match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("f{name}"),
        false => name.clone(),
    };
    of.fields.iter().map(|field| name(&field.name)).collect()
}

/// What a header calls a type.
fn described(ty: &Type) -> Result<String, String> {
    match ty {
        Type::Scalar(scalar) => Ok(format!("'{}'", descr(*scalar)?)),
        Type::Struct(of) => {
            let mut all = Vec::new();
            for (name, field) in fields(ty).iter().zip(&of.fields) {
                let (inner, mut shape) = within(&field.ty, &[]);
                let inner = match inner {
                    Type::Vector(scalar, n) => {
                        shape.push(usize::from(*n));
                        described(&Type::Scalar(*scalar))?
                    }
                    inner => described(inner)?,
                };
                let shape: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
                all.push(match shape.is_empty() {
                    true => format!("('{name}', {inner})"),
                    false => format!("('{name}', {inner}, ({}))", shape.trim_end()),
                });
            }
            Ok(format!("[{}]", all.join(", ")))
        }
        Type::Vector(..) | Type::Array(..) => Err(format!("`{ty}` is no record")),
    }
}

/// Writes elements of a type that mixes types of numbers.
///
/// # Errors
/// If NumPy has no such numbers, or its fields are too many for a header.
pub fn write(ty: &Type, extents: &[usize], bytes: &[u8]) -> Result<Vec<u8>, String> {
    let (ty, shape) = within(ty, extents);
    file(&described(ty)?, &shape, bytes)
}

/// Elements of a type that mixes types of numbers, as NumPy prints them.
pub fn print(before: &str, ty: &Type, extents: &[usize], bytes: &[u8]) -> String {
    let (ty, shape) = within(ty, extents);
    let size = dense(ty);
    print_words(before, &shape, &|indices| {
        let elements = indices.iter().filter_map(|i| bytes.get(i * size..(i + 1) * size));
        let mut elements: Vec<&[u8]> = elements.collect();
        columns(ty, &mut elements)
    })
}

/// Bytes of a value's numbers, with nothing between.
fn dense(ty: &Type) -> usize {
    let leaves = ty.leaves().into_iter();
    leaves.map(|(scalar, _)| scalar.size() as usize).sum()
}

/// Takes so many bytes from the front.
fn taken<'a>(bytes: &mut &'a [u8], size: usize) -> &'a [u8] {
    let (front, rest) = bytes.split_at(bytes.len().min(size));
    *bytes = rest;
    front
}

/// What a column of values of a type is shown as; they are taken from the front of each element.
fn columns(ty: &Type, elements: &mut [&[u8]]) -> Vec<String> {
    let (inner, len) = match ty {
        Type::Scalar(scalar) => {
            let size = scalar.size() as usize;
            let numbers: Vec<&[u8]> = elements.iter_mut().map(|element| taken(element, size)).collect();
            return numbers_as_words(*scalar, &numbers);
        }
        Type::Struct(of) => {
            let parts = of.fields.iter().map(|field| columns(&field.ty, elements));
            let parts: Vec<Vec<String>> = parts.collect();
            let whole = |i: usize| {
                let words = parts.iter().filter_map(|part| part.get(i)).map(String::as_str);
                let words: Vec<&str> = words.collect();
                let one = if words.len() == 1 { "," } else { "" };
                format!("({}{one})", words.join(", "))
            };
            return (0..elements.len()).map(whole).collect();
        }
        Type::Array(inner, len) => ((**inner).clone(), *len as usize),
        Type::Vector(scalar, len) => (Type::Scalar(*scalar), usize::from(*len)),
    };
    // All of an array have one width.
    let size = dense(&inner);
    let each = elements.iter_mut().flat_map(|element| {
        let own: Vec<&[u8]> = (0..len).map(|_| taken(element, size)).collect();
        own
    });
    let words = columns(&inner, &mut each.collect::<Vec<_>>());
    let arrays = words.chunks(len.max(1));
    arrays.map(|words| format!("[{}]", words.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ir::StructType;

    fn hit() -> Type {
        let fields = vec![
            ("flag".to_owned(), Type::Scalar(Scalar::U8)),
            ("distance".to_owned(), Type::F32),
            (
                "at".to_owned(),
                Type::Array(Arc::new(Type::Scalar(Scalar::U16)), 2),
            ),
        ];
        Type::Struct(Arc::new(StructType::repr_c("Hit", fields, 1)))
    }

    fn bytes() -> Vec<u8> {
        let element = |flag: u8, distance: f32, at: [u16; 2]| {
            let [a, b] = at.map(u16::to_le_bytes);
            [&[flag][..], &distance.to_le_bytes(), &a, &b].concat()
        };
        [element(1, 0.5, [3, 4]), element(20, 12.25, [5, 600])].concat()
    }

    #[test]
    fn records_are_written_read_and_printed() {
        let file = write(&hit(), &[2], &bytes()).expect("a file");
        let header = "[('flag', '|u1'), ('distance', '<f4'), ('at', '<u2', (2,))]";
        assert!(String::from_utf8_lossy(&file).contains(header));
        let read = read(&file).expect("records");
        assert_eq!(read.fields, ["flag", "distance", "at"]);
        assert_eq!(read.numbers, [Scalar::U8, Scalar::F32, Scalar::U16, Scalar::U16]);
        assert_eq!((read.shape.clone(), read.dense()), (vec![2], bytes()));
        // numpy.array([(1, 0.5, [3, 4]), (20, 12.25, [5, 600])], dtype=[('flag', 'u1'), ('distance', 'f4'), ('at', 'u2', (2,))])
        assert_eq!(
            print("y = ", &hit(), &[2], &bytes()),
            "y = [( 1,  0.5 , [  3,   4]) (20, 12.25, [  5, 600])]"
        );
        // numpy.zeros(12, dtype=[('a', 'u4'), ('p', [('x', 'f4'), ('y', 'i2', (2,))])])
        let inner = vec![
            ("x".to_owned(), Type::F32),
            (
                "y".to_owned(),
                Type::Array(Arc::new(Type::Scalar(Scalar::I16)), 2),
            ),
        ];
        let inner = Type::Struct(Arc::new(StructType::repr_c("P", inner, 1)));
        let outer = vec![("a".to_owned(), Type::U32), ("p".to_owned(), inner)];
        let outer = Type::Struct(Arc::new(StructType::repr_c("Outer", outer, 1)));
        let line = "(0, (0., [0, 0])) (0, (0., [0, 0])) (0, (0., [0, 0])) (0, (0., [0, 0]))";
        assert_eq!(
            print("", &outer, &[12], &[0; 12 * 12]),
            format!("[{line}\n {line}\n {line}]")
        );
        let one = Type::Struct(Arc::new(StructType::repr_c(
            "One",
            vec![("a".into(), Type::U32)],
            1,
        )));
        assert_eq!(print("", &one, &[1], &[7, 0, 0, 0]), "[(7,)]");
    }

    #[test]
    fn gaps_between_fields_are_left_out() {
        let text = "{'descr': [('flag', '|u1'), ('', '|V3'), (('title', 'p'), [('x', '<f4')], 2)], 'fortran_order': False, 'shape': (1,), }";
        let len = (text.len() as u16).to_le_bytes();
        let element = [7, 9, 9, 9, 0, 0, 128, 63, 0, 0, 0, 64];
        let file = [b"\x93NUMPY\x01\x00", &len[..], text.as_bytes(), &element].concat();
        let found = read(&file).expect("records");
        assert_eq!(
            (&found.fields[..], found.numbers.len()),
            (&["flag".to_owned(), "p".into()][..], 3)
        );
        assert_eq!(found.dense(), [7, 0, 0, 128, 63, 0, 0, 0, 64]);
        for (from, to, said) in [
            ("'<f4'", "'>f4'", "a field `>f4`"),
            ("[('x'", "('x'(", "not written as NumPy does"),
            ("(1,)", "(9,)", "12 bytes of elements are not enough"),
            (", 2)]", ", 9)]", "12 bytes of elements are not enough"),
            ("'|V3'", "'|Vx'", "not written as NumPy does"),
        ] {
            let bad = text.replacen(from, to, 1);
            assert_eq!(bad.len(), text.len(), "{from}");
            let bad = [b"\x93NUMPY\x01\x00", &len[..], bad.as_bytes(), &element].concat();
            let error = read(&bad).expect_err("no records");
            assert!(error.contains(said), "{error}");
        }
        for cut in 0..file.len() {
            assert!(read(&file[..cut]).is_err(), "{cut} bytes");
        }
        for inner in ["'|V0'", "[]"] {
            let most = (0..3).fold(inner.to_owned(), |of, _| format!("[('a', {of}, 65536)]"));
            let text = format!("{{'descr': {most}, 'fortran_order': False, 'shape': (), }}");
            let len = (text.len() as u16).to_le_bytes();
            let file = [b"\x93NUMPY\x01\x00", &len[..], text.as_bytes()].concat();
            assert_eq!(read(&file), Err("a record of more than 131072 parts".to_owned()));
        }
        let deep = format!("{{'descr': {}, 'shape': (), }}", "[".repeat(40_000));
        let len = (deep.len() as u16).to_le_bytes();
        assert!(read(&[b"\x93NUMPY\x01\x00", &len[..], deep.as_bytes()].concat()).is_err());
    }
}
