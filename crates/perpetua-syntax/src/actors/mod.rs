//! What the attributes of actors stand for, written as items of the kernel language: once for the macros, and for files that are
//! read at run time. Must not know who runs an actor; that there is a `Context` and an `Answer` under `::perpetua::actors` is all.

mod handler;
mod message;
mod reach;
mod vector;

pub use handler::{Handler, USAGE};
pub use message::{Message, Role};
pub use vector::Vector;
