//! Second operands: tensors, or Rust's numbers, which take the tensor's type where their kind allows it.

use std::panic::Location;

use perpetua_device::Device;

use crate::dtype::{DType, number};
use crate::error::{At, Error};
use crate::node::Tensor;
use crate::node::{Op, Sources};
use crate::shape::Shape;

/// A tensor or a number. A number has no type of its own: it takes the tensor's, unless it is a float and the tensor has integers (then both
/// are `f32`), or it is an integer and the tensor is of `bool` (then both are `i32`). It is a parameter of the kernel, so another number compiles nothing.
#[derive(Clone)]
pub enum Operand {
    /// A tensor.
    Tensor(Tensor),
    /// A float.
    Float(f64),
    /// An integer.
    Integer(i128),
    /// A truth value.
    Bool(bool),
}

impl From<Tensor> for Operand {
    fn from(tensor: Tensor) -> Operand {
        Operand::Tensor(tensor)
    }
}

impl From<&Tensor> for Operand {
    fn from(tensor: &Tensor) -> Operand {
        Operand::Tensor(tensor.clone())
    }
}

impl From<&Operand> for Operand {
    fn from(operand: &Operand) -> Operand {
        operand.clone()
    }
}

macro_rules! numbers {
    ($($ty:ty: $kind:ident $as:ty;)*) => { $(
        impl From<$ty> for Operand {
            fn from(value: $ty) -> Operand {
                Operand::$kind(<$as>::from(value))
            }
        }
    )* };
}

numbers! {
    f64: Float f64; f32: Float f64; bool: Bool bool;
    i8: Integer i128; i16: Integer i128; i32: Integer i128; i64: Integer i128;
    u8: Integer i128; u16: Integer i128; u32: Integer i128; u64: Integer i128;
}

impl Operand {
    /// The type in which it meets a tensor of `dtype`.
    pub(crate) fn meets(&self, dtype: DType) -> DType {
        match self {
            Operand::Tensor(tensor) => tensor.0.dtype,
            Operand::Float(_) if !dtype.is_float() => DType::F32,
            Operand::Integer(_) if dtype == DType::Bool => DType::I32,
            _ => dtype,
        }
    }

    // Its bits in a type; or what is wrong with it.
    fn bits(&self, dtype: DType) -> Result<u64, String> {
        match self {
            Operand::Tensor(_) => Err("a tensor is not a number".into()),
            Operand::Float(value) => Ok(number(dtype, *value)),
            Operand::Bool(value) => Ok(number(dtype, f64::from(u8::from(*value)))),
            Operand::Integer(value) if dtype.is_float() => Ok(number(dtype, *value as f64)),
            Operand::Integer(value) => {
                let width = dtype.bits();
                let (low, high) = match dtype.is_signed_int() {
                    true => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
                    false => (0, (1i128 << width) - 1),
                };
                match (low..=high).contains(value) {
                    true => Ok(*value as u64 & (u64::MAX >> (64 - width))),
                    false => Err(format!("{value} is no {dtype}, which holds {low} to {high}")),
                }
            }
        }
    }

    /// The number as a tensor.
    pub(crate) fn of(
        &self,
        dtype: DType,
        shape: &[usize],
        device: &Device,
        at: &'static Location<'static>,
    ) -> Tensor {
        if let Operand::Tensor(tensor) = self {
            return tensor.clone();
        }
        match self.bits(dtype) {
            Ok(bits) => {
                let op = Op::Scalar { bits, fixed: false };
                let ty = (Shape::from_slice(shape), dtype);
                Tensor::record(op, Sources::new(), ty, device, at)
            }
            Err(rule) => {
                let error = Error::Rule {
                    operation: "full",
                    operands: format!("a number as {dtype}"),
                    rule,
                    at: At(at),
                };
                Tensor::with_error(error, device, at)
            }
        }
    }

    /// The number in a tensor's shape and type, on its device.
    pub(crate) fn like(&self, tensor: &Tensor, at: &'static Location<'static>) -> Tensor {
        match tensor.error() {
            Some(_) => tensor.clone(),
            None => self.of(tensor.0.dtype, &tensor.0.shape, &tensor.0.device, at),
        }
    }
}
