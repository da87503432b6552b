//! Strings: numbers in them, and patterns of SQL.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

/// The string of this number in a column.
#[device]
pub(crate) fn string<'a>(offsets: &[u32], bytes: &'a [u8], i: usize) -> &'a [u8] {
    &bytes[offsets[i] as usize..offsets[i + 1] as usize]
}

/// Strings as a column holds them.
pub(crate) fn column<S: AsRef<[u8]>>(strings: &[S]) -> (Vec<u32>, Vec<u8>) {
    let mut offsets = vec![0];
    let mut bytes = Vec::new();
    for s in strings {
        bytes.extend_from_slice(s.as_ref());
        offsets.push(bytes.len() as u32);
    }
    (offsets, bytes)
}

// 183: cuDF's strings of floats

const POWERS: [f64; 9] = [1e1, 1e2, 1e4, 1e8, 1e16, 1e32, 1e64, 1e128, 1e256];

#[device]
fn scaled(mut value: f64, exponent: i32) -> f64 {
    for (k, power) in POWERS.iter().enumerate() {
        if exponent.unsigned_abs() >> k & 1 == 1 {
            value = if exponent < 0 {
                value / power
            } else {
                value * power
            };
        }
    }
    value
}

#[device]
fn is(text: &[u8], name: &[u8]) -> bool {
    text.len() == name.len() && text.iter().zip(name).all(|(a, b)| a.eq_ignore_ascii_case(b))
}

#[device]
fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

#[device]
fn integer(text: &[u8]) -> Option<i32> {
    let (negative, digits) = signed(text);
    if digits.is_empty() {
        return None;
    }
    let mut value = 0i32;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value.saturating_mul(10).saturating_add(i32::from(digit - b'0'));
    }
    let value = value.min(999);
    Some(if negative { -value } else { value })
}

#[device]
fn parse(text: &[u8]) -> Option<f64> {
    let (negative, text) = signed(text);
    let sign = if negative { -1.0 } else { 1.0 };
    if is(text, b"inf") || is(text, b"infinity") {
        return Some(sign * f64::INFINITY);
    }
    if is(text, b"nan") {
        return Some(f64::NAN);
    }
    let mut mantissa = 0u64;
    let mut exponent = 0;
    let (mut digits, mut point) = (0, false);
    for (i, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                digits += 1;
                if mantissa < 10u64.pow(17) {
                    mantissa = mantissa * 10 + u64::from(byte - b'0');
                    exponent -= i32::from(point);
                } else if !point {
                    exponent += 1;
                }
            }
            b'.' if !point => point = true,
            b'e' | b'E' if digits > 0 => {
                exponent += integer(&text[i + 1..])?;
                break;
            }
            _ => return None,
        }
    }
    (digits > 0).then(|| sign * scaled(mantissa as f64, exponent.clamp(-400, 400)))
}

