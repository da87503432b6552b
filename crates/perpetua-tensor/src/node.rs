//! What is recorded: the tensor that a program holds is a node, an operation with its sources until its value is known. Must not know how values are
//! computed.

use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use perpetua_device::{Device, DynBuffer, KernelArg, MaybeSend, MaybeSync, Stream};
use perpetua_ir::ops::{BinaryOp, UnaryOp};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::{At, Error};
use crate::order::Reduction;
use crate::shape::{Shape, text};

/// Elements of one type in some shape on a device, or the operations that will give them. Cheap to clone; clones are the same tensor. A
/// tensor never changes: what assigns to a part of it gives another one.
#[derive(Clone)]
pub struct Tensor(pub(crate) Arc<Node>);

/// An operation, but for its sources.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    /// Its value came from outside, by the function of this name.
    Leaf(&'static str),
    /// There is no such tensor.
    Failed(Box<Error>),
    /// What a function is recorded with that `vmap` or `compile` takes: it has no value.
    Example,
    /// One value everywhere: its bits. A `fixed` one belongs to the operation and is part of kernels; others are parameters of theirs.
    Scalar { bits: u64, fixed: bool },
    /// The index along an axis.
    Coordinate { axis: usize },
    /// Random bits (`u32`) of the logical index.
    Random { seed: u64, stream: u64 },
    /// An operator of the IR.
    Unary(UnaryOp),
    /// An operator of the IR.
    Binary(BinaryOp),
    /// The second where the first is true, else the third.
    Select,
    /// Rust's `as`.
    Cast,
    /// The same value, through which no gradients may be asked for.
    Same,
    /// The same value, with which tracking begins. It is always stored, and then forgets its source.
    Variable,
    /// The same elements in the same order, in another shape.
    Reshape,
    /// Axis `i` is the source's axis `axes[i]`.
    Permute { axes: SmallVec<[usize; 4]> },
    /// Axes of extent 1 repeated.
    Expand,
    /// Every `steps`-th element from `starts` on.
    Slice { starts: Shape, steps: Shape },
    /// Backwards along axes.
    Flip { axes: SmallVec<[usize; 4]> },
    /// The source at `starts`, `steps` apart; elsewhere the value of these bits.
    Pad { starts: Shape, steps: Shape, fill: u64 },
    /// Of the first source the element whose index along the axis the second has (`i32`).
    Gather { axis: usize },
    /// Runs along the first axis of the first source, combined one after the other; the second and the third have where they begin and end, the fourth
    /// each element's run, which only its gradient needs.
    Segments { how: Reduction },
    /// A combination along axes, which are left with extent 1.
    Reduce {
        how: Reduction,
        axes: SmallVec<[usize; 4]>,
    },
    /// The same made in two: its sources are the result, and what it is a combination of, which only its gradient needs.
    Joined {
        how: Reduction,
        axes: SmallVec<[usize; 4]>,
    },
    /// Matrix products over the last two axes.
    Product,
    /// A function with a kernel of its own.
    Function(Arc<dyn Function>),
    /// The same value, whose gradient a function changes.
    Hook(Arc<dyn Recorded>),
    /// The value of a function: its sources are that, and the operands, of which a gradient computes it again.
    Checkpoint(Arc<dyn Recorded>),
}

impl Op {
    /// Whether it does more than to move elements, or to cast them.
    pub(crate) fn computes(&self) -> bool {
        matches!(
            self,
            Op::Unary(_)
                | Op::Binary(_)
                | Op::Segments { .. }
                | Op::Reduce { .. }
                | Op::Joined { .. }
                | Op::Product
        )
    }
}

/// A tensor in a launch of a [`Function`].
#[derive(Clone, Debug)]
pub struct Argument<'a> {
    /// Its shape.
    pub shape: &'a [usize],
    /// Its elements' type.
    pub dtype: DType,
    /// Its memory, with one element behind the other.
    pub value: KernelArg<'a>,
}

