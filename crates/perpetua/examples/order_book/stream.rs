//! A stream of orders that looks like a market's: the same for the same seed on every machine. Must not know who handles it.
//!
//! Symbols are met as Zipf's law says. Each has a price that walks at random; limit orders lie around it, the nearer the more, or reach
//! across it; quantities are spread as a logarithm is normal. What is cancelled is one of the last orders that were placed to rest: some of them
//! have been filled meanwhile, and the book must say so. All arithmetic is of integers and of what IEEE defines exactly.

use crate::book::{BUY, Cancel, HIGHEST_PRICE, Place, SELL};

/// Of a hundred messages so many are limit orders that are meant to rest.
const PASSIVE: u64 = 45;
/// Limit orders that reach across.
const AGGRESSIVE: u64 = 15;
/// Market orders; the rest of the hundred are cancels.
const MARKET: u64 = 5;
/// Orders of a symbol that may be cancelled.
const REMEMBERED: usize = 24;

/// What a symbol's actor is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Message {
    /// An order.
    Place(Place),
    /// A cancel.
    Cancel(Cancel),
}

/// Numbers that look random (Steele, Lea and Flood's SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    /// The same numbers for the same seed.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// From 0 up to `n`, without it.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// From 0 up to 1, without it.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// How often in a row two thirds come true.
    fn geometric(&mut self) -> u32 {
        let mut n = 0;
        while n < 40 && self.below(3) != 0 {
            n += 1;
        }
        n
    }

    /// Its logarithm is nearly normal: the median is 100, half of them lie between 50 and 200.
    fn quantity(&mut self) -> u32 {
        // The sum of twelve has a variance of 1; 1.48 of these, in powers of two, put the quartiles at one power.
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        let power = 6.644 + 1.48 * normal;
        let whole = power.max(0.0) as u32;
        let part = (power - f64::from(whole)).clamp(0.0, 1.0);
        // Straight between two powers of two.
        (((1u64 << whole.min(12)) as f64 * (1.0 + part)) as u32).max(1)
    }
}

struct Symbol {
    price: u32,
    placed: Vec<u32>,
}

/// The stream.
pub(crate) struct Stream {
    random: Random,
    symbols: Vec<Symbol>,
    /// For each symbol the share of messages that it and those before it have.
    shares: Vec<f64>,
    next_order: u32,
}

impl Stream {
    /// A stream for so many symbols.
    pub(crate) fn new(seed: u64, symbols: usize) -> Stream {
        let mut random = Random::new(seed);
        let mut sum = 0.0;
        let mut shares: Vec<f64> = Vec::with_capacity(symbols);
        for rank in 1..=symbols {
            sum += 1.0 / rank as f64;
            shares.push(sum);
        }
        shares.iter_mut().for_each(|share| *share /= sum);
        let symbols = (0..symbols).map(|_| Symbol {
            price: 5_000 + random.below(20_000) as u32,
            placed: Vec::new(),
        });
        let symbols = symbols.collect();
        Stream {
            random,
            symbols,
            shares,
            next_order: 1,
        }
    }
}

impl Iterator for Stream {
    type Item = (usize, Message);

    /// The next message, and for which symbol.
    fn next(&mut self) -> Option<(usize, Message)> {
        let random = &mut self.random;
        let share = random.unit();
        let index = self
            .shares
            .partition_point(|upto| *upto <= share)
            .min(self.symbols.len() - 1);
        let symbol = &mut self.symbols[index];
        match random.below(16) {
            0 => symbol.price = (symbol.price + 1).min(HIGHEST_PRICE - 100),
            1 => symbol.price = (symbol.price - 1).max(100),
            _ => {}
        }
        let kind = random.below(100);
        if kind >= PASSIVE + AGGRESSIVE + MARKET && !symbol.placed.is_empty() {
            let which = random.below(symbol.placed.len() as u64) as usize;
            let order = symbol.placed.swap_remove(which);
            return Some((index, Message::Cancel(Cancel { order })));
        }
        let side = if random.below(2) == 0 { BUY } else { SELL };
        let market = (PASSIVE + AGGRESSIVE..PASSIVE + AGGRESSIVE + MARKET).contains(&kind);
        let aggressive = (PASSIVE..PASSIVE + AGGRESSIVE).contains(&kind);
        let depth = 1 + random.geometric();
        // Who buys rests below the price, and reaches above it.
        let price = match (side == BUY) == aggressive {
            true => symbol.price + depth,
            false => symbol.price - depth,
        };
        let order = self.next_order;
        self.next_order += 1;
        if !market && !aggressive {
            if symbol.placed.len() == REMEMBERED {
                symbol
                    .placed
                    .swap_remove(random.below(REMEMBERED as u64) as usize);
            }
            symbol.placed.push(order);
        }
        let place = Place {
            order,
            side,
            price: if market { 0 } else { price },
            quantity: random.quantity(),
            market: u32::from(market),
        };
        Some((index, Message::Place(place)))
    }
}
