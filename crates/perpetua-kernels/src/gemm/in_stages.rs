//! Launches of products in stages: what suits them, which tiles, how A and B must lie, how C is written. Must not know how a block computes its tiles.

use half::{bf16, f16};
use perpetua_device::{BackendKind, Buffer, KernelArg, LaunchConfig, Stream};
use perpetua_ir::back::Capability;
use perpetua_language::args;
use perpetua_language::kernel::resident::U32x4;

use super::epilogue::{Beside, Plain};
use super::finish::Finish;
use super::instance::{Instance, Lines};
use super::layout::{ALIGNED, copied, is_aligned, is_held, of_bytes};
use super::split::{self, Rest};
use super::tile::{MOST_TILES, Tile};
use super::tune::multiprocessors;
use super::{Factors, GemmKernel, Schedule};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::kernel::Kernel as _;
use crate::operand::Operand;

/// From so much depth on it takes less time to copy a matrix whose rows lie otherwise than to multiply it without stages; and also where it is so small a part
/// of all three matrices.
const DEEP: usize = 192;
const SMALL_PART: usize = 4;

/// A buffer of bytes as one of what C holds.
fn of_result<'a>(kernel: &GemmKernel, bytes: &'a Buffer<u8>) -> Result<KernelArg<'a>> {
    let KernelArg::Buffer(bytes) = bytes.arg() else {
        return Ok(bytes.arg());
    };
    Ok(KernelArg::Buffer(match (kernel.is_int(), kernel.element) {
        (true, _) => bytes.cast::<i32>()?,
        (_, Element::F32) => bytes.cast::<f32>()?,
        (_, Element::F16) => bytes.cast::<f16>()?,
        (_, Element::Bf16) => bytes.cast::<bf16>()?,
    }))
}

impl GemmKernel {
    /// Whether a product by tensor cores can be computed in stages on this device, and is faster so.
    pub(super) fn suits_stages(
        &self,
        stream: &Stream,
        operands: &[Operand; 3],
        [a, b, c]: [&KernelArg<'_>; 3],
    ) -> bool {
        let device = stream.device();
        let Some(factors) = self.factors() else {
            return false;
        };
        let has_them =
            device.backend() == BackendKind::Cuda && device.info().capabilities.contains(&Capability::Stages);
        let [m, n, k] = self.size;
        let is_held = |arg| is_held(factors, arg);
        let [left, right, result] = operands.map(|operand| operand.rows.saturating_mul(operand.columns));
        let copied = [(left, &operands[0], a), (right, &operands[1], b)]
            .into_iter()
            .filter(|(_, operand, arg)| !is_aligned(factors, operand, arg))
            .map(|(elements, ..)| elements)
            .fold(0, usize::saturating_add);
        let all = left.saturating_add(right).saturating_add(result);
        has_them
            && k > 0
            && is_held(a)
            && is_held(b)
            && is_held(c)
            && m.max(n).max(k) <= i32::MAX as usize
            && operands.iter().all(|operand| operand.pitch as u64 >> 39 == 0)
            && Tile::Small.count(m, n) <= MOST_TILES
            && (copied <= all / SMALL_PART || k >= DEEP)
    }

    /// The tile that was asked for, or the one that suits the shape on so many multiprocessors.
    pub(super) fn staged_tile(&self, multiprocessors: usize) -> Tile {
        let factors = self.factors().unwrap_or(Factors::F16);
        let mut possible = Tile::possible(factors, self.promotes());
        match self.schedule {
            Schedule::Staged(Some([rows, columns])) => {
                let fits =
                    |tile: &Tile| tile.size()[0] * tile.together() <= rows && tile.size()[1] <= columns;
                possible.find(fits).unwrap_or(Tile::Small)
            }
            _ => {
                let [m, n, _] = self.size;
                Tile::fastest(possible, [m, n], self.stages_of(factors), multiprocessors)
            }
        }
    }

    /// Whether C holds sums of integers as they are.
    pub(super) fn is_int(&self) -> bool {
        self.factors() == Some(Factors::I8) && self.epilogue.is_none()
    }

    pub(super) fn promotes(&self) -> bool {
        self.promoted && self.factors().is_some_and(Factors::is_byte)
    }

    pub(super) fn staged_instance(&self, tile: Tile, lines: Lines) -> Instance {
        let factors = self.factors().unwrap_or(Factors::F16);
        Instance {
            factors,
            transposed: self.transposed,
            tile,
            promoted: self.promotes(),
            result: self.element,
            is_int: self.is_int(),
            lines,
        }
    }

    /// Memory of 16 bytes, of words or of less, as which C is written.
    fn memory_of_result<'a>(&self, operand: &Operand, c: &KernelArg<'a>) -> Result<(KernelArg<'a>, Lines)> {
        let KernelArg::Buffer(buffer) = c else {
            return Ok((c.clone(), Lines::Words));
        };
        let is_int = self.is_int();
        let is_right = match is_int {
            true => buffer.element().is::<i32>(),
            false => self.element.is(buffer.element()),
        };
        if !is_right {
            return Err(Error::Stored {
                kernel: self.function().name(),
                operand: operand.name,
                found: buffer.element().to_string(),
                element: if is_int {
                    "I32".into()
                } else {
                    format!("{:?}", self.element)
                },
            });
        }
        // No more at a time than C's memory begins at multiples of.
        let (line, word) = (buffer.cast_front::<U32x4>(), buffer.cast_front::<u32>());
        let (memory, lines) = match (self.lines(operand), line, word) {
            (Lines::Whole, Ok(line), _) => (line, Lines::Whole),
            (Lines::Whole | Lines::Words, _, Ok(word)) if !self.joins_halves() => (word, Lines::Words),
            _ => (buffer.cast::<u16>()?, Lines::Halves),
        };
        Ok((KernelArg::Buffer(memory), lines))
    }

