//! Gradients of attention: what launches take, and which kernels suit them. Must not know how a block computes its queries or keys.

use half::{bf16, f16};
use perpetua_device::{BackendKind, Buffer, KernelArg, LaunchConfig, Stream};
use perpetua_ir::back::{Capability, Sm};
use perpetua_language::kernel::resident::U32x4;
use perpetua_language::{KernelFn, args};

use super::AttentionKernel;
use super::backward::{self, TILE};
use super::backward_tensor::{self, attention_backward_tensor_core};
use crate::element::{Element, in_pieces, instance};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, ptx_of};
use crate::operand::{Operand, check};

/// The gradients of [`AttentionKernel`]: made by [`AttentionKernel::backward`]. Launched with ten buffers: Q, K and V as there (with lengths, and with slopes, one more each
/// behind them), the result and its logarithms ([`AttentionKernel::with_logs`]), the result's gradient, then the gradients of Q, K and V, of their shapes, which are written.
///
/// The same bits each time, unless [`AttentionBackwardKernel::with_atomic_sums`] says otherwise: queries and keys are computed by launches of their own, and sums are in an order that depends
/// on the shape alone. On devices with `Capability::Stages`, [`Element::F16`] and [`Element::Bf16`] in heads of 64 or 128 columns, without lengths, bound and slopes, in buffers that begin at multiples of 16 bytes, are multiplied in stages; with lengths, too, where the kernel is asked for
/// [`AttentionKernel::in_stages`] (a NaN or an infinity beyond an entry's length may then reach its gradients). Else on devices with `Capability::Matrices`, [`Element::F16`] and [`Element::Bf16`] in heads of up to 128 columns, a multiple of 8, in buffers that begin at multiples of 16 bytes, are multiplied by
/// tensor cores where a block has 64 to 106 KiB of memory: weights and their gradients are rounded to that type then. Everything else is multiplied in `f32`.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{AttentionKernel, Kernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let stream = device.default_stream();
/// let q = device.zeros::<f32>(2)?; // one head, one query, two keys of two columns
/// let k = device.zeros::<f32>(4)?;
/// let v = device.upload(&[1.0f32, 2.0, 3.0, 6.0])?;
/// let (out, logs) = (device.zeros::<f32>(2)?, device.zeros::<f32>(1)?);
/// let attention = AttentionKernel::new(1, 1, [1, 2], 2).with_logs();
/// attention.launch(&stream, args![&q, &k, &v, &out, &logs])?;
/// let dout = device.upload(&[1.0f32, -1.0])?;
/// let (dq, dk, dv) = (device.zeros::<f32>(2)?, device.zeros::<f32>(4)?, device.zeros::<f32>(4)?);
/// attention.backward().launch(&stream, args![&q, &k, &v, &out, &logs, &dout, &dq, &dk, &dv])?;
/// let expected = [0.5, -0.5, 0.5, -0.5];
/// assert!(dv.read()?.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-6));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionBackwardKernel {
    of: AttentionKernel,
    atomic: bool,
}

impl AttentionKernel {
    /// The kernel of its gradients, which is told what this one is.
    pub fn backward(self) -> AttentionBackwardKernel {
        AttentionBackwardKernel {
            of: AttentionKernel {
                with_logs: true,
                ..self
            },
            atomic: false,
        }
    }
}

/// What both launches are given.
struct Given<'a> {
    /// Q, K, V, lengths, slopes, the result's gradient.
    read: Vec<KernelArg<'a>>,
    logs: KernelArg<'a>,
    means: &'a Buffer<f32>,
    /// Sums of Q's gradient, where several blocks add to them.
    sums: &'a Buffer<f32>,
}

impl AttentionBackwardKernel {
    /// Faster where tensor cores multiply and there are no stages, which this leaves out: one launch computes the gradients of keys and queries, to which blocks add what they have in the order in which they come. So the last bits of Q's gradient differ from
    /// launch to launch. Takes memory for Q's gradient in `f32` from the device's pool. Other launches stay as they are.
    pub fn with_atomic_sums(mut self) -> AttentionBackwardKernel {
        self.atomic = true;
        self
    }

