//! trueno's GPU operators on slices: [`GpuDevice`], each operator blocking and awaited, and [`GpuCommandBatch`]. They run on the best device that
//! there is, the processor if there is no GPU: [`GpuDevice::info`] says where. [`Tensor`] is the same without a copy for each operation.

use perpetua_device::{AdapterType, BackendKind, Device, DeviceInfo};

use crate::dtype::DType;
use crate::node::Tensor;
use crate::view::Slice;

type Result<T> = std::result::Result<T, String>;

/// What programs need beside operators: futures run to their end.
pub mod runtime {
    /// Runs a future to its end on the calling thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn block_on<F: Future>(f: F) -> F::Output {
        perpetua_device::future::block_on(f)
    }

    /// Whether there are blocking operators: not in browsers.
    pub const fn sync_available() -> bool {
        cfg!(not(target_arch = "wasm32"))
    }

    /// Runs a future beside the page.
    #[cfg(target_arch = "wasm32")]
    pub fn spawn_local<F: Future<Output = ()> + 'static>(f: F) {
        wasm_bindgen_futures::spawn_local(f);
    }
}

/// The device that operators run on.
#[derive(Clone, Debug)]
pub struct GpuDevice {
    device: Device,
}

fn is_gpu(device: &Device) -> bool {
    device.info().adapter_type != AdapterType::Cpu
}

impl GpuDevice {
    /// Opens the best device; the processor if there is no GPU.
    ///
    /// # Errors
    /// What was looked for, and what each backend says.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new() -> Result<GpuDevice> {
        runtime::block_on(GpuDevice::new_async())
    }

    /// The same, awaited.
    ///
    /// # Errors
    /// As `new`.
    pub async fn new_async() -> Result<GpuDevice> {
        match Device::new_async(BackendKind::Auto, 0).await {
            Ok(device) => Ok(GpuDevice { device }),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Operators on a device of one's own choice.
    pub fn on(device: &Device) -> GpuDevice {
        GpuDevice {
            device: device.clone(),
        }
    }

    /// Whether there is a GPU.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn is_available() -> bool {
        runtime::block_on(GpuDevice::is_available_async())
    }

    /// Whether there is a GPU.
    pub async fn is_available_async() -> bool {
        GpuDevice::new_async()
            .await
            .is_ok_and(|found| is_gpu(&found.device))
    }

    /// Where operators run.
    pub fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    #[track_caller]
    fn of(&self, values: &[f32], shape: &[usize]) -> Tensor {
        Tensor::from_slice(values, shape, &self.device)
    }

    #[track_caller]
    fn vector(&self, values: &[f32]) -> Tensor {
        self.of(values, &[values.len()])
    }
}

// Waits for a tensor and copies it to where the caller wants it.
async fn deliver(operation: &str, tensor: Tensor, result: &mut [f32]) -> Result<()> {
    tensor.check().map_err(|error| error.to_string())?;
    if tensor.len() != result.len() {
        return Err(format!(
            "{operation}: the result has {} elements, {} are given for it",
            tensor.len(),
            result.len()
        ));
    }
    let values = tensor
        .to_vec_async::<f32>()
        .await
        .map_err(|error| error.to_string())?;
    result.copy_from_slice(&values);
    Ok(())
}

macro_rules! operators {
    ($($name:ident $awaited:ident ($x:ident $(, $more:ident: $ty:ty)*) $doc:literal |$own:ident| $value:expr;)*) => {
        impl GpuDevice { $(
            #[doc = $doc]
            ///
            /// # Errors
            /// If lengths do not fit, or what the device says.
            #[cfg(not(target_arch = "wasm32"))]
            pub fn $name(&self, $x: &[f32], $($more: $ty,)* result: &mut [f32]) -> Result<()> {
                runtime::block_on(self.$awaited($x, $($more,)* result))
            }

            #[doc = $doc]
            ///
            /// # Errors
            /// If lengths do not fit, or what the device says.
            pub async fn $awaited(&self, $x: &[f32], $($more: $ty,)* result: &mut [f32]) -> Result<()> {
                let $own = self;
                deliver(stringify!($name), $value, result).await
            }
        )* }
    };
}

operators! {
    relu relu_async(x) "max(0, x)." |own| own.vector(x).relu();
    sigmoid sigmoid_async(x) "1 / (1 + exp(-x))." |own| own.vector(x).sigmoid();
    tanh tanh_async(x) "The hyperbolic tangent." |own| own.vector(x).tanh();
    swish swish_async(x) "x times its sigmoid." |own| own.vector(x).silu();
    gelu gelu_async(x) "The Gaussian error linear unit, by its usual approximation." |own| own.vector(x).gelu();
    softmax softmax_async(x) "exp(x) divided by the sum of exp(x)." |own| own.vector(x).softmax(..);
    log_softmax log_softmax_async(x) "The logarithm of softmax." |own| own.vector(x).log_softmax(..);
    vec_add vec_add_async(x, y: &[f32]) "The sum by elements." |own| own.vector(x).add(own.vector(y));
}

