//! What a program asks of a tensor, and how operations are recorded.

use std::panic::Location;
use std::sync::Arc;

use perpetua_device::Device;
use perpetua_ir::ops::{BinaryOp, UnaryOp};
use smallvec::smallvec;

use crate::dtype::{DType, floating, number, promote};
use crate::error::{At, Error, Result};
use crate::node::{Node, Op, Sources, Tensor};
use crate::operand::Operand;
use crate::shape::{MOST, Shape, broadcast, count, is_possible, text};
use crate::table;

/// So many operations, one after the other, wait for somebody to look at their result; with one more they are computed.
const MOST_PENDING: u32 = 4096;

impl Tensor {
    pub(crate) fn record(
        op: Op,
        sources: Sources,
        ty: (Shape, DType),
        device: &Device,
        at: &'static Location<'static>,
    ) -> Tensor {
        let recorded = Tensor(Arc::new(Node::new(op, sources, ty, device.clone(), at)));
        if !is_possible(recorded.shape()) {
            let operands = recorded.0.sources();
            let texts: Vec<String> = operands.iter().map(|operand| operand.0.describe()).collect();
            let error = Error::Rule {
                operation: table::name_of(&recorded.0),
                operands: texts.join(" and "),
                rule: format!(
                    "the shape {} has more than {MOST} elements, zeros not counted: work in parts",
                    text(recorded.shape())
                ),
                at: At(at),
            };
            return Tensor::with_error(error, device, at);
        }
        if recorded.0.op.computes() {
            let operands = recorded.0.sources();
            if let Some(stored) = operands.iter().find(|operand| operand.0.dtype.is_byte_float()) {
                return stored.for_storage(table::name_of(&recorded.0), at);
            }
        }
        if recorded.0.depth() > MOST_PENDING && !recorded.0.is_example {
            // What it is made of is computed now. If that fails, whoever looks at a value made of it gets the error.
            let sources = recorded.0.pending().unwrap_or_default();
            let _ = crate::run::realize(&sources.iter().collect::<Vec<_>>());
            recorded.0.restart_depth();
        }
        crate::eager::computed(recorded)
    }

    /// An operation of one operand, of its type and device.
    pub(crate) fn of_one(&self, op: Op, shape: Shape, at: &'static Location<'static>) -> Tensor {
        if self.error().is_some() {
            return self.clone();
        }
        let dtype = self.0.dtype;
        Tensor::record(op, smallvec![self.clone()], (shape, dtype), &self.0.device, at)
    }

    /// The tensor that an operation of this and others does not give.
    pub(crate) fn refuse(
        &self,
        operation: &'static str,
        others: &[&Tensor],
        rule: impl Into<String>,
        at: &'static Location<'static>,
    ) -> Tensor {
        let operands = || std::iter::once(&self).chain(others);
        // The first error is the one that matters.
        if let Some(failed) = operands().find(|operand| operand.error().is_some()) {
            return (*failed).clone();
        }
        let texts: Vec<String> = operands().map(|operand| operand.0.describe()).collect();
        let error = Error::Rule {
            operation,
            operands: texts.join(" and "),
            rule: rule.into(),
            at: At(at),
        };
        Tensor::with_error(error, &self.0.device, at)
    }

    /// What computes with floats of one byte.
    pub(crate) fn for_storage(&self, operation: &'static str, at: &'static Location<'static>) -> Tensor {
        self.refuse(operation, &[], self.0.dtype.for_storage(), at)
    }

    pub(crate) fn with_error(error: Error, device: &Device, at: &'static Location<'static>) -> Tensor {
        let op = Op::Failed(Box::new(error));
        Tensor::record(op, Sources::new(), (Shape::new(), DType::F32), device, at)
    }

