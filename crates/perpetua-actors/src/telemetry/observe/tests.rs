//! Both sides of the protocol in one process, over both kinds of socket.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};

use super::client::{attach_in, processes_in};
use super::server::open_in as serve;
use super::stream::{Listener, Stream};
use super::*;
use crate::telemetry::{ActorMetrics, ActorReading, Reading, register};

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("observe-{name}-{}", std::process::id())))
    }

    fn socket(&self) -> PathBuf {
        place::socket(&self.0, std::process::id())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn check_looking(
    bind: fn(&Path) -> std::io::Result<Listener>,
    connect: fn(&Path) -> std::io::Result<Stream>,
    name: &str,
) {
    let folder = Folder::new(name);
    let source = format!("source of {name}");
    let metrics = ActorMetrics {
        messages_processed: 7,
        ..ActorMetrics::default()
    };
    let reading = Reading::new("CPU").with(ActorReading::new("one", 3, "Active", metrics));
    let _registered = register(source.clone(), move || Some(reading.clone()));
    let observer = serve(&folder.0, "process", bind).unwrap();
    let pid = std::process::id();

    let mut watcher = attach_in(&folder.0, pid, connect).unwrap();
    assert_eq!(
        (watcher.info().pid, watcher.info().name.as_str()),
        (pid, "process")
    );
    for _ in 0..3 {
        let report = watcher.report().unwrap();
        let found = report
            .sources
            .iter()
            .find(|report| report.name == source)
            .unwrap();
        assert_eq!((found.totals.processed, found.totals.actors), (7, 1));
        assert_eq!((found.actors[0].name.as_str(), found.actors[0].id), ("one", 3));
    }
    let found = processes_in(&folder.0, connect);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].info.as_ref().unwrap().name, "process");

    drop(observer);
    assert!(!folder.socket().exists());
    let error = watcher.report().unwrap_err().to_string();
    assert_eq!(
        error,
        format!("process {pid} is gone: it has closed its socket, or ended")
    );
    assert!(processes_in(&folder.0, connect).is_empty());
    let error = attach_in(&folder.0, pid, connect).unwrap_err().to_string();
    assert!(error.contains("start it with PERPETUA_TOP=1"), "{error}");
}

#[test]
fn a_process_is_looked_at_until_it_wants_no_more() {
    check_looking(Listener::bind, Stream::connect, "socket");
}

#[test]
fn the_same_where_there_are_no_sockets_in_files() {
    check_looking(Listener::bind_port, Stream::connect_port, "port");
}

#[test]
fn who_does_not_know_the_secret_is_not_answered() {
    let folder = Folder::new("secret");
    let _observer = serve(&folder.0, "process", Listener::bind_port).unwrap();
    let mut said = std::fs::read(folder.socket()).unwrap();
    *said.last_mut().unwrap() ^= 1;
    let forged = folder.0.join("1.sock");
    std::fs::write(&forged, said).unwrap();
    let error = attach_in(&folder.0, 1, Stream::connect_port).unwrap_err();
    assert!(matches!(error, ObserveError::Lost { .. }), "{error}");
}

#[test]
fn what_a_killed_process_left_is_cleared_away() {
    let folder = Folder::new("stale");
    place::prepare(&folder.0).unwrap();
    let path = place::socket(&folder.0, 1);
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    assert!(processes_in(&folder.0, Stream::connect).is_empty());
    assert!(!path.exists());
}

#[test]
fn another_version_is_named() {
    let folder = Folder::new("version");
    place::prepare(&folder.0).unwrap();
    let path = place::socket(&folder.0, 1);
    let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"perptop\n\x63\0\0\0\0\0\0\0").unwrap();
        stream
    });
    let error = attach_in(&folder.0, 1, Stream::connect).unwrap_err().to_string();
    assert!(
        error.starts_with("process 1 speaks version 99 of the protocol, this program version 1"),
        "{error}"
    );
    drop(other.join());
}

#[test]
fn nobody_else_may_enter_the_folder() {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let folder = Folder::new("open");
    std::fs::DirBuilder::new().mode(0o700).create(&folder.0).unwrap();
    std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = serve(&folder.0, "process", Listener::bind)
        .unwrap_err()
        .to_string();
    assert!(error.contains("somebody else can enter it"), "{error}");
    std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o700)).unwrap();
    let observer = serve(&folder.0, "process", Listener::bind).unwrap();
    let mode = std::fs::metadata(observer.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_environment_asks() {
    let check = |value: &str, expected: Option<&str>| {
        assert_eq!(asked_by(value.into()).as_deref(), expected);
    };
    check("", None);
    check("0", None);
    check("market", Some("market"));
    assert!(asked_by("1".into()).is_some());
}
