//! An actor whose messages are handled in batches. Must not know batches.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::message::ActorId;
use crate::runtime::group::Group;
use crate::runtime::mailbox::Mailbox;
use crate::runtime::unsent::Unsent;
use crate::runtime::vitals::Vitals;

/// One actor.
pub(super) struct Cell {
    pub(super) id: ActorId,
    pub(super) group: Arc<Group>,
    pub(super) mailbox: Mailbox,
    pub(super) vitals: Vitals,
    /// Its messages are in a batch.
    pub(super) busy: AtomicBool,
    pub(super) inside: Mutex<Inside>,
}

/// What batches change.
pub(super) struct Inside {
    pub(super) state: Vec<u8>,
    /// What found its destination full, in order of sending.
    pub(super) unsent: Unsent,
}

impl Cell {
    pub(super) fn new(id: ActorId, group: &Arc<Group>) -> Cell {
        Cell {
            id,
            group: Arc::clone(group),
            mailbox: Mailbox::default(),
            vitals: Vitals::new(id, group),
            busy: AtomicBool::new(false),
            inside: Mutex::new(Inside {
                state: group.initial.clone(),
                unsent: Unsent::default(),
            }),
        }
    }
}
