//! Gives registers of a draft their places: those whose values are needed at the same time get different ones. What is needed where
//! is found over the blocks of the code; a register keeps its place from the first line at which it is needed to the last.

use std::collections::BTreeSet;

use super::draft::{Draft, Line};
use crate::instruction::{PREDICATES, PRESET};

/// More registers hold values at once than a lane has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "more than {limit} {what} hold values at once: compute what is needed later when it is needed, or keep it in memory"
)]
pub(crate) struct Crowded {
    /// The line at which there is none left.
    pub(crate) line: usize,
    what: &'static str,
    limit: usize,
}

impl Crowded {
    /// Of what there is too little.
    pub(crate) fn what(&self) -> &'static str {
        self.what
    }
}

/// Where registers are.
pub(super) struct Places(Vec<u8>);

impl Places {
    /// A register's place; the first for one that nothing reads or writes.
    pub(super) fn of(&self, register: u32) -> u8 {
        self.0.get(register as usize).copied().unwrap_or(0)
    }
}

// From a moment to another; line i reads at 2 i and writes at 2 i + 1.
#[derive(Clone, Copy)]
struct Life {
    from: usize,
    to: usize,
}

pub(super) fn allocate(draft: &Draft) -> Result<Places, Crowded> {
    let lives = lives(draft);
    let mut order: Vec<(Life, u32)> = lives
        .iter()
        .zip(0..)
        .filter_map(|(life, register)| Some(((*life)?, register)))
        .filter(|(_, register)| !draft.fixed.contains_key(register))
        .collect();
    order.sort_by_key(|(life, register)| (life.from, *register));
    let taken: BTreeSet<u8> = draft.fixed.values().copied().collect();
    let general = (0..PRESET[0].0).filter(|place| !taken.contains(place));
    let mut free = [general.collect::<BTreeSet<u8>>(), (0..PREDICATES as u8).collect()];
    let limits = free.each_ref().map(BTreeSet::len);
    // By when they end: those that hold values now, with their class and place.
    let mut active: BTreeSet<(usize, usize, u8)> = BTreeSet::new();
    let mut places = vec![0; draft.registers.len()];
    for (register, place) in &draft.fixed {
        if let Some(to) = places.get_mut(*register as usize) {
            *to = *place;
        }
    }
    for (life, register) in order {
        while let Some(&(end, class, place)) = active.first()
            && end < life.from
        {
            active.pop_first();
            free[class].insert(place);
        }
        let class = usize::from(draft.is_predicate(register));
        let Some(place) = free[class].pop_first() else {
            return Err(Crowded {
                line: life.from / 2,
                what: ["registers", "predicates"][class],
                limit: limits[class],
            });
        };
        active.insert((life.to, class, place));
        if let Some(to) = places.get_mut(register as usize) {
            *to = place;
        }
    }
    Ok(Places(places))
}

struct Block {
    from: usize,
    to: usize,
    next: Vec<usize>,
    // Needed at the start.
    needed: Vec<u64>,
}

// When each register holds a value that is needed.
fn lives(draft: &Draft) -> Vec<Option<Life>> {
    let mut blocks = blocks(draft);
    let words = draft.registers.len().div_ceil(64);
    let mut changed = true;
    while changed {
        changed = false;
        for i in (0..blocks.len()).rev() {
            let mut needed = after(&blocks, i, words);
            for line in draft.lines[blocks[i].from..blocks[i].to].iter().rev() {
                before(line, &mut needed);
            }
            if needed != blocks[i].needed {
                blocks[i].needed = needed;
                changed = true;
            }
        }
    }
    let mut lives: Vec<Option<Life>> = vec![None; draft.registers.len()];
    let mut touch = |register: u32, moment: usize| {
        if let Some(life) = lives.get_mut(register as usize) {
            let life = life.get_or_insert(Life {
                from: moment,
                to: moment,
            });
            life.from = life.from.min(moment);
            life.to = life.to.max(moment);
        }
    };
    for (i, block) in blocks.iter().enumerate() {
        each(&block.needed, |register| touch(register, 2 * block.from));
        each(&after(&blocks, i, words), |register| {
            touch(register, 2 * block.to)
        });
        for (line, i) in draft.lines[block.from..block.to].iter().zip(block.from..) {
            line.registers(|register, written| touch(register, 2 * i + usize::from(written)));
        }
    }
    lives
}

fn blocks(draft: &Draft) -> Vec<Block> {
    let len = draft.lines.len();
    let at = |label: u32| draft.labels.get(label as usize).copied().flatten();
    let mut starts: BTreeSet<usize> = [0].into();
    for (i, line) in draft.lines.iter().enumerate() {
        if let Some(label) = line.target() {
            starts.extend(at(label).map(|at| at as usize));
            starts.insert(i + 1);
        }
        if !line.falls_through() {
            starts.insert(i + 1);
        }
    }
    starts.retain(|start| *start < len);
    let starts: Vec<usize> = starts.into_iter().collect();
    let block = |(number, from): (usize, &usize)| {
        let to = starts.get(number + 1).copied().unwrap_or(len);
        let last = draft.lines.get(to.wrapping_sub(1));
        let mut next = Vec::new();
        if last.is_none_or(Line::falls_through) && number + 1 < starts.len() {
            next.push(number + 1);
        }
        let target = last.and_then(Line::target).and_then(at);
        next.extend(target.and_then(|at| starts.binary_search(&(at as usize)).ok()));
        Block {
            from: *from,
            to,
            next,
            needed: Vec::new(),
        }
    };
    starts.iter().enumerate().map(block).collect()
}

// Needed at a block's end.
fn after(blocks: &[Block], i: usize, words: usize) -> Vec<u64> {
    let mut needed = vec![0; words];
    for next in &blocks[i].next {
        for (word, more) in needed.iter_mut().zip(&blocks[*next].needed) {
            *word |= more;
        }
    }
    needed
}

fn before(line: &Line, needed: &mut [u64]) {
    let mut set = |register: u32, on: bool| {
        if let Some(word) = needed.get_mut(register as usize / 64) {
            let bit = 1 << (register % 64);
            *word = if on { *word | bit } else { *word & !bit };
        }
    };
    line.registers(|register, written| {
        if written {
            set(register, false);
        }
    });
    line.registers(|register, written| {
        if !written {
            set(register, true);
        }
    });
}

fn each(set: &[u64], mut visit: impl FnMut(u32)) {
    for (i, word) in set.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            visit(i as u32 * 64 + rest.trailing_zeros());
            rest &= rest - 1;
        }
    }
}
