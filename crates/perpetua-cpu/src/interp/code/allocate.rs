//! Registers for virtual ones, by one scan over their extents in order of the text. What finds no register lies in the gang's
//! frame, or where all gangs share it in the state. Knows of instructions only what they read and write.

use std::collections::HashMap;

use super::Target;
use super::lir::*;
use super::lower::Lowered;

/// Where a virtual register lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    Nowhere,
    Register(u8),
    /// At this offset in the gang's frame.
    Frame(i32),
    /// Among what all gangs share.
    Common(i32),
    /// Where the host has put it in the state, or in the gang's entry.
    State(i32),
    Entry(i32),
}

/// From the first to the last instruction that touches a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) start: usize,
    pub(super) end: usize,
    weight: f32,
}

pub(super) struct Allocation {
    pub(super) homes: Vec<Home>,
    pub(super) extents: Vec<Extent>,
    /// A place in the frame for each register that must be saved somewhere; made when asked for.
    saved: Vec<Option<Home>>,
    classes: Vec<Class>,
    /// Where what the host gives can be read again.
    origins: HashMap<R, Origin>,
    /// The instruction that begins what runs for each gang, where gangs have frames of their own.
    gang: usize,
    /// Bytes of the frame, and of what all gangs share.
    pub(super) frame: usize,
    pub(super) common: usize,
    vector: usize,
    /// Masks are vectors.
    masked: bool,
}

impl Allocation {
    pub(super) fn home(&self, r: R) -> Home {
        self.homes.get(r.0 as usize).copied().unwrap_or(Home::Nowhere)
    }

    pub(super) fn class(&self, r: R) -> Class {
        self.classes.get(r.0 as usize).copied().unwrap_or(Class::General)
    }

    /// Whether all gangs share what it holds, though they have frames of their own.
    pub(super) fn is_common(&self, r: R) -> bool {
        self.extents
            .get(r.0 as usize)
            .is_some_and(|e| e.start < self.gang)
    }

    /// Where what the host has given lies for good.
    pub(super) fn origin(&self, r: R) -> Option<Home> {
        Some(match self.origins.get(&r)? {
            Origin::State(at) => Home::State(*at),
            Origin::Gang(at) => Home::Entry(*at),
        })
    }

    /// Where a register is kept over a call.
    pub(super) fn save_slot(&mut self, r: R) -> Home {
        if let Some(at) = self.saved[r.0 as usize] {
            return at;
        }
        let at = self.room(r);
        self.saved[r.0 as usize] = Some(at);
        at
    }

    fn room(&mut self, r: R) -> Home {
        if let Some(origin) = self.origin(r) {
            return origin;
        }
        let bytes = match self.class(r) {
            Class::Vector => self.vector,
            Class::Mask if self.masked => self.vector,
            _ => 8,
        };
        let common = self.is_common(r);
        let end = if common { &mut self.common } else { &mut self.frame };
        *end = end.next_multiple_of(bytes) + bytes;
        let at = (*end - bytes) as i32;
        if common { Home::Common(at) } else { Home::Frame(at) }
    }

    /// Registers that hold something before and after the instruction.
    pub(super) fn live(&self, at: usize) -> Vec<R> {
        (1..self.homes.len())
            .filter(|i| {
                let extent = &self.extents[*i];
                matches!(self.homes[*i], Home::Register(_)) && extent.start < at && at < extent.end
            })
            .map(|i| R(i as u32))
            .collect()
    }
}

/// Places all registers.
pub(super) fn allocate(lowered: &Lowered, meets: bool, target: Target) -> Allocation {
    let registers = target.registers();
    let masked = registers.masks.is_none();
    let Lowered {
        code, classes, loops, ..
    } = lowered;
    let none = Extent {
        start: usize::MAX,
        end: 0,
        weight: 0.0,
    };
    let mut extents = vec![none; classes.len()];
    let mut edges: Vec<(usize, i32)> = loops.iter().flat_map(|(s, e)| [(*s, 1), (*e, -1)]).collect();
    edges.sort_unstable();
    let (mut depth, mut next) = (0, 0);
    for (at, i) in code.iter().enumerate() {
        while let Some((edge, by)) = edges.get(next).filter(|(edge, _)| *edge <= at) {
            let _ = edge;
            depth += by;
            next += 1;
        }
        let weight = 10f32.powi(depth.min(6));
        i.registers(&mut |r, _| {
            let e = &mut extents[r.0 as usize];
            e.start = e.start.min(at);
            e.end = e.end.max(at);
            e.weight += weight;
        });
    }
    // What a loop finds it keeps to its end; and what is read behind a loop it keeps from its start, for lanes that have left it
    // wait with theirs while the others turn. Inner loops come first in the list.
    for (start, end) in loops {
        for e in &mut extents {
            if e.start < *start && e.end >= *start && e.end < *end {
                e.end = *end;
            }
            if e.start > *start && e.start < *end && e.end > *end {
                e.start = *start;
            }
        }
    }
    let mut order: Vec<u32> = (1..classes.len() as u32)
        .filter(|i| extents[*i as usize].start != usize::MAX)
        .collect();
    order.sort_by_key(|i| extents[*i as usize].start);
    let gang = code.iter().position(|i| matches!(i, I::Gang)).filter(|_| meets);
    let mut allocation = Allocation {
        homes: vec![Home::Nowhere; classes.len()],
        extents,
        saved: vec![None; classes.len()],
        classes: classes.clone(),
        origins: lowered.origins.clone(),
        gang: gang.unwrap_or(0),
        frame: lowered.layout.frame,
        common: 0,
        vector: target.lanes as usize * 4,
        masked,
    };
    allocation.homes[0] = Home::Register(registers.current);
    let mut free = [
        registers.general.to_vec(),
        (0..registers.vectors).collect(),
        registers.masks.unwrap_or_default().to_vec(),
    ];
    let mut active: [Vec<u32>; 3] = Default::default();
    for i in order {
        let class = match classes[i as usize] {
            Class::Mask if masked => Class::Vector as usize,
            class => class as usize,
        };
        let extent = allocation.extents[i as usize];
        let (free, active) = (&mut free[class], &mut active[class]);
        active.retain(|a| {
            let over = allocation.extents[*a as usize].end < extent.start;
            if over && let Home::Register(r) = allocation.homes[*a as usize] {
                free.push(r);
            }
            !over
        });
        if let Some(r) = free.pop() {
            allocation.homes[i as usize] = Home::Register(r);
            active.push(i);
            continue;
        }
        // The one that is touched least for its length gives way.
        let worth = |i: u32| {
            let e = &allocation.extents[i as usize];
            e.weight / (e.end - e.start + 1) as f32
        };
        let least = active
            .iter()
            .copied()
            .min_by(|a, b| worth(*a).total_cmp(&worth(*b)));
        match least.filter(|least| worth(*least) < worth(i)) {
            Some(least) => {
                let home = allocation.homes[least as usize];
                let room = allocation.room(R(least));
                allocation.homes[least as usize] = room;
                allocation.homes[i as usize] = home;
                active.retain(|a| *a != least);
                active.push(i);
            }
            None => {
                let room = allocation.room(R(i));
                allocation.homes[i as usize] = room;
            }
        }
    }
    allocation
}
