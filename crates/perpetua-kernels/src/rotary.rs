//! Rotary embeddings: pairs of a head's columns turned by angles that grow with a position. Must not know what attends to what.

use perpetua::prelude::*;
use perpetua_device::{KernelArg, LaunchConfig, Stream};
use perpetua_language::{KernelFn, args};

use crate::element::{Element, Piece, piece_instance};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, number, ptx_unchecked, unchecked_on};
use crate::operand::{Operand, check, check_held, check_type};

/// Heads of a lane, which turns all of them by the same angles.
const HEADS: usize = 8;

/// The cosine and the sine of a position's angle, of which `rate` is the part of a turn by position, in units of 2^-64: multiples of a turn fall out exactly.
#[device]
fn angle<const BACKWARD: bool>(position: u32, rate: u64) -> (f32, f32) {
    let turn = (position as u64).wrapping_mul(rate);
    let part = (turn >> 32) as u32 as i32;
    let angle = part as f32 * (std::f32::consts::TAU / 4294967296.0);
    let sine = angle.sin();
    (angle.cos(), if BACKWARD { -sine } else { sine })
}

/// A lane turns the pairs of a piece, or of two that lie `dims / 2` apart, in several heads; or copies a piece of columns that do not turn. Sizes count pieces. `INSIDE`: a pair lies in a piece, side by side; else, number by number, it lies `apart`, and
/// the pairs `step`.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
fn rotary<M: Piece, const N: usize, const INSIDE: bool, const BACKWARD: bool>(
    tokens: usize,
    heads: usize,
    turning: usize,
    pieces: usize,
    step: usize,
    apart: usize,
    x_pitch: usize,
    y_pitch: usize,
    x: &[M],
    positions: &[u32],
    rates: &[u64],
    y: &mut [M],
) {
    // Those that turn, one or two pieces each, then those that do not.
    let taken = if INSIDE { turning } else { 2 * turning };
    let all = turning + pieces - taken;
    let token = global_id_x() / all;
    let own = global_id_x() % all;
    if token < tokens {
        let first = group_id_y() * HEADS;
        if own < turning {
            let position = positions[token];
            let mut cosines = [0.0f32; 8];
            let mut sines = [0.0f32; 8];
            for j in 0..if INSIDE { N / 2 } else { N } {
                let of_pair = if INSIDE { own * (N / 2) + j } else { own * N + j };
                (cosines[j], sines[j]) = angle::<BACKWARD>(position, rates[of_pair]);
            }
            for i in 0..8 {
                let head = first + i;
                if head < heads {
                    let from = token * x_pitch + head * pieces + own * step;
                    let to = token * y_pitch + head * pieces + own * step;
                    let numbers = x[from].spread();
                    if INSIDE {
                        let mut turned = [0.0f32; 8];
                        for j in 0..N / 2 {
                            let (a, b) = (numbers[2 * j], numbers[2 * j + 1]);
                            turned[2 * j] = a * cosines[j] - b * sines[j];
                            turned[2 * j + 1] = a * sines[j] + b * cosines[j];
                        }
                        y[to] = M::gather(turned);
                    } else {
                        let others = x[from + apart].spread();
                        let mut near = [0.0f32; 8];
                        let mut far = [0.0f32; 8];
                        for j in 0..N {
                            near[j] = numbers[j] * cosines[j] - others[j] * sines[j];
                            far[j] = numbers[j] * sines[j] + others[j] * cosines[j];
                        }
                        y[to] = M::gather(near);
                        y[to + apart] = M::gather(far);
                    }
                }
            }
        } else {
            let at = taken + own - turning;
            for i in 0..8 {
                let head = first + i;
                if head < heads {
                    y[token * y_pitch + head * pieces + at] = x[token * x_pitch + head * pieces + at];
                }
            }
        }
    }
}

/// Rotary embeddings of queries or keys (J. Su and others, 2021): each pair of a head's columns `(a, b)` becomes `(a cos - b sin, a sin + b cos)` of its position times the pair's rate. Launched with four buffers: `x` of
/// `[tokens, heads, dim]`; `positions`, a `u32` a token; `rates`, a `u64` a pair, as [`RotaryKernel::rates`] gives them; and `y`, which may be `x`.
///
/// Angles are counted in parts of a turn, in integers, so that an angle is off by no more than `2^-30` at any position: sines and cosines are as exact as those of `f32`. The gradient turns back:
/// [`RotaryKernel::backward`].
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, RotaryKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let stream = device.default_stream();
/// let x = device.upload(&[1.0f32, 0.0, 0.0, 1.0])?; // two tokens, one head of two columns
/// let positions = device.upload(&[0u32, 2])?;
/// let rotary = RotaryKernel::new(2, 1, 2);
/// let rates = device.upload(&rotary.rates(10_000.0))?;
/// rotary.launch(&stream, args![&x, &positions, &rates, &x])?;
/// let y = x.read()?;
/// assert!((y[2] + 2f32.sin()).abs() < 1e-6 && (y[3] - 2f32.cos()).abs() < 1e-6);
/// rotary.backward().launch(&stream, args![&x, &positions, &rates, &x])?;
/// assert!((x.read()?[3] - 1.0).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotaryKernel {
    tokens: usize,
    heads: usize,
    dim: usize,
    turning: usize,
    interleaved: bool,
    backward: bool,
    element: Element,
    pitches: [usize; 2],
}

