//! Programs that nobody trusts end: with an error that names the line, and without harm to others.
#![allow(clippy::expect_used, clippy::panic)]

mod budget;
#[path = "../common/mod.rs"]
mod common;
mod nesting;

use perpetua_isa::{Assembler, Error, Executor, LaunchConfig, Limits, Program};

fn limits() -> Limits {
    Limits {
        // Below what llvmpipe lets a loop take.
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
            let program = program.clone().with_buffer("x", x).unwrap_or(program);
            executor
                .execute_program(&program, &LaunchConfig::new(3, 40))
                .expect("a launch");
            let done = executor.synchronize();
            let error = done.expect_err(text).to_string();
            let mut named = line.map(|line| format!("hostile.pasm:{line},"));
            assert!(named.any(|line| error.contains(&line)), "{error}");
            executor.free_buffer(x).expect("there");
        }
        is_as_good_as_before(executor);
    });
}

// Where the driver ends loops before the budget does, that is the fault.
#[test]
fn endless_loops_that_the_driver_ends_are_faults() {
    let cut = |executor: &Executor| executor.device().info().limits.max_loop_turns.is_some();
    for executor in common::executors().into_iter().filter(cut) {
        let executor = executor.untrusted(Limits::default());
        for (text, _) in ENDLESS {
            let x = executor.allocate_buffer(64).expect("memory");
            let program = program(text);
            let program = program.clone().with_buffer("x", x).unwrap_or(program);
            executor
                .execute_program(&program, &LaunchConfig::new(3, 40))
                .expect("a launch");
            let error = executor.synchronize().expect_err(text).to_string();
            assert!(
                error.contains("the device's driver ended before its time")
                    || error.contains("out of bounds"),
                "{error}"
            );
        }
        is_as_good_as_before(&executor);
    }
}

