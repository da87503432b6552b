//! The order book of one symbol as an actor: what it keeps, and the handlers of its messages. Must not know the stream of orders nor
//! the reference.
//!
//! A side of the book is a list of price levels, the best at its end; a level is a queue of orders, linked through the slots that they
//! lie in; a hash table leads from an order's number to its slot. All of it has a fixed size: what finds no room is rejected with a reason.

use perpetua::actors::{Context, RingMessage, ring_kernel};
use perpetua::prelude::*;

/// Fills that a report holds.
pub(crate) const FILLS: usize = 7;
/// Orders that rest on a side at most: what one order can fill against, and what the eight reports of a handler's run hold.
pub(crate) const SIDE_ORDERS: u32 = 56;
/// Prices that a side has orders at, at most.
pub(crate) const SIDE_LEVELS: u32 = 24;
/// Prices are 1 to this, in ticks.
pub(crate) const HIGHEST_PRICE: u32 = 65_535;
/// Quantities are 1 to this, so that a fill's price and quantity share a word.
pub(crate) const LARGEST_QUANTITY: u32 = 65_535;

/// Who wants to buy.
pub(crate) const BUY: u32 = 0;
/// Who wants to sell.
pub(crate) const SELL: u32 = 1;

/// Only some of its fills: the next report goes on.
pub(crate) const MORE: u32 = 0;
/// All of it is filled.
pub(crate) const FILLED: u32 = 1;
/// What is not filled rests in the book.
pub(crate) const RESTS: u32 = 2;
/// A market order found nothing more to fill against: the rest of it is gone.
pub(crate) const EXHAUSTED: u32 = 3;
/// It is taken out of the book; the only fill tells how much was left of it, and at which price it rested.
pub(crate) const CANCELLED: u32 = 4;
/// What is not filled finds no room: its side has no more room for orders.
pub(crate) const REJECTED_ORDERS: u32 = 5;
/// What is not filled finds no room: its side has no more room for prices.
pub(crate) const REJECTED_LEVELS: u32 = 6;
/// No order of this number rests here: it was filled or cancelled, or never was.
pub(crate) const REJECTED_UNKNOWN: u32 = 7;
/// An order of this number rests here.
pub(crate) const REJECTED_TWICE: u32 = 8;
/// No such price, quantity or side.
pub(crate) const REJECTED_VALUE: u32 = 9;

/// Buy or sell, at a price or better, or (`market`) at any. What is not filled at once rests, but for market orders.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
pub(crate) struct Place {
    /// The order's number: no other that rests has it.
    pub(crate) order: u32,
    /// [`BUY`] or [`SELL`].
    pub(crate) side: u32,
    /// In ticks; of no account for market orders.
    pub(crate) price: u32,
    /// How much.
    pub(crate) quantity: u32,
    /// 1: at any price.
    pub(crate) market: u32,
}

/// Take an order out of the book.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
pub(crate) struct Cancel {
    /// The order's number.
    pub(crate) order: u32,
}

/// What became of a message: all reports but the last say [`MORE`].
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
pub(crate) struct Report {
    /// The order's number.
    pub(crate) order: u32,
    /// What became of it, and above its eight bits the number of fills in this report.
    pub(crate) outcome: u32,
    /// For each fill the number of the order that rested, and then its price (upper half) and the quantity (lower half).
    pub(crate) fills: [u32; 14],
}

const NONE: u32 = u32::MAX;
const SLOTS: usize = 2 * SIDE_ORDERS as usize;
const LEVELS: usize = SIDE_LEVELS as usize;
const BUCKETS: usize = 64;

/// An order that rests, or a free slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
pub(crate) struct Resting {
    order: u32,
    quantity: u32,
    side: u32,
    key: u32,
    /// Behind it at its price; for a free slot the next free one.
    next: u32,
    /// Before it at its price.
    previous: u32,
    /// The next in its bucket of the hash table.
    chain: u32,
}

/// The orders at one price, the oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
pub(crate) struct Level {
    /// The price, turned so that the best of either side is the greatest.
    key: u32,
    first: u32,
    last: u32,
}

