//! A launch's arguments as native code sees them: buffers as addresses that lanes share, values as they are.

use std::marker::PhantomData;

use perpetua_device::GpuType;
use perpetua_device::native::NativeArg;

use crate::kernel::element::Element;

/// A buffer: what `&[T]` and `&mut [T]` parameters are in native code. Lanes share it; only a
/// [`Mode`](super::Mode) reaches its elements.
pub struct View<'a, T> {
    pub(super) ptr: *mut T,
    pub(super) len: usize,
    life: PhantomData<&'a [T]>,
}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

// SAFETY: a view is an address and a length; what accesses through it need is the promise of `NativeKernel::run`.
unsafe impl<T: Send> Send for View<'_, T> {}
// SAFETY: as above; a shared view can only be copied.
unsafe impl<T: Send> Sync for View<'_, T> {}

impl<'a, T> View<'a, T> {
    /// The first element's address.
    #[inline(always)]
    pub fn place(&self) -> *mut u8 {
        self.ptr.cast()
    }

    /// The buffer by another way to the same address.
    #[inline(always)]
    pub fn placed(self, at: *mut u8) -> View<'a, T> {
        View {
            ptr: at.cast(),
            ..self
        }
    }

    /// The number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Where a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: usize,
    pub(super) bytes: usize,
    pub(super) element: usize,
}

/// A launch's arguments, taken one after another.
pub struct Arguments<'a> {
    args: &'a [NativeArg<'a>],
    /// By slot; `None` for values.
    extents: Vec<Option<Extent>>,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(args: &'a [NativeArg<'a>]) -> Arguments<'a> {
        Arguments {
            args,
            extents: Vec::with_capacity(args.len()),
        }
    }

    fn next(&mut self) -> Option<NativeArg<'a>> {
        self.args.get(self.extents.len()).copied()
    }

    /// The next argument, a buffer; `None` where it is none, or not aligned.
    pub fn view<'v, T: Element>(&mut self) -> Option<View<'v, T>> {
        let (ptr, len) = self.next()?.as_buffer()?;
        let ptr = ptr.cast::<T>();
        self.extents.push(Some(Extent {
            start: ptr.addr(),
            bytes: len.checked_mul(size_of::<T>())?,
            element: size_of::<T>(),
        }));
        (len == 0 || ptr.is_aligned()).then_some(View {
            ptr,
            len,
            life: PhantomData,
        })
    }

    /// The next argument, a value; `None` where it is none.
    pub fn value<T: GpuType>(&mut self) -> Option<T> {
        let value = self.next()?.as_value();
        self.extents.push(None);
        value
    }

    /// Where the buffers lie, by slot; `None` where arguments are left.
    pub(super) fn extents(self) -> Option<Vec<Option<Extent>>> {
        (self.extents.len() == self.args.len()).then_some(self.extents)
    }
}
