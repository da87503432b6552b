//! Gradients of functions of matrices, made of other operators: what is differentiated twice follows.

use super::{Algebra, Kind, apart};
use crate::node::Tensor;

/// The gradients of the operands where the result's is `gradient`.
pub(super) fn of(
    algebra: &Algebra,
    operands: &[Tensor],
    result: &Tensor,
    gradient: &Tensor,
) -> Option<Vec<Option<Tensor>>> {
    let a = operands.first()?;
    let &[.., m, n] = a.shape() else { return None };
    let at = result.0.at;
    let parts = algebra.parts(m, n);
    let (values, slopes) = (apart(result, &parts, at), apart(gradient, &parts, at));
    let one = match (algebra.0, &values[..], &slopes[..]) {
        (Kind::Solve, ..) => {
            let right = t(a).solved(gradient, at);
            let left = -right.matmul(t(result));
            return Some(vec![Some(left), Some(right)]);
        }
        (Kind::Lu, [l, u, order], [dl, du, _]) => lu([m, n], [l, u, order], [dl, du]),
        (Kind::Qr { complete: false }, [q, r], [dq, dr]) => qr([m, n], a, [q, r], [dq, dr]),
        (Kind::Qr { .. }, ..) => return None,
        (Kind::Cholesky, [l], [dl]) => {
            let inner = lower(&t(l).matmul(dl), 0.5);
            symmetric(&from_right(&from_left(&t(l), &inner), l))
        }
        (Kind::Svd, [u, s, v], [du, ds, dv]) => svd([m, n], [u, s, v], [du, ds, dv]),
        (Kind::Eigh, [w, v], [dw, dv]) => {
            let distance = w - t(w);
            // Vectors keep their length.
            let inner = t(v).matmul(dv);
            let inner = inner.tril(-1) + inner.triu(1);
            let turned = quotient(&inner, &distance) + diagonal(dw);
            symmetric(&v.matmul(turned).matmul(t(v)))
        }
        (Kind::Det, [_], [dd]) => dd * a.function(Algebra(Kind::Cofactors), &[]).reshaped(a.shape(), at),
        (Kind::Cofactors, [c], [dc]) => {
            let back = t(&inverse(a));
            let along = (dc * &back).sum_keep([-2, -1]);
            along * c - c.matmul(t(dc)).matmul(back)
        }
        (Kind::Slogdet, ..) => {
            let log = gradient.part_of(gradient.rank() - 1, 1..2).expand_dims(-1);
            log * t(&inverse(a))
        }
        (Kind::Pinv { .. }, [p], [dp]) => {
            let (x, y) = (t(p), t(dp));
            let (rows, columns) = (&y - a.matmul(p.matmul(&y)), &y - y.matmul(p).matmul(a));
            rows.matmul(p).matmul(&x) + x.matmul(p).matmul(columns) - x.matmul(dp).matmul(&x)
        }
        _ => return None,
    };
    Some(vec![Some(one)])
}

fn t(of: &Tensor) -> Tensor {
    of.transpose()
}

fn symmetric(of: &Tensor) -> Tensor {
    (of + t(of)) * 0.5
}

fn inverse(of: &Tensor) -> Tensor {
    let n = of.shape().last().copied().unwrap_or(0);
    of.solved(&Tensor::eye(n, n, of.dtype(), of.device()), of.0.at)
}

// a⁻¹ b and b a⁻¹.
fn from_left(a: &Tensor, b: &Tensor) -> Tensor {
    a.solved(b, b.0.at)
}

fn from_right(b: &Tensor, a: &Tensor) -> Tensor {
    t(&t(a).solved(&t(b), b.0.at))
}

// The lower triangle, with a part of the diagonal.
fn lower(of: &Tensor, part: f64) -> Tensor {
    of.tril(-1) + (of.tril(0) - of.tril(-1)) * part
}

