//! Machine code for x86-64 with AVX2 or AVX-512 and for AArch64 with NEON: a kernel's lanes side by side in vector registers. A pure
//! function of a verified kernel: it gives bytes and tables, and knows neither memory that may be executed nor launches.
//!
//! In the order in which a kernel passes through: `tree` reads the interpreter's flat program back as constructs over values, `spread`
//! says which values all lanes of a gang share and where lanes part, `lower` writes instructions over virtual registers (`lir`),
//! `allocate` places these, `emit` writes them by what `machine` says that processors can, and `x86` and `aarch64` make bytes of that.
//! `layout` is what code and host share.
//!
//! A *gang* is a run of 16 lanes (or 8, or 4) of one row of a block. Code runs gang after gang, block after block; the lanes that execute are one
//! mask register, and where all do there is code without masks. At a barrier, or an exchange among the lanes of a subgroup, a gang puts
//! what it holds into its frame, and the next one runs; when all wait at one barrier the code goes on behind it, and for all other
//! meetings it returns to the host.
//! What has no instructions of its own, and what is rare, calls the host, which evaluates it as the interpreter does. `notes` tells
//! people what became of each line.

mod aarch64;
mod allocate;
mod emit;
pub(crate) mod layout;
mod lir;
#[cfg(feature = "assembly")]
pub(crate) mod listing;
mod lower;
mod machine;
pub(crate) mod notes;
mod split;
mod spread;
pub(crate) mod tree;
mod x86;

use crate::interp::program::{Program, RegionKind};
use layout::{Layout, Meeting, Site};
use lir::I;
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, UnaryOp};

/// Operations of the largest kernel that machine code is generated for.
const MOST_OPERATIONS: u32 = 20_000;

/// Why a kernel stays in the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Its faults are statements of its own.
    #[error("it catches its own faults, which machine code of the CPU does not")]
    ChecksInStatements,
    /// It may stay on the device and wait.
    #[error("it stays on its device and waits for messages, which machine code of the CPU does not")]
    Stays,
    /// Teams of its lanes wait for each other.
    #[error("it multiplies matrices in stages, which machine code of the CPU does not")]
    Stages,
    /// With its functions written out it has too many operations.
    #[error(
        "with all calls written out it has more than {MOST_OPERATIONS} operations, which are most for machine code: call functions less \
         often, or turn calls into turns of a loop"
    )]
    TooLarge,
    /// The processor lacks the instructions.
    #[error("the processor has neither AVX2 with FMA and BMI2 nor, on Linux, NEON")]
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
    /// In vectors of 128 bits, by AArch64's NEON.
    FourNeon,
}

impl Width {
    /// The instructions' name, for people.
    pub fn instructions(self) -> &'static str {
        match self {
            Width::EightAvx2 => "AVX2",
            Width::Eight | Width::Sixteen => "AVX-512",
            Width::FourNeon => "NEON",
        }
    }

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
        // It belongs to the architecture. Macs keep memory that is written to and memory that is executed apart by thread.
        #[cfg(all(target_arch = "aarch64", target_os = "linux"))]
        {
            &[Width::FourNeon]
        }
        #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_os = "linux"))))]
        &[]
    }

    /// Lanes of a gang.
    pub fn lanes(self) -> u32 {
        match self {
            Width::FourNeon => 4,
            Width::EightAvx2 | Width::Eight => 8,
            Width::Sixteen => 16,
        }
    }
}

/// Sets of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isa {
    /// x86-64 without mask registers, and with sixteen vectors.
    Avx2,
    Avx512,
    /// AArch64.
    Neon,
}

/// What code is generated for.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// Lanes of a gang.
    lanes: u32,
    isa: Isa,
}

/// Registers that are handed out, and that of the active lanes.
struct Registers {
    general: &'static [u8],
    vectors: u8,
    /// `None`: masks are vectors.
    masks: Option<&'static [u8]>,
    current: u8,
}

/// Whether an access that has no fast shape is made lane by lane: there are no gathers of less than 32 bits, and in AVX2 no scatters.
fn by_lane(s: Scalar, loads: bool, scatters: bool) -> bool {
    s.size() < 4 || !scatters && !loads
}

impl Target {
    fn of(width: Width) -> Target {
        let isa = match width {
            Width::EightAvx2 => Isa::Avx2,
            Width::Eight | Width::Sixteen => Isa::Avx512,
            Width::FourNeon => Isa::Neon,
        };
        let lanes = width.lanes();
        Target { lanes, isa }
    }

    /// Whether vectors of such scalars have an operation.
    fn has(self, op: BinaryOp, s: Scalar) -> bool {
        match self.isa {
            Isa::Neon => aarch64::table::binary(op, s).is_some(),
            _ => x86::table::binary(op, s).is_some_and(|op| self.knows(op)),
        }
    }

    fn has_unary(self, op: UnaryOp, s: Scalar) -> bool {
        match self.isa {
            Isa::Neon => aarch64::table::unary(op, s).is_some(),
            _ => x86::table::unary(op, s).is_some_and(|(op, _)| self.knows(op)),
        }
    }

    fn converts(self, from: Scalar, to: Scalar) -> bool {
        match self.isa {
            Isa::Neon => aarch64::table::convert(from, to).is_some(),
            _ => x86::table::convert(from, to).is_some_and(|op| self.knows(op)),
        }
    }

    fn knows(self, op: x86::Vop) -> bool {
        self.isa == Isa::Avx512 || op.in_avx2()
    }

    /// Whether what does not fit becomes the nearest integer, as in Rust, and NaN zero.
    fn saturates(self) -> bool {
        self.isa == Isa::Neon
    }

    /// Whether each lane can store to a place of its own.
    fn scatters(self) -> bool {
        self.isa != Isa::Avx2
    }

    /// Whether there are conversions between f16 and f32.
    fn converts_halves(self) -> bool {
        self.isa != Isa::Avx2
    }

    /// Whether consecutive scalars of one or two bytes can be loaded and stored under a mask.
    fn masks_small(self) -> bool {
        self.isa != Isa::Avx2
    }

    fn registers(self) -> Registers {
        let (general, vectors, masks, current): (&[u8], _, Option<&[u8]>, _) = match self.isa {
            Isa::Avx2 => (&x86::GENERAL, x86::AVX2_VECTORS, None, x86::AVX2_MASKS[0]),
            Isa::Avx512 => (&x86::GENERAL, x86::VECTORS, Some(&x86::MASKS), x86::OWN_MASKS[0]),
            Isa::Neon => (&aarch64::GENERAL, aarch64::VECTORS, None, aarch64::MASKS[0]),
        };
        Registers {
            general,
            vectors,
            masks,
            current,
        }
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
    meant: Box<dyn std::any::Any + Send + Sync>,
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
    let target = Target::of(width);
    let Target { lanes, isa } = target;
    let mut tree = tree::read(program)?;
    let mut spreads = spread::analyse(&tree, program);
    if split::split(&mut tree, &spreads) {
        spreads = spread::analyse(&tree, program);
    }
    let mut lowered = lower::lower(program, &tree, &spreads, target)?;
    let homes = allocate::allocate(&lowered, tree.meets, target);
    // Where masks are vectors, what they need lies where constants begin.
    let masks = lowered.layout.constants as i32;
    let emitted = match isa {
        Isa::Neon => emit::emit(
            aarch64::Assembler::new(masks),
            program,
            &mut lowered,
            homes,
            target,
        ),
        _ => {
            let asm = x86::Assembler::new(lanes, (isa == Isa::Avx2).then_some(masks));
            emit::emit(asm, program, &mut lowered, homes, target)
        }
    }?;
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
