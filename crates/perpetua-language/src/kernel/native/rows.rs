//! Lanes run one after another: boxes as rows along x, a row as a loop, compiled for what processors can.

use perpetua_cpu::footprint::Space;

use super::decide::{Alike, Decide, Last, Recorded, Told, branches};
use super::mode::{Checked, Fast, Position, Shape, Unwatched};
use super::program::{PLACES, Program};
use super::stop::Stop;

/// The first fault, and its lane.
pub(super) type Found = Option<(Stop, Position)>;

/// A box of lanes, with all that they need.
pub(super) struct Lanes<'a, P: Program> {
    pub(super) args: &'a P::Args<'static>,
    pub(super) shape: &'a Shape,
    pub(super) space: &'a Space,
}

/// Rows of lanes one above another.
struct Block {
    /// The first lane of the first row.
    first: Position,
    lanes: usize,
    rows: usize,
}

/// Calls `run` for each block of rows.
#[inline(always)]
fn blocks<P: Program>(lanes: &Lanes<'_, P>, mut run: impl FnMut(&Block)) {
    let space = lanes.space;
    let span = |axis: usize| space.from[axis] as usize..space.to[axis] as usize;
    let (x, y) = (space.from[0] as usize, space.from[1] as usize);
    let (count, rows) = (span(0).len(), span(1).len());
    if P::MERGED {
        for z in span(2) {
            run(&Block {
                first: Position {
                    global: [x, y, z],
                    thread: [0; 3],
                    block: [0; 3],
                },
                lanes: count,
                rows,
            });
        }
        return;
    }
    for block_z in span(5) {
        for block_y in span(4) {
            for block_x in span(3) {
                let block = [block_x, block_y, block_z];
                let size = lanes.shape.block;
                for z in span(2) {
                    let thread = [x, y, z];
                    run(&Block {
                        first: Position {
                            global: [
                                block_x * size[0] + x,
                                block_y * size[1] + y,
                                block_z * size[2] + z,
                            ],
                            thread,
                            block,
                        },
                        lanes: count,
                        rows,
                    });
                }
            }
        }
    }
}

/// The lane `i` places along x and `row` rows after `start`.
#[inline(always)]
fn along<P: Program>(start: &Position, i: usize, row: usize) -> Position {
    let mut position = *start;
    position.global[0] += i;
    position.global[1] += row;
    if !P::MERGED {
        position.thread[0] += i;
        position.thread[1] += row;
    }
    position
}

/// What the code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

#[cfg(target_arch = "x86_64")]
#[inline]
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

#[cfg(not(target_arch = "x86_64"))]
fn level() -> Level {
    Level::Baseline
}

/// Runs a box of lanes whose accesses are proven.
///
/// # Safety
/// `plan` has proven the box under the conditions.
pub(super) unsafe fn fast<P: Program>(lanes: &Lanes<'_, P>, conditions: Recorded) -> Found {
    let level = level();
    let mut found = None;
    blocks(lanes, |block| {
        let stop = match level {
            // SAFETY: by the caller's promise.
            Level::Baseline => unsafe { fast_baseline(lanes, block, conditions) },
            // SAFETY: the processor has the features; the rest by the caller's promise.
            #[cfg(target_arch = "x86_64")]
            _ => unsafe { fast_avx2(lanes, block, conditions) },
        };
        found = found.or(stop);
    });
    found
}

/// Rows so short that columns are run instead, where these are longer: such as the left border of a grid.
const SHORT: usize = 8;

