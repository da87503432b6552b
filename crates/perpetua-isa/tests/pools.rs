//! Pools between lanes: what orders a block's owners, and which handles are good.
#![allow(clippy::expect_used, clippy::panic)]

mod common;

use common::{bind, executors, executors_and_detector};
use perpetua_device::BackendKind;
use perpetua_isa::{Arguments, Executor, LaunchConfig, Limits, Program};

// Each lane takes a block, finds it zero, fills it, and gives it back, again and again; what it found goes to `found`.
const TURNS: &str = "
.pool heap
.buffer found: u32
    mov.u32 r9, 0
    mov.u32 r8, 6
turn:
    pool_alloc r0, heap, 32
    mov.u32 r1, 0
word:
    pool_load.u32 r2, heap[r0 + r1]
    or.u32 r9, r9, r2
    cvt.u32.u64 r3, r255
    add.u32 r3, r3, 1
    pool_store.u32 heap[r0 + r1], r3
    add.u32 r1, r1, 1
    setlt.u32 p0, r1, 8
@p0 bra word
    pool_free heap, r0
    loop r8, turn
    stg.u32 found[r255], r9
";

// One lane of each block takes a block of the pool and tells the others.
const PASSED: &str = "
.pool heap
.buffer found: u32
.shared told: u32[1]
    setne.u32 p0, %tid.x, 0
@p0 bra others
    pool_alloc r0, heap, 4
    pool_store.u32 heap[r0], 41
    sts.u32 told[0], r0
others:
    bar
    lds.u32 r0, told[0]
    pool_load.u32 r1, heap[r0]
    add.u32 r1, r1, 1
    stg.u32 found[r255], r1
";

