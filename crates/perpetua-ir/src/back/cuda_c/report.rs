//! What a kernel tells the host: faults and printed lines, as `crate::fault` lays them out.

use super::super::c_like::c;
use super::super::c_like::{Bind, Dialect, Expr, Report, Writer, fold_cast, mark_dead};
use super::dialect::Cuda;
use crate::fault::record;
use crate::print::ring;
use perpetua_syntax::{PrintAlign, PrintNotation};

use crate::ir::{PrintFormat, PrintPiece, Scalar};

/// An integer operand in 64 bits, extended by its type.
fn extended(d: &Cuda, s: Scalar, e: &Expr) -> Expr {
    if let Some(bits) = e.literal {
        return c::literal(d, Scalar::U64, fold_cast(s, Scalar::U64, bits));
    }
    let e = c::exact(d, s, e);
    if s.is_signed_int() && s != Scalar::I64 {
        let e = c::cast_to(d, Scalar::I64, &e);
        return c::cast_to(d, Scalar::U64, &e);
    }
    if s == Scalar::U64 {
        e
    } else {
        c::cast_to(d, Scalar::U64, &e)
    }
}

/// Reports a fault and marks the lane dead where somebody asks for that. (A dead lane that reports another one finds the
/// record claimed.)
pub(super) fn fault(d: &Cuda, w: &mut Writer<'_>, site: u32, operands: &[(Scalar, Expr)]) {
    let report = Report::of(operands);
    let name = w.m.helper(report.name, |name| {
        let lines = report.lines(
            ["blockIdx", "threadIdx"],
            |of| [format!("(unsigned int){of}"), format!("(unsigned int)({of} >> 32)")],
            "site",
            |word, value| format!("record[{word}] = {value};"),
        );
        let params = report.params(|of| format!("unsigned long long {of}"));
        format!(
            "// The first lane that faults in a launch claims the record.\n__device__ void {name}(unsigned int* record, unsigned int site, {params})\n{{\n    if (atomicCAS_system(&record[{}], 0u, 1u) != 0u) {{\n        return;\n    }}\n{lines}}}\n",
            record::CLAIM
        )
    });
    let zero = c::literal(d, Scalar::U64, 0);
    let operands = report.args(operands, |s, e| extended(d, s, e).text, &zero.text);
    mark_dead(w);
    if w.m.catches {
        w.write(&format!("caught = site_base + {}u;", site + 1));
    }
    w.write(&format!("{name}(fault_record, site_base + {site}u, {operands});"));
}

/// The bits of a printed value, zero-extended to 64.
fn bits(d: &Cuda, w: &Writer<'_>, s: Scalar, e: &Expr) -> Expr {
    let unsigned = match s {
        Scalar::F32 => d.bitcast(w.m, s, Scalar::U32, e),
        Scalar::F64 => return d.bitcast(w.m, s, Scalar::U64, e),
        Scalar::U64 => return e.clone(),
        Scalar::I64 => return c::unsigned(d, s, e),
        Scalar::I32 => c::unsigned(d, s, e),
        Scalar::Bool | Scalar::U32 => e.clone(),
        _ => c::cast_to(d, s.to_unsigned(), e),
    };
    c::cast_to(d, Scalar::U64, &unsigned)
}

/// Writes a record to the print ring.
pub(super) fn print(d: &Cuda, w: &mut Writer<'_>, site: u32, args: &[(Scalar, Expr)]) {
    let begin = w.m.helper("print_begin", |name| {
        format!(
            "// Room for a record of so many words in the ring, or null.\n__device__ unsigned int* {name}(unsigned int* ring, unsigned int words)\n{{\n    unsigned int at;\n    asm volatile(\"atom.relaxed.sys.add.u32 %0, [%1], %2;\" : \"=r\"(at) : \"l\"(ring + {cursor}), \"r\"(words) : \"memory\");\n    const unsigned int capacity = ring[{capacity}];\n    if (at > capacity || words > capacity - at) {{\n        asm volatile(\"red.relaxed.sys.add.u32 [%0], 1;\" :: \"l\"(ring + {dropped}) : \"memory\");\n        return 0;\n    }}\n    return ring + {records} + at;\n}}\n",
            cursor = ring::CURSOR,
            capacity = ring::CAPACITY,
            dropped = ring::DROPPED,
            records = ring::RECORDS,
        )
    });
    let value = w.m.helper("print_value", |name| {
        format!(
            "__device__ void {name}(unsigned int* at, unsigned long long bits)\n{{\n    at[0] = (unsigned int)bits;\n    at[1] = (unsigned int)(bits >> 32);\n}}\n"
        )
    });
    let end = w.m.helper("print_end", |name| {
        format!(
            "// Pairs with the host's acquire of a record's first word.\n__device__ void {name}(unsigned int* record, unsigned int number)\n{{\n    asm volatile(\"st.release.sys.u32 [%0], %1;\" :: \"l\"(record), \"r\"(number) : \"memory\");\n}}\n"
        )
    });
    let record = w.name("record");
    let values: Vec<String> = args
        .iter()
        .enumerate()
        .map(|(i, (s, e))| {
            format!(
                "    {value}({record} + {}, {});",
                1 + 2 * i,
                bits(d, w, *s, e).text
            )
        })
        .collect();
    let words = 1 + 2 * args.len();
    w.write(&format!(
        "if (unsigned int* {record} = {begin}(print_ring, {words}u)) {{"
    ));
    for line in values {
        w.write(&line);
    }
    w.write(&format!("    {end}({record}, site_base + {}u);\n}}", site + 1));
}

