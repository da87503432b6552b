//! How long calls take, and what a device could do at best: the roof that figures stand under. Must not know the kernels that are measured.
//!
//! ```
//! use std::time::Duration;
//! use perpetua::device::{BackendKind, Device};
//! use perpetua::kernels::measure::{Roof, Unit, numbers, seconds_a_call};
//! use perpetua::kernels::{Kernel, SoftmaxKernel};
//! use perpetua::prelude::*;
//!
//! let device = Device::new(BackendKind::Cpu, 0)?;
//! let stream = device.create_stream()?;
//! let x = numbers(&device, 64 * 100, |x| x)?;
//! let y = device.zeros::<f32>(64 * 100)?;
//! let softmax = SoftmaxKernel::new(64, 100);
//! let seconds = seconds_a_call(&stream, Duration::from_millis(10), || softmax.launch(&stream, args![&x, &y]))?;
//! let roof = Roof::measure(&device, Duration::from_millis(50))?;
//! println!("{:.2} of what a copy reaches", 2.0 * x.bytes() as f64 / seconds / roof.bandwidth());
//! # assert!(seconds > 0.0 && roof.peak(Unit::Lanes).is_some_and(|peak| peak > 0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::time::{Duration, Instant};

use perpetua::prelude::*;
use perpetua_device::{BackendKind, Buffer, Device, LaunchConfig, Stream, args};

use crate::error::Result;
use crate::factors::Factors;

/// Rounds of which the best counts.
const ROUNDS: u32 = 5;
/// Calls of a graph, of those that take less time than this.
const CALLS: u32 = 32;
const SHORT: f64 = 1.5e-4;

/// Seconds that one call takes, the best of five rounds which together last `long`, and at least a call each. What calls submit goes to this stream. On
/// CUDA, calls of less than 150 us are measured as a captured graph of 32, so that it is the device's time and not the host's.
///
/// # Errors
/// The first that a call gives; the device is lost, or has no room for a graph.
pub fn seconds_a_call(stream: &Stream, long: Duration, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    call()?;
    stream.synchronize()?;
    let start = Instant::now();
    call()?;
    stream.synchronize()?;
    let once = start.elapsed().as_secs_f64().max(1e-6);
    if once >= SHORT || stream.device().backend() != BackendKind::Cuda {
        return best(stream, long, once, call);
    }
    let mut captured = Ok(());
    let graph = stream.capture(|_| {
        captured = (0..CALLS).try_for_each(|_| call());
        Ok(())
    })?;
    captured?;
    let all = best(stream, long, once * f64::from(CALLS), || {
        Ok(stream.launch_graph(&graph)?)
    })?;
    Ok(all / f64::from(CALLS))
}

/// Of rounds of calls that take about `once` each.
fn best(stream: &Stream, long: Duration, once: f64, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let calls = (long.as_secs_f64() / f64::from(ROUNDS) / once).clamp(1.0, 2000.0) as u32;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        stream.synchronize()?;
        best = best.min(start.elapsed().as_secs_f64() / f64::from(calls));
    }
    Ok(best)
}

/// So many numbers between -1 and 1, the same ones at every call: a GPU that multiplies zeros takes less power, and looks faster than it is.
///
/// # Errors
/// There is no room for them.
pub fn numbers<T: GpuType>(device: &Device, len: usize, of: fn(f32) -> T) -> Result<Buffer<T>> {
    let mut state = 1u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        of((state >> 40) as f32 / (1 << 23) as f32 - 1.0)
    };
    let values: Vec<T> = std::iter::repeat_with(next).take(len).collect();
    Ok(device.upload(&values)?)
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// The lanes' own `f32` arithmetic.
    Lanes,
    /// Matrix units that multiply these.
    Matrices(Factors),
}

/// What a device could do at best.
#[derive(Clone, Debug, PartialEq)]
pub struct Roof {
    bandwidth: f64,
    lanes: f64,
    /// Operations a second on factors of 16 bits.
    halves: Option<f64>,
}

