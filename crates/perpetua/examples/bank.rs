//! A bank whose process is killed again and again: accounts pay each other, some handlers fault, and after each `kill -9` the bank goes on from its last
//! checkpoint. Before it goes on, and at the end, an audit counts all the money.
//! `cargo run --release --example bank -- --backend cpu --kills 100`

mod backend_argument;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use perpetua::actors::runtime::{PerpetuaRuntime, RuntimeBuilder};
use perpetua::actors::{
    Context, DeadReason, KernelHandle, LaunchOptions, RingMessage, Supervision, ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

/// What each account has at first.
const FIRST: i32 = 1000;
/// Of so many payments one faults.
const FAULT_ONE_IN: u32 = 97;
/// Payments between two checkpoints.
const ROUND: u32 = 2000;
/// For what waits: a busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(600);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Pay {
    to: u32,
    amount: i32,
    /// 0, or larger where the handler is to fault.
    place: u32,
}

#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Deposit {
    amount: i32,
}

/// Asks for what there is, to be told to `auditor`.
#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Audit {
    auditor: u32,
    round: u32,
}

#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Found {
    balance: i32,
    round: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Account {
    balance: i32,
    changes: [u32; 1],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Book {
    round: u32,
    accounts: u32,
    sum: i32,
}

/// Pays first and faults then: a fault undoes both.
#[ring_kernel(also(deposit, audit))]
fn account(ctx: &mut Context, account: &mut Account, pay: Pay) {
    account.balance -= pay.amount;
    ctx.send(pay.to, Deposit { amount: pay.amount });
    account.changes[pay.place as usize] += 1;
}

#[ring_kernel]
fn deposit(_ctx: &mut Context, account: &mut Account, deposit: Deposit) {
    account.balance += deposit.amount;
    account.changes[0] += 1;
}

#[ring_kernel]
fn audit(ctx: &mut Context, account: &mut Account, audit: Audit) {
    let found = Found {
        balance: account.balance,
        round: audit.round,
    };
    ctx.send(audit.auditor, found);
}

#[ring_kernel]
fn auditor(_ctx: &mut Context, book: &mut Book, found: Found) {
    if book.round != found.round {
        *book = Book {
            round: found.round,
            accounts: 0,
            sum: 0,
        };
    }
    book.accounts += 1;
    book.sum += found.balance;
}

/// What the command line asks for.
struct Arguments {
    backend: String,
    accounts: u32,
    kills: u32,
    /// Where a child keeps the bank; the parent has none.
    child: Option<PathBuf>,
    /// Whether a child trades behind its audit, or ends.
    trades: bool,
}

fn arguments() -> Outcome<Arguments> {
    let mut found = Arguments {
        backend: "cpu".into(),
        accounts: 10_000,
        kills: 5,
        child: None,
        trades: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("`{word}` wants a value"));
        match word.as_str() {
            "--backend" => found.backend = value()?,
            "--accounts" => found.accounts = value()?.parse::<u32>()?.max(2),
            "--kills" => found.kills = value()?.parse()?,
            "--child" => found.child = Some(value()?.into()),
            "--trades" => found.trades = true,
            _ => {
                let names = backend_argument::NAMES;
                return Err(format!("`{word}` is unknown: this takes `--backend {names}|batches`, `--accounts N` and `--kills N`").into());
            }
        }
    }
    Ok(found)
}

fn main() -> ExitCode {
    backend_argument::end(arguments().and_then(|arguments| match &arguments.child {
        Some(file) => child(&arguments, file),
        None => parent(&arguments),
    }))
}

/// Numbers that decide who pays whom, and when the bank is killed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (((self.0 >> 33) * u64::from(end)) >> 31) as u32
    }
}

/// Starts the bank, kills it, and lets it go on, as often as asked for; the last one ends by itself.
fn parent(arguments: &Arguments) -> Outcome<()> {
    let file = std::env::temp_dir().join(format!("perpetua-bank-{}", std::process::id()));
    let mut dice = Dice(u64::from(std::process::id()));
    let began = Instant::now();
    let mut kills = 0;
    for number in 0..=arguments.kills {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--backend", &arguments.backend, "--child"])
            .arg(&file);
        command.args(["--accounts", &arguments.accounts.to_string()]);
        if number < arguments.kills {
            command.arg("--trades");
        }
        let mut bank = command.stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(bank.stdout.take().ok_or("no pipe")?).lines();
        // It has been audited, and trades.
        let mut audited = None;
        for line in lines {
            let line = line?;
            match line.strip_prefix("audited: ") {
                Some(found) => audited = Some(found.to_owned()),
                None if line == "trading" => break,
                None => {}
            }
        }
        if number < arguments.kills && audited.is_some() {
            std::thread::sleep(Duration::from_millis(dice.below(400).into()));
            // One that has ended by itself was not killed.
            if let Some(status) = bank.try_wait()? {
                return Err(format!("bank {number} ended while it traded: {status}").into());
            }
            bank.kill()?;
            kills += 1;
        }
        let status = bank.wait()?;
        if cfg!(unix) && number < arguments.kills && audited.is_some() && status.code().is_some() {
            return Err(format!("bank {number} ended before it was killed: {status}").into());
        }
        let found = audited.ok_or_else(|| format!("bank {number} ended without an audit: {status}"))?;
        if number == arguments.kills {
            if !status.success() {
                return Err(format!("the last bank failed: {status}").into());
            }
            println!("{found}");
        }
    }
    // One that never traded has written none.
    if file.exists() {
        std::fs::remove_file(&file)?;
    }
    println!(
        "killed {kills} times in {:.1?}: all money is there",
        began.elapsed()
    );
    Ok(())
}

