//! Random programs whose lanes work together: shared memory, barriers, atomics, reductions, and loops and branches of whole blocks. They run on
//! each backend, under the CPU's race detector, and as MSL through its shim, against an oracle whose lanes take each step together.
#![allow(clippy::expect_used, clippy::panic)]

mod common;

use common::{bind, executors_and_detector};
use perpetua_ir::back::{ArgsLayout, Target, render};
use perpetua_isa::{Assembler, LaunchConfig, Program, lower, verify};
use perpetua_vendor_tools::MslProgram;
use perpetua_vendor_tools::msl::{LaneOrder, MslLaunch};

const LANES: usize = 16;
const BLOCKS: usize = 3;
/// Registers that programs compute in; others hold counts and places.
const REGISTERS: usize = 5;

/// What all lanes of a block do.
enum Step {
    /// In lanes whose predicate has this value, or in all.
    Compute {
        op: usize,
        to: usize,
        from: [usize; 2],
        guard: Option<bool>,
    },
    /// The predicate: whether the first is less.
    Compare([usize; 2]),
    /// Each lane gets what the one so many places on has.
    Pass {
        to: usize,
        from: usize,
        by: u32,
    },
    /// Each lane gets the block's sum: by a reduction, or by atomics on shared memory.
    Sum {
        to: usize,
        from: usize,
        atomic: bool,
    },
    Loop {
        turns: u32,
        body: Vec<Step>,
    },
    /// Odd blocks do the first, even ones the second.
    Blocks([Vec<Step>; 2]),
    /// Lanes below this do it alone: nothing in which lanes meet.
    Lanes {
        below: u32,
        body: Vec<Step>,
    },
}

type Operator = (&'static str, fn(u32, u32) -> u32);

const OPERATORS: [Operator; 9] = [
    ("add", u32::wrapping_add),
    ("sub", u32::wrapping_sub),
    ("mul", u32::wrapping_mul),
    ("and", |a, b| a & b),
    ("or", |a, b| a | b),
    ("xor", |a, b| a ^ b),
    ("min", u32::min),
    ("max", u32::max),
    ("shl", u32::wrapping_shl),
];

struct Choices(u64);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    fn register(&mut self) -> usize {
        self.below(REGISTERS)
    }

    // Steps of a body: `alone` where not all lanes are there.
    fn steps(&mut self, depth: u32, alone: bool) -> Vec<Step> {
        let count = 2 + self.below(5);
        (0..count).map(|_| self.step(depth, alone)).collect()
    }

    fn step(&mut self, depth: u32, alone: bool) -> Step {
        let kinds = match (alone, depth) {
            (true, _) => 3,
            (false, 2..) => 6,
            (false, _) => 9,
        };
        match self.below(kinds) {
            0 | 1 => Step::Compute {
                op: self.below(OPERATORS.len()),
                to: self.register(),
                from: [self.register(), self.register()],
                guard: [None, Some(true), Some(false)][self.below(3)],
            },
            2 => Step::Compare([self.register(), self.register()]),
            3 | 4 => Step::Pass {
                to: self.register(),
                from: self.register(),
                by: self.below(LANES) as u32,
            },
            5 => Step::Sum {
                to: self.register(),
                from: self.register(),
                atomic: self.below(2) == 0,
            },
            6 => Step::Loop {
                turns: self.below(3) as u32,
                body: self.steps(depth + 1, false),
            },
            7 => Step::Blocks([self.steps(depth + 1, false), self.steps(depth + 1, false)]),
            _ => Step::Lanes {
                below: self.below(LANES + 1) as u32,
                body: self.steps(2, true),
            },
        }
    }
}

/// The program's text.
struct Text {
    text: String,
    labels: usize,
}

impl Text {
    fn of(steps: &[Step]) -> String {
        let mut text = Text {
            text: format!(
                ".program together\n.buffer out: u32\n.shared s: u32[{LANES}]\n.shared total: u32[1]\n.block {LANES}\n \
                 cvt.u32.u64 r0, r255\n mov.u32 r1, %tid.x\n mov.u32 r2, %ctaid.x\n mul.u32 r3, r0, 40503\n mov.u32 r4, 12345\n \
                 setlt.u32 p1, r1, 7\n"
            ),
            labels: 0,
        };
        text.steps(steps, 0);
        text.line(&format!("mul.u64 r12, r255, {REGISTERS}"));
        for register in 0..REGISTERS {
            text.line(&format!("stg.u32 out[r12 + {register}], r{register}"));
        }
        text.text
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(&format!(" {line}\n"));
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("at{}", self.labels)
    }

    fn here(&mut self, label: &str) {
        self.text.push_str(&format!("{label}:\n"));
    }

    fn steps(&mut self, steps: &[Step], depth: usize) {
        steps.iter().for_each(|step| self.step(step, depth));
    }

