//! The conductor of the tiles, a block more: it takes orders from the host's ring into the log that
//! all tiles read, adds steps of its own while they run freely, and tells the host how far all of them are.
//!
//! A vector of four words moves at once and carries the number of what it belongs to, so relaxed accesses do: the argument
//! is that of the rings between host and homes in the crate of actors.

use perpetua::kernel::atomic::{Ordering, Scope};
use perpetua::kernel::resident::U32x4;
use perpetua::prelude::*;

use crate::actors::order::{FREE, PARK, PAUSE, RUN};

/// What the conductor's subgroups do. The first one reads the host's ring, eight orders at a time; the second one watches how far
/// the tiles are, and tells the host; the third one writes the log. What they tell each other lies on the desk: orders in its
/// first 192 words, sixteen of them, then (`READ` and so on) counters.
#[device]
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "what a kernel was given")]
pub(super) fn conduct(
    orders: &[U32x4],
    log: &mut [U32x4],
    progress: &mut [u32],
    reports: &mut [U32x4],
    receipts: &mut [U32x4],
    desk: &mut [u32; 208],
    strip: u32,
    lane: u32,
    count: u32,
    first_step: u32,
    first_entry: u32,
    first_order: u32,
    log_mask: u32,
    ring_mask: u32,
    chunk: u32,
    ahead: u32,
    patience: u32,
) {
    if strip == 0 && lane == 0 {
        desk[READ] = first_order;
        desk[TAKEN] = first_order;
        desk[DONE] = first_entry;
        desk[LEAVES] = 0;
    }
    meet();
    if strip == 0 {
        read_orders(orders, desk, lane, first_order, ring_mask, patience);
    } else if strip == 1 {
        watch(
            progress,
            reports,
            desk,
            lane,
            count,
            first_entry,
            log_mask,
            patience,
        );
    } else if strip == 2 {
        write_log(
            log,
            receipts,
            desk,
            lane,
            first_step,
            first_entry,
            first_order,
            log_mask,
            ring_mask,
            chunk,
            ahead,
        );
    }
}

/// Orders that have been read from the host's ring, by number.
const READ: usize = 192;
/// Orders that have been taken off the desk.
const TAKEN: usize = 193;
/// Entries that all tiles are through with.
const DONE: usize = 194;
/// Whether there are no more entries: 1.
const LEAVES: usize = 195;
/// Entries, steps and orders at the end.
const ENTRIES: usize = 196;
const STEPS: usize = 197;
const ORDERS: usize = 198;

#[device]
#[inline(always)]
fn read_orders(
    orders: &[U32x4],
    desk: &mut [u32; 208],
    lane: u32,
    first_order: u32,
    ring_mask: u32,
    patience: u32,
) {
    let part = lane & 3;
    let which = lane / 4;
    let mut number = first_order;
    let mut idle = 0u32;
    let mut stays = true;
    while stays {
        converge();
        let mine = atomic_load_explicit(
            &orders[(((number + which) & ring_mask) * 4 + part) as usize],
            Ordering::Relaxed,
            Scope::System,
        );
        // Acquire: pairs with the Release of who takes orders off, whose places are written to again.
        let taken = atomic_load_explicit(&desk[TAKEN], Ordering::Acquire, Scope::Block);
        let ends = atomic_load_explicit(&desk[LEAVES], Ordering::Relaxed, Scope::Block);
        converge();
        let came = subgroup_ballot(mine.w == number + which + 1);
        let free = 16 - (number - subgroup_shuffle(taken, 0));
        stays = subgroup_shuffle(ends, 0) == 0;
        // Those that came whole, up to the first that did not.
        let words = came[0];
        let mut whole = 0u32;
        while whole < 8 && whole < free && (words >> (4 * whole)) & 15 == 15 {
            whole += 1;
        }
        if whole > 0 {
            idle = 0;
            if which < whole {
                let to = (((number + which) & 15) * 12 + part * 3) as usize;
                desk[to] = mine.x;
                desk[to + 1] = mine.y;
                desk[to + 2] = mine.z;
            }
            thread_fence_block();
            converge();
            number += whole;
            if lane == 0 {
                atomic_store_explicit(&mut desk[READ], number, Ordering::Release, Scope::Block);
            }
        } else {
            idle += 1;
            if idle > patience {
                nap(500);
            }
        }
    }
}