impl RotaryKernel {
    /// For so many tokens, each with heads of `dim` columns, of which column `i` makes a pair with column `i + dim / 2`.
    pub fn new(tokens: usize, heads: usize, dim: usize) -> RotaryKernel {
        RotaryKernel {
            tokens,
            heads,
            dim,
            turning: dim,
            interleaved: false,
            backward: false,
            element: Element::F32,
            pitches: [heads * dim; 2],
        }
    }

    /// Pairs of neighbours: columns `2 i` and `2 i + 1`.
    pub fn interleaved(mut self) -> RotaryKernel {
        self.interleaved = true;
        self
    }

    /// Only the first so many columns of a head turn, an even number; the others are copied.
    pub fn with_turning(mut self, columns: usize) -> RotaryKernel {
        self.turning = columns;
        self
    }

    /// Turns back: what the gradient of the result becomes.
    pub fn backward(mut self) -> RotaryKernel {
        self.backward = !self.backward;
        self
    }

    /// The type of what is read and written, `f32` unless said otherwise.
    pub fn with_element(mut self, element: Element) -> RotaryKernel {
        self.element = element;
        self
    }

    /// How many elements lie from the start of a token to the start of the next, in what is read and in what is written: its heads' columns unless said otherwise.
    pub fn with_pitches(mut self, read: usize, written: usize) -> RotaryKernel {
        self.pitches = [read, written];
        self
    }

    /// The rates of the pairs, `base^(-2 i / columns)` of an angle of 1 by position, as parts of a turn in units of 2^-64. Others than these (scaled ones, say) are as good: a rate is an angle divided by `2 pi`, times 2^64.
    pub fn rates(&self, base: f64) -> Vec<u64> {
        let rate = |i: usize| {
            let angle = base.powf(-2.0 * i as f64 / self.turning as f64);
            ((angle / std::f64::consts::TAU).rem_euclid(1.0) * 2f64.powi(64)) as u64
        };
        (0..self.turning / 2).map(rate).collect()
    }

    /// Whether pieces of 16 bytes have whole pairs, or one half of each of theirs.
    fn is_whole(&self) -> bool {
        let piece = self.element.piece();
        let parts = if self.interleaved {
            self.turning
        } else {
            self.turning / 2
        };
        [parts, self.dim, self.pitches[0], self.pitches[1]]
            .iter()
            .all(|n| n.is_multiple_of(piece))
    }

    fn instance(&self, pieces: bool) -> KernelFn {
        match (self.interleaved && pieces, self.backward) {
            (false, false) => piece_instance!(self.element, pieces, rotary, false, false),
            (false, true) => piece_instance!(self.element, pieces, rotary, false, true),
            (true, false) => piece_instance!(self.element, pieces, rotary, true, false),
            (true, true) => piece_instance!(self.element, pieces, rotary, true, true),
        }
    }
}

impl Kernel for RotaryKernel {
    fn function(&self) -> KernelFn {
        self.instance(self.is_whole())
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let name = self.function().name();
        if self.turning > self.dim || !self.turning.is_multiple_of(2) {
            return Err(Error::Range {
                kernel: name,
                what: "the number of columns that turn",
                found: self.turning,
                needed: format!("even, and at most {}", self.dim),
            });
        }
        let columns = self.heads * self.dim;
        let matrix = |name, pitch| Operand {
            pitch,
            ..Operand::dense(name, self.tokens, columns)
        };
        let operands = [
            matrix("x", self.pitches[0]),
            Operand::vector("positions", self.tokens),
            Operand::vector("rates", self.turning / 2),
            matrix("y", self.pitches[1]),
        ];
        check(name, &operands, args)?;
        let [x, positions, rates, y] = args else {
            // `check` has counted them.
            return Ok(());
        };
        check_held(name, "x", x, self.element)?;
        check_held(name, "y", y, self.element)?;
        check_type::<u32>(name, "positions", positions)?;
        check_type::<u64>(name, "rates", rates)?;
        if self.tokens == 0 || columns == 0 {
            return Ok(());
        }
        let [in_pieces, out_pieces] =
            [x, y].map(|arg| self.element.in_pieces(arg).filter(|_| self.is_whole()));
        let (pieces, x, y) = match in_pieces.zip(out_pieces) {
            Some((x, y)) => (true, x, y),
            None => (false, x.clone(), y.clone()),
        };
        let unit = if pieces { self.element.piece() } else { 1 };
        let inside = self.interleaved && pieces;
        let turning = if inside { self.turning } else { self.turning / 2 } / unit;
        let lanes = self.tokens * (turning + (self.dim - self.turning) / unit);
        let (step, apart) = match self.interleaved {
            true if pieces => (1usize, 0usize),
            true => (2, 1),
            false => (1, turning),
        };
        // SAFETY: `check` has found room for all tokens, positions and rates. A lane's token is compared with how many there are, its heads are, too, and its columns are below a head's, since their number is what lanes are counted by; pieces are
        // whole where they are read. Indices into variables are constants, and no token has no columns, so that nothing divides by 0.
        let function = unsafe { unchecked_on(stream, self.instance(pieces)) };
        let all = args![
            self.tokens,
            self.heads,
            turning,
            self.dim / unit,
            step,
            apart,
            self.pitches[0] / unit,
            self.pitches[1] / unit,
            x,
            positions.clone(),
            rates.clone(),
            y
        ];
        let grid = (number(lanes.div_ceil(256)), number(self.heads.div_ceil(HEADS)));
        Ok(stream.launch(&function, LaunchConfig::new(grid, 256), all)?)
    }
}
