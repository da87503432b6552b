//! Functions that are recorded once, and then run again with other tensors: no recording, no dividing into kernels, only their launches.

use std::collections::HashSet;
use std::panic::Location;
use std::sync::{Arc, Mutex, OnceLock};

use crate::dtype::DType;
use crate::error::Result;
use crate::node::{Op, Sources, Tensor};
use crate::replay::Captured;
use crate::shape::Shape;
use crate::table::name_of;

/// So many captures of a function are kept, for operands of different shapes and types; with one more the oldest goes.
const MOST: usize = 8;

/// A function that is recorded at the first call with operands of some shapes and types; see [`compile`].
pub struct Compiled<F> {
    function: F,
    is_checked: bool,
    /// The axis along which operands grow.
    growing: Option<usize>,
    /// Which results grow along it.
    grows: OnceLock<Vec<bool>>,
    captures: Mutex<Vec<Arc<Capture>>>,
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
        is_checked: false,
        growing: None,
        grows: OnceLock::new(),
        captures: Mutex::default(),
    }
}

impl<F: Fn(&[Tensor]) -> Result<Vec<Tensor>>> Compiled<F> {
    /// The same function, recorded anew at each call, too, and compared with what it was recorded as: for tests. Where something else than an operand has changed (a number of Rust,
    /// a tensor that it uses beside them, the way that it took), a call is an error that names the operation.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// use perpetua_tensor::{Tensor, compile};
    /// # let device = Device::new(BackendKind::Cpu, 0)?;
    /// let rate = std::cell::Cell::new(0.5);
    /// let scaled = compile(|x| Ok(vec![&x[0] * rate.get()])).checked();
    /// let x = Tensor::from_slice(&[2.0f32], [1], &device);
    /// assert_eq!(scaled.call(&[&x])?[0].to_vec::<f32>()?, [1.0]);
    /// rate.set(0.25);
    /// assert!(scaled.call(&[&x]).is_err());
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    pub fn checked(mut self) -> Self {
        self.is_checked = true;
        self
    }

    /// The same function for operands that grow along an axis: those whose extent there is the first one's are filled up with zeros to the next power of two, so that few captures
    /// serve many extents, and results are cut back. The function gets one operand more behind the others: the extent itself, as `i32` of shape `[1]`, to
    /// leave out what does not count.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// use perpetua_tensor::{Tensor, compile};
    /// # let device = Device::new(BackendKind::Cpu, 0)?;
    /// let mean = compile(|x| Ok(vec![x[0].sum(..) / &x[1], &x[0] + 1.0])).with_growing(0);
    /// for n in [3, 4, 5, 7] {
    ///     let x = Tensor::linspace(1.0, n as f64, n, &device);
    ///     let [mean, more] = &mean.call(&[&x])?[..] else { unreachable!() };
    ///     assert_eq!(mean.to_vec::<f32>()?, [(n + 1) as f32 / 2.0]);
    ///     assert_eq!(more.shape(), [n]);
    /// }
    /// assert_eq!(mean.captures(), 2);
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    pub fn with_growing(mut self, axis: usize) -> Self {
        self.growing = Some(axis);
        self
    }

    /// How many captures are kept: each for operands of some shapes and types.
    pub fn captures(&self) -> usize {
        self.kept().len()
    }

    /// Its results, which are computed now, without waiting for the device.
    ///
    /// # Errors
    /// The function's own; if it looks at a value or takes random numbers that are not of a stream among its operands ([`crate::Random::from_stream`]); if operands are not on one device, which can do it.
    #[track_caller]
    pub fn call(&self, operands: &[&Tensor]) -> Result<Vec<Tensor>> {
        let at = here!();
        match (self.growing, operands.first()) {
            (Some(axis), Some(first)) => self.filled(operands, first, axis, at),
            _ => self.call_with(operands, at),
        }
    }

    // With operands that are filled up along an axis.
    fn filled(
        &self,
        operands: &[&Tensor],
        first: &Tensor,
        axis: usize,
        at: &'static Location<'static>,
    ) -> Result<Vec<Tensor>> {
        first.check()?;
        let Some(n) = first.shape().get(axis).copied().filter(|n| *n <= 1 << 30) else {
            let rule = format!("the first operand has no axis {axis} that could grow");
            return first
                .refuse("compile", &[], rule, at)
                .check()
                .map(|()| Vec::new());
        };
        let full = n.next_power_of_two();
        let filled = operands.iter().map(|operand| {
            let mut shape: Shape = operand.shape().into();
            match shape.get_mut(axis) {
                Some(extent) if *extent == n => *extent = full,
                _ => return (*operand).clone(),
            }
            let (starts, steps) = shape.iter().map(|_| (0, 1)).unzip();
            operand.padded(starts, steps, &shape, 0, at)
        });
        let mut filled: Vec<Tensor> = filled.collect();
        filled.push(Tensor::from_slice(&[n as i32], [1], first.device()));
        let filled: Vec<&Tensor> = filled.iter().collect();
        let results = self.call_with(&filled, at)?;
        if full == n {
            return Ok(results);
        }
        let grows = match self.grows.get() {
            Some(grows) => grows,
            None => {
                let grows = self.growing_results(&filled, operands, [n, full], axis, at)?;
                self.grows.get_or_init(|| grows)
            }
        };
        let cut = |(at, result): (usize, Tensor)| match grows.get(at) {
            Some(true) => result.part_of(axis, ..n as isize),
            _ => result,
        };
        Ok(results.into_iter().enumerate().map(cut).collect())
    }

