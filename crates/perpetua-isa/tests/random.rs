//! Random programs against the interpreter that knows nothing of structure: a program counter, registers, one lane after the other.

#![allow(clippy::expect_used, clippy::panic)]

mod common;

use perpetua_ir::ir::Scalar;
use perpetua_isa::instruction::{Guard, Index, Place, Special};
use perpetua_isa::lanes::Lanes;
use perpetua_isa::{
    Arguments, Instruction, Label, LaunchConfig, Memory, MemoryKind, Opcode, Operand, Program, Routine, Slot,
    library, new_executor,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const LANES: usize = 24;
const WORDS: usize = 64;
/// Registers in use; r20 counts what is left to do, so that all programs end.
const REGISTERS: u8 = 6;
const FUEL: u8 = 20;

// What a program must leave.
fn expected(program: &Program) -> Vec<u32> {
    let mut lanes = Lanes::new(program, vec![start()], Vec::new()).expect("buffers of 32 bits");
    lanes.run(3, 8).expect("plain instructions");
    lanes.buffers.remove(0)
}

fn start() -> Vec<u32> {
    (0..LANES * WORDS)
        .map(|i| (i as u32).wrapping_mul(2_654_435_761))
        .collect()
}

/// Bytes as choices.
struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % count
    }

    fn register(&mut self) -> u8 {
        self.below(usize::from(REGISTERS)) as u8
    }

    fn predicate(&mut self) -> u8 {
        self.below(4) as u8
    }
}

fn named(name: &str) -> Opcode {
    Opcode::from_name(name).unwrap_or_else(|| panic!("there is no `{name}`"))
}

fn instruction(name: &str, ty: Option<Scalar>, operands: Vec<Operand>) -> Instruction {
    Instruction {
        guard: None,
        opcode: named(name),
        ty,
        from: None,
        operands,
    }
}

// A memory index that stays inside: the low bits of a register, in r21.
fn masked(register: u8) -> Instruction {
    let operands = vec![
        Operand::Register(21),
        Operand::Register(register),
        Operand::Immediate(31),
    ];
    instruction("and", Some(Scalar::U32), operands)
}

fn element(memory: u16) -> Operand {
    Operand::Place(Place {
        memory,
        first: Some(Index::Register(21)),
        second: None,
        offset: 7,
    })
}

// Instructions without control flow.
fn plain(choices: &mut Choices<'_>, code: &mut Vec<Instruction>) {
    let ty = Some(Scalar::U32);
    let read = |choices: &mut Choices<'_>| match choices.below(4) {
        0 => Operand::Immediate([0, 1, 5, 0xffff_ffff, 0x8000_0000, 77][choices.below(6)]),
        _ => Operand::Register(choices.register()),
    };
    let mut made = match choices.below(8) {
        0 => {
            code.push(masked(choices.register()));
            instruction("ldg", ty, vec![Operand::Register(choices.register()), element(0)])
        }
        1 => {
            code.push(masked(choices.register()));
            let value = read(choices);
            instruction("stg", ty, vec![element(0), value])
        }
        2 | 3 => {
            let name = ["setlt", "seteq", "setge", "setne"][choices.below(4)];
            let (a, b) = (read(choices), read(choices));
            instruction(name, ty, vec![Operand::Predicate(choices.predicate()), a, b])
        }
        4 => {
            let name = ["and", "or", "xor"][choices.below(3)];
            let [d, a, b] = [0; 3].map(|_| Operand::Predicate(choices.predicate()));
            instruction(name, Some(Scalar::Bool), vec![d, a, b])
        }
        5 => {
            let p = Operand::Predicate(choices.predicate());
            let (a, b) = (read(choices), read(choices));
            instruction("sel", ty, vec![Operand::Register(choices.register()), p, a, b])
        }
        _ => {
            let name = ["add", "sub", "mul", "xor", "min", "rotate_left", "mul_high"][choices.below(7)];
            let (a, b) = (read(choices), read(choices));
            instruction(name, ty, vec![Operand::Register(choices.register()), a, b])
        }
    };
    if choices.below(4) == 0 {
        made.guard = Some(Guard {
            predicate: choices.predicate(),
            negated: choices.below(2) == 0,
        });
    }
    code.push(made);
}

