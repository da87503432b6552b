//! The interpreter against an independent reading of the IR, and against what its parts promise.

mod control;
mod faults;
mod generate;
mod lanewise;
mod launches;
mod memory;
mod progress;
mod races;
mod random;
mod subgroups;

use super::*;
use perpetua_ir::ir::*;
use perpetua_ir::ops::BinaryOp;
use perpetua_ir::verify::verify;

type Built = std::result::Result<(), TypeError>;

/// Builds and verifies a kernel.
fn kernel(name: &str, build: impl FnOnce(&mut KernelBuilder) -> Built) -> Verified {
    let mut k = KernelBuilder::new(name);
    k.set_source("test.rs");
    build(&mut k).unwrap();
    verify(k.finish()).unwrap_or_else(|e| panic!("{e}"))
}

/// One launch to be: shape, buffers, everything else as in [`LaunchConfig`].
struct Run<'a> {
    kernel: &'a Verified,
    grid: u32,
    block: u32,
    values: &'a [u32],
    races: RaceMode,
    subgroup: u32,
    budget: Option<u64>,
    dynamic: u32,
}

impl<'a> Run<'a> {
    fn of(kernel: &'a Verified, grid: u32, block: u32) -> Run<'a> {
        Run {
            kernel,
            grid,
            block,
            values: &[],
            races: RaceMode::Off,
            subgroup: 32,
            budget: Some(1 << 24),
            dynamic: 0,
        }
    }

    fn watched(self) -> Run<'a> {
        Run {
            races: RaceMode::Detect,
            ..self
        }
    }

    /// Launches with one `u32` buffer for each vector; then the `u32` values.
    fn on(&self, buffers: &mut [Vec<u32>]) -> Result<(), InterpError> {
        let values: Vec<[u8; 4]> = self.values.iter().map(|v| v.to_ne_bytes()).collect();
        let mut args: Vec<Arg<'_>> = buffers
            .iter_mut()
            .map(|b| Arg::Buffer(BufferRef::from_slice(b.as_mut_slice())))
            .collect();
        args.extend(values.iter().map(|v| Arg::Value(v)));
        let config = LaunchConfig {
            races: self.races,
            subgroup_size: self.subgroup,
            step_budget: self.budget,
            dynamic_shared_bytes: self.dynamic,
            ..LaunchConfig::new([self.grid, 1, 1], [self.block, 1, 1], &args)
        };
        Interpreter::new(self.kernel)?.launch(&config)
    }

    /// What one zeroed buffer of `n` elements holds after the launch.
    fn gives(&self, n: usize) -> Result<Vec<u32>, InterpError> {
        let mut buffers = [vec![0; n]];
        self.on(&mut buffers)?;
        let [out] = buffers;
        Ok(out)
    }
}

/// Index of the lane in its block.
fn thread(k: &mut KernelBuilder) -> Value {
    k.builtin(Builtin::ThreadIdx(Axis::X))
}

fn block(k: &mut KernelBuilder) -> Value {
    k.builtin(Builtin::BlockIdx(Axis::X))
}

fn if_eq(k: &mut KernelBuilder, a: Value, b: u32, then: impl FnOnce(&mut KernelBuilder) -> Built) -> Built {
    let b = k.u32(b);
    let is = k.binary(BinaryOp::Eq, a, b)?;
    k.if_(is, then)
}

fn sync(order: MemOrder, scope: Scope) -> Sync {
    Sync { order, scope }
}
