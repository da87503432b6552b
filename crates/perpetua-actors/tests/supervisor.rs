//! Supervised programs: this one, started again as a parent and its children, which are killed, stopped, and left with torn checkpoints.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use perpetua::prelude::*;
use perpetua_actors::supervisor::{self, Generation, Keeper, SupervisorOptions};
use perpetua_actors::{
    ActorError, Backend, Context, KernelHandle, LaunchOptions, PerpetuaRuntime, RingMessage, ring_kernel,
};

/// A number that is added.
#[derive(Clone, Copy, GpuType, RingMessage)]
#[repr(C)]
struct Add {
    number: u32,
}

#[derive(Clone, Copy, GpuType, RingMessage)]
#[repr(C)]
struct Question {
    reserved: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Total {
    sum: u64,
    count: u32,
    reserved: u32,
}

#[ring_kernel(also(answer))]
fn add(_ctx: &mut Context, total: &mut Total, message: Add) {
    total.sum += message.number as u64;
    total.count += 1;
}

#[ring_kernel]
fn answer(_ctx: &mut Context, total: &mut Total, _question: Question) -> Total {
    *total
}

fn when_room<T>(mut act: impl FnMut() -> Result<T, ActorError>) -> Result<T, ActorError> {
    loop {
        match act() {
            Err(ActorError::Full { .. }) => std::thread::sleep(Duration::from_micros(50)),
            other => return other,
        }
    }
}

/// Adds all numbers from one to the other.
fn feed(kernel: &KernelHandle, mut numbers: std::ops::RangeInclusive<u32>) -> Result<(), ActorError> {
    numbers.try_for_each(|number| when_room(|| kernel.send(&Add { number })).map(drop))
}

/// The sum, once there is room to ask for it: a restored actor's mailbox may be as full as it was.
fn total(kernel: &KernelHandle) -> Result<Total, ActorError> {
    when_room(|| kernel.ask_blocking(&Question { reserved: 0 }))
}

/// The program that is supervised.
fn child(generation: &Generation, mode: &str) -> Result<(), Box<dyn Error>> {
    println!("child {} process {}", generation.number(), std::process::id());
    let place = if mode == BROKEN {
        Backend::Cuda
    } else {
        Backend::Cpu
    };
    let runtime = PerpetuaRuntime::builder().backend(place).build_blocking()?;
    runtime.register(add::handler());
    let kernel = match generation.restore(&runtime)? {
        Some(restored) => {
            let kernel = restored.kernels[0].clone();
            let Total { sum, count, .. } = total(&kernel)?;
            let whole = sum == u64::from(count) * u64::from(count + 1) / 2;
            println!(
                "restored {count}, whole: {whole}, skipped: {}",
                restored.skipped.len()
            );
            for skipped in restored.skipped {
                println!("skipped: {skipped}");
            }
            kernel
        }
        None => runtime.launch_blocking("sum", LaunchOptions::new(add::handler()))?,
    };
    let keeper = generation.keep(&runtime)?;
    if generation.number() == 0 || mode == "hopeless" {
        first(mode, &kernel, &keeper)?;
    }
    drop(keeper);
    runtime.shutdown_blocking()?;
    Ok(())
}

/// The mode in which actors live on a GPU that is lost.
const BROKEN: &str = "broken";

/// What befalls the first child.
fn first(mode: &str, kernel: &KernelHandle, keeper: &Keeper) -> Result<(), Box<dyn Error>> {
    feed(kernel, 1..=1000)?;
    total(kernel)?;
    let saved = keeper.checkpoint()?;
    match mode {
        // Killed while messages come.
        "killed" => {
            println!("ready");
            feed(kernel, 1001..=u32::MAX)?;
        }
        "periodic" => {
            feed(kernel, 1001..=20_000)?;
            while saved.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            println!("ready");
            feed(kernel, 20_001..=u32::MAX)?;
        }
        "torn" => {
            feed(kernel, 1001..=2000)?;
            total(kernel)?;
            let newest = keeper.checkpoint()?;
            let bytes = std::fs::read(&newest)?;
            std::fs::write(&newest, &bytes[..bytes.len() / 2])?;
            std::process::abort();
        }
        "silent" | "orphaned" => {
            println!("ready");
            std::thread::sleep(Duration::from_secs(600));
        }
        "lost" => {
            let lost = perpetua_device::Error::DeviceLost {
                backend: Backend::Cuda,
                device: "one".into(),
                reason: "for a test".into(),
            };
            return Err(ActorError::from(lost).into());
        }
        BROKEN => {
            perpetua_device::Device::new(Backend::Cuda, 0)?.lose_device_for_test()?;
            // The keeper may tell it before.
            return Err(total(kernel).unwrap_err().into());
        }
        "fails" => return Err("no more luck".into()),
        _ => std::process::abort(),
    }
    Ok(())
}

fn program(mode: &str, folder: &str) -> ExitCode {
    let often = Duration::from_millis(30);
    let never = Duration::from_secs(600);
    let options = SupervisorOptions::new(folder)
        .with_interval(if mode == "periodic" { often } else { never })
        .with_restarts(3, never)
        .with_backoff(Duration::from_millis(10))
        .with_heartbeat(Duration::from_secs(2));
    match supervisor::run(&options, |generation| child(generation, mode)) {
        Ok(endings) => {
            endings.iter().for_each(|ending| println!("ended: {ending}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn signal(name: &str, process: &str) {
    let sent = Command::new("kill").args([name, process]).status();
    assert!(sent.unwrap().success(), "kill {name} {process}");
}

/// Runs the program in a folder of its own; `ready` is told the parent and the first child's number when that is ready. What it printed,
/// and whether it ended well.
fn run(mode: &str, ready: impl Fn(&Child, &str)) -> (String, bool) {
    let folder = std::env::temp_dir().join(format!("perpetua-supervisor-{mode}-{}", std::process::id()));
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--program".as_ref(), mode.as_ref(), folder.as_os_str()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            // Whoever would hear it has failed.
            let _ = sender.send(line);
        }
    });
    let mut text = String::new();
    let mut process = String::new();
    // Its end is that of the last process that can print.
    loop {
        match received.recv_timeout(Duration::from_secs(100)) {
            Ok(line) => {
                if let Some(number) = line.strip_prefix("child 0 process ") {
                    process = number.into();
                }
                if line == "ready" {
                    ready(&parent, &process);
                }
                text += &line;
                text.push('\n');
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                parent.kill().unwrap();
                panic!("{mode} does not end:\n{text}");
            }
        }
    }
    let well = parent.wait().unwrap().success();
    let kept = std::fs::read_dir(&folder).map_or(0, Iterator::count);
    // One more where it was killed before it removed the oldest.
    assert!(kept <= 3, "{mode} keeps {kept} checkpoints");
    remove(&folder);
    (text, well)
}

fn remove(folder: &Path) {
    if folder.exists() {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

fn check(mode: &str, ready: impl Fn(&Child, &str), well: bool, expected: &[&str]) -> Result<(), Failed> {
    let (text, ended_well) = run(mode, ready);
    assert_eq!(ended_well, well, "{mode}:\n{text}");
    for line in expected {
        assert!(text.contains(line), "{mode}: no `{line}` in\n{text}");
    }
    Ok(())
}

fn kill(_: &Child, process: &str) {
    std::thread::sleep(Duration::from_millis(50));
    signal("-KILL", process);
}

type Test = fn() -> Result<(), Failed>;

fn nothing(_: &Child, _: &str) {}

fn killed() -> Result<(), Failed> {
    let restored = "restored 1000, whole: true, skipped: 0";
    check("killed", kill, true, &[restored, "ended: signal 9 ended it"])
}

fn killed_between_periodic_checkpoints() -> Result<(), Failed> {
    let (text, well) = run("periodic", kill);
    assert!(well, "{text}");
    let restored = text.lines().find_map(|line| line.strip_prefix("restored "));
    let (count, rest) = restored.and_then(|line| line.split_once(',')).unwrap();
    assert!(count.parse::<u32>().unwrap() > 1000, "{text}");
    assert_eq!(rest, " whole: true, skipped: 0", "{text}");
    Ok(())
}

fn torn() -> Result<(), Failed> {
    let torn = "actors-0000000001.checkpoint cannot be used: it is torn: ";
    let restored = "restored 1000, whole: true, skipped: 1";
    check(
        "torn",
        nothing,
        true,
        &[torn, restored, "ended: signal 6 ended it"],
    )
}

fn silent() -> Result<(), Failed> {
    let stop = |_: &Child, process: &str| signal("-STOP", process);
    let ended = "ended: it gave no sign of life for 2s, and was killed";
    check("silent", stop, true, &["restored 1000, whole: true", ended])
}

fn lost() -> Result<(), Failed> {
    let ended = "ended: its device was lost (CUDA device `one` was lost: for a test;";
    check("lost", nothing, true, &["restored 1000, whole: true", ended])
}

/// A kernel beside the actors writes where nothing is.
fn broken() -> Result<(), Failed> {
    let ended = "ended: its device was lost (CUDA device `";
    check(BROKEN, nothing, true, &["restored 1000, whole: true", ended])
}

fn fails() -> Result<(), Failed> {
    check(
        "fails",
        nothing,
        true,
        &["ended: it ended with code 1 (no more luck)"],
    )
}

fn hopeless() -> Result<(), Failed> {
    let all = [
        "child 3 process",
        "error: the supervised program was restarted 3 times within 600s and has ended again: signal 6 ended it",
    ];
    check("hopeless", nothing, false, &all)
}

fn orphaned() -> Result<(), Failed> {
    // The child ends by itself, or the test takes too long.
    let kill_parent = |parent: &Child, _: &str| signal("-KILL", &parent.id().to_string());
    let (text, well) = run("orphaned", kill_parent);
    assert!(!well && !text.contains("child 1"), "{text}");
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mark, mode, folder] = &arguments[..]
        && mark == "--program"
    {
        return program(mode, folder);
    }
    let mut tests = Vec::new();
    // Signals are sent as Unix does.
    if cfg!(unix) {
        let all: [(&str, Test); 8] = [
            ("killed_under_load", killed),
            (
                "killed_between_periodic_checkpoints",
                killed_between_periodic_checkpoints,
            ),
            ("a_torn_checkpoint_is_passed_over", torn),
            ("a_silent_child_is_replaced", silent),
            ("a_lost_device_is_told", lost),
            ("a_failure_is_told", fails),
            ("too_many_restarts_are_an_error", hopeless),
            ("an_orphan_ends", orphaned),
        ];
        tests.extend(all.map(|(name, test)| Trial::test(name, test)));
        let has_gpu = perpetua_device::Device::new(Backend::Cuda, 0).is_ok();
        let kind = if has_gpu { "CUDA" } else { "needs CUDA" };
        let broken = Trial::test("a_context_that_breaks_brings_its_actors_back", broken);
        tests.push(broken.with_kind(kind).with_ignored_flag(!has_gpu));
    }
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}
