//! Explanations as they are printed, of three kernels.

use super::*;

const FILE: &str = include_str!("tests/kernels.rs");

/// The explanation of a kernel, without colours, on a processor with AVX-512.
fn plain(file: &File<'_>, kernel: &str, side: Option<Side>) -> String {
    let wanted = Wanted::parse(kernel).unwrap();
    let kernel = &file.kernels(Some(&wanted)).unwrap()[0];
    let how = wanted.instantiation(kernel, 64).unwrap();
    let verified = file.lowered(kernel, &how).unwrap();
    let told = explained(file, &verified, kernel.lacks_native, side, Width::Sixteen, 80);
    anstream::adapter::strip_str(&told).to_string()
}

fn check(kernel: &str, side: Option<Side>, golden: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/explain/tests")
        .join(golden);
    let file = File::new("kernels.rs", FILE);
    let found = plain(&file, kernel, side);
    if std::env::var_os("PERPETUA_BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    for line in found.lines() {
        assert!(console::measure_text_width(line) <= 80, "{line}");
    }
    let expect = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found, expect,
        "{golden}: run with PERPETUA_BLESS=1 if this is right"
    );
}

#[test]
fn a_stream_is_explained() {
    check("saxpy", None, "saxpy.txt");
}

#[test]
fn a_gather_in_a_loop_is_explained() {
    check("sparse", None, "sparse.txt");
    check("sparse", Some(Side::Gpu), "sparse_gpu.txt");
    check("sparse", Some(Side::Cpu), "sparse_cpu.txt");
}

#[test]
fn a_reduction_in_shared_memory_is_explained() {
    check("block_sum::<64>", None, "block_sum.txt");
}

/// What keeps a kernel from native code is named with its line.
#[test]
fn what_native_code_lacks_is_named() {
    let check = |body: &str, expect: &str| {
        let text = format!(
            "#[kernel]\nfn k(x: &[u32], y: &mut [u32]) {{\n    let i = global_id_x();\n    {body}\n}}\n"
        );
        let file = File::new("k.rs", &text);
        let told = plain(&file, "k", Some(Side::Cpu))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(told.contains(expect), "{body}: {told}");
    };
    check(
        "y[i] = x[i] + 1;",
        "; in a crate, as native code, if all that it calls has some",
    );
    check(
        "y[i] = x.iter().sum();",
        "; in a crate, too: native code lacks iterators and parts of slices (line 4)",
    );
    check(
        "sync_threads();",
        "native code lacks barriers and fences (line 4)",
    );
    check(
        "atomic_add(&mut y[0], x[i]);",
        "native code lacks atomic operations on buffers (line 4)",
    );
    check(
        "assert!(x[i] > 0);",
        "native code lacks assertions, panics with a message and other macros (line 4)",
    );
    check(
        "let f = |v: u32| v + 1;\n    y[i] = f(x[i]);",
        "native code lacks closures (line 4)",
    );
}

/// The book's sample is what is printed of the kernel above it.
#[test]
fn the_book_shows_what_is_printed() {
    const PAGE: &str = include_str!("../../../../docs/book/src/performance.md");
    let (_, section) = PAGE.split_once("perpetua explain").unwrap();
    let block = |kind: &str| {
        let (_, rest) = section.split_once(kind).unwrap();
        rest.split_once("```").unwrap().0
    };
    let lines = block("```rust\n").lines().filter(|line| !line.starts_with("# "));
    let text = lines.collect::<Vec<_>>().join("\n");
    let file = File::new("sparse.rs", &text);
    let (found, shown) = (plain(&file, "multiply", None), block("```text\n"));
    if std::env::var_os("PERPETUA_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/performance.md");
        let page = PAGE.replace(
            &format!("```text\n{shown}```"),
            &format!("```text\n{}\n```", found.trim_end()),
        );
        std::fs::write(path, page).unwrap();
        return;
    }
    assert_eq!(
        shown.trim_end(),
        found.trim_end(),
        "the book shows otherwise: PERPETUA_BLESS=1 writes it"
    );
}
