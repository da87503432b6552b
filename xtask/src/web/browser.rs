//! The page in a real browser: it runs, on WebGPU and without, and its numbers are those of a program.

use super::{NAME, build};
use crate::setup;
use crate::workspace::{cargo, metadata, root};
use anyhow::{Context, Result, bail};
use perpetua_vendor_tools::locate::{self, Search};
use std::fs;
use std::path::Path;
use xshell::{Shell, cmd};

/// What drives the browser.
const PLAYWRIGHT: &str = "playwright-core@1.64.1";

/// Steps after which fields are compared.
const STEPS: &str = "200";

/// Builds the page, opens it in Chromium, and compares.
pub(crate) fn test(shell: &Shell) -> Result<()> {
    let program = |name: &str| locate::cargo_program(name, &mut Search::new());
    let lacking: Vec<&str> = [("chromium", "chromium"), ("node", "nodejs"), ("npm", "npm")]
        .iter()
        .filter(|(name, _)| program(name).is_none())
        .map(|(_, package)| *package)
        .collect();
    setup::install_debian(shell, &lacking)?;
    let modules = locate::tools_folder().join("node");
    if !modules.join("node_modules/playwright-core").is_dir() {
        fs::create_dir_all(&modules)?;
        cmd!(
            shell,
            "npm install --silent --no-fund --no-audit --prefix {modules} {PLAYWRIGHT}"
        )
        .quiet()
        .run()
        .context("npm could not install what drives the browser")?;
    }
    let page = Path::new("dist/web");
    build(shell, page)?;
    let (cargo, out) = (cargo(), root().join("dist/web-test"));
    fs::create_dir_all(&out)?;
    // With the features of the unit tests, so that what they have built is not built once more.
    cmd!(
        shell,
        "{cargo} build --quiet --workspace --all-features --example numbers"
    )
    .quiet()
    .run()?;
    let numbers = metadata()?
        .target_directory
        .into_std_path_buf()
        .join("debug/examples/numbers");
    let field = cmd!(shell, "{numbers} {STEPS}").quiet().output()?;
    fs::write(out.join("numbers.f32"), field.stdout)?;
    let Some(chromium) = program("chromium") else {
        bail!("there is still no program `chromium`");
    };
    let script = root().join("apps").join(NAME).join("tests/page.mjs");
    cmd!(shell, "node {script} {page} {out} {STEPS}")
        .env("CHROMIUM", chromium)
        .env(
            "PLAYWRIGHT",
            modules.join("node_modules/playwright-core/index.mjs"),
        )
        .quiet()
        .run()?;
    Ok(())
}
