//! Where tests compute, and values to compute with.

use perpetua_device::{BackendKind, Device};
use perpetua_tensor::{DType, Tensor};

/// A device of each backend: the CPU; wgpu where it is built in, which then must be there, in software at least; CUDA where there is a device, or where
/// `PERPETUA_MUST_OPEN` names it.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn devices() -> Vec<Device> {
    let mut kinds = vec![BackendKind::Cpu];
    if cfg!(feature = "wgpu") {
        kinds.push(BackendKind::Wgpu);
    }
    let open = |kind| Device::new(kind, 0).unwrap_or_else(|error| panic!("{error}"));
    let mut devices: Vec<Device> = kinds.into_iter().map(open).collect();
    if cfg!(feature = "cuda") {
        match Device::new(BackendKind::Cuda, 0) {
            Ok(device) => devices.push(device),
            Err(error) => {
                let must = std::env::var("PERPETUA_MUST_OPEN").unwrap_or_default();
                assert!(must != "cuda", "PERPETUA_MUST_OPEN names CUDA: {error}");
                eprintln!("skipped on CUDA: {error}");
            }
        }
    }
    devices
}

/// Whether a device computes with a type.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn has(device: &Device, dtype: DType) -> bool {
    use perpetua_ir::back::Capability::{Float64, Int64, Math64};
    let all = &device.info().capabilities;
    match dtype {
        DType::F64 => all.contains(&Float64) && all.contains(&Math64),
        DType::I64 | DType::U64 => all.contains(&Int64),
        _ => true,
    }
}

/// Whether two elements are equal: to the bit, or both NaN, or, where a device flushes denormals or is not known to be exact, nearly: `size` is the
/// greatest that the tensor holds, since what is left of sums that cancel is as exact as what was summed.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn agree(device: &Device, dtype: DType, size: f64, a: u64, b: u64) -> bool {
    if a == b || !dtype.is_float() {
        return a == b;
    }
    let (a, b) = (float(dtype, a), float(dtype, b));
    if a.is_nan() || b.is_nan() {
        return a.is_nan() && b.is_nan();
    }
    if device.info().numeric_probe.is_some_and(|probe| probe.is_exact()) {
        return a == b;
    }
    let scale = a.abs().max(b.abs());
    (a - b).abs() <= scale * 1e-5 + size * 1e-6 + 1e-37
}

fn float(dtype: DType, bits: u64) -> f64 {
    f64::from_bits(perpetua_tensor::testing::cast(dtype, DType::F64, bits))
}

/// Holds a tensor that a device computes against plain evaluation.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn check(what: &str, tensor: &Tensor) {
    if let Some(difference) = difference(tensor) {
        panic!("{what}: {difference}");
    }
}

/// Where a tensor that a device computes differs from plain evaluation.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn difference(tensor: &Tensor) -> Option<String> {
    let all = perpetua_tensor::testing::evaluate(tensor)
        .and_then(|expected| Ok((expected, perpetua_tensor::testing::bits(tensor)?)));
    let (expected, found) = match all {
        Ok(all) => all,
        Err(error) => return Some(error.to_string()),
    };
    if found.len() != expected.len() {
        return Some(format!("{} elements, expected {}", found.len(), expected.len()));
    }
    let sizes = expected.iter().map(|bits| float(tensor.dtype(), *bits).abs());
    let size = sizes.filter(|size| size.is_finite()).fold(0.0, f64::max);
    let mut all = found.iter().zip(&expected).enumerate();
    let (i, (found, expected)) = all
        .find(|(_, (found, expected))| !agree(tensor.device(), tensor.dtype(), size, **found, **expected))?;
    Some(format!(
        "element {i} of {tensor:?} on {:?} is {found:#x}, expected {expected:#x}",
        tensor.device()
    ))
}

/// Values of a type: ordinary ones, and where the type has them edges.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn values(dtype: DType, shape: &[usize], seed: usize, device: &Device) -> Tensor {
    const EDGES: [f64; 6] = [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let number = |i: usize| -> f64 {
        let i = i.wrapping_mul(2_654_435_761).wrapping_add(seed * 7919) >> 7;
        match i % 11 {
            0 => EDGES[i / 11 % EDGES.len()],
            _ => (i % 2000) as f64 / 100.0 - 10.0,
        }
    };
    let count: usize = shape.iter().product();
    let bits = (0..count).map(|i| perpetua_tensor::testing::cast(DType::F64, dtype, number(i).to_bits()));
    let bits: Vec<u64> = match dtype {
        DType::Bool => (0..count)
            .map(|i| u64::from((i + seed).is_multiple_of(3)))
            .collect(),
        _ => bits.collect(),
    };
    from_bits(dtype, &bits, shape, device)
}

/// A tensor of elements given by their bits.
#[allow(dead_code, reason = "each test has the part that it needs")]
pub(crate) fn from_bits(dtype: DType, bits: &[u64], shape: &[usize], device: &Device) -> Tensor {
    use half::{bf16, f16};
    macro_rules! of {
        ($ty:ty, $bits:ident => $value:expr) => {
            Tensor::from_slice(
                &bits.iter().map(|$bits| $value).collect::<Vec<$ty>>(),
                shape,
                device,
            )
        };
    }
    match dtype {
        DType::Bool => of!(bool, b => *b != 0),
        DType::I8 => of!(i8, b => *b as i8),
        DType::I16 => of!(i16, b => *b as i16),
        DType::I32 => of!(i32, b => *b as i32),
        DType::I64 => of!(i64, b => *b as i64),
        DType::U8 => of!(u8, b => *b as u8),
        DType::U16 => of!(u16, b => *b as u16),
        DType::U32 => of!(u32, b => *b as u32),
        DType::U64 => of!(u64, b => *b),
        DType::F16 => of!(f16, b => f16::from_bits(*b as u16)),
        DType::BF16 => of!(bf16, b => bf16::from_bits(*b as u16)),
        DType::F32 => of!(f32, b => f32::from_bits(*b as u32)),
        DType::F64 => of!(f64, b => f64::from_bits(*b)),
        DType::E4m3 | DType::E5m2 => {
            let bytes: Vec<u8> = bits.iter().map(|b| *b as u8).collect();
            Tensor::from_bytes(&bytes, dtype, shape, device)
        }
    }
}
