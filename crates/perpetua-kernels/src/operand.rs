//! What a launch is given, checked against the shapes that a kernel was made for. Must not know kernels.

use std::fmt;

use perpetua_device::{GpuType, KernelArg};

use crate::element::Element;
use crate::error::{Error, Result};

/// A matrix in row-major order, as a kernel expects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// Its name in messages.
    pub(crate) name: &'static str,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Elements from the start of a row to the start of the next.
    pub(crate) pitch: usize,
    /// How many such matrices there are, and elements from the start of one to the start of the next.
    pub(crate) layers: usize,
    pub(crate) apart: usize,
}

impl Operand {
    /// A matrix whose rows lie side by side.
    pub(crate) fn dense(name: &'static str, rows: usize, columns: usize) -> Operand {
        let pitch = columns;
        Operand {
            name,
            rows,
            columns,
            pitch,
            layers: 1,
            apart: 0,
        }
    }

    /// A vector.
    pub(crate) fn vector(name: &'static str, len: usize) -> Operand {
        Operand::dense(name, 1, len)
    }

    /// Elements from the first to the last, inclusive.
    fn extent(&self, kernel: &'static str) -> Result<usize> {
        let (operand, columns, pitch) = (self.name, self.columns, self.pitch);
        if pitch < columns {
            return Err(Error::Pitch {
                kernel,
                operand,
                columns,
                pitch,
            });
        }
        if self.rows == 0 || columns == 0 || self.layers == 0 {
            return Ok(0);
        }
        let extent = pitch.checked_mul(self.rows - 1).and_then(|n| {
            n.checked_add(columns)?
                .checked_add(self.apart.checked_mul(self.layers - 1)?)
        });
        extent.ok_or_else(|| Error::TooLarge {
            kernel,
            operand,
            shape: self.to_string(),
        })
    }
}

/// `[rows, columns]`, with the pitch where it is not the row's length.
impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.layers {
            1 => write!(f, "[{}, {}]", self.rows, self.columns)?,
            layers => write!(
                f,
                "[{layers}, {}, {}], {} apart",
                self.rows, self.columns, self.apart
            )?,
        }
        match self.pitch == self.columns {
            true => Ok(()),
            false => write!(f, " with a pitch of {}", self.pitch),
        }
    }
}

/// Checks that each argument is a buffer with room for its operand.
pub(crate) fn check(kernel: &'static str, operands: &[Operand], args: &[KernelArg<'_>]) -> Result<()> {
    if operands.len() != args.len() {
        let names: Vec<&str> = operands.iter().map(|operand| operand.name).collect();
        return Err(Error::ArgumentCount {
            kernel,
            expected: operands.len(),
            names: names.join(", "),
            given: args.len(),
        });
    }
    for (operand, arg) in operands.iter().zip(args) {
        let needed = operand.extent(kernel)?;
        match arg {
            KernelArg::Value(value) => {
                return Err(Error::NotABuffer {
                    kernel,
                    operand: operand.name,
                    given: value.ty().to_string(),
                    shape: operand.to_string(),
                });
            }
            KernelArg::Buffer(buffer) if buffer.len() < needed as u64 => {
                return Err(Error::TooShort {
                    kernel,
                    operand: operand.name,
                    shape: operand.to_string(),
                    needed,
                    found: buffer.len(),
                    element: buffer.element().to_string(),
                });
            }
            KernelArg::Buffer(_) => {}
        }
    }
    Ok(())
}

/// Checks that a buffer holds numbers of a type: what several launches work on is compared before the first.
pub(crate) fn check_held(
    kernel: &'static str,
    operand: &'static str,
    arg: &KernelArg<'_>,
    element: Element,
) -> Result<()> {
    match arg {
        KernelArg::Buffer(buffer) if !element.is(buffer.element()) => {
            Err(stored(kernel, operand, arg, format!("{element:?}")))
        }
        _ => Ok(()),
    }
}

/// The same of a type that is the kernel's own.
pub(crate) fn check_type<T: GpuType>(
    kernel: &'static str,
    operand: &'static str,
    arg: &KernelArg<'_>,
) -> Result<()> {
    match arg {
        KernelArg::Buffer(buffer) if !buffer.element().is::<T>() => {
            Err(stored(kernel, operand, arg, T::describe().to_string()))
        }
        _ => Ok(()),
    }
}

fn stored(kernel: &'static str, operand: &'static str, arg: &KernelArg<'_>, element: String) -> Error {
    Error::Stored {
        kernel,
        operand,
        found: match arg {
            KernelArg::Buffer(buffer) => buffer.element().to_string(),
            KernelArg::Value(value) => value.ty().to_string(),
        },
        element,
    }
}
