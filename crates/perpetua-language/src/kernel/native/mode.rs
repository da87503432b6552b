//! The two ways in which a native body reaches memory: fast, where every access is proven, and checked.

use super::decide::Decide;
use super::stencil::Grid;
use super::stop::{Site, Stop};
use super::view::View;
use crate::kernel::element::Element;

/// Where a lane stands. What a kernel does not ask for is not computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Index in the grid.
    pub global: [usize; 3],
    /// Index in the block; meaningless where the kernel asks for global indices only.
    pub thread: [usize; 3],
    /// The block's index; meaningless likewise.
    pub block: [usize; 3],
}

/// A launch's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Lanes per block.
    pub block: [usize; 3],
    /// Blocks.
    pub grid: [usize; 3],
}

macro_rules! indices {
    ($($axis:literal: $thread:ident $block:ident $dim:ident $count:ident $global:ident $local:ident $group:ident $size:ident;)*) => {
        $(
            #[inline(always)]
            fn $thread(&self) -> i32 {
                self.position().thread[$axis] as i32
            }
            #[inline(always)]
            fn $block(&self) -> i32 {
                self.position().block[$axis] as i32
            }
            #[inline(always)]
            fn $dim(&self) -> i32 {
                self.shape().block[$axis] as i32
            }
            #[inline(always)]
            fn $count(&self) -> i32 {
                self.shape().grid[$axis] as i32
            }
            #[inline(always)]
            fn $global(&self) -> usize {
                self.position().global[$axis]
            }
            #[inline(always)]
            fn $local(&self) -> usize {
                self.position().thread[$axis]
            }
            #[inline(always)]
            fn $group(&self) -> usize {
                self.position().block[$axis]
            }
            #[inline(always)]
            fn $size(&self) -> usize {
                self.shape().block[$axis] * self.shape().grid[$axis]
            }
        )*
    };
}

/// A way to reach memory, and a lane's place in the launch.
///
/// Whoever holds a `Fast` may rely on every access of the lane's body being proven; nobody but the driver makes one.
#[allow(
    missing_docs,
    reason = "the indices are those of the language, by their names"
)]
pub trait Mode: Copy {
    /// Where the lane stands.
    fn position(&self) -> &Position;

    /// The launch's shape.
    fn shape(&self) -> &Shape;

    /// The condition number `number` of the kernel, `value` where it is not known.
    fn guard(&self, number: u32, value: bool) -> bool;

    /// `view[index]`.
    ///
    /// # Errors
    /// The index is not less than the length, or an enum there has no such variant.
    fn load<T: Element>(&self, view: View<'_, T>, index: usize, at: &'static Site) -> Result<T, Stop>;

    /// `view[index] = value`.
    ///
    /// # Errors
    /// The index is not less than the length.
    fn store<T: Element>(
        &self,
        view: View<'_, T>,
        index: usize,
        value: T,
        at: &'static Site,
    ) -> Result<(), Stop>;

    /// Stores a part of an element, `view[index].part = value`: `part` says where in the element it lies.
    ///
    /// # Errors
    /// The index is not less than the length, or an index inside the element not less than its.
    fn store_part<T: Element, F: Element>(
        &self,
        view: View<'_, T>,
        index: usize,
        part: impl FnOnce(&mut T) -> Result<&mut F, Stop>,
        value: F,
        at: &'static Site,
    ) -> Result<(), Stop>;

    /// The neighbour at an offset of the lane's cell of a stencil's grid.
    ///
    /// # Errors
    /// An offset beyond the halo, or as [`Mode::load`].
    fn neighbour<T: Element>(
        &self,
        grid: &Grid,
        view: View<'_, T>,
        offset: [i32; 3],
        at: &'static Site,
    ) -> Result<T, Stop>;

    indices! {
        0: thread_idx_x block_idx_x block_dim_x grid_dim_x global_id_x local_id_x group_id_x global_size_x;
        1: thread_idx_y block_idx_y block_dim_y grid_dim_y global_id_y local_id_y group_id_y global_size_y;
        2: thread_idx_z block_idx_z block_dim_z grid_dim_z global_id_z local_id_z group_id_z global_size_z;
    }
}

