//! The assembler against a decoder of others: every form of an instruction, read as what was asked for.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

use super::*;

/// What the decoder reads in what was written, an instruction a line.
fn read(write: impl FnOnce(&mut Assembler)) -> Vec<String> {
    let mut asm = Assembler::new(0x40);
    write(&mut asm);
    let decoder = InstDecoder::default();
    let words = asm.finish().unwrap().bytes;
    words
        .chunks_exact(4)
        .map(|word| match decoder.decode(&mut U8Reader::new(word)) {
            Ok(instruction) => instruction.to_string(),
            Err(e) => format!("{e:?} {:08x}", u32::from_le_bytes(word.try_into().unwrap())),
        })
        .collect()
}

/// Every form of an instruction, as a decoder of others reads it, and as it was compared with binutils' when it was written down.
#[test]
fn instructions_are_read_as_they_were_meant() {
    let mut found = Vec::new();
    let at = Mem {
        base: 5,
        index: Some((6, 3)),
        disp: 0x18,
    };
    found.extend(read(|a| {
        for w in [true, false] {
            a.mov(w, 7, Rm::Reg(8));
            for op in [Alu::Add, Alu::Or, Alu::And, Alu::Sub, Alu::Xor, Alu::Compare] {
                a.alu(op, w, 7, Rm::Reg(8));
                a.alu_imm(op, w, Rm::Reg(7), 12);
                a.alu_imm(op, w, Rm::Reg(7), -12);
                a.alu_imm(op, w, Rm::Reg(7), 0x12345);
            }
            a.imul(w, 7, Rm::Reg(8));
            for op in [Shift::Left, Shift::Right, Shift::Arithmetic] {
                a.shift_imm(op, w, 7, 5);
                a.shift(op, w, 7, Rm::Reg(8), 9);
            }
            a.negate(w, 7);
            a.complement(w, 7);
            for signed in [true, false] {
                a.divide(signed, w, true);
                a.divide(signed, w, false);
            }
            a.test(w, 7);
        }
    }));

    found.extend(read(|a| {
        a.enter();
        a.leave();
        a.call(8, 9);
        for v in [
            0,
            1,
            0x10000,
            u64::MAX,
            0xFFFF_FFFF_1234_FFFF,
            0x1234_5678_9ABC_DEF0,
        ] {
            a.mov_imm(7, v);
        }
        for size in [1, 2, 4, 8] {
            a.load(size, 7, at);
            a.store(size, Mem::at(9, 0x40), 7);
            a.load(size, 7, Mem::at(9, -8));
            a.load(size, 7, Mem::at(9, 0x123456))
        }
        a.transfer(8, Mem::at(7, 8), at);
        a.alu_imm(Alu::Add, true, Rm::Mem(Mem::at(28, 8)), 1);
        a.imul_imm(7, 8, 12);
        a.movsxd(7, 8);
        a.lowest(7, 8);
        let l = a.label();
        a.place(l);
        a.drop_lowest(7, l);
        a.setcc(Cc::B, 7);
        a.cmov(Cc::G, 7, Rm::Reg(8));
        a.jmp(l);
        for cc in [
            Cc::B,
            Cc::Ae,
            Cc::E,
            Cc::Ne,
            Cc::Be,
            Cc::A,
            Cc::S,
            Cc::L,
            Cc::Ge,
            Cc::Le,
            Cc::G,
        ] {
            a.jcc(cc, l);
        }
        a.jmp_to(at);
        a.lea(l);
        a.fence();
        for own in [true, false] {
            for (act, s) in [
                (AtomicKind::Load, Scalar::U8),
                (AtomicKind::Load, Scalar::U64),
                (AtomicKind::Store, Scalar::U32),
                (AtomicKind::CompareExchange, Scalar::U32),
                (AtomicKind::Update(AtomicOp::Add), Scalar::U64),
                (AtomicKind::Update(AtomicOp::Add), Scalar::F64),
                (AtomicKind::Update(AtomicOp::Add), Scalar::F32),
                (AtomicKind::Update(AtomicOp::Sub), Scalar::U32),
                (AtomicKind::Update(AtomicOp::Min), Scalar::I32),
                (AtomicKind::Update(AtomicOp::Max), Scalar::U32),
                (AtomicKind::Update(AtomicOp::Exchange), Scalar::F32),
                (AtomicKind::Update(AtomicOp::And), Scalar::U32),
                (AtomicKind::Update(AtomicOp::Xor), Scalar::U32),
                (AtomicKind::Update(AtomicOp::Or), Scalar::U32),
            ] {
                a.atomic(act, s, own, Mem::at(D, 8), 0x80);
            }
        }
    }));

    found.extend(read(|a| {
        use BinaryOp::*;
        a.vmov(1, 2);
        a.vload(1, Mem::at(9, 0x20));
        a.vload(1, at);
        a.vstore(Mem::at(9, 8), 1);
        a.zero(1);
        for w in [true, false] {
            a.splat(w, 1, Rm::Reg(7));
            a.splat(w, 1, Rm::Mem(Mem::at(9, 8)));
        }
        for s in [
            Scalar::U32,
            Scalar::I32,
            Scalar::U64,
            Scalar::I64,
            Scalar::F32,
            Scalar::F64,
        ] {
            for op in [Add, Sub, Mul, Div, And, Or, Xor, Min, Max, Shl, Shr] {
                if table::binary(op, s).is_some() {
                    a.binary(op, s, 1, 2, Source::Reg(3));
                }
            }
            for op in [Eq, Ne, Lt, Le, Gt, Ge] {
                a.compare(op, s, 1, 2, Source::Reg(3));
            }
            if s.is_float() {
                for op in [
                    UnaryOp::Sqrt,
                    UnaryOp::RoundTiesEven,
                    UnaryOp::Floor,
                    UnaryOp::Ceil,
                    UnaryOp::Trunc,
                ] {
                    a.unary(op, s, 1, 2);
                }
                a.fma(s.size() == 8, 1, 2, 3, 1);
                a.fma(s.size() == 8, 1, 1, 3, 4);
            } else {
                for op in [UnaryOp::Abs, UnaryOp::LeadingZeros] {
                    if table::unary(op, s).is_some() {
                        a.unary(op, s, 1, 2);
                    }
                }
                for by in [0, 1, 31] {
                    a.vshift(Shl, s, 1, 2, by);
                    a.vshift(Shr, s, 1, 2, by);
                }
            }
        }
        use Scalar::*;
        for (from, to) in [
            (I32, F32),
            (U32, F32),
            (I64, F64),
            (U64, F64),
            (F32, I32),
            (F32, U32),
            (F64, U64),
            (F64, I64),
            (F16, F32),
            (F32, F16),
        ] {
            a.convert(from, to, 1, 2);
        }
        for (from, to) in [(I32, I64), (U32, U64), (F32, F64), (I32, F64), (U32, F64)] {
            for half in 0..2 {
                a.widen(from, to, 1, 2, half);
            }
        }
        for (from, to) in [(U64, U32), (F64, F32), (F64, I32), (F64, U32)] {
            a.narrow(from, to, 1, 2, 3);
        }
        a.mask_of_bits(25, 7);
        a.bits_of_mask(7, 25);
        a.kset(25, true);
        a.kset(25, false);
        for op in [MOp::And, MOp::AndNot, MOp::Or, MOp::Xor, MOp::Xnor] {
            a.klogic(op, 1, 2, 3);
        }
        let l = a.label();
        a.place(l);
        a.kjump(true, 25, l);
        a.kjump(false, 25, l);
        a.first_lanes(25);
        for part in 0..2 {
            a.half_mask(27, part, true);
        }
        a.pair(1, 2, 3);
        a.not_zero(1, 2);
        a.ones(1, 2, at);
        a.blend(true, 1, 2, 3, 4);
        a.blend(true, 1, 2, 1, 4);
        a.blend(false, 1, 2, 3, 1);
        a.blend(false, 1, 1, 3, 4);
        for size in [1, 2, 4, 8] {
            for part in 0..(1 + size as usize / 8) {
                a.load_run(size, 1, at, None, part);
                a.store_run(size, at, 1, Some(27), part);
                let each = Mem {
                    base: 9,
                    index: Some((X3, 2)),
                    disp: 16,
                };
                a.gather(size, 1, each, 27, part);
                a.scatter(size, each, 1, 27, part);
            }
        }
        a.store_own(8, at, 1, 27, 1);
        a.kall(25);
        a.kjump_all(25, l, Some(l));
        a.kinside(25, 27, Some(l), l);
        a.several(1, l);
    }));
    let found = found.join("\n") + "\n";
    if std::env::var_os("PERPETUA_BLESS").is_some() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src/interp/code/aarch64/instructions.txt"
        );
        return std::fs::write(file, found).unwrap();
    }
    let expected = include_str!("instructions.txt");
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "instruction {number}");
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

/// Generated kernels become instructions that there are.
#[cfg(feature = "testing")]
#[test]
fn kernels_become_instructions() {
    use crate::testing::{self, Choices, Config, tape};

    let decoder = InstDecoder::default();
    for config in [Config::default(), Config::full()] {
        for seed in 0..60 {
            let tape = tape(seed, config.statements * 30);
            let case = testing::generate(&config, &mut Choices::new(&tape)).unwrap();
            let kernel = perpetua_ir::pass::expand_library(case.kernel, perpetua_ir::pass::Sums::Rearranged);
            let program = crate::interp::flatten::flatten(&kernel).unwrap();
            let code = super::super::generate(&program, super::super::Width::FourNeon).unwrap();
            for (at, word) in code.bytes.chunks(4).enumerate() {
                let read = decoder.decode(&mut U8Reader::new(word));
                assert!(read.is_ok(), "seed {seed}: nothing at {:#x}: {word:x?}", 4 * at);
            }
        }
    }
}
