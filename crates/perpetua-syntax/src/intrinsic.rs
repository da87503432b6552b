//! The functions that are part of the kernel language: their names, their groups, and how many arguments each
//! takes. Types and meaning belong to the lowering and the operator table.

use serde::{Deserialize, Serialize};

/// What an intrinsic is about; decides what its call looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntrinsicGroup {
    /// A thread or block index under CUDA's names: no arguments, an `i32`.
    CudaIndex,
    /// A work-item or block index: no arguments, a `usize`.
    Index,
    /// A barrier or a fence: no arguments, no value.
    Sync,
    /// An operation over the subgroup's lanes.
    Subgroup,
    /// A shared allocation: the turbofish is its type, the value a `&mut` to it.
    Shared,
    /// Arithmetic as fast as the device has it: operands, and a value that is less exact than a method's.
    Fast,
    /// What a kernel that hosts actors asks of its device.
    Resident,
    /// An atomic operation: the first argument is `&mut place` (`&place` for a load). Each has a twin with the
    /// suffix `_explicit`, which takes an `Ordering` and a `Scope` more.
    Atomic,
}

impl Intrinsic {
    /// The number of generic arguments that it requires.
    #[must_use]
    pub fn generic_count(self) -> usize {
        match self {
            Self::StageFactors | Self::StageTwins => 2,
            Self::StagePairs | Self::StageLayers => 0,
            _ => usize::from(self.group() == IntrinsicGroup::Shared),
        }
    }

    /// The number of arguments, without order and scope.
    #[must_use]
    pub fn arg_count(self) -> usize {
        match self.signature() {
            "()" => 0,
            signature => signature.split(',').count(),
        }
    }
}

