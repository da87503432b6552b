//! Views of values that are known, as copies that the host makes: parts of rows move at once, where a kernel finds each element by its index. Must not know how
//! anything is computed.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use bytemuck::AnyBitPattern;
use perpetua_device::BackendKind;
use perpetua_ir::ops::BinaryOp;
use smallvec::SmallVec;

use crate::graph::Graph;
use crate::node::Op;
use crate::shape::Shape;

/// Smaller tensors are left to kernels.
const LARGE: usize = 16_384;
/// Longer chains of views, and more parts, are left to kernels, too.
const DEEP: usize = 64;
const MANY: usize = 64;
/// Where rows become columns, squares of so many elements a side are copied.
const SQUARE: usize = 32;

/// How a result is copied, part by part. A later part may write over an earlier one.
pub(crate) struct Copied {
    parts: Vec<Part>,
}

/// Elements that are copied, or filled with one value.
struct Part {
    /// The source and its first element, or a value's bits.
    from: From,
    /// The first element of the result.
    to: usize,
    axes: SmallVec<[Axis; 4]>,
}

#[derive(Clone, Copy)]
enum From {
    Source(usize, usize),
    Value(u64),
}

/// How many elements, and how far they are apart in the result and the source.
#[derive(Clone, Copy)]
struct Axis {
    count: usize,
    to: usize,
    from: isize,
}

/// Elements along an axis of an operation, and how far they are apart in the result.
#[derive(Clone, Copy)]
struct Along {
    start: usize,
    step: isize,
    count: usize,
    to: usize,
}

/// Elements of an operation.
#[derive(Clone)]
struct Region {
    along: SmallVec<[Along; 4]>,
    /// Where they begin in the result.
    to: usize,
    /// What is repeated: how often, and how far apart.
    repeats: SmallVec<[(usize, usize); 2]>,
}

// Of an operation all elements, one behind the other.
fn whole(shape: &[usize]) -> SmallVec<[Along; 4]> {
    let strides = compact(shape);
    let each = shape.iter().zip(strides);
    each.map(|(count, to)| Along {
        start: 0,
        step: 1,
        count: *count,
        to,
    })
    .collect()
}

fn compact(shape: &[usize]) -> Shape {
    let mut strides: Shape = shape.into();
    let mut stride = 1;
    for own in strides.iter_mut().rev() {
        stride *= std::mem::replace(own, stride);
    }
    strides
}

impl Copied {
    /// For an operation of a graph, if it is large, on the CPU, and made of views of known values and nothing else.
    pub(crate) fn of(graph: &Graph, number: usize) -> Option<Copied> {
        let tensor = &graph.0[number].tensor;
        if tensor.len() < LARGE || tensor.device().backend() != BackendKind::Cpu {
            return None;
        }
        let mut copied = Copied { parts: Vec::new() };
        let region = Region {
            along: whole(tensor.shape()),
            to: 0,
            repeats: SmallVec::new(),
        };
        copied.add(graph, number, region, 0)?;
        Some(copied)
    }

