//! Arrays as NumPy prints them: eight digits behind the point, columns below each other, the ends of what is long. Must not know where
//! they come from.

use super::Scalar;
use super::constant::print_constant;

/// Columns of a line.
const WIDTH: usize = 75;
/// Most numbers that are all shown; of more, so many at each end of each axis.
const SHOWN: usize = 1000;
const ENDS: usize = 3;
/// Digits behind the point.
const DIGITS: usize = 8;

/// An array of values of `ty`, one after the other in `bytes`, the last axis fastest; its lines but for the first begin below the end of `before`.
/// Bytes that are missing are left out.
pub fn print_array(before: &str, ty: Scalar, shape: &[usize], bytes: &[u8]) -> String {
    let size = ty.size() as usize;
    print_words(before, shape, &|indices| {
        let numbers: Vec<&[u8]> = indices
            .iter()
            .filter_map(|i| bytes.get(i * size..(i + 1) * size))
            .collect();
        numbers_as_words(ty, &numbers)
    })
}

/// The same of elements that have words of one width, by their places.
pub(super) fn print_words(before: &str, shape: &[usize], words: &dyn Fn(&[usize]) -> Vec<String>) -> String {
    if shape.is_empty() {
        return format!("{before}{}", words(&[0]).concat().trim_start());
    }
    let count: usize = shape.iter().product();
    if count == 0 {
        return format!("{before}[]");
    }
    let mut tree = Tree {
        shape,
        summary: count > SHOWN,
        indices: Vec::new(),
    };
    tree.collect(0, 0);
    let words = words(&tree.indices);
    let mut text = before.to_owned();
    let mut next = words.iter();
    tree.write(&mut text, &mut next, 0, before.chars().count());
    text
}

/// What is shown of an array.
struct Tree<'a> {
    shape: &'a [usize],
    summary: bool,
    /// Flat indices of the numbers shown, in their order.
    indices: Vec<usize>,
}

impl Tree<'_> {
    /// The indices shown along an axis; `None` where some are left out.
    fn along(&self, axis: usize) -> Vec<Option<usize>> {
        let len = self.shape[axis];
        if !self.summary || len <= 2 * ENDS {
            return (0..len).map(Some).collect();
        }
        let ends = (0..ENDS).map(Some).chain([None]);
        ends.chain((len - ENDS..len).map(Some)).collect()
    }

    fn collect(&mut self, axis: usize, before: usize) {
        for index in self.along(axis).into_iter().flatten() {
            let at = before * self.shape[axis] + index;
            match axis + 1 == self.shape.len() {
                true => self.indices.push(at),
                false => self.collect(axis + 1, at),
            }
        }
    }

    /// Writes the part that begins in column `column`, its words taken from `words`.
    fn write<'w>(
        &self,
        text: &mut String,
        words: &mut impl Iterator<Item = &'w String>,
        axis: usize,
        column: usize,
    ) {
        text.push('[');
        let left = self.shape.len() - axis - 1;
        let indent = column + 1;
        let mut used = indent;
        for (i, index) in self.along(axis).into_iter().enumerate() {
            let word = match (index, left) {
                (None, _) => Some("..."),
                (Some(_), 0) => words.next().map(String::as_str),
                (Some(_), _) => None,
            };
            if left > 0 {
                if i > 0 {
                    text.extend(std::iter::repeat_n('\n', left));
                    text.extend(std::iter::repeat_n(' ', indent));
                }
                match word {
                    Some(word) => text.push_str(word),
                    None => self.write(text, words, axis + 1, indent),
                }
                continue;
            }
            let word = word.unwrap_or_default();
            // The brackets of all axes close behind the last word.
            if i > 0 && used + 1 + word.len() > WIDTH - 1 - axis {
                text.push('\n');
                text.extend(std::iter::repeat_n(' ', indent));
                used = indent;
            } else if i > 0 {
                text.push(' ');
                used += 1;
            }
            text.push_str(word);
            used += word.len();
        }
        text.push(']');
    }
}

/// Numbers as words of one width.
pub(super) fn numbers_as_words(ty: Scalar, numbers: &[&[u8]]) -> Vec<String> {
    let texts = numbers.iter().map(|number| {
        let mut bits = [0; 8];
        bits[..number.len()].copy_from_slice(number);
        print_constant(ty, u64::from_le_bytes(bits))
    });
    let texts: Vec<String> = match ty {
        Scalar::Bool => texts
            .map(|t| {
                if t == "true" {
                    "True".into()
                } else {
                    "False".into()
                }
            })
            .collect(),
        _ if ty.is_float() => floats(&texts.map(|text| Decimal::read(&text)).collect::<Vec<_>>()),
        _ => texts.collect(),
    };
    // Of `bool`s, as many as `False` takes, also where it is nowhere.
    let least = if ty == Scalar::Bool { 5 } else { 0 };
    let width = texts.iter().map(String::len).max().unwrap_or(0).max(least);
    texts.iter().map(|text| format!("{text:>width$}")).collect()
}