#[device]
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "what a kernel was given")]
fn write_log(
    log: &mut [U32x4],
    receipts: &mut [U32x4],
    desk: &mut [u32; 208],
    lane: u32,
    first_step: u32,
    first_entry: u32,
    first_order: u32,
    log_mask: u32,
    ring_mask: u32,
    chunk: u32,
    ahead: u32,
) {
    let part = lane & 3;
    let which = lane / 4;
    let mut number = first_order;
    let mut entry = first_entry;
    let mut steps = first_step;
    let mut target = first_step;
    let mut stays = true;
    while stays {
        converge();
        // Acquire: pairs with the Release behind the orders' words.
        let there = atomic_load_explicit(&desk[READ], Ordering::Acquire, Scope::Block);
        let through = atomic_load_explicit(&desk[DONE], Ordering::Relaxed, Scope::Block);
        converge();
        // The lanes must not go different ways.
        let read = subgroup_shuffle(there, 0);
        let done = subgroup_shuffle(through, 0);
        // Half of the log: a tile may still read what lies behind.
        let room = entry - done < log_mask / 2;
        // All at once where none of them says how far tiles go by themselves: so tiles find them together.
        let waiting = (read - number).min(8);
        let here = which < waiting;
        let mut own_kind = PAUSE;
        let mut own_word = 0u32;
        if here {
            let own = ((number + which) & 15) * 12;
            own_kind = desk[own as usize];
            own_word = desk[(own + 1) as usize];
        }
        converge();
        let plain = subgroup_all(!here || own_kind < PARK);
        if room && waiting > 0 && plain {
            let turns = if here && part == 0 && own_kind == RUN {
                own_word
            } else {
                0
            };
            let before = subgroup_exclusive_add(turns);
            if here {
                let own = (((number + which) & 15) * 12 + part * 3) as usize;
                let tag = entry + which + 1;
                let vector = U32x4 {
                    x: desk[own],
                    y: desk[own + 1],
                    z: desk[own + 2],
                    w: tag,
                };
                let to = (((entry + which) & log_mask) * 4 + part) as usize;
                atomic_store_explicit(&mut log[to], vector, Ordering::Relaxed, Scope::Device);
            }
            if here && part == 0 {
                let from = steps + before;
                let receipt = U32x4 {
                    x: from,
                    y: entry + which + 1,
                    z: from + turns,
                    w: number + which + 1,
                };
                let to = ((number + which) & ring_mask) as usize;
                atomic_store_explicit(&mut receipts[to], receipt, Ordering::Relaxed, Scope::System);
            }
            converge();
            let ran = subgroup_add(turns);
            if subgroup_any(here && own_kind == RUN) {
                target = steps + ran;
            }
            steps += ran;
            entry += waiting;
            number += waiting;
            if lane == 0 {
                // Release: their words have been read.
                atomic_store_explicit(&mut desk[TAKEN], number, Ordering::Release, Scope::Block);
            }
        } else if room && number != read {
            let at = (number & 15) * 12;
            let kind = desk[at as usize];
            let word = desk[(at + 1) as usize];
            let from = steps;
            if kind == FREE {
                target = word;
            } else if kind == PAUSE {
                target = steps;
            } else {
                if lane < 4 {
                    let own = (at + part * 3) as usize;
                    let vector = U32x4 {
                        x: desk[own],
                        y: desk[own + 1],
                        z: desk[own + 2],
                        w: entry + 1,
                    };
                    let to = ((entry & log_mask) * 4 + part) as usize;
                    atomic_store_explicit(&mut log[to], vector, Ordering::Relaxed, Scope::Device);
                }
                entry += 1;
                if kind == RUN {
                    steps += word;
                    target = steps;
                }
                if kind == PARK {
                    stays = false;
                }
            }
            if lane == 0 {
                let receipt = U32x4 {
                    x: from,
                    y: entry,
                    z: steps,
                    w: number + 1,
                };
                let to = (number & ring_mask) as usize;
                atomic_store_explicit(&mut receipts[to], receipt, Ordering::Relaxed, Scope::System);
            }
            number += 1;
            converge();
            if lane == 0 {
                // Release: its words have been read.
                atomic_store_explicit(&mut desk[TAKEN], number, Ordering::Release, Scope::Block);
            }
        } else if room && target != steps && entry - done <= ahead {
            let turns = chunk.min(target - steps);
            if lane < 4 {
                let mut vector = U32x4 {
                    x: 0,
                    y: 0,
                    z: 0,
                    w: entry + 1,
                };
                if lane == 0 {
                    vector.x = RUN;
                    vector.y = turns;
                }
                let to = ((entry & log_mask) * 4 + part) as usize;
                atomic_store_explicit(&mut log[to], vector, Ordering::Relaxed, Scope::Device);
            }
            entry += 1;
            steps += turns;
        }
    }
    converge();
    if lane == 0 {
        atomic_store_explicit(&mut desk[ENTRIES], entry, Ordering::Relaxed, Scope::Block);
        atomic_store_explicit(&mut desk[STEPS], steps, Ordering::Relaxed, Scope::Block);
        atomic_store_explicit(&mut desk[ORDERS], number, Ordering::Relaxed, Scope::Block);
        // Release: pairs with the Acquire of who watches.
        atomic_store_explicit(&mut desk[LEAVES], 1, Ordering::Release, Scope::Block);
    }
}

