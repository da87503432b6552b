//! A kernel with everything that a run of it needs, and what two runs of it must agree on.

use perpetua_ir::ir::{Kernel, ParamKind, Scalar, Type};

/// A kernel, its launch and its arguments.
#[derive(Clone, Debug)]
pub struct Case {
    /// The kernel; it verifies.
    pub kernel: Kernel,
    /// Blocks.
    pub grid: [u32; 3],
    /// Lanes per block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// One for each parameter, in order: a buffer's or a value's bytes, laid out as in memory.
    pub args: Vec<Vec<u8>>,
}

/// A value in a buffer on which two runs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Name of the buffer parameter.
    pub param: String,
    /// Index of the element.
    pub element: usize,
    /// Byte offset of the scalar in the element.
    pub offset: u32,
    /// Type of the scalar.
    pub ty: Scalar,
    /// Its bits in the first run.
    pub expected: u64,
    /// Its bits in the second run.
    pub found: u64,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Mismatch {
            param,
            element,
            offset,
            ty,
            expected,
            found,
        } = self;
        write!(
            f,
            "`{param}`[{element}] at byte {offset}: expected {ty} {expected:#x}, found {found:#x}"
        )
    }
}

/// Compares the buffers that two runs left, scalar by scalar: padding does not count, and any NaN equals any
/// other. A buffer of the wrong size differs at its first missing element. Gives at most `most` mismatches.
pub fn mismatches(kernel: &Kernel, expected: &[Vec<u8>], found: &[Vec<u8>], most: usize) -> Vec<Mismatch> {
    let mut out = Vec::new();
    for (i, param) in kernel.params.iter().enumerate() {
        let ParamKind::Buffer { element, .. } = &param.kind else {
            continue;
        };
        let empty = Vec::new();
        let expected = expected.get(i).unwrap_or(&empty);
        let found = found.get(i).unwrap_or(&empty);
        let size = element.size().max(1) as usize;
        let leaves = element.leaves();
        for at in 0..expected.len().max(found.len()).div_ceil(size) {
            for (s, offset) in &leaves {
                if out.len() == most {
                    return out;
                }
                let here = at * size + *offset as usize;
                let (a, b) = (bits(expected, here, *s), bits(found, here, *s));
                let same = match (a, b) {
                    (Some(a), Some(b)) => a == b || is_nan(*s, a) && is_nan(*s, b),
                    _ => false,
                };
                if !same {
                    out.push(Mismatch {
                        param: param.name.clone(),
                        element: at,
                        offset: *offset,
                        ty: *s,
                        expected: a.unwrap_or(0),
                        found: b.unwrap_or(0),
                    });
                }
            }
        }
    }
    out
}

/// The bits of a scalar in memory, zero-extended; `None` past the end.
fn bits(bytes: &[u8], at: usize, s: Scalar) -> Option<u64> {
    let bytes = bytes.get(at..at + s.size() as usize)?;
    Some(bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)))
}

fn is_nan(s: Scalar, bits: u64) -> bool {
    match s {
        Scalar::F16 => half::f16::from_bits(bits as u16).is_nan(),
        Scalar::BF16 => half::bf16::from_bits(bits as u16).is_nan(),
        Scalar::F32 => f32::from_bits(bits as u32).is_nan(),
        Scalar::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

impl Case {
    /// Number of lanes in the whole launch.
    pub fn lanes(&self) -> u64 {
        self.grid
            .iter()
            .chain(&self.block)
            .map(|n| u64::from(*n))
            .product()
    }

    /// Number of elements of the buffer that is parameter `i`; `None` for a value.
    pub fn elements(&self, i: usize) -> Option<usize> {
        match &self.kernel.params.get(i)?.kind {
            ParamKind::Buffer { element, .. } => {
                self.args.get(i)?.len().checked_div(Type::size(element) as usize)
            }
            ParamKind::Value(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perpetua_ir::ir::{Access, KernelBuilder, StructType};
    use std::sync::Arc;

    #[test]
    fn padding_and_nan_do_not_count() {
        let s = StructType::repr_c(
            "S",
            vec![("a".into(), Scalar::U8.into()), ("b".into(), Type::F32)],
            1,
        );
        let mut k = KernelBuilder::new("k");
        k.buffer("x", Type::Struct(Arc::new(s)), Access::ReadWrite);
        let kernel = k.finish();
        let with = |a: u8, pad: u8, b: u32| {
            let mut bytes = vec![a, pad, pad, pad];
            bytes.extend(b.to_le_bytes());
            vec![bytes]
        };
        assert_eq!(
            mismatches(&kernel, &with(1, 0, 0x7fc0_0000), &with(1, 9, 0xffc0_0001), 9),
            []
        );
        let found = mismatches(&kernel, &with(1, 0, 1), &with(2, 0, 2), 9);
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "`x`[0] at byte 0: expected u8 0x1, found 0x2",
                "`x`[0] at byte 4: expected f32 0x1, found 0x2"
            ]
        );
        assert_eq!(mismatches(&kernel, &with(1, 0, 1), &[Vec::new()], 1).len(), 1);
    }
}
