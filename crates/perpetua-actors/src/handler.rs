//! What `#[ring_kernel]` makes of a function: its name, the messages that it takes, and how to run it on each backend. Must not
//! know who runs it.

use perpetua::kernel::KernelFn;
use perpetua_device::KernelSpec;
use perpetua_ir::front::rust::TypeDesc;
use perpetua_ir::pass::checks::make_explicit;

use crate::context::Context;
use crate::message::{PAYLOAD_WORDS, RingMessage};

/// A type of message that a handler takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Takes {
    /// Its number.
    pub type_id: u32,
    /// Its name.
    pub name: &'static str,
    /// Crate, modules and name.
    pub path: &'static str,
    /// Which version of it.
    pub version: u32,
    /// Its fields with their types.
    pub layout: &'static str,
    /// The type of what comes back, where something does.
    pub reply: Option<u32>,
    /// Words that a message from the host brings beside its vectors; `None` where the handler reaches no vectors.
    pub room: Option<u32>,
}

impl Takes {
    /// The entry for messages of type `M`, answered by messages of type `reply`.
    pub const fn of<M: RingMessage>(reply: Option<u32>) -> Takes {
        Takes {
            type_id: M::TYPE_ID,
            name: M::NAME,
            path: M::PATH,
            version: M::VERSION,
            layout: M::LAYOUT,
            reply,
            room: None,
        }
    }

    /// Path, version and layout, for people.
    #[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "no runtime there"))]
    pub(crate) fn described(&self) -> String {
        describe(self.path, self.version, self.layout)
    }

    /// The handler reaches vectors; a message from the host brings so many words more.
    #[must_use]
    pub const fn with_room(self, room: u32) -> Takes {
        Takes {
            room: Some(room),
            ..self
        }
    }
}

/// A type of message or state, for people: `bank::Pay (version 1) { amount: i32 }`.
#[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "no runtime there"))]
pub(crate) fn describe(path: &str, version: u32, layout: &str) -> String {
    format!("{path} (version {version}) {layout}")
}

/// A handler, of one or several types of message, and the state that it keeps.
#[derive(Clone, Copy)]
pub struct Handler {
    /// The function's name.
    pub name: &'static str,
    /// Crate, modules and name of the function: what tells handlers apart.
    pub path: &'static str,
    /// Which version of its state it keeps, as `#[ring_kernel(version = 2)]` says.
    pub version: u32,
    /// The types of message that it takes.
    pub takes: fn() -> Vec<Takes>,
    /// Whether it is written for several lanes that run it together (`#[ring_kernel(group)]`).
    pub group: bool,
    /// Bytes of the state.
    pub state_size: usize,
    /// Alignment of the state.
    pub state_align: usize,
    /// The state's type, by name.
    pub state_name: &'static str,
    /// The state's type (`<State as GpuType>::describe`): which bytes mean something, and which values exist. Checkpoints and
    /// zeroed states are checked by it.
    pub state_type: fn() -> TypeDesc,
    /// Runs it as Rust: false where it takes no message of this type. What it sends and replies is in the context's outbox.
    pub native: NativeHandler,
    /// The kernel that stays on a device and handles messages from rings, a lane for each home of actors.
    pub resident: fn() -> KernelFn,
    /// The kernel that handles a batch of messages, a lane for each actor.
    pub batched: fn() -> KernelFn,
}

impl Handler {
    /// Whether a fault can come behind a write to the state, in a kernel that runs it for one lane: else a fault leaves the state as it was.
    pub(crate) fn tears(&self, checked: &KernelFn) -> crate::Result<bool> {
        // Lanes of a group do not wait for each other with what they write.
        if self.group {
            return Ok(true);
        }
        let verified = checked.verified(64)?;
        let states = verified
            .kernel()
            .params
            .iter()
            .position(|param| param.name == "states");
        let explicit = make_explicit(&verified);
        Ok(states.is_none_or(|states| explicit.tears(states as u32)))
    }
}

/// A handler as Rust: context, state, the message's type and words, and the block that came with it (empty where none did).
///
/// # Safety
/// The pointer is to a valid state of the handler's type, which nobody else reaches meanwhile.
pub type NativeHandler = unsafe fn(&mut Context, *mut u8, u32, &[u32; PAYLOAD_WORDS], &mut [u32]) -> bool;
