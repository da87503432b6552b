//! The function that reports a fault, as far as the C-like targets share it.

use super::{Expr, Module, Writer};
use crate::fault::record;
use crate::ir::{Scalar, Value};

/// Names of the operands.
const OPERANDS: [&str; record::OPERANDS] = ["first", "second", "third", "fourth"];

/// A report with room for some operands.
pub(crate) struct Report {
    /// What the function is called.
    pub(crate) name: &'static str,
    operands: &'static [&'static str],
}

impl Report {
    /// Room for two operands, which all faults but messages have at most, or for all of a message's.
    pub(crate) fn of(operands: &[(Scalar, Expr)]) -> Report {
        Report::with(operands.len())
    }

    fn with(operands: usize) -> Report {
        match operands {
            0..=2 => Report {
                name: "report_fault",
                operands: &OPERANDS[..2],
            },
            _ => Report {
                name: "report_message",
                operands: &OPERANDS,
            },
        }
    }

    /// The report that all faults of a module fit into, if it has any.
    pub(crate) fn asked_for(m: &Module<'_>) -> Option<Report> {
        let most = if m.has_helper("report_message") {
            record::OPERANDS
        } else if m.has_helper("report_fault") {
            2
        } else {
            return None;
        };
        Some(Report::with(most))
    }

    /// What its operands are called.
    pub(crate) fn operands(&self) -> &'static [&'static str] {
        self.operands
    }

    /// The function's lines that fill in the record. `vectors`: the names of the block's and the lane's index; `halves`: an
    /// operand's low and high word; `site`: the fault's number.
    pub(crate) fn lines(
        &self,
        vectors: [&str; 2],
        halves: impl Fn(&str) -> [String; 2],
        site: &str,
        store: impl Fn(usize, &str) -> String,
    ) -> String {
        let mut words = Vec::new();
        for (first, vector) in [record::BLOCK, record::THREAD].into_iter().zip(vectors) {
            words.extend(
                ["x", "y", "z"]
                    .map(|axis| format!("{vector}.{axis}"))
                    .into_iter()
                    .zip(first..),
            );
        }
        for (i, operand) in self.operands.iter().enumerate() {
            words.extend(halves(operand).into_iter().zip(record::operand(i)..));
        }
        words.push((site.to_owned(), record::SITE));
        let line = |(value, word): (String, usize)| format!("    {}\n", store(word, &value));
        words.into_iter().map(line).collect()
    }

    /// The function's parameters for the operands.
    pub(crate) fn params(&self, param: impl Fn(&str) -> String) -> String {
        let params: Vec<String> = self.operands.iter().map(|of| param(of)).collect();
        params.join(", ")
    }

    /// The arguments of a call, zero where there is no operand.
    pub(crate) fn args(
        &self,
        operands: &[(Scalar, Expr)],
        arg: impl Fn(Scalar, &Expr) -> String,
        zero: &str,
    ) -> String {
        let args = operands.iter().map(|(s, e)| arg(*s, e));
        let zeros = std::iter::repeat_with(|| zero.to_owned());
        let all: Vec<String> = args.chain(zeros).take(self.operands.len()).collect();
        all.join(", ")
    }
}

impl Writer<'_> {
    /// The values as integers: of floats their bits, of `bool` 0 or 1.
    pub(super) fn take_integers(&mut self, values: &[Value]) -> Vec<(Scalar, Expr)> {
        let d = self.d;
        let scalars = self.take_scalars(values).into_iter();
        scalars
            .map(|(s, e)| {
                let integer = match s {
                    Scalar::Bool => Scalar::U32,
                    _ if s.is_float() => s.to_unsigned(),
                    _ => return (s, e),
                };
                let bits = match (e.literal, s) {
                    (Some(bits), _) => d.literal(self.m, integer, bits),
                    (None, Scalar::Bool) => d.cast(self, s, integer, &e).unwrap_or(e),
                    (None, _) => d.bitcast(self.m, s, integer, &e),
                };
                (integer, bits)
            })
            .collect()
    }
}