/// One side's levels, by ascending keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
pub(crate) struct Side {
    count: u32,
    orders: u32,
    levels: [Level; LEVELS],
}

/// All that rests of one symbol.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
pub(crate) struct Book {
    sides: [Side; 2],
    slots: [Resting; SLOTS],
    buckets: [u32; BUCKETS],
    free: u32,
    /// Messages handled.
    pub(crate) handled: u32,
}

impl Book {
    /// Nothing rests.
    pub(crate) fn empty() -> Book {
        let mut book = Book {
            sides: [Side::default(); 2],
            slots: [Resting::default(); SLOTS],
            buckets: [NONE; BUCKETS],
            free: 0,
            handled: 0,
        };
        for (slot, next) in book.slots.iter_mut().zip(1..) {
            slot.next = if next == SLOTS as u32 { NONE } else { next };
        }
        book
    }

    /// What rests on a side, the best price first, at each price the oldest first: price, number and quantity.
    pub(crate) fn resting(&self, side: u32) -> Vec<(u32, u32, u32)> {
        let of = &self.sides[side as usize];
        let mut all = Vec::new();
        for level in of.levels[..of.count as usize].iter().rev() {
            let mut slot = level.first;
            while slot != NONE {
                let one = &self.slots[slot as usize];
                all.push((price_of(side, level.key), one.order, one.quantity));
                slot = one.next;
            }
        }
        all
    }
}

/// A price turned so that the best is the greatest, or such a key as a price again.
#[device]
pub(crate) fn price_of(side: u32, key: u32) -> u32 {
    if side == BUY { key } else { HIGHEST_PRICE + 1 - key }
}

#[device]
fn bucket_of(order: u32) -> usize {
    (order.wrapping_mul(0x9e37_79b1) >> 26) as usize
}

#[device]
impl Book {
    /// The slot of an order.
    fn find(&self, order: u32) -> u32 {
        let mut slot = self.buckets[bucket_of(order)];
        while slot != NONE {
            if self.slots[slot as usize].order == order {
                break;
            }
            slot = self.slots[slot as usize].chain;
        }
        slot
    }

    /// Takes an order out of its level, which goes, too, where it is empty then.
    fn take_out(&mut self, slot: u32, level: u32) {
        let one = self.slots[slot as usize];
        let side = one.side as usize;
        if one.previous == NONE {
            self.sides[side].levels[level as usize].first = one.next;
        } else {
            self.slots[one.previous as usize].next = one.next;
        }
        if one.next == NONE {
            self.sides[side].levels[level as usize].last = one.previous;
        } else {
            self.slots[one.next as usize].previous = one.previous;
        }
        self.sides[side].orders -= 1;
        if one.previous == NONE && one.next == NONE {
            let last = self.sides[side].count - 1;
            let mut at = level;
            while at < last {
                self.sides[side].levels[at as usize] = self.sides[side].levels[at as usize + 1];
                at += 1;
            }
            self.sides[side].count = last;
        }
        let bucket = bucket_of(one.order);
        let mut before = self.buckets[bucket];
        if before == slot {
            self.buckets[bucket] = one.chain;
        } else {
            while self.slots[before as usize].chain != slot {
                before = self.slots[before as usize].chain;
            }
            self.slots[before as usize].chain = one.chain;
        }
        self.slots[slot as usize].next = self.free;
        self.free = slot;
    }

