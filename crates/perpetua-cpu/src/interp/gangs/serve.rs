//! What code calls the host for: operators, accesses and faults, lane by lane, as the interpreter's own operations do them.

use super::*;

impl Group {
    pub(super) fn raise(
        &mut self,
        program: &Program,
        launch: &Launch<'_>,
        pc: u32,
        site: u32,
        lane: usize,
        operands: [u64; record::OPERANDS],
    ) {
        let gang = self.gang();
        let header = *self.header();
        let (block, in_grid) = self.block(launch);
        let number = self.gangs[gang].first as u32 + lane as u32;
        if self.dead.0 != in_grid {
            self.dead.0 = in_grid;
            self.dead.1.fill(0);
        }
        self.dead.1[gang] |= 1 << lane;
        let turns = (header.budget_before - header.budget).max(0) as u64;
        let when = (header.phase, turns, pc, number);
        let earlier = |(block, first, _): &(u64, Moment, _)| (*block, *first) <= (in_grid, when);
        if self.fault.as_ref().is_some_and(earlier) {
            return;
        }
        if let Some(site) = program.sites.get(site as usize) {
            let fault = Fault {
                kernel: program.name.clone(),
                source: program.source.clone(),
                site: site.clone(),
                block,
                thread: launch.shape.thread(number as usize),
                operands,
            };
            self.fault = Some((in_grid, when, Box::new(fault)));
        }
    }

    /// A lane's part of an operand, zero-extended.
    pub(super) fn operand(&self, slots: usize, number: usize, form: (Given, u32), lane: usize) -> u64 {
        given(
            bytemuck::cast_slice(&self.state),
            slots + number * SLOT,
            form,
            lane,
        )
    }

    /// Puts a lane's result, zero-extended, where code finds it.
    pub(super) fn result(&mut self, slots: usize, number: usize, form: (Given, u32), lane: usize, bits: u64) {
        let bytes = bytemuck::cast_slice_mut(&mut self.state);
        give(bytes, slots + number * SLOT, form, lane, bits);
    }

    /// Evaluates an operator for the lanes of `mask` as the interpreter does.
    pub(super) fn evaluate(
        &mut self,
        site: &Site,
        slots: usize,
        mask: u64,
        types: &[Scalar],
        result: Scalar,
        apply: impl FnOnce(Level, &[u64], &[WordLines], &mut [Line]),
    ) {
        let mut words = [[Line::ZERO; 8]; 3];
        for (number, (word, s)) in words.iter_mut().zip(types).enumerate() {
            for lane in lanes(mask) {
                let bits = self.operand(slots, number, site.ins[number], lane);
                eval::put(&mut word[..s.size() as usize], s.size(), lane, bits);
            }
        }
        let mut out = [Line::ZERO; 8];
        apply(self.level, &[mask], &words, &mut out[..result.size() as usize]);
        for lane in lanes(mask) {
            let bits = eval::get(&out[..result.size() as usize], result.size(), lane);
            self.result(slots, site.ins.len(), site.outs[0], lane, bits);
        }
    }