    /// The values that it reads.
    pub(crate) fn reads(&self) -> Vec<usize> {
        let sources = self.parts.iter().filter_map(|part| match part.from {
            From::Source(source, _) => Some(source),
            From::Value(_) => None,
        });
        let mut all: Vec<usize> = sources.collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn push(&mut self, from: From, strides: &[isize], region: &Region) -> Option<()> {
        let along = region.along.iter().zip(strides);
        let repeats = region.repeats.iter();
        let mut axes: SmallVec<[Axis; 4]> = repeats
            .map(|(count, to)| Axis {
                count: *count,
                to: *to,
                from: 0,
            })
            .chain(along.map(|(along, stride)| Axis {
                count: along.count,
                to: along.to,
                from: along.step * stride,
            }))
            .filter(|axis| axis.count != 1)
            .collect();
        // As they lie in the result; two that lie so in the source, too, are one.
        axes.sort_by_key(|axis| std::cmp::Reverse(axis.to));
        axes.dedup_by(|inner, outer| {
            let is_one =
                outer.to == inner.to * inner.count && outer.from == inner.from * inner.count as isize;
            if is_one {
                (outer.count, outer.to, outer.from) = (outer.count * inner.count, inner.to, inner.from);
            }
            is_one
        });
        self.parts.push(Part {
            from,
            to: region.to,
            axes,
        });
        (self.parts.len() <= MANY).then_some(())
    }

    // What a region of an operation is copied of. `None`: it is more than views.
    fn add(&mut self, graph: &Graph, number: usize, mut region: Region, depth: usize) -> Option<()> {
        if region.along.iter().any(|along| along.count == 0) {
            return Some(());
        }
        let entry = &graph.0[number];
        let shape = entry.tensor.shape();
        if entry.is_known {
            let strides: SmallVec<[isize; 4]> =
                compact(shape).iter().map(|stride| *stride as isize).collect();
            let starts = region.along.iter().zip(&strides);
            let first = starts.map(|(along, stride)| along.start * *stride as usize).sum();
            return self.push(From::Source(number, first), &strides, &region);
        }
        let &source = entry.sources.first().filter(|_| depth < DEEP)?;
        let below = graph.0[source].tensor.shape();
        match &entry.tensor.0.op {
            Op::Same | Op::Joined { .. } | Op::Hook(_) | Op::Checkpoint(_) => {}
            Op::Reshape => {
                let long = |shape: &[usize]| shape.iter().copied().filter(|n| *n != 1).collect::<Shape>();
                let is_whole = region.along.iter().zip(whole(shape)).all(|(own, all)| {
                    own.count == all.count && (all.count == 1 || (own.step, own.to) == (1, all.to))
                });
                if long(shape) == long(below) {
                    let mut left = region.along.iter().zip(shape).filter(|(_, n)| **n != 1);
                    let one = Along {
                        start: 0,
                        step: 1,
                        count: 1,
                        to: 0,
                    };
                    let each = below.iter().map(|n| match n {
                        1 => Some(one),
                        _ => left.next().map(|(along, _)| *along),
                    });
                    region.along = each.collect::<Option<_>>()?;
                } else if is_whole {
                    region.along = whole(below);
                } else if graph.0[source].is_known {
                    let strides: SmallVec<[isize; 4]> = compact(shape).iter().map(|n| *n as isize).collect();
                    let starts = region.along.iter().zip(&strides);
                    let first = starts.map(|(along, stride)| along.start * *stride as usize).sum();
                    return self.push(From::Source(source, first), &strides, &region);
                } else {
                    return None;
                }
            }
            Op::Permute { axes } => {
                let own = region.along.clone();
                axes.iter()
                    .zip(own)
                    .for_each(|(axis, along)| region.along[*axis] = along);
            }
            Op::Expand => {
                for (along, (own, from)) in region.along.iter_mut().zip(shape.iter().zip(below)) {
                    if own != from {
                        region.repeats.push((along.count, along.to));
                        (along.start, along.step, along.count) = (0, 1, 1);
                    }
                }
            }
            Op::Slice { starts, steps } => {
                for (along, (start, step)) in region.along.iter_mut().zip(starts.iter().zip(steps)) {
                    along.start = start + step * along.start;
                    along.step *= *step as isize;
                }
            }
            Op::Flip { axes } => {
                for axis in axes {
                    let along = &mut region.along[*axis];
                    (along.start, along.step) = (shape[*axis] - 1 - along.start, -along.step);
                }
            }
            Op::Pad { starts, steps, fill } => {
                let all = region.clone();
                let mut is_all = true;
                for (axis, along) in region.along.iter_mut().enumerate() {
                    let (start, step) = (starts[axis], steps[axis]);
                    if along.step != 1 && along.count != 1 {
                        return None;
                    }
                    // The first of the source's at or behind a place, and that place.
                    let first = |place: usize| place.saturating_sub(start).div_ceil(step).min(below[axis]);
                    let (begin, end) = (first(along.start), first(along.start + along.count));
                    let at = start + step * begin;
                    is_all &= end - begin == along.count;
                    if begin < end {
                        region.to += (at - along.start) * along.to;
                    }
                    *along = Along {
                        start: begin,
                        step: 1,
                        count: end - begin,
                        to: along.to * step,
                    };
                }
                if !is_all {
                    let strides: SmallVec<[isize; 4]> = shape.iter().map(|_| 0).collect();
                    self.push(From::Value(*fill), &strides, &all)?;
                }
            }
            // As `concat` has it: from a place along an axis on, others.
            Op::Select => {
                let (&[condition, yes, no], true) = (&entry.sources[..], depth < DEEP) else {
                    return None;
                };
                let (axis, place) = below_place(graph, condition)?;
                let along = region
                    .along
                    .get(axis)
                    .copied()
                    .filter(|along| along.step == 1 || along.count == 1)?;
                let first = place.saturating_sub(along.start).min(along.count);
                let mut rest = region.clone();
                region.along[axis].count = first;
                rest.along[axis].start += first;
                rest.along[axis].count -= first;
                rest.to += first * along.to;
                self.add(graph, yes, region, depth + 1)?;
                return self.add(graph, no, rest, depth + 1);
            }
            _ => return None,
        }
        self.add(graph, source, region, depth + 1)
    }

    /// Copies elements of so many bytes. `source`: the bytes of a value that it reads. All elements of `result` are written.
    pub(crate) fn run<'a>(
        &self,
        source: impl Fn(usize) -> &'a [u8],
        size: usize,
        result: &mut [MaybeUninit<u8>],
    ) {
        for part in &self.parts {
            let of_value;
            let (from, first) = match part.from {
                From::Source(number, first) => (source(number), first),
                From::Value(bits) => {
                    of_value = bits.to_le_bytes();
                    (&of_value[..size], 0)
                }
            };
            match size {
                1 => copy::<u8>(part, from, first, result),
                2 => copy::<u16>(part, from, first, result),
                4 => copy::<u32>(part, from, first, result),
                _ => copy::<u64>(part, from, first, result),
            }
        }
    }
}