fn builder(backend: &str) -> Outcome<RuntimeBuilder> {
    let builder = match backend {
        "batches" => PerpetuaRuntime::builder().in_batches(),
        name => backend_argument::named(name)?,
    };
    Ok(builder.patience(PATIENCE))
}

fn child(arguments: &Arguments, file: &Path) -> Outcome<()> {
    let runtime = builder(&arguments.backend)?.build_blocking()?;
    runtime.register(account::handler());
    runtime.register(auditor::handler());
    let (accounts, auditor) = match file.exists() {
        true => {
            runtime.restore_blocking(file)?;
            (runtime.find("accounts")?, runtime.find("auditor")?)
        }
        false => open(&runtime, arguments.accounts)?,
    };
    let balance = balance(&runtime, &accounts, &auditor)?;
    println!("audited: {balance}");
    if !arguments.trades {
        runtime.shutdown_blocking()?;
        return Ok(());
    }
    runtime.checkpoint_blocking(file)?;
    println!("trading");
    trade(&runtime, &accounts, file)
}

fn open(runtime: &PerpetuaRuntime, count: u32) -> Outcome<(KernelHandle, KernelHandle)> {
    let options = LaunchOptions::new(account::handler())
        .with_actors(count)
        .with_state(Account {
            balance: FIRST,
            changes: [0],
        })
        .with_supervision(Supervision::Restart {
            max: u32::MAX,
            backoff: Duration::ZERO,
        });
    let accounts = runtime.launch_blocking("accounts", options)?;
    let options = LaunchOptions::new(auditor::handler()).with_queue_capacity(1 << 15);
    Ok((accounts, runtime.launch_blocking("auditor", options)?))
}

/// Lets accounts pay each other, with a checkpoint now and then, until the process is killed.
fn trade(runtime: &PerpetuaRuntime, accounts: &KernelHandle, file: &Path) -> Outcome<()> {
    let mut dice = Dice(u64::from(std::process::id()));
    let (first, count) = (accounts.id().0, accounts.actors());
    loop {
        for _ in 0..ROUND {
            let pay = Pay {
                to: first + dice.below(count),
                amount: dice.below(100) as i32,
                place: u32::from(dice.below(FAULT_ONE_IN) == 0),
            };
            block_on(accounts.actor(dice.below(count))?.send_when_room(&pay))?;
        }
        // While payments are under way.
        runtime.checkpoint_blocking(file)?;
    }
}

/// Waits until all payments are made, and counts the money.
fn balance(runtime: &PerpetuaRuntime, accounts: &KernelHandle, auditor: &KernelHandle) -> Outcome<String> {
    // Also those whose restart waits.
    let settled = |runtime: &PerpetuaRuntime| -> Outcome<()> {
        loop {
            block_on(runtime.idle());
            let active = perpetua::actors::ActorState::Active;
            if accounts.states().iter().all(|state| *state == active) {
                block_on(runtime.idle());
                return Ok(());
            }
            block_on(runtime.sleep(Duration::from_millis(1)));
        }
    };
    settled(runtime)?;
    let round = auditor.read_state::<Book>()?.round + 1;
    let question = Audit {
        auditor: auditor.id().0,
        round,
    };
    for i in 0..accounts.actors() {
        block_on(accounts.actor(i)?.send_when_room(&question))?;
    }
    settled(runtime)?;
    let book: Book = auditor.read_state()?;
    let letters = runtime.dead_letters().counts();
    let faults = letters.of(DeadReason::Faulted);
    let expected = FIRST * accounts.actors() as i32;
    let said = format!(
        "{} accounts hold {} ({faults} payments faulted since the last checkpoint)",
        book.accounts, book.sum
    );
    // Deposits never fault: no letter is of money that has left its account.
    match book.accounts == accounts.actors() && book.sum == expected && letters.total() == faults {
        true => Ok(said),
        false => Err(format!(
            "{said}, of {} that hold {expected}; {letters:?}",
            accounts.actors()
        )
        .into()),
    }
}
