//! What kernels print, as data: the sites of `gpu_println!`, the ring that a device writes, and the lines that a user
//! reads. Every backend prints through these types.

use perpetua_syntax::{PrintAlign, PrintNotation};

use crate::ir::{PrintFormat, PrintPiece, Scalar};

/// A `gpu_println!` in a kernel's source. Its index in a kernel's table is its print number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrintSite {
    /// Source line, 0 when unknown.
    pub line: u32,
    /// The format.
    pub pieces: Vec<PrintPiece>,
    /// Types of the arguments.
    pub args: Vec<Scalar>,
}

impl PrintSite {
    /// The line that the arguments' bits (zero-extended to 64) give; a missing argument prints as `?`.
    pub fn format(&self, args: &[u64]) -> String {
        format(&self.pieces, &self.args, args)
    }
}

/// The text that arguments of these types and bits (extended to 64) give; a missing argument prints as `?`.
pub fn format(pieces: &[PrintPiece], types: &[Scalar], args: &[u64]) -> String {
    let mut args = types.iter().zip(args);
    pieces.iter().fold(String::new(), |mut line, piece| {
        match piece {
            PrintPiece::Text(text) => line.push_str(text),
            PrintPiece::Arg(format) => match args.next() {
                Some((s, bits)) => line.push_str(&scalar(*s, *bits, format)),
                None => line.push('?'),
            },
        }
        line
    })
}

/// A scalar as Rust prints it.
fn scalar(s: Scalar, bits: u64, format: &PrintFormat) -> String {
    let text = match s {
        Scalar::Bool => {
            let word = if bits & 1 != 0 { "true" } else { "false" };
            let end = format
                .precision
                .map_or(word.len(), |n| word.len().min(n as usize));
            return padded("", &word[..end], PrintAlign::Left, false, format);
        }
        Scalar::I8 => integer(i64::from(bits as i8), u64::from(bits as u8), format),
        Scalar::I16 => integer(i64::from(bits as i16), u64::from(bits as u16), format),
        Scalar::I32 => integer(i64::from(bits as i32), u64::from(bits as u32), format),
        Scalar::I64 => integer(bits as i64, bits, format),
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => integer(bits, bits, format),
        Scalar::F16 => float(half::f16::from_bits(bits as u16).to_f32(), format),
        Scalar::BF16 => float(half::bf16::from_bits(bits as u16).to_f32(), format),
        Scalar::F32 => float(f32::from_bits(bits as u32), format),
        Scalar::F64 => float(f64::from_bits(bits), format),
    };
    let number = text.trim_start_matches('-');
    let sign = match text.starts_with('-') {
        true => "-",
        false if format.plus && number != "NaN" => "+",
        false => "",
    };
    let hexadecimal = matches!(format.notation, PrintNotation::LowerHex | PrintNotation::UpperHex);
    let prefix = if hexadecimal && format.alternate { "0x" } else { "" };
    let head = format!("{sign}{prefix}");
    padded(&head, number, PrintAlign::Right, format.zeros, format)
}

/// The digits of an integer, with a minus where it is negative and not shown by its bits.
fn integer<T: std::fmt::Display + std::fmt::LowerExp>(v: T, bits: u64, format: &PrintFormat) -> String {
    match (format.notation, format.precision) {
        (PrintNotation::LowerHex, _) => format!("{bits:x}"),
        (PrintNotation::UpperHex, _) => format!("{bits:X}"),
        (PrintNotation::LowerExp, Some(n)) => format!("{v:.*e}", n as usize),
        (PrintNotation::LowerExp, None) => format!("{v:e}"),
        (PrintNotation::Display | PrintNotation::Debug, _) => v.to_string(),
    }
}

/// The digits of a float, with a minus where its sign bit is set.
fn float<T: std::fmt::Display + std::fmt::Debug + std::fmt::LowerExp>(v: T, format: &PrintFormat) -> String {
    match (format.notation, format.precision) {
        (PrintNotation::LowerExp, Some(n)) => format!("{v:.*e}", n as usize),
        (PrintNotation::LowerExp, None) => format!("{v:e}"),
        (_, Some(n)) => format!("{v:.*}", n as usize),
        (PrintNotation::Debug, None) => format!("{v:?}"),
        (_, None) => v.to_string(),
    }
}

