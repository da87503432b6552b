//! What each lane accesses, meets and faults at was planned of its piece: single lanes are run by themselves.

use super::*;
use perpetua_ir::fault::Fault;
use perpetua_ir::ir::*;

/// Where a lane stands.
#[derive(Clone, Copy, Debug)]
struct Lane {
    thread: [u32; 3],
    block: [u32; 3],
}

/// The parameter that is told of conditions.
const MARKS: u32 = 5;

/// The kernel as one lane of the launch runs it, alone. For each condition that is met and holds, `marks[2 * number + 1]` is set,
/// and `marks[2 * number]` where it does not.
fn alone(kernel: &Kernel, conditions: &[(u32, LocalId)], launch: &LaunchConfig<'_>, lane: Lane) -> Kernel {
    fn rewrite(
        block: &mut Block,
        values: &mut Vec<Type>,
        constant: &dyn Fn(Builtin) -> Option<u32>,
        number: &dyn Fn(&Place) -> Option<u32>,
    ) {
        for stmt in &mut block.0 {
            match &mut stmt.inst {
                Inst::Let(_, op) => {
                    if let Op::Builtin(builtin) = op
                        && let Some(n) = constant(*builtin)
                    {
                        *op = Op::Const(Scalar::U32, n.into());
                    }
                }
                Inst::Do(Effect::Store(place, condition, _)) => {
                    if let Some(number) = number(place) {
                        let mut mark = |index: u32| {
                            values.extend([Type::U32, Type::U32]);
                            let (at, one) = (Value(values.len() as u32 - 2), Value(values.len() as u32 - 1));
                            let to = Place::element(Base::Buffer(MARKS), at);
                            let all = [
                                Inst::Let(at, Op::Const(Scalar::U32, index.into())),
                                Inst::Let(one, Op::Const(Scalar::U32, 1)),
                                Inst::Do(Effect::Store(to, one, None)),
                            ];
                            Block(all.map(|inst| Stmt { line: 0, inst }).into())
                        };
                        let (holds, fails) = (mark(2 * number + 1), mark(2 * number));
                        stmt.inst = Inst::If(*condition, holds, fails);
                    }
                }
                other => {
                    for inner in other.blocks_mut() {
                        rewrite(inner, values, constant, number);
                    }
                }
            }
        }
    }
    let mut kernel = kernel.clone();
    let constant = |builtin: Builtin| match builtin {
        Builtin::ThreadIdx(axis) => Some(lane.thread[axis as usize]),
        Builtin::BlockIdx(axis) => Some(lane.block[axis as usize]),
        Builtin::BlockDim(axis) => Some(launch.block[axis as usize]),
        Builtin::GridDim(axis) => Some(launch.grid[axis as usize]),
        _ => None,
    };
    let number = |place: &Place| match place.base {
        Base::Local(id) => conditions.iter().find(|(_, local)| *local == id).map(|(n, _)| *n),
        _ => None,
    };
    rewrite(
        &mut kernel.body.block,
        &mut kernel.body.values,
        &constant,
        &number,
    );
    kernel
}

/// How many lanes were looked at, and how many of them lie in pieces that are proven; conditions that were met, and those known.
#[derive(Debug, Default)]
struct Counts {
    lanes: usize,
    proven: usize,
    met: usize,
    known: usize,
}

