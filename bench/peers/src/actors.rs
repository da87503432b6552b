//! Actors on the CPU: how long a question takes to be answered, how many messages pass from one to one, and what it costs to make an
//! actor. Each crate is used as it means to be; messages and answers are 64 bytes, the state is a counter.

use std::error::Error;
use std::future::Future;
use std::time::Instant;

use perpetua_actors::{KernelHandle, LaunchOptions, PerpetuaRuntime};

/// Messages that a mailbox has room for, where it is bounded.
const ROOM: usize = 4096;

type Failure = Box<dyn Error + Send + Sync>;

/// What one crate does in one turn.
#[derive(Clone, Copy, Debug)]
struct Figures {
    /// Nanoseconds from asking to the answer.
    p50: f64,
    p99: f64,
    /// Messages a second.
    tells: f64,
    /// Nanoseconds to make an actor and have its first answer.
    birth: f64,
}

impl Figures {
    fn better(self, other: Figures) -> Figures {
        Figures {
            p50: self.p50.min(other.p50),
            p99: self.p99.min(other.p99),
            tells: self.tells.max(other.tells),
            birth: self.birth.min(other.birth),
        }
    }
}

/// How much is done in a turn.
#[derive(Clone, Copy)]
struct Amount {
    asks: u32,
    tells: u32,
    births: u32,
}

/// Prints a row for each crate.
pub(crate) fn compare(asks: u32, tells: u32, births: u32, turns: u32) -> Result<(), Box<dyn Error>> {
    let amount = Amount { asks, tells, births };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average before: {}", load.trim());
    println!("actors | ask, p50 ns | ask, p99 ns | tell, M/s | make one and ask it, ns");
    row("Perpetua, `ask().await` in tokio", turns, || {
        in_tokio(ours(amount, false))
    })?;
    row("Perpetua, `ask_blocking`", turns, || in_tokio(ours(amount, true)))?;
    row("Perpetua, parked: no caller runs the actor", turns, || {
        in_tokio(ours_parked(amount))
    })?;
    row("kameo", turns, || in_tokio(kameo_side::measure(amount)))?;
    row("ractor", turns, || in_tokio(ractor_side::measure(amount)))?;
    row("actix, one thread", turns, || actix_side::measure(amount, false))?;
    row("actix, two threads", turns, || actix_side::measure(amount, true))?;
    Ok(())
}

fn row(name: &str, turns: u32, turn: impl Fn() -> Result<Figures, Failure>) -> Result<(), Box<dyn Error>> {
    let mut best = turn().map_err(|error| error.to_string())?;
    for _ in 1..turns {
        best = best.better(turn().map_err(|error| error.to_string())?);
    }
    println!(
        "{name} | {:.0} | {:.0} | {:.2} | {:.0}",
        best.p50,
        best.p99,
        best.tells / 1e6,
        best.birth
    );
    Ok(())
}

/// On a worker of tokio's, so that who asks and who answers can share a thread where the crate's actors are tasks.
fn in_tokio(
    work: impl Future<Output = Result<Figures, Failure>> + Send + 'static,
) -> Result<Figures, Failure> {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    tokio.block_on(async { tokio::spawn(work).await })?
}

/// Median and 99th percentile of what `ask` takes.
async fn latencies<F: Future<Output = Result<u32, Failure>>>(
    asks: u32,
    mut ask: impl FnMut() -> F,
) -> Result<(f64, f64), Failure> {
    for _ in 0..asks / 10 {
        ask().await?;
    }
    let mut took = Vec::with_capacity(asks as usize);
    for _ in 0..asks {
        let began = Instant::now();
        std::hint::black_box(ask().await?);
        took.push(began.elapsed().as_nanos() as f64);
    }
    took.sort_by(f64::total_cmp);
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    Ok((at(0.5), at(0.99)))
}

fn check(found: u32, expected: u32) -> Result<(), Failure> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{found} messages were handled, not {expected}").into()),
    }
}

mod messages {
    use perpetua::actors::{Context, RingMessage, ring_kernel};
    use perpetua::prelude::*;

    #[derive(Clone, Copy, Debug, GpuType, RingMessage)]
    #[repr(C)]
    pub(crate) struct Add {
        pub(crate) amount: u32,
        pub(crate) words: [u32; 15],
    }

    #[derive(Clone, Copy, Debug, GpuType, RingMessage)]
    #[repr(C)]
    pub(crate) struct Total {
        pub(crate) sum: u32,
        pub(crate) words: [u32; 15],
    }

    /// A message that nobody waits for.
    #[derive(Clone, Copy, Debug, GpuType, RingMessage)]
    #[repr(C)]
    pub(crate) struct Note {
        pub(crate) amount: u32,
        pub(crate) words: [u32; 15],
    }

    /// Both kinds, so that what is told can be counted by asking.
    #[derive(Clone, Copy, Debug, GpuType)]
    #[repr(C)]
    pub(crate) struct Counted {
        pub(crate) sum: u32,
    }

    #[ring_kernel]
    pub(crate) fn counter(_ctx: &mut Context, state: &mut Counted, message: Add) -> Total {
        state.sum += message.amount;
        Total {
            sum: state.sum,
            words: message.words,
        }
    }