    /// How C can be written if it begins as it should: 16 bytes at a time only where nothing is added to what it was.
    pub(super) fn lines(&self, operand: &Operand) -> Lines {
        let in_word = if self.is_int() || self.element == Element::F32 {
            1
        } else {
            2
        };
        let is_whole = |unit: usize| {
            let extents = [operand.pitch, operand.columns, operand.apart];
            extents.iter().all(|extent| extent.is_multiple_of(unit))
        };
        if self.beta == 0.0 && is_whole(4 * in_word) {
            Lines::Whole
        } else if is_whole(in_word) && !self.joins_halves() {
            Lines::Words
        } else {
            Lines::Halves
        }
    }

    /// Whether a lane has single numbers of 16 bits to write, which columns have been joined to.
    fn joins_halves(&self) -> bool {
        self.joins() && self.element != Element::F32
    }

    /// `check` has found room for all three.
    pub(super) fn launch_staged(
        &self,
        stream: &Stream,
        operands: &[Operand; 3],
        [a, b, c]: [&KernelArg<'_>; 3],
        beside: Option<&KernelArg<'_>>,
    ) -> Result<()> {
        let name = self.function().name();
        let [m, n, k] = self.size;
        let Some(factors) = self.factors() else {
            return Err(Error::Element {
                kernel: name,
                element: self.element,
                takes: "F16 and Bf16, and in stages with what `with_factors` says",
            });
        };
        if self.joins() && !n.is_multiple_of(2) {
            return Err(Error::Range {
                kernel: name,
                what: "n, whose columns are joined in pairs,",
                found: n,
                needed: "even".to_owned(),
            });
        }
        if self.is_int() && (self.alpha != 1.0 || !(self.beta == 0.0 || self.beta == 1.0)) {
            return Err(Error::Scales {
                kernel: name,
                alpha: self.alpha,
                beta: self.beta,
            });
        }
        for (operand, arg) in operands.iter().zip([a, b]) {
            if let KernelArg::Buffer(buffer) = arg
                && !is_held(factors, arg)
            {
                return Err(Error::Stored {
                    kernel: name,
                    operand: operand.name,
                    found: buffer.element().to_string(),
                    element: format!("{factors:?}"),
                });
            }
        }
        let result = &operands[2];
        if k == 0 {
            // Of nothing there is nothing to describe to hardware: of zeros, one deep, there is.
            let zeros = stream.device().zeros::<u8>(m.max(n) * ALIGNED)?;
            let zeros = of_bytes(factors, &zeros)?;
            let pitch = ALIGNED / factors.bytes();
            let kernel = GemmKernel {
                size: [m, n, 1],
                transposed: [false, true],
                pitches: [Some(pitch), Some(pitch), Some(result.pitch)],
                apart: Some([0, 0, result.apart]),
                split: false,
                ..*self
            };
            return kernel.launch_staged(stream, &kernel.operands(), [&zeros, &zeros, c], beside);
        }
        if self.split && factors == Factors::Tf32 {
            let thrice = |at: usize, arg, rest| {
                let turns = self.transposed[at] == (at == 0);
                split::thrice(stream, name, &operands[at], arg, turns, rest)
            };
            let (left, left_shape) = thrice(0, a, Rest::Third)?;
            let (right, right_shape) = thrice(1, b, Rest::Second)?;
            let kernel = GemmKernel {
                size: [m, n, left_shape.columns],
                transposed: [false, true],
                pitches: [
                    Some(left_shape.pitch),
                    Some(right_shape.pitch),
                    Some(result.pitch),
                ],
                apart: Some([left_shape.apart, right_shape.apart, result.apart]),
                split: false,
                ..*self
            };
            let (left, right) = (left.arg(), right.arg());
            return kernel.launch_staged(stream, &kernel.operands(), [&left, &right, c], beside);
        }
        let (tile, slices) = self.plan(stream.device());
        if tile.count(m, n).saturating_mul(self.batch) > MOST_TILES / slices
            || m.max(n).max(k) > i32::MAX as usize
        {
            return Err(Error::TooLarge {
                kernel: name,
                operand: result.name,
                shape: result.to_string(),
            });
        }
        let (memory, lines) = self.memory_of_result(result, c)?;
        // Without an epilogue there is a buffer of nothing.
        let none = stream.device().alloc::<u8>(0)?;
        let x = match beside {
            Some(beside) => beside.clone(),
            None => of_result(self, &none)?,
        };
        let mut kernel = *self;
        // Slices of the depth are written by themselves, and added up then.
        let pitch = n.next_multiple_of(4);
        let (sliced, apart) = match slices {
            1 => (None, 0),
            _ => (
                Some(stream.device().alloc::<U32x4>(slices * m * pitch / 4)?),
                m * pitch,
            ),
        };
        let mut copies = [None, None];
        let mut shapes = [operands[0], operands[1]];
        for (at, arg) in [a, b].into_iter().enumerate() {
            let deep_along = self.transposed[at] == (at == 1);
            let turns = factors.bytes() != 2 && !deep_along;
            if !turns && is_aligned(factors, &operands[at], arg) {
                continue;
            }
            let (copy, shape) = copied(stream, factors, &operands[at], arg, turns)?;
            (copies[at], shapes[at]) = (Some(copy), shape);
            kernel.transposed[at] ^= turns;
        }
        let mut instance = kernel.staged_instance(tile, lines);
        if sliced.is_some() {
            (instance.result, instance.lines) = (Element::F32, Lines::Whole);
            instance.is_int = factors == Factors::I8;
        }
        // Slices are finished when they are added up.
        let finish = self.finish();
        let [x_row, x_column] = self.beside_steps();
        let mut function = match sliced.is_some() {
            true => instance.function::<Plain>(),
            false => (finish.product)(instance),
        };
        let [left, right] = shapes;
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
            self.batch,
            left.apart,
            right.apart,
            result.apart,
            slices,
            apart,
            if sliced.is_some() { pitch } else { result.pitch },
            match self.finish().beside {
                Some(Beside::Elements) => m * n,
                _ => 0,
            },
            x_row,
            x_column,
            if sliced.is_some() { 1.0 } else { self.alpha },
            if sliced.is_some() { 0.0 } else { self.beta }
        ]
        .to_vec();
        for (copy, arg) in copies.iter().zip([a, b]) {
            all.push(match copy {
                Some(copy) => of_bytes(factors, copy)?,
                None => arg.clone(),
            });
        }
        match &sliced {
            Some(sliced) => {
                let KernelArg::Buffer(none) = none.arg() else {
                    return Ok(());
                };
                let of_sums = match factors {
                    Factors::I8 => none.cast::<i32>()?,
                    _ => none.cast::<f32>()?,
                };
                all.extend([KernelArg::Buffer(of_sums), sliced.arg()]);
            }
            None => all.extend([x.clone(), memory.clone()]),
        }
        if stream.device().backend() == BackendKind::Cuda {
            // SAFETY: `check` has found that C has room for its shape, with which rows and columns are compared before each access; where several of its elements are
            // accessed at once, rows are as many times as long, and begin at such a multiple; where columns are joined, C has half of them, and half of what is left of them is compared with. An epilogue's buffer has what stands beside each element of C, and an epilogue reaches no memory. A and B are described by their shapes, which a launch compares with the
            // buffers. Indices into sums are constants. Nothing divides by zero: a tile has a number only where there are columns, and a group of tiles has a row.
            function = unsafe { function.unchecked() };
        }
        let blocks = tile.blocks(m, n, slices * self.batch, multiprocessors(stream.device())) as u32;
        stream.launch(&function, LaunchConfig::new(blocks, tile.lanes()), &all)?;
        match &sliced {
            Some(sliced) => self.add_up(stream, sliced, [slices, apart, pitch], result, (memory, lines), x),
            None => Ok(()),
        }
    }