#[kernel]
fn to_floats(offsets: &[u32], bytes: &[u8], values: &mut [f64], valid: &mut [bool]) {
    let i = global_id_x();
    if i + 1 < offsets.len() {
        let value = parse(string(offsets, bytes, i));
        valid[i] = value.is_some();
        values[i] = value.unwrap_or(0.0);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Text {
    bytes: [u8; 23],
    length: u8,
}

#[device]
impl Text {
    fn push(&mut self, byte: u8) {
        self.bytes[self.length as usize] = byte;
        self.length += 1;
    }

    /// In decimal, with zeros in front up to this many digits.
    fn number(&mut self, mut value: u32, least: usize) {
        let mut digits = [0u8; 10];
        let mut count = 0;
        while value > 0 || count < least {
            digits[count] = b'0' + (value % 10) as u8;
            value /= 10;
            count += 1;
        }
        for digit in digits[..count].iter().rev() {
            self.push(*digit);
        }
    }
}

/// With up to ten digits, the exponent in front of the point where it is neither large nor small.
#[device]
fn written(value: f64) -> Text {
    let mut text = Text::default();
    if value.is_nan() {
        for byte in [b'N', b'a', b'N'] {
            text.push(byte);
        }
        return text;
    }
    if value.is_sign_negative() {
        text.push(b'-');
    }
    let mut value = value.abs();
    if value.is_infinite() {
        b"Inf".iter().for_each(|b| text.push(*b));
        return text;
    }
    let mut exponent = 0i32;
    if value != 0.0 && !(1e-4..1e9).contains(&value) {
        for (k, power) in POWERS.iter().enumerate().rev() {
            if value >= *power {
                value /= power;
                exponent += 1 << k;
            } else if value * power < 10.0 {
                value *= power;
                exponent -= 1 << k;
            }
        }
    }
    let whole = value as u32;
    let places = 9 - whole.checked_ilog10().unwrap_or(0);
    let unit = 10u32.pow(places);
    let mut rest = ((value - f64::from(whole)) * f64::from(unit)).round() as u32;
    let carried = rest / unit;
    rest %= unit;
    let mut places = places as usize;
    while places > 1 && rest % 10 == 0 {
        rest /= 10;
        places -= 1;
    }
    text.number(whole + carried, 1);
    text.push(b'.');
    text.number(rest, places.max(1));
    if exponent != 0 {
        text.push(b'e');
        text.push(if exponent < 0 { b'-' } else { b'+' });
        text.number(exponent.unsigned_abs(), 2);
    }
    text
}

#[kernel]
fn from_floats(values: &[f64], texts: &mut [Text]) {
    let i = global_id_x();
    if let Some(value) = values.get(i) {
        texts[i] = written(*value);
    }
}

#[test]
fn floats_are_read_and_written() {
    let mut random = Random(183);
    let mut strings: Vec<String> = [
        "0",
        "-0.0",
        "1",
        "+7.25",
        ".5",
        "5.",
        "1e3",
        "-2.5E-3",
        "12345678901234567890123",
    ]
    .into_iter()
    .chain([
        "inf",
        "-INF",
        "Infinity",
        "1e999",
        "1e-999",
        "0.000000000000000000001234",
    ])
    .map(String::from)
    .collect();
    let bad = [
        "", "-", ".", "e5", "1e", "1e+", "1.2.3", "abc", "1x", "infi", "--1", "1e5.0",
    ];
    for _ in 0..80 {
        let (m, e) = (random.between(-10.0, 10.0), random.below(500) as i32 - 250);
        strings.push(format!("{m}e{e}"));
    }
    let good = strings.len();
    let expected: Vec<f64> = strings.iter().map(|s| s.parse().unwrap()).collect();
    strings.extend(bad.map(String::from));
    strings.push("nAn".into());
    let (offsets, bytes) = column(&strings);
    let finite: Vec<f64> = expected.iter().copied().filter(|v| v.is_finite()).collect();
    everywhere(|run| {
        let count = strings.len();
        let (values, valid) = (run.zeros::<f64>(count), run.zeros::<bool>(count));
        let (o, b) = (run.upload(&offsets), run.upload(&bytes));
        let config = LaunchConfig::linear(count, 32);
        run.launch(to_floats::kernel(), config, args![&o, &b, &values, &valid]);
        let (values, valid) = (run.read(&values), run.read(&valid));
        for (i, expected) in expected.iter().enumerate() {
            let near = (values[i] - expected).abs() <= 4e-15 * expected.abs();
            let same = near || values[i] == *expected;
            assert!(
                same && valid[i],
                "on {}: {} {}",
                run.place(),
                strings[i],
                values[i]
            );
        }
        for i in good..count - 1 {
            assert!(!valid[i], "on {}: {:?}", run.place(), strings[i]);
        }
        assert!(
            values[count - 1].is_nan() && valid[count - 1],
            "on {}",
            run.place()
        );
        let (numbers, texts) = (run.upload(&finite), run.zeros::<Text>(finite.len()));
        let config = LaunchConfig::linear(finite.len(), 32);
        run.launch(from_floats::kernel(), config, args![&numbers, &texts]);
        for (text, value) in run.read(&texts).iter().zip(&finite) {
            let text = std::str::from_utf8(&text.bytes[..text.length.into()]).unwrap();
            let back: f64 = text.parse().unwrap();
            // Ten digits, or nine behind the point.
            let bound = if (1e-4..1.0).contains(&value.abs()) {
                1e-9
            } else {
                1e-9 * value.abs()
            };
            assert!(
                (back - value).abs() <= bound,
                "on {}: {text} {value}",
                run.place()
            );
            assert!(text.contains('.'), "on {}: {text}", run.place());
        }
    });
}

// 184: SQL's LIKE

/// How many bytes a character has that begins with this one.
#[device]
fn character(first: u8) -> usize {
    match first.leading_ones() {
        0 => 1,
        n => n as usize,
    }
}

#[device]
fn like(text: &[u8], pattern: &[u8], escape: u8) -> bool {
    let (mut t, mut p) = (0, 0);
    // Where to go on behind the last `%`: in the pattern, and in the text.
    let mut again: Option<(usize, usize)> = None;
    loop {
        let matched = match pattern.get(p) {
            None if t == text.len() => return true,
            None => None,
            Some(b'%') => {
                again = Some((p + 1, t));
                Some((p + 1, t))
            }
            Some(b'_') => text.get(t).map(|first| (p + 1, t + character(*first))),
            Some(&c) => {
                let escaped = c == escape && p + 1 < pattern.len();
                let p = if escaped { p + 1 } else { p };
                text.get(t).filter(|b| **b == pattern[p]).map(|_| (p + 1, t + 1))
            }
        };
        (p, t) = match (matched, again) {
            (Some(next), _) => next,
            (None, Some((start, from))) if from < text.len() => {
                let from = from + character(text[from]);
                again = Some((start, from));
                (start, from)
            }
            _ => return false,
        };
    }
}

#[kernel]
fn select_like(offsets: &[u32], bytes: &[u8], pattern: &[u8], escape: u8, selected: &mut [bool]) {
    let i = global_id_x();
    if let Some(answer) = selected.get_mut(i) {
        *answer = like(string(offsets, bytes, i), pattern, escape);
    }
}

fn is_like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|k| is_like(&text[k..], rest)),
        ['_', rest @ ..] => !text.is_empty() && is_like(&text[1..], rest),
        ['\\', c, rest @ ..] | [c, rest @ ..] => text.first() == Some(c) && is_like(&text[1..], rest),
    }
}

