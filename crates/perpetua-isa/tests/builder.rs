//! Programs that are built in Rust: what they do, and what is said of those that are wrong.

#![allow(clippy::expect_used, clippy::panic)]

mod common;

use common::{bind, executors, upload};
use perpetua_ir::ir::{AtomicOp, Axis, ReduceOp};
use perpetua_isa::builder::{ProgramBuilder, block_dim, block_idx, global_id, thread_idx};
use perpetua_isa::{Arguments, BuildError, LaunchConfig, Program};

fn execute(program: &Program, buffers: &[(&str, &[u32])], out: usize) -> Vec<Vec<u32>> {
    let run = |executor: perpetua_isa::Executor| {
        let mut handles: Vec<(&str, u64)> = buffers
            .iter()
            .map(|(name, values)| (*name, upload(&executor, values)))
            .collect();
        handles.push(("out", executor.allocate_buffer(4 * out).expect("memory")));
        let program = bind(program.clone(), &handles);
        executor
            .execute(&program, &LaunchConfig::new(2, 64), &Arguments::new())
            .unwrap_or_else(|error| panic!("{error}\n{program}"));
        let found = executor.read_buffer(handles[handles.len() - 1].1, 0, out);
        found.unwrap_or_else(|error| panic!("{error}\n{program}"))
    };
    executors().into_iter().map(run).collect()
}

#[test]
fn control_flow_and_memory_of_a_block() {
    let mut b = ProgramBuilder::new("reversed");
    b.block(64, 1, 1);
    let (x, out) = (b.buffer::<u32>("x"), b.buffer::<u32>("out"));
    let s = b.shared::<u32>("s", 64);
    let lane = thread_idx::<u32>(Axis::X);
    let i = b.mad::<u32>(block_idx(Axis::X), block_dim(Axis::X), lane);
    let v = b.load(x.at(i));
    b.store(s.at(lane), v);
    b.bar();
    let mirror = b.sub(63u32, lane);
    let other = b.load(s.at(mirror));
    // Even ones by a loop, odd ones at once.
    let sum = b.var(0u32);
    let bit = b.and(other, 1u32);
    let odd = b.seteq(bit, 1u32);
    b.if_else(
        odd,
        |b| b.set(sum, other),
        |b| {
            b.repeat(other, |b, turn| {
                let next = b.add(sum, turn);
                b.set(sum, next);
            });
        },
    );
    let rest = b.var(other);
    b.while_(
        |b| b.setge::<u32>(rest, 10u32),
        |b| {
            let less = b.sub(rest, 10u32);
            b.set(rest, less);
            let more = b.add(sum, 1000u32);
            b.set(sum, more);
        },
    );
    b.store(out.at(i), sum);
    let program = b.finish().expect("a program");

    let x: Vec<u32> = (0..128).map(|i| i * 7 % 31).collect();
    let expected: Vec<u32> = (0..128)
        .map(|i| {
            let other = x[i / 64 * 64 + 63 - i % 64];
            let sum = if other % 2 == 1 { other } else { (0..other).sum() };
            sum + other / 10 * 1000
        })
        .collect();
    for found in execute(&program, &[("x", &x)], 128) {
        assert_eq!(found, expected);
    }
}

#[test]
fn runs_tiles_atomics_and_constants() {
    let mut b = ProgramBuilder::new("tiles");
    let out = b.buffer::<u32>("out");
    let table = b.constants("table", &[3u32, 1, 4, 1, 5, 9]);
    let (sums, a) = (b.registers::<u32>(4), b.registers::<u32>(6));
    for i in 0..6 {
        let v = b.load(table.at(i));
        b.set(a.get(i).expect("six"), v);
    }
    for i in 0..4 {
        b.set(sums.get(i).expect("four"), 0u32);
    }
    b.tile_mma(sums, a, a, [2, 2, 3]);
    let all = b.reduce(ReduceOp::Add, sums);
    let i = global_id::<u64>();
    let small = b.setlt(i, 4u64);
    b.if_(small, |b| {
        b.store(out.at(i), all);
    });
    b.atom(AtomicOp::Add, out.at(4), 2u32);
    b.grid(ReduceOp::Max, out.at(5), all);
    let program = b.finish().expect("a program");
    // [3 1 4; 1 5 9] [3 1; 4 1; 5 9]
    let sum = (9 + 4 + 20) + (3 + 1 + 36) + (3 + 20 + 45) + (1 + 5 + 81);
    for found in execute(&program, &[], 6) {
        assert_eq!(found, [sum, sum, sum, sum, 256, sum]);
    }
}