/// A float in decimal: `0.d1d2d3… * 10^exponent`, the first digit not zero; or no number.
enum Decimal {
    Finite {
        negative: bool,
        digits: Vec<u8>,
        exponent: i32,
    },
    Other(&'static str),
}

impl Decimal {
    /// Reads what Rust prints, the shortest that is read back.
    fn read(text: &str) -> Decimal {
        match text {
            "inf" => return Decimal::Other("inf"),
            "-inf" => return Decimal::Other("-inf"),
            _ if text.starts_with("0f") => return Decimal::Other("nan"),
            _ => {}
        }
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, power) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|c| c - b'0').collect();
        let zeros = all.iter().take_while(|d| **d == 0).count();
        let end = all.iter().rposition(|d| *d != 0).map_or(zeros, |last| last + 1);
        Decimal::Finite {
            negative,
            digits: all[zeros.min(end)..end].to_vec(),
            exponent: match end > zeros {
                true => whole.len() as i32 - zeros as i32 + power.parse::<i32>().unwrap_or(0),
                false => 0,
            },
        }
    }

    /// The magnitude, about.
    fn magnitude(&self) -> Option<f64> {
        match self {
            Decimal::Finite { digits, exponent, .. } if !digits.is_empty() => {
                let mantissa = digits
                    .iter()
                    .take(17)
                    .rev()
                    .fold(0.0, |sum, d| (sum + f64::from(*d)) / 10.0);
                Some(mantissa * 10f64.powi(*exponent))
            }
            _ => None,
        }
    }

    /// Digits and exponent, rounded to so many behind the first `whole` ones.
    fn rounded(digits: &[u8], exponent: i32, keep: i32) -> (Vec<u8>, i32) {
        let keep = keep.max(0) as usize;
        if digits.len() <= keep {
            return (digits.to_vec(), exponent);
        }
        let mut kept = digits[..keep].to_vec();
        let rest = &digits[keep..];
        // A tie goes to the even digit.
        let is_even = kept.last().is_none_or(|d| d % 2 == 0);
        if rest[0] > 5 || (rest[0] == 5 && (rest.len() > 1 || !is_even)) {
            let nines = kept.iter().rev().take_while(|d| **d == 9).count();
            kept.truncate(keep - nines);
            match kept.last_mut() {
                Some(last) => *last += 1,
                None => return (vec![1], exponent + 1),
            }
        }
        let end = kept.iter().rposition(|d| *d != 0).map_or(0, |last| last + 1);
        kept.truncate(end);
        (kept, exponent)
    }

    /// Before and behind the point.
    fn positional(&self) -> (String, String) {
        let Decimal::Finite {
            negative,
            digits,
            exponent,
        } = self
        else {
            return (String::new(), String::new());
        };
        let (digits, exponent) = Decimal::rounded(digits, *exponent, exponent + DIGITS as i32);
        let digit = |place: i32| {
            let at = usize::try_from(exponent - 1 - place).ok();
            char::from(b'0' + at.and_then(|at| digits.get(at)).copied().unwrap_or(0))
        };
        let sign = if *negative { "-" } else { "" };
        let whole: String = (0..exponent.max(1)).rev().map(digit).collect();
        let behind = (digits.len() as i32 - exponent).max(0);
        let fraction: String = (1..=behind).map(|i| digit(-i)).collect();
        (format!("{sign}{whole}"), fraction)
    }

    /// Before and behind the point, and the power of ten.
    fn scientific(&self) -> (String, String, i32) {
        let Decimal::Finite {
            negative,
            digits,
            exponent,
        } = self
        else {
            return (String::new(), String::new(), 0);
        };
        let (digits, exponent) = Decimal::rounded(digits, *exponent, 1 + DIGITS as i32);
        let sign = if *negative { "-" } else { "" };
        let first = digits.first().copied().unwrap_or(0);
        let fraction = digits.iter().skip(1).map(|d| char::from(b'0' + d)).collect();
        let power = if digits.is_empty() { 0 } else { exponent - 1 };
        (format!("{sign}{first}"), fraction, power)
    }
}

