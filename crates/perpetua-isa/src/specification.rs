//! The specification, generated from the tables and limits that assembler, verifier and lowering read.

use std::fmt::Write;

use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::Domain;
use perpetua_ir::verify::{MAX_BLOCK_LANES, MAX_SHARED_BYTES};

use crate::cost;
use crate::executor::{Limits, MAX_BLOCKS, MAX_CONSTANTS, MAX_CONSTANTS_READ};
use crate::instruction::{PRESET, Special};
use crate::lower::{MAX_LANES, MAX_NESTING};
use crate::opcode::{Meaning, Opcode, Row, Slot, Space, Ty, Use};
use crate::text::source::{MAX_ARGUMENTS, MAX_BYTES, MAX_DEPTH, MAX_LINE, MAX_LINES};
use crate::text::{DIRECTIVES, MAX_INCLUDED};
use crate::verify::{MAX_CALL_DEPTH, MAX_DECLARATIONS, MAX_INSTRUCTIONS};

/// The instruction set as Markdown: its rules, the text form, limits, and the table of instructions with operands, types, meaning and faults.
pub fn markdown() -> String {
    let mut text = String::from(HEAD);
    // Writing to a string does not fail.
    let _ = text_form(&mut text);
    text.push_str(TABLE);
    let _ = opcodes(&mut text);
    let _ = rest(&mut text);
    text + &crate::binary::section()
}

const HEAD: &str = "\
# Perpetua's instruction set

A program is routines of instructions, with the memories and parameters that they name. All its routines work on the same 256 registers and 16
predicates of a lane. A register holds what was written last, of any type; a predicate holds true or false. Types: `i8 i16 i32 i64 u8 u16
u32 u64 f16 bf16 f32 f64`, and `pred` for predicates (`bool` in the IR).

```text
; y = a x + y
.program saxpy
.buffer x: f32
.buffer y: f32
.param a: f32

    setge.u64 p0, %gid, len(x)
@p0 exit
    ldg.f32 r0, x[%gid]
    ldg.f32 r1, y[%gid]
    fma.f32 r1, a, r0, r1
    stg.f32 y[%gid], r1
```

## Arithmetic

- Integers wrap, and shifts take their amounts modulo the width, as Rust's `wrapping_` methods do.
- Floats are IEEE 754: each instruction rounds once, to the nearest, with denormals. The functions that are not correctly rounded (`exp`, `sin`
  and their kin) keep the bounds in [the language's tables](book/src/tables.md). On CUDA and the CPU all results are equal to the bit, but that CUDA's
  `atom_add` and `grid_add` of `f32` in buffers take denormals for zeros, as NVIDIA's hardware does.
- On wgpu integers, conversions, comparisons and `fma` are equal to the CPU's. A driver may fuse a product into the sum that takes it (`mad`, or `mul`
  and then `add`), flush denormals, and round `div` and `sqrt` less exactly; `Device::info().numeric_probe` says what this one does.
- On wgpu a kernel has as many buffers as `Device::info().limits.max_buffers` says, often 31 or fewer, and the functions of `f64` (`exp`, `sin` and their kin) are
  refused, as are types that the device lacks. There is no `fence_block`, `fence_device` or `fence_system`. `bar` orders a block's memory, and the end of a
  launch that of the device. Some drivers also end loops early: Mesa's llvmpipe lets a lane's loops take 65,535 turns together in a launch, those of `copy`,
  `fill` and `pool_alloc` among them. What a driver allows is `Device::info().limits.max_loop_turns`; more is a fault there. But a driver may remove loops that have no effect (no store, no atomic
  instruction, no fault of an instruction in them), those that never end among them: a trusted program goes on behind them.
- `min` and `max` give the other operand where one is NaN, so `relu` and `hard_sigmoid` of NaN are 0, and `clamp` gives its lower bound.
- The activations are the formulas in the table, instruction by instruction: `silu` and `gelu` of -inf are NaN, as is `softsign` of an infinity.
- f16 and bf16 are computed in f32 and rounded after each instruction.
- `group_` combines values in the order of a tree, the same on every device: of n values, value i takes in value i + n - n / 2, for each i below n / 2
  (rounded down), until one is left. Value i is that of the block's lane i, counted along x, then y, then z.

## Memory

- Atomic instructions are relaxed: they order no other access. `bar` orders the block's memory, and fences order memory for whom they name.
- Where several lanes store to one element without atomics, it holds the value that one of them stored.
- A pool (`.pool heap`) is memory that the executor keeps for all programs. `pool_alloc` takes a block out of it and gives a handle, which a lane
  may pass on, in a buffer or in a block, to other lanes and to programs that run later. A block is 16 bytes or a multiple of that,
  holds zeros, and shares no byte with another block, however many lanes take one at the same time. Its length is what was asked for, in whole elements:
  an index beyond is a fault, which calls the block a `span`. A pool has at most one block for each 64 bytes.
  Beside a request for more than is left, one that would fit may fail, too; the room stays.