/// Offset of a part in its element, in bytes; `None` where it is no part of it.
#[inline(always)]
fn offset_of<T: Element, F: Element>(
    part: impl FnOnce(&mut T) -> Result<&mut F, Stop>,
) -> Result<Option<usize>, Stop> {
    let mut element = T::ZEROED;
    let start = std::ptr::from_mut(&mut element).addr();
    let offset = std::ptr::from_mut(part(&mut element)?).addr().wrapping_sub(start);
    let inside = offset
        .checked_add(size_of::<F>())
        .is_some_and(|end| end <= size_of::<T>());
    Ok((inside && offset.is_multiple_of(align_of::<F>())).then_some(offset))
}

/// No check, plain accesses.
#[derive(Clone, Copy)]
pub(super) struct Fast<'a, D> {
    position: Position,
    shape: &'a Shape,
    conditions: D,
}

impl<'a, D: Decide> Fast<'a, D> {
    /// A lane in a proven box, in which the conditions are as `conditions` says.
    ///
    /// # Safety
    /// The body that gets it makes only accesses that are proven: each inside its buffer, and no element
    /// that it stores to is reached by any other lane at the same time.
    #[inline(always)]
    pub(super) unsafe fn new(position: Position, shape: &'a Shape, conditions: D) -> Fast<'a, D> {
        Fast {
            position,
            shape,
            conditions,
        }
    }
}

impl<D: Decide> Mode for Fast<'_, D> {
    #[inline(always)]
    fn position(&self) -> &Position {
        &self.position
    }

    #[inline(always)]
    fn shape(&self) -> &Shape {
        self.shape
    }

    #[inline(always)]
    fn guard(&self, number: u32, value: bool) -> bool {
        self.conditions.decide(number, value)
    }

    #[inline(always)]
    fn load<T: Element>(&self, view: View<'_, T>, index: usize, at: &'static Site) -> Result<T, Stop> {
        debug_assert!(
            index < view.len,
            "a proof is wrong: index {index}, length {}",
            view.len
        );
        // SAFETY: `Fast::new`'s promise: the index lies inside the buffer, which is aligned and initialised by
        // `NativeKernel::run`'s contract, and nobody stores to the element meanwhile.
        unsafe { T::read(view.ptr.add(index)) }.map_err(|invalid| Stop::invalid(at, invalid))
    }

    #[inline(always)]
    fn store<T: Element>(
        &self,
        view: View<'_, T>,
        index: usize,
        value: T,
        _: &'static Site,
    ) -> Result<(), Stop> {
        debug_assert!(
            index < view.len,
            "a proof is wrong: index {index}, length {}",
            view.len
        );
        // SAFETY: as in `load`; nobody else reaches the element.
        unsafe { T::write(view.ptr.add(index), value) };
        Ok(())
    }

    #[inline(always)]
    fn store_part<T: Element, F: Element>(
        &self,
        view: View<'_, T>,
        index: usize,
        part: impl FnOnce(&mut T) -> Result<&mut F, Stop>,
        value: F,
        _: &'static Site,
    ) -> Result<(), Stop> {
        debug_assert!(
            index < view.len,
            "a proof is wrong: index {index}, length {}",
            view.len
        );
        if let Some(offset) = offset_of(part)? {
            // SAFETY: as in `store`; the part lies inside the element, at the offset of a part of its type.
            unsafe { F::write(view.ptr.add(index).byte_add(offset).cast(), value) };
        }
        Ok(())
    }

    #[inline(always)]
    fn neighbour<T: Element>(
        &self,
        grid: &Grid,
        view: View<'_, T>,
        offset: [i32; 3],
        at: &'static Site,
    ) -> Result<T, Stop> {
        // It is proven that the neighbour is a cell, so that no rule of the edge applies.
        self.load(view, grid.near(self.position.global, offset), at)
    }
}

/// Looks at what a lane does in the checked mode.
pub(super) trait Watch: Copy {
    /// Whether what is stored gets to memory.
    const STORES: bool;

    /// The condition number `number` is `value`.
    fn condition(&self, number: u32, value: bool);

    /// An element of a buffer of `len` elements at `address` is loaded or stored to; the index may lie beyond it.
    ///
    /// # Errors
    /// Where the lane is not to go on.
    fn access(
        &self,
        address: usize,
        len: usize,
        index: usize,
        stores: bool,
        at: &'static Site,
    ) -> Result<(), Stop>;

