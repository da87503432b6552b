//! Clients that break every rule: each is told why, and a good client beside them gets all its answers.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use perpetua::isa::serve::{Client, Data, protocol::Code};

use super::server::{GOOD, Raw, Server, answer, frame, good, job, refused};

/// Programs that do harm, what they are refused for, and words of the answer.
pub(crate) const PROGRAMS: [(&str, Code, &str); 6] = [
    (".buffer x: u32\nagain: bra again", Code::Fault, "job.pasm:2"),
    (
        ".buffer x: u32\nagain: stg.u32 x[0], 1\n bar\n bra again",
        Code::Fault,
        "job.pasm:",
    ),
    (
        ".buffer x: u32\n mov.u32 r0, 4000000\n stg.u32 x[r0], 7",
        Code::Fault,
        "index out of bounds",
    ),
    (
        ".buffer x: u32\n mov.u32 r0, 0\n div.u32 r1, r0, r0\n stg.u32 x[0], r1",
        Code::Fault,
        "division by zero",
    ),
    (
        ".buffer x: u32\n fence_system",
        Code::Program,
        "orders memory of the whole system",
    ),
    (
        ".buffer x: u32\n ldg.u32 r0, x[-1]\n stg.u32 x[0], r0",
        Code::Program,
        "-1",
    ),
];

/// What is no frame, or no job, and the code of the answer.
pub(crate) fn bytes() -> Vec<(Vec<u8>, Code)> {
    let mut version = frame(3, 0, &[]);
    version[4] = 9;
    vec![
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Code::Frame),
        (vec![0xff; 4000], Code::Frame),
        (version, Code::Frame),
        (frame(999, 0, &[]), Code::Frame),
        (frame(1, 1, &[7]), Code::Frame),
        // What servers send.
        (frame(4, 0, &[]), Code::Frame),
        (frame(3, 1 << 30, b"little comes"), Code::Large),
        (frame(3, u32::MAX, &[0; 64]), Code::Large),
        (frame(3, 0, &[]), Code::Job),
        (frame(3, 9, &[0xff; 9]), Code::Job),
        (frame(3, 28, &[0xff; 28]), Code::Job),
        (
            frame(3, 33, &[&[1u8; 24][..], &[5, 0, 0, 0], b"PISA!"].concat()),
            Code::Program,
        ),
    ]
}

/// Sends bytes and gives the code of the answer.
pub(crate) fn code(stream: &mut dyn Raw, bytes: &[u8]) -> Option<u16> {
    // The server may have closed it before all was taken.
    let _ = stream.write_all(bytes);
    let (kind, payload) = answer(stream)?;
    (kind == 5).then(|| u16::from_le_bytes([payload[0], payload[1]]))
}

/// Says that all is over when it goes, also by a failed expectation, so that nobody goes on for ever beside it.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn hostile_clients_are_told_and_good_ones_do_not_notice() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}/p.sock", folder.path().display());
    for address in [socket.as_str(), "127.0.0.1:0"] {
        let options =
            "--backend cpu --message 1M --memory 1M --instructions 20000 --transfer 2 --idle 60 --seconds 5";
        let server = Server::start(address, options);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let over = Over(&is_over);
            let beside = scope.spawn(|| {
                let mut client = server.client();
                let mut count = 0;
                while !is_over.load(Ordering::Relaxed) {
                    count += 1;
                    good(&mut client, count).unwrap();
                }
                count
            });
            for (bytes, expect) in bytes() {
                let found = code(&mut *server.raw(), &bytes);
                assert_eq!(found, Some(expect.code()), "{:?}", &bytes[..bytes.len().min(40)]);
            }
            let mut client = server.client();
            for (text, expect, words) in PROGRAMS {
                let (code, message) = refused(client.run(&job(text, 40, &[0; 64])));
                assert!(code == expect && message.contains(words), "{code:?}: {message}");
            }
            // Handles that were made up mean nothing: the buffer is the job's own.
            let forged = ".buffer x: u32 = 12345\n ldg.u32 r0, x[0]\n add.u32 r0, r0, 1\n stg.u32 x[0], r0";
            assert_eq!(
                client.run(&job(forged, 1, &[1, 0, 0, 0])).unwrap()[0].1,
                [2, 0, 0, 0]
            );
            let mut huge = job(".buffer x: u32\n stg.u32 x[0], 1", 1, &[]);
            huge.contents[0].data = Data::Zeros(1 << 40);
            huge.contents[0].is_returned = false;
            assert_eq!(refused(client.run(&huge)).0, Code::Program);
            // Half a header, half a payload: the server waits for its time, and for this client alone.
            let mut slow = [server.raw(), server.raw()];
            slow[0].write_all(b"PISV\x01").unwrap();
            slow[1].write_all(&frame(3, 1000, &[0; 10])).unwrap();
            for stream in &mut slow {
                assert_eq!(code(&mut **stream, &[]), Some(Code::Slow.code()));
            }
            drop(over);
            assert!(beside.join().unwrap() > 0);
        });
        server.stop();
    }
}

