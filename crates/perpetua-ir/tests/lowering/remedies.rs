//! What Rust knows by a type that is not seen here: the refusal says what to write instead.

use crate::refusals::check_text;

#[test]
fn remedies_are_told_of_what_is_written_otherwise() {
    let given = "#[device] trait Shape { fn area(&self) -> f32; } #[derive(Clone, Copy, GpuType)] #[repr(C)] struct Square { a: f32 }
         #[device] impl Shape for Square { fn area(&self) -> f32 { self.a * self.a } } enum Own { Round(f32), Flat } use Own::*;
         #[derive(Clone, Copy, GpuType)] enum Other { Up(f32), Down } use Other::*; use std::ops::Range;
         #[derive(Clone, Copy, GpuType)] #[repr(C)] struct Once { left: u32 }
         #[device] impl Iterator for Once { type Item = u32; fn next(&mut self) -> Option<u32> { None } }
         #[device] fn bytes() -> [u8; 2] { [1, 2] }";
    let at_once = "`map` of `[u8; 2]` runs at once, and may end the lane, and here it would run when it is asked for: give what it gives a name by \
         `let` in front of the iterator";
    for (body, expect) in [
        (
            "let s = Square { a: 1.0 }; y[0] = Shape::area(&s);",
            "`Shape` is a trait, and whose `area` is called is not seen here: call it on the value, `x.area()`, or write `<_ as Shape>::area(…)`",
        ),
        (
            "let u = Up(1.0);",
            "`Up` is a variant with data, which kernels know by its enum: write `Other::Up`",
        ),
        (
            "let r = Range { start: 0, end: 3 };",
            "`Range` is taken for Rust's type of ranges, which kernels have no literals and patterns of: write `start..end`, and `range.start` and \
             `range.end`",
        ),
        (
            "let f = if y.len() > 2 { f32::sin } else { f32::cos };",
            "`f32` has no constant `sin`: a function is no value; one of several has a type and branches that name them: \
             `let f: fn(f32) -> f32 = match … { … };`",
        ),
        (
            "let s: u32 = (0..3).zip(Once { left: 1 }.skip(1)).map(|(a, b)| a + b).sum();",
            "`Once` has no method `skip` that kernels can call: write `.into_iter().skip(…)`: behind `into_iter` kernels know it for an iterator",
        ),
        (
            "let k = y.len(); let s = (0..3u32).chain(bytes().map(|b| 100 / (b as u32 - 1))).next();",
            at_once,
        ),
        (
            "let same = (0..3u32).eq(bytes().map(|b| 100 / (b as u32 - 1)));",
            at_once,
        ),
        (
            "let s = (0..3u32).flat_map(|v| bytes().map(|b| v / (b as u32 - 1))).next();",
            at_once,
        ),
        (
            "let least = 1.0.cmp(&y[0]);",
            "`f32` has no method `cmp` in kernels: the integer types and bool have it: convert with `as`",
        ),
    ] {
        check_text(
            &format!("{given}\n#[kernel] fn k(y: &mut [f32]) {{ {body} }}"),
            &format!("program.rs:7: {expect}"),
        );
    }
}
