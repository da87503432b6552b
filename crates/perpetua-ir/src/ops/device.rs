//! The table of what lanes ask of their device: clocks, fences, barriers, exchanges among lanes, faults that are caught.
//!
//! An operation is one row here. What is generic is done from the row: the text form, operands, types, the capability
//! that a target must have, uniformity at barriers, what may move past it, the call in the kernel language, and the words of
//! C-like targets where a call is all there is to it.
//!
//! Adding one, in this order:
//!
//! 1. its row in this file;
//! 2. its function's name in `perpetua_syntax`'s table of intrinsics (`intrinsic.rs`), if the kernel language has it;
//! 3. that function as plain Rust, in `perpetua-language/src/kernel`;
//! 4. what it does in the interpreter: `interp/machine/device.rs`;
//! 5. its instructions in PTX: `back/ptx/device.rs`;
//! 6. `Dialect::device` of each C-like target that has no words for it in the row.
//!
//! The compiler asks for 4 and 5; a test renders every row for every target, so that 6 is either there or
//! refused by the row's capability before anything is rendered.
//!
//! Operations on memory (loads, stores, atomics) have no rows: their places carry what is alike in none of the passes
//! (bounds checks, definite assignment, races, which buffers they touch).

use super::{Capability, DeviceRow, Gives, Meeting, Operand, Orders, Same, Stands, Takes};
use crate::ir::{MatrixElement, ReduceOp, Scalar, Scope};

impl DeviceRow {
    /// What most rows say.
    const COMMON: DeviceRow = DeviceRow {
        name: ("", ""),
        language: &[],
        operands: &[],
        gives: Gives::Nothing,
        needs: None,
        same: Same::AsOperands,
        meeting: Meeting::Alone,
        orders: Orders::Memory,
        pure: false,
        waits: false,
        stands: Stands::Anywhere,
        hint: "",
        kind: "",
        cuda: None,
        wgsl: None,
        msl: None,
    };

    /// What exchanges among the lanes of a subgroup have in common.
    const EXCHANGE: DeviceRow = DeviceRow {
        needs: Some(Capability::Subgroups),
        same: Same::InSubgroup(EXCHANGED),
        meeting: Meeting::Subgroup,
        orders: Orders::Nothing,
        hint: "other",
        ..DeviceRow::COMMON
    };

    /// Shuffles: each lane has another's value.
    const SHUFFLE: DeviceRow = DeviceRow {
        operands: &[
            (Takes::Number, "operand of a subgroup shuffle"),
            (Takes::Exactly(Scalar::U32), "lane of a subgroup shuffle"),
        ],
        gives: Gives::First,
        same: Same::Nowhere(EXCHANGED),
        kind: "subgroup shuffle",
        ..DeviceRow::EXCHANGE
    };

    /// Votes.
    const VOTE: DeviceRow = DeviceRow {
        operands: &[(Takes::Exactly(Scalar::Bool), "operand of a subgroup vote")],
        gives: Gives::Exactly(Scalar::Bool),
        kind: "subgroup vote",
        ..DeviceRow::EXCHANGE
    };

    /// What the lanes of a subgroup do with matrices that they hold together.
    const MATRIX: DeviceRow = DeviceRow {
        operands: &[(Takes::Array(Scalar::U32, 4), "rows of matrices")],
        gives: Gives::Array(Scalar::U32, 4),
        needs: Some(Capability::Matrices),
        same: Same::Nowhere("each lane holds its own part of a matrix"),
        meeting: Meeting::Block,
        orders: Orders::Nothing,
        hint: "part",
        kind: "matrix operation",
        ..DeviceRow::COMMON
    };

    /// What teams of lanes do with staged matrices.
    const STAGE: DeviceRow = DeviceRow {
        needs: Some(Capability::Stages),
        same: Same::Nowhere("teams do different things"),
        meeting: Meeting::Block,
        hint: "sums",
        kind: "staged product",
        ..DeviceRow::COMMON
    };

