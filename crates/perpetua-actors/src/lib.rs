//! Actors: state that only its own handler touches, fed by messages. The handler is a Rust function
//! (`#[ring_kernel]`) that runs on the CPU's threads, or inside a kernel that stays on a GPU and takes messages there.
//!
//! [`message`] is what travels, [`context`] what a handler sees of the world, [`handler`] what the macro makes of it,
//! [`lifecycle`] through which states an actor goes, [`kernels`] the code that devices run around a handler, `grid` the host's side of it,
//! [`runtime`] what users hold, [`supervise`] what becomes of faulted actors, [`supervisor`] of crashed processes. Must not know any backend by its type.
//!
//! What all engines promise, sentence by sentence, is the book's page *What actors promise* (`docs/book/src/promises.md`).
//!
//! # Words
//! - *Resident kernel*: a kernel that stays on its device until it is parked. The word resident means that alone: a runtime that is
//!   `builder().resident()` runs handlers in resident kernels.
//! - *Grid*: one launch of a handler's resident kernel. *Home*: one block of it, which hosts some of the launch's actors.
//! - *Block*, *subgroup*, *lane*: the parts of a launch, as everywhere in Perpetua. A *group* is the lanes of one subgroup that run a handler
//!   together (`#[ring_kernel(group)]`).
//! - *Arena block*: the memory in which one message's vectors lie ([`span`]).
//! - *Box*: the ring of packets that other homes have sent to a home. *Mail*: the packets that a home has taken in and not handled.
//! - *Engine*: what runs actors: `threads`, `grids` or `batched` in [`runtime`].

// What the macros write names the facade; so they can be used here, too.
#[doc(hidden)]
pub extern crate self as actors;
extern crate self as perpetua;
#[doc(hidden)]
pub use perpetua_language::{GpuType, KernelFn, args, device, kernel, prelude};

pub mod broker;
#[cfg(not(target_arch = "wasm32"))]
mod checkpoint;
pub mod clock;
pub mod context;
pub mod dead_letters;
pub mod delivery;
pub mod echo;
pub mod error;
#[cfg(target_arch = "x86_64")]
pub mod grid;
pub mod handler;
pub mod kernels;
pub mod lifecycle;
mod lock;
pub mod message;
pub mod pubsub;
pub mod ring;
#[cfg(not(target_arch = "wasm32"))]
pub mod runtime;
pub mod span;
#[cfg(not(target_arch = "wasm32"))]
pub mod store;
pub mod supervise;
#[cfg(not(target_arch = "wasm32"))]
pub mod supervisor;
mod sync;
pub mod telemetry;
pub mod tick;
#[cfg_attr(
    target_arch = "wasm32",
    allow(dead_code, reason = "there are no runtimes to simulate")
)]
mod time;
pub mod topic;
pub mod vectors;

pub use broker::{DeliveryReceipt, DeliveryStatus, K2kBroker};
pub use clock::{HlcClock, HlcTimestamp};
pub use context::Context;
pub use dead_letters::{DeadLetter, DeadLetters, DeadReason};
pub use delivery::{Deliveries, Delivery};
pub use error::{ActorError, Result};
pub use handler::Handler;
pub use lifecycle::ActorState;
pub use message::{ActorId, Header, Kind, MessageId, Packet, RingMessage};
pub use perpetua_macros::{RingMessage, ring_kernel};
pub use pubsub::{PubSubBroker, PubSubConfig};
#[cfg(not(target_arch = "wasm32"))]
pub use runtime::{
    Backend, Borrowed, ControlBlock, CpuRuntime, KernelHandle, KernelStatus, LaunchOptions, PerpetuaRuntime,
    RingKernel, SendOptions, Simulation,
};
#[cfg(not(target_arch = "wasm32"))]
pub use store::{CheckpointStore, FolderStore, MemoryStore};
pub use supervise::{OnFault, Supervision};
pub use tick::Tick;
pub use topic::Topic;
pub use vectors::Message;
