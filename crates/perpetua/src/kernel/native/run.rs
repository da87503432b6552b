//! The driver: from a launch's work-groups to lanes.

use std::ops::Range;
use std::sync::Arc;

use perpetua_device::native::{NativeArg, NativeKernel, NativeLaunch};
use perpetua_device::{Dim3, KernelSpec, Signature};
use perpetua_ir::fault::{Fault, FaultSite};

use super::affine::AXES;
use super::mode::{Checked, Fast, Mode, Position, Shape};
use super::plan::plan;
use super::probe::{Exit, Probe, Space};
use super::stop::Stop;
use super::view::{Arguments, Extent};
use crate::kernel::entry::KernelFn;

/// A kernel's native code. The macros implement it.
///
/// # Safety
/// [`probe`](Program::probe) shows every access to a view that [`lane`](Program::lane) makes of the same arguments, with the
/// index that it has, and under no condition that does not hold there.
pub unsafe trait Program: Sized + 'static {
    /// The kernel's name.
    const NAME: &'static str;
    /// The source file.
    const FILE: &'static str;
    /// Whether the body asks for indices in the grid only, so that work-groups need not be told apart.
    const MERGED: bool;
    /// Whether there is a probe.
    const FAST: bool;
    /// Whether everything that the body calls has native code.
    const AVAILABLE: bool;

    /// The launch's arguments.
    type Args<'a>: Copy + Send + Sync;

    /// The kernel function.
    fn kernel() -> KernelFn;

    /// Takes the arguments; `None` where they do not fit.
    fn decode<'a>(args: &mut Arguments<'a>) -> Option<Self::Args<'a>>;

    /// What one lane does.
    ///
    /// # Errors
    /// The lane's fault.
    fn lane<M: Mode>(m: &M, args: Self::Args<'_>) -> Result<(), Stop>;

    /// Shows a probe all accesses that the body makes.
    ///
    /// # Errors
    /// As [`Exit`] says.
    fn probe(p: &mut Probe<'_>, args: &Self::Args<'_>) -> Result<(), Exit>;
}

