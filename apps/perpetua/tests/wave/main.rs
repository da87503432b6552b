//! `perpetua wave` as a user meets it: what it writes, and what it says when something is wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod folder;
mod outputs;
#[cfg(unix)]
mod signals;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(all(feature = "window", target_os = "linux"))]
mod window;
mod words;