    /// Does what a site is about; gives the lanes that are left.
    pub(super) fn serve(
        &mut self,
        installed: &Installed,
        launch: &Launch<'_>,
        site: &Site,
        mut mask: u64,
    ) -> u64 {
        let program = &installed.program;
        let slots = installed.code.layout.slots;
        match &site.what {
            What::Unary(op, s) => {
                let r = result_scalar(op.row().result, *s);
                self.evaluate(site, slots, mask, &[*s], r, |level, m, words, out| {
                    eval::unary(level, *op, *s, m, part(words, 0, *s), out);
                });
            }
            What::Binary(op, s) | What::Divide(op, s, _) => {
                if let What::Divide(_, _, first) = site.what {
                    mask = self.divisions(program, launch, site, slots, mask, first);
                }
                let second = match op.row().second {
                    Second::Same => *s,
                    Second::Amount => s.to_unsigned(),
                };
                let r = result_scalar(op.row().result, *s);
                self.evaluate(site, slots, mask, &[*s, second], r, |level, m, words, out| {
                    let (a, b) = (part(words, 0, *s), part(words, 1, second));
                    eval::binary(level, *op, *s, m, a, b, out);
                });
            }
            What::Ternary(op, s) => {
                let first = match op {
                    perpetua_ir::ops::TernaryOp::Select => Scalar::Bool,
                    _ => *s,
                };
                self.evaluate(site, slots, mask, &[first, *s, *s], *s, |level, m, words, out| {
                    let abc = (part(words, 0, first), part(words, 1, *s), part(words, 2, *s));
                    eval::ternary(level, *op, *s, m, abc, out);
                });
            }
            What::Cast(from, to) => {
                self.evaluate(site, slots, mask, &[*from], *to, |level, m, words, out| {
                    eval::cast(level, *from, *to, m, part(words, 0, *from), out);
                });
            }
            What::Access(access, kind) => {
                mask = self.access(program, launch, site, slots, mask, *access, *kind);
            }
            What::PrivateLoad(place, base, bytes) | What::PrivateStore(place, base, bytes) => {
                let stores = matches!(site.what, What::PrivateStore(..));
                let (layout, operands) = (&installed.code.layout, [*place, *base, *bytes]);
                mask = self.private(program, launch, site, layout, mask, operands, stores);
            }
            What::Clock => {
                let now = launch.clock();
                for lane in lanes(mask) {
                    self.result(slots, site.ins.len(), site.outs[0], lane, now);
                }
            }
            What::Print(number) => {
                if let (Some(sink), Some(print)) = (launch.print, program.prints.get(*number as usize)) {
                    let first = self.gang();
                    let first = self.gangs[first].first as usize;
                    let (block, _) = self.block(launch);
                    for lane in lanes(mask) {
                        let bits = (0..site.ins.len()).map(|i| self.operand(slots, i, site.ins[i], lane));
                        let text = print.format(&bits.collect::<Vec<u64>>());
                        sink(&Printed {
                            text: &text,
                            line: print.line,
                            block,
                            thread: launch.shape.thread(first + lane),
                        });
                    }
                }
            }
            What::Fault(number) => {
                let types = program.sites.get(*number as usize).map(|s| s.operands.clone());
                let types = types.unwrap_or_default();
                for lane in lanes(mask) {
                    let mut operands = [0; record::OPERANDS];
                    for (i, (operand, s)) in operands.iter_mut().zip(&types).enumerate() {
                        *operand = extend(*s, self.operand(slots, i, site.ins[i], lane));
                    }
                    self.raise(program, launch, site.pc, *number, lane, operands);
                }
                mask = 0;
            }
        }
        mask
    }

