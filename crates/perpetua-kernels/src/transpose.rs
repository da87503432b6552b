//! Copies of matrices of any numbers: as their transposes, or with rows that begin elsewhere. Must not know what they are for.

use perpetua::prelude::*;
use perpetua_device::{GpuType, KernelArg, LaunchConfig, Stream};
use perpetua_language::{KernelFn, args};

use crate::element::in_pieces;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, number, ptx_unchecked, unchecked_on};
use crate::operand::{Operand, check};

/// Rows and columns that a block copies.
const SIDE: usize = 64;
/// Most bytes of a number.
const MOST_BYTES: usize = 8;

/// Which square of which matrix a block has.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Square {
    top: usize,
    left: usize,
    layer: usize,
}

/// Squares are counted along the columns, then along the rows, then from matrix to matrix.
#[device]
fn square_of_block(rows: usize, columns: usize) -> Square {
    let wide = columns.div_ceil(64);
    let high = rows.div_ceil(64);
    let line = group_id_x() / wide;
    Square {
        top: line % high * 64,
        left: group_id_x() % wide * 64,
        layer: line / high,
    }
}

/// Copies rows from one place to another; both pitches are in elements, and so is how far matrices are apart.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
fn padded<T: GpuType>(
    rows: usize,
    columns: usize,
    from_pitch: usize,
    to_pitch: usize,
    from_apart: usize,
    to_apart: usize,
    from: &[T],
    to: &mut [T],
) {
    let Square { top, left, layer } = square_of_block(rows, columns);
    let column = left + local_id_x() % 64;
    let (there, here) = (layer * from_apart, layer * to_apart);
    for i in 0..16 {
        let row = top + local_id_x() / 64 + i * 4;
        if row < rows && column < columns {
            to[here + row * to_pitch + column] = from[there + row * from_pitch + column];
        }
    }
}

/// Copies a matrix of so many rows and columns as its transpose.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
fn transpose<T: GpuType>(
    rows: usize,
    columns: usize,
    from_pitch: usize,
    to_pitch: usize,
    from_apart: usize,
    to_apart: usize,
    from: &[T],
    to: &mut [T],
) {
    // Columns change places from row to row, so that lanes that read one are in different banks.
    let square = shared_array::<[[T; 64]; 64]>();
    let (across, down) = (local_id_x() % 64, local_id_x() / 64);
    let Square { top, left, layer } = square_of_block(rows, columns);
    let (there, here) = (layer * from_apart, layer * to_apart);
    for i in 0..16 {
        let (row, column) = (top + down + i * 4, left + across);
        if row < rows && column < columns {
            square[down + i * 4][across ^ (down + i * 4)] = from[there + row * from_pitch + column];
        }
    }
    sync_threads();
    for i in 0..16 {
        let (row, column) = (left + down + i * 4, top + across);
        if row < columns && column < rows {
            to[here + row * to_pitch + column] = square[across][(down + i * 4) ^ across];
        }
    }
}

