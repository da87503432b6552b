//! The server: takes clients, and ends with all that it has started. Must not know what a program is.

use std::ffi::OsString;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::address::{Address, Listener};
use super::child::{Child, Kinds};
use super::connection::{self, Connection, Rules};
use super::error::Error;
use super::job::Allowed;
use super::places::{Answers, Entry, Places, Summary};
use super::protocol::Code;
use super::queue::Queue;
use super::watch::Watch;
use super::worker;
use crate::executor::Limits;

/// How long jobs may go on, and clients may take their answers, when the server ends.
const GRACE: Duration = Duration::from_secs(2);
/// The longest time that is told from no end: the system's clock holds moments so far ahead.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What a server allows.
///
/// ```
/// use perpetua_isa::Limits;
/// use perpetua_isa::serve::Options;
/// use std::time::Duration;
/// let options = Options {
///     limits: Limits { memory: 64 << 20, ..Limits::default() },
///     clients: 16,
///     time: Duration::from_secs(1),
///     ..Options::default()
/// };
/// assert!(options.processes >= 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What programs may use.
    pub limits: Limits,
    /// Most clients at a time. A new one takes the place of the client for which the server has waited longest.
    pub clients: usize,
    /// How many child processes run programs at a time.
    pub processes: usize,
    /// Most bytes of a job, and of its result. The server keeps at most one for each client.
    pub message: u32,
    /// Most bytes of memory of a child process, where the system says how many it has (Linux).
    pub process_memory: u64,
    /// How long a job may run.
    pub time: Duration,
    /// How long a client may be quiet while there are places for others.
    pub idle: Duration,
    /// How long a message may take on its way, in either direction.
    pub transfer: Duration,
}

impl Default for Options {
    fn default() -> Options {
        let cores = thread::available_parallelism().map_or(2, usize::from);
        Options {
            limits: Limits {
                memory: 256 << 20,
                ..Limits::default()
            },
            clients: 128,
            processes: cores.clamp(2, 8),
            message: 16 << 20,
            process_memory: 2 << 30,
            time: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            transfer: Duration::from_secs(30),
        }
    }
}

/// Runs programs that nobody trusts for clients on this machine.
pub struct Server {
    listener: Listener,
    address: Address,
    first: Child,
    processes: usize,
    shared: Arc<Shared>,
    watcher: thread::JoinHandle<()>,
}

/// Ends a server.
#[derive(Clone)]
pub struct Stopper {
    shared: Arc<Shared>,
    address: Address,
}

// What threads share.
struct Shared {
    kinds: Kinds,
    queue: Queue,
    watch: Watch,
    rules: Rules,
    places: Places,
}

impl Stopper {
    /// Asks the server to end: jobs that run have two seconds more, whatever waits is refused.
    pub fn stop(&self) {
        self.shared.rules.is_ending.store(true, Ordering::Relaxed);
        // Whoever waits for a client gets one.
        drop(self.address.connect());
    }
}

