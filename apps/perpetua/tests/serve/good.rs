//! Clients that keep the rules: results, limits, order, and the server's end.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use perpetua::isa::serve::{Client, Content, Data, Error, Job, protocol::Code};
use perpetua::isa::{Arguments, LaunchConfig};

use super::hostile::{code, endless_frame, run_frame};
use super::server::{GOOD, Server, frame, good, job, refused};

fn perpetua(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_perpetua"))
        .arg("isa")
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn a_server_that_nobody_can_reach_is_none_or_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.sock");
    let server = Server::start(&format!("unix:{}", path.display()), "--backend cpu");
    fs::remove_file(&path).unwrap();
    assert!(server.stop().contains("served 0 clients"));
    let long = format!("unix:{}", folder.path().join("s".repeat(120)).display());
    for args in [
        vec!["serve", &long],
        vec!["run", "atlas_add_f32", "--server", &long],
    ] {
        let refused = perpetua(&args);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            !refused.status.success() && said.contains("and this system takes"),
            "{said}"
        );
    }
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn a_server_gives_what_a_run_here_gives() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}/p.sock", folder.path().display());
    let out = folder.path().join("y.npy");
    let saxpy = folder.path().join("saxpy.pasm");
    let text = "; y = a x + y\n.buffer x: f32\n.buffer y: f32\n.param a: f32\n setge.u64 p0, r255, len(x)\n@p0 exit\n \
        ldg.f32 r0, x[r255]\n ldg.f32 r1, y[r255]\n fma.f32 r1, a, r0, r1\n stg.f32 y[r255], r1\n";
    fs::write(&saxpy, text).unwrap();
    for address in [socket.as_str(), "127.0.0.1:0"] {
        let server = Server::start(address, "--backend cpu");
        let mut results = Vec::new();
        for place in [["--server", &server.address.to_string()], ["--backend", "cpu"]] {
            let mut args = vec!["run", saxpy.to_str().unwrap()];
            args.extend([
                "--buffer",
                "x=range:1000",
                "--buffer",
                "y=random:1000",
                "--param",
                "a=2.5",
                "--lanes",
                "1000",
            ]);
            args.extend(place);
            let printed = perpetua(&args);
            assert!(printed.status.success(), "{printed:?}");
            let name = format!("y={}", out.display());
            args.extend(["--out", &name]);
            assert!(perpetua(&args).status.success());
            results.push((printed.stdout, fs::read(&out).unwrap()));
        }
        assert!(results[0] == results[1]);
        let said = server.stop();
        assert!(said.contains("served 2 clients (0 sent away)"), "{said}");
        assert!(!folder.path().join("p.sock").exists());
    }
    let nobody = perpetua(&[
        "run",
        "atlas_add_f32",
        "--buffer",
        "a=ones:1",
        "--buffer",
        "b=ones:1",
        "--buffer",
        "out=ones:1",
        "--lanes",
        "1",
        "--server",
        &socket,
    ]);
    let said = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert!(said.contains("is the server running?"), "{said}");
    let outside = perpetua(&["serve", "0.0.0.0:0"]);
    let said = String::from_utf8_lossy(&outside.stderr).into_owned();
    assert!(
        !outside.status.success() && said.contains("others than this machine could reach it"),
        "{said}"
    );
}

#[test]
fn limits_are_the_servers() {
    let server = Server::start(
        "127.0.0.1:0",
        "--backend cpu --message 4K --memory 1M --size 100 --clients 2",
    );
    let mut client = server.client();
    assert_eq!(
        (client.allowed().message, client.allowed().limits.memory),
        (4096, 1 << 20)
    );
    let error = client.run(&job(GOOD, 64, &[0; 5000])).unwrap_err().to_string();
    assert!(error.contains("at most 4096 are allowed"), "{error}");
    let long = format!(".buffer x: u32\n{}", "bar\n".repeat(200));
    let (code, message) = refused(client.run(&job(&long, 1, &[0; 4])));
    assert!(
        code == Code::Program && message.contains("written out: 200, an untrusted program may have 100"),
        "{message}"
    );
    for (data, is_returned, expect) in [
        (Data::Zeros(8192), true, (Code::Large, "at most 4096 are allowed")),
        (
            Data::Zeros(2 << 20),
            false,
            (Code::Program, "at most 1048576 are allowed"),
        ),
        (Data::Zeros(u64::MAX), false, (Code::Program, "are allowed")),
        (Data::Pool(64), false, (Code::Job, "`x` is a buffer")),
    ] {
        let mut huge = job(GOOD, 1, &[]);
        huge.contents[0].data = data;
        huge.contents[0].is_returned = is_returned;
        let (code, message) = refused(client.run(&huge));
        assert!(code == expect.0 && message.contains(expect.1), "{message}");
    }
    good(&mut client, 1).unwrap();
}

#[test]
fn a_server_is_full_while_all_its_clients_have_jobs() {
    let options = "--backend cpu --clients 2 --processes 2 --instructions 4000000000 --seconds 60";
    let server = Server::start("127.0.0.1:0", options);
    let end = Instant::now() + Duration::from_secs(30);
    let mut busy = Vec::new();
    let refused = loop {
        assert!(Instant::now() < end, "two clients have jobs by now");
        let mut raw = server.raw();
        // It may have been sent away already.
        let _ = raw.write_all(&endless_frame());
        busy.push(raw);
        std::thread::sleep(Duration::from_millis(100));
        if let Err(error) = Client::connect(&server.address) {
            break error;
        }
    };
    assert!(
        matches!(&refused, Error::Refused { code: Code::Full, .. }),
        "{refused}"
    );
    assert!(
        refused.to_string().contains("the server has 2 clients with jobs"),
        "{refused}"
    );
    drop(busy);
    while Client::connect(&server.address).is_err() {
        assert!(Instant::now() < end, "a place becomes free");
    }
}