/// A function of tensors with a kernel and a gradient of its own; [`Tensor::function`] records it. Its result is stored, and so are its operands, one element behind the other.
///
/// ```
/// use perpetua_device::{BackendKind, Device, KernelSource, LaunchConfig, Stream, args};
/// use perpetua_tensor::{Argument, DType, Function, Tensor};
///
/// /// Each element to the third power, in place of a kernel that programs write with `#[kernel]`.
/// struct Cube;
///
/// impl Function for Cube {
///     fn name(&self) -> &'static str {
///         "cube"
///     }
///     fn result(&self, operands: &[Tensor]) -> Result<(Vec<usize>, DType), String> {
///         match operands[0].dtype() {
///             DType::F32 => Ok((operands[0].shape().to_vec(), DType::F32)),
///             _ => Err("it is defined for f32: cast the operand".into()),
///         }
///     }
///     fn launch(&self, stream: &Stream, operands: &[Argument<'_>], result: Argument<'_>) -> perpetua_device::Result<()> {
///         let text = "kernel cube(x: buffer<f32, read>, y: buffer<f32, read_write>) {\n  %0: u32 = thread_idx.x\n  %1: u32 = len y\n  %2: bool = lt %0, %1\n  if %2 {\n    %3: f32 = load x[%0]\n    %4: f32 = mul %3, %3\n    %5: f32 = mul %4, %3\n    store y[%0], %5\n  }\n}\n";
///         let kernel = stream.device().compile(&KernelSource::IrText(text), &Default::default())?.only()?;
///         stream.launch(&kernel, LaunchConfig::new(1, 32), args![operands[0].value.clone(), result.value])
///     }
///     fn gradient(&self, operands: &[Tensor], _: &Tensor, gradient: &Tensor) -> Option<Vec<Option<Tensor>>> {
///         Some(vec![Some(operands[0].square() * 3.0 * gradient)])
///     }
/// }
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3], &device).tracked();
/// let y = x.function(Cube, &[]);
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 8.0, 27.0]);
/// assert_eq!(y.sum(..).grad(&[&x])?[0].to_vec::<f32>()?, [3.0, 12.0, 27.0]);
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
pub trait Function: MaybeSend + MaybeSync + 'static {
    /// Its name in errors and explanations.
    fn name(&self) -> &'static str;

    /// Shape and type of its result, of operands on one device; or the rule that they break.
    ///
    /// # Errors
    /// The rule, and what to do.
    fn result(&self, operands: &[Tensor]) -> Result<(Vec<usize>, DType), String>;

    /// Submits what computes the result, none of which is there yet, to a stream. It is called once for each value, and again when a compiled function is captured.
    ///
    /// # Errors
    /// What the device says. A function has this or [`Function::on_host`].
    fn launch(
        &self,
        stream: &Stream,
        _operands: &[Argument<'_>],
        _result: Argument<'_>,
    ) -> perpetua_device::Result<()> {
        Err(perpetua_device::Error::Unsupported {
            backend: stream.device().backend(),
            operation: "launch a function without a kernel",
            remedy: "give it `Function::launch` or `Function::on_host`",
        })
    }

    /// What computes the result on the host, in place of a kernel: the operands are waited for when it is computed.
    fn on_host(&self) -> Option<&dyn OnHost> {
        None
    }

    /// What the operands' gradients are where the result's is `gradient`, of other operators; `None` for an operand without one. Without this to ask for a gradient is an error.
    fn gradient(
        &self,
        _operands: &[Tensor],
        _result: &Tensor,
        _gradient: &Tensor,
    ) -> Option<Vec<Option<Tensor>>> {
        None
    }

    /// Whether it does the same for each example where all operands have examples along an axis in front: what `vmap` needs.
    fn is_for_each(&self) -> bool {
        false
    }
}

/// The values of an operand of what is computed on the host.
#[derive(Clone, Copy, Debug)]
pub struct HostValues<'a> {
    /// Its shape.
    pub shape: &'a [usize],
    /// Its elements' type.
    pub dtype: DType,
    /// Its elements' bytes, with one element behind the other.
    pub bytes: &'a [u8],
}

impl HostValues<'_> {
    /// The same without a copy where memory is aligned.
    pub(crate) fn seen<T: bytemuck::AnyBitPattern>(&self) -> std::borrow::Cow<'_, [T]> {
        match bytemuck::try_cast_slice(self.bytes) {
            Ok(values) => values.into(),
            Err(_) => self.values().into(),
        }
    }

    /// Its elements, of a Rust type of the same size.
    pub(crate) fn values<T: bytemuck::AnyBitPattern>(&self) -> Vec<T> {
        let each = self.bytes.chunks_exact(size_of::<T>());
        each.map(bytemuck::pod_read_unaligned).collect()
    }
}

/// What a [`Function`] computes on the host.
pub trait OnHost {
    /// The bytes of the result's elements, one behind the other; or the rule that values break.
    ///
    /// # Errors
    /// The rule, and what to do.
    fn compute(&self, operands: &[HostValues<'_>]) -> Result<Vec<u8>, String>;
}

/// A function of tensors that recorded operations hold.
pub(crate) trait Recorded: MaybeSend + MaybeSync {
    fn apply(&self, operands: &[Tensor]) -> crate::error::Result<Tensor>;
}

impl<F: Fn(&[Tensor]) -> crate::error::Result<Tensor> + MaybeSend + MaybeSync> Recorded for F {
    fn apply(&self, operands: &[Tensor]) -> crate::error::Result<Tensor> {
        self(operands)
    }
}

impl fmt::Debug for dyn Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for dyn Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function")
    }
}

