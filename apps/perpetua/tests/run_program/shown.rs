//! Where carets stand, and what is said of what a kernel met.

use std::fs;

use crate::folder::{Folder, text};

/// What is said of a file's kernel, after the first line, which names the device.
fn said(folder: &Folder, code: &str, args: &str) -> String {
    fs::write(folder.path().join("s.rs"), code).unwrap();
    let output = folder.program(args);
    assert!(!output.status.success(), "{args}");
    text(&output.stderr)
}

/// A first line that names an interpreter, and a comment that would command a terminal, move no caret.
#[test]
fn carets_stand_under_what_is_meant() {
    let folder = Folder::new();
    let kernel = "#[kernel]\nfn k(y: &mut [u32]) {\n    y[0] = 1.5;\n}\n";
    for (first, line) in [("#!/usr/bin/env perpetua\n", 4), ("// \u{1b}[31m\n", 4), ("", 3)] {
        for args in ["emit s.rs", "explain s.rs", "run s.rs --buffer y=zeros:1"] {
            let said = said(&folder, &format!("{first}{kernel}"), args);
            let expect = format!(" --> s.rs:{line}:12\n  |\n{line} |     y[0] = 1.5;\n  |            ^^^\n");
            assert!(said.contains(&expect), "{first:?} {args}: {said}");
        }
    }
    let code = "#[kernel] fn k(y: &mut [u32], n: u32) { /* \u{1b}[31m */ y[0] = 1 / n; }\n";
    let expect = "| #[kernel] fn k(y: &mut [u32], n: u32) { /* \\u{1b}[31m */ y[0] = 1 / n; }";
    let at = expect.find("y[0]").unwrap();
    fs::write(folder.path().join("s.rs"), code).unwrap();
    let told = text(&folder.program("explain s.rs").stdout);
    let carets = format!("|{}^^^^\n", " ".repeat(at - 1));
    assert!(told.contains(expect) && told.contains(&carets), "{told}");
}

#[test]
fn a_fault_is_shown_where_it_is_on_a_line_with_all() {
    let folder = Folder::new();
    for (body, marked) in [
        ("let z = 5; y[0] = z / n;", "y[0] = z / n"),
        ("y[0] = 1; y[0] = y[0] % n;", "y[0] = y[0] % n"),
    ] {
        let code = format!("#[kernel] fn k(y: &mut [u32], n: u32) {{ {body} }}");
        let said = said(
            &folder,
            &code,
            "run s.rs --backend cpu --buffer y=zeros:1 --arg n=0",
        );
        let at = code.find(marked).unwrap();
        let expect = format!("1 | {code}\n  | {}{}\n", " ".repeat(at), "^".repeat(marked.len()));
        assert!(said.contains(&expect), "{said}");
    }
}

#[test]
fn a_race_is_shown_with_both_sides() {
    let folder = Folder::new();
    let code = "#[kernel]\nfn race(y: &mut [u32]) {\n    let i = global_id_x();\n    y[0] = i as u32;\n    y[1] = y[0];\n}\n";
    let said = said(&folder, code, "run s.rs --lanes 8 --buffer y=zeros:2 --check");
    let expect = "error: race for `y`[0] in kernel `race`: store by lane (0, 0, 0) of block (0, 0, 0), line 4, and then, with no order \
        between them, store by lane (1, 0, 0) of block (0, 0, 0), line 4\n --> s.rs:4:5\n";
    assert!(
        said.contains(expect) && said.contains("4 |     y[0] = i as u32;\n  |     ^\n"),
        "{said}"
    );
    assert!(
        said.contains("error: `race` has a race: put `sync_threads()` between"),
        "{said}"
    );
}

#[test]
fn a_picture_has_finite_numbers() {
    let folder = Folder::new();
    let code = |value: &str| {
        format!("#[kernel]\nfn k(y: &mut [f32]) {{\n    let i = global_id_x();\n    y[i] = {value};\n}}\n")
    };
    let run = "run s.rs --backend cpu --buffer y=ones:4x4 --picture y";
    let found = said(
        &folder,
        &code("(0.0 - y[i]).sqrt()"),
        &format!("{run} --lanes 16"),
    );
    assert!(
        found.contains("error: --picture y: none of its 16 numbers is finite: there is nothing to draw"),
        "{found}"
    );
    assert!(!folder.path().join("y.png").exists());
    fs::write(folder.path().join("s.rs"), code("y[i] / (i as f32)")).unwrap();
    let output = folder.program(&format!("{run} --lanes 16"));
    let found = text(&output.stderr);
    assert!(
        output.status.success() && found.contains("\nnot finite: 1 of the picture's 16 numbers\n"),
        "{found}"
    );
}

/// Kernels of a module are shown in its own file.
#[test]
fn what_a_modules_kernel_meets_is_shown_in_its_file() {
    let folder = Folder::new();
    let math = "#[kernel]\npub fn divide(y: &mut [u32], n: u32) {\n    y[0] = 7 / n;\n}\n\n#[kernel]\npub fn race(y: &mut [u32]) {\n    \
                y[0] = global_id_x() as u32;\n}\n";
    fs::write(folder.path().join("math.rs"), math).unwrap();
    let root = "mod math;\n// Line 2.\n// Line 3.\n// Line 4.\n";
    let fault = said(
        &folder,
        root,
        "run s.rs divide --backend cpu --buffer y=zeros:1 --arg n=0",
    );
    let expect = " --> math.rs:3:5\n  |\n3 |     y[0] = 7 / n;\n  |     ^^^^^^^^^^^^\n";
    assert!(fault.contains(expect), "{fault}");
    let race = said(
        &folder,
        root,
        "run s.rs race --lanes 8 --buffer y=zeros:1 --check",
    );
    assert!(
        race.contains(" --> math.rs:8:5\n") && race.contains("\n8 |     y[0] = global_id_x() as u32;"),
        "{race}"
    );
    let told = text(&folder.program("explain s.rs divide").stdout);
    assert!(
        told.starts_with("math.rs: kernel `divide`") && told.contains("3 |     y[0] = 7 / n;"),
        "{told}"
    );
    // A name in `#[path]` does nothing to the terminal.
    let name = "a\u{1b}[31m.rs";
    fs::write(folder.path().join(name), math).unwrap();
    let root = "#[path = \"a\\u{1b}[31m.rs\"] mod math;\n";
    let fault = said(
        &folder,
        root,
        "run s.rs divide --backend cpu --buffer y=zeros:1 --arg n=0",
    );
    assert!(
        fault.contains(" --> a\\u{1b}[31m.rs:3:5\n") && !fault.contains('\u{1b}'),
        "{fault}"
    );
    let code = text(&folder.program("emit s.rs divide --target cpu").stdout);
    assert!(
        cfg!(not(target_arch = "x86_64")) || code.contains("\n; 3: y[0] = 7 / n;\n"),
        "{code}"
    );
}