#[test]
fn strings_are_like_patterns() {
    let mut random = Random(184);
    let letters = ['a', 'b', 'ä', '日', '%', '_'];
    let mut strings: Vec<String> = (0..120)
        .map(|_| (0..random.below(9)).map(|_| letters[random.below(6)]).collect())
        .collect();
    strings.push(String::new());
    let (offsets, bytes) = column(&strings);
    let patterns = [
        "",
        "%",
        "_",
        "a%",
        "%a",
        "%a%b%",
        "_%_",
        "a_b%",
        "%ä_",
        "__",
        "%\\%%",
        "\\_%",
        "%日%日%",
        "%%%a",
        "%ab%ab",
    ];
    everywhere(|run| {
        let (o, b) = (run.upload(&offsets), run.upload(&bytes));
        for pattern in patterns {
            let chars: Vec<char> = pattern.chars().collect();
            let expected: Vec<bool> = strings
                .iter()
                .map(|s| is_like(&s.chars().collect::<Vec<_>>(), &chars))
                .collect();
            let selected = run.zeros::<bool>(strings.len());
            let p = run.upload(pattern.as_bytes());
            let config = LaunchConfig::linear(strings.len(), 64);
            run.launch(select_like::kernel(), config, args![&o, &b, &p, b'\\', &selected]);
            run.holds(&selected, &expected);
        }
    });
}