    #[ring_kernel]
    pub(crate) fn listener(_ctx: &mut Context, state: &mut Counted, message: Note) {
        state.sum += message.amount;
    }
}

use messages::{Add, Counted, Note, Total};

fn add(amount: u32) -> Add {
    Add {
        amount,
        words: [7; 15],
    }
}

fn note() -> Note {
    Note {
        amount: 1,
        words: [7; 15],
    }
}

async fn ours(amount: Amount, blocking: bool) -> Result<Figures, Failure> {
    let runtime = PerpetuaRuntime::builder().threads(2).build().await?;
    let asked = runtime
        .launch("asked", LaunchOptions::new(messages::counter::handler()))
        .await?;
    let (p50, p99) = latencies(amount.asks, || async {
        let total: Total = match blocking {
            true => asked.ask_blocking(&add(1))?,
            false => asked.ask(&add(1)).await?,
        };
        Ok(total.sum)
    })
    .await?;
    let tells = ours_tells(&runtime, amount.tells).await?;
    let began = Instant::now();
    for number in 0..amount.births {
        let options = LaunchOptions::new(messages::counter::handler());
        let actor: KernelHandle = runtime.launch(&format!("born{number}"), options).await?;
        let total: Total = match blocking {
            true => actor.ask_blocking(&add(1))?,
            false => actor.ask(&add(1)).await?,
        };
        check(total.sum, 1)?;
    }
    let birth = began.elapsed().as_nanos() as f64 / f64::from(amount.births);
    Ok(Figures {
        p50,
        p99,
        tells,
        birth,
    })
}

async fn ours_tells(runtime: &PerpetuaRuntime, tells: u32) -> Result<f64, Failure> {
    let options = LaunchOptions::new(messages::listener::handler()).with_queue_capacity(ROOM);
    let told = runtime.launch("told", options).await?;
    let began = Instant::now();
    for _ in 0..tells {
        told.send_when_room(&note()).await?;
    }
    // Until all are handled: an actor has no messages of another type to ask it by.
    while told.metrics().messages_processed < tells.into() {
        tokio::task::yield_now().await;
    }
    let took = began.elapsed();
    check(told.read_state::<Counted>()?.sum, tells)?;
    Ok(f64::from(tells) / took.as_secs_f64())
}

/// As tasks of other crates are: a limit to the handler's time keeps callers from running it.
async fn ours_parked(amount: Amount) -> Result<Figures, Failure> {
    let runtime = PerpetuaRuntime::builder().threads(2).build().await?;
    let limit = std::time::Duration::from_secs(1);
    let options = || LaunchOptions::new(messages::counter::handler()).with_run_limit(limit);
    let asked = runtime.launch("asked", options()).await?;
    let (p50, p99) = latencies(amount.asks, || async {
        let total: Total = asked.ask(&add(1)).await?;
        Ok(total.sum)
    })
    .await?;
    let tells = ours_tells(&runtime, amount.tells).await?;
    let began = Instant::now();
    for number in 0..amount.births {
        let actor = runtime.launch(&format!("born{number}"), options()).await?;
        let total: Total = actor.ask(&add(1)).await?;
        check(total.sum, 1)?;
    }
    let birth = began.elapsed().as_nanos() as f64 / f64::from(amount.births);
    Ok(Figures {
        p50,
        p99,
        tells,
        birth,
    })
}

mod kameo_side {
    use super::*;
    use kameo::Actor;
    use kameo::actor::Spawn;
    use kameo::message::{Context, Message};

    #[derive(Actor)]
    struct Counter(u32);

    struct Ask(Add);
    struct Tell(Note);
    #[derive(kameo::Reply)]
    struct Answer(Total);

    impl Message<Ask> for Counter {
        type Reply = Answer;
        async fn handle(&mut self, Ask(add): Ask, _: &mut Context<Self, Answer>) -> Answer {
            self.0 += add.amount;
            Answer(Total {
                sum: self.0,
                words: add.words,
            })
        }
    }

    impl Message<Tell> for Counter {
        type Reply = ();
        async fn handle(&mut self, Tell(note): Tell, _: &mut Context<Self, ()>) {
            self.0 += note.amount;
        }
    }

    pub(super) async fn measure(amount: Amount) -> Result<Figures, Failure> {
        let actor = Counter::spawn_with_mailbox(Counter(0), kameo::mailbox::bounded(ROOM));
        let (p50, p99) = latencies(amount.asks, || async {
            let Answer(total) = actor.ask(Ask(add(1))).await.map_err(|error| error.to_string())?;
            Ok(total.sum)
        })
        .await?;
        let before = actor
            .ask(Ask(add(0)))
            .await
            .map_err(|error| error.to_string())?
            .0
            .sum;
        let began = Instant::now();
        for _ in 0..amount.tells {
            actor
                .tell(Tell(note()))
                .await
                .map_err(|error| error.to_string())?;
        }
        let after = actor
            .ask(Ask(add(0)))
            .await
            .map_err(|error| error.to_string())?
            .0
            .sum;
        let tells = f64::from(amount.tells) / began.elapsed().as_secs_f64();
        check(after - before, amount.tells)?;
        let began = Instant::now();
        let mut born = Vec::new();
        for _ in 0..amount.births {
            let actor = Counter::spawn_with_mailbox(Counter(0), kameo::mailbox::bounded(ROOM));
            let Answer(total) = actor.ask(Ask(add(1))).await.map_err(|error| error.to_string())?;
            check(total.sum, 1)?;
            born.push(actor);
        }
        let birth = began.elapsed().as_nanos() as f64 / f64::from(amount.births);
        Ok(Figures {
            p50,
            p99,
            tells,
            birth,
        })
    }
}

