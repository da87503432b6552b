//! The functions that are part of the kernel language: their names, their groups, and how many arguments each
//! takes. Types and meaning belong to the lowering and the operator table.

use serde::{Deserialize, Serialize};

/// What an intrinsic is about; decides what its call looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntrinsicGroup {
    /// A thread or block index under CUDA's names: no arguments, an `i32`.
    CudaIndex,
    /// A work-item or work-group index: no arguments, a `usize`.
    Index,
    /// A barrier or a fence: no arguments, no value.
    Sync,
    /// An operation over the subgroup's lanes.
    Subgroup,
    /// A workgroup allocation: the turbofish is its type, the value a `&mut` to it.
    Workgroup,
    /// An atomic operation: the first argument is `&mut place` (`&place` for a load). Each has a twin with the
    /// suffix `_explicit`, which takes an `Ordering` and a `Scope` more.
    Atomic,
}

macro_rules! intrinsics {
    ($($variant:ident = $name:literal, $group:ident, $generics:literal, $args:literal, $doc:literal;)*) => {
        /// A function of the language.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Intrinsic {
            $(#[doc = $doc] $variant,)*
        }

        /// The names of all intrinsics, in the order of [`Intrinsic::ALL`], without the `_explicit` twins.
        pub const INTRINSICS: &[&str] = &[$($name),*];

        impl Intrinsic {
            /// Every intrinsic.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name in Rust, without the suffix `_explicit`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it is about.
            #[must_use]
            pub fn group(self) -> IntrinsicGroup {
                match self { $(Self::$variant => IntrinsicGroup::$group,)* }
            }

            /// The number of generic arguments that it requires.
            #[must_use]
            pub fn generic_count(self) -> usize {
                match self { $(Self::$variant => $generics,)* }
            }

            /// The number of arguments, without order and scope.
            #[must_use]
            pub fn arg_count(self) -> usize {
                match self { $(Self::$variant => $args,)* }
            }

            /// The intrinsic that a call of `name` means, and whether it is the `_explicit` twin.
            #[must_use]
            pub fn lookup(name: &str) -> Option<(Self, bool)> {
                let (stem, explicit) = match name.strip_suffix("_explicit") {
                    Some(stem) => (stem, true),
                    None => (name, false),
                };
                let found = match stem { $($name => Self::$variant,)* _ => return None };
                (!explicit || found.group() == IntrinsicGroup::Atomic).then_some((found, explicit))
            }
        }
    };
}

