//! Memory kept as `u32` words: functions that load and store values of any type at a byte offset. Narrow stores keep
//! the rest of their word by a compare-and-exchange; a value that fills its words is stored word by word.

use super::super::c_like::{COMPONENTS, Module, type_word};
use super::dialect::Wgsl;
use super::region::{MOST_LEAVES, Region, covers_words};
use super::scalar;
use crate::ir::{Base, Scalar, Type};

/// Words that a turn of a copy's loop copies: loops' turns are counted on some devices, and cost time on all.
const COPIED: u32 = 8;

/// Something that is kept as words.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    pub(super) name: &'a str,
    pub(super) base: Base,
}

impl Wgsl {
    fn is_atomic(&self, words: Words<'_>) -> bool {
        matches!(self.regions.get(words.base), Region::Words { atomic: true })
    }

    fn word(&self, words: Words<'_>, index: &str) -> String {
        if self.is_atomic(words) {
            format!("atomicLoad(&{}[{index}])", words.name)
        } else {
            format!("{}[{index}]", words.name)
        }
    }

    fn set_word(&self, words: Words<'_>, index: &str, value: &str) -> String {
        if self.is_atomic(words) {
            format!("atomicStore(&{}[{index}], {value});", words.name)
        } else {
            format!("{}[{index}] = {value};", words.name)
        }
    }

    /// The name of a function from byte offset to value.
    pub(super) fn loader(&self, m: &Module<'_>, words: Words<'_>, ty: &Type) -> String {
        let key = format!("{}_load_{}", words.name, type_word(ty));
        let returned = self.type_name_of(m, ty);
        let body = match ty {
            Type::Scalar(s) if s.size() == 8 => {
                let (low, high) = (self.word(words, "at >> 2u"), self.word(words, "(at >> 2u) + 1u"));
                let bits = format!("(u64({high}) << 32u) | u64({low})");
                let value = match s {
                    Scalar::U64 => bits,
                    _ => format!("bitcast<{}>({bits})", scalar::name(*s)),
                };
                format!("    return {value};\n")
            }
            Type::Scalar(s) => {
                let word = self.word(words, "at >> 2u");
                format!("    return {};\n", unpacked(*s, &word, Some("((at & 3u) * 8u)")))
            }
            Type::Array(element, n) if ty.leaf_count() > MOST_LEAVES => {
                let load = self.loader(m, words, element);
                format!(
                    "    var value: {returned};\n    for (var i = 0u; i < {n}u; i += 1u) {{\n        value[i] = {load}(at + i * {}u);\n    }}\n    return value;\n",
                    element.size()
                )
            }
            _ => {
                let parts: Vec<String> = (0..ty.component_count())
                    .filter_map(|i| {
                        let (c, offset) = (ty.component(i)?, ty.component_offset(i)?);
                        let load = self.loader(m, words, &c);
                        Some(format!("{load}({})", at(offset)))
                    })
                    .collect();
                format!("    return {returned}({});\n", parts.join(", "))
            }
        };
        m.helper(&key, |name| {
            format!("fn {name}(at: u32) -> {returned} {{\n{body}}}\n")
        })
    }

    /// The name of a function that stores a value at a byte offset; `starts_word`: which is that of a word.
    pub(super) fn storer(&self, m: &Module<'_>, words: Words<'_>, ty: &Type, starts_word: bool) -> String {
        let by_words = ty.as_scalar().is_none()
            && starts_word
            && ty.size().is_multiple_of(4)
            && ty.leaf_count() <= MOST_LEAVES;
        let kind = if ty.as_scalar().is_some() || covers_words(ty, false) {
            ""
        } else if starts_word {
            "_words"
        } else {
            "_part"
        };
        let key = format!("{}_store{kind}_{}", words.name, type_word(ty));
        let given = self.type_name_of(m, ty);
        let body = match ty {
            Type::Scalar(s) if s.size() == 8 => {
                let bits = match s {
                    Scalar::U64 => "value".to_owned(),
                    _ => "bitcast<u64>(value)".to_owned(),
                };
                format!(
                    "    let bits = {bits};\n    {}\n    {}\n",
                    self.set_word(words, "at >> 2u", "u32(bits)"),
                    self.set_word(words, "(at >> 2u) + 1u", "u32(bits >> 32u)")
                )
            }
            Type::Scalar(s) if s.size() == 4 => {
                format!("    {}\n", self.set_word(words, "at >> 2u", &packed(*s, "value")))
            }
            Type::Scalar(s) => {
                let mask = if s.size() == 1 { "0xffu" } else { "0xffffu" };
                format!(
                    "    let shift = (at & 3u) * 8u;\n    let bits = {} << shift;\n    var old = atomicLoad(&{name}[at >> 2u]);\n    loop {{\n        let r = atomicCompareExchangeWeak(&{name}[at >> 2u], old, (old & ~({mask} << shift)) | bits);\n        if (r.exchanged) {{\n            break;\n        }}\n        old = r.old_value;\n    }}\n",
                    packed(*s, "value"),
                    name = words.name,
                )
            }
            _ if by_words => self.whole_words(m, words, ty),
            Type::Array(element, n) => {
                let store = self.storer(m, words, element, starts_word && element.size().is_multiple_of(4));
                format!(
                    "    var elements = value;\n    for (var i = 0u; i < {n}u; i += 1u) {{\n        {store}(at + i * {}u, elements[i]);\n    }}\n",
                    element.size()
                )
            }
            _ => (0..ty.component_count())
                .filter_map(|i| {
                    let (c, offset) = (ty.component(i)?, ty.component_offset(i)?);
                    let store = self.storer(m, words, &c, starts_word && offset.is_multiple_of(4));
                    let part = self.component_of(m, ty, i);
                    Some(format!("    {store}({}, value{part});\n", at(offset)))
                })
                .collect(),
        };
        m.helper(&key, |name| {
            format!("fn {name}(at: u32, value: {given}) {{\n{body}}}\n")
        })
    }

