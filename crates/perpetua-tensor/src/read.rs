//! Looking at values: what has been recorded is computed, then read.

use perpetua_device::{BoxFuture, Device};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::node::Tensor;
use crate::run::realize;

impl Tensor {
    /// Computes it now, without waiting for the device.
    ///
    /// # Errors
    /// If an operation on the way was refused, or the device cannot do it.
    pub fn realize(&self) -> Result<()> {
        realize(&[self])
    }

    /// Computes several now, of one device, and what they share once.
    ///
    /// # Errors
    /// As [`Tensor::realize`].
    pub fn realize_all(tensors: &[&Tensor]) -> Result<()> {
        realize(tensors)
    }

    /// Its elements, the last axis varying fastest. Waits for the device.
    ///
    /// # Errors
    /// If `T` is not its type, an operation on the way was refused, or the device cannot do it.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.is_of(T::TYPE)?;
        Ok(values(&self.to_bytes()?))
    }

    /// The same without blocking. Work is submitted by the call.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    pub fn to_vec_async<T: Element>(&self) -> BoxFuture<'static, Result<Vec<T>>> {
        let reading = self.is_of(T::TYPE).and_then(|()| self.bytes_async());
        Box::pin(async move { Ok(values(&reading?.await?)) })
    }

    /// Its elements' bytes, in the machine's order, the last axis varying fastest: of each type. Waits for the device.
    ///
    /// # Errors
    /// As [`Tensor::realize`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.realize()?;
        match self.0.value() {
            Some(value) => value.read().map_err(|cause| self.device_error(cause)),
            None => Ok(Vec::new()),
        }
    }

    fn bytes_async(&self) -> Result<BoxFuture<'static, Result<Vec<u8>>>> {
        self.realize()?;
        let reading = self.0.value().map(|value| value.read_async());
        let this = self.clone();
        Ok(Box::pin(async move {
            match reading {
                Some(reading) => reading.await.map_err(|cause| this.device_error(cause)),
                None => Ok(Vec::new()),
            }
        }))
    }

    /// The rule that the values of its operands break.
    pub(crate) fn broken(&self, rule: String) -> Error {
        let operands = self.0.sources();
        let texts: Vec<String> = operands.iter().map(|operand| operand.0.describe()).collect();
        Error::Rule {
            operation: crate::table::name_of(&self.0),
            operands: texts.join(" and "),
            rule,
            at: self.0.at(),
        }
    }

    pub(crate) fn device_error(&self, cause: perpetua_device::Error) -> Error {
        Error::Device {
            operation: crate::table::name_of(&self.0).into(),
            cause: cause.into(),
            at: self.0.at(),
        }
    }

    fn is_of(&self, dtype: DType) -> Result<()> {
        self.check()?;
        match self.0.dtype == dtype {
            true => Ok(()),
            false => self
                .refuse(
                    "to_vec",
                    &[],
                    format!("its elements are not {dtype}: cast it before, or name its type"),
                    self.0.at,
                )
                .check(),
        }
    }

    /// A copy on another device.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    #[track_caller]
    pub fn to(&self, device: &Device) -> Result<Tensor> {
        let at = here!();
        if self.0.device.id() == device.id() {
            return Ok(self.clone());
        }
        let copy = Tensor::uploaded("to", &self.to_bytes()?, self.0.dtype, self.shape(), device, at);
        copy.check().map(|()| copy)
    }
}

fn values<T: Element>(bytes: &[u8]) -> Vec<T> {
    // Devices hold values of the type: zeros and ones for `bool`.
    let each = bytes.chunks_exact(size_of::<T>());
    each.filter_map(|value| bytemuck::checked::try_pod_read_unaligned(value).ok())
        .collect()
}