// Each is its own.
impl PartialEq for dyn Function {
    fn eq(&self, other: &dyn Function) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl PartialEq for dyn Recorded {
    fn eq(&self, other: &dyn Recorded) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

thread_local! {
    static TRACKS: Cell<bool> = const { Cell::new(true) };
}

/// Does something whose gradients nobody will ask for: nothing that it records is tracked, but for what [`Tensor::tracked`] begins.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Tensor, no_grad};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// let w = Tensor::from_slice(&[1.0f32], [1], &device).tracked();
/// assert!(!no_grad(|| &w * 2.0).is_tracked());
/// assert!((&w * 2.0).is_tracked());
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
pub fn no_grad<T>(work: impl FnOnce() -> T) -> T {
    tracking(false, work)
}

/// Does something that tracks what it records, or not.
pub(crate) fn tracking<T>(tracks: bool, work: impl FnOnce() -> T) -> T {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            TRACKS.set(self.0);
        }
    }
    let _back = Back(TRACKS.replace(tracks));
    work()
}

/// Sources of an operation.
pub(crate) type Sources = SmallVec<[Tensor; 2]>;

/// One recorded operation.
pub(crate) struct Node {
    pub(crate) op: Op,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    pub(crate) device: Device,
    pub(crate) at: &'static Location<'static>,
    /// Whether gradients may be asked for through it: it keeps its sources then.
    pub(crate) tracked: bool,
    /// Whether it is made of an example: it will never have a value.
    pub(crate) is_example: bool,
    /// How many operations that are not computed yet lead to it, one after the other.
    depth: AtomicU32,
    state: Mutex<State>,
    /// The gradient that `backward` has left here; of variables.
    pub(crate) gradient: OnceLock<Box<Mutex<Option<Tensor>>>>,
}

struct State {
    sources: Sources,
    value: Option<DynBuffer>,
}

impl Node {
    pub(crate) fn new(
        op: Op,
        sources: Sources,
        (shape, dtype): (Shape, DType),
        device: Device,
        at: &'static Location<'static>,
    ) -> Node {
        let tracked = match op {
            Op::Variable => true,
            Op::Same => false,
            _ => TRACKS.get() && dtype.is_float() && sources.iter().any(|source| source.0.tracked),
        };
        // Relaxed: it only says when it is time to compute; 0 for what is known may come late.
        let below = sources
            .iter()
            .map(|source| source.0.depth.load(Ordering::Relaxed));
        let depth = match op {
            Op::Leaf(_) | Op::Failed(_) => 0,
            _ => below.max().unwrap_or(0).saturating_add(1),
        };
        Node {
            is_example: op == Op::Example || sources.iter().any(|source| source.0.is_example),
            depth: AtomicU32::new(depth),
            tracked,
            op,
            shape,
            dtype,
            device,
            at,
            state: Mutex::new(State { sources, value: None }),
            gradient: OnceLock::new(),
        }
    }

    /// How many operations that are not computed yet lead to it, one after the other.
    pub(crate) fn depth(&self) -> u32 {
        self.depth.load(Ordering::Relaxed)
    }

    /// What leads to it was computed, as far as that was possible.
    pub(crate) fn restart_depth(&self) {
        self.depth.store(1, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is under the lock is whole between any two statements.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Its sources, as its meaning has them; none if its value is known and nobody may ask for gradients.
    pub(crate) fn sources(&self) -> Sources {
        let state = self.state();
        match self.op {
            Op::Joined { .. } | Op::Checkpoint(_) => state.sources.iter().skip(1).cloned().collect(),
            _ => state.sources.clone(),
        }
    }

    /// All that it keeps.
    pub(crate) fn kept(&self) -> Sources {
        self.state().sources.clone()
    }

    /// What it is computed of, if its value is not known.
    pub(crate) fn pending(&self) -> Option<Sources> {
        let state = self.state();
        state.value.is_none().then(|| match self.op {
            Op::Joined { .. } | Op::Checkpoint(_) => state.sources.iter().take(1).cloned().collect(),
            Op::Segments { .. } => state.sources.iter().take(3).cloned().collect(),
            _ => state.sources.clone(),
        })
    }

    /// Its value, if that is known.
    pub(crate) fn value(&self) -> Option<DynBuffer> {
        self.state().value.clone()
    }

    /// Its value is known now. Sources that nobody needs any more go.
    pub(crate) fn settle(&self, value: DynBuffer) {
        self.depth.store(0, Ordering::Relaxed);
        let gone = {
            let mut state = self.state();
            state.value = Some(value);
            match self.tracked && self.op != Op::Variable {
                true => Sources::new(),
                false => std::mem::take(&mut state.sources),
            }
        };
        // Outside the lock.
        drop(gone);
    }

    pub(crate) fn at(&self) -> At {
        At(self.at)
    }

    /// Type and shape, as in `f32[2, 3]`.
    pub(crate) fn describe(&self) -> String {
        format!("{}{}", self.dtype, text(&self.shape))
    }
}

impl Drop for Node {
    /// Goes through what only this node has held one by one: a graph may be a million nodes deep.
    fn drop(&mut self) {
        let take = |node: &mut Node, left: &mut Sources| {
            let state = node
                .state
                .get_mut()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            left.append(&mut state.sources);
        };
        let mut left = Sources::new();
        take(self, &mut left);
        while let Some(source) = left.pop() {
            if let Some(mut node) = Arc::into_inner(source.0) {
                take(&mut node, &mut left);
            }
        }
    }
}
