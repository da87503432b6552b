//! `perpetua isa serve`: its options, its signals and its lines; `perpetua::isa::serve` does the rest.

use std::io::{Write, stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use perpetua::device::{BackendKind, Device};
use perpetua::isa::Limits;
use perpetua::isa::serve::{Address, Options, Server, Summary, work};

use crate::say::{say, short};
use crate::stdout::stdout;
use crate::{Backend, Failure};

#[derive(clap::Args)]
#[command(
    after_help = "Programs run as programs that nobody trusts, each client's in a process of its own: a client that does harm ends its own process, \
        and nobody sees another's data. Sizes may end in K, M or G (of 1,024). Ctrl-C or SIGTERM ends the server and all its processes.\n\n\
        Examples:\n  \
        perpetua isa serve unix:/tmp/perpetua.sock\n  \
        perpetua isa serve 127.0.0.1:7878 --backend cpu --seconds 2 --message 64M --clients 32\n  \
        perpetua isa run saxpy.pasm --server unix:/tmp/perpetua.sock --buffer x=range:8 --buffer y=ones:8 --param a=2 --lanes 8"
)]
pub(super) struct Args {
    /// Where to listen: unix:PATH (a socket for you alone), or a loopback address as 127.0.0.1:7878, with port 0 for a free one
    address: Address,
    /// Where programs run
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
    /// Most clients at a time; a new one takes the place of the one that the server has waited for longest
    #[arg(long, default_value_t = Options::default().clients, value_name = "N")]
    clients: usize,
    /// How many processes run programs at a time
    #[arg(long, default_value_t = Options::default().processes, value_name = "N")]
    processes: usize,
    /// Most bytes of a job, and of its result; the server may keep one for each client
    #[arg(long, default_value = "16M", value_parser = size, value_name = "SIZE")]
    message: u64,
    /// Most bytes of a job's buffers and pools
    #[arg(long, default_value = "256M", value_parser = size, value_name = "SIZE")]
    memory: u64,
    /// Most bytes of memory of a process (Linux)
    #[arg(long, default_value = "2G", value_parser = size, value_name = "SIZE")]
    process_memory: u64,
    /// How long a job may run
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    seconds: f64,
    /// How many instructions a lane may run in loops, about
    #[arg(long, default_value_t = Limits::default().instructions, value_name = "N")]
    instructions: u32,
    /// Most instructions of a program
    #[arg(long, default_value_t = Limits::default().size, value_name = "N")]
    size: usize,
    /// How long a client may be quiet while there are places for others
    #[arg(long, default_value_t = 300.0, value_name = "SECONDS")]
    idle: f64,
    /// How long a message may take on its way
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS")]
    transfer: f64,
}

#[derive(clap::Args)]
pub(super) struct Child {
    #[arg(long, value_enum)]
    backend: Backend,
    #[arg(long)]
    memory: u64,
}

/// `64M` as bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.to_ascii_uppercase().chars().last() {
        Some('K') => (&text[..text.len() - 1], 10),
        Some('M') => (&text[..text.len() - 1], 20),
        Some('G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = digits.parse().ok().filter(|number: &u64| *number > 0);
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| format!("`{}` is no size: write bytes, or 64K, 16M, 2G", short(text)))
}

fn seconds(option: &str, seconds: f64) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| !time.is_zero() && *time <= Duration::from_secs(86_400))
        .ok_or_else(|| format!("--{option} {seconds}: more than 0, and at most 86400, is a time here").into())
}

fn options(args: &Args) -> Result<Options, Failure> {
    for (option, value) in [("clients", args.clients), ("processes", args.processes)] {
        if !(1..=4096).contains(&value) {
            return Err(format!("--{option} {value}: from 1 to 4096 can be").into());
        }
    }
    let message = u32::try_from(args.message).map_err(|_| {
        format!(
            "--message {}: a frame has at most {} bytes",
            args.message,
            u32::MAX
        )
    })?;
    Ok(Options {
        limits: Limits {
            instructions: args.instructions,
            memory: usize::try_from(args.memory).unwrap_or(usize::MAX),
            size: args.size,
        },
        clients: args.clients,
        processes: args.processes,
        message,
        process_memory: args.process_memory,
        time: seconds("seconds", args.seconds)?,
        idle: seconds("idle", args.idle)?,
        transfer: seconds("transfer", args.transfer)?,
    })
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let options = options(args)?;
    let asked = asked()?;
    let backend = BackendKind::from(args.backend).name().to_lowercase();
    let command = [
        std::env::current_exe()?.into_os_string(),
        "isa".into(),
        "serve-child".into(),
        "--backend".into(),
        backend.into(),
        "--memory".into(),
        options.process_memory.to_string().into(),
    ];
    let server = Server::bind(&args.address, options, command.into())?;
    writeln!(stdout()?, "listening on {}", server.address())?;
    stdout()?.flush()?;
    say(format!(
        "{} clients at most, {} processes; messages may take {} of memory",
        options.clients,
        options.processes,
        mebibytes(options.clients as u64 * u64::from(options.message))
    ));
    let stopper = server.stopper();
    std::thread::Builder::new().spawn(move || {
        const TURN: Duration = Duration::from_millis(50);
        while !asked.load(Ordering::Relaxed) {
            std::thread::sleep(TURN);
        }
        stopper.stop();
    })?;
    let Summary {
        clients,
        refused,
        made_way,
        results,
        errors,
    } = server.run()?;
    say(format!(
        "served {clients} clients ({refused} sent away), {made_way} made way for others: {results} results, {errors} errors"
    ));
    Ok(())
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

// Whether a signal has asked the server to end. Nothing else is published through it.
fn asked() -> Result<Arc<AtomicBool>, Failure> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}

/// A process that runs a client's programs.
pub(super) fn child(args: &Child) -> Result<(), Failure> {
    let backend = BackendKind::from(args.backend);
    Ok(work(
        || Device::new(backend, 0),
        args.memory,
        stdin(),
        stdout()?.lock(),
    )?)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_bytes_or_powers() {
        for (text, expect) in [("1", 1), ("64K", 65536), ("16m", 16 << 20), ("2G", 2 << 30)] {
            assert_eq!(size(text), Ok(expect), "{text}");
        }
        for text in ["", "M", "0", "-1", "1T", "1.5G", "99999999999999G", "ä"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
