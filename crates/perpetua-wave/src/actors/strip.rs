//! A tile on a thread: rows of the grid, with as many more above and below as there are steps between two exchanges. Must not know
//! threads.

use super::super::kernels::{leave, swing};
use super::order::{FILL, MEDIUM, ORDER_WORDS, Order, PAINT, SOURCE};
use super::threads::Shared;

/// What is the same for all strips of a grid.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) width: usize,
    pub(super) height: usize,
    /// Rows that tiles overlap by, and steps between two exchanges.
    pub(super) span: usize,
    /// What leaves at the border in a step.
    pub(super) edge: f32,
    /// Stiffnesses of 256 slots, what is kept in each, then the profile of columns and rows.
    pub(super) table: Vec<f32>,
    /// Strips.
    pub(super) count: usize,
}

/// A strip.
pub(super) struct Strip {
    grid: Grid,
    number: usize,
    /// The rows that are its own, in the grid.
    from: usize,
    to: usize,
    /// The grid's row that is its first, halo included; and beyond its last.
    top: usize,
    end: usize,
    now: Vec<f32>,
    before: Vec<f32>,
    keep: Vec<f32>,
    pull: Vec<f32>,
    slots: Vec<u8>,
    walls: Vec<usize>,
    driven: Vec<(usize, usize)>,
    sources: Vec<Order>,
    step: u32,
    margin: usize,
    round: u32,
    level: Level,
}

/// Which instructions the processor has.
#[derive(Clone, Copy, Debug)]
enum Level {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    fn here() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                return Level::Avx512;
            }
            if std::arch::is_x86_feature_detected!("avx2") {
                return Level::Avx2;
            }
        }
        Level::Plain
    }
}

/// A row's numbers, all as long.
struct Row<'a> {
    above: &'a [f32],
    now: &'a [f32],
    below: &'a [f32],
    keep: &'a [f32],
    pull: &'a [f32],
    /// Before, and then next.
    next: &'a mut [f32],
}

