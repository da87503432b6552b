//! The conformance suite: what every backend must do, as cells that are run on a device. A backend passes when no cell
//! fails; a cell is skipped only for a capability that the device lacks, by name. Knows no backend. Not for browsers: it
//! blocks.
//!
//! ```
//! use perpetua_device::{BackendKind, Device, conformance};
//! let device = Device::new(BackendKind::Null, 0)?;
//! let mut report = conformance::Report::default();
//! conformance::run_all(&device, &mut report);
//! println!("{report}");
//! assert!(report.passed());
//! # Ok::<(), perpetua_device::Error>(())
//! ```

mod adoption;
mod compile;
mod control;
mod errors;
mod faults;
mod generated;
mod judge;
mod kernels;
mod launches;
mod loss;
mod matrices;
mod memory;
mod operators;
mod report;
mod streams;
mod unchecked;

use std::panic::{AssertUnwindSafe, catch_unwind};

use perpetua_ir::back::Capability;

pub use generated::{Contents, fuzz};
pub use judge::Judge;
pub use operators::{Map, rows};
pub use report::{Outcome, Report};

use crate::device::Device;
use crate::error::Error;

/// Why a cell failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure(error.to_string())
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure(text)
    }
}

/// What a cell gives.
pub type Check = Result<(), Failure>;

/// What a device must have for a cell to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It runs kernels.
    Compute,
    /// A capability of kernels.
    Capability(Capability),
    /// Mapped host memory.
    MappedMemory,
    /// Times on events.
    Timestamps,
    /// Floats that equal the interpreter's to the bit.
    ExactFloats,
}

impl Need {
    /// The name of what is missing; `None` when the device has it.
    pub fn missing(self, device: &Device) -> Option<String> {
        let info = device.info();
        let (has, name) = match self {
            Need::Compute => (info.computes, "running kernels".to_owned()),
            Need::Capability(c) => (info.capabilities.contains(&c), c.to_string()),
            Need::MappedMemory => (info.mapped_memory, "mapped host memory".to_owned()),
            Need::Timestamps => (info.timestamps, "timestamps".to_owned()),
            Need::ExactFloats => (
                info.numeric_probe.is_some_and(|p| p.is_exact()),
                "floats that equal the interpreter's to the bit".to_owned(),
            ),
        };
        (!has).then_some(name)
    }
}

/// What a cell with something to tell gives: a remark.
pub type Remark = Result<String, Failure>;

type Body = Box<dyn Fn(&Device) -> Remark + Send + Sync>;

/// One test of a device.
pub struct Cell {
    /// `group/name`, unique in the suite.
    pub name: String,
    /// What it needs.
    pub needs: Vec<Need>,
    body: Body,
}

impl Cell {
    /// A cell that every device must pass.
    pub fn new(name: impl Into<String>, body: impl Fn(&Device) -> Check + Send + Sync + 'static) -> Cell {
        Cell::with_remark(name, move |device| body(device).map(|()| String::new()))
    }

    /// The same, with something to tell when it passes.
    pub fn with_remark(
        name: impl Into<String>,
        body: impl Fn(&Device) -> Remark + Send + Sync + 'static,
    ) -> Cell {
        Cell {
            name: name.into(),
            needs: Vec::new(),
            body: Box::new(body),
        }
    }

    /// The same, for devices that have `need` too.
    pub fn needs(mut self, need: Need) -> Cell {
        self.needs.push(need);
        self
    }

    /// Runs it.
    pub fn run(&self, device: &Device) -> Outcome {
        if let Some(missing) = self.needs.iter().find_map(|need| need.missing(device)) {
            return Outcome::Skipped(missing);
        }
        match catch_unwind(AssertUnwindSafe(|| (self.body)(device))) {
            Ok(Ok(remark)) => Outcome::Passed(remark),
            Ok(Err(Failure(text))) => Outcome::Failed(text),
            Err(cause) => {
                let text = cause.downcast_ref::<String>().cloned();
                let text = text.or_else(|| cause.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                Outcome::Failed(format!("panicked: {}", text.unwrap_or_default()))
            }
        }
    }
}

/// All cells, in the order in which they run; those that lose a device come last.
pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    cells.extend(memory::cells());
    cells.extend(adoption::cells());
    cells.extend(streams::cells());
    cells.extend(errors::cells());
    cells.extend(unchecked::cells());
    cells.extend(compile::cells());
    cells.extend(launches::cells());
    cells.extend(operators::cells());
    cells.extend(faults::cells());
    cells.extend(control::cells());
    cells.extend(matrices::cells());
    cells.extend(generated::cells());
    cells.extend(loss::cells());
    cells
}

/// Runs every cell on a device.
pub fn run_all(device: &Device, report: &mut Report) {
    run_matching(device, "", report);
}

/// Runs the cells whose name contains `part` on a device.
pub fn run_matching(device: &Device, part: &str, report: &mut Report) {
    // Programs' grids are large, the cells' are small.
    device.widen_all_for_test();
    for cell in cells().into_iter().filter(|c| c.name.contains(part)) {
        let outcome = cell.run(device);
        report.add(cell.name, outcome);
    }
}

// Fails with what was expected and found.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expect: T) -> Check {
    if found == expect {
        return Ok(());
    }
    let cut = |value: &T| {
        let text = format!("{value:?}");
        match text.char_indices().nth(200) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    };
    Err(Failure(format!(
        "{what}: found {}, expected {}",
        cut(&found),
        cut(&expect)
    )))
}

// As `same` for long slices: names the first element that differs.
fn same_all<T: PartialEq + std::fmt::Debug>(what: &str, found: &[T], expect: &[T]) -> Check {
    same(&format!("{what}: length"), found.len(), expect.len())?;
    match found.iter().zip(expect).position(|(f, e)| f != e) {
        None => Ok(()),
        Some(i) => same(&format!("{what}: element {i}"), &found[i], &expect[i]),
    }
}

// Fails unless `result` is an error that `is_right` accepts.
fn fails<T, E: std::fmt::Display>(
    what: &str,
    result: Result<T, E>,
    is_right: impl FnOnce(&E) -> bool,
) -> Check {
    match result {
        Ok(_) => Err(Failure(format!("{what}: succeeded, an error was expected"))),
        Err(error) if is_right(&error) => Ok(()),
        Err(error) => Err(Failure(format!("{what}: the wrong error: {error}"))),
    }
}

// The same device, opened a second time.
fn open_again(device: &Device) -> Result<Device, Failure> {
    Ok(Device::new(device.backend(), device.info().index)?)
}

// Bytes that differ from place to place and from `salt` to `salt`.
fn pattern(len: usize, salt: u8) -> Vec<u8> {
    (0..len)
        .map(|i| (i as u8).wrapping_mul(31).wrapping_add(salt) ^ (i >> 8) as u8)
        .collect()
}