macro_rules! with_numbers {
    ($($name:ident $awaited:ident ($($number:ident),*) $doc:literal |$x:ident| $value:expr;)*) => {
        impl GpuDevice { $(
            #[doc = $doc]
            ///
            /// # Errors
            /// If lengths do not fit, or what the device says.
            #[cfg(not(target_arch = "wasm32"))]
            pub fn $name(&self, input: &[f32], result: &mut [f32] $(, $number: f32)*) -> Result<()> {
                runtime::block_on(self.$awaited(input, result $(, $number)*))
            }

            #[doc = $doc]
            ///
            /// # Errors
            /// If lengths do not fit, or what the device says.
            pub async fn $awaited(&self, input: &[f32], result: &mut [f32] $(, $number: f32)*) -> Result<()> {
                let $x = self.vector(input);
                deliver(stringify!($name), $value, result).await
            }
        )* }
    };
}

with_numbers! {
    leaky_relu leaky_relu_async(alpha) "x above zero, else alpha times x." |x| x.leaky_relu(alpha.into());
    elu elu_async(alpha) "x above zero, else alpha (exp(x) - 1)." |x| x.elu(alpha.into());
    clip clip_async(min, max) "x brought into a range." |x| x.clip(min, max);
}

impl GpuDevice {
    /// The sum of the products of elements.
    ///
    /// # Errors
    /// If lengths differ, or what the device says.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn dot(&self, a: &[f32], b: &[f32]) -> Result<f32> {
        runtime::block_on(self.dot_async(a, b))
    }

    /// The sum of the products of elements.
    ///
    /// # Errors
    /// If lengths differ, or what the device says.
    pub async fn dot_async(&self, a: &[f32], b: &[f32]) -> Result<f32> {
        if a.len() != b.len() {
            return Err(format!("dot: {} elements and {}", a.len(), b.len()));
        }
        let mut result = [0.0];
        let products = self.vector(a).multiply(self.vector(b));
        deliver("dot", products.sum_keep(..), &mut result).await?;
        Ok(result[0])
    }

    /// The product of a matrix of `m` rows and `k` columns and one of `k` rows and `n` columns.
    ///
    /// # Errors
    /// If lengths do not fit, or what the device says.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn matmul(
        &self,
        a: &[f32],
        b: &[f32],
        result: &mut [f32],
        m: usize,
        k: usize,
        n: usize,
    ) -> Result<()> {
        runtime::block_on(self.matmul_async(a, b, result, m, k, n))
    }

    /// The same, awaited.
    ///
    /// # Errors
    /// If lengths do not fit, or what the device says.
    pub async fn matmul_async(
        &self,
        a: &[f32],
        b: &[f32],
        result: &mut [f32],
        m: usize,
        k: usize,
        n: usize,
    ) -> Result<()> {
        let product = self.of(a, &[m, k]).matmul(self.of(b, &[k, n]));
        deliver("matmul", product, result).await
    }

    /// The convolution of an image with a kernel where the kernel lies inside it whole: `result` has `rows - kernel_rows + 1` rows and `columns -
    /// kernel_columns + 1` columns. The kernel is not turned round.
    ///
    /// # Errors
    /// If lengths do not fit, or what the device says.
    #[cfg(not(target_arch = "wasm32"))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the signature that programs for trueno expect"
    )]
    pub fn convolve2d(
        &self,
        input: &[f32],
        kernel: &[f32],
        result: &mut [f32],
        rows: usize,
        columns: usize,
        kernel_rows: usize,
        kernel_columns: usize,
    ) -> Result<()> {
        runtime::block_on(self.convolve2d_async(
            input,
            kernel,
            result,
            rows,
            columns,
            kernel_rows,
            kernel_columns,
        ))
    }

    /// The same, awaited.
    ///
    /// # Errors
    /// If lengths do not fit, or what the device says.
    #[expect(
        clippy::too_many_arguments,
        reason = "the signature that programs for trueno expect"
    )]
    pub async fn convolve2d_async(
        &self,
        input: &[f32],
        kernel: &[f32],
        result: &mut [f32],
        rows: usize,
        columns: usize,
        kernel_rows: usize,
        kernel_columns: usize,
    ) -> Result<()> {
        let (image, kernel) = (
            self.of(input, &[rows, columns]),
            self.of(kernel, &[kernel_rows, kernel_columns]),
        );
        for operand in [&image, &kernel] {
            operand.check().map_err(|error| error.to_string())?;
        }
        if kernel.is_empty() || kernel_rows > rows || kernel_columns > columns {
            return Err(format!(
                "convolve2d: a kernel of {kernel_rows} by {kernel_columns} does not lie inside {rows} by {columns}"
            ));
        }
        let (height, width) = (rows - kernel_rows + 1, columns - kernel_columns + 1);
        // A place of the kernel at a time: all of the image that meets it.
        let part = |first: usize, count: usize| Slice::from(first as isize..(first + count) as isize);
        let mut sum = Tensor::zeros([height, width], DType::F32, &self.device);
        for (row, column) in
            (0..kernel_rows).flat_map(|row| (0..kernel_columns).map(move |column| (row, column)))
        {
            let met = image.slice([part(row, height), part(column, width)]);
            sum = sum + met * kernel.slice([part(row, 1), part(column, 1)]);
        }
        deliver("convolve2d", sum, result).await
    }
}

