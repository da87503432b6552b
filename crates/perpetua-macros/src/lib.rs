//! The macros of Perpetua. Each leaves the user's item as it is and puts beside it what the lowering and the launch
//! need: the encoded tree, the code that resolves its names, and a native body.
//!
//! [`macro@kernel`] and [`macro@device`] take functions, [`macro@GpuType`] types. This crate knows syntax only: no
//! types are inferred here, no operator has a meaning. Paths in the output go through one module of the facade
//! (`kernel::expand`), so that the output is short and users need no other dependency.

mod describe;
mod device;
mod gpu_type;
mod kernel;
mod native;
mod output;
mod resolver;
mod ring_kernel;
mod ring_message;

use proc_macro::TokenStream;

#[allow(
    missing_docs,
    reason = "perpetua-language documents it, where programs find it"
)]
#[proc_macro_attribute]
pub fn kernel(options: TokenStream, item: TokenStream) -> TokenStream {
    kernel::expand(options.into(), item.into()).into()
}

#[allow(
    missing_docs,
    reason = "perpetua-language documents it, where programs find it"
)]
#[proc_macro_attribute]
pub fn device(options: TokenStream, item: TokenStream) -> TokenStream {
    device::expand(options.into(), item.into()).into()
}

#[allow(
    missing_docs,
    reason = "perpetua-language documents it, where programs find it"
)]
#[proc_macro_derive(GpuType, attributes(gpu))]
pub fn derive_gpu_type(item: TokenStream) -> TokenStream {
    gpu_type::expand(item.into()).into()
}

/// Makes a function the handler of an actor: `#[ring_kernel] fn count(ctx: &mut Context, state: &mut Count, message: Add) ->
/// Total { … }`.
///
/// What it gives back goes to the sender. `ctx.send(actor, message)`, `ctx.reply(message)` and `ctx.publish(topic, message)`
/// send more. Beside it appears `count::handler()`, which a runtime launches. Options: `also(f, g)`, further handlers of the
/// same state, each for another type of message; `room = 64`, words that a message from the host brings for `ctx.alloc`; `group`, up to
/// 32 lanes of a GPU run the handler together, know their index (`ctx.thread_index()` of `ctx.group_size()`), and wait for each other
/// with `ctx.sync()`. Without it each lane runs the handler for a message of its own, and for actors of their own.
///
/// A handler of a message with vectors takes its view (`message: ScaleView`), and reaches elements by `ctx.get(message.values, i)`
/// and `ctx.set(message.values, i, value)`; `ctx.alloc::<f32>(len)` makes a vector of the message's room (`ctx.room()` words), an
/// empty one where there is none left. The vectors go along with the first message that has some of them; what is not sent on is
/// gone when the handler has run.
#[proc_macro_attribute]
pub fn ring_kernel(options: TokenStream, item: TokenStream) -> TokenStream {
    ring_kernel::expand(options.into(), item.into()).into()
}

/// Makes a `#[repr(C)]` struct of scalars and arrays a message: `#[message(type_id = 1)]` numbers its type; a field may be
/// marked `#[message(id)]`, `#[message(correlation)]` or `#[message(priority)]`. At most 64 bytes.
///
/// A struct `Scale` with vectors (`Vec<f32>`, `Vec<u32>`, `Vec<i32>`) gets a `ScaleView` beside it, which handlers take and whose
/// vectors are spans, and a `ScaleRef<'_>`, whose vectors are slices where the message lies. At most 56 bytes, of which a vector
/// takes 8; its elements are not counted.
#[proc_macro_derive(RingMessage, attributes(message))]
pub fn derive_ring_message(item: TokenStream) -> TokenStream {
    ring_message::expand(item.into()).into()
}
