//! Runs a compiled kernel: each lane is a coroutine, all on the calling thread, a threadgroup at a time.
//!
//! A lane runs until it ends or waits. When every lane of the group has, those that wait are released:
//! - A **SIMD group** whose lanes wait at one of its operations meets first. Where its lanes stand at different lines, those
//!   at the lowest line take part and the others stay: that is how lanes of a divergent flow join again behind a
//!   branch or a loop. (Two operations on one line, or a loop that only some lanes go round again, can be paired otherwise
//!   than on a GPU; Metal leaves it open there too.)
//! - A **threadgroup barrier** opens when all lanes of the group stand at it, at one line. Anything else is an error: a GPU
//!   would hang or go wrong.
//!
//! Threadgroup memory is filled with a pattern before each group, so that nothing leans on zeroes, and every buffer has
//! guard bytes on both sides. The kernel's own memory accesses are otherwise unchecked: it runs in this process.

use super::compile::MslProgram;
use super::launch::{LaneOrder, MslLaunch, MslRunError};
use super::memory::{Guarded, POISON, StaticMemory};
use super::signature::Parameter;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

/// Bytes of stack a lane: private arrays lie there. Pages are taken as they are touched.
const STACK_BYTES: usize = 256 * 1024;
/// Threads that a Metal threadgroup has at most.
const GROUP_LIMIT: u64 = 1024;
/// Threadgroup memory that every Apple GPU has.
const THREADGROUP_LIMIT: u64 = 32 * 1024;
/// Rounds in which lanes only let others run, after which the group counts as stuck. A lane does so every 256 atomics.
const PATIENCE: u32 = 1 << 20;

/// Mirrors `perpetua::Exchange`.
#[repr(C)]
struct Exchange {
    active: u64,
    values: [[u8; 16]; 64],
}

/// Mirrors `perpetua::Lane`.
#[repr(C)]
struct Lane {
    value: [u8; 16],
    exchange: *const Exchange,
    lane: u32,
    width: u32,
    impatience: u32,
}

/// Mirrors `perpetua::Launch`.
#[repr(C)]
struct Launch {
    buffers: *const *mut c_void,
    threadgroup: *const *mut c_void,
    thread_in_group: [u32; 3],
    group_in_grid: [u32; 3],
    threads_per_group: [u32; 3],
    groups_per_grid: [u32; 3],
    simd_lane: u32,
    simd_width: u32,
    simd_group: u32,
}

/// Why a lane stopped.
enum Stop {
    Wait { kind: WaitKind, line: u32 },
    Undefined { what: String, file: String, line: u32 },
}

/// Mirrors `perpetua::WaitKind`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitKind {
    OthersMayRun,
    Threadgroup,
    SimdGroup,
}

type LaneCoroutine = Coroutine<(), Stop, (), DefaultStack>;
type LaneYielder = Yielder<(), Stop>;

thread_local! {
    /// The yielder of the lane that runs on this thread; null between lanes.
    static YIELDER: Cell<*const LaneYielder> = const { Cell::new(ptr::null()) };
}

/// Suspends the running lane. Outside a lane, which the driver never is, nothing happens.
fn suspend(stop: Stop) {
    let yielder = YIELDER.with(Cell::get);
    if !yielder.is_null() {
        // SAFETY: the scheduler sets the pointer to the yielder of the lane that it resumes, which lives on that
        // lane's stack until the lane ends, and clears it afterwards.
        unsafe { &*yielder }.suspend(stop);
    }
}

/// Called by the driver when the running lane must wait.
unsafe extern "C" fn wait(kind: u32, line: u32) {
    let kind = match kind {
        0 => WaitKind::OthersMayRun,
        1 => WaitKind::Threadgroup,
        _ => WaitKind::SimdGroup,
    };
    suspend(Stop::Wait { kind, line });
}

