//! What a child process does: reads jobs, runs them on its device, writes answers. It serves one client alone, and keeps nothing from one job to
//! the next but compiled programs.

use std::io::{Read, Write};
use std::sync::mpsc;
use std::thread;

use perpetua_device::Device;

use super::error::Error;
use super::frame::Frame;
use super::job::{self, Allowed, Data, Job};
use super::protocol::{Code, Kind};
use super::rights;
use crate::error::Error as RunError;
use crate::executor::Executor;
use crate::program::MemoryKind;
use crate::verify::MAX_DECLARATIONS;

/// Runs jobs that come from `input` and writes their answers to `output`, until the input ends: the part of a child process of a
/// [`Server`](super::Server), which starts it. `memory` is its [`Options::process_memory`](super::Options::process_memory). For the whole
/// process it gives up what running programs does not need (docs/serve.md).
///
/// # Errors
/// If its pipes break. That the device cannot be opened is told to the server.
pub fn work(
    open: impl FnOnce() -> perpetua_device::Result<Device>,
    memory: u64,
    input: impl Read + Send + 'static,
    mut output: impl Write,
) -> Result<(), Error> {
    rights::give_up();
    let (sender, frames) = mpsc::sync_channel(0);
    // The server's end is seen also while a program runs, and is the end of this process.
    thread::Builder::new().spawn(move || {
        let mut input = input;
        while let Ok(Some(frame)) = Frame::read(&mut input, u64::MAX) {
            if sender.send(frame).is_err() {
                return;
            }
        }
        std::process::exit(0);
    })?;
    let Ok(setup) = frames.recv() else { return Ok(()) };
    let allowed = Allowed::decode(&setup.payload)?;
    let executor = match open() {
        Ok(device) => Executor::on(device).untrusted(allowed.limits),
        Err(error) => return Frame::error(setup.id, Code::Process, &error.to_string()).write(&mut output),
    };
    rights::give_up_with(executor.device(), memory);
    setup.write(&mut output)?;
    while let Ok(frame) = frames.recv() {
        let answer = run(&executor, &frame.payload, &allowed, memory);
        let is_over = matches!(&answer, Err(error) if error.code() == Code::Process);
        let answer = match answer {
            Ok(payload) => Frame {
                kind: Kind::Result,
                id: frame.id,
                payload,
            },
            Err(error) => Frame::error(frame.id, error.code(), &error.to_string()),
        };
        answer.write(&mut output)?;
        if is_over {
            return Ok(());
        }
    }
    Ok(())
}

fn run(executor: &Executor, payload: &[u8], allowed: &Allowed, memory: u64) -> Result<Vec<u8>, Error> {
    let job = Job::decode(payload)?;
    check(&job, allowed)?;
    let refused = |error| refused(error, memory);
    let mut handles = Vec::with_capacity(job.contents.len());
    let done = launch(executor, &job, &mut handles).map_err(refused);
    // Whatever came of it, the next job finds nothing of this one.
    for (handle, is_pool) in handles {
        let freed = match is_pool {
            true => executor.free_pool(handle),
            false => executor.free_buffer(handle),
        };
        freed.map_err(refused)?;
    }
    job::encode_result(&done?)
}

