//! Reductions of blocks and grids: what they lose nothing of, and what may depend on them; what else barriers may depend on.
#![allow(clippy::expect_used, clippy::panic)]

mod common;

use common::executors;
use perpetua_isa::{Arguments, Executor, LaunchConfig, Limits, Program};

fn program(text: &str) -> Program {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn run(executor: &Executor, program: &Program, config: LaunchConfig) {
    let done = executor.execute_program(program, &config);
    done.and_then(|()| executor.synchronize())
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_grids_product_of_floats_loses_no_factor() {
    // Powers of two: the product is exact in any order. Block 7 brings 1.5, the others 2 or a half.
    let text = "
.buffer out: f32
    mov.u32 r0, %ctaid.x
    and.u32 r1, r0, 1
    seteq.u32 p0, r1, 0
    seteq.u32 p1, r252, 5
    sel.f32 r2, p0, 2.0, 0.5
    seteq.u32 p2, r0, 7
    sel.f32 r2, p2, 1.5, r2
    sel.f32 r2, p1, r2, 1.0
    grid_mul.f32 out[0], r2
    grid_mul.f32 out[1], r2
";
    for executor in executors() {
        let out = common::upload(&executor, &[4.0f32, f32::NAN]);
        let product = common::bind(program(text), &[("out", out)]);
        for _ in 0..10 {
            executor.write_buffer(out, 0, &[4.0f32]).expect("a write");
            run(&executor, &product, LaunchConfig::new(100, 64));
            let seen = executor.read_buffer::<f32>(out, 0, 2).expect("a read");
            assert!(seen[0] == 12.0 && seen[1].is_nan(), "{seen:?}");
        }
    }
}

// A block whose values come to less than a hundred is turned round; that takes a barrier.
const TURN: &str = "
.buffer x: u32
.buffer out: u32
.shared s: u32[64]
    ldg.u32 r0, x[r255]
    sts.u32 s[r252], r0
    group_add.u32 r1, r0
    setge.u32 p0, r1, 100
@p0 bra done
    bar
    mov.u32 r3, 63
    sub.u32 r3, r3, r252
    lds.u32 r0, s[r3]
    bar
done:
    stg.u32 out[r255], r0
";

// The same by a sum that lanes make with atomics.
const TURN_BY_ATOMICS: &str = "
.buffer x: u32
.buffer out: u32
.shared s: u32[64]
.shared sums: f32[2]
    ldg.u32 r0, x[r255]
    sts.u32 s[r252], r0
    seteq.u32 p1, r252, 0
@p1 sts.f32 sums[1], 0.0
    bar
    cvt.f32.u32 r4, r0
    atom_add.f32 r5, sums[1], r4
    bar
    lds.f32 r1, sums[1]
    bar
    setge.f32 p0, r1, 100.0
@p0 bra done
    bar
    mov.u32 r3, 63
    sub.u32 r3, r3, r252
    lds.u32 r0, s[r3]
    bar
done:
    stg.u32 out[r255], r0
";

#[test]
fn barriers_may_depend_on_a_reduction() {
    for executor in executors() {
        let values: Vec<u32> = (0..128)
            .map(|i| if i < 64 { i } else { u32::from(i < 67) * i })
            .collect();
        let small: Vec<u32> = values.iter().map(|value| value / 64).collect();
        let mut expect = small.clone();
        expect[..64].reverse();
        expect[64..].reverse();
        for (input, expect) in [(&values[..64], values[..64].to_vec()), (&small[..], expect)] {
            let x = common::upload(&executor, input);
            let out = executor.allocate_buffer(4 * input.len()).expect("memory");
            for text in [TURN, TURN_BY_ATOMICS] {
                let turn = common::bind(program(text), &[("x", x), ("out", out)]);
                run(&executor, &turn, LaunchConfig::new(input.len() as u32 / 64, 64));
                assert_eq!(
                    executor.read_buffer::<u32>(out, 0, input.len()).expect("a read"),
                    expect
                );
            }
        }
    }
}

/// A predicate that differs between lanes crosses from block to block, and later one that does not, on which a barrier depends.
#[test]
fn a_register_holds_one_value_after_the_other() {
    let text = "
.buffer out: u32
.shared s: u32[64]
.param n: u32
    setlt.u32 p0, r252, 5
    mov.u32 r0, r252
    setgt.u32 p1, r252, 9
@p1 bra a
    add.u32 r0, r0, 100
a:
@!p0 bra b
    add.u32 r0, r0, 1000
b:
    setgt.u32 p0, n, 3
    seteq.u32 p1, r252, 7
@p1 bra c
    add.u32 r0, r0, 10000
c:
    sts.u32 s[r252], r0
@!p0 bra done
    bar
    mov.u32 r1, 63
    sub.u32 r1, r1, r252
    lds.u32 r0, s[r1]
done:
    stg.u32 out[r255], r0
";
    let own = |lane: u32| {
        lane + 100 * u32::from(lane <= 9) + 1000 * u32::from(lane < 5) + 10000 * u32::from(lane != 7)
    };
    for executor in common::executors_and_detector() {
        let out = executor.allocate_buffer(4 * 64).expect("memory");
        let held = common::bind(program(text), &[("out", out)]);
        for n in [3u32, 4] {
            let arguments = Arguments::new().with("n", n);
            executor
                .execute(&held, &LaunchConfig::new(1, 64), &arguments)
                .unwrap_or_else(|error| panic!("{error}"));
            let expect: Vec<u32> = (0..64)
                .map(|lane| own(if n > 3 { 63 - lane } else { lane }))
                .collect();
            assert_eq!(executor.read_buffer::<u32>(out, 0, 64).expect("a read"), expect);
        }
    }
}

// An instruction that is many takes as much of the budget.
#[test]
fn tiles_cost_what_they_compute() {
    let limits = Limits {
        instructions: 20_000,
        ..Limits::default()
    };
    for executor in executors() {
        let executor = executor.untrusted(limits);
        let tiles = |turns: u32| {
            let text = format!(
                "mov.u32 r0, {turns}\nagain: tile_mma.u32 r1, r17, r33, 4, 4, 4\n loop r0, again\n stg.u32 x[0], r1"
            );
            let registers: String = (1..49).map(|i| format!("mov.u32 r{i}, 0\n")).collect();
            let x = executor.allocate_buffer(64).expect("memory");
            let program = format!(".buffer x: u32\n{registers}{text}")
                .parse::<Program>()
                .expect("a program");
            let program = program.with_buffer("x", x).expect("x");
            let launched = executor.execute_program(&program, &LaunchConfig::new(1, 1));
            launched.and_then(|()| executor.synchronize())
        };
        // 64 products each.
        let most = limits.instructions / 64;
        tiles(most / 2).expect("half of what is allowed");
        let error = tiles(most * 2).expect_err("too much").to_string();
        assert!(error.contains("budget"), "{error}");
    }
}
