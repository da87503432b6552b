//! The `perpetua` program.

mod cli;
mod slit;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
