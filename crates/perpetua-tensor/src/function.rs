//! What changes how gradients are made: functions with kernels of their own, hooks, checkpoints, and norms that are clipped.

use std::sync::Arc;

use perpetua_device::{MaybeSend, MaybeSync};
use smallvec::smallvec;

use crate::error::{At, Error, Result};
use crate::node::{Function, Op, Recorded, Sources, Tensor};

impl Tensor {
    /// The result of a function with a kernel of its own, of this and other operands; [`Function`] has an example.
    #[track_caller]
    pub fn function(&self, function: impl Function, others: &[&Tensor]) -> Tensor {
        let (at, name) = (here!(), function.name());
        let refuse = |rule: String| self.refuse(name, others, rule, at);
        let operands = || std::iter::once(self).chain(others.iter().copied());
        if operands().any(|operand| operand.error().is_some()) {
            return refuse(String::new());
        }
        if others
            .iter()
            .any(|other| other.device().id() != self.device().id())
        {
            return refuse("the operands are on different devices: move one with `to`".into());
        }
        let sources: Sources = operands().cloned().collect();
        match function.result(&sources) {
            Ok((shape, dtype)) => {
                let op = Op::Function(Arc::new(function));
                Tensor::record(op, sources, (shape.into(), dtype), self.device(), at)
            }
            Err(rule) => refuse(rule),
        }
    }

    /// The same elements, whose gradient a function sees when one is made, and may change: it gives the gradient that goes on.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// # use perpetua_tensor::Tensor;
    /// # let device = Device::new(BackendKind::Cpu, 0)?;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2], &device).tracked();
    /// let y = (&x * 3.0).with_hook(|gradient| gradient.clip(-1.0, 1.0));
    /// assert_eq!((y * 5.0).sum(..).grad(&[&x])?[0].to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn with_hook(&self, hook: impl Fn(&Tensor) -> Tensor + MaybeSend + MaybeSync + 'static) -> Tensor {
        let hook = move |gradient: &[Tensor]| Ok(hook(&gradient[0]));
        self.of_one(Op::Hook(Arc::new(hook)), self.0.shape.clone(), here!())
    }
}

/// The value of a function, of whose operations none is kept for gradients: where one is made they are recorded, and computed, again. For long chains this trades
/// time for memory. The function must give the same each time: it takes no random numbers that it makes itself.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Tensor, checkpoint};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2], &device).tracked();
/// let y = checkpoint(|x| Ok(x[0].exp().sin()), &[&x])?;
/// let same = x.exp().sin();
/// let gradient = |y: &Tensor| y.sum(..).grad(&[&x])?[0].to_vec::<f32>();
/// assert_eq!(gradient(&y)?, gradient(&same)?);
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
///
/// # Errors
/// The function's own.
#[track_caller]
pub fn checkpoint(
    function: impl Fn(&[Tensor]) -> Result<Tensor> + MaybeSend + MaybeSync + 'static,
    operands: &[&Tensor],
) -> Result<Tensor> {
    let at = here!();
    let own: Vec<Tensor> = operands.iter().map(|operand| operand.detached(at)).collect();
    let value = function.apply(&own)?;
    value.check()?;
    if value.0.tracked {
        return Err(Error::NoGradient {
            operation: "checkpoint".to_owned(),
            reason: "its function uses a tracked tensor that is no operand, which would get no gradient: hand it in as an operand"
                .to_owned(),
            at: At(at),
        });
    }
    let value = value.detached(at);
    let (ty, device) = ((value.0.shape.clone(), value.0.dtype), value.device().clone());
    let mut sources: Sources = smallvec![value];
    sources.extend(operands.iter().map(|operand| (*operand).clone()));
    Ok(Tensor::record(
        Op::Checkpoint(Arc::new(function)),
        sources,
        ty,
        &device,
        at,
    ))
}

/// Gradients made shorter together, so that the root of the sum of all their squares is at most `most`; and what that is of those given. Where it is not finite they stay as they are.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Tensor, clip_grad_norm};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// let gradients = [Tensor::from_slice(&[3.0f32], [1], &device), Tensor::from_slice(&[4.0f32], [1], &device)];
/// let (clipped, norm) = clip_grad_norm(&gradients, 1.0);
/// assert_eq!(norm.map(|norm| norm.to_vec::<f32>()).transpose()?, Some(vec![5.0]));
/// assert_eq!(clipped[1].to_vec::<f32>()?, [0.8]);
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
#[track_caller]
pub fn clip_grad_norm(gradients: &[Tensor], most: f64) -> (Vec<Tensor>, Option<Tensor>) {
    let at = here!();
    crate::place::inside(at, || {
        let squares = gradients
            .iter()
            .map(|gradient| gradient.cast(wide(gradient)).square().sum(..));
        let Some(norm) = squares.reduce(|sum, square| sum + square).map(|sum| sum.sqrt()) else {
            return (Vec::new(), None);
        };
        let factor = norm
            .greater(most)
            .logical_and(norm.isfinite())
            .select(most / &norm, 1.0);
        let clipped = |gradient: &Tensor| (gradient * factor.cast(gradient.dtype())).cast(gradient.dtype());
        (gradients.iter().map(clipped).collect(), Some(norm))
    })
}

// Squares of half floats are summed in f32.
fn wide(gradient: &Tensor) -> crate::DType {
    crate::dtype::accumulator(gradient.dtype())
}