/// The same where the conditions are as `conditions` says, but for those that [`Told`] leaves open.
///
/// # Safety
/// `plan` has proven the box under these conditions, and no buffer that the launch stores to has a byte in common with
/// another that it reaches.
pub(super) unsafe fn told<P: Program, const OPEN: usize>(
    lanes: &Lanes<'_, P>,
    conditions: Recorded,
) -> Found {
    let holding = conditions.holding();
    // SAFETY: by the caller's promise; of one condition, if it is not so that it does not hold, it does.
    unsafe {
        if OPEN > 0 {
            rows(lanes, conditions, Told::<P, OPEN>::new(conditions))
        } else if holding == 0 {
            rows(lanes, conditions, Alike::<false>)
        } else if const { branches(P::CONDITIONS) == 1 } {
            rows(lanes, conditions, Alike::<true>)
        } else if const { Last::<P>::BIT != 0 } && holding == Last::<P>::BIT {
            rows(lanes, conditions, Last::<P>::new())
        } else {
            rows(lanes, conditions, Told::<P, 0>::new(conditions))
        }
    }
}

/// The same, as `decide` says.
///
/// # Safety
/// As [`told`], and `decide` says what the conditions are.
#[inline(always)]
unsafe fn rows<P: Program, D: Decide>(lanes: &Lanes<'_, P>, conditions: Recorded, decide: D) -> Found {
    // Only bodies for old processors ask for them: elsewhere `decide` says what they are.
    #[cfg(not(target_arch = "x86_64"))]
    let _ = conditions;
    let level = level();
    let mut found = None;
    let at = P::places(lanes.args);
    blocks(lanes, |block| {
        let stop = match level {
            // Processors without AVX2 are old: bodies of their own would cost builds more than they give.
            // SAFETY: by the caller's promise.
            #[cfg(target_arch = "x86_64")]
            Level::Baseline => unsafe { fast_baseline(lanes, block, conditions) },
            // SAFETY: as above.
            #[cfg(not(target_arch = "x86_64"))]
            Level::Baseline => unsafe { told_baseline(at, lanes, block, decide) },
            // SAFETY: the processor has the features; the rest by the caller's promise.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { told_avx2(at, lanes, block, decide) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 if !D::RARE => unsafe { told_avx512(at, lanes, block, decide) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { told_avx2(at, lanes, block, decide) },
        };
        found = found.or(stop);
    });
    found
}

