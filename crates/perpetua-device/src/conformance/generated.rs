//! Cells of generated kernels: random, well-typed, with one right result, compared with the interpreter's. What differs
//! is shrunk and shown as IR text.
//!
//! Each cell has its own run of seeds, so that a run of the suite can be repeated; `PERPETUA_SEEDS` sets how many each
//! cell tries and `PERPETUA_FIRST_SEED` how many it leaves out before.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use perpetua_cpu::interp::{InterpError, RaceMode};
use perpetua_cpu::testing::{
    Case, Choices, Config, generate, histogram, interpret, minimise_kernel, minimise_tape, mismatches, tape,
};
use perpetua_ir::back::Capability;
use perpetua_ir::fault::Fault;
use perpetua_ir::ir::ParamKind;
use perpetua_ir::verify::{Verified, verify};

use super::{Cell, Failure, Need, Remark};
use crate::device::Device;
use crate::dim::LaunchConfig;
use crate::dynamic::DynBuffer;
use crate::error::{Error, Result};
use crate::signature::KernelArg;
use crate::source::{CompileOptions, KernelSource};

/// Seeds that a cell tries where nothing else is said.
const SEEDS: u64 = 32;

/// The first seeds of two cells are so far apart.
const APART: u64 = 1_000_000;

/// Seeds from which on a cell's kernels must contain all that it is for.
const ENOUGH: u64 = 20;

/// Numbers on a tape for each statement.
const TAPE: usize = 30;

/// Runs of a failing case while it is shrunk: of its tape, of its kernel.
const SHRINKING: [usize; 2] = [150, 300];

/// Lanes of a subgroup in the interpreter. Results do not depend on it.
pub(super) const SUBGROUP: u32 = 32;

/// A kind of kernels.
struct Family {
    name: &'static str,
    needs: &'static [Need],
    config: fn() -> Config,
    /// Names that the histogram must have.
    wanted: &'static [&'static str],
}

/// What every target can do, without floats.
fn integers() -> Config {
    Config {
        floats: false,
        ..Config::default()
    }
}

const CONTROL: &[&str] = &[
    "if", "switch", "loop", "block", "break", "continue", "return", "call", "struct",
];

const FAMILIES: &[Family] = &[
    Family {
        name: "integers",
        needs: &[],
        config: integers,
        wanted: &[
            "if",
            "switch",
            "loop",
            "block",
            "break",
            "continue",
            "return",
            "call",
            "struct",
            "barrier",
            "atomic add",
            "compare exchange",
            "load shared",
        ],
    },
    Family {
        name: "floats",
        needs: &[Need::ExactFloats],
        config: Config::default,
        wanted: CONTROL,
    },
    Family {
        name: "library functions",
        needs: &[Need::ExactFloats],
        config: || Config {
            library: true,
            ..Config::default()
        },
        wanted: &["sin", "exp", "pow"],
    },
    Family {
        name: "64-bit integers",
        needs: &[Need::Capability(Capability::Int64)],
        config: || Config {
            int64: true,
            ..integers()
        },
        wanted: CONTROL,
    },
    Family {
        name: "f64",
        needs: &[Need::Capability(Capability::Float64), Need::ExactFloats],
        config: || Config {
            float64: true,
            ..Config::default()
        },
        wanted: CONTROL,
    },
    Family {
        name: "64-bit atomics",
        needs: &[
            Need::Capability(Capability::Int64),
            Need::Capability(Capability::Atomic64),
        ],
        config: || Config {
            int64: true,
            atomic64: true,
            ..integers()
        },
        wanted: &["atomic add", "atomic max", "compare exchange"],
    },
    Family {
        name: "orders and fences",
        needs: &[
            Need::Capability(Capability::BlockOrdering),
            Need::Capability(Capability::DeviceOrdering),
        ],
        config: || Config {
            ordering: true,
            ..integers()
        },
        wanted: &["fence", "load atomic", "store atomic"],
    },
    Family {
        name: "subgroups",
        needs: &[Need::Capability(Capability::Subgroups)],
        config: || Config {
            subgroups: true,
            ..integers()
        },
        wanted: &[
            "subgroup shuffle",
            "subgroup vote",
            "subgroup reduce",
            "subgroup scan",
        ],
    },
    Family {
        name: "dynamic shared memory",
        needs: &[Need::Capability(Capability::DynamicShared)],
        config: || Config {
            dynamic_shared: true,
            ..integers()
        },
        wanted: &["barrier", "load shared", "store shared"],
    },
    Family {
        name: "faults",
        needs: &[],
        config: || Config {
            faults: true,
            ..integers()
        },
        wanted: &["loop", "barrier", "faulted: index_out_of_bounds"],
    },
    Family {
        name: "faults of a lone lane",
        needs: &[],
        config: || Config {
            faults: true,
            lanes: 1,
            ..integers()
        },
        wanted: &["loop", "faulted: index_out_of_bounds"],
    },
];

