//! Texts of programs.
#![no_main]

mod targets;

libfuzzer_sys::fuzz_target!(|text: &[u8]| targets::assemble(text));