/// The cells of a row but the first and the last: the text that the levels share.
#[inline(always)]
fn inner(row: Row<'_>) {
    let n = row.now.len();
    if n < 2 {
        return;
    }
    let (above, below) = (&row.above[..n], &row.below[..n]);
    let (keep, pull, next) = (&row.keep[..n], &row.pull[..n], &mut row.next[..n]);
    for x in 1..n - 1 {
        let around = above[x] + below[x] + row.now[x - 1] + row.now[x + 1] - 4.0 * row.now[x];
        next[x] = swing(row.now[x], next[x], around, keep[x], pull[x]);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn inner_avx2(row: Row<'_>) {
    inner(row);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn inner_avx512(row: Row<'_>) {
    inner(row);
}

impl Strip {
    /// The strip with a number, at rest; `slots` has a byte a cell of the grid.
    pub(super) fn new(grid: &Grid, number: usize, slots: &[u8]) -> Strip {
        let row = |n: usize| n * grid.height / grid.count;
        let (from, to) = (row(number), row(number + 1));
        let (top, end) = (from.saturating_sub(grid.span), (to + grid.span).min(grid.height));
        let cells = (end - top) * grid.width;
        let mut strip = Strip {
            number,
            from,
            to,
            top,
            end,
            now: vec![0.0; cells],
            before: vec![0.0; cells],
            keep: vec![0.0; cells],
            pull: vec![0.0; cells],
            slots: slots[top * grid.width..end * grid.width].to_vec(),
            walls: Vec::new(),
            driven: Vec::new(),
            sources: Vec::new(),
            step: 0,
            margin: grid.span,
            round: 1,
            level: Level::here(),
            grid: grid.clone(),
        };
        strip.refresh();
        strip
    }

    /// Steps done; wraps.
    pub(super) fn steps(&self) -> u32 {
        self.step
    }

    /// The field of a cell, if it is this strip's own.
    pub(super) fn value(&self, [x, y]: [u32; 2]) -> Option<f32> {
        let (x, y) = (x as usize, y as usize);
        let own = x < self.grid.width && (self.from..self.to).contains(&y);
        own.then(|| self.now[(y - self.top) * self.grid.width + x])
    }

    /// Writes what is its own into fields of the whole grid.
    pub(super) fn save(&self, now: &mut [f32], before: &mut [f32]) {
        let w = self.grid.width;
        let (here, there) = (
            (self.from - self.top) * w..(self.to - self.top) * w,
            self.from * w..self.to * w,
        );
        now[there.clone()].copy_from_slice(&self.now[here.clone()]);
        before[there].copy_from_slice(&self.before[here]);
    }

    /// Whether a cell, by its place here, lies on the grid's border.
    fn at_border(&self, at: usize) -> bool {
        let (x, y) = (at % self.grid.width, at / self.grid.width + self.top);
        x == 0 || y == 0 || x + 1 == self.grid.width || y + 1 == self.grid.height
    }

    /// Does an order that changes media or sources.
    pub(super) fn change(&mut self, order: &Order) {
        let w = self.grid.width;
        let [kind, slot, ..] = *order;
        let f64_of = |at: usize| f64::from_bits(u64::from(order[at]) | (u64::from(order[at + 1]) << 32));
        match kind {
            MEDIUM => {
                let slot = (slot & 255) as usize;
                self.grid.table[slot] = f32::from_bits(order[2]);
                self.grid.table[256 + slot] = f32::from_bits(order[3]);
            }
            FILL => {
                for at in self.cells_in(order) {
                    self.slots[at] = slot as u8;
                }
            }
            PAINT => {
                let (center, square) = ([f64_of(2), f64_of(4)], f64_of(6));
                for at in 0..self.slots.len() {
                    let (x, y) = ((at % w) as f64, (at / w + self.top) as f64);
                    let (across, down) = (x - center[0], y - center[1]);
                    if across * across + down * down <= square {
                        self.slots[at] = slot as u8;
                    }
                }
            }
            SOURCE => {
                self.sources.retain(|source| source[1] != slot);
                self.sources.push(*order);
            }
            _ => {}
        }
        self.refresh();
    }

    /// The places here of a box's cells: the words of an order behind its second.
    fn cells_in(&self, order: &Order) -> Vec<usize> {
        let _: [u32; ORDER_WORDS] = *order;
        let w = self.grid.width;
        let [from_x, to_x, from_y, to_y] = [order[2], order[3], order[4], order[5]].map(|n| n as usize);
        let (from_y, to_y) = (from_y.max(self.top), to_y.min(self.end));
        (from_y..to_y.max(from_y))
            .flat_map(|y| (from_x..to_x.min(w)).map(move |x| (y, x)))
            .map(|(y, x)| (y - self.top) * w + x)
            .collect()
    }

    /// What follows from slots and sources.
    fn refresh(&mut self) {
        let (w, table) = (self.grid.width, &self.grid.table);
        for (at, slot) in self.slots.iter().enumerate() {
            let (x, y, slot) = (at % w, at / w + self.top, usize::from(*slot));
            let keep = table[512 + x] * table[512 + w + y] * table[256 + slot];
            self.keep[at] = keep;
            self.pull[at] = (0.5 + 0.5 * keep) * table[slot];
        }
        let inside = |at: &usize| !self.at_border(*at);
        let walls = (0..self.slots.len())
            .filter(|at| self.slots[*at] == 0)
            .filter(inside)
            .collect();
        let driven = self
            .sources
            .iter()
            .flat_map(|source| {
                self.cells_in(source)
                    .into_iter()
                    .map(|at| (at, source[1] as usize))
            })
            .filter(|(at, _)| inside(at))
            .collect();
        (self.walls, self.driven) = (walls, driven);
    }

    /// One step. Waits for neighbours where the halo is used up.
    pub(super) fn step(&mut self, shared: &Shared) {
        if self.margin == 0 {
            self.receive(shared);
            self.margin = self.grid.span;
        }
        self.margin -= 1;
        let (w, h) = (self.grid.width, self.grid.height);
        let first = self.from.saturating_sub(self.margin).max(self.top);
        let end = (self.to + self.margin).min(self.end);
        for y in first..end {
            let at = (y - self.top) * w;
            if y == 0 || y + 1 == h {
                let inner = if y == 0 { at + w } else { at - w };
                for x in 0..w {
                    let inside = self.now[inner + x.clamp(1, w - 2)];
                    self.before[at + x] = leave(self.now[at + x], inside, self.grid.edge);
                }
                continue;
            }
            let row = Row {
                above: &self.now[at - w..at],
                now: &self.now[at..at + w],
                below: &self.now[at + w..at + 2 * w],
                keep: &self.keep[at..at + w],
                pull: &self.pull[at..at + w],
                next: &mut self.before[at..at + w],
            };
            match self.level {
                Level::Plain => inner(row),
                // SAFETY: `Level::here` has found the feature.
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => unsafe { inner_avx2(row) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => unsafe { inner_avx512(row) },
            }
            for (x, inside) in [(0, 1), (w - 1, w - 2)] {
                self.before[at + x] = leave(self.now[at + x], self.now[at + inside], self.grid.edge);
            }
        }
        for (at, source) in &self.driven {
            self.before[*at] += shared.drive(self.step, *source);
        }
        for at in &self.walls {
            self.before[*at] = 0.0;
        }
        std::mem::swap(&mut self.now, &mut self.before);
        self.step = self.step.wrapping_add(1);
        if self.margin == 0 {
            self.send(shared);
        }
    }

    /// Hands its outermost rows to its neighbours.
    fn send(&self, shared: &Shared) {
        let (w, span) = (self.grid.width, self.grid.span);
        let of = |row: usize| (row - self.top) * w..(row - self.top + span) * w;
        let Some([up, down]) = shared.mail.get(self.number) else {
            return;
        };
        let above = (self.number > 0).then(|| (up, of(self.from)));
        let below = (self.number + 1 < self.grid.count).then(|| (down, of(self.to - span)));
        for (mailbox, rows) in above.into_iter().chain(below) {
            let numbers = self.now[rows.clone()].iter().chain(&self.before[rows]);
            mailbox.send(self.round, numbers);
        }
    }

    /// Takes its neighbours' outermost rows.
    fn receive(&mut self, shared: &Shared) {
        let (w, span) = (self.grid.width, self.grid.span);
        let above = self.number.checked_sub(1).and_then(|n| shared.mail.get(n));
        let below = shared.mail.get(self.number + 1);
        let halo = [
            (above.map(|m| &m[1]), 0..span * w),
            (
                below.map(|m| &m[0]),
                (self.to - self.top) * w..(self.end - self.top) * w,
            ),
        ];
        for (mailbox, rows) in halo {
            let Some(mailbox) = mailbox else { continue };
            let mut looks = 0u32;
            while !mailbox.receive(
                self.round,
                self.now[rows.clone()]
                    .iter_mut()
                    .chain(&mut self.before[rows.clone()]),
            ) {
                looks += 1;
                // With more tiles than processors the neighbour may wait for this one.
                if looks.is_multiple_of(256) {
                    std::thread::yield_now();
                }
                std::hint::spin_loop();
            }
        }
        self.round = self.round.wrapping_add(1);
    }
}