- A handle is valid until its block is given back, and bad for the next 2,047 blocks that lie there. A handle that was made up for a block in use is a fault,
  but for one chance in 2,048: programs that must not read each other's blocks need pools of their own. Handles differ from run to run.
- On devices with ordered atomics (CUDA and the CPU) a lane that has a block's handle from another lane of its launch finds the block's zeros, and nothing
  that its last owner stores. On wgpu a barrier or the launch's end orders that.
- An element of a block is `heap[handle + index]`, where the index counts elements of the instruction's type.

## Errors

Before a program runs, the verifier refuses one that reads a register which not every way has written or which holds another type, that uses a
missing name or a constant index out of bounds, whose routine calls itself, or whose barrier is not reached by all lanes of a block. What registers hold in a routine is checked
where it is called: one that nobody calls may read what nobody writes. A
guarded write counts as one where its opposite follows in straight code (`@p0 mov.u32 r0, 1`, then `@!p0 mov.u32 r0, 2`); where a guarded instruction
is to write a register that is read later without the guard, write the register in front of it. Errors of the text come with line and
column, the text underlined; errors of the verifier name the file's line and the instruction.

At run time the faults in the table end the lane, and the launch fails with an error that names the file's line, block and lane. Untrusted programs
(`Executor::untrusted`) fault, too, where their budget of instructions is spent: each turn of a loop takes from it what its instructions weigh, by the table's last column: a function as
many as it comes to, `group_` as many as in a block of 1,024 lanes, an atomic instruction as if all lanes of a subgroup changed the same element. On GPUs, where a driver ends what runs too long, their grids are launched in
parts of at most as many lanes as run at once where they have loops: the first part with a fault is the last that runs, and a block that waits for one of
another part waits for nothing. Where they have none, what the instructions of all lanes together weigh is limited, to 2^20 for each lane that runs at once.

A budget is a lane's own: how long a grid may take is the budget times its lanes. It counts instructions, not time: one that waits for memory, or for atomics of all other lanes, takes
longer than one that does not. What bounds the time of an untrusted program is its process: a job of `serve`
has `--seconds`, and `perpetua isa run --untrusted` a minute, or what `--time-limit` says; both end the process. Nothing bounds the time of a trusted program or a
`#[kernel]` but the driver's watchdog, where there is one: a loop that waits for what another lane stores waits for ever if that lane has ended with a fault. Let
lanes that depend on one another meet at `bar`, which a lane with a fault still comes to; `--time-limit` of `perpetua run` and `perpetua isa run` ends what hangs.

";

// The text form: what stands on a line, the directives, the limits.
fn text_form(text: &mut String) -> std::fmt::Result {
    let Limits {
        instructions,
        memory,
        size,
    } = Limits::default();
    text.push_str(FORM);
    for (form, doc) in DIRECTIVES {
        writeln!(text, "| `{form}` | {doc} |")?;
    }
    writeln!(
        text,
        "\n## Limits\n\n\
        A program has at most {MAX_INSTRUCTIONS} instructions, also with its calls, tiles and runs of registers written out, and {MAX_DECLARATIONS} each of \
        memories, parameters, routines, and labels of a routine. Calls are at most {MAX_CALL_DEPTH} deep. Shared memory, and a table of constants, has at most {MAX_SHARED_BYTES} bytes, \
        and less on most devices. A block has at most {MAX_BLOCK_LANES} lanes where `.block` says how many, or where it reduces {MAX_LANES}; else the device \
        bounds them. A text has at most {MAX_LINES} lines and {MAX_BYTES} bytes with all includes and \
        macros written out, {MAX_DEPTH} deep, a line {MAX_LINE} bytes, a macro {MAX_ARGUMENTS} arguments, an included file {MAX_INCLUDED} bytes, a name 255; what stands in macros counts where it stands and wherever it is used. Loops \
        and conditions may lie within each other as deep as one likes: where they come to more than {MAX_NESTING} levels, a loop of two often, or have several entries, the program runs as one loop \
        around its parts, which is slower, and whose every turn counts where a driver bounds them.\n\n\
        Untrusted programs are held to less. `Limits` has for each lane {instructions} instructions in loops, about; for all buffers and pools of an executor \
        {memory} bytes; for a program {size} instructions with its calls, tiles and runs of registers written out; others can be chosen. It has at most \
        {MAX_BLOCKS} straight parts: runs of instructions that end at a label to which something branches, or behind `bra`, `loop`, `exit` or `ret`, also with \
        the calls written out. Its tables of constants have {MAX_CONSTANTS} elements together, and \
        {MAX_CONSTANTS_READ} with each counted for each instruction that reads it. The error names the line at which there is too much.\n"
    )
}

const FORM: &str = "\
## Text

- One instruction a line: `@p0 opcode.type operands`. The guard `@p0` (or `@!p0`) may be left out; the instruction does nothing in lanes where it is
  false. Conversions have two types, to and from: `cvt.f32.i32`. In an opcode `.` may stand for `_` (`atom.add`, `bar.sync`), and case does not matter.
