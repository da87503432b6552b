//! Kernels of matrix products: a block has a tile of the result, and brings tiles of both operands into shared memory, one after the
//! other along the axis that is summed. Every element is summed in that axis' order, whatever the tiles.

use perpetua_ir::ir::{Axis, Place as Memory, Type};
use perpetua_ir::ops::BinaryOp;

use super::build::TILE;
use super::kernel::{Emitter, Result, Scope};
use super::recipe::{Id, Place};
use crate::dtype::DType;

impl Emitter<'_> {
    pub(super) fn product(
        &mut self,
        mut scope: Scope,
        extents: [Id; 3],
        operands: [Id; 2],
        ty: DType,
    ) -> Result<()> {
        let side = TILE as u32;
        self.k.kernel_mut().block_size = Some([side, side, 1]);
        let [x, y] = [Axis::X, Axis::Y].map(|axis| self.thread(axis));
        let tile = self.k.u32(side);
        let begin = |own: &mut Self, axis, lane| {
            let block = own.block(axis);
            let first = own.k.binary(BinaryOp::Mul, block, tile)?;
            own.k.binary(BinaryOp::Add, first, lane)
        };
        let column = begin(self, Axis::X, x)?;
        let row = begin(self, Axis::Y, y)?;
        let batch = self.block(Axis::Z);
        scope = scope.at(&[(Place::Batch, batch)]);
        let mut sizes = [row; 3];
        for (size, id) in sizes.iter_mut().zip(extents) {
            *size = self.value(&mut scope, id)?;
        }
        let [m, n, inner] = sizes;
        self.prepare(&mut scope, &operands)?;
        let has_row = self.k.binary(BinaryOp::Lt, row, m)?;
        let has_column = self.k.binary(BinaryOp::Lt, column, n)?;
        let shape = Type::array(Type::Scalar(ty), side * side);
        let tiles = ["left", "right"].map(|name| self.k.shared(name, shape.clone()));
        let line = self.k.binary(BinaryOp::Mul, y, tile)?;
        let own_place = self.k.binary(BinaryOp::Add, line, x)?;
        let sum = self.k.local("sum", Type::Scalar(ty));
        let zero = self.k.constant(ty, 0);
        self.k.store(Memory::local(sum), zero)?;
        let from = self.k.u32(0);
        self.count(from, inner, side, |own, begin| {
            // Of the left matrix lanes bring a row's elements, of the right one a column's.
            let along = [x, y].map(|lane| own.k.binary(BinaryOp::Add, begin, lane));
            for (place, along) in along.into_iter().enumerate() {
                let along = along?;
                let is_along = own.k.binary(BinaryOp::Lt, along, inner)?;
                let has_line = if place == 0 { has_row } else { has_column };
                let is_inside = own.k.binary(BinaryOp::And, is_along, has_line)?;
                let element = own.k.local("element", Type::Scalar(ty));
                own.k.store(Memory::local(element), zero)?;
                let at = match place {
                    0 => [(Place::Row, row), (Place::Inner, along)],
                    _ => [(Place::Column, column), (Place::Inner, along)],
                };
                let mut scope = scope.at(&at);
                own.if_(is_inside, |own| {
                    let value = own.value(&mut scope, operands[place])?;
                    own.k.store(Memory::local(element), value)
                })?;
                let value = own.k.load(Memory::local(element))?;
                own.k.store(Memory::element(tiles[place], own_place), value)?;
            }
            own.barrier();
            for step in 0..side {
                let step_value = own.k.u32(step);
                let left_at = own.k.binary(BinaryOp::Add, line, step_value)?;
                let far = own.k.u32(step * side);
                let right_at = own.k.binary(BinaryOp::Add, far, x)?;
                let left = own.k.load(Memory::element(tiles[0], left_at))?;
                let right = own.k.load(Memory::element(tiles[1], right_at))?;
                let product = own.k.binary(BinaryOp::Mul, left, right)?;
                let so_far = own.k.load(Memory::local(sum))?;
                let both = own.k.binary(BinaryOp::Add, so_far, product)?;
                own.k.store(Memory::local(sum), both)?;
            }
            own.barrier();
            Ok(())
        })?;
        let has_both = self.k.binary(BinaryOp::And, has_row, has_column)?;
        let sum = self.k.load(Memory::local(sum))?;
        scope.add_reduced(sum);
        let mut scope = scope.at(&[(Place::Row, row), (Place::Column, column)]);
        self.if_(has_both, |own| own.store(&mut scope))
    }
}
