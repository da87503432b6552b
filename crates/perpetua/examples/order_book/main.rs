//! A matching engine for limit orders: each symbol's book is an actor, on the device where there is one. A stream of orders like a
//! market's goes through it, and every report is compared with what a plain program makes of the same orders.
//! `cargo run --release --example order_book -- --backend cpu --orders 1000000 --symbols 1000 --seed 1`

#[path = "../backend_argument/mod.rs"]
mod backend_argument;
mod book;
mod reference;
mod stream;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use perpetua::actors::{ActorError, KernelHandle, LaunchOptions};
use perpetua::device::future::block_on;

use self::book::{Book, Report};
use self::reference::Reference;
use self::stream::{Message, Stream};

type Failure = Box<dyn std::error::Error>;

/// Messages that wait for a symbol at most.
const WAITING: usize = 1024;
/// After how many messages what was reported is taken in.
const TURN: usize = 4096;
/// When nothing is reported for so long, something is wrong. (Mesa's llvmpipe compiles the kernel for some seconds when it first meets it.)
const PATIENCE: Duration = Duration::from_secs(120);
const TEMPLATE: &str = "{msg:9} [{bar:40}] {human_pos}/{human_len} orders, {per_sec}, {eta} left";

/// A matching engine for limit orders, an actor for each symbol, compared with a plain program
#[derive(Parser)]
struct Args {
    /// Where the actors run: cpu, cuda, wgpu or auto
    #[arg(long, default_value = "cpu", value_parser = backend_argument::named)]
    backend: perpetua::actors::runtime::RuntimeBuilder,
    /// How many limit orders, market orders and cancels
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    orders: u32,
    /// How many symbols
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    symbols: u32,
    /// Another seed, another stream
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    backend_argument::end(block_on(run(&Args::parse())))
}

fn bar(args: &Args, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(args.orders.into());
    // The template is a constant, tested below.
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style);
    }
    bar.with_message(what)
}

fn rate(orders: usize, took: Duration) -> String {
    format!(
        "{orders} orders in {took:.2?}: {:.0} orders/s",
        orders as f64 / took.as_secs_f64()
    )
}

async fn run(args: &Args) -> Result<(), Failure> {
    let orders: Vec<(usize, Message)> = Stream::new(args.seed, args.symbols as usize)
        .take(args.orders as usize)
        .collect();
    let mut expected = Expected::new(args.symbols as usize);
    let began = Instant::now();
    let progress = bar(args, "reference");
    for (at, (symbol, message)) in orders.iter().enumerate() {
        expected.handle(*symbol, message);
        if at.is_multiple_of(TURN) {
            progress.set_position(at as u64);
        }
    }
    progress.finish_and_clear();
    println!("host reference: {}", rate(orders.len(), began.elapsed()));

    // A report that finds no room waits as long as this program does: none may be lost while the machine does other things.
    let builder = args
        .backend
        .clone()
        .device_actors(args.symbols.max(1024))
        .patience(PATIENCE);
    let runtime = backend_argument::open(builder).await?;
    let options = LaunchOptions::new(book::place::handler())
        .with_actors(args.symbols)
        .with_queue_capacity(WAITING)
        .with_state(Book::empty());
    let books = runtime.launch("books", options).await?;
    let mut market = Market::new(&books, expected.reports)?;
    let began = Instant::now();
    let progress = bar(args, "actors");
    for (at, (symbol, message)) in orders.iter().enumerate() {
        market.send(*symbol, message)?;
        if at.is_multiple_of(TURN) {
            market.receive_all()?;
            progress.set_position(market.done);
        }
    }
    while market.done < orders.len() as u64 {
        market.receive_or_wait()?;
        progress.set_position(market.done);
    }
    let took = began.elapsed();
    progress.finish_and_clear();
    println!("actors: {}", rate(orders.len(), took));
    market.tally.print();
    println!("{} times a mailbox was full", market.full);

    let (mut handled, mut resting) = (0, 0);
    for (symbol, (actor, reference)) in market.symbols.iter().zip(&expected.books).enumerate() {
        let book: Book = actor.read_state()?;
        handled += u64::from(book.handled);
        for side in [book::BUY, book::SELL] {
            let (found, expected) = (book.resting(side), reference.resting(side));
            if found != expected {
                return Err(format!("symbol {symbol} has {found:?}, the reference {expected:?}").into());
            }
            resting += found.len();
        }
    }
    println!("every report and every book is the reference's; {resting} orders rest");
    let report = runtime.shutdown().await?;
    println!("dead letters: {}", report.dead_letters);
    let runs = books.metrics().messages_processed;
    println!("handler runs: {runs}, {handled} of them counted in the books");
    Ok(())
}

/// What the reference makes of the orders.
struct Expected {
    books: Vec<Reference>,
    reports: Vec<VecDeque<Report>>,
    scratch: Vec<Report>,
}

