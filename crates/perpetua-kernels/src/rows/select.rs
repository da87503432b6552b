//! The greatest or least numbers of each row, and where they are. Must not know how rows are divided among blocks.

use perpetua::prelude::*;

use super::row::{Place, fetch, place};
use crate::element::{Piece, Storage};
use crate::lanes::across;

/// Most numbers that are selected of a row.
pub(super) const MOST: usize = 1024;
/// Values of a digit.
const DIGITS: usize = 2048;

/// A number as an unsigned one in the order in which numbers come: NaN first, then the greatest, or the `LEAST`. Equal numbers are equal, zeros of both signs, too.
#[device]
fn rank<const LEAST: bool>(x: f32) -> u32 {
    let bits = x.to_bits();
    // Without the sign of a zero.
    let bits = if bits << 1 == 0 { 0 } else { bits };
    let ascending = if bits >> 31 == 1 {
        !bits
    } else {
        bits | 0x8000_0000
    };
    if x.is_nan() {
        u32::MAX
    } else if LEAST {
        !ascending
    } else {
        ascending
    }
}

/// Where the first number of each row is that comes before all others.
#[kernel(interpret)]
pub(super) fn argmax<
    M: Piece,
    const N: usize,
    const LANES: usize,
    const HELD: usize,
    const MEETS: bool,
    const LEAST: bool,
>(
    rows: usize,
    pieces: usize,
    x_pitch: usize,
    _y_pitch: usize,
    x: &[M],
    indices: &mut [u32],
) {
    let part = shared_array::<[u32; 512]>();
    let lane = local_id_x();
    let Place { row, within, end } = place::<LANES>(rows, pieces);
    let (mut best, mut index) = (0u32, u32::MAX);
    let mut at = within;
    while at < end {
        let numbers = fetch::<M, N, LANES, 16>(x, row * x_pitch, at, end, 0.0);
        for i in 0..16 {
            let piece = at + i / N * LANES;
            let rank = rank::<LEAST>(numbers[i]);
            // A lane's numbers come in their order, so the first one of equal ones stays.
            if piece < end && (rank > best || index == u32::MAX) {
                best = rank;
                index = (piece * N + i % N) as u32;
            }
        }
        at += 16 / N * LANES;
    }
    let most = across::<u32, LANES, MEETS>(part, lane, best, |a, b| a.max(b));
    let own = if best == most { index } else { u32::MAX };
    let first = across::<u32, LANES, MEETS>(part, lane, own, |a, b| a.min(b));
    if row < rows && within == 0 {
        indices[row] = first;
    }
}

/// What has been decided of the numbers that are selected: all whose digits so far are greater than these are, and of those that have the same so many more.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Chosen {
    prefix: u32,
    more: u32,
}

/// Of counts of digits the digit with which the wanted numbers end, and how many of it are wanted.
#[device]
fn choose(counts: &mut [u32; DIGITS], sums: &mut [u32; 256], lane: usize, wanted: u32) -> Chosen {
    // Each lane has eight digits, the first lane the greatest ones.
    let first = DIGITS - 8 * (lane + 1);
    let mut own = 0u32;
    for i in 0..8 {
        own += counts[first + i];
    }
    sums[lane] = own;
    sync_threads();
    let mut before = 0u32;
    let mut chosen = 0;
    for other in 0..256 {
        if before + sums[other] < wanted {
            before += sums[other];
            chosen = other + 1;
        } else {
            break;
        }
    }
    let mut digit = DIGITS - 1 - 8 * chosen.min(255);
    while digit > 0 && before + counts[digit] < wanted {
        before += counts[digit];
        digit -= 1;
    }
    sync_threads();
    Chosen {
        prefix: digit as u32,
        more: wanted - before,
    }
}

