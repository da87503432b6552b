//! What the interpreter accesses lies in what was foretold, for kernels at random; and how much is foretold of usual ones.

mod generate;
mod lanes;

use generate::{Random, indices};
use proptest::prelude::*;

use super::*;
use crate::interp::{BufferRef, InterpError, Interpreter, RaceMode, trace};
use perpetua_ir::ir::{Kernel, ParamKind};
use perpetua_ir::verify::verify;

/// Runs a launch; every access must be foretold. How many were checked, and how many of them by less than the whole buffer.
fn check(kernel: &Kernel, launch: &LaunchConfig<'_>, about: &str) -> (usize, usize) {
    let verified = verify(kernel.clone()).unwrap_or_else(|e| panic!("{about}: {e}"));
    let reaches = Footprint::of(&verified).and_then(|footprint| footprint.reaches(launch));
    let reaches = reaches.unwrap_or_else(|| panic!("{about}: nothing is known of\n{kernel}"));
    trace::take();
    let run = Interpreter::new(&verified).unwrap().launch(&LaunchConfig {
        races: RaceMode::Detect,
        step_budget: Some(1 << 20),
        ..*launch
    });
    assert!(
        !matches!(run, Err(InterpError::Shape { .. } | InterpError::Argument { .. })),
        "{about}: {run:?}"
    );
    let buffers: Vec<usize> = (0..kernel.params.len())
        .filter(|i| matches!(kernel.params[*i].kind, ParamKind::Buffer { .. }))
        .collect();
    let rows = BlockRows::of(launch.grid);
    let (mut all, mut narrow) = (0, 0);
    for seen in trace::take() {
        let Some(param) = buffers.get(seen.region as usize) else {
            continue;
        };
        let row = u64::from(seen.block) / rows.blocks;
        let (from, to) = (seen.offset as i64, seen.offset as i64 + i64::from(seen.size));
        let holds = |reach: &&Reach| {
            let by = reach.stride * row as i64;
            reach.param as usize == *param
                && (reach.stores || !seen.writes)
                && reach.rows.contains(&row)
                && reach.low + by <= from
                && to <= reach.high + by
        };
        let Some(reach) = reaches.iter().find(holds) else {
            panic!("{about}: {seen:?} in row {row} was not foretold: {reaches:?}\n{kernel}");
        };
        let Arg::Buffer(buffer) = launch.args[*param] else {
            panic!("{about}: a value");
        };
        all += 1;
        narrow += usize::from(reach.high - reach.low < buffer.len() as i64);
    }
    (all, narrow)
}

