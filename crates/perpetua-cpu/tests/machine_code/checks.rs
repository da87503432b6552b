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

/// How programs of another processor are started: by an emulator, if it is named here.
const RUNNER: &str = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER";

/// Takes comparisons of indices out of code.
type Change = fn(&mut [u8]);

const CHECKS: [(&str, Change); 2] = [
    ("an index that lanes share", processor::drop_shared),
    ("indices by lane", processor::drop_by_lane),
];

#[cfg(target_arch = "x86_64")]
mod processor {
    /// `jae` with 32 bits of distance, and the jump that is taken on overflow: never after these comparisons.
    const JAE: [u8; 2] = [0x0F, 0x83];
    const JO: u8 = 0x80;

    /// Takes the jumps behind comparisons out; `compares`: whether there is one at the end of these bytes.
    fn drop_checks(code: &mut [u8], compares: fn(&[u8]) -> bool) {
        for at in 0..code.len().saturating_sub(1) {
            if code[at..at + 2] == JAE && compares(&code[..at]) {
                code[at + 1] = JO;
            }
        }
    }

    pub(super) fn drop_shared(code: &mut [u8]) {
        drop_checks(code, |code| {
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
        });
    }

    pub(super) fn drop_by_lane(code: &mut [u8]) {
        // ktest and vptest.
        drop_checks(code, |code| matches!(code, [.., 0xC4, _, _, 0x99 | 0x17, _]));
    }
}

#[cfg(target_arch = "aarch64")]
mod processor {
    /// What is done in place of a jump.
    const NOP: u32 = 0xD503_201F;

    /// Words, each under a mask.
    type Pattern = [(u32, u32)];

    /// Takes the jump at the end of a run of such words out.
    fn drop_jumps(code: &mut [u8], pattern: &Pattern) {
        let words = code.as_chunks_mut::<4>().0;
        for end in pattern.len()..=words.len() {
            let run = &mut words[end - pattern.len()..end];
            let is_like =
                |(word, (mask, like)): (&[u8; 4], &(u32, u32))| u32::from_le_bytes(*word) & mask == *like;
            if run.iter().zip(pattern).all(is_like)
                && let Some(jump) = run.last_mut()
            {
                *jump = NOP.to_le_bytes();
            }
        }
    }

    /// `b.hs`.
    const NOT_BELOW: (u32, u32) = (0xFF00_001F, 0x5400_0002);

    pub(super) fn drop_shared(code: &mut [u8]) {
        // cmp of 64 bits with a number, and with a register: not of the first one, in which loops over blocks count.
        drop_jumps(code, &[(0xFF80_001F, 0xF100_001F), NOT_BELOW]);
        for index in 1..31 {
            drop_jumps(code, &[(0xFFE0_FFFF, 0xEB00_001F | index << 5), NOT_BELOW]);
        }
    }

    pub(super) fn drop_by_lane(code: &mut [u8]) {
        // cmhi of 32-bit lanes, or uzp1 of the halves of 64-bit ones.
        for inside in [0x6EA0_3400, 0x4E80_1800] {
            drop_jumps(
                code,
                &[
                    (0xFFE0_FC00, inside),
                    // bic, umaxv, fmov, cbnz: whether an active lane is outside.
                    (0xFFE0_FFFF, 0x4E60_1F78),
                    (u32::MAX, 0x6EB0_AB17),
                    (u32::MAX, 0x1E26_02F1),
                    (0xFF00_001F, 0x3500_0011),
                ],
            );
        }
    }
}

/// In the other process: kernels whose indices go beyond lengths, until one shows it.
fn run_unchecked(drop: Change, width: Width) {
    let config = Config {
        faults: true,
        statements: 20,
        ..Config::default()
    };
    for seed in 0..400 {
        let tape = tape(seed, config.statements * 30);
        let case = generate(&config, &mut Choices::new(&tape)).unwrap();
        let kernel = verify(expand_library(case.kernel.clone(), Sums::Rearranged)).unwrap();
        let Err(InterpError::Fault(fault)) = interpret(&kernel, &case, 32, RaceMode::Off) else {
            continue;
        };
        if fault.site.kind != FaultKind::IndexOutOfBounds {
            continue;
        }
        if let Ok(Some(wrong)) = compare_changed(&case, width, &drop) {
            println!("seed {seed}: {wrong}");
            exit(FOUND);
        }
    }
}

/// This program once more.
fn again() -> Command {
    let program = std::env::current_exe().unwrap();
    let runner = std::env::var(RUNNER)
        .ok()
        .filter(|_| cfg!(target_arch = "aarch64"));
    let Some(runner) = runner else {
        return Command::new(program);
    };
    let mut words = runner.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).arg(program);
    command
}

#[test]
fn dropped_index_checks_are_found() {
    let planted = std::env::var(PLANTED).ok();
    for (number, (name, drop)) in CHECKS.iter().enumerate() {
        for width in Width::detect() {
            let this = format!("{number} {width:?}");
            match &planted {
                None => {
                    let output = again()
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
                Some(planted) if *planted == this => run_unchecked(*drop, *width),
                Some(_) => {}
            }
        }
    }
}
