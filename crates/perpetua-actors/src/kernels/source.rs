//! The text of what runs around a handler, for programs that print a handler's kernels without compiling it. Must not know them.

/// The macro that writes the kernel which stays on a device.
pub const RESIDENT: &str = include_str!("resident.rs");
/// The macro that writes the kernel which handles a batch of messages.
pub const BATCHED: &str = include_str!("batched.rs");

/// The full path of the type that the text lacks: `perpetua_language::kernel::resident::U32x4`.
pub const FOUR_WORDS: &str = "perpetua::kernel::resident::U32x4";

/// What handlers and these kernels name, under the paths by which they do.
pub fn items() -> String {
    let [context, message, span, tick, parts] = [
        include_str!("../context.rs"),
        include_str!("../message.rs"),
        include_str!("../span.rs"),
        include_str!("../tick.rs"),
        include_str!("parts.rs"),
    ];
    format!(
        "mod perpetua {{ mod actors {{
            pub use self::context::Context;
            pub use self::message::MessageId;
            pub use self::tick::Tick;
            mod context {{ {context} }}
            mod message {{ {message} }}
            mod span {{ {span} }}
            mod tick {{ {tick} }}
            pub mod kernels {{ pub mod parts {{ {parts} }} }}
        }} }}"
    )
}
