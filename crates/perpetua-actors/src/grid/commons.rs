//! What all grids of a device share: rings, boxes, records of actors, where each one is at home. Must not know handlers.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use perpetua::prelude::*;
use perpetua_device::{Buffer, Device, Error, MappedBuffer, Stream};
use perpetua_ir::back::Capability;

use super::bridge::{Bridge, Shore, packet_of};
use super::place::{Part, Place};
use super::port::{Port, Slots};
use crate::error::{ActorError, Result};
use crate::kernels::layout::{
    ACTOR_WORDS, BOX_DONE, BOX_RESERVED, BOX_TAKEN, BOX_TICKET, HANDLED, HOME_WORDS, MOST_DEVICES,
    ORDER_WORDS, REFUSED, REPORT_VECTORS, SLOT_VECTORS,
};
use crate::message::PACKET_WORDS;
use crate::sync::Vector;

/// How much there is of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Homes of all grids together.
    pub homes: u32,
    /// Actors of all grids together.
    pub actors: u32,
    /// Packets in each ring between the host and a home: a power of two, at least the lanes that may put one out at once, 32.
    pub ring: u32,
    /// Packets in each home's box for other actors' packets: likewise.
    pub boxes: u32,
}

impl Shape {
    /// For so many homes and actors, with rings of 256 packets.
    pub fn new(homes: u32, actors: u32) -> Shape {
        Shape {
            homes,
            actors,
            ring: 256,
            boxes: (2 * homes).next_power_of_two().max(256),
        }
    }

    fn check(&self) -> Result<()> {
        let wrong = |n: u32| !n.is_power_of_two() || !(32..=1 << 24).contains(&n);
        for capacity in [self.ring, self.boxes] {
            if wrong(capacity) {
                return Err(ActorError::Capacity {
                    capacity: capacity as usize,
                });
            }
        }
        Ok(())
    }
}

#[kernel(block_size = (1), interpret)]
fn read_clock(out: &mut [u64]) {
    out[0] = clock_nanos();
}

/// Nanoseconds since 1970 when the device's clock was zero, to about ten microseconds; wraps.
fn time_offset(device: &Device) -> Result<u64> {
    let out = device.zeros::<u64>(1)?;
    let mut best = (Duration::MAX, 0);
    for _ in 0..8 {
        let started = Instant::now();
        device.launch(
            &read_clock::kernel(),
            LaunchConfig::new([1, 1, 1], [1, 1, 1]),
            args![&out],
        )?;
        let device_time = out.read()?.first().copied().unwrap_or(0);
        let took = started.elapsed();
        if took < best.0 {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let then = since.as_nanos() as u64 - took.as_nanos() as u64 / 2;
            best = (took, then.wrapping_sub(device_time));
        }
    }
    Ok(best.1)
}

/// What all grids of a runtime share on a device.
pub struct Commons {
    pub(crate) device: Device,
    pub(super) shape: Shape,
    pub(super) ingress: MappedBuffer<U32x4>,
    pub(super) egress: MappedBuffer<U32x4>,
    pub(super) orders: MappedBuffer<u32>,
    pub(super) reports: MappedBuffer<U32x4>,
    pub(super) inbox: Buffer<U32x4>,
    pub(super) homes: Buffer<u32>,
    pub(super) actors: Buffer<u32>,
    pub(super) directory: Buffer<u32>,
    pub(super) ports: Vec<Port>,
    /// Where messages' vectors lie, from the first handler of vectors on.
    arena: OnceLock<MappedBuffer<u32>>,
    /// The first device's, whose arena this one maps.
    arena_of: OnceLock<Arc<Commons>>,
    /// What a kernel gets in the place of boxes between devices.
    pub(super) no_boxes: Buffer<U32x4>,
    pub(super) no_links: Buffer<u32>,
    /// Boxes for packets from other devices, where there are such.
    pub(super) bridge: OnceLock<Bridge>,
    /// The homes that are taken.
    taken: Mutex<Vec<bool>>,
    /// Nanoseconds since 1970 when the device's clock was zero; wraps.
    pub(super) time_offset: u64,
    /// For copies beside resident grids.
    pub(super) copies: Stream,
    pub(crate) place: Arc<Place>,
}

impl Commons {
    /// Makes room on a device.
    ///
    /// # Errors
    /// Where kernels cannot stay on the device, or the host cannot move 16 bytes at once; capacities that are no powers of
    /// two.
    pub fn new(device: &Device, shape: Shape) -> Result<Commons> {
        Commons::at(&Place::of(device)?, shape)
    }