impl Expected {
    fn new(symbols: usize) -> Expected {
        Expected {
            books: (0..symbols).map(|_| Reference::default()).collect(),
            reports: vec![VecDeque::new(); symbols],
            scratch: Vec::new(),
        }
    }

    fn handle(&mut self, symbol: usize, message: &Message) {
        self.books[symbol].handle(message, &mut self.scratch);
        self.reports[symbol].extend(self.scratch.drain(..));
    }
}

/// The actors, and what is still to be heard from them.
struct Market {
    symbols: Vec<KernelHandle>,
    /// Orders of each symbol that were sent and not reported on.
    open: Vec<u32>,
    expected: Vec<VecDeque<Report>>,
    done: u64,
    full: u64,
    tally: Tally,
    /// When something was reported last.
    heard: Instant,
}

impl Market {
    fn new(books: &KernelHandle, expected: Vec<VecDeque<Report>>) -> Result<Market, ActorError> {
        let symbols = (0..books.actors()).map(|i| books.actor(i));
        Ok(Market {
            symbols: symbols.collect::<Result<_, _>>()?,
            open: vec![0; expected.len()],
            expected,
            done: 0,
            full: 0,
            tally: Tally::default(),
            heard: Instant::now(),
        })
    }

    /// Sends an order; where the symbol has no room, takes in what was reported until it has.
    fn send(&mut self, symbol: usize, message: &Message) -> Result<(), Failure> {
        loop {
            let sent = match message {
                Message::Place(place) => self.symbols[symbol].send(place),
                Message::Cancel(cancel) => self.symbols[symbol].send(cancel),
            };
            match sent {
                Ok(()) => break,
                Err(ActorError::Full { .. }) => self.full += 1,
                Err(other) => return Err(other.into()),
            }
            self.receive_or_wait()?;
        }
        self.open[symbol] += 1;
        self.tally.sent(message);
        Ok(())
    }

    fn receive_or_wait(&mut self) -> Result<(), Failure> {
        if self.receive_all()? > 0 {
            self.heard = Instant::now();
            return Ok(());
        }
        if self.heard.elapsed() > PATIENCE {
            let fault = self.symbols.iter().find_map(KernelHandle::last_fault);
            let first = self.symbols.first().map(KernelHandle::metrics);
            return Err(format!(
                "nothing was reported for {PATIENCE:?}; the last fault: {fault:?}; {} done; the first symbol: {first:?}",
                self.done
            )
            .into());
        }
        std::thread::sleep(Duration::from_micros(20));
        Ok(())
    }

    /// Takes in what has been reported by now: how much that was.
    fn receive_all(&mut self) -> Result<usize, Failure> {
        let mut reports = 0;
        for symbol in 0..self.symbols.len() {
            while self.open[symbol] > 0 {
                let Some(report) = self.symbols[symbol].try_receive::<Report>()? else {
                    break;
                };
                self.take_in(symbol, &report)?;
                reports += 1;
            }
        }
        Ok(reports)
    }

    fn take_in(&mut self, symbol: usize, report: &Report) -> Result<(), Failure> {
        let expected = self.expected[symbol].pop_front();
        if expected != Some(*report) {
            let expected = expected.map_or("nothing".into(), |report| format!("{report:?}"));
            return Err(format!("symbol {symbol} reports {report:?}, the reference {expected}").into());
        }
        if self.tally.reported(report) != book::MORE {
            self.open[symbol] -= 1;
            self.done += 1;
        }
        Ok(())
    }
}

/// What has been sent and reported, by kind.
#[derive(Default)]
struct Tally {
    limit: u64,
    market: u64,
    cancels: u64,
    outcomes: [u64; 10],
    fills: u64,
    quantity: u64,
}

impl Tally {
    fn sent(&mut self, message: &Message) {
        match message {
            Message::Place(place) if place.market == 0 => self.limit += 1,
            Message::Place(_) => self.market += 1,
            Message::Cancel(_) => self.cancels += 1,
        }
    }

    /// Counts a report: what became of the order.
    fn reported(&mut self, report: &Report) -> u32 {
        let (outcome, fills) = (report.outcome & 255, report.outcome >> 8);
        if let Some(count) = self.outcomes.get_mut(outcome as usize) {
            *count += 1;
        }
        if outcome != book::CANCELLED {
            self.fills += u64::from(fills);
            let words = report.fills.chunks_exact(2).take(fills as usize);
            self.quantity += words.map(|fill| u64::from(fill[1] & 0xffff)).sum::<u64>();
        }
        outcome
    }