intrinsics! {
    ThreadIdxX = "thread_idx_x", CudaIndex, 0, 0, "The lane's index in its work-group, first dimension, `i32`.";
    ThreadIdxY = "thread_idx_y", CudaIndex, 0, 0, "The lane's index in its work-group, second dimension, `i32`.";
    ThreadIdxZ = "thread_idx_z", CudaIndex, 0, 0, "The lane's index in its work-group, third dimension, `i32`.";
    BlockIdxX = "block_idx_x", CudaIndex, 0, 0, "The work-group's index, first dimension, `i32`.";
    BlockIdxY = "block_idx_y", CudaIndex, 0, 0, "The work-group's index, second dimension, `i32`.";
    BlockIdxZ = "block_idx_z", CudaIndex, 0, 0, "The work-group's index, third dimension, `i32`.";
    BlockDimX = "block_dim_x", CudaIndex, 0, 0, "The work-group's size, first dimension, `i32`.";
    BlockDimY = "block_dim_y", CudaIndex, 0, 0, "The work-group's size, second dimension, `i32`.";
    BlockDimZ = "block_dim_z", CudaIndex, 0, 0, "The work-group's size, third dimension, `i32`.";
    GridDimX = "grid_dim_x", CudaIndex, 0, 0, "The number of work-groups, first dimension, `i32`.";
    GridDimY = "grid_dim_y", CudaIndex, 0, 0, "The number of work-groups, second dimension, `i32`.";
    GridDimZ = "grid_dim_z", CudaIndex, 0, 0, "The number of work-groups, third dimension, `i32`.";
    GlobalIdX = "global_id_x", Index, 0, 0, "The lane's index in the grid, first dimension, `usize`.";
    GlobalIdY = "global_id_y", Index, 0, 0, "The lane's index in the grid, second dimension, `usize`.";
    GlobalIdZ = "global_id_z", Index, 0, 0, "The lane's index in the grid, third dimension, `usize`.";
    LocalIdX = "local_id_x", Index, 0, 0, "The lane's index in its work-group, first dimension, `usize`.";
    LocalIdY = "local_id_y", Index, 0, 0, "The lane's index in its work-group, second dimension, `usize`.";
    LocalIdZ = "local_id_z", Index, 0, 0, "The lane's index in its work-group, third dimension, `usize`.";
    GroupIdX = "group_id_x", Index, 0, 0, "The work-group's index, first dimension, `usize`.";
    GroupIdY = "group_id_y", Index, 0, 0, "The work-group's index, second dimension, `usize`.";
    GroupIdZ = "group_id_z", Index, 0, 0, "The work-group's index, third dimension, `usize`.";
    GlobalSizeX = "global_size_x", Index, 0, 0, "The number of lanes in the grid, first dimension, `usize`.";
    GlobalSizeY = "global_size_y", Index, 0, 0, "The number of lanes in the grid, second dimension, `usize`.";
    GlobalSizeZ = "global_size_z", Index, 0, 0, "The number of lanes in the grid, third dimension, `usize`.";

    SyncThreads = "sync_threads", Sync, 0, 0, "The work-group's barrier; orders its workgroup and global memory.";
    ThreadFence = "thread_fence", Sync, 0, 0, "A sequentially consistent fence of the device.";
    ThreadFenceBlock = "thread_fence_block", Sync, 0, 0, "A sequentially consistent fence of the work-group.";
    ThreadFenceSystem = "thread_fence_system", Sync, 0, 0, "A sequentially consistent fence of the system.";

    SubgroupSize = "subgroup_size", Subgroup, 0, 0, "The number of lanes in a subgroup, `u32`.";
    SubgroupLane = "subgroup_lane", Subgroup, 0, 0, "The lane's index in its subgroup, `u32`.";
    SubgroupId = "subgroup_id", Subgroup, 0, 0, "The subgroup's index in its work-group, `u32`.";
    SubgroupShuffle = "subgroup_shuffle", Subgroup, 0, 2, "`(value, lane: u32)`: the value of another lane.";
    SubgroupShuffleUp = "subgroup_shuffle_up", Subgroup, 0, 2, "`(value, delta: u32)`: the value of lane - delta.";
    SubgroupShuffleDown = "subgroup_shuffle_down", Subgroup, 0, 2, "`(value, delta: u32)`: the value of lane + delta.";
    SubgroupShuffleXor = "subgroup_shuffle_xor", Subgroup, 0, 2, "`(value, mask: u32)`: the value of lane ^ mask.";
    SubgroupBroadcast = "subgroup_broadcast", Subgroup, 0, 2, "`(value, lane: u32)`: one lane's value, the same lane for all.";
    SubgroupAny = "subgroup_any", Subgroup, 0, 1, "`(bool)`: whether it holds in any lane.";
    SubgroupAll = "subgroup_all", Subgroup, 0, 1, "`(bool)`: whether it holds in every lane.";
    SubgroupBallot = "subgroup_ballot", Subgroup, 0, 1, "`(bool)`: the lanes where it holds, one bit each, `u64`.";
    SubgroupAdd = "subgroup_add", Subgroup, 0, 1, "The sum over the lanes.";
    SubgroupMul = "subgroup_mul", Subgroup, 0, 1, "The product over the lanes.";
    SubgroupMin = "subgroup_min", Subgroup, 0, 1, "The least of the lanes' values.";
    SubgroupMax = "subgroup_max", Subgroup, 0, 1, "The greatest of the lanes' values.";
    SubgroupAnd = "subgroup_and", Subgroup, 0, 1, "The bitwise and over the lanes.";
    SubgroupOr = "subgroup_or", Subgroup, 0, 1, "The bitwise or over the lanes.";
    SubgroupXor = "subgroup_xor", Subgroup, 0, 1, "The bitwise exclusive or over the lanes.";
    SubgroupInclusiveAdd = "subgroup_inclusive_add", Subgroup, 0, 1, "The sum over this lane and those before it.";
    SubgroupExclusiveAdd = "subgroup_exclusive_add", Subgroup, 0, 1, "The sum over the lanes before this one.";
    SubgroupInclusiveMul = "subgroup_inclusive_mul", Subgroup, 0, 1, "The product over this lane and those before it.";
    SubgroupExclusiveMul = "subgroup_exclusive_mul", Subgroup, 0, 1, "The product over the lanes before this one.";

    WorkgroupArray = "workgroup_array", Workgroup, 1, 0, "`workgroup_array::<[T; N]>()`: an array that the work-group shares, `&mut [T; N]`.";
    WorkgroupSlice = "workgroup_slice", Workgroup, 1, 0, "`workgroup_slice::<T>()`: the launch's dynamic workgroup memory, `&mut [T]`.";

    AtomicLoad = "atomic_load", Atomic, 0, 1, "`(&place)`: its value.";
    AtomicStore = "atomic_store", Atomic, 0, 2, "`(&mut place, value)`.";
    AtomicAdd = "atomic_add", Atomic, 0, 2, "`(&mut place, value)`: adds; the value before.";
    AtomicSub = "atomic_sub", Atomic, 0, 2, "`(&mut place, value)`: subtracts; the value before.";
    AtomicMin = "atomic_min", Atomic, 0, 2, "`(&mut place, value)`: keeps the lesser; the value before.";
    AtomicMax = "atomic_max", Atomic, 0, 2, "`(&mut place, value)`: keeps the greater; the value before.";
    AtomicAnd = "atomic_and", Atomic, 0, 2, "`(&mut place, value)`: bitwise and; the value before.";
    AtomicOr = "atomic_or", Atomic, 0, 2, "`(&mut place, value)`: bitwise or; the value before.";
    AtomicXor = "atomic_xor", Atomic, 0, 2, "`(&mut place, value)`: bitwise exclusive or; the value before.";
    AtomicExchange = "atomic_exchange", Atomic, 0, 2, "`(&mut place, value)`: stores; the value before.";
    AtomicCompareExchange = "atomic_compare_exchange", Atomic, 0, 3, "`(&mut place, expected, new)`: stores `new` where the value is `expected`; the value before. The order on failure is the given one without its release half.";
}
