//! Tiles that stay on a CUDA device: the host's side. A ring of orders in host memory, receipts and answers back, the device's
//! memory for fields, halos and media. Must not know commands.
//!
//! A vector of 16 bytes carries the number of what it belongs to in its last word. The host writes its lower half first; the
//! device reads all of it at once, so where it sees the number, it sees the rest.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use perpetua::kernel::resident::U32x4;
use perpetua::prelude::*;

use super::super::error::{Error, Result};
use super::cut::Cut;
use super::engine::{DRIVES, Engine, SOURCES, Taken};
use super::kernels::tile;
use super::order::{BEGIN, FREE, MEDIUM, ORDER_WORDS, Order, PARK, PAUSE, PROBE, RUN, SAVE, SOURCE, order};
use perpetua_device::gate::Parkable;
use perpetua_device::{Buffer, Device, Kernel, MappedBuffer, Stream};

/// Orders in the host's ring: a power of two.
const RING: u32 = 1024;
/// Entries of the tiles' log: a power of two.
const LOG: u32 = 4096;
/// Vectors of an order.
const VECTORS: usize = ORDER_WORDS / 3;
/// Looks without anything new after which tiles and conductor nap between two.
const PATIENCE: u32 = 1 << 20;
/// How long an answer may take.
const LONGEST: Duration = Duration::from_secs(600);
/// How long parking may take.
const LEAVE: Duration = Duration::from_secs(60);

/// How tiles are made, on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Steps of an entry of the log while tiles run freely.
    pub(super) chunk: u32,
    /// Entries that tiles may be given ahead then.
    pub(super) ahead: u32,
}

/// What a grid of tiles starts from.
pub(super) struct Start<'a> {
    pub(super) cut: Cut,
    pub(super) pace: Pace,
    /// A byte a cell.
    pub(super) slots: &'a [u8],
    /// Stiffnesses, what is kept, the profile.
    pub(super) table: Vec<f32>,
    pub(super) edge: f32,
    /// What sources add in the first `DRIVES` steps: tiles look as soon as they are there.
    pub(super) drives: &'a [[f32; SOURCES]],
}

/// What is known of the tiles between two launches.
struct State {
    /// Orders pushed.
    pushed: u32,
    /// The next launch's first entry of the log, and its first step.
    entry: u32,
    step: u32,
    running: bool,
    ended: bool,
    /// Media as they are now.
    table: Vec<f32>,
    /// The last order of each source.
    sources: Vec<Order>,
    /// Until which step tiles go on by themselves.
    target: Option<u32>,
    /// Which pair of fields tiles begin with, and which one holds what was saved last.
    pair: usize,
    saved: usize,
}

/// What the gate parks and unparks.
struct Tiles {
    kernel: Kernel,
    cut: Cut,
    pace: Pace,
    edge: f32,
    patience: u32,
    stream: Stream,
    copies: Stream,
    orders: MappedBuffer<U32x4>,
    receipts: MappedBuffer<U32x4>,
    answers: MappedBuffer<U32x4>,
    reports: MappedBuffer<U32x4>,
    log: Buffer<U32x4>,
    board: Buffer<U32x4>,
    progress: Buffer<u32>,
    cells: Buffer<u32>,
    media: Buffer<f32>,
    drive: Buffer<u32>,
    fields: [[Buffer<f32>; 2]; 2],
    state: Mutex<State>,
}