/// Prints with CUDA's own `printf`.
pub(super) fn printf(d: &Cuda, w: &mut Writer<'_>, pieces: &[PrintPiece], args: &[(Scalar, Expr)]) {
    let mut format = String::new();
    let mut values = String::new();
    let mut args = args.iter();
    for piece in pieces {
        match piece {
            PrintPiece::Text(text) => {
                for ch in text.chars() {
                    match ch {
                        '%' => format.push_str("%%"),
                        '"' | '\\' => format.extend(['\\', ch]),
                        '\n' => format.push_str("\\n"),
                        ch => format.push(ch),
                    }
                }
            }
            PrintPiece::Arg(spec) => {
                let Some((s, e)) = args.next() else { continue };
                let (code, text) = formatted(d, w, *s, e, spec);
                format.push_str(&code);
                values.push_str(&format!(", {text}"));
            }
        }
    }
    w.write(&format!("printf(\"{format}\\n\"{values});"));
}

/// A conversion of C's `printf` that comes near to Rust's format, and the argument for it.
fn formatted(d: &Cuda, w: &mut Writer<'_>, s: Scalar, e: &Expr, format: &PrintFormat) -> (String, String) {
    let natural = c::natural(d, s, e.clone()).text;
    let hexadecimal = match format.notation {
        PrintNotation::LowerHex => Some("x"),
        PrintNotation::UpperHex => Some("X"),
        _ => None,
    };
    let float = match (format.notation, format.precision) {
        (PrintNotation::LowerExp, _) => "e",
        (_, Some(_)) => "f",
        (_, None) => "g",
    };
    let unsigned = hexadecimal.unwrap_or("u");
    let (length, conversion, text) = match s {
        Scalar::Bool => ("", "s", format!("{} ? \"true\" : \"false\"", e.at(Bind::Or))),
        Scalar::I64 => ("ll", hexadecimal.unwrap_or("d"), natural),
        Scalar::U64 => ("ll", unsigned, natural),
        Scalar::U8 | Scalar::U16 | Scalar::U32 => ("", unsigned, natural),
        Scalar::F16 => (
            "",
            float,
            d.cast(w, s, Scalar::F32, e).map_or(natural, |e| e.text),
        ),
        Scalar::BF16 => (
            "",
            float,
            format!("__uint_as_float((unsigned int){} << 16)", e.at(Bind::Prefix)),
        ),
        Scalar::F32 | Scalar::F64 => ("", float, natural),
        Scalar::I8 | Scalar::I16 if hexadecimal.is_some() => {
            let mask = if s == Scalar::I8 { "0xff" } else { "0xffff" };
            ("", unsigned, format!("{} & {mask}", e.at(Bind::Bits)))
        }
        Scalar::I8 | Scalar::I16 | Scalar::I32 => ("", hexadecimal.unwrap_or("d"), natural),
    };
    let mut code = String::from("%");
    let left = format.align == Some(PrintAlign::Left) && !format.zeros;
    for (flag, sign) in [
        (left, '-'),
        (format.plus && hexadecimal.is_none(), '+'),
        (format.alternate && hexadecimal.is_some(), '#'),
        (format.zeros && s != Scalar::Bool, '0'),
    ] {
        code.extend(flag.then_some(sign));
    }
    code.extend(format.width.map(|n| n.to_string()));
    if s.is_float() || s == Scalar::Bool {
        code.extend(format.precision.map(|n| format!(".{n}")));
    }
    (code + length + conversion, text)
}
