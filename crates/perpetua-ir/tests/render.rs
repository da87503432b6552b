//! Renders every kernel of `tests/in` for every C-like target and compares with `tests/out`. What cannot be rendered
//! leaves its error there. `PERPETUA_BLESS=1` writes the answers anew.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use perpetua_ir::back::{CudaAbi, Target, render};
use perpetua_ir::ir::Kernel;
use perpetua_ir::verify::verify;
use perpetua_vendor_tools as tools;

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

fn compare(path: &Path, text: &str) {
    if std::env::var_os("PERPETUA_BLESS").is_some_and(|v| v == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        return;
    }
    let old = fs::read_to_string(path).unwrap_or_default().replace("\r\n", "\n");
    assert_eq!(text, old, "{}: run with PERPETUA_BLESS=1 to accept", path.display());
}

/// Renders all kernels for `target` into `tests/out/FOLDER/NAME.EXTENSION` and gives each text to `check`.
fn goldens(target: &Target, out: &str, extension: &str, check: impl Fn(&str, &str, &str)) {
    for (name, kernel) in kernels() {
        let verified = verify(kernel).unwrap_or_else(|e| panic!("{name}: {e}"));
        let path = folder("out").join(out);
        match render(&verified, target) {
            Ok(source) => {
                compare(&path.join(format!("{name}.{extension}")), &source.text);
                check(&format!("{out}/{name}.{extension}"), &source.entry, &source.text);
            }
            Err(error) => compare(&path.join(format!("{name}.refused")), &format!("{error}\n")),
        }
    }
}

fn nvrtc(subject: &str, text: &str) {
    for arch in ["sm_75", "sm_80", "sm_90a"] {
        tools::nvrtc(text, arch).required(subject).unwrap_or_else(|e| panic!("{e}\n{text}"));
    }
}

#[test]
fn cuda_c() {
    let target = Target::CudaC { abi: CudaAbi::Checked };
    goldens(&target, "cuda", "cu", |subject, _, text| nvrtc(subject, text));
}

#[test]
fn plain_cuda_c() {
    let target = Target::CudaC { abi: CudaAbi::Plain };
    goldens(&target, "cuda_plain", "cu", |subject, _, text| nvrtc(subject, text));
}
