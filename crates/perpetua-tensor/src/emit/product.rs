//! Kernels of matrix products: a block has a tile of the result, and brings tiles of both operands into shared memory, one after the
//! other along the axis that is summed. A lane has one element of the tile, or a square of them whose rows and columns lie [`TILE`] apart, so that
//! lanes beside each other reach memory beside each other. Every element is summed in that axis' order, whatever the tiles.

use perpetua_ir::ir::{Axis, Base, LocalId, Place as Memory, Type, Value};
use perpetua_ir::ops::BinaryOp;

use super::build::TILE;
use super::kernel::{Emitter, Result, Scope};
use super::recipe::{Place, Product};

/// Steps along the summed axis that are written out, where a lane has several elements.
const STRAIGHT: u32 = 4;

/// What all lanes of a block know.
struct Tiles {
    /// Elements of a tile's side that a lane has.
    per_lane: u32,
    side: u32,
    /// The lane's place in the block.
    x: Value,
    y: Value,
    /// The rows and columns of the lane's elements, and whether they are there.
    rows: Vec<(Value, Value)>,
    columns: Vec<(Value, Value)>,
    shared: [Base; 2],
}

impl Emitter<'_> {
    pub(super) fn product(&mut self, mut scope: Scope, product: &Product) -> Result<()> {
        let lanes = TILE as u32;
        let (per_lane, ty) = (product.per_lane, product.ty);
        let side = lanes * per_lane;
        self.k.kernel_mut().block_size = Some([lanes, lanes, 1]);
        let [x, y] = [Axis::X, Axis::Y].map(|axis| self.thread(axis));
        let batch = self.block(Axis::Z);
        scope = scope.at(&[(Place::Batch, batch)]);
        let mut sizes = [x; 3];
        for (size, id) in sizes.iter_mut().zip(product.extents) {
            *size = self.value(&mut scope, id)?;
        }
        let [m, n, inner] = sizes;
        self.prepare(&mut scope, &product.operands)?;
        let along = |own: &mut Self, axis, lane, end| -> Result<Vec<(Value, Value)>> {
            let block = own.block(axis);
            let tile = own.k.u32(side);
            let first = own.k.binary(BinaryOp::Mul, block, tile)?;
            let first = own.k.binary(BinaryOp::Add, first, lane)?;
            let each = (0..per_lane).map(|i| {
                let by = own.k.u32(i * lanes);
                let at = own.k.binary(BinaryOp::Add, first, by)?;
                Ok((at, own.k.binary(BinaryOp::Lt, at, end)?))
            });
            each.collect()
        };
        let (rows, columns) = (along(self, Axis::Y, y, m)?, along(self, Axis::X, x, n)?);
        let shape = Type::array(ty.into(), side * lanes);
        let tiles = Tiles {
            per_lane,
            side,
            x,
            y,
            rows,
            columns,
            shared: ["left", "right"].map(|name| self.k.shared(name, shape.clone())),
        };
        let zero = self.k.constant(ty.stored(), 0);
        let mut sums: Vec<LocalId> = Vec::new();
        for _ in 0..per_lane * per_lane {
            let sum = self.k.local("sum", ty.into());
            self.k.store(Memory::local(sum), zero)?;
            sums.push(sum);
        }
        let from = self.k.u32(0);
        self.count(from, inner, lanes, |own, begin| {
            own.bring(&scope, &tiles, product, begin, inner)?;
            own.barrier();
            match per_lane {
                1 => (0..lanes).try_for_each(|step| {
                    let step = own.k.u32(step);
                    own.add_up(&tiles, &sums, step)
                })?,
                _ => {
                    let (from, to) = (own.k.u32(0), own.k.u32(lanes));
                    own.count(from, to, STRAIGHT, |own, begin| {
                        (0..STRAIGHT).try_for_each(|step| {
                            let step = own.k.u32(step);
                            let step = own.k.binary(BinaryOp::Add, begin, step)?;
                            own.add_up(&tiles, &sums, step)
                        })
                    })?;
                }
            }
            own.barrier();
            Ok(())
        })?;
        for (place, sum) in sums.iter().enumerate() {
            let (row, has_row) = tiles.rows[place / per_lane as usize];
            let (column, has_column) = tiles.columns[place % per_lane as usize];
            let has_both = self.k.binary(BinaryOp::And, has_row, has_column)?;
            let sum = self.k.load(Memory::local(*sum))?;
            let mut scope = scope.at(&[(Place::Row, row), (Place::Column, column)]);
            scope.add_reduced(sum);
            self.if_(has_both, |own| own.store(&mut scope))?;
        }
        Ok(())
    }

    // The operands' tiles from `begin` on along the summed axis. Of the left matrix and of the right one lanes beside each other bring elements of a
    // row.
    fn bring(
        &mut self,
        scope: &Scope,
        tiles: &Tiles,
        product: &Product,
        begin: Value,
        inner: Value,
    ) -> Result<()> {
        let lanes = TILE as u32;
        let zero = self.k.constant(product.ty.stored(), 0);
        for (place, lane) in [tiles.x, tiles.y].into_iter().enumerate() {
            let along = self.k.binary(BinaryOp::Add, begin, lane)?;
            let is_along = self.k.binary(BinaryOp::Lt, along, inner)?;
            let lines = if place == 0 { &tiles.rows } else { &tiles.columns };
            for (i, (line, has_line)) in lines.iter().enumerate() {
                let is_inside = self.k.binary(BinaryOp::And, is_along, *has_line)?;
                let element = self.k.local("element", product.ty.into());
                self.k.store(Memory::local(element), zero)?;
                let (at, pitch) = match place {
                    0 => (Place::Row, lanes),
                    _ => (Place::Column, tiles.side),
                };
                let mut scope = scope.at(&[(at, *line), (Place::Inner, along)]);
                self.if_(is_inside, |own| {
                    let value = own.value(&mut scope, product.operands[place])?;
                    own.k.store(Memory::local(element), value)
                })?;
                let value = self.k.load(Memory::local(element))?;
                let far = i as u32 * lanes * if place == 0 { pitch } else { 1 };
                let to = self.in_tile(tiles.y, pitch, tiles.x, far)?;
                self.k.store(Memory::element(tiles.shared[place], to), value)?;
            }
        }
        Ok(())
    }

    // `row * pitch + column + far`.
    fn in_tile(&mut self, row: Value, pitch: u32, column: Value, far: u32) -> Result<Value> {
        let pitch = self.k.u32(pitch);
        let line = self.k.binary(BinaryOp::Mul, row, pitch)?;
        let at = self.k.binary(BinaryOp::Add, line, column)?;
        match far {
            0 => Ok(at),
            far => {
                let far = self.k.u32(far);
                self.k.binary(BinaryOp::Add, at, far)
            }
        }
    }

    // One step along the summed axis.
    fn add_up(&mut self, tiles: &Tiles, sums: &[LocalId], step: Value) -> Result<()> {
        let lanes = TILE as u32;
        let of = |own: &mut Self, place: usize| -> Result<Vec<Value>> {
            let each = (0..tiles.per_lane).map(|i| {
                let at = match place {
                    0 => own.in_tile(tiles.y, lanes, step, i * lanes * lanes)?,
                    _ => own.in_tile(step, tiles.side, tiles.x, i * lanes)?,
                };
                own.k.load(Memory::element(tiles.shared[place], at))
            });
            each.collect()
        };
        let (left, right) = (of(self, 0)?, of(self, 1)?);
        for (place, sum) in sums.iter().enumerate() {
            let (row, column) = (place / right.len(), place % right.len());
            let product = self.k.binary(BinaryOp::Mul, left[row], right[column])?;
            let so_far = self.k.load(Memory::local(*sum))?;
            let both = self.k.binary(BinaryOp::Add, so_far, product)?;
            self.k.store(Memory::local(*sum), both)?;
        }
        Ok(())
    }
}