    /// So many slices of a product, so far apart and of this pitch.
    fn add_up(
        &self,
        stream: &Stream,
        sliced: &Buffer<U32x4>,
        [slices, apart, pitch]: [usize; 3],
        result: &Operand,
        (memory, lines): (KernelArg<'_>, Lines),
        x: KernelArg<'_>,
    ) -> Result<()> {
        let [m, n, _] = self.size;
        let (memory, lines) = match (lines, memory) {
            (Lines::Whole, KernelArg::Buffer(buffer)) if self.joins_halves() => {
                (KernelArg::Buffer(buffer.cast_front::<u16>()?), Lines::Halves)
            }
            (Lines::Whole, KernelArg::Buffer(buffer)) => {
                (KernelArg::Buffer(buffer.cast_front::<u32>()?), Lines::Words)
            }
            (lines, memory) => (memory, lines),
        };
        let mut function = (self.finish().sums)(self.staged_instance(Tile::Small, lines));
        if stream.device().backend() == BackendKind::Cuda {
            // SAFETY: `check` has found that C has room for its shape, with which rows and columns are compared before each access; two of its elements are accessed at once
            // only where rows are twice as long, and begin at such a multiple. An epilogue's buffer has what stands beside each of its elements, and an epilogue reaches no memory. The slices' memory has been made for theirs. Nothing divides by zero, for there are columns.
            function = unsafe { function.unchecked() };
        }
        let scales = args![self.alpha, self.beta];
        let [x_row, x_column] = self.beside_steps();
        let mut all = args![m, n, slices, apart, pitch, result.pitch, x_row, x_column].to_vec();
        all.extend_from_slice(scales);
        all.extend([sliced.arg(), x, memory]);
        let lanes = m.saturating_mul(n.div_ceil(4));
        let blocks = u32::try_from(lanes.div_ceil(256)).unwrap_or(u32::MAX);
        Ok(stream.launch(&function, LaunchConfig::new(blocks, 256), &all)?)
    }

    /// What is done with elements before they are stored.
    pub(super) fn finish(&self) -> Finish {
        self.epilogue.unwrap_or_else(|| Finish::of::<Plain>(None))
    }

    /// How far it is in the further buffer of an epilogue from row to row and from column to column.
    fn beside_steps(&self) -> [usize; 2] {
        match self.finish().beside {
            None => [0, 0],
            Some(Beside::Columns) => [0, 1],
            Some(Beside::Rows) => [1, 0],
            Some(Beside::Elements) => [self.size[1], 1],
        }
    }

    /// How many stages the depth is.
    pub(super) fn stages_of(&self, factors: Factors) -> usize {
        self.size[2].saturating_mul(factors.bytes()).div_ceil(128)
    }
}
