//! A client of a server.

use super::address::{Address, Stream};
use super::error::Error;
use super::frame::Frame;
use super::job::{self, Allowed, Job};
use super::protocol::{Code, Kind};

/// A connection to a server: runs jobs, one after the other.
///
/// ```no_run
/// use perpetua_isa::serve::{Client, Content, Data, Job};
/// use perpetua_isa::{Arguments, LaunchConfig, library};
/// let mut client = Client::connect(&"unix:/run/user/1000/perpetua.sock".parse()?)?;
/// let (a, b): (&[f32], &[f32]) = (&[1.0, 2.0], &[10.0, 20.0]);
/// let input = |name, values| Content { name, data: Data::Bytes(bytemuck::cast_slice(values)), is_returned: false };
/// let job = Job {
///     program: library("atlas_add_f32")?,
///     config: LaunchConfig::linear(2, 256),
///     arguments: Arguments::new(),
///     contents: vec![
///         input("a", a),
///         input("b", b),
///         Content { name: "out", data: Data::Zeros(8), is_returned: true },
///     ],
/// };
/// for (name, bytes) in client.run(&job)? {
///     println!("{name}: {bytes:?}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Client {
    address: Address,
    stream: Stream,
    allowed: Allowed,
    next: u32,
}

impl Client {
    /// Connects, and asks what is allowed.
    ///
    /// # Errors
    /// If nobody listens there, or the server takes no more clients.
    pub fn connect(address: &Address) -> Result<Client, Error> {
        let mut client = Client {
            address: address.clone(),
            stream: address.connect()?,
            allowed: Allowed {
                limits: crate::executor::Limits::default(),
                message: u32::MAX.into(),
                milliseconds: 0,
            },
            next: 0,
        };
        let answer = client.ask(Kind::Ask, Vec::new(), Kind::Allowed)?;
        client.allowed = Allowed::decode(&answer)?;
        Ok(client)
    }

    /// What the server allows.
    pub fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    /// Runs a job, and gives what the buffers hold that are returned, by name. Where the client's place went to another while it was quiet
    /// ([`Code::Waited`]), it connects anew, once, and sends the job again, which has not begun.
    ///
    /// # Errors
    /// [`Error::Refused`] with the server's words, where there is no result; others where the connection broke.
    pub fn run(&mut self, job: &Job<'_>) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let payload = job.encode()?;
        if payload.len() as u64 > self.allowed.message {
            return Err(Error::Large {
                found: payload.len() as u64,
                limit: self.allowed.message,
            });
        }
        let answer = match self.ask(Kind::Run, payload, Kind::Result) {
            Err(Error::Refused {
                code: Code::Waited, ..
            }) => {
                *self = Client::connect(&self.address)?;
                self.ask(Kind::Run, job.encode()?, Kind::Result)
            }
            answer => answer,
        };
        let result = job::decode_result(&answer?)?;
        let wanted = job.contents.iter().filter(|content| content.is_returned);
        let wanted = wanted.map(|content| (content.name, job::len(content)));
        let found = result
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.len() as u64));
        match wanted.clone().eq(found.clone()) {
            true => Ok(result),
            false => {
                let list = |all: Vec<(&str, u64)>| {
                    let each = all
                        .iter()
                        .take(8)
                        .map(|(name, bytes)| format!("{name:?} of {bytes} bytes"));
                    each.collect::<Vec<String>>().join(", ")
                };
                Err(Error::Payload {
                    at: 0,
                    what: "a result",
                    why: format!(
                        "asked for was {}, this is {}",
                        list(wanted.collect()),
                        list(found.collect())
                    ),
                })
            }
        }
    }

    fn ask(&mut self, kind: Kind, payload: Vec<u8>, expected: Kind) -> Result<Vec<u8>, Error> {
        let id = self.next;
        self.next = id.wrapping_add(1);
        // A server that sends a client away says why, and takes nothing more.
        let sent = Frame { kind, id, payload }.write(&mut &self.stream);
        let answer = Frame::read(&mut &self.stream, u32::MAX.into());
        let answer = match (sent, answer) {
            (_, Ok(Some(answer))) => answer,
            (Err(error), _) | (Ok(()), Err(error)) => return Err(error),
            (Ok(()), Ok(None)) => return Err(Error::Closed { at: 0 }),
        };
        if answer.kind == Kind::Error {
            let (code, message) = job::decode_error(&answer.payload)?;
            return Err(Error::Refused { code, message });
        }
        match answer.kind == expected && answer.id == id {
            true => Ok(answer.payload),
            false => Err(Error::Kind {
                found: answer.kind.code(),
                expected: expected.name(),
            }),
        }
    }
}