    // Which results have the operands' extent because they grow with them: those whose extent is another one where the operands' is.
    fn growing_results(
        &self,
        filled: &[&Tensor],
        operands: &[&Tensor],
        [n, full]: [usize; 2],
        axis: usize,
        at: &'static Location<'static>,
    ) -> Result<Vec<bool>> {
        let of = |extent: usize| {
            let types = filled.iter().enumerate().map(|(i, x)| {
                let mut shape: Shape = x.shape().into();
                let grows = operands.get(i).is_some_and(|x| x.shape().get(axis) == Some(&n));
                if let (true, Some(own)) = (grows, shape.get_mut(axis)) {
                    *own = extent;
                }
                (shape, x.dtype())
            });
            let recorded = self.record(filled, &types.collect::<Vec<_>>(), at);
            recorded.map(|(_, results)| results)
        };
        let (once, twice) = (of(full)?, of(2 * full)?);
        let extents = |x: &Tensor| x.shape().get(axis).copied();
        let pairs = once.iter().zip(&twice);
        Ok(pairs
            .map(|(one, two)| extents(one) == Some(full) && extents(two) == Some(2 * full))
            .collect())
    }

    fn call_with(&self, operands: &[&Tensor], at: &'static Location<'static>) -> Result<Vec<Tensor>> {
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
            Some(capture) => {
                if self.is_checked {
                    capture.compare(&self.record(operands, &types, at)?, at)?;
                }
                capture
            }
            None => {
                let capture = Arc::new(self.capture(operands, types, at)?);
                let mut kept = self.kept();
                if kept.len() >= MOST {
                    kept.remove(0);
                }
                kept.push(Arc::clone(&capture));
                capture
            }
        };
        capture.replay(operands, at)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Capture>>> {
        // What is under the lock is whole between any two statements.
        self.captures
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    // The function's examples and results.
    fn record(
        &self,
        operands: &[&Tensor],
        types: &[(Shape, DType)],
        at: &'static Location<'static>,
    ) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let device = operands[0].device();
        let example =
            |ty: &(Shape, DType)| Tensor::record(Op::Example, Sources::new(), ty.clone(), device, at);
        let examples: Vec<Tensor> = types.iter().map(example).collect();
        let results = crate::eager::recorded(|| (self.function)(&examples))?;
        results.iter().try_for_each(Tensor::check)?;
        Ok((examples, results))
    }

    fn capture(
        &self,
        operands: &[&Tensor],
        types: Vec<(Shape, DType)>,
        at: &'static Location<'static>,
    ) -> Result<Capture> {
        let device = operands[0].device();
        let (examples, results) = self.record(operands, &types, at)?;
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

    // Whether the function has recorded the same again.
    fn compare(
        &self,
        (examples, results): &(Vec<Tensor>, Vec<Tensor>),
        at: &'static Location<'static>,
    ) -> Result<()> {
        let place = |of: &[Tensor], tensor: &Tensor| of.iter().position(|own| Arc::ptr_eq(&own.0, &tensor.0));
        let mut open: Vec<(Tensor, Tensor)> = Vec::new();
        let mut seen = HashSet::new();
        if let (Some(first), true) = (examples.first(), results.len() != self.results.len()) {
            let (now, before) = (results.len(), self.results.len());
            let rule = format!("its function gave {now} results where it had given {before}");
            first.refuse("compile", &[], rule, at).check()?;
        }
        open.extend(self.results.iter().cloned().zip(results.iter().cloned()));
        while let Some((before, now)) = open.pop() {
            if Arc::ptr_eq(&before.0, &now.0) || !seen.insert((Arc::as_ptr(&before.0), Arc::as_ptr(&now.0))) {
                continue;
            }
            let (own, other) = (before.0.kept(), now.0.kept());
            let fits = before.shape() == now.shape() && before.dtype() == now.dtype();
            // Of what has a value, that is what counts: constants are made anew, and a tensor from outside may be another one.
            if before.0.value().or_else(|| now.0.value()).is_some() {
                let no_examples = !before.0.is_example && !now.0.is_example;
                if !(fits && no_examples && before.to_bytes()? == now.to_bytes()?) {
                    differs(&before, &now, at)?;
                }
                continue;
            }
            let is_same = match (&before.0.op, &now.0.op) {
                (Op::Example, Op::Example) => place(&self.examples, &before) == place(examples, &now),
                (Op::Function(a), Op::Function(b)) => a.name() == b.name(),
                (Op::Hook(_), Op::Hook(_)) | (Op::Checkpoint(_), Op::Checkpoint(_)) => true,
                (a, b) => a == b,
            };
            if !(is_same && fits && own.len() == other.len()) {
                differs(&before, &now, at)?;
            }
            open.extend(own.into_iter().zip(other));
        }
        Ok(())
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
                    "compile",
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

// That a function recorded another operation than before.
fn differs(before: &Tensor, now: &Tensor, at: &'static Location<'static>) -> Result<()> {
    let text = |x: &Tensor| format!("`{}` {} ({})", name_of(&x.0), x.0.describe(), x.0.at());
    let rule = format!(
        "its function recorded {} where it had recorded {}, with other numbers, values, operands or views: what changes between calls must be an operand",
        text(now),
        text(before)
    );
    now.refuse("compile", &[], rule, at).check()
}