    fn print(&self) {
        let of = |outcome: u32| self.outcomes[outcome as usize];
        println!(
            "{} limit orders, {} market orders, {} cancels",
            self.limit, self.market, self.cancels
        );
        println!("{} fills of {} in all", self.fills, self.quantity);
        println!(
            "{} filled, {} rested, {} found too little to fill against, {} cancelled",
            of(book::FILLED),
            of(book::RESTS),
            of(book::EXHAUSTED),
            of(book::CANCELLED)
        );
        println!(
            "rejected: {} no room for the order, {} no room for its price, {} cancels too late, {} others",
            of(book::REJECTED_ORDERS),
            of(book::REJECTED_LEVELS),
            of(book::REJECTED_UNKNOWN),
            of(book::REJECTED_TWICE) + of(book::REJECTED_VALUE)
        );
        println!("{} reports that another one continues", of(book::MORE));
    }
}

#[cfg(test)]
mod tests {
    use perpetua::actors::{Context, RingMessage};

    use super::book::{self, Book, Cancel, Place, Report};
    use super::reference::Reference;
    use super::stream::{Message, Random, Stream};

    /// What the handler reports of one message, run as plain Rust.
    fn handle(book: &mut Book, message: &Message) -> Vec<Report> {
        let mut context = Context::new(0, 0, 1);
        context.begin(0, u32::MAX, 0, 0, 0);
        match message {
            Message::Place(place) => book::place(&mut context, book, *place),
            Message::Cancel(cancel) => book::cancel(&mut context, book, *cancel),
        }
        assert_eq!(context.refused(), 0, "a report was lost");
        let entries = 0..context.entries();
        let payload = |entry| std::array::from_fn(|word| context.outbox_word(entry, 4 + word as u32));
        entries
            .map(|entry| Report::from_payload(&payload(entry)))
            .collect()
    }

    /// Both make the same of these messages: the outcomes, by number.
    fn check(messages: impl Iterator<Item = Message>) -> [u32; 10] {
        let (mut book, mut reference) = (Book::empty(), Reference::default());
        let mut outcomes = [0; 10];
        for message in messages {
            let mut expected = Vec::new();
            reference.handle(&message, &mut expected);
            assert_eq!(handle(&mut book, &message), expected, "{message:?}");
            for side in [book::BUY, book::SELL] {
                assert_eq!(book.resting(side), reference.resting(side), "after {message:?}");
            }
            let all = expected.iter().map(|report| report.outcome as usize & 255);
            all.for_each(|outcome| outcomes[outcome] += 1);
        }
        outcomes
    }

    #[test]
    fn the_stream_is_matched_as_by_the_reference() {
        check(Stream::new(5, 1).take(20_000).map(|(_, message)| message));
    }

    #[test]
    fn so_is_whatever_does_not_fit() {
        let mut random = Random::new(11);
        let mut outcomes = [0; 10];
        // Few prices: sides without room for orders; many: without room for prices.
        for prices in [3, 20, 70] {
            let messages = (0..20_000u32).map(|_| {
                let mut below = |n| random.below(n) as u32;
                // Few numbers: some are placed twice.
                let order = below(4_000);
                if below(4) == 0 {
                    return Message::Cancel(Cancel { order });
                }
                let side = below(2);
                let wall = below(40) == 0;
                Message::Place(Place {
                    order,
                    side: if below(200) == 0 { 2 } else { side },
                    price: match below(100) {
                        0 => 0,
                        1 => book::HIGHEST_PRICE,
                        2 => book::HIGHEST_PRICE + 1,
                        // Seldom a price that the other side would take.
                        3..10 => 100,
                        _ if side == book::BUY => 100 - below(prices),
                        _ => 100 + 1 + below(prices),
                    },
                    quantity: if wall { below(70_000) } else { 1 + below(30) },
                    market: u32::from(below(30) == 0),
                })
            });
            let found = check(messages);
            outcomes.iter_mut().zip(found).for_each(|(sum, one)| *sum += one);
        }
        assert!(!outcomes.contains(&0), "not all has happened: {outcomes:?}");
    }

    #[test]
    fn one_order_fills_against_a_whole_side() {
        let place = |order, side, quantity| {
            Message::Place(Place {
                order,
                side,
                price: 500,
                quantity,
                market: 0,
            })
        };
        let rest = (1..=book::SIDE_ORDERS).map(|order| place(order, book::BUY, 1));
        let all = rest.chain([place(99, book::BUY, 1), place(100, book::SELL, 60)]);
        let outcomes = check(all);
        assert_eq!(outcomes[book::REJECTED_ORDERS as usize], 1);
        assert_eq!(outcomes[book::MORE as usize], 7);
        assert_eq!(outcomes[book::RESTS as usize], book::SIDE_ORDERS + 1);
    }

    #[test]
    fn the_progress_bar_has_a_sound_template() {
        assert!(indicatif::ProgressStyle::with_template(super::TEMPLATE).is_ok());
    }
}
