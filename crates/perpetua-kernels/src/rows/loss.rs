//! Cross entropy and its gradient: what launches take. Must not know how lanes compute them.

use perpetua_device::{KernelArg, LaunchConfig, Stream};
use perpetua_language::{KernelFn, args};

use super::{Part, Plan, Rows, Team, cross_entropy, row_instance};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, ptx_unchecked, unchecked_on};
use crate::operand::{check, check_held, check_type};

/// What is made of the losses of all rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Nothing: each row has its own.
    #[default]
    None,
    /// The mean over the rows that are not ignored: NaN where there are none.
    Mean,
    /// The sum.
    Sum,
}

/// What both kernels are told.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Loss {
    rows: Rows,
    ignored: i32,
    smoothing: f32,
    reduction: Reduction,
}

impl Loss {
    fn new(rows: usize, columns: usize) -> Loss {
        Loss {
            rows: Rows::new(rows, columns),
            ignored: -100,
            smoothing: 0.0,
            reduction: Reduction::None,
        }
    }

    fn check_smoothing(&self, kernel: &'static str) -> Result<()> {
        match (0.0..=1.0).contains(&self.smoothing) {
            true => Ok(()),
            false => Err(Error::Smoothing {
                kernel,
                smoothing: self.smoothing,
            }),
        }
    }
}

macro_rules! loss_options {
    ($kernel:ident) => {
        impl $kernel {
            /// How many elements lie from the start of a row to the start of the next, in matrices that are read and in those that are written: a
            /// row's length unless said otherwise.
            pub fn with_pitches(mut self, read: usize, written: usize) -> $kernel {
                self.loss.rows.pitches = [read, written];
                self
            }

            /// The type of the scores and of their gradients, `f32` unless said otherwise. Sums are in `f32` in each case, and so are losses.
            pub fn with_element(mut self, element: Element) -> $kernel {
                self.loss.rows.element = element;
                self
            }

            /// The label of rows that do not count: their loss is 0. It is -100 unless said otherwise.
            pub fn with_ignored(mut self, label: i32) -> $kernel {
                self.loss.ignored = label;
                self
            }

            /// Which part of what is asked of the scores, from 0 to 1, is the same for each column, not all for the label's.
            pub fn with_smoothing(mut self, smoothing: f32) -> $kernel {
                self.loss.smoothing = smoothing;
                self
            }

            /// What is made of the losses of all rows.
            pub fn with_reduction(mut self, reduction: Reduction) -> $kernel {
                self.loss.reduction = reduction;
                self
            }
        }
    };
}

/// The cross entropy of each row of scores with a label: `ln(sum(exp(x))) - x[label]`, or the mean of that over labels, smoothed. Launched with four buffers: `x`; `labels`, an `i32`
/// a row; `losses` and `logs`, an `f32` a row each, of which `logs` are the logarithms that gradients are computed by. With [`Reduction::Mean`] or [`Reduction::Sum`] there is a fifth,
/// `total`, of two `f32`: the loss, and how many rows count.
///
/// Each row is read once, whatever its length. A label that is no column, and not the one that is ignored, makes the row's loss NaN, as do a NaN or +inf in it. Exponentials are the hardware's: with sums of `c` columns a
/// loss is off by at most about `(c / 256 + 32) * 2^-24`, and 2^-23 of the largest score.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{CrossEntropyKernel, Kernel, Reduction};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.upload(&[7.0f32, f32::NEG_INFINITY, 0.0, 0.0, 7.0, 7.0])?;
/// let labels = device.upload(&[0i32, 1, -100])?;
/// let (losses, logs) = (device.zeros::<f32>(3)?, device.zeros::<f32>(3)?);
/// let total = device.zeros::<f32>(2)?;
/// let loss = CrossEntropyKernel::new(3, 2).with_reduction(Reduction::Mean);
/// loss.launch(&device.default_stream(), args![&x, &labels, &losses, &logs, &total])?;
/// assert_eq!(total.read()?, [std::f32::consts::LN_2 / 2.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossEntropyKernel {
    loss: Loss,
}

loss_options!(CrossEntropyKernel);

impl CrossEntropyKernel {
    /// For `rows` rows of scores for `columns` labels.
    pub fn new(rows: usize, columns: usize) -> CrossEntropyKernel {
        let mut loss = Loss::new(rows, columns);
        loss.rows.loose = true;
        CrossEntropyKernel { loss }
    }

    fn planned(&self, plan: Plan) -> KernelFn {
        row_instance!(self.loss.rows.element, plan, cross_entropy::cross_entropy,)
    }
}

