//! Random kernels: the interpreter's memory and faults are those of the lane-by-lane reading, in lockstep groups of
//! all sizes, on several threads and watched for races.

use proptest::prelude::*;

use super::generate::WORDS;
use super::*;

fn check(seed: u64) -> Result<(), TestCaseError> {
    let made = generate::kernel(seed).unwrap();
    let kernel = verify(made.clone()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let data: Vec<u32> = (0..13u32)
        .map(|i| i.wrapping_mul(0x9e37_79b9) >> (i % 30))
        .collect();
    for (grid, block, races) in [
        (3, 5, RaceMode::Off),
        (2, 64, RaceMode::Off),
        (1, 100, RaceMode::Detect),
        (1, 1, RaceMode::Off),
    ] {
        let words = (grid * block * WORDS) as usize;
        let mut expected = [vec![0; words], data.clone()];
        let faults = lanewise::run(&made, (grid, block), &mut expected, &[77]);
        let mut found = [vec![0; words], data.clone()];
        let run = Run {
            values: &[77],
            races,
            ..Run::of(&kernel, grid, block)
        };
        let result = run.on(&mut found);
        match result {
            Ok(()) => prop_assert!(
                faults.is_empty(),
                "seed {seed}: no fault, expected {:?}",
                faults[0]
            ),
            Err(InterpError::Fault(fault)) => {
                prop_assert!(
                    lanewise::among(&fault, &faults),
                    "seed {seed}: {fault} {:?}, expected one of {faults:?}",
                    fault.operands
                );
            }
            Err(other) => prop_assert!(false, "seed {seed}: {other}"),
        }
        let differs = found[0].iter().zip(&expected[0]).position(|(a, b)| a != b);
        prop_assert!(
            differs.is_none(),
            "seed {seed}, {grid} x {block}: word {differs:?}: {:?} expected {:?}",
            differs.map(|i| found[0][i]),
            differs.map(|i| expected[0][i])
        );
    }
    Ok(())
}

/// A quarter of the usual cases: each is a kernel, launched four times. Seeds do not shrink.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases / 4,
        max_shrink_iters: 0,
        ..usual
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_kernels_run_as_lane_by_lane(seed: u64) {
        check(seed)?;
    }
}

/// The generator is worth its keep: over some seeds, kernels fault and do not, loop, call, and give more than zeros.
#[test]
fn random_kernels_differ() {
    let (mut loops, mut calls, mut faults, mut busy) = (0, 0, 0, 0);
    for seed in 0..60 {
        let made = generate::kernel(seed).unwrap();
        let has = |what: &dyn Fn(&Inst) -> bool| {
            let mut found = false;
            made.body.block.walk(&mut |stmt| found |= what(&stmt.inst));
            i32::from(found)
        };
        loops += has(&|inst| matches!(inst, Inst::Loop(_)));
        calls += has(&|inst| matches!(inst, Inst::Let(_, Op::Call(..))));
        let mut buffers = [vec![0; 7 * WORDS as usize], vec![1; 13]];
        faults += i32::from(!lanewise::run(&made, (1, 7), &mut buffers, &[77]).is_empty());
        busy += i32::from(buffers[0].iter().filter(|w| **w != 0).count() > 6);
    }
    assert!(
        loops > 15 && calls > 10 && faults > 2 && busy > 30,
        "{loops} {calls} {faults} {busy}"
    );
}