fn run(executor: &Executor, text: &str, buffers: &[(&str, u64)], config: LaunchConfig) {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let program = bind(program, buffers);
    let done = executor.execute_program(&program, &config);
    done.and_then(|()| executor.synchronize())
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_block_passes_from_lane_to_lane_without_a_race() {
    for executor in executors_and_detector() {
        let heap = executor.allocate_pool(1 << 14).expect("memory");
        let found = executor.allocate_buffer(4 * 64).expect("memory");
        let buffers = [("heap", heap), ("found", found)];
        run(&executor, TURNS, &buffers, LaunchConfig::new(8, 8));
        let seen = executor.read_buffer::<u32>(found, 0, 64).expect("a read");
        assert_eq!(seen, [0; 64], "a block was not zero");
        run(&executor, PASSED, &buffers, LaunchConfig::new(8, 8));
        let seen = executor.read_buffer::<u32>(found, 0, 64).expect("a read");
        assert_eq!(seen, [42; 64]);
    }
}

// Units of 16 bytes, one a block, from one lane; how many there were.
const SINGLE: &str = "
.pool heap
.buffer taken: u32
.param blocks: u32
    mov.u32 r8, blocks
    mov.u32 r7, 0
    sub.u32 r8, r8, 1
next:
    pool_alloc r0, heap, 16
    add.u32 r7, r7, 1
    stg.u32 taken[0], r7
    loop r8, next
";

#[test]
fn what_does_not_fit_into_the_rest_of_a_pool_leaves_it_there() {
    for executor in executors() {
        // 4,000 units, and rows for 1,000 blocks.
        let heap = executor.allocate_pool(64_000).expect("memory");
        let taken = executor.allocate_buffer(4).expect("memory");
        let large: Program = ".pool heap\npool_alloc r0, heap, 17600"
            .parse()
            .expect("a program");
        let large = bind(large, &[("heap", heap)]);
        executor
            .execute_program(&large, &LaunchConfig::new(64, 8))
            .expect("a launch");
        let error = executor.synchronize().expect_err("three fit").to_string();
        assert!(error.contains("without room"), "{error}");
        let single: Program = SINGLE.parse().expect("a program");
        let single = bind(single, &[("heap", heap), ("taken", taken)]);
        let arguments = Arguments::new().with("blocks", 700u32);
        executor
            .execute(&single, &LaunchConfig::new(1, 1), &arguments)
            .expect("a launch");
        executor.synchronize().expect("700 units are left");
        let seen = executor.read_buffer::<u32>(taken, 0, 1).expect("a read");
        assert_eq!(seen, [700]);
        executor
            .execute(&single, &LaunchConfig::new(1, 1), &arguments)
            .expect("a launch");
        executor.synchronize().expect_err("nothing is left");
    }
}

#[test]
fn a_lane_whose_budget_ends_loses_no_block() {
    let spend = |turns: u32| {
        let text = format!(
            ".pool heap\n mov.u32 r8, {turns}\nmore: xor.u32 r1, r8, 1\n setgt.u32 p0, r1, 0\n@p0 xor.u32 r1, r1, r8\n loop r8, more\n \
             pool_alloc r0, heap, 4096"
        );
        text.parse::<Program>().unwrap_or_else(|error| panic!("{error}"))
    };
    for executor in executors() {
        let limits = Limits {
            instructions: 600,
            ..Limits::default()
        };
        let executor = executor.untrusted(limits);
        // Room for one block.
        let heap = executor.allocate_pool(4096).expect("memory");
        let block = executor.allocate_block(heap, 4096).expect("room");
        executor.free_block(heap, block).expect("a launch");
        let config = LaunchConfig::new(1, 1);
        let starved = bind(spend(90), &[("heap", heap)]);
        executor.execute_program(&starved, &config).expect("a launch");
        let error = executor.synchronize().expect_err("no budget is left").to_string();
        assert!(error.contains("instructions was spent"), "{error}");
        let fed = bind(spend(3), &[("heap", heap)]);
        executor.execute_program(&fed, &config).expect("a launch");
        executor.synchronize().expect("the block is there");
    }
}

#[test]
fn of_the_handles_that_could_be_made_up_for_a_row_one_is_good() {
    for executor in executors() {
        let mut first = Vec::new();
        for _ in 0..4 {
            let heap = executor.allocate_pool(1 << 12).expect("memory");
            first.push(executor.allocate_block(heap, 16).expect("room"));
            let second = executor.allocate_block(heap, 16).expect("room");
            assert_eq!(second & 0xf_ffff, 2);
            if first.len() > 1 || executor.device().backend() != BackendKind::Cpu {
                continue;
            }
            let good = (0..2048u32)
                .map(|tag| 1 << 31 | tag << 20 | 2)
                .filter(|handle| executor.block(heap, *handle).is_ok());
            assert_eq!(good.collect::<Vec<_>>(), [second]);
        }
        // By chance all could be equal: one time in 2^33.
        assert!(first.iter().any(|handle| *handle != first[0]), "{first:x?}");
    }
}

#[test]
fn a_handle_stays_bad_while_its_row_has_other_blocks() {
    let text = "
.pool heap
.buffer out: u32
    pool_alloc r0, heap, 16
    mov.u32 r1, r0
    mov.u32 r8, 2046
    mov.u32 r9, 0
again:
    pool_free heap, r1
    pool_alloc r1, heap, 16
    seteq.u32 p0, r0, r1
@p0 add.u32 r9, r9, 1
    loop r8, again
    stg.u32 out[0], r9
    pool_free heap, r1
    pool_alloc r1, heap, 16
    xor.u32 r1, r1, r0
    stg.u32 out[1], r1
";
    for executor in executors() {
        let heap = executor.allocate_pool(1 << 12).expect("memory");
        let out = executor.allocate_buffer(8).expect("memory");
        run(
            &executor,
            text,
            &[("heap", heap), ("out", out)],
            LaunchConfig::new(1, 1),
        );
        let seen = executor.read_buffer::<u32>(out, 0, 2).expect("a read");
        assert_eq!(seen, [0, 0], "of 2,048 blocks none has another's handle");
    }
}
