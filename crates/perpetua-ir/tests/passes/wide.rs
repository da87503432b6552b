//! Wide kernels do what the kernels did of which they were made, by the interpreter's account.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::panic)]

use perpetua_cpu::interp::{InterpError, Interpreter, RaceMode};
use perpetua_cpu::testing::{Case, Choices, Config, generate, mismatches, run_case, tape};
use perpetua_ir::ir::Kernel;
use perpetua_ir::pass::checks::{Explicit, make_explicit};
use perpetua_ir::pass::{Sums, Wide, expand_library, widen, widen_by};
use perpetua_ir::verify::verify;

/// The kernel with explicit checks and without library operators, as a renderer has it.
fn prepared(kernel: &Kernel) -> (Explicit, Kernel) {
    let verified = verify(kernel.clone()).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    let explicit = make_explicit(&verified);
    let kernel = expand_library(explicit.kernel().clone(), Sums::AsWritten);
    (explicit, kernel)
}

type Outcome = Result<Vec<Vec<u8>>, InterpError>;

fn run(kernel: &Kernel, explicit: &Explicit, case: &Case) -> Outcome {
    let verified = verify(kernel.clone()).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    let interpreter = Interpreter::with_sites(&verified, explicit.faults()).unwrap();
    run_case(&interpreter, case, 32, RaceMode::Off)
}

/// Runs a case as it is and wide, and compares buffers, or the faults. Says whether it faulted.
fn same(case: &Case, explicit: &Explicit, kernel: &Kernel, wide: &Wide) -> bool {
    let expected = run(kernel, explicit, case);
    let [x, y, z] = case.grid;
    let mut args = case.args.clone();
    args.push(x.to_ne_bytes().to_vec());
    let wide_case = Case {
        kernel: wide.kernel.clone(),
        grid: [x.div_ceil(wide.blocks), y, z],
        args,
        ..case.clone()
    };
    let found = run(&wide.kernel, explicit, &wide_case);
    let text = || {
        format!(
            "grid {:?} of {}\n{}\n{}",
            case.grid, wide.blocks, kernel, wide.kernel
        )
    };
    match (expected, found) {
        (Ok(expected), Ok(found)) => {
            let differ = mismatches(&case.kernel, &expected, &found, 3);
            assert!(differ.is_empty(), "{differ:?}\n{}", text());
            false
        }
        (Err(InterpError::Fault(_)), Err(InterpError::Fault(fault))) => {
            // Any lane's that faults may be reported, so what is reported must be one of the original's: at the same site.
            let sites = explicit.faults();
            assert!(sites.contains(&fault.site), "{fault}\n{}", text());
            true
        }
        (expected, found) => panic!("{expected:?}, wide {found:?}\n{}", text()),
    }
}

#[test]
fn generated_kernels_do_the_same() {
    let quiet = Config {
        library: true,
        shared: false,
        atomics: false,
        int64: true,
        float64: true,
        statements: 12,
        ..Config::default()
    };
    let faulty = Config {
        faults: true,
        ..quiet.clone()
    };
    let (mut widened, mut faulted) = (0, 0);
    for config in [quiet, faulty] {
        for seed in 0..300 {
            let tape = tape(seed, config.statements * 30);
            let case = generate(&config, &mut Choices::new(&tape)).unwrap();
            let (explicit, kernel) = prepared(&case.kernel);
            for blocks in [2, 4] {
                let Some(wide) = widen_by(&kernel, blocks) else {
                    continue;
                };
                widened += 1;
                for more in [1, 4, 7] {
                    let mut case = case.clone();
                    case.grid[0] = more;
                    faulted += u32::from(same(&case, &explicit, &kernel, &wide));
                }
            }
        }
    }
    println!("{widened} wide kernels, {faulted} launches with a fault");
    assert!(widened > 60 && faulted > 20, "{widened} {faulted}");
}

