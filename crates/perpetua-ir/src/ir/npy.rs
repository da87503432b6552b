//! NumPy's array files (format versions 1 to 3, numpy.lib.format): header and elements. The crates that read them bring a grammar
//! for Python's literals that needs a C compiler; a header has three keys.

use super::Scalar;

const MAGIC: &[u8] = b"\x93NUMPY";

/// An array.
#[derive(Debug, PartialEq)]
pub struct Array<'a> {
    /// Type of its elements.
    pub element: Scalar,
    /// Extents.
    pub shape: Vec<usize>,
    /// Elements, little-endian, the last index fastest: a part of the file.
    pub bytes: &'a [u8],
}

const NAMES: [(&str, Scalar); 12] = [
    ("b1", Scalar::Bool),
    ("i1", Scalar::I8),
    ("i2", Scalar::I16),
    ("i4", Scalar::I32),
    ("i8", Scalar::I64),
    ("u1", Scalar::U8),
    ("u2", Scalar::U16),
    ("u4", Scalar::U32),
    ("u8", Scalar::U64),
    ("f2", Scalar::F16),
    ("f4", Scalar::F32),
    ("f8", Scalar::F64),
];

/// What a file says of its array before its elements.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of its elements.
    pub element: Scalar,
    /// Extents.
    pub shape: Vec<usize>,
    /// Where elements begin, in bytes.
    pub begin: usize,
    /// Where they end.
    pub end: usize,
}

/// Reads an array.
///
/// # Errors
/// Says why the bytes are none, or none that fits: integers, floats and bool are read, little-endian, the last index fastest.
pub fn read(bytes: &[u8]) -> Result<Array<'_>, String> {
    let Header {
        element,
        shape,
        begin,
        end,
    } = header(bytes)?;
    match bytes.get(begin..end) {
        Some(bytes) => Ok(Array {
            element,
            shape,
            bytes,
        }),
        None => Err(format!(
            "{} bytes of elements are not enough for the shape {shape:?}",
            bytes.len() - begin
        )),
    }
}

/// Reads what stands before the elements, which need not be there.
///
/// # Errors
/// As [`read`].
pub fn header(bytes: &[u8]) -> Result<Header, String> {
    let (header, begin) = text(bytes)?;
    let descr = value(header, "descr")?.trim_matches(['\'', '"']);
    let Some(element) = scalar(descr) else {
        return Err(match descr.starts_with('[') {
            true => "its elements are records: integers and floats are read, little-endian".to_owned(),
            false => format!(
                "elements `{}`: integers and floats are read, little-endian",
                short(descr)
            ),
        });
    };
    let shape = shape(header)?;
    Ok(Header {
        element,
        end: end(begin, element.size() as usize, &shape)?,
        shape,
        begin,
    })
}

/// The type of elements that NumPy calls so, in the order of bytes that this machine has.
pub(super) fn scalar(descr: &str) -> Option<Scalar> {
    let (order, name) = descr.split_at_checked(1)?;
    let (_, element) = NAMES.iter().find(|(known, _)| *known == name)?;
    (order == "<" || order == "|" && element.size() == 1).then_some(*element)
}

/// What a name that a file gives is shown as.
pub(super) fn short(name: &str) -> String {
    const MOST: usize = 40;
    let shown: String = name.chars().take(MOST).collect();
    let rest = if shown.len() < name.len() { "…" } else { "" };
    shown + rest
}

/// Where elements of a size end that begin there.
pub(super) fn end(begin: usize, size: usize, shape: &[usize]) -> Result<usize, String> {
    let size = shape
        .iter()
        .try_fold(size, |size, extent| size.checked_mul(*extent));
    let end = size.and_then(|size| begin.checked_add(size));
    end.ok_or_else(|| format!("the shape {shape:?} has more elements than memory has bytes"))
}

/// A file's header, and where elements begin.
pub(super) fn text(bytes: &[u8]) -> Result<(&str, usize), String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("this is no .npy file")?;
    let short = "the file ends within its header";
    let (version, rest) = rest.split_at_checked(2).ok_or(short)?;
    let (len, rest) = match version {
        [1, _] => {
            let (len, rest) = rest.split_first_chunk::<2>().ok_or(short)?;
            (usize::from(u16::from_le_bytes(*len)), rest)
        }
        [2 | 3, _] => {
            let (len, rest) = rest.split_first_chunk::<4>().ok_or(short)?;
            (u32::from_le_bytes(*len) as usize, rest)
        }
        _ => return Err(format!("version {} of the format is not known here", version[0])),
    };
    let (header, data) = rest.split_at_checked(len).ok_or(short)?;
    let begin = bytes.len() - data.len();
    let header = std::str::from_utf8(header).map_err(|_| "the header is no text")?;
    Ok((header, begin))
}

