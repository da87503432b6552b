//! What a stencil's `GridPos` gives: coordinates, and neighbours under the rule at the edge.

use std::collections::HashMap;

use super::value::{Src, Val};
use super::{Emitter, Result};
use crate::front::rust::infer::tree::{Expr, GridMethod};
use crate::front::rust::infer::ty::Ty;
use crate::front::rust::stencil::Edge;
use crate::ir::{self, Access, Base, Effect, FaultKind, Inst, ParamKind, Place, Scalar, Step, Type, Value};
use crate::ops::BinaryOp;

/// The cell of a lane, and the grid around it.
pub(super) struct Grid {
    /// x, y and z as `usize`; z is zero on a flat grid.
    pub(super) at: [Value; 3],
    /// Width, height and depth as `usize`; the depth of a flat grid is one.
    pub(super) size: [Value; 3],
    /// The cell's index in a slice.
    pub(super) idx: Value,
    pub(super) halo: u32,
    pub(super) edge: Edge,
    pub(super) deep: bool,
    /// Cells per block, where neighbours are read from shared memory.
    pub(super) tile: Option<[u32; 3]>,
    /// The lane's index in its block along each axis, `u32`, with the halo added.
    pub(super) inner: [Value; 3],
    /// The copies that the body reads, by buffer.
    pub(super) copies: HashMap<u32, Base>,
}

/// How far a neighbour is along an axis.
#[derive(Clone, Copy)]
enum Offset {
    Known(i64),
    /// An `i32`.
    Value(Value),
}