    /// The kernel of the gradients of queries, which have a launch of their own unless sums are atomic; [`Kernel::function`] is that of the gradients of keys and values.
    pub fn function_of_queries(&self) -> KernelFn {
        self.one(false)
    }

    /// The instance in stages, where the kernel is asked for stages.
    fn in_stages(&self, of_keys: bool) -> Option<KernelFn> {
        let asked = self.of.in_stages && !self.atomic;
        asked.then(|| self.of.instance_of_backward(of_keys)).flatten()
    }

    /// That of the gradients of keys and values, or of queries.
    fn one(&self, of_keys: bool) -> KernelFn {
        self.in_stages(of_keys)
            .or_else(|| self.on_tensor_cores(of_keys))
            .unwrap_or_else(|| self.plain(of_keys))
    }

    /// The kernel for all that tensor cores do not multiply.
    fn plain(&self, of_keys: bool) -> KernelFn {
        let element = self.of.element;
        macro_rules! of {
            ($parts:tt) => {
                match (self.of.causal, of_keys) {
                    (false, false) => instance!(element, backward::attention_backward, $parts, false, false),
                    (false, true) => instance!(element, backward::attention_backward, $parts, false, true),
                    (true, false) => instance!(element, backward::attention_backward, $parts, true, false),
                    (true, true) => instance!(element, backward::attention_backward, $parts, true, true),
                }
            };
        }
        match self.of.dim {
            0..=64 => of!(1),
            65..=128 => of!(2),
            _ => of!(4),
        }
    }

    /// The kernel for tensor cores, where there is one.
    fn on_tensor_cores(&self, of_keys: bool) -> Option<KernelFn> {
        let plain = self.of.cap.is_none() && !self.of.with_slopes;
        macro_rules! of {
            ($T:ty, $eighths:tt, $half:tt, $wide:tt) => {
                match (plain, of_keys, self.atomic) {
                    (false, false, _) => of!($T, $eighths, $half, $wide, false, false, false),
                    (true, false, _) => of!($T, $eighths, $half, $wide, true, false, false),
                    (false, true, false) => of!($T, $eighths, $half, $wide, false, true, false),
                    (true, true, false) => of!($T, $eighths, $half, $wide, true, true, false),
                    (false, true, true) => of!($T, $eighths, $half, $wide, false, true, true),
                    (true, true, true) => of!($T, $eighths, $half, $wide, true, true, true),
                }
            };
            ($($argument:tt),*) => {
                attention_backward_tensor_core::kernel::<$($argument),*>()
            };
        }
        Some(match (self.of.element, self.of.dim) {
            (_, dim) if dim == 0 || !dim.is_multiple_of(8) => return None,
            (Element::F16, 1..=64) => of!(f16, 8, 4, 4),
            (Element::F16, 65..=128) => of!(f16, 16, 8, 2),
            (Element::Bf16, 1..=64) => of!(bf16, 8, 4, 4),
            (Element::Bf16, 65..=128) => of!(bf16, 16, 8, 2),
            _ => return None,
        })
    }

    /// Bytes of a block's memory on tensor cores.
    fn shared_bytes(&self) -> u32 {
        let eighths: u32 = if self.of.dim <= 64 { 8 } else { 16 };
        let others = 512 / eighths;
        let pieces = 2 * backward_tensor::ROWS as u32 * eighths + 4 * others * eighths;
        let weights = if self.atomic {
            backward_tensor::ROWS as u32 * others / 8
        } else {
            0
        };
        (pieces + weights) * 16
    }

    fn operands(&self, kernel: &'static str) -> Result<Vec<Operand>> {
        let mut all = self.of.operands(kernel)?;
        let [q, k, v] = [all[0], all[1], all[2]];
        let named = |name, operand| Operand { name, ..operand };
        all.extend([
            named("the result's gradient", q),
            named("Q's gradient", q),
            named("K's gradient", k),
            named("V's gradient", v),
        ]);
        Ok(all)
    }