    fn step(&mut self, step: &Step, depth: usize) {
        match step {
            Step::Compute { op, to, from, guard } => {
                let guard = guard.map_or("", |wanted| if wanted { "@p1 " } else { "@!p1 " });
                let (name, [a, b]) = (OPERATORS[*op].0, from);
                self.line(&format!("{guard}{name}.u32 r{to}, r{a}, r{b}"));
            }
            Step::Compare([a, b]) => self.line(&format!("setlt.u32 p1, r{a}, r{b}")),
            Step::Pass { to, from, by } => {
                self.line("mov.u32 r10, %tid.x");
                self.line(&format!("sts.u32 s[r10], r{from}"));
                self.line("bar");
                self.line(&format!("add.u32 r10, r10, {by}"));
                self.line(&format!("rem.u32 r10, r10, {LANES}"));
                self.line(&format!("lds.u32 r{to}, s[r10]"));
                self.line("bar");
            }
            Step::Sum {
                to,
                from,
                atomic: false,
            } => self.line(&format!("group_add.u32 r{to}, r{from}")),
            Step::Sum {
                to,
                from,
                atomic: true,
            } => {
                self.line("seteq.u32 p2, %tid.x, 0");
                self.line("@p2 sts.u32 total[0], 0");
                self.line("bar");
                self.line(&format!("atom_add.u32 r11, total[0], r{from}"));
                self.line("bar");
                self.line(&format!("lds.u32 r{to}, total[0]"));
                self.line("bar");
            }
            Step::Loop { turns, body } => {
                let (again, count) = (self.label(), 20 + depth);
                self.line(&format!("mov.u32 r{count}, {turns}"));
                self.here(&again);
                self.steps(body, depth + 1);
                self.line(&format!("loop r{count}, {again}"));
            }
            Step::Blocks([odd, even]) => {
                let (otherwise, end) = (self.label(), self.label());
                self.line("and.u32 r11, %ctaid.x, 1");
                self.line("seteq.u32 p2, r11, 0");
                self.line(&format!("@p2 bra {otherwise}"));
                self.steps(odd, depth + 1);
                self.line(&format!("bra {end}"));
                self.here(&otherwise);
                self.steps(even, depth + 1);
                self.here(&end);
            }
            Step::Lanes { below, body } => {
                let end = self.label();
                self.line(&format!("setge.u32 p2, %tid.x, {below}"));
                self.line(&format!("@p2 bra {end}"));
                self.steps(body, depth + 1);
                self.here(&end);
            }
        }
    }
}

/// The oracle: a block whose lanes take each step together.
struct Block {
    number: usize,
    lanes: Vec<([u32; REGISTERS], bool)>,
}

impl Block {
    fn new(number: usize) -> Block {
        let lane = |tid: usize| {
            let id = (number * LANES + tid) as u32;
            let registers = [id, tid as u32, number as u32, id.wrapping_mul(40503), 12345];
            (registers, tid < 7)
        };
        Block {
            number,
            lanes: (0..LANES).map(lane).collect(),
        }
    }

    fn steps(&mut self, steps: &[Step], lanes: usize) {
        steps.iter().for_each(|step| self.step(step, lanes));
    }

    fn step(&mut self, step: &Step, lanes: usize) {
        let before: Vec<[u32; REGISTERS]> = self.lanes.iter().map(|(registers, _)| *registers).collect();
        let here = self.lanes.iter_mut().take(lanes);
        match step {
            Step::Compute { op, to, from, guard } => {
                for (registers, predicate) in here.filter(|(_, p)| guard.is_none_or(|wanted| wanted == *p)) {
                    let _: &mut bool = predicate;
                    registers[*to] = (OPERATORS[*op].1)(registers[from[0]], registers[from[1]]);
                }
            }
            Step::Compare([a, b]) => here.for_each(|(registers, p)| *p = registers[*a] < registers[*b]),
            Step::Pass { to, from, by } => {
                for (tid, (registers, _)) in here.enumerate() {
                    registers[*to] = before[(tid + *by as usize) % LANES][*from];
                }
            }
            Step::Sum { to, from, .. } => {
                let sum = before
                    .iter()
                    .fold(0u32, |sum, lane| sum.wrapping_add(lane[*from]));
                here.for_each(|(registers, _)| registers[*to] = sum);
            }
            Step::Loop { turns, body } => (0..=*turns).for_each(|_| self.steps(body, lanes)),
            Step::Blocks([odd, even]) => {
                let body = if self.number % 2 == 1 { odd } else { even };
                self.steps(body, lanes);
            }
            Step::Lanes { below, body } => self.steps(body, lanes.min(*below as usize)),
        }
    }
}

