//! What runs tiles, as those see it who give orders. Must not know commands.

use super::super::error::Result;
use super::order::Order;

/// Steps whose drives an engine holds: a power of two.
pub(super) const DRIVES: u64 = 1 << 16;
/// Sources of a grid of tiles.
pub(super) const SOURCES: usize = 4;

/// What became of an order when it was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Steps before it; wraps at 2^32.
    pub(super) step: u32,
}

/// Where tiles are at work. Orders have numbers from 0 on, which wrap at 2^32.
pub(super) trait Engine: Send {
    /// Gives an order to all tiles; its number.
    fn push(&mut self, order: &Order) -> Result<u32>;
    /// Waits until an order has its place among the steps. Of the last thousand orders only.
    fn taken(&mut self, number: u32) -> Result<Taken>;
    /// Waits until all tiles are through with an order. Of the last thousand orders only.
    fn wait(&mut self, number: u32) -> Result<()>;
    /// Waits for what a probe says: the field's value, and the step. Of the last thousand orders only.
    fn answer(&mut self, number: u32) -> Result<(f32, u32)>;
    /// The fields that the last order to save them wrote, which is through.
    fn saved(&mut self) -> Result<(Vec<f32>, Vec<f32>)>;
    /// Says what sources add from a step on, a row a step. Nobody may still need what was said of as many steps before as fit.
    fn supply(&mut self, from: u64, rows: &[[f32; SOURCES]]) -> Result<()>;
    /// Ends the tiles.
    fn stop(&mut self) -> Result<()>;
    /// Whether they stay where they run.
    fn stays(&self) -> bool;
    /// How the grid is cut, for people.
    fn form(&self) -> String;
    /// Steps of a run that nobody has asked for by number, given out at once, at most.
    fn ahead(&self) -> u32;
}
