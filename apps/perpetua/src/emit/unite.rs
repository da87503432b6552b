//! Several kernels' texts as one that the target's tools accept: heads once, what is declared twice in the same words once, other
//! things of one name under names of their own. Must not know what a declaration means.
//!
//! What the renderers write makes this possible by text: a declaration begins at a line's beginning, what it needs stands before it, and
//! nothing in a body has the name of something outside.

use std::collections::{HashMap, HashSet};

/// Texts as one.
pub(super) fn unite(texts: &[String]) -> String {
    let parts: Vec<Part<'_>> = texts.iter().map(|text| Part::read(text)).collect();
    let mut words: HashSet<String> = HashSet::new();
    for text in texts {
        words.extend(tokens(text).filter(|token| is_name(token)).map(str::to_owned));
    }
    let mut head: Vec<String> = Vec::new();
    for line in parts.iter().flat_map(|part| &part.head) {
        let number = |line: &str| version(line.strip_prefix(".version ")?);
        match head.iter().position(|other| number(other).is_some()) {
            Some(at) if number(line).is_some() => {
                if number(&head[at]) < number(line) {
                    head[at] = (*line).to_owned();
                }
            }
            _ if head.iter().any(|other| other == line) => {}
            _ => head.push((*line).to_owned()),
        }
    }
    let mut known: HashMap<String, String> = HashMap::new();
    let mut blocks: Vec<String> = Vec::new();
    for part in &parts {
        // Names of this text that mean something else in an earlier one.
        let mut renamed: HashMap<String, String> = HashMap::new();
        for block in &part.blocks {
            let text = with_names(block, &renamed);
            let Some(name) = name_of(&text) else {
                blocks.push(text);
                continue;
            };
            let text = match known.get(&name) {
                Some(same) if *same == text => continue,
                Some(_) => {
                    let free = free_name(&name, &mut words);
                    renamed.insert(name, free.clone());
                    let text = with_names(block, &renamed);
                    known.insert(free, text.clone());
                    text
                }
                None => {
                    known.insert(name, text.clone());
                    text
                }
            };
            blocks.push(text);
        }
    }
    let head = head.join("\n");
    let gap = if head.is_empty() { "" } else { "\n\n" };
    format!("{head}{gap}{}", blocks.join("\n\n"))
}

/// `8.7` as numbers.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A text's directives, which stand first, and its declarations.
struct Part<'a> {
    head: Vec<&'a str>,
    blocks: Vec<String>,
}

/// What a directive begins with.
const HEADS: [&str; 11] = [
    ".version ",
    ".target ",
    ".address_size ",
    "// lines are of ",
    "// needs ",
    "enable ",
    "requires ",
    "diagnostic(",
    "#include ",
    "#pragma ",
    "using namespace ",
];

impl<'a> Part<'a> {
    fn read(text: &'a str) -> Part<'a> {
        let mut part = Part {
            head: Vec::new(),
            blocks: Vec::new(),
        };
        let (mut block, mut depth) = (Vec::new(), 0);
        for line in text.lines() {
            if depth == 0 && block.is_empty() {
                if line.trim().is_empty() {
                    continue;
                }
                if HEADS.iter().any(|head| line.starts_with(head)) {
                    part.head.push(line);
                    continue;
                }
            }
            block.push(line);
            let code = line.split("//").next().unwrap_or_default().trim_end();
            for c in code.chars() {
                depth += match c {
                    '(' | '[' | '{' => 1,
                    ')' | ']' | '}' => -1,
                    _ => 0,
                };
            }
            if depth == 0 && code.ends_with([';', '}']) {
                part.blocks.push(block.join("\n"));
                block.clear();
            }
        }
        if !block.is_empty() {
            part.blocks.push(block.join("\n"));
        }
        part
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%')
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// A text's words, and what stands between them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest.find(|c| is_word(c) != is_word(first)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        rest = after;
        Some(token)
    })
}

/// The name that a declaration gives: behind the words that say so, or before the first of what only follows names.
fn name_of(block: &str) -> Option<String> {
    const SAYS: [&str; 8] = [
        "struct", "fn", "const", "override", "alias", "entry", "func", "var",
    ];
    let code: Vec<&str> = block.lines().filter(|line| !line.starts_with("//")).collect();
    let code = code.join("\n");
    let all: Vec<&str> = tokens(&code).collect();
    let (mut says, mut depth, mut last) = (false, 0, None);
    for (i, token) in all.iter().enumerate() {
        if is_name(token) {
            // An attribute is nobody's name, and in `var<storage>` none comes yet.
            let is_attribute = token.starts_with("__") || i > 0 && all[i - 1].ends_with('@');
            if depth > 0 || is_attribute {
                last = None;
                continue;
            }
            if says {
                return Some((*token).to_owned());
            }
            says = SAYS.contains(token);
            last = (!says).then_some(*token);
            continue;
        }
        for c in token.chars() {
            match c {
                '(' | '[' | '=' | ';' if depth == 0 && last.is_some() => return last.map(str::to_owned),
                '<' | '(' | '[' => depth += 1,
                '>' | ')' | ']' => depth -= 1,
                _ => {}
            }
        }
        if !matches!(token.trim(), "" | "*" | "&") {
            last = None;
        }
    }
    None
}