    pub(super) fn divisions(
        &mut self,
        program: &Program,
        launch: &Launch<'_>,
        site: &Site,
        slots: usize,
        mut mask: u64,
        first: u32,
    ) -> u64 {
        let What::Divide(op, s, _) = site.what else {
            return mask;
        };
        for lane in lanes(mask) {
            let [a, b] = [0, 1].map(|i| self.operand(slots, i, site.ins[i], lane));
            if let Some(kind) = division_fault(op, s, a, b) {
                let (number, second) = match kind {
                    FaultKind::DivisionByZero => (first, 0),
                    _ => (first + 1, extend(s, b)),
                };
                self.raise(
                    program,
                    launch,
                    site.pc,
                    number,
                    lane,
                    [extend(s, a), second, 0, 0],
                );
                mask &= !(1 << lane);
            }
        }
        mask
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one access")]
    /// The sum of a lane's steps, or `None` for one that has faulted.
    pub(super) fn locate(
        &mut self,
        program: &Program,
        launch: &Launch<'_>,
        site: &Site,
        slots: usize,
        lane: usize,
        steps: &[super::super::program::IndexStep],
        run: u64,
    ) -> Option<u64> {
        let mut sum = 0;
        for (i, step) in steps.iter().enumerate() {
            let index = extend(step.ty, self.operand(slots, i, site.ins[i], lane));
            let len = step.length.of(run);
            if index >= len {
                self.raise(program, launch, site.pc, step.site, lane, [index, len, 0, 0]);
                return None;
            }
            sum += index * u64::from(step.stride);
        }
        Some(sum)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one access")]
    pub(super) fn access(
        &mut self,
        program: &Program,
        launch: &Launch<'_>,
        site: &Site,
        slots: usize,
        mut mask: u64,
        access: u32,
        kind: AccessKind,
    ) -> u64 {
        let place = &program.accesses[access as usize];
        let view = VIEWS + place.region as usize * VIEW_BYTES;
        let (base, elements) = (self.get(view) as *mut u8, self.get(view + 8));
        let steps = place.steps.len();
        for lane in lanes(mask) {
            let found = self.locate(program, launch, site, slots, lane, &place.steps, elements);
            let Some(offset) = found else {
                mask &= !(1 << lane);
                continue;
            };
            let at = base.wrapping_add(offset as usize + place.offset as usize);
            match kind {
                AccessKind::Load => {
                    for (i, (s, inside, _)) in place.leaves.iter().enumerate() {
                        // SAFETY: as in `Machine::load`: all indices were below their lengths, so the leaf lies in the region, aligned.
                        let bits = unsafe { read(at.wrapping_add(*inside as usize), s.size()) };
                        self.result(slots, site.ins.len() + i, site.outs[i], lane, bits);
                    }
                }
                AccessKind::Store => {
                    for (i, (s, inside, _)) in place.leaves.iter().enumerate() {
                        let bits = self.operand(slots, steps + i, site.ins[steps + i], lane);
                        // SAFETY: as above; the verifier lets no store to read-only memory pass.
                        unsafe { write(at.wrapping_add(*inside as usize), s.size(), bits) };
                    }
                }
                AccessKind::Atomic(s, act, order) => {
                    let value = |i: usize| self.operand(slots, steps + i, site.ins[steps + i], lane);
                    let operands = match act {
                        AtomicKind::Load => [0, 0],
                        AtomicKind::Store | AtomicKind::Update(_) => [value(0), 0],
                        AtomicKind::CompareExchange => [value(0), value(1)],
                    };
                    let at = at.wrapping_add(place.leaves.first().map_or(0, |l| l.1) as usize);
                    // SAFETY: as above, for 32- and 64-bit scalars, the only ones that the verifier lets atomics have.
                    let old = unsafe { perform_access(at, s, act, operands, order) };
                    if let Some(out) = site.outs.first() {
                        self.result(slots, site.ins.len(), *out, lane, old);
                    }
                }
                AccessKind::Words { stores } => {
                    let parts = place
                        .leaves
                        .iter()
                        .map(|(_, at, _)| *at as usize / 4 % 4)
                        .enumerate();
                    if stores {
                        let mut words = [0; 4];
                        for (i, at) in parts {
                            words[at] = self.operand(slots, steps + i, site.ins[steps + i], lane) as u32;
                        }
                        // SAFETY: as in `Machine::words`.
                        unsafe { super::super::memory::store_words(at, words) };
                    } else {
                        // SAFETY: as in `Machine::words`.
                        let words = unsafe { super::super::memory::load_words(at) };
                        for (i, at) in parts {
                            self.result(slots, site.ins.len() + i, site.outs[i], lane, words[at].into());
                        }
                    }
                }
            }
        }
        mask
    }

    /// A lane's array in the frame: elements of `bytes` bytes, of all lanes, one behind the other.
    #[expect(clippy::too_many_arguments, reason = "the parts of one access")]
    pub(super) fn private(
        &mut self,
        program: &Program,
        launch: &Launch<'_>,
        site: &Site,
        Layout { slots, spills, .. }: &Layout,
        mut mask: u64,
        [number, base, bytes]: [u32; 3],
        stores: bool,
    ) -> u64 {
        let (slots, spills) = (*slots, *spills);
        let place = &program.privates[number as usize];
        let steps = place.steps.len();
        let frame = match self.frames.is_empty() {
            true => {
                let state = self.state.as_mut_ptr().cast::<u8>();
                state.wrapping_add(spills)
            }
            false => self.header().gang as *mut u8,
        };
        for lane in lanes(mask) {
            let found = self.locate(program, launch, site, slots, lane, &place.steps, 0);
            let Some(element) = found else {
                mask &= !(1 << lane);
                continue;
            };
            for (i, (size, _)) in place.values.iter().enumerate() {
                let element = element as usize + place.start as usize + i;
                if element >= place.registers.len() {
                    continue;
                }
                let wide = if *size == 8 { 8 } else { 4 };
                let at = base as usize + element * bytes as usize + lane * wide;
                let at = frame.wrapping_add(at);
                if stores {
                    let bits = self.operand(slots, steps + i, site.ins[steps + i], lane);
                    // SAFETY: the element is one of the array's, and the lane one of the gang's; so it lies in the gang's frame,
                    // which the layout makes long enough, aligned.
                    unsafe { write(at, wide as u32, bits) };
                } else {
                    // SAFETY: as above.
                    let bits = unsafe { read(at, wide as u32) };
                    self.result(slots, site.ins.len() + i, site.outs[i], lane, bits);
                }
            }
        }
        mask
    }
}

/// Eight bytes; zero where there are none.
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
    u64::from_ne_bytes(word.unwrap_or_default())
}

/// A lane's part of what code has put there, zero-extended.
pub(super) fn given(bytes: &[u8], at: usize, (given, size): (Given, u32), lane: usize) -> u64 {
    let bits = match given {
        Given::One => word(bytes, at),
        Given::Affine(step) => word(bytes, at).wrapping_add((i64::from(step) * lane as i64) as u64),
        Given::Mask => return word(bytes, at) >> lane & 1,
        Given::Lanes if size == 8 => word(bytes, at + 8 * lane),
        Given::Lanes => {
            let at = at + 4 * lane;
            let word = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
            u64::from(u32::from_ne_bytes(word.unwrap_or_default()))
        }
    };
    bits & u64::MAX >> (64 - 8 * size)
}

/// Puts a lane's part where code takes it.
pub(super) fn give(bytes: &mut [u8], at: usize, (given, size): (Given, u32), lane: usize, bits: u64) {
    let old = word(bytes, at);
    let mut put = |at: usize, new: &[u8]| {
        if let Some(to) = bytes.get_mut(at..at + new.len()) {
            to.copy_from_slice(new);
        }
    };
    match given {
        Given::One | Given::Affine(_) => put(at, &bits.to_ne_bytes()),
        Given::Mask => put(at, &(old & !(1 << lane) | (bits & 1) << lane).to_ne_bytes()),
        Given::Lanes if size == 8 => put(at + 8 * lane, &bits.to_ne_bytes()),
        Given::Lanes => put(at + 4 * lane, &(bits as u32).to_ne_bytes()),
    }
}

fn part(words: &[WordLines], number: usize, s: Scalar) -> &[Line] {
    words.get(number).map_or(&[], |w| &w[..s.size() as usize])
}

/// Bits of an integer, sign-extended if it is signed.
fn extend(s: Scalar, bits: u64) -> u64 {
    let shift = 64 - s.bits();
    match s.is_signed_int() {
        true => (((bits << shift) as i64) >> shift) as u64,
        false => bits,
    }
}

/// The lanes of a mask, lowest first.
pub(super) fn lanes(mask: u64) -> impl Iterator<Item = usize> {
    super::super::mask::bits(mask)
}

/// Reads a scalar.
///
/// # Safety
/// As for [`Cell::load`].
unsafe fn read(at: *mut u8, size: u32) -> u64 {
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

/// Writes one.
///
/// # Safety
/// As for [`Cell::store`].
unsafe fn write(at: *mut u8, size: u32, bits: u64) {
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
