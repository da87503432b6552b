//! Loops within each other: however deep, they come to no more braces than WGSL takes.

use perpetua_isa::{Executor, LaunchConfig};

use super::{common, limits, program};

// Each loop runs once.
fn nested(deep: usize, counts: bool, innermost: &str) -> String {
    let mut text = String::from(".buffer x: u32\n");
    for i in 0..deep {
        text += &match counts {
            true => format!("mov.u32 r{i}, 0\nl{i}:\n"),
            false => {
                format!("mov.u32 r{i}, 1\nl{i}: seteq.u32 p0, r{i}, 0\n@p0 bra e{i}\nsub.u32 r{i}, r{i}, 1\n")
            }
        };
    }
    text += innermost;
    for i in (0..deep).rev() {
        text += &match counts {
            true => format!("loop r{i}, l{i}\n"),
            false => format!("bra l{i}\ne{i}:\n"),
        };
    }
    text
}

// The validator of shaders takes 30 KiB of stack for each level where it is built without optimisation.
#[test]
fn loops_within_each_other_run_as_deep_as_one_likes() {
    let thread = std::thread::Builder::new().stack_size(16 << 20);
    let thread = thread.spawn(deep_loops_run).expect("a thread");
    thread.join().expect("no panic");
}

fn deep_loops_run() {
    let cases = [
        (true, 49),
        (true, 50),
        (true, 63),
        (true, 75),
        (false, 99),
        (false, 130),
    ];
    for executor in common::executors() {
        let run = |executor: &Executor| {
            for (counts, deep) in cases {
                let x = executor.allocate_buffer(4).expect("memory");
                let innermost = "atom_add.u32 r254, x[0], 1\nseteq.u32 p1, r254, 9\n@p1 bra out\n\
                    copy.u32 x[0], x[0], 1\n";
                let text = nested(deep, counts, innermost) + "out: atom_add.u32 r254, x[0], 1\n";
                let program = program(&text).with_buffer("x", x).expect("x");
                executor
                    .execute_program(&program, &LaunchConfig::new(1, 1))
                    .unwrap_or_else(|error| panic!("{deep}: {error}"));
                assert_eq!(
                    executor.read_buffer::<u32>(x, 0, 1).expect("a read"),
                    [2],
                    "{deep}"
                );
                executor.free_buffer(x).expect("there");
            }
        };
        run(&executor);
        run(&executor.untrusted(limits()));
    }
}
