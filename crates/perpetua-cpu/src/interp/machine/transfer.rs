//! Plain loads and stores. The only code, with `atomic`, that follows the addresses that `locate` finds.

use super::super::error::{AccessKind, InterpError};
use super::super::mask;
use super::super::memory::{Cell, copy_run};
use super::super::program::SharedPlace;
use super::super::race::{Detector, Touch};
use super::affine::{Form, Sides};
use super::locate::{Everywhere, Located, Shape, run_end};
use super::{Launch, Machine, Next};
use crate::eval::{WORD, view_mut};

/// Loads the scalars of lanes `m` of a word from where they are found, `base` further on.
///
/// # Safety
/// For each lane of `m` the found offset from `base` must be that of a `C`, aligned, in memory that is valid for
/// reads and writes and in which racing accesses are atomic; `to` is not in that memory.
unsafe fn gather<C: Cell>(located: &Located, m: u64, base: *mut u8, to: &mut [C; WORD]) {
    let size = size_of::<C>();
    let lanes = to.as_mut_ptr().cast::<u8>();
    match located.shape {
        Shape::Same(offset) => {
            // SAFETY: some lane is in `m`, and this is its offset.
            *to = [unsafe { C::load(base.add(offset as usize)) }; WORD];
        }
        Shape::Run { first, offset } => {
            let count = m.count_ones() as usize;
            // SAFETY: the lanes of `m` are consecutive from `first` on, their elements from `offset` on; so both runs
            // have `count` elements, `first + count <= WORD`, and register and memory do not overlap.
            unsafe { copy_run::<C>(base.add(offset as usize), lanes.add(first * size), count) };
        }
        Shape::Runs(starts) => {
            for start in mask::bits(starts) {
                let count = run_end(starts, m, start) - start;
                let offset = located.at[start] as usize;
                // SAFETY: as for one run: lanes `start` to `start + count` are in `m` and at consecutive elements.
                unsafe { copy_run::<C>(base.add(offset), lanes.add(start * size), count) };
            }
        }
        Shape::Each => {
            for i in mask::bits(m) {
                // SAFETY: lane `i` is in `m`.
                to[i] = unsafe { C::load(base.add(located.at[i] as usize)) };
            }
        }
    }
}

/// Stores the scalars of lanes `m`, lowest lane first.
///
/// # Safety
/// As for [`gather`], with `from` for `to`.
unsafe fn scatter<C: Cell>(located: &Located, m: u64, base: *mut u8, from: &mut [C; WORD]) {
    let size = size_of::<C>();
    let lanes = from.as_mut_ptr().cast::<u8>();
    match located.shape {
        Shape::Same(offset) => {
            // Of several lanes that store to one place the last one wins.
            let last = WORD - 1 - m.leading_zeros() as usize;
            // SAFETY: some lane is in `m`, and this is its offset.
            unsafe { from[last].store(base.add(offset as usize)) };
        }
        Shape::Run { first, offset } => {
            let count = m.count_ones() as usize;
            // SAFETY: as in `gather`.
            unsafe { copy_run::<C>(lanes.add(first * size), base.add(offset as usize), count) };
        }
        Shape::Runs(starts) => {
            for start in mask::bits(starts) {
                let count = run_end(starts, m, start) - start;
                let offset = located.at[start] as usize;
                // SAFETY: as in `gather`.
                unsafe { copy_run::<C>(lanes.add(start * size), base.add(offset), count) };
            }
        }
        Shape::Each => {
            for i in mask::bits(m) {
                // SAFETY: lane `i` is in `m`.
                unsafe { from[i].store(base.add(located.at[i] as usize)) };
            }
        }
    }
}

/// Calls `$f` with the cell type of scalars of `$size` bytes and word `$w` of `$lines`.
macro_rules! by_size {
    ($size:expr, $lines:expr, $w:expr, $f:ident($located:expr, $m:expr, $base:expr)) => {
        match $size {
            1 => {
                if let Some(word) = view_mut::<u8>($lines).get_mut($w) {
                    $f::<u8>($located, $m, $base, word)
                }
            }
            2 => {
                if let Some(word) = view_mut::<u16>($lines).get_mut($w) {
                    $f::<u16>($located, $m, $base, word)
                }
            }
            4 => {
                if let Some(word) = view_mut::<u32>($lines).get_mut($w) {
                    $f::<u32>($located, $m, $base, word)
                }
            }
            _ => {
                if let Some(word) = view_mut::<u64>($lines).get_mut($w) {
                    $f::<u64>($located, $m, $base, word)
                }
            }
        }
    };
}

/// Sides and steps with fewer rows, where they follow each other as lanes do.
fn collapsed([x, y, z]: Sides, [by_x, by_y, by_z]: [i64; 3]) -> ([usize; 3], [i64; 3]) {
    let (mut sides, mut steps) = ([x as usize, y as usize, z as usize], [by_x, by_y, by_z]);
    if x == 1 {
        (sides, steps) = ([sides[1], 1, sides[2]], [by_y, 0, by_z]);
    } else if y > 1 && by_y == by_x * i64::from(x) {
        sides = [sides[0] * sides[1], 1, sides[2]];
    }
    if sides[1] == 1 && z > 1 && by_z == steps[0] * sides[0] as i64 {
        sides = [sides[0] * sides[2], 1, 1];
    }
    (sides, steps)
}