    /// The name of a function that copies a number of words from one byte offset to another, without a value of a lane's own between them. Two
    /// places of one type in one memory are the same or apart, so it does not matter which word goes first.
    pub(super) fn copier(&self, m: &Module<'_>, to: Words<'_>, from: Words<'_>) -> String {
        let key = format!("{}_copy_{}", to.name, from.name);
        let word = |at: &str| {
            let read = self.word(from, &format!("(source >> 2u) + {at}"));
            self.set_word(to, &format!("(at >> 2u) + {at}"), &read)
        };
        let turn: String = (0..COPIED)
            .map(|n| match n {
                0 => format!("        {}\n", word("i")),
                _ => format!("        {}\n", word(&format!("i + {n}u"))),
            })
            .collect();
        m.helper(&key, |name| {
            format!(
                "fn {name}(at: u32, source: u32, words: u32) {{\n    var i = 0u;\n    for (; i + {COPIED}u <= words; i += {COPIED}u) {{\n{turn}    }}\n    for (; i < words; i += 1u) {{\n        {}\n    }}\n}}\n",
                word("i")
            )
        })
    }

    /// Statements that store a value all of whose words are its own.
    fn whole_words(&self, m: &Module<'_>, words: Words<'_>, ty: &Type) -> String {
        let mut leaves = Vec::new();
        self.leaves(m, ty, 0, String::from("value"), &mut leaves);
        let mut texts: Vec<Vec<String>> = vec![Vec::new(); ty.size().div_ceil(4) as usize];
        for (s, offset, text) in leaves {
            let mut put = |word: u32, text: String| {
                if let Some(parts) = texts.get_mut(word as usize) {
                    parts.push(text);
                }
            };
            if s.size() == 8 {
                let bits = if s == Scalar::U64 {
                    text
                } else {
                    format!("bitcast<u64>({text})")
                };
                put(offset / 4, format!("u32({bits})"));
                put(offset / 4 + 1, format!("u32({bits} >> 32u)"));
                continue;
            }
            let bits = packed(s, &text);
            let shift = offset % 4 * 8;
            put(
                offset / 4,
                if shift == 0 {
                    bits
                } else {
                    format!("({bits} << {shift}u)")
                },
            );
        }
        texts
            .into_iter()
            .enumerate()
            .filter(|(_, parts)| !parts.is_empty())
            .map(|(i, parts)| {
                let index = if i == 0 {
                    "at >> 2u".to_owned()
                } else {
                    format!("(at >> 2u) + {i}u")
                };
                format!("    {}\n", self.set_word(words, &index, &parts.join(" | ")))
            })
            .collect()
    }

    /// The scalars of a value: type, byte offset, text.
    fn leaves(
        &self,
        m: &Module<'_>,
        ty: &Type,
        base: u32,
        text: String,
        out: &mut Vec<(Scalar, u32, String)>,
    ) {
        if let Type::Scalar(s) = ty {
            return out.push((*s, base, text));
        }
        for i in 0..ty.component_count() {
            if let (Some(c), Some(offset)) = (ty.component(i), ty.component_offset(i)) {
                let part = format!("{text}{}", self.component_of(m, ty, i));
                self.leaves(m, &c, base + offset, part, out);
            }
        }
    }

    /// What follows a value to reach a component.
    pub(super) fn component_of(&self, m: &Module<'_>, ty: &Type, i: u32) -> String {
        match ty {
            Type::Vector(..) => format!(".{}", COMPONENTS.get(i as usize).copied().unwrap_or("x")),
            Type::Struct(s) => m.field(s, i),
            _ => format!("[{i}]"),
        }
    }
}

fn at(offset: u32) -> String {
    if offset == 0 {
        "at".to_owned()
    } else {
        format!("at + {offset}u")
    }
}

/// A scalar of up to 32 bits out of a word; `shift`: where in the word a narrow one begins, in bits.
pub(super) fn unpacked(s: Scalar, word: &str, shift: Option<&str>) -> String {
    let moved = match shift {
        Some(shift) => format!("({word} >> {shift})"),
        None => word.to_owned(),
    };
    match s {
        Scalar::F32 | Scalar::I32 => format!("bitcast<{}>({word})", scalar::name(s)),
        Scalar::U32 => word.to_owned(),
        Scalar::Bool => format!("({moved} & 0xffu) != 0u"),
        Scalar::U8 => format!("{moved} & 0xffu"),
        Scalar::U16 | Scalar::F16 | Scalar::BF16 => format!("{moved} & 0xffffu"),
        _ => format!("extractBits(bitcast<i32>({moved}), 0u, {}u)", s.bits()),
    }
}

/// A scalar of up to 32 bits as the low bits of a word.
pub(super) fn packed(s: Scalar, value: &str) -> String {
    match s {
        Scalar::F32 => format!("bitcast<u32>({value})"),
        Scalar::I32 => format!("bitcast<u32>({value})"),
        Scalar::Bool => format!("u32({value})"),
        Scalar::I8 => format!("(bitcast<u32>({value}) & 0xffu)"),
        Scalar::I16 => format!("(bitcast<u32>({value}) & 0xffffu)"),
        _ => value.to_owned(),
    }
}
