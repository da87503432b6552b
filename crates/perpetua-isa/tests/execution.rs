//! Pools, streams, batches, graphs and initial registers, on each backend that the build has.
#![allow(clippy::expect_used, clippy::panic)]

mod common;

use std::collections::HashSet;

use common::executors;
use perpetua_device::{BackendKind, Crossover};
use perpetua_ir::back::Capability;
use perpetua_isa::{
    Arguments, Data, Error, Executor, Launch, LaunchConfig, Limits, Operation, Program, Registers,
};

fn program(text: &str, handles: &[(&str, u64)]) -> Program {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(Program::decode(&program.encode()).as_ref(), Ok(&program));
    let again: Program = program
        .to_string()
        .parse()
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.stripped(), program.clone().stripped());
    common::bind(program, handles)
}

fn run(executor: &Executor, program: &Program, config: LaunchConfig) -> Result<(), Error> {
    executor.execute_program(program, &config)?;
    executor.synchronize()
}

// Each lane takes blocks of several sizes, and writes its number all over them.
const FILL: &str = "
.pool heap
.buffer handles: u32
.param words: u32
.param step: u32
    cvt.u32.u64 r1, r255
    rem.u32 r2, r1, 5
    add.u32 r2, r2, words
    mul.u32 r3, r2, 4
    pool_alloc r4, heap, r3
    stg.u32 handles[r1], r4
    mov.u32 r5, 0
next:
    pool_load.u32 r6, heap[r4 + r5]
    add.u32 r6, r6, r1
    pool_store.u32 heap[r4 + r5], r6
    add.u32 r5, r5, step
    setlt.u32 p0, r5, r2
@p0 bra next
";

const FREE: &str = "
.pool heap
.buffer handles: u32 read
    ldg.u32 r0, handles[r255]
    pool_free heap, r0
";

#[test]
fn blocks_of_many_lanes_share_no_byte() {
    for executor in executors() {
        // Small ones, and such as are handed out by compare-exchange.
        for (lanes, words, step) in [(1000usize, 1u32, 1usize), (60, 8200, 41)] {
            // Room for what does not fit again where it was.
            let heap = executor
                .allocate_pool(lanes * (8 * words as usize + 64))
                .expect("memory");
            let handles = executor.allocate_buffer(4 * lanes).expect("memory");
            let names = [("heap", heap), ("handles", handles)];
            let (fill, free) = (program(FILL, &names), program(FREE, &names));
            let config = LaunchConfig::new(lanes as u32 / 20, 20);
            let arguments = Arguments::new().with("words", words).with("step", step as u32);
            let mut seen = HashSet::new();
            for round in 0..3 {
                executor.execute(&fill, &config, &arguments).expect("a launch");
                let found = executor.read_buffer::<u32>(handles, 0, lanes).expect("no fault");
                assert!(
                    found.iter().all(|handle| seen.insert(*handle)),
                    "a handle comes twice"
                );
                let mut ranges = Vec::new();
                // A look at a few: each is a transfer.
                for (lane, handle) in found.iter().enumerate().step_by(lanes / 10) {
                    let range = executor.block(heap, *handle).expect("a block");
                    assert_eq!(range.len(), 4 * (lane % 5 + words as usize));
                    let block = executor
                        .read_pool::<u32>(heap, range.start, range.len() / 4)
                        .expect("a read");
                    // Zero before, and nobody else's afterwards.
                    for (i, word) in block.iter().enumerate() {
                        let expected = if i % step == 0 { lane as u32 } else { 0 };
                        assert_eq!(*word, expected, "word {i} of lane {lane}, round {round}");
                    }
                    ranges.push(range);
                }
                ranges.sort_by_key(|range| range.start);
                assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
                run(&executor, &free, config).expect("all are given back");
                assert!(executor.block(heap, found[0]).is_err());
            }
            executor.free_pool(heap).expect("there");
            executor.free_buffer(handles).expect("there");
        }
    }
}