#[test]
fn results_that_nobody_reads_are_thrown_away_after_their_time() {
    const SIZE: usize = 4 << 20;
    const CLIENTS: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let address = format!("unix:{}/p.sock", folder.path().display());
    let server = Server::start(
        &address,
        "--backend cpu --message 5M --memory 8M --processes 2 --transfer 3 --idle 60",
    );
    // Two jobs, one sent ahead: it begins when the first one's result was taken, so never.
    let jobs = run_frame(GOOD, Some(SIZE as u64)).repeat(2);
    let mut streams: Vec<_> = (0..CLIENTS).map(|_| server.raw()).collect();
    for stream in &mut streams {
        stream.write_all(&jobs).unwrap();
        stream.end_reads_after(Duration::from_secs(60));
    }
    let mut client = server.client();
    good(&mut client, 1).unwrap();
    for (number, stream) in streams.iter_mut().enumerate() {
        let (mut seen, mut bytes) = (0, vec![0; 1 << 16]);
        let end = Instant::now() + Duration::from_secs(60);
        // A closed side takes no byte. Some read a byte now and then, which is no more time for the rest.
        while stream.write_all(b"P").is_ok() {
            assert!(Instant::now() < end, "the server still waits");
            if number.is_multiple_of(2) {
                seen += stream.read(&mut bytes[..1]).unwrap_or(0);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        while let Ok(read @ 1..) = stream.read(&mut bytes) {
            seen += read;
        }
        assert!(seen < SIZE, "{seen} bytes: the answer was whole");
    }
    good(&mut client, 2).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap_or_default();
    if let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        let kibibytes: usize = line.split_whitespace().next().unwrap().parse().unwrap();
        // One result for each, and the program itself.
        assert!(kibibytes << 10 < (CLIENTS + 16) * SIZE, "{line}");
    }
    let said = server.stop();
    assert!(said.contains("2 results"), "{said}");
}

#[test]
fn a_client_that_only_connects_holds_its_place_for_the_idle_time() {
    let server = Server::start("127.0.0.1:0", "--backend cpu --clients 1 --idle 1 --transfer 60");
    let began = Instant::now();
    let mut quiet = server.raw();
    assert_eq!(code(&mut *quiet, &[]), Some(Code::Slow.code()));
    assert!(began.elapsed() >= Duration::from_secs(1), "it had its time");
    // Its connection is still open on its side: the place is free all the same.
    let end = Instant::now() + Duration::from_secs(60);
    let mut client = loop {
        match Client::connect(&server.address) {
            Ok(client) => break client,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    good(&mut client, 1).unwrap();
    server.stop();
}

#[test]
#[cfg(target_os = "linux")]
fn children_have_given_up_what_programs_do_not_need() {
    let server = Server::start("127.0.0.1:0", "--backend cpu --process-memory 300M --processes 1");
    let mut client = server.client();
    good(&mut client, 1).unwrap();
    let children = server.children();
    assert!(!children.is_empty());
    for child in children {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{child}/{file}")).unwrap();
        let status = read("status");
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
        let limits = read("limits");
        for (name, most) in [
            ("Max core file size", "0"),
            ("Max file size", "0"),
            ("Max open files", "64"),
            ("Max data size", "629145600"),
        ] {
            let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
            let values: Vec<&str> = line[name.len()..].split_whitespace().take(2).collect();
            assert_eq!(values, [most, most], "{line}");
        }
        assert_eq!(read("oom_score_adj").trim(), "1000");
    }
    server.stop();
}

#[test]
fn a_job_that_takes_too_long_is_ended_and_so_is_one_whose_client_goes() {
    let options = "--backend cpu --instructions 4000000000 --seconds 2 --processes 2";
    let server = Server::start("127.0.0.1:0", options);
    let endless = ".buffer x: u32\nagain: bra again";
    let mut client = server.client();
    let (code, message) = refused(client.run(&job(endless, 1, &[0; 4])));
    assert!(
        code == Code::Time && message.contains("longer than the 2s allowed"),
        "{message}"
    );
    good(&mut client, 5).unwrap();
    // A child that is killed is its client's loss alone.
    let before = server.children();
    let id = before.first().expect("a child");
    for child in &before {
        assert!(
            std::process::Command::new("kill")
                .args(["-KILL", child])
                .status()
                .unwrap()
                .success()
        );
    }
    let mut second = server.client();
    let answers = [
        good(&mut client, 6),
        good(&mut second, 7),
        good(&mut client, 8),
        good(&mut second, 9),
    ];
    let lost = answers.iter().filter(|answer| answer.is_err()).count();
    assert!(lost <= before.len(), "{answers:?}");
    assert!(!server.children().contains(id));
    for _ in 0..3 {
        good(&mut client, 10).unwrap();
        good(&mut second, 11).unwrap();
    }
    server.stop();

    let server = Server::start(
        "127.0.0.1:0",
        "--backend cpu --instructions 4000000000 --seconds 60 --processes 1",
    );
    // Whatever they have sent ahead; elsewhere than on Linux the system does not tell then.
    let ahead = if cfg!(target_os = "linux") { 3 } else { 1 };
    for frames in [1, ahead] {
        let before = server.children();
        let mut raw = server.raw();
        raw.write_all(&endless_frame().repeat(frames)).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        drop(raw);
        let began = Instant::now();
        good(&mut server.client(), 12).unwrap();
        assert!(
            began.elapsed() < Duration::from_secs(50),
            "the place is free before the job's time is over"
        );
        assert_ne!(server.children(), before);
    }
    server.stop();
}

/// An endless job as a frame: what a client would have sent.
pub(crate) fn endless_frame() -> Vec<u8> {
    run_frame("again: bra again", None)
}

/// A job as a frame; `x` is so many bytes of zeros, which are returned.
pub(crate) fn run_frame(text: &str, x: Option<u64>) -> Vec<u8> {
    let program = perpetua::isa::Assembler::new()
        .assemble("job.pasm", text)
        .unwrap()
        .encode();
    let mut payload: Vec<u8> = [1u32; 6].iter().flat_map(|n| n.to_le_bytes()).collect();
    payload.extend((program.len() as u32).to_le_bytes());
    payload.extend(program);
    payload.extend([0, 0, u8::from(x.is_some()), 0]);
    if let Some(bytes) = x {
        payload.extend([1, 0, b'x', 1, 1]);
        payload.extend(bytes.to_le_bytes());
    }
    frame(3, payload.len() as u32, &payload)
}

#[test]
fn a_process_that_takes_too_much_memory_is_ended() {
    let server = Server::start("127.0.0.1:0", "--backend cpu --memory 1G --process-memory 300M");
    let mut client = server.client();
    let text = ".buffer x: u32\n setge.u64 p0, r255, len(x)\n@p0 exit\n cvt.u32.u64 r0, r255\n stg.u32 x[r255], r0\n";
    // Above what is allowed while it runs, and more than can be had at all.
    for (bytes, words) in [
        (400 << 20, "more than the 314572800 allowed"),
        (1 << 30, "1073741824 bytes cannot be had"),
    ] {
        let mut large = job(text, 256, &[]);
        large.contents[0].data = Data::Zeros(bytes);
        large.contents[0].is_returned = false;
        large.config = perpetua::isa::LaunchConfig::linear((bytes >> 2).try_into().unwrap(), 256);
        if cfg!(target_os = "linux") {
            let (code, message) = refused(client.run(&large));
            assert!(
                code == Code::Memory && message.contains(words),
                "{code:?}: {message}"
            );
        }
        good(&mut client, 1).unwrap();
    }
    server.stop();
}