    /// The same, beside other runtimes of this process.
    pub(crate) fn at(place: &Arc<Place>, shape: Shape) -> Result<Commons> {
        let device = &place.device;
        shape.check()?;
        let unable = |remedy| ActorError::Unsupported {
            backend: device.backend().name(),
            operation: "a resident handler",
            remedy,
        };
        match device.info().compute_capability {
            Some(have) if have < (7, 5) => {
                return Err(unable(
                    "resident kernels need compute capability 7.5 or higher: use the CPU or wgpu backend",
                ));
            }
            _ if device.info().mapped_memory
                && device.info().capabilities.contains(&Capability::Residency) => {}
            _ => {
                return Err(unable(
                    "kernels can stay on CUDA devices, and in the CPU's interpreter: use a runtime on this backend, which runs batches",
                ));
            }
        }
        if !Vector::moves_at_once() {
            return Err(unable(
                "the host's processor must move 16 bytes at once (x86-64 with AVX): use another backend",
            ));
        }
        let homes = shape.homes as usize;
        let slots = homes * shape.ring as usize * SLOT_VECTORS;
        let ingress = device.mapped::<U32x4>(slots)?;
        let egress = device.mapped::<U32x4>(slots)?;
        let orders = device.mapped::<u32>(homes * ORDER_WORDS)?;
        let reports = device.mapped::<U32x4>(homes * REPORT_VECTORS)?;
        let ring_vectors = shape.ring as usize * SLOT_VECTORS;
        let at = |base: NonNull<U32x4>, vector: usize| {
            // SAFETY: below the end of the buffer, for each home below `homes`.
            unsafe { base.cast::<Vector>().add(vector) }
        };
        let ports = (0..homes)
            .map(|home| {
                let reports = at(reports.host_ptr(), home * REPORT_VECTORS);
                let taken = orders.atomics().get(home * ORDER_WORDS).map(NonNull::from);
                let taken = taken.ok_or(Error::InvalidState {
                    operation: "making room for a home",
                    cause: "its orders lie outside their buffer",
                    remedy: "report this",
                })?;
                // SAFETY: mapped buffers are aligned to 64 bytes, so slots and reports are to 16; all lie inside their buffers, which live
                // as long as the ports.
                Ok(unsafe {
                    Port::new(
                        Slots::new(at(ingress.host_ptr(), home * ring_vectors), shape.ring),
                        Slots::new(at(egress.host_ptr(), home * ring_vectors), shape.ring),
                        reports,
                        taken,
                    )
                })
            })
            .collect::<Result<Vec<Port>>>()?;
        let boxes = homes * shape.boxes as usize * SLOT_VECTORS;
        let time_offset = time_offset(device)?;
        let commons = Commons {
            time_offset,
            inbox: device.zeros::<U32x4>(boxes)?,
            homes: device.zeros::<u32>(homes * HOME_WORDS)?,
            actors: device.zeros::<u32>(shape.actors as usize * ACTOR_WORDS)?,
            directory: device.full::<u32>(shape.actors as usize, u32::MAX)?,
            copies: place.copies.clone(),
            place: Arc::clone(place),
            device: device.clone(),
            shape,
            ingress,
            egress,
            orders,
            reports,
            ports,
            arena: OnceLock::new(),
            arena_of: OnceLock::new(),
            bridge: OnceLock::new(),
            no_boxes: device.zeros(1)?,
            no_links: device.zeros(1)?,
            taken: Mutex::new(vec![false; homes]),
        };
        device.default_stream().synchronize()?;
        Ok(commons)
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How much there is of everything.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Where messages' vectors lie, for the host and for all grids: in the host's memory, which devices reach over the bus, so that no
    /// command copies them. The first call says of how many words.
    ///
    /// # Errors
    /// The device has no such memory left.
    pub fn arena(&self, words: usize) -> Result<&MappedBuffer<u32>> {
        if let Some(arena) = self.arena.get() {
            return Ok(arena);
        }
        let arena = match self.arena_of.get() {
            Some(first) => first.arena(words)?.on(&self.device)?,
            None => self.device.mapped::<u32>(words)?,
        };
        Ok(self.arena.get_or_init(|| arena))
    }

    /// From here on this device's homes reach the vectors of that one's, which is of the same backend.
    pub(crate) fn share_arena(&self, first: &Arc<Commons>) {
        if first.device.backend() == self.device.backend() {
            let _ = self.arena_of.set(Arc::clone(first));
        }
    }

    /// Whether its vectors lie in another device's arena.
    pub(crate) fn shares_arena(&self) -> bool {
        self.arena_of.get().is_some()
    }

    /// The packets in a home's box, which must not run.
    pub(super) fn boxed(&self, home: usize) -> Result<Vec<[u32; PACKET_WORDS]>> {
        let words = self
            .homes
            .slice(home * HOME_WORDS..(home + 1) * HOME_WORDS)?
            .read()?;
        let (Some(taken), Some(ticket)) = (words.get(BOX_TAKEN), words.get(BOX_TICKET)) else {
            return Ok(Vec::new());
        };
        let slots = self.shape.boxes as usize;
        let from_here = (0..ticket.wrapping_sub(*taken)).map(|i| {
            let slot = home * slots + (taken.wrapping_add(i) & (self.shape.boxes - 1)) as usize;
            let vectors = self
                .inbox
                .slice(slot * SLOT_VECTORS..(slot + 1) * SLOT_VECTORS)?
                .read()?;
            Ok(packet_of(&vectors))
        });
        let mut packets = from_here.collect::<Result<Vec<_>>>()?;
        if let Some(bridge) = self.bridge.get() {
            packets.extend(bridge.boxed(home as u32, &words)?);
        }
        Ok(packets)
    }

    /// Whether all that homes here have sent to other devices' homes has been handled there.
    pub(crate) fn far_is_done(&self) -> bool {
        // A device that does not answer has lost it.
        self.bridge
            .get()
            .is_none_or(|bridge| bridge.is_done().unwrap_or(true))
    }

    /// How many packets were ever put into the box of the home of an actor of another device, by homes here, and how many of these it has handled; `None`
    /// where what is sent there goes by the host. Both wrap at 2^32.
    pub(crate) fn sent_far(&self, actor: u32) -> Option<(u32, u32)> {
        self.bridge.get()?.sent_to(actor).ok()?
    }

    /// Whether packets go to other devices without the host.
    pub(crate) fn is_bridged(&self) -> bool {
        self.bridge.get().is_some()
    }

    /// Takes so many homes, of which `fit` have room on a multiprocessor, for actors with numbers below `end`; gives the first one's number, and their part of
    /// the device.
    pub(super) fn take(&self, homes: u32, fit: u32, end: u32) -> Result<(u32, Part)> {
        let mut taken = self.taken.lock().unwrap_or_else(|e| e.into_inner());
        let free = taken.chunk_by(|a, b| a == b);
        let rows = free.scan(0, |at, row| {
            *at += row.len();
            Some((*at - row.len(), if row[0] { 0 } else { row.len() }))
        });
        let rows: Vec<(usize, usize)> = rows.collect();
        let fits = rows.iter().find(|(_, free)| *free >= homes as usize);
        let part = match fits {
            Some((first, _)) if end <= self.shape.actors => {
                self.place.take(homes, fit)?.map(|part| (*first, part))
            }
            _ => Err(self.place.left(fit)),
        };
        let (first, part) = part.map_err(|left| {
            let in_a_row = rows.iter().map(|(_, free)| *free as u32).max().unwrap_or(0);
            ActorError::NoRoom {
                homes: in_a_row.min(left.blocks),
                grids: left.grids,
                actors: self.shape.actors,
            }
        })?;
        taken[first..first + homes as usize].fill(true);
        Ok((first as u32, part))
    }

    /// Takes homes back, which must not run: their boxes are emptied, and their counters begin anew. Gives what was in the boxes.
    pub(super) fn give_back(
        &self,
        homes: Range<u32>,
        actors: Range<u32>,
    ) -> Result<Vec<[u32; PACKET_WORDS]>> {
        let mut left = Vec::new();
        let nowhere = vec![u32::MAX; actors.len()];
        let actors = actors.start as usize..actors.end as usize;
        self.copies.write(&self.directory.slice(actors)?, &nowhere)?;
        for home in homes.clone() {
            left.extend(self.boxed(home as usize)?);
            let at = home as usize * HOME_WORDS;
            let words = self.homes.slice(at..at + HOME_WORDS)?;
            let mut own: [u32; HOME_WORDS] = words.read()?.try_into().unwrap_or([0; HOME_WORDS]);
            if let Some(bridge) = self.bridge.get() {
                bridge.empty(home, &mut own)?;
            }
            own[HANDLED..=REFUSED].fill(0);
            own[BOX_TAKEN] = own[BOX_TICKET];
            own[BOX_RESERVED] = own[BOX_TICKET];
            own[BOX_DONE] = own[BOX_TICKET];
            self.copies.write(&words, &own)?;
        }
        self.copies.synchronize()?;
        let mut taken = self.taken.lock().unwrap_or_else(|e| e.into_inner());
        taken[homes.start as usize..homes.end as usize].fill(false);
        Ok(left)
    }
}

/// Makes boxes between the devices of these, which must have no grids yet.
///
/// # Errors
/// [`Error::Unsupported`] where a device does not reach another one's memory, where boxes have different sizes, or where there are more than
/// [`MOST_DEVICES`].
pub(crate) fn connect(all: &[Arc<Commons>]) -> Result<()> {
    let Some(first) = all.first() else {
        return Ok(());
    };
    if all.len() > MOST_DEVICES {
        return Err(Error::Unsupported {
            backend: first.device.backend(),
            operation: "boxes between more than eight devices",
            remedy: "use runtimes of fewer devices",
        }
        .into());
    }
    if all.iter().any(|commons| commons.shape.boxes != first.shape.boxes) {
        return Err(Error::Unsupported {
            backend: first.device.backend(),
            operation: "boxes of different sizes between devices",
            remedy: "use devices of about as many multiprocessors",
        }
        .into());
    }
    let homes = all.iter().map(|commons| commons.shape.homes).max();
    let shores = all.iter().map(|commons| Shore {
        device: commons.device.clone(),
        copies: commons.copies.clone(),
        directory: commons.directory.clone(),
        routes: Mutex::default(),
    });
    let ends = Bridge::between(shores.collect(), first.shape.boxes, homes.unwrap_or(1))?;
    for (commons, end) in all.iter().zip(ends) {
        let _ = commons.bridge.set(end);
    }
    Ok(())
}
