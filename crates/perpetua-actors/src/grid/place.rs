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
    taken: Arc<Mutex<Taken>>,
}

/// What grids have of a device: of a GPU, those of all that this process opens of it, since one context of the driver's serves them all.
fn taken_of(info: &DeviceInfo) -> Arc<Mutex<Taken>> {
    static GPUS: Mutex<BTreeMap<usize, Arc<Mutex<Taken>>>> = Mutex::new(BTreeMap::new());
    let all = |multiprocessors| {
        Arc::new(Mutex::new(Taken {
            multiprocessors,
            grids: Vec::new(),
        }))
    };
    if info.compute_capability.is_none() {
        return all(u32::MAX);
    }
    let multiprocessors = info.multiprocessors.unwrap_or(1);
    Arc::clone(
        lock(&GPUS)
            .entry(info.index)
            .or_insert_with(|| all(multiprocessors)),
    )
}

/// A grid's blocks, and how many of them a multiprocessor has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    blocks: u32,
    fit: u32,
}

/// What grids have of a device.
struct Taken {
    multiprocessors: u32,
    grids: Vec<Size>,
}

impl Taken {
    fn blocks(&self) -> u32 {
        self.grids.iter().map(|size| size.blocks).sum()
    }

    /// What is left for blocks of which `fit` have room on a multiprocessor.
    ///
    /// Each block there is, and each of these, takes at most one `fit`th of a multiprocessor, where `fit` is the smallest of all. So while there are fewer than
    /// `fit` for each of them on average, one has room for another. One place of each is not given away: what else the program launches finds it.
    fn left(&self, fit: u32) -> Left {
        let fit = self.grids.iter().map(|size| size.fit).fold(fit, u32::min);
        let all = self.multiprocessors.saturating_mul(fit.saturating_sub(1).max(1));
        Left {
            blocks: all.saturating_sub(self.blocks()),
            grids: MOST_GRIDS.saturating_sub(self.grids.len() as u32),
        }
    }
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
    size: Size,
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
            taken: taken_of(device.info()),
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

    /// What is left for blocks of which `fit` have room on a multiprocessor.
    pub(crate) fn left(&self, fit: u32) -> Left {
        lock(&self.taken).left(fit)
    }

    /// Blocks that a grid may have which wants `wanted`: half of the multiprocessors that no other block has to itself, so that each further one finds some.
    pub(crate) fn share(&self, wanted: u32) -> u32 {
        let taken = lock(&self.taken);
        let free = taken.multiprocessors.saturating_sub(taken.blocks());
        wanted.min(free / 2).max(1)
    }

    /// Takes place for a grid of so many blocks, of which `fit` have room on a multiprocessor; what is left where that is too little.
    pub(super) fn take(self: &Arc<Place>, blocks: u32, fit: u32) -> Result<std::result::Result<Part, Left>> {
        let size = Size { blocks, fit };
        {
            let mut taken = lock(&self.taken);
            let left = taken.left(fit);
            if left.blocks < blocks || left.grids == 0 {
                return Ok(Err(left));
            }
            taken.grids.push(size);
        }
        let spare = lock(&self.spare).pop();
        let stream = match spare.map_or_else(|| self.device.create_stream(), Ok) {
            Ok(stream) => stream,
            Err(error) => {
                self.give_back(size);
                return Err(error.into());
            }
        };
        // What the last grid has left there is nobody's.
        let _ = stream.inner().take_fault();
        Ok(Ok(Part {
            place: Arc::clone(self),
            size,
            stream,
            is_lost: AtomicBool::new(false),
        }))
    }

    fn give_back(&self, size: Size) {
        let mut taken = lock(&self.taken);
        if let Some(at) = taken.grids.iter().position(|grid| *grid == size) {
            taken.grids.swap_remove(at);
        }
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
        self.place.give_back(self.size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place on a device with so many multiprocessors, of which so many launches are taken by blocks that need nothing.
    fn place(multiprocessors: u32, launches: usize) -> Arc<Place> {
        let device = Device::new(BackendKind::Cpu, 0).expect("the CPU");
        let place = Place::of(&device).expect("a place");
        let nothing = Size {
            blocks: 0,
            fit: u32::MAX,
        };
        *lock(&place.taken) = Taken {
            multiprocessors,
            grids: vec![nothing; launches],
        };
        place
    }

    #[test]
    fn grids_take_places_and_streams_and_give_them_back() {
        let all = MOST_GRIDS as usize;
        let fat = place(10, all - 2);
        assert_eq!((fat.share(3), fat.share(32)), (3, 5));
        // Of the largest blocks one has room.
        let take = |blocks| fat.take(blocks, 1).expect("a stream");
        let (Ok(first), Ok(second)) = (take(5), take(3)) else {
            panic!("there is room for two");
        };
        assert_eq!(take(1).err(), Some(Left { blocks: 2, grids: 0 }));
        drop(first);
        assert_eq!(take(8).err(), Some(Left { blocks: 7, grids: 1 }));
        assert_eq!(fat.share(32), 3);
        let third = take(7).expect("what the first has left");
        assert_eq!((lock(&fat.spare).len(), fat.left(1).blocks), (0, 0));
        drop((second, third));
        assert_eq!((lock(&fat.spare).len(), fat.left(1).blocks), (2, 10));

        // Runtimes that launch one after the other on a GPU with 132 multiprocessors, where each wants 32 blocks.
        let gpu = place(132, all - 8);
        let launches = (0..8).map(|_| {
            let blocks = gpu.share(32);
            (blocks, gpu.take(blocks, 5).expect("a stream").ok())
        });
        let (blocks, parts): (Vec<u32>, Vec<_>) = launches.unzip();
        assert_eq!(blocks, [32, 32, 32, 18, 9, 4, 2, 1]);
        assert!(parts.iter().all(Option::is_some));
    }

    #[test]
    fn a_multiprocessor_takes_as_many_blocks_as_have_room_but_one() {
        let gpu = place(132, 0);
        assert_eq!(gpu.left(5).blocks, 528);
        let many = gpu.take(528, 5).expect("a stream").expect("room");
        // Others find none, and share none.
        assert_eq!((gpu.left(5).blocks, gpu.left(32).blocks), (0, 0));
        assert_eq!(gpu.share(32), 1);
        assert!(gpu.take(1, 5).expect("a stream").is_err());
        drop(many);
        // The largest of all blocks that are there, or are to come, decide.
        let small = gpu.take(200, 8).expect("a stream").expect("room");
        assert_eq!((gpu.left(8).blocks, gpu.left(3).blocks), (724, 64));
        assert!(gpu.take(65, 3).expect("a stream").is_err());
        let large = gpu.take(64, 3).expect("a stream").expect("room");
        assert_eq!(gpu.left(8).blocks, 0);
        drop((small, large));
    }
}
