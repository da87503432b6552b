//! Machine code for x86-64 with AVX2 or AVX-512: a kernel's lanes side by side in vector registers. A pure function of a verified kernel: it gives
//! bytes and tables, and knows neither memory that may be executed nor launches.
//!
//! In the order in which a kernel passes through: `tree` reads the interpreter's flat program back as constructs over values, `spread`
//! says which values all lanes of a gang share and where lanes part, `lower` writes instructions over virtual registers (`lir`),
//! `allocate` places these, `emit` writes bytes with `assemble`. `layout` is what code and host share.
//!
//! A *gang* is a run of 16 lanes (or 8) of one row of a block. Code runs gang after gang, block after block; the lanes that execute are one
//! mask register, and where all do there is code without masks. At a barrier, or an exchange among the lanes of a subgroup, a gang puts
//! what it holds into its frame, and the next one runs; when all wait at one barrier the code goes on behind it, and for all other
//! meetings it returns to the host.
//! What has no instructions of its own, and what is rare, calls the host, which evaluates it as the interpreter does.

mod allocate;
mod assemble;
mod emit;
pub(crate) mod layout;
mod lir;
#[cfg(feature = "assembly")]
pub(crate) mod listing;
mod lower;
mod spread;
pub(crate) mod tree;

use crate::interp::program::{Program, RegionKind};
use crate::ir::Scalar;
use crate::ops::{BinaryOp, UnaryOp};
use assemble::table;
use layout::{Layout, Meeting, Site};
use lir::I;

/// Why a kernel stays in the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Its faults are statements of its own.
    #[error("its checks are statements")]
    ChecksInStatements,
    /// It may stay on the device and wait.
    #[error("it may stay")]
    Stays,
    /// With its functions written out it has too many operations.
    #[error("it is too large")]
    TooLarge,
    /// The processor lacks the instructions.
    #[error("the processor has no AVX2 with FMA and BMI2")]
    Processor,
    /// Its flat form has something that no front end makes.
    #[error("it contains {0}, which is not expected there")]
    Unknown(&'static str),
}

/// How many lanes run side by side, and by which instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// In vectors of 256 bits, by AVX2 with FMA and BMI2.
    EightAvx2,
    /// In vectors of 256 bits, by AVX-512 with BW, CD, DQ and VL.
    Eight,
    /// In vectors of 512 bits, likewise.
    Sixteen,
}

impl Width {
    /// The widths that this processor can run, the fastest one last.
    pub fn detect() -> &'static [Width] {
        #[cfg(target_arch = "x86_64")]
        {
            let has = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("bmi2");
            let old = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2");
            match (old, has) {
                (true, true) => &[Width::EightAvx2, Width::Eight, Width::Sixteen],
                (true, false) => &[Width::EightAvx2],
                _ => &[],
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        &[]
    }

    /// Lanes of a gang.
    pub fn lanes(self) -> u32 {
        match self {
            Width::EightAvx2 | Width::Eight => 8,
            Width::Sixteen => 16,
        }
    }
}

/// Sets of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isa {
    /// No mask registers, and sixteen vectors.
    Avx2,
    Avx512,
}

/// What code is generated for.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// Lanes of a gang.
    lanes: u32,
    isa: Isa,
}

impl Target {
    /// Whether vectors of such scalars have an operation.
    fn has(self, op: BinaryOp, s: Scalar) -> bool {
        table::binary(op, s).is_some_and(|op| self.knows(op))
    }

    fn has_unary(self, op: UnaryOp, s: Scalar) -> bool {
        table::unary(op, s).is_some_and(|(op, _)| self.knows(op))
    }

    fn converts(self, from: Scalar, to: Scalar) -> bool {
        table::convert(from, to).is_some_and(|op| self.knows(op))
    }

    fn knows(self, op: assemble::Vop) -> bool {
        self.isa == Isa::Avx512 || op.in_avx2()
    }

    /// Whether what does not fit becomes the nearest integer, as in Rust, and NaN zero.
    fn saturates(self) -> bool {
        false
    }
}

/// A kernel's code, not yet where it can run.
pub(crate) struct Generated {
    pub(crate) bytes: Vec<u8>,
    /// Where the code of an operation of the flat program begins.
    #[cfg(feature = "assembly")]
    pub(crate) marks: Vec<(u32, u32)>,
    /// What was asked of the assembler.
    #[cfg(all(test, feature = "assembly"))]
    meant: Vec<assemble::Meant>,
    pub(crate) layout: Layout,
    pub(crate) sites: Vec<Site>,
    /// Whether gangs wait for each other.
    pub(crate) meets: bool,
    /// Whether code runs one row of all blocks before the next.
    pub(crate) by_rows: bool,
    /// Whether there are loops.
    pub(crate) loops: bool,
    /// By the numbers of waits: those at which gangs meet.
    pub(crate) meetings: Vec<Option<Meeting>>,
    pub(crate) lanes: u32,
    /// Of each region, most bytes that offsets of 32 bits reach.
    pub(crate) limits: Vec<u64>,
}

/// Generates code.
///
/// # Errors
/// Why there is none.
pub(crate) fn generate(program: &Program, width: Width) -> Result<Generated, Refusal> {
    let lanes = width.lanes();
    let isa = match width {
        Width::EightAvx2 => Isa::Avx2,
        Width::Eight | Width::Sixteen => Isa::Avx512,
    };
    let target = Target { lanes, isa };
    let tree = tree::read(program)?;
    let spreads = spread::analyse(&tree, program);
    let mut lowered = lower::lower(program, &tree, &spreads, target)?;
    let homes = allocate::allocate(&lowered, tree.meets, target);
    let emitted = emit::emit(program, &mut lowered, homes, target)?;
    let limit = |number: usize| {
        let accesses = program.accesses.iter().filter(|a| a.region as usize == number);
        let scale = accesses.fold(8, |least, a| {
            least.min(lower::scale(a.steps.iter().map(|s| s.stride)))
        });
        u64::from(scale) << 31
    };
    Ok(Generated {
        bytes: emitted.bytes,
        #[cfg(feature = "assembly")]
        marks: emitted.marks,
        #[cfg(all(test, feature = "assembly"))]
        meant: emitted.meant,
        sites: lowered.sites,
        meets: tree.meets,
        by_rows: lowered.by_rows,
        loops: lowered.code.iter().any(|i| matches!(i, I::Poll { .. })),
        meetings: lowered.meetings,
        lanes,
        limits: program
            .regions
            .iter()
            .enumerate()
            .map(|(number, region)| match region.kind {
                RegionKind::Buffer { .. } => limit(number),
                _ => u64::MAX,
            })
            .collect(),
        layout: lowered.layout,
    })
}

#[cfg(test)]
#[cfg(all(feature = "assembly", feature = "testing"))]
mod tests;