/// A declaration with other names for some things. What follows a point is a field, and so is what a struct declares.
fn with_names(block: &str, renamed: &HashMap<String, String>) -> String {
    if renamed.is_empty() {
        return block.to_owned();
    }
    let is_struct = block.lines().any(|line| line.starts_with("struct "));
    let mut out = String::with_capacity(block.len() + 16);
    for line in block.split_inclusive('\n') {
        let all: Vec<&str> = tokens(line).collect();
        for (i, token) in all.iter().enumerate() {
            let before = if i > 0 { all[i - 1] } else { "" };
            let after = all.get(i + 1).copied().unwrap_or_default();
            let declares_field = is_struct
                && line.starts_with(' ')
                && (after.starts_with(':') || after.starts_with(';') || after.starts_with('['));
            let is_field = before.ends_with('.') && !before.ends_with("..") || declares_field;
            out.push_str(match renamed.get(*token) {
                Some(new) if !is_field => new,
                _ => token,
            });
        }
    }
    out
}

/// A name like `name` that no text has.
fn free_name(name: &str, words: &mut HashSet<String>) -> String {
    let (base, mark) = match name.strip_suffix('_') {
        Some(base) => (base, "_"),
        None => (name, ""),
    };
    let digit = if base.ends_with(|c: char| c.is_ascii_digit()) {
        "_"
    } else {
        ""
    };
    let mut number = 2;
    loop {
        let free = format!("{base}{digit}{number}{mark}");
        if words.insert(free.clone()) {
            return free;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_have_names() {
        for (block, expect) in [
            ("struct P_ {\n    x_: f32,\n}", Some("P_")),
            ("struct __align__(8) P_ {\n    float x;\n};", Some("P_")),
            (
                "@group(0) @binding(0) var<storage, read_write> y_: array<f32>;",
                Some("y_"),
            ),
            ("var<workgroup> t_: array<f32, 64>;", Some("t_")),
            ("const TABLE_ = array<f32, 2>(1.0, 2.0);", Some("TABLE_")),
            ("// Why.\nfn helper_(x: f32) -> f32 {\n}", Some("helper_")),
            (
                "@compute @workgroup_size(64, 1, 1)\nfn k_(@builtin(x) a: u32) {\n}",
                Some("k_"),
            ),
            ("__constant__ float TABLE_[4] = {\n};", Some("TABLE_")),
            (
                "__device__ unsigned int* begin_(unsigned int* ring)\n{\n}",
                Some("begin_"),
            ),
            (
                "extern \"C\" __global__ void __launch_bounds__(64) k_(float* y)\n{\n}",
                Some("k_"),
            ),
            (
                "extern __shared__ __align__(16) unsigned char dynamic[];",
                Some("dynamic"),
            ),
            ("static inline P_ shift_(P_ p)\n{\n}", Some("shift_")),
            ("kernel void k_(device float* y)\n{\n}", Some("k_")),
            (".visible .entry one(\n\t.param .u64 y_0\n)\n{\n}", Some("one")),
            (".global .align 4 .b32 TABLE_0[4] = {1};", Some("TABLE_0")),
        ] {
            assert_eq!(name_of(block).as_deref(), expect, "{block}");
        }
    }

    #[test]
    fn what_differs_is_renamed_and_what_is_equal_is_there_once() {
        let texts = [
            "enable f16;\n\nstruct P_ {\n    x_: f32,\n}\nvar<private> x_: f32;\nfn f_() -> f32 { return x_; }\nfn k_() { f_(); }\n",
            "enable f16;\nrequires y;\n\nstruct P_ {\n    x_: f32,\n}\nvar<private> x_: u32;\nfn f_(p: P_) -> u32 { return x_ + p.x_; }\nfn l_() { f_(); }\n",
        ];
        let expect = "enable f16;\nrequires y;\n\nstruct P_ {\n    x_: f32,\n}\n\nvar<private> x_: f32;\n\nfn f_() -> f32 { return x_; }\n\n\
            fn k_() { f_(); }\n\nvar<private> x2_: u32;\n\nfn f2_(p: P_) -> u32 { return x2_ + p.x_; }\n\nfn l_() { f2_(); }";
        assert_eq!(unite(&texts.map(str::to_owned)), expect);
        let versions = [
            ".version 7.8\n.global .b32 t[1];\n",
            ".version 8.10\n.global .b32 t[2];\n",
        ];
        let found = unite(&versions.map(str::to_owned));
        assert_eq!(
            found,
            ".version 8.10\n\n.global .b32 t[1];\n\n.global .b32 t2[2];"
        );
    }
}
