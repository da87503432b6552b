//! What goes by an index: elements that are looked up, and runs whose bounds are elements themselves.

use perpetua_device::LaunchConfig;
use perpetua_ir::ops::BinaryOp;

use super::build::{BLOCK, Build, Built, Elsewhere};
use super::index::{Along, Index};
use super::recipe::{Form, Id, Place, Stage, Step};
use crate::dtype::DType;
use crate::node::Op;
use crate::order::Order;
use crate::shape::count;

impl Build<'_> {
    pub(super) fn segments(mut self, number: usize) -> Result<Built, Elsewhere> {
        let node = &self.entry(number).tensor.0;
        let (Op::Segments { how }, &[source, begin, end, ..]) = (&node.op, &self.entry(number).sources[..])
        else {
            return Err(Elsewhere);
        };
        let total = count(&node.shape);
        let row = self.steps.place(Place::Row);
        let lane = self.steps.place(Place::Lane);
        let mut along = self.indices.divide(&mut self.steps, row, &node.shape);
        let run = Index {
            flat: along.first().copied(),
            along: None,
        };
        let mut bounds = [0; 2];
        for (bound, source) in bounds.iter_mut().zip([begin, end]) {
            let value = self.value(source, &run)?;
            *bound = self.steps.cast(value, DType::U32);
        }
        if let Some(first) = along.first_mut() {
            *first = lane;
        }
        let element = Index {
            flat: None,
            along: Some(along),
        };
        let value = self.value(source, &element)?;
        let ty = how.accumulator(self.entry(source).tensor.0.dtype);
        let value = self.steps.cast(value, ty);
        self.done.push(number);
        let result = self.combined(number)?;
        let form = Form::Rows {
            order: Order::Serial,
            rows: self.steps.size(total),
            first: bounds[0],
            columns: bounds[1],
            stages: vec![Stage { how: *how, value, ty }],
        };
        Ok(self.finish(form, (result, row), true, LaunchConfig::linear(total, BLOCK)))
    }

    // What is looked up is in memory: a place that is not there leads to an element that is not there, which is a fault.
    pub(super) fn gather(&mut self, number: usize, axis: usize, index: &Index) -> Result<Id, Elsewhere> {
        let entry = self.entry(number);
        let &[source, by] = &entry.sources[..] else {
            return Err(Elsewhere);
        };
        if !(self.is_stored)(source) {
            return Err(Elsewhere);
        }
        let (shape, from) = (&entry.tensor.0.shape, self.source_shape(number, 0));
        let own = self.indices.along(&mut self.steps, index, shape);
        let zero = self.steps.size(0);
        let repeated = |extents: &[usize]| -> Along {
            let each = own.iter().zip(extents);
            each.map(|(i, n)| if *n == 1 { zero } else { *i }).collect()
        };
        let extents = self.source_shape(number, 1);
        let place = match extents == *shape {
            true => self.value(by, index)?,
            false => {
                let along = Some(repeated(&extents));
                self.value(by, &Index { flat: None, along })?
            }
        };
        let place = self.steps.cast(place, DType::U32);
        let n = self.steps.size(from[axis]);
        // Negative ones are great numbers, to which the extent is added once: they wrap.
        let first_negative = self.steps.push(Step::Fixed(1 << 31), DType::U32);
        let is_negative = self.steps.binary(BinaryOp::Ge, place, first_negative);
        let from_end = self.steps.binary(BinaryOp::Add, place, n);
        let place = self.steps.select(is_negative, from_end, place);
        let is_there = self.steps.binary(BinaryOp::Lt, place, n);
        let mut along = repeated(&from);
        along[axis] = place;
        let index = Index {
            flat: None,
            along: Some(along),
        };
        let flat = match from[axis] {
            // Of one place the number does not depend on it.
            1 => {
                let flat = self.indices.flat(&mut self.steps, &index, &from);
                self.steps.binary(BinaryOp::Add, flat, place)
            }
            _ => self.indices.flat(&mut self.steps, &index, &from),
        };
        let nowhere = self.steps.push(Step::Fixed(u64::from(u32::MAX)), DType::U32);
        let flat = self.steps.select(is_there, flat, nowhere);
        Ok(self.load_at(source, flat))
    }
}
