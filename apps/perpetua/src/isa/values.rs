//! Contents of buffers and values of parameters, from the command line and back.

use perpetua::isa::text;
use perpetua_ir::ir::Scalar;

use super::npy;

/// A buffer's content.
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    pub(super) shape: Vec<usize>,
}

/// Most elements that the command line makes.
const MOST: usize = 1 << 33;

impl Content {
    /// Of a file, or of what is named: `zeros:N` and its like.
    pub(super) fn read(ty: Scalar, text: &str) -> Result<Content, String> {
        let made = text.split_once(':').filter(|(kind, _)| KINDS.contains(kind));
        let Some((kind, count)) = made else {
            return file(ty, text);
        };
        let count: usize = count
            .parse()
            .map_err(|_| format!("`{count}` is no number of elements"))?;
        if count > MOST {
            return Err(format!("{count} elements: at most {MOST} are made here"));
        }
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
            bytes.extend(&bits.to_le_bytes()[..ty.size() as usize]);
        }
        Ok(Content {
            bytes,
            shape: vec![count],
        })
    }
}

const KINDS: [&str; 4] = ["zeros", "ones", "range", "random"];

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
    // The text form has every float type's rounding.
    text::parse_constant(ty, &format!("{value:?}")).unwrap_or_default()
}

/// A parameter's bytes, from its text.
pub(super) fn scalar(ty: Scalar, text: &str) -> Result<[u8; 8], String> {
    text::parse_constant(ty, text).map(u64::to_le_bytes)
}

/// Elements as text: all of few, the ends of many.
pub(super) fn print(ty: Scalar, bytes: &[u8]) -> String {
    const SHOWN: usize = 1000;
    const ENDS: usize = 3;
    let size = ty.size() as usize;
    let elements: Vec<&[u8]> = bytes.chunks_exact(size).collect();
    let one = |element: &&[u8]| {
        let mut bits = [0; 8];
        bits[..size].copy_from_slice(element);
        text::print_constant(ty, u64::from_le_bytes(bits))
    };
    let all = |part: &[&[u8]]| part.iter().map(one).collect::<Vec<_>>().join(", ");
    match elements.len() {
        0..=SHOWN => format!("[{}]", all(&elements)),
        len => format!(
            "[{}, …, {}] ({len} elements)",
            all(&elements[..ENDS]),
            all(&elements[len - ENDS..])
        ),
    }
}
