//! In which variable a register's value lies where it crosses from one block of a program to another. Values of a register that never meet
//! have variables of their own, so what differs between lanes in one says nothing of the others; and what no other block needs has none.
//! Knows neither types nor statements.

use crate::verify::{Access, Block, Exit, REGISTER_SLOTS, accesses, predicate_slot, slot};

const WORDS: usize = REGISTER_SLOTS.div_ceil(u64::BITS as usize);

/// A set of slots.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Slots([u64; WORDS]);

impl Slots {
    pub(super) fn insert(&mut self, slot: usize) {
        if let Some(word) = self.0.get_mut(slot / 64) {
            *word |= 1 << (slot % 64);
        }
    }

    pub(super) fn add(&mut self, other: Slots) {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(all, more)| *all |= more);
    }

    pub(super) fn contains(&self, slot: usize) -> bool {
        self.0
            .get(slot / 64)
            .is_some_and(|word| word >> (slot % 64) & 1 != 0)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(i, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(64 * i + bit)
            })
        })
    }
}

/// What a block does to slots.
#[derive(Default)]
struct Own {
    /// Read before anything in the block writes them for sure.
    read: Slots,
    /// Written for sure.
    written: Slots,
    /// Written in some lanes alone: by a guarded instruction, or as the count of a loop.
    partly: Slots,
}

/// What the blocks of a program do to slots.
pub(super) struct Uses {
    own: Vec<Own>,
    /// Blocks, slots, and the instructions that write them, in their order.
    writes: Vec<(u32, u16, u32)>,
}

impl Uses {
    pub(super) fn of(blocks: &[Block]) -> Uses {
        let mut writes = Vec::new();
        let own = blocks.iter().zip(0..);
        let own = own
            .map(|(block, number)| own_of(number, block, &mut writes))
            .collect();
        Uses { own, writes }
    }

    /// What a block writes, in some lanes at least.
    pub(super) fn written(&self, block: usize) -> Slots {
        let mut all = Slots::default();
        if let Some(own) = self.own.get(block) {
            all.add(own.written);
            all.add(own.partly);
        }
        all
    }
}

/// The variables of a program's slots.
pub(super) struct Webs {
    /// For each block and slot the variable where the block begins, then where it ends.
    variables: Vec<[u32; 2]>,
    /// For each block and slot the instruction that writes it last.
    last: Vec<u32>,
    /// Slots that other blocks need behind each block.
    needed: Vec<Slots>,
    /// Slots that a block writes in some lanes alone.
    partly: Vec<Slots>,
    /// Numbers of the slots in use.
    numbers: [u16; REGISTER_SLOTS],
    slots: usize,
}

impl Webs {
    pub(super) fn new(blocks: &[Block], uses: &Uses) -> Webs {
        let own = &uses.own;
        let begins = begins(blocks, own);
        let needed: Vec<Slots> = blocks.iter().map(|block| behind(block, &begins)).collect();
        let mut used = Slots::default();
        for (number, begin) in begins.iter().enumerate() {
            used.add(uses.written(number));
            used.add(*begin);
        }
        let mut numbers = [0; REGISTER_SLOTS];
        for (number, slot) in (0..).zip(used.iter()) {
            numbers[slot] = number;
        }
        let mut webs = Webs {
            variables: Vec::new(),
            last: Vec::new(),
            needed,
            partly: own.iter().map(|own| own.partly).collect(),
            numbers,
            slots: used.iter().count(),
        };
        webs.last = vec![u32::MAX; blocks.len() * webs.slots];
        for (block, slot, i) in &uses.writes {
            let at = webs.at(*block as usize, usize::from(*slot));
            if let Some(last) = webs.last.get_mut(at) {
                *last = *i;
            }
        }
        webs.variables = webs.united(blocks, own, &begins);
        webs
    }

    fn at(&self, block: usize, slot: usize) -> usize {
        block * self.slots + usize::from(self.numbers[slot])
    }

    // Where a value is the same one without being written, it has one variable.
    fn united(&self, blocks: &[Block], own: &[Own], begins: &[Slots]) -> Vec<[u32; 2]> {
        let count = blocks.len() * self.slots;
        let mut parents: Vec<u32> = (0..2 * count as u32).collect();
        for (number, (block, own)) in blocks.iter().zip(own).enumerate() {
            let same = |slot: &usize| !own.written.contains(*slot) || own.partly.contains(*slot);
            let crossing = begins[number].iter().chain(own.partly.iter());
            for slot in crossing.filter(same) {
                let at = 2 * self.at(number, slot) as u32;
                unite(&mut parents, at, at + 1);
            }
            for next in block.exit.blocks() {
                for slot in begins.get(next).into_iter().flat_map(|slots| slots.iter()) {
                    let (end, begin) = (self.at(number, slot), self.at(next, slot));
                    unite(&mut parents, 2 * end as u32 + 1, 2 * begin as u32);
                }
            }
        }
        (0..count as u32)
            .map(|i| [2 * i, 2 * i + 1].map(|node| root(&mut parents, node)))
            .collect()
    }

