//! Products in stages: what [`StageOp`] says, written down. A stage is copied when it is filled, since nobody can see it before.

use std::borrow::Cow;

use half::{bf16, f16};

use super::super::error::InterpError;
use super::super::memory::Cell;
use super::super::program::Reg;
use super::affine::Form;
use super::team::Staged;
use super::{Launch, Machine, Next};
use crate::eval::{self, Line};
use perpetua_ir::ir::{Factor, Scalar, StageElement, StageOp, Stages};

impl Machine {
    /// `args` and `out` as [`Code::Device`](super::Code::Device) has them.
    pub(super) fn stage(
        &mut self,
        launch: &Launch<'_>,
        op: StageOp,
        args: &[Reg],
        out: &[Reg],
    ) -> Result<Next, Box<InterpError>> {
        let who = self.part.first / Stages::TEAM as usize;
        let (Some(stages), Some(team)) = (&launch.program.stages, self.part.team.clone()) else {
            // The verifier admits no kernel without stages, nor one whose blocks are a single team.
            return Ok(Next::On);
        };
        if op == StageOp::Produces {
            let out = out.first().copied().unwrap_or_default();
            self.set(out, Form::Uniform((who == 0).into()));
            return Ok(Next::On);
        }
        self.all_here(launch)?;
        let (staged, who, for_what) = match op {
            StageOp::Fill | StageOp::FillOf => {
                let at = |i: usize| args.get(i).map_or(0, |reg| self.value(*reg, 0));
                // Which matrices, if that is said, come first.
                let [of_left, of_right, row, column, depth] = match args.len() {
                    5.. => [0, 1, 2, 3, 4].map(at),
                    _ => [0, 0, at(0), at(1), at(2)],
                };
                let (left, right) = ([row, depth, of_left], [column, depth, of_right]);
                let further = match stages.third {
                    Some(_) => [0, column, of_right],
                    None => left,
                };
                let from = [left, right, further, right];
                let content = |kept: bool| {
                    let numbers = (0..stages.factors().count()).filter(move |at| stages.keeps(*at) == kept);
                    numbers
                        .flat_map(move |at| {
                            copied(launch, stages, at, from.get(at).copied().unwrap_or_default())
                        })
                        .collect()
                };
                let staged = team.fill(who, || content(true), || content(false));
                (staged, "the one that fills stages", "free")
            }
            _ => {
                for reg in args {
                    self.regs[*reg as usize].lanes(self.sides, self.words);
                }
                let mut sums: Vec<Vec<Line>> = out.iter().map(|reg| self.take(*reg)).collect();
                let before: Vec<&[Line]> = args
                    .iter()
                    .map(|reg| self.regs[*reg as usize].written())
                    .collect();
                let consumer = who - 1;
                let (before, weights) = before.split_at(out.len().min(before.len()));
                let Some(reading) = stages.read_by(op) else {
                    // The verifier admits none.
                    return Ok(Next::On);
                };
                let chained = stages.third.is_some();
                let turns = (chained && reading.left.is_none(), chained || reading.frees);
                let staged = team.multiply(who, consumer, turns, |kept, stage| {
                    let part = |number: usize| {
                        let lies_in = if stages.keeps(number) { kept } else { stage };
                        let size = stages.element.memory().size();
                        let [start, len] = [stages.part_start(number), stages.part_bytes(number)]
                            .map(|bytes| (bytes / size) as usize);
                        lies_in.get(start..start + len).unwrap_or_default()
                    };
                    let depth = reading.depth as usize;
                    let left = match reading.left {
                        Some(number) => {
                            let rows = part(number).chunks(Stages::ROWS as usize * depth);
                            Cow::Borrowed(rows.clone().nth(consumer).unwrap_or_default())
                        }
                        None => Cow::Owned(weighed(stages.element, depth, weights)),
                    };
                    let mut right = Cow::Borrowed(part(reading.right));
                    if reading.left.is_none() && !chained {
                        // Read the other way.
                        right = Cow::Owned(turned(&right, depth));
                    }
                    multiply(stages.element.sums(), &left, &right, depth, before, &mut sums);
                });
                for (sums, reg) in sums.into_iter().zip(out) {
                    self.put(*reg, sums);
                }
                (staged, "one that multiplies", "full")
            }
        };
        match staged {
            Staged::Done => Ok(Next::On),
            Staged::Waits => Ok(Next::Again),
            Staged::Never => Err(Box::new(InterpError::Deadlock {
                kernel: launch.program.name.clone(),
                line: launch.program.lines[self.pc as usize],
                block: self.block,
                who,
                for_what,
            })),
        }
    }
}

/// A factor's part, by the factor's number, from this row or column of sums and this depth on, of the matrix of this number: all of the depth for each, zeros outside.
fn copied<'a>(
    launch: &'a Launch<'_>,
    stages: &'a Stages,
    factor: usize,
    from: [u64; 3],
) -> impl Iterator<Item = f32> + 'a {
    let deep = u64::from(stages.depth_of(factor));
    let factors = stages.factors().nth(factor).into_iter();
    factors.flat_map(move |factor| part(launch, factor, stages.element, from, deep))
}