/// Each entry has a count of the tiles that are through with it, which goes on where the log comes round.
#[device]
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "what a kernel was given")]
fn watch(
    progress: &mut [u32],
    reports: &mut [U32x4],
    desk: &mut [u32; 208],
    lane: u32,
    count: u32,
    first_entry: u32,
    log_mask: u32,
    patience: u32,
) {
    let mut done = first_entry;
    let mut idle = 0u32;
    let mut stays = true;
    while stays {
        converge();
        let entry = done + lane;
        let through = atomic_load_explicit(
            &progress[(entry & log_mask) as usize],
            Ordering::Relaxed,
            Scope::Device,
        );
        let ends = atomic_load_explicit(&desk[LEAVES], Ordering::Acquire, Scope::Block);
        let expected = count * ((entry - first_entry) / (log_mask + 1) + 1);
        converge();
        let all = subgroup_ballot(through == expected);
        let words = all[0];
        let mut further = 0u32;
        while further < 32 && (words >> further) & 1 == 1 {
            further += 1;
        }
        if further > 0 {
            idle = 0;
            done += further;
            if lane == 0 {
                let report = U32x4 {
                    x: done,
                    y: 0,
                    z: 0,
                    w: 1,
                };
                atomic_store_explicit(&mut reports[0], report, Ordering::Relaxed, Scope::System);
                atomic_store_explicit(&mut desk[DONE], done, Ordering::Relaxed, Scope::Block);
            }
        } else {
            idle += 1;
            if idle > patience {
                nap(500);
            }
        }
        // All that is known then was told before.
        if subgroup_shuffle(ends, 0) == 1
            && atomic_load_explicit(&desk[ENTRIES], Ordering::Relaxed, Scope::Block) == done
        {
            stays = false;
        }
    }
    if lane == 0 {
        let left = U32x4 {
            x: atomic_load_explicit(&desk[ENTRIES], Ordering::Relaxed, Scope::Block),
            y: atomic_load_explicit(&desk[STEPS], Ordering::Relaxed, Scope::Block),
            z: atomic_load_explicit(&desk[ORDERS], Ordering::Relaxed, Scope::Block),
            w: 1,
        };
        atomic_store_explicit(&mut reports[1], left, Ordering::Relaxed, Scope::System);
    }
}

/// Waits for entries of the log from one on, which lie on the desk then; gives the first one that is not there yet. The first
/// subgroup looks for eight at a time.
#[device]
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "what a kernel was given")]
pub(super) fn await_orders(
    log: &mut [U32x4],
    desk: &mut [u32; 208],
    strip: u32,
    lane: u32,
    entry: u32,
    half: u32,
    log_mask: u32,
    patience: u32,
) -> u32 {
    if strip == 0 {
        let part = lane & 3;
        let which = lane / 4;
        let at = (((entry + which) & log_mask) * 4 + part) as usize;
        let mut whole = 0u32;
        let mut idle = 0u32;
        while whole == 0 {
            converge();
            let vector = atomic_load_explicit(&log[at], Ordering::Relaxed, Scope::Device);
            converge();
            let came = subgroup_ballot(vector.w == entry + which + 1);
            let words = came[0];
            while whole < 8 && (words >> (4 * whole)) & 15 == 15 {
                whole += 1;
            }
            if which < whole {
                let to = (((entry + which) & 15) * 12 + part * 3) as usize;
                desk[to] = vector.x;
                desk[to + 1] = vector.y;
                desk[to + 2] = vector.z;
            }
            idle += 1;
            if whole == 0 && idle > patience {
                nap(500);
            }
        }
        if lane == 0 {
            desk[(192 + half) as usize] = whole;
        }
    }
    meet();
    entry + desk[(192 + half) as usize]
}

/// A word of the order that is being done.
#[device]
#[inline(always)]
pub(super) fn order_word(_orders: &[U32x4], desk: &mut [u32; 208], entry: u32, word: u32) -> u32 {
    desk[((entry & 15) * 12 + word) as usize]
}

#[device]
#[inline(always)]
pub(super) fn get(board: &mut [U32x4], at: usize) -> U32x4 {
    atomic_load_explicit(&board[at], Ordering::Relaxed, Scope::Device)
}

#[device]
#[inline(always)]
pub(super) fn put(board: &mut [U32x4], at: usize, vector: U32x4) {
    atomic_store_explicit(&mut board[at], vector, Ordering::Relaxed, Scope::Device);
}

/// To the host.
#[device]
#[inline(always)]
pub(super) fn tell(to: &mut [U32x4], at: usize, vector: U32x4) {
    atomic_store_explicit(&mut to[at], vector, Ordering::Relaxed, Scope::System);
}

/// What the host writes while tiles run.
#[device]
#[inline(always)]
pub(super) fn load_number(drive: &[u32], at: usize) -> u32 {
    atomic_load_explicit(&drive[at], Ordering::Relaxed, Scope::Device)
}