fn parsed(body: &str) -> Kernel {
    let text =
        format!("kernel k(a: buffer<f32, read>, out: buffer<f32, read_write>, n: u32) {{\n{body}\n}}\n");
    text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// `%7` is the lane's index in the grid.
const INDEX: &str = "%0: u32 = block_idx.x\n%1: u64 = cast %0\n%2: u32 = block_dim.x\n%3: u64 = cast %2\n\
     %4: u64 = mul %1, %3\n%5: u32 = thread_idx.x\n%6: u64 = cast %5\n%7: u64 = add %4, %6\n";

fn floats(n: usize) -> Vec<u8> {
    (0..n)
        .flat_map(|i| (i as f32 * 0.5 - 3.0).to_ne_bytes())
        .collect()
}

/// Kernels as people write them, in grids with and without blocks left over, on buffers that are large enough and not.
#[test]
fn bounds_returns_and_faults_stay() {
    let bodies = [
        // Without a bound.
        format!("{INDEX}%8: f32 = load a[%7]\n%9: f32 = add %8, %8\nstore out[%7], %9"),
        // With one.
        format!(
            "{INDEX}%8: u64 = len out\n%9: bool = lt %7, %8\nif %9 {{\n%10: f32 = load a[%7]\nstore out[%7], %10\n}}"
        ),
        // With an early end, and a choice by what was loaded.
        format!(
            "local $x: f32\n{INDEX}%8: u64 = len out\n%9: bool = ge %7, %8\nif %9 {{\nreturn\n}}\n%10: f32 = load a[%7]\n\
             %11: f32 = const 0.0\n%12: bool = lt %10, %11\nif %12 {{\nstore $x, %11\n}} else {{\n%13: f32 = exp %10\nstore $x, %13\n}}\n\
             %14: f32 = load $x\nstore out[%7], %14"
        ),
        // By parameter and by how many blocks there are.
        format!(
            "{INDEX}%8: u32 = param n\n%9: u64 = cast %8\n%10: bool = lt %7, %9\nif %10 {{\n%11: u32 = grid_dim.x\n%12: f32 = cast %11\n\
             store out[%7], %12\n}}"
        ),
    ];
    let mut faulted = 0;
    for body in bodies {
        let made = parsed(&body);
        let (explicit, kernel) = prepared(&made);
        let wide = widen(&kernel).unwrap_or_else(|| panic!("not wide: {made}"));
        assert_eq!(wide.blocks, 4);
        for grid in 1..10 {
            for len in [0, 5, 12, 15, 40] {
                let case = Case {
                    kernel: made.clone(),
                    grid: [grid, 1, 1],
                    block: [3, 1, 1],
                    dynamic_shared: 0,
                    args: vec![floats(len), floats(len), 14u32.to_ne_bytes().to_vec()],
                };
                faulted += u32::from(same(&case, &explicit, &kernel, &wide));
            }
        }
    }
    assert!(faulted > 20, "{faulted}");
}

#[test]
fn what_is_not_element_wise_stays() {
    let index_by_memory =
        "%8: f32 = load a[%7]\n%9: u64 = cast %8\n%10: f32 = load a[%9]\nstore out[%7], %10";
    let chosen_by_memory =
        "%8: f32 = load a[%7]\n%9: f32 = const 0.0\n%10: bool = lt %8, %9\nif %10 {\nstore out[%7], %8\n}";
    let loops = "%8: f32 = load a[%7]\nloop {\n%9: f32 = load a[%7]\n%10: bool = lt %8, %9\nif %10 {\n} else {\nbreak 0\n}\n}\nstore out[%7], %8";
    let nothing = "%8: f32 = const 0.0";
    for body in [index_by_memory, chosen_by_memory, loops, nothing] {
        let (_, kernel) = prepared(&parsed(&format!("{INDEX}{body}")));
        assert!(widen(&kernel).is_none(), "{kernel}");
    }
    let mut large = parsed(&format!("{INDEX}%8: f32 = load a[%7]\nstore out[%7], %8")).to_string();
    assert!(widen(&prepared(&large.parse().unwrap()).1).is_some());
    large = large
        .replace("buffer<f32", "buffer<[f32; 9]")
        .replace("%8: f32", "%8: [f32; 9]");
    assert!(widen(&prepared(&large.parse().unwrap()).1).is_none(), "{large}");
}