/// `head` and `tail` filled up to the width: with zeros between them, or with spaces beside them.
fn padded(head: &str, tail: &str, align: PrintAlign, zeros: bool, format: &PrintFormat) -> String {
    let width = format.width.unwrap_or(0) as usize;
    let rest = width.saturating_sub(head.len() + tail.len());
    match (zeros, format.align.unwrap_or(align)) {
        (true, _) => format!("{head}{}{tail}", "0".repeat(rest)),
        (false, PrintAlign::Left) => format!("{head}{tail}{}", " ".repeat(rest)),
        (false, PrintAlign::Right) => format!("{}{head}{tail}", " ".repeat(rest)),
    }
}

/// Layout of the ring that `gpu_println!` writes on devices that print: `u32` words.
pub mod ring {
    /// Number of words ever reserved (grows by atomic addition; a record that would pass [`CAPACITY`] is dropped).
    pub const CURSOR: usize = 0;
    /// Words available for records, set by the host.
    pub const CAPACITY: usize = 1;
    /// Records dropped for want of room.
    pub const DROPPED: usize = 2;
    /// First word of the first record. A record is: print number + 1 + the launch's site base (written last, with release order), then two
    /// words (low, high) for each argument: its bits zero-extended to 64.
    pub const RECORDS: usize = 4;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_argument_is_a_question_mark() {
        let plain = || PrintPiece::Arg(PrintFormat::default());
        let site = PrintSite {
            line: 1,
            pieces: vec![PrintPiece::Text("x = ".into()), plain(), plain(), plain()],
            args: vec![Scalar::F32, Scalar::I8, Scalar::U8],
        };
        assert_eq!(site.format(&[1.5f32.to_bits().into(), 0xff]), "x = 1.5-1?");
    }

    /// Holds every format against what Rust makes of the same values.
    macro_rules! agree {
        ($values:expr, $scalar:expr, $bits:expr, [$($spec:literal)*]) => {
            for v in $values {
                $(
                    let format: PrintFormat = $spec.parse().unwrap();
                    assert_eq!(
                        scalar($scalar, $bits(v), &format),
                        format!(concat!("{:", $spec, "}"), v),
                        "{v:?} as {:?}",
                        $spec
                    );
                )*
            }
        };
    }

    #[test]
    fn scalars_print_as_rust_prints_them() {
        let floats = [
            0.0,
            -0.0,
            1.0,
            -1.5,
            1e21,
            1e-9,
            0.1,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
        ];
        agree!(floats, Scalar::F32, |v: f32| u64::from(v.to_bits()), [
            "" "?" "+" "+?" "8" "<8" ">+8.3" "08.2" "<08.1" "+08" ".0" ".3?" "e" ".2e" "+12.3e" "012e" "#" "#?"
        ]);
        agree!(floats.map(f64::from), Scalar::F64, |v: f64| v.to_bits(), ["" "?" "+.4" "010.1" "e"]);
        agree!(floats.map(half::f16::from_f32), Scalar::F16, |v: half::f16| u64::from(v.to_bits()), ["" "?" "8.2" "e"]);
        agree!(floats.map(half::bf16::from_f32), Scalar::BF16, |v: half::bf16| u64::from(v.to_bits()), ["" "+8.2"]);
        let integers = [0, 1, -1, 42, i32::MIN, i32::MAX];
        agree!(integers, Scalar::I32, |v: i32| u64::from(v as u32), [
            "" "?" "+" "5" "<5" ">5" "05" "<05" "+05" "x" "X" "#x" "#X" "#010x" "010x" "+x" "<10x" "e" ".2e" "5.1" "#"
        ]);
        agree!(integers.map(|v| v as i8), Scalar::I8, |v: i8| u64::from(v as u8), ["" "x" "#06x" "04"]);
        agree!(integers.map(i64::from), Scalar::I64, |v: i64| v as u64, ["" "x" "e" "25"]);
        agree!(integers.map(|v| v as u64), Scalar::U64, |v: u64| v, ["" "X" "+" "e" "025"]);
        agree!([true, false], Scalar::Bool, u64::from, ["" "?" "7" ">7" ".2" "7.2" "07"]);
    }
}
