//! How a launch leaves its device, and how an actor comes to rest there. Must not know rings.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Deployed, Grids};
use crate::dead_letters::DeadReason;
use crate::error::Result;
use crate::lock::{read, write};
use crate::message::{ActorId, Kind, Packet};

impl Grids {
    /// Takes a launch off the device whose actors are all gone. What still came to them is undeliverable.
    pub(super) fn retire(&self, deployed: &Arc<Deployed>) -> Result<()> {
        let _still = read(&self.shared.still);
        write(&self.shared.deployed).retain(|d| !Arc::ptr_eq(d, deployed));
        let left = deployed.grid.retire()?;
        for home in 0..deployed.grid.homes() {
            while deployed.grid.drain_waits(home) {
                self.shared.drain(deployed, home);
            }
        }
        for packet in left.iter().filter_map(Packet::from_words) {
            if packet.header.kind != Kind::Command {
                self.shared
                    .host
                    .undelivered(&deployed.group, &packet, DeadReason::Terminated);
            }
        }
        Ok(())
    }

    /// Waits until the home has taken in all that was sent to an actor.
    pub(super) fn settle(&self, deployed: &Deployed, actor: ActorId) {
        while deployed.on_the_way(actor) > 0 && !self.shared.stopped.load(Ordering::Acquire) {
            self.shared.drain(deployed, deployed.grid.home_of(actor.0));
            std::hint::spin_loop();
        }
    }
}
