//! What an actor keeps between messages: its state's type, its first state, reading it, a fault, a restart, a checkpoint.
//! `cargo run --example kernel_states -- --backend cpu`

mod backend_argument;

use std::process::ExitCode;

use perpetua::actors::{ActorError, Context, LaunchOptions, RingMessage, Supervision, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

/// Money that comes in, or goes out where it is negative.
#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Booking {
    cents: i32,
    /// The month, from 0.
    month: u32,
}

#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Balance {
    cents: i32,
}

/// What the actor keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Account {
    cents: i32,
    bookings: u32,
    months: [i32; 12],
}

#[ring_kernel]
fn account(_ctx: &mut Context, account: &mut Account, booking: Booking) -> Balance {
    // A month that does not exist is out of bounds: the handler faults, the account is not touched any more.
    account.months[booking.month as usize] += booking.cents;
    account.cents += booking.cents;
    account.bookings += 1;
    Balance { cents: account.cents }
}

fn main() -> ExitCode {
    backend_argument::end(block_on(run()))
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = backend_argument::runtime().await?;
    let first = Account {
        cents: 10_000,
        ..Account::default()
    };
    let options = LaunchOptions::new(account::handler())
        .with_state(first)
        .with_supervision(Supervision::Manual)
        .with_queue_capacity(64);
    let kernel = runtime.launch("account", options).await?;
    for (cents, month) in [(-2_500, 0), (120_000, 1), (-45_050, 1)] {
        let balance: Balance = kernel.ask(&Booking { cents, month }).await?;
        println!("booked {cents} in month {month}: {balance:?}");
    }
    println!("its state: {:?}", kernel.read_state::<Account>()?);

    let file = std::env::temp_dir().join(format!("perpetua-account-{}", std::process::id()));
    runtime.checkpoint(&file).await?;
    println!("a checkpoint takes {} bytes", std::fs::metadata(&file)?.len());

    // The thirteenth month.
    match kernel.ask::<_, Balance>(&Booking { cents: 1, month: 12 }).await {
        Err(ActorError::Faulted { fault, .. }) => println!("a fault: {fault}"),
        other => return Err(format!("a fault was expected, not {other:?}").into()),
    }
    println!("it is {:?} now; its messages wait", kernel.state());
    kernel.restart().await?;
    println!("restarted: {:?}", kernel.read_state::<Account>()?);
    runtime.shutdown().await?;
    let mut runs = kernel.metrics().messages_processed;

    let again = backend_argument::runtime().await?;
    again.register(account::handler());
    let restored = again.restore(&file).await?;
    std::fs::remove_file(&file)?;
    let kernel = restored.first().ok_or("the checkpoint holds no actor")?;
    println!("restored: {:?}", kernel.read_state::<Account>()?);
    let before = kernel.metrics().messages_processed;
    let balance: Balance = kernel.ask(&Booking { cents: -1, month: 2 }).await?;
    println!("and on: {balance:?}");
    again.shutdown().await?;
    runs += kernel.metrics().messages_processed - before;
    println!("handler runs: {runs}");
    Ok(())
}