    /// Lets an order rest behind those of its price. What became of it.
    fn rest(&mut self, order: u32, side: u32, key: u32, quantity: u32) -> u32 {
        let on = side as usize;
        if self.sides[on].orders >= SIDE_ORDERS {
            return REJECTED_ORDERS;
        }
        let count = self.sides[on].count;
        // Behind the level that it belongs to: new orders are near the best price.
        let mut above = count;
        while above > 0 {
            if self.sides[on].levels[above as usize - 1].key <= key {
                break;
            }
            above -= 1;
        }
        let mut there = false;
        if above > 0 {
            there = self.sides[on].levels[above as usize - 1].key == key;
        }
        if !there && count >= SIDE_LEVELS {
            return REJECTED_LEVELS;
        }
        let slot = self.free;
        self.free = self.slots[slot as usize].next;
        let mut previous = NONE;
        if there {
            let level = above as usize - 1;
            previous = self.sides[on].levels[level].last;
            self.slots[previous as usize].next = slot;
            self.sides[on].levels[level].last = slot;
        } else {
            let mut at = count;
            while at > above {
                self.sides[on].levels[at as usize] = self.sides[on].levels[at as usize - 1];
                at -= 1;
            }
            self.sides[on].levels[above as usize] = Level {
                key,
                first: slot,
                last: slot,
            };
            self.sides[on].count = count + 1;
        }
        let bucket = bucket_of(order);
        self.slots[slot as usize] = Resting {
            order,
            quantity,
            side,
            key,
            next: NONE,
            previous,
            chain: self.buckets[bucket],
        };
        self.buckets[bucket] = slot;
        self.sides[on].orders += 1;
        RESTS
    }

    /// The level of a key that there is.
    fn level_of(&self, side: u32, key: u32) -> u32 {
        let mut level = self.sides[side as usize].count - 1;
        while self.sides[side as usize].levels[level as usize].key != key {
            level -= 1;
        }
        level
    }
}

/// Fills an order against those that rest, the best price first, at each price the oldest first, and at the price that they rest at.
#[ring_kernel(also(cancel))]
pub(crate) fn place(ctx: &mut Context, book: &mut Book, order: Place) {
    book.handled += 1;
    let mut report = Report {
        order: order.order,
        outcome: MORE,
        fills: [0; 14],
    };
    let mut fills = 0u32;
    let mut outcome = FILLED;
    let priced = order.market != 0 || (order.price >= 1 && order.price <= HIGHEST_PRICE);
    if order.side > SELL || !priced || order.quantity < 1 || order.quantity > LARGEST_QUANTITY {
        outcome = REJECTED_VALUE;
    } else if book.find(order.order) != NONE {
        outcome = REJECTED_TWICE;
    } else {
        let against = 1 - order.side;
        let mut worst = 0u32;
        if order.market == 0 {
            worst = price_of(against, order.price);
        }
        let mut left = order.quantity;
        while left > 0 && book.sides[against as usize].count > 0 {
            let best = book.sides[against as usize].count - 1;
            let level = book.sides[against as usize].levels[best as usize];
            if level.key < worst {
                break;
            }
            let resting = book.slots[level.first as usize];
            let quantity = left.min(resting.quantity);
            if fills == FILLS as u32 {
                report.outcome = MORE | (fills << 8);
                ctx.reply(report);
                report.fills = [0; 14];
                fills = 0;
            }
            report.fills[fills as usize * 2] = resting.order;
            report.fills[fills as usize * 2 + 1] = (price_of(against, level.key) << 16) | quantity;
            fills += 1;
            left -= quantity;
            if quantity == resting.quantity {
                book.take_out(level.first, best);
            } else {
                book.slots[level.first as usize].quantity = resting.quantity - quantity;
            }
        }
        if left > 0 {
            if order.market != 0 {
                outcome = EXHAUSTED;
            } else {
                let key = price_of(order.side, order.price);
                outcome = book.rest(order.order, order.side, key, left);
            }
        }
    }
    report.outcome = outcome | (fills << 8);
    ctx.reply(report);
}

/// Takes an order out of the book.
#[ring_kernel]
pub(crate) fn cancel(ctx: &mut Context, book: &mut Book, message: Cancel) {
    book.handled += 1;
    let mut report = Report {
        order: message.order,
        outcome: REJECTED_UNKNOWN,
        fills: [0; 14],
    };
    let slot = book.find(message.order);
    if slot != NONE {
        let one = book.slots[slot as usize];
        report.outcome = CANCELLED | (1 << 8);
        report.fills[0] = one.order;
        report.fills[1] = (price_of(one.side, one.key) << 16) | one.quantity;
        let level = book.level_of(one.side, one.key);
        book.take_out(slot, level);
    }
    ctx.reply(report);
}
