//! The C-like targets: goldens of every kernel of `tests/in` in `tests/out` (what cannot be rendered leaves its error
//! there; `PERPETUA_BLESS=1` writes the answers anew), and every operator on every type, all through the vendors'
//! tools. MSL is run too.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod names;
mod numbers;
mod operators;
mod prepared;
mod random;

use std::fs;
use std::path::{Path, PathBuf};

use perpetua_ir::back::{BROWSER_SUBGROUPS, Capability, CudaAbi, Target, render};
use perpetua_ir::ir::Kernel;
use perpetua_ir::verify::{Verified, verify};
use perpetua_vendor_tools::{self as tools, MslProgram};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn kernels() -> Vec<(String, Kernel)> {
    let mut found: Vec<_> = fs::read_dir(folder("in"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "ir"))
        .map(|p| {
            let kernel: Kernel = fs::read_to_string(&p)
                .unwrap()
                .parse()
                .unwrap_or_else(|e| panic!("{}: {e}", p.display()));
            (p.file_stem().unwrap().to_string_lossy().into_owned(), kernel)
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn verified(kernel: Kernel) -> Verified {
    let text = kernel.to_string();
    verify(kernel).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn compare(path: &Path, text: &str) {
    if std::env::var_os("PERPETUA_BLESS").is_some_and(|v| v == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        return;
    }
    let old = fs::read_to_string(path).unwrap_or_default().replace("\r\n", "\n");
    assert_eq!(
        text,
        old,
        "{}: run with PERPETUA_BLESS=1 to accept",
        path.display()
    );
}

/// Renders all kernels for the first of `targets` that has what they need into `tests/out/FOLDER/NAME.EXTENSION` and
/// gives each text to `check`.
fn goldens(targets: &[Target], out: &str, extension: &str, check: impl Fn(&str, &str, &str)) {
    for (name, kernel) in kernels() {
        let verified = verified(kernel);
        let path = folder("out").join(out);
        let mut answers = targets.iter().map(|t| render(&verified, t));
        let first = answers.next().unwrap();
        match first.or_else(|e| answers.find_map(Result::ok).ok_or(e)) {
            Ok(source) => {
                compare(&path.join(format!("{name}.{extension}")), &source.text);
                check(&format!("{out}/{name}.{extension}"), &source.entry, &source.text);
            }
            Err(error) => compare(&path.join(format!("{name}.refused")), &format!("{error}\n")),
        }
    }
}

/// The generations that NVRTC compiles for.
const GENERATIONS: [&str; 3] = ["sm_75", "sm_80", "sm_90a"];

fn nvrtc(subject: &str, text: &str, generations: &[&str]) {
    for arch in generations {
        tools::nvrtc(text, arch)
            .required(subject)
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
    }
}

fn wgsl_target(capabilities: &[Capability]) -> Target {
    Target::Wgsl {
        capabilities: capabilities.iter().copied().collect(),
        block: [64, 1, 1],
        dynamic_shared: 1024,
        distinct: false,
        exact_fma: true,
    }
}

/// What browsers have, and what naga has beyond them.
fn wgsl_targets() -> [Target; 2] {
    let browser = [Capability::Subgroups, Capability::DynamicShared];
    let naga = [
        Capability::Subgroups,
        Capability::DynamicShared,
        Capability::Int64,
        Capability::Float64,
        Capability::Math64,
        Capability::Atomic64,
    ];
    [wgsl_target(&browser), wgsl_target(&naga)]
}

/// naga's names for what we use.
const NAGA: &[&str] = &[
    "subgroup",
    "float64",
    "shader_int64",
    "shader_int64_atomic_all_ops",
];

fn naga_and_tint(subject: &str, text: &str) {
    tools::naga(text, NAGA)
        .required(subject)
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    let wide = ["i64", "u64", "f64"];
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    if words.any(|w| wide.contains(&w)) {
        eprintln!("ignored: tint has no 64-bit types ({subject})");
        return;
    }
    let (extensions, text): (&[&str], _) = if text.contains("subgroup") {
        let directives = BROWSER_SUBGROUPS.split_once('\n').unwrap().1;
        (&["subgroups"], format!("{directives}{text}"))
    } else {
        (&[], text.to_owned())
    };
    tools::tint(&text, extensions)
        .required(subject)
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
}

#[test]
fn wgsl() {
    goldens(&wgsl_targets(), "wgsl", "wgsl", |subject, _, text| {
        naga_and_tint(subject, text)
    });
}

/// naga looks at a function's last statement alone, and takes no loop for one that never ends.
#[test]
fn wgsl_functions_end_in_a_return() {
    let switch = "switch %0 { default { return %1 } }";
    let endless = "loop { if %2 { return %1 } else { return %0 } }";
    let branches = "if %2 { loop { return %1 } } else { return %0 }";
    let [_, naga] = wgsl_targets();
    for body in [switch, endless, branches] {
        let text = format!(
            "fn f(x: u64, y: u64) -> u64 {{
              %2: bool = lt %0, %1
              {body}
            }}
            kernel k(out: buffer<u64, read_write>, x: u64) {{
              %0: u64 = param x
              %1: u64 = call f(%0, %0)
              %2: u32 = const 0
              store out[%2], %1
            }}"
        );
        let kernel = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let source = render(&verified(kernel), &naga).unwrap();
        naga_and_tint(body, &source.text);
    }
}

/// Control flow with barriers may depend on what all lanes load from the block's memory, however that is declared.
#[test]
fn wgsl_knows_loads_that_give_all_lanes_one_value() {
    let atomic = "%6: u32 = atomic_add s[%0], %1 relaxed block";
    let kinds = [
        ("[u32; 4]", "s[%0]", "store s[%1], %1", "u32"),
        ("[u32; 4]", "s[%0]", atomic, "u32"),
        (
            "[i32; 4]",
            "s[%0]",
            "%6: i32 = cast %1\n%7: i32 = atomic_max s[%0], %6 relaxed block",
            "i32",
        ),
        (
            "[f32; 4]",
            "s[%0]",
            "%6: f32 = cast %1\n%7: f32 = atomic_add s[%0], %6 relaxed block",
            "f32",
        ),
        (
            "[bool; 7]",
            "s[%0]",
            "%6: bool = lt %1, %0\nstore s[%1], %6",
            "bool",
        ),
        (
            "[[u8; 7]; 3]",
            "s[%0][%2]",
            "%6: u8 = cast %1\nstore s[%0][%2], %6",
            "u8",
        ),
        (
            "Pair",
            "s.1[%0]",
            "%6: u32 = atomic_add s.1[%0], %1 relaxed block",
            "u32",
        ),
        (
            "Pair",
            "s.0",
            "%6: u32 = atomic_add s.1[%0], %1 relaxed block",
            "u16",
        ),
    ];
    let [browser, _] = wgsl_targets();
    for (ty, place, change, loaded) in kinds {
        let text = format!(
            "struct Pair {{ a: u16, b: [u32; 3] }}
            shared s: {ty}
            kernel k(out: buffer<u32, read_write>) {{
              %0: u32 = const 2
              %2: u32 = const 1
              %1: u32 = thread_idx.x
              {change}
              barrier
              %3: {loaded} = load {place}
              barrier
              %4: {loaded} = zero
              %5: bool = ne %3, %4
              if %5 {{
                barrier
                store out[%1], %1
              }}
            }}"
        );
        let kernel = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let source = render(&verified(kernel), &browser).unwrap();
        assert!(source.text.contains("workgroupUniformLoad"), "{}", source.text);
        naga_and_tint(ty, &source.text);
    }
}

#[test]
fn msl() {
    goldens(&[Target::Msl], "msl", "metal", |subject, entry, text| {
        metal(subject, entry, text);
    });
}

/// Compiles MSL; `None` where the compiler is missing.
fn metal(subject: &str, entry: &str, text: &str) -> Option<MslProgram> {
    let compiled = MslProgram::compile(text, entry).required(subject);
    compiled.unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn cuda_c() {
    let target = Target::CudaC {
        abi: CudaAbi::Checked,
    };
    goldens(&[target], "cuda", "cu", |subject, _, text| {
        nvrtc(subject, text, &GENERATIONS)
    });
}

#[test]
fn plain_cuda_c() {
    let target = Target::CudaC { abi: CudaAbi::Plain };
    goldens(&[target], "cuda_plain", "cu", |subject, _, text| {
        nvrtc(subject, text, &GENERATIONS)
    });
}
