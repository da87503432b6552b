//! What can be asked of products in stages. Must not know how they are launched.

use super::epilogue::{Beside, Epilogue};
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
            Factors::I8 => (self.element, self.epilogue) = (Element::F32, None),
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

    /// Divides the depth of a product in stages into so many slices, which blocks multiply at the same time and a launch of its own adds up, in their order: for
    /// products with fewer tiles than a GPU has multiprocessors. Without it shape and device decide. Other products stay as they are.
    pub fn with_slices(mut self, slices: usize) -> GemmKernel {
        self.slices = Some(slices);
        self
    }

    /// Does something with each element before it is stored, in stages; launches take one buffer more, of what C holds, in front of C. [`Epilogue`] says how. Products of integers, and other products than
    /// [`GemmKernel::tensor_core`] and [`GemmKernel::staged`], stay as they are.
    pub fn with_epilogue<E: Epilogue>(mut self, beside: Beside) -> GemmKernel {
        match self.schedule {
            Schedule::TensorCore(_) => self.schedule = Schedule::Staged(None),
            Schedule::Staged(_) if self.multiplies != Some(Factors::I8) => {}
            _ => return self,
        }
        self.epilogue = Some(Finish::of::<E>(Some(beside)));
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