#[test]
fn registers_are_used_again() {
    let mut b = ProgramBuilder::new("chain");
    let (x, out) = (b.buffer::<u32>("x"), b.buffer::<u32>("out"));
    let i = global_id::<u64>();
    let first = b.load(x.at(i));
    let mut v = b.var(first);
    for turn in 0..300u32 {
        let bit = b.and(v, 1u32);
        let odd = b.seteq(bit, 1u32);
        let (a, c) = (b.add(v, turn), b.xor(v, 5u32));
        v = b.select(odd, a, c);
    }
    let v = b.add(v, first);
    b.store(out.at(i), v);
    let program = b.finish().expect("a program");
    let x: Vec<u32> = (0..128).collect();
    let expected: Vec<u32> = x
        .iter()
        .map(|x| {
            let turn = |v: u32, turn: u32| if v & 1 == 1 { v.wrapping_add(turn) } else { v ^ 5 };
            (0..300).fold(*x, turn).wrapping_add(*x)
        })
        .collect();
    for found in execute(&program, &[("x", &x)], 128) {
        assert_eq!(found, expected);
    }
}

fn wrong(build: impl FnOnce(&mut ProgramBuilder)) -> BuildError {
    let mut b = ProgramBuilder::new("wrong");
    build(&mut b);
    b.finish().expect_err("wrong")
}

#[test]
fn what_is_wrong_is_told_with_its_call() {
    let cases: [(BuildError, &str, &str); 10] = [
        (
            wrong(|b| {
                let s = b.shared::<f32>("s", 4);
                b.load(s.at(4));
            }),
            "lds",
            "index 4 is out of bounds",
        ),
        (
            wrong(|b| {
                let t = b.constants("t", &[1u32]);
                b.store(t.at(0), 1u32);
            }),
            "stg",
            "`t` is none",
        ),
        (
            wrong(|b| {
                b.buffer::<f32>("r7");
            }),
            "buffer",
            "that is a register",
        ),
        (
            wrong(|b| {
                b.buffer::<f32>("x");
                b.param::<f32>("x");
            }),
            "param",
            "that is the name of another",
        ),
        (
            wrong(|b| {
                let nowhere = b.label();
                b.bra(nowhere);
            }),
            "bra",
            "its label stands nowhere",
        ),
        (
            wrong(|b| {
                let twice = b.label();
                b.place(twice);
                b.place(twice);
            }),
            "place",
            "somewhere already",
        ),
        (
            wrong(|b| {
                let (x, end) = (b.buffer::<u32>("x"), b.label());
                let v = b.registers::<u32>(1).get(0).expect("one");
                let p = b.seteq(1u32, 2u32);
                b.bra_if(p, end);
                b.set(v, 1u32);
                b.place(end);
                b.store(x.at(0), v);
            }),
            "stg",
            "not every way to here has written it",
        ),
        (
            wrong(|b| {
                b.registers::<u32>(300);
            }),
            "registers",
            "300 registers in a row, of which 252 are left",
        ),
        (
            wrong(|b| {
                let x = b.buffer::<u32>("x");
                let all: Vec<_> = (0..300).map(|i| b.load(x.at(i))).collect();
                all.into_iter().for_each(|v| b.store(x.at(0), v));
            }),
            "ldg",
            "more than 252 registers",
        ),
        (
            wrong(|b| {
                b.abs_diff::<i32, u64>(1, 2);
            }),
            "abs_diff",
            "the result's type is u32, not u64",
        ),
    ];
    for (error, call, part) in cases {
        assert!(error.call == call && error.message.contains(part), "{error}");
        assert!(error.file.ends_with("builder.rs") && error.line > 0, "{error}");
    }
}

#[test]
fn faults_name_the_call() {
    let mut b = ProgramBuilder::new("faulty");
    let out = b.buffer::<u32>("out");
    b.store(out.at(1_000_000), 1u32);
    let line = line!() - 1;
    let program = b.finish().expect("a program");
    let executor = perpetua_isa::new_executor().expect("the CPU");
    let handle = executor.allocate_buffer(4).expect("memory");
    let program = bind(program, &[("out", handle)]);
    executor
        .execute_program(&program, &LaunchConfig::new(1, 1))
        .expect("a launch");
    let error = executor.synchronize().expect_err("out of bounds").to_string();
    assert!(error.contains(&format!("builder.rs:{line}")), "{error}");
}
