//! Tensors from outside, and from nothing but their shape.

use std::panic::Location;

use perpetua_device::{Device, DynBuffer};

use crate::dtype::{DType, Element};
use crate::error::{At, Error};
use crate::node::Tensor;
use crate::node::{Op, Sources};
use crate::operand::Operand;
use crate::shape::{Shape, count};

impl Tensor {
    /// A copy of values, the last axis varying fastest.
    #[track_caller]
    pub fn from_slice<T: Element>(values: &[T], shape: impl AsRef<[usize]>, device: &Device) -> Tensor {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        Tensor::uploaded("from_slice", bytes, T::TYPE, shape.as_ref(), device, here!())
    }

    /// A copy of elements of a type that comes at run time, or that Rust lacks, such as floats of one byte: their bytes, in the machine's order.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// use perpetua_tensor::{DType, Tensor};
    /// # let device = Device::new(BackendKind::Cpu, 0)?;
    /// let x = Tensor::from_bytes(&[0x38, 0xc0], DType::E4m3, [2], &device);
    /// assert_eq!(x.cast(DType::F32).to_vec::<f32>()?, [1.0, -2.0]);
    /// assert_eq!(x.to_bytes()?, [0x38, 0xc0]);
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn from_bytes(bytes: &[u8], dtype: DType, shape: impl AsRef<[usize]>, device: &Device) -> Tensor {
        const NAME: &str = "from_bytes";
        let (shape, at) = (shape.as_ref(), here!());
        let refuse = |rule: String| {
            let error = Error::Rule {
                operation: NAME,
                operands: format!("{} bytes as {dtype}", bytes.len()),
                rule,
                at: At(at),
            };
            Tensor::with_error(error, device, at)
        };
        if !bytes.len().is_multiple_of(dtype.size() as usize) {
            return refuse(format!("an element has {} bytes", dtype.size()));
        }
        match bytes.iter().find(|byte| dtype == DType::Bool && **byte > 1) {
            Some(other) => refuse(format!("bool is 0 or 1, not {other}")),
            None => Tensor::uploaded(NAME, bytes, dtype, shape, device, at),
        }
    }

    /// What the function `operation` gives of a copy of elements.
    pub(crate) fn uploaded(
        operation: &'static str,
        bytes: &[u8],
        dtype: DType,
        shape: &[usize],
        device: &Device,
        at: &'static Location<'static>,
    ) -> Tensor {
        let values = bytes.len() / dtype.size() as usize;
        if count(shape) != values {
            let error = Error::Rule {
                operation,
                operands: format!("{values} values as {dtype}"),
                rule: format!("the shape {shape:?} has {} elements", count(shape)),
                at: At(at),
            };
            return Tensor::with_error(error, device, at);
        }
        Tensor::with_value(
            operation,
            DynBuffer::upload(device, &dtype.into(), bytes),
            dtype,
            shape,
            device,
            at,
        )
    }

    /// A tensor whose value is known, which the function `operation` gives.
    pub(crate) fn with_value(
        operation: &'static str,
        value: perpetua_device::Result<DynBuffer>,
        dtype: DType,
        shape: &[usize],
        device: &Device,
        at: &'static Location<'static>,
    ) -> Tensor {
        match value {
            Ok(value) => {
                let leaf = Tensor::record(
                    Op::Leaf(operation),
                    Sources::new(),
                    (shape.into(), dtype),
                    device,
                    at,
                );
                leaf.0.settle(value);
                leaf
            }
            Err(cause) => {
                let error = Error::Device {
                    operation: operation.into(),
                    cause: cause.into(),
                    at: At(at),
                };
                Tensor::with_error(error, device, at)
            }
        }
    }

    /// One value everywhere.
    #[track_caller]
    pub fn full(
        shape: impl AsRef<[usize]>,
        value: impl Into<Operand>,
        dtype: DType,
        device: &Device,
    ) -> Tensor {
        value.into().of(dtype, shape.as_ref(), device, here!())
    }

    /// Zeros.
    #[track_caller]
    pub fn zeros(shape: impl AsRef<[usize]>, dtype: DType, device: &Device) -> Tensor {
        Tensor::fixed_on(shape.as_ref(), 0.0, dtype, device, here!())
    }