fn check_lanes(seed: u64, counts: &mut Counts) {
    with_indices(seed, |kernel, conditions, r, launch| {
        let verified = verify(kernel.clone()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let footprint = Footprint::with_conditions(&verified, conditions).unwrap();
        let given: Vec<Given<'_>> = launch
            .args
            .iter()
            .map(|arg| match arg {
                Arg::Buffer(buffer) => Given::Elements(buffer.len() as u64 / 4),
                Arg::Value(bytes) => Given::Value(bytes),
            })
            .collect();
        let shape = Launch {
            grid: launch.grid,
            block: launch.block,
            dynamic_shared_bytes: 0,
            subgroup_size: 1,
            args: &given,
        };
        let plans = [false, true].map(|merged| footprint.plan(&shape, merged).unwrap());
        let all: u64 = launch
            .grid
            .iter()
            .chain(&launch.block)
            .map(|n| u64::from(*n))
            .product();
        for pieces in &plans {
            assert_eq!(
                pieces.iter().map(|piece| piece.space.lanes()).sum::<u64>(),
                all,
                "seed {seed}"
            );
        }
        for _ in 0..6 {
            let lane = Lane {
                thread: launch.block.map(|n| r.below(n)),
                block: launch.grid.map(|n| r.below(n)),
            };
            let (seen, marks, fault) = run(kernel, conditions, launch, lane);
            for (merged, pieces) in plans.iter().enumerate() {
                let about = format!("seed {seed}, {lane:?}, merged: {merged}");
                let piece = piece_of(pieces, launch, lane, merged == 1);
                expect(piece, launch, lane, merged == 1, &seen, &about);
                if let Some(fault) = &fault {
                    let index = fault.site.kind == FaultKind::IndexOutOfBounds;
                    assert!(!(index && piece.proven), "{about}: {fault:?}\n{kernel}");
                    assert!(piece.stops || !piece.proven, "{about}: {fault:?}\n{kernel}");
                }
                counts.lanes += 1;
                counts.proven += usize::from(piece.proven);
                for number in 0..60 {
                    let Conditions { met, known, truth } = piece.conditions;
                    let bit = |of: u64| of >> number & 1 == 1;
                    for holds in [false, true] {
                        if marks[2 * number + usize::from(holds)] != 0 {
                            assert!(bit(met), "{about}: condition {number} was met\n{kernel}");
                            assert!(
                                !bit(known) || bit(truth) == holds,
                                "{about}: condition {number}: {holds}\n{kernel}"
                            );
                            counts.met += 1;
                            counts.known += usize::from(bit(known));
                        }
                    }
                }
            }
        }
    });
}

/// Accesses, as parameter, element and whether it is stored to; the marks; the fault.
type Run = (Vec<(u32, i64, bool)>, Vec<u32>, Option<Box<Fault>>);

fn run(kernel: &Kernel, conditions: &[(u32, LocalId)], launch: &LaunchConfig<'_>, lane: Lane) -> Run {
    let kernel = alone(kernel, conditions, launch, lane);
    let verified = verify(kernel.clone()).unwrap_or_else(|e| panic!("{lane:?}: {e}\n{kernel}"));
    let mut marks = vec![0u32; 128];
    let mut args = launch.args.to_vec();
    args[MARKS as usize] = Arg::Buffer(BufferRef::from_slice(&mut marks));
    trace::take();
    let run = Interpreter::new(&verified).unwrap().launch(&LaunchConfig {
        races: RaceMode::Detect,
        step_budget: Some(1 << 20),
        ..LaunchConfig::new([1; 3], [1; 3], &args)
    });
    let params = [0, 1, MARKS];
    let seen = trace::take().into_iter().filter_map(|seen| {
        let param = *params
            .get(seen.region as usize)
            .filter(|param| **param != MARKS)?;
        Some((param, seen.offset as i64 / 4, seen.writes))
    });
    let seen = seen.collect();
    let fault = match run {
        Err(InterpError::Fault(fault)) => Some(fault),
        _ => None,
    };
    (seen, marks, fault)
}

/// A lane's coordinates.
fn coordinates(launch: &LaunchConfig<'_>, lane: Lane, merged: bool) -> [i64; AXES] {
    let mut all = [0; AXES];
    for axis in 0..3 {
        let (thread, block) = (i64::from(lane.thread[axis]), i64::from(lane.block[axis]));
        (all[axis], all[axis + 3]) = match merged {
            true => (block * i64::from(launch.block[axis]) + thread, 0),
            false => (thread, block),
        };
    }
    all
}

/// The one piece that a lane lies in.
fn piece_of<'p>(pieces: &'p [Piece], launch: &LaunchConfig<'_>, lane: Lane, merged: bool) -> &'p Piece {
    let at = coordinates(launch, lane, merged);
    let has = |piece: &&Piece| {
        (0..AXES).all(|axis| piece.space.from[axis] <= at[axis] && at[axis] < piece.space.to[axis])
    };
    let mut found = pieces.iter().filter(has);
    match (found.next(), found.next()) {
        (Some(piece), None) => piece,
        other => panic!("{lane:?}: {other:?}"),
    }
}

fn expect(
    piece: &Piece,
    launch: &LaunchConfig<'_>,
    lane: Lane,
    merged: bool,
    seen: &[(u32, i64, bool)],
    about: &str,
) {
    let at = coordinates(launch, lane, merged);
    for (param, element, stores) in seen.iter().copied() {
        let holds = |known: &&Accessed| {
            let moved = known
                .elements
                .strides
                .iter()
                .zip(at)
                .map(|(stride, at)| stride.wrapping_mul(at));
            let rest = element.wrapping_sub(moved.fold(0, i64::wrapping_add));
            known.param == param
                && (known.stores || !stores)
                && known.elements.low <= rest
                && rest <= known.elements.high
        };
        assert!(
            piece.accesses.iter().any(|known| holds(&known)),
            "{about}: element {element} of {param}, stored to: {stores}: {piece:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn what_lanes_do_was_planned(seed: u64) {
        check_lanes(seed, &mut Counts::default());
    }
}

/// The test above is worth its keep: a good part of the lanes is proven, and of the conditions known.
#[test]
fn random_lanes_differ() {
    let mut counts = Counts::default();
    for seed in 0..60 {
        check_lanes(seed, &mut counts);
    }
    let Counts {
        lanes,
        proven,
        met,
        known,
    } = counts;
    assert!(
        proven * 20 > lanes && proven < lanes && known * 5 > met && known < met,
        "{counts:?}"
    );
}
