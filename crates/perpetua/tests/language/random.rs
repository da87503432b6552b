//! Random programs of patterns, traits, closures and iterators: what rustc makes of them, every way to run them computes.
//! `PERPETUA_SEEDS` sets how many kernels there are.

mod write;

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use perpetua::device::{BackendKind, CompileOptions, KernelSource};
use perpetua::prelude::*;
use perpetua_ir::front::rust::{Instantiation, kernels_in_file, lower};
use perpetua_ir::verify::{Verified, verify};

use crate::harness::devices;

/// What a kernel's lanes read.
const INPUT: [i32; 12] = [0, 1, -1, 2, 3, 8, -12, 97, 4096, i32::MAX, i32::MIN, 0x1234_5678];

fn source() -> String {
    let seeds = std::env::var("PERPETUA_SEEDS").ok();
    let seeds = seeds.and_then(|n| n.parse().ok()).unwrap_or(40);
    let kernels = (0..seeds).map(|seed| write::kernel(&format!("random_{seed}"), seed));
    // What the file says of itself stands at a file's start only.
    let prelude = write::PRELUDE.lines().skip_while(|line| line.starts_with("//!"));
    let prelude = prelude.collect::<Vec<_>>().join("\n");
    kernels.fold(prelude, |text, kernel| text + "\n" + &kernel)
}

/// What the kernels compute as plain Rust: a program that rustc compiles, integers wrapping. `None` where the tests run without a toolchain.
fn by_rustc(source: &str, names: &[String]) -> Option<Vec<Vec<i32>>> {
    let plain = source.replace("#[kernel]\n", "").replace("#[device]\n", "");
    let plain = plain.replace(", GpuType)", ")");
    let mut program = format!(
        "#![allow(warnings, arithmetic_overflow)]\nthread_local!(static LANE: std::cell::Cell<usize> = const {{ std::cell::Cell::new(0) }});\n\
         fn global_id_x() -> usize {{ LANE.get() }}\n{plain}\nfn main() {{\n    let x = {INPUT:?};\n"
    );
    for name in names {
        writeln!(
            program,
            "    let mut y = [0i32; {0}];\n    for lane in 0..{0} {{ LANE.set(lane); {name}(&x, &mut y); }}\n    println!(\"{{y:?}}\");",
            INPUT.len()
        )
        .unwrap();
    }
    program.push_str("}\n");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("random");
    std::fs::create_dir_all(&folder).unwrap();
    let (text, binary) = (folder.join("program.rs"), folder.join("program"));
    std::fs::write(&text, program).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let done = Command::new(rustc)
        .args(["--edition", "2024", "-C", "overflow-checks=off", "-o"])
        .args([&binary, &text])
        .output();
    // Cargo, which has rustc beside it, says where it is.
    let done = match done {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && std::env::var_os("CARGO").is_none() => {
            return None;
        }
        done => done.unwrap(),
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let run = Command::new(&binary).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let lines = String::from_utf8(run.stdout).unwrap();
    let numbers = |line: &str| {
        let inside = line.trim_matches(['[', ']']);
        inside.split(", ").map(|number| number.parse().unwrap()).collect()
    };
    Some(lines.lines().map(numbers).collect())
}

#[test]
fn programs_compute_what_rust_computes() {
    let source = source();
    let kernels = kernels_in_file(&source, "random.rs").unwrap_or_else(|e| panic!("{e}\n{source}"));
    let names: Vec<String> = kernels.iter().map(|kernel| kernel.name.clone()).collect();
    let Some(expected) = by_rustc(&source, &names) else {
        println!("there is no rustc here, with which programs are compared");
        return;
    };
    assert_eq!(expected.len(), kernels.len());
    let varied = expected.iter().filter(|y| y.iter().any(|v| *v != y[0])).count();
    assert!(
        varied * 2 > names.len(),
        "only {varied} kernels depend on their input"
    );
    let lowered = |kernel: &perpetua_ir::front::rust::FileKernel, pointer_width| -> Arc<Verified> {
        let how = Instantiation {
            pointer_width,
            ..kernel.how.clone()
        };
        let ir = lower(&kernel.function, &how).unwrap_or_else(|e| panic!("{}: {e}\n{source}", kernel.name));
        Arc::new(verify(ir).unwrap_or_else(|e| panic!("{}: {e}", kernel.name)))
    };
    for device in devices() {
        let ways: &[bool] = match device.info().backend {
            BackendKind::Cpu => &[false, true],
            _ => &[false],
        };
        for (kernel, expected) in kernels.iter().zip(&expected) {
            let ir = lowered(kernel, device.info().pointer_width());
            for &interpret in ways {
                let options = CompileOptions {
                    interpret,
                    ..CompileOptions::default()
                };
                let module = device.compile(&KernelSource::Ir(&ir), &options).unwrap();
                let (x, y) = (
                    device.upload(&INPUT).unwrap(),
                    device.upload(&[0; INPUT.len()]).unwrap(),
                );
                let config = LaunchConfig::linear(INPUT.len(), 4);
                device
                    .launch(&module.only().unwrap(), config, args![&x, &y])
                    .unwrap();
                let on = (&kernel.name, device.info().backend, interpret);
                assert_eq!(y.read().unwrap(), *expected, "{on:?}");
            }
        }
    }
}
