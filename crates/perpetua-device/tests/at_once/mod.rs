//! Work of several streams at the same time, for tests of what meets in memory.

use std::thread::scope;

use perpetua_device::{Device, Result, Stream};

/// How often each stream does its work.
pub(crate) const ROUNDS: u8 = 8;

/// What a stream is given to do, with the number of the round.
pub(crate) type Work<'a> = &'a (dyn Fn(&Stream, u8) -> Result<()> + Sync);

/// Runs each of `work` on a thread and a stream of its own, all at the same time.
pub(crate) fn at_once(device: &Device, work: &[Work<'_>]) -> Result<()> {
    scope(|scope| {
        let threads: Vec<_> = work
            .iter()
            .map(|work| {
                scope.spawn(move || -> Result<()> {
                    let stream = device.create_stream()?;
                    (0..ROUNDS).try_for_each(|round| work(&stream, round))?;
                    stream.synchronize()
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}
