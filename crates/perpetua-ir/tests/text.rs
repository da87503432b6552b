//! Kernels as text, and what parser and verifier say of them. Each file of `tests/text` is a list of cases: a
//! kernel, a line `=>`, the answer, a line `----`. `PERPETUA_BLESS=1` writes the answers anew.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use perpetua_ir::ir::Kernel;
use perpetua_ir::verify::verify;

/// What the library says of a text.
fn answer(text: &str) -> String {
    let kernel: Kernel = match text.parse() {
        Ok(kernel) => kernel,
        Err(e) => return format!("not read: {e}"),
    };
    assert_eq!(
        kernel.to_string().parse::<Kernel>().as_ref(),
        Ok(&kernel),
        "printed and read again:\n{kernel}"
    );
    match verify(kernel) {
        Ok(verified) => {
            let needs = verified.facts().capabilities().iter();
            let needs = needs.map(|(capability, line)| format!(", needs {capability} (line {line})"));
            format!("ok{}", needs.collect::<String>())
        }
        Err(errors) => errors.to_string(),
    }
}

fn check(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/text")
        .join(file);
    let old = fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
    let mut new = String::new();
    for case in old.split_inclusive("----\n") {
        let text = case.trim_end_matches("----\n");
        let text = text.split("=>\n").next().unwrap();
        new += &format!("{text}=>\n{}\n----\n", answer(text));
    }
    if std::env::var_os("PERPETUA_BLESS").is_some_and(|v| v == "1") {
        fs::write(&path, new).unwrap();
    } else {
        assert_eq!(new, old, "{file}: run with PERPETUA_BLESS=1 to accept");
    }
}

#[test]
fn parser_errors() {
    check("parser.txt");
}

#[test]
fn declarations() {
    check("declarations.txt");
}

#[test]
fn statements() {
    check("statements.txt");
}

#[test]
fn assignment() {
    check("assignment.txt");
}

#[test]
fn uniformity() {
    check("uniformity.txt");
}

#[test]
fn matrices() {
    check("matrices.txt");
}

#[test]
fn what_kernels_need() {
    check("capabilities.txt");
}

#[test]
fn what_kernels_that_stay_need() {
    check("resident.txt");
}
