//! What the host computes of matrices, one after the other, by faer. Must not know tensors.

use bytemuck::{NoUninit, Pod};
use faer::linalg::solvers::{PartialPivLu, Solve, Svd};
use faer::traits::RealField;
use faer::{Mat, MatRef, Side};

/// What is computed of matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// L, U, and the row of the operand that each of theirs stands for.
    Lu,
    /// Q and R.
    Qr {
        complete: bool,
    },
    Cholesky,
    /// U, S and V transposed.
    Svd,
    /// Eigenvalues and eigenvectors.
    Eigh,
    /// Of two operands.
    Solve,
    Det,
    /// The derivative of the determinant.
    Cofactors,
    /// Sign and logarithm of the determinant.
    Slogdet,
    /// What is less than this part of the largest singular value counts as zero.
    Pinv {
        least: f64,
    },
}

/// A type in which it is computed.
pub(super) trait Real: RealField + Pod + NoUninit + Into<f64> + Copy {
    fn of(value: f64) -> Self;
}

impl Real for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }
}

impl Real for f64 {
    fn of(value: f64) -> f64 {
        value
    }
}

/// Of each matrix of operands, given with its rows and columns, what `kind` says, one behind the other. The error says which one is wrong, and how.
pub(super) fn all<T: Real>(
    kind: Kind,
    operands: &[(Vec<T>, [usize; 2])],
    count: usize,
) -> Result<Vec<T>, String> {
    let mut found = Vec::new();
    for number in 0..count {
        let one = |(values, [rows, columns]): &(Vec<T>, [usize; 2])| {
            let size = rows * columns;
            let values = &values[number * size..][..size];
            let place = values.iter().position(|x| !Into::<f64>::into(*x).is_finite());
            match place {
                Some(place) => Err(format!(
                    "of matrix {number}, element [{}, {}] is {}, but only finite ones are computed with",
                    place / columns,
                    place % columns,
                    Into::<f64>::into(values[place])
                )),
                None => Ok(MatRef::from_row_major_slice(values, *rows, *columns).to_owned()),
            }
        };
        let matrices = operands
            .iter()
            .map(one)
            .collect::<Result<Vec<Mat<T>>, String>>()?;
        compute(kind, &matrices, &mut found).map_err(|rule| format!("matrix {number} {rule}"))?;
    }
    Ok(found)
}

