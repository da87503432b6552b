//! The page in a real browser: it runs, on WebGPU and without, and its numbers are those of a program.

use super::{NAME, build};
use crate::locate::{self, Search};
use crate::setup;
use crate::workspace::{EVERYTHING, cargo, metadata, root};
use anyhow::{Result, bail};
use std::fs;
use std::path::Path;
use xshell::{Shell, cmd};

/// Steps after which fields are compared.
const STEPS: &str = "200";

/// Builds the page, opens it in Chromium, and compares.
pub(crate) fn test(shell: &Shell) -> Result<()> {
    setup::run(&setup::Arguments {
        only: vec![setup::Component::Browser],
    })?;
    let page = Path::new("dist/web");
    build(shell, page)?;
    let (cargo, out) = (cargo(), root().join("dist/web-test"));
    fs::create_dir_all(&out)?;
    // As for the unit tests, so that what they have built is not built once more.
    cmd!(shell, "{cargo} build --quiet {EVERYTHING...} --example numbers")
        .quiet()
        .run()?;
    let numbers = metadata()?
        .target_directory
        .into_std_path_buf()
        .join("debug/examples/numbers");
    let field = cmd!(shell, "{numbers} {STEPS}").quiet().output()?;
    fs::write(out.join("numbers.f32"), field.stdout)?;
    let Some(chromium) = locate::cargo_program("chromium", &mut Search::new()) else {
        bail!("there is still no program `chromium`");
    };
    let script = root().join("apps").join(NAME).join("tests/page.mjs");
    cmd!(shell, "node {script} {page} {out} {STEPS}")
        .env("CHROMIUM", chromium)
        .env("PLAYWRIGHT", setup::driver_entry())
        .quiet()
        .run()?;
    Ok(())
}