/// Called by the driver where the running lane does what is undefined. Does not return to it: the lane is abandoned.
unsafe extern "C" fn report(what: *const c_char, file: *const c_char, line: u32) {
    let text = |text: *const c_char| {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the driver passes string literals of the loaded object.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    suspend(Stop::Undefined {
        what: text(what),
        file: text(file),
        line,
    });
}

impl MslProgram {
    /// Runs the kernel over `groups` threadgroups of `threads` threads, with 32 lanes a SIMD group and
    /// `threadgroup_bytes` of dynamic threadgroup memory. `buffers[n]` is `[[buffer(n)]]`; on success it holds
    /// what the kernel left there.
    pub fn run(
        &self,
        groups: [u32; 3],
        threads: [u32; 3],
        buffers: &mut [Vec<u8>],
        threadgroup_bytes: u32,
    ) -> Result<(), MslRunError> {
        self.run_launch(
            &MslLaunch {
                threadgroup_bytes,
                ..MslLaunch::new(groups, threads)
            },
            buffers,
        )
    }

    /// Runs the kernel as `launch` says.
    pub fn run_launch(&self, launch: &MslLaunch, buffers: &mut [Vec<u8>]) -> Result<(), MslRunError> {
        let _one_at_a_time = self
            .exclusive
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let statics = StaticMemory::of(self);
        check_sizes(launch, &self.parameters, statics.length, buffers.len())?;
        // SAFETY: both functions have the signatures that the driver declares, and live as long as the process.
        unsafe { (self.entries.attach)(wait, report) };

        let guarded: Vec<Guarded> = buffers.iter().map(|bytes| Guarded::holding(bytes)).collect();
        let dynamic: Vec<Guarded> = dynamic_slots(&self.parameters)
            .map(|_| Guarded::holding(&vec![POISON; launch.threadgroup_bytes as usize]))
            .collect();
        let mut run = Run {
            program: self,
            launch,
            buffer_starts: guarded.iter().map(Guarded::start).collect(),
            dynamic_starts: dynamic.iter().map(Guarded::start).collect(),
            stacks: Vec::new(),
        };
        for z in 0..launch.groups[2] {
            for y in 0..launch.groups[1] {
                for x in 0..launch.groups[0] {
                    statics.poison();
                    dynamic.iter().for_each(Guarded::poison);
                    run.group([x, y, z])?;
                }
            }
        }
        check_guards(&self.parameters, guarded.iter().chain(&dynamic), buffers)?;
        for (bytes, guarded) in buffers.iter_mut().zip(&guarded) {
            bytes.copy_from_slice(guarded.contents());
        }
        Ok(())
    }
}

/// One position for every `[[threadgroup(n)]]` slot up to the highest.
fn dynamic_slots(parameters: &[Parameter]) -> impl Iterator<Item = u32> {
    let slots = parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Threadgroup { slot } => Some(slot + 1),
        _ => None,
    });
    0..slots.max().unwrap_or(0)
}

fn check_sizes(
    launch: &MslLaunch,
    parameters: &[Parameter],
    static_bytes: usize,
    buffers: usize,
) -> Result<(), MslRunError> {
    let threads: u64 = launch.threads.iter().map(|&n| u64::from(n)).product();
    if threads == 0 || threads > GROUP_LIMIT {
        let bound = "a threadgroup has 1 to 1,024 threads";
        return Err(MslRunError::Size {
            what: "threads of a threadgroup",
            value: threads,
            bound,
        });
    }
    if !launch.simd_width.is_power_of_two() || launch.simd_width > 64 {
        let bound = "it is a power of two up to 64";
        return Err(MslRunError::Size {
            what: "SIMD width",
            value: u64::from(launch.simd_width),
            bound,
        });
    }
    let dynamic = dynamic_slots(parameters).count() as u64 * u64::from(launch.threadgroup_bytes);
    let memory = static_bytes as u64 + dynamic;
    if memory > THREADGROUP_LIMIT {
        let bound = "Metal has 32,768 bytes";
        return Err(MslRunError::Size {
            what: "threadgroup memory",
            value: memory,
            bound,
        });
    }
    for parameter in parameters {
        if let Parameter::Buffer { slot, .. } = parameter
            && *slot as usize >= buffers
        {
            return Err(MslRunError::Unbound {
                slot: *slot,
                given: buffers,
            });
        }
    }
    Ok(())
}

