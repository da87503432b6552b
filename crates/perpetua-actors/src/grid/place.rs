//! What one device has for the resident kernels of a whole process: blocks and streams. All runtimes that keep actors on a device share it. Must not know what the kernels do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use perpetua_device::{BackendKind, Device, DeviceInfo, Stream};

use crate::error::Result;
use crate::lock::lock;

/// Grids that stay on a device at the same time: beyond 32 streams the driver puts several into one queue, where copies and launches
/// wait for a grid that never ends. The others are for copies, default streams, and what else the program does.
const MOST_GRIDS: u32 = 24;

/// An opened device, and what has place there.
pub(crate) struct Place {
    pub(crate) device: Device,
    /// For copies beside resident grids.
    pub(super) copies: Stream,
    /// Of grids that have ended. The driver deals its queues to streams as they are made, so streams are used again: new ones would come to the
    /// queues of grids that stay.
    spare: Mutex<Vec<Stream>>,
    left: Arc<Mutex<Left>>,
}

/// What is left on a device: of a GPU for all that this process opens of it, since one context of the driver's serves them all.
fn left_on(info: &DeviceInfo) -> Arc<Mutex<Left>> {
    static GPUS: Mutex<BTreeMap<usize, Arc<Mutex<Left>>>> = Mutex::new(BTreeMap::new());
    let all = |blocks| {
        let grids = MOST_GRIDS;
        Arc::new(Mutex::new(Left { blocks, grids }))
    };
    if info.compute_capability.is_none() {
        return all(u32::MAX);
    }
    // At least one block of any kernel has room on each multiprocessor.
    let blocks = info.multiprocessors.unwrap_or(1);
    Arc::clone(lock(&GPUS).entry(info.index).or_insert_with(|| all(blocks)))
}

/// What nobody has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) blocks: u32,
    pub(crate) grids: u32,
}

/// The part of a place that a grid has, until this is dropped.
pub(super) struct Part {
    place: Arc<Place>,
    blocks: u32,
    stream: Stream,
    /// Whether a kernel stays there for ever.
    is_lost: AtomicBool,
}

impl Place {
    /// The place of this opened device.
    pub(crate) fn of(device: &Device) -> Result<Arc<Place>> {
        Ok(Arc::new(Place {
            device: device.clone(),
            copies: device.create_stream()?,
            spare: Mutex::default(),
            left: left_on(device.info()),
        }))
    }

    /// The place of a device that all runtimes of this process share; opened at first use.
    pub(crate) fn shared(backend: BackendKind, index: usize) -> Result<Arc<Place>> {
        type Places = BTreeMap<(&'static str, usize), Weak<Place>>;
        static PLACES: Mutex<Places> = Mutex::new(BTreeMap::new());
        if backend != BackendKind::Cuda {
            // The interpreter's devices have nothing in common.
            return Place::of(&Device::new(backend, index)?);
        }
        let mut places = lock(&PLACES);
        let key = (backend.name(), index);
        if let Some(place) = places.get(&key).and_then(Weak::upgrade) {
            // Who has lost the device begins anew, if the driver lets him.
            if place.device.default_stream().record().is_ok() {
                return Ok(place);
            }
        }
        let place = Place::of(&Device::new(backend, index)?)?;
        places.insert(key, Arc::downgrade(&place));
        Ok(place)
    }

    /// What nobody has taken.
    pub(crate) fn left(&self) -> Left {
        *lock(&self.left)
    }

    /// Blocks that a grid may have which wants `wanted`: half of those that are left, so that each further one finds some.
    pub(crate) fn share(&self, wanted: u32) -> u32 {
        wanted.min(self.left().blocks / 2).max(1)
    }

    /// Takes place for a grid of so many blocks; what is left where that is too little.
    pub(super) fn take(self: &Arc<Place>, blocks: u32) -> Result<std::result::Result<Part, Left>> {
        {
            let mut left = lock(&self.left);
            if left.blocks < blocks || left.grids == 0 {
                return Ok(Err(*left));
            }
            left.blocks -= blocks;
            left.grids -= 1;
        }
        let spare = lock(&self.spare).pop();
        let stream = match spare.map_or_else(|| self.device.create_stream(), Ok) {
            Ok(stream) => stream,
            Err(error) => {
                self.give_back(blocks);
                return Err(error.into());
            }
        };
        // What the last grid has left there is nobody's.
        let _ = stream.inner().take_fault();
        Ok(Ok(Part {
            place: Arc::clone(self),
            blocks,
            stream,
            is_lost: AtomicBool::new(false),
        }))
    }

    fn give_back(&self, blocks: u32) {
        let mut left = lock(&self.left);
        left.blocks += blocks;
        left.grids += 1;
    }
}

impl Part {
    /// The grid's stream.
    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// A kernel has not left: nobody else gets this part.
    pub(super) fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.is_lost.load(Ordering::Relaxed) {
            return;
        }
        lock(&self.place.spare).push(self.stream.clone());
        self.place.give_back(self.blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_take_places_and_streams_and_give_them_back() {
        let device = Device::new(BackendKind::Cpu, 0).expect("the CPU");
        let place = Place::of(&device).expect("a place");
        *lock(&place.left) = Left { blocks: 10, grids: 2 };
        assert_eq!((place.share(3), place.share(32)), (3, 5));
        let take = |blocks| place.take(blocks).expect("a stream");
        let (Ok(first), Ok(second)) = (take(5), take(3)) else {
            panic!("there is room for two");
        };
        assert_eq!(take(1).err(), Some(Left { blocks: 2, grids: 0 }));
        drop(first);
        assert_eq!(take(8).err(), Some(Left { blocks: 7, grids: 1 }));
        assert_eq!(place.share(32), 3);
        let third = take(7).expect("what the first has left");
        assert_eq!((lock(&place.spare).len(), place.left().blocks), (0, 0));
        // Runtimes that launch one after the other on a GPU with 132 multiprocessors, where each wants 32 blocks.
        drop((second, third));
        *lock(&place.left) = Left {
            blocks: 132,
            grids: 8,
        };
        let launches = (0..8).map(|_| {
            let blocks = place.share(32);
            (blocks, place.take(blocks).expect("a stream").ok())
        });
        let (blocks, parts): (Vec<u32>, Vec<_>) = launches.unzip();
        assert_eq!(blocks, [32, 32, 32, 18, 9, 4, 2, 1]);
        assert!(parts.iter().all(Option::is_some));
        drop(parts);
        *lock(&place.left) = Left { blocks: 10, grids: 2 };
        assert_eq!((lock(&place.spare).len(), place.left().blocks), (8, 10));
    }
}
