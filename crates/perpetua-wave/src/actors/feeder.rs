//! While tiles run freely, somebody has to say what sources will add: a thread that looks in now and then.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::super::error::{Error, Result};
use super::core::{Core, lock};

/// Time between two looks: tiles do some thousands of steps.
const PAUSE: Duration = Duration::from_millis(2);

/// The thread. It ends when this is dropped.
pub(super) struct Feeder {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Feeder {
    pub(super) fn start(core: Arc<Mutex<Core>>) -> Result<Feeder> {
        let (stop, stopped) = channel::<()>();
        let feed = move || {
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = lock(&core).feed() {
                    // Tiles stop where their sources' signals end; who asks them next is told why.
                    tracing::error!(%error, "tiles cannot go on");
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("tile feeder".into())
            .spawn(feed)
            .map_err(|_| Error::Actors {
                cannot: "run freely: there is no thread to feed them".into(),
                instead: "ask for steps by number",
            })?;
        Ok(Feeder {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It has told its error; a panic of its is told by the lock's users.
            let _ = thread.join();
        }
    }
}
