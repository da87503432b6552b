//! Boxes between devices: where each device reaches the others' memory, its homes put packets for homes there into boxes that lie there, without the
//! host. Must not know what packets mean.
//!
//! A home has one box for each other device, in its own device's memory. The words that say how much room there is lie with the senders: all atomic
//! additions stay on one device, and what crosses the link are packets and the receiver's two counts. Each device's directory has the numbers of such boxes
//! for actors that live elsewhere (`kernels::layout`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use perpetua::kernel::resident::U32x4;
use perpetua_device::{Buffer, Device, Span, Stream};

use crate::error::Result;
use crate::kernels::layout::{HOME_WORDS, IS_FAR, LINK_WORDS, NEXT_FAR, SLOT_VECTORS};
use crate::lock::lock;
use crate::message::PACKET_WORDS;

/// A device's end of the boxes between all of them.
pub(super) struct Bridge {
    numbers: Numbers,
    boxes: Buffer<U32x4>,
    links: Buffer<u32>,
    /// Packets in a box.
    capacity: u32,
    /// For copies beside resident grids.
    copies: Stream,
    shores: Arc<Vec<Shore>>,
}

/// What the others know of a device.
pub(super) struct Shore {
    pub(super) device: Device,
    pub(super) copies: Stream,
    pub(super) directory: Buffer<u32>,
    /// Actors of other devices, by the first one of a launch.
    pub(super) routes: Mutex<BTreeMap<u32, Route>>,
}

/// Where the actors of a launch live: their number, and the boxes of their homes, as many and in the order in which actors are dealt to them.
#[derive(Clone, Copy)]
pub(super) struct Route {
    actors: u32,
    first_box: u32,
    homes: u32,
}

/// What a kernel is told of its device's end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// Devices; 0 where there are no boxes between them.
    pub(super) devices: u32,
    /// The device's number.
    pub(super) own: u32,
    /// Boxes of a device's part.
    pub(super) far_boxes: u32,
    /// Homes of a device.
    pub(super) far_homes: u32,
    /// Words of a device's part of the links.
    pub(super) link_words: u32,
}

impl Bridge {
    /// The ends of all these devices, for homes whose boxes hold `capacity` packets.
    ///
    /// # Errors
    /// [`Error::Unsupported`](perpetua_device::Error::Unsupported) where a device does not reach another one's memory.
    pub(super) fn between(shores: Vec<Shore>, capacity: u32, far_homes: u32) -> Result<Vec<Bridge>> {
        let devices: Vec<Device> = shores.iter().map(|shore| shore.device.clone()).collect();
        let of_box = capacity as usize * SLOT_VECTORS;
        let boxes = Span::<U32x4>::zeros(&devices, shores.len() * far_homes as usize * of_box)?;
        // Pages and boxes are powers of two, and without pages a part is whole boxes.
        let far_boxes = (boxes.each() / of_box) as u32;
        let links = Span::<u32>::zeros(&devices, far_boxes as usize * shores.len() * LINK_WORDS)?;
        let shores = Arc::new(shores);
        let end = |(at, shore): (usize, &Shore)| {
            Ok(Bridge {
                numbers: Numbers {
                    devices: devices.len() as u32,
                    own: at as u32,
                    far_boxes,
                    far_homes,
                    link_words: links.each() as u32,
                },
                boxes: boxes.on(at)?.clone(),
                links: links.on(at)?.clone(),
                capacity,
                copies: shore.copies.clone(),
                shores: Arc::clone(&shores),
            })
        };
        shores.iter().enumerate().map(end).collect()
    }

    /// The boxes of all devices.
    pub(super) fn boxes(&self) -> &Buffer<U32x4> {
        &self.boxes
    }

    /// The words of all links.
    pub(super) fn links(&self) -> &Buffer<u32> {
        &self.links
    }

    pub(super) fn numbers(&self) -> Numbers {
        self.numbers
    }

    fn others(&self) -> impl Iterator<Item = (usize, &Shore)> {
        let at = self.numbers.own as usize;
        self.shores
            .iter()
            .enumerate()
            .filter(move |(from, _)| *from != at)
    }

    /// The box of a home of this device for packets from another one.
    fn box_from(&self, from: usize, home: u32) -> u32 {
        let Numbers {
            own,
            far_boxes,
            far_homes,
            ..
        } = self.numbers;
        own * far_boxes + from as u32 * far_homes + home
    }

    /// The words of a link of this number, where `from` sends.
    fn link(&self, from: usize, number: u32) -> Result<Buffer<u32>> {
        let at = from * self.numbers.link_words as usize + number as usize * LINK_WORDS;
        Ok(self.links.slice(at..at + LINK_WORDS)?)
    }

