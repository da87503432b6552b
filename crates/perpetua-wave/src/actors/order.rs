//! What tiles are told, as words: the same for threads and devices. Must not know how orders travel.

/// Words of an order.
pub(crate) const ORDER_WORDS: usize = 12;

/// The first of all: takes in media and cells. No words.
pub(crate) const BEGIN: u32 = 0;
/// A slot of the table of media has other numbers: slot, stiffness, what is kept (bits of `f32`).
pub(crate) const MEDIUM: u32 = 1;
/// A box of cells gets a slot: slot, first and first beyond in x, then in y.
pub(crate) const FILL: u32 = 2;
/// A disc of cells gets a slot: slot, centre in x and y, radius squared (bits of `f64`, low word first).
pub(crate) const PAINT: u32 = 3;
/// So many steps: steps.
pub(crate) const RUN: u32 = 4;
/// A source's place: its number, first and first beyond in x, then in y.
pub(crate) const SOURCE: u32 = 5;
/// Says the field of a cell: x, y; the engine adds the order's number.
pub(crate) const PROBE: u32 = 6;
/// Writes the fields to device memory. No words.
pub(crate) const SAVE: u32 = 7;
/// Writes the fields and leaves. No words.
pub(crate) const PARK: u32 = 8;
/// To the conductor: steps on, until the step: its number.
pub(crate) const FREE: u32 = 16;
/// To the conductor: no more steps of its own. No words.
pub(crate) const PAUSE: u32 = 17;

/// An order, its kind first.
pub(crate) type Order = [u32; ORDER_WORDS];

/// An order of a kind, with its first words.
pub(crate) fn order(kind: u32, words: &[u32]) -> Order {
    let mut order = [0; ORDER_WORDS];
    order[0] = kind;
    for (to, from) in order.iter_mut().skip(1).zip(words) {
        *to = *from;
    }
    order
}

/// The words of a number, low one first.
pub(crate) fn words(value: f64) -> [u32; 2] {
    let bits = value.to_bits();
    [bits as u32, (bits >> 32) as u32]
}
