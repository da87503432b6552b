//! Where Prometheus asks: a port that answers `GET /metrics`, on a thread of its own. Must not know what the figures are.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::observe::ObserveError;
use super::{exposition, readings};

/// How long somebody may take to ask, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// No request is longer, headers included.
const LONGEST: u64 = 16 << 10;

/// Tells Prometheus what all actors of this process do, while it lives: `http://ADDRESS/metrics`.
#[derive(Debug)]
pub struct PrometheusEndpoint {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PrometheusEndpoint {
    /// Opens it at an address: `127.0.0.1:9464`; port 0 is one that is free.
    ///
    /// # Errors
    /// [`ObserveError::Address`]: the port is taken, or is no address.
    pub fn open(address: &str) -> Result<PrometheusEndpoint, ObserveError> {
        let failed = |source| ObserveError::Address {
            address: address.into(),
            source,
        };
        let resolved: Vec<SocketAddr> = address.to_socket_addrs().map_err(failed)?.collect();
        let listener = TcpListener::bind(&resolved[..]).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let thread = std::thread::Builder::new()
            .name("perpetua-prometheus".into())
            .spawn(move || serve(&listener, &stop))
            .map_err(failed)?;
        tracing::info!(address = %bound, "Prometheus may ask");
        Ok(PrometheusEndpoint {
            address: bound,
            stopped,
            thread: Some(thread),
        })
    }

    /// The address, with the port that it has.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for PrometheusEndpoint {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // Wakes the thread. An address that means all of this machine's is reached by its own.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(match own {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        let woken = TcpStream::connect_timeout(&own, PATIENCE).is_ok();
        if woken
            && let Some(thread) = self.thread.take()
            // It may have been the last to hold a runtime.
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the thread that tells Prometheus panicked");
        }
    }
}

fn serve(listener: &TcpListener, stopped: &AtomicBool) {
    loop {
        let accepted = listener.accept();
        if stopped.load(Ordering::Acquire) {
            return;
        }
        let done = accepted.and_then(|(stream, _)| answer(stream));
        if let Err(error) = done {
            tracing::debug!(%error, "somebody asked for metrics in vain");
        }
    }
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new((&stream).take(LONGEST));
    let mut request = String::new();
    lines.read_line(&mut request)?;
    // What else it says does not matter, but is read, so that closing does not take the answer away.
    let mut header = String::new();
    while lines.read_line(&mut header)? > 0 && !header.trim_end().is_empty() {
        header.clear();
    }
    let mut words = request.split_ascii_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", exposition(&readings())),
        ("GET" | "HEAD", _) => ("404 Not Found", "the metrics are at /metrics\n".into()),
        _ => ("405 Method Not Allowed", "GET /metrics\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    match method {
        "HEAD" => Ok(()),
        _ => stream.write_all(body.as_bytes()),
    }
}

#[cfg(all(test, not(perpetua_loom)))]
mod tests {
    // Tests may unwrap: a failed expectation is the report.
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn ask(of: &PrometheusEndpoint, request: &str) -> String {
        let mut stream = TcpStream::connect(of.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn who_asks_is_answered() {
        let endpoint = PrometheusEndpoint::open("127.0.0.1:0").unwrap();
        let check = |request: &str, status: &str, body: &str| {
            let answer = ask(&endpoint, request);
            let (head, text) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
            assert!(text.starts_with(body), "{text}");
            if !request.starts_with("HEAD") {
                assert!(
                    head.contains(&format!("Content-Length: {}\r\n", text.len())),
                    "{head}"
                );
            }
        };
        let get = "GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: */*\r\n\r\n";
        check(get, "200 OK", "# HELP perpetua_actors Actors that there are.\n");
        check("HEAD /metrics HTTP/1.0\r\n\r\n", "200 OK", "");
        check(
            "GET / HTTP/1.1\r\n\r\n",
            "404 Not Found",
            "the metrics are at /metrics\n",
        );
        check(
            "POST /metrics HTTP/1.1\r\n\r\n",
            "405 Method Not Allowed",
            "GET /metrics\n",
        );
        let address = endpoint.address();
        drop(endpoint);
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn a_port_that_is_taken_is_an_error_that_says_so() {
        let taken = PrometheusEndpoint::open("127.0.0.1:0").unwrap();
        let address = taken.address().to_string();
        let error = PrometheusEndpoint::open(&address).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("`{address}` cannot be where Prometheus asks: ")),
            "{error}"
        );
        assert!(
            error.ends_with(": take another port, 0 for one that is free, or end what listens there"),
            "{error}"
        );
        assert!(PrometheusEndpoint::open("nowhere").is_err());
    }
}
