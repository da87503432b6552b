//! Arrays of other libraries of Rust as tensors, and back: copies.

use perpetua_device::Device;

use crate::dtype::Element;
use crate::error::Result;
use crate::node::Tensor;

#[cfg(feature = "ndarray")]
impl Tensor {
    /// A copy of an array of the crate `ndarray`, whatever its layout, with its shape.
    ///
    /// ```
    /// use perpetua_device::{BackendKind, Device};
    /// use perpetua_tensor::Tensor;
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let x = Tensor::from_ndarray(&ndarray::array![[1.0f32, 2.0], [3.0, 4.0]].t(), &device);
    /// let sums = (x + 1.0).sum(1).to_ndarray::<f32>()?;
    /// assert_eq!(sums, ndarray::array![6.0, 8.0].into_dyn());
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn from_ndarray<T: Element, D: ndarray::Dimension>(
        array: &ndarray::ArrayRef<T, D>,
        device: &Device,
    ) -> Tensor {
        match array.as_slice() {
            Some(values) => Tensor::from_slice(values, array.shape(), device),
            None => {
                let values: Vec<T> = array.iter().copied().collect();
                Tensor::from_slice(&values, array.shape(), device)
            }
        }
    }

    /// Its elements as an array of the crate `ndarray`. Waits for the device.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    pub fn to_ndarray<T: Element>(&self) -> Result<ndarray::ArrayD<T>> {
        let array = ndarray::ArrayD::from_shape_vec(self.shape(), self.to_vec::<T>()?);
        array.map_err(|error| self.broken(error.to_string()))
    }
}

#[cfg(feature = "nalgebra")]
impl Tensor {
    /// A copy of a matrix of the crate `nalgebra`: `[rows, columns]`, also of vectors.
    ///
    /// ```
    /// use nalgebra::{Matrix2x3, Matrix3x2};
    /// use perpetua_device::{BackendKind, Device};
    /// use perpetua_tensor::Tensor;
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let x = Tensor::from_nalgebra(&Matrix2x3::new(1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0), &device);
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// assert_eq!(x.transpose().to_nalgebra::<f32>()?, Matrix3x2::new(1.0, 4.0, 2.0, 5.0, 3.0, 6.0));
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn from_nalgebra<T, R, C, S>(matrix: &nalgebra::Matrix<T, R, C, S>, device: &Device) -> Tensor
    where
        T: Element + nalgebra::Scalar,
        R: nalgebra::Dim,
        C: nalgebra::Dim,
        S: nalgebra::RawStorage<T, R, C>,
    {
        let (rows, columns) = matrix.shape();
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let values: Vec<T> = places.map(|place| matrix[place]).collect();
        Tensor::from_slice(&values, [rows, columns], device)
    }

    /// Its elements as a matrix of the crate `nalgebra`. Waits for the device.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`]; if it has not two axes.
    #[track_caller]
    pub fn to_nalgebra<T: Element + nalgebra::Scalar>(&self) -> Result<nalgebra::DMatrix<T>> {
        let values = self.to_vec::<T>()?;
        let &[rows, columns] = self.shape() else {
            let refused = self.refuse(
                "to_nalgebra",
                &[],
                "a matrix has two axes: `reshape` it before",
                here!(),
            );
            return refused
                .check()
                .map(|()| nalgebra::DMatrix::from_row_slice(0, 0, &[]));
        };
        Ok(nalgebra::DMatrix::from_row_slice(rows, columns, &values))
    }
}