// A routine: straight pieces with labels between them, and branches to any of them. Each branch back costs fuel.
fn routine(choices: &mut Choices<'_>, name: &str, calls: &[u16]) -> Routine {
    let pieces = 2 + choices.below(6);
    let mut code = Vec::new();
    let mut labels = Vec::new();
    if name.is_empty() {
        for register in 0..REGISTERS {
            let preset = [252, 253, 254][usize::from(register) % 3];
            let operands = vec![
                Operand::Register(register),
                Operand::Register(preset),
                Operand::Immediate(9),
            ];
            code.push(instruction("mul", Some(Scalar::U32), operands));
        }
        for predicate in 0..4 {
            let operands = vec![
                Operand::Predicate(predicate),
                Operand::Register(predicate),
                Operand::Immediate(20 * u64::from(predicate)),
            ];
            code.push(instruction("setlt", Some(Scalar::U32), operands));
        }
        let fuel = vec![Operand::Register(FUEL), Operand::Immediate(40)];
        code.push(instruction("mov", Some(Scalar::U32), fuel));
    }
    for piece in 0..pieces {
        labels.push(Label {
            name: format!("l{piece}"),
            at: code.len() as u32,
        });
        for _ in 0..choices.below(4) {
            plain(choices, &mut code);
        }
        if !calls.is_empty() && choices.below(3) == 0 {
            let called = calls[choices.below(calls.len())];
            let mut call = instruction("call", None, vec![Operand::Routine(called)]);
            if choices.below(2) == 0 {
                call.guard = Some(Guard {
                    predicate: choices.predicate(),
                    negated: false,
                });
            }
            code.push(call);
        }
        let goal = Operand::Label(choices.below(pieces) as u32);
        let guard = Some(Guard {
            predicate: choices.predicate(),
            negated: choices.below(2) == 0,
        });
        match choices.below(6) {
            0 | 1 => {
                // Takes from the fuel and goes; without fuel goes on.
                let operands = vec![Operand::Register(FUEL), goal];
                let guarded = choices.below(2) == 0;
                let made = instruction("loop", None, operands);
                code.push(Instruction {
                    guard: guard.filter(|_| guarded),
                    ..made
                });
            }
            2 | 3 if piece + 1 < pieces => {
                let ahead = piece + 1 + choices.below(pieces - piece - 1);
                let made = instruction("bra", None, vec![Operand::Label(ahead as u32)]);
                let guarded = choices.below(4) > 0;
                code.push(Instruction {
                    guard: guard.filter(|_| guarded),
                    ..made
                });
            }
            4 => {
                let name = ["ret", "exit"][choices.below(2)];
                code.push(Instruction {
                    guard,
                    ..instruction(name, None, Vec::new())
                });
            }
            _ => {}
        }
    }
    Routine {
        name: name.into(),
        lines: Vec::new(),
        code,
        labels,
    }
}

fn program(bytes: &[u8]) -> Program {
    let mut choices = Choices { bytes: bytes.iter() };
    let leaf = routine(&mut choices, "leaf", &[]);
    let middle = routine(&mut choices, "middle", &[2]);
    let own = routine(&mut choices, "", &[1, 2]);
    Program {
        name: "random".into(),
        memories: vec![Memory {
            name: "words".into(),
            element: Scalar::U32,
            kind: MemoryKind::Buffer {
                writable: true,
                handle: None,
            },
        }],
        routines: vec![own, middle, leaf],
        ..Program::default()
    }
}

// On a device each lane's words begin at its own place: the index gets that added.
fn on_device(mut program: Program) -> Program {
    for routine in &mut program.routines {
        for instruction in &mut routine.code {
            let slots = &instruction.opcode.row().operands;
            for (slot, operand) in slots.iter().zip(&mut instruction.operands) {
                if let (Slot::Place(..), Operand::Place(place)) = (slot, operand) {
                    place.second = Some(Index::Register(22));
                }
            }
        }
    }
    let first = vec![
        Operand::Register(22),
        Operand::Special(Special::GlobalId),
        Operand::Immediate(WORDS as u64),
    ];
    let own = &mut program.routines[0];
    own.code.insert(0, instruction("mul", Some(Scalar::U32), first));
    own.labels.iter_mut().for_each(|label| label.at += 1);
    program
}

