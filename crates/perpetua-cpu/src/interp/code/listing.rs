//! Code as text: each instruction, and the source line that it comes from. Knows bytes and lines, not kernels.

use std::fmt::Write;

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, NasmFormatter};

/// Lists `bytes`; `marks` say where the code of a source line begins.
pub(crate) fn listing(bytes: &[u8], marks: &[(u32, u32)], source: &str) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let (mut formatter, mut instruction) = (NasmFormatter::new(), Instruction::default());
    let (mut text, mut one) = (String::new(), String::new());
    let (mut marks, mut last) = (marks.iter().peekable(), 0);
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let at = instruction.ip();
        let mut line = last;
        while let Some((_, next)) = marks.next_if(|(start, _)| u64::from(*start) <= at) {
            line = *next;
        }
        if line != last {
            let of = lines
                .get((line as usize).wrapping_sub(1))
                .map_or("", |l| l.trim());
            // Writing to a string cannot fail.
            let _ = writeln!(text, "; {line}: {of}");
            last = line;
        }
        one.clear();
        formatter.format(&instruction, &mut one);
        let _ = writeln!(text, "{at:6x}  {one}");
    }
    text
}