/// Writes the loop over a block for a level.
macro_rules! fast {
    ($fast:ident: $(#[$attribute:meta])*) => {
        /// # Safety
        /// The processor has the features; `plan` has proven the block under the conditions.
        $(#[$attribute])*
        #[inline(never)]
        unsafe fn $fast<P: Program>(lanes: &Lanes<'_, P>, block: &Block, conditions: Recorded) -> Found {
            // SAFETY: by the caller's promise.
            unsafe { lane_by_lane::<P, _>(*lanes.args, lanes.shape, block, conditions) }
        }
    };
}

/// The same where the conditions are told.
macro_rules! told {
    ($told:ident $apart:ident: $(#[$attribute:meta])*) => {
        /// # Safety
        /// The processor has the features; the rest as [`told`].
        #[inline(always)]
        unsafe fn $told<P: Program, D: Decide>(
            at: [*mut u8; PLACES],
            lanes: &Lanes<'_, P>,
            block: &Block,
            decide: D,
        ) -> Found {
            // SAFETY: the references are to no bytes, so that any address that is not null will do. The rest by the caller's
            // promise.
            unsafe {
                let [a, b, c, d, e, f, g, h] = at;
                $apart::<P, D>(
                    place(a), place(b), place(c), place(d), place(e), place(f), place(g), place(h),
                    lanes, block, decide,
                )
            }
        }

        /// # Safety
        /// As above; `a` to `h` are the addresses of the first buffers.
        #[allow(clippy::too_many_arguments, reason = "only what is a parameter by itself is told apart")]
        $(#[$attribute])*
        #[inline(never)]
        unsafe fn $apart<P: Program, D: Decide>(
            a: &mut Place,
            b: &mut Place,
            c: &mut Place,
            d: &mut Place,
            e: &mut Place,
            f: &mut Place,
            g: &mut Place,
            h: &mut Place,
            lanes: &Lanes<'_, P>,
            block: &Block,
            decide: D,
        ) -> Found {
            // Written out here and above: what stands for each element of an array is a call where codegen units are apart.
            let at = [
                a.as_mut_ptr(), b.as_mut_ptr(), c.as_mut_ptr(), d.as_mut_ptr(),
                e.as_mut_ptr(), f.as_mut_ptr(), g.as_mut_ptr(), h.as_mut_ptr(),
            ];
            let args = P::placed(*lanes.args, at);
            // SAFETY: by the caller's promise.
            unsafe { lane_by_lane::<P, D>(args, lanes.shape, block, decide) }
        }
    };
}

/// A buffer's address, as a parameter of which the compiler knows that what is stored to through it is reached through it
/// only: that is what a mutable reference says of a parameter. It is to no bytes, so that it says nothing else: threads
/// share buffers.
type Place = [u8; 0];

/// # Safety
/// There is nothing to promise; what is made of the reference takes a promise.
#[inline(always)]
unsafe fn place<'a>(at: *mut u8) -> &'a mut Place {
    let at = std::ptr::NonNull::new(at.cast::<Place>());
    // SAFETY: not null, aligned as all addresses are for it, and to no bytes.
    unsafe { at.unwrap_or(std::ptr::NonNull::dangling()).as_mut() }
}

fast!(fast_baseline:);

#[cfg(not(target_arch = "x86_64"))]
told!(told_baseline apart_baseline:);

// Few lanes run this way: it gains little from longer vectors.
#[cfg(target_arch = "x86_64")]
fast!(fast_avx2: #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]);

#[cfg(target_arch = "x86_64")]
told!(told_avx2 apart_avx2: #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]);

#[cfg(target_arch = "x86_64")]
told!(told_avx512 apart_avx512:
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]);

/// # Safety
/// `plan` has proven the block under the conditions; where they are told, the views' addresses are told apart.
#[inline(always)]
unsafe fn lane_by_lane<P: Program, D: Decide>(
    args: P::Args<'_>,
    shape: &Shape,
    block: &Block,
    conditions: D,
) -> Found {
    let mut found = None;
    // Copies: what is stored to through the arguments cannot change them.
    let (shape, first, lanes, rows) = (*shape, block.first, block.lanes, block.rows);
    if D::COLUMNS && lanes < SHORT && lanes < rows {
        for i in 0..lanes {
            for row in 0..rows {
                // SAFETY: by the caller's promise.
                found = found.or(unsafe { one_lane::<P, D>(args, &shape, &first, (i, row), conditions) });
            }
        }
        return found;
    }
    for row in 0..rows {
        for i in 0..lanes {
            // SAFETY: by the caller's promise.
            found = found.or(unsafe { one_lane::<P, D>(args, &shape, &first, (i, row), conditions) });
        }
    }
    found
}

/// # Safety
/// As [`lane_by_lane`], for the lane `at` of the block that begins at `first`.
#[inline(always)]
unsafe fn one_lane<P: Program, D: Decide>(
    args: P::Args<'_>,
    shape: &Shape,
    first: &Position,
    at: (usize, usize),
    conditions: D,
) -> Found {
    let position = along::<P>(first, at.0, at.1);
    // SAFETY: `plan` has proven this block: each access lies inside its buffer, and no lane reaches what another
    // stores to.
    let mode = unsafe { Fast::new(position, shape, conditions) };
    P::lane(&mode, args).err().map(|stop| (stop, position))
}

/// Runs a box of lanes of which nothing is known.
pub(super) fn checked<P: Program>(lanes: &Lanes<'_, P>) -> Found {
    let mut found = None;
    blocks(lanes, |block| {
        for row in 0..block.rows {
            for i in 0..block.lanes {
                let position = along::<P>(&block.first, i, row);
                if let Err(stop) = P::lane(&Checked::new(position, lanes.shape, Unwatched), *lanes.args) {
                    found = found.or(Some((stop, position)));
                }
            }
        }
    });
    found
}