/// The extents that a header says.
pub(super) fn shape(header: &str) -> Result<Vec<usize>, String> {
    if value(header, "fortran_order")? != "False" {
        return Err("the array is in Fortran's order: save numpy.ascontiguousarray of it".into());
    }
    let shape = value(header, "shape")?;
    let inner = shape.strip_prefix('(').and_then(|shape| shape.strip_suffix(')'));
    let extents = inner
        .ok_or_else(|| format!("`{shape}` is no shape"))?
        .split(',')
        .map(str::trim);
    let extents = extents.filter(|extent| !extent.is_empty());
    extents
        .map(|e| e.parse().map_err(|_| format!("`{e}` is no extent")))
        .collect()
}

/// What stands behind a key, up to the comma after it.
fn value<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    let missing = || format!("the header has no `{key}`");
    let rest = behind(header, key).ok_or_else(missing)?;
    let end = match rest.starts_with('(') {
        true => rest.find(')').map(|at| at + 1),
        false => rest.find([',', '}']),
    };
    end.and_then(|end| rest.get(..end))
        .map(str::trim)
        .ok_or_else(missing)
}

/// What stands behind a key.
pub(super) fn behind<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let quoted = [format!("'{key}'"), format!("\"{key}\"")];
    let (_, rest) = quoted.iter().find_map(|key| header.split_once(key.as_str()))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

/// What NumPy calls elements of a type, where it has them.
pub fn name(element: Scalar) -> Option<&'static str> {
    NAMES.iter().find(|(_, ty)| *ty == element).map(|(name, _)| *name)
}

/// Writes an array.
///
/// # Errors
/// If NumPy has no elements of the type, or there are too many extents for a header.
pub fn write(element: Scalar, shape: &[usize], bytes: &[u8]) -> Result<Vec<u8>, String> {
    file(&format!("'{}'", descr(element)?), shape, bytes)
}

/// What a header calls elements of a type.
pub(super) fn descr(element: Scalar) -> Result<String, String> {
    let name = name(element).ok_or_else(|| format!("NumPy has no elements of type {element}"))?;
    let order = if element.size() == 1 { '|' } else { '<' };
    Ok(format!("{order}{name}"))
}

/// A file of elements that a header calls so.
pub(super) fn file(descr: &str, shape: &[usize], bytes: &[u8]) -> Result<Vec<u8>, String> {
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let mut header = format!(
        "{{'descr': {descr}, 'fortran_order': False, 'shape': ({}), }}",
        extents.trim_end()
    );
    // Elements begin at a multiple of 64 bytes.
    let before = MAGIC.len() + 4;
    let len = (before + header.len() + 1).next_multiple_of(64) - before;
    header.extend(std::iter::repeat_n(' ', len - 1 - header.len()));
    header.push('\n');
    let len = u16::try_from(len).map_err(|_| "its header is longer than headers may be")?;
    let mut file = Vec::with_capacity(before + header.len() + bytes.len());
    file.extend(MAGIC);
    file.extend([1, 0]);
    file.extend(len.to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (element, shape) in [
            (Scalar::F32, vec![2, 3]),
            (Scalar::U8, vec![5]),
            (Scalar::I64, vec![]),
        ] {
            let count: usize = shape.iter().product();
            let bytes: Vec<u8> = (0..count * element.size() as usize).map(|i| i as u8).collect();
            let file = write(element, &shape, &bytes).expect("a file");
            assert_eq!((file.len() - bytes.len()) % 64, 0);
            assert_eq!(
                read(&file),
                Ok(Array {
                    element,
                    shape,
                    bytes: &bytes
                })
            );
        }
    }

    #[test]
    fn long_names_of_types_are_cut() {
        let file = |descr: &str| {
            let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}");
            let len = (header.len() as u32).to_le_bytes();
            [MAGIC, &[2, 0], &len, header.as_bytes(), &[0; 8]].concat()
        };
        let said = read(&file(&format!("'{}'", "ä".repeat(1000)))).unwrap_err();
        assert!(said.len() < 200 && said.contains("ä…`: integers"), "{said}");
        let said = read(&file("[('a', '<f4')]")).unwrap_err();
        assert!(said.starts_with("its elements are records"), "{said}");
    }

    #[test]
    fn what_is_no_array_is_refused() {
        let good = write(Scalar::F32, &[4], &[0; 16]).expect("a file");
        assert!(read(b"PK").is_err());
        for len in 0..good.len() {
            assert!(read(&good[..len]).is_err(), "{len} bytes");
        }
        let text = String::from_utf8_lossy(&good).into_owned();
        for (from, to) in [
            ("<f4", ">f4"),
            ("False", "True "),
            ("(4,)", "(99)"),
            ("(4,)", "(-1)"),
            ("shape", "forme"),
        ] {
            assert!(text.contains(from));
            let at = good
                .windows(from.len())
                .position(|part| part == from.as_bytes())
                .expect("there");
            let mut bad = good.clone();
            bad[at..at + to.len()].copy_from_slice(to.as_bytes());
            assert!(read(&bad).is_err(), "{to}");
        }
    }
}
