//! How homes leave their device and come back to it. Must not know what they handle.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use perpetua::kernel::resident::U32x4;
use perpetua_device::gate::Parkable;
use perpetua_device::{Error, KernelArg, LaunchConfig, args};

use super::bridge::Bridge;
use super::homes::Homes;
use super::port::Port;
use crate::kernels::layout::{COMMAND_PARK, HOME_LANES, ORDER_LEAVE, ORDER_WORDS, REPORT_VECTORS};
use crate::lock::lock;
use crate::message::{ActorId, Header, Kind, PAYLOAD_WORDS, Packet};

/// How long a parked home may take to leave the device, once its handler's time is over.
const LEAVE: Duration = Duration::from_secs(10);

impl Homes {
    // Says whether senders are to wait for room in boxes.
    fn order_to_leave(&self, leaves: bool) {
        let orders = self.commons.orders.atomics();
        for home in self.first_home..self.first_home + self.homes {
            if let Some(order) = orders.get(home as usize * ORDER_WORDS + ORDER_LEAVE) {
                // Relaxed: it is a hint, and orders nothing; what must be known before a launch the launch makes known.
                order.store(leaves.into(), Ordering::Relaxed);
            }
        }
    }
}

impl Parkable for Homes {
    fn park(&self) -> perpetua_device::Result<()> {
        if !self.running.load(Ordering::Acquire) {
            return Ok(());
        }
        // To an actor of the home's own: the home looks at its record.
        let park = |home: u32| Packet {
            header: Header {
                destination: self.first_actor + home,
                sender: ActorId::HOST,
                type_id: COMMAND_PARK,
                correlation: 0,
                sent: 0,
                kind: Kind::Command,
                priority: 0,
                words: 0,
                deadline: 0,
                deliveries: Default::default(),
            },
            payload: [0; PAYLOAD_WORDS],
        };
        // As long as the device gives signs of life it goes on: it may have other programs to serve, and much to handle before.
        let all_signs = || self.ports().iter().map(Port::signs).collect::<Vec<_>>();
        let (mut since, mut signs) = (Instant::now(), all_signs());
        let mut hangs = || {
            if since.elapsed() <= LEAVE + self.run_limit {
                return false;
            }
            let now = all_signs();
            let lives = now != signs;
            if lives {
                (since, signs) = (Instant::now(), now);
            }
            !lives
        };
        self.order_to_leave(true);
        let error = Error::InvalidState {
            operation: "parking a resident grid",
            cause: "a home has given no sign of life for ten seconds after its handler's time was over, and has not left the device",
            remedy: "end the process; the device may have failed",
        };
        for (home, port) in (0..).zip(self.ports()) {
            let park = park(home).to_words();
            port.count_park();
            while port.push([&park]) == 0 {
                // A home that waits for room in its outgoing ring takes nothing in.
                self.ports().iter().for_each(Port::spill);
                if hangs() {
                    return Err(error);
                }
            }
        }
        for home in 0..self.homes {
            while !self.left(home) {
                self.ports().iter().for_each(Port::spill);
                if hangs() {
                    return Err(error);
                }
                std::hint::spin_loop();
            }
        }
        // Faults were told by packets.
        match self.stream.inner().synchronize_blocking() {
            Ok(()) | Err(Error::Fault(_)) => {}
            Err(error) => return Err(error),
        }
        self.running.store(false, Ordering::Release);
        Ok(())
    }

    fn unpark(&self) -> perpetua_device::Result<()> {
        if self.ended.load(Ordering::Relaxed) || self.running.load(Ordering::Acquire) {
            return Ok(());
        }
        let commons = &*self.commons;
        for home in 0..self.homes {
            let at = (self.first_home + home) as usize * REPORT_VECTORS + 1;
            commons.reports.store(at, U32x4::default())?;
        }
        self.order_to_leave(false);
        let states = lock(&self.states).clone();
        let special = &self.special;
        let bridge = commons.bridge.get();
        let far = bridge.map(Bridge::numbers).unwrap_or_default();
        let (peers, links) = bridge.map_or((&commons.no_boxes, &commons.no_links), |bridge| {
            (bridge.boxes(), bridge.links())
        });
        let mut arguments = args![
            &commons.ingress,
            &commons.egress,
            &commons.orders,
            &commons.reports,
            &commons.inbox,
            &commons.homes,
            &commons.actors,
            &commons.directory,
            &states,
            &self.first_states,
            &self.latencies,
            peers,
            links,
            self.first_actor,
            self.first_home,
            self.actors,
            self.homes,
            u32::MAX / self.homes,
            special.ring_mask,
            special.box_mask,
            special.patience,
            special.host_watchers,
            commons.time_offset,
            self.run_limit.as_nanos().min(1 << 62) as u64,
            special.group_size,
            special.latencies_each,
            special.on_fault,
            self.patience.as_nanos().min(1 << 62) as u64,
            special.devices,
            far.own,
            far.far_boxes,
            far.far_homes,
            far.link_words,
        ]
        .to_vec();
        arguments.extend(self.arena.as_deref().map(KernelArg::from));
        self.stream.launch(
            &self.kernel,
            LaunchConfig::new([self.homes, 1, 1], [HOME_LANES, 1, 1]),
            &arguments,
        )?;
        self.stream.flush()?;
        self.running.store(true, Ordering::Release);
        Ok(())
    }
}