impl Server {
    /// Listens at an address. `command` is a program with its arguments that calls [`work`](super::work) and nothing else: a child process.
    ///
    /// # Errors
    /// If it cannot listen there, or the first child cannot open its device.
    pub fn bind(address: &Address, options: Options, command: Vec<OsString>) -> Result<Server, Error> {
        let milliseconds = u64::try_from(options.time.min(LONGEST).as_millis()).unwrap_or(u64::MAX);
        let allowed = Allowed {
            limits: options.limits,
            message: options.message.into(),
            milliseconds,
        };
        let kinds = Kinds {
            command,
            allowed,
            memory: options.process_memory,
        };
        let rules = Rules {
            allowed,
            idle: options.idle.min(LONGEST),
            transfer: options.transfer.min(LONGEST),
            is_ending: AtomicBool::new(false),
        };
        let processes = options.processes.max(1);
        let listener = address.listen()?;
        let address = listener.address()?;
        let shared = Arc::new(Shared {
            kinds,
            queue: Queue::new(processes),
            watch: Watch::default(),
            rules,
            places: Places::new(options.clients),
        });
        let watching = Arc::clone(&shared);
        let watcher = spawn("isa watch", move || watching.watch.run())?;
        let first = shared.kinds.start(&shared.watch);
        let first = first.inspect_err(|_| shared.watch.is_over())?;
        Ok(Server {
            listener,
            address,
            first,
            processes,
            shared,
            watcher,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            shared: Arc::clone(&self.shared),
            address: self.address.clone(),
        }
    }

    /// Serves until it is stopped; then all that it has started has ended.
    ///
    /// # Errors
    /// If its threads cannot be started.
    pub fn run(self) -> Result<Summary, Error> {
        let mut first = Some(self.first);
        let mut workers = Vec::new();
        let mut failed = Ok(());
        for number in 0..self.processes {
            let (shared, child) = (Arc::clone(&self.shared), first.take());
            let work = move || worker::run(number, child, &shared.kinds, &shared.queue, &shared.watch);
            match spawn("isa worker", work) {
                Ok(worker) => workers.push(worker),
                Err(error) => failed = Err(error),
            }
        }
        if failed.is_ok() {
            self.shared.accept(&self.listener);
        }
        // The socket's file goes.
        drop(self.listener);
        self.shared.end();
        for worker in workers {
            // One that panicked has ended, too.
            let _ = worker.join();
        }
        self.shared.watch.is_over();
        let _ = self.watcher.join();
        failed?;
        Ok(self.shared.places.summary())
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<thread::JoinHandle<()>, Error> {
    // None of them calls deeply; there is one for each client.
    let builder = thread::Builder::new().name(name.into()).stack_size(256 << 10);
    Ok(builder.spawn(run)?)
}

// A client's place, which is left however its thread ends.
struct Left<'a> {
    shared: &'a Shared,
    entry: &'a Entry,
    answers: Option<Answers>,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.entry.stream.shutdown(Shutdown::Both);
        self.shared.places.leave(self.entry.client, self.answers.take());
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &Listener) {
        // How long it waits when the system has no room for another client.
        const PAUSE: Duration = Duration::from_millis(50);
        while !self.rules.is_ending.load(Ordering::Relaxed) {
            #[cfg(unix)]
            if !listener.is_called() {
                continue;
            }
            let stream = listener.accept();
            if self.rules.is_ending.load(Ordering::Relaxed) {
                return;
            }
            let Ok(stream) = stream else {
                thread::sleep(PAUSE);
                continue;
            };
            let Some(entry) = self.places.enter(stream) else {
                continue;
            };
            let (shared, client) = (Arc::clone(self), entry.client);
            let serve = move || {
                let mut left = Left {
                    shared: &shared,
                    entry: &entry,
                    answers: None,
                };
                left.answers = shared.serve(&entry);
            };
            if spawn("isa client", serve).is_err() {
                self.places.leave(client, None);
            }
        }
    }

    // Serves a client, or says that there is no place for it.
    fn serve(&self, entry: &Entry) -> Option<Answers> {
        if !entry.is_served {
            let message = format!(
                "the server has {} clients with jobs, as many as it takes: come again later",
                self.places.most
            );
            let error = Error::Refused {
                code: Code::Full,
                message,
            };
            let told = || self.places.has_told(entry.client);
            connection::refuse(&entry.stream, 0, &error, &self.rules, told);
            return None;
        }
        self.queue.enter(entry.client);
        let mut connection = Connection {
            client: entry.client,
            stream: &entry.stream,
            rules: &self.rules,
            queue: &self.queue,
            places: &self.places,
            ahead: None,
        };
        let answers = connection.run();
        self.queue.leave(entry.client);
        Some(answers)
    }

    // Ends clients: those that wait for an answer get one, the others are told.
    fn end(&self) {
        self.queue.end();
        self.watch.end_within(GRACE);
        self.places.shutdown(Shutdown::Read);
        let end = Instant::now() + 2 * GRACE;
        self.places.wait(end);
        // Those that do not take their answers.
        self.places.shutdown(Shutdown::Both);
        self.places.wait(end + GRACE);
    }
}