#[test]
fn elements_of_every_width() {
    for executor in executors() {
        let heap = executor.allocate_pool(1 << 16).expect("memory");
        let out = executor.allocate_buffer(4 * 64).expect("memory");
        let wide = executor.device().info().capabilities.contains(&Capability::Int64);
        // Lanes store to elements that share words.
        let mut types = vec![("f32", 4)];
        if executor.device().backend() != BackendKind::Wgpu {
            types.extend([
                ("u8", 1),
                ("i8", 1),
                ("u16", 2),
                ("i16", 2),
                ("f16", 2),
                ("bf16", 2),
            ]);
            types.extend([("i64", 8), ("u64", 8), ("f64", 8)]);
        } else if wide {
            types.extend([("i64", 8), ("u64", 8)]);
        }
        for (ty, size) in types {
            let block = executor.allocate_block(heap, 64 * size).expect("room");
            let text = format!(
                ".pool heap
                .buffer out: u32
                .param block: u32
                cvt.{ty}.u32 r0, r252
                pool_store.{ty} heap[block + r252], r0
                bar
                xor.u32 r1, r252, 1
                pool_load.{ty} r2, heap[block + r1]
                cvt.u32.{ty} r2, r2
                stg.u32 out[r252], r2"
            );
            let program = program(&text, &[("heap", heap), ("out", out)]);
            let arguments = Arguments::new().with("block", block);
            executor
                .execute(&program, &LaunchConfig::new(1, 64), &arguments)
                .unwrap_or_else(|error| panic!("{ty}: {error}"));
            let found = executor.read_buffer::<u32>(out, 0, 64).expect("no fault");
            assert!(
                found
                    .iter()
                    .enumerate()
                    .all(|(lane, value)| *value == (lane ^ 1) as u32),
                "{ty}: {found:?}"
            );
            executor.free_block(heap, block).expect("a launch");
            assert!(matches!(executor.block(heap, block), Err(Error::NoBlock { .. })));
        }
    }
}

#[test]
fn what_is_wrong_with_a_pool_is_a_fault() {
    let cases = [
        // More than there is, at once and bit by bit.
        ("pool_alloc r0, heap, 70000", "without room for 70000 bytes"),
        (
            "pool_alloc r0, heap, 4294967295",
            "without room for 4294967295 bytes",
        ),
        (
            "more: pool_alloc r0, heap, 100\nbra more",
            "without room for 100 bytes",
        ),
        (
            "more: pool_alloc r0, heap, 40000\nbra more",
            "without room for 40000 bytes",
        ),
        (
            "more: pool_alloc r0, heap, 0\nbra more",
            "without room for 0 bytes",
        ),
        // Handles that were never given out.
        (
            "mov.u32 r0, 0\npool_load.u32 r1, heap[r0]",
            "no block with the handle 0",
        ),
        (
            "mov.u32 r0, 2148532226\npool_free heap, r0",
            "no block with the handle 2148532226",
        ),
        (
            "mov.u32 r0, 4294967295\npool_store.u32 heap[r0], 1",
            "no block with the handle 4294967295",
        ),
        (
            "pool_alloc r0, heap, 8\nxor.u32 r0, r0, 2147483648\npool_load.u32 r1, heap[r0]",
            "no block",
        ),
        // Used after it was given back; given back twice, also where the storage has a new block.
        (
            "pool_alloc r0, heap, 8\npool_free heap, r0\npool_load.u32 r1, heap[r0]",
            "has been freed",
        ),
        (
            "pool_alloc r0, heap, 8\npool_free heap, r0\npool_free heap, r0",
            "has been freed",
        ),
        (
            "pool_alloc r0, heap, 8\npool_free heap, r0\npool_alloc r1, heap, 8\npool_store.u32 heap[r0], 1",
            "has been freed",
        ),
        // Beyond the block, though within the pool.
        (
            "pool_alloc r0, heap, 8\npool_alloc r1, heap, 8\npool_store.u32 heap[r0 + 2], 7",
            "but the index is 2",
        ),
        (
            "pool_alloc r0, heap, 7\npool_load.u32 r1, heap[r0 + 1]",
            "but the index is 1",
        ),
        (
            "pool_alloc r0, heap, 8\nmov.u32 r1, 4294967295\npool_load.u32 r2, heap[r0 + r1 + 2]",
            "but the index is 4294967295",
        ),
    ];
    for executor in executors() {
        let executor = executor.untrusted(Limits {
            instructions: 1 << 20,
            ..Limits::default()
        });
        for (text, expected) in cases {
            let heap = executor.allocate_pool(65_536).expect("memory");
            let other = executor.allocate_block(heap, 4096).expect("room");
            let program = program(&format!(".pool heap\n{text}\n"), &[("heap", heap)]);
            let error = run(&executor, &program, LaunchConfig::new(1, 1)).expect_err(text);
            assert!(error.to_string().contains(expected), "{text}: {error}");
            // Nobody else's block has changed.
            let range = executor.block(heap, other).expect("it is there");
            let words = executor
                .read_pool::<u32>(heap, range.start, 1024)
                .expect("a read");
            assert!(words.iter().all(|word| *word == 0), "{text}");
            executor.free_pool(heap).expect("there");
        }
    }
}