    pub(crate) fn error(&self) -> Option<&Error> {
        match &self.0.op {
            Op::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Whether there is such a tensor: an operation that its rules refuse gives one that carries an error.
    ///
    /// # Errors
    /// The first rule that was broken on the way to it, with its operands and its line.
    pub fn check(&self) -> Result<()> {
        self.error().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Extents of its axes. Of a tensor that carries an error: none.
    pub fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    /// Type of its elements.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Where it is, or will be computed.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.0.shape.len()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        count(&self.0.shape)
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same elements as another type: as Rust's `as`, to `bool` by comparison with zero, to floats of one byte the nearest one, of two the even one: NaN for
    /// what is beyond the greatest `e4m3` (448), infinity for what is beyond the greatest `e5m2` (57,344).
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Tensor {
        self.cast_at(dtype, here!())
    }

    pub(crate) fn cast_at(&self, dtype: DType, at: &'static Location<'static>) -> Tensor {
        let own = self.0.dtype;
        if own == dtype || self.error().is_some() {
            return self.clone();
        }
        if dtype == DType::Bool && own.is_byte_float() {
            return self.cast_at(DType::F32, at).cast_at(dtype, at);
        }
        if dtype == DType::Bool {
            let zero = self.fixed(0.0, at);
            return self.binary(BinaryOp::Ne, &zero, at);
        }
        let ty = (self.0.shape.clone(), dtype);
        Tensor::record(Op::Cast, smallvec![self.clone()], ty, &self.0.device, at)
    }

    /// A number of this tensor's shape, type and device, which belongs to the operation.
    pub(crate) fn fixed(&self, value: f64, at: &'static Location<'static>) -> Tensor {
        let op = Op::Scalar {
            bits: number(self.0.dtype, value),
            fixed: true,
        };
        let ty = (self.0.shape.clone(), self.0.dtype);
        Tensor::record(op, Sources::new(), ty, &self.0.device, at)
    }

    /// An operator of the IR on this type.
    pub(crate) fn unary(&self, op: UnaryOp, at: &'static Location<'static>) -> Tensor {
        let row = op.row();
        if self.error().is_some() {
            return self.clone();
        }
        if self.0.dtype.is_byte_float() {
            return self.for_storage(table::name_of_unary(op), at);
        }
        if !row.domain.contains(self.0.dtype.stored()) {
            let rule = format!("it is defined for {}: cast the operand", row.domain.describe());
            return self.refuse(table::name_of_unary(op), &[], rule, at);
        }
        let dtype = perpetua_ir::ops::eval::result_scalar(row.result, self.0.dtype.stored()).into();
        let ty = (self.0.shape.clone(), dtype);
        Tensor::record(Op::Unary(op), smallvec![self.clone()], ty, &self.0.device, at)
    }

    /// An operator of the IR on operands of equal types and shapes.
    pub(crate) fn binary(&self, op: BinaryOp, other: &Tensor, at: &'static Location<'static>) -> Tensor {
        let row = op.row();
        for operand in [self, other] {
            if operand.error().is_some() {
                return operand.clone();
            }
        }
        if self.0.dtype.is_byte_float() {
            return self.for_storage(table::name_of_binary(op, self.0.dtype), at);
        }
        if !row.domain.contains(self.0.dtype.stored()) {
            let rule = format!("it is defined for {}: cast the operands", row.domain.describe());
            return self.refuse(table::name_of_binary(op, self.0.dtype), &[other], rule, at);
        }
        let dtype = perpetua_ir::ops::eval::result_scalar(row.result, self.0.dtype.stored()).into();
        let ty = (self.0.shape.clone(), dtype);
        let sources = smallvec![self.clone(), other.clone()];
        Tensor::record(Op::Binary(op), sources, ty, &self.0.device, at)
    }

    /// Both operands in one type and shape.
    pub(crate) fn meet(
        &self,
        operation: &'static str,
        other: &Operand,
        at: &'static Location<'static>,
    ) -> (Tensor, Tensor) {
        let other = match other {
            Operand::Tensor(other) => other,
            scalar => {
                let own = match scalar.meets(self.0.dtype) {
                    dtype if dtype == self.0.dtype => self.clone(),
                    dtype => self.cast_at(dtype, at),
                };
                let other = scalar.like(&own, at);
                return (own, other);
            }
        };
        let refuse = |rule: String| {
            let failed = self.refuse(operation, &[other], rule, at);
            (failed.clone(), failed)
        };
        if self.error().or(other.error()).is_some() {
            return refuse(String::new());
        }
        if self.0.device.id() != other.0.device.id() {
            let (a, b) = (&self.0.device, &other.0.device);
            return refuse(format!(
                "the first is on {a:?}, the second on {b:?}: move one with `to`"
            ));
        }
        let Some(dtype) = promote(self.0.dtype, other.0.dtype) else {
            let mut both = [self.0.dtype, other.0.dtype].into_iter();
            return refuse(match both.find(|dtype| dtype.is_byte_float()) {
                Some(stored) => stored.for_storage(),
                None => "no integer type holds all values of both: cast one".into(),
            });
        };
        let Some(shape) = broadcast(&self.0.shape, &other.0.shape) else {
            return refuse(
                "shapes are aligned at their ends; of two extents one must be 1, or both be equal".into(),
            );
        };
        let brought = |operand: &Tensor| operand.cast_at(dtype, at).expanded(&shape, at);
        (brought(self), brought(other))
    }

    /// Of the type in which functions of real numbers are computed.
    pub(crate) fn real(&self, at: &'static Location<'static>) -> Tensor {
        self.cast_at(floating(self.0.dtype), at)
    }

    /// Elements of `yes` where this is true, of `no` elsewhere.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// # use perpetua_tensor::Tensor;
    /// # let device = Device::new(BackendKind::Cpu, 0)?;
    /// let x = Tensor::from_slice(&[1.0f32, -2.0], [2], &device);
    /// assert_eq!(x.greater(0.0).select(&x, 0.0).to_vec::<f32>()?, [1.0, 0.0]);
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn select(&self, yes: impl Into<Operand>, no: impl Into<Operand>) -> Tensor {
        self.select_at(&yes.into(), &no.into(), here!())
    }

    pub(crate) fn select_at(&self, yes: &Operand, no: &Operand, at: &'static Location<'static>) -> Tensor {
        const NAME: &str = "where";
        if self.error().is_some() {
            return self.clone();
        }
        if self.0.dtype != DType::Bool {
            let rule = "the condition must be bool: compare, or cast to bool";
            return self.refuse(NAME, &[], rule, at);
        }
        let (yes, no) = match (yes, no) {
            (Operand::Tensor(yes), no) => yes.meet(NAME, no, at),
            (yes, Operand::Tensor(no)) => {
                let (no, yes) = no.meet(NAME, yes, at);
                (yes, no)
            }
            (yes, no) => {
                let dtype = match (yes.meets(DType::Bool), no.meets(DType::Bool)) {
                    (a, b) if a.is_float() || b.is_float() => DType::F32,
                    (DType::Bool, DType::Bool) => DType::Bool,
                    _ => DType::I32,
                };
                let like = |operand: &Operand| operand.of(dtype, &self.0.shape, &self.0.device, at);
                (like(yes), like(no))
            }
        };
        if yes.error().or(no.error()).is_some() {
            return yes.refuse(NAME, &[&no], "", at);
        }
        if self.0.device.id() != yes.0.device.id() {
            let rule = "condition and values are on different devices: move one with `to`";
            return self.refuse(NAME, &[&yes], rule, at);
        }
        let Some(shape) = broadcast(&self.0.shape, &yes.0.shape) else {
            let rule = "shapes are aligned at their ends; of two extents one must be 1, or both be equal";
            return self.refuse(NAME, &[&yes], rule, at);
        };
        let sources = smallvec![
            self.expanded(&shape, at),
            yes.expanded(&shape, at),
            no.expanded(&shape, at)
        ];
        let dtype = yes.0.dtype;
        Tensor::record(Op::Select, sources, (shape, dtype), &self.0.device, at)
    }
}