    /// A neighbour of a cell lies at `index`, where there is such a cell, and at `near` if no rule of the edge applies.
    fn neighbour(&self, index: Option<usize>, near: usize, at: &'static Site);
}

/// Nobody looks.
#[derive(Clone, Copy)]
pub(super) struct Unwatched;

impl Watch for Unwatched {
    const STORES: bool = true;

    #[inline(always)]
    fn condition(&self, _: u32, _: bool) {}

    #[inline(always)]
    fn access(&self, _: usize, _: usize, _: usize, _: bool, _: &'static Site) -> Result<(), Stop> {
        Ok(())
    }

    #[inline(always)]
    fn neighbour(&self, _: Option<usize>, _: usize, _: &'static Site) {}
}

/// Every access checked, and a relaxed atomic one.
#[derive(Clone, Copy)]
pub(super) struct Checked<'a, W> {
    position: Position,
    shape: &'a Shape,
    watch: W,
}

impl<'a, W: Watch> Checked<'a, W> {
    /// A lane anywhere.
    pub(super) fn new(position: Position, shape: &'a Shape, watch: W) -> Checked<'a, W> {
        Checked {
            position,
            shape,
            watch,
        }
    }

    /// Says where the element lies, if it does.
    #[inline(always)]
    fn place<T: Element>(
        &self,
        view: View<'_, T>,
        index: usize,
        stores: bool,
        at: &'static Site,
    ) -> Result<*mut T, Stop> {
        self.watch.access(view.ptr.addr(), view.len, index, stores, at)?;
        if index >= view.len {
            return Err(Stop::index(at, index, view.len));
        }
        // SAFETY: the index was checked.
        Ok(unsafe { view.ptr.add(index) })
    }
}

impl<W: Watch> Mode for Checked<'_, W> {
    #[inline(always)]
    fn position(&self) -> &Position {
        &self.position
    }

    #[inline(always)]
    fn shape(&self) -> &Shape {
        self.shape
    }

    #[inline(always)]
    fn guard(&self, number: u32, value: bool) -> bool {
        self.watch.condition(number, value);
        value
    }

    #[inline(always)]
    fn load<T: Element>(&self, view: View<'_, T>, index: usize, at: &'static Site) -> Result<T, Stop> {
        let place = self.place(view, index, false, at)?;
        // SAFETY: inside the buffer, which is aligned and initialised by `NativeKernel::run`'s contract.
        unsafe { T::load(place) }.map_err(|invalid| Stop::invalid(at, invalid))
    }

    #[inline(always)]
    fn store<T: Element>(
        &self,
        view: View<'_, T>,
        index: usize,
        value: T,
        at: &'static Site,
    ) -> Result<(), Stop> {
        let place = self.place(view, index, true, at)?;
        if W::STORES {
            // SAFETY: as in `load`.
            unsafe { T::store(place, value) };
        }
        Ok(())
    }

    #[inline(always)]
    fn store_part<T: Element, F: Element>(
        &self,
        view: View<'_, T>,
        index: usize,
        part: impl FnOnce(&mut T) -> Result<&mut F, Stop>,
        value: F,
        at: &'static Site,
    ) -> Result<(), Stop> {
        let place = self.place(view, index, true, at)?;
        if let Some(offset) = offset_of(part)?
            && W::STORES
        {
            // SAFETY: as in `store`; the part lies inside the element, at the offset of a part of its type.
            unsafe { F::store(place.byte_add(offset).cast(), value) };
        }
        Ok(())
    }

    #[inline(always)]
    fn neighbour<T: Element>(
        &self,
        grid: &Grid,
        view: View<'_, T>,
        offset: [i32; 3],
        at: &'static Site,
    ) -> Result<T, Stop> {
        let found = grid.neighbour(self.position.global, offset, at);
        let index = found.as_ref().ok().and_then(|found| found.ok());
        self.watch
            .neighbour(index, grid.near(self.position.global, offset), at);
        match found? {
            Ok(index) => self.load(view, index, at),
            Err(outside) => Ok(T::from_f64(outside)),
        }
    }
}
