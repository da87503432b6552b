//! `cargo xtask compile-times`: what the macros cost. Generates a crate of kernels, compiles it against the facade as built without
//! optimisation, and prints processor time, which other work on the machine changes less than time by the clock.

use crate::workspace::{cargo, root, shell};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use xshell::{Shell, cmd};

/// Kernels of a crate, of [`LINES`] lines each.
const KERNELS: usize = 100;
const LINES: usize = 50;

/// Of these lines is a kernel; each is a step of the computation by what is left of three.
const STEPS: [&str; 3] = [
    "    let v{i} = (a + v{before}) * x[(i + {i}) % x.len()] - (v{before} * 0.5).sqrt();",
    "    let v{i} = if v{before} > {i}.0 { v{before} - a } else { v{before} * v{before} + a };",
    "    let v{i} = v{before}.max(x[i]) + ({i} * i % 7) as f32;",
];

pub(crate) fn run() -> Result<()> {
    let shell = shell()?;
    let folder = root().join("target/compile-times");
    println!("processor time for {KERNELS} kernels of {LINES} lines, the least of three runs:");
    for (what, options) in [
        ("without native bodies", "(interpret)"),
        ("with native bodies", ""),
    ] {
        generate(&folder, options)?;
        let _folder = shell.push_dir(&folder);
        compile(&shell)?;
        let (mut all, mut expansion) = (f64::MAX, f64::MAX);
        for _ in 0..3 {
            fs::write(folder.join("src/main.rs"), kernels(options))?;
            let before = children()?;
            let passes = compile(&shell)?;
            all = all.min(children()? - before);
            let seconds = passes.lines().find_map(expansion_of);
            expansion = expansion.min(seconds.context("rustc did not say how long macro_expand_crate took")?);
        }
        println!(
            "  {what}: {all:.2} s in all; expanding a kernel {:.1} ms by the clock",
            expansion * 1e3 / KERNELS as f64
        );
    }
    Ok(())
}

/// The crate, in a workspace of its own that builds where this one does.
fn generate(folder: &Path, options: &str) -> Result<()> {
    fs::create_dir_all(folder.join("src"))?;
    fs::create_dir_all(folder.join(".cargo"))?;
    fs::write(
        folder.join("Cargo.toml"),
        "[package]\nname = \"kernels\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         perpetua = { path = \"../../crates/perpetua\", default-features = false }\n",
    )?;
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    fs::write(folder.join("src/main.rs"), kernels(options))?;
    Ok(())
}

fn kernels(options: &str) -> String {
    let mut text = String::from("use perpetua::prelude::*;\n\n");
    for kernel in 0..KERNELS {
        text += &format!("#[kernel{options}]\npub fn k{kernel}(a: f32, x: &[f32], y: &mut [f32]) {{\n");
        text += "    let i = global_id_x();\n    let v0 = x[i];\n";
        // The attribute, the signature, three lines before, two behind.
        for i in 1..=LINES - 7 {
            let step = STEPS[(i + kernel) % STEPS.len()];
            text += &step
                .replace("{i}", &i.to_string())
                .replace("{before}", &(i - 1).to_string());
            text.push('\n');
        }
        text += &format!("    y[i] = v{} + {kernel}.0;\n}}\n\n", LINES - 7);
    }
    text + "fn main() {}\n"
}

/// Compiles the crate alone where its dependencies are built; gives what rustc says of its passes.
fn compile(shell: &Shell) -> Result<String> {
    let _bootstrap = shell.push_env("RUSTC_BOOTSTRAP", "1");
    let cargo = cargo();
    let command = cmd!(shell, "{cargo} rustc --quiet --offline -- -Ztime-passes").quiet();
    Ok(command.read_stderr()?)
}

/// The seconds of `time:   0.123; rss: … macro_expand_crate`.
fn expansion_of(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once("time:")?;
    let (seconds, _) = rest.split_once(';')?;
    line.ends_with("macro_expand_crate")
        .then(|| seconds.trim().parse().ok())?
}

/// Processor time of all children so far, in seconds.
fn children() -> Result<f64> {
    let text =
        fs::read_to_string("/proc/self/stat").context("processor time is read from /proc/self/stat")?;
    // Behind the name, which may hold spaces: the fields from the third on. `cutime` and `cstime` are the 16th and 17th.
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks: Option<u64> = fields
        .get(13..15)
        .map(|both| both.iter().filter_map(|n| n.parse::<u64>().ok()).sum());
    Ok(ticks.context("/proc/self/stat is shorter than Linux writes it")? as f64 / 100.0)
}
