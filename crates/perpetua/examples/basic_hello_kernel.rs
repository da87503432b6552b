//! The life of an actor: launched, active, deactivated and active again, terminated.
//! `cargo run --example basic_hello_kernel -- --backend cpu`

mod backend_argument;

use std::process::ExitCode;

use perpetua::actors::{Context, LaunchOptions, RingMessage, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

/// Somebody says hello.
#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Hello {
    from: u32,
}

/// The actor says how often it was greeted.
#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Welcome {
    to: u32,
    greeted: u32,
}

#[ring_kernel]
fn greeter(_ctx: &mut Context, greeted: &mut u32, hello: Hello) -> Welcome {
    *greeted += 1;
    Welcome {
        to: hello.from,
        greeted: *greeted,
    }
}

fn main() -> ExitCode {
    backend_argument::end(block_on(run()))
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = backend_argument::runtime().await?;
    let kernel = runtime
        .launch("processor", LaunchOptions::new(greeter::handler()))
        .await?;
    println!("launched: {:?}", kernel.state());
    for from in [7, 8] {
        let welcome: Welcome = kernel.ask(&Hello { from }).await?;
        println!("{from} says hello; the answer is {welcome:?}");
    }

    kernel.deactivate().await?;
    println!("deactivated: {:?}; a message waits now", kernel.state());
    kernel.send(&Hello { from: 9 })?;
    println!("waiting: {}", kernel.metrics().queue_depth);
    kernel.activate().await?;
    let welcome: Welcome = kernel.receive().await?;
    println!("active again: {welcome:?}");

    kernel.terminate().await?;
    println!("terminated: {:?}", kernel.state());
    if let Err(error) = kernel.send(&Hello { from: 10 }) {
        println!("as it should be: {error}");
    }
    runtime.shutdown().await?;
    let runs = kernel.metrics().messages_processed;
    println!("handler runs: {runs}");
    Ok(())
}
