//! Rows of linear algebra as functions of six numbers, for gradients.

use perpetua_tensor::{MatrixNorm, Tensor};

/// A row's result, if it is one of linear algebra.
pub(crate) fn composed(name: &str, x: &Tensor) -> Option<Tensor> {
    let tall = x.reshape([3, 2]);
    let wide = x.reshape([2, 3]);
    let square = tall.matmul(&wide) + Tensor::eye(3, 3, x.dtype(), x.device());
    // Symmetric, with eigenvalues that differ.
    let positive = tall.matmul(tall.transpose()) + Tensor::eye(3, 3, x.dtype(), x.device());
    let all = |parts: &[Tensor]| {
        let flat = |part: &Tensor| part.reshape([-1]).square();
        let rest: Vec<Tensor> = parts[1..].iter().map(flat).collect();
        flat(&parts[0]).concat(&rest.iter().collect::<Vec<_>>(), 0)
    };
    // Signs of vectors are arbitrary: projections are not.
    let turned = |u: &Tensor, s: &Tensor, v: &Tensor| (u * s.exp().expand_dims(-2)).matmul(v);
    Some(match name {
        "lu" => {
            let of = |x: &Tensor| {
                let (p, l, u) = x.lu();
                p.matmul(l.square()).reshape([-1]).concat(&[&u.reshape([-1])], 0)
            };
            of(&tall).concat(&[&of(&wide), &of(&square)], 0)
        }
        "qr" => {
            let of = |x: &Tensor| {
                let (q, r) = x.qr();
                all(&[q, r])
            };
            of(&tall).concat(&[&of(&wide), &of(&square)], 0)
        }
        // It has none: its rows are tested in `algebra.rs`.
        "qr_complete" => tall.qr_complete().0.detach().equal(9.0).any(..).select(0.0, x),
        "cholesky" => positive.cholesky(),
        "svd" => {
            let of = |x: &Tensor| {
                let (u, s, v) = x.svd();
                turned(&u, &s, &v)
            };
            of(&tall).matmul(of(&wide)) + of(&square)
        }
        "svdvals" => wide.svdvals(),
        "eigh" => {
            let (w, v) = positive.eigh();
            turned(&v, &(&w * 0.1), &v.transpose()) + w
        }
        "eigvalsh" => positive.eigvalsh(),
        "solve" => square.solve(&tall).matmul(&wide) + positive.solve(&square.sum(1)),
        "inv" => square.inv(),
        "det" => square.det() + positive.det() * 0.1,
        "slogdet" => square.slogdet().1,
        "pinv" => tall.pinv(None).concat(&[&wide.pinv(None).transpose()], 0),
        "lstsq" => tall.lstsq(&x.slice([perpetua_tensor::Slice::from(..3)])),
        "matrix_rank" => x * wide.matrix_rank(None).equal(2).select(1.0, 0.0).cast(x.dtype()),
        "matrix_norm_of" => {
            use MatrixNorm::*;
            let of = |norm| wide.matrix_norm_of(norm);
            let norms = [
                Nuclear,
                Spectral,
                SmallestSpectral,
                Columns,
                SmallestColumns,
                Rows,
                SmallestRows,
            ];
            norms.into_iter().fold(of(Frobenius), |sum, norm| sum + of(norm))
        }
        _ => return None,
    })
}
