//! Integers of two words in texts: a device writes words, so the number's size decides of how many numbers its digits are.

use perpetua_syntax::{PrintFormat, PrintNotation};

use super::shown::{Alternatives, Case, Part};
use super::value::Val;
use super::{Emitter, Result};
use crate::front::rust::infer::methods::Num;
use crate::front::rust::infer::ty::Ty;
use crate::ir::{Scalar, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// Decimal digits that one word always holds.
const DIGITS: u32 = 19;

impl Emitter<'_> {
    /// The texts of an integer of two words.
    pub(super) fn wide_texts(
        &mut self,
        v: Value,
        n: Num,
        format: PrintFormat,
        line: u32,
    ) -> Result<Alternatives> {
        let hexadecimal = matches!(format.notation, PrintNotation::LowerHex | PrintNotation::UpperHex);
        if format.width.is_some() || format.plus || format.notation == PrintNotation::LowerExp {
            return Err(self.error(
                line,
                format!("a `{n}` is printed with `{{:{format}}}`"),
                "write `{}`, `{:x}` or `{:#x}`",
            ));
        }
        let within = PrintFormat {
            zeros: true,
            alternate: false,
            width: Some(if hexadecimal { 16 } else { DIGITS }),
            ..format
        };
        let number = |value: Value, format| {
            Part::Value(
                Val::Value(value),
                Ty::Scalar(perpetua_syntax::Scalar::U64),
                format,
            )
        };
        let (zero, one) = (self.constant(Scalar::U32, 0), self.constant(Scalar::U32, 1));
        if hexadecimal {
            let high = self.wide_word(v, 1, line)?;
            let low = self.wide_word(v, 0, line)?;
            let none = self.constant(Scalar::U64, 0);
            let more = self.binary(BinaryOp::Ne, high, none, line)?;
            let selector = self.ternary(TernaryOp::Select, more, one, zero, line)?;
            let all = vec![
                (0, Case::Parts(vec![number(low, format)])),
                (1, Case::Parts(vec![number(high, format), number(low, within)])),
            ];
            return Ok(Alternatives { selector, all });
        }
        let negative = match n.is_signed_int() {
            true => {
                let none = self.constant(n, 0);
                Some(self.binary(BinaryOp::Lt, v, none, line)?)
            }
            false => None,
        };
        let magnitude = match negative {
            Some(_) => self.unary(UnaryOp::Abs, v, line)?,
            None => v,
        };
        let mut left = self.bitcast(Num::U128, magnitude, line)?;
        let power = self.integer(Num::U128, 10u128.pow(DIGITS));
        let mut parts = Vec::new();
        for _ in 0..2 {
            let digits = self.binary(BinaryOp::Rem, left, power, line)?;
            parts.insert(0, self.wide_word(digits, 0, line)?);
            left = self.binary(BinaryOp::Div, left, power, line)?;
        }
        // At most 39 digits.
        let first = self.wide_word(left, 0, line)?;
        parts.insert(0, first);
        let none = self.constant(Scalar::U64, 0);
        // How many words of digits stand before the last: 2, 1 or 0; and 3 more behind a sign.
        let two = self.binary(BinaryOp::Ne, parts[0], none, line)?;
        let some = self.binary(BinaryOp::Ne, parts[1], none, line)?;
        let selector = self.ternary(TernaryOp::Select, some, one, zero, line)?;
        let most = self.constant(Scalar::U32, 2);
        let mut selector = self.ternary(TernaryOp::Select, two, most, selector, line)?;
        if let Some(negative) = negative {
            let behind = self.constant(Scalar::U32, 3);
            let behind = self.ternary(TernaryOp::Select, negative, behind, zero, line)?;
            selector = self.binary(BinaryOp::Add, selector, behind, line)?;
        }
        let signs: &[&str] = if negative.is_some() { &["", "-"] } else { &[""] };
        let mut all = Vec::new();
        for sign in signs {
            for words in 1..=3 {
                let mut text = vec![Part::Text((*sign).to_owned())];
                let mut own = parts[3 - words..].iter();
                text.extend(own.next().map(|first| number(*first, format)));
                text.extend(own.map(|rest| number(*rest, within)));
                all.push((all.len() as u64, Case::Parts(text)));
            }
        }
        Ok(Alternatives { selector, all })
    }
}