mod ractor_side {
    use super::*;
    use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

    struct Counter;

    enum Message {
        Ask(Add, RpcReplyPort<Total>),
        Tell(Note),
    }

    impl Actor for Counter {
        type Msg = Message;
        type State = u32;
        type Arguments = ();

        async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<u32, ActorProcessingErr> {
            Ok(0)
        }

        async fn handle(
            &self,
            _: ActorRef<Message>,
            message: Message,
            sum: &mut u32,
        ) -> Result<(), ActorProcessingErr> {
            match message {
                Message::Ask(add, port) => {
                    *sum += add.amount;
                    port.send(Total {
                        sum: *sum,
                        words: add.words,
                    })?;
                }
                Message::Tell(note) => *sum += note.amount,
            }
            Ok(())
        }
    }

    pub(super) async fn measure(amount: Amount) -> Result<Figures, Failure> {
        let (actor, _) = Actor::spawn(None, Counter, ()).await?;
        let (p50, p99) = latencies(amount.asks, || async {
            let total = ractor::call!(actor, Message::Ask, add(1))?;
            Ok(total.sum)
        })
        .await?;
        let before = ractor::call!(actor, Message::Ask, add(0))?.sum;
        let began = Instant::now();
        for _ in 0..amount.tells {
            actor
                .cast(Message::Tell(note()))
                .map_err(|error| error.to_string())?;
        }
        let after = ractor::call!(actor, Message::Ask, add(0))?.sum;
        let tells = f64::from(amount.tells) / began.elapsed().as_secs_f64();
        check(after - before, amount.tells)?;
        let began = Instant::now();
        let mut born = Vec::new();
        for _ in 0..amount.births {
            let (actor, _) = Actor::spawn(None, Counter, ()).await?;
            check(ractor::call!(actor, Message::Ask, add(1))?.sum, 1)?;
            born.push(actor);
        }
        let birth = began.elapsed().as_nanos() as f64 / f64::from(amount.births);
        Ok(Figures {
            p50,
            p99,
            tells,
            birth,
        })
    }
}

mod actix_side {
    use super::*;
    use actix::{Actor, Arbiter, Context, Handler, Message, MessageResponse, System};

    struct Counter(u32);

    impl Actor for Counter {
        type Context = Context<Self>;
    }

    #[derive(Message)]
    #[rtype(result = "Answer")]
    struct Ask(Add);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Tell(Note);

    #[derive(MessageResponse)]
    struct Answer(Total);

    impl Handler<Ask> for Counter {
        type Result = Answer;
        fn handle(&mut self, Ask(add): Ask, _: &mut Context<Self>) -> Answer {
            self.0 += add.amount;
            Answer(Total {
                sum: self.0,
                words: add.words,
            })
        }
    }

    impl Handler<Tell> for Counter {
        type Result = ();
        fn handle(&mut self, Tell(note): Tell, _: &mut Context<Self>) {
            self.0 += note.amount;
        }
    }

    pub(super) fn measure(amount: Amount, elsewhere: bool) -> Result<Figures, Failure> {
        System::new().block_on(async move {
            let arbiter = elsewhere.then(Arbiter::new);
            let start = || match &arbiter {
                Some(arbiter) => Counter::start_in_arbiter(&arbiter.handle(), |_| Counter(0)),
                None => Counter(0).start(),
            };
            let actor = start();
            let (p50, p99) =
                latencies(amount.asks, || async { Ok(actor.send(Ask(add(1))).await?.0.sum) }).await?;
            let before = actor.send(Ask(add(0))).await?.0.sum;
            let began = Instant::now();
            for _ in 0..amount.tells {
                actor.do_send(Tell(note()));
            }
            let after = actor.send(Ask(add(0))).await?.0.sum;
            let tells = f64::from(amount.tells) / began.elapsed().as_secs_f64();
            check(after - before, amount.tells)?;
            let began = Instant::now();
            let mut born = Vec::new();
            for _ in 0..amount.births {
                let actor = start();
                check(actor.send(Ask(add(1))).await?.0.sum, 1)?;
                born.push(actor);
            }
            let birth = began.elapsed().as_nanos() as f64 / f64::from(amount.births);
            if let Some(arbiter) = arbiter {
                arbiter.stop();
                arbiter.join().map_err(|_| "the arbiter panicked")?;
            }
            Ok(Figures {
                p50,
                p99,
                tells,
                birth,
            })
        })
    }
}