    /// Reductions and scans by an operation.
    const fn combination(op: ReduceOp, stem: &'static str, language: &'static [&'static str]) -> DeviceRow {
        const BITS: &[Operand] = &[(Takes::Integer, "operand of subgroup")];
        const NUMBERS: &[Operand] = &[(Takes::Number, "operand of subgroup")];
        DeviceRow {
            name: (stem, op.name()),
            language,
            operands: match op {
                ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => BITS,
                ReduceOp::Add | ReduceOp::Mul | ReduceOp::Min | ReduceOp::Max => NUMBERS,
            },
            gives: Gives::First,
            same: Same::Nowhere(EXCHANGED),
            kind: "subgroup scan",
            ..DeviceRow::EXCHANGE
        }
    }
}

const EXCHANGED: &str = "a subgroup operation gives each subgroup its own result";
const FAULTS: &str = "lanes fault one by one";

/// What an operation may be about: its values are known beforehand.
trait Attribute: Sized {
    fn each() -> impl Iterator<Item = Self>;
}

impl Attribute for Scope {
    fn each() -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter()
    }
}

impl Attribute for ReduceOp {
    fn each() -> impl Iterator<Item = ReduceOp> {
        ReduceOp::ALL.into_iter()
    }
}

impl Attribute for MatrixElement {
    fn each() -> impl Iterator<Item = MatrixElement> {
        MatrixElement::ALL.into_iter()
    }
}

impl Attribute for MatrixOp {
    fn each() -> impl Iterator<Item = MatrixOp> {
        MatrixOp::all()
    }
}

impl Attribute for StageOp {
    fn each() -> impl Iterator<Item = StageOp> {
        StageOp::all()
    }
}

impl Attribute for SubgroupOp {
    fn each() -> impl Iterator<Item = SubgroupOp> {
        SubgroupOp::all()
    }
}

