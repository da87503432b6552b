//! Bodies of binary programs.
#![no_main]

mod targets;

libfuzzer_sys::fuzz_target!(|body: &[u8]| targets::decode(body));