fn part<'a>(
    launch: &'a Launch<'_>,
    factor: &'a Factor,
    element: StageElement,
    [first, depth, layer]: [u64; 3],
    deep: u64,
) -> impl Iterator<Item = f32> + 'a {
    let [rows, columns, pitch] = factor.shape.map(|param| launch.number(param));
    let (layers, apart) = match factor.layers {
        Some(params) => params.map(|param| launch.number(param)).into(),
        None => (1, 0),
    };
    let memory = launch.buffer(factor.buffer);
    let size = u64::from(element.memory().size());
    // Places wrap: the greatest ones are those before the matrix.
    let after =
        |first: u64, count: u64| (0..count).map(move |i| u64::from((first as u32).wrapping_add(i as u32)));
    let places = after(first, factor.extent.into())
        .flat_map(move |at| after(depth, deep).map(move |k| if factor.across { (k, at) } else { (at, k) }));
    places.map(move |(row, column)| {
        let at = row
            .checked_mul(pitch)
            .and_then(|at| at.checked_add(layer.checked_mul(apart)?))
            .and_then(|at| at.checked_add(column)?.checked_mul(size));
        let inside = row < rows && column < columns && layer < layers;
        let len = memory.len() as u64;
        let Some(at) = at.filter(|at| inside && *at < len - len % size) else {
            return 0.0;
        };
        // SAFETY: the element lies inside the buffer, of which it has `size` bytes; the launch has found the buffer aligned for its elements, of that
        // size, and lends it to be read by atomic accesses.
        let bits = unsafe {
            let place = memory.ptr.add(at as usize);
            match size {
                1 => u8::load(place).into(),
                2 => u16::load(place).into(),
                _ => u32::load(place),
            }
        };
        number(element, bits)
    })
}

/// An element of a stage.
fn number(element: StageElement, bits: u32) -> f32 {
    match element {
        StageElement::F16 => f16::from_bits(bits as u16).to_f32(),
        StageElement::Bf16 => bf16::from_bits(bits as u16).to_f32(),
        StageElement::Tf32 => f32::from_bits(bits & !0x1fff),
        StageElement::E5m2 => f16::from_bits((bits as u16) << 8).to_f32(),
        StageElement::I8 => f32::from(bits as i8),
        StageElement::U8 => f32::from(bits as u8),
        StageElement::E4m3 => {
            let (digits, exponent) = ((bits & 7) as f32, (bits >> 3 & 15) as i32);
            let size = match (bits & 0x7f, exponent) {
                (0x7f, _) => f32::NAN,
                (_, 0) => digits * 2f32.powi(-9),
                (_, exponent) => (8.0 + digits) * 2f32.powi(exponent - 10),
            };
            if bits & 0x80 == 0 { size } else { -size }
        }
    }
}

/// Which lane of a team has the sum of this row and column, and which of its sums that is.
fn place(row: usize, column: usize) -> (usize, usize) {
    let (within, eighth) = (row % 16 % 8, row % 16 / 8);
    let lane = row / 16 * 32 + within * 4 + column % 8 / 2;
    (lane, column / 8 * 4 + eighth * 2 + column % 2)
}

/// A team's weights row by row, rounded to the elements of a stage.
fn weighed(element: StageElement, depth: usize, weights: &[&[Line]]) -> Vec<f32> {
    let places = (0..Stages::ROWS as usize).flat_map(|row| (0..depth).map(move |column| place(row, column)));
    let weight = |(lane, at): (usize, usize)| {
        let weight = weights
            .get(at)
            .map_or(0, |lines| eval::get(lines, 4, lane) as u32);
        let weight = f32::from_bits(weight);
        match element {
            StageElement::F16 => f16::from_f32(weight).to_f32(),
            _ => bf16::from_f32(weight).to_f32(),
        }
    };
    places.map(weight).collect()
}

/// Of so many rows, one after the other, the columns.
fn turned(rows: &[f32], count: usize) -> Vec<f32> {
    let columns = rows.len() / count.max(1);
    let places = (0..columns).flat_map(|column| (0..count).map(move |row| row * columns + column));
    places
        .map(|at| rows.get(at).copied().unwrap_or_default())
        .collect()
}

/// Adds the products of a team's rows with columns, each of so many numbers, to its sums.
fn multiply(
    kind: Scalar,
    left: &[f32],
    right: &[f32],
    depth: usize,
    before: &[&[Line]],
    sums: &mut [Vec<Line>],
) {
    for (row, left) in left.chunks(depth).enumerate() {
        for (column, right) in right.chunks(depth).enumerate() {
            let (lane, at) = place(row, column);
            let (Some(before), Some(sums)) = (before.get(at), sums.get_mut(at)) else {
                continue;
            };
            let (bits, products) = (
                eval::get(before, 4, lane) as u32,
                left.iter().zip(right).map(|(l, r)| l * r),
            );
            let sum = match kind {
                // Products of two bytes are exact.
                Scalar::I32 => products.fold(bits, |sum, product| sum.wrapping_add_signed(product as i32)),
                _ => products
                    .fold(f32::from_bits(bits), |sum, product| sum + product)
                    .to_bits(),
            };
            eval::put(sums, 4, lane, sum.into());
        }
    }
}
