//! Tiles on the host's threads: strips of rows, a thread each, which hand each other the rows at their borders. No thread waits
//! for all others; who has nothing to do sleeps.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::error::{Error, Result};
use super::engine::{DRIVES, Engine, SOURCES, Taken};
use super::order::{FREE, Order, PARK, PAUSE, PROBE, RUN, SAVE, order};
use super::strip::Strip;

/// Orders that are kept for the slowest tile.
const KEPT: usize = 1024;
/// How long an answer may take.
const LONGEST: Duration = Duration::from_secs(600);

/// Rows that one tile hands to a neighbour: two exchanges of both fields.
pub(super) struct Mailbox {
    /// Which exchange lies in each half.
    full: [AtomicU32; 2],
    rows: [Vec<AtomicU32>; 2],
}

impl Mailbox {
    fn new(numbers: usize) -> Mailbox {
        let rows = || (0..numbers).map(|_| AtomicU32::new(0)).collect();
        Mailbox {
            full: [AtomicU32::new(0), AtomicU32::new(0)],
            rows: [rows(), rows()],
        }
    }

    /// Hands over the numbers of an exchange. The half is free: the neighbour has sent what it could only send behind reading it.
    pub(super) fn send<'a>(&self, round: u32, numbers: impl Iterator<Item = &'a f32>) {
        let half = (round & 1) as usize;
        for (to, from) in self.rows[half].iter().zip(numbers) {
            to.store(from.to_bits(), Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `receive`; the rows come before it.
        self.full[half].store(round, Ordering::Release);
    }

    /// Takes the numbers of an exchange, if they are there.
    pub(super) fn receive<'a>(&self, round: u32, numbers: impl Iterator<Item = &'a mut f32>) -> bool {
        let half = (round & 1) as usize;
        if self.full[half].load(Ordering::Acquire) != round {
            return false;
        }
        for (to, from) in numbers.zip(&self.rows[half]) {
            *to = f32::from_bits(from.load(Ordering::Relaxed));
        }
        true
    }
}

/// Orders in the order in which all tiles do them.
struct Log {
    entries: VecDeque<Order>,
    /// The first one's number.
    first: u64,
    /// Steps among them all.
    steps: u32,
    /// Until which step tiles go on by themselves.
    target: u32,
    /// How far each tile is.
    done: Vec<u64>,
}

/// What a tile's thread shares with the others and with the host.
pub(super) struct Shared {
    log: Mutex<Log>,
    /// There is something new in the log.
    more: Condvar,
    /// A tile is through with an order.
    through: Condvar,
    answers: Mutex<HashMap<u32, (f32, u32)>>,
    answered: Condvar,
    saved: Mutex<(Vec<f32>, Vec<f32>)>,
    drives: Vec<AtomicU32>,
    /// From each tile to the one above it, then to the one below it.
    pub(super) mail: Vec<[Mailbox; 2]>,
    /// A tile's thread ended before its time.
    broken: AtomicBool,
    chunk: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Shared {
    /// What a source adds in a step.
    pub(super) fn drive(&self, step: u32, source: usize) -> f32 {
        let at = (u64::from(step) % DRIVES) as usize * SOURCES + source;
        // Relaxed: the order to do this step came through the log's lock, behind the store.
        self.drives
            .get(at)
            .map_or(0.0, |d| f32::from_bits(d.load(Ordering::Relaxed)))
    }

    /// The tile is through with all entries before `entry`: the next one, when there is one.
    fn next(&self, tile: usize, entry: u64) -> Order {
        let mut log = lock(&self.log);
        if let Some(done) = log.done.get_mut(tile) {
            *done = entry;
        }
        self.through.notify_all();
        loop {
            if let Some(found) = log.entries.get((entry - log.first) as usize) {
                return *found;
            }
            if log.target != log.steps {
                // Who comes first says how far all go.
                let turns = self.chunk.min(log.target.wrapping_sub(log.steps));
                log.entries.push_back(order(RUN, &[turns]));
                log.steps = log.steps.wrapping_add(turns);
                self.more.notify_all();
                continue;
            }
            log = self.more.wait(log).unwrap_or_else(|e| e.into_inner());
        }
    }

    fn run(&self, tile: usize, mut strip: Strip) {
        let mut entry = 0;
        loop {
            let order = self.next(tile, entry);
            match order[0] {
                RUN => (0..order[1]).for_each(|_| strip.step(self)),
                PROBE => {
                    if let Some(value) = strip.value([order[1], order[2]]) {
                        lock(&self.answers).insert(order[3], (value, strip.steps()));
                        self.answered.notify_all();
                    }
                }
                SAVE | PARK => {
                    let mut saved = lock(&self.saved);
                    let (now, before) = &mut *saved;
                    strip.save(now, before);
                }
                _ => strip.change(&order),
            }
            entry += 1;
            if order[0] == PARK {
                let mut log = lock(&self.log);
                if let Some(done) = log.done.get_mut(tile) {
                    *done = entry;
                }
                self.through.notify_all();
                return;
            }
        }
    }
}

/// Says so when a thread ends by a panic.
struct Watch(Arc<Shared>);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Release: pairs with the Acquire in `Threads::until`.
            self.0.broken.store(true, Ordering::Release);
        }
    }
}

/// The host's side.
pub(super) struct Threads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Orders pushed, and of the last ones where they stand in the log, and behind how many steps.
    pushed: u32,
    places: VecDeque<(u64, u32)>,
    form: String,
}

