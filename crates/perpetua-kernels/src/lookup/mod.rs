//! Rows of a table that indices name, and what they add to the table's gradient. Must not know what rows hold.

mod order;
mod rows;

use perpetua_device::{GpuType, KernelArg, LaunchConfig, Stream};
use perpetua_language::kernel::resident::U32x4;
use perpetua_language::{KernelFn, args};

use crate::element::{Element, in_pieces, piece_instance};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, number, ptx_unchecked, unchecked_on};
use crate::operand::{Operand, check, check_held, check_type};
use order::CHUNK;

/// The index that stands for none.
const NONE: u32 = u32::MAX;

/// Lanes of a row of so many words.
fn lanes(words: usize) -> usize {
    match words {
        0..=16 => 8,
        17..=128 => 32,
        _ => 256,
    }
}

/// Indices as `u32`, of which negative ones name no row either.
fn as_indices<'a>(kernel: &'static str, arg: &KernelArg<'a>) -> Result<KernelArg<'a>> {
    match arg {
        KernelArg::Buffer(buffer) if buffer.element().is::<i32>() => {
            Ok(KernelArg::Buffer(buffer.cast::<u32>()?))
        }
        arg => check_type::<u32>(kernel, "indices", arg).map(|()| arg.clone()),
    }
}

/// Rows of a table by their numbers, as embeddings are: row `i` of `y` is row `indices[i]` of the table. Launched with three buffers: the table of `[rows, columns]`, of any type of 1, 2, 4, 8 or 16 bytes;
/// `indices`, `u32` or `i32`; and `y` of `[count, columns]`.
///
/// An index that names no row gives a row of nothing but ones in each bit: NaN of floats, -1 of integers.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{GatherKernel, Kernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let table = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let indices = device.upload(&[2u32, 0, 2])?;
/// let y = device.zeros::<f32>(6)?;
/// GatherKernel::of::<f32>([3, 2], 3).launch(&device.default_stream(), args![&table, &indices, &y])?;
/// assert_eq!(y.read()?, [5.0, 6.0, 1.0, 2.0, 5.0, 6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatherKernel {
    rows: usize,
    columns: usize,
    count: usize,
    bytes: usize,
    pitches: [usize; 2],
}

impl GatherKernel {
    /// For a table of `[rows, columns]` of `T`, and so many indices.
    pub fn of<T: GpuType>([rows, columns]: [usize; 2], count: usize) -> GatherKernel {
        GatherKernel {
            rows,
            columns,
            count,
            bytes: size_of::<T>(),
            pitches: [columns; 2],
        }
    }

    /// How many elements lie from the start of a row to the start of the next, in the table and in what is written: a row's length unless said otherwise.
    pub fn with_pitches(mut self, read: usize, written: usize) -> GatherKernel {
        self.pitches = [read, written];
        self
    }

    /// The kernel that copies words of so many bytes, with the table, what is written, and the word that stands for none.
    fn instance<'a>(
        &self,
        word: usize,
        table: &KernelArg<'a>,
        y: &KernelArg<'a>,
    ) -> (KernelFn, Option<[KernelArg<'a>; 3]>) {
        macro_rules! of {
            ($word:ty, $absent:expr) => {{
                let function = match lanes(self.columns * self.bytes / word) {
                    8 => rows::gather::kernel::<$word, 8>(),
                    32 => rows::gather::kernel::<$word, 32>(),
                    _ => rows::gather::kernel::<$word, 256>(),
                };
                let buffers = in_pieces::<$word>(table).zip(in_pieces::<$word>(y));
                (
                    function,
                    buffers.map(|(table, y)| [$absent.into(), table, y]),
                )
            }};
        }
        let ones = U32x4 {
            x: NONE,
            y: NONE,
            z: NONE,
            w: NONE,
        };
        match word {
            1 => of!(u8, u8::MAX),
            2 => of!(u16, u16::MAX),
            4 => of!(u32, u32::MAX),
            _ => of!(U32x4, ones),
        }
    }

    /// The widest word that divides rows and pitches, of those up to `most` bytes.
    fn word(&self, most: usize) -> usize {
        let divides = |word: &usize| {
            [self.columns, self.pitches[0], self.pitches[1]]
                .iter()
                .all(|n| (n * self.bytes).is_multiple_of(*word))
        };
        [16, 4, 2]
            .into_iter()
            .filter(|word| *word <= most)
            .find(divides)
            .unwrap_or(1)
    }
}