fn case(seed: u64) -> (String, Vec<u32>) {
    let mut choices = Choices((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let steps: Vec<Step> = (0..4).map(|_| choices.step(0, false)).collect();
    let blocks = (0..BLOCKS).flat_map(|number| {
        let mut block = Block::new(number);
        block.steps(&steps, LANES);
        block.lanes.into_iter().flat_map(|(registers, _)| registers)
    });
    (Text::of(&steps), blocks.collect())
}

fn program(text: &str) -> Program {
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn compare(found: &[u32], expected: &[u32], text: &str, place: &str) {
    let wrong = found.iter().zip(expected).position(|(a, b)| a != b);
    let wrong = wrong.map(|at| (at / REGISTERS, at % REGISTERS, found[at], expected[at]));
    assert!(
        wrong.is_none(),
        "{place}: lane, register, found, expected: {wrong:?}\n{text}"
    );
}

fn seeds(default: u64) -> u64 {
    let seeds = std::env::var("PERPETUA_SEEDS").ok();
    seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(default)
}

#[test]
fn lanes_that_work_together_do_what_lanes_in_step_do() {
    let executors = executors_and_detector();
    let last = executors.len() - 1;
    for (i, executor) in executors.iter().enumerate() {
        // Drivers and the detector take their time with each.
        let count = if i == 0 { seeds(200) } else { seeds(200) / 10 };
        let place = if i == last {
            "detector".into()
        } else {
            format!("{:?}", executor.device().backend())
        };
        let out = executor
            .allocate_buffer(4 * BLOCKS * LANES * REGISTERS)
            .expect("memory");
        for seed in 0..count {
            let (text, expected) = case(seed);
            let bound = bind(program(&text), &[("out", out)]);
            let done = executor.execute_program(&bound, &LaunchConfig::new(BLOCKS as u32, LANES as u32));
            done.unwrap_or_else(|error| panic!("{place}, seed {seed}: {error}\n{text}"));
            let found = executor.read_buffer::<u32>(out, 0, expected.len());
            let found = found.unwrap_or_else(|error| panic!("{place}, seed {seed}: {error}\n{text}"));
            compare(&found, &expected, &text, &format!("{place}, seed {seed}"));
        }
    }
}

#[test]
fn as_msl_through_its_shim_they_do_the_same() {
    for seed in 0..seeds(200) / 20 {
        let (text, expected) = case(seed);
        let verified = verify::verify(&program(&text)).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let kernel = lower::lower(&verified, lower::Options::default()).expect("a kernel");
        let source = render(&kernel, &Target::Msl).expect("MSL has all of it");
        let compiled =
            MslProgram::compile(&source.text, &source.entry).required("a program of the instruction set");
        let Some(compiled) = compiled.unwrap_or_else(|error| panic!("{error}\n{text}")) else {
            return;
        };
        let layout = ArgsLayout::of(kernel.kernel());
        let mut words = vec![0u32; layout.words as usize];
        words[ArgsLayout::GRID as usize..][..3].copy_from_slice(&[BLOCKS as u32, 1, 1]);
        words[layout.params[0] as usize] = expected.len() as u32;
        for order in [LaneOrder::Ascending, LaneOrder::Descending] {
            let args = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut buffers = [vec![0; 4 * expected.len()], args, vec![0; 64]];
            let launch = MslLaunch {
                order,
                ..MslLaunch::new([BLOCKS as u32, 1, 1], [LANES as u32, 1, 1])
            };
            let done = compiled.run_launch(&launch, &mut buffers);
            done.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
            assert_eq!(buffers[2][0], 0, "seed {seed}: a fault\n{text}");
            let found = buffers[0].chunks_exact(4);
            let found: Vec<u32> = found
                .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                .collect();
            compare(&found, &expected, &text, &format!("MSL, {order:?}, seed {seed}"));
        }
    }
}

// Where a driver ends loops, it says so: also where a compiler finds that a loop without effects never ends.
#[test]
fn loops_that_a_driver_ends_are_no_success() {
    for executor in common::executors() {
        if executor.device().info().limits.max_loop_turns.is_none() {
            continue;
        }
        for text in [
            "e: bra e",
            "stg.u32 x[0], 5\ne: bra e",
            "mov.u32 r0, 0\ne: add.u32 r0, r0, 1\n bra e",
            "e: ldg.u32 r0, x[0]\n bra e",
            "e: seteq.u32 p0, 0, 1\n@!p0 bra e\n stg.u32 x[0], 9",
            "mov.u32 r0, 0\ne: xor.u32 r0, r0, 1\n seteq.u32 p0, r0, 7\n@!p0 bra e\n stg.u32 x[0], 9",
        ] {
            let x = executor.allocate_buffer(64).expect("memory");
            let program = Assembler::new()
                .assemble("loops.pasm", &format!(".buffer x: u32\n{text}"))
                .expect("a program");
            let program = program.with_buffer("x", x).expect("x");
            let launched = executor.execute_program(&program, &LaunchConfig::new(1, 2));
            let done = launched.and_then(|()| executor.synchronize());
            let error = done.expect_err(text).to_string();
            assert!(error.contains("loops.pasm:"), "{text}: {error}");
            executor.free_buffer(x).expect("there");
        }
    }
}
