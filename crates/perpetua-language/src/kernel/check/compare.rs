//! Whether functions are their kernels: each runs as plain Rust, lane after lane, and as what it was lowered to, on the same random
//! arguments. What both leave must be the same, to the bit where the kernel calls nothing that is rounded differently.

use std::fmt;

use perpetua_cpu::interp::Interpreter;
use perpetua_device::{BackendKind, CompileOptions, Device, Kernel, KernelSource, KernelSpec};
use perpetua_ir::ir::{Block, DeviceOp, Inst, Op};
use perpetua_ir::ops::{Exactness, Meeting};

use super::super::entry::KernelFn;
use super::{Registered, known};
pub use arguments::Arguments;
use arguments::Outcome;
#[doc(hidden)]
pub use of::{Known, Of, Unknown};
use values::Random;

mod arguments;
mod of;
mod values;

/// Makes arguments for a function, has it called with them, and hands back what became of them.
pub type Plain = fn(&mut Arguments<'_>);

/// What functions of the program were compared with their kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Kernels that did the same as their function in at least one trial that ran to its end.
    pub same: usize,
    /// Those that ended by the same fault in all trials that could be compared.
    pub faulted: Vec<String>,
    /// Those that were not compared, and why.
    pub left: Vec<(String, &'static str)>,
}

/// A function that is not its kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The kernel, with its generic arguments.
    pub kernel: String,
    /// The trial's number.
    pub trial: u32,
    /// What the function did, and what the kernel.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`, trial {}: {}", self.kernel, self.trial, self.what)
    }
}

/// Calls each kernel function of the program whose file's path begins with `within` as plain Rust, and runs what it was lowered to with the
/// same random arguments, `trials` times each: in the interpreter, which looks for races, and as the CPU runs it. Lanes of a plain call
/// run one after another, so a block has one of them where lanes meet, and those of a subgroup that exchange values are left out.
///
/// ```no_run
/// use perpetua::kernel::check::compare::compare_all;
///
/// let found = compare_all("src/", 12).expect("each kernel does what its function does"); // in a test of your own
/// assert!(found.same > 0, "{found:?}");
/// ```
///
/// # Errors
/// All differences.
pub fn compare_all(within: &str, trials: u32) -> Result<Comparison, Differences> {
    let (mut found, mut differences) = (Comparison::default(), Vec::new());
    for kernel in known() {
        let tree = (kernel.kernel)().definition().tree();
        if !tree.is_ok_and(|tree| tree.file.starts_with(within)) {
            continue;
        }
        match compare(kernel, trials) {
            Ok(Judged::Same) => found.same += 1,
            Ok(Judged::Faulted) => found.faulted.push(kernel.name()),
            Ok(Judged::Left(why)) => found.left.push((kernel.name(), why)),
            Err(difference) => differences.push(difference),
        }
    }
    match differences.is_empty() {
        true => Ok(found),
        false => Err(Differences(differences)),
    }
}

/// All functions that are not their kernels, a line each.
#[derive(Clone, PartialEq, Eq)]
pub struct Differences(pub Vec<Difference>);

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(Difference::to_string).collect();
        f.write_str(&all.join("\n"))
    }
}

// What `expect` shows.
impl fmt::Debug for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for Differences {}

