//! Sorting, and searching in what is sorted: networks of comparisons over views, so that they fuse and run like any other operators.

use crate::dtype::{DType, number};
use crate::node::Tensor;
use crate::shape::Shape;

impl Tensor {
    /// The index along an axis of what is first, second and so on. Equal elements stay in their order; NaN is last.
    ///
    /// By Batcher's bitonic network: of `n` elements, rounded up to a power of two, `log2(n) (log2(n) + 1) / 2` comparisons each.
    pub(crate) fn order_of(&self, axis: usize, descending: bool) -> Tensor {
        let at = here!();
        let (rank, n) = (self.rank(), self.shape()[axis]);
        let own = self.detached(at);
        let own = if own.0.dtype == DType::Bool {
            own.cast(DType::U8)
        } else {
            own
        };
        let mut axes: Vec<isize> = (0..rank as isize)
            .filter(|other| *other != axis as isize)
            .collect();
        axes.push(axis as isize);
        let last = own.permute(&axes[..]);
        let mut back = vec![0; rank];
        axes.iter()
            .enumerate()
            .for_each(|(place, axis)| back[*axis as usize] = place as isize);
        if let Some(index) = crate::place::inside(at, || last.order_on_host(descending)) {
            return index.permute(&back[..]);
        }
        let rows = self.len() / n.max(1);
        let full = n.next_power_of_two();
        let dtype = last.0.dtype;
        let fill = match (dtype.is_float(), descending) {
            (true, _) => number(dtype, f64::NAN),
            (false, true) => number(dtype, f64::NEG_INFINITY),
            (false, false) => number(dtype, f64::INFINITY),
        };
        let (starts, steps): (Shape, Shape) = ([0, 0].into_iter().collect(), [1, 1].into_iter().collect());
        let keys = last
            .reshaped(&[rows, n], at)
            .padded(starts, steps, &[rows, full], fill, at);
        let mut pair = [keys, Tensor::coordinates([rows, full], 1, self.device())];
        let mut sorted = 1;
        while sorted < full {
            // Two sorted runs, the second backwards, are sorted by halves.
            let mut half = sorted;
            while half > 0 {
                let shape = [rows, full / (2 * half), 2, half];
                let turned: &[isize] = if half == sorted { &[2, 3] } else { &[2] };
                pair = exchange(&pair.map(|part| part.reshaped(&shape, at)), turned, descending);
                half /= 2;
            }
            sorted *= 2;
        }
        let [_, index] = pair;
        let index = index.reshaped(&[rows, full], at);
        let index = index.slice([crate::Slice::from(..), crate::Slice::from(..n as isize)]);
        index.reshaped(last.shape(), at).permute(&back[..])
    }
}

// Each keeps of itself and its partner what belongs in its half.
fn exchange([key, index]: &[Tensor; 2], turned: &[isize], descending: bool) -> [Tensor; 2] {
    let [other_key, other_index] = [key, index].map(|part| part.flip(turned));
    let precedes = |a: &Tensor, b: &Tensor| {
        let own = if descending { a.greater(b) } else { a.less(b) };
        match a.dtype().is_float() {
            true => own.logical_or(b.isnan().logical_and(a.isnan().invert())),
            false => own,
        }
    };
    let is_equal = precedes(&other_key, key)
        .invert()
        .logical_and(index.less(&other_index));
    let is_first = precedes(key, &other_key).logical_or(is_equal);
    let is_low = Tensor::coordinates(key.shape(), 2, key.device()).equal(0);
    let goes = is_first.logical_xor(is_low);
    [(key, other_key), (index, other_index)].map(|(own, other)| goes.select(other, own))
}

/// How many elements of a sorted vector are before each value: all that are less, or those that are equal, too.
pub(crate) fn places_in(sorted: &Tensor, values: &Tensor, right: bool) -> Tensor {
    let at = here!();
    let n = sorted.len();
    let mut place = values.fixed(0.0, at).cast_at(DType::I32, at);
    let flat = |x: &Tensor| x.reshape([-1]);
    let mut step = match n {
        0 => 0,
        n => n.next_power_of_two(),
    };
    while step > 0 {
        let next = &place + step as i64;
        let is_there = next.less_equal(n as i64);
        let before = sorted
            .gather(0, &flat(&(next.minimum(n as i64) - 1)))
            .reshaped(values.shape(), at);
        let is_before = if right {
            before.less_equal(values)
        } else {
            before.less(values)
        };
        place = is_there.logical_and(is_before).select(next, place);
        step /= 2;
    }
    place
}