impl Threads {
    /// Starts the threads of strips, top to bottom; `numbers` are those of a halo.
    pub(super) fn start(strips: Vec<Strip>, cells: usize, numbers: usize, chunk: u32) -> Result<Threads> {
        let form = format!("tile actors: {} on threads", strips.len());
        let shared = Arc::new(Shared {
            log: Mutex::new(Log {
                entries: VecDeque::new(),
                first: 0,
                steps: 0,
                target: 0,
                done: vec![0; strips.len()],
            }),
            more: Condvar::new(),
            through: Condvar::new(),
            answers: Mutex::default(),
            answered: Condvar::new(),
            saved: Mutex::new((vec![0.0; cells], vec![0.0; cells])),
            drives: (0..DRIVES as usize * SOURCES)
                .map(|_| AtomicU32::new(0))
                .collect(),
            mail: strips
                .iter()
                .map(|_| [Mailbox::new(numbers), Mailbox::new(numbers)])
                .collect(),
            broken: AtomicBool::new(false),
            chunk,
        });
        let mut engine = Threads {
            shared,
            threads: Vec::new(),
            pushed: 0,
            places: VecDeque::new(),
            form,
        };
        for (tile, strip) in strips.into_iter().enumerate() {
            let shared = Arc::clone(&engine.shared);
            let name = format!("tile {tile}");
            let run = move || {
                let watch = Watch(shared);
                watch.0.run(tile, strip);
            };
            match std::thread::Builder::new().name(name).spawn(run) {
                Ok(thread) => engine.threads.push(thread),
                Err(_) => {
                    // Those that run already end by the order that `stop` gives.
                    engine.stop()?;
                    return Err(Error::Actors {
                        cannot: format!("have a thread for tile {tile}"),
                        instead: "take fewer threads",
                    });
                }
            }
        }
        Ok(engine)
    }

    /// Waits on a condition until `ready` gives something.
    fn until<S, T>(
        &self,
        state: &Mutex<S>,
        changed: &Condvar,
        mut ready: impl FnMut(&mut S) -> Option<T>,
    ) -> Result<T> {
        let start = Instant::now();
        let mut guard = lock(state);
        loop {
            if let Some(found) = ready(&mut guard) {
                return Ok(found);
            }
            if self.shared.broken.load(Ordering::Acquire) || start.elapsed() > LONGEST {
                return Err(Error::Actors {
                    cannot: "go on: a tile's thread has ended or hangs".into(),
                    instead: "start anew",
                });
            }
            guard = changed
                .wait_timeout(guard, Duration::from_millis(100))
                .unwrap_or_else(|e| e.into_inner())
                .0;
        }
    }

    fn place(&self, number: u32) -> Option<(u64, u32)> {
        let back = self.pushed.wrapping_sub(number) as usize;
        // Of an older one, the oldest that is known stands behind it.
        let at = self.places.len().saturating_sub(back);
        self.places.get(at).copied()
    }
}

impl Engine for Threads {
    fn push(&mut self, order: &Order) -> Result<u32> {
        let mut log = lock(&self.shared.log);
        let before = log.steps;
        match order[0] {
            FREE => log.target = order[1],
            PAUSE => log.target = log.steps,
            kind => {
                let mut order = *order;
                if kind == PROBE {
                    order[3] = self.pushed;
                }
                log.entries.push_back(order);
                if kind == RUN {
                    log.steps = log.steps.wrapping_add(order[1]);
                    log.target = log.steps;
                }
            }
        }
        let behind = log.done.iter().copied().min().unwrap_or(0);
        while log.first < behind && log.entries.len() > KEPT {
            log.entries.pop_front();
            log.first += 1;
        }
        let place = log.first + log.entries.len() as u64;
        drop(log);
        self.shared.more.notify_all();
        self.places.push_back((place, before));
        if self.places.len() > KEPT {
            self.places.pop_front();
        }
        self.pushed = self.pushed.wrapping_add(1);
        Ok(self.pushed.wrapping_sub(1))
    }

    fn taken(&mut self, number: u32) -> Result<Taken> {
        Ok(Taken {
            step: self.place(number).map_or(0, |(_, step)| step),
        })
    }

    fn wait(&mut self, number: u32) -> Result<()> {
        let Some((place, _)) = self.place(number) else {
            return Ok(());
        };
        let shared = &*self.shared;
        self.until(&shared.log, &shared.through, |log| {
            log.done.iter().all(|done| *done >= place).then_some(())
        })
    }

    fn answer(&mut self, number: u32) -> Result<(f32, u32)> {
        let shared = &*self.shared;
        self.until(&shared.answers, &shared.answered, |answers| {
            answers.remove(&number)
        })
    }

    fn saved(&mut self) -> Result<(Vec<f32>, Vec<f32>)> {
        Ok(lock(&self.shared.saved).clone())
    }

    fn supply(&mut self, from: u64, rows: &[[f32; SOURCES]]) -> Result<()> {
        for (step, row) in (from..).zip(rows) {
            let at = (step % DRIVES) as usize * SOURCES;
            for (to, value) in self.shared.drives[at..at + SOURCES].iter().zip(row) {
                // Relaxed: as in `Shared::drive`.
                to.store(value.to_bits(), Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        if self.threads.is_empty() {
            return Ok(());
        }
        self.push(&order(PAUSE, &[]))?;
        self.push(&order(PARK, &[]))?;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                return Err(Error::Actors {
                    cannot: "end in order: a tile's thread panicked".into(),
                    instead: "report this",
                });
            }
        }
        Ok(())
    }

    fn stays(&self) -> bool {
        true
    }

    fn form(&self) -> String {
        self.form.clone()
    }

    fn ahead(&self) -> u32 {
        2 * self.shared.chunk
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // The error was told to whoever called `stop`; who only drops has nobody to tell.
        let _ = self.stop();
    }
}
