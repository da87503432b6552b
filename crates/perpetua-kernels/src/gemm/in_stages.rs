//! Launches of products in stages: what suits them, which tiles, how C is written. Must not know how a block computes its tiles.

use perpetua_device::{BackendKind, KernelArg, LaunchConfig, Stream};
use perpetua_ir::back::Capability;
use perpetua_language::args;
use perpetua_language::kernel::resident::U32x4;

use super::staged::{self, Tile};
use super::tensor_core::Factors;
use super::{GemmKernel, Schedule};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, unchecked};
use crate::operand::Operand;

impl GemmKernel {
    /// Whether a product by tensor cores can be computed in stages on this device.
    pub(super) fn suits_stages(
        &self,
        stream: &Stream,
        operands: &[Operand; 3],
        args: [&KernelArg<'_>; 3],
    ) -> bool {
        let device = stream.device();
        let has_them =
            device.backend() == BackendKind::Cuda && device.info().capabilities.contains(&Capability::Stages);
        let [m, n, k] = self.size;
        let mut lies_right = args.iter().zip(operands).zip([(16, 8), (16, 8), (4, 2)]).map(
            |((arg, operand), (bytes, elements))| {
                let KernelArg::Buffer(buffer) = arg else {
                    return false;
                };
                let is_whole = elements != 2 || buffer.cast::<u32>().is_ok();
                self.element.is(buffer.element())
                    && is_whole
                    && buffer.ptr().place() % bytes == 0
                    && operand.pitch % elements == 0
            },
        );
        has_them
            && k > 0
            && m.max(n).max(k) <= i32::MAX as usize
            && operands.iter().all(|operand| operand.pitch as u64 >> 39 == 0)
            && n % 2 == 0
            && Tile::Small.count(m, n) <= staged::MOST_TILES
            && lies_right.all(|right| right)
    }

    pub(super) fn staged_instance(&self, tile: Tile, lines: bool) -> staged::Instance {
        staged::Instance {
            factors: self.factors().unwrap_or(Factors::F16),
            transposed: self.transposed,
            tile,
            lines,
        }
    }

    /// `check` has found room for all three.
    pub(super) fn launch_staged(
        &self,
        stream: &Stream,
        operands: &[Operand; 3],
        [a, b, c]: [&KernelArg<'_>; 3],
    ) -> Result<()> {
        let mut function = self.function();
        let [m, n, k] = self.size;
        if k == 0 {
            // There is nothing to describe to hardware.
            let kernel = GemmKernel {
                schedule: Schedule::TensorCore(128),
                stages: false,
                ..*self
            };
            return kernel.launch(stream, &[a.clone(), b.clone(), c.clone()]);
        }
        let Some(_) = self.factors() else {
            return Err(Error::Element {
                kernel: function.name(),
                element: self.element,
                takes: "F16 and Bf16",
            });
        };
        let multiprocessors = stream.device().info().multiprocessors.unwrap_or(1).max(1);
        let tile = match self.schedule {
            Schedule::Staged(Some(tile)) => tile,
            _ => Tile::of(m, n, k, multiprocessors as usize),
        };
        let tiles = tile.count(m, n);
        let [left, right, result] = operands;
        if tiles > staged::MOST_TILES {
            return Err(Error::TooLarge {
                kernel: function.name(),
                operand: result.name,
                shape: result.to_string(),
            });
        }
        if let Some((what, found)) = [
            ("the number of columns of C", n),
            ("the pitch of C", result.pitch),
        ]
        .into_iter()
        .find(|(_, number)| number % 2 != 0)
        {
            return Err(Error::Range {
                kernel: function.name(),
                what,
                found,
                needed: "even".into(),
            });
        }
        // C is written 16 bytes at a time where it lies so, and nothing is added to what it was.
        let is_even = self.beta == 0.0 && result.pitch % 8 == 0 && n % 8 == 0;
        let (memory, lines) = match c {
            KernelArg::Buffer(buffer) if !self.element.is(buffer.element()) => {
                return Err(Error::Stored {
                    kernel: function.name(),
                    operand: result.name,
                    found: buffer.element().to_string(),
                    element: self.element,
                });
            }
            KernelArg::Buffer(buffer) => match buffer.cast::<U32x4>().ok().filter(|_| is_even) {
                Some(lines) => (KernelArg::Buffer(lines), true),
                None => (KernelArg::Buffer(buffer.cast::<u32>()?), false),
            },
            other => (other.clone(), false),
        };
        function = self.staged_instance(tile, lines).function();
        let mut all = args![
            m,
            n,
            k,
            left.rows,
            left.columns,
            left.pitch,
            right.rows,
            right.columns,
            right.pitch,
            result.pitch,
            self.alpha,
            self.beta
        ]
        .to_vec();
        all.extend([a.clone(), b.clone(), memory]);
        if stream.device().backend() == BackendKind::Cuda {
            // SAFETY: `check` has found that C has room for its shape, with which rows and columns are compared before each access; of both an even
            // number is there, so a pair is whole, or a multiple of eight, so that a line is. A and B are described by their shapes, which a launch compares with the buffers. Indices
            // into sums are constants. Nothing divides by zero: a tile has a number only where there are columns, and a group of tiles has a row.
            function = unsafe { unchecked(function) };
        }
        let blocks = tile.blocks(m, n, multiprocessors as usize) as u32;
        Ok(stream.launch(&function, LaunchConfig::new(blocks, tile.lanes()), &all)?)
    }
}
