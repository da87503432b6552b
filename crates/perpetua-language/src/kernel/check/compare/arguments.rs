//! The arguments of one call, and what the function and its kernel make of them. Must not know which kernels there are.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use perpetua_cpu::interp::{Arg, BufferRef, InterpError, LaunchConfig as Launch, RaceMode};
use perpetua_device::layout::{collect, with_bytes};
use perpetua_device::{Buffer, Device, KernelArg, LaunchConfig};
use perpetua_ir::front::rust::{GpuType, TypeDesc};

use super::super::super::index::Lane;
use super::Subject;
use super::values::{Flavour, Random, difference, fill};

/// Operations that a trial may take.
const BUDGET: u64 = 1 << 18;

/// What a trial came to.
pub(super) enum Outcome {
    Left(&'static str),
    Same,
    Faulted,
    Differs(String),
}

/// An argument before the call, and what the kernel's runs have left of it.
struct Made {
    desc: TypeDesc,
    size: usize,
    /// A value has no kernel's runs to be compared with.
    is_buffer: bool,
    bytes: Vec<u8>,
    runs: Vec<Vec<u8>>,
    uploaded: Box<dyn Uploaded>,
}

trait Uploaded {
    /// The argument of a launch, its content as it was at first.
    fn arg(&mut self, device: &Device) -> Option<KernelArg<'_>>;
    /// What a launch left.
    fn read(&self) -> Vec<u8>;
}

struct Elements<T: GpuType>(Vec<T>, Option<Buffer<T>>);

impl<T: GpuType> Uploaded for Elements<T> {
    fn arg(&mut self, device: &Device) -> Option<KernelArg<'_>> {
        let buffer = device.upload(&self.0).ok()?;
        Some(self.1.insert(buffer).arg())
    }

    fn read(&self) -> Vec<u8> {
        let values = self.1.as_ref().and_then(|buffer| buffer.read().ok());
        with_bytes(&values.unwrap_or_default(), <[u8]>::to_vec)
    }
}

struct Value<T: GpuType>(T);

impl<T: GpuType> Uploaded for Value<T> {
    fn arg(&mut self, _: &Device) -> Option<KernelArg<'_>> {
        Some(self.0.into())
    }

    fn read(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// The arguments of one call.
pub struct Arguments<'a> {
    subject: &'a Subject,
    random: Random,
    flavour: Flavour,
    len: usize,
    is_single: bool,
    made: Vec<Made>,
    /// How many of them the function has given back.
    left: usize,
    pub(super) outcome: Outcome,
}

