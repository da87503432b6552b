//! Where a server listens: a Unix socket that its owner alone may use, or TCP on loopback, and nowhere else.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use perpetua_ir::plain::plain;

use super::error::Error;

/// Where a server listens: `unix:PATH`, or a loopback address with a port, as `127.0.0.1:7878`, `[::1]:7878`, `localhost:7878`.
/// Port 0 takes a free one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Tcp(SocketAddr),
    #[cfg(unix)]
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address, Error> {
        let shown = plain(text);
        let wrong = |why: &str| Error::Address {
            address: shown.clone().into_owned(),
            why: why.into(),
        };
        if let Some(path) = text.strip_prefix("unix:") {
            #[cfg(unix)]
            return match path {
                "" => Err(wrong("the path is empty")),
                path => match reachable(Path::new(path)) {
                    Ok(()) => Ok(Address(Kind::Unix(path.into()))),
                    Err(why) => Err(wrong(&why)),
                },
            };
            #[cfg(not(unix))]
            return Err(wrong(&format!(
                "Unix sockets (`{path}`) are not served on this system"
            )));
        }
        if text.contains('/') {
            return Err(wrong(&format!("a path stands behind `unix:`, as unix:{shown}")));
        }
        let found = text
            .to_socket_addrs()
            .map_err(|error| wrong(&error.to_string()))?;
        let found: Vec<SocketAddr> = found.collect();
        match found.first() {
            Some(first) if found.iter().all(|address| address.ip().is_loopback()) => {
                Ok(Address(Kind::Tcp(*first)))
            }
            Some(_) => Err(wrong(
                "others than this machine could reach it, and the protocol has no passwords",
            )),
            None => Err(wrong("the name stands for no address")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Tcp(address) => address.fmt(f),
            #[cfg(unix)]
            Kind::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    pub(super) fn connect(&self) -> Result<Stream, Error> {
        let stream = match &self.0 {
            Kind::Tcp(address) => TcpStream::connect(address).and_then(Stream::tcp),
            #[cfg(unix)]
            Kind::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
        };
        stream.map_err(|error| Error::Connect {
            address: self.to_string(),
            error,
        })
    }

    pub(super) fn listen(&self) -> Result<Listener, Error> {
        let wrong = |why: String| Error::Bind {
            address: self.to_string(),
            why,
        };
        match &self.0 {
            Kind::Tcp(address) => match TcpListener::bind(address) {
                Ok(listener) => Ok(Listener::Tcp(listener)),
                Err(error) => Err(wrong(format!("{error}; port 0 takes one that is free"))),
            },
            #[cfg(unix)]
            Kind::Unix(path) => SocketFile::bind(path).map(Listener::Unix).map_err(wrong),
        }
    }
}

/// Where clients arrive.
pub(super) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(SocketFile),
}

impl Listener {
    /// Where it listens: with the port that was free.
    pub(super) fn address(&self) -> io::Result<Address> {
        match self {
            Listener::Tcp(listener) => Ok(Address(Kind::Tcp(listener.local_addr()?))),
            #[cfg(unix)]
            Listener::Unix(file) => Ok(Address(Kind::Unix(file.path.clone()))),
        }
    }

    /// Waits for a client, for a moment at most: a server comes back from here also when nobody can reach it any more, because the
    /// socket's file has gone.
    #[cfg(unix)]
    pub(super) fn is_called(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        use std::os::fd::AsFd;
        const MOMENT: Timespec = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let listener = match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(file) => file.listener.as_fd(),
        };
        let mut asked = [PollFd::from_borrowed_fd(listener, PollFlags::IN)];
        poll(&mut asked, Some(&MOMENT)).is_ok_and(|called| called > 0)
    }

    pub(super) fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => Stream::tcp(listener.accept()?.0),
            #[cfg(unix)]
            Listener::Unix(file) => Ok(Stream::Unix(file.listener.accept()?.0)),
        }
    }
}

/// A Unix socket in the file system; the file goes with it.
#[cfg(unix)]
pub(super) struct SocketFile {
    listener: UnixListener,
    path: PathBuf,
    // Device and inode: another server may have put its own file there meanwhile.
    identity: (u64, u64),
}

#[cfg(unix)]
impl SocketFile {
    // The file is made in a folder that only its owner enters, and moved to its place when only its owner can open it, so that there is no
    // moment at which others could connect.
    fn bind(path: &Path) -> Result<SocketFile, String> {
        use std::fs::{self, DirBuilder, Permissions};
        use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};

