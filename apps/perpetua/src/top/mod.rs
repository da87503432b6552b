//! `perpetua top`: what the actors of a running program do. Must not know runtimes: it sees what a process tells over its socket.
//!
//! `sample` is two looks at a process and the rates between them, `column` what there is to see of an actor, `gpu` the use of GPUs;
//! `plain` prints a table once, `live` keeps one on the terminal.

mod column;
mod gpu;
#[cfg(feature = "top")]
mod live;
mod plain;
mod sample;

use std::io::Write;
use std::time::Duration;

use perpetua::actors::telemetry::ProcessInfo;
use perpetua::actors::telemetry::observe::{Watcher, processes};

use self::column::Column;
use self::gpu::Gpus;
use self::sample::{Sample, View};
use super::Failure;
use super::stdout::stdout;

/// Watch the actors of a running program, as `top` watches processes
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Watch the actors of a running program, as `top` watches processes.\n\n\
        A program can be watched that was started with PERPETUA_TOP=1 (or PERPETUA_TOP=name), or whose runtime was built with\n\
        `.observable(\"name\")`; by the user who started it, on the machine where it runs. Without a number, lists those.\n\n\
        Looking reads counters: no actor stops or waits for it.",
    after_help = "Examples:\n  \
        PERPETUA_TOP=1 cargo run --release --example telemetry   a program that can be watched\n  \
        perpetua top                                             which programs there are\n  \
        perpetua top 4711                                        watch one; `?` there names the keys\n  \
        perpetua top 4711 --once --sort p99 --filter worker      one table, for scripts\n  \
        perpetua top 4711 --json | jq '.sources[].totals'        everything, once\n\n\
        Columns:\n  \
        NAME and ID of the actor (launches of more than 1024 actors are one row, `name x5000`), STATE in its life,\n  \
        PROCESSED messages, RATE/S of these since the last look, QUEUE: messages that wait, DROPPED: messages that were\n  \
        not handled, ERRORS: faults, foreign messages, deadlines passed, P50 and P99: latency from sending to the end of\n  \
        the handler, over all of its life."
)]
pub(crate) struct Args {
    /// The process to watch; without it, lists those that can be
    #[arg(value_parser = number)]
    pid: Option<u32>,
    /// Print one table and end
    #[arg(long, requires = "pid")]
    once: bool,
    /// Print everything as JSON, once
    #[arg(long, conflicts_with = "once")]
    json: bool,
    /// Seconds between two looks (with --once: between the two that rates are made of)
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    interval: f64,
    /// The column to sort by, greatest first (names: in order)
    #[arg(long, value_enum, default_value_t = Column::Rate)]
    sort: Column,
    /// Show only actors whose name contains this
    #[arg(long, default_value = "", value_name = "TEXT")]
    filter: String,
}

/// A process's number.
fn number(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| "it must be the number of a process, as `perpetua top` without one lists them".into())
}

impl Args {
    fn interval(&self) -> Result<Duration, Failure> {
        match (0.05..=3600.0).contains(&self.interval) {
            true => Ok(Duration::from_secs_f64(self.interval)),
            false => Err(format!("--interval {}: take 0.05 to 3600 seconds", self.interval).into()),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let interval = args.interval()?;
    let Some(pid) = args.pid else {
        return list(args.json);
    };
    if !args.once && !args.json {
        return watch(pid, interval, args);
    }
    let mut watcher = Watcher::attach(pid)?;
    let first = Sample::now(watcher.report()?);
    if args.json {
        let text = serde_json::to_string_pretty(&first.report)?;
        return Ok(writeln!(stdout()?, "{text}")?);
    }
    std::thread::sleep(interval);
    let mut view = View::new(first);
    view.add(Sample::now(watcher.report()?));
    let text = plain::table(&view, &Gpus::open().read(pid), args.sort, &args.filter);
    Ok(stdout()?.write_all(text.as_bytes())?)
}

fn list(json: bool) -> Result<(), Failure> {
    let found = processes();
    if json {
        let known: Vec<&ProcessInfo> = found.iter().filter_map(|one| one.info.as_ref().ok()).collect();
        return Ok(writeln!(stdout()?, "{}", serde_json::to_string_pretty(&known)?)?);
    }
    Ok(stdout()?.write_all(plain::list(&found).as_bytes())?)
}

#[cfg(feature = "top")]
fn watch(pid: u32, interval: Duration, args: &Args) -> Result<(), Failure> {
    live::run(pid, interval, args.sort, &args.filter)
}

#[cfg(not(feature = "top"))]
fn watch(pid: u32, _interval: Duration, _args: &Args) -> Result<(), Failure> {
    Err(format!(
        "this program was built without the feature `top`, which has the live table: build it with \
         `cargo install --locked --path apps/perpetua --features top`, or take `perpetua top {pid} --once`"
    )
    .into())
}