impl Kernel for CrossEntropyKernel {
    fn function(&self) -> KernelFn {
        self.planned(self.loss.rows.best())
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let Loss {
            rows,
            ignored,
            smoothing,
            reduction,
        } = self.loss;
        let name = self.name();
        self.loss.check_smoothing(name)?;
        let parts = [
            Part::Read("x"),
            Part::Other("labels", rows.rows),
            Part::Other("losses", rows.rows),
            Part::Other("logs", rows.rows),
        ];
        let planned = |plan| self.planned(plan);
        let more = args![ignored, smoothing];
        let function = match reduction {
            Reduction::None => return rows.launch(planned, stream, &parts, more, args),
            Reduction::Mean => cross_entropy::cross_entropy_total::kernel::<true>(),
            Reduction::Sum => cross_entropy::cross_entropy_total::kernel::<false>(),
        };
        let mut all = parts.to_vec();
        all.push(Part::Other("total", 2));
        check(name, &rows.operands(&all), args)?;
        if let [x, labels, losses, logs, total] = args {
            check_held(name, "x", x, rows.element)?;
            check_type::<i32>(name, "labels", labels)?;
            for (operand, arg) in [("losses", losses), ("logs", logs), ("total", total)] {
                check_type::<f32>(name, operand, arg)?;
            }
            rows.launch(planned, stream, &parts, more, &args[..4])?;
            // SAFETY: rows are compared with how many there are, for each of which `check` has found a label and a loss, and two places for what they are together. Indices
            // into the block's memory are below its 512 lanes.
            let function = unsafe { unchecked_on(stream, function) };
            let all = args![rows.rows, ignored, losses.clone(), labels.clone(), total.clone()];
            stream.launch(&function, LaunchConfig::new(1, 512), all)?;
        }
        Ok(())
    }
}

/// The gradient of [`CrossEntropyKernel`]'s scores. Launched with five buffers: `x` and `labels` as there; `logs`, which it has written; `dloss`, the gradient of each row's loss, or with a reduction the
/// one of the total; and `dx`, which may be `x`. With [`Reduction::Mean`] there is one more in front of `dx`: `total`, which it has written, too.
///
/// Rows that are ignored get zeros; with a label that is no column they get NaN.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{CrossEntropyBackwardKernel, Kernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.upload(&[0.0f32, 0.0])?;
/// let labels = device.upload(&[1i32])?;
/// let logs = device.upload(&[std::f32::consts::LN_2])?;
/// let dloss = device.full(1, 4.0f32)?;
/// CrossEntropyBackwardKernel::new(1, 2).launch(&device.default_stream(), args![&x, &labels, &logs, &dloss, &x])?;
/// let dx = x.read()?;
/// assert!((dx[0] - 2.0).abs() < 1e-6 && (dx[1] + 2.0).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossEntropyBackwardKernel {
    loss: Loss,
}

loss_options!(CrossEntropyBackwardKernel);

impl CrossEntropyBackwardKernel {
    /// For `rows` rows of scores for `columns` labels.
    pub fn new(rows: usize, columns: usize) -> CrossEntropyBackwardKernel {
        CrossEntropyBackwardKernel {
            loss: Loss::new(rows, columns),
        }
    }

    fn planned(&self, plan: Plan) -> KernelFn {
        row_instance!(
            self.loss.rows.element,
            plan,
            cross_entropy::cross_entropy_backward,
        )
    }
}

impl Kernel for CrossEntropyBackwardKernel {
    fn function(&self) -> KernelFn {
        self.planned(self.loss.rows.best())
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let Loss { rows, reduction, .. } = self.loss;
        self.loss.check_smoothing(self.name())?;
        let is_whole = reduction != Reduction::None;
        let mut parts = vec![
            Part::Read("x"),
            Part::Other("labels", rows.rows),
            Part::Other("logs", rows.rows),
            Part::Other("dloss", if is_whole { 1 } else { rows.rows }),
            Part::Other("total", 0),
            Part::Written("dx"),
        ];
        match reduction {
            Reduction::Mean => parts[4] = Part::Other("total", 2),
            Reduction::None | Reduction::Sum => drop(parts.remove(4)),
        }
        check(self.name(), &rows.operands(&parts), args)?;
        let none = stream.device().alloc::<f32>(0)?;
        let mut all = args.to_vec();
        if reduction != Reduction::Mean {
            parts.insert(4, Part::Other("total", 0));
            all.insert(4, none.arg());
        }
        let step = usize::from(!is_whole);
        let more = args![self.loss.ignored, self.loss.smoothing, step];
        rows.launch(|plan| self.planned(plan), stream, &parts, more, &all)
    }
}