pub(super) fn cells() -> Vec<Cell> {
    let cell = |(number, family): (usize, &'static Family)| {
        let name = format!("generated/{}", family.name);
        let first = number as u64 * APART;
        let mut cell =
            Cell::with_remark(name, move |device| check(device, family, first)).needs(Need::Compute);
        for need in family.needs {
            cell = cell.needs(*need);
        }
        cell
    };
    FAMILIES.iter().enumerate().map(cell).collect()
}

fn check(device: &Device, family: &Family, first: u64) -> Remark {
    let seeds = seeds(first)?;
    let found = fuzz(device, &(family.config)(), seeds.clone())?;
    let missing: Vec<&str> = family
        .wanted
        .iter()
        .copied()
        .filter(|name| !found.contains_key(*name))
        .collect();
    if seeds.end - seeds.start >= ENOUGH && !missing.is_empty() {
        return Err(Failure(format!("the kernels had no {}", missing.join(", no "))));
    }
    let mut remark = format!("{} kernels:", seeds.end - seeds.start);
    let mut names: Vec<_> = found.iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (i, (name, count)) in names.into_iter().enumerate() {
        let _ = write!(remark, "{} {name} {count}", if i == 0 { "" } else { "," });
    }
    Ok(remark)
}

// Which seeds to try, of those that begin at `start`.
fn seeds(start: u64) -> std::result::Result<Range<u64>, Failure> {
    let number = |name: &str, default: u64| match std::env::var(name) {
        Ok(text) => text
            .parse()
            .map_err(|_| Failure(format!("{name} is `{text}`: make it a number"))),
        Err(_) => Ok(default),
    };
    let first = start.saturating_add(number("PERPETUA_FIRST_SEED", 0)?);
    let count = number("PERPETUA_SEEDS", SEEDS)?;
    Ok(first..first.saturating_add(count))
}

/// What generated kernels contained and how many faulted, by name.
pub type Contents = BTreeMap<String, usize>;

/// Runs a kernel for each seed on a device and in the interpreter, and fails with the first one that differs, shrunk.
pub fn fuzz(device: &Device, config: &Config, seeds: Range<u64>) -> std::result::Result<Contents, Failure> {
    let limits = &device.info().limits;
    let config = Config {
        buffers: config.buffers.min(limits.max_buffers as usize),
        lanes: config.lanes.min(limits.max_threads_per_block),
        ..config.clone()
    };
    let mut contents = Contents::new();
    for seed in seeds {
        let tape = tape(seed, config.statements * TAPE);
        let case = generate(&config, &mut Choices::new(&tape))
            .map_err(|e| Failure(format!("generating seed {seed}: {e}")))?;
        let case = alone(case, &config);
        for (name, count) in histogram(&case.kernel) {
            *contents.entry(name.to_owned()).or_default() += count;
        }
        match compare(device, &case) {
            Ok(None) => {}
            Ok(Some(fault)) => {
                *contents
                    .entry(format!("faulted: {}", fault.site.kind.name()))
                    .or_default() += 1;
            }
            Err(first) => return Err(Failure(shrunk(device, &config, seed, &tape, &first.text))),
        }
    }
    Ok(contents)
}

// Of kernels for one lane, only one block is launched, so that a fault can be the first lane's only.
fn alone(case: Case, config: &Config) -> Case {
    match config.lanes {
        1 => Case { grid: [1; 3], ..case },
        _ => case,
    }
}

