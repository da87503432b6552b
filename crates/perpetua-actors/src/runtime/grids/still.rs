//! All grids parked at once, for a checkpoint. Must not know how.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLockWriteGuard};

use perpetua_device::gate::Section;

use super::{Deployed, Shared};
use crate::error::Result;
use crate::message::ActorId;
use crate::runtime::engine::{ActorImage, Frozen};

/// All grids are parked, and nobody sends, while this lives.
pub(super) struct Standstill<'a> {
    pub(super) shared: &'a Shared,
    pub(super) images: BTreeMap<ActorId, ActorImage>,
    pub(super) all: Vec<Arc<Deployed>>,
    // In this order: first the grids go on, then the senders.
    pub(super) _section: Option<Section<'a>>,
    pub(super) _still: RwLockWriteGuard<'a, ()>,
}

impl Frozen for Standstill<'_> {
    fn drain(&self) -> bool {
        let mut came = false;
        for deployed in &self.all {
            for home in 0..deployed.grid.homes() {
                while deployed.grid.drain_waits(home) {
                    came = true;
                    self.shared.drain(deployed, home);
                }
            }
        }
        came
    }

    fn look(&mut self) -> Result<()> {
        // What has come out is the host's.
        self.drain();
        self.all
            .iter()
            .try_for_each(|deployed| deployed.image(&mut self.images))
    }

    fn image(&self, actor: ActorId) -> Option<ActorImage> {
        self.images.get(&actor).cloned()
    }
}