#[test]
fn pools_are_memory_of_the_executor() {
    for executor in executors() {
        let heap = executor.allocate_pool(100).expect("memory");
        let buffer = executor.allocate_buffer(64).expect("memory");
        assert_eq!(executor.pool_size(heap).expect("there"), 112);
        executor.write_pool(heap, 32, &[1u32, 2, 3, 4]).expect("a write");
        executor.copy((heap, 36), (buffer, 8), 8).expect("a copy");
        assert_eq!(
            executor.read_buffer::<u32>(buffer, 0, 5).expect("a read"),
            [0, 0, 2, 3, 0]
        );
        assert_eq!(
            executor.read_pool::<u32>(heap, 32, 4).expect("a read"),
            [1, 2, 3, 4]
        );
        assert!(matches!(
            executor.read_pool::<u8>(heap, 100, 13),
            Err(Error::Range { .. })
        ));
        assert!(matches!(
            executor.read_pool::<u8>(buffer, 0, 1),
            Err(Error::NoPool { .. })
        ));
        assert!(matches!(
            executor.read_buffer::<u8>(heap, 0, 1),
            Err(Error::NoBuffer { .. })
        ));
        assert!(matches!(executor.free_buffer(heap), Err(Error::NoBuffer { .. })));
        // A pool is no buffer of a program, and a buffer no pool.
        let load = program(".buffer x: u32\nldg.u32 r0, x[0]", &[("x", heap)]);
        assert!(run(&executor, &load, LaunchConfig::new(1, 1)).is_err());
        let alloc = program(".pool x\npool_alloc r0, x, 8", &[("x", buffer)]);
        assert!(run(&executor, &alloc, LaunchConfig::new(1, 1)).is_err());
        executor.free_pool(heap).expect("there");
        assert!(matches!(executor.free_pool(heap), Err(Error::NoPool { .. })));
        let small = executor.untrusted(Limits {
            memory: 1000,
            ..Limits::default()
        });
        assert!(matches!(small.allocate_pool(900), Err(Error::Limit { .. })));
    }
}

const ADD: &str = ".buffer x: u32\n.param n: u32\nldg.u32 r0, x[r255]\nmul.u32 r0, r0, 3\nadd.u32 r0, r0, n\nstg.u32 x[r255], r0\n";

#[test]
fn launches_run_on_streams_in_batches_and_as_graphs() {
    for executor in executors() {
        let config = LaunchConfig::new(4, 64);
        let x = executor.allocate_buffer(4 * 256).expect("memory");
        let add = program(ADD, &[("x", x)]);
        let (one, two) = (Arguments::new().with("n", 1u32), Arguments::new().with("n", 2u32));
        let launch = |arguments| Launch {
            program: &add,
            config,
            arguments,
        };
        let stream = executor.create_stream().expect("a stream");
        executor.execute_on(&stream, &launch(&one)).expect("a launch");
        executor
            .execute_batch(&stream, &[launch(&two), launch(&one), launch(&two)])
            .expect("launches");
        stream.synchronize().expect("no fault");
        let mut expected = [1, 2, 1, 2].iter().fold(0u32, |x, n| 3 * x + n);
        assert_eq!(
            executor.read_buffer::<u32>(x, 0, 256).expect("a read"),
            [expected; 256]
        );

        let graph = executor.capture(&[launch(&one), launch(&two)]).expect("a graph");
        let prepared = executor.prepare(&launch(&two)).expect("a launch");
        for _ in 0..3 {
            stream.launch_graph(&graph).expect("a launch");
            prepared.submit(&stream).expect("a launch");
            expected = [1, 2, 2].iter().fold(expected, |x, n| 3u32.wrapping_mul(x) + n);
        }
        stream.synchronize().expect("no fault");
        assert_eq!(
            executor.read_buffer::<u32>(x, 0, 256).expect("a read"),
            [expected; 256]
        );

        // One that cannot be launched keeps the others from running.
        let none = Arguments::new();
        let wrong = executor.execute_batch(&stream, &[launch(&one), launch(&none)]);
        assert!(matches!(wrong, Err(Error::Parameter { .. })));
        assert!(executor.capture(&[launch(&none)]).is_err());
        stream.synchronize().expect("no fault");
        assert_eq!(
            executor.read_buffer::<u32>(x, 0, 256).expect("a read"),
            [expected; 256]
        );

        // What a graph uses lives as long as it does.
        executor.free_buffer(x).expect("there");
        stream.launch_graph(&graph).expect("a launch");
        stream.synchronize().expect("no fault");
    }
}

#[test]
fn opposite_guards_write_together() {
    let text = "\
.buffer x: u32
    setlt.u32 p0, %gid, 3
@p0 mov.u32 r0, 10
    mov.u32 r1, 5
@!p0 mov.u32 r0, 20
@!p0 setlt.u32 p1, %gid, 5
@p0 seteq.u32 p1, %gid, 1
@p1 add.u32 r0, r0, r1
@!p1 bra end
@p0 mov.f32 r2, 1.5
@!p0 mov.f32 r2, 2.5
    bitcast.u32.f32 r2, r2
    add.u32 r0, r0, r2
end:
    stg.u32 x[%gid], r0
";
    for executor in executors() {
        let x = executor.allocate_buffer(24).expect("memory");
        run(&executor, &program(text, &[("x", x)]), LaunchConfig::new(1, 6)).expect("it runs");
        let found = executor.read_buffer::<u32>(x, 0, 6).expect("a read");
        let [low, high] = [15 + 1.5f32.to_bits(), 25 + 2.5f32.to_bits()];
        assert_eq!(found, [10, low, 10, high, high, 20]);
    }
}

