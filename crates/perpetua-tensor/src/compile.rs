//! Functions that are recorded once, and then run again with other tensors: no recording, no dividing into kernels, only their launches.

use std::panic::Location;
use std::sync::Mutex;

use crate::dtype::DType;
use crate::error::Result;
use crate::node::{Op, Sources, Tensor};
use crate::run::Captured;
use crate::shape::Shape;

/// So many captures of a function are kept, for operands of different shapes and types; with one more the oldest goes.
const MOST: usize = 8;

/// A function that is recorded at the first call with operands of some shapes and types; see [`compile`].
pub struct Compiled<F> {
    function: F,
    captures: Mutex<Vec<std::sync::Arc<Capture>>>,
}

struct Capture {
    types: Vec<(Shape, DType)>,
    examples: Vec<Tensor>,
    results: Vec<Tensor>,
    captured: Captured,
}

/// Makes a function one that is recorded once for each choice of shapes and types, and then replayed. It may take gradients. What it uses beside its
/// operands, Rust's numbers included, stays as it was when it was recorded; results are not tracked.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Tensor, compile, grad};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// let step = compile(|x| {
///     let gradient = grad(|w| (&w[0] - &x[1]).square().sum(..), &[&x[0]])?.remove(0);
///     Ok(vec![&x[0] - gradient * 0.25])
/// });
/// let goal = Tensor::from_slice(&[3.0f32], [1], &device);
/// let mut w = Tensor::from_slice(&[4.0f32], [1], &device);
/// for _ in 0..20 {
///     w = step.call(&[&w, &goal])?.remove(0);
/// }
/// assert!((w.to_vec::<f32>()?[0] - 3.0).abs() < 1e-5);
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
pub fn compile<F: Fn(&[Tensor]) -> Result<Vec<Tensor>>>(function: F) -> Compiled<F> {
    Compiled {
        function,
        captures: Mutex::default(),
    }
}

impl<F: Fn(&[Tensor]) -> Result<Vec<Tensor>>> Compiled<F> {
    /// Its results, which are computed now, without waiting for the device.
    ///
    /// # Errors
    /// The function's own; if it looks at a value or takes random numbers; if operands are not on one device, which can do it.
    #[track_caller]
    pub fn call(&self, operands: &[&Tensor]) -> Result<Vec<Tensor>> {
        let at = here!();
        let Some(first) = operands.first() else {
            return (self.function)(&[]);
        };
        for operand in operands {
            operand.check()?;
            if operand.device().id() != first.device().id() {
                let rule = "the operands are on different devices: move one with `to`";
                first.refuse("compile", &[operand], rule, at).check()?;
            }
        }
        let types: Vec<(Shape, DType)> = operands.iter().map(|x| (x.shape().into(), x.dtype())).collect();
        let known = self
            .kept()
            .iter()
            .find(|capture| capture.is_for(first, &types))
            .cloned();
        let capture = match known {
            Some(capture) => capture,
            None => {
                let capture = std::sync::Arc::new(self.capture(operands, types, at)?);
                let mut kept = self.kept();
                if kept.len() >= MOST {
                    kept.remove(0);
                }
                kept.push(std::sync::Arc::clone(&capture));
                capture
            }
        };
        capture.replay(operands, at)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<std::sync::Arc<Capture>>> {
        // What is under the lock is whole between any two statements.
        self.captures
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn capture(
        &self,
        operands: &[&Tensor],
        types: Vec<(Shape, DType)>,
        at: &'static Location<'static>,
    ) -> Result<Capture> {
        let device = operands[0].device();
        let example =
            |ty: &(Shape, DType)| Tensor::record(Op::Example, Sources::new(), ty.clone(), device, at);
        let examples: Vec<Tensor> = types.iter().map(example).collect();
        let results = (self.function)(&examples)?;
        results.iter().try_for_each(Tensor::check)?;
        let made: Vec<&Tensor> = results.iter().filter(|result| result.0.is_example).collect();
        let captured = Captured::of(&made, &examples, device)?;
        Ok(Capture {
            types,
            examples,
            results,
            captured,
        })
    }
}

impl Capture {
    fn is_for(&self, first: &Tensor, types: &[(Shape, DType)]) -> bool {
        let same_device = self
            .examples
            .first()
            .is_some_and(|example| example.device().id() == first.device().id());
        same_device && self.types == types
    }

    fn replay(&self, operands: &[&Tensor], at: &'static Location<'static>) -> Result<Vec<Tensor>> {
        let made: Vec<&Tensor> = self.results.iter().filter(|result| result.0.is_example).collect();
        let mut values = self.captured.run(&self.examples, operands, &made)?.into_iter();
        let result = |result: &Tensor| match result.0.is_example {
            // What does not depend on the operands.
            false => Ok(result.clone()),
            true => {
                let value = values.next().map(Ok);
                let value = value.unwrap_or_else(|| {
                    Err(perpetua_device::Error::InvalidState {
                        operation: "compile",
                        cause: "a result has no value",
                        remedy: "please report it",
                    })
                });
                Ok(Tensor::with_value(
                    value,
                    result.dtype(),
                    result.shape(),
                    result.device(),
                    at,
                ))
            }
        };
        self.results.iter().map(result).collect()
    }
}