/// Hands over the lanes by rows along x: where the first one's scalar lies, how far it is from one to the next, and the lanes.
#[inline]
fn by_rows<C>(
    base: *mut u8,
    sides: Sides,
    steps: [i64; 3],
    lanes: &mut [C],
    mut row: impl FnMut(*mut u8, i64, &mut [C]),
) {
    let ([x, y, z], [by_x, by_y, by_z]) = collapsed(sides, steps);
    let mut rows = lanes.chunks_exact_mut(x);
    for k in 0..z {
        for (j, lanes) in (0..y).zip(&mut rows) {
            let at = base.wrapping_offset((k as i64 * by_z + j as i64 * by_y) as isize);
            row(at, by_x, lanes);
        }
    }
}

/// Loads one scalar for each lane from where they all find it.
///
/// # Safety
/// At `base`, and so many `steps` further on along each of the `sides`, there must be a `C`, aligned, in memory that is valid for
/// reads and writes and in which racing accesses are atomic; `lanes` is not in that memory.
unsafe fn load_box<C: Cell>(base: *mut u8, sides: Sides, steps: [i64; 3], lanes: &mut [C]) {
    by_rows(base, sides, steps, lanes, |at, by_x, row| {
        // SAFETY: the row's lanes are `by_x` from each other, which is a `C` each time; `row` has as many.
        unsafe {
            if by_x == size_of::<C>() as i64 {
                copy_run::<C>(at, row.as_mut_ptr().cast(), row.len());
            } else if by_x == 0 {
                row.fill(C::load(at));
            } else {
                for (i, lane) in row.iter_mut().enumerate() {
                    *lane = C::load(at.wrapping_offset(i as isize * by_x as isize));
                }
            }
        }
    });
}

/// Stores each lane's scalar, lowest lane first.
///
/// # Safety
/// As for [`load_box`].
unsafe fn store_box<C: Cell>(base: *mut u8, sides: Sides, steps: [i64; 3], lanes: &mut [C]) {
    by_rows(base, sides, steps, lanes, |at, by_x, row| {
        // SAFETY: as in `load_box`.
        unsafe {
            if by_x == size_of::<C>() as i64 {
                copy_run::<C>(row.as_mut_ptr().cast(), at, row.len());
            } else {
                for (i, lane) in row.iter().enumerate() {
                    lane.store(at.wrapping_offset(i as isize * by_x as isize));
                }
            }
        }
    });
}

/// Calls `$f` with the cell type of scalars of `$size` bytes and all lanes of `$lines`.
macro_rules! box_by_size {
    ($size:expr, $lines:expr, $f:ident($base:expr, $sides:expr, $steps:expr)) => {
        match $size {
            1 => $f::<u8>($base, $sides, $steps, view_mut::<u8>($lines).as_flattened_mut()),
            2 => $f::<u16>($base, $sides, $steps, view_mut::<u16>($lines).as_flattened_mut()),
            4 => $f::<u32>($base, $sides, $steps, view_mut::<u32>($lines).as_flattened_mut()),
            _ => $f::<u64>($base, $sides, $steps, view_mut::<u64>($lines).as_flattened_mut()),
        }
    };
}

/// Reads one scalar, zero-extended.
///
/// # Safety
/// As for [`Cell::load`].
unsafe fn load_one(size: u32, at: *mut u8) -> u64 {
    // SAFETY: passed on.
    unsafe {
        match size {
            1 => u8::load(at).into(),
            2 => u16::load(at).into(),
            4 => u32::load(at).into(),
            _ => u64::load(at),
        }
    }
}

/// Writes one scalar.
///
/// # Safety
/// As for [`Cell::store`].
unsafe fn store_one(size: u32, at: *mut u8, bits: u64) {
    // SAFETY: passed on.
    unsafe {
        match size {
            1 => (bits as u8).store(at),
            2 => (bits as u16).store(at),
            4 => (bits as u32).store(at),
            _ => bits.store(at),
        }
    }
}

impl Machine {
    /// Where the lanes of word `w` find an access; the lanes that do.
    pub(super) fn find(&mut self, launch: &Launch<'_>, access: &SharedPlace, w: usize) -> u64 {
        let unit = match access.leaves.as_slice() {
            [(s, _, _)] => u64::from(s.size()),
            _ => 0,
        };
        let elements = self.views[access.region as usize].elements;
        let start = access.offset.into();
        self.locate(launch.program, &access.steps, start, elements, unit, w)
    }

    /// As [`Machine::find`], for all lanes at once.
    fn find_all(&self, access: &SharedPlace) -> Option<Everywhere> {
        let elements = self.views[access.region as usize].elements;
        self.everywhere(&access.steps, access.offset.into(), elements)
    }