fn compute<T: Real>(kind: Kind, operands: &[Mat<T>], found: &mut Vec<T>) -> Result<(), String> {
    let Some(a) = operands.first() else {
        return Ok(());
    };
    let (m, n) = a.shape();
    let is_empty = m == 0 || n == 0;
    match kind {
        Kind::Det => found.push(T::of(match is_empty {
            true => 1.0,
            false => {
                let (sign, factors) = determinant(&a.partial_piv_lu());
                factors.iter().fold(sign, |product, x| product * x)
            }
        })),
        Kind::Slogdet => {
            let (sign, factors) = match is_empty {
                true => (1.0, Vec::new()),
                false => determinant(&a.partial_piv_lu()),
            };
            let sign = factors.iter().fold(sign, |sign, x| match *x {
                0.0 => 0.0,
                x => sign * x.signum(),
            });
            let log: f64 = factors.iter().map(|x| x.abs().ln()).sum();
            found.extend([T::of(sign), T::of(log)]);
        }
        // Of no columns any basis is one.
        Kind::Qr { complete: true } if is_empty => append(Mat::identity(m, m).as_ref(), found),
        Kind::Lu if is_empty => found.extend((0..m).map(|row| T::of(row as f64))),
        _ if is_empty => {}
        Kind::Lu => {
            let lu = a.partial_piv_lu();
            append(lu.L(), found);
            append(lu.U(), found);
            found.extend(lu.P().arrays().0.iter().map(|row| T::of(*row as f64)));
        }
        Kind::Qr { complete } => {
            let qr = a.qr();
            match complete {
                true => {
                    append(qr.compute_Q().as_ref(), found);
                    append(qr.thin_R(), found);
                    found.resize(found.len() + (m - m.min(n)) * n, T::of(0.0));
                }
                false => {
                    append(qr.compute_thin_Q().as_ref(), found);
                    append(qr.thin_R(), found);
                }
            }
        }
        Kind::Cholesky => match a.llt(Side::Lower) {
            Ok(factor) => append(factor.L(), found),
            Err(_) => return Err("is not positive definite: add to its diagonal, or take `eigh`".into()),
        },
        Kind::Svd => {
            let svd = decomposed(a)?;
            append(svd.U(), found);
            found.extend(svd.S().column_vector().iter().copied());
            append(svd.V().transpose(), found);
        }
        Kind::Eigh => {
            let Ok(of) = a.self_adjoint_eigen(Side::Lower) else {
                return Err(SLOW.into());
            };
            found.extend(of.S().column_vector().iter().copied());
            append(of.U(), found);
        }
        Kind::Solve => {
            let lu = a.partial_piv_lu();
            if determinant(&lu).1.contains(&0.0) {
                return Err("is singular: `lstsq` has the shortest solution, `pinv` an inverse".into());
            }
            if let Some(right) = operands.get(1) {
                append(lu.solve(right).as_ref(), found);
            }
        }
        Kind::Cofactors => {
            let svd = decomposed(a)?;
            let sign = |of: MatRef<'_, T>| {
                let (sign, factors) = determinant(&of.partial_piv_lu());
                factors.iter().fold(sign, |sign, x| sign * x.signum())
            };
            let signs = sign(svd.U()) * sign(svd.V());
            let all: Vec<f64> = svd.S().column_vector().iter().map(|s| (*s).into()).collect();
            let others = |own: usize| -> f64 {
                let others = all.iter().enumerate().filter(|(place, _)| *place != own);
                others.map(|(_, s)| s).product()
            };
            let scaled = Mat::from_fn(m, n, |i, j| svd.U()[(i, j)] * T::of(signs * others(j)));
            append((scaled * svd.V().transpose()).as_ref(), found);
        }
        Kind::Pinv { least } => {
            let svd = decomposed(a)?;
            let all: Vec<f64> = svd.S().column_vector().iter().map(|s| (*s).into()).collect();
            let bound = all.iter().fold(0.0f64, |most, s| most.max(*s)) * least;
            let inverse = |s: f64| if s > bound { 1.0 / s } else { 0.0 };
            let k = m.min(n);
            let scaled = Mat::from_fn(n, k, |i, j| svd.V()[(i, j)] * T::of(inverse(all[j])));
            append((scaled * svd.U().transpose()).as_ref(), found);
        }
    }
    Ok(())
}

const SLOW: &str = "has a decomposition that did not converge: scale it";

fn decomposed<T: Real>(a: &Mat<T>) -> Result<Svd<T>, String> {
    a.thin_svd().map_err(|_| SLOW.to_owned())
}

// The sign of the rows' order, and the factors whose product is the determinant.
fn determinant<T: Real>(lu: &PartialPivLu<T>) -> (f64, Vec<f64>) {
    let order = lu.P().arrays().0;
    let mut seen = vec![false; order.len()];
    let mut sign = 1.0;
    for start in 0..order.len() {
        let mut at = order[start];
        // A cycle of n is n - 1 exchanges.
        while !seen[start] && at != start {
            (seen[at], sign) = (true, -sign);
            at = order[at];
        }
    }
    let upper = lu.U();
    let factors = (0..upper.nrows().min(upper.ncols())).map(|i| upper[(i, i)].into());
    (sign, factors.collect())
}

fn append<T: Real>(of: MatRef<'_, T>, found: &mut Vec<T>) {
    for row in 0..of.nrows() {
        found.extend((0..of.ncols()).map(|column| of[(row, column)]));
    }
}
