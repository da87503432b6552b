//! The specification's table, generated of the table that assembler, verifier and lowering read.

use std::fmt::Write;

use perpetua_ir::ir::Scalar;

use crate::instruction::{PRESET, Special};
use crate::opcode::{Opcode, Row, Slot, Space, Ty, Use};

/// The instruction set as Markdown: opcodes with types, operands and meaning; specials; registers that hold something at the start.
pub fn markdown() -> String {
    let mut text = String::from(HEAD);
    // Writing to a string does not fail.
    let _ = opcodes(&mut text);
    let _ = rest(&mut text);
    text
}

const HEAD: &str = "\
# Perpetua's instruction set

A program is routines of instructions, with the memories and parameters that they name. A lane has 256 registers, each of which holds a value of
any type, and 16 predicates. Types: `i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64`, and `pred` for predicates. An
instruction is written `@p0 opcode.type operands`; the guard `@p0` (or `@!p0`) may be left out. Arithmetic is Rust's: integers wrap, shift
amounts are masked, floats are IEEE without contraction.

A pool (`.pool heap`) is memory that the executor keeps for all programs. `pool_alloc` takes a block out of it and gives a handle, which a lane
may pass on, in a buffer or in a block, to other lanes and to programs that run later. A block is 16 bytes or a multiple of that,
holds zeros, and shares no byte with another block, however many lanes take one at the same time. A pool has at most one block for each 64
bytes. A handle is valid until its block is given back; a handle that was made up or is old is a fault. An element of a
block is `heap[handle + index]`, where the index counts elements of the instruction's type. Where several lanes store to one element, it
holds the value that one of them stored.

The verifier refuses a program that reads a register which not every path has written or which holds another type, that uses a missing
name or a constant index out of bounds, whose routine calls itself, or whose barrier is not reached by all lanes of a block. At run time
an index out of bounds, an integer division by zero or of MIN by -1, a pool without room and a handle without a block are faults that name
the program's line.

## Instructions

Operands: `d` is written, `a`, `b`, `c` are read (a register, a constant, a special, a parameter, or `len(memory)`), `p` is a
predicate, `m[i]` an element of a memory, `r…` the first of several registers, `n` a number.

| instruction | operands | types | meaning |
|---|---|---|---|
";

fn opcodes(text: &mut String) -> std::fmt::Result {
    for opcode in Opcode::all() {
        let row = opcode.row();
        let mut names = format!("`{}`", row.name);
        for alias in &row.aliases {
            write!(names, ", `{alias}`")?;
        }
        let types = match (row.types, row.from) {
            (Some(domain), false) => domain.describe(),
            (Some(_), true) => "any to any",
            (None, _) => "",
        };
        writeln!(
            text,
            "| {names} | {} | {types} | {} |",
            operands(row),
            row.doc.replace('|', "\\|")
        )?;
    }
    Ok(())
}

fn operands(row: &Row) -> String {
    let mut reads = ["a", "b", "c"].into_iter();
    let names = row.operands.iter().map(|slot| match slot {
        Slot::Write(Ty::Fixed(Scalar::Bool)) => "p".into(),
        Slot::Write(_) => "d".into(),
        Slot::Read(Ty::Fixed(Scalar::Bool)) => "p".into(),
        Slot::Read(Ty::Fixed(ty)) => format!("{}: {ty}", reads.next().unwrap_or("x")),
        Slot::Read(_) => reads.next().unwrap_or("x").into(),
        Slot::Place(space, access) => {
            let what = match space {
                Space::Global => "buffer",
                Space::Shared => "shared",
                Space::Any => "memory",
                Space::Constant => "constants",
                Space::Pool => "pool",
            };
            let index = match space {
                Space::Pool => "h + i",
                _ => "i",
            };
            match access {
                Use::Load => format!("{what}[{index}]"),
                Use::Store => format!("{what}[{index}] (written)"),
            }
        }
        Slot::Label => "label".into(),
        Slot::Routine => "routine".into(),
        Slot::Run => "r…".into(),
        Slot::Sums => "r… (written)".into(),
        Slot::Count => "n".into(),
        Slot::Pool => "pool".into(),
    });
    names.collect::<Vec<String>>().join(", ")
}

fn rest(text: &mut String) -> std::fmt::Result {
    text.push_str("\n## Specials\n\nRead as `u32` or `u64`: ");
    let specials: Vec<String> = Special::all()
        .map(|special| format!("`%{}`", special.name()))
        .collect();
    writeln!(text, "{}.", specials.join(", "))?;
    text.push_str("\nRegisters that hold one before the first instruction: ");
    let preset = PRESET.map(|(register, ty, special)| format!("r{register} `%{}` ({ty})", special.name()));
    writeln!(text, "{}.", preset.join(", "))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_the_table() {
        let page = include_str!("../../../docs/isa.md");
        assert!(
            page == super::markdown(),
            "docs/isa.md is old: write it anew with `perpetua isa spec > docs/isa.md`"
        );
    }
}
