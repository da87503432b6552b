//! Passes, by what kernels do behind them: the interpreter runs what came of each.

mod bind;
mod library;
mod turns;
mod wide;