/// Reads a vector, its last word first.
fn read(buffer: &MappedBuffer<U32x4>, at: u32) -> [u32; 4] {
    let at = at as usize % buffer.len().max(1);
    // SAFETY: the vector lies inside the buffer, which is not empty; its two halves are aligned to 8 bytes; every access of the
    // host to it is atomic.
    let halves = unsafe {
        let base = buffer.host_ptr().cast::<AtomicU64>().add(2 * at);
        [base.as_ref(), base.add(1).as_ref()]
    };
    // Acquire: the device writes both halves at once, so the lower one, read behind, is at least as new.
    let high = halves[1].load(Ordering::Acquire);
    let low = halves[0].load(Ordering::Relaxed);
    [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
}

/// Writes a vector, its last word with the second half.
fn write(buffer: &MappedBuffer<U32x4>, at: u32, words: [u32; 4]) {
    let at = at as usize % buffer.len().max(1);
    let [a, b, c, d] = words.map(u64::from);
    // SAFETY: as in `read`.
    let halves = unsafe {
        let base = buffer.host_ptr().cast::<AtomicU64>().add(2 * at);
        [base.as_ref(), base.add(1).as_ref()]
    };
    halves[0].store(a | (b << 32), Ordering::Relaxed);
    // Release: the device must not see the tag before the rest.
    halves[1].store(c | (d << 32), Ordering::Release);
}

/// What sources add, as the device has it.
fn bits(rows: &[[f32; SOURCES]]) -> Vec<u32> {
    rows.iter().flatten().map(|v| v.to_bits()).collect()
}

/// Whether `number` has come, by a tag that is the number of something later, plus one.
fn has_come(tag: u32, number: u32) -> bool {
    tag != 0 && (tag.wrapping_sub(number.wrapping_add(1)) as i32) >= 0
}

impl Tiles {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Waits until `ready` gives something.
    fn until<T>(
        &self,
        longest: Duration,
        mut ready: impl FnMut() -> Option<T>,
    ) -> perpetua_device::Result<T> {
        let start = Instant::now();
        loop {
            for _ in 0..4096 {
                if let Some(found) = ready() {
                    return Ok(found);
                }
                std::hint::spin_loop();
            }
            if start.elapsed() > longest {
                return Err(perpetua_device::Error::InvalidState {
                    operation: "waiting for tile actors",
                    cause: "they do not answer",
                    remedy: "end the process; where other kernels stay on the device, let them end first",
                });
            }
        }
    }

    /// Puts an order into the ring; its number.
    fn put(&self, state: &mut State, order: &Order) -> perpetua_device::Result<u32> {
        let number = state.pushed;
        // The slot's last order must have been taken in.
        let last = number.wrapping_sub(RING);
        if number >= RING {
            self.until(LONGEST, || {
                has_come(read(&self.receipts, number % RING)[3], last).then_some(())
            })?;
        }
        let mut order = *order;
        if order[0] == PROBE {
            order[3] = number;
        }
        for (vector, words) in order.chunks_exact(3).enumerate() {
            let at = (number % RING) * VECTORS as u32 + vector as u32;
            write(
                &self.orders,
                at,
                [words[0], words[1], words[2], number.wrapping_add(1)],
            );
        }
        state.pushed = number.wrapping_add(1);
        match order[0] {
            MEDIUM => {
                let slot = (order[1] & 255) as usize;
                state.table[slot] = f32::from_bits(order[2]);
                state.table[256 + slot] = f32::from_bits(order[3]);
            }
            SOURCE => {
                state.sources.retain(|source| source[1] != order[1]);
                state.sources.push(order);
            }
            FREE => state.target = Some(order[1]),
            PAUSE | RUN => state.target = None,
            SAVE | PARK => state.saved = 1 - state.pair,
            _ => {}
        }
        Ok(number)
    }

    fn receipt(&self, number: u32) -> perpetua_device::Result<[u32; 4]> {
        self.until(LONGEST, || {
            let receipt = read(&self.receipts, number % RING);
            has_come(receipt[3], number).then_some(receipt)
        })
    }

    /// Waits until all tiles are through with an entry of the log.
    fn through(&self, entry: u32, longest: Duration) -> perpetua_device::Result<()> {
        self.until(longest, || {
            let done = read(&self.reports, 0)[0];
            ((done.wrapping_sub(entry) as i32) >= 0).then_some(())
        })
    }
}

impl Parkable for Tiles {
    fn park(&self) -> perpetua_device::Result<()> {
        let mut state = self.lock();
        if !state.running {
            return Ok(());
        }
        let target = state.target;
        self.put(&mut state, &order(PAUSE, &[]))?;
        self.put(&mut state, &order(PARK, &[]))?;
        state.target = target;
        let left = self.until(LEAVE, || Some(read(&self.reports, 1)).filter(|r| r[3] == 1))?;
        self.stream.inner().synchronize_blocking()?;
        (state.entry, state.step) = (left[0], left[1]);
        state.pair = 1 - state.pair;
        state.running = false;
        Ok(())
    }

    fn unpark(&self) -> perpetua_device::Result<()> {
        let mut state = self.lock();
        if state.ended || state.running {
            return Ok(());
        }
        write(&self.reports, 1, [0; 4]);
        let first_order = state.pushed;
        self.put(&mut state, &order(BEGIN, &[]))?;
        for source in state.sources.clone() {
            self.put(&mut state, &source)?;
        }
        if let Some(target) = state.target {
            self.put(&mut state, &order(FREE, &[target]))?;
        }
        self.stream.write(&self.media, &state.table)?;
        self.stream.fill(&self.board, U32x4::default())?;
        self.stream.fill(&self.log, U32x4::default())?;
        self.stream.fill(&self.progress, 0)?;
        let [from, to] = [&self.fields[state.pair], &self.fields[1 - state.pair]];
        let cut = self.cut;
        let arguments = args![
            &self.orders,
            &self.log,
            &self.board,
            &self.progress,
            &self.reports,
            &self.receipts,
            &self.answers,
            &from[0],
            &from[1],
            &to[0],
            &to[1],
            &self.cells,
            &self.media,
            &self.drive,
            cut.size[0],
            cut.size[1],
            self.edge,
            cut.across(),
            cut.count(),
            cut.span,
            state.step,
            state.entry,
            first_order,
            LOG - 1,
            RING - 1,
            DRIVES as u32 - 1,
            self.pace.chunk,
            self.pace.ahead,
            self.patience,
        ];
        self.stream.launch(
            &self.kernel,
            LaunchConfig::new([cut.count() + 1, 1, 1], [32, cut.strips, 1]),
            arguments,
        )?;
        self.stream.flush()?;
        state.running = true;
        Ok(())
    }

    // In the interpreter each tile has a machine of its own.
    fn is_whole(&self) -> bool {
        self.patience != 0 && !self.lock().ended
    }
}

/// Tiles on a device, as who gives orders sees them.
pub(super) struct DeviceTiles {
    tiles: Arc<Tiles>,
    device: Device,
    /// What the gate holds, weakly.
    resident: Arc<dyn Parkable>,
}

impl DeviceTiles {
    /// Puts the tiles of a grid at rest on a device.
    pub(super) fn start(device: &Device, start: Start<'_>) -> Result<DeviceTiles> {
        let cut = start.cut;
        let kernel = match cut.rows {
            2 => tile::two::kernel(),
            4 => tile::four::kernel(),
            _ => tile::eight::kernel(),
        };
        // SAFETY: `Cut` makes cells, board and fields as long as the kernel's indices reach: a patch exists only inside the grid,
        // fields and profile are read only inside it, private cells are `count * strips * 64 * rows`, the log, the rings and the
        // drives are indexed through masks of their lengths, slots are below 256, sources below `SOURCES` (`WaveActors`), whose
        // amounts of a round lie below 64. Blocks have at most 16 strips, the number for which edges have room. Divisors
        // are constants and `across`, which is not 0.
        let kernel = unsafe { kernel.with_block_size(32, cut.strips, 1).unchecked() };
        let kernel = device.kernel(&kernel)?;
        let cells = cut.size[0] as usize * cut.size[1] as usize;
        let fields =
            || Ok::<_, perpetua_device::Error>([device.zeros::<f32>(cells)?, device.zeros::<f32>(cells)?]);
        let tiles = Tiles {
            kernel,
            cut,
            pace: start.pace,
            edge: start.edge,
            // In the interpreter who finds nothing gives its turn away.
            patience: match device.info().compute_capability {
                Some(_) => PATIENCE,
                None => 0,
            },
            stream: device.create_stream()?,
            copies: device.create_stream()?,
            orders: device.mapped((RING as usize) * VECTORS)?,
            receipts: device.mapped(RING as usize)?,
            answers: device.mapped(RING as usize)?,
            reports: device.mapped(4)?,
            log: device.zeros(LOG as usize * VECTORS)?,
            board: device.zeros(cut.board())?,
            progress: device.zeros(LOG as usize)?,
            cells: device.upload(&cut.spread(start.slots))?,
            media: device.upload(&start.table)?,
            drive: device.upload(&bits(start.drives))?,
            fields: [fields()?, fields()?],
            state: Mutex::new(State {
                pushed: 0,
                entry: 0,
                step: 0,
                running: false,
                ended: false,
                table: start.table,
                sources: Vec::new(),
                target: None,
                pair: 0,
                saved: 0,
            }),
        };
        device.default_stream().synchronize()?;
        let tiles = Arc::new(tiles);
        let resident: Arc<dyn Parkable> = Arc::clone(&tiles) as Arc<dyn Parkable>;
        match device.context().gate() {
            Some(gate) => gate.admit(&resident)?,
            None => tiles.unpark()?,
        }
        let grid = DeviceTiles {
            tiles,
            device: device.clone(),
            resident,
        };
        // They are all there when they have begun.
        grid.tiles.through(1, LEAVE)?;
        Ok(grid)
    }
}

impl Engine for DeviceTiles {
    fn push(&mut self, order: &Order) -> Result<u32> {
        loop {
            let mut state = self.tiles.lock();
            if state.running {
                return Ok(self.tiles.put(&mut state, order)?);
            }
            if state.ended {
                return Err(Error::Actors {
                    cannot: "take orders: they have been stopped".into(),
                    instead: "start anew",
                });
            }
            // Somebody has parked them for a moment; what they begin with again must come first.
            drop(state);
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    fn taken(&mut self, number: u32) -> Result<Taken> {
        let [step, ..] = self.tiles.receipt(number)?;
        Ok(Taken { step })
    }

    fn wait(&mut self, number: u32) -> Result<()> {
        let [_, entry, ..] = self.tiles.receipt(number)?;
        Ok(self.tiles.through(entry, LONGEST)?)
    }

    fn answer(&mut self, number: u32) -> Result<(f32, u32)> {
        let found = self.tiles.until(LONGEST, || {
            let answer = read(&self.tiles.answers, number % RING);
            (answer[3] == number.wrapping_add(1)).then_some(answer)
        })?;
        Ok((f32::from_bits(found[0]), found[1]))
    }

    fn saved(&mut self) -> Result<(Vec<f32>, Vec<f32>)> {
        let pair = self.tiles.lock().saved;
        let [now, before] = &self.tiles.fields[pair];
        Ok((self.tiles.copies.read(now)?, self.tiles.copies.read(before)?))
    }

    fn supply(&mut self, from: u64, rows: &[[f32; SOURCES]]) -> Result<()> {
        let bits = bits(rows);
        let at = (from % DRIVES) as usize * SOURCES;
        let first = bits.len().min(DRIVES as usize * SOURCES - at);
        let drive = &self.tiles.drive;
        if first > 0 {
            self.tiles
                .copies
                .write(&drive.slice(at..at + first)?, &bits[..first])?;
        }
        if first < bits.len() {
            self.tiles
                .copies
                .write(&drive.slice(..bits.len() - first)?, &bits[first..])?;
        }
        self.tiles.copies.synchronize()?;
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        let end = || self.tiles.lock().ended = true;
        match self.device.context().gate() {
            Some(gate) => gate.parked(end)?,
            None => {
                self.tiles.park()?;
                end();
            }
        }
        Ok(())
    }

    fn stays(&self) -> bool {
        true
    }

    fn form(&self) -> String {
        let cut = self.tiles.cut;
        format!(
            "tile actors: {} resident blocks, 64 x {} cells with halos of {}",
            cut.count(),
            cut.high(),
            cut.span
        )
    }

    fn ahead(&self) -> u32 {
        (self.tiles.pace.ahead + 2) * self.tiles.pace.chunk
    }
}

impl Drop for DeviceTiles {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::error!(%error, "resident tiles do not leave their device");
        }
        let _ = &self.resident;
    }
}
