//! Programs of others, over a socket: a server that runs them as programs that nobody trusts, each client's in a child process, and a
//! client. Must not know the command line.
//!
//! In the order in which a job passes: [`Client`] writes a [`Job`] in frames of the [`protocol`], a connection of the [`Server`] reads it, the queue
//! decides whose turn it is, a worker hands it to a child process, where [`work`] runs it, and the answer goes back the same way. The server
//! looks into frames' headers alone; only children read programs.
//!
//! What a client can take of the server is bounded by a product: a thread and a message for each of [`Options::clients`], a child process
//! for each of [`Options::processes`]. No client draws on what another has, and when all places are taken the client for which the server has waited longest makes way: so
//! none can use them up by being quiet.

mod address;
mod child;
mod client;
mod connection;
mod error;
mod frame;
mod job;
mod page;
mod places;
pub mod protocol;
mod queue;
mod rights;
mod server;
mod watch;
mod work;
mod worker;

pub use address::Address;
pub use client::Client;
pub use error::Error;
pub use job::{Allowed, Content, Data, Job};
pub use page::markdown;
pub use places::Summary;
pub use server::{Options, Server, Stopper};
pub use work::work;
