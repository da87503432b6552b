//! The same rules once more, as one writes them without a device: ordered maps and queues. Must not know how the actors keep their
//! books; of `book` it takes the messages and the limits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::book::{
    BUY, CANCELLED, EXHAUSTED, FILLED, FILLS, HIGHEST_PRICE, LARGEST_QUANTITY, MORE, REJECTED_LEVELS,
    REJECTED_ORDERS, REJECTED_TWICE, REJECTED_UNKNOWN, REJECTED_VALUE, RESTS, Report, SELL, SIDE_LEVELS,
    SIDE_ORDERS,
};
use crate::stream::Message;

/// Orders and what is left of them, the oldest first.
type Queue = VecDeque<(u32, u32)>;

/// One symbol's book.
#[derive(Default)]
pub(crate) struct Reference {
    bids: BTreeMap<Reverse<u32>, Queue>,
    asks: BTreeMap<u32, Queue>,
    /// Side and price of each order that rests.
    resting: HashMap<u32, (u32, u32)>,
}

impl Reference {
    /// Handles a message: appends what is reported.
    pub(crate) fn handle(&mut self, message: &Message, reports: &mut Vec<Report>) {
        let (order, outcome, fills) = match *message {
            Message::Place(place) => {
                let mut fills = Vec::new();
                let price = if place.market != 0 {
                    None
                } else {
                    Some(place.price)
                };
                let outcome = self.place(place.order, place.side, price, place.quantity, &mut fills);
                (place.order, outcome, fills)
            }
            Message::Cancel(cancel) => match self.cancel(cancel.order) {
                Some(was) => (cancel.order, CANCELLED, vec![was]),
                None => (cancel.order, REJECTED_UNKNOWN, Vec::new()),
            },
        };
        let mut parts = fills.chunks(FILLS).peekable();
        loop {
            let part = parts.next().unwrap_or_default();
            let last = parts.peek().is_none();
            let mut report = Report {
                order,
                outcome: if last { outcome } else { MORE } | (part.len() as u32) << 8,
                fills: [0; 14],
            };
            for (words, (resting, price, quantity)) in report.fills.chunks_exact_mut(2).zip(part) {
                words[0] = *resting;
                words[1] = price << 16 | quantity;
            }
            reports.push(report);
            if last {
                return;
            }
        }
    }

    fn place(
        &mut self,
        order: u32,
        side: u32,
        price: Option<u32>,
        mut left: u32,
        fills: &mut Vec<(u32, u32, u32)>,
    ) -> u32 {
        let exists = price.is_none_or(|price| (1..=HIGHEST_PRICE).contains(&price));
        if side > SELL || !exists || !(1..=LARGEST_QUANTITY).contains(&left) {
            return REJECTED_VALUE;
        }
        if self.resting.contains_key(&order) {
            return REJECTED_TWICE;
        }
        while left > 0 {
            let Some((at, resting, there)) = self.best_against(side, price) else {
                break;
            };
            let quantity = left.min(*there);
            left -= quantity;
            *there -= quantity;
            let used_up = *there == 0;
            fills.push((resting, at, quantity));
            if used_up {
                self.remove(resting);
            }
        }
        match price {
            _ if left == 0 => FILLED,
            None => EXHAUSTED,
            Some(price) => self.rest(order, side, price, left),
        }
    }

    /// The first in line against an order: price, number, and what is left of it.
    fn best_against(&mut self, side: u32, limit: Option<u32>) -> Option<(u32, u32, &mut u32)> {
        let (price, queue) = if side == BUY {
            let (price, queue) = self.asks.iter_mut().next()?;
            (*price, queue)
        } else {
            let (price, queue) = self.bids.iter_mut().next()?;
            (price.0, queue)
        };
        let too_dear = |limit| if side == BUY { price > limit } else { price < limit };
        if limit.is_some_and(too_dear) {
            return None;
        }
        let (order, left) = queue.front_mut()?;
        Some((price, *order, left))
    }

    fn rest(&mut self, order: u32, side: u32, price: u32, left: u32) -> u32 {
        let orders = self.resting.values().filter(|(of, _)| *of == side).count();
        if orders >= SIDE_ORDERS as usize {
            return REJECTED_ORDERS;
        }
        let (there, levels) = match side {
            BUY => (self.bids.contains_key(&Reverse(price)), self.bids.len()),
            _ => (self.asks.contains_key(&price), self.asks.len()),
        };
        if !there && levels >= SIDE_LEVELS as usize {
            return REJECTED_LEVELS;
        }
        match side {
            BUY => self.bids.entry(Reverse(price)).or_default(),
            _ => self.asks.entry(price).or_default(),
        }
        .push_back((order, left));
        self.resting.insert(order, (side, price));
        RESTS
    }

    fn cancel(&mut self, order: u32) -> Option<(u32, u32, u32)> {
        let (price, left) = self.remove(order)?;
        Some((order, price, left))
    }

    /// Takes an order out: its price, and what was left of it.
    fn remove(&mut self, order: u32) -> Option<(u32, u32)> {
        let (side, price) = self.resting.remove(&order)?;
        let queue = match side {
            BUY => self.bids.get_mut(&Reverse(price)),
            _ => self.asks.get_mut(&price),
        }?;
        let at = queue.iter().position(|(one, _)| *one == order)?;
        let (_, left) = queue.remove(at)?;
        if queue.is_empty() {
            match side {
                BUY => self.bids.remove(&Reverse(price)),
                _ => self.asks.remove(&price),
            };
        }
        Some((price, left))
    }

    /// What rests on a side, the best price first, at each price the oldest first: price, number and quantity.
    pub(crate) fn resting(&self, side: u32) -> Vec<(u32, u32, u32)> {
        let levels: Vec<(u32, &Queue)> = match side {
            BUY => self.bids.iter().map(|(price, queue)| (price.0, queue)).collect(),
            _ => self.asks.iter().map(|(price, queue)| (*price, queue)).collect(),
        };
        let orders = levels.into_iter().flat_map(|(price, queue)| {
            let of_price = move |(order, left): &(u32, u32)| (price, *order, *left);
            queue.iter().map(of_price)
        });
        orders.collect()
    }
}