- `label:` names the place in front of the next instruction of its routine, whose line it may share. A routine is checked at each of its calls, with what registers hold
  there. `;`, `#` and `//` begin a comment.
- Registers are `r0` to `r255`, predicates `p0` to `p15`. A name is made of ASCII letters, digits and `_`, no digit first. Memories and parameters are
  declared in front of their use; labels and routines may follow it.
- Constants: `-1`, `1_000`, `0xff`, `0o17`, `0b101`; `1.5`, `1e-3`, `inf`, `NaN`, `0f3f800000` (all bits of a float: 8 digits for `f32`, 16 for `f64`, 4 for `f16` and `bf16`); `true` and `false`. They have the
  instruction's type, and one that does not fit is an error.
- Where a value is read there may be a register, a constant, a special (`%gid`), a parameter by its name, or `len(memory)`, its number of elements as `u32` or
  `u64` (of a pool, of its words of 4 bytes). A conversion starts from any of these but a constant.
- A program that was disassembled and assembled again is the same program; what its errors name are then the file and lines of the new text. Lines that came
  out of a macro or an included file count as the line of the program's own file that brought them.
- An element is `x[a + b - 4]`: at most two parts that vary (registers, specials, parameters; of one integer type) and a constant, added in that
  type, with wrapping. Negative indices are out of bounds.

| directive | what it does |
|---|---|
";

const TABLE: &str = "\
## Instructions

Operands: `d` is written, `a`, `b`, `c` are read, `p` is a predicate, `m[i]` an element of a memory, `r…` the first of several registers, `n` a
constant number. They have the instruction's type; `d: u32` has this one whatever that is, and `d: unsigned` the unsigned integer of its width. Without types,
the instruction is written without one. The last columns have the faults at run time, and what the instruction weighs in the budget of an untrusted
program: at types of up to 32 bits, and behind the stroke at those of 64 bits, for each element of `copy` and `fill` and each operation of `reduce_` and `tile_mma`; half floats weigh
three more.

| instruction | operands | types | meaning | faults | weighs |
|---|---|---|---|---|---|
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
            (Some(_), true) if row.meaning == Meaning::Bitcast => "two of one width",
            (Some(_), true) => "any to any; not to `pred`, and from it to integers alone",
            (None, _) => "",
        };
        writeln!(
            text,
            "| {names} | {} | {types} | {} | {} | {} |",
            operands(row),
            row.doc.replace('|', "\\|"),
            row.faults().join("; "),
            weight(row)
        )?;
    }
    Ok(())
}

fn weight(row: &Row) -> String {
    let domain = row.types.unwrap_or(Domain::Int);
    let pair = |all: [Scalar; 2]| {
        let [narrow, wide] = all.map(|ty| cost::of(row.meaning, ty));
        let text = match narrow == wide {
            true => narrow.to_string(),
            false => format!("{narrow} / {wide}"),
        };
        domain.contains(all[0]).then_some(text)
    };
    let integers = pair([Scalar::I32, Scalar::I64]).or_else(|| pair([Scalar::U32, Scalar::U64]));
    match (pair([Scalar::F32, Scalar::F64]), integers) {
        (Some(floats), Some(integers)) if floats != integers => format!("{floats}; integers {integers}"),
        (Some(weight), _) | (None, Some(weight)) => weight,
        (None, None) => cost::of(row.meaning, Scalar::Bool).to_string(),
    }
}

fn operands(row: &Row) -> String {
    let mut reads = ["a", "b", "c"].into_iter();
    let names = row.operands.iter().map(|slot| match slot {
        Slot::Write(Ty::Fixed(Scalar::Bool)) => "p".into(),
        Slot::Write(Ty::Fixed(ty)) => format!("d: {ty}"),
        Slot::Write(Ty::Unsigned) => "d: unsigned".into(),
        Slot::Write(Ty::Own | Ty::From) => "d".into(),
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
    text.push_str("\n## Specials\n\nRead as `u32` or `u64`, as the instruction asks.\n\n| special | what it is |\n|---|---|\n");
    for special in Special::all() {
        writeln!(text, "| `%{}` | {} |", special.name(), special.meaning())?;
    }
    text.push_str("\nRegisters that hold one before the first instruction: ");
    let preset = PRESET.map(|(register, ty, special)| format!("r{register} `%{}` ({ty})", special.name()));
    writeln!(text, "{}.", preset.join(", "))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_the_table() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/isa.md");
        let new = super::markdown();
        if std::env::var_os("PERPETUA_BLESS").is_some_and(|value| value == "1") {
            std::fs::write(&path, new).unwrap_or_else(|error| panic!("{error}"));
        } else {
            let old = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}"));
            assert!(
                old.replace("\r\n", "\n") == new,
                "docs/isa.md is old: write it anew with `perpetua isa spec > docs/isa.md`"
            );
        }
    }
}