/// A kernel's native code.
#[derive(Clone, Copy)]
pub struct Native {
    /// What the CPU backend runs.
    pub kernel: NativeKernel,
    /// How many of a launch's lanes are proven, so that they run fast; `None` where the arguments do not fit.
    pub proven: fn(&NativeLaunch, &[NativeArg<'_>]) -> Option<u64>,
}

/// The native code of a program, where all that it calls has native code.
pub const fn available<P: Program>() -> Option<Native> {
    if !P::AVAILABLE {
        return None;
    }
    Some(Native {
        kernel: NativeKernel {
            name: P::NAME,
            signature: signature::<P>,
            accepts: accepts::<P>,
            run: run::<P>,
        },
        proven: proven::<P>,
    })
}

fn proven<P: Program>(launch: &NativeLaunch, args: &[NativeArg<'_>]) -> Option<u64> {
    let (args, extents) = decode::<P>(args)?;
    let shape = shape(launch);
    if launch.block.count() == 0 || launch.grid.count() == 0 {
        return Some(0);
    }
    let grid = launch.grid.to_array().map(u64::from);
    let parts = plan::<P>(&args, &extents, &shape, space::<P>(&shape, [0; 3], grid));
    Some(
        parts
            .iter()
            .filter(|part| part.fast)
            .map(|part| part.space.lanes())
            .sum(),
    )
}

fn shape(launch: &NativeLaunch) -> Shape {
    Shape {
        block: launch.block.to_array().map(|n| n as usize),
        grid: launch.grid.to_array().map(|n| n as usize),
    }
}

fn signature<P: Program>() -> Signature {
    match P::kernel().verified(usize::BITS) {
        Ok(verified) => Signature::of(verified.kernel()),
        // Compiling the kernel says what is wrong with it; nothing is launched without.
        Err(_) => Signature::new(P::NAME, Vec::new()),
    }
}

type Decoded<'a, P> = (<P as Program>::Args<'a>, Vec<Option<Extent>>);

fn decode<'a, P: Program>(args: &'a [NativeArg<'a>]) -> Option<Decoded<'a, P>> {
    let mut arguments = Arguments::new(args);
    let decoded = P::decode(&mut arguments)?;
    Some((decoded, arguments.extents()?))
}

fn accepts<P: Program>(launch: &NativeLaunch, args: &[NativeArg<'_>]) -> bool {
    let _ = launch;
    decode::<P>(args).is_some()
}

/// As [`NativeKernel::run`].
///
/// # Safety
/// That of [`NativeKernel::run`].
unsafe fn run<P: Program>(
    launch: &NativeLaunch,
    args: &[NativeArg<'_>],
    blocks: Range<u64>,
) -> Result<(), Box<Fault>> {
    let Some((args, extents)) = decode::<P>(args) else {
        // `accepts` said no.
        return Ok(());
    };
    let shape = shape(launch);
    if launch.block.count() == 0 || blocks.is_empty() {
        return Ok(());
    }
    let grid = launch.grid.to_array().map(u64::from);
    let parts = plan::<P>(&args, &extents, &shape, space::<P>(&shape, [0; 3], grid));
    let mut fault = None;
    for (from, to) in rectangles(launch.grid, blocks) {
        let asked = space::<P>(&shape, from, to);
        for part in &parts {
            let Some(space) = part.space.common(&asked) else {
                continue;
            };
            let stop = if part.fast {
                // SAFETY: `plan` says that the part is proven.
                unsafe { fast::<P>(args, &shape, &space, part.known, part.truth) }
            } else {
                checked::<P>(args, &shape, &space)
            };
            fault = fault.or(stop);
        }
    }
    fault.map_or(Ok(()), |(stop, position)| {
        Err(report::<P>(&stop, &position, &shape))
    })
}

/// The lanes of the work-groups from `from` up to `to`.
fn space<P: Program>(shape: &Shape, from: [u64; 3], to: [u64; 3]) -> Space {
    let mut space = Space {
        from: [0; AXES],
        to: [1; AXES],
    };
    for axis in 0..3 {
        let lanes = shape.block[axis] as i64;
        let (from, to) = (from[axis] as i64, to[axis] as i64);
        if P::MERGED {
            (space.from[axis], space.to[axis]) = (from * lanes, to * lanes);
        } else {
            space.to[axis] = lanes;
            (space.from[axis + 3], space.to[axis + 3]) = (from, to);
        }
    }
    space
}

/// The work-groups with these linear indices, as boxes: `from` and `to` in x, y and z.
fn rectangles(grid: Dim3, mut blocks: Range<u64>) -> Vec<([u64; 3], [u64; 3])> {
    let (width, height) = (u64::from(grid.x), u64::from(grid.y));
    let mut found = Vec::with_capacity(3);
    while !blocks.is_empty() {
        let [x, y, z] = grid.position(blocks.start).map(u64::from);
        let left = blocks.end - blocks.start;
        let (columns, rows) = if x == 0 && left >= width {
            (width, (left / width).min(height - y))
        } else {
            (left.min(width - x), 1)
        };
        found.push(([x, y, z], [x + columns, y + rows, z + 1]));
        blocks.start += columns * rows;
    }
    found
}

/// The first fault, and its lane.
type Found = Option<(Stop, Position)>;

/// Calls `row` for each row of lanes along x: the position of its first lane, how many there are.
#[inline(always)]
fn rows<P: Program>(shape: &Shape, space: &Space, mut row: impl FnMut(Position, usize)) {
    let span = |axis: usize| space.from[axis] as usize..space.to[axis] as usize;
    let (first, lanes) = (space.from[0] as usize, (space.to[0] - space.from[0]) as usize);
    if P::MERGED {
        for z in span(2) {
            for y in span(1) {
                let position = Position {
                    global: [first, y, z],
                    thread: [0; 3],
                    block: [0; 3],
                };
                row(position, lanes);
            }
        }
        return;
    }
    for block_z in span(5) {
        for block_y in span(4) {
            for block_x in span(3) {
                let block = [block_x, block_y, block_z];
                for z in span(2) {
                    for y in span(1) {
                        let thread = [first, y, z];
                        let position = Position {
                            global: [0, 1, 2].map(|axis| block[axis] * shape.block[axis] + thread[axis]),
                            thread,
                            block,
                        };
                        row(position, lanes);
                    }
                }
            }
        }
    }
}

/// The lane `i` places after `start` in a row.
#[inline(always)]
fn along<P: Program>(start: &Position, i: usize) -> Position {
    let mut position = *start;
    position.global[0] += i;
    if !P::MERGED {
        position.thread[0] += i;
    }
    position
}

/// Runs a box of lanes whose accesses are proven, with the widest vectors that the processor has.
///
/// # Safety
/// `plan` has proven the box.
unsafe fn fast<P: Program>(args: P::Args<'_>, shape: &Shape, space: &Space, known: u64, truth: u64) -> Found {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: the processor has the features; the box is proven.
        Level::Avx512 => return unsafe { fast_avx512::<P>(args, shape, space, known, truth) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { fast_avx2::<P>(args, shape, space, known, truth) },
        Level::Baseline => {}
    }
    // SAFETY: the box is proven.
    unsafe { fast_rows::<P>(args, shape, space, known, truth) }
}

/// What the code is compiled for.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Baseline,
    Avx2,
    Avx512,
}

#[cfg(target_arch = "x86_64")]
fn level() -> Level {
    use std::arch::is_x86_feature_detected as has;
    // The macro looks at a word that was filled in once.
    let avx2 = has!("avx2") && has!("fma") && has!("f16c") && has!("bmi1") && has!("bmi2");
    let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Baseline,
    }
}

/// # Safety
/// The processor has the features; `plan` has proven the box.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
unsafe fn fast_avx512<P: Program>(
    args: P::Args<'_>,
    shape: &Shape,
    space: &Space,
    known: u64,
    truth: u64,
) -> Found {
    // SAFETY: by the caller's promise.
    unsafe { fast_rows::<P>(args, shape, space, known, truth) }
}

/// # Safety
/// As [`fast_avx512`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
unsafe fn fast_avx2<P: Program>(
    args: P::Args<'_>,
    shape: &Shape,
    space: &Space,
    known: u64,
    truth: u64,
) -> Found {
    // SAFETY: by the caller's promise.
    unsafe { fast_rows::<P>(args, shape, space, known, truth) }
}

/// # Safety
/// `plan` has proven the box.
#[inline(always)]
unsafe fn fast_rows<P: Program>(
    args: P::Args<'_>,
    shape: &Shape,
    space: &Space,
    known: u64,
    truth: u64,
) -> Found {
    let mut found = None;
    let shape = *shape;
    rows::<P>(&shape, space, |start, lanes| {
        for i in 0..lanes {
            let position = along::<P>(&start, i);
            // SAFETY: `plan` has probed this box: each access lies inside its buffer, and no lane reaches what another
            // stores to.
            let mode = unsafe { Fast::new(position, &shape, known, truth) };
            if let Err(stop) = P::lane(&mode, args) {
                found = found.or(Some((stop, position)));
            }
        }
    });
    found
}

/// Runs a box of lanes of which nothing is known.
fn checked<P: Program>(args: P::Args<'_>, shape: &Shape, space: &Space) -> Found {
    let mut found = None;
    rows::<P>(shape, space, |start, lanes| {
        for i in 0..lanes {
            let position = along::<P>(&start, i);
            if let Err(stop) = P::lane(&Checked::new(position, shape), args) {
                found = found.or(Some((stop, position)));
            }
        }
    });
    found
}

/// A lane's fault as a user reads it.
#[cold]
fn report<P: Program>(stop: &Stop, position: &Position, shape: &Shape) -> Box<Fault> {
    let (block, thread) = if P::MERGED {
        let axes = [0, 1, 2];
        (
            axes.map(|a| position.global[a] / shape.block[a]),
            axes.map(|a| position.global[a] % shape.block[a]),
        )
    } else {
        (position.block, position.thread)
    };
    Box::new(Fault {
        kernel: P::NAME.to_owned(),
        source: Arc::from(P::FILE),
        site: FaultSite {
            kind: stop.kind,
            line: stop.site.line,
            subject: stop.subject().to_owned(),
            operands: stop.types.into_iter().flatten().collect(),
        },
        block: block.map(|n| n as u32),
        thread: thread.map(|n| n as u32),
        operands: stop.operands,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_work_groups_become_few_boxes() {
        let check = |grid: [u32; 3], blocks: Range<u64>, expect: &[([u64; 3], [u64; 3])]| {
            assert_eq!(rectangles(grid.into(), blocks), expect, "{grid:?}");
        };
        check([8, 1, 1], 2..5, &[([2, 0, 0], [5, 1, 1])]);
        check([4, 4, 2], 0..16, &[([0, 0, 0], [4, 4, 1])]);
        check(
            [4, 4, 2],
            8..24,
            &[([0, 2, 0], [4, 4, 1]), ([0, 0, 1], [4, 2, 2])],
        );
        check(
            [4, 4, 1],
            2..13,
            &[
                ([2, 0, 0], [4, 1, 1]),
                ([0, 1, 0], [4, 3, 1]),
                ([0, 3, 0], [1, 4, 1]),
            ],
        );
        check([4, 4, 1], 3..3, &[]);
    }
}