enum Judged {
    Same,
    Faulted,
    Left(&'static str),
}

fn compare(known: Registered, trials: u32) -> Result<Judged, Difference> {
    let Some(plain) = (known.plain)() else {
        return Ok(Judged::Left("it is no function of slices and values"));
    };
    match Subject::new((known.kernel)()) {
        Ok(subject) => tried(&subject, &known.name(), plain, trials),
        Err(why) => Ok(Judged::Left(why)),
    }
}

fn tried(subject: &Subject, name: &str, plain: Plain, trials: u32) -> Result<Judged, Difference> {
    let mut judged = Judged::Left("no trial ran to its end");
    for trial in 0..trials {
        let mut arguments = Arguments::new(subject, trial);
        plain(&mut arguments);
        match arguments.outcome {
            Outcome::Left(why) => {
                if let Judged::Left(last) = &mut judged {
                    *last = why;
                }
            }
            Outcome::Same => judged = Judged::Same,
            Outcome::Faulted => {
                if let Judged::Left(_) = judged {
                    judged = Judged::Faulted;
                }
            }
            Outcome::Differs(what) => {
                return Err(Difference {
                    kernel: name.to_owned(),
                    trial,
                    what,
                });
            }
        }
    }
    Ok(judged)
}

/// A kernel that can be compared.
struct Subject {
    interpreter: Interpreter,
    device: Device,
    /// As the CPU likes it, and as machine code where that is another way.
    compiled: Vec<Kernel>,
    /// The only block that it takes.
    block: Option<[u32; 3]>,
    /// Whether its lanes need each other.
    meets: bool,
    /// Whether what a lane does may depend on whose turn it is.
    takes_turns: bool,
    /// Whether it takes floats for integers or integers for floats: which NaN it has would be seen.
    bits: bool,
    exact: bool,
}

impl Subject {
    fn new(kernel: KernelFn) -> Result<Subject, &'static str> {
        let verified = kernel.verified(usize::BITS).map_err(|_| "it is refused")?;
        let (ir, facts) = (verified.kernel(), verified.facts());
        if ir.stages.is_some() {
            return Err("it multiplies in stages");
        }
        if ir.shared.iter().any(|var| var.dynamic) {
            return Err("launches say how much shared memory it has");
        }
        let block = kernel.instantiation().block_size;
        if facts.meets(Meeting::Subgroup) || facts.meets(Meeting::Unproven) {
            return Err("lanes of a subgroup exchange values");
        }
        if facts.asks(DeviceOp::Clock) {
            return Err("it reads a clock");
        }
        let meets = facts.meets(Meeting::Block) || !ir.shared.is_empty();
        if meets && block.is_some_and(|block| block != [1; 3]) {
            return Err("its lanes meet");
        }
        let device = Device::new(BackendKind::Cpu, 0).map_err(|_| "there is no CPU")?;
        let options = CompileOptions::default();
        let compile = |source: &KernelSource<'_>| {
            let module = device.compile(source, &options).and_then(|module| module.only());
            module.map_err(|_| "the CPU does not take it")
        };
        let mut compiled = vec![compile(&KernelSource::Spec(&kernel))?];
        if kernel.native().is_some() {
            compiled.push(compile(&KernelSource::Ir(&verified))?);
        }
        let interpreter = Interpreter::new(&verified).map_err(|_| "the interpreter does not take it")?;
        let (mut exact, mut takes_turns, mut naps, mut bits) = (true, false, false, false);
        let mut look = |block: &Block| {
            block.walk(&mut |stmt| {
                naps |= stmt.inst.device().is_some_and(|op| op.row().waits);
                if let Inst::Let(_, op) = &stmt.inst {
                    takes_turns |= matches!(
                        op,
                        Op::Load(_, Some(_)) | Op::Atomic(..) | Op::CompareExchange { .. }
                    );
                    bits |= matches!(op, Op::Bitcast(..));
                    exact &= match op {
                        Op::Unary(op, _) => op.row().exactness == Exactness::Exact,
                        Op::Binary(op, ..) => op.row().exactness == Exactness::Exact,
                        _ => true,
                    };
                }
            });
        };
        look(&ir.body.block);
        ir.functions
            .iter()
            .for_each(|function| look(&function.body.block));
        exact &= !ir.contract;
        if naps {
            return Err("it waits for others");
        }
        Ok(Subject {
            interpreter,
            device,
            compiled,
            block,
            meets,
            takes_turns,
            bits,
            exact,
        })
    }

    /// The grid and the block of a trial.
    fn shape(&self, random: &mut Random) -> ([u32; 3], [u32; 3]) {
        let alone = self.takes_turns;
        let grids = [[4, 1, 1], [1, 1, 1], [8, 1, 1], [2, 2, 1], [2, 2, 2], [3, 5, 1]];
        let grid = match alone {
            true => [1; 3],
            false => random.of(&grids),
        };
        let block = match (self.block, self.meets || alone) {
            (Some(block), _) => block,
            (None, true) => [1; 3],
            (None, false) => random.of(&[[1, 1, 1], [16, 1, 1], [5, 1, 1], [4, 2, 1], [2, 2, 2]]),
        };
        (grid, block)
    }
}

#[cfg(test)]
mod tests;
