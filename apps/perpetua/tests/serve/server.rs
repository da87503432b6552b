//! A server's process, and what clients of all kinds send to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use perpetua::isa::serve::{Address, Client, Content, Data, Error, Job, protocol::Code};
use perpetua::isa::{Arguments, Assembler, LaunchConfig};

/// A server, ended with this.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) address: Address,
}

impl Server {
    /// With these options beside the address.
    pub(crate) fn start(address: &str, options: &str) -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_perpetua"))
            .args(["isa", "serve", address])
            .args(options.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("listening on ") else {
            let mut why = String::new();
            process.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            panic!("no server: {why}");
        };
        Server {
            address: address.parse().unwrap(),
            process,
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.address).unwrap()
    }

    /// A connection on which anything can be sent.
    pub(crate) fn raw(&self) -> Box<dyn Raw> {
        let address = self.address.to_string();
        match address.strip_prefix("unix:") {
            Some(path) => Box::new(UnixStream::connect(path).unwrap()),
            None => Box::new(TcpStream::connect(address).unwrap()),
        }
    }

    /// Its child processes.
    pub(crate) fn children(&self) -> Vec<String> {
        let id = self.process.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        // Those of its other threads.
        let tasks = std::fs::read_dir(format!("/proc/{id}/task"))
            .into_iter()
            .flatten()
            .flatten();
        let others = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        let all: Vec<String> = others.chain([children]).collect();
        let mut all: Vec<String> = all
            .iter()
            .flat_map(|line| line.split_whitespace().map(str::to_owned))
            .collect();
        all.sort();
        all.dedup();
        all
    }

    /// Asks it to end, and gives what it said.
    pub(crate) fn stop(mut self) -> String {
        let id = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
        let mut said = String::new();
        self.process
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(self.process.wait().unwrap().success(), "{said}");
        said
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already where a test has passed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A stream of either kind.
pub(crate) trait Raw: Read + Write + Send {
    fn end_reads_after(&self, time: Duration);
}

impl Raw for UnixStream {
    fn end_reads_after(&self, time: Duration) {
        self.set_read_timeout(Some(time)).unwrap();
    }
}

impl Raw for TcpStream {
    fn end_reads_after(&self, time: Duration) {
        self.set_read_timeout(Some(time)).unwrap();
    }
}

/// A frame's bytes, with a length of one's own.
pub(crate) fn frame(kind: u16, announced: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = b"PISV\x01\x00".to_vec();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(7u32.to_le_bytes());
    bytes.extend(announced.to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// The answer's kind, and its payload.
pub(crate) fn answer(stream: &mut dyn Raw) -> Option<(u16, Vec<u8>)> {
    stream.end_reads_after(Duration::from_secs(60));
    let mut head = [0; 16];
    stream.read_exact(&mut head).ok()?;
    assert_eq!(&head[..6], b"PISV\x01\x00");
    let mut payload = vec![0; u32::from_le_bytes(head[12..].try_into().unwrap()) as usize];
    stream.read_exact(&mut payload).ok()?;
    Some((u16::from_le_bytes([head[6], head[7]]), payload))
}

/// A job of a text on one block of lanes; `x` holds these numbers and is returned.
pub(crate) fn job<'a>(text: &str, lanes: u32, x: &'a [u8]) -> Job<'a> {
    let content = Content {
        name: "x",
        data: Data::Bytes(x),
        is_returned: true,
    };
    Job {
        program: Assembler::new().assemble("job.pasm", text).unwrap(),
        config: LaunchConfig::new(1, lanes),
        arguments: Arguments::new(),
        contents: vec![content],
    }
}

/// What each good client asks for: x = 2 x + 1, with numbers that are its own.
pub(crate) const GOOD: &str =
    ".buffer x: u32\n ldg.u32 r0, x[r255]\n mul.u32 r0, r0, 2\n add.u32 r0, r0, 1\n stg.u32 x[r255], r0\n";

pub(crate) fn good(client: &mut Client, seed: u32) -> Result<(), Error> {
    let numbers = (0..64).map(|i| seed.wrapping_mul(2_654_435_761).wrapping_add(i));
    let bytes: Vec<u8> = numbers.clone().flat_map(u32::to_le_bytes).collect();
    let result = client.run(&job(GOOD, 64, &bytes))?;
    let expect: Vec<u8> = numbers
        .flat_map(|n| n.wrapping_mul(2).wrapping_add(1).to_le_bytes())
        .collect();
    assert_eq!(result, [("x".to_owned(), expect)]);
    Ok(())
}

/// The code of a refusal, and its words.
pub(crate) fn refused(result: Result<Vec<(String, Vec<u8>)>, Error>) -> (Code, String) {
    match result {
        Err(Error::Refused { code, message }) => (code, message),
        other => panic!("{other:?}"),
    }
}
