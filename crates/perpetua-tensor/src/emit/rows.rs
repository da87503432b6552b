//! Kernels of rows: each is combined in one or more stages, and what is made of it follows. A lane has a row, or a block of [`LANES`] lanes.

use perpetua_ir::ir::{Axis, Place as Memory, Type, Value};
use perpetua_ir::ops::BinaryOp;

use super::kernel::{Emitter, Result, Scope};
use super::recipe::{Id, Place, Stage};
use crate::order::{LANES, Order};

impl Emitter<'_> {
    pub(super) fn rows(
        &mut self,
        mut scope: Scope,
        order: Order,
        [rows, first, columns]: [Id; 3],
        stages: &[Stage],
    ) -> Result<()> {
        match order {
            Order::Serial => {
                let rows = self.value(&mut scope, rows)?;
                let row = self.k.global_id(Axis::X)?;
                let is_inside = self.k.binary(BinaryOp::Lt, row, rows)?;
                self.if_(is_inside, |own| {
                    let mut scope = scope.at(&[(Place::Row, row)]);
                    let bounds = (own.value(&mut scope, first)?, own.value(&mut scope, columns)?);
                    own.row(scope, order, bounds, stages)
                })
            }
            Order::Lanes => {
                self.k.kernel_mut().block_size = Some([LANES as u32, 1, 1]);
                let columns = self.value(&mut scope, columns)?;
                let row = self.block(Axis::X);
                let lane = self.thread(Axis::X);
                self.row(scope.at(&[(Place::Row, row)]), order, (lane, columns), stages)
            }
        }
    }

    fn row(
        &mut self,
        mut scope: Scope,
        order: Order,
        (first, columns): (Value, Value),
        stages: &[Stage],
    ) -> Result<()> {
        let step = match order {
            Order::Serial => 1,
            Order::Lanes => LANES as u32,
        };
        for (number, stage) in stages.iter().enumerate() {
            self.prepare(&mut scope, &[stage.value])?;
            let sum = self.k.local("combined", stage.ty.into());
            let identity = self.k.constant(stage.ty.stored(), stage.how.identity(stage.ty));
            self.k.store(Memory::local(sum), identity)?;
            self.count(first, columns, step, |own, lane| {
                let mut scope = scope.at(&[(Place::Lane, lane)]);
                let value = own.value(&mut scope, stage.value)?;
                let so_far = own.k.load(Memory::local(sum))?;
                let both = own.combine(stage.how, stage.ty, so_far, value)?;
                own.k.store(Memory::local(sum), both)
            })?;
            let own = self.k.load(Memory::local(sum))?;
            let result = match order {
                Order::Serial => own,
                Order::Lanes => self.meet(number, stage, first, own)?,
            };
            scope.add_reduced(result);
        }
        if self.recipe.by_row {
            return match order {
                Order::Serial => self.store(&mut scope),
                Order::Lanes => {
                    let zero = self.k.u32(0);
                    let is_first = self.k.binary(BinaryOp::Eq, first, zero)?;
                    self.if_(is_first, |own| own.store(&mut scope))
                }
            };
        }
        self.prepare(&mut scope, &[self.recipe.value, self.recipe.index])?;
        self.count(first, columns, step, |own, lane| {
            own.store(&mut scope.at(&[(Place::Lane, lane)]))
        })
    }

    // The lanes' partial results become one, which all have: the first half meets the second, until one is left.
    fn meet(&mut self, number: usize, stage: &Stage, lane: Value, own: Value) -> Result<Value> {
        let ty = Type::array(stage.ty.into(), LANES as u32);
        let shared = self.k.shared(format!("partial{number}"), ty);
        self.k.store(Memory::element(shared, lane), own)?;
        let mut left = LANES as u32 / 2;
        while left > 0 {
            self.barrier();
            let half = self.k.u32(left);
            let takes_part = self.k.binary(BinaryOp::Lt, lane, half)?;
            self.if_(takes_part, |own| {
                let other = own.k.binary(BinaryOp::Add, lane, half)?;
                let mine = own.k.load(Memory::element(shared, lane))?;
                let other = own.k.load(Memory::element(shared, other))?;
                let both = own.combine(stage.how, stage.ty, mine, other)?;
                own.k.store(Memory::element(shared, lane), both)
            })?;
            left /= 2;
        }
        self.barrier();
        let zero = self.k.u32(0);
        self.k.load(Memory::element(shared, zero))
    }
}
