//! A live table of NVIDIA GPUs: what each is, how much of its memory is in use, and how long a copy there and back takes now.
//!
//! `cargo run --release --example cuda_monitor`; once a second on a terminal, else one table. `-- 10` ends after ten. Without a GPU it says
//! what is missing.

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use perpetua::device::{BackendKind, Buffer, Device, Error, Result};

/// A device with four bytes on it.
struct Watched {
    device: Device,
    word: Buffer<u32>,
}

fn main() -> ExitCode {
    let turns = match std::env::args().nth(1).map(|word| (word.parse::<u64>(), word)) {
        None if stdout().is_terminal() => u64::MAX,
        None => 1,
        Some((Ok(turns), _)) => turns,
        Some((Err(_), word)) => {
            eprintln!("error: `{word}` is not a number of tables");
            return ExitCode::FAILURE;
        }
    };
    match watch(turns) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn watch(turns: u64) -> Result<()> {
    let mut all = Vec::new();
    loop {
        match Device::new(BackendKind::Cuda, all.len()) {
            Ok(device) => {
                let word = device.zeros(1)?;
                all.push(Watched { device, word });
            }
            Err(Error::DeviceNotFound { .. }) if !all.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    for turn in 0..turns {
        if turn > 0 {
            thread::sleep(Duration::from_secs(1));
            // Back to where the table began.
            print!("\x1b[{}A", all.len() + 1);
        }
        table(&all)?;
    }
    Ok(())
}

fn table(all: &[Watched]) -> Result<()> {
    println!(
        "{:<28} {:<13} {:>5} {:>5} {:>17} {:>9}",
        "device", "bus", "sm", "SMs", "memory in use", "copy"
    );
    for Watched { device, word } in all {
        let info = device.info();
        let (major, minor) = info.compute_capability.unwrap_or_default();
        let memory = device.memory_info()?;
        let gibibytes = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        let used = match (memory.free, memory.total) {
            (Some(free), Some(total)) => {
                format!(
                    "{:.1} of {:.1} GiB",
                    gibibytes(total - free.min(total)),
                    gibibytes(total)
                )
            }
            _ => "unknown".into(),
        };
        let start = Instant::now();
        word.write(&[1])?;
        word.read()?;
        let copy = start.elapsed().as_secs_f64() * 1e6;
        println!(
            "{:<28} {:<13} {:>5} {:>5} {used:>17} {copy:>6.0} us",
            info.name,
            info.pci_id.as_deref().unwrap_or("unknown"),
            format!("{major}.{minor}"),
            info.multiprocessors.unwrap_or(0),
        );
    }
    Ok(())
}
