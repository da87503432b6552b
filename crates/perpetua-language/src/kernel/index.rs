//! Where a lane stands: indices of lanes and blocks, under CUDA's names (`i32`) and under neutral ones (`usize`).
//!
//! In plain Rust these are those of the only lane of a launch, or of the lane that [`Lane::run`] says.

use std::cell::Cell;

/// A lane of a launch, and the launch's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Index of the lane in its block, x, y, z.
    pub thread: [u32; 3],
    /// Index of the block in the grid.
    pub block: [u32; 3],
    /// Lanes per block.
    pub block_dim: [u32; 3],
    /// Blocks.
    pub grid_dim: [u32; 3],
}

impl Lane {
    /// The only lane of the smallest launch.
    pub const ONLY: Lane = Lane {
        thread: [0; 3],
        block: [0; 3],
        block_dim: [1; 3],
        grid_dim: [1; 3],
    };

    /// Runs `kernel`, in which the functions of this module give this lane's indices: what a kernel does for one lane,
    /// as plain Rust.
    ///
    /// ```
    /// use perpetua::kernel::index::{Lane, global_id_x};
    /// let lane = Lane { block: [3, 0, 0], block_dim: [8, 1, 1], grid_dim: [4, 1, 1], ..Lane::ONLY };
    /// assert_eq!(lane.run(global_id_x), 24);
    /// assert_eq!(global_id_x(), 0);
    /// ```
    pub fn run<R>(self, kernel: impl FnOnce() -> R) -> R {
        struct Restore(Lane);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _restore = Restore(CURRENT.replace(self));
        kernel()
    }

    /// The lane whose indices the functions of this module give on this thread.
    pub fn current() -> Lane {
        CURRENT.get()
    }
}

thread_local! {
    static CURRENT: Cell<Lane> = const { Cell::new(Lane::ONLY) };
}

macro_rules! indices {
    ($($doc:literal $cuda:ident = $value:expr;)*) => { $(
        #[doc = concat!($doc, ", as an `i32` (CUDA's is unsigned); `usize` comes from the functions that end in `_id_x` and the like.")]
        #[inline]
        pub fn $cuda() -> i32 {
            let of: fn(Lane) -> u32 = $value;
            of(Lane::current()) as i32
        }
    )* };
}

indices! {
    "The lane's index in its block in x" thread_idx_x = |l| l.thread[0];
    "The lane's index in its block in y" thread_idx_y = |l| l.thread[1];
    "The lane's index in its block in z" thread_idx_z = |l| l.thread[2];
    "The block's index in x" block_idx_x = |l| l.block[0];
    "The block's index in y" block_idx_y = |l| l.block[1];
    "The block's index in z" block_idx_z = |l| l.block[2];
    "The lanes per block in x" block_dim_x = |l| l.block_dim[0];
    "The lanes per block in y" block_dim_y = |l| l.block_dim[1];
    "The lanes per block in z" block_dim_z = |l| l.block_dim[2];
    "The number of blocks in x" grid_dim_x = |l| l.grid_dim[0];
    "The number of blocks in y" grid_dim_y = |l| l.grid_dim[1];
    "The number of blocks in z" grid_dim_z = |l| l.grid_dim[2];
}

macro_rules! wide_indices {
    ($($axis:literal $letter:literal: $global:ident $local:ident $group:ident $size:ident;)*) => { $(
        #[doc = concat!("The lane's index in the grid in ", $letter, ".")]
        #[inline]
        pub fn $global() -> usize {
            let l = Lane::current();
            l.block[$axis] as usize * l.block_dim[$axis] as usize + l.thread[$axis] as usize
        }

        #[doc = concat!("The lane's index in its block in ", $letter, ".")]
        #[inline]
        pub fn $local() -> usize {
            Lane::current().thread[$axis] as usize
        }

        #[doc = concat!("The block's index in ", $letter, ".")]
        #[inline]
        pub fn $group() -> usize {
            Lane::current().block[$axis] as usize
        }

        #[doc = concat!("The number of lanes in the grid in ", $letter, ".")]
        #[inline]
        pub fn $size() -> usize {
            let l = Lane::current();
            l.grid_dim[$axis] as usize * l.block_dim[$axis] as usize
        }
    )* };
}

wide_indices! {
    0 "x": global_id_x local_id_x group_id_x global_size_x;
    1 "y": global_id_y local_id_y group_id_y global_size_y;
    2 "z": global_id_z local_id_z group_id_z global_size_z;
}
