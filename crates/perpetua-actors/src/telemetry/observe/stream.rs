//! Connections between two processes of one user: a socket in the file system, and where there is none a port of this machine with a
//! secret that lies in the file. Must not know what is said.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::time::Duration;

#[cfg(any(not(unix), all(test, not(perpetua_loom))))]
use std::net::{TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};

/// One connection.
#[derive(Debug)]
pub(super) enum Stream {
    #[cfg(unix)]
    Unix(UnixStream),
    #[cfg(any(not(unix), all(test, not(perpetua_loom))))]
    Tcp(TcpStream),
}

/// Who waits for connections.
#[derive(Debug)]
pub(super) enum Listener {
    #[cfg(unix)]
    Unix(UnixListener),
    #[cfg(any(not(unix), all(test, not(perpetua_loom))))]
    Tcp(TcpListener, [u8; SECRET]),
}

#[cfg(any(not(unix), all(test, not(perpetua_loom))))]
pub(super) const SECRET: usize = 16;

macro_rules! either {
    ($self:expr, $stream:ident => $act:expr) => {
        match $self {
            #[cfg(unix)]
            Stream::Unix($stream) => $act,
            #[cfg(any(not(unix), all(test, not(perpetua_loom))))]
            Stream::Tcp($stream) => $act,
        }
    };
}

impl Listener {
    /// Waits at `path`, which must not be there, and which only this user can reach.
    #[cfg(unix)]
    pub(super) fn bind(path: &Path) -> io::Result<Listener> {
        use std::os::unix::fs::PermissionsExt;
        let listener = UnixListener::bind(path)?;
        // The folder lets nobody else in; this is for those who loosen it later.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Listener::Unix(listener))
    }

    /// Waits at a port, which is said at `path`.
    #[cfg(not(unix))]
    pub(super) fn bind(path: &Path) -> io::Result<Listener> {
        Listener::bind_port(path)
    }

    /// Waits at a port of this machine; who connects must know the secret beside it in `path`.
    #[cfg(any(not(unix), all(test, not(perpetua_loom))))]
    pub(super) fn bind_port(path: &Path) -> io::Result<Listener> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        let secret = secret();
        let port = listener.local_addr()?.port();
        std::fs::write(path, [&port.to_le_bytes()[..], &secret].concat())?;
        Ok(Listener::Tcp(listener, secret))
    }

    /// The next connection; `None` from somebody who does not know the secret.
    pub(super) fn accept(&self) -> io::Result<Option<Stream>> {
        match self {
            #[cfg(unix)]
            Listener::Unix(listener) => listener.accept().map(|(stream, _)| Some(Stream::Unix(stream))),
            #[cfg(any(not(unix), all(test, not(perpetua_loom))))]
            Listener::Tcp(listener, secret) => {
                let mut stream = listener.accept()?.0;
                let mut said = [0; SECRET];
                stream.set_read_timeout(Some(Duration::from_millis(500)))?;
                let known = stream.read_exact(&mut said).is_ok() && said == *secret;
                stream.set_read_timeout(None)?;
                Ok(known.then_some(Stream::Tcp(stream)))
            }
        }
    }
}

// The standard library's hash maps are seeded by the operating system.
#[cfg(any(not(unix), all(test, not(perpetua_loom))))]
fn secret() -> [u8; SECRET] {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut secret = [0; SECRET];
    for part in secret.chunks_exact_mut(8) {
        part.copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
    }
    secret
}

impl Stream {
    /// Connects to who waits at `path`.
    #[cfg(unix)]
    pub(super) fn connect(path: &Path) -> io::Result<Stream> {
        UnixStream::connect(path).map(Stream::Unix)
    }

    /// Connects to who waits at the port that `path` says.
    #[cfg(not(unix))]
    pub(super) fn connect(path: &Path) -> io::Result<Stream> {
        Stream::connect_port(path)
    }

    /// Connects to who waits at the port that `path` says.
    #[cfg(any(not(unix), all(test, not(perpetua_loom))))]
    pub(super) fn connect_port(path: &Path) -> io::Result<Stream> {
        let said = std::fs::read(path)?;
        let Some(([low, high], secret)) = said.split_first_chunk::<2>().map(|(port, rest)| (*port, rest))
        else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let port = u16::from_le_bytes([low, high]);
        let mut stream = TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.write_all(secret)?;
        Ok(Stream::Tcp(stream))
    }

    /// The same connection once more.
    pub(super) fn again(&self) -> io::Result<Stream> {
        Ok(match self {
            #[cfg(unix)]
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
            #[cfg(any(not(unix), all(test, not(perpetua_loom))))]
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
        })
    }

    /// Reading and writing fail after so long.
    pub(super) fn set_timeout(&self, patience: Duration) -> io::Result<()> {
        either!(self, stream => {
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))
        })
    }

    /// Ends it, for all who have it.
    pub(super) fn end(&self) {
        // Ended already.
        let _ = either!(self, stream => stream.shutdown(Shutdown::Both));
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => stream.read(into))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, stream => stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        either!(self, stream => stream.flush())
    }
}