/// Names a value of a [`GpuCommandBatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(usize);

/// Operations that are queued, then run together: what comes between them stays on the device, and chains of them are one kernel.
///
/// ```
/// use perpetua_tensor::backends::gpu::{GpuCommandBatch, GpuDevice, runtime};
/// let mut batch = GpuCommandBatch::new(GpuDevice::new()?);
/// let input = batch.upload(&[1.0, 2.0, -3.0, 4.0]);
/// let a = batch.relu(input);
/// let b = batch.scale(a, 2.0);
/// runtime::block_on(batch.execute())?;
/// assert_eq!(runtime::block_on(batch.read(b))?, [2.0, 4.0, 0.0, 8.0]);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct GpuCommandBatch {
    device: GpuDevice,
    /// Each with whether another one is made of it.
    values: Vec<(Tensor, bool)>,
}

impl GpuCommandBatch {
    /// An empty batch for a device.
    pub fn new(device: GpuDevice) -> GpuCommandBatch {
        GpuCommandBatch {
            device,
            values: Vec::new(),
        }
    }

    fn add_value(&mut self, value: Tensor) -> BufferId {
        self.values.push((value, false));
        BufferId(self.values.len() - 1)
    }

    // A name of another batch stands for no value.
    #[track_caller]
    fn take(&mut self, id: BufferId) -> Tensor {
        match self.values.get_mut(id.0) {
            Some((value, is_used)) => {
                *is_used = true;
                value.clone()
            }
            None => self.device.of(&[], &[1]),
        }
    }

    /// A copy of values.
    #[track_caller]
    pub fn upload(&mut self, values: &[f32]) -> BufferId {
        let value = self.device.vector(values);
        self.add_value(value)
    }

    /// Every element times a number.
    #[track_caller]
    pub fn scale(&mut self, x: BufferId, by: f32) -> BufferId {
        let value = self.take(x).multiply(by);
        self.add_value(value)
    }

    /// Runs what is queued; the results wait on the device. What other operations are made of is not kept.
    ///
    /// # Errors
    /// If lengths did not fit, or what the device says.
    pub async fn execute(&mut self) -> Result<()> {
        let results: Vec<&Tensor> = self
            .values
            .iter()
            .filter(|(_, is_used)| !is_used)
            .map(|(value, _)| value)
            .collect();
        Tensor::realize_all(&results).map_err(|error| error.to_string())?;
        let done = self.device.device.synchronize_async().await;
        done.map_err(|error| error.to_string())
    }

    /// The elements of a value.
    ///
    /// # Errors
    /// If lengths did not fit, or what the device says.
    pub async fn read(&self, x: BufferId) -> Result<Vec<f32>> {
        let (value, _) = self.values.get(x.0).ok_or("it is a value of another batch")?;
        value.to_vec_async().await.map_err(|error| error.to_string())
    }
}

macro_rules! queued {
    ($($name:ident($($operand:ident),*) $doc:literal |$($x:ident),*| $value:expr;)*) => {
        impl GpuCommandBatch { $(
            #[doc = $doc]
            #[track_caller]
            pub fn $name(&mut self, $($operand: BufferId),*) -> BufferId {
                $(let $x = self.take($operand);)*
                let value = $value;
                self.add_value(value)
            }
        )* }
    };
}

queued! {
    relu(x) "max(0, x)." |x| x.relu();
    sigmoid(x) "1 / (1 + exp(-x))." |x| x.sigmoid();
    tanh(x) "The hyperbolic tangent." |x| x.tanh();
    swish(x) "x times its sigmoid." |x| x.silu();
    gelu(x) "The Gaussian error linear unit, by its usual approximation." |x| x.gelu();
    softmax(x) "exp(x) divided by the sum of exp(x)." |x| x.softmax(..);
    log_softmax(x) "The logarithm of softmax." |x| x.log_softmax(..);
    add(x, y) "The sum by elements." |x, y| x.add(y);
    sub(x, y) "The difference by elements." |x, y| x.subtract(y);
    mul(x, y) "The product by elements." |x, y| x.multiply(y);
    dot(x, y) "The sum of the products of elements: one element." |x, y| x.multiply(y).sum_keep(..);
}
