//! `perpetua isa serve` as clients meet it: a server's process over both kinds of sockets, good clients beside hostile ones, and a soak.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod good;
mod hostile;
mod server;
mod soak;
