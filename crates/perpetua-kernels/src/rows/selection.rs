//! The greatest or least numbers of rows: what launches take. Must not know how lanes find them.

use perpetua_device::{KernelArg, LaunchConfig, Stream};
use perpetua_language::{KernelFn, args};

use super::select::{self, MOST};
use super::{Part, Plan, Rows, Team, row_instance};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, number, ptx_unchecked, unchecked_on};
use crate::operand::{Operand, check, check_type};

/// Where the greatest number of each row is, or the least. Launched with two buffers: `x` of `[rows, columns]`, and `indices`, a `u32` a row.
///
/// Of equal numbers the first counts, zeros of both signs being equal. A NaN comes before all numbers, so that its place is told.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{ArgmaxKernel, Kernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.upload(&[1.0f32, 7.0, 7.0, -1.0, -3.0, 0.0])?;
/// let indices = device.zeros::<u32>(2)?;
/// ArgmaxKernel::new(2, 3).launch(&device.default_stream(), args![&x, &indices])?;
/// assert_eq!(indices.read()?, [1, 2]);
/// ArgmaxKernel::new(2, 3).least().launch(&device.default_stream(), args![&x, &indices])?;
/// assert_eq!(indices.read()?, [0, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgmaxKernel {
    rows: Rows,
    least: bool,
}

impl ArgmaxKernel {
    /// For `rows` rows of `columns` elements, of which there must be one at least.
    pub fn new(rows: usize, columns: usize) -> ArgmaxKernel {
        ArgmaxKernel {
            rows: Rows::new(rows, columns),
            least: false,
        }
    }

    /// Where the least number is.
    pub fn least(mut self) -> ArgmaxKernel {
        self.least = true;
        self
    }

    /// How many elements lie from the start of a row to the start of the next: a row's length unless said otherwise.
    pub fn with_pitch(mut self, pitch: usize) -> ArgmaxKernel {
        self.rows.pitches = [pitch; 2];
        self
    }

    /// The type of what is read, `f32` unless said otherwise.
    pub fn with_element(mut self, element: Element) -> ArgmaxKernel {
        self.rows.element = element;
        self
    }

    fn planned(&self, plan: Plan) -> KernelFn {
        match self.least {
            false => row_instance!(self.rows.element, plan, select::argmax, false),
            true => row_instance!(self.rows.element, plan, select::argmax, true),
        }
    }
}

/// Rows whose numbers have places of 32 bits, and so many of them.
fn check_columns(kernel: &'static str, rows: &Rows, least: usize) -> Result<()> {
    let columns = rows.columns;
    match rows.rows == 0 || (least..u32::MAX as usize).contains(&columns) {
        true => Ok(()),
        false => Err(Error::Range {
            kernel,
            what: "the number of columns",
            found: columns,
            needed: format!("{least} to {}", u32::MAX - 1),
        }),
    }
}

impl Kernel for ArgmaxKernel {
    fn function(&self) -> KernelFn {
        self.planned(self.rows.best())
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        check_columns(self.name(), &self.rows, 1)?;
        let parts = [Part::Read("x"), Part::Other("indices", self.rows.rows)];
        self.rows
            .launch(|plan| self.planned(plan), stream, &parts, &[], args)
    }
}

/// The `k` greatest numbers of each row, in falling order, or the least ones, in rising order, and where they are. Launched with three buffers: `x` of `[rows, columns]`; `values` of `[rows, k]`; and `indices`, `u32`, of
/// `[rows, k]`.
///
/// Of equal numbers, zeros of both signs among them, those come first that are first in their row. A NaN comes before all numbers. `k` is at most 1024, and no more than there are columns; they may be as
/// many as 32 bits count.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, TopKKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.upload(&[1.0f32, 7.0, -2.0, 7.0])?;
/// let (values, indices) = (device.zeros::<f32>(3)?, device.zeros::<u32>(3)?);
/// TopKKernel::new(1, 4, 3).launch(&device.default_stream(), args![&x, &values, &indices])?;
/// assert_eq!((values.read()?, indices.read()?), (vec![7.0, 7.0, 1.0], vec![1, 3, 0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopKKernel {
    rows: Rows,
    k: usize,
    least: bool,
}

impl TopKKernel {
    /// For `rows` rows of `columns` elements.
    pub fn new(rows: usize, columns: usize, k: usize) -> TopKKernel {
        let mut rows = Rows::new(rows, columns);
        rows.pitches[1] = k;
        TopKKernel {
            rows,
            k,
            least: false,
        }
    }

    /// The least numbers.
    pub fn least(mut self) -> TopKKernel {
        self.least = true;
        self
    }

    /// How many elements lie from the start of a row to the start of the next, in what is read and in both that are written: a row's length unless said otherwise.
    pub fn with_pitches(mut self, read: usize, written: usize) -> TopKKernel {
        self.rows.pitches = [read, written];
        self
    }

    /// The type of what is read and of the values, `f32` unless said otherwise.
    pub fn with_element(mut self, element: Element) -> TopKKernel {
        self.rows.element = element;
        self
    }
}

impl Kernel for TopKKernel {
    fn function(&self) -> KernelFn {
        macro_rules! of {
            ($T:ty, $bits:literal) => {
                match self.least {
                    false => select::top_k::kernel::<$T, $bits, false>(),
                    true => select::top_k::kernel::<$T, $bits, true>(),
                }
            };
        }
        match self.rows.element {
            Element::F32 => of!(f32, 32),
            // A sign, eight bits of an exponent, ten digits.
            Element::F16 => of!(half::f16, 19),
            Element::Bf16 => of!(half::bf16, 16),
        }
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let name = self.name();
        let Rows {
            rows,
            columns,
            pitches,
            ..
        } = self.rows;
        if self.k > MOST {
            return Err(Error::Range {
                kernel: name,
                what: "`k`",
                found: self.k,
                needed: format!("at most {MOST}"),
            });
        }
        check_columns(name, &self.rows, self.k)?;
        let written = |name| Operand {
            pitch: pitches[1],
            ..Operand::dense(name, rows, self.k)
        };
        let x = Operand {
            pitch: pitches[0],
            ..Operand::dense("x", rows, columns)
        };
        check(name, &[x, written("values"), written("indices")], args)?;
        if let [_, _, indices] = args {
            check_type::<u32>(name, "indices", indices)?;
        }
        if rows == 0 || self.k == 0 {
            return Ok(());
        }
        // SAFETY: `check` has found room for all rows, of which each has a block; columns are compared with how many there are, and so many are written as are wanted, which are no more than there are columns.
        // Digits are below how many of them there are, and places in the block's memory below its lanes, or compared with how many it has. Nothing divides by 0.
        let function = unsafe { unchecked_on(stream, self.function()) };
        let wanted = self.k as u32;
        let place_bits = usize::BITS - (columns - 1).leading_zeros();
        let mut all = args![
            columns,
            pitches[0],
            pitches[1],
            wanted,
            wanted.next_power_of_two(),
            place_bits
        ]
        .to_vec();
        all.extend_from_slice(args);
        Ok(stream.launch(&function, LaunchConfig::new(number(rows), 256), &all)?)
    }
}
