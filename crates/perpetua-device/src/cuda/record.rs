//! What kernels write for the host: the fault record and the print ring, both in mapped host memory. Their layouts
//! stand in `perpetua_ir::fault`.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use perpetua_ir::fault::record;
use perpetua_ir::print::ring;

use super::driver::lock;
use super::memory::{Memory, Pool};
use crate::error::{Error, Result};
use crate::fault::{FaultRegistry, SiteRange};
use crate::ptr::DeviceMemory;

/// Words of the print ring.
const RING_WORDS: usize = 1 << 18;
/// How often the ring is looked at while kernels that print may run.
const LOOK: Duration = Duration::from_millis(5);

/// Words of mapped memory that the device writes at any time.
struct Words {
    memory: Memory,
    first: NonNull<AtomicU32>,
    len: usize,
}

// SAFETY: the words are reached as atomics only; the memory is Send and Sync.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    fn new(pool: &Arc<Pool>, len: usize) -> Result<Words> {
        let memory = pool.allocate(len as u64 * 4)?;
        let Some(host) = memory.host_ptr() else {
            return Err(super::stream::unsupported(
                "map host memory into kernels",
                "use another device",
            ));
        };
        let words = Words {
            memory,
            first: host.cast(),
            len,
        };
        (0..len).for_each(|i| words.word(i).store(0, Ordering::Relaxed));
        Ok(words)
    }

    /// Word `i`; the last one for an index past the end.
    fn word(&self, i: usize) -> &AtomicU32 {
        // SAFETY: the allocation has `len` aligned words (`new`), lives as long as `self`, and is reached on the host
        // through these atomics only.
        unsafe { self.first.add(i.min(self.len - 1)).as_ref() }
    }

    fn address(&self) -> u64 {
        self.memory.address().unwrap_or(0)
    }
}

/// What stands in a record for a site that nobody has written: no site has this number.
const NO_SITE: u32 = u32::MAX;

/// One fault record.
pub(super) struct FaultRecord {
    words: Words,
    pool: Arc<Pool>,
}

impl FaultRecord {
    pub(super) fn new(pool: &Arc<Pool>) -> Result<FaultRecord> {
        let words = Words::new(pool, record::WORDS)?;
        words.word(record::SITE).store(NO_SITE, Ordering::Relaxed);
        Ok(FaultRecord {
            words,
            pool: Arc::clone(pool),
        })
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Its address for kernels.
    pub(super) fn address(&self) -> u64 {
        self.words.address()
    }

    /// The fault that work known to have ended recorded, as an error; the record is then free again.
    pub(super) fn take(&self) -> Result<()> {
        // Acquire: pairs with the device's release at the end of the kernel, which the caller has waited for.
        if self.words.word(record::CLAIM).load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let words: [u32; record::WORDS] = std::array::from_fn(|i| self.words.word(i).load(Ordering::Relaxed));
        let rest = (0..record::WORDS).filter(|i| *i != record::CLAIM && *i != record::SITE);
        rest.for_each(|i| self.words.word(i).store(0, Ordering::Relaxed));
        self.words.word(record::SITE).store(NO_SITE, Ordering::Relaxed);
        // Last, and Release: a lane that claims the record next writes behind it.
        self.words.word(record::CLAIM).store(0, Ordering::Release);
        match FaultRegistry::global().fault(&words) {
            Some(fault) => Err(Error::from(fault)),
            None => Err(Error::InvalidState {
                operation: "reading a fault record",
                cause: "it names a site that no kernel of this process has",
                remedy: "check kernels given as text: they must not write the fault record",
            }),
        }
    }
}

/// Where a stream's faults are found: the record that its launches write, and one that was taken from a record whose kernel or
/// graph is gone.
pub(super) struct Faults {
    record: FaultRecord,
    taken: Mutex<Option<Error>>,
}

impl Faults {
    pub(super) fn new(pool: &Arc<Pool>) -> Result<Arc<Faults>> {
        Ok(Arc::new(Faults {
            record: FaultRecord::new(pool)?,
            taken: Mutex::default(),
        }))
    }

    pub(super) fn record(&self) -> &FaultRecord {
        &self.record
    }

    /// Keeps a fault for the next [`take`](Faults::take), unless one is kept already.
    pub(super) fn keep(&self, found: Result<()>) {
        if let Err(error) = found {
            lock(&self.taken).get_or_insert(error);
        }
    }

    /// Keeps the fault in the record, if it is of a kernel with these sites, of which no launch runs any more.
    pub(super) fn take_of(&self, sites: &SiteRange) {
        // Relaxed: the launch that wrote it has ended, for which the caller has asked the driver. Of one that runs it is another's site, or none.
        let site = self.record.words.word(record::SITE).load(Ordering::Relaxed);
        let number = site.checked_sub(sites.base()).map(|number| number as usize);
        if number.is_some_and(|number| number < sites.sites().faults.len()) {
            self.keep(self.record.take());
        }
    }

