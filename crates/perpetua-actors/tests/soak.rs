//! Everything at random for a while, five seconds or `PERPETUA_SOAK_SECONDS`: full mailboxes, slow consumers, actors that are
//! deactivated, terminated, launched anew, that fault and send to each other. Each accepted message is handled once or reported:
//! who sends, who handles and who reports add up the messages' numbers (scrambled, so that sums agree by no accident).

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use perpetua::device::future::block_on;
use perpetua::prelude::*;
use perpetua_actors::handler::{Handler, Takes};
use perpetua_actors::message::PAYLOAD_WORDS;
use perpetua_actors::{
    ActorError, Context, KernelHandle, Kind, LaunchOptions, PerpetuaRuntime, RingMessage, SendOptions,
    Supervision,
};

const ACTORS: usize = 8;
const SENDERS: u64 = 2;
const CAPACITY: usize = 32;

/// A number of messages, and the sum of their scrambled numbers.
struct Sum {
    count: AtomicU64,
    sum: AtomicU64,
}

impl Sum {
    const fn new() -> Sum {
        Sum {
            count: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }

    fn add(&self, number: u64) {
        self.count.fetch_add(1, Relaxed);
        self.sum.fetch_add(scramble(number), Relaxed);
    }

    fn get(&self) -> Figures {
        Figures(self.count.load(Relaxed), self.sum.load(Relaxed))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Figures(u64, u64);

impl std::ops::Add for Figures {
    type Output = Figures;
    fn add(self, other: Figures) -> Figures {
        Figures(self.0 + other.0, self.1.wrapping_add(other.1))
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:016x})", self.0, self.1)
    }
}

// Steele, Lea and Flood's SplitMix64.
fn scramble(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What handlers have handled, sent to each other and to the host.
static HANDLED: Sum = Sum::new();
static PASSED_ON: Sum = Sum::new();
static REPORTED: Sum = Sum::new();
static DISORDER: AtomicU64 = AtomicU64::new(0);

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Task {
    Note,
    Answer,
    Report,
    PassOn,
    Fault,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    number: u64,
    task: u32,
    /// Whose numbers ascend.
    source: u32,
    to: u32,
}

#[derive(Clone, Copy, Debug)]
struct Done {
    number: u64,
}

fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

fn number_of(words: &[u32; PAYLOAD_WORDS]) -> u64 {
    u64::from(words[0]) | u64::from(words[1]) << 32
}

impl RingMessage for Job {
    const TYPE_ID: u32 = 1;
    const WORDS: usize = 5;
    const NAME: &'static str = "Job";
    fn to_payload(&self) -> [u32; PAYLOAD_WORDS] {
        let [low, high] = halves(self.number);
        let mut words = [0; PAYLOAD_WORDS];
        words[..5].copy_from_slice(&[low, high, self.task, self.source, self.to]);
        words
    }
    fn from_payload(words: &[u32; PAYLOAD_WORDS]) -> Job {
        Job {
            number: number_of(words),
            task: words[2],
            source: words[3],
            to: words[4],
        }
    }
}

impl RingMessage for Done {
    const TYPE_ID: u32 = 2;
    const WORDS: usize = 2;
    const NAME: &'static str = "Done";
    fn to_payload(&self) -> [u32; PAYLOAD_WORDS] {
        let mut words = [0; PAYLOAD_WORDS];
        words[..2].copy_from_slice(&halves(self.number));
        words
    }
    fn from_payload(words: &[u32; PAYLOAD_WORDS]) -> Done {
        Done {
            number: number_of(words),
        }
    }
}

#[kernel]
fn unused(x: &mut [u32]) {
    let i = global_id_x();
    if i < x.len() {
        x[i] += 1;
    }
}

unsafe fn native(
    context: &mut Context,
    state: *mut u8,
    type_id: u32,
    words: &[u32; PAYLOAD_WORDS],
    _block: &mut [u32],
) -> bool {
    if type_id != Job::TYPE_ID {
        return false;
    }
    // SAFETY: the pointer is to a valid state of this handler's type that nobody else reaches (`NativeHandler`).
    let last = unsafe { &mut *state.cast::<[u64; SENDERS as usize]>() };
    let job = Job::from_payload(words);
    let done = Done { number: job.number };
    if job.task == Task::Fault as u32 {
        panic!("as told");
    }
    if let Some(last) = last.get_mut(job.source as usize) {
        if job.number < *last {
            DISORDER.fetch_add(1, Relaxed);
        }
        *last = job.number;
    }
    if job.task == Task::Answer as u32 {
        context.reply_words(Done::TYPE_ID, 2, done.to_payload());
    } else if job.task == Task::Report as u32 {
        REPORTED.add(job.number);
        context.send_words(u32::MAX, Done::TYPE_ID, 2, done.to_payload());
    } else if job.task == Task::PassOn as u32 {
        let next = Job {
            number: job.number | 1 << 63,
            task: Task::Note as u32,
            source: u32::MAX,
            ..job
        };
        PASSED_ON.add(next.number);
        context.send_words(job.to, Job::TYPE_ID, 5, next.to_payload());
    }
    HANDLED.add(job.number);
    true
}

fn handler() -> Handler {
    Handler {
        group: false,
        name: "soak",
        path: "soak::handler",
        takes: || vec![Takes::of::<Job>(Some(Done::TYPE_ID))],
        state_size: 8 * SENDERS as usize,
        state_align: 8,
        version: 1,
        state_name: "[u64; 2]",
        state_type: <[u64; SENDERS as usize] as GpuType>::describe,
        native,
        resident: unused::kernel,
        batched: unused::kernel,
    }
}

/// Numbers that look random: the same for each seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        scramble(self.0) % n
    }
}