    /// Whether tensor cores multiply, given these matrices.
    fn suits_tensor_cores(&self, stream: &Stream, matrices: &[&KernelArg<'_>]) -> bool {
        let lies_right = |arg: &&KernelArg<'_>| match arg {
            KernelArg::Buffer(buffer) => buffer.ptr().place().is_multiple_of(16),
            KernelArg::Value(_) => false,
        };
        stream
            .device()
            .info()
            .capabilities
            .contains(&Capability::Matrices)
            && self.of.rows_fit()
            && self.of.queries.saturating_add(self.of.keys) <= i32::MAX as usize / 2
            && self.on_tensor_cores(true).is_some()
            && matrices.iter().all(lies_right)
    }

    /// Launches the kernel for the gradients of keys, or of queries, which go to `out`.
    fn launch_one(
        &self,
        stream: &Stream,
        of_keys: bool,
        on_tensor_cores: bool,
        given: &Given<'_>,
        out: [KernelArg<'_>; 2],
    ) -> Result<()> {
        let of = &self.of;
        let group = of.heads / of.key_heads;
        let mut all = args![
            of.queries,
            of.keys,
            of.dim,
            of.heads,
            group,
            of.scale,
            of.window_of(),
            of.cap.unwrap_or(0.0)
        ]
        .to_vec();
        let (mut function, rows) = match self.on_tensor_cores(of_keys) {
            Some(function) if on_tensor_cores => (function, backward_tensor::ROWS),
            _ => (self.plain(of_keys), TILE),
        };
        let mut read = given.read.clone();
        let mut out = out;
        if on_tensor_cores {
            // They begin where pieces do.
            let of_pieces = |arg: &_| in_pieces::<U32x4>(arg).unwrap_or(KernelArg::clone(arg));
            all.extend_from_slice(args![u32::from(of.causal)]);
            for at in [0, 1, 2, 5] {
                read[at] = of_pieces(&read[at]);
            }
            out = [of_pieces(&out[0]), of_pieces(&out[1])];
        }
        all.extend(read);
        all.extend([given.logs.clone(), given.means.arg()]);
        if on_tensor_cores {
            all.push(given.sums.arg());
        }
        all.extend(out);
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (tiles, heads) = match of_keys {
            true => (of.keys.div_ceil(rows), of.key_heads),
            false => (of.queries.div_ceil(rows), of.heads),
        };
        let mut config = LaunchConfig::new([number(tiles), number(heads), number(of.batch)], 256);
        if config.lanes() == 0 || of.dim == 0 {
            return Ok(());
        }
        if on_tensor_cores {
            config = config.with_shared_bytes(self.shared_bytes());
        }
        if stream.device().backend() == BackendKind::Cuda {
            // SAFETY: `check` has found that all matrices have room for their rows, with whose numbers rows are compared before each access, of columns below their end; on tensor cores rows
            // are whole pieces of 16 bytes. There is a logarithm and a mean for each query, two lengths for each entry and a slope for each head, where they are read; no length counts further than the shape. Indices into
            // a block's memory are made of the lane's number, of which a block has 256, and of constants, below what `shared_bytes` has counted. Nothing is divided but by the numbers of heads, which are not zero where there is something to
            // launch.
            function = unsafe { function.unchecked() };
        }
        Ok(stream.launch(&function, config, &all)?)
    }

    /// Launches a kernel that goes over the queries by lines of blocks.
    fn launch_rows(
        &self,
        stream: &Stream,
        function: KernelFn,
        config: LaunchConfig,
        all: &[KernelArg<'_>],
    ) -> Result<()> {
        let mut function = function;
        if config.lanes() == 0 {
            return Ok(());
        }
        if stream.device().backend() == BackendKind::Cuda {
            // SAFETY: rows and columns are compared with how many there are, for which `check` has found room, and means and sums have been made for as many. Indices into the
            // block's memory are below its 256 lanes, and nothing is divided but by the number of heads, which is not zero where there is something to launch.
            function = unsafe { function.unchecked() };
        }
        Ok(stream.launch(&function, config, all)?)
    }
}

impl Kernel for AttentionBackwardKernel {
    /// That of the gradients of keys and values.
    fn function(&self) -> KernelFn {
        self.one(true)
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        let of = match self.in_stages(true).is_some() && sm == 90 {
            true => Sm::of_device(9, 0),
            false => sm.into(),
        };
        // The text is what CUDA runs. SAFETY: nothing is launched here; what launches it says why it may.
        ptx_of(unsafe { self.function().unchecked() }, of)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let name = self.plain(true).name();
        let operands = self.operands(name)?;
        check(name, &operands, args)?;
        let further = args.len() - 9;
        // Types of all, before the first launch.
        for (at, (operand, arg)) in operands.iter().zip(args).enumerate() {
            let KernelArg::Buffer(buffer) = arg else {
                continue;
            };
            let ty = buffer.element();
            let (fits, element) = match at {
                3.. if at < 3 + further => match operand.name {
                    "lengths" => (ty.is::<u32>(), "u32".to_owned()),
                    _ => (ty.is::<f32>(), "f32".to_owned()),
                },
                _ if at == 4 + further => (ty.is::<f32>(), "f32".to_owned()),
                _ => (self.of.element.is(ty), format!("{:?}", self.of.element)),
            };
            if !fits {
                return Err(Error::Stored {
                    kernel: name,
                    operand: operand.name,
                    found: ty.to_string(),
                    element,
                });
            }
        }
        let (read, rest) = args.split_at(3 + further);
        let [result, logs, dout, dq, dk, dv] = rest else {
            // `check` has counted them.
            return Ok(());
        };
        let device = stream.device();
        let of = &self.of;
        let rows = of.batch * of.heads * of.queries;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let means = device.alloc::<f32>(rows)?;
        let all = args![rows, of.dim, result.clone(), dout.clone(), &means];
        let function = instance!(of.element, backward::attention_means,);
        self.launch_rows(
            stream,
            function,
            LaunchConfig::new(number(rows.div_ceil(8)), 256),
            all,
        )?;

        let (no_lengths, none) = (device.alloc::<u32>(0)?, device.alloc::<f32>(0)?);
        let mut all = of.all_buffers(read, no_lengths.arg(), none.arg(), None);
        let lengths = all[3].clone();
        all.push(dout.clone());
        let matrices = [&args[0], &args[1], &args[2], dout, dq, dk, dv];
        if !self.atomic && of.takes_backward_stages(stream, &matrices) {
            of.launch_backward_in_stages(stream, true, &all, logs, &means, [dk.clone(), dv.clone()])?;
            // The second is not written.
            return of.launch_backward_in_stages(stream, false, &all, logs, &means, [dq.clone(), dv.clone()]);
        }
        let on_tensor_cores = self.suits_tensor_cores(stream, &matrices);
        let atomic = self.atomic && on_tensor_cores;
        let sums = device.alloc::<f32>(if atomic { rows * of.dim } else { 0 })?;
        if atomic {
            stream.fill(&sums, 0.0)?;
        }
        let given = Given {
            read: all,
            logs: logs.clone(),
            means: &means,
            sums: &sums,
        };
        self.launch_one(stream, true, on_tensor_cores, &given, [dk.clone(), dv.clone()])?;
        if !atomic {
            // The second is not written.
            return self.launch_one(stream, false, on_tensor_cores, &given, [dq.clone(), dv.clone()]);
        }
        let all = args![of.queries, of.heads, of.dim, of.scale, &sums, lengths, dq.clone()];
        let blocks = [
            number((of.queries * of.dim).div_ceil(256)),
            number(of.batch * of.heads),
            1,
        ];
        let function = instance!(of.element, backward::attention_narrowed,);
        self.launch_rows(stream, function, LaunchConfig::new(blocks, 256), all)
    }
}