// Of rows of one, matrices with these on their diagonals.
fn diagonal(of: &Tensor) -> Tensor {
    let n = of.shape().last().copied().unwrap_or(0);
    Tensor::eye(n, n, of.dtype(), of.device()) * of
}

// Where nothing is divided by nothing, nothing: what does not turn has no place to turn to.
fn quotient(of: &Tensor, by: &Tensor) -> Tensor {
    let is_none = of.equal(0.0).logical_and(by.equal(0.0));
    of / is_none.select(1.0, by)
}

fn lu([m, n]: [usize; 2], [l, u, order]: [&Tensor; 3], [dl, du]: [&Tensor; 2]) -> Tensor {
    let k = m.min(n) as isize;
    let rows = l.rank() - 2;
    let top = |of: &Tensor| of.part_of(rows, ..k);
    let left = |of: &Tensor| of.part_of(rows + 1, ..k);
    let (l1, u1) = (top(l), left(u));
    let mut low = t(&l1).matmul(top(dl));
    let mut high = left(du).matmul(t(&u1));
    // What is beside the square, and below it.
    if n > m {
        low = low - du.part_of(rows + 1, k..).matmul(t(&u.part_of(rows + 1, k..)));
    }
    if m > n {
        high = high - t(&l.part_of(rows, k..)).matmul(dl.part_of(rows, k..));
    }
    let inner = low.tril(-1) + high.triu(0);
    let mut all = from_right(&from_left(&t(&l1), &inner), &t(&u1));
    if n > m {
        let beside = from_left(&t(&l1), &du.part_of(rows + 1, k..));
        all = all.concat(&[&beside], -1);
    }
    if m > n {
        let below = from_right(&dl.part_of(rows, k..), &t(&u1));
        all = all.concat(&[&below], -2);
    }
    permutation(order).matmul(all)
}

/// The matrix that brings rows to their places.
pub(crate) fn permutation(order: &Tensor) -> Tensor {
    let n = order.shape().last().copied().unwrap_or(0);
    let row = Tensor::coordinates([n, n], 0, order.device()).cast(order.dtype());
    order.equal(row).cast(order.dtype())
}

fn qr([m, n]: [usize; 2], a: &Tensor, [q, r]: [&Tensor; 2], [dq, dr]: [&Tensor; 2]) -> Tensor {
    let square = |q: &Tensor, r: &Tensor, dq: &Tensor, dr: &Tensor| {
        let inner = r.matmul(t(dr)) - t(dq).matmul(q);
        let inner = inner.tril(0) + t(&inner.tril(-1));
        from_right(&(dq + q.matmul(inner)), &t(r))
    };
    if m >= n {
        return square(q, r, dq, dr);
    }
    let (axis, k) = (a.rank() - 1, m as isize);
    let (r1, dr1) = (r.part_of(axis, ..k), dr.part_of(axis, ..k));
    let (beside, dr2) = (a.part_of(axis, k..), dr.part_of(axis, k..));
    let dq = dq + beside.matmul(t(&dr2));
    square(q, &r1, &dq, &dr1).concat(&[&q.matmul(dr2)], -1)
}

fn svd([m, n]: [usize; 2], [u, s, v]: [&Tensor; 3], [du, ds, dv]: [&Tensor; 3]) -> Tensor {
    let turned = |x: &Tensor, dx: &Tensor| {
        let inner = t(x).matmul(dx);
        &inner - t(&inner)
    };
    let squares = s.square();
    let distance = &squares - t(&squares);
    let (left, right) = (turned(u, du), turned(&t(v), &t(dv)));
    let inner = quotient(&left, &distance) * s + t(s) * quotient(&right, &distance) + diagonal(ds);
    let mut all = u.matmul(inner).matmul(v);
    if m > n {
        let outside = du - u.matmul(t(u).matmul(du));
        all = all + quotient(&outside, s).matmul(v);
    }
    if n > m {
        let outside = dv - dv.matmul(t(v)).matmul(v);
        all = all + u.matmul(quotient(&outside, &t(s)));
    }
    all
}