/// The first numbers of a row, in their order, and where they are; of equal ones those come first that are first. A block a row: eleven bits of a number at a time say which are among the first ones, then, where more are equal than are
/// wanted, eleven bits of their places; at last those are sorted. `BITS`: those of a number that count. `power`: the power of two that is not below `wanted`.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn top_k<T: Storage, const BITS: u32, const LEAST: bool>(
    columns: usize,
    x_pitch: usize,
    y_pitch: usize,
    wanted: u32,
    power: u32,
    place_bits: u32,
    x: &[T],
    values: &mut [T],
    indices: &mut [u32],
) {
    let counts = shared_array::<[u32; DIGITS]>();
    let sums = shared_array::<[u32; 256]>();
    let ranks = shared_array::<[u32; MOST]>();
    let places = shared_array::<[u32; MOST]>();
    let taken = shared_array::<[u32; 2]>();
    let lane = local_id_x() % 256;
    let from = group_id_x() * x_pitch;

    // Numbers of 16 bits have no others than the upper ones, up to where a half's were widened.
    let mut number = Chosen {
        prefix: 0,
        more: wanted,
    };
    let mut number_left = 32u32;
    let mut place = Chosen { prefix: 0, more: 0 };
    let mut place_left = place_bits;
    let mut by_place = false;
    let mut goes_on = true;
    while goes_on {
        for i in 0..8 {
            counts[i * 256 + lane] = 0;
        }
        sync_threads();
        let width = if by_place {
            place_left.min(11)
        } else {
            number_left.min(11)
        };
        let left = if by_place {
            place_left - width
        } else {
            number_left - width
        };
        let mut at = lane;
        while at < columns {
            let rank = rank::<LEAST>(x[from + at].wide());
            if by_place {
                // The first place is the greatest.
                let late = !(at as u32) & low_bits(place_bits);
                if above(rank, number_left) == number.prefix && above(late, place_left) == place.prefix {
                    atomic_add(&mut counts[(late >> left & low_bits(width)) as usize], 1);
                }
            } else if above(rank, number_left) == number.prefix {
                atomic_add(&mut counts[(rank >> left & low_bits(width)) as usize], 1);
            }
            at += 256;
        }
        sync_threads();
        let chosen = choose(
            counts,
            sums,
            lane,
            if by_place { place.more } else { number.more },
        );
        if lane == 0 {
            taken[0] = u32::from(counts[chosen.prefix as usize] == chosen.more);
        }
        sync_threads();
        let is_exact = taken[0];
        sync_threads();
        if by_place {
            place = Chosen {
                prefix: place.prefix << width | chosen.prefix,
                more: chosen.more,
            };
            place_left = left;
        } else {
            number = Chosen {
                prefix: number.prefix << width | chosen.prefix,
                more: chosen.more,
            };
            number_left = left;
        }
        if is_exact == 1 {
            goes_on = false;
        } else if by_place {
            goes_on = place_left > 0;
        } else if number_left <= 32 - BITS {
            by_place = true;
            place.more = number.more;
        }
    }

    if lane == 0 {
        taken[1] = 0;
    }
    for i in 0..4 {
        ranks[i * 256 + lane] = 0;
        places[i * 256 + lane] = u32::MAX;
    }
    sync_threads();
    let mut at = lane;
    while at < columns {
        let rank = rank::<LEAST>(x[from + at].wide());
        let of_number = above(rank, number_left);
        let late = above(!(at as u32) & low_bits(place_bits), place_left);
        if of_number > number.prefix || of_number == number.prefix && (!by_place || late >= place.prefix) {
            let next = atomic_add(&mut taken[1], 1) as usize;
            if next < MOST {
                ranks[next] = rank;
                places[next] = at as u32;
            }
        }
        at += 256;
    }
    sync_threads();

    // A bitonic sort, of as many as the next power of two.
    let mut size = 2;
    while size <= power {
        let mut far = size / 2;
        while far > 0 {
            let mut own = lane as u32;
            while own < power / 2 {
                let low = (own / far * far * 2 + own % far) as usize;
                let high = low + far as usize;
                let is_before =
                    ranks[low] > ranks[high] || ranks[low] == ranks[high] && places[low] < places[high];
                let ascends = low as u32 & size == 0;
                if is_before != ascends {
                    let (rank, place) = (ranks[low], places[low]);
                    (ranks[low], places[low]) = (ranks[high], places[high]);
                    (ranks[high], places[high]) = (rank, place);
                }
                own += 256;
            }
            sync_threads();
            far /= 2;
        }
        size *= 2;
    }
    let mut at = lane;
    while at < wanted as usize {
        let place = places[at];
        let to = group_id_x() * y_pitch + at;
        values[to] = x[from + place as usize];
        indices[to] = place;
        at += 256;
    }
}

/// So many low bits.
#[device]
fn low_bits(count: u32) -> u32 {
    if count >= 32 { u32::MAX } else { (1 << count) - 1 }
}

/// A word without so many low bits.
#[device]
fn above(word: u32, bits: u32) -> u32 {
    if bits >= 32 { 0 } else { word >> bits }
}
