//! The binary form's part of the specification: text around the tables of the code, with a program that the code writes.

use std::fmt::Write;

use perpetua_ir::ir::Scalar;

use super::{HEADER, MAGIC, VERSION};
use crate::Program;
use crate::instruction::Special;

/// By their codes: what stands for an operand, and what follows.
pub(super) const OPERANDS: [(&str, &str); 11] = [
    ("a register", "number"),
    ("a predicate", "number"),
    ("a constant", "number: its bits, zero-extended"),
    ("a special", "number"),
    ("a parameter", "number"),
    ("the length of a memory", "number of the memory"),
    (
        "an element of a memory",
        "number of the memory, two parts, constant offset as a number (of `n` not negative `2n`, else `-2n - 1`)",
    ),
    ("a label", "number"),
    ("a routine", "number"),
    ("a count", "number"),
    ("a pool", "number of the memory"),
];

/// By their codes: the parts of an index, and what follows.
pub(super) const PARTS: [(&str, &str); 4] = [
    ("nothing", ""),
    ("a register", "number"),
    ("a special", "number"),
    ("a parameter", "number"),
];

/// By their codes: the kinds of memory, and what follows.
pub(super) const MEMORIES: [(&str, &str); 8] = [
    ("a buffer that is only read", ""),
    ("a buffer", ""),
    ("a buffer that is only read, with a handle", "number: the handle"),
    ("a buffer with a handle", "number: the handle"),
    ("memory of a block", "number of its elements"),
    ("constants", "list of numbers: their bits, zero-extended"),
    ("a pool", ""),
    ("a pool with a handle", "number: the handle"),
];

const LAYOUT: &str = "
A *number* is an unsigned LEB128 of at most 64 bits: seven bits a byte, the lowest first, each byte but the last with its high bit set. A *text* is a number of bytes
and as many bytes of UTF-8. A *list* is a number of elements and the elements. A *type* is a byte.

| what | as |
|---|---|
| opcodes in use | list of texts: their names in the table above |
| the program's name | text |
| the file that lines refer to, or nothing | text |
| size of a block | number: 0 where any will do; 1, and numbers along x, y and z |
| memories | list: name (text), type, kind (number), and what the kind says |
| parameters | list: name (text), type |
| routines, the program's own code first, without a name | list: name (text), labels, instructions, lines |

| in a routine | as |
|---|---|
| labels | list: name (text), number of the instruction in front of which it stands |
| instructions | list |
| lines of the instructions in the file, or none | list of numbers |

| in an instruction | as |
|---|---|
| guard | number: 0 for none, else 1 + 2 * predicate, and 1 more for its opposite |
| opcode | number: its place in the list of those in use |
| its type, the type that a conversion starts from | 2 types, 0 for none |
| operands | list: a byte for the kind, and what the kind says |

";

const RULES: &str = "
A decoder refuses another version, a checksum that does not fit, codes that mean nothing, and bytes behind the program's end; the verifier refuses the rest.
No list has more elements than there are bytes left, so that nothing is allocated which the bytes do not fill. Versions: a decoder of version 1 reads version 1; new
opcodes are new names, and a program that uses one is refused by name where it is not known.

";

/// The section as Markdown.
pub(crate) fn section() -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text);
    text
}

