//! Code whose comparisons of indices with lengths were taken out. It reaches whatever lies there, so it runs in processes of its own.

use super::*;
use perpetua_ir::ir::FaultKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, exit};

/// Tells the other process which comparisons go, and at which width.
const PLANTED: &str = "PERPETUA_PLANTED";
/// How it ends when results differ: as no test program does by itself.
const FOUND: i32 = 77;
/// Signals with which the system, or the allocator, stops what reaches beyond.
const ABORTED: i32 = 6;
const NO_BUS: i32 = 7;
const NO_MEMORY: i32 = 11;

/// `jae` with 32 bits of distance, and the jump that is taken on overflow: never after these comparisons.
const JAE: [u8; 2] = [0x0F, 0x83];
const JO: u8 = 0x80;

/// Whether there is a comparison of an index at the end of these bytes.
type Compares = fn(&[u8]) -> bool;

const CHECKS: [(&str, Compares); 2] = [
    ("an index that lanes share", |code| {
        let at = |back: usize| code.len().checked_sub(back).map_or(0, |at| code[at]);
        let wide = |back| at(back) & 0xF8 == 0x48;
        // cmp r64, imm8 and imm32.
        let number = |back, op| wide(back) && at(back - 1) == op && at(back - 2) >= 0xF8;
        // cmp r64 with the length in memory: not rax, in which loops over blocks count.
        let length = |back, mode| {
            let modrm = at(back - 2);
            let first = modrm & 0x38 == 0 && at(back) & 4 == 0;
            wide(back) && at(back - 1) == 0x3B && modrm >> 6 == mode && !first
        };
        number(4, 0x83) || number(7, 0x81) || length(3, 3) || length(4, 1) || length(7, 2)
    }),
    ("indices by lane", |code| {
        // ktest and vptest.
        matches!(code, [.., 0xC4, _, _, 0x99 | 0x17, _])
    }),
];

/// Takes the jumps behind comparisons out.
fn drop_checks(code: &mut [u8], compares: Compares) {
    for at in 0..code.len().saturating_sub(1) {
        if code[at..at + 2] == JAE && compares(&code[..at]) {
            code[at + 1] = JO;
        }
    }
}

/// In the other process: kernels whose indices go beyond lengths, until one shows it.
fn run_unchecked(compares: Compares, width: Width) {
    let config = Config {
        faults: true,
        statements: 20,
        ..Config::default()
    };
    for seed in 0..400 {
        let tape = tape(seed, config.statements * 30);
        let case = generate(&config, &mut Choices::new(&tape)).unwrap();
        let kernel = verify(expand_library(case.kernel.clone())).unwrap();
        let Err(InterpError::Fault(fault)) = interpret(&kernel, &case, 32, RaceMode::Off) else {
            continue;
        };
        if fault.site.kind != FaultKind::IndexOutOfBounds {
            continue;
        }
        let change = |code: &mut [u8]| drop_checks(code, compares);
        if let Ok(Some(wrong)) = compare_changed(&case, width, &change) {
            println!("seed {seed}: {wrong}");
            exit(FOUND);
        }
    }
}

#[test]
fn dropped_index_checks_are_found() {
    let planted = std::env::var(PLANTED).ok();
    for (number, (name, compares)) in CHECKS.iter().enumerate() {
        for width in Width::detect() {
            let this = format!("{number} {width:?}");
            match &planted {
                None => {
                    let output = Command::new(std::env::current_exe().unwrap())
                        .args(["--exact", "checks::dropped_index_checks_are_found", "--nocapture"])
                        .env(PLANTED, &this)
                        .output()
                        .unwrap();
                    let status = output.status;
                    let text = String::from_utf8_lossy(&output.stdout);
                    let stopped = matches!(status.signal(), Some(ABORTED | NO_BUS | NO_MEMORY));
                    let found = status.code() == Some(FOUND) || stopped;
                    assert!(
                        found,
                        "{name} ({width:?}) goes unchecked, and nothing finds it: {status}\n{text}"
                    );
                    println!("{name} ({width:?}): {status}");
                }
                Some(planted) if *planted == this => run_unchecked(*compares, *width),
                Some(_) => {}
            }
        }
    }
}
