//! Registers: a scalar of every lane, written out lane by lane only where somebody asks for it so.

use std::cmp::Ordering;

use super::super::program::Reg;
use super::affine::{Affine, Form, Sides};
use crate::eval::{self, Line, view_mut};

/// Storage of one register.
pub(super) struct Register {
    form: Form,
    /// Size of the scalar in bytes.
    size: u32,
    /// Words of `lines` that hold what the form says.
    ready: usize,
    /// Room for a word, or for all of them; none before somebody asks.
    lines: Vec<Line>,
}

/// Writes out an integer that grows: all lanes.
macro_rules! ascend {
    ($t:ty, $lines:expr, $affine:expr, $sides:expr) => {{
        let Affine { first, steps } = $affine;
        let [x, y, z] = steps.map(|step| step as $t);
        let rows = $sides[1] as usize;
        let lanes = view_mut::<$t>($lines).as_flattened_mut();
        let all = lanes.chunks_exact_mut($sides[0].max(1) as usize);
        for (row, lanes) in all.enumerate().take(rows * $sides[2] as usize) {
            let (j, k) = ((row % rows) as $t, (row / rows) as $t);
            let start = (first as $t)
                .wrapping_add(j.wrapping_mul(y))
                .wrapping_add(k.wrapping_mul(z));
            for (i, lane) in lanes.iter_mut().enumerate() {
                *lane = start.wrapping_add((i as $t).wrapping_mul(x));
            }
        }
    }};
}

impl Register {
    pub(super) fn new(size: u32) -> Register {
        Register {
            form: Form::Uniform(0),
            size,
            ready: 0,
            lines: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Whether nothing is known of it but what each lane has.
    #[inline]
    pub(super) fn is_lanes(&self) -> bool {
        matches!(self.form, Form::Lanes)
    }

    /// Lines of storage.
    pub(super) fn room(&self) -> usize {
        self.lines.len()
    }

    /// Takes what is known without lanes.
    pub(super) fn set(&mut self, form: Form) {
        self.form = form;
        self.ready = 0;
    }

    #[inline]
    fn reserve(&mut self, words: usize) {
        let lines = words * self.size as usize;
        if self.lines.len() < lines {
            self.lines.resize(lines, Line::ZERO);
        }
    }

    /// Makes [`Register::operand`] and [`Register::lanes`] whole.
    fn write_out(&mut self, sides: Sides, words: usize) {
        if self.ready >= words {
            return;
        }
        self.reserve(words);
        self.ready = words;
        let lines = &mut self.lines[..words * self.size as usize];
        match self.form {
            Form::Lanes => {}
            Form::Uniform(bits) => eval::splat(lines, self.size, bits),
            Form::Affine(affine) => match self.size {
                1 => ascend!(u8, lines, affine, sides),
                2 => ascend!(u16, lines, affine, sides),
                4 => ascend!(u32, lines, affine, sides),
                _ => ascend!(u64, lines, affine, sides),
            },
        }
    }

    /// Writes out as much as an operator needs: one word of what lanes share.
    #[inline]
    pub(super) fn prepare(&mut self, sides: Sides, words: usize) {
        let words = match self.form {
            Form::Uniform(_) => 1,
            _ => words,
        };
        if self.ready < words {
            self.write_out(sides, words);
        }
    }

    /// What [`Register::prepare`] has written out.
    #[inline]
    pub(super) fn operand(&self) -> &[Line] {
        match self.form {
            Form::Uniform(_) => &self.lines[..self.size as usize],
            _ => &self.lines,
        }
    }

    /// All lanes, written out.
    pub(super) fn lanes(&mut self, sides: Sides, words: usize) -> &mut Vec<Line> {
        self.write_out(sides, words);
        &mut self.lines
    }

    /// All lanes, written out to be changed: nothing else is known of them afterwards.
    pub(super) fn lanes_mut(&mut self, sides: Sides, words: usize) -> &mut Vec<Line> {
        self.write_out(sides, words);
        self.form = Form::Lanes;
        &mut self.lines
    }

    /// What [`Register::lanes`] has written out.
    pub(super) fn written(&self) -> &[Line] {
        &self.lines
    }

    /// Room for a result of each lane.
    #[inline]
    pub(super) fn result(&mut self, words: usize) -> &mut [Line] {
        self.reserve(words);
        self.form = Form::Lanes;
        self.ready = words;
        &mut self.lines
    }

    /// Its storage, for a result; [`Register::put`] brings it back.
    #[inline]
    pub(super) fn take(&mut self, words: usize) -> Vec<Line> {
        self.reserve(words);
        std::mem::take(&mut self.lines)
    }

    #[inline]
    pub(super) fn put(&mut self, lines: Vec<Line>, words: usize) {
        self.form = Form::Lanes;
        self.ready = words;
        self.lines = lines;
    }

    /// A lane's bits.
    pub(super) fn value(&self, lane: usize, [x, y, _]: Sides) -> u64 {
        match self.form {
            Form::Uniform(bits) => bits,
            Form::Affine(Affine { first, steps }) => {
                let (row, i) = (lane as u32 / x.max(1), lane as u32 % x.max(1));
                let at = [i, row % y.max(1), row / y.max(1)];
                let grown = at.into_iter().zip(steps).fold(first, |sum, (i, step)| {
                    sum.wrapping_add(u64::from(i).wrapping_mul(step as u64))
                });
                let shift = 64 - 8 * self.size;
                grown << shift >> shift
            }
            Form::Lanes => eval::get(&self.lines, self.size, lane),
        }
    }
}

/// Calls `f` with operands and room for a result. (A register is not both; if it were, it would be an operand without lanes.)
#[inline(always)]
pub(super) fn operate<const N: usize>(
    regs: &mut [Register],
    operands: [Reg; N],
    out: Reg,
    (sides, words): (Sides, usize),
    f: impl FnOnce([&[Line]; N], &mut [Line]),
) {
    for reg in operands {
        regs[reg as usize].prepare(sides, words);
    }
    let (before, rest) = regs.split_at_mut(out as usize);
    if let Some((to, after)) = rest.split_first_mut() {
        let operands = operands.map(|reg| match reg.cmp(&out) {
            Ordering::Less => before[reg as usize].operand(),
            Ordering::Equal => &[],
            Ordering::Greater => after[(reg - out) as usize - 1].operand(),
        });
        f(operands, to.result(words));
    }
}