macro_rules! operations {
    ($(#[$about:meta])* $enum:ident { $(
        $(#[$meta:meta])* $variant:ident $(($attribute:ident: $of:ty))? { $($field:ident: $value:expr,)* .. $rest:expr }
    )* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $enum { $( $(#[$meta])* $variant $(($of))?, )* }

        impl $enum {
            /// The operation's row.
            pub const fn row(self) -> DeviceRow {
                match self { $( $enum::$variant $(($attribute))? => DeviceRow { $($field: $value,)* ..$rest }, )* }
            }

            /// Every operation, with each of its attributes.
            pub fn all() -> impl Iterator<Item = $enum> {
                std::iter::empty()$(.chain(operations!(@each $enum $variant $($of)?)))*
            }
        }
    };
    (@each $enum:ident $variant:ident) => { [$enum::$variant] };
    (@each $enum:ident $variant:ident $of:ty) => { <$of as Attribute>::each().map($enum::$variant) };
}

operations! {
    /// An exchange among the lanes of a subgroup that are active at this statement. Element types: 32- and 64-bit
    /// integers and floats (others: cast first). The order in which floats combine is not specified.
    SubgroupOp {
        /// Value of the lane given by a `u32` argument; an inactive or absent lane gives an unspecified value.
        Shuffle {
            name: ("subgroup_shuffle", ""),
            language: &["subgroup_shuffle", "subgroup_broadcast"],
            ..DeviceRow::SHUFFLE
        }
        /// Value of the lane `arg` below; lanes without one keep their own.
        ShuffleUp { name: ("subgroup_shuffle_up", ""), language: &["subgroup_shuffle_up"], ..DeviceRow::SHUFFLE }
        /// Value of the lane `arg` above; lanes without one keep their own.
        ShuffleDown { name: ("subgroup_shuffle_down", ""), language: &["subgroup_shuffle_down"], ..DeviceRow::SHUFFLE }
        /// Value of the lane whose index is this one's XOR `arg`.
        ShuffleXor { name: ("subgroup_shuffle_xor", ""), language: &["subgroup_shuffle_xor"], ..DeviceRow::SHUFFLE }
        /// Value of the lowest active lane; no argument.
        BroadcastFirst {
            name: ("subgroup_broadcast_first", ""),
            language: &["subgroup_broadcast_first"],
            operands: &[(Takes::Number, "operand of a subgroup shuffle")],
            same: Same::InSubgroup(EXCHANGED),
            ..DeviceRow::SHUFFLE
        }
        /// `bool`: whether any lane's `bool` is true.
        Any { name: ("subgroup_any", ""), language: &["subgroup_any"], ..DeviceRow::VOTE }
        /// `bool`: whether all lanes' `bool`s are true.
        All { name: ("subgroup_all", ""), language: &["subgroup_all"], ..DeviceRow::VOTE }
        /// `[u32; 4]`: bit `i` tells lane `i`'s `bool`; bits of inactive lanes are zero.
        Ballot {
            name: ("subgroup_ballot", ""),
            language: &["subgroup_ballot"],
            gives: Gives::Array(Scalar::U32, 4),
            hint: "votes",
            ..DeviceRow::VOTE
        }
        /// Combination over all active lanes.
        Reduce(op: ReduceOp) {
            same: Same::InSubgroup(EXCHANGED),
            hint: "total",
            kind: "subgroup reduce",
            ..DeviceRow::combination(op, "subgroup_reduce_", &["subgroup_"])
        }
        /// Combination of this lane and those below.
        InclusiveScan(op: ReduceOp) {
            ..DeviceRow::combination(op, "subgroup_inclusive_", &["subgroup_inclusive_"])
        }
        /// Combination of the lanes below; the operation's identity in the lowest.
        ExclusiveScan(op: ReduceOp) {
            ..DeviceRow::combination(op, "subgroup_exclusive_", &["subgroup_exclusive_"])
        }
    }
}

operations! {
    /// What 32 lanes, consecutive in their block, do with matrices that they hold together. How a matrix lies in the lanes is part of its
    /// meaning, so that lanes may compute with what they hold. Here `q` is a lane's number divided by 4, `r` the remainder.
    ///
    /// All lanes of the block come to such an operation (control flow is uniform), and the block size is a multiple of 32. A lane that
    /// has faulted brings anything.
    MatrixOp {
        /// Four matrices of 8 x 8 elements of 16 bits, a row a lane: lane `8 i + j` brings row `j` of matrix `i`, two elements a word. Word `i`
        /// of the result is elements `2r` and `2r + 1` of row `q` of matrix `i`, the first in the low half.
        Rows { name: ("matrix_rows", ""), language: &["matrix_rows"], ..DeviceRow::MATRIX }
        /// The same matrices transposed: word `i` is rows `2r` and `2r + 1` of column `q` of matrix `i`.
        Columns { name: ("matrix_columns", ""), language: &["matrix_columns"], ..DeviceRow::MATRIX }
        /// `A B + C`: A has 16 rows, B 8 columns, and they meet in 16 elements of 16 bits, or in 8 of 32 bits.
        ///
        /// With two elements a word, words 0 to 3 of A are its elements in rows `q`, `q + 8`, `q`, `q + 8` and columns `2r` and `2r + 1`,
        /// the last two words' 8 further right; words 0 and 1 of B are its rows `2r` and `2r + 1` in column `q`, the last word's 8 further
        /// down. With one element a word it is column `r` of A and row `r` of B, and 4 further. Numbers 0 to 3 of C and of the result are
        /// row `q`, columns `2r` and `2r + 1`, and the same of row `q + 8`.
        ///
        /// Products of two elements are added to C in f32, in ascending order in the interpreter. Tensor cores add them in their own order
        /// and round otherwise: on every device a result is off by at most `2^-20` times the sum of the sizes of C and all products.
        Multiply(element: MatrixElement) {
            name: ("matrix_multiply_", element.name()),
            language: &["matrix_multiply_"],
            operands: &[
                (Takes::Array(Scalar::U32, 4), "left factor of a product in"),
                (Takes::Array(Scalar::U32, 2), "right factor of a product in"),
                (Takes::Array(Scalar::F32, 4), "sums of a product in"),
            ],
            gives: Gives::Array(Scalar::F32, 4),
            hint: "sums",
            ..DeviceRow::MATRIX
        }
    }
}

operations! {
    /// What lanes do with matrices that are multiplied in stages: [`Stages`](crate::ir::Stages). Each is done by a team, and all its lanes
    /// come to it (control flow is the same for all of them). A lane that has faulted brings anything.
    StageOp {
        /// Whether the lane's team fills stages. Its only use is to be the condition of one `if`, outside of which there are no other operations
        /// of these; in it and behind it lanes of different teams do not meet.
        Produces {
            name: ("is_producer", ""),
            language: &["is_producer"],
            gives: Gives::Exactly(Scalar::Bool),
            meeting: Meeting::Alone,
            hint: "fills",
            ..DeviceRow::STAGE
        }
        /// Fills the next stage, as soon as it is free: with the parts of both factors that begin at this row and column of sums, and this depth. In a
        /// chain the left factor's part comes with the first stage, and stays; the third factor's begins at the depth that the column says.
        /// Outside of a matrix there are zeros, and places wrap: the greatest ones are those before the matrix. Copies go on while the lanes do.
        Fill {
            name: ("fill_stage", ""),
            language: &["fill_stage"],
            operands: &[
                (Takes::Exactly(Scalar::U32), "row of a stage"),
                (Takes::Exactly(Scalar::U32), "column of a stage"),
                (Takes::Exactly(Scalar::U32), "depth of a stage"),
            ],
            ..DeviceRow::STAGE
        }
        /// The same of one of several matrices that a factor's buffer holds: the numbers of the left one and of the right one, which is the third one's, too. Without
        /// it, that is 0.
        FillOf {
            name: ("fill_stage_of", ""),
            language: &["fill_stage_of"],
            operands: &[
                (Takes::Exactly(Scalar::U32), "left matrix of a stage"),
                (Takes::Exactly(Scalar::U32), "right matrix of a stage"),
                (Takes::Exactly(Scalar::U32), "row of a stage"),
                (Takes::Exactly(Scalar::U32), "column of a stage"),
                (Takes::Exactly(Scalar::U32), "depth of a stage"),
            ],
            ..DeviceRow::STAGE
        }
        /// Multiplies the next stage, as soon as it is full, adds the products to sums and frees the stage. Of a team's 64 rows of sums a lane
        /// has, for its number `l` in the team, `q = l / 4` and `r = l % 4`, in `sums[i][j][k]` row `q + q / 8 * 8 + 8 j`, column
        /// `8 i + 2 r + k`: for each eight columns what it has in [`MatrixOp::Multiply`].
        ///
        /// Results are as exact as those.
        Multiply {
            name: ("multiply_stage", ""),
            language: &["multiply_stage"],
            operands: &[(Takes::Sums, "sums of a stage")],
            gives: Gives::First,
            ..DeviceRow::STAGE
        }
        /// Of twins: what [`StageOp::Multiply`] does, with the second left factor's part and what the stage has of the second right one. Neither frees the stage.
        MultiplyTwin {
            name: ("multiply_twin", ""),
            language: &["multiply_twin"],
            operands: &[(Takes::Sums, "sums of a stage")],
            gives: Gives::First,
            ..DeviceRow::STAGE
        }
        /// In a chain, where [`StageOp::Multiply`] leaves its stage full, and may be a stage ahead: multiplies a lane's weights, rounded to the stage's elements, with
        /// what the stage has of the third factor, adds the products to sums and frees the stage. Weights lie as the sums of that other
        /// product do, and so do these sums. Of twins: with what the stage has of the right factor, whose rows are the columns of weights; it is the stage that was multiplied last.
        Weigh {
            name: ("weigh_stage", ""),
            language: &["weigh_stage"],
            operands: &[(Takes::Sums, "sums of a stage"), (Takes::Sums, "weights of a stage")],
            gives: Gives::First,
            ..DeviceRow::STAGE
        }
        /// Of twins: the same with the second right factor, and the stage stays full.
        WeighTwin {
            name: ("weigh_twin", ""),
            language: &["weigh_twin"],
            operands: &[(Takes::Sums, "sums of a stage"), (Takes::Sums, "weights of a stage")],
            gives: Gives::First,
            ..DeviceRow::STAGE
        }
    }
}

operations! {
    /// Something that a lane asks of its device.
    DeviceOp {
        /// 2 to the power of the operand, as the device computes it fastest: off by up to `2^-22` of itself on CUDA and on the CPU, by what their languages allow
        /// elsewhere, and perhaps zero where it would be subnormal.
        FastExp2 {
            name: ("fast_exp2", ""),
            language: &["fast_exp2"],
            operands: &[(Takes::Exactly(Scalar::F32), "operand of `fast_exp2`")],
            gives: Gives::Exactly(Scalar::F32),
            orders: Orders::Nothing,
            pure: true,
            hint: "power",
            cuda: Some("exp2f($0)"),
            wgsl: Some("exp2($0)"),
            msl: Some("exp2($0)"),
            ..DeviceRow::COMMON
        }
        /// Waits for all lanes of the block and orders their shared and global accesses before it before
        /// those after it. Must stand in control flow that is uniform over the block.
        Barrier {
            name: ("barrier", ""),
            language: &["sync_threads"],
            meeting: Meeting::Block,
            cuda: Some("__syncthreads()"),
            msl: Some("threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup)"),
            ..DeviceRow::COMMON
        }
        /// Orders this lane's accesses (acquire-release) at a scope.
        Fence(scope: Scope) {
            name: ("fence ", scope.name()),
            language: match scope {
                Scope::Block => &["thread_fence_block"],
                Scope::Device => &["thread_fence"],
                Scope::System => &["thread_fence_system"],
            },
            needs: Some(Capability::ordering(scope)),
            cuda: Some(match scope {
                Scope::Block => "__threadfence_block()",
                Scope::Device => "__threadfence()",
                Scope::System => "__threadfence_system()",
            }),
            ..DeviceRow::COMMON
        }
        /// All lanes of the subgroup that have not ended come here, and go on together.
        Converge {
            name: ("converge", ""),
            language: &["converge"],
            needs: Some(Capability::Residency),
            meeting: Meeting::Unproven,
            waits: true,
            cuda: Some("__syncwarp()"),
            ..DeviceRow::COMMON
        }
        /// Waits for all lanes of the block and orders accesses as a barrier does. That all come here nothing proves: whoever
        /// writes a kernel whose control flow follows messages answers for it; lanes that nobody meets wait for ever.
        Meet {
            name: ("meet", ""),
            language: &["meet"],
            needs: Some(Capability::Residency),
            meeting: Meeting::Unproven,
            waits: true,
            cuda: Some("__syncthreads()"),
            ..DeviceRow::COMMON
        }
        /// Lets others run for about so many nanoseconds (`u32`).
        Nap {
            name: ("nap", ""),
            language: &["nap"],
            operands: &[(Takes::Exactly(Scalar::U32), "time of a nap")],
            needs: Some(Capability::Residency),
            waits: true,
            cuda: Some("__nanosleep($0)"),
            ..DeviceRow::COMMON
        }
        /// The device's clock, in nanoseconds since a moment that stays the same while the device is in use; `u64`. Nothing
        /// moves past it, for it tells the time between what stands before it and what follows.
        Clock {
            name: ("clock", ""),
            language: &["clock_nanos"],
            gives: Gives::Exactly(Scalar::U64),
            needs: Some(Capability::Residency),
            same: Same::Nowhere("each lane reads the clock at its own time"),
            ..DeviceRow::COMMON
        }
        /// Whether this lane has faulted. Only in kernels whose checks are [`Checks::Explicit`](crate::ir::Checks::Explicit).
        IsDead {
            name: ("is_dead", ""),
            gives: Gives::Exactly(Scalar::Bool),
            same: Same::Nowhere(FAULTS),
            orders: Orders::ReadsFault,
            pure: true,
            stands: Stands::ExplicitChecks,
            ..DeviceRow::COMMON
        }
        /// Directly behind a labelled block: the fault that this lane met in it, as the number of its site in all
        /// kernels (the launch's site base and its own) plus one, or zero. A loop in the block that still turns when the clock
        /// ([`DeviceOp::Clock`]) is past the operand (`u64`) is a fault, too.
        /// The lane is alive again. A lane that faults in such a block leaves it, and no other code; `u32`.
        CatchFault {
            name: ("catch_fault", ""),
            language: &["catch_fault"],
            operands: &[(Takes::Exactly(Scalar::U64), "time of `catch_fault`, in nanoseconds,")],
            gives: Gives::Exactly(Scalar::U32),
            needs: Some(Capability::Residency),
            same: Same::Nowhere(FAULTS),
            orders: Orders::TakesFault,
            stands: Stands::BehindBlock,
            kind: "catch fault",
            ..DeviceRow::COMMON
        }
        /// An exchange among the lanes of a subgroup.
        Subgroup(op: SubgroupOp) { ..op.row() }
        /// What lanes of a subgroup do with a matrix.
        Matrix(op: MatrixOp) { ..op.row() }
        /// What teams of lanes do with staged matrices.
        Stage(op: StageOp) { ..op.row() }
    }
}

impl DeviceOp {
    /// The operation that a function of the kernel language means.
    pub fn of_language(function: &str) -> Option<DeviceOp> {
        DeviceOp::all().find(|op| op.row().is_called(function))
    }
}

#[cfg(test)]
mod tests;
