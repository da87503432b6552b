//! Products in stages: what [`StageOp`] says, written down. A stage is copied when it is filled, since nobody can see it before.

use half::{bf16, f16};

use super::super::error::InterpError;
use super::super::memory::Cell;
use super::super::program::Reg;
use super::affine::Form;
use super::team::Staged;
use super::{Launch, Machine, Next};
use crate::eval::{self, Line};
use perpetua_ir::ir::{Factor, Scalar, StageOp, Stages};

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
            StageOp::Fill => {
                let at = |i: usize| args.get(i).map_or(0, |reg| self.value(*reg, 0));
                let [row, column, depth] = [at(0), at(1), at(2)];
                let staged = team.fill(who, || {
                    let left = copied(launch, &stages.left, row, depth);
                    let right = copied(launch, &stages.right, column, depth);
                    left.chain(right).collect()
                });
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
                let staged = team.multiply(who, consumer, |stage| {
                    multiply(stages, consumer, stage, &before, &mut sums)
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

/// A part of a matrix, from this row or column of sums and this depth on: 64 elements of depth for each, zeros outside.
fn copied<'a>(
    launch: &'a Launch<'_>,
    factor: &'a Factor,
    first: u64,
    depth: u64,
) -> impl Iterator<Item = u16> + 'a {
    let [rows, columns, pitch] = factor.shape.map(|param| launch.number(param));
    let memory = launch.buffer(factor.buffer);
    let places = (first..first + u64::from(factor.extent)).flat_map(move |at| {
        (depth..depth + u64::from(Stages::DEPTH)).map(move |k| if factor.across { (k, at) } else { (at, k) })
    });
    places.map(move |(row, column)| {
        let at = row
            .checked_mul(pitch)
            .and_then(|at| at.checked_add(column)?.checked_mul(2));
        let inside = row < rows && column < columns;
        match at.filter(|at| inside && *at < memory.len() as u64 - memory.len() as u64 % 2) {
            // SAFETY: the element lies inside the buffer, which the launch has found aligned for its elements and lends to be read
            // by atomic accesses.
            Some(at) => unsafe { u16::load(memory.ptr.add(at as usize)) },
            None => 0,
        }
    })
}

/// Adds the products of a stage to the sums of the team whose number among those that multiply is `consumer`.
fn multiply(stages: &Stages, consumer: usize, stage: &[u16], before: &[&[Line]], sums: &mut [Vec<Line>]) {
    let numbers: Vec<f32> = match stages.element {
        Scalar::F16 => stage.iter().map(|bits| f16::from_bits(*bits).to_f32()).collect(),
        _ => stage.iter().map(|bits| bf16::from_bits(*bits).to_f32()).collect(),
    };
    let (depth, rows) = (Stages::DEPTH as usize, Stages::ROWS as usize);
    let (left, right) = numbers.split_at(stages.left.extent as usize * depth);
    let team = left.chunks(depth).skip(consumer * rows).take(rows);
    for (row, left) in team.enumerate() {
        for (column, right) in right.chunks(depth).enumerate() {
            // Who has this sum.
            let (within, eighth) = (row % 16 % 8, row % 16 / 8);
            let lane = row / 16 * 32 + within * 4 + column % 8 / 2;
            let number = column / 8 * 4 + eighth * 2 + column % 2;
            let (Some(before), Some(sums)) = (before.get(number), sums.get_mut(number)) else {
                continue;
            };
            let mut sum = f32::from_bits(eval::get(before, 4, lane) as u32);
            for (l, r) in left.iter().zip(right) {
                sum += l * r;
            }
            eval::put(sums, 4, lane, sum.to_bits().into());
        }
    }
}