impl Kernel for GatherKernel {
    fn function(&self) -> KernelFn {
        let none = KernelArg::from(0u32);
        self.instance(self.word(16), &none, &none).0
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let name = self.function().name();
        let operands = [
            Operand {
                pitch: self.pitches[0],
                ..Operand::dense("table", self.rows, self.columns)
            },
            Operand::vector("indices", self.count),
            Operand {
                pitch: self.pitches[1],
                ..Operand::dense("y", self.count, self.columns)
            },
        ];
        check(name, &operands, args)?;
        let [table, indices, y] = args else {
            // `check` has counted them.
            return Ok(());
        };
        for (what, arg) in [
            ("bytes of an element of the table", table),
            ("bytes of an element of `y`", y),
        ] {
            if let KernelArg::Buffer(buffer) = arg
                && let Some(found) = buffer.ptr().len().checked_div(buffer.len())
                && (found != self.bytes as u64 || !matches!(found, 1 | 2 | 4 | 8 | 16))
            {
                return Err(Error::Range {
                    kernel: name,
                    what,
                    found: found as usize,
                    needed: format!("{}, of 1, 2, 4, 8 and 16", self.bytes),
                });
            }
        }
        let indices = as_indices(name, indices)?;
        if self.count == 0 || self.columns == 0 {
            return Ok(());
        }
        // Narrower words where buffers do not begin as wider ones must.
        let widest = [16, 4, 2, 1]
            .into_iter()
            .map(|most| self.word(most))
            .find_map(|word| {
                let (function, buffers) = self.instance(word, table, y);
                Some((word, function, buffers?))
            });
        let Some((word, function, [absent, table, y])) = widest else {
            // A byte begins anywhere.
            return Ok(());
        };
        let words = |n: usize| n * self.bytes / word;
        // SAFETY: `check` has found room for the table's rows, with whose number indices are compared, for as many indices as there are rows of `y`, and for those; words are compared with a row's.
        // Indices into variables are constants.
        let function = unsafe { unchecked_on(stream, function) };
        let all = args![
            self.rows,
            words(self.columns),
            self.count,
            words(self.pitches[0]),
            words(self.pitches[1]),
            absent,
            table,
            indices,
            y
        ];
        let blocks = number(self.count.div_ceil(256 / lanes(words(self.columns))));
        Ok(stream.launch(&function, LaunchConfig::new(blocks, 256), all)?)
    }
}

/// The gradient of an embedding's table: row `r` is the sum of the rows of `dy` whose index is `r`, zeros where there is none. Launched with three buffers: `dy` of `[count, columns]`; `indices`, `u32` or `i32`; and
/// `dtable` of `[rows, columns]`.
///
/// Sums are in `f32`, in the order of the rows: the same bits each time. Indices are sorted first, in memory that a launch takes from the device's pool, some 32 bytes an index and 8 a row of the table. An index that names
/// no row adds nothing.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{EmbeddingBackwardKernel, Kernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let dy = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let indices = device.upload(&[1u32, 0, 1])?;
/// let dtable = device.zeros::<f32>(6)?;
/// EmbeddingBackwardKernel::new([3, 2], 3).launch(&device.default_stream(), args![&dy, &indices, &dtable])?;
/// assert_eq!(dtable.read()?, [3.0, 4.0, 6.0, 8.0, 0.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddingBackwardKernel {
    rows: usize,
    columns: usize,
    count: usize,
    element: Element,
    pitches: [usize; 2],
    ignored: u32,
}

impl EmbeddingBackwardKernel {
    /// For a table of `[rows, columns]`, and so many indices.
    pub fn new([rows, columns]: [usize; 2], count: usize) -> EmbeddingBackwardKernel {
        EmbeddingBackwardKernel {
            rows,
            columns,
            count,
            element: Element::F32,
            pitches: [columns; 2],
            ignored: NONE,
        }
    }

    /// How many elements lie from the start of a row to the start of the next, in what is read and in the table's gradient: a row's length unless said otherwise.
    pub fn with_pitches(mut self, read: usize, written: usize) -> EmbeddingBackwardKernel {
        self.pitches = [read, written];
        self
    }

    /// The type of what is read and written, `f32` unless said otherwise.
    pub fn with_element(mut self, element: Element) -> EmbeddingBackwardKernel {
        self.element = element;
        self
    }

    /// An index that adds nothing, as of padding: its row of the gradient is zeros.
    pub fn with_ignored(mut self, index: u32) -> EmbeddingBackwardKernel {
        self.ignored = index;
        self
    }

    fn instance(&self, pieces: bool) -> KernelFn {
        match lanes(self.columns / if pieces { self.element.piece() } else { 1 }) {
            8 => piece_instance!(self.element, pieces, rows::embedding_backward, 8),
            32 => piece_instance!(self.element, pieces, rows::embedding_backward, 32),
            _ => piece_instance!(self.element, pieces, rows::embedding_backward, 256),
        }
    }

    fn is_whole(&self) -> bool {
        let piece = self.element.piece();
        [self.columns, self.pitches[0], self.pitches[1]]
            .iter()
            .all(|n| n.is_multiple_of(piece))
    }
}

