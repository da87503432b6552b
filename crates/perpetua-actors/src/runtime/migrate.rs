//! States and messages of older versions in checkpoints, as what they are now. Must not know engines, nor files.

use std::collections::HashMap;

use perpetua_device::layout::{collect, with_bytes};
use perpetua_ir::front::rust::{GpuType, TypeDesc};

use super::PerpetuaRuntime;
use crate::checkpoint::{ActorImage, GroupImage, Image};
use crate::error::{ActorError, Result};
use crate::handler::{Handler, describe};
use crate::lock::lock;
use crate::message::{Packet, RingMessage};
use crate::span::BLOCK_WORD;

/// The state's bytes now; `None` where these are no state of the older type.
type State = Box<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send>;
type Message = Box<dyn Fn(&mut Packet) + Send>;

/// How older versions become what they are now.
#[derive(Default)]
pub(super) struct Migrations {
    /// By the handler's path, and version and layout of its state then.
    states: HashMap<(&'static str, u32, String), State>,
    /// By number, version and layout then.
    messages: HashMap<(u32, u32, String), Message>,
}

impl Migrations {
    /// Makes an image one of the present versions, or says which layouts do not fit.
    pub(super) fn apply(
        &self,
        handlers: &HashMap<&'static str, Handler>,
        image: &mut Image,
    ) -> std::result::Result<(), String> {
        let groups = image.groups.iter_mut();
        let mut all: Vec<Vec<ActorImage>> = groups.map(|group| std::mem::take(&mut group.actors)).collect();
        let mut initials = Vec::new();
        for (group, actors) in image.groups.iter().zip(&mut all) {
            let Some(handler) = handlers.get(group.handler.as_str()) else {
                // Whoever restores it says so.
                initials.push(group.initial.clone());
                continue;
            };
            initials.push(self.state(handler, group, &group.initial)?);
            for actor in actors {
                actor.state = self.state(handler, group, &actor.state)?;
                for packet in actor.mailbox.iter_mut().chain(&mut actor.unsent) {
                    let to = packet.header.destination;
                    let has = |group: &&GroupImage| to.wrapping_sub(group.first) < group.count;
                    // What waits for the host, it gets as it is.
                    if let Some(to) = image.groups.iter().find(has)
                        && let Some(handler) = handlers.get(to.handler.as_str())
                    {
                        self.message(to, handler, packet)?;
                    }
                }
            }
        }
        for ((group, actors), initial) in image.groups.iter_mut().zip(all).zip(initials) {
            group.actors = actors;
            group.initial = initial;
        }
        Ok(())
    }

    /// The state that these bytes are, now.
    pub(super) fn state(
        &self,
        handler: &Handler,
        saved: &GroupImage,
        bytes: &[u8],
    ) -> std::result::Result<Vec<u8>, String> {
        let now = layout_of(&(handler.state_type)());
        if (saved.version, &saved.state_type) == (handler.version, &now) {
            return Ok(bytes.to_vec());
        }
        let key = (handler.path, saved.version, saved.state_type.clone());
        let there = || {
            describe(
                &format!("the state of `{}`", saved.handler),
                saved.version,
                &saved.state_type,
            )
        };
        match self.states.get(&key) {
            None => Err(format!(
                "{} is of another type here: (version {}) {now}; register how it changes with `migrate_state`",
                there(),
                handler.version
            )),
            Some(change) => change(bytes).ok_or_else(|| format!("{} holds no value of it", there())),
        }
    }

