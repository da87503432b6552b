//! Tensors as NumPy prints arrays.

use std::fmt;

use perpetua_ir::ir::array::print_array;

use crate::dtype::DType;
use crate::node::Tensor;

/// The elements, for which it waits; or the error.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // There is no shorter way to print floats of one byte.
        let shown = match self.dtype().is_byte_float() {
            true => &self.cast(DType::F32),
            false => self,
        };
        match shown.to_bytes() {
            Ok(bytes) => f.write_str(&print_array("", shown.dtype().stored(), self.shape(), &bytes)),
            Err(error) => write!(f, "{error}"),
        }
    }
}

/// Type, shape and operation; computes nothing.
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error() {
            Some(error) => write!(f, "no tensor: {error}"),
            None => write!(f, "{} of `{}`", self.0.describe(), crate::table::name_of(&self.0)),
        }
    }
}
