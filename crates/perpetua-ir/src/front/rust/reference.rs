//! The book's tables of the language, made from the tables that the front end reads. Must not know any form or name itself.

use std::fmt::Write;

use perpetua_syntax::parse::{Refusal, STD_FUNCTIONS, iterate};
use perpetua_syntax::{Intrinsic, IntrinsicGroup, Scalar};

use super::infer::call::scalar::FUNCTIONS;
use super::infer::methods::{Method, Signature, Special, lookup, names, num};
use super::infer::ty::show;
use super::infer::{option, slice};
use crate::ops::{Capability, DeviceOp};

const PAGE: &str = "docs/book/src/tables.md";

const HEAD: &str = "\
# Tables

Every method, function and refused form of the kernel language. The tables are made from those that the compiler reads;
[The language](language.md) explains them by example.
";

/// What the page calls a set of scalars, and which they are.
type Group = (&'static str, fn(Scalar) -> bool);

/// Groups of scalars, larger ones first.
const GROUPS: [Group; 12] = [
    ("all scalars", |_| true),
    ("integers, floats", |s| s != Scalar::Bool),
    ("signed integers, floats", |s| signed(s) || float(s)),
    ("integers, `bool`", |s| !float(s)),
    ("integers", |s| signed(s) || unsigned(s)),
    ("signed integers", signed),
    ("unsigned integers", unsigned),
    ("floats", float),
    ("`f32`, `f16`, `bf16`", |s| float(s) && s != Scalar::F64),
    ("`f32`, `f64`", |s| s == Scalar::F32 || s == Scalar::F64),
    ("`f32`", |s| s == Scalar::F32),
    ("`bool`", |s| s == Scalar::Bool),
];

fn float(s: Scalar) -> bool {
    num(s, 64).like().is_float()
}

fn signed(s: Scalar) -> bool {
    num(s, 64).like().is_signed_int()
}

fn unsigned(s: Scalar) -> bool {
    num(s, 64).like().is_unsigned_int()
}

fn page() -> Result<String, std::fmt::Error> {
    let mut text = String::from(HEAD);
    methods(&mut text)?;
    standard(&mut text)?;
    functions(&mut text)?;
    parts(&mut text)?;
    refusals(&mut text)?;
    Ok(text)
}

/// What options, slices, arrays and iterators have.
fn parts(text: &mut String) -> std::fmt::Result {
    text.push_str(
        "\n## Methods of `Option` and `Result`\n\nThey mean what Rust's mean.\n\n| methods | of |\n|---|---|\n",
    );
    for (methods, of) in option::METHODS {
        let methods: Vec<String> = methods
            .split("), ")
            .map(|method| format!("`{})`", method.trim_end_matches(')')))
            .collect();
        let of = match *of {
            "both" => "both".to_owned(),
            of => format!("`{of}`"),
        };
        writeln!(text, "| {} | {of} |", methods.join(", "))?;
    }
    text.push_str(
        "\n## Methods of slices and arrays\n\nThey mean what Rust's mean; `map`, `min` and `max` are of arrays.\n\n",
    );
    let quoted = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    writeln!(text, "{}.", quoted(slice::METHODS))?;
    text.push_str(
        "\n## Iterators\n\nA chain is written where it is used: it begins with a slice, an array, a range or one of the first row, goes on with any of \
         the\nsecond, and ends with `for` or one of the third. A `let` gives an iterator a name; `next` and its kin go on with one that is `mut`.\n\n\
         | methods | what they do |\n|---|---|\n",
    );
    for (names, what) in [
        (iterate::SOURCES, "make an iterator of a slice or an array"),
        (iterate::ADAPTORS, "make an iterator of another"),
        (iterate::ENDS, "end it"),
        (
            iterate::FUNCTIONS,
            "functions of `std::iter`: make an iterator, too",
        ),
    ] {
        writeln!(text, "| {} | {what} |", quoted(names))?;
    }
    Ok(())
}

fn methods(text: &mut String) -> std::fmt::Result {
    text.push_str(
        "\n## Methods of scalars\n\nThey mean what Rust's methods of the same name mean. `S` is the receiver's type. Errors are in units in the last \
         place at `f32`,\nagainst the correctly rounded result; `f16` and `bf16` round the `f32` result, and `f64` is within one of its own. Methods without an error are exact; \
         \"parts\" stands where\nfloats pass through several operations of this table, each with its own error.\n\n\
         | method | of | result | error | meaning |\n|---|---|---|---|---|\n",
    );
    // A name that is no word of Rust's is the lowering's own.
    for name in names().into_iter().filter(|name| !name.contains(' ')) {
        let having: Vec<Scalar> = Scalar::ALL
            .into_iter()
            .filter(|s| lookup(*s, name).is_ok())
            .collect();
        let Some(signature) = having.first().and_then(|s| lookup(*s, name).ok()) else {
            continue;
        };
        let arguments = signature.args.len();
        let args: Vec<String> = (0..arguments)
            .map(|i| common(&having, name, |found| show(&found.args[i])))
            .collect();
        // Not in quotes, where it would be HTML.
        let result = common(&having, name, |found| show(&found.result)).replace('<', "\\<");
        let group = GROUPS
            .iter()
            .find(|(_, has)| Scalar::ALL.iter().all(|s| has(*s) == having.contains(s)));
        let listed = || {
            having
                .iter()
                .map(|s| format!("`{}`", s.name()))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let of = group.map_or_else(listed, |(name, _)| (*name).to_owned());
        let (error, meaning) = match signature.method {
            Method::Unary(op) => (op.row().exactness.words(), op.row().doc),
            Method::Binary(op) => (op.row().exactness.words(), op.row().doc),
            Method::Ternary(op) => (op.row().exactness.words(), op.row().doc),
            Method::Special(
                Special::Powi | Special::SinCos | Special::Log | Special::RemEuclid | Special::DivEuclid,
            ) => ("parts".to_owned(), ""),
            Method::Special(_) | Method::Written(_) => (String::new(), ""),
        };
        let meaning = meaning.replace('|', "\\|");
        writeln!(
            text,
            "| `{name}({})` | {of} | {result} | {error} | {meaning} |",
            args.join(", ")
        )?;
    }
    Ok(())
}

/// What is called by a type's or a module's name.
fn standard(text: &mut String) -> std::fmt::Result {
    text.push_str(
        "\n## Functions of Rust's library\n\nMethods of scalars are functions of their types, too: `f32::max(a, b)`.\n\n\
         | function | of | result |\n|---|---|---|\n",
    );
    for (name, args, domain, result) in FUNCTIONS {
        let group = GROUPS.iter().find(|(_, has)| {
            Scalar::ALL
                .iter()
                .all(|s| has(*s) == domain.contains(num(*s, 64).like()))
        });
        let of = group.map_or("", |(name, _)| *name);
        writeln!(text, "| `{name}({args})` | {of} | {result} |")?;
    }
    for (module, name, args) in STD_FUNCTIONS {
        let of = if args.is_empty() { "::<T>" } else { "" };
        writeln!(text, "| `{module}::{name}{of}({})` | | |", args.join(", "))?;
    }
    Ok(())
}

/// A type in the method's signature as it is for all receivers: the same for each, or said by `S`, the receiver's type.
fn common(having: &[Scalar], name: &str, part: impl Fn(&Signature) -> String) -> String {
    let texts = having
        .iter()
        .filter_map(|s| Some((*s, part(&lookup(*s, name).ok()?))));
    let mut texts: Vec<(Scalar, String)> = texts.collect();
    if texts.iter().any(|(_, text)| *text != texts[0].1) {
        for (s, text) in &mut texts {
            let words = text.split_inclusive([',', ' ', '(', ')', '&', '<', '>']);
            let own = |word: &str| match word.strip_prefix(s.name()) {
                Some(rest) if !rest.starts_with(char::is_alphanumeric) => format!("S{rest}"),
                _ => word.to_owned(),
            };
            *text = words.map(own).collect();
        }
    }
    match texts.iter().all(|(_, text)| *text == texts[0].1) {
        true => texts[0].1.clone(),
        false if texts[0].1.starts_with('[') => "S's bytes, `[u8; N]`".to_owned(),
        false if texts[0].1.starts_with("Option<i") => "Option<the signed integer of S's width>".to_owned(),
        false if texts[0].1.starts_with('i') => "the signed integer of S's width".to_owned(),
        false => "the unsigned integer of S's width".to_owned(),
    }
}

/// What a device must have for a call of this function.
fn needs(name: &str) -> Option<Capability> {
    DeviceOp::of_language(name).and_then(|op| op.row().needs)
}

fn functions(text: &mut String) -> std::fmt::Result {
    text.push_str(
        "\n## Functions\n\n`use perpetua::prelude::*;` brings them. Each atomic function has a twin with the suffix `_explicit` that takes an `Ordering` and a \
         `Scope` more;\norders beyond `Relaxed` need a device with ordered atomics, elements of 64 bits one with 64-bit atomics.\n",
    );
    let groups = [
        (IntrinsicGroup::Index, "Indices, as `usize`"),
        (IntrinsicGroup::CudaIndex, "Indices under CUDA's names, as `i32`"),
        (IntrinsicGroup::Sync, "Barriers and fences"),
        (IntrinsicGroup::Shared, "Shared memory"),
        (IntrinsicGroup::Subgroup, "Subgroups"),
        (IntrinsicGroup::Fast, "Fast arithmetic"),
        (IntrinsicGroup::Atomic, "Atomic operations"),
        (IntrinsicGroup::Resident, "Resident kernels"),
    ];
    for (group, title) in groups {
        writeln!(
            text,
            "\n### {title}\n\n| function | meaning | needs |\n|---|---|---|"
        )?;
        for intrinsic in Intrinsic::ALL.iter().filter(|i| i.group() == group) {
            let (name, args) = (intrinsic.name(), intrinsic.signature());
            let needs = needs(name).map_or_else(String::new, |capability| capability.to_string());
            let doc = intrinsic.documentation().replace('|', "\\|");
            writeln!(text, "| `{name}{args}` | {doc} | {needs} |")?;
        }
    }
    Ok(())
}

fn refusals(text: &mut String) -> std::fmt::Result {
    text.push_str(
        "\n## Forms that are refused\n\nThe compiler refuses them at their place in the source, with these words. `{}` stands for a name.\n\n\
         | form | write instead |\n|---|---|\n",
    );
    for refusal in Refusal::ALL {
        let (what, instead) = refusal.row();
        writeln!(
            text,
            "| {} | {} |",
            what.replace('|', "\\|"),
            instead.replace('|', "\\|")
        )?;
    }
    Ok(())
}

#[test]
fn the_page_is_the_tables() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(PAGE);
    let new = page().unwrap();
    if std::env::var_os("PERPETUA_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, new).unwrap();
    } else {
        let old = std::fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
        assert!(old == new, "{PAGE} is old: run `cargo xtask golden --bless`");
    }
}
