//! Products of different sizes in one launch, as mixtures of experts have them. Must not know how a block computes its tile.

use perpetua_device::{BackendKind, KernelArg, LaunchConfig, Stream};
use perpetua_language::kernel::resident::U32x4;
use perpetua_language::{KernelFn, args};

use super::tensor_core::{Halves, Instance, ROWS};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, ptx_of};
use crate::operand::{Operand, check};

/// Products `C = alpha A op(B) + beta C` of groups of rows, each with a matrix B of its own, in one launch by tensor cores. Launched with four buffers: A of `[rows, k]`; B of `[groups, k, n]`, or of
/// `[groups, n, k]` where it is transposed; offsets, `groups + 1` of `u32`; C of `[rows, n]`.
///
/// Group `i` has the rows from `offsets[i]` to `offsets[i + 1]`, which do not fall; a group may have none. So how many rows each has the device may decide: no launch waits for it. Rows of no group are neither read nor
/// written. [`Element::F16`] unless said otherwise, or [`Element::Bf16`]; needs a device with `Capability::Matrices`. Fastest where A and B begin at multiples of 16 bytes, and k and n are multiples of 8.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{GroupedGemmKernel, Kernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let a = device.upload(&[f16::from_f32(1.0); 3 * 8])?;
/// let b = device.upload(&[[f16::from_f32(1.0); 8 * 8], [f16::from_f32(2.0); 8 * 8]].concat())?;
/// let offsets = device.upload(&[0u32, 1, 3])?; // one row, then two
/// let c = device.zeros::<f16>(3 * 8)?;
/// GroupedGemmKernel::new(2, 3, 8, 8).launch(&device.default_stream(), args![&a, &b, &offsets, &c])?;
/// assert_eq!(c.read()?[7..9], [f16::from_f32(8.0), f16::from_f32(16.0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupedGemmKernel {
    groups: usize,
    rows: usize,
    n: usize,
    k: usize,
    transposed: bool,
    alpha: f32,
    beta: f32,
    element: Element,
}

impl GroupedGemmKernel {
    /// For so many groups, which have `rows` rows together, or fewer.
    pub fn new(groups: usize, rows: usize, n: usize, k: usize) -> GroupedGemmKernel {
        GroupedGemmKernel {
            groups,
            rows,
            n,
            k,
            transposed: false,
            alpha: 1.0,
            beta: 0.0,
            element: Element::F16,
        }
    }

    /// Reads each B as its transpose, stored n x k.
    pub fn with_transposed(mut self, b: bool) -> GroupedGemmKernel {
        self.transposed = b;
        self
    }

    /// What the products and what C before are multiplied with: 1 and 0 unless said otherwise.
    pub fn with_scales(mut self, alpha: f32, beta: f32) -> GroupedGemmKernel {
        (self.alpha, self.beta) = (alpha, beta);
        self
    }

    /// The type of what the matrices hold.
    pub fn with_element(mut self, element: Element) -> GroupedGemmKernel {
        self.element = element;
        self
    }

    fn instance(&self, pieces: bool) -> Instance {
        Instance {
            factors: match self.element {
                Element::Bf16 => Halves::Bf16,
                Element::F16 | Element::F32 => Halves::F16,
            },
            transposed: [false, self.transposed],
            // With fewer blocks a large GPU would not have one for each multiprocessor.
            wide: self.rows.div_ceil(ROWS).saturating_mul(self.n.div_ceil(256)) >= 96,
            pieces,
            grouped: true,
        }
    }

    /// Whether rows of A and B are whole pieces of 16 bytes.
    fn is_whole(&self) -> bool {
        self.k.is_multiple_of(8) && self.n.is_multiple_of(8)
    }
}

impl Kernel for GroupedGemmKernel {
    fn function(&self) -> KernelFn {
        self.instance(self.is_whole()).function()
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        // The text is what CUDA runs. SAFETY: nothing is launched here; what launches it, `launch`, says why it may.
        ptx_of(unsafe { self.function().unchecked() }, sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let name = self.function().name();
        let (rows, columns) = match self.transposed {
            true => (self.n, self.k),
            false => (self.k, self.n),
        };
        let too_large = Error::TooLarge {
            kernel: name,
            operand: "B",
            shape: format!("[{}, {rows}, {columns}]", self.groups),
        };
        let all_rows = self.groups.checked_mul(rows).ok_or(too_large)?;
        let operands = [
            Operand::dense("A", self.rows, self.k),
            Operand::dense("B", all_rows, columns),
            Operand::vector("offsets", self.groups.saturating_add(1)),
            Operand::dense("C", self.rows, self.n),
        ];
        check(name, &operands, args)?;
        if self.element == Element::F32 {
            return Err(Error::Element {
                kernel: name,
                element: self.element,
                takes: "F16 and Bf16",
            });
        }
        for (operand, arg) in operands.iter().zip(args) {
            if let KernelArg::Buffer(buffer) = arg
                && operand.name != "offsets"
                && !self.element.is(buffer.element())
            {
                return Err(Error::Stored {
                    kernel: name,
                    operand: operand.name,
                    found: buffer.element().to_string(),
                    element: format!("{:?}", self.element),
                });
            }
        }
        if self.rows == 0 || self.n == 0 || self.groups == 0 {
            return Ok(());
        }
        let mut buffers = args.to_vec();
        let mut pieces = self.is_whole();
        for at in 0..2 {
            if let (true, KernelArg::Buffer(buffer)) = (pieces, &buffers[at]) {
                match buffer.cast_front::<U32x4>() {
                    Ok(buffer) => buffers[at] = KernelArg::Buffer(buffer),
                    Err(_) => pieces = false,
                }
            }
        }
        if !pieces {
            buffers = args.to_vec();
        }
        let instance = self.instance(pieces);
        let mut function = instance.function();
        if stream.device().backend() == BackendKind::Cuda {
            // SAFETY: `check` has found that all matrices have room for their shapes, of which pieces of 16 bytes are whole, and that there is one offset more than groups; rows count no further than
            // those of A and C, whatever offsets say, and no group further than those of B. Else as for `GemmKernel::tensor_core`.
            function = unsafe { function.unchecked() };
        }
        let mut all = args![
            self.rows,
            self.n,
            self.k,
            self.k,
            columns,
            self.n,
            self.alpha,
            self.beta,
            self.groups,
            rows * columns
        ]
        .to_vec();
        all.extend(buffers);
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        // A group has one tile at most that is not full.
        let tiles = (self.rows / ROWS).saturating_add(self.groups.min(self.rows));
        let wide = if instance.wide { 256 } else { 128 };
        let config = LaunchConfig::new((number(tiles), number(self.n.div_ceil(wide))), (256, 1));
        Ok(stream.launch(&function, config, &all)?)
    }
}
