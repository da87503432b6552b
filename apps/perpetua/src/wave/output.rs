//! Files that appear whole or not at all: written beside their place under another name first. Must not know what is in
//! them, but for tables and plots of probes.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use perpetua::wave::Simulation;
use perpetua::wave::chart::{Chart, Curve};

use super::Failure;

/// A file being written. Dropped before [`finish`](Partial::finish), it is removed.
#[derive(Debug)]
pub(super) struct Partial {
    path: PathBuf,
    partial: PathBuf,
    finished: bool,
}

impl Partial {
    /// For the file at `path`. The extension stays, for programs that look at it.
    pub(super) fn new(path: &Path) -> Partial {
        let mut name = path.file_stem().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        if let Some(extension) = path.extension() {
            name.push(".");
            name.push(extension);
        }
        Partial {
            path: path.to_owned(),
            partial: path.with_file_name(name),
            finished: false,
        }
    }

    /// Where to write.
    pub(super) fn place(&self) -> &Path {
        &self.partial
    }

    /// What to say when it could not be written.
    pub(super) fn failed(&self, error: impl std::fmt::Display) -> Failure {
        format!("writing {}: {error}", self.path.display()).into()
    }

    /// Opens it for writing.
    pub(super) fn create(&self) -> Result<BufWriter<File>, Failure> {
        let file = File::create(&self.partial).map_err(|e| self.failed(e))?;
        Ok(BufWriter::with_capacity(1 << 20, file))
    }

    /// Gives it its name.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let done = File::open(&self.partial).and_then(|file| file.sync_all());
        done.and_then(|()| fs::rename(&self.partial, &self.path))
            .map_err(|e| self.failed(e))?;
        self.finished = true;
        eprintln!("wrote {}", self.path.display());
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing more can be done if this fails; the first error is the one to report.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Writes a file, whole or not at all.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let partial = Partial::new(path);
    let mut file = partial.create()?;
    file.write_all(bytes)
        .and_then(|()| file.flush())
        .map_err(|e| format!("writing {}: {e}", path.display()))?;
    partial.finish()
}

/// A folder that cannot be written is better known before the work than after it.
pub(super) fn check_folder(option: &str, path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|f| !f.is_dir()) {
        return Err(format!(
            "{option} {}: there is no folder {}",
            path.display(),
            folder.display()
        )
        .into());
    }
    if path.is_dir() {
        return Err(format!("{option} {}: this is a folder; name a file", path.display()).into());
    }
    Ok(())
}

/// Field of CSV: in quotes where it must be.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// What the probes recorded, a line a step.
pub(super) fn csv(simulation: &Simulation, series: &[Vec<f32>]) -> String {
    let model = simulation.model();
    let names = model.probes.iter().map(|p| quoted(&p.name));
    let mut out: String = ["step".to_owned(), "time (s)".to_owned()]
        .into_iter()
        .chain(names)
        .collect::<Vec<_>>()
        .join(",");
    out.push('\n');
    for row in 0..series.first().map_or(0, Vec::len) {
        let step = simulation.probes_from() + row as u64;
        out += &format!("{step},{:e}", step as f64 * model.time_step);
        for values in series {
            out += &format!(",{:e}", values[row]);
        }
        out.push('\n');
    }
    out
}

/// What the probes recorded, as curves over time.
pub(super) fn plot(simulation: &Simulation, series: &[Vec<f32>], title: &str) -> String {
    let model = simulation.model();
    let end = simulation.time();
    let (unit, scale) = if end < 1.0 { ("ms", 1e3) } else { ("s", 1.0) };
    let curves = model.probes.iter().zip(series).map(|(probe, values)| Curve {
        name: probe.name.clone(),
        points: values
            .iter()
            .enumerate()
            .map(|(i, v)| {
                let step = simulation.probes_from() + i as u64;
                [step as f64 * model.time_step * scale, f64::from(*v)]
            })
            .collect(),
    });
    let chart = Chart {
        title: title.to_owned(),
        labels: [format!("time ({unit})"), "field".to_owned()],
        logarithmic: [false; 2],
        curves: curves.collect(),
    };
    chart.svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let path = std::env::temp_dir().join(format!("perpetua-output-{}.txt", std::process::id()));
        let partial = Partial::new(&path);
        partial.create().unwrap().write_all(b"half").unwrap();
        let place = partial.place().to_owned();
        assert!(place.exists() && place.extension() == path.extension());
        drop(partial);
        assert!(!place.exists() && !path.exists());
        write(&path, b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let message = check_folder("--out", Path::new("/no/such/folder/a.png"))
            .unwrap_err()
            .to_string();
        assert_eq!(
            message,
            "--out /no/such/folder/a.png: there is no folder /no/such/folder"
        );
        assert!(check_folder("--out", Path::new("a.png")).is_ok());
        assert!(check_folder("--out", &std::env::temp_dir()).is_err());
    }
}