/// Numbers that a lane multiplies and adds at the same time, none of which waits for another.
const CHAINS: usize = 16;

/// Nothing but multiplications with additions, of `f32`; on the CPU as machine code, whatever the program's build.
#[kernel(interpret)]
fn multiply_adds(turns: u32, factor: f32, out: &mut [f32]) {
    let i = global_id_x();
    let mut sums = [0.0f32; CHAINS];
    for j in 0..CHAINS {
        sums[j] = (i + j) as f32;
    }
    for _turn in 0..turns {
        for j in 0..CHAINS {
            sums[j] = sums[j].mul_add(factor, 1.0);
        }
    }
    let mut sum = 0.0;
    for j in 0..CHAINS {
        sum += sums[j];
    }
    if i < out.len() {
        out[i] = sum;
    }
}

impl Roof {
    /// Measures copies within the device's memory, of 256 MiB (on the host's processor 64 MiB) or of a sixteenth of its memory if that is
    /// less, and multiplications with additions in registers; `long` for each. What matrix units do at best is known of NVIDIA's: their
    /// operations a cycle by compute capability, times multiprocessors and highest clock, so that clocks lowered by heat or power count
    /// against a kernel.
    ///
    /// # Errors
    /// What the device says.
    pub fn measure(device: &Device, long: Duration) -> Result<Roof> {
        let stream = device.create_stream()?;
        let info = device.info();
        let most = info.memory_total.map_or(u64::MAX, |total| total / 16) as usize;
        let bytes = if info.on_host { 64 << 20 } else { 256 << 20 };
        let from = device.zeros::<u32>(bytes.min(most) / 4)?;
        let to = device.zeros::<u32>(from.len())?;
        let copy = seconds_a_call(&stream, long, || Ok(stream.copy(&from, &to)?))?;
        let lanes = if info.on_host { 1 << 14 } else { 1 << 19 };
        let turns = 1u32 << 11;
        let out = device.zeros::<f32>(lanes)?;
        let kernel = multiply_adds::kernel();
        let config = LaunchConfig::linear(lanes, 256);
        let adds = seconds_a_call(&stream, long, || {
            Ok(stream.launch(&kernel, config, args![turns, 0.5f32, &out])?)
        })?;
        Ok(Roof {
            bandwidth: 2.0 * from.bytes() as f64 / copy,
            lanes: 2.0 * (lanes * CHAINS) as f64 * f64::from(turns) / adds,
            halves: halves(device),
        })
    }

    /// Bytes a second that a copy within the device reads and writes.
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth
    }

    /// Operations a second at best, a multiplication with an addition being two; `None` where it is not known.
    pub fn peak(&self, unit: Unit) -> Option<f64> {
        match unit {
            Unit::Lanes => Some(self.lanes),
            Unit::Matrices(Factors::F16 | Factors::Bf16) => self.halves,
            Unit::Matrices(Factors::Tf32) => self.halves.map(|rate| rate / 2.0),
            Unit::Matrices(Factors::I8 | Factors::E4m3 | Factors::E5m2) => self.halves.map(|rate| rate * 2.0),
        }
    }

    /// Seconds that so many operations on so many bytes take at least: those of the operations or those of the bytes, whichever are more. `None` where the
    /// unit's peak is not known.
    pub fn least_seconds(&self, unit: Unit, operations: f64, bytes: f64) -> Option<f64> {
        Some((operations / self.peak(unit)?).max(bytes / self.bandwidth))
    }
}

/// Operations a second of NVIDIA's matrix units on factors of 16 bits with sums in `f32`, dense, by the tuning guides and white papers of the generations.
fn halves(device: &Device) -> Option<f64> {
    let info = device.info();
    let a_cycle = match info.compute_capability? {
        (8, 0) => 2048.0,
        (8, _) => 512.0,
        (9, _) => 4096.0,
        (10, _) => 8192.0,
        (12, _) => 512.0,
        _ => return None,
    };
    Some(a_cycle * f64::from(info.multiprocessors?) * f64::from(info.clock?) * 1e6)
}
