//! The `perpetua` program.

mod cli;
mod wave;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