    /// The variable with what a slot holds in a block before the block has written it for sure.
    pub(super) fn read(&self, block: usize, slot: usize) -> u32 {
        let ends = self.variables.get(self.at(block, slot));
        ends.map_or(u32::MAX, |ends| ends[0])
    }

    /// The variable that takes what instruction `i` of a block writes to a slot; `None` where nobody looks there.
    pub(super) fn written(&self, block: usize, i: usize, slot: usize) -> Option<u32> {
        let at = self.at(block, slot);
        let ends = self.variables.get(at)?;
        let has = |slots: &[Slots]| slots.get(block).is_some_and(|slots| slots.contains(slot));
        let is_last = || self.last.get(at).is_some_and(|last| *last as usize == i);
        (has(&self.partly) || has(&self.needed) && is_last()).then_some(ends[1])
    }
}

fn own_of(number: u32, block: &Block, writes: &mut Vec<(u32, u16, u32)>) -> Own {
    let mut own = Own::default();
    for (instruction, i) in block.code.iter().zip(0..) {
        for access in accesses(instruction) {
            let (slot, is_write) = match access {
                Access::Read(register, ty) => (slot(register, ty), false),
                Access::Index(register) => (usize::from(register), false),
                Access::Write(register, ty) => (slot(register, ty), true),
            };
            if is_write {
                writes.push((number, slot as u16, i));
            }
            match (is_write, instruction.guard) {
                (true, None) => own.written.insert(slot),
                (true, Some(_)) => own.partly.insert(slot),
                (false, _) => {}
            }
            // What a guard may leave as it was is read.
            let is_read = !is_write || instruction.guard.is_some();
            if is_read && !own.written.contains(slot) {
                own.read.insert(slot);
            }
        }
    }
    match block.exit {
        Exit::To(_) => {}
        Exit::If(guard, ..) => {
            let slot = predicate_slot(guard.predicate);
            if !own.written.contains(slot) {
                own.read.insert(slot);
            }
        }
        Exit::Count(register, ..) => {
            let slot = usize::from(register);
            own.partly.insert(slot);
            if !own.written.contains(slot) {
                own.read.insert(slot);
            }
        }
    }
    own
}

// Slots that are needed where each block begins.
fn begins(blocks: &[Block], own: &[Own]) -> Vec<Slots> {
    let mut begins = vec![Slots::default(); blocks.len()];
    let mut before = vec![Vec::new(); blocks.len()];
    for (number, block) in blocks.iter().enumerate() {
        for next in block.exit.blocks() {
            if let Some(before) = before.get_mut(next) {
                before.push(number);
            }
        }
    }
    let mut work: Vec<usize> = (0..blocks.len()).collect();
    let mut waits = vec![true; blocks.len()];
    while let Some(number) = work.pop() {
        waits[number] = false;
        let behind = behind(&blocks[number], &begins);
        let mut begin = own[number].read;
        for ((begin, behind), written) in begin.0.iter_mut().zip(behind.0).zip(own[number].written.0) {
            *begin |= behind & !written;
        }
        if begin != begins[number] {
            begins[number] = begin;
            for block in &before[number] {
                if !std::mem::replace(&mut waits[*block], true) {
                    work.push(*block);
                }
            }
        }
    }
    begins
}

// Slots that are needed behind a block.
fn behind(block: &Block, begins: &[Slots]) -> Slots {
    let mut all = Slots::default();
    for next in block.exit.blocks() {
        if let Some(begin) = begins.get(next) {
            all.add(*begin);
        }
    }
    all
}

fn root(parents: &mut [u32], mut node: u32) -> u32 {
    while let Some(&parent) = parents.get(node as usize)
        && parent != node
    {
        let above = parents.get(parent as usize).copied().unwrap_or(parent);
        parents[node as usize] = above;
        node = parent;
    }
    node
}

fn unite(parents: &mut [u32], a: u32, b: u32) {
    let (a, b) = (root(parents, a), root(parents, b));
    if let Some(parent) = parents.get_mut(a.max(b) as usize) {
        *parent = a.min(b);
    }
}
