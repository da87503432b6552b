//! Perpetua beside other crates and programs that do the same job, on the same machine and in the same run. Each subcommand is a job; the
//! two sides take turns, and the best turn of each counts.

mod actors;
mod clock;
mod cpu_kernels;
mod pin;
mod rings;
mod wave;

use std::error::Error;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about)]
struct Arguments {
    #[command(subcommand)]
    job: Job,
}

#[derive(Subcommand)]
enum Job {
    /// The 2-D wave equation on the CPU: steps a second, beside ringkernel-wavesim's `SimulationGrid::step`
    Wave {
        /// Cells a side
        #[arg(long, value_delimiter = ',', default_values_t = [64, 128, 256, 512, 1024, 2048, 4096])]
        size: Vec<u32>,
        /// Turns of each side
        #[arg(long, default_value_t = 3)]
        turns: u32,
        /// Seconds of a turn
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
    },
    /// Messages a second between threads on two processors, beside ringkernel, rtrb, crossbeam-channel, flume and tokio
    Rings {
        /// Messages of a turn
        #[arg(long, default_value_t = 1_000_000)]
        messages: u64,
        /// Turns of each
        #[arg(long, default_value_t = 20)]
        turns: u32,
        /// Messages that a queue has room for
        #[arg(long, default_value_t = 4096)]
        capacity: usize,
    },
    /// Actors on the CPU: questions, messages, births; beside kameo, ractor and actix
    Actors {
        /// Questions of a turn
        #[arg(long, default_value_t = 200_000)]
        asks: u32,
        /// Messages of a turn
        #[arg(long, default_value_t = 1_000_000)]
        tells: u32,
        /// Actors made in a turn
        #[arg(long, default_value_t = 5_000)]
        births: u32,
        /// Turns of each
        #[arg(long, default_value_t = 5)]
        turns: u32,
    },
    /// Nanoseconds for a stamp of the hybrid logical clock, beside ringkernel's
    Clock {
        /// Stamps of a turn
        #[arg(long, default_value_t = 1_000_000)]
        ticks: u64,
        /// Turns of each
        #[arg(long, default_value_t = 20)]
        turns: u32,
    },
    /// Twelve kernels on the CPU from their IR, beside OpenCL C on POCL and beside loops in plain Rust with rayon
    ///
    /// Each kernel is written three times: in Perpetua's language, where `interpret` makes it reach the CPU device as IR alone; in
    /// OpenCL C; and in plain Rust with rayon, with which both results are compared before anything is timed. All sides use all
    /// processors (RAYON_NUM_THREADS and POCL_MAX_PTHREAD_COUNT say otherwise), start from memory that they own, and are timed from the
    /// launch until it has been waited for. They take turns, and the best launch of each counts.
    ///
    /// GB/s count what must come from memory or go there, once; GFLOP/s count operations as written. Plain Rust is a peer only
    /// where memory is the bound; it is built as cargo builds it, so RUSTFLAGS="-C target-cpu=native" gives it wider vectors.
    /// A ratio above 1 says that Perpetua is faster; the last column is the interpreter's part of Perpetua's speed.
    ///
    /// Debian's POCL: apt-get install pocl-opencl-icd ocl-icd-libopencl1. Without it its column stays empty, and a line says why.
    #[command(verbatim_doc_comment)]
    CpuKernels(cpu_kernels::Options),
}

fn main() -> Result<(), Box<dyn Error>> {
    match Arguments::parse().job {
        Job::Wave { size, turns, seconds } => wave::compare(size, turns, seconds),
        Job::Rings {
            messages,
            turns,
            capacity,
        } => rings::compare(messages, turns, capacity),
        Job::Actors {
            asks,
            tells,
            births,
            turns,
        } => actors::compare(asks, tells, births, turns),
        Job::Clock { ticks, turns } => {
            clock::compare(ticks, turns);
            Ok(())
        }
        Job::CpuKernels(options) => cpu_kernels::compare(&options),
    }
}