/// The kernel for numbers of so many bytes, and both buffers as of such numbers; none where they do not begin as those must.
fn instance<'a>(
    bytes: usize,
    turns: bool,
    buffers: [&KernelArg<'a>; 2],
) -> (KernelFn, [Option<KernelArg<'a>>; 2]) {
    macro_rules! of {
        ($word:ty) => {
            (
                match turns {
                    true => transpose::kernel::<$word>(),
                    false => padded::kernel::<$word>(),
                },
                buffers.map(in_pieces::<$word>),
            )
        };
    }
    match bytes {
        1 => of!(u8),
        2 => of!(u16),
        3 => of!([u8; 3]),
        4 => of!(u32),
        5 => of!([u8; 5]),
        6 => of!([u16; 3]),
        7 => of!([u8; 7]),
        _ => of!([u32; 2]),
    }
}

/// Copies matrices, of numbers of so many bytes, as they are or where it `turns` as their transposes. `check` has found room for both operands.
pub(crate) fn copy(
    stream: &Stream,
    (bytes, turns): (usize, bool),
    [from, to]: [&Operand; 2],
    buffers: [&KernelArg<'_>; 2],
) -> Result<()> {
    let (function, parts) = instance(bytes, turns, buffers);
    let [Some(x), Some(y)] = parts else {
        return Err(Error::Range {
            kernel: function.name(),
            what: "a buffer's first byte",
            found: bytes,
            needed: "at a multiple of a number's bytes".into(),
        });
    };
    let (rows, columns) = (from.rows, from.columns);
    let squares = rows.div_ceil(SIDE) * columns.div_ceil(SIDE) * to.layers;
    if squares == 0 {
        return Ok(());
    }
    // SAFETY: there is room for both matrices, with whose rows and columns places are compared before each access. Indices into shared memory are made of the lane's number,
    // of which a block has 256, and of constants. A block divides by how many squares there are along both, which is not 0.
    let function = unsafe { unchecked_on(stream, function) };
    let all = args![rows, columns, from.pitch, to.pitch, from.apart, to.apart, x, y];
    Ok(stream.launch(&function, LaunchConfig::new(number(squares), 256), all)?)
}

/// The transpose of a matrix, or of each of several. Launched with two buffers: `x` of `[rows, columns]` and `y` of `[columns, rows]`, which must not overlap, of any type
/// of up to 8 bytes.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, TransposeKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.upload(&[1i16, 2, 3, 4, 5, 6])?;
/// let y = device.zeros::<i16>(6)?;
/// TransposeKernel::of::<i16>(2, 3).launch(&device.default_stream(), args![&x, &y])?;
/// assert_eq!(y.read()?, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransposeKernel {
    rows: usize,
    columns: usize,
    bytes: usize,
    pitches: [usize; 2],
    layers: usize,
    apart: Option<[usize; 2]>,
}

impl TransposeKernel {
    /// For matrices of so many rows and columns of `T`.
    pub fn of<T: GpuType>(rows: usize, columns: usize) -> TransposeKernel {
        TransposeKernel {
            rows,
            columns,
            bytes: size_of::<T>(),
            pitches: [columns, rows],
            layers: 1,
            apart: None,
        }
    }

    /// How many elements lie from the start of a row to the start of the next, in what is read and in what is written: a row's length unless said otherwise.
    pub fn with_pitches(mut self, read: usize, written: usize) -> TransposeKernel {
        self.pitches = [read, written];
        self
    }

    /// So many matrices, which lie so many elements apart, in what is read and in what is written, where they must not overlap.
    pub fn with_batch(mut self, count: usize, apart: [usize; 2]) -> TransposeKernel {
        (self.layers, self.apart) = (count, Some(apart));
        self
    }

    fn operands(&self) -> [Operand; 2] {
        let [read, written] = self.apart.unwrap_or_default();
        let operand = |name, rows, columns, pitch, apart| Operand {
            pitch,
            layers: self.layers,
            apart,
            ..Operand::dense(name, rows, columns)
        };
        [
            operand("x", self.rows, self.columns, self.pitches[0], read),
            operand("y", self.columns, self.rows, self.pitches[1], written),
        ]
    }
}

impl Kernel for TransposeKernel {
    fn function(&self) -> KernelFn {
        let none = KernelArg::from(0u32);
        instance(self.bytes, true, [&none, &none]).0
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let name = self.function().name();
        let operands = self.operands();
        check(name, &operands, args)?;
        let range = |what, found, needed| Error::Range {
            kernel: name,
            what,
            found,
            needed,
        };
        if self.bytes == 0 || self.bytes > MOST_BYTES {
            let what = "bytes of an element";
            return Err(range(what, self.bytes, format!("1 to {MOST_BYTES}")));
        }
        for (what, arg) in ["bytes of an element of `x`", "bytes of an element of `y`"]
            .into_iter()
            .zip(args)
        {
            if let KernelArg::Buffer(buffer) = arg
                && let Some(found) = buffer.ptr().len().checked_div(buffer.len())
                && found != self.bytes as u64
            {
                return Err(range(what, found as usize, format!("{}", self.bytes)));
            }
        }
        let [x, y] = &operands;
        copy(stream, (self.bytes, true), [x, y], [&args[0], &args[1]])
    }
}
