//! Rows of linear algebra, which the host computes: decompositions, equations, and what is made of them.

use std::panic::Location;

use super::composed::composed;
use crate::algebra::{Kind, permutation};
use crate::dtype::DType;
use crate::node::Tensor;
use crate::place::here;

composed! {
    lu(x) -> [(Tensor, Tensor, Tensor)] "x = p l u, by faer" "Of the matrices of the last two axes: a permutation, a lower triangle with ones on its diagonal, and an upper one." {
        let [l, u, order] = parts(x, Kind::Lu);
        (permutation(&order), l, u)
    }
    qr(x) -> [(Tensor, Tensor)] "x = q r, by faer" "An orthonormal basis of the columns, as many as the shorter side has, and an upper triangle." {
        let [q, r] = parts(x, Kind::Qr { complete: false });
        (q, r)
    }
    qr_complete(x) -> [(Tensor, Tensor)] "x = q r, by faer" "The same with a basis of the whole space; it has no gradient." {
        let [q, r] = parts(x, Kind::Qr { complete: true });
        (q, r)
    }
    cholesky(x) "x = l l^T, by faer" "The lower triangle of symmetric, positive definite matrices, of which the lower triangle is read; its gradient is symmetric." {
        let [l] = parts(x, Kind::Cholesky);
        l
    }
    svd(x) -> [(Tensor, Tensor, Tensor)] "x = u diag(s) v, by faer" "Singular vectors, singular values from the largest down, and the other singular vectors, transposed: as many as the shorter side has. Gradients of vectors need values that differ." {
        let [u, s, v] = parts(x, Kind::Svd);
        (u, flat(&s), v)
    }
    svdvals(x) "svd" "The singular values, from the largest down." { x.svd().1 }
    eigh(x) -> [(Tensor, Tensor)] "x = v diag(w) v^T, by faer" "Of symmetric matrices, of which the lower triangle is read: eigenvalues from the smallest up, and eigenvectors as columns. Gradients of vectors need values that differ, and are symmetric." {
        let [w, v] = parts(x, Kind::Eigh);
        (flat(&w), v)
    }
    eigvalsh(x) "eigh" "The eigenvalues of symmetric matrices, from the smallest up." { x.eigh().0 }
    solve(x, y: &Tensor) "x^-1 y, by the LU decomposition of faer" "What the matrices have to be multiplied by to give `y`: a vector, or matrices of columns. A singular matrix is an error." {
        let at = here(Location::caller());
        let dtype = crate::dtype::promote(x.real(at).dtype(), y.real(at).dtype()).unwrap_or(DType::F32);
        let found = match y.rank() {
            1 => {
                let column = x.solved(&y.expand_dims(1), at);
                if column.error().is_some() { column } else { column.squeeze(-1) }
            }
            _ => x.solved(y, at),
        };
        found.cast_at(dtype, at)
    }
    inv(x) "solve(x, eye)" "The inverse. A singular matrix is an error." {
        let n = x.shape().last().copied().unwrap_or(0);
        x.solve(&Tensor::eye(n, n, x.real(Location::caller()).dtype(), x.device()))
    }
    det(x) "product of the LU decomposition's diagonal" "The determinant; it has a gradient where the matrix is singular, too." {
        let [found] = parts(x, Kind::Det);
        scalar(&found)
    }
    slogdet(x) -> [(Tensor, Tensor)] "sign and logarithm of det" "The sign of the determinant, and the logarithm of its magnitude: 0 and minus infinity where that is 0." {
        let [found] = parts(x, Kind::Slogdet);
        (scalar(&found.part_of(found.rank().saturating_sub(1), ..1)), scalar(&found.part_of(found.rank().saturating_sub(1), 1..2)))
    }
    pinv(x, least: Option<f64>) "v^T diag(1 / s) u^T, by the SVD of faer" "The pseudoinverse. Singular values of at most `least` of the largest count as 0; by itself the longer side times the type's precision." {
        let [found] = parts(x, Kind::Pinv { least: smallest(x, least) });
        found
    }
    lstsq(x, y: &Tensor) "pinv(x) y" "The shortest of the vectors, or matrices of columns, that bring `x` times them closest to `y`." { x.pinv(None).matmul(y) }
    matrix_rank(x, least: Option<f64>) "sum(svdvals(x) > least max(svdvals(x)))" "How many singular values count, as for `pinv`, as `i32`." {
        let s = x.svdvals();
        match s.shape().last() {
            // Nothing has a largest value.
            Some(0) => s.sum(-1).cast(DType::I32),
            _ => s.greater(s.max_keep(-1) * smallest(x, least)).cast(DType::I32).sum(-1),
        }
    }
    matrix_norm_of(x, norm: MatrixNorm) "by sums of magnitudes or singular values" "A norm of the matrices of the last two axes." {
        match norm {
            MatrixNorm::Frobenius => x.matrix_norm(),
            MatrixNorm::Nuclear => x.svdvals().sum(-1),
            MatrixNorm::Spectral => x.svdvals().max(-1),
            MatrixNorm::SmallestSpectral => x.svdvals().min(-1),
            MatrixNorm::Columns => x.abs().sum(-2).max(-1),
            MatrixNorm::SmallestColumns => x.abs().sum(-2).min(-1),
            MatrixNorm::Rows => x.abs().sum(-1).max(-1),
            MatrixNorm::SmallestRows => x.abs().sum(-1).min(-1),
        }
    }
}

/// Which norm of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixNorm {
    /// The root of the sum of squares: NumPy's `"fro"`.
    Frobenius,
    /// The sum of singular values: `"nuc"`.
    Nuclear,
    /// The largest singular value: 2.
    Spectral,
    /// The smallest one: -2.
    SmallestSpectral,
    /// The largest sum of magnitudes of a column: 1.
    Columns,
    /// The smallest one: -1.
    SmallestColumns,
    /// The largest sum of magnitudes of a row: infinity.
    Rows,
    /// The smallest one: minus infinity.
    SmallestRows,
}

fn parts<const N: usize>(x: &Tensor, kind: Kind) -> [Tensor; N] {
    let at = here(Location::caller());
    let found = x.algebra_parts(kind, at);
    std::array::from_fn(|part| {
        let missing = || {
            x.refuse(
                "linalg",
                &[],
                "it has fewer results; this is a mistake in Perpetua, please report it",
                at,
            )
        };
        found.get(part).cloned().unwrap_or_else(missing)
    })
}

// One row as a vector.
fn flat(of: &Tensor) -> Tensor {
    if of.error().is_some() {
        of.clone()
    } else {
        of.squeeze(-2)
    }
}

fn scalar(of: &Tensor) -> Tensor {
    if of.error().is_some() {
        of.clone()
    } else {
        of.squeeze([-2, -1])
    }
}

// As NumPy: the longer side times the precision.
fn smallest(x: &Tensor, least: Option<f64>) -> f64 {
    let sides = x.shape().iter().rev().take(2);
    let longer = sides.max().copied().unwrap_or(0) as f64;
    let precision = if x.dtype() == DType::F64 {
        f64::EPSILON
    } else {
        f64::from(f32::EPSILON)
    };
    least.unwrap_or(longer * precision)
}
