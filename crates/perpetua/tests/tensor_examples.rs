//! The example of tensors as a program: what it says when something is wrong. That it learns is its own tests' part.

#![cfg(feature = "tensor")]
// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used)]

mod example_program;

use std::process::Command;

use example_program::program;

#[test]
fn errors_are_in_words() {
    let output = Command::new(program("digits")).arg("abacus").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "error: take cpu, cuda, wgpu or auto\n");
    assert_eq!(output.status.code(), Some(1));
}