impl fmt::Debug for Arguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arguments")
            .field("count", &self.made.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Arguments<'a> {
    pub(super) fn new(subject: &'a Subject, trial: u32) -> Arguments<'a> {
        let mut random = Random(u64::from(trial) * 2 + 1);
        let flavour = match trial % 4 {
            0 => Flavour::Few,
            1 => Flavour::Small,
            3 if !subject.bits => Flavour::Any,
            _ => Flavour::Bytes,
        };
        let len = random.of(&[64, 64, 256, 100, 33, 8]);
        Arguments {
            subject,
            random,
            flavour,
            len,
            is_single: trial.is_multiple_of(3),
            made: Vec::new(),
            left: 0,
            outcome: Outcome::Left("it was not called"),
        }
    }

    fn values<T: GpuType>(&mut self, count: usize) -> Vec<T> {
        let (desc, size) = (T::describe(), size_of::<T>());
        let (random, flavour) = (&mut self.random, self.flavour);
        let values = collect::<T>(count, |bytes| {
            bytes
                .chunks_exact_mut(size.max(1))
                .for_each(|value| fill(&desc, value, flavour, random));
            Ok(())
        });
        values.unwrap_or_default()
    }

    fn make<T: GpuType>(&mut self, values: &[T], is_buffer: bool, uploaded: Box<dyn Uploaded>) {
        self.made.push(Made {
            desc: T::describe(),
            size: size_of::<T>(),
            is_buffer,
            bytes: with_bytes(values, <[u8]>::to_vec),
            runs: Vec::new(),
            uploaded,
        });
    }

    /// For a slice.
    pub(super) fn slice<T: GpuType>(&mut self) -> Vec<T> {
        let values = self.values(self.len);
        self.make(&values, true, Box::new(Elements(values.clone(), None)));
        values
    }

    /// For a reference to one value.
    pub(super) fn one<T: GpuType>(&mut self) -> [T; 1] {
        let values = self.values::<T>(1);
        let value = values.first().copied().unwrap_or(T::ZEROED);
        self.make(&[value], true, Box::new(Elements(vec![value], None)));
        [value]
    }

    /// For a value.
    pub(super) fn value<T: GpuType>(&mut self) -> T {
        let value = self.values::<T>(1).first().copied().unwrap_or(T::ZEROED);
        self.make(&[value], false, Box::new(Value(value)));
        value
    }

    /// Runs the kernel, and the function lane by lane where it is known to end.
    pub fn run(&mut self, lane: &mut dyn FnMut()) {
        // What is no kernel for many lanes is compared with one.
        let (grid, block) = match (self.is_single, self.subject.block) {
            (true, None) => ([1; 3], [1; 3]),
            _ => self.subject.shape(&mut self.random),
        };
        let mut outcome = self.interpret(grid, block, None);
        // A launch with a fault does not tell whether other lanes would have ended: blocks of one lane do, each by itself.
        if let Err(InterpError::Fault(_)) = outcome {
            if block != [1; 3] {
                return self.outcome = Outcome::Left("it faults");
            }
            let blocks = grid.iter().map(|n| u64::from(*n)).product();
            outcome = (0..blocks).try_for_each(|at| self.interpret(grid, block, Some((at, 1))));
        }
        let fault = match outcome {
            Ok(()) => None,
            Err(InterpError::Fault(fault)) => Some(fault.to_string()),
            Err(InterpError::Race(_)) => return self.outcome = Outcome::Left("lanes race"),
            Err(InterpError::Deadline { .. }) => return self.outcome = Outcome::Left("it takes long"),
            Err(InterpError::DivergentBarrier { .. }) => {
                return self.outcome = Outcome::Left("not all lanes come to a barrier");
            }
            Err(_) => return self.outcome = Outcome::Left("the interpreter does not run it"),
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| lanes(grid, block, lane))).err();
        let panicked = panicked.map(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            text.or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "a panic without words".to_owned())
        });
        self.outcome = match (fault, panicked) {
            // Kernels wrap, as Rust does without overflow checks.
            (_, Some(text)) if text.contains("with overflow") => Outcome::Left("its numbers overflow"),
            // The language's `clamp` does not look at its bounds.
            (_, Some(text)) if text.contains("min > max") => {
                Outcome::Left("it clamps between bounds in the wrong order")
            }
            (Some(_), Some(_)) => Outcome::Faulted,
            (Some(fault), None) => Outcome::Differs(format!("the function ends, the kernel faults: {fault}")),
            (None, Some(text)) => Outcome::Differs(format!("the kernel ends, the function panics: {text}")),
            (None, None) => match self.launch(grid, block) {
                Ok(()) => Outcome::Same,
                Err(what) => Outcome::Differs(what),
            },
        };
    }

    /// Takes back what the function has left of a slice.
    pub(super) fn left<T: GpuType>(&mut self, values: &[T]) {
        let exact = self.subject.exact;
        while self.made.get(self.left).is_some_and(|made| !made.is_buffer) {
            self.left += 1;
        }
        let Some(made) = self.made.get(self.left) else {
            return;
        };
        let argument = self.left;
        self.left += 1;
        if !matches!(self.outcome, Outcome::Same) {
            return;
        }
        let own = with_bytes(values, <[u8]>::to_vec);
        let differs = made.runs.iter().enumerate().find_map(|(run, bytes)| {
            let way = ["in the interpreter", "as the CPU runs it", "as machine code"][run.min(2)];
            difference(&made.desc, made.size, &own, bytes, exact)
                .map(|what| format!("argument {argument} {way}: {what}"))
        });
        if let Some(what) = differs {
            self.outcome = Outcome::Differs(what);
        }
    }

    /// Runs some of the blocks, or all; some run on what those before them have left.
    fn interpret(
        &mut self,
        grid: [u32; 3],
        block: [u32; 3],
        blocks: Option<(u64, u64)>,
    ) -> Result<(), InterpError> {
        let goes_on = blocks.is_some_and(|(first, _)| first > 0);
        let start = |made: &mut Made| match made.runs.pop() {
            Some(bytes) if goes_on => words(&bytes),
            _ => words(&made.bytes),
        };
        // Memory with the alignment of every type.
        let mut stores: Vec<Vec<u128>> = self.made.iter_mut().map(start).collect();
        let args: Vec<Arg<'_>> = self
            .made
            .iter()
            .zip(&mut stores)
            .map(|(made, store)| match made.is_buffer {
                true => {
                    let bytes: &mut [u8] = bytemuck::cast_slice_mut(store);
                    Arg::Buffer(BufferRef::from_slice(&mut bytes[..made.bytes.len()]))
                }
                false => Arg::Value(&made.bytes),
            })
            .collect();
        let config = Launch {
            blocks,
            races: RaceMode::Detect,
            step_budget: Some(BUDGET),
            ..Launch::new(grid, block, &args)
        };
        let outcome = self.subject.interpreter.launch(&config);
        drop(args);
        for (made, store) in self.made.iter_mut().zip(&stores) {
            let bytes: &[u8] = bytemuck::cast_slice(store);
            made.runs.push(bytes[..made.bytes.len()].to_vec());
        }
        outcome
    }

    /// Runs the kernel as the CPU does.
    fn launch(&mut self, grid: [u32; 3], block: [u32; 3]) -> Result<(), String> {
        let Subject { device, compiled, .. } = self.subject;
        for kernel in compiled {
            let args: Option<Vec<_>> = self
                .made
                .iter_mut()
                .map(|made| made.uploaded.arg(device))
                .collect();
            let args = args.ok_or("its arguments found no memory")?;
            let launched = device.launch(kernel, LaunchConfig::new(grid, block), &args);
            drop(args);
            launched
                .and_then(|()| device.synchronize())
                .map_err(|error| format!("the interpreter ends, the CPU does not: {error}"))?;
            for made in &mut self.made {
                let run = made.uploaded.read();
                made.runs.push(run);
            }
        }
        Ok(())
    }
}

/// Runs the lanes of a launch one after another.
fn lanes(grid: [u32; 3], block: [u32; 3], lane: &mut dyn FnMut()) {
    let places = |[x, y, z]: [u32; 3]| {
        (0..z).flat_map(move |k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])))
    };
    for at in places(grid) {
        for thread in places(block) {
            let place = Lane {
                thread,
                block: at,
                block_dim: block,
                grid_dim: grid,
            };
            place.run(&mut *lane);
        }
    }
}

fn words(bytes: &[u8]) -> Vec<u128> {
    let mut words = vec![0u128; bytes.len().div_ceil(16)];
    bytemuck::cast_slice_mut::<u128, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}