    /// Tells the other devices where these actors live.
    pub(super) fn announce(&self, actors: Range<u32>, first_home: u32, homes: u32) -> Result<()> {
        for (from, shore) in self.others() {
            let route = Route {
                actors: actors.len() as u32,
                first_box: self.box_from(from, first_home),
                homes,
            };
            let entry = |i: u32| IS_FAR | (route.first_box + i % homes);
            let entries: Vec<u32> = (0..route.actors).map(entry).collect();
            // First: what finds a box full asks for it.
            lock(&shore.routes).insert(actors.start, route);
            shore.tell(&actors, &entries)?;
        }
        Ok(())
    }

    /// The other devices send nothing more to these actors. Parks what stays there meanwhile.
    pub(super) fn withdraw(&self, actors: Range<u32>) -> Result<()> {
        for (_, shore) in self.others() {
            let nowhere = vec![u32::MAX; actors.len()];
            let tell = || shore.tell(&actors, &nowhere);
            // Kernels stay where there is a gate.
            if let Some(gate) = shore.device.context().gate() {
                gate.parked(tell)??;
            }
            lock(&shore.routes).remove(&actors.start);
        }
        Ok(())
    }

    /// The packets in a home's boxes, and what they leave: the home must not run, and what sends to it neither.
    pub(super) fn boxed(&self, home: u32, home_words: &[u32]) -> Result<Vec<[u32; PACKET_WORDS]>> {
        let mut packets = Vec::new();
        for (from, _) in self.others() {
            let next = home_words.get(NEXT_FAR + from).copied().unwrap_or(0);
            let number = self.box_from(from, home) as usize;
            for i in 0..self.capacity {
                let ticket = next.wrapping_add(i);
                let slot = number * self.capacity as usize + (ticket & (self.capacity - 1)) as usize;
                let slot = self.boxes.slice(slot * SLOT_VECTORS..(slot + 1) * SLOT_VECTORS)?;
                let vectors = slot.read()?;
                if vectors.iter().any(|vector| vector.w != ticket.wrapping_add(1)) {
                    break;
                }
                packets.push(packet_of(&vectors));
            }
        }
        Ok(packets)
    }

    /// Makes a home's boxes empty, and gives the words that it begins anew with; nobody may send to it.
    pub(super) fn empty(&self, home: u32, home_words: &mut [u32; HOME_WORDS]) -> Result<()> {
        for (from, _) in self.others() {
            let link = self.link(from, self.box_from(from, home))?;
            let mut words = self.copies.read(&link)?;
            if let [taken, ticket, reserved, done, ..] = &mut words[..] {
                (*taken, *reserved, *done) = (*ticket, *ticket, *ticket);
                home_words[NEXT_FAR + from] = *ticket;
            }
            self.copies.write(&link, &words)?;
        }
        Ok(())
    }

    /// How many packets were ever put into the box of the home of an actor of another device, by this device, and how many of these that one has handled; `None` where there is no such actor. Both
    /// wrap at 2^32.
    pub(super) fn sent_to(&self, actor: u32) -> Result<Option<(u32, u32)>> {
        let Some(own) = self.shores.get(self.numbers.own as usize) else {
            return Ok(None);
        };
        let route = lock(&own.routes)
            .range(..=actor)
            .next_back()
            .map(|(first, route)| (*first, *route));
        let Some((first, route)) = route.filter(|(first, route)| actor - first < route.actors) else {
            return Ok(None);
        };
        let link = self.link(
            self.numbers.own as usize,
            route.first_box + (actor - first) % route.homes,
        )?;
        let words = self.copies.read(&link)?;
        Ok(match words[..] {
            [_, ticket, _, done, ..] => Some((ticket, done)),
            _ => None,
        })
    }

    /// Whether all that this device has sent to others has been handled there.
    pub(super) fn is_done(&self) -> Result<bool> {
        let first = (self.numbers.own * self.numbers.link_words) as usize;
        let words = (self.numbers.devices * self.numbers.far_boxes) as usize * LINK_WORDS;
        let read = self.copies.read(&self.links.slice(first..first + words)?)?;
        Ok(read.chunks_exact(LINK_WORDS).all(|link| link[2] == link[3]))
    }
}

impl Shore {
    fn tell(&self, actors: &Range<u32>, entries: &[u32]) -> Result<()> {
        let directory = self.directory.slice(actors.start as usize..actors.end as usize)?;
        self.copies.write(&directory, entries)?;
        self.copies.synchronize()?;
        Ok(())
    }
}

/// A slot's packet.
pub(super) fn packet_of(vectors: &[U32x4]) -> [u32; PACKET_WORDS] {
    let mut packet = [0; PACKET_WORDS];
    for (three, v) in packet.chunks_exact_mut(3).zip(vectors) {
        three.copy_from_slice(&[v.x, v.y, v.z]);
    }
    packet
}
