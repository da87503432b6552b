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

    /// Waits until what an actor's home has put out is known.
    pub(super) fn hear(&self, deployed: &Deployed, actor: ActorId) {
        let home = deployed.grid.home_of(actor.0);
        let put_out = deployed.grid.report(home).put_out;
        while !deployed.grid.has_taken(home, put_out) && !self.shared.stopped.load(Ordering::Acquire) {
            self.shared.drain(deployed, home);
        }
    }

    /// Waits until an actor's home has taken in so many packets of all that it was ever sent, and until what came of them is known.
    pub(super) fn settle_behind(&self, deployed: &Deployed, actor: ActorId, packets: u64) {
        while !deployed.has_taken_in(actor, packets) && !self.shared.stopped.load(Ordering::Acquire) {
            self.shared.drain(deployed, deployed.grid.home_of(actor.0));
            std::hint::spin_loop();
        }
        self.hear(deployed, actor);
    }

    /// Waits until an actor's home has taken in all commands that it was sent.
    pub(super) fn settle_commands(&self, actor: ActorId) {
        let Some(deployed) = self.shared.find(actor) else {
            return;
        };
        let sent = deployed.sent_to_home_of(actor);
        // No actor has the last number.
        while !deployed.has_taken_in_for(actor, ActorId::HOST.0, sent)
            && !self.shared.stopped.load(Ordering::Acquire)
        {
            self.shared.drain(&deployed, deployed.grid.home_of(actor.0));
            std::thread::yield_now();
        }
    }

    /// Waits until the home has taken in all that was sent to an actor.
    pub(super) fn settle(&self, deployed: &Deployed, actor: ActorId) {
        while deployed.on_the_way(actor) > 0 && !self.shared.stopped.load(Ordering::Acquire) {
            self.shared.drain(deployed, deployed.grid.home_of(actor.0));
            std::hint::spin_loop();
        }
    }
}