// `coordinate < place`: the axis and the place.
fn below_place(graph: &Graph, number: usize) -> Option<(usize, usize)> {
    let entry = &graph.0[number];
    let (Op::Binary(BinaryOp::Lt), &[coordinate, place]) = (&entry.tensor.0.op, &entry.sources[..]) else {
        return None;
    };
    match (&graph.0[coordinate].tensor.0.op, &graph.0[place].tensor.0.op) {
        (Op::Coordinate { axis }, Op::Scalar { bits, .. }) => {
            Some((*axis, usize::try_from(*bits as i32).ok()?))
        }
        _ => None,
    }
}

fn copy<T: AnyBitPattern>(part: &Part, from: &[u8], first: usize, result: &mut [MaybeUninit<u8>]) {
    let source: Cow<'_, [T]> = match bytemuck::try_cast_slice(from) {
        Ok(source) => source.into(),
        Err(_) => from
            .chunks_exact(size_of::<T>())
            .map(bytemuck::pod_read_unaligned)
            .collect(),
    };
    // SAFETY: what may lack a value as bytes may lack one as elements; what does not begin at an element's address stays outside.
    let (_, result, _) = unsafe { result.align_to_mut::<MaybeUninit<T>>() };
    rows(&part.axes, &source, first as isize, result, part.to);
}

// Elements along axes, from one of the source and of the result on.
fn rows<T: Copy>(axes: &[Axis], source: &[T], at: isize, result: &mut [MaybeUninit<T>], to: usize) {
    match axes {
        [] => {
            result[to].write(source[at as usize]);
        }
        [inner] => row(inner, source, at, result, to),
        // Elements beside each other in the source lie apart in the result.
        [outer, inner] if outer.from != 0 && outer.from.abs() < inner.from.abs() => {
            for i in (0..outer.count).step_by(SQUARE) {
                for j in (0..inner.count).step_by(SQUARE) {
                    let part = Axis {
                        count: SQUARE.min(inner.count - j),
                        ..*inner
                    };
                    for i in i..outer.count.min(i + SQUARE) {
                        let at = at + i as isize * outer.from + j as isize * inner.from;
                        row(&part, source, at, result, to + i * outer.to + j * inner.to);
                    }
                }
            }
        }
        [outer, rest @ ..] => {
            for i in 0..outer.count {
                rows(
                    rest,
                    source,
                    at + i as isize * outer.from,
                    result,
                    to + i * outer.to,
                );
            }
        }
    }
}

fn row<T: Copy>(axis: &Axis, source: &[T], at: isize, result: &mut [MaybeUninit<T>], to: usize) {
    let Axis { count, to: far, from } = *axis;
    let begin = at as usize;
    if far == 1 {
        let result = result[to..to + count].iter_mut();
        let write = |(to, from): (&mut MaybeUninit<T>, &T)| {
            to.write(*from);
        };
        match from {
            0 => result.for_each(|to| {
                to.write(source[begin]);
            }),
            1 => result.zip(&source[begin..begin + count]).for_each(write),
            -1 => result
                .zip(source[begin + 1 - count..=begin].iter().rev())
                .for_each(write),
            from if from > 0 => result
                .zip(source[begin..].iter().step_by(from as usize))
                .for_each(write),
            from => result
                .zip(source[..=begin].iter().rev().step_by(from.unsigned_abs()))
                .for_each(write),
        }
        return;
    }
    for i in 0..count {
        result[to + i * far].write(source[(at + i as isize * from) as usize]);
    }
}
