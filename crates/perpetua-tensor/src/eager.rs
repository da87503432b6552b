//! Operations computed as they are recorded, for those who look for a mistake step by step.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::node::{Op, Tensor};
use crate::run::realize;

thread_local! {
    static IS_ON: Cell<bool> = Cell::new(is_on_from_the_start());
}

// Whether `PERPETUA_EAGER` is `1`: all operations are computed as they are recorded.
fn is_on_from_the_start() -> bool {
    static EAGER: OnceLock<bool> = OnceLock::new();
    *EAGER.get_or_init(|| std::env::var("PERPETUA_EAGER").is_ok_and(|value| value == "1"))
}

/// Does something whose operations are computed on this thread when they are recorded, each by a kernel of its own; what cannot be computed is an error at once
/// ([`Tensor::check`]). Results have the bits that they have otherwise. In functions that `compile` and `vmap` take there are no values, so there nothing changes.
/// `PERPETUA_EAGER=1` in the environment does it with the whole program.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Statistics, Tensor, eager};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = Tensor::from_slice(&[1.0f32, -1.0], [2], &device);
/// let launched = || Statistics::of(&device).launched;
/// let before = launched();
/// let y = eager(|| x.exp().sqrt().sin());
/// assert_eq!(launched(), before + 3);
/// assert_eq!(y.to_vec::<f32>()?, x.exp().sqrt().sin().to_vec::<f32>()?);
/// assert_eq!(launched(), before + 4);
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
pub fn eager<T>(work: impl FnOnce() -> T) -> T {
    switched(true, work)
}

/// Records what a function makes of examples: nothing is computed, also where the caller asks for it.
pub(crate) fn recorded<T>(record: impl FnOnce() -> T) -> T {
    switched(false, record)
}

fn switched<T>(on: bool, work: impl FnOnce() -> T) -> T {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            IS_ON.set(self.0);
        }
    }
    let _back = Back(IS_ON.replace(on));
    work()
}

/// The same operation, computed if that is asked for here; or one that carries the error.
pub(crate) fn computed(recorded: Tensor) -> Tensor {
    let node = &recorded.0;
    let has_value = matches!(
        node.op,
        Op::Leaf(_) | Op::Failed(_) | Op::Example | Op::Scalar { .. }
    );
    if !IS_ON.get() || has_value || node.is_example {
        return recorded;
    }
    match realize(&[&recorded]) {
        Ok(()) => recorded,
        Err(error) => Tensor::with_error(error, &node.device, node.at),
    }
}
