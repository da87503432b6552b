//! The assembler against a decoder of others: every instruction of generated kernels, at every width, is read as what was asked for.

use std::collections::HashMap;

use iced_x86::{Decoder, DecoderOptions, Instruction, MandatoryPrefix, OpCodeTableKind, OpKind, Register};

use super::super::{Generated, Width, generate};
use super::{Meant, Mem, Pp, Rm, Vop};
use crate::interp::flatten::flatten;
use crate::testing::{self, Choices, Config, tape};
use perpetua_ir::pass::{Sums, expand_library};

/// All instructions by where they begin.
fn decoded(bytes: &[u8]) -> HashMap<usize, Instruction> {
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let mut all = HashMap::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        assert!(!instruction.is_invalid(), "nothing at {:#x}", instruction.ip());
        all.insert(instruction.ip() as usize, instruction);
    }
    all
}

/// What was asked of the assembler.
fn meant(code: &Generated) -> &[Meant] {
    let meant = code.meant.downcast_ref::<Vec<Meant>>();
    meant.expect("code for x86-64")
}

/// What is read there that was not meant.
fn difference(meant: &Meant, found: &Instruction) -> Option<&'static str> {
    let code = found.op_code();
    let wrong = |is: bool, what: &'static str| is.then_some(what);
    let group = code.group_index() >= 0;
    let mut result = wrong(code.op_code() as u8 != meant.opcode, "opcode");
    if let Some(Vop(pp, map, w, _)) = meant.op {
        let table = match map {
            1 => OpCodeTableKind::T0F,
            2 => OpCodeTableKind::T0F38,
            _ => OpCodeTableKind::T0F3A,
        };
        let prefix = match pp {
            Pp::None => matches!(
                code.mandatory_prefix(),
                MandatoryPrefix::None | MandatoryPrefix::PNP
            ),
            Pp::P66 => code.mandatory_prefix() == MandatoryPrefix::P66,
            Pp::PF3 => code.mandatory_prefix() == MandatoryPrefix::PF3,
            Pp::PF2 => code.mandatory_prefix() == MandatoryPrefix::PF2,
        };
        let mask = match meant.ev.k {
            0 => Register::None,
            k => Register::K0 + u32::from(k),
        };
        let broadcasts = meant.ev.b && matches!(meant.rm, Rm::Mem(_));
        result = result
            .or(wrong(code.table() != table, "opcode map"))
            .or(wrong(!prefix, "prefix"))
            .or(wrong(!code.is_wig() && code.w() != u32::from(w), "W"))
            .or(wrong(
                !code.is_lig() && code.l() != u32::from(meant.length),
                "length",
            ))
            .or(wrong(found.op_mask() != mask, "mask"))
            .or(wrong(found.zeroing_masking() != meant.ev.z, "zeroing"))
            .or(wrong(found.is_broadcast() != broadcasts, "broadcast"));
    }
    if group {
        result = result.or(wrong(code.group_index() != i32::from(meant.reg & 7), "group"));
    }
    // A choice by a mask names it in its last byte.
    let chooses = matches!(meant.op, Some(Vop(Pp::P66, 3, _, 0x4A)));
    let operands = if chooses { 3 } else { found.op_count() };
    let registers: Vec<u8> = (0..operands)
        .filter(|i| found.op_kind(*i) == OpKind::Register)
        .map(|i| found.op_register(i).number() as u8)
        .collect();
    let mut possible = vec![meant.reg];
    // General instructions have none.
    possible.extend(meant.op.map(|_| meant.second));
    match meant.rm {
        Rm::Reg(r) => {
            possible.push(r);
            result = result.or(wrong(!registers.contains(&r), "last register"));
        }
        Rm::Mem(Mem { base, index, disp }) => {
            let found_index = match found.memory_index() {
                Register::None => None,
                r => Some((
                    r.number() as u8,
                    found.memory_index_scale().trailing_zeros() as u8,
                )),
            };
            result = result
                .or(wrong(found.memory_base().number() as u8 != base, "base"))
                .or(wrong(found_index != index, "index"))
                .or(wrong(
                    found.memory_displacement64() as i32 != disp,
                    "displacement",
                ));
        }
    }
    let unary = group || matches!(meant.opcode, 0x90..=0x9F) && meant.op.is_none();
    result
        .or(wrong(!unary && !registers.contains(&meant.reg), "first register"))
        .or(wrong(
            registers.iter().any(|r| !possible.contains(r)),
            "another register",
        ))
}

fn check(code: &Generated, what: &str) {
    let all = decoded(&code.bytes);
    let asked = meant(code);
    assert!(!asked.is_empty());
    for meant in asked {
        let found = all.get(&meant.at);
        let found = found.unwrap_or_else(|| panic!("{what}: nothing begins at {:#x}: {meant:?}", meant.at));
        if let Some(wrong) = difference(meant, found) {
            panic!(
                "{what}, {:#x}: {wrong}: meant {meant:?}, found {:?}",
                meant.at,
                found.code()
            );
        }
    }
    for jump in all.values().filter(|i| i.is_jmp_near() || i.is_jcc_near()) {
        assert!(
            all.contains_key(&(jump.near_branch_target() as usize)),
            "{what}: a jump into an instruction"
        );
    }
}

fn generated(config: &Config, seed: u64, width: Width) -> Generated {
    let tape = tape(seed, config.statements * 30);
    let case = testing::generate(config, &mut Choices::new(&tape)).unwrap();
    let program = flatten(&expand_library(case.kernel, Sums::Rearranged)).unwrap();
    generate(&program, width).unwrap()
}

#[test]
fn instructions_decode_to_what_was_meant() {
    for config in [Config::default(), Config::full()] {
        for seed in 0..60 {
            for width in [Width::EightAvx2, Width::Eight, Width::Sixteen] {
                check(
                    &generated(&config, seed, width),
                    &format!("seed {seed}, {width:?}"),
                );
            }
        }
    }
}

/// The comparison notices a register, a base and a displacement that are others.
#[test]
fn what_was_not_meant_is_noticed() {
    for width in [Width::EightAvx2, Width::Sixteen] {
        let code = generated(&Config::full(), 1, width);
        let all = decoded(&code.bytes);
        let mut noticed = 0;
        let asked = meant(&code);
        for meant in asked {
            let mut other = *meant;
            match &mut other.rm {
                Rm::Reg(r) => *r ^= 8,
                Rm::Mem(m) => m.disp += 8,
            }
            noticed += usize::from(difference(&other, &all[&meant.at]).is_some());
        }
        // Of two operands that change their places nothing is seen.
        assert!(noticed * 20 > asked.len() * 19, "{noticed} of {}", asked.len());
    }
}
