//! What can be asked of products in stages. Must not know how they are launched.

use super::epilogue::{Beside, Epilogue, Gate};
use super::finish::Finish;
use super::{Factors, GemmKernel, Schedule};
use crate::element::Element;

impl GemmKernel {
    /// Multiplies these, in stages: what A and B hold need not be what C holds. Other products than [`GemmKernel::tensor_core`] and
    /// [`GemmKernel::staged`] stay as they are.
    ///
    /// Fastest where depth goes along the rows of both matrices: B is stored transposed, and A is not. Otherwise, but for 16 bits, a launch copies them so, into memory that it
    /// takes from the device's pool.
    ///
    /// ```
    /// use perpetua::device::{BackendKind, Device};
    /// use perpetua::kernels::{Factors, GemmKernel, Kernel};
    /// use perpetua::prelude::*;
    ///
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let a = device.upload(&[-3i8; 20 * 100])?;
    /// let b = device.upload(&[50i8; 10 * 100])?;
    /// let c = device.zeros::<i32>(20 * 10)?;
    /// let product = GemmKernel::staged(20, 10, 100).with_factors(Factors::I8).with_transposed(false, true);
    /// product.launch(&device.default_stream(), args![&a, &b, &c])?;
    /// assert_eq!(c.read()?, [-15_000; 200]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_factors(mut self, factors: Factors) -> GemmKernel {
        match self.schedule {
            Schedule::TensorCore(_) => self.schedule = Schedule::Staged(None),
            Schedule::Staged(_) => {}
            _ => return self,
        }
        self.multiplies = Some(factors);
        match factors {
            Factors::F16 => self.element = Element::F16,
            Factors::Bf16 => self.element = Element::Bf16,
            Factors::Tf32 => self.element = Element::F32,
            Factors::I8 => self.element = Element::F32,
            Factors::E4m3 | Factors::E5m2 => {}
        }
        self
    }

    /// Of floats of a byte: adds up what each 128 products are together in `f32`, whose 24 bits tensor cores do not keep. Takes a fifth longer. Other products
    /// stay as they are.
    pub fn with_promoted_sums(mut self) -> GemmKernel {
        self.promoted = true;
        self
    }

    /// `f32` by three products of tf32 each (3xTF32), where [`GemmKernel::with_factors`] says [`Factors::Tf32`]: of the nearest numbers of tf32, and of each with what the other one is more than that. An element
    /// is off by at most about `(k + 3) * 2^-22 * sum |a| |b|`, where tf32 alone loses `2^-10` of each product; an infinity becomes NaN. A launch takes memory for three times A and B from the device's pool. Other products
    /// stay as they are.
    ///
    /// ```
    /// use perpetua::device::{BackendKind, Device};
    /// use perpetua::kernels::{Factors, GemmKernel, Kernel};
    /// use perpetua::prelude::*;
    ///
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let third = 1.0f32 / 3.0;
    /// let (a, b) = (device.upload(&[third; 8 * 4])?, device.upload(&[third; 4 * 8])?);
    /// let c = device.zeros::<f32>(8 * 8)?;
    /// let product = GemmKernel::staged(8, 8, 4).with_factors(Factors::Tf32).with_3xtf32();
    /// product.launch(&device.default_stream(), args![&a, &b, &c])?;
    /// assert!((c.read()?[0] - 4.0 / 9.0).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_3xtf32(mut self) -> GemmKernel {
        self.split = true;
        self
    }

    /// Divides the depth of a product in stages into so many slices, which blocks multiply at the same time and a launch of its own adds up, in their order: for
    /// products with fewer tiles than a GPU has multiprocessors. Without it shape and device decide. Other products stay as they are.
    pub fn with_slices(mut self, slices: usize) -> GemmKernel {
        self.slices = Some(slices);
        self
    }

    /// Does something with each element before it is stored, in stages; launches take one buffer more, of what C holds, in front of C. [`Epilogue`] says how. Of integers C then holds `f32`, or what
    /// [`GemmKernel::with_element`] says: an epilogue gets the nearest `f32` of `alpha` times the exact sum. Other products than [`GemmKernel::tensor_core`] and [`GemmKernel::staged`] stay as they are.
    ///
    /// ```
    /// use perpetua::device::{BackendKind, Device};
    /// use perpetua::kernels::{Beside, Epilogue, Factors, GemmKernel, Kernel};
    /// use perpetua::prelude::*;
    ///
    /// /// A scale for each column.
    /// #[derive(Clone, Copy, GpuType)]
    /// #[repr(C)]
    /// struct Scaled {
    ///     unit: u8,
    /// }
    ///
    /// #[device]
    /// impl Epilogue for Scaled {
    ///     fn apply(element: f32, beside: f32) -> f32 {
    ///         element * beside
    ///     }
    /// }
    ///
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let (a, b) = (device.upload(&[-3i8; 20 * 100])?, device.upload(&[50i8; 10 * 100])?);
    /// let scales = device.upload(&[0.5f32; 10])?;
    /// let c = device.zeros::<f32>(20 * 10)?;
    /// let product = GemmKernel::staged(20, 10, 100).with_factors(Factors::I8).with_transposed(false, true);
    /// let product = product.with_epilogue::<Scaled>(Beside::Columns);
    /// product.launch(&device.default_stream(), args![&a, &b, &scales, &c])?;
    /// assert_eq!(c.read()?, [-7_500.0; 200]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_epilogue<E: Epilogue>(self, beside: Beside) -> GemmKernel {
        self.finished(Finish::of::<E>(Some(beside)))
    }

    /// Makes one column of each two, in stages: an even one and the odd one behind it. [`Gate`] says how, and what for. n, which must be even, is the number of columns of the product; C has half as many, and holds of integers what it does with an
    /// epilogue. `beta` times what C was is added to what the gate gives. Other products than [`GemmKernel::tensor_core`] and [`GemmKernel::staged`] stay as they are.
    pub fn with_gate<G: Gate>(self) -> GemmKernel {
        self.finished(Finish::joined::<G>())
    }

    fn finished(mut self, finish: Finish) -> GemmKernel {
        match self.schedule {
            Schedule::TensorCore(_) => self.schedule = Schedule::Staged(None),
            Schedule::Staged(_) => {}
            _ => return self,
        }
        self.epilogue = Some(finish);
        self
    }

    /// So many products of this shape, in stages: so far from the first element of one A, B and C to that of the next, in elements; 0 for a matrix that all of them share, but C. An epilogue's
    /// [`Beside::Elements`] has as many matrices, one behind the other. Other products than [`GemmKernel::tensor_core`] and [`GemmKernel::staged`] stay as they are.
    pub fn with_batch(mut self, count: usize, apart: [usize; 3]) -> GemmKernel {
        match self.schedule {
            Schedule::TensorCore(_) => self.schedule = Schedule::Staged(None),
            Schedule::Staged(_) => {}
            _ => return self,
        }
        (self.batch, self.apart) = (count, Some(apart));
        self
    }
}
