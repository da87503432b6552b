//! A hundred clients, of which forty are hostile, on fewer places, for a minute or `PERPETUA_SOAK_SECONDS`: each job of a good client is answered,
//! with its own numbers, however often it has to come again. `PERPETUA_SOAK_BACKEND` names where the programs run (`cpu`).

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use perpetua::isa::serve::{Client, Data, Error, protocol::Code};

use super::hostile::{self, PROGRAMS, endless_frame, run_frame};
use super::server::{GOOD, Server, frame, good, job};

const GOOD_CLIENTS: u32 = 60;
const HOSTILE_CLIENTS: u32 = 40;
// What each good client gets at least, however slow the machine is.
const ROUNDS: u32 = 2;
// How long a good client comes again for one job.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Figures {
    answered: AtomicU64,
    harm: AtomicU64,
    longest: AtomicU64,
    came_again: AtomicU64,
}

fn variable(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.into())
}

#[test]
fn soak() {
    let seconds: u64 = variable("PERPETUA_SOAK_SECONDS", "60").parse().unwrap();
    let backend = variable("PERPETUA_SOAK_BACKEND", "cpu");
    let folder = tempfile::tempdir().unwrap();
    let address = format!("unix:{}/p.sock", folder.path().display());
    let options = format!(
        "--backend {backend} --clients 48 --processes 4 --message 1M --memory 16M --instructions 20000 --seconds 20 --transfer 5"
    );
    let server = Server::start(&address, &options);
    let (figures, began) = (Figures::default(), Instant::now());
    let end = began + Duration::from_secs(seconds);
    std::thread::scope(|scope| {
        for client in 0..GOOD_CLIENTS {
            let (server, figures) = (&server, &figures);
            scope.spawn(move || behave(server, client, end, figures));
        }
        for client in 0..HOSTILE_CLIENTS {
            let (server, figures) = (&server, &figures);
            scope.spawn(move || misbehave(server, client, end, figures));
        }
    });
    let took = began.elapsed();
    // The server is as good as at the start, and has kept nothing.
    good(&mut server.client(), 1).unwrap();
    let kept = std::fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap_or_default();
    let memory = kept
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or("VmHWM: unknown")
        .to_owned();
    let files = std::fs::read_dir(format!("/proc/{}/fd", server.process.id())).map_or(0, Iterator::count);
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.process.id())).map_or(0, Iterator::count);
    assert!(files < 64, "{files} files are open after all clients have gone");
    let said = server.stop();
    let [answered, harm, longest, came_again] = [
        &figures.answered,
        &figures.harm,
        &figures.longest,
        &figures.came_again,
    ]
    .map(|figure| figure.load(Ordering::Relaxed));
    println!(
        "{backend}: {took:.1?}; good clients: {answered} jobs, all answered, the longest wait {longest} ms, {came_again} times they came again; hostile ones: {harm} acts; \
         {memory}, {files} files, {threads} threads; {said}"
    );
    assert!(answered >= u64::from(GOOD_CLIENTS * ROUNDS));
}

// Comes again while there is no place. Of hostile clients this is not counted.
fn come_again<T>(count: &AtomicU64, mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(Error::Refused {
                code: Code::Full | Code::Waited,
                ..
            }) if began.elapsed() < PATIENCE => {
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

// With the connection that there is, or a new one.
fn ask(connection: &mut Option<Client>, server: &Server, seed: u32) -> Result<(), Error> {
    let mut client = match connection.take() {
        Some(client) => client,
        None => Client::connect(&server.address)?,
    };
    good(&mut client, seed)?;
    *connection = Some(client);
    Ok(())
}

// Asks again and again; nothing but the right answer will do.
fn behave(server: &Server, client: u32, end: Instant, figures: &Figures) {
    let mut connection = None;
    let mut round = 0;
    while round < ROUNDS || Instant::now() < end {
        let began = Instant::now();
        let seed = client * 1_000_003 + round;
        if let Err(error) = come_again(&figures.came_again, || ask(&mut connection, server, seed)) {
            panic!(
                "good client {client}, job {round}, after {:?}: {error}",
                began.elapsed()
            );
        }
        figures.answered.fetch_add(1, Ordering::Relaxed);
        let waited = u64::try_from(began.elapsed().as_millis()).unwrap();
        figures.longest.fetch_max(waited, Ordering::Relaxed);
        round += 1;
        // Some come anew, some at once, some later.
        match client % 3 {
            0 => connection = None,
            1 => {}
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn misbehave(server: &Server, client: u32, end: Instant, figures: &Figures) {
    let bytes = hostile::bytes();
    let uncounted = AtomicU64::new(0);
    let mut round = client as usize;
    loop {
        match client % 8 {
            0 => {
                let (bytes, expect) = &bytes[round % bytes.len()];
                let no_place = [Code::Full, Code::Waited].map(Code::code);
                let found = loop {
                    match hostile::code(&mut *server.raw(), bytes) {
                        Some(code) if no_place.contains(&code) => {
                            std::thread::sleep(Duration::from_millis(10))
                        }
                        found => break found,
                    }
                };
                assert_eq!(found, Some(expect.code()));
            }
            1 | 2 => {
                let (text, expect, _) = PROGRAMS[round % PROGRAMS.len()];
                let result = come_again(&uncounted, || {
                    Client::connect(&server.address)?.run(&job(text, 40, &[0; 64]))
                });
                assert!(
                    matches!(result, Err(Error::Refused { code, .. }) if code == expect),
                    "{text}: {result:?}"
                );
            }
            // Goes in mid-run, or in mid-frame.
            3 => {
                let mut raw = server.raw();
                // It may have been sent away.
                let _ = raw.write_all(&endless_frame());
                std::thread::sleep(Duration::from_millis(5 * (round as u64 % 8)));
            }
            4 => {
                let mut raw = server.raw();
                let _ = raw.write_all(&frame(3, 1 << 20, &vec![0; 1 << 19]));
            }
            // Sends a byte now and then, until it is sent away.
            5 => {
                let mut raw = server.raw();
                for byte in frame(3, 100, &[0; 100]) {
                    if raw.write_all(&[byte]).is_err() || Instant::now() > end {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
            // Asks for much and never reads it, until it is sent away or the time is over.
            6 => {
                let mut raw = server.raw();
                let many = match round.is_multiple_of(2) {
                    true => frame(1, 0, &[]).repeat(1000),
                    false => run_frame(GOOD, Some(900 << 10)).repeat(3),
                };
                let mut sent = raw.write_all(&many);
                while sent.is_ok() && Instant::now() < end {
                    std::thread::sleep(Duration::from_millis(100));
                    sent = raw.write_all(b"P");
                }
            }
            _ => {
                let mut huge = job(GOOD, 64, &[]);
                huge.contents[0].data = Data::Zeros(u64::MAX >> (round % 30));
                huge.contents[0].is_returned = round.is_multiple_of(2);
                let result = come_again(&uncounted, || Client::connect(&server.address)?.run(&huge));
                assert!(
                    matches!(
                        result,
                        Err(Error::Refused {
                            code: Code::Large | Code::Program,
                            ..
                        })
                    ),
                    "{result:?}"
                );
            }
        }
        figures.harm.fetch_add(1, Ordering::Relaxed);
        round += 1;
        if Instant::now() >= end {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
