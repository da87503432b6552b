//! Functions of matrices that the host computes (`host`), and their gradients (`slopes`). What has several results gives them in one row, of which
//! parts are taken. Must not know tables.

mod host;
mod slopes;

use std::panic::Location;

use perpetua_device::BackendKind;

use crate::dtype::DType;
use crate::node::{Function, HostValues, OnHost, Tensor};
use crate::shape::broadcast;
pub(crate) use host::Kind;
pub(crate) use slopes::permutation;

/// A function of matrices, as a recorded operation.
pub(crate) struct Algebra(pub(crate) Kind);

impl Algebra {
    /// Shapes of the results of a matrix, in their order.
    pub(crate) fn parts(&self, m: usize, n: usize) -> Vec<[usize; 2]> {
        let k = m.min(n);
        match self.0 {
            Kind::Lu => vec![[m, k], [k, n], [1, m]],
            Kind::Qr { complete: true } => vec![[m, m], [m, n]],
            Kind::Qr { complete: false } => vec![[m, k], [k, n]],
            Kind::Svd => vec![[m, k], [1, k], [k, n]],
            Kind::Eigh => vec![[1, n], [n, n]],
            Kind::Cholesky | Kind::Cofactors => vec![[n, n]],
            Kind::Det => vec![[1, 1]],
            Kind::Slogdet => vec![[1, 2]],
            Kind::Pinv { .. } => vec![[n, m]],
            Kind::Solve => Vec::new(),
        }
    }

    fn takes_squares(&self) -> bool {
        !matches!(self.0, Kind::Lu | Kind::Qr { .. } | Kind::Svd | Kind::Pinv { .. })
    }
}

impl Function for Algebra {
    fn name(&self) -> &'static str {
        match self.0 {
            Kind::Lu => "lu",
            Kind::Qr { complete: true } => "qr_complete",
            Kind::Qr { complete: false } => "qr",
            Kind::Cholesky => "cholesky",
            Kind::Svd => "svd",
            Kind::Eigh => "eigh",
            Kind::Solve => "solve",
            Kind::Det => "det",
            Kind::Cofactors => "cofactors",
            Kind::Slogdet => "slogdet",
            Kind::Pinv { .. } => "pinv",
        }
    }

    fn result(&self, operands: &[Tensor]) -> Result<(Vec<usize>, DType), String> {
        let Some(first) = operands.first() else {
            return Err("it takes a tensor".into());
        };
        if first.device().backend() != BackendKind::Cpu {
            return Err(
                "it is computed on the CPU alone: move the operand there with `to`, and the result back"
                    .into(),
            );
        }
        let &[ref front @ .., m, n] = first.shape() else {
            return Err("it takes matrices: at least two axes".into());
        };
        if self.takes_squares() && m != n {
            return Err("it takes square matrices: the last two extents must be equal".into());
        }
        let dtype = match first.dtype() {
            found @ (DType::F32 | DType::F64) => found,
            _ => return Err("it is computed in f32 or f64: cast the operand".into()),
        };
        let mut shape = front.to_vec();
        match operands.get(1) {
            Some(right) => match right.shape() {
                &[ref other @ .., rows, columns] if other == front && rows == n => {
                    shape.extend([rows, columns])
                }
                _ => {
                    return Err(
                        "the second has as many rows as the first, and the same axes in front".into(),
                    );
                }
            },
            None => shape.push(
                self.parts(m, n)
                    .iter()
                    .map(|[rows, columns]| rows * columns)
                    .sum(),
            ),
        }
        Ok((shape, dtype))
    }

    fn on_host(&self) -> Option<&dyn OnHost> {
        Some(self)
    }

    fn gradient(
        &self,
        operands: &[Tensor],
        result: &Tensor,
        gradient: &Tensor,
    ) -> Option<Vec<Option<Tensor>>> {
        slopes::of(self, operands, result, gradient)
    }

    fn is_for_each(&self) -> bool {
        true
    }
}

