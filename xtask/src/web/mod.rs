//! `cargo xtask web`: the wave simulation as a folder that any static server serves, with its size.

mod browser;

use crate::locate::{self, Search};
use crate::toolchain;
use crate::workspace::{cargo, metadata, root, shell};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use xshell::{Shell, cmd};

pub(crate) use browser::test;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where to.
    #[arg(long, default_value = "dist/web")]
    out: PathBuf,
}

/// What the page is built with.
const PROFILE: &str = "web";

/// The crate that becomes the page, and the page's files are called so.
const NAME: &str = "wavesim";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    build(&shell()?, &arguments.out)
}

/// Builds the page into a folder.
fn build(shell: &Shell, out: &Path) -> Result<()> {
    // What is missing is said before minutes of work.
    let most = stated_size(&fs::read_to_string(root().join("README.md"))?)?;
    // Wide registers are all over since 2021; without them the CPU's path is slow.
    let page = toolchain::cargo_for(shell, "build", toolchain::WASM)?
        .args(["--profile", PROFILE, "--package", NAME, "--lib", "--quiet"])
        .env("RUSTFLAGS", "-Ctarget-feature=+simd128");
    if Search::new().on_path("gzip").is_none() {
        bail!("there is no program `gzip`, which measures the page: install it");
    }
    let bindgen = bindgen(shell)?;
    page.run()?;
    let module = toolchain::folder_of(shell, toolchain::WASM)?.join(format!("{PROFILE}/{NAME}.wasm"));
    fs::create_dir_all(out)?;
    cmd!(
        shell,
        "{bindgen} --target web --no-typescript --out-dir {out} --out-name {NAME} {module}"
    )
    .quiet()
    .run()?;
    let page = root().join("apps").join(NAME).join("index.html");
    fs::copy(page, out.join("index.html"))?;
    report(shell, out, most)
}

/// Bytes that README promises the page to have at most, compressed as servers do it.
fn stated_size(readme: &str) -> Result<usize> {
    let stated = readme
        .split("The page takes less than ")
        .nth(1)
        .and_then(|rest| rest.split(" MB").next())
        .and_then(|number| number.parse::<f64>().ok());
    stated
        .map(|megabytes| (megabytes * 1e6) as usize)
        .context("README.md does not say how large the page is: `The page takes less than 4 MB`")
}

/// Says how large the files are, plain and compressed.
fn report(shell: &Shell, out: &Path, most: usize) -> Result<()> {
    let mut all = (0, 0);
    for entry in fs::read_dir(out)? {
        let path = entry?.path();
        let plain = fs::metadata(&path)?.len() as usize;
        let packed = cmd!(shell, "gzip -9 --stdout {path}")
            .quiet()
            .output()?
            .stdout
            .len();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        println!("{name:<20} {plain:>10} bytes, {packed:>10} compressed");
        all = (all.0 + plain, all.1 + packed);
    }
    println!(
        "{:<20} {:>10} bytes, {:>10} compressed: {}",
        "total",
        all.0,
        all.1,
        out.display()
    );
    if all.1 >= most {
        bail!(
            "the page has {} bytes compressed; README.md says less than {most}",
            all.1
        );
    }
    Ok(())
}

/// The program that joins wasm and script, of the version that the crate in use asks for.
fn bindgen(shell: &Shell) -> Result<PathBuf> {
    let wanted = bindgen_version()?;
    let own = locate::tools_folder()
        .join(locate::CARGO_ROOT)
        .join("bin/wasm-bindgen");
    let found = [Search::new().on_path("wasm-bindgen"), Some(own.clone())];
    for program in found.into_iter().flatten().filter(|p| p.is_file()) {
        let version = cmd!(shell, "{program} --version").quiet().read()?;
        if version.split_whitespace().nth(1) == Some(&wanted) {
            return Ok(program);
        }
    }
    // It runs for seconds; to optimise it takes minutes.
    println!("building wasm-bindgen {wanted} into .tools (a minute or two)");
    let (cargo, root) = (cargo(), locate::tools_folder().join(locate::CARGO_ROOT));
    cmd!(
        shell,
        "{cargo} install --quiet --debug --force wasm-bindgen-cli --version {wanted} --root {root} --bin wasm-bindgen"
    )
    .env("CARGO_PROFILE_DEV_DEBUG", "none")
    .quiet()
    .run()
    .context("cargo could not install wasm-bindgen-cli")?;
    Ok(own)
}

/// The version of the crate wasm-bindgen in the lock file.
fn bindgen_version() -> Result<String> {
    let lock = fs::read_to_string(metadata()?.workspace_root.join("Cargo.lock"))?;
    let mut lines = lock.lines();
    lines
        .find(|line| *line == "name = \"wasm-bindgen\"")
        .and_then(|_| lines.next()?.strip_prefix("version = \"")?.strip_suffix('"'))
        .map(str::to_owned)
        .context("Cargo.lock does not name wasm-bindgen")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readme_says_how_large_the_page_is() {
        let stated = |text: &str| stated_size(text).ok();
        assert_eq!(
            stated("The page takes less than 4.2 MB compressed."),
            Some(4_200_000)
        );
        assert_eq!(stated("The page takes a while."), None);
        assert!(stated_size(&fs::read_to_string(root().join("README.md")).unwrap()).is_ok());
    }
}
