//! The parts of a printed line.

use serde::{Deserialize, Serialize};

/// A part of a printed line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrintPiece {
    /// Text.
    Text(String),
    /// An argument's value.
    Arg {
        /// Its index in the arguments.
        index: u32,
        /// How it is written.
        format: PrintFormat,
    },
}

/// How a printed value is written; Rust's format specification without fill, centring and arguments as widths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct PrintFormat {
    /// The notation.
    pub notation: PrintNotation,
    /// `+`: a sign before positive numbers too.
    pub plus: bool,
    /// `#`: `0x` before hexadecimal digits.
    pub alternate: bool,
    /// `0`: zeros instead of spaces up to the width.
    pub zeros: bool,
    /// `<` or `>`, where written.
    pub align: Option<PrintAlign>,
    /// The least number of characters.
    pub width: Option<u32>,
    /// The number of digits after the point.
    pub precision: Option<u32>,
}

/// The notation of a printed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum PrintNotation {
    /// `{}`.
    #[default]
    Display,
    /// `{:?}`, which shows `1.0` where `{}` shows `1`.
    Debug,
    /// `{:x}`.
    LowerHex,
    /// `{:X}`.
    UpperHex,
    /// `{:e}`.
    LowerExp,
}

/// On which side a printed value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PrintAlign {
    /// `<`.
    Left,
    /// `>`.
    Right,
}