/// A kernel at random with a launch of it.
fn with_indices<T>(
    seed: u64,
    then: impl FnOnce(&Kernel, &[(u32, LocalId)], &mut Random, &LaunchConfig<'_>) -> T,
) -> T {
    let (kernel, conditions) = indices(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let mut r = Random(seed ^ 0x5555);
    let mut data: Vec<u32> = (0..r.below(70))
        .map(|_| {
            let bits = r.below(32);
            r.below(u32::MAX) >> bits
        })
        .collect();
    let mut out = vec![0u32; r.below(70) as usize];
    let mut marks = vec![0u32; 128];
    let number = |r: &mut Random| u64::from(r.pick(&[0, 1, 3, 7, 20, 64, u32::MAX, 1 << 31]));
    let (a, b, c) = (
        number(&mut r) as u32,
        number(&mut r) as u32,
        number(&mut r) << r.pick(&[0, 32]),
    );
    let (a, b, c) = (a.to_ne_bytes(), b.to_ne_bytes(), c.to_ne_bytes());
    let args = [
        Arg::Buffer(BufferRef::from_slice(&mut data)),
        Arg::Buffer(BufferRef::from_slice(&mut out)),
        Arg::Value(&a),
        Arg::Value(&b),
        Arg::Value(&c),
        Arg::Buffer(BufferRef::from_slice(&mut marks)),
    ];
    let grid = r.pick(&[[9, 1, 1], [2, 7, 1], [3, 2, 4], [1, 1, 5], [1, 1, 1]]);
    let block = r.pick(&[[4, 1, 1], [3, 2, 1], [2, 2, 2], [16, 1, 1]]);
    then(
        &kernel,
        &conditions,
        &mut r,
        &LaunchConfig::new(grid, block, &args),
    )
}

fn check_indices(seed: u64) -> (usize, usize) {
    with_indices(seed, |kernel, _, _, launch| {
        check(kernel, launch, &format!("seed {seed}"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn what_kernels_access_was_foretold(seed: u64) {
        check_indices(seed);
    }
}

/// The test above is worth its keep: many accesses are made, and a good part of them is known to be near.
#[test]
fn random_indices_differ() {
    let (mut all, mut narrow) = (0, 0);
    for seed in 0..100 {
        let (seen, near) = check_indices(seed);
        all += seen;
        narrow += near;
    }
    assert!(all > 20_000 && narrow * 4 > all, "{narrow} of {all}");
}

#[cfg(feature = "testing")]
#[test]
fn what_generated_kernels_access_was_foretold() {
    use crate::testing::{Choices, Config, generate, tape};
    let mut all = 0;
    for seed in 0..300 {
        let config = Config {
            faults: seed % 2 == 0,
            ..Config::full()
        };
        let mut case = generate(&config, &mut Choices::new(&tape(seed, config.statements * 30))).unwrap();
        let mut lines: Vec<Vec<u64>> = case
            .args
            .iter()
            .map(|bytes| vec![0; bytes.len().div_ceil(8) + 4])
            .collect();
        let args: Vec<Arg<'_>> = lines
            .iter_mut()
            .zip(&case.args)
            .zip(&case.kernel.params)
            .map(|((line, bytes), param)| match param.kind {
                ParamKind::Value(_) => Arg::Value(bytes),
                ParamKind::Buffer { .. } => {
                    let content: &mut [u8] = bytemuck::cast_slice_mut(line);
                    let at = content.as_ptr().align_offset(32);
                    let content = &mut content[at..at + bytes.len()];
                    content.copy_from_slice(bytes);
                    Arg::Buffer(BufferRef::from_slice(content))
                }
            })
            .collect();
        case.kernel.name = format!("seed{seed}");
        let launch = LaunchConfig {
            dynamic_shared_bytes: case.dynamic_shared,
            ..LaunchConfig::new(case.grid, case.block, &args)
        };
        all += check(&case.kernel, &launch, &format!("seed {seed}")).0;
    }
    assert!(all > 10_000, "{all}");
}

/// A step of a grid of `width` by `height`, as everybody writes it: text, for it is what the front end gives.
const STEP: &str = "\
kernel step(now: buffer<f32, read>, next: buffer<f32, read_write>, width: u32, height: u32) {
  %0: u32 = param width
  %1: u64 = cast %0
  %2: u32 = param height
  %3: u64 = cast %2
  %4: u32 = block_idx.x
  %5: u32 = block_dim.x
  %6: u32 = mul %4, %5
  %7: u32 = thread_idx.x
  %8: u32 = add %6, %7
  %9: u64 = cast %8
  %10: u32 = block_idx.y
  %11: u32 = block_dim.y
  %12: u32 = mul %10, %11
  %13: u32 = thread_idx.y
  %14: u32 = add %12, %13
  %15: u64 = cast %14
  %16: bool = ge %9, %1
  %17: bool = ge %15, %3
  %18: bool = or %16, %17
  if %18 {
    return
  }
  %19: u64 = mul %15, %1
  %20: u64 = add %19, %9
  %21: u64 = const 0
  %22: bool = eq %15, %21
  %23: u64 = const 1
  %24: u64 = add %15, %23
  %25: bool = eq %24, %3
  %26: bool = or %22, %25
  if %26 {
    %27: f32 = const 0.0
    store next[%20], %27
    return
  }
  %28: u64 = sub %20, %1
  %29: f32 = load now[%28]
  %30: u64 = add %20, %1
  %31: f32 = load now[%30]
  %32: f32 = add %29, %31
  store next[%20], %32
}
";

#[test]
fn inner_rows_of_a_stencil_are_one_piece() {
    let kernel = STEP.parse::<Kernel>().unwrap();
    let verified = verify(kernel).unwrap();
    // 60 of 64 columns, 37 of 40 rows.
    let (width, height) = (60u32.to_ne_bytes(), 37u32.to_ne_bytes());
    let (mut now, mut next) = (vec![0f32; 60 * 37], vec![0f32; 60 * 37]);
    let args = [
        Arg::Buffer(BufferRef::from_slice(&mut now)),
        Arg::Buffer(BufferRef::from_slice(&mut next)),
        Arg::Value(&width),
        Arg::Value(&height),
    ];
    let launch = LaunchConfig::new([2, 10, 1], [32, 4, 1], &args);
    let reaches = Footprint::of(&verified).unwrap().reaches(&launch).unwrap();
    let row = 60 * 4;
    let reach = |stores: bool, rows: Range<u64>, lines: Range<i64>, stride: i64| Reach {
        param: stores.into(),
        stores,
        rows,
        low: lines.start * row,
        high: lines.end * row,
        stride: stride * row,
    };
    // Lines 0 to 3, of which the first is the border; 4 to 35; 36, which is the border.
    let expect = [
        reach(true, 0..1, 0..4, 0),
        reach(false, 0..1, 0..5, 0),
        reach(false, 1..9, -1..5, 4),
        reach(true, 1..9, 0..4, 4),
        reach(true, 9..10, 36..37, 0),
    ];
    assert_eq!(reaches, expect);
    assert_eq!(BlockRows::of([2, 10, 1]).blocks, 2);
}
