//! A worker: a thread with a child process, which takes jobs in turn. A child serves one client alone, so that what one client's programs leave
//! in it, or do to it, meets no other client.

use std::time::{Duration, Instant};

use super::child::{Child, Kinds};
use super::error::Error;
use super::frame::Frame;
use super::queue::{Next, Queue};
use super::watch::Watch;

/// Takes jobs until the queue ends. It begins with a child, or none.
pub(super) fn run(worker: usize, first: Option<Child>, kinds: &Kinds, queue: &Queue, watch: &Watch) {
    // How long it waits when children cannot be started, and nobody waits for one.
    const PAUSE: Duration = Duration::from_millis(200);
    let mut child = first;
    let mut owner = None;
    loop {
        if child.is_none() {
            owner = None;
            // One that cannot be started is tried again for the next job, who is told why.
            child = kinds.start(watch).ok();
            if child.is_none() {
                std::thread::sleep(PAUSE);
            }
        }
        let job = match queue.next(worker, owner) {
            Next::Job(job) => job,
            Next::Retire => {
                child = None;
                continue;
            }
            Next::End => return,
        };
        let began = Instant::now();
        if owner.is_some_and(|owner| owner != job.client) {
            child = None;
        }
        let id = job.frame.id;
        let running = match child.take() {
            Some(child) => Ok(child),
            None => kinds.start(watch),
        };
        let done = running.and_then(|mut running| {
            let answer = running.run(job.frame, kinds, watch, &job.is_gone)?;
            child = Some(running);
            Ok(answer)
        });
        owner = Some(job.client);
        queue.has_used(job.client, began.elapsed());
        let answer = done.unwrap_or_else(|error: Error| Frame::error(id, error.code(), &error.to_string()));
        // A client that has gone wants no answer.
        let _ = job.answer.send(answer);
    }
}