impl OnHost for Algebra {
    fn compute(&self, operands: &[HostValues<'_>]) -> Result<Vec<u8>, String> {
        let Some(first) = operands.first() else {
            return Ok(Vec::new());
        };
        match first.dtype {
            DType::F64 => self.of::<f64>(operands),
            _ => self.of::<f32>(operands),
        }
    }
}

impl Algebra {
    fn of<T: host::Real>(&self, operands: &[HostValues<'_>]) -> Result<Vec<u8>, String> {
        let mut count = 0;
        let operand = |of: &HostValues<'_>| {
            let &[ref front @ .., rows, columns] = of.shape else {
                return (Vec::new(), [0, 0]);
            };
            count = front.iter().product();
            (of.values::<T>(), [rows, columns])
        };
        let operands: Vec<(Vec<T>, [usize; 2])> = operands.iter().map(operand).collect();
        let found = host::all(self.0, &operands, count)?;
        Ok(bytemuck::cast_slice(&found).to_vec())
    }
}

impl Tensor {
    /// What `kind` says of the matrices of the last two axes: all results in a row, computed in at least f32.
    pub(crate) fn algebra(&self, kind: Kind, at: &'static Location<'static>) -> Tensor {
        if self.error().is_some() {
            return self.clone();
        }
        let real = self.real(at);
        let wide = real.cast_at(crate::dtype::accumulator(real.dtype()), at);
        wide.function(Algebra(kind), &[])
    }

    /// The parts of such a row, in the type of the operand.
    pub(crate) fn algebra_parts(&self, kind: Kind, at: &'static Location<'static>) -> Vec<Tensor> {
        let algebra = Algebra(kind);
        let row = self.algebra(kind, at);
        let &[.., m, n] = self.shape() else {
            return algebra.parts(0, 0).iter().map(|_| row.clone()).collect();
        };
        let dtype = self.real(at).dtype();
        let parts = apart(&row, &algebra.parts(m, n), at);
        parts.into_iter().map(|part| part.cast_at(dtype, at)).collect()
    }

    /// The solution of equations: matrices, and right sides of as many rows, both in front repeated to meet.
    pub(crate) fn solved(&self, right: &Tensor, at: &'static Location<'static>) -> Tensor {
        let refuse = |rule: &str| self.refuse("solve", &[right], rule, at);
        if self.error().or(right.error()).is_some() {
            return refuse("");
        }
        let (a, b) = self.meet_types("solve", right, at);
        let (&[ref own @ .., m, n], &[ref other @ .., rows, columns]) = (a.shape(), b.shape()) else {
            return refuse("it takes matrices, and right sides with at least one axis");
        };
        let Some(front) = broadcast(own, other) else {
            return refuse("the axes in front of the last two must be equal or 1");
        };
        let of = |x: usize, y: usize| [&front[..], &[x, y]].concat();
        let (left, right) = (a.expanded(&of(m, n), at), b.expanded(&of(rows, columns), at));
        left.function(Algebra(Kind::Solve), &[&right])
    }

    // Both in one type of at least 32 bits.
    fn meet_types(
        &self,
        operation: &'static str,
        other: &Tensor,
        at: &'static Location<'static>,
    ) -> (Tensor, Tensor) {
        let (a, b) = (self.real(at), other.real(at));
        match crate::dtype::promote(a.dtype(), b.dtype()).map(crate::dtype::accumulator) {
            Some(dtype) => (a.cast_at(dtype, at), b.cast_at(dtype, at)),
            None => {
                let failed = self.refuse(operation, &[other], "there is no common type: cast one", at);
                (failed.clone(), failed)
            }
        }
    }
}

/// The parts of rows.
fn apart(row: &Tensor, parts: &[[usize; 2]], at: &'static Location<'static>) -> Vec<Tensor> {
    if row.error().is_some() {
        return parts.iter().map(|_| row.clone()).collect();
    }
    let axis = row.rank() - 1;
    let mut begin = 0;
    let part = |[rows, columns]: &[usize; 2]| {
        let end = begin + rows * columns;
        let shape = [&row.shape()[..axis], &[*rows, *columns]].concat();
        let part = row.part_of(axis, begin as isize..end as isize);
        begin = end;
        part.reshaped(&shape, at)
    };
    parts.iter().map(part).collect()
}