fn check_guards<'a>(
    parameters: &[Parameter],
    all: impl Iterator<Item = &'a Guarded>,
    buffers: &[Vec<u8>],
) -> Result<(), MslRunError> {
    for (slot, guarded) in all.enumerate() {
        if let Some(side) = guarded.broken_guard() {
            return Err(MslRunError::OutOfBounds {
                slot,
                length: guarded.length,
                side,
            });
        }
        let read_only = Parameter::Buffer {
            slot: slot as u32,
            writable: false,
        };
        if parameters.contains(&read_only)
            && buffers.get(slot).is_some_and(|bytes| bytes != guarded.contents())
        {
            return Err(MslRunError::ReadOnly { slot });
        }
    }
    Ok(())
}

/// A launch in progress.
struct Run<'a> {
    program: &'a MslProgram,
    launch: &'a MslLaunch,
    buffer_starts: Vec<*mut c_void>,
    dynamic_starts: Vec<*mut c_void>,
    /// Stacks of lanes that have ended.
    stacks: Vec<DefaultStack>,
}

/// A lane of the group that runs.
struct Running {
    coroutine: Option<LaneCoroutine>,
    yielder: Box<Cell<*const LaneYielder>>,
    shared: Box<Lane>,
    /// Where it waits; `None` while it may run or has ended.
    waiting: Option<(WaitKind, u32)>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(coroutine) = &mut self.coroutine
            && coroutine.started()
            && !coroutine.done()
        {
            // SAFETY: the abandoned stack holds frames of the kernel and the driver, C++ without destructors, and of
            // `wait` or `report`, whose values were moved out by suspending: nothing needs to be dropped.
            unsafe { coroutine.force_reset() };
        }
    }
}