macro_rules! intrinsics {
    ($($variant:ident = $name:literal, $group:ident, $args:literal, $doc:literal;)*) => {
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

            /// Its arguments as a call writes them, in parentheses, without order and scope.
            #[must_use]
            pub fn signature(self) -> &'static str {
                match self { $(Self::$variant => $args,)* }
            }

            /// What it does, in a sentence.
            #[must_use]
            pub fn documentation(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
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
    ThreadIdxX = "thread_idx_x", CudaIndex, "()", "The lane's index in its block, first dimension, `i32`.";
    ThreadIdxY = "thread_idx_y", CudaIndex, "()", "The lane's index in its block, second dimension, `i32`.";
    ThreadIdxZ = "thread_idx_z", CudaIndex, "()", "The lane's index in its block, third dimension, `i32`.";
    BlockIdxX = "block_idx_x", CudaIndex, "()", "The block's index, first dimension, `i32`.";
    BlockIdxY = "block_idx_y", CudaIndex, "()", "The block's index, second dimension, `i32`.";
    BlockIdxZ = "block_idx_z", CudaIndex, "()", "The block's index, third dimension, `i32`.";
    BlockDimX = "block_dim_x", CudaIndex, "()", "The block's size, first dimension, `i32`.";
    BlockDimY = "block_dim_y", CudaIndex, "()", "The block's size, second dimension, `i32`.";
    BlockDimZ = "block_dim_z", CudaIndex, "()", "The block's size, third dimension, `i32`.";
    GridDimX = "grid_dim_x", CudaIndex, "()", "The number of blocks, first dimension, `i32`.";
    GridDimY = "grid_dim_y", CudaIndex, "()", "The number of blocks, second dimension, `i32`.";
    GridDimZ = "grid_dim_z", CudaIndex, "()", "The number of blocks, third dimension, `i32`.";

    GlobalIdX = "global_id_x", Index, "()", "The lane's index in the grid, first dimension, `usize`.";
    GlobalIdY = "global_id_y", Index, "()", "The lane's index in the grid, second dimension, `usize`.";
    GlobalIdZ = "global_id_z", Index, "()", "The lane's index in the grid, third dimension, `usize`.";
    LocalIdX = "local_id_x", Index, "()", "The lane's index in its block, first dimension, `usize`.";
    LocalIdY = "local_id_y", Index, "()", "The lane's index in its block, second dimension, `usize`.";
    LocalIdZ = "local_id_z", Index, "()", "The lane's index in its block, third dimension, `usize`.";
    GroupIdX = "group_id_x", Index, "()", "The block's index, first dimension, `usize`.";
    GroupIdY = "group_id_y", Index, "()", "The block's index, second dimension, `usize`.";
    GroupIdZ = "group_id_z", Index, "()", "The block's index, third dimension, `usize`.";
    GlobalSizeX = "global_size_x", Index, "()", "The number of lanes in the grid, first dimension, `usize`.";
    GlobalSizeY = "global_size_y", Index, "()", "The number of lanes in the grid, second dimension, `usize`.";
    GlobalSizeZ = "global_size_z", Index, "()", "The number of lanes in the grid, third dimension, `usize`.";

    SyncThreads = "sync_threads", Sync, "()", "The block's barrier; orders its shared and global memory.";
    ThreadFence = "thread_fence", Sync, "()", "An acquire and release fence of the device.";
    ThreadFenceBlock = "thread_fence_block", Sync, "()", "An acquire and release fence of the block.";
    ThreadFenceSystem = "thread_fence_system", Sync, "()", "An acquire and release fence of the system.";

    SubgroupSize = "subgroup_size", Subgroup, "()", "The number of lanes in a subgroup, `u32`.";
    SubgroupLane = "subgroup_lane", Subgroup, "()", "The lane's index in its subgroup, `u32`.";
    SubgroupId = "subgroup_id", Subgroup, "()", "The subgroup's index in its block, `u32`.";
    SubgroupShuffle = "subgroup_shuffle", Subgroup, "(value, lane: u32)", "The value of another lane.";
    SubgroupShuffleUp = "subgroup_shuffle_up", Subgroup, "(value, delta: u32)", "The value of lane - delta.";
    SubgroupShuffleDown = "subgroup_shuffle_down", Subgroup, "(value, delta: u32)", "The value of lane + delta.";
    SubgroupShuffleXor = "subgroup_shuffle_xor", Subgroup, "(value, mask: u32)", "The value of lane ^ mask.";
    SubgroupBroadcast = "subgroup_broadcast", Subgroup, "(value, lane: u32)", "One lane's value, the same lane for all.";
    SubgroupBroadcastFirst = "subgroup_broadcast_first", Subgroup, "(value)", "The value of the lowest active lane.";
    SubgroupAny = "subgroup_any", Subgroup, "(condition: bool)", "Whether it holds in any lane.";
    SubgroupAll = "subgroup_all", Subgroup, "(condition: bool)", "Whether it holds in every lane.";
    SubgroupBallot = "subgroup_ballot", Subgroup, "(condition: bool)", "The lanes where it holds, bit `i % 32` of word `i / 32` is lane `i`, `[u32; 4]`.";
    SubgroupAdd = "subgroup_add", Subgroup, "(value)", "The sum over the lanes.";
    SubgroupMul = "subgroup_mul", Subgroup, "(value)", "The product over the lanes.";
    SubgroupMin = "subgroup_min", Subgroup, "(value)", "The least of the lanes' values.";
    SubgroupMax = "subgroup_max", Subgroup, "(value)", "The greatest of the lanes' values.";
    SubgroupAnd = "subgroup_and", Subgroup, "(value)", "The bitwise and over the lanes.";
    SubgroupOr = "subgroup_or", Subgroup, "(value)", "The bitwise or over the lanes.";
    SubgroupXor = "subgroup_xor", Subgroup, "(value)", "The bitwise exclusive or over the lanes.";
    SubgroupInclusiveAdd = "subgroup_inclusive_add", Subgroup, "(value)", "The sum over this lane and those before it.";
    SubgroupInclusiveMul = "subgroup_inclusive_mul", Subgroup, "(value)", "The product over this lane and those before it.";
    SubgroupInclusiveMin = "subgroup_inclusive_min", Subgroup, "(value)", "The least value over this lane and those before it.";
    SubgroupInclusiveMax = "subgroup_inclusive_max", Subgroup, "(value)", "The greatest value over this lane and those before it.";
    SubgroupInclusiveAnd = "subgroup_inclusive_and", Subgroup, "(value)", "The bitwise and over this lane and those before it.";
    SubgroupInclusiveOr = "subgroup_inclusive_or", Subgroup, "(value)", "The bitwise or over this lane and those before it.";
    SubgroupInclusiveXor = "subgroup_inclusive_xor", Subgroup, "(value)", "The bitwise exclusive or over this lane and those before it.";
    SubgroupExclusiveAdd = "subgroup_exclusive_add", Subgroup, "(value)", "The sum over the lanes before this one.";
    SubgroupExclusiveMul = "subgroup_exclusive_mul", Subgroup, "(value)", "The product over the lanes before this one.";
    SubgroupExclusiveMin = "subgroup_exclusive_min", Subgroup, "(value)", "The least value over the lanes before this one.";
    SubgroupExclusiveMax = "subgroup_exclusive_max", Subgroup, "(value)", "The greatest value over the lanes before this one.";
    SubgroupExclusiveAnd = "subgroup_exclusive_and", Subgroup, "(value)", "The bitwise and over the lanes before this one.";
    SubgroupExclusiveOr = "subgroup_exclusive_or", Subgroup, "(value)", "The bitwise or over the lanes before this one.";
    SubgroupExclusiveXor = "subgroup_exclusive_xor", Subgroup, "(value)", "The bitwise exclusive or over the lanes before this one.";

    MatrixRows = "matrix_rows", Subgroup, "(rows: [u32; 4])", "What a lane holds of four matrices of 8 x 8 elements of 16 bits of which each lane brings a row, `[u32; 4]`.";
    MatrixColumns = "matrix_columns", Subgroup, "(rows: [u32; 4])", "The same of the four matrices transposed, `[u32; 4]`.";
    MatrixMultiplyF16 = "matrix_multiply_f16", Subgroup, "(a: [u32; 4], b: [u32; 2], c: [f32; 4])", "A lane's part of `A B + C`, A 16 x 16 and B 16 x 8 of `f16`, two in a word, `[f32; 4]`.";
    MatrixMultiplyBf16 = "matrix_multiply_bf16", Subgroup, "(a: [u32; 4], b: [u32; 2], c: [f32; 4])", "The same of `bf16`.";
    MatrixMultiplyTf32 = "matrix_multiply_tf32", Subgroup, "(a: [u32; 4], b: [u32; 2], c: [f32; 4])", "The same, A 16 x 8 and B 8 x 8 of `f32` whose low 13 bits do not count.";

    IsProducer = "is_producer", Subgroup, "()", "Whether the lane's team fills stages, the others multiplying them: the condition of one `if` and `else`.";
    FillStage = "fill_stage", Subgroup, "(row: u32, column: u32, depth: u32)", "Fills the next stage, when it is free, from this row and column of sums and this depth on.";
    FillStageOf = "fill_stage_of", Subgroup, "(a_layer: u32, b_layer: u32, row: u32, column: u32, depth: u32)", "The same of these of several matrices, where `stage_layers` says that there are several.";
    MultiplyStage = "multiply_stage", Subgroup, "(sums: [[[f32; 2]; 2]; N])", "A lane's sums and what the next stage adds to them, when it is full, `[[[f32; 2]; 2]; N]`, or of `i32`.";

    WeighStage = "weigh_stage", Subgroup, "(sums: [[[f32; 2]; 2]; N], weights: [[[f32; 2]; 2]; M])", "In a chain of three factors, or of twins: a lane's sums and what its weights add to them, times what the stage has of the third one, or of the first right one, `[[[f32; 2]; 2]; N]`; frees the stage.";

    MultiplyTwin = "multiply_twin", Subgroup, "(sums: [[[f32; 2]; 2]; N])", "Of twins: what `multiply_stage` gives, of the second product.";

    WeighTwin = "weigh_twin", Subgroup, "(sums: [[[f32; 2]; 2]; N], weights: [[[f32; 2]; 2]; M])", "Of twins: what `weigh_stage` gives, with the second right factor; the stage stays full.";

    SharedArray = "shared_array", Shared, "()", "`shared_array::<[T; N]>()`: an array that the block shares, `&mut [T; N]`.";
    SharedSlice = "shared_slice", Shared, "()", "`shared_slice::<T>()`: the launch's dynamic shared memory, `&mut [T]`.";

    StageFactors = "stage_factors", Shared, "(a, a_rows, a_columns, a_pitch, b, b_rows, b_columns, b_pitch)", "`stage_factors::<[[[T; 64]; M]; S], [[[T; 64]; N]; S]>(…)`: the kernel multiplies `a` and `b` in `S` stages, `M` rows with `N` columns of sums.";

    StageThird = "stage_third", Shared, "(c, c_rows, c_columns, c_pitch)", "`stage_third::<[[[[T; 64]; N]; K]; S]>(…)`, behind `stage_factors`: weights made of the product are multiplied with `c`, which has `64 * K` columns of sums.";

    StageTwins = "stage_twins", Shared, "(c, c_rows, c_columns, c_pitch, d, d_rows, d_columns, d_pitch)", "`stage_twins::<[[[T; D]; M]; S], [[[T; D]; N]; S]>(…)`, behind `stage_factors` of the same types: a second product, `multiply_twin`; parts of `a` and `c` stay, and weights are multiplied with `b` and `d`.";

    StageLayers = "stage_layers", Shared, "(a_layers, a_apart, b_layers, b_apart)", "Behind `stage_factors`: how many matrices `a` and `b` hold, and how many elements one is from the next.";

    StagePairs = "stage_pairs", Shared, "()", "Blocks `2 i` and `2 i + 1` along x fill their stages together: with the same columns and depths, as often as each other.";

    FastExp2 = "fast_exp2", Fast, "(x: f32)", "2 to the x, off by up to `2^-22` of itself on CUDA and on the CPU, and perhaps zero where it would be subnormal.";

    ClockNanos = "clock_nanos", Resident, "()", "The device's clock in nanoseconds, `u64`.";
    CheckIndex = "check_index", Resident, "(index: u32, length: u32)", "Faults as an index out of bounds does, unless the index is below the length.";
    Nap = "nap", Resident, "(nanoseconds: u32)", "Pauses for about this time, so that others run.";
    Converge = "converge", Resident, "()", "Waits until all lanes of the subgroup that have not ended are here.";
    CatchFault = "catch_fault", Resident, "(until: u64)", "Stands directly behind a labelled block: the number of the fault met in the block, or 0, as `u32`; the lane goes on. A loop of the block that still runs when `clock_nanos()` is past `until` is a fault.";
    Meet = "meet", Resident, "()", "The block's barrier, as `sync_threads`, but not verified: the kernel must make sure that all lanes come here.";

    AtomicLoad = "atomic_load", Atomic, "(&x[i])", "Its value.";
    AtomicStore = "atomic_store", Atomic, "(&mut x[i], value)", "Stores.";
    AtomicAdd = "atomic_add", Atomic, "(&mut x[i], value)", "Adds; the value before.";
    AtomicSub = "atomic_sub", Atomic, "(&mut x[i], value)", "Subtracts; the value before.";
    AtomicMin = "atomic_min", Atomic, "(&mut x[i], value)", "Keeps the lesser; the value before.";
    AtomicMax = "atomic_max", Atomic, "(&mut x[i], value)", "Keeps the greater; the value before.";
    AtomicAnd = "atomic_and", Atomic, "(&mut x[i], value)", "Bitwise and; the value before.";
    AtomicOr = "atomic_or", Atomic, "(&mut x[i], value)", "Bitwise or; the value before.";
    AtomicXor = "atomic_xor", Atomic, "(&mut x[i], value)", "Bitwise exclusive or; the value before.";
    AtomicExchange = "atomic_exchange", Atomic, "(&mut x[i], value)", "Stores; the value before.";
    AtomicCompareExchange = "atomic_compare_exchange", Atomic, "(&mut x[i], expected, new)", "Stores `new` where the value is `expected`; the value before. The order on failure is the given one without its release half.";
}

#[cfg(test)]
mod tests {
    use super::{INTRINSICS, Intrinsic, IntrinsicGroup};

    #[test]
    fn every_name_is_found_and_only_atomics_have_a_twin() {
        for (&intrinsic, &name) in Intrinsic::ALL.iter().zip(INTRINSICS) {
            assert_eq!(intrinsic.name(), name);
            assert_eq!(Intrinsic::lookup(name), Some((intrinsic, false)));
            let twin = (intrinsic.group() == IntrinsicGroup::Atomic).then_some((intrinsic, true));
            assert_eq!(Intrinsic::lookup(&format!("{name}_explicit")), twin);
        }
        assert_eq!(Intrinsic::lookup("atomic_add_explicit_explicit"), None);
        assert_eq!(Intrinsic::lookup("thread_idx_w"), None);
    }

    #[test]
    fn signatures_count_their_arguments() {
        for (intrinsic, generics, args) in [
            (Intrinsic::ThreadIdxX, 0, 0),
            (Intrinsic::SharedArray, 1, 0),
            (Intrinsic::StageFactors, 2, 8),
            (Intrinsic::SubgroupAdd, 0, 1),
            (Intrinsic::SubgroupShuffle, 0, 2),
            (Intrinsic::AtomicLoad, 0, 1),
            (Intrinsic::AtomicStore, 0, 2),
            (Intrinsic::AtomicCompareExchange, 0, 3),
        ] {
            assert_eq!(
                (intrinsic.generic_count(), intrinsic.arg_count()),
                (generics, args),
                "{intrinsic:?}"
            );
        }
    }
}