    /// The first fault not reported yet.
    pub(super) fn take(&self) -> Result<()> {
        match lock(&self.taken).take() {
            Some(error) => Err(error),
            None => self.record.take(),
        }
    }
}

/// The ring of one context, made when the first kernel that prints is launched.
#[derive(Default)]
pub(super) struct PrintRing {
    ring: OnceLock<Words>,
    next: Mutex<usize>,
    /// Sites of the kernels that may have left records in the ring.
    sites: Mutex<Vec<Arc<SiteRange>>>,
}

impl PrintRing {
    /// The ring's address for a kernel with these sites; starts looking at it.
    pub(super) fn address(self: &Arc<Self>, pool: &Arc<Pool>, sites: Option<&Arc<SiteRange>>) -> Result<u64> {
        if let Some(sites) = sites {
            let mut known = lock(&self.sites);
            if !known.iter().any(|k| Arc::ptr_eq(k, sites)) {
                known.push(Arc::clone(sites));
            }
        }
        if let Some(ring) = self.ring.get() {
            return Ok(ring.address());
        }
        let words = Words::new(pool, RING_WORDS)?;
        words
            .word(ring::CAPACITY)
            .store((RING_WORDS - ring::RECORDS) as u32, Ordering::Relaxed);
        if self.ring.set(words).is_ok() {
            let ring: Weak<PrintRing> = Arc::downgrade(self);
            // Prints come live; the thread ends with the context.
            let looking = std::thread::Builder::new()
                .name("perpetua-print".into())
                .spawn(move || {
                    while let Some(ring) = ring.upgrade() {
                        ring.drain(false);
                        drop(ring);
                        std::thread::sleep(LOOK);
                    }
                });
            if looking.is_err() {
                tracing::warn!("no thread to watch gpu_println!: lines come at synchronisation");
            }
        }
        Ok(self.ring.get().map_or(0, Words::address))
    }

    /// Prints the complete records. `idle`: the kernels that printed are known to have ended, so that what was reserved
    /// past the ring's end and dropped is not waited for.
    pub(super) fn drain(&self, idle: bool) {
        let Some(ring) = self.ring.get() else { return };
        let mut next = lock(&self.next);
        // Of these no module is left: all that they will ever print is in the ring.
        let gone = |sites: &Arc<SiteRange>| Arc::strong_count(sites) == 1;
        let last: Vec<u32> = lock(&self.sites)
            .iter()
            .filter(|sites| gone(sites))
            .map(|sites| sites.base())
            .collect();
        let capacity = RING_WORDS - ring::RECORDS;
        loop {
            // Acquire: pairs with the device's release of the header, written last.
            let header = ring.word(ring::RECORDS + *next).load(Ordering::Acquire);
            if *next >= capacity || header == 0 {
                break;
            }
            let Some(site) = FaultRegistry::global().print_site(header - 1) else {
                break;
            };
            let words = 1 + 2 * site.args.len();
            let argument = |i: usize| {
                let at = ring::RECORDS + *next + 1 + 2 * i;
                let half = |k: usize| u64::from(ring.word(at + k).load(Ordering::Relaxed));
                half(0) | half(1) << 32
            };
            let args: Vec<u64> = (0..site.args.len()).map(argument).collect();
            println!("{}", site.format(&args));
            for i in 0..words {
                ring.word(ring::RECORDS + *next + i).store(0, Ordering::Relaxed);
            }
            *next += words;
        }
        // Everything reserved has been printed: start over from the front. A kernel that reserves meanwhile fails the
        // exchange, and the next look tries again.
        let cursor = ring.word(ring::CURSOR);
        let reserved = cursor.load(Ordering::Relaxed);
        let overflowed = reserved as usize > capacity;
        let mut empty = reserved == 0;
        if reserved != 0 && (*next >= reserved as usize || overflowed && idle) {
            // Release: the cleared records must be seen before the room is given again.
            if cursor
                .compare_exchange(reserved, 0, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                *next = 0;
                empty = true;
            }
        }
        if empty && !last.is_empty() {
            // One that was compiled again meanwhile stays.
            lock(&self.sites).retain(|sites| !(last.contains(&sites.base()) && gone(sites)));
        }
        let dropped = ring.word(ring::DROPPED).swap(0, Ordering::Relaxed);
        if dropped != 0 {
            tracing::warn!(dropped, "gpu_println! lines were lost: the ring was full");
        }
    }
}
