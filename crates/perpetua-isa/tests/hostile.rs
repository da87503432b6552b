//! Programs that nobody trusts end: with an error that names the line, and without harm to others.
#![allow(clippy::expect_used, clippy::panic)]

mod common;

use perpetua_isa::{Assembler, Error, Executor, LaunchConfig, Limits, Program};

fn limits() -> Limits {
    Limits {
        // llvmpipe leaves loops after 65,535 turns.
        instructions: 20_000,
        memory: 1 << 20,
        size: 4096,
    }
}

fn each(test: impl Fn(&Executor)) {
    for executor in common::executors() {
        test(&executor.untrusted(limits()));
    }
}

fn program(text: &str) -> Program {
    Assembler::new()
        .assemble("hostile.pasm", text)
        .expect("a program")
}

// Text, and the lines of which the fault names one.
const ENDLESS: [(&str, std::ops::RangeInclusive<u32>); 6] = [
    ("again: bra again", 1..=1),
    ("again:\n bar\n bra again", 2..=2),
    // Lanes that run on while others wait at a barrier.
    ("setlt.u32 p0, r252, 3\nagain: nop\n@p0 bra again\n bar", 3..=3),
    // Neither label is the loop's head: a loop around a choice of blocks.
    (
        "setlt.u32 p0, r252, 3\n@p0 bra two\none: nop\n add.u32 r252, r252, 1\ntwo: add.u32 r252, r252, 1\n bra one",
        4..=6,
    ),
    (
        ".buffer x: u32\n mov.u32 r0, 4000000000\n fill.u32 x[0], 1, r0\n",
        3..=3,
    ),
    (
        "mov.u32 r0, 0\nagain: xor.u32 r0, r0, 1\n seteq.u32 p0, r0, 7\n@!p0 bra again",
        2..=2,
    ),
];

#[test]
fn endless_loops_are_faults() {
    each(|executor| {
        for (text, line) in ENDLESS {
            let x = executor.allocate_buffer(64).expect("memory");
            let program = program(text);
            let program = program
                .clone()
                .with_buffer("x", x)
                .unwrap_or_else(|program| *program);
            executor
                .execute_program(&program, &LaunchConfig::new(3, 40))
                .expect("a launch");
            let done = executor.synchronize();
            let error = done.expect_err(text).to_string();
            let mut named = line.map(|line| format!("hostile.pasm:{line},"));
            assert!(named.any(|line| error.contains(&line)), "{error}");
            executor.free_buffer(x).expect("there");
        }
        // The device is as good as before.
        let x = executor.allocate_buffer(16).expect("memory");
        let good = program(".buffer x: u32\nstg.u32 x[r255], 7")
            .with_buffer("x", x)
            .expect("x");
        executor
            .execute_program(&good, &LaunchConfig::new(1, 4))
            .expect("a launch");
        assert_eq!(executor.read_buffer::<u32>(x, 0, 4).expect("a read"), [7; 4]);
    });
}

#[test]
fn nothing_is_read_or_written_outside() {
    each(|executor| {
        let secret = executor.allocate_buffer(4096).expect("memory");
        executor
            .write_buffer(secret, 0, &[0xdead_beefu32; 1024])
            .expect("a write");
        let x = executor.allocate_buffer(16).expect("memory");
        for offset in [4i64, 1 << 30, -1, i64::from(i32::MIN)] {
            for access in [
                "ldg.u32 r0, x[r1]\n stg.u32 x[0], r0",
                "stg.u32 x[r1], 7",
                "atom_add.u32 r0, x[r1], 7",
            ] {
                let text = format!(".buffer x: u32\n mov.u32 r1, {}\n {access}", offset as u32);
                let program = program(&text).with_buffer("x", x).expect("x");
                executor
                    .execute_program(&program, &LaunchConfig::new(1, 1))
                    .expect("a launch");
                let error = executor.synchronize().expect_err("out of bounds").to_string();
                assert!(error.contains("index out of bounds"), "{error}");
            }
        }
        assert_eq!(
            executor.read_buffer::<u32>(secret, 0, 1024).expect("a read"),
            [0xdead_beef; 1024]
        );
        assert_eq!(executor.read_buffer::<u32>(x, 0, 4).expect("a read"), [0; 4]);
    });
}