impl Run<'_> {
    /// Runs one threadgroup to its end.
    fn group(&mut self, group: [u32; 3]) -> Result<(), MslRunError> {
        let width = self.launch.simd_width as usize;
        let [nx, ny, nz] = self.launch.threads;
        let positions = (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])));
        let count = (nx * ny * nz) as usize;
        let mut exchanges: Vec<Box<Exchange>> = (0..count.div_ceil(width))
            .map(|_| {
                Box::new(Exchange {
                    active: 0,
                    values: [[0; 16]; 64],
                })
            })
            .collect();
        let mut lanes = positions
            .enumerate()
            .map(|(index, position)| self.lane(index, position, group, &*exchanges[index / width]))
            .collect::<Result<Vec<_>, _>>()?;
        loop {
            self.run_until_all_wait(&mut lanes, group)?;
            if lanes.iter().all(|lane| lane.coroutine.is_none()) {
                return Ok(());
            }
            let mut met = false;
            for (simd, exchange) in lanes.chunks_mut(width).zip(&mut exchanges) {
                met |= meet(simd, exchange);
            }
            if !met {
                open_barrier(&mut lanes, group)?;
            }
        }
    }

    fn lane(
        &mut self,
        index: usize,
        position: [u32; 3],
        group: [u32; 3],
        exchange: *const Exchange,
    ) -> Result<Running, MslRunError> {
        let width = self.launch.simd_width;
        // A threadgroup has at most 1,024 lanes.
        let index = index as u32;
        let launch = Launch {
            buffers: self.buffer_starts.as_ptr(),
            threadgroup: self.dynamic_starts.as_ptr(),
            thread_in_group: position,
            group_in_grid: group,
            threads_per_group: self.launch.threads,
            groups_per_grid: self.launch.groups,
            simd_lane: index % width,
            simd_width: width,
            simd_group: index / width,
        };
        let stack = match self.stacks.pop() {
            Some(stack) => stack,
            None => DefaultStack::new(STACK_BYTES).map_err(|error| MslRunError::Stack(error.to_string()))?,
        };
        let yielder = Box::new(Cell::new(ptr::null()));
        let own_yielder: *const Cell<*const LaneYielder> = &*yielder;
        let enter = self.program.entries.enter;
        let coroutine = Coroutine::with_stack(stack, move |the_yielder: &LaneYielder, ()| {
            // SAFETY: the cell is boxed beside the coroutine and outlives it.
            unsafe { &*own_yielder }.set(the_yielder);
            YIELDER.with(|current| current.set(the_yielder));
            // SAFETY: `launch` has the layout that the driver declares; its buffers hold every slot that the
            // kernel's signature names (`check_sizes`), each in memory that outlives the lane.
            unsafe { enter(ptr::from_ref(&launch).cast()) };
        });
        let shared = Lane {
            value: [0; 16],
            exchange,
            lane: index % width,
            width,
            impatience: index,
        };
        Ok(Running {
            coroutine: Some(coroutine),
            yielder,
            shared: Box::new(shared),
            waiting: None,
        })
    }

    fn run_until_all_wait(&mut self, lanes: &mut [Running], group: [u32; 3]) -> Result<(), MslRunError> {
        for _ in 0..PATIENCE {
            let mut again = false;
            let order: Box<dyn Iterator<Item = usize>> = match self.launch.order {
                LaneOrder::Ascending => Box::new(0..lanes.len()),
                LaneOrder::Descending => Box::new((0..lanes.len()).rev()),
            };
            for index in order {
                again |= self.step(&mut lanes[index], index, group)?;
            }
            if !again {
                return Ok(());
            }
        }
        Err(MslRunError::Stuck { group })
    }

    /// Runs one lane until it waits or ends; true when it only let others run.
    fn step(&mut self, lane: &mut Running, index: usize, group: [u32; 3]) -> Result<bool, MslRunError> {
        let Some(coroutine) = lane.coroutine.as_mut().filter(|_| lane.waiting.is_none()) else {
            return Ok(false);
        };
        // SAFETY: the lane's record is boxed and outlives the coroutine that uses it.
        unsafe { (self.program.entries.become_lane)(ptr::from_mut(&mut *lane.shared).cast()) };
        YIELDER.with(|current| current.set(lane.yielder.get()));
        let outcome = coroutine.resume(());
        YIELDER.with(|current| current.set(ptr::null()));
        match outcome {
            CoroutineResult::Return(()) => {
                self.stacks
                    .extend(lane.coroutine.take().map(Coroutine::into_stack));
                Ok(false)
            }
            CoroutineResult::Yield(Stop::Wait {
                kind: WaitKind::OthersMayRun,
                ..
            }) => Ok(true),
            CoroutineResult::Yield(Stop::Wait { kind, line }) => {
                lane.waiting = Some((kind, line));
                Ok(false)
            }
            CoroutineResult::Yield(Stop::Undefined { what, file, line }) => Err(MslRunError::Undefined {
                file,
                line,
                what,
                group,
                lane: index as u32,
            }),
        }
    }
}

/// Lets the lanes of one SIMD group that wait at its lowest operation exchange their values; false if none waits.
fn meet(simd: &mut [Running], exchange: &mut Exchange) -> bool {
    let at_operation = |lane: &Running| match lane.waiting {
        Some((WaitKind::SimdGroup, line)) => Some(line),
        _ => None,
    };
    let Some(lowest) = simd.iter().filter_map(at_operation).min() else {
        return false;
    };
    exchange.active = 0;
    for (index, lane) in simd.iter_mut().enumerate() {
        if at_operation(lane) == Some(lowest) {
            exchange.active |= 1 << index;
            exchange.values[index] = lane.shared.value;
            lane.waiting = None;
        }
    }
    true
}

/// Opens the threadgroup barrier at which every lane that has not ended must stand.
fn open_barrier(lanes: &mut [Running], group: [u32; 3]) -> Result<(), MslRunError> {
    let lines: Vec<u32> = lanes
        .iter()
        .filter_map(|lane| lane.waiting)
        .map(|(_, line)| line)
        .collect();
    let line = lines.first().copied().unwrap_or_default();
    let waiting = lines.iter().filter(|other| **other == line).count();
    if waiting < lanes.len() {
        let others = match lines.iter().find(|other| **other != line) {
            Some(other) => format!("at the one in line {other}"),
            None => "have returned".to_owned(),
        };
        return Err(MslRunError::Barrier {
            group,
            line,
            waiting,
            lanes: lanes.len(),
            others,
        });
    }
    lanes.iter_mut().for_each(|lane| lane.waiting = None);
    Ok(())
}