    /// Ones.
    #[track_caller]
    pub fn ones(shape: impl AsRef<[usize]>, dtype: DType, device: &Device) -> Tensor {
        Tensor::fixed_on(shape.as_ref(), 1.0, dtype, device, here!())
    }

    fn fixed_on(
        shape: &[usize],
        value: f64,
        dtype: DType,
        device: &Device,
        at: &'static Location<'static>,
    ) -> Tensor {
        let op = Op::Scalar {
            bits: crate::dtype::number(dtype, value),
            fixed: true,
        };
        Tensor::record(op, Sources::new(), (shape.into(), dtype), device, at)
    }

    /// The index of each element along an axis, as `i32`.
    #[track_caller]
    pub fn coordinates(shape: impl AsRef<[usize]>, axis: usize, device: &Device) -> Tensor {
        let (shape, at) = (shape.as_ref(), here!());
        if axis >= shape.len() || i32::try_from(shape[axis]).is_err() {
            let error = Error::Rule {
                operation: "coordinates",
                operands: format!("the shape {shape:?}"),
                rule: format!(
                    "axis {axis} must be one of its axes, of at most {} elements",
                    i32::MAX
                ),
                at: At(at),
            };
            return Tensor::with_error(error, device, at);
        }
        let ty = (Shape::from_slice(shape), DType::I32);
        Tensor::record(Op::Coordinate { axis }, Sources::new(), ty, device, at)
    }

    /// The numbers from `start` to `end`, which is not among them, `step` apart, as `i32`: [`Tensor::linspace`] has floats.
    #[track_caller]
    pub fn arange(start: i32, end: i32, step: i32, device: &Device) -> Tensor {
        let at = here!();
        if step == 0 {
            let error = Error::Rule {
                operation: "arange",
                operands: format!("{start}, {end}, {step}"),
                rule: "the step must not be 0".into(),
                at: At(at),
            };
            return Tensor::with_error(error, device, at);
        }
        let (distance, step_wide) = (i64::from(end) - i64::from(start), i64::from(step));
        let is_empty = distance == 0 || (distance > 0) != (step > 0);
        let len = if is_empty {
            0
        } else {
            (distance.abs() + step_wide.abs() - 1) / step_wide.abs()
        };
        crate::place::inside(at, || {
            Tensor::coordinates([len as usize], 0, device) * step + start
        })
    }

    /// `count` numbers from `start` to `end`, both among them, at equal distances, as `f32`.
    #[track_caller]
    pub fn linspace(start: f64, end: f64, count: usize, device: &Device) -> Tensor {
        let at = here!();
        crate::place::inside(at, || {
            let place = Tensor::coordinates([count], 0, device).cast(DType::F32);
            let step = (end - start) / count.saturating_sub(1).max(1) as f64;
            let numbers = &place * step + start;
            // The last one is the end itself, however the steps round.
            let is_last = place.greater_equal(count.saturating_sub(1).max(1) as f64);
            is_last.select(end, numbers)
        })
    }

    /// The frequencies of `fft` of so many samples, `distance` apart, as `f32`: up to the highest one, then the negative ones.
    #[track_caller]
    pub fn fftfreq(count: usize, distance: f64, device: &Device) -> Tensor {
        crate::place::inside(here!(), || {
            let place = Tensor::coordinates([count], 0, device);
            let is_high = place.greater_equal(count.div_ceil(2) as i64);
            let signed = is_high.select(&place - count as i64, &place);
            signed.cast(DType::F32) / (count as f64 * distance)
        })
    }

    /// Those of `rfft`.
    #[track_caller]
    pub fn rfftfreq(count: usize, distance: f64, device: &Device) -> Tensor {
        crate::place::inside(here!(), || {
            Tensor::coordinates([count / 2 + 1], 0, device).cast(DType::F32) / (count as f64 * distance)
        })
    }

    /// Ones where the indices of both axes are equal, else zeros.
    #[track_caller]
    pub fn eye(rows: usize, columns: usize, dtype: DType, device: &Device) -> Tensor {
        let at = here!();
        crate::place::inside(at, || {
            let row = Tensor::coordinates([rows, columns], 0, device);
            let column = Tensor::coordinates([rows, columns], 1, device);
            row.equal(column).cast(dtype)
        })
    }
}