#[test]
fn memory_of_a_block_holds_nobody_elses_values() {
    each(|executor| {
        let x = executor.allocate_buffer(4 * 512).expect("memory");
        let leave = ".buffer x: u32\n.shared s: u32[512]\n sts.u32 s[r252], 77\n sts.u32 s[r252 + 256], 78\n bar\n stg.u32 x[r252], 0";
        let look = ".buffer x: u32\n.shared s: u32[512]\n lds.u32 r0, s[r252]\n stg.u32 x[r252], r0\n lds.u32 r0, s[r252 + 256]\n stg.u32 x[r252 + 256], r0";
        for text in [leave, look] {
            let program = program(text).with_buffer("x", x).expect("x");
            executor
                .execute_program(&program, &LaunchConfig::new(1, 256))
                .expect("a launch");
        }
        assert_eq!(executor.read_buffer::<u32>(x, 0, 512).expect("a read"), [0; 512]);
    });
}

#[test]
fn known_loops_are_paid_for() {
    each(|executor| {
        // A thousand turns fit into the budget; a thousand times a thousand do not, however they are nested.
        let one = "mov.u32 r9, 0\na: add.u32 r9, r9, 1\n setlt.u32 p0, r9, 1000\n@p0 bra a";
        let two = "mov.u32 r8, 0\no: mov.u32 r9, 0\na: add.u32 r9, r9, 1\n setlt.u32 p0, r9, 1000\n@p0 bra a\n add.u32 r8, r8, 1\n \
            setlt.u32 p0, r8, 1000\n@p0 bra o";
        let met = "mov.u32 r8, 0\no: mov.u32 r9, 0\na: add.u32 r9, r9, 1\n setlt.u32 p0, r9, 1000\n@p0 bra a\n bar\n \
            setne.u32 p0, r8, 7\n@p0 bra o";
        for (text, ends) in [(one, true), (two, false), (met, false)] {
            executor
                .execute_program(&program(text), &LaunchConfig::new(2, 40))
                .expect("a launch");
            let done = executor.synchronize();
            assert_eq!(done.is_ok(), ends, "{text}: {done:?}");
        }
    });
}

#[test]
fn limits_hold_for_what_was_compiled_before() {
    for executor in common::executors() {
        let endless = program("setlt.u32 p1, r252, 0\nagain: nop\n@p1 bra again\n");
        executor
            .execute_program(&endless, &LaunchConfig::new(1, 1))
            .expect("a launch");
        executor.synchronize().expect("no lane turns");
        let fence = program("fence_system");
        let ran = executor.execute_program(&fence, &LaunchConfig::new(1, 1));
        let executor = executor.untrusted(limits());
        assert!(
            executor
                .execute_program(&fence, &LaunchConfig::new(1, 1))
                .is_err(),
            "{ran:?}"
        );
    }
}

#[test]
fn macros_do_not_grow_beyond_a_line() {
    // Written out it would be 500 GB.
    let bomb = format!(
        ".macro m a\n{}\n.endmacro\nm {}\n",
        "\\a".repeat(500_000),
        "q ".repeat(500_000)
    );
    let error = Assembler::new()
        .assemble("bomb.pasm", &bomb)
        .expect_err("too long");
    assert!(
        error.to_string().contains("grows beyond"),
        "{}",
        error.to_string().len()
    );
}

#[test]
fn too_much_is_refused() {
    each(|executor| {
        assert!(matches!(
            executor.allocate_buffer(2 << 20),
            Err(Error::Limit { .. })
        ));
        let first = executor.allocate_buffer(600_000).expect("memory");
        assert!(matches!(
            executor.allocate_buffer(600_000),
            Err(Error::Limit { .. })
        ));
        executor.free_buffer(first).expect("there");
        executor.allocate_buffer(600_000).expect("memory");
        let long = program(&"bar\n".repeat(5000));
        assert!(matches!(
            executor.execute_program(&long, &LaunchConfig::new(1, 1)),
            Err(Error::Limit { .. })
        ));
        // Small only until its calls are written out.
        let calls =
            ".func a\n add.u32 r1, r252, 1\n ret\n.func b\n".to_owned() + &"call a\n".repeat(50) + " ret\n";
        let calls = program(&("call b\n".repeat(50) + &calls));
        // Straight parts without end.
        let parts: String = (0..600)
            .map(|i| format!("mov.u32 r0, 1\nq{i}: loop r0, q{i}\n"))
            .collect();
        for program in [calls, program(&parts)] {
            let refused = executor.execute_program(&program, &LaunchConfig::new(1, 1));
            assert!(matches!(refused, Err(Error::Limit { .. })), "{refused:?}");
        }
        let fence = program("fence_system");
        let refused = executor.execute_program(&fence, &LaunchConfig::new(1, 1));
        let error = refused.expect_err("a fence");
        assert!(matches!(error, Error::Untrusted { .. }), "{error}");
        assert!(
            error.to_string().contains("hostile.pasm:1 (`fence_system`)"),
            "{error}"
        );
    });
}
