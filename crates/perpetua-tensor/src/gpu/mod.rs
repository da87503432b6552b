//! libtorch-rust's names for a tensor on a GPU: [`GpuDevice`], [`GpuBuffer`], [`GpuTensor`], all awaited, on wgpu. [`Tensor`] is the same with
//! all operators, types and devices.

pub mod shaders;

use std::sync::Arc;

use perpetua_device::{BackendKind, Buffer, Device, DeviceInfo, GpuType};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::node::Tensor;

/// A GPU, opened by wgpu.
#[derive(Clone, Debug)]
pub struct GpuDevice {
    device: Device,
}

impl GpuDevice {
    /// Opens the best adapter.
    ///
    /// # Errors
    /// [`Error::NoAdapter`] if there is none.
    pub async fn new() -> Result<GpuDevice> {
        match Device::new_async(BackendKind::Wgpu, 0).await {
            Ok(device) => Ok(GpuDevice { device }),
            Err(cause) => Err(Error::NoAdapter(Arc::new(cause))),
        }
    }

    /// What is known of it: `info().name` is its name.
    pub fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    /// The device of the rest of the library.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// Elements in a GPU's memory.
pub struct GpuBuffer<T> {
    buffer: Result<Buffer<T>>,
}

impl<T: GpuType> GpuBuffer<T> {
    /// A copy of values. What the device cannot do comes back from [`GpuBuffer::try_read`].
    pub fn from_slice(device: &GpuDevice, values: &[T]) -> GpuBuffer<T> {
        GpuBuffer {
            buffer: device.device.upload(values).map_err(Error::from),
        }
    }

    /// The elements.
    ///
    /// # Panics
    /// If the device could not hold or read them: [`GpuBuffer::try_read`] gives the error instead.
    #[expect(
        clippy::panic,
        reason = "the signature that programs for libtorch-rust expect has no error"
    )]
    pub async fn read(&self) -> Vec<T> {
        self.try_read().await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The elements.
    ///
    /// # Errors
    /// What the device said when they were written or are read.
    pub async fn try_read(&self) -> Result<Vec<T>> {
        Ok(self.buffer.clone()?.read_async().await?)
    }

    /// Replaces the elements, by as many.
    ///
    /// # Errors
    /// If there are more or fewer, or what the device says.
    pub fn write(&self, values: &[T]) -> Result<()> {
        Ok(self.buffer.clone()?.write(values)?)
    }
}

/// A tensor of `f32` on a GPU, whose operations are computed when they are awaited.
#[derive(Clone, Debug)]
pub struct GpuTensor {
    tensor: Tensor,
    device: Arc<GpuDevice>,
}

impl GpuTensor {
    /// Zeros.
    #[track_caller]
    pub fn zeros(shape: &[usize], device: Arc<GpuDevice>) -> GpuTensor {
        let tensor = Tensor::zeros(shape, DType::F32, &device.device);
        GpuTensor { tensor, device }
    }

    /// A copy of values, the last axis varying fastest.
    ///
    /// # Errors
    /// If the shape has more or fewer elements, or the device has no room.
    #[track_caller]
    pub fn from_slice(data: &[f32], shape: &[usize], device: Arc<GpuDevice>) -> Result<GpuTensor> {
        let tensor = Tensor::from_slice(data, shape, &device.device);
        tensor.check()?;
        Ok(GpuTensor { tensor, device })
    }

    /// Extents of its axes.
    pub fn shape(&self) -> &[usize] {
        self.tensor.shape()
    }

    /// Its device.
    pub fn device(&self) -> &Arc<GpuDevice> {
        &self.device
    }

    /// The tensor of the rest of the library.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    async fn computed(&self, tensor: Tensor) -> Result<GpuTensor> {
        tensor.realize()?;
        // Faults of its kernel come with the end of its work.
        self.device.device.synchronize_async().await?;
        Ok(GpuTensor {
            tensor,
            device: Arc::clone(&self.device),
        })
    }

    /// The sum by elements.
    ///
    /// # Errors
    /// If shapes do not meet, or what the device says.
    pub async fn add(&self, other: &GpuTensor) -> Result<GpuTensor> {
        self.computed(self.tensor.add(&other.tensor)).await
    }

    /// The product by elements.
    ///
    /// # Errors
    /// As [`GpuTensor::add`].
    pub async fn mul(&self, other: &GpuTensor) -> Result<GpuTensor> {
        self.computed(self.tensor.multiply(&other.tensor)).await
    }

    /// The matrix product.
    ///
    /// # Errors
    /// As [`GpuTensor::add`].
    pub async fn matmul(&self, other: &GpuTensor) -> Result<GpuTensor> {
        self.computed(self.tensor.matmul(&other.tensor)).await
    }

    /// The elements above zero, else zero.
    ///
    /// # Errors
    /// What the device says.
    pub async fn relu(&self) -> Result<GpuTensor> {
        self.computed(self.tensor.relu()).await
    }

    /// The logistic function.
    ///
    /// # Errors
    /// What the device says.
    pub async fn sigmoid(&self) -> Result<GpuTensor> {
        self.computed(self.tensor.sigmoid()).await
    }

    /// The elements, the last axis varying fastest.
    ///
    /// # Panics
    /// If the device was lost: [`GpuTensor::try_to_vec`] gives the error instead.
    #[expect(
        clippy::panic,
        reason = "the signature that programs for libtorch-rust expect has no error"
    )]
    pub async fn to_vec(&self) -> Vec<f32> {
        self.try_to_vec().await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The elements, the last axis varying fastest.
    ///
    /// # Errors
    /// What the device says.
    pub async fn try_to_vec(&self) -> Result<Vec<f32>> {
        self.tensor.to_vec_async().await
    }
}
