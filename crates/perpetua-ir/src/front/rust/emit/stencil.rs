//! From a stencil function to a kernel over a grid: one lane a cell, with the copy to shared memory where a tile
//! is asked for.
//!
//! With a tile the body is emitted first, into a block of its own, to learn which grids it reads neighbours of; the
//! copies go before it. All lanes reach the barrier, also those outside of the grid.

use std::collections::HashMap;

use super::grid::Grid;
use super::types::identifier;
use super::value::Val;
use super::{Emitter, Result};
use crate::front::rust::infer::ty::Ty;
use crate::front::rust::stencil::{Edge, StencilConfig};
use crate::ir::{self, Axis, Base, Builtin, DeviceOp, Inst, ParamKind, Place, Scalar, Step, Type, Value};
use crate::ops::BinaryOp;

/// Lanes that a block may have on every target.
const MAX_LANES: u64 = 1024;

impl Emitter<'_> {
    /// Emits the whole kernel of a stencil.
    pub(super) fn stencil(&mut self, config: &StencilConfig) -> Result<()> {
        let f = self.scope.f.clone();
        let tree = f.loaded.tree.clone();
        let line = tree.line;
        if let Some(tile) = config.tile {
            let lanes = tile.iter().map(|n| u64::from(*n)).product::<u64>();
            if lanes == 0 || lanes > MAX_LANES {
                return Err(self.error(
                    line,
                    format!("a tile of {} x {} x {} cells", tile[0], tile[1], tile[2]),
                    format!("a block has 1 to {MAX_LANES} lanes"),
                ));
            }
        }
        if config.halo > 1 << 16 {
            return Err(self.error(
                line,
                format!("a halo of {} cells", config.halo),
                "use a smaller one",
            ));
        }
        for (param, local) in tree.params.iter().zip(&f.params) {
            if matches!(self.local_type(*local), Ty::GridPos) {
                continue;
            }
            self.kernel_param(&param.name, *local, param.line)?;
        }
        self.at(line);
        let deep = f.deep || config.three_d || self.called(&f)?.1;
        self.set_grid(config, deep, line)?;
        let inside = self.is_computed(line)?;
        self.note(super::COMPUTED, inside, line)?;
        if config.tile.is_none() {
            self.return_unless(inside, line)?;
            return self.kernel_body();
        }
        let body = self.branch(|this| this.kernel_body().map(|()| Val::unit()))?;
        self.at(line);
        self.copy_tiles(line)?;
        self.at(line);
        self.return_unless(inside, line)?;
        for stmt in body.block.0 {
            self.k.set_line(stmt.line);
            self.k.push(stmt.inst);
        }
        Ok(())
    }

    fn return_unless(&mut self, inside: Value, line: u32) -> Result<()> {
        let outside = self.not(inside, line)?;
        let leave = self.branch(|this| {
            this.k.push(Inst::Return(None));
            this.body.ended = true;
            Ok(Val::unit())
        })?;
        self.k.push(Inst::If(outside, leave.block, ir::Block::default()));
        Ok(())
    }

    /// A name that no parameter has.
    fn free_param(&mut self, name: &str) -> String {
        let mut free = identifier(name);
        while self.k.kernel_mut().params.iter().any(|p| p.name == free) {
            free.insert_str(0, "grid_");
        }
        free
    }

    fn set_grid(&mut self, config: &StencilConfig, deep: bool, line: u32) -> Result<()> {
        let s = self.usize_scalar();
        let zero = self.constant(s, 0);
        let one = self.constant(s, 1);
        let (mut at, mut size) = ([zero; 3], [one; 3]);
        let mut inner = [zero; 3];
        let halo = self.constant(Scalar::U32, u64::from(config.halo));
        let axes = [(Axis::X, "width"), (Axis::Y, "height"), (Axis::Z, "depth")];
        for (i, (axis, name)) in axes.into_iter().enumerate() {
            if i == 2 && !deep {
                break;
            }
            let name = self.free_param(name);
            let extent = self.k.param(name, Type::U32);
            size[i] = self.cast(s, extent, line)?;
            at[i] = self.global_id(axis, line)?;
            let thread = self.k.builtin(Builtin::ThreadIdx(axis));
            inner[i] = self.binary(BinaryOp::Add, thread, halo, line)?;
        }
        let idx = self.linear(at, size, line)?;
        if config.tile.is_some() {
            self.k.kernel_mut().block_size = config.tile;
        }
        self.grid = Some(Grid {
            at,
            size,
            idx,
            halo: config.halo,
            edge: config.edge,
            deep,
            tile: config.tile,
            inner,
            copies: HashMap::new(),
        });
        Ok(())
    }

    /// Whether the lane's cell is computed.
    fn is_computed(&mut self, line: u32) -> Result<Value> {
        let mut all = self.bool(true);
        let Some(grid) = &self.grid else {
            return Ok(all);
        };
        let (at, size, deep, edge, halo) = (grid.at, grid.size, grid.deep, grid.edge, grid.halo);
        let s = self.usize_scalar();
        for (at, size) in at.into_iter().zip(size).take(if deep { 3 } else { 2 }) {
            let mut end = at;
            if edge == Edge::Interior && halo > 0 {
                let halo = self.constant(s, u64::from(halo));
                let from = self.binary(BinaryOp::Ge, at, halo, line)?;
                all = self.binary(BinaryOp::And, all, from, line)?;
                end = self.binary(BinaryOp::Add, at, halo, line)?;
            }
            let to = self.binary(BinaryOp::Lt, end, size, line)?;
            all = self.binary(BinaryOp::And, all, to, line)?;
        }
        Ok(all)
    }

    /// Copies each grid that the body reads neighbours of, and waits.
    fn copy_tiles(&mut self, line: u32) -> Result<()> {
        let Some(grid) = &self.grid else {
            return Ok(());
        };
        let mut copies: Vec<(u32, Base)> = grid.copies.iter().map(|(b, s)| (*b, *s)).collect();
        if copies.is_empty() {
            return Ok(());
        }
        copies.sort_by_key(|(buffer, _)| *buffer);
        let Some(tile) = grid.tile else {
            return Ok(());
        };
        let halo = grid.halo;
        let deep = grid.deep;
        let z = if deep { tile[2] + 2 * halo } else { 1 };
        let extent = [tile[0] + 2 * halo, tile[1] + 2 * halo, z];
        let count = extent.iter().product::<u32>();
        let lanes = tile.iter().product::<u32>();
        let first = self.lane_of(tile, line)?;
        let next = Place::local(self.k.local("next", Type::U32));
        self.store(&next, first, line)?;
        let branch = self.framed(None, |this, level| {
            let i = this.read(&next, line)?;
            let end = this.constant(Scalar::U32, u64::from(count));
            let over = this.binary(BinaryOp::Ge, i, end, line)?;
            let leave = this.branch(|this| {
                this.k.push(Inst::Break(this.depth(level)));
                this.body.ended = true;
                Ok(Val::unit())
            })?;
            this.k.push(Inst::If(over, leave.block, ir::Block::default()));
            let step = this.constant(Scalar::U32, u64::from(lanes));
            let after = this.binary(BinaryOp::Add, i, step, line)?;
            this.store(&next, after, line)?;
            this.copy_cell(i, extent, tile, &copies, line)
        })?;
        self.k.push(Inst::Loop(branch.block));
        let done = self.k.effect(DeviceOp::Barrier.into());
        self.typed(line, done)
    }

    /// The lane's number in a block of this size.
    fn lane_of(&mut self, size: [u32; 3], line: u32) -> Result<Value> {
        let mut lane = None;
        for (axis, n) in Axis::ALL.into_iter().zip(size).rev() {
            // An axis of one lane adds nothing.
            if n == 1 {
                continue;
            }
            let index = self.k.builtin(Builtin::ThreadIdx(axis));
            lane = Some(match lane {
                Some(lane) => {
                    let n = self.constant(Scalar::U32, u64::from(n));
                    let before = self.binary(BinaryOp::Mul, lane, n, line)?;
                    self.binary(BinaryOp::Add, before, index, line)?
                }
                None => index,
            });
        }
        Ok(match lane {
            Some(lane) => lane,
            None => self.constant(Scalar::U32, 0),
        })
    }

    /// Copies cell `i` of a tile with its halo, of each grid.
    fn copy_cell(
        &mut self,
        i: Value,
        extent: [u32; 3],
        tile: [u32; 3],
        copies: &[(u32, Base)],
        line: u32,
    ) -> Result<()> {
        let Some(grid) = &self.grid else {
            return Ok(());
        };
        let (size, halo, deep, edge) = (grid.size, grid.halo, grid.deep, grid.edge);
        let usize_scalar = self.usize_scalar();
        let signed = if usize_scalar == Scalar::U64 {
            Scalar::I64
        } else {
            Scalar::I32
        };
        let width = self.constant(Scalar::U32, u64::from(extent[0]));
        let height = self.constant(Scalar::U32, u64::from(extent[1]));
        let x = self.binary(BinaryOp::Rem, i, width, line)?;
        let rows = self.binary(BinaryOp::Div, i, width, line)?;
        let (y, z) = if deep {
            (
                self.binary(BinaryOp::Rem, rows, height, line)?,
                self.binary(BinaryOp::Div, rows, height, line)?,
            )
        } else {
            (rows, self.constant(Scalar::U32, 0))
        };
        let cell = [x, y, z];
        let mut coordinates = Vec::new();
        let mut inside = self.bool(true);
        let mut any = self.bool(true);
        let zero = self.constant(usize_scalar, 0);
        for (i, axis) in Axis::ALL.into_iter().enumerate() {
            if i == 2 && !deep {
                coordinates.push(zero);
                continue;
            }
            let block = self.k.builtin(Builtin::BlockIdx(axis));
            let block = self.cast(signed, block, line)?;
            let cells = self.constant(signed, u64::from(tile[i]));
            let start = self.binary(BinaryOp::Mul, block, cells, line)?;
            let inner = self.cast(signed, cell[i], line)?;
            let halo = self.constant(signed, u64::from(halo));
            let to = self.binary(BinaryOp::Add, start, inner, line)?;
            let to = self.binary(BinaryOp::Sub, to, halo, line)?;
            // An empty grid has no nearest cell.
            if matches!(edge, Edge::Clamp | Edge::Wrap) {
                let some = self.binary(BinaryOp::Ne, size[i], zero, line)?;
                any = self.binary(BinaryOp::And, any, some, line)?;
            }
            let one = self.constant(usize_scalar, 1);
            let folded = if edge == Edge::Wrap {
                self.binary(BinaryOp::Max, size[i], one, line)?
            } else {
                size[i]
            };
            let (coordinate, exists) = self.fold(to, folded, edge, line)?;
            inside = self.binary(BinaryOp::And, inside, exists, line)?;
            coordinates.push(coordinate);
        }
        inside = self.binary(BinaryOp::And, inside, any, line)?;
        let [cx, cy, cz] = coordinates[..] else {
            return Err(self.error(line, "a cell has three coordinates", ""));
        };
        let index = self.linear([cx, cy, cz], size, line)?;
        for (buffer, base) in copies {
            let element = match self.k.kernel_mut().params.get(*buffer as usize).map(|p| &p.kind) {
                Some(ParamKind::Buffer { element, .. }) => element.clone(),
                _ => return Err(self.error(line, "a tile is copied of no buffer", "")),
            };
            let mut to = Place {
                base: *base,
                path: Vec::new(),
            };
            for at in if deep { vec![z, y, x] } else { vec![y, x] } {
                to = to.step(Step::Index(at));
            }
            let from = Place::element(Base::Buffer(*buffer), index);
            let then = self.branch(|this| {
                let done = this.k.load(from);
                let value = this.typed(line, done)?;
                this.store(&to, value, line)?;
                Ok(Val::unit())
            })?;
            let otherwise = self.branch(|this| {
                let value = match (edge, &element) {
                    (Edge::Constant(outside), Type::Scalar(s)) => this.outside(*s, outside, line)?,
                    (Edge::Constant(_), other) => {
                        return Err(this.error(
                            line,
                            format!("outside of the grid is a constant, but its cells are `{other}`"),
                            "choose another edge rule",
                        ));
                    }
                    _ => {
                        let done = this.k.op(ir::Op::Zero(element.clone()));
                        this.typed(line, done)?
                    }
                };
                this.store(&to, value, line)?;
                Ok(Val::unit())
            })?;
            self.k.push(Inst::If(inside, then.block, otherwise.block));
        }
        Ok(())
    }
}