/// With the point in one column, or as powers of ten where magnitudes differ much.
fn floats(numbers: &[Decimal]) -> Vec<String> {
    let magnitudes: Vec<f64> = numbers.iter().filter_map(Decimal::magnitude).collect();
    let most = magnitudes.iter().copied().fold(0.0, f64::max);
    let least = magnitudes.iter().copied().fold(f64::INFINITY, f64::min);
    if !magnitudes.is_empty() && (most >= 1e8 || least < 1e-4 || most / least > 1000.0) {
        let parts: Vec<_> = numbers.iter().map(Decimal::scientific).collect();
        let behind = parts
            .iter()
            .map(|(_, fraction, _)| fraction.len())
            .max()
            .unwrap_or(0);
        let power = |power: i32| format!("{}{:02}", if power < 0 { '-' } else { '+' }, power.abs());
        let widest = parts.iter().map(|(.., p)| power(*p).len()).max().unwrap_or(0);
        return numbers
            .iter()
            .zip(parts)
            .map(|(number, (whole, fraction, exponent))| match number {
                Decimal::Other(text) => (*text).to_owned(),
                Decimal::Finite { .. } => {
                    let power = power(exponent);
                    let zeros = "0".repeat(widest - power.len());
                    format!(
                        "{whole}.{fraction:0<behind$}e{}{zeros}{}",
                        &power[..1],
                        &power[1..]
                    )
                }
            })
            .collect();
    }
    let parts: Vec<_> = numbers.iter().map(Decimal::positional).collect();
    let behind = parts
        .iter()
        .map(|(_, fraction)| fraction.len())
        .max()
        .unwrap_or(0);
    numbers
        .iter()
        .zip(parts)
        .map(|(number, (whole, fraction))| match number {
            Decimal::Other(text) => (*text).to_owned(),
            Decimal::Finite { .. } => format!("{whole}.{fraction:<behind$}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ty: Scalar, shape: &[usize], values: &[f64], expect: &str) {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| match ty {
                Scalar::F32 => (*value as f32).to_le_bytes().to_vec(),
                Scalar::F64 => value.to_le_bytes().to_vec(),
                Scalar::I32 => (*value as i32).to_le_bytes().to_vec(),
                _ => vec![*value as u8],
            })
            .collect();
        assert_eq!(print_array("", ty, shape, &bytes), expect);
    }

    /// What `print(numpy.array(…))` says of the same numbers.
    #[test]
    fn arrays_look_as_numpy_prints_them() {
        use Scalar::{Bool, F32, F64, I32};
        check(F32, &[4], &[0.0, 1.0, 2.0, 3.0], "[0. 1. 2. 3.]");
        check(F64, &[3], &[0.25, 10.0, -1.5], "[ 0.25 10.   -1.5 ]");
        check(F64, &[2], &[1.0 / 3.0, 2.0 / 3.0], "[0.33333333 0.66666667]");
        check(F32, &[2], &[0.1, 0.2], "[0.1 0.2]");
        check(F64, &[2], &[1e-5, 1.0], "[1.e-05 1.e+00]");
        check(F64, &[2], &[1.25e9, -3.0], "[ 1.25e+09 -3.00e+00]");
        check(F64, &[2], &[1e100, 1.0], "[1.e+100 1.e+000]");
        check(F64, &[3], &[f64::NAN, 1.5, f64::NEG_INFINITY], "[ nan  1.5 -inf]");
        check(F64, &[2], &[9.999999999, 1.0], "[10.  1.]");
        check(F64, &[2], &[0.0, 0.0], "[0. 0.]");
        check(I32, &[2, 2], &[1.0, -20.0, 3.0, 4.0], "[[  1 -20]\n [  3   4]]");
        check(I32, &[1, 2, 1], &[1.0, 2.0], "[[[1]\n  [2]]]");
        check(I32, &[2, 1, 1], &[1.0, 2.0], "[[[1]]\n\n [[2]]]");
        check(Bool, &[2], &[1.0, 0.0], "[ True False]");
        check(Bool, &[2], &[1.0, 1.0], "[ True  True]");
        check(Bool, &[], &[1.0], "True");
        check(I32, &[0], &[], "[]");
        check(I32, &[], &[7.0], "7");
        let many: Vec<f64> = (0..2000).map(f64::from).collect();
        check(I32, &[2000], &many, "[   0    1    2 ... 1997 1998 1999]");
        check(
            I32,
            &[2, 1000],
            &many,
            "[[   0    1    2 ...  997  998  999]\n [1000 1001 1002 ... 1997 1998 1999]]",
        );
        let thirty: Vec<f64> = (0..30).map(f64::from).collect();
        check(
            I32,
            &[30],
            &thirty,
            "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n 24 25 26 27 28 29]",
        );
    }

    #[test]
    fn lines_begin_below_the_name() {
        let text = print_array("y = ", Scalar::U8, &[2, 1], &[1, 2]);
        assert_eq!(text, "y = [[1]\n     [2]]");
    }
}
