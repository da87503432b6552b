//! Where the vendors' tools are: the project's own `.tools` folder first, then what the machine has.
//!
//! The one place that knows the layout of `.tools`; `cargo xtask setup` fills it by the constants here, of which xtask makes a module of
//! its own.

use std::env;
use std::path::{Path, PathBuf};

/// Names another `.tools` folder than the repository's own.
pub const TOOLS_VARIABLE: &str = "PERPETUA_TOOLS";

/// Sub-folder of `.tools` with CUDA 13's packages.
pub const CUDA_13: &str = "cuda-13";
/// Sub-folder of `.tools` with the last CUDA 12 assembler, which still knows compute capability 7.0.
pub const CUDA_12: &str = "cuda-12";
/// Sub-folder of `.tools` that `cargo install --root` fills.
pub const CARGO_ROOT: &str = "cargo";

/// CUDA 13's packages put `bin` and `lib` here, below [`CUDA_13`].
const CUDA_13_PREFIX: &str = "nvidia/cu13";
/// CUDA 12's assembler package puts `bin` here, below [`CUDA_12`].
const CUDA_12_PREFIX: &str = "nvidia/cuda_nvcc";

/// The folder that holds installed tools: `PERPETUA_TOOLS`, else `.tools` at the root of the repository that this was built in.
pub fn tools_folder() -> PathBuf {
    match env::var_os(TOOLS_VARIABLE).filter(|folder| !folder.is_empty()) {
        Some(folder) => folder.into(),
        None => {
            let own = Path::new(env!("CARGO_MANIFEST_DIR"));
            let root = own.ancestors().find(|folder| folder.join("Cargo.lock").is_file());
            root.unwrap_or(own).join(".tools")
        }
    }
}

/// One search: candidates in order, and what was tried so far.
#[derive(Debug, Default)]
pub struct Search {
    tried: Vec<String>,
}

impl Search {
    /// An empty search.
    pub fn new() -> Self {
        Self::default()
    }

    /// `path` if it is a file.
    pub fn file(&mut self, path: PathBuf) -> Option<PathBuf> {
        if path.is_file() {
            return Some(path);
        }
        self.tried.push(path.display().to_string());
        None
    }

    /// The first file called `name` in a folder of `PATH`.
    pub fn on_path(&mut self, name: &str) -> Option<PathBuf> {
        let folders = env::var_os("PATH").unwrap_or_default();
        let found = env::split_paths(&folders)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file());
        if found.is_none() {
            self.tried.push(format!("{name} on PATH"));
        }
        found
    }

    /// Notes a place that was tried by other means.
    pub fn note(&mut self, place: impl Into<String>) {
        self.tried.push(place.into());
    }

    /// Every place tried, in order.
    pub fn tried(self) -> Vec<String> {
        self.tried
    }
}

/// Folders where an installed CUDA toolkit keeps `bin` and `lib64`.
fn toolkits() -> Vec<PathBuf> {
    let named = ["CUDA_PATH", "CUDA_HOME"]
        .iter()
        .filter_map(env::var_os)
        .map(PathBuf::from);
    named.chain([PathBuf::from("/usr/local/cuda")]).collect()
}

/// A program of CUDA 13: `ptxas`, `nvdisasm`.
pub fn cuda_13_program(name: &str, search: &mut Search) -> Option<PathBuf> {
    let own = tools_folder()
        .join(CUDA_13)
        .join(CUDA_13_PREFIX)
        .join("bin")
        .join(name);
    search
        .file(own)
        .or_else(|| {
            toolkits()
                .into_iter()
                .find_map(|kit| search.file(kit.join("bin").join(name)))
        })
        .or_else(|| search.on_path(name))
}

/// The assembler of CUDA 12, for compute capabilities that CUDA 13 dropped. An assembler found elsewhere may be
/// newer: it then says itself that it does not know the architecture.
pub fn cuda_12_ptxas(search: &mut Search) -> Option<PathBuf> {
    search.file(
        tools_folder()
            .join(CUDA_12)
            .join(CUDA_12_PREFIX)
            .join("bin/ptxas"),
    )
}

/// Paths and names under which NVRTC's library may open, best first.
pub fn nvrtc_candidates() -> Vec<PathBuf> {
    let own = tools_folder()
        .join(CUDA_13)
        .join(CUDA_13_PREFIX)
        .join("lib/libnvrtc.so.13");
    let mut candidates = vec![own];
    candidates.extend(toolkits().into_iter().map(|kit| kit.join("lib64/libnvrtc.so.13")));
    candidates.extend(["libnvrtc.so.13", "libnvrtc.so"].map(PathBuf::from));
    candidates
}

/// A program that `cargo install` may have put into `.tools`, or that is on `PATH`.
pub fn cargo_program(name: &str, search: &mut Search) -> Option<PathBuf> {
    let own = tools_folder().join(CARGO_ROOT).join("bin").join(name);
    search.on_path(name).or_else(|| search.file(own))
}