fn write(text: &mut String) -> std::fmt::Result {
    let magic = String::from_utf8_lossy(MAGIC);
    writeln!(
        text,
        "\n## Binary form\n\nWhat `perpetua isa asm` and `Program::encode` write, by convention to a file that ends in `.pisa`. A header of {HEADER} bytes, little-endian, \
         and the program:\n\n| bytes | what |\n|---|---|\n| 4 | `{magic}` |\n| 2 | version, {VERSION} |\n| 2 | zero |\n| 4 | CRC-32 (that of zlib) of all that follows |\n\
         | … | the program |"
    )?;
    text.push_str(LAYOUT);
    for (title, rows) in [
        ("kind of memory", &MEMORIES[..]),
        ("kind of operand", &OPERANDS),
        ("part of an index", &PARTS),
    ] {
        writeln!(text, "| code | {title} | what follows |\n|---|---|---|")?;
        for (code, (what, follows)) in rows.iter().enumerate() {
            writeln!(text, "| {code} | {what} | {follows} |")?;
        }
        text.push('\n');
    }
    let types = Scalar::ALL.iter().zip(1..);
    let types: Vec<String> = types.map(|(ty, code)| format!("{code} `{ty}`")).collect();
    let specials: Vec<String> = Special::all()
        .enumerate()
        .map(|(code, special)| format!("{code} `%{}`", special.name()))
        .collect();
    writeln!(
        text,
        "Types: {}.\n\nSpecials: {}.",
        types.join(", "),
        specials.join(", ")
    )?;
    text.push_str(RULES);
    writeln!(text, "An example, without names of files and lines:\n\n```text")?;
    let source = ".program p\n.buffer x: f32\n@!p1 stg.f32 x[r255 - 1], 1.0\n";
    // The text is a program.
    if let Ok(program) = source.parse::<Program>() {
        text.push_str(source);
        text.push_str("```\n\n```text\n");
        for row in program.stripped().encode().chunks(16) {
            let row: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "{}", row.join(" "))?;
        }
    }
    text.push_str("```\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DecodeError;
    use crate::instruction::{Index, Instruction, Operand, Place};
    use crate::opcode::Opcode;
    use crate::program::{Memory, MemoryKind, Routine};

    fn encoded(memories: Vec<MemoryKind>, operands: Vec<Operand>) -> Vec<u8> {
        let memory = |kind| Memory {
            name: String::new(),
            element: Scalar::U8,
            kind,
        };
        let instruction = Instruction {
            guard: None,
            opcode: Opcode::from_name("nop").expect("an opcode"),
            ty: None,
            from: None,
            operands,
        };
        let routine = Routine {
            code: vec![instruction],
            ..Routine::default()
        };
        let program = Program {
            memories: memories.into_iter().map(memory).collect(),
            routines: vec![routine],
            ..Program::default()
        };
        let bytes = program.encode();
        assert_eq!(Program::decode(&bytes).as_ref(), Ok(&program));
        bytes
    }

    // The bytes with another one at a place, and a checksum that fits.
    fn changed(mut bytes: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
        bytes[at] = byte;
        let sum = crc32fast::hash(&bytes[HEADER..]);
        bytes[HEADER - 4..HEADER].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    // What the byte at this place is called, if the next code is no kind.
    fn last_code(bytes: Vec<u8>, at: usize, codes: usize, expect: &str) {
        let error = Program::decode(&changed(bytes, at, codes as u8)).expect_err("no kind");
        assert!(
            matches!(error, DecodeError::Value { value, what, .. } if value == codes as u64 && what == expect),
            "{error:?}"
        );
    }

    #[test]
    fn the_rows_are_the_codes() {
        let place = |first| {
            Operand::Place(Place {
                memory: 0,
                first,
                second: None,
                offset: 0,
            })
        };
        let operands = [
            Operand::Register(0),
            Operand::Predicate(0),
            Operand::Immediate(0),
            Operand::Special(Special::GlobalId),
            Operand::Parameter(0),
            Operand::Length(0),
            place(None),
            Operand::Label(0),
            Operand::Routine(0),
            Operand::Count(0),
            Operand::Pool(0),
        ];
        assert_eq!(operands.len(), OPERANDS.len());
        // An operand's code stands behind the count of operands, in front of its value and the count of lines.
        for (code, operand) in operands.into_iter().enumerate() {
            let bytes = encoded(Vec::new(), vec![operand]);
            let tail = if matches!(operand, Operand::Place(_)) {
                6
            } else {
                3
            };
            let at = bytes.len() - tail;
            assert_eq!(usize::from(bytes[at]), code, "{operand:?}");
            if code == 0 {
                last_code(bytes, at, OPERANDS.len(), "a kind of operand");
            }
        }
        let parts = [
            None,
            Some(Index::Register(0)),
            Some(Index::Special(Special::GlobalId)),
            Some(Index::Parameter(0)),
        ];
        assert_eq!(parts.len(), PARTS.len());
        for (code, part) in parts.into_iter().enumerate() {
            let bytes = encoded(Vec::new(), vec![place(part)]);
            let at = bytes.len() - 4 - usize::from(part.is_some());
            assert_eq!(usize::from(bytes[at]), code, "{part:?}");
            if code == 0 {
                last_code(bytes, at, PARTS.len(), "a kind of index");
            }
        }
        let buffer = |writable, handle| MemoryKind::Buffer { writable, handle };
        let memories = [
            buffer(false, None),
            buffer(true, None),
            buffer(false, Some(5)),
            buffer(true, Some(5)),
            MemoryKind::Shared { len: 5 },
            MemoryKind::Constants(vec![]),
            MemoryKind::Pool { handle: None },
            MemoryKind::Pool { handle: Some(5) },
        ];
        assert_eq!(memories.len(), MEMORIES.len());
        for (code, memory) in memories.into_iter().enumerate() {
            let bytes = encoded(vec![memory], Vec::new());
            // Behind the header: one opcode and its name, two texts without letters, no block, one memory without a name, its type.
            let at = HEADER + 1 + 4 + 2 + 1 + 1 + 1 + 1;
            assert_eq!(usize::from(bytes[at]), code);
            if code == 0 {
                last_code(bytes, at, MEMORIES.len(), "a kind of memory");
            }
        }
    }
}