#[test]
fn whoever_holds_all_places_loses_them_to_those_who_come() {
    const PLACES: usize = 6;
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}/p.sock", folder.path().display());
    for address in [socket.as_str(), "127.0.0.1:0"] {
        let server = Server::start(address, "--backend cpu --clients 6 --idle 300 --transfer 300");
        let mut holders: Vec<_> = (0..PLACES).map(|_| server.raw()).collect();
        // Whatever the server waits for: a frame, the rest of one, that an answer is taken, of which the system holds no more than a part.
        let half = frame(3, 1000, &[0; 10]);
        let large = run_frame(GOOD, Some(15 << 20));
        for (number, holder) in holders.iter_mut().enumerate() {
            holder.end_reads_after(Duration::from_secs(60));
            match number % 3 {
                0 => {}
                1 => holder.write_all(&half).unwrap(),
                _ => {
                    holder.write_all(&large).unwrap();
                    holder.read_exact(&mut [0]).unwrap();
                }
            }
        }
        // An answer may be taken for a second.
        std::thread::sleep(Duration::from_millis(1100));
        let began = Instant::now();
        let mut clients: Vec<Client> = (0..PLACES).map(|_| server.client()).collect();
        for (number, client) in (0..).zip(&mut clients) {
            good(client, number).unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
        for (number, holder) in holders.iter_mut().enumerate() {
            match number % 3 {
                0 | 1 => assert_eq!(code(&mut **holder, &[]), Some(Code::Waited.code()), "{number}"),
                // Part of the answer has come, and no more does.
                _ => {
                    let mut rest = Vec::new();
                    let ended = holder.read_to_end(&mut rest);
                    let is_late = ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
                    assert!(
                        !is_late && rest.len() < 15 << 20,
                        "{number}: {} bytes",
                        rest.len()
                    );
                }
            }
        }
        // One that comes now takes the place of the first of these, which connects anew and takes that of the second, and so on: all get on.
        let mut one_more = server.client();
        for round in 0..3 {
            good(&mut one_more, round).unwrap();
            for client in &mut clients {
                good(client, round).unwrap();
            }
        }
        let said = server.stop();
        assert!(said.contains("(0 sent away)"), "{said}");
    }
}

#[test]
fn pools_are_a_jobs_own() {
    let server = Server::start("127.0.0.1:0", "--backend cpu");
    let mut client = server.client();
    let text = ".pool heap\n.buffer x: u32\n pool_alloc r0, heap, 16\n pool_load.u32 r1, heap[r0]\n pool_store.u32 heap[r0], 77\n add.u32 r1, r1, 5\n stg.u32 x[0], r1\n";
    for _ in 0..3 {
        let mut job = job(text, 1, &[9, 9, 9, 9]);
        job.contents.push(Content {
            name: "heap",
            data: Data::Pool(4096),
            is_returned: false,
        });
        assert_eq!(client.run(&job).unwrap()[0].1, [5, 0, 0, 0]);
    }
    let none = Job {
        contents: Vec::new(),
        ..job(GOOD, 1, &[])
    };
    assert_eq!(refused(client.run(&none)).0, Code::Job);
    let own = Job {
        config: LaunchConfig::new(1, 1),
        arguments: Arguments::new(),
        ..job("mov.u32 r0, 1", 1, &[])
    };
    assert_eq!(refused(client.run(&own)).0, Code::Job);
}

#[test]
fn at_its_end_a_server_answers_and_leaves_nothing() {
    let server = Server::start(
        "127.0.0.1:0",
        "--backend cpu --seconds 60 --processes 2 --instructions 4000000000",
    );
    let children = server.children();
    let (mut waits, address) = (server.client(), server.address.clone());
    let running = std::thread::spawn(move || {
        let mut client = Client::connect(&address).unwrap();
        // Each block has the whole budget: they run for longer than anything here takes.
        let endless = Job {
            config: LaunchConfig::new(64, 1),
            ..job(".buffer x: u32\nagain: bra again", 1, &[0; 4])
        };
        client.run(&endless).unwrap_err().to_string()
    });
    good(&mut waits, 3).unwrap();
    let began = Instant::now();
    let said = server.stop();
    assert!(began.elapsed() < Duration::from_secs(30));
    let why = running.join().unwrap();
    assert!(
        why.contains("being ended") || why.contains("is the server running"),
        "{why}"
    );
    assert!(said.contains("1 results"), "{said}");
    for child in children {
        assert!(
            !std::path::Path::new(&format!("/proc/{child}")).exists(),
            "{child} is left"
        );
    }
}

/// Options with no end are taken as a long time: a client's thread adds them to the present.
#[test]
fn times_may_have_no_end() {
    use perpetua::isa::serve;
    let options = serve::Options {
        time: Duration::MAX,
        idle: Duration::MAX,
        transfer: Duration::MAX,
        ..serve::Options::default()
    };
    let memory = options.process_memory.to_string();
    let program = env!("CARGO_BIN_EXE_perpetua");
    let command = [
        program,
        "isa",
        "serve-child",
        "--backend",
        "cpu",
        "--memory",
        &memory,
    ];
    let address = "127.0.0.1:0".parse().unwrap();
    let server = serve::Server::bind(&address, options, command.map(Into::into).into()).unwrap();
    let (address, stopper) = (server.address().clone(), server.stopper());
    let served = std::thread::spawn(move || server.run());
    good(&mut Client::connect(&address).unwrap(), 7).unwrap();
    stopper.stop();
    let summary = served.join().unwrap().unwrap();
    assert_eq!((summary.clients, summary.results), (1, 1));
}
