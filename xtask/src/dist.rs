//! `cargo xtask dist`: the program as stripped archives, one a target that links on this machine, and the crates as a registry takes
//! them.

use crate::locate::Search;
use crate::toolchain;
use crate::workspace::{cargo, metadata, root, shell};
use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, Package};
use std::fs;
use std::path::{Path, PathBuf};
use xshell::{Shell, cmd};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Targets, instead of all that link here.
    #[arg(long, value_delimiter = ',')]
    target: Vec<String>,
    /// Where to.
    #[arg(long, default_value = "dist/release")]
    out: PathBuf,
}

/// Targets, and what links for them where the machine is another one.
const TARGETS: [(&str, &str); 4] = [
    ("x86_64-unknown-linux-gnu", "x86_64-linux-gnu-gcc"),
    (toolchain::AARCH64_LINUX, toolchain::AARCH64_LINKER),
    ("x86_64-unknown-linux-musl", "musl-gcc"),
    ("x86_64-pc-windows-gnu", "x86_64-w64-mingw32-gcc"),
];

/// What the program is built with.
const FEATURES: &str = "top,window";

/// What goes along.
const PAPERS: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let shell = shell()?;
    let out = root().join(&arguments.out);
    fs::create_dir_all(&out)?;
    let host = host(&shell)?;
    let mut made = 0;
    for target in targets(&host, &arguments.target) {
        match linker(&shell, &host, &target) {
            Ok(linker) => {
                archive(&shell, &target, linker.as_deref(), &out)?;
                made += 1;
            }
            Err(why) if arguments.target.is_empty() => println!("{target}: skipped: {why}"),
            Err(why) => bail!("{target}: {why}"),
        }
    }
    if made == 0 {
        bail!("no target links here");
    }
    package(&shell)?;
    let metadata = metadata()?;
    let is_published = |package: &&Package| package.publish.is_none();
    for package in metadata.packages.iter().filter(is_published) {
        let name = format!("{}-{}.crate", package.name, package.version);
        fs::copy(packages(&metadata).join(&name), out.join(&name))?;
    }
    println!("in {}", out.display());
    Ok(())
}

/// Those asked for, or all that are known and this machine's own.
fn targets(host: &str, asked: &[String]) -> Vec<String> {
    if !asked.is_empty() {
        return asked.to_vec();
    }
    let mut all: Vec<String> = TARGETS.iter().map(|(target, _)| (*target).to_owned()).collect();
    if !all.iter().any(|target| target == host) {
        all.insert(0, host.to_owned());
    }
    all
}

fn host(shell: &Shell) -> Result<String> {
    let told = cmd!(shell, "rustc -vV").quiet().read()?;
    told.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("rustc does not say what it runs on")
}

/// What links for a target, `None` for the machine's own; or why nothing does.
fn linker(shell: &Shell, host: &str, target: &str) -> Result<Option<PathBuf>, String> {
    if target == host {
        return Ok(None);
    }
    let absent = toolchain::absent_for(shell, target);
    if !absent.is_empty() {
        return Err(format!(
            "{} missing: `rustup target add {target}`",
            absent.join(", ")
        ));
    }
    let known = TARGETS.iter().find(|(known, _)| *known == target);
    let (_, name) = known.ok_or("no linker for it is known")?;
    match Search::new().on_path(name) {
        Some(program) => Ok(Some(program)),
        None => Err(format!("no program `{name}` on the path, which links for it")),
    }
}

/// Builds the program for a target, and packs it.
fn archive(shell: &Shell, target: &str, linker: Option<&Path>, out: &Path) -> Result<()> {
    let mut build = toolchain::cargo_for(shell, "build", target)?
        .args(["--release", "--package", "perpetua-cli", "--features", FEATURES])
        .args(["--config", "profile.release.strip=\"symbols\""]);
    if let Some(linker) = linker {
        let name = target.to_uppercase().replace('-', "_");
        build = build.env(format!("CARGO_TARGET_{name}_LINKER"), linker);
    }
    build.run()?;
    let suffix = if target.contains("windows") { ".exe" } else { "" };
    let program = toolchain::folder_of(shell, target)?.join(format!("release/perpetua{suffix}"));
    let archive = pack(shell, target, &program, out)?;
    let bytes = fs::metadata(&archive)?.len();
    println!("{target}: {} ({:.1} MB)", archive.display(), bytes as f64 * 1e-6);
    Ok(())
}

/// Packs a program and its papers, in one folder.
fn pack(shell: &Shell, target: &str, program: &Path, out: &Path) -> Result<PathBuf> {
    let name = format!("perpetua-{}-{target}", env!("CARGO_PKG_VERSION"));
    let folder = out.join(&name);
    fs::create_dir_all(&folder)?;
    fs::copy(program, folder.join(program.file_name().unwrap_or_default()))
        .with_context(|| format!("{} cannot be copied", program.display()))?;
    for paper in PAPERS {
        fs::copy(root().join(paper), folder.join(paper))
            .with_context(|| format!("{paper} cannot be copied"))?;
    }
    let archive = out.join(format!("{name}.tar.gz"));
    cmd!(
        shell,
        "tar --create --gzip --file {archive} --directory {out} {name}"
    )
    .quiet()
    .run()?;
    fs::remove_dir_all(&folder)?;
    Ok(archive)
}

/// Where cargo puts packages.
fn packages(metadata: &Metadata) -> PathBuf {
    metadata.target_directory.join("package").into()
}

/// Packs every crate as a registry takes it, also those that none is to have.
pub(crate) fn package(shell: &Shell) -> Result<()> {
    let cargo = cargo();
    let folder = packages(&metadata()?);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let told = cmd!(
        shell,
        "{cargo} package --workspace --no-verify --allow-dirty --quiet"
    )
    .quiet()
    .ignore_status()
    .output()?;
    if !told.status.success() {
        bail!("{}", String::from_utf8_lossy(&told.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_program_and_its_papers_in_one_folder() {
        let shell = shell().unwrap();
        let out = std::env::temp_dir().join(format!("perpetua-dist-{}", std::process::id()));
        fs::create_dir_all(&out).unwrap();
        let program = out.join("perpetua.exe");
        fs::write(&program, "a program").unwrap();
        let archive = pack(&shell, "x86_64-pc-windows-gnu", &program, &out).unwrap();
        let listed = cmd!(shell, "tar --list --file {archive}").quiet().read().unwrap();
        let (one, _) = listed.split_once('/').unwrap();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(one, format!("perpetua-{version}-x86_64-pc-windows-gnu"));
        let mut names: Vec<&str> = listed
            .lines()
            .map(|line| line.strip_prefix(one).unwrap())
            .collect();
        names.sort_unstable();
        let expect = [
            "/",
            "/LICENSE-APACHE",
            "/LICENSE-MIT",
            "/README.md",
            "/perpetua.exe",
        ];
        assert_eq!(names, expect);
        // The folder that was packed is gone.
        assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
        fs::remove_dir_all(&out).unwrap();
    }

    #[test]
    fn targets_are_those_asked_for_or_all_that_are_known() {
        let asked = ["aarch64-unknown-linux-gnu".to_owned()];
        assert_eq!(targets("x86_64-unknown-linux-gnu", &asked), asked);
        assert_eq!(targets("x86_64-unknown-linux-gnu", &[]).len(), TARGETS.len());
        let all = targets("riscv64gc-unknown-linux-gnu", &[]);
        assert_eq!(
            (all.len(), &*all[0]),
            (TARGETS.len() + 1, "riscv64gc-unknown-linux-gnu")
        );
    }
}