#[test]
fn registers_hold_what_the_launch_says() {
    for executor in executors() {
        let x = executor.allocate_buffer(4 * 8).expect("memory");
        // The first label is where the loop begins again, behind what sets the registers.
        let text = "again: add.u32 r3, r3, r4\nsub.u32 r5, r5, 1\nsetne.u32 p0, r5, 0\n@p0 bra again\nstg.u32 x[r252], r3";
        let sum = program(&format!(".buffer x: u32\n{text}"), &[("x", x)]);
        let config = LaunchConfig::new(1, 8);
        let missing = run(&executor, &sum, config).expect_err("nobody has written r3");
        assert!(missing.to_string().contains("r3 is read"), "{missing}");
        for (start, step) in [(100u32, 7u32), (5, 1)] {
            let registers = Registers::new()
                .with(3, start)
                .with(4, 1.5f32)
                .with(4, step)
                .with(5, 10u32);
            executor
                .execute_program_with_registers(&sum, &config, &registers)
                .expect("a launch");
            let found = executor.read_buffer::<u32>(x, 0, 8).expect("no fault");
            assert_eq!(found, [start + 10 * step; 8]);
        }
        // Lines of faults stay those of the program.
        let far = program(".program far\n.buffer x: u32\nnop\nstg.u32 x[r9], 1", &[("x", x)]);
        let registers = Registers::new().with(9, 1000u32);
        executor
            .execute_program_with_registers(&far, &config, &registers)
            .expect("a launch");
        let error = executor.synchronize().expect_err("out of bounds").to_string();
        assert!(error.contains("4, block"), "{error}");
        let wrong = Registers::new().with(3, 1.0f32);
        assert!(
            executor
                .execute_program_with_registers(&sum, &config, &wrong)
                .is_err()
        );
    }
}

#[test]
fn executors_are_chosen_by_size() {
    for executor in executors() {
        let host = perpetua_isa::new_executor().expect("the CPU").device().clone();
        let device = executor.device().clone();
        let (small, large) = (1 << 8, 1 << 12);
        let found = Crossover::measure(&host, &device, &[small, large]).expect("times");
        assert_eq!(found.points().len(), 2 * Operation::ALL.len());
        // More sizes do not take the place of others.
        let again = Crossover::measure(&host, &device, &[small, 1 << 9]).expect("times");
        let kept = Crossover::between(&host, &device).expect("they are kept");
        for point in again.points().iter().chain(found.points()) {
            let is_old = point.size == small as u64 && found.points().contains(point);
            assert!(is_old || kept.points().contains(point), "{point:?} in {kept:?}");
        }
        let (host_kind, device_kind) = (host.backend(), device.backend());
        let point = &kept.points()[0];
        assert_eq!((&*point.operation, point.size), ("element-wise", small as u64));
        let chosen = Crossover::faster_of(host, device, Operation::ElementWise, small as u64, Data::There);
        let expected = match point.host > point.device {
            true => device_kind,
            false => host_kind,
        };
        assert_eq!(chosen.expect("a device").backend(), expected);
    }
}

/// Flow that is no nest of loops, in a program that writes a register of the launch with both of its widths.
#[test]
fn presets_stay_where_flow_is_dispatched() {
    const TEXT: &str = "
.buffer x: u64
.buffer y: u32
    setlt.u32 p0, r252, 2
    mov.u32 r1, 0
@p0 bra two
one:
    add.u32 r1, r1, 1
two:
    add.u32 r1, r1, 1
    setlt.u32 p1, r1, 4
@p1 bra one
    stg.u64 x[r252], r255
    mov.u32 r255, 7
    stg.u32 y[r252], r255
    mov.u64 r255, 9
    stg.u64 x[r252 + 4], r255
";
    for executor in executors() {
        let x = common::upload(&executor, &[0u64; 8]);
        let y = common::upload(&executor, &[0u32; 4]);
        let program = program(TEXT, &[("x", x), ("y", y)]);
        run(&executor, &program, LaunchConfig::new(1, 4)).expect("a run");
        assert_eq!(
            executor.read_buffer::<u64>(x, 0, 8).expect("x"),
            [0, 1, 2, 3, 9, 9, 9, 9]
        );
        assert_eq!(executor.read_buffer::<u32>(y, 0, 4).expect("y"), [7; 4]);
    }
}
