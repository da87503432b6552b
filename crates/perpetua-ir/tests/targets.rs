//! The book's page of what the language's functions are made of on each target, read off kernels that are rendered for it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation is the report"
)]

use std::collections::BTreeMap;
use std::fmt::Write;

use perpetua_ir::back::{CudaAbi, RenderError, Sm, SmReach, Target, render};
use perpetua_ir::front::rust::{Instantiation, kernels_in_file, lower};
use perpetua_ir::verify::verify;
use perpetua_syntax::{Intrinsic, IntrinsicGroup};

const PAGE: &str = "docs/book/src/targets.md";

const HEAD: &str = "\
# What functions become

What a call of one of the language's functions adds to the text of a kernel on each target: functions, instructions and registers, in the order
in which they come, without arithmetic, comparisons, moves and jumps. A dash: nothing of that kind. \"Refused\": the target has none, and
rendering says so. [Tables](tables.md#functions) says what the functions mean.

| function | CUDA C | PTX | WGSL | MSL |
|---|---|---|---|---|
";

/// PTX that anything is made of.
const COMMON: [&str; 20] = [
    "mov", "add", "sub", "mul", "mad", "setp", "selp", "bra", "ret", "cvt", "cvta", "and", "or", "xor",
    "not", "shl", "shr", "min", "max", "prmt",
];

/// Names behind which a bracket stands, and which are no functions.
const NO_CALLS: [&str; 16] = [
    "if", "while", "for", "switch", "return", "builtin", "u32", "i32", "f32", "bool", "uint", "ushort",
    "select", "min", "max", "isnan",
];

fn page() -> Result<String, std::fmt::Error> {
    let mut text = String::from(HEAD);
    let groups = [
        IntrinsicGroup::Index,
        IntrinsicGroup::CudaIndex,
        IntrinsicGroup::Sync,
        IntrinsicGroup::Subgroup,
        IntrinsicGroup::Fast,
        IntrinsicGroup::Atomic,
        IntrinsicGroup::Resident,
    ];
    for group in groups {
        for intrinsic in Intrinsic::ALL.iter().filter(|i| i.group() == group) {
            let Some(call) = call(*intrinsic) else {
                continue;
            };
            write!(text, "| `{}` |", intrinsic.name())?;
            for target in 0..4 {
                write!(text, " {} |", made_of(&call, target))?;
            }
            text.push('\n');
        }
    }
    Ok(text)
}

/// Statements with a call; `None` where it needs a kernel of its own kind around it.
fn call(intrinsic: Intrinsic) -> Option<String> {
    let (name, args) = (intrinsic.name(), intrinsic.signature());
    if name.contains("stage")
        || name.ends_with("_twin")
        || ["is_producer", "catch_fault", "check_index"].contains(&name)
    {
        return None;
    }
    let args: Vec<&str> = args
        .trim_matches(['(', ')'])
        .split(", ")
        .filter(|arg| !arg.is_empty())
        .collect();
    let mut given = Vec::new();
    let mut rest = &args[..];
    while let Some((arg, others)) = rest.split_first() {
        rest = others;
        let (param, ty) = arg.split_once(": ").unwrap_or((arg, ""));
        given.push(match (param, ty) {
            ("&mut x[i]", _) => "&mut z[5]",
            ("&x[i]", _) => "&z[5]",
            (_, "bool") => "v > 3",
            (_, "f32") => "g",
            (_, "u64") => "v as u64",
            (_, "[u32; 4]") => "[v, w, v, w]",
            (_, "[u32; 2]") => "[v, w]",
            (_, "[f32; 4]") => "[g, g, g, g]",
            ("value" | "new", _) => "v",
            _ => "w",
        });
    }
    let call = format!("{name}({})", given.join(", "));
    let is_silent = intrinsic.group() == IntrinsicGroup::Sync
        || ["atomic_store", "nap", "converge", "meet"].contains(&name);
    Some(match name {
        _ if is_silent => format!("{call};"),
        "subgroup_ballot" | "matrix_rows" | "matrix_columns" => format!("x[4] = {call}[0];"),
        _ if name.starts_with("matrix_") => format!("f[2] = {call}[0];"),
        _ => format!("x[4] = {call} as u32;"),
    })
}

/// The text of a kernel that has these statements.
fn rendered(statements: &str, target: usize) -> Result<String, RenderError> {
    let text = format!(
        "#[kernel]\nfn k(x: &mut [u32], f: &mut [f32], z: &mut [u32]) {{\n    let (v, w, g) = (x[0], x[1], f[0]);\n    x[2] = v;\n    x[3] = w;\n    f[1] = g;\n    {statements}\n}}\n"
    );
    let kernel = kernels_in_file(&text, "k.rs").unwrap().remove(0);
    let newest = Sm {
        number: 90,
        reach: SmReach::Own,
    };
    let target = match target {
        0 => Target::CudaC {
            abi: CudaAbi::Checked,
        },
        1 => Target::Ptx { sm: newest },
        2 => Target::wgsl([64, 1, 1]),
        _ => Target::Msl,
    };
    let how = Instantiation {
        // What matrices of subgroups ask for.
        block_size: Some([64, 1, 1]),
        pointer_width: if matches!(target, Target::Wgsl { .. }) {
            32
        } else {
            64
        },
        ..Instantiation::default()
    };
    let kernel = lower(&kernel.function, &how).unwrap();
    let kernel = verify(kernel).unwrap_or_else(|error| panic!("{statements}: {error}"));
    render(&kernel, &target).map(|rendered| rendered.text)
}

/// What a call adds to a kernel.
fn made_of(call: &str, target: usize) -> String {
    let with = match rendered(call, target) {
        Ok(text) => text,
        Err(RenderError::NotBuilt { .. }) => panic!("a test has every renderer"),
        Err(_) => return "refused".to_owned(),
    };
    let without = rendered("x[4] = w; f[2] = g;", target).unwrap();
    let words = if target == 1 { instructions } else { calls };
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for word in words(&without) {
        *known.entry(word).or_default() += 1;
    }
    let mut added: Vec<String> = Vec::new();
    for word in words(&with) {
        match known.get_mut(&word) {
            Some(count) if *count > 0 => *count -= 1,
            _ if added.contains(&word) => {}
            _ => added.push(word),
        }
    }
    let added: Vec<String> = added.iter().map(|word| format!("`{word}`")).collect();
    match added.is_empty() {
        true => "-".to_owned(),
        false => added.join(", "),
    }
}

/// The target's own functions that a text calls, and the parts of built-in variables that it names.
fn calls(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == ':';
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let word = &rest[start..];
        let end = word.find(|c| !is_part(c)).unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        let of_launch = [
            "threadIdx.",
            "blockIdx.",
            "blockDim.",
            "gridDim.",
            "tid.",
            "bid.",
            "groups.",
            "args.grid.",
            "subgroup_lane",
            "subgroup_size",
            "simd_lane",
            "simd_size",
        ];
        let is_call = behind.starts_with('(') && !NO_CALLS.contains(&word);
        let is_own = word.ends_with(['_', ':']) || word.contains("_.");
        if (is_call || of_launch.iter().any(|name| word.starts_with(name))) && !is_own {
            let is_assembly = text[..text.len() - rest.len() + start].ends_with("asm ") && word == "volatile";
            all.push(if is_assembly { "asm" } else { word }.to_owned());
        }
        rest = behind;
    }
    all
}

/// The instructions and special registers of a text of PTX.
fn instructions(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for line in text.lines().map(str::trim) {
        let line = match line.strip_prefix('@') {
            Some(guarded) => guarded.split_once(' ').map_or("", |(_, rest)| rest),
            None => line,
        };
        let (opcode, operands) = line.split_once([' ', ';']).unwrap_or((line, ""));
        let kind = opcode.split('.').next().unwrap_or_default();
        if kind.is_empty()
            || !kind.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            || !line.ends_with(';')
        {
            continue;
        }
        let is_plain = matches!(kind, "ld" | "st") && !opcode.contains(".relaxed");
        if !COMMON.contains(&kind) && !is_plain {
            all.push(opcode.to_owned());
        }
        let named = operands.split([' ', ',', ';', '[', ']', '+']).filter(|word| {
            let name = word.strip_prefix('%').unwrap_or_default();
            name.contains('.') || name.len() > 4 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        });
        all.extend(named.map(str::to_owned));
    }
    all
}

#[test]
fn the_page_is_what_is_rendered() {
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
