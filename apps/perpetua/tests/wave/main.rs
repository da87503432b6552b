//! `perpetua wave`, `doctor` and `devices` as a user meets them: what they write, and what they say when something is wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod folder;
#[cfg(target_os = "linux")]
mod machine;
mod outputs;
#[cfg(unix)]
mod signals;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(all(feature = "window", target_os = "linux"))]
mod window;
mod words;