impl Kernel for EmbeddingBackwardKernel {
    /// That of the last launch, which adds up.
    fn function(&self) -> KernelFn {
        self.instance(self.is_whole())
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let name = self.function().name();
        let operands = [
            Operand {
                pitch: self.pitches[0],
                ..Operand::dense("dy", self.count, self.columns)
            },
            Operand::vector("indices", self.count),
            Operand {
                pitch: self.pitches[1],
                ..Operand::dense("dtable", self.rows, self.columns)
            },
        ];
        check(name, &operands, args)?;
        let [dy, indices, table] = args else {
            // `check` has counted them.
            return Ok(());
        };
        check_held(name, "dy", dy, self.element)?;
        check_held(name, "dtable", table, self.element)?;
        let indices = as_indices(name, indices)?;
        for (what, found) in [
            ("the number of indices", self.count),
            ("the table's number of rows", self.rows),
        ] {
            if found >= NONE as usize {
                return Err(Error::Range {
                    kernel: name,
                    what,
                    found,
                    needed: format!("less than {NONE}"),
                });
            }
        }
        if self.rows == 0 || self.columns == 0 {
            return Ok(());
        }
        let device = stream.device();
        let bounds = device.alloc::<u32>(2 * self.rows)?;
        stream.fill(&bounds, 0)?;
        let places = [device.alloc::<u32>(self.count)?, device.alloc::<u32>(self.count)?];
        let place = match self.count {
            0 => 0,
            _ => self.sort(stream, &indices, &places, &bounds)?,
        };
        let pieces = self.is_whole();
        let [x, y] = [dy, table].map(|arg| self.element.in_pieces(arg).filter(|_| pieces));
        let ((x, y), pieces) = match x.zip(y) {
            Some(both) => (both, true),
            None => ((dy.clone(), table.clone()), false),
        };
        let unit = if pieces { self.element.piece() } else { 1 };
        // SAFETY: `check` has found room for both matrices, of whole pieces where they are read so; rows and pieces are compared with how many there are. Places are numbers of rows of `dy`, and bounds those of
        // places, as the launches before have made them. Indices into variables are constants.
        let function = unsafe { unchecked_on(stream, self.instance(pieces)) };
        let all = args![
            self.rows,
            self.columns / unit,
            self.pitches[0] / unit,
            self.pitches[1] / unit,
            x,
            &places[place],
            &bounds,
            y
        ];
        let blocks = number(self.rows.div_ceil(256 / lanes(self.columns / unit)));
        Ok(stream.launch(&function, LaunchConfig::new(blocks, 256), all)?)
    }
}

impl EmbeddingBackwardKernel {
    /// Sorts the places of indices, and finds the bounds of each row's. Gives which of both has them then.
    fn sort(
        &self,
        stream: &Stream,
        indices: &KernelArg<'_>,
        places: &[perpetua_device::Buffer<u32>; 2],
        bounds: &perpetua_device::Buffer<u32>,
    ) -> Result<usize> {
        let device = stream.device();
        let blocks = self.count.div_ceil(CHUNK);
        let keys = [device.alloc::<u32>(self.count)?, device.alloc::<u32>(self.count)?];
        let (counts, totals) = (device.alloc::<u32>(256 * blocks)?, device.alloc::<u32>(256)?);
        let rows = self.rows as u32;
        let launch = |function: KernelFn, blocks: usize, all: &[KernelArg<'_>]| -> Result<()> {
            // SAFETY: all of these buffers have been made for as many numbers, blocks, digits or rows as they are indexed by, and the indices have been checked; a number that is sorted goes to a place of its own, below how many there are. Indices into the
            // block's memory are below what it has for its 256 lanes and its numbers.
            let function = unsafe { unchecked_on(stream, function) };
            Ok(stream.launch(&function, LaunchConfig::new(number(blocks), 256), all)?)
        };
        // As many digits as the number behind the last row has.
        let digits = (u32::BITS - rows.leading_zeros()).div_ceil(8);
        for digit in 0..digits {
            let (from, to) = ((digit % 2) as usize, (digit + 1) as usize % 2);
            let first = digit == 0;
            let keys_in = if first { indices.clone() } else { keys[from].arg() };
            let (count, place) = match first {
                true => (
                    order::order_count::kernel::<true>(),
                    order::order_place::kernel::<true>(),
                ),
                false => (
                    order::order_count::kernel::<false>(),
                    order::order_place::kernel::<false>(),
                ),
            };
            let what = args![self.count, 8 * digit, rows, self.ignored, keys_in];
            let mut all = what.to_vec();
            all.push(counts.arg());
            launch(count, blocks, &all)?;
            launch(
                order::order_starts::kernel(),
                256,
                args![blocks, &counts, &totals],
            )?;
            let mut all = what.to_vec();
            all.extend([&places[from], &counts, &totals, &keys[to], &places[to]].map(|buffer| buffer.arg()));
            launch(place, blocks, &all)?;
        }
        let sorted = digits as usize % 2;
        let all = args![self.count, rows, &keys[sorted], bounds];
        launch(order::order_bounds::kernel(), self.count.div_ceil(256), all)?;
        Ok(sorted)
    }
}