// Each buffer and pool has one content, of its kind; the result is no longer than a message may be.
fn check(job: &Job<'_>, allowed: &Allowed) -> Result<(), Error> {
    let wrong = |message: String| Error::Refused {
        code: Code::Job,
        message,
    };
    // Looked through for each other before the verifier has bounded them.
    let most = job.program.memories.len().max(job.contents.len());
    if most > MAX_DECLARATIONS {
        return Err(wrong(format!(
            "{most} buffers and pools: at most {MAX_DECLARATIONS} can be"
        )));
    }
    let mut needed = 0;
    for memory in &job.program.memories {
        let is_pool = match memory.kind {
            MemoryKind::Buffer { .. } => false,
            MemoryKind::Pool { .. } => true,
            MemoryKind::Shared { .. } | MemoryKind::Constants(_) => continue,
        };
        needed += 1;
        let mut given = job.contents.iter().filter(|content| content.name == memory.name);
        match (given.next(), given.next()) {
            // What is too large is told as that.
            (Some(content), None)
                if !is_pool
                    && job::len(content) <= allowed.limits.memory as u64
                    && !job::len(content).is_multiple_of(memory.element.size().into()) =>
            {
                return Err(wrong(format!(
                    "`{}` has {} bytes, which are no whole elements of {}",
                    memory.name,
                    job::len(content),
                    memory.element
                )));
            }
            (Some(content), None) if matches!(content.data, Data::Pool(_)) == is_pool => {}
            (Some(_), None) => {
                let kind = if is_pool { "a pool" } else { "a buffer" };
                return Err(wrong(format!(
                    "`{}` is {kind}, and is given as something else",
                    memory.name
                )));
            }
            (None, _) => {
                return Err(wrong(format!(
                    "`{}` has no content: send one with its name",
                    memory.name
                )));
            }
            (Some(_), Some(_)) => return Err(wrong(format!("`{}` has two contents: send one", memory.name))),
        }
    }
    if needed != job.contents.len() {
        return Err(wrong(format!(
            "{} contents are sent, and the program has {needed} buffers and pools",
            job.contents.len()
        )));
    }
    let returned = job.contents.iter().filter(|content| content.is_returned);
    // As `encode_result` writes it.
    let bytes = returned.fold(2, |sum: u64, content| {
        sum.saturating_add(10 + content.name.len() as u64)
            .saturating_add(job::len(content))
    });
    match bytes <= allowed.message {
        true => Ok(()),
        false => Err(Error::Refused {
            code: Code::Large,
            message: format!(
                "the result has {bytes} bytes: at most {} are allowed; ask for fewer buffers",
                allowed.message
            ),
        }),
    }
}

fn launch<'a>(
    executor: &Executor,
    job: &Job<'a>,
    handles: &mut Vec<(u64, bool)>,
) -> Result<Vec<(&'a str, Vec<u8>)>, RunError> {
    let mut program = job.program.clone();
    for content in &job.contents {
        let size = usize::try_from(job::len(content)).unwrap_or(usize::MAX);
        let is_pool = matches!(content.data, Data::Pool(_));
        let handle = match is_pool {
            true => executor.allocate_pool(size)?,
            false => executor.allocate_buffer(size)?,
        };
        handles.push((handle, is_pool));
        if let Data::Bytes(bytes) = content.data {
            executor.write_buffer(handle, 0, bytes)?;
        }
        program = program.with_buffer(content.name, handle)?;
    }
    executor.execute(&program, &job.config, &job.arguments)?;
    executor.synchronize()?;
    let contents = job.contents.iter().zip(handles.iter());
    let returned = contents.filter(|(content, _)| content.is_returned);
    returned
        .map(|(content, (handle, is_pool))| {
            let size = usize::try_from(job::len(content)).unwrap_or(usize::MAX);
            let bytes = match is_pool {
                true => executor.read_pool(*handle, 0, size)?,
                false => executor.read_buffer(*handle, 0, size)?,
            };
            Ok((content.name, bytes))
        })
        .collect()
}

// An error of a run, as the client is told it. `memory` is what a process may take, which the device does not know.
fn refused(error: RunError, memory: u64) -> Error {
    use perpetua_device::Error as Lower;
    let code = match &error {
        RunError::Device(Lower::Fault(_)) => Code::Fault,
        RunError::Device(Lower::DeviceLost { .. }) => Code::Process,
        RunError::Device(Lower::OutOfMemory { requested, .. }) => {
            return Error::Refused {
                code: Code::Memory,
                message: format!(
                    "{requested} bytes cannot be had: the device has no more, or a process may not take them (it may take {memory}); \
                     use smaller buffers, or ask for a larger --process-memory"
                ),
            };
        }
        _ => Code::Program,
    };
    Error::Refused {
        code,
        message: error.to_string(),
    }
}