struct Soak {
    runtime: PerpetuaRuntime,
    slots: Vec<Mutex<KernelHandle>>,
    all: Mutex<Vec<KernelHandle>>,
    stop: AtomicBool,
    sending: AtomicU64,
    accepted: Sum,
    answered: Sum,
    received: Sum,
    /// Dead letters: jobs that were sent, jobs that were asked, answers and reports that nobody received.
    dead_jobs: Sum,
    dead_asks: Sum,
    dead_outputs: Sum,
    full: AtomicU64,
    gone: AtomicU64,
    moves: AtomicU64,
    terminated: AtomicU64,
}

impl Soak {
    fn launch(&self) -> KernelHandle {
        let mut all = self.all.lock().unwrap();
        let restart = Supervision::Restart {
            max: u32::MAX,
            backoff: Duration::from_micros(50),
        };
        let options = LaunchOptions::new(handler())
            .with_queue_capacity(CAPACITY)
            .with_supervision(restart);
        let name = format!("actor {}", all.len());
        let kernel = self.runtime.launch_blocking(&name, options).unwrap();
        all.push(kernel.clone());
        kernel
    }

    fn pick(&self, dice: &mut Dice) -> KernelHandle {
        self.slots[dice.below(ACTORS as u64) as usize]
            .lock()
            .unwrap()
            .clone()
    }

    fn send(&self, source: u64) {
        let mut dice = Dice(source << 32);
        let mut number = source << 40;
        while !self.stop.load(Relaxed) {
            let kernel = self.pick(&mut dice);
            number += 1;
            let task = match dice.below(64) {
                0 => Task::Fault,
                1..4 => Task::Report,
                4..20 => Task::PassOn,
                20..28 => Task::Answer,
                _ => Task::Note,
            };
            let job = Job {
                number,
                task: task as u32,
                source: source as u32,
                to: self.pick(&mut dice).id().0,
            };
            if task == Task::Answer {
                let answer = kernel.ask_blocking_timeout::<_, Done>(&job, Duration::from_secs(60));
                if let Ok(done) = &answer {
                    assert_eq!(done.number, number);
                    self.answered.add(number);
                }
                self.note(answer.map(drop));
                continue;
            }
            let deadline = (dice.below(16) == 0).then(|| Duration::from_micros(200));
            let options = SendOptions {
                deadline,
                ..SendOptions::default()
            };
            let sent = kernel.send_with(&job, options);
            if sent.is_ok() {
                self.accepted.add(number);
            }
            self.note(sent);
        }
        self.sending.fetch_sub(1, Relaxed);
    }

    fn note(&self, sent: Result<(), ActorError>) {
        match sent {
            Ok(()) => {}
            Err(ActorError::Full { .. }) => {
                self.full.fetch_add(1, Relaxed);
                std::thread::yield_now();
            }
            Err(ActorError::Terminated { .. }) => {
                self.gone.fetch_add(1, Relaxed);
            }
            Err(other) => panic!("{other}"),
        }
    }

    // A slow consumer.
    fn receive(&self) {
        let mut dice = Dice(7);
        while !self.stop.load(Relaxed) {
            self.receive_all(&self.pick(&mut dice));
            self.count_dead();
            std::thread::sleep(Duration::from_micros(dice.below(1000)));
        }
    }

    fn receive_all(&self, kernel: &KernelHandle) {
        while let Ok(Some(done)) = kernel.try_receive::<Done>() {
            self.received.add(done.number);
        }
    }

    fn count_dead(&self) {
        let letters = self.runtime.dead_letters();
        for letter in letters
            .letters()
            .iter()
            .filter_map(|letter| letters.take(letter.number))
        {
            let number = number_of(&letter.packet.payload);
            let sum = match (letter.packet.header.type_id, letter.packet.header.kind) {
                (Job::TYPE_ID, Kind::Ask) => &self.dead_asks,
                (Job::TYPE_ID, _) => &self.dead_jobs,
                _ => &self.dead_outputs,
            };
            sum.add(number);
        }
    }

