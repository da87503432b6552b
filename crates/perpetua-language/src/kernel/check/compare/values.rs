//! Random values of described types, and whether two are the same. Must not know kernels.

use perpetua_device::layout::leaves;
use perpetua_ir::front::rust::TypeDesc;
use perpetua_ir::ir::Scalar;

/// What a difference of rounding may make of numbers between 0 and some thousands, where it is not exact.
const NEAR: f64 = 1e-3;

/// The first element in which two runs differ.
pub(super) fn difference(
    desc: &TypeDesc,
    size: usize,
    own: &[u8],
    run: &[u8],
    exact: bool,
) -> Option<String> {
    let leaves = leaves(desc);
    let size = size.max(1);
    own.chunks_exact(size)
        .zip(run.chunks_exact(size))
        .enumerate()
        .find_map(|(i, (own, run))| {
            let differs = leaves.iter().find(|leaf| {
                let part = leaf.offset..leaf.offset + leaf.scalar.size() as usize;
                let (a, b) = (&own[part.clone()], &run[part]);
                a != b && !same(leaf.scalar, a, b, exact)
            })?;
            let part = differs.offset..differs.offset + differs.scalar.size() as usize;
            Some(format!(
                "element {i} is {} by the function, {} by the kernel",
                shown(differs.scalar, &own[part.clone()]),
                shown(differs.scalar, &run[part])
            ))
        })
}

fn float(scalar: Scalar, bytes: &[u8]) -> Option<f64> {
    let bits = bytes
        .iter()
        .rev()
        .fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    Some(match scalar {
        Scalar::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Scalar::BF16 => half::bf16::from_bits(bits as u16).to_f64(),
        Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
        Scalar::F64 => f64::from_bits(bits),
        _ => return None,
    })
}

fn shown(scalar: Scalar, bytes: &[u8]) -> String {
    match float(scalar, bytes) {
        Some(value) => format!("{value:?}"),
        None => {
            let bits = bytes
                .iter()
                .rev()
                .fold(0u64, |all, byte| all << 8 | u64::from(*byte));
            format!("{bits:#x}")
        }
    }
}

/// Whether scalars whose bytes differ are the same all the same.
fn same(scalar: Scalar, a: &[u8], b: &[u8], exact: bool) -> bool {
    let are_near = |a: f64, b: f64| {
        a.is_finite() && b.is_finite() && (a - b).abs() <= NEAR * a.abs().max(b.abs()).max(NEAR)
    };
    match (float(scalar, a), float(scalar, b)) {
        // Which NaN is nobody's promise.
        (Some(a), Some(b)) => a.is_nan() && b.is_nan() || !exact && (a == b || are_near(a, b)),
        // A word may hold a float, or two halves, which are rounded as they are.
        _ if exact || scalar != Scalar::U32 => false,
        _ => {
            let of = |scalar, a: &[u8], b: &[u8]| match (float(scalar, a), float(scalar, b)) {
                (Some(a), Some(b)) => a == b || are_near(a, b),
                _ => false,
            };
            let halves = |scalar| of(scalar, &a[..2], &b[..2]) && of(scalar, &a[2..], &b[2..]);
            of(Scalar::F32, a, b) || halves(Scalar::F16) || halves(Scalar::BF16)
        }
    }
}

/// What numbers a trial has.
#[derive(Clone, Copy)]
pub(super) enum Flavour {
    Few,
    Small,
    Bytes,
    Any,
}

/// Makes a value of what is described.
pub(super) fn fill(desc: &TypeDesc, value: &mut [u8], flavour: Flavour, random: &mut Random) {
    match desc {
        TypeDesc::Scalar(_) => {
            for leaf in leaves(desc) {
                let bits = number(leaf.scalar, flavour, random);
                let len = leaf.scalar.size() as usize;
                value[leaf.offset..leaf.offset + len].copy_from_slice(&bits.to_le_bytes()[..len]);
                if value.len() == 16 {
                    // The upper half of a wide integer.
                    let sign = if matches!(flavour, Flavour::Any) {
                        random.next()
                    } else {
                        0
                    };
                    value[8..].copy_from_slice(&sign.to_le_bytes());
                    break;
                }
            }
        }
        TypeDesc::Enum(of) => {
            let (_, number) = &of.variants[random.below(of.variants.len())];
            let bytes = number.to_le_bytes();
            let len = value.len();
            value.copy_from_slice(&bytes[..len]);
        }
        TypeDesc::Array(element, len) if *len > 0 => {
            let size = value.len() / len;
            if size > 0 {
                value
                    .chunks_exact_mut(size)
                    .for_each(|part| fill(element, part, flavour, random));
            }
        }
        TypeDesc::Struct(of) => {
            for field in &of.fields {
                let size = field.ty.host_layout().map_or(0, |(size, _)| size);
                fill(
                    &field.ty,
                    &mut value[field.offset..field.offset + size],
                    flavour,
                    random,
                );
            }
        }
        TypeDesc::Array(..) | TypeDesc::Tuple(_) | TypeDesc::Option(_) | TypeDesc::Result(_) => {}
    }
}

fn number(scalar: Scalar, flavour: Flavour, random: &mut Random) -> u64 {
    let of = |value: f64| match scalar {
        Scalar::F16 => u64::from(half::f16::from_f64(value).to_bits()),
        Scalar::BF16 => u64::from(half::bf16::from_f64(value).to_bits()),
        Scalar::F32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    };
    let is_float = matches!(scalar, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64);
    match (scalar, flavour) {
        (Scalar::Bool, _) => random.next() & 1,
        (_, Flavour::Few) if is_float => of(random.below(4) as f64),
        (_, Flavour::Small) if is_float => of(random.below(64) as f64 / 8.0 - 4.0),
        (_, Flavour::Bytes) if is_float => of(random.below(1 << 20) as f64 / f64::from(1 << 20)),
        (_, Flavour::Any) if is_float => match random.below(16) {
            0 => of([0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN][random.below(5)]),
            1 => random.next(),
            _ => of(random.below(1 << 20) as f64 / 1024.0 - 512.0),
        },
        (_, Flavour::Few) => random.below(4) as u64,
        (_, Flavour::Small) => random.below(17) as u64,
        (_, Flavour::Bytes) => random.below(256) as u64,
        (_, Flavour::Any) => match random.below(4) {
            0 => random.next(),
            1 => (random.below(9) as u64).wrapping_sub(4),
            _ => random.below(40) as u64,
        },
    }
}

/// Splitmix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}