        if let Ok(there) = fs::symlink_metadata(path) {
            if !there.file_type().is_socket() {
                return Err("something that is no socket is there: name another path".into());
            }
            // A socket that nobody listens at was left by a server that was killed.
            match UnixStream::connect(path) {
                Ok(_) => return Err("another server listens there: end it, or name another path".into()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => {
                    return Err(format!(
                        "a socket is there, and it cannot be asked whose it is: {error}"
                    ));
                }
            }
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let folder = parent.join(format!(".pisv{}", std::process::id()));
        let own = folder.join("s");
        reachable(&own).map_err(|why| {
            format!(
                "the socket is made as {}, and {why}: name a folder with a shorter path",
                own.display()
            )
        })?;
        let made = DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|error| {
            format!(
                "the folder {} takes no socket: {error}: name one that exists and that you may write to",
                parent.display()
            )
        })?;
        let bound = UnixListener::bind(&own).and_then(|listener| {
            fs::set_permissions(&own, Permissions::from_mode(0o600))?;
            let identity = identity(&own)?;
            fs::rename(&own, path)?;
            Ok((listener, identity))
        });
        // What is left in it after an error is the socket alone.
        let _ = fs::remove_file(&own);
        let _ = fs::remove_dir(&folder);
        let (listener, identity) = bound.map_err(|error| error.to_string())?;
        Ok(SocketFile {
            listener,
            path: path.into(),
            identity,
        })
    }
}

// Whether the system takes a path as a socket's: it holds few bytes, and a file may be moved to a path with more of them.
#[cfg(unix)]
fn reachable(path: &Path) -> Result<(), String> {
    use std::os::unix::{ffi::OsStrExt, net::SocketAddr};

    let takes = |path: &Path| SocketAddr::from_pathname(path).map(drop);
    takes(path).map_err(|error| {
        let most = (1..path.as_os_str().len()).rev();
        let most = most
            .map(|len| "a".repeat(len))
            .find(|name| takes(Path::new(name)).is_ok());
        let found = path.as_os_str().as_bytes().len();
        match most {
            Some(most) if !path.as_os_str().as_bytes().contains(&0) => {
                format!(
                    "the path has {found} bytes, and this system takes {} for a socket",
                    most.len()
                )
            }
            _ => error.to_string(),
        }
    })
}

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(unix)]
impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

macro_rules! each {
    ($self:expr, $stream:ident => $body:expr) => {
        match $self {
            Stream::Tcp($stream) => $body,
            #[cfg(unix)]
            Stream::Unix($stream) => $body,
        }
    };
}

impl Stream {
    fn tcp(stream: TcpStream) -> io::Result<Stream> {
        // An answer's last bytes do not wait for more.
        stream.set_nodelay(true)?;
        Ok(Stream::Tcp(stream))
    }

    pub(super) fn shutdown(&self, how: Shutdown) {
        // It may be closed already.
        let _ = each!(self, stream => stream.shutdown(how));
    }

    /// Whether the peer has closed its side. Elsewhere than on Linux this takes a look at what the peer sends: a byte that it finds is put
    /// into `ahead`, and behind that it sees nothing.
    pub(super) fn is_closed(&self, ahead: &mut Option<u8>) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(is_closed) = self.has_hung_up() {
            return is_closed;
        }
        if ahead.is_some() {
            return false;
        }
        let look =
            |ahead: &mut Option<u8>| -> io::Result<bool> {
                let mut byte = [0];
                each!(self, stream => stream.set_nonblocking(true))?;
                let found = each!(self, stream => { let mut stream = stream; stream.read(&mut byte) });
                each!(self, stream => stream.set_nonblocking(false))?;
                match found {
                    Ok(0) => Ok(true),
                    Ok(_) => {
                        *ahead = Some(byte[0]);
                        Ok(false)
                    }
                    Err(error) => Ok(error.kind() != io::ErrorKind::WouldBlock
                        && error.kind() != io::ErrorKind::Interrupted),
                }
            };
        look(ahead).unwrap_or(true)
    }

    // What the system knows of the peer's side, whatever lies there unread.
    #[cfg(target_os = "linux")]
    fn has_hung_up(&self) -> Option<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        use std::os::fd::AsFd;
        let mut asked = [PollFd::from_borrowed_fd(
            each!(self, stream => stream.as_fd()),
            PollFlags::RDHUP,
        )];
        poll(&mut asked, Some(&Timespec::default())).ok()?;
        let over = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        Some(asked[0].revents().intersects(over))
    }

    /// Reads and writes that end at a moment.
    pub(super) fn until(&self, end: Instant) -> Timed<'_> {
        Timed { stream: self, end }
    }
}