fn is_as_good_as_before(executor: &Executor) {
    let x = executor.allocate_buffer(16).expect("memory");
    let good = program(".buffer x: u32\nstg.u32 x[r255], 7")
        .with_buffer("x", x)
        .expect("x");
    executor
        .execute_program(&good, &LaunchConfig::new(1, 4))
        .expect("a launch");
    assert_eq!(executor.read_buffer::<u32>(x, 0, 4).expect("a read"), [7; 4]);
    executor.free_buffer(x).expect("there");
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

// Lanes that a GPU runs at once, at most.
fn at_once(executor: &Executor) -> u32 {
    (executor.device().info().multiprocessors.unwrap_or(1) * 2048).max(1 << 16)
}

#[test]
fn a_fault_ends_a_grid_in_parts_and_names_the_block_of_the_grid() {
    for executor in common::executors() {
        let executor = executor.untrusted(limits());
        let parted = !executor.device().info().on_host;
        let blocks = 9 * at_once(&executor) / 256;
        let x = executor.allocate_buffer(4).expect("memory");
        let config = LaunchConfig::new((blocks, 2, 1), 256);
        let run = |text: &str| {
            let program = program(text).with_buffer("x", x).expect("x");
            let done = executor.execute_program(&program, &config);
            done.and_then(|()| executor.synchronize())
                .expect_err(text)
                .to_string()
        };
        // One block of all has a bad index; nobody counts behind its part.
        let bad = blocks - 3;
        let error = run(&format!(
            ".buffer x: u32\n mov.u32 r9, 2\nagain:\n atom_add.u32 r8, x[0], 1\n loop r9, again\n \
             setne.u32 p0, %ctaid.x, {bad}\n@p0 exit\n setne.u32 p0, %ctaid.y, 1\n@p0 exit\n stg.u32 x[7], r8"
        ));
        assert!(error.contains(&format!("block ({bad}, 1, 0)")), "{error}");
        // What the whole grid would count is never reached where the first part ends the grid.
        executor.write_buffer(x, 0, &[0u32]).expect("a write");
        let error = run(".buffer x: u32\n atom_add.u32 r8, x[0], 1\nagain: bra again");
        assert!(error.contains("budget"), "{error}");
        let begun = executor.read_buffer::<u32>(x, 0, 1).expect("a read")[0];
        assert_eq!(begun <= at_once(&executor), parted, "{begun} lanes");
    }
}

#[test]
fn a_grid_is_judged_before_a_part_of_it_runs() {
    for executor in common::executors() {
        let on_host = executor.device().info().on_host;
        let executor = executor.untrusted(limits());
        let x = executor.allocate_buffer(4).expect("memory");
        let looping = ".buffer x: u32\n mov.u32 r9, 1\nagain:\n stg.u32 x[0], 1\n loop r9, again";
        let straight = ".buffer x: u32\n stg.u32 x[0], 1";
        for text in [looping, straight] {
            let program = program(text).with_buffer("x", x).expect("x");
            let mut grids = vec![[u32::MAX; 3]];
            if !on_host {
                grids.push([1 << 16, u32::MAX, u32::MAX]);
            }
            for grid in grids {
                let launched = executor.execute_program(&program, &LaunchConfig::new(grid, 1));
                assert!(matches!(launched, Err(Error::Device(_))), "{text}: {launched:?}");
            }
        }
        if !on_host {
            // Within the device's limits, but a watchdog would not wait for it.
            let program = program(straight).with_buffer("x", x).expect("x");
            let long = executor.execute_program(&program, &LaunchConfig::new((i32::MAX as u32, 1000), 256));
            assert!(matches!(long, Err(Error::Limit { .. })), "{long:?}");
        }
        assert_eq!(executor.read_buffer::<u32>(x, 0, 1).expect("a read"), [0]);
    }
}

#[test]
fn a_grid_in_parts_is_one_grid_to_its_lanes() {
    // Each lane finds its number in the grid by what the launch supplies, in every way there is, and turns a loop.
    let text = "
.buffer x: u32
.buffer bad: u32
    mad.u32 r0, %ctaid.z, %nctaid.y, %ctaid.y
    mad.u32 r0, r0, %nctaid.x, %ctaid.x
    mad.u32 r0, r0, %ntid.x, %tid.x
    mov.u32 r9, 2
again:
    atom_add.u32 r8, x[r0], 1
    loop r9, again
    mad.u32 r1, r253, r254, r252
    mad.u32 r2, %ctaid.x, %ntid.x, %tid.x
    cvt.u32.u64 r3, r255
    cvt.u32.u64 r4, %gid
    setne.u32 p0, r1, r2
    setne.u32 p1, r1, r3
    setne.u32 p2, r1, r4
@p0 stg.u32 bad[0], 1
@p1 stg.u32 bad[0], 2
@p2 stg.u32 bad[0], 3
    mov.u32 r5, %nctaid.z
    setne.u32 p3, r5, 3
@p3 stg.u32 bad[0], r5
";
    for executor in common::executors() {
        let executor = executor.untrusted(Limits {
            memory: 1 << 26,
            ..limits()
        });
        // More than a device runs at once: several parts, the last ones smaller.
        let blocks = at_once(&executor) / 64 + 77;
        let lanes = 64 * 2 * 3 * blocks as usize;
        let x = executor.allocate_buffer(4 * lanes).expect("memory");
        let bad = executor.allocate_buffer(4).expect("memory");
        let counting = common::bind(program(text), &[("x", x), ("bad", bad)]);
        let config = LaunchConfig::new((blocks, 2, 3), 64);
        executor.execute_program(&counting, &config).expect("a launch");
        assert_eq!(executor.read_buffer::<u32>(bad, 0, 1).expect("a read"), [0]);
        let found = executor.read_buffer::<u32>(x, 0, lanes).expect("a read");
        assert!(found.iter().all(|count| *count == 3), "{:?}", &found[..10]);
    }
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

// A program's binary form with a byte changed, and its checksum made right again.
fn damaged(bytes: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] = byte;
    let sum = crc32fast::hash(&bytes[12..]).to_le_bytes();
    bytes[8..12].copy_from_slice(&sum);
    bytes
}

#[test]
fn malformed_binaries_are_no_programs_or_harmless_ones() {
    let text = ".buffer x: u32\n.shared s: u32[64]\nagain: sts.u32 s[r252], 3\n lds.u32 r0, s[r252]\n stg.u32 x[r255], r0\n bra again";
    let bytes = program(text).encode();
    each(|executor| {
        let x = executor.allocate_buffer(64).expect("memory");
        for at in 0..bytes.len() {
            assert!(Program::decode(&bytes[..at]).is_err(), "{at} bytes");
        }
        let mut ran = 0;
        for at in 0..bytes.len() {
            let header = at < 12;
            let changed = match header {
                true => [&bytes[..at], &[bytes[at] ^ 0x80], &bytes[at + 1..]].concat(),
                false => damaged(&bytes, at, bytes[at] ^ 0x05),
            };
            let Ok(found) = Program::decode(&changed) else {
                continue;
            };
            assert!(!header, "byte {at}");
            // What is a program still ends, and harms nobody.
            let found = found.clone().with_buffer("x", x).unwrap_or(found);
            if executor.execute_program(&found, &LaunchConfig::new(1, 4)).is_ok() {
                executor.synchronize().ok();
                ran += 1;
            }
        }
        assert!(ran > 0);
        is_as_good_as_before(executor);
    });
}

#[test]
fn handles_that_were_made_up_lead_nowhere() {
    each(|executor| {
        let mine = executor.allocate_buffer(16).expect("memory");
        let heap = executor.allocate_pool(1 << 12).expect("memory");
        let good = executor.allocate_block(heap, 64).expect("room");
        let config = LaunchConfig::new(1, 1);
        for forged in [0, mine + 1000, u64::MAX, heap] {
            let text = format!(".buffer x: u32 = {forged}\n stg.u32 x[0], 7");
            let refused = executor.execute_program(&program(&text), &config);
            assert!(
                matches!(refused, Err(Error::NoBuffer { .. })),
                "{forged}: {refused:?}"
            );
        }
        let refused =
            executor.execute_program(&program(&format!(".pool h = {mine}\n pool_free h, 1")), &config);
        assert!(matches!(refused, Err(Error::NoPool { .. })), "{refused:?}");
        let accesses = [
            "pool_load.u32 r1, h[r0]",
            "pool_store.u32 h[r0], 7",
            "pool_free h, r0",
        ];
        for forged in [0, 1, good ^ 1 << 20, good + 1, good & !(1 << 31), u32::MAX] {
            for access in accesses {
                let text = format!(".pool h = {heap}\n mov.u32 r0, {forged}\n {access}");
                executor
                    .execute_program(&program(&text), &config)
                    .expect("a launch");
                let error = executor.synchronize().expect_err("no block").to_string();
                assert!(error.contains("hostile.pasm:3,"), "{forged:x}: {error}");
            }
        }
        assert!(executor.block(heap, good).is_ok(), "the block is still there");
        is_as_good_as_before(executor);
    });
}

#[test]
fn what_would_not_end_before_it_runs_is_refused() {
    // A gigabyte of labels: in a text, by macros, and announced by a binary form.
    let lines: String = (0..1 << 20).map(|i| format!("l{i}:\n")).collect();
    let mut doubled = String::from(".macro m0\nl\\@:\n.endmacro\n");
    for i in 1..31 {
        doubled += &format!(".macro m{i}\nm{}\nm{}\n.endmacro\n", i - 1, i - 1);
    }
    for text in [lines, doubled + "m30\n"] {
        let error = Assembler::new()
            .assemble("hostile.pasm", &text)
            .expect_err("too long");
        assert!(error.to_string().contains("more than 200000 lines"), "{error}");
    }
    let bytes = program("again: bra again").encode();
    for at in 12..bytes.len() - 5 {
        // A count of 2^34, whatever stood there.
        let mut huge = bytes.clone();
        huge[at..at + 5].copy_from_slice(&[0x80, 0x80, 0x80, 0x80, 0x40]);
        let found = Program::decode(&damaged(&huge, at, 0x80));
        let is_small = |found: Program| found.encode().len() < 2 * bytes.len();
        assert!(found.map_or(true, is_small), "byte {at}");
    }
    for text in [
        "call f\n.func f\n call f\n ret",
        "call f\n.func f\n call g\n ret\n.func g\n call f\n ret",
    ] {
        each(|executor| {
            let refused = executor.execute_program(&program(text), &LaunchConfig::new(1, 1));
            let error = refused.expect_err("endless").to_string();
            assert!(
                error.contains("hostile.pasm:") && error.contains("calls itself"),
                "{error}"
            );
            is_as_good_as_before(executor);
        });
    }
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
        // Small only until its calls are written out.
        let calls =
            ".func a\n add.u32 r1, r252, 1\n ret\n.func b\n".to_owned() + &"call a\n".repeat(50) + " ret\n";
        let calls = program(&("call b\n".repeat(50) + &calls));
        // Straight parts without end.
        let parts: String = (0..600)
            .map(|i| format!("mov.u32 r0, 1\nq{i}: loop r0, q{i}\n"))
            .collect();
        // Drivers take minutes for long tables.
        let table = program(&format!(
            ".const t: u32 = {}0\n ldc.u32 r0, t[r252]",
            "7, ".repeat(256)
        ));
        let refused = executor.execute_program(&table, &LaunchConfig::new(1, 1));
        let Err(Error::Large { found: 257, .. }) = refused else {
            panic!("{refused:?}");
        };
        // Each with the line at which there is too much; calls are written out in their order.
        for (program, place) in [(long, 4097), (calls, 52), (program(&parts), 513)] {
            let refused = executor.execute_program(&program, &LaunchConfig::new(1, 1));
            assert!(
                matches!(&refused, Err(Error::Large { at, .. }) if at.line == place),
                "{place}: {refused:?}"
            );
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
