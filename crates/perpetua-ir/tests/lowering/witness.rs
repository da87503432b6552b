//! Inference held against rustc's: each `let` of the programs is annotated with the type that was inferred here, and
//! rustc must accept the result.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use perpetua_ir::front::rust::{inferred_locals, kernels_in_file};
use syn::visit::{Visit, visit_local};

use crate::native::{PROGRAMS, marked};

/// Positions (line, column) after which an annotation goes, by function, name and line of the name.
#[derive(Default)]
struct Lets {
    function: String,
    found: Vec<(String, String, usize, usize)>,
}

impl<'ast> Visit<'ast> for Lets {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function = item.sig.ident.to_string();
        syn::visit::visit_item_fn(self, item);
    }
    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function = item.sig.ident.to_string();
        syn::visit::visit_impl_item_fn(self, item);
    }
    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let syn::Pat::Ident(pat) = &local.pat {
            let end = pat.ident.span().end();
            self.found
                .push((self.function.clone(), pat.ident.to_string(), end.line, end.column));
        }
        visit_local(self, local);
    }
}

/// The program with its lets annotated, and how many were.
fn annotated(text: &str) -> (String, usize) {
    // Types by function, name and line; those of generic functions differ between instances.
    let mut types: HashMap<(String, String, usize), Vec<String>> = HashMap::new();
    let marked = marked(text);
    for kernel in kernels_in_file(&marked, "program.rs").unwrap() {
        for local in inferred_locals(&kernel.function, &kernel.how).unwrap_or_else(|e| panic!("{e}")) {
            let known = types
                .entry((local.function, local.name, local.line as usize))
                .or_default();
            if !known.contains(&local.ty) {
                known.push(local.ty);
            }
        }
    }
    let mut lets = Lets::default();
    lets.visit_file(&syn::parse_file(text).unwrap());
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut count = 0;
    for (function, name, line, column) in lets.found.into_iter().rev() {
        let Some([ty]) = types.get(&(function, name, line)).map(Vec::as_slice) else {
            continue;
        };
        lines[line - 1].insert_str(column, &format!(": {ty}"));
        count += 1;
    }
    (lines.join("\n"), count)
}

#[test]
fn rustc_finds_the_same_types() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("witness");
    fs::create_dir_all(&folder).unwrap();
    let lanes = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lowering/lanes.rs");
    let mut root = format!("#![allow(warnings)]\n#[path = {lanes:?}] pub mod lanes;\npub mod programs {{\n");
    let mut total = 0;
    for (name, text) in PROGRAMS {
        let (text, count) = annotated(text);
        total += count;
        let path = folder.join(format!("{name}.rs"));
        fs::write(&path, text).unwrap();
        root.push_str(&format!(
            "#[path = {:?}] pub mod {name};\n",
            path.display().to_string()
        ));
    }
    root.push('}');
    assert!(total > 80, "only {total} lets were annotated");
    let root_path = folder.join("root.rs");
    fs::write(&root_path, root).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let done = Command::new(rustc)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
            "--out-dir",
        ])
        .arg(&folder)
        .arg(&root_path)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