    pub(super) fn load(
        &mut self,
        launch: &Launch<'_>,
        access: u32,
        mut races: Option<&mut Detector>,
    ) -> Result<Next, Box<InterpError>> {
        let access = &launch.program.accesses[access as usize];
        let view = self.views[access.region as usize];
        if let (None, Some(found)) = (&races, self.find_all(access)) {
            for (s, inside, reg) in &access.leaves {
                let base = view.ptr.wrapping_add(found.offset as usize + *inside as usize);
                if found.steps == [0; 3] {
                    // SAFETY: as below: all lanes' indices are in bounds.
                    self.set(*reg, Form::Uniform(unsafe { load_one(s.size(), base) }));
                    continue;
                }
                let sides = self.sides;
                let lines = self.regs[*reg as usize].result(self.words);
                // SAFETY: as below: all lanes' indices, those of inactive ones too, are in bounds, and lanes find their elements at
                // these steps from each other.
                unsafe { box_by_size!(s.size(), lines, load_box(base, sides, found.steps)) };
            }
            return Ok(Next::On);
        }
        for w in 0..self.active.len() {
            if self.active[w] == 0 {
                continue;
            }
            let m = self.find(launch, access, w);
            if m == 0 {
                continue;
            }
            if let Some(races) = races.as_deref_mut() {
                self.watch(races, launch, access, m, w, AccessKind::Load)?;
            }
            for (s, offset, reg) in &access.leaves {
                let base = view.ptr.wrapping_add(*offset as usize);
                let lines = self.regs[*reg as usize].result(self.words);
                // SAFETY: `find` gives, for each lane of `m`, the offset of an element inside the region: every index was
                // below its length, and lengths times strides lie within what `Launch` checked or laid out (buffers: as many
                // elements as their bytes hold; variables and tables: their types' sizes). The leaf lies in that element at
                // an aligned offset, for strides, element offsets and bases are aligned. A buffer's memory is valid, and
                // racing accesses atomic, by `BufferRef`'s contract; other regions belong to this machine alone. Registers are
                // allocations of their own.
                unsafe { by_size!(s.size(), lines, w, gather(&self.located, m, base)) };
            }
        }
        Ok(Next::Check)
    }

    pub(super) fn store(
        &mut self,
        launch: &Launch<'_>,
        access: u32,
        mut races: Option<&mut Detector>,
    ) -> Result<Next, Box<InterpError>> {
        let access = &launch.program.accesses[access as usize];
        let view = self.views[access.region as usize];
        if let (None, Some(found)) = (&races, self.find_all(access)) {
            let same = found.steps == [0; 3];
            if same || self.whole {
                for (s, inside, reg) in &access.leaves {
                    let base = view.ptr.wrapping_add(found.offset as usize + *inside as usize);
                    if same {
                        // Of several lanes that store to one place the last one wins.
                        let last = mask::last(&self.active);
                        // SAFETY: as in `load`.
                        unsafe { store_one(s.size(), base, self.value(*reg, last)) };
                        continue;
                    }
                    let sides = self.sides;
                    let lines = self.regs[*reg as usize].lanes(sides, self.words);
                    // SAFETY: as in `load`.
                    unsafe { box_by_size!(s.size(), lines, store_box(base, sides, found.steps)) };
                }
                return Ok(Next::On);
            }
        }
        for w in 0..self.active.len() {
            if self.active[w] == 0 {
                continue;
            }
            let m = self.find(launch, access, w);
            if m == 0 {
                continue;
            }
            if let Some(races) = races.as_deref_mut() {
                self.watch(races, launch, access, m, w, AccessKind::Store)?;
            }
            for (s, offset, reg) in &access.leaves {
                let base = view.ptr.wrapping_add(*offset as usize);
                let lines = self.regs[*reg as usize].lanes(self.sides, self.words);
                // SAFETY: as in `load`. The verifier lets no store to read-only memory pass, and a launch takes only
                // writable memory.
                unsafe { by_size!(s.size(), lines, w, scatter(&self.located, m, base)) };
            }
        }
        Ok(Next::Check)
    }

    /// Shows the race detector an access of lanes `m` of word `w`, as found.
    fn watch(
        &self,
        races: &mut Detector,
        launch: &Launch<'_>,
        access: &SharedPlace,
        m: u64,
        w: usize,
        kind: AccessKind,
    ) -> Result<(), Box<InterpError>> {
        for i in mask::bits(m) {
            for (s, offset, _) in &access.leaves {
                races
                    .access(Touch {
                        region: access.region,
                        offset: self.located.offset(i) + u64::from(*offset),
                        size: s.size(),
                        kind,
                        scope: None,
                        lane: (self.part.first + w * WORD + i) as u32,
                        pc: self.pc,
                    })
                    .map_err(|found| InterpError::Race(Box::new(launch.race(*found))))?;
            }
        }
        Ok(())
    }
}
