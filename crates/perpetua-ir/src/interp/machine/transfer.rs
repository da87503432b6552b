//! Plain loads and stores. The only code, with `atomic`, that follows the addresses that `locate` finds.

use super::super::error::{AccessKind, InterpError};
use super::super::mask;
use super::super::memory::{Cell, copy_run};
use super::super::program::SharedPlace;
use super::super::race::{Detector, Touch};
use super::locate::{Located, Shape, run_end};
use super::{Launch, Machine, Next};
use crate::ops::eval::{Line, WORD, view_mut};

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

/// Address of `len` bytes from byte `start` on of a register, if it has so many.
fn lanes_of(lines: &mut [Line], start: usize, len: usize) -> Option<*mut u8> {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(lines);
    bytes.get_mut(start..start + len).map(<[u8]>::as_mut_ptr)
}

/// Copies `count` scalars of `size` bytes.
///
/// # Safety
/// As for [`copy_run`].
unsafe fn copy_scalars(size: u32, from: *mut u8, to: *mut u8, count: usize) {
    // SAFETY: passed on.
    unsafe {
        match size {
            1 => copy_run::<u8>(from, to, count),
            2 => copy_run::<u16>(from, to, count),
            4 => copy_run::<u32>(from, to, count),
            _ => copy_run::<u64>(from, to, count),
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

    /// As [`Machine::find`], for all lanes at once where they are one run: the first lane, their number, its offset.
    fn find_run(&self, access: &SharedPlace) -> Option<(usize, usize, u64)> {
        let [(s, _, _)] = access.leaves.as_slice() else {
            return None;
        };
        let elements = self.views[access.region as usize].elements;
        self.one_run(&access.steps, access.offset.into(), elements, s.size().into())
    }

    pub(super) fn load(
        &mut self,
        launch: &Launch<'_>,
        access: u32,
        mut races: Option<&mut Detector>,
    ) -> Result<Next, InterpError> {
        let access = &launch.program.accesses[access as usize];
        let view = self.views[access.region as usize];
        if let (None, Some((first, count, offset)), [(s, inside, reg)]) =
            (&races, self.find_run(access), access.leaves.as_slice())
        {
            let size = s.size() as usize;
            let lanes = lanes_of(&mut self.regs[*reg as usize], first * size, count * size);
            let base = view.ptr.wrapping_add(*inside as usize + offset as usize);
            if let Some(lanes) = lanes {
                // SAFETY: as below, for a run of `count` elements from `offset` on, of which the first and the last are in
                // bounds; the register has room for as many.
                unsafe { copy_scalars(s.size(), base, lanes, count) };
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
                let mut lines: Vec<Line> = std::mem::take(&mut self.regs[*reg as usize]);
                // SAFETY: `find` gives, for each lane of `m`, the offset of an element inside the region: every index was
                // below its length, and lengths times strides lie within what `Launch` checked or laid out (buffers: as many
                // elements as their bytes hold; variables and tables: their types' sizes). The leaf lies in that element at
                // an aligned offset, for strides, element offsets and bases are aligned. A buffer's memory is valid, and
                // racing accesses atomic, by `BufferRef`'s contract; other regions belong to this machine alone. Registers are
                // allocations of their own.
                unsafe { by_size!(s.size(), &mut lines, w, gather(&self.located, m, base)) };
                self.regs[*reg as usize] = lines;
            }
        }
        Ok(Next::Check)
    }

    pub(super) fn store(
        &mut self,
        launch: &Launch<'_>,
        access: u32,
        mut races: Option<&mut Detector>,
    ) -> Result<Next, InterpError> {
        let access = &launch.program.accesses[access as usize];
        let view = self.views[access.region as usize];
        if let (None, Some((first, count, offset)), [(s, inside, reg)]) =
            (&races, self.find_run(access), access.leaves.as_slice())
        {
            let size = s.size() as usize;
            let lanes = lanes_of(&mut self.regs[*reg as usize], first * size, count * size);
            let base = view.ptr.wrapping_add(*inside as usize + offset as usize);
            if let Some(lanes) = lanes {
                // SAFETY: as for loads.
                unsafe { copy_scalars(s.size(), lanes, base, count) };
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
                self.watch(races, launch, access, m, w, AccessKind::Store)?;
            }
            for (s, offset, reg) in &access.leaves {
                let base = view.ptr.wrapping_add(*offset as usize);
                let mut lines: Vec<Line> = std::mem::take(&mut self.regs[*reg as usize]);
                // SAFETY: as in `load`. The verifier lets no store to read-only memory pass, and a launch takes only
                // writable memory.
                unsafe { by_size!(s.size(), &mut lines, w, scatter(&self.located, m, base)) };
                self.regs[*reg as usize] = lines;
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
    ) -> Result<(), InterpError> {
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
