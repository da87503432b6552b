//! A program that crashes again and again, and each time goes on from its last checkpoint: a parent process watches over it.
//! `cargo run --release --example supervised -- --backend cpu`

mod backend_argument;

use std::process::ExitCode;
use std::time::Duration;

use perpetua::actors::supervisor::{self, Generation, SupervisorOptions};
use perpetua::actors::{Context, LaunchOptions, RingMessage, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

/// After so many children one does not crash.
const CRASHES: u32 = 3;
/// For an answer: a busy machine takes its time to compile a handler.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Add {
    number: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Total {
    count: u32,
    sum: u32,
}

#[ring_kernel]
fn add(_ctx: &mut Context, total: &mut Total, message: Add) -> Total {
    total.count += 1;
    total.sum += message.number;
    *total
}

fn main() -> ExitCode {
    backend_argument::end(supervise())
}

fn supervise() -> Result<(), Box<dyn std::error::Error>> {
    // The same in parent and children: they have the same arguments.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = format!("perpetua-supervised{}", arguments.concat());
    let folder = std::env::temp_dir().join(folder);
    if !supervisor::is_child() && folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let options = SupervisorOptions::new(&folder).with_restarts(CRASHES, Duration::from_secs(600));
    let endings = supervisor::run(&options, |generation| block_on(child(generation)))?;
    // Only the parent comes here.
    for (number, ending) in endings.iter().enumerate() {
        println!("child {number}: {ending}");
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

async fn child(generation: &Generation) -> Result<(), Box<dyn std::error::Error>> {
    let number = generation.number();
    let runtime = backend_argument::runtime().await?;
    runtime.register(add::handler());
    let kernel = match generation.restore(&runtime)? {
        Some(restored) => restored
            .kernels
            .into_iter()
            .next()
            .ok_or("the checkpoint holds no actor")?,
        None => {
            runtime
                .launch("total", LaunchOptions::new(add::handler()))
                .await?
        }
    };
    let Total { count, .. } = kernel.read_state()?;
    println!("child {number} begins with {count} numbers");
    let keeper = generation.keep(&runtime)?;
    let mut total = Total::default();
    for number in count + 1..=count + 100 {
        total = kernel.ask_timeout(&Add { number }, PATIENCE).await?;
    }
    keeper.checkpoint()?;
    if number < CRASHES {
        // What no checkpoint holds is done again by the next child.
        for number in total.count + 1..=total.count + 50 {
            let _: Total = kernel.ask_timeout(&Add { number }, PATIENCE).await?;
        }
        println!("child {number} crashes");
        std::process::abort();
    }
    println!("child {number} ends with {total:?}");
    drop(keeper);
    runtime.shutdown().await?;
    let runs = kernel.metrics().messages_processed;
    println!("handler runs: {runs}");
    Ok(())
}