// The smallest case found that goes wrong, as text.
fn shrunk(device: &Device, config: &Config, seed: u64, tape: &[u32], first: &str) -> String {
    // What the interpreter refuses, or does not end, is no smaller form of the same failure.
    let fails = |case: &Case| compare(device, &alone(case.clone(), config)).is_err_and(|w| w.on_device);
    let Some((_, case)) = minimise_tape(config, tape, SHRINKING[0], fails) else {
        return format!("seed {seed}: {first}");
    };
    let case = minimise_kernel(&alone(case, config), SHRINKING[1], fails);
    let why = compare(device, &case).err();
    let why = why.map_or_else(|| first.to_owned(), |w| w.text);
    format!(
        "seed {seed}: {first}\nshrunk, it says: {why}\n{}launched by {:?} groups of {:?} lanes",
        case.kernel, case.grid, case.block
    )
}

/// What is wrong with a case.
pub(super) struct Wrong {
    /// Whether it came to the device at all.
    on_device: bool,
    /// What was expected and found.
    pub(super) text: String,
}

// Runs a case both ways: the fault that both report, if any; an error where they differ.
pub(super) fn compare(device: &Device, case: &Case) -> std::result::Result<Option<Fault>, Wrong> {
    let refused = |text: String| Wrong {
        on_device: false,
        text,
    };
    let kernel = verify(case.kernel.clone()).map_err(|e| refused(format!("the kernel is wrong: {e}")))?;
    let expected = match interpret(&kernel, case, SUBGROUP, RaceMode::Off) {
        Ok(left) => Ok(left),
        Err(InterpError::Fault(fault)) => Err(fault),
        Err(other) => return Err(refused(format!("the interpreter refuses the kernel: {other}"))),
    };
    let differ = |text: String| Wrong {
        on_device: true,
        text,
    };
    match (expected, launch(device, &kernel, case)) {
        (Ok(expected), Ok(found)) => match &mismatches(&case.kernel, &expected, &found, 3)[..] {
            [] => Ok(None),
            some => {
                let some: Vec<String> = some.iter().map(ToString::to_string).collect();
                Err(differ(some.join("; ")))
            }
        },
        (Err(expected), Err(Error::Fault(found))) => {
            // Which of several lanes is reported, nobody promises.
            let same = match case.lanes() {
                1 => *expected == *found,
                _ => expected.kernel == found.kernel && expected.source == found.source,
            };
            match same {
                true => Ok(Some(*found)),
                false => Err(differ(format!("expected the fault: {expected}; found: {found}"))),
            }
        }
        (Err(expected), Ok(_)) => Err(differ(format!("no fault was reported, expected: {expected}"))),
        (_, Err(error)) => Err(differ(format!("the launch failed: {error}"))),
    }
}

/// What a launch of a case leaves in its arguments.
pub(super) fn run(device: &Device, case: &Case) -> Result<Vec<Vec<u8>>> {
    let kernel = verify(case.kernel.clone()).map_err(|e| Error::Frontend {
        kernel: case.kernel.name.clone(),
        message: e.to_string(),
    })?;
    launch(device, &kernel, case)
}

fn launch(device: &Device, kernel: &Verified, case: &Case) -> Result<Vec<Vec<u8>>> {
    let options = CompileOptions {
        no_disk_cache: true,
        ..CompileOptions::default()
    };
    let compiled = device.compile(&KernelSource::Ir(kernel), &options)?.only()?;
    let mut buffers = Vec::new();
    for (param, bytes) in case.kernel.params.iter().zip(&case.args) {
        buffers.push(match &param.kind {
            ParamKind::Buffer { element, .. } => Some(DynBuffer::upload(device, element, bytes)?),
            ParamKind::Value(_) => None,
        });
    }
    let mut args = Vec::new();
    for ((param, bytes), buffer) in case.kernel.params.iter().zip(&case.args).zip(&buffers) {
        args.push(match (&param.kind, buffer) {
            (ParamKind::Value(ty), _) => KernelArg::value(ty, bytes)?,
            (ParamKind::Buffer { .. }, Some(buffer)) => buffer.arg(),
            // Every buffer parameter has got one above.
            (ParamKind::Buffer { .. }, None) => continue,
        });
    }
    let config = LaunchConfig::new(case.grid, case.block).with_shared_bytes(case.dynamic_shared);
    device.launch(&compiled, config, &args)?;
    device.synchronize()?;
    let read = |(bytes, buffer): (&Vec<u8>, &Option<DynBuffer>)| match buffer {
        Some(buffer) => buffer.read(),
        None => Ok(bytes.clone()),
    };
    case.args.iter().zip(&buffers).map(read).collect()
}
