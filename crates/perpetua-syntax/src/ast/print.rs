//! The parts of a printed line or of a panic's message.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How many values a panic's message shows at most: a device has room for so many.
pub const MESSAGE_VALUES: usize = 4;

/// The constant that says whether `debug_assert!` and its kin assert; whoever resolves a function's names knows it.
pub const DEBUG_ASSERTIONS: &str = "__PERPETUA_DEBUG_ASSERTIONS";

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

impl fmt::Display for PrintFormat {
    /// What stands after the colon; empty for the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.align {
            Some(PrintAlign::Left) => f.write_str("<")?,
            Some(PrintAlign::Right) => f.write_str(">")?,
            None => {}
        }
        for (flag, text) in [(self.plus, "+"), (self.alternate, "#"), (self.zeros, "0")] {
            f.write_str(if flag { text } else { "" })?;
        }
        if let Some(width) = self.width {
            write!(f, "{width}")?;
        }
        if let Some(precision) = self.precision {
            write!(f, ".{precision}")?;
        }
        f.write_str(match self.notation {
            PrintNotation::Display => "",
            PrintNotation::Debug => "?",
            PrintNotation::LowerHex => "x",
            PrintNotation::UpperHex => "X",
            PrintNotation::LowerExp => "e",
        })
    }
}

/// A format that is none of [`PrintFormat`]'s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownFormat;

impl FromStr for PrintFormat {
    type Err = UnknownFormat;

    /// Reads what stands after the colon in a `{…}`.
    fn from_str(spec: &str) -> Result<Self, UnknownFormat> {
        let mut rest = spec.trim_end();
        let mut take = |c: char| {
            let tail = rest.strip_prefix(c);
            rest = tail.unwrap_or(rest);
            tail.is_some()
        };
        let align = if take('<') {
            Some(PrintAlign::Left)
        } else {
            take('>').then_some(PrintAlign::Right)
        };
        let (plus, alternate, zeros) = (take('+'), take('#'), take('0'));
        let width = take_number(&mut rest);
        let precision = match rest.strip_prefix('.') {
            Some(tail) => {
                rest = tail;
                Some(take_number(&mut rest).ok_or(UnknownFormat)?)
            }
            None => None,
        };
        let notation = match rest {
            "" => PrintNotation::Display,
            "?" => PrintNotation::Debug,
            "x" => PrintNotation::LowerHex,
            "X" => PrintNotation::UpperHex,
            "e" => PrintNotation::LowerExp,
            _ => return Err(UnknownFormat),
        };
        Ok(PrintFormat {
            notation,
            plus,
            alternate,
            zeros,
            align,
            width,
            precision,
        })
    }
}

/// The digits at the start, as a number.
fn take_number(rest: &mut &str) -> Option<u32> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, tail) = rest.split_at(end);
    let number = digits.parse().ok()?;
    *rest = tail;
    Some(number)
}
