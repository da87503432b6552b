//! The project's commands: `cargo xtask setup`, `test`, `golden`, `bundle`, `dist`, `web`, `book`, `compile-times`, `tidy`.
//!
//! One file a command. Commands call programs (cargo, apt-get, pip, strip) and know the workspace's layout; they
//! do not link what they build, so a broken crate can still be tidied.

mod book;
mod bundle;
mod compile_times;
mod dist;
mod golden;
// As a dependency it would keep this crate from being packed with the workspace: the oracles are never published, and what is packed
// depends on what is.
#[path = "../../crates/perpetua-vendor-tools/src/locate.rs"]
#[allow(dead_code, unreachable_pub, reason = "tests look for the rest")]
mod locate;
mod setup;
mod test;
mod tidy;
mod toolchain;
mod web;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Perpetua's project commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what the tests need; what is there already stays as it is.
    Setup(setup::Arguments),
    /// Install what the tests need, then pass them all.
    Test(test::Arguments),
    /// Compare rendered sources with the golden files, or overwrite them.
    Golden(golden::Arguments),
    /// Build tests, benchmarks and programs into a folder for a GPU machine without Rust.
    Bundle(bundle::Arguments),
    /// Pack the program for each target that links here, stripped, and the crates as they are published.
    Dist(dist::Arguments),
    /// Build the wave simulation's page.
    Web(web::Arguments),
    /// Build the book as web pages, where mdBook is installed.
    Book,
    /// Measure what the macros cost: a generated crate of kernels, in processor time.
    CompileTimes,
    /// Check the rules between crates and modules, and that documents name what exists.
    Tidy,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Setup(arguments) => setup::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Golden(arguments) => golden::run(&arguments),
        Command::Bundle(arguments) => bundle::run(&arguments),
        Command::Dist(arguments) => dist::run(&arguments),
        Command::Web(arguments) => web::run(&arguments),
        Command::Book => book::run(),
        Command::CompileTimes => compile_times::run(),
        Command::Tidy => tidy::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
