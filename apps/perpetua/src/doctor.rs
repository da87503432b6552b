//! `perpetua doctor`: drivers, tools, one kernel on each backend, with remedies.

use std::io::{Read, Seek, Write};
use std::path::Path;

use anstyle::AnsiColor;
use perpetua::device::{Device, LaunchConfig};
use perpetua::prelude::*;

use super::stdout::stdout;
use super::{Failure, say, text};

/// What the doctor runs: integer and float work with a known answer.
#[kernel]
fn checkup(x: &[f32], y: &mut [f32], bias: f32) {
    let i = global_id_x();
    if i >= y.len() {
        return;
    }
    let mut sum = bias;
    for k in 0..4 {
        sum += x[i] * k as f32;
    }
    y[i] = sum;
}

fn check(device: &Device) -> Result<String, Failure> {
    const N: usize = 10_000;
    let input: Vec<f32> = (0..N).map(|i| i as f32 * 0.5).collect();
    let (x, y) = (device.upload(&input)?, device.zeros::<f32>(N)?);
    let start = std::time::Instant::now();
    device.launch(
        &checkup::kernel(),
        LaunchConfig::linear(N, 256),
        args![&x, &y, 1.0f32],
    )?;
    let found = y.read()?;
    let elapsed = start.elapsed();
    let wrong = input
        .iter()
        .zip(&found)
        .position(|(x, y)| *y != 1.0 + x + 2.0 * x + 3.0 * x);
    match wrong {
        None => Ok(format!(
            "{} computes correctly ({:.1} ms with compilation)",
            device.info().name,
            elapsed.as_secs_f64() * 1e3
        )),
        Some(i) => Err(format!(
            "{}: element {i} is {}, which is wrong",
            device.info().name,
            found[i]
        )
        .into()),
    }
}

/// Bytes of a large kernel.
const LARGE: usize = 256 << 10;

/// Whether a folder, which is made at the first, takes a large kernel and gives it back.
fn keeps(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let mut file = tempfile::tempfile_in(dir)?;
    let kernel: Vec<u8> = (0..LARGE).map(|i| (i % 251) as u8).collect();
    file.write_all(&kernel)?;
    // Some disks are full only then.
    file.sync_all()?;
    file.rewind()?;
    let mut found = Vec::new();
    file.read_to_end(&mut found)?;
    match found == kernel {
        true => Ok(()),
        false => Err(std::io::Error::other(
            "what is written there reads as something else",
        )),
    }
}

/// Whether kernels can be kept in a folder.
fn cache_state(dir: &Path) -> (&'static str, String) {
    let place = say::file(dir.parent().unwrap_or(dir));
    match keeps(dir) {
        Ok(()) => ("ok", place),
        Err(error) => (
            "BROKEN",
            format!(
                "{place} cannot be written ({error}): each program compiles anew; set PERPETUA_CACHE_DIR to another folder"
            ),
        ),
    }
}

/// Whether a program is on the path.
fn on_path(name: &str) -> Option<std::path::PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(&file))
        .find(|path| is_program(path))
}

/// Whether a file can be run.
fn is_program(path: &Path) -> bool {
    #[cfg(unix)]
    let may_run = |found: &std::fs::Metadata| {
        use std::os::unix::fs::PermissionsExt;
        found.permissions().mode() & 0o111 != 0
    };
    #[cfg(not(unix))]
    let may_run = |_: &std::fs::Metadata| true;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && may_run(&found))
}

pub(super) fn run() -> Result<(), Failure> {
    use perpetua::device::backends;
    let mut rows: Vec<(String, &str, String)> = Vec::new();
    let mut healthy = false;
    for entry in backends().into_iter().filter(|entry| entry.order.is_some()) {
        let kind = entry.kind;
        let row = match Device::new(kind, 0) {
            Err(error) => ("absent", error.to_string()),
            Ok(device) => match check(&device) {
                Ok(text) => {
                    healthy = true;
                    ("ok", text)
                }
                Err(error) => ("BROKEN", error.to_string()),
            },
        };
        rows.push((kind.to_string(), row.0, row.1));
    }
    let tools = [
        (
            "nvcc",
            "only to compare with CUDA C++; kernels need the driver alone",
        ),
        ("naga", "only to check WGSL by hand: cargo install naga-cli"),
        ("ffmpeg", "only to make videos from pictures"),
    ];
    for (tool, remedy) in tools {
        rows.push(match on_path(tool) {
            Some(path) => (tool.to_owned(), "ok", say::file(path)),
            None => (tool.to_owned(), "absent", format!("not on the path; {remedy}")),
        });
    }
    let cache = perpetua::device::cache::DiskCache::open("cuda");
    let (state, text) = match cache.as_ref().map(|c| c.dir()) {
        Some(dir) => cache_state(dir),
        None => (
            "absent",
            "PERPETUA_CACHE=off, or no home directory; set PERPETUA_CACHE_DIR".into(),
        ),
    };
    rows.push(("kernel cache".into(), state, text));
    let width = rows.iter().map(|r| r.0.len()).max().unwrap_or(0);
    let columns = text::columns();
    let mut out = anstream::AutoStream::auto(stdout()?);
    for (name, state, text) in &rows {
        let style = match *state {
            "ok" => AnsiColor::Green.on_default(),
            "absent" => AnsiColor::Yellow.on_default(),
            _ => AnsiColor::Red.on_default().bold(),
        };
        let name = format!("{name:<width$}  {style}{state}{style:#}");
        writeln!(
            out,
            "{}",
            text::entry(0, &name, width + 10, &say::shown(text), columns)
        )?;
    }
    if rows.iter().any(|r| r.1 == "BROKEN") {
        return Err("what is BROKEN above does not work".into());
    }
    if healthy {
        Ok(())
    } else {
        Err("no backend runs kernels".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_cannot_be_written_is_not_ok() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(cache_state(&folder.path().join("new/cuda")).0, "ok");
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let (state, text) = cache_state(&file.join("cuda"));
        assert!(
            state == "BROKEN" && text.contains("file cannot be written ("),
            "{text}"
        );
    }
}