impl Emitter<'_> {
    fn grid(&self, line: u32) -> Result<&Grid> {
        match &self.grid {
            Some(grid) => Ok(grid),
            None => Err(self.error(line, "a `GridPos` stands outside of a stencil", "")),
        }
    }

    /// A method of `GridPos`.
    pub(super) fn grid_method(&mut self, method: GridMethod, args: &[Expr], e: &Expr) -> Result<Value> {
        let line = e.line;
        match method {
            GridMethod::Coordinate(axis) => {
                let grid = self.grid(line)?;
                Ok(grid.at.get(usize::from(axis)).copied().unwrap_or(grid.idx))
            }
            GridMethod::Idx => Ok(self.grid(line)?.idx),
            GridMethod::Near(offsets) => {
                let offsets = offsets.map(|o| Offset::Known(i64::from(o)));
                self.neighbour_of(args, offsets, e)
            }
            GridMethod::At => {
                let mut offsets = [Offset::Known(0); 3];
                for (offset, arg) in offsets.iter_mut().zip(args.iter().skip(1)) {
                    let value = self.value(arg)?;
                    *offset = match self.known(value) {
                        Some(bits) => Offset::Known(i64::from(bits as u32 as i32)),
                        None => Offset::Value(value),
                    };
                }
                self.neighbour_of(args, offsets, e)
            }
        }
    }

    fn neighbour_of(&mut self, args: &[Expr], offsets: [Offset; 3], e: &Expr) -> Result<Value> {
        let line = e.line;
        let Some(array) = args.first() else {
            return Err(self.error(line, "a neighbour is read of no grid", ""));
        };
        let src = self.src(array)?;
        self.at(line);
        let halo = i64::from(self.grid(line)?.halo);
        for offset in offsets {
            match offset {
                Offset::Known(o) if o.abs() > halo => {
                    return Err(self.error(
                        line,
                        format!("the offset {o} is farther than the halo {halo}"),
                        format!("use `with_halo({})`", o.abs()),
                    ));
                }
                Offset::Known(_) => {}
                Offset::Value(value) => self.check_offset(value, halo, &src, line)?,
            }
        }
        match self.copy_of(&src) {
            Some(base) => self.copied_neighbour(base, offsets, line),
            None => self.loaded_neighbour(&src, offsets, &array.ty, &e.ty, line),
        }
    }

    /// An offset that is known at run time only must not lie beyond the halo.
    fn check_offset(&mut self, offset: Value, halo: i64, src: &Src, line: u32) -> Result<()> {
        if self.unchecked {
            return Ok(());
        }
        let halo_value = self.constant(Scalar::I32, halo as u64);
        let from_edge = self.binary(BinaryOp::Add, offset, halo_value, line)?;
        let from_edge = self.cast(Scalar::U32, from_edge, line)?;
        let count = self.constant(Scalar::U32, (2 * halo + 1) as u64);
        let bad = self.binary(BinaryOp::Ge, from_edge, count, line)?;
        if self.noted.is_some() {
            let near = self.not(bad, line)?;
            self.note(super::INSIDE, near, line)?;
        }
        let subject = match src {
            Src::Place(place) => self.k.name_of(place.base),
            _ => "",
        };
        let subject = subject.into();
        let fault = self.branch(|this| {
            let done = this.k.effect(Effect::Fault(
                FaultKind::IndexOutOfBounds,
                subject,
                vec![from_edge, count],
            ));
            this.typed(line, done)?;
            Ok(Val::unit())
        })?;
        self.k.push(Inst::If(bad, fault.block, ir::Block::default()));
        Ok(())
    }

    /// The shared copy of a grid: of a buffer that is only read, where tiles are copied.
    fn copy_of(&mut self, src: &Src) -> Option<Base> {
        let Src::Place(Place {
            base: Base::Buffer(buffer),
            path,
        }) = src
        else {
            return None;
        };
        let grid = self.grid.as_ref()?;
        let tile = grid.tile?;
        if let Some(base) = grid.copies.get(buffer) {
            return Some(*base);
        }
        let (halo, deep) = (grid.halo, grid.deep);
        let param = self.k.kernel_mut().params.get(*buffer as usize)?.clone();
        let ParamKind::Buffer {
            element,
            access: Access::Read,
        } = param.kind
        else {
            return None;
        };
        if !path.is_empty() {
            return None;
        }
        let mut ty = element;
        for axis in 0..if deep { 3 } else { 2 } {
            ty = Type::array(ty, tile.get(axis).copied()? + 2 * halo);
        }
        let base = self.k.shared(format!("{}_tile", param.name), ty);
        self.grid.as_mut()?.copies.insert(*buffer, base);
        Some(base)
    }

    /// The copy of a grid that exists already.
    pub(super) fn existing_copy(&self, src: &Src) -> Option<Base> {
        match src {
            Src::Place(Place {
                base: Base::Buffer(buffer),
                path,
            }) if path.is_empty() => self.grid.as_ref()?.copies.get(buffer).copied(),
            _ => None,
        }
    }

    /// The lane's own cell in a copy.
    pub(super) fn copied_cell(&mut self, base: Base, line: u32) -> Result<Value> {
        self.copied_neighbour(base, [Offset::Known(0); 3], line)
    }

    fn copied_neighbour(&mut self, base: Base, offsets: [Offset; 3], line: u32) -> Result<Value> {
        let grid = self.grid(line)?;
        let (inner, deep) = (grid.inner, grid.deep);
        let mut place = Place {
            base,
            path: Vec::new(),
        };
        for axis in if deep { vec![2, 1, 0] } else { vec![1, 0] } {
            let Some((at, offset)) = inner.get(axis).zip(offsets.get(axis)) else {
                continue;
            };
            let index = match offset {
                Offset::Known(0) => *at,
                Offset::Known(o) => {
                    let step = self.constant(Scalar::U32, o.unsigned_abs());
                    let op = if *o < 0 { BinaryOp::Sub } else { BinaryOp::Add };
                    self.binary(op, *at, step, line)?
                }
                Offset::Value(v) => {
                    let step = self.cast(Scalar::U32, *v, line)?;
                    self.binary(BinaryOp::Add, *at, step, line)?
                }
            };
            place = place.step(Step::Index(index));
        }
        let val = self.load(&Src::Place(place), line)?;
        self.value_of(&val, line)
    }

    fn loaded_neighbour(
        &mut self,
        src: &Src,
        offsets: [Offset; 3],
        array: &Ty,
        element: &Ty,
        line: u32,
    ) -> Result<Value> {
        let (edge, at, size, idx) = {
            let grid = self.grid(line)?;
            (grid.edge, grid.at, grid.size, grid.idx)
        };
        let array = self.ty(array);
        let load = |this: &mut Self, index| {
            let src = this.element(src.clone(), index, &array, line)?;
            let val = this.load(&src, line)?;
            this.value_of(&val, line)
        };
        if let (Edge::Interior, Some(way)) = (edge, known(offsets)) {
            // Every neighbour exists: its index is a fixed way off.
            let index = self.near_index(idx, way, size, line)?;
            return load(self, index);
        }
        let mut coordinates = Vec::new();
        let mut inside = self.bool(true);
        for ((offset, at), size) in offsets.into_iter().zip(at).zip(size) {
            let (coordinate, exists) = self.along(at, size, offset, edge, line)?;
            inside = self.binary(BinaryOp::And, inside, exists, line)?;
            coordinates.push(coordinate);
        }
        let [x, y, z] = coordinates[..] else {
            return Err(self.error(line, "a neighbour has three coordinates", ""));
        };
        let index = self.linear([x, y, z], size, line)?;
        let Edge::Constant(outside) = edge else {
            return load(self, index);
        };
        if self.is(inside, true) {
            return load(self, index);
        }
        let s = match self.ir_type(element, line)? {
            Type::Scalar(s) => s,
            other => {
                return Err(self.error(
                    line,
                    format!("outside of the grid is a constant, but its cells are `{other}`"),
                    "choose another edge rule",
                ));
            }
        };
        let then = self.branch(|this| load(this, index).map(Val::Value))?;
        let otherwise = self.branch(|this| this.outside(s, outside, line).map(Val::Value))?;
        let val = self.join(inside, then, otherwise, element, line)?;
        self.value_of(&val, line)
    }

    /// The constant outside of the grid, as `as` converts it.
    pub(super) fn outside(&mut self, s: Scalar, value: f64, line: u32) -> Result<Value> {
        if s == Scalar::Bool {
            return Err(self.error(
                line,
                "outside of the grid is a number, but its cells are `bool`",
                "choose another edge rule",
            ));
        }
        Ok(self.constant(s, crate::ops::eval::eval_cast(Scalar::F64, s, value.to_bits())))
    }

    /// `(z * height + y) * width + x`.
    pub(super) fn linear(&mut self, at: [Value; 3], size: [Value; 3], line: u32) -> Result<Value> {
        let [x, y, z] = at;
        let [width, height, _] = size;
        let mut row = y;
        if self.known(z) != Some(0) {
            let layers = self.binary(BinaryOp::Mul, z, height, line)?;
            row = self.binary(BinaryOp::Add, layers, y, line)?;
        }
        let start = self.binary(BinaryOp::Mul, row, width, line)?;
        self.binary(BinaryOp::Add, start, x, line)
    }

    /// The index at a known offset from an index.
    fn near_index(&mut self, idx: Value, way: [i64; 3], size: [Value; 3], line: u32) -> Result<Value> {
        let s = self.usize_scalar();
        let [width, height, _] = size;
        let mut index = idx;
        for (axis, offset) in way.into_iter().enumerate().rev() {
            if offset == 0 {
                continue;
            }
            let mut step = match axis {
                0 => self.constant(s, 1),
                1 => width,
                _ => self.binary(BinaryOp::Mul, width, height, line)?,
            };
            if offset.unsigned_abs() != 1 {
                let times = self.constant(s, offset.unsigned_abs());
                step = self.binary(BinaryOp::Mul, step, times, line)?;
            }
            let op = if offset < 0 { BinaryOp::Sub } else { BinaryOp::Add };
            index = self.binary(op, index, step, line)?;
        }
        Ok(index)
    }

    /// A neighbour's coordinate under the rule at the edge, and whether it exists.
    fn along(
        &mut self,
        at: Value,
        size: Value,
        offset: Offset,
        edge: Edge,
        line: u32,
    ) -> Result<(Value, Value)> {
        let yes = self.bool(true);
        if matches!(offset, Offset::Known(0)) {
            return Ok((at, yes));
        }
        let s = self.usize_scalar();
        let signed = if s == Scalar::U64 {
            Scalar::I64
        } else {
            Scalar::I32
        };
        let offset = match offset {
            Offset::Known(o) => self.constant(signed, o as u64),
            Offset::Value(v) => self.cast(signed, v, line)?,
        };
        let at = self.bitcast(signed, at, line)?;
        let to = self.binary(BinaryOp::Add, at, offset, line)?;
        if self.noted.is_some() {
            let zero = self.constant(signed, 0);
            let end = self.bitcast(signed, size, line)?;
            let from = self.binary(BinaryOp::Ge, to, zero, line)?;
            let below = self.binary(BinaryOp::Lt, to, end, line)?;
            let inside = self.binary(BinaryOp::And, from, below, line)?;
            self.note(super::INSIDE, inside, line)?;
        }
        self.fold(to, size, edge, line)
    }

    /// A signed coordinate under the rule at the edge as `usize`, and whether it lies in the grid.
    pub(super) fn fold(&mut self, to: Value, size: Value, edge: Edge, line: u32) -> Result<(Value, Value)> {
        let signed = self.num_of(to, line)?;
        let s = signed.to_unsigned();
        let yes = self.bool(true);
        match edge {
            Edge::Interior | Edge::Constant(_) => {
                // A negative one is a great unsigned one.
                let to = self.bitcast(s, to, line)?;
                let exists = self.binary(BinaryOp::Lt, to, size, line)?;
                Ok((to, exists))
            }
            Edge::Clamp => {
                let zero = self.constant(signed, 0);
                let one = self.constant(signed, 1);
                let end = self.bitcast(signed, size, line)?;
                let end = self.binary(BinaryOp::Sub, end, one, line)?;
                let to = self.binary(BinaryOp::Min, to, end, line)?;
                let to = self.binary(BinaryOp::Max, to, zero, line)?;
                Ok((self.bitcast(s, to, line)?, yes))
            }
            Edge::Wrap => {
                let end = self.bitcast(signed, size, line)?;
                let low = self.constant(signed, 0);
                let under = self.binary(BinaryOp::Lt, to, low, line)?;
                let over = self.binary(BinaryOp::Ge, to, end, line)?;
                let off = self.binary(BinaryOp::Or, under, over, line)?;
                // The division only where it is needed.
                let then = self.branch(|this| {
                    let rest = this.binary(BinaryOp::Rem, to, end, line)?;
                    let zero = this.constant(signed, 0);
                    let negative = this.binary(BinaryOp::Lt, rest, zero, line)?;
                    let moved = this.binary(BinaryOp::Add, rest, end, line)?;
                    this.ternary(crate::ops::TernaryOp::Select, negative, moved, rest, line)
                        .map(Val::Value)
                })?;
                let otherwise = self.branch(|_| Ok(Val::Value(to)))?;
                let ty = Ty::Scalar(if signed == Scalar::I64 {
                    perpetua_syntax::Scalar::I64
                } else {
                    perpetua_syntax::Scalar::I32
                });
                let val = self.join(off, then, otherwise, &ty, line)?;
                let to = self.value_of(&val, line)?;
                Ok((self.bitcast(s, to, line)?, yes))
            }
        }
    }
}

/// The offsets, where all are known.
fn known(offsets: [Offset; 3]) -> Option<[i64; 3]> {
    let one = |o| match o {
        Offset::Known(o) => Some(o),
        Offset::Value(_) => None,
    };
    let [x, y, z] = offsets;
    Some([one(x)?, one(y)?, one(z)?])
}