/// A connection up to a moment: what is later is an error of the kind `TimedOut`.
pub(super) struct Timed<'a> {
    stream: &'a Stream,
    pub(super) end: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.end.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            // Less than a microsecond would be none.
            false => Ok(Some(left.max(Duration::from_millis(1)))),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left()?;
        each!(self.stream, stream => {
            stream.set_read_timeout(left)?;
            let mut stream = stream;
            stream.read(buffer)
        })
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left()?;
        each!(self.stream, stream => {
            stream.set_write_timeout(left)?;
            let mut stream = stream;
            stream.write(bytes)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A client's connection, whose peer is waited for as long as it takes.
impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        each!(*self, stream => { let mut stream = stream; stream.read(buffer) })
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        each!(*self, stream => { let mut stream = stream; stream.write(bytes) })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_served() {
        for text in ["127.0.0.1:0", "[::1]:7", "localhost:0", "127.9.9.9:1"] {
            assert!(text.parse::<Address>().is_ok(), "{text}");
        }
        for (text, why) in [
            ("0.0.0.0:7878", "others than this machine"),
            ("[::]:7878", "others than this machine"),
            ("192.168.0.1:7878", "others than this machine"),
            ("127.0.0.1", "is no address to serve at"),
            ("127.0.0.1:99999", "is no address to serve at"),
            ("", "is no address to serve at"),
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_no_client_can_name_is_refused() {
        let parent = std::env::temp_dir();
        let left = 107 - parent.as_os_str().len();
        let file = |len: usize| format!("unix:{}", parent.join("s".repeat(len)).display());
        let error = file(200).parse::<Address>().expect_err("too long").to_string();
        assert!(error.contains("bytes, and this system takes 10"), "{error}");
        assert!(error.contains("write a path as unix:/run/user"), "{error}");
        // The file's own path is short enough, the one that it is made under is not.
        let folder = parent.join("f".repeat(left - 8));
        std::fs::create_dir_all(&folder).expect("a folder");
        let address = format!("unix:{}/s", folder.display());
        let error = address
            .parse::<Address>()
            .and_then(|address| address.listen().map(drop));
        let error = error.expect_err("too long by far").to_string();
        assert!(error.contains("name a folder with a shorter path"), "{error}");
        assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 0);
        std::fs::remove_dir(&folder).expect("the folder");
        let nowhere: Address = "unix:/nonexistent/a".parse().expect("an address");
        let error = nowhere.listen().err().expect("no folder").to_string();
        assert!(
            error.contains("the folder /nonexistent takes no socket"),
            "{error}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_is_its_owners_and_goes_with_the_server() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("pisv-address-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("a.sock");
        let address: Address = format!("unix:{}", path.display()).parse().expect("an address");
        let listener = address.listen().expect("a listener");
        let mode = std::fs::metadata(&path).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = address.listen().err().expect("taken").to_string();
        assert!(error.contains("another server listens there"), "{error}");
        // One that was killed left its file; its follower takes the place.
        let killed = std::mem::ManuallyDrop::new(listener);
        let Listener::Unix(file) = &*killed else {
            panic!("a socket file")
        };
        drop(UnixListener::from(std::os::fd::OwnedFd::from(
            file.listener.try_clone().expect("a copy"),
        )));
        drop(address.connect().expect("still there"));
        let left = folder.join("left.sock");
        drop(UnixListener::bind(&left).expect("a socket"));
        let left: Address = format!("unix:{}", left.display()).parse().expect("an address");
        drop(left.listen().expect("nobody listens there"));
        assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 1);
        drop(std::mem::ManuallyDrop::into_inner(killed));
        assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 0);
        std::fs::write(&path, "mine").expect("a file");
        let error = address.listen().err().expect("a file").to_string();
        assert!(error.contains("no socket is there"), "{error}");
        std::fs::remove_dir_all(&folder).expect("the folder");
    }
}