#[test]
fn random_control_flow_does_what_a_program_counter_does() {
    let executors = common::executors();
    let cases = std::env::var("PERPETUA_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(300);
    for (i, executor) in executors.iter().enumerate() {
        let config = Config {
            // Drivers take their time with each.
            cases: if i == 0 { cases } else { cases / 20 },
            failure_persistence: None,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(
            config,
            proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
        );
        let bytes = proptest::collection::vec(any::<u8>(), 0..400);
        let outcome = runner.run(&bytes, |bytes| {
            let program = program(&bytes);
            let words = executor.allocate_buffer(4 * LANES * WORDS).unwrap();
            executor.write_buffer(words, 0, &start()).unwrap();
            let bound = on_device(program.clone()).with_buffer("words", words).unwrap();
            let done = executor.execute_program(&bound, &LaunchConfig::new(3, 8));
            prop_assert!(done.is_ok(), "{}\n{program}", done.unwrap_err());
            let found = executor.read_buffer::<u32>(words, 0, LANES * WORDS);
            executor.free_buffer(words).unwrap();
            let found = found.map_err(|error| TestCaseError::fail(format!("{error}\n{program}")))?;
            let expected = expected(&bound);
            let wrong = found.iter().zip(&expected).position(|(a, b)| a != b);
            prop_assert!(wrong.is_none(), "word {wrong:?} differs in\n{bound}");
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{error}");
        }
    }
}

#[test]
fn lanes_do_what_the_executor_does() {
    let executor = new_executor().expect("the CPU");
    for (name, parameters) in [
        ("atlas_add_f32", vec![]),
        ("atlas_sub_f32", vec![]),
        ("atlas_div_f32", vec![]),
        ("atlas_max_f32", vec![]),
        ("atlas_abs_f32", vec![]),
        ("atlas_mul_i32", vec![]),
        ("atlas_xor_i32", vec![]),
        ("saxpy", vec![0.75f32]),
    ] {
        let mut program = library(name).expect("in the library");
        let columns: Vec<Vec<u32>> = (1..=program.memories.len() as u32)
            .map(|seed| {
                (0..100)
                    .map(|i| ((i * 37 + seed) as f32 / 8.0 - 9.0).to_bits())
                    .collect()
            })
            .collect();
        let mut handles = Vec::new();
        for (memory, column) in program.memories.clone().iter().zip(&columns) {
            let handle = executor.allocate_buffer(400).expect("memory");
            executor.write_buffer(handle, 0, column).expect("a write");
            program = program.with_buffer(&memory.name, handle).expect("its own name");
            handles.push(handle);
        }
        let bits = parameters
            .iter()
            .map(|value| u64::from(value.to_bits()))
            .collect();
        let mut lanes = Lanes::new(&program, columns, bits).expect("a simple program");
        lanes.run(2, 64).expect("simple instructions");
        let arguments = program
            .parameters
            .iter()
            .zip(&parameters)
            .fold(Arguments::new(), |all, (parameter, value)| {
                all.with(parameter.name.as_str(), *value)
            });
        executor
            .execute(&program, &LaunchConfig::linear(100, 64), &arguments)
            .expect("a launch");
        for (handle, found) in handles.iter().zip(&lanes.buffers) {
            assert_eq!(
                &executor.read_buffer::<u32>(*handle, 0, 100).expect("a read"),
                found,
                "{name}"
            );
        }
    }
}

#[test]
fn forms_of_random_programs_are_exact() {
    let mut runner = TestRunner::deterministic();
    let bytes = proptest::collection::vec(any::<u8>(), 0..400);
    let outcome = runner.run(&bytes, |bytes| {
        let program = on_device(program(&bytes));
        prop_assert_eq!(Program::decode(&program.encode()), Ok(program.clone()));
        let text = program.to_string();
        let again: Program = text
            .parse()
            .map_err(|error| TestCaseError::fail(format!("{error}")))?;
        prop_assert_eq!(again.stripped(), program);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn the_decoder_survives_what_is_no_program() {
    let mut runner = TestRunner::deterministic();
    let changes = proptest::collection::vec((any::<u16>(), any::<u8>()), 1..8);
    let outcome = runner.run(
        &(
            proptest::collection::vec(any::<u8>(), 0..300),
            changes,
            any::<u16>(),
        ),
        |input| {
            let (bytes, changes, len) = input;
            let mut form = program(&bytes).encode();
            for (at, value) in changes {
                let at = usize::from(at) % form.len();
                form[at] = value;
            }
            form.truncate(form.len() - usize::from(len) % 3);
            // So that it is not the checksum that refuses.
            if form.len() >= 12 {
                let sum = crc32fast::hash(&form[12..]).to_le_bytes();
                form[8..12].copy_from_slice(&sum);
            }
            if let Ok(program) = Program::decode(&form) {
                // Wrong or not: it is judged, printed and encoded.
                let _ = perpetua_isa::verify::verify(&program).map(|verified| {
                    perpetua_isa::lower::lower(&verified, perpetua_isa::lower::Options::default())
                });
                let _ = program.to_string();
                prop_assert_eq!(Program::decode(&program.encode()), Ok(program.clone()));
            }
            let _ = Program::decode(&bytes);
            Ok(())
        },
    );
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