    fn message(
        &self,
        saved: &GroupImage,
        handler: &Handler,
        packet: &mut Packet,
    ) -> std::result::Result<(), String> {
        let type_id = packet.header.type_id;
        // What its handler did not take then it may take now.
        let Some(then) = saved.takes.iter().find(|then| then.type_id == type_id) else {
            return Ok(());
        };
        let takes = (handler.takes)();
        let is_same = |now: &&crate::handler::Takes| {
            now.type_id == type_id && (now.version, now.layout) == (then.version, then.layout.as_str())
        };
        if takes.iter().any(|now| is_same(&now)) {
            return Ok(());
        }
        if let Some(change) = self.messages.get(&(type_id, then.version, then.layout.clone())) {
            change(packet);
            if takes.iter().any(|now| now.type_id == packet.header.type_id) {
                return Ok(());
            }
        }
        let now: Vec<String> = takes.iter().map(|now| now.described()).collect();
        Err(format!(
            "a message {} waits for `{}`, whose handler takes {} here: register how it changes with `migrate_message`",
            describe(&then.path, then.version, &then.layout),
            saved.name,
            now.join(", ")
        ))
    }
}

impl PerpetuaRuntime {
    /// Registers how a state of an older version becomes one of this handler's: for checkpoints that hold `Old` under the handler's path
    /// and this version.
    ///
    /// # Errors
    /// [`ActorError::State`] unless `New` is the type of the handler's state.
    pub fn migrate_state<Old: GpuType, New: GpuType>(
        &self,
        handler: Handler,
        version: u32,
        change: impl Fn(Old) -> New + Send + 'static,
    ) -> Result<()> {
        let expected = (handler.state_type)();
        if New::describe() != expected {
            return Err(ActorError::State {
                actor: format!("`{}`", handler.path),
                expected: expected.to_string(),
                found: New::describe().to_string(),
            });
        }
        let state = move |bytes: &[u8]| {
            if bytes.len() != size_of::<Old>() || Old::describe().check_bytes(bytes).is_err() {
                return None;
            }
            let values = collect::<Old>(1, |out| {
                out.copy_from_slice(bytes);
                Ok(())
            });
            let value = values.ok()?.first().copied()?;
            Some(with_bytes(&[change(value)], <[u8]>::to_vec))
        };
        let key = (handler.path, version, layout_of(&Old::describe()));
        lock(&self.core.migrations).states.insert(key, Box::new(state));
        Ok(())
    }

    /// Registers how a message of an older version becomes one that handlers take: for those that wait in a checkpoint. `Old` stands for
    /// the type as it was, by `#[message(path = "its::Path", version = 1)]`, or by its `type_id`. Of messages with vectors these are the views.
    pub fn migrate_message<Old: RingMessage, New: RingMessage>(
        &self,
        change: impl Fn(Old) -> New + Send + 'static,
    ) {
        let message = move |packet: &mut Packet| {
            let new = change(Old::from_payload(&packet.payload));
            let mut payload = new.to_payload();
            // They name the block that it brings, where it does.
            if u32::from(packet.header.words) & crate::span::BLOCK_FLAG != 0 {
                payload[BLOCK_WORD..].copy_from_slice(&packet.payload[BLOCK_WORD..]);
            }
            let flag = packet.header.words & crate::span::BLOCK_FLAG as u8;
            packet.header.words = New::WORDS.min(payload.len()) as u8 | flag;
            packet.header.type_id = New::TYPE_ID;
            packet.payload = payload;
        };
        let key = (Old::TYPE_ID, Old::VERSION, Old::LAYOUT.to_owned());
        lock(&self.core.migrations)
            .messages
            .insert(key, Box::new(message));
    }
}

/// A type by what lies where in it: names of fields, types, offsets. Two structs of other names may have one layout.
pub(super) fn layout_of(ty: &TypeDesc) -> String {
    match ty {
        TypeDesc::Scalar(scalar) => scalar.name().to_owned(),
        TypeDesc::Array(element, len) => format!("[{}; {len}]", layout_of(element)),
        TypeDesc::Struct(it) => {
            let fields = it.fields.iter();
            let fields =
                fields.map(|field| format!("{} at {}: {}", field.name, field.offset, layout_of(&field.ty)));
            format!(
                "{{ {} }} of {} bytes",
                fields.collect::<Vec<_>>().join(", "),
                it.size
            )
        }
        TypeDesc::Enum(it) => {
            let variants = it
                .variants
                .iter()
                .map(|(name, value)| format!("{name} = {value}"));
            format!(
                "{} {{ {} }}",
                it.repr.name(),
                variants.collect::<Vec<_>>().join(", ")
            )
        }
        // No message and no state holds it.
        TypeDesc::Option(_) | TypeDesc::Result(_) => ty.to_string(),
        TypeDesc::Tuple(elements) => {
            let elements: Vec<String> = elements.iter().map(layout_of).collect();
            format!("({})", elements.join(", "))
        }
    }
}