    fn change(&self) {
        let mut dice = Dice(8);
        while !self.stop.load(Relaxed) {
            let slot = &self.slots[dice.below(ACTORS as u64) as usize];
            let kernel = slot.lock().unwrap().clone();
            let moved = match dice.below(16) {
                0 => {
                    *slot.lock().unwrap() = self.launch();
                    self.terminated.fetch_add(1, Relaxed);
                    block_on(kernel.terminate())
                }
                1..5 => block_on(kernel.deactivate()),
                5 => block_on(kernel.restart()),
                _ => block_on(kernel.activate()),
            };
            match moved {
                // Faults and restarts move actors, too.
                Ok(()) | Err(ActorError::IllegalMove { .. }) => self.moves.fetch_add(1, Relaxed),
                Err(other) => panic!("{other}"),
            };
            std::thread::sleep(Duration::from_micros(dice.below(500)));
        }
        // Somebody may still wait for an answer.
        while self.sending.load(Relaxed) > 0 {
            for slot in &self.slots {
                let _ = block_on(slot.lock().unwrap().activate());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn each_accepted_message_is_handled_once_or_reported() {
    let seconds = std::env::var("PERPETUA_SOAK_SECONDS").ok();
    let seconds = seconds.map_or(5, |text| text.parse().expect("a number of seconds"));
    // Faults are part of it; their messages are not to be read.
    std::panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref::<&str>() != Some(&"as told") {
            eprintln!("{info}");
        }
    }));
    let runtime = PerpetuaRuntime::builder()
        .threads(2)
        .patience(Duration::from_millis(20))
        .dead_letters(1 << 20)
        .build_blocking()
        .unwrap();
    let mut soak = Soak {
        runtime,
        slots: Vec::new(),
        all: Mutex::default(),
        stop: AtomicBool::new(false),
        sending: AtomicU64::new(SENDERS),
        accepted: Sum::new(),
        answered: Sum::new(),
        received: Sum::new(),
        dead_jobs: Sum::new(),
        dead_asks: Sum::new(),
        dead_outputs: Sum::new(),
        full: AtomicU64::new(0),
        gone: AtomicU64::new(0),
        moves: AtomicU64::new(0),
        terminated: AtomicU64::new(0),
    };
    soak.slots = (0..ACTORS).map(|_| Mutex::new(soak.launch())).collect();
    std::thread::scope(|scope| {
        for source in 0..SENDERS {
            let soak = &soak;
            scope.spawn(move || soak.send(source));
        }
        scope.spawn(|| soak.receive());
        scope.spawn(|| soak.change());
        let until = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        soak.stop.store(true, Relaxed);
    });
    let report = soak.runtime.shutdown_blocking().unwrap();
    let kernels = std::mem::take(&mut *soak.all.lock().unwrap());
    kernels.iter().for_each(|kernel| soak.receive_all(kernel));
    soak.count_dead();

    let sent = soak.accepted.get() + soak.answered.get() + soak.dead_asks.get() + PASSED_ON.get();
    let ended = HANDLED.get() + soak.dead_jobs.get() + soak.dead_asks.get();
    let arrived = soak.received.get() + soak.dead_outputs.get();
    println!(
        "{seconds} s, {} actors launched, {} moves",
        kernels.len(),
        soak.moves.load(Relaxed)
    );
    println!("accepted from the host   {}", soak.accepted.get());
    println!("answered                 {}", soak.answered.get());
    println!("sent by actors           {}", PASSED_ON.get());
    println!("  asked, then reported   {}", soak.dead_asks.get());
    println!("handled                  {}", HANDLED.get());
    println!("reported as dead letters {}", soak.dead_jobs.get());
    println!("outputs sent             {}", REPORTED.get());
    println!("outputs received         {}", soak.received.get());
    println!("  reported               {}", soak.dead_outputs.get());
    let (full, gone) = (soak.full.load(Relaxed), soak.gone.load(Relaxed));
    println!(
        "refused: {full} times full, {gone} times terminated; drained: {}",
        report.drained
    );
    assert_eq!(sent, ended, "messages");
    assert_eq!(REPORTED.get(), arrived, "outputs");
    assert_eq!(DISORDER.load(Relaxed), 0, "out of a sender's order");
    let dead = soak.dead_jobs.get() + soak.dead_asks.get() + soak.dead_outputs.get();
    assert_eq!(dead.0, report.dead_letters, "all dead letters were seen");
    for (count, what) in [
        (soak.answered.get().0, "answers"),
        (soak.dead_jobs.get().0, "dead letters"),
        (soak.received.get().0, "outputs"),
        (PASSED_ON.get().0, "messages between actors"),
        (full, "full mailboxes"),
        (soak.terminated.load(Relaxed), "terminations"),
    ] {
        assert!(count > 0, "no {what}: the soak tests nothing");
    }
}
