//! What is fuzzed, and what must hold whatever comes. A panic is a mistake found.
#![allow(dead_code, reason = "each target has the part that it needs")]

use perpetua_isa::lower::{Options, lower};
use perpetua_isa::verify::verify;
use perpetua_isa::{Assembler, Program};

/// A binary program's body, behind the right header.
pub(crate) fn decode(body: &[u8]) {
    let mut bytes = b"PISA\x01\0\0\0".to_vec();
    bytes.extend(crc32fast::hash(body).to_le_bytes());
    bytes.extend(body);
    if let Ok(program) = Program::decode(&bytes) {
        // Printing survives what the verifier would refuse.
        let text = program.to_string();
        check(&program, &text);
    }
}

/// A text, where the bytes are one.
pub(crate) fn assemble(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    match Assembler::new().assemble("fuzz", text) {
        Ok(program) => check(&program, &program.to_string()),
        // Messages draw the text, whatever it is.
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

// Forms of a program are one; what is verified can be lowered, or breaks a rule of kernels.
fn check(program: &Program, text: &str) {
    let decoded = Program::decode(&program.encode());
    assert!(
        decoded.as_ref() == Ok(program),
        "the binary form differs:\n{text}"
    );
    let Ok(verified) = verify(program) else {
        return;
    };
    let again: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    // Labels are numbered anew, in the order in which they stand.
    assert!(again.to_string() == text, "the text form differs:\n{text}");
    for budget in [None, Some(1000)] {
        let options = Options {
            budget,
            in_parts: budget.is_some(),
            ..Options::default()
        };
        // Nothing but a meeting to which not all lanes come is left to find, and what is too deep or too large.
        if let Err(error) = lower(&verified, options) {
            let said = error.to_string();
            let known = ["barrier", "deep", "number of statements", "stack", "at most"];
            assert!(known.iter().any(|part| said.contains(part)), "{said}\n{text}");
        }
    }
}
