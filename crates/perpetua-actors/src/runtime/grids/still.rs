//! All grids parked at once, for a checkpoint. Must not know how.

use std::collections::BTreeMap;
use std::sync::RwLockWriteGuard;

use perpetua_device::gate::Section;

use crate::message::ActorId;
use crate::runtime::engine::{ActorImage, Frozen};

/// All grids are parked, and nobody sends, while this lives.
pub(super) struct Standstill<'a> {
    pub(super) images: BTreeMap<ActorId, ActorImage>,
    // In this order: first the grids go on, then the senders.
    pub(super) _section: Option<Section<'a>>,
    pub(super) _still: RwLockWriteGuard<'a, ()>,
}

impl Frozen for Standstill<'_> {
    fn image(&self, actor: ActorId) -> Option<ActorImage> {
        self.images.get(&actor).cloned()
    }
}
