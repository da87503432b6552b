//! Where checkpoints are kept: a folder, memory, or what a program brings. Must not know what is in them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::checkpoint::write_file;
use crate::error::{ActorError, Result};
use crate::lock::lock;

/// A place for checkpoints, each under a name. What `save` has returned from, `load` gives, also after the process's end where the place
/// outlives it.
///
/// ```
/// use perpetua::actors::{CheckpointStore, LaunchOptions, MemoryStore, PerpetuaRuntime};
/// # use perpetua::actors::{Context, RingMessage, ring_kernel};
/// # use perpetua::prelude::*;
/// # #[derive(Clone, Copy, GpuType, RingMessage)]
/// # #[repr(C)]
/// # struct Add {
/// #     amount: u32,
/// # }
/// # #[ring_kernel]
/// # fn counter(_ctx: &mut Context, sum: &mut u32, message: Add) -> Add {
/// #     *sum += message.amount;
/// #     Add { amount: *sum }
/// # }
/// // `counter` is a #[ring_kernel] that adds up.
/// let store = MemoryStore::default();
/// let runtime = PerpetuaRuntime::builder().build_blocking()?;
/// let counter = runtime.launch_blocking("counter", LaunchOptions::new(counter::handler()))?;
/// let _: Add = counter.ask_blocking(&Add { amount: 7 })?;
/// runtime.checkpoint_to(&store, "monday")?;
/// runtime.shutdown_blocking()?;
///
/// let runtime = PerpetuaRuntime::builder().build_blocking()?;
/// runtime.register(counter::handler());
/// let actors = runtime.restore_from(&store, "monday")?;
/// assert_eq!((actors[0].read_state::<u32>()?, store.names()?), (7, vec!["monday".to_owned()]));
/// # Ok::<(), perpetua::actors::ActorError>(())
/// ```
///
/// # Object stores
///
/// A store with asynchronous calls is four functions that wait. The crate `object_store` has S3, GCS and Azure; with S3 it brings 79 crates that
/// nothing else here needs, so it is no feature, and an implementation looks like this. One that runs on tokio waits by
/// `tokio::runtime::Handle::block_on`.
///
/// ```
/// use perpetua::actors::{ActorError, CheckpointStore, PerpetuaRuntime};
/// use perpetua::device::future::block_on;
/// # use std::{collections::BTreeMap, sync::Mutex};
/// # #[derive(Default)]
/// # struct Bucket(Mutex<BTreeMap<String, Vec<u8>>>);
/// # impl Bucket {
/// #     async fn put(&self, key: &str, bytes: &[u8]) -> Result<(), String> {
/// #         self.0.lock().unwrap().insert(key.into(), bytes.into());
/// #         Ok(())
/// #     }
/// #     async fn get(&self, key: &str) -> Result<Vec<u8>, String> {
/// #         self.0.lock().unwrap().get(key).cloned().ok_or_else(|| "404".into())
/// #     }
/// #     async fn list(&self) -> Result<Vec<String>, String> {
/// #         Ok(self.0.lock().unwrap().keys().cloned().collect())
/// #     }
/// #     async fn delete(&self, key: &str) -> Result<(), String> {
/// #         self.0.lock().unwrap().remove(key).map(drop).ok_or_else(|| "404".into())
/// #     }
/// # }
/// // `Bucket` is the client: `put`, `get`, `list` and `delete` are its asynchronous calls. A `put` replaces an object whole.
/// struct Checkpoints(Bucket);
///
/// fn failed(name: &str) -> impl Fn(String) -> ActorError {
///     move |cause| ActorError::Checkpoint { path: name.into(), cause }
/// }
///
/// impl CheckpointStore for Checkpoints {
///     fn save(&self, name: &str, bytes: &[u8]) -> Result<(), ActorError> {
///         block_on(self.0.put(name, bytes)).map_err(failed(name))
///     }
///     fn load(&self, name: &str) -> Result<Vec<u8>, ActorError> {
///         block_on(self.0.get(name)).map_err(failed(name))
///     }
///     fn names(&self) -> Result<Vec<String>, ActorError> {
///         block_on(self.0.list()).map_err(failed("all"))
///     }
///     fn remove(&self, name: &str) -> Result<(), ActorError> {
///         block_on(self.0.delete(name)).map_err(failed(name))
///     }
/// }
///
/// let store = Checkpoints(Bucket::default());
/// let runtime = PerpetuaRuntime::builder().build_blocking()?;
/// runtime.checkpoint_to(&store, "monday")?;
/// assert_eq!(store.names()?, ["monday"]);
/// assert!(runtime.restore_from(&store, "tuesday").unwrap_err().to_string().contains("404"));
/// # Ok::<(), ActorError>(())
/// ```
pub trait CheckpointStore: Send + Sync {
    /// Keeps these bytes under the name: all of them or none, in the place of what was there.
    fn save(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// What was kept under the name.
    fn load(&self, name: &str) -> Result<Vec<u8>>;

    /// The names, in order.
    fn names(&self) -> Result<Vec<String>>;

    /// Keeps it no longer. An error where there is none.
    fn remove(&self, name: &str) -> Result<()>;
}

/// Files of a folder, which is made with the first. A file is the new checkpoint or the one before, never a torn one.
#[derive(Clone, Debug)]
pub struct FolderStore {
    folder: PathBuf,
}

impl FolderStore {
    /// Checkpoints in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> FolderStore {
        FolderStore {
            folder: folder.into(),
        }
    }

    // Names are files of this folder and of no other; those with a point in front are its own.
    fn file(&self, name: &str) -> Result<PathBuf> {
        let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_of_name) {
            return Err(ActorError::Checkpoint {
                path: name.into(),
                cause: "a checkpoint's name is made of letters, digits, `-`, `_`, `.` and spaces, and does not begin with a point"
                    .into(),
            });
        }
        Ok(self.folder.join(format!("{name}{ENDING}")))
    }
}

const ENDING: &str = ".checkpoint";

fn failed(path: &std::path::Path) -> impl Fn(io::Error) -> ActorError {
    move |source| ActorError::Io {
        path: path.display().to_string(),
        source,
    }
}

impl CheckpointStore for FolderStore {
    fn save(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.file(name)?;
        fs::create_dir_all(&self.folder).map_err(failed(&self.folder))?;
        write_file(&path, bytes)
    }

    fn load(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.file(name)?;
        fs::read(&path).map_err(failed(&path))
    }

    fn names(&self) -> Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed(&self.folder))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed(&self.folder))?.file_name();
            // Others' files are no checkpoints.
            names.extend(
                name.to_str()
                    .and_then(|name| name.strip_suffix(ENDING))
                    .map(str::to_owned),
            );
        }
        names.sort();
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.file(name)?;
        fs::remove_file(&path).map_err(failed(&path))
    }
}

/// Memory: for tests, and for processes whose parts end before they do.
#[derive(Debug, Default)]
pub struct MemoryStore {
    kept: Mutex<BTreeMap<String, Vec<u8>>>,
}

fn missing(name: &str) -> ActorError {
    ActorError::Checkpoint {
        path: name.into(),
        cause: "the store does not hold it".into(),
    }
}

impl CheckpointStore for MemoryStore {
    fn save(&self, name: &str, bytes: &[u8]) -> Result<()> {
        lock(&self.kept).insert(name.into(), bytes.to_vec());
        Ok(())
    }

    fn load(&self, name: &str) -> Result<Vec<u8>> {
        lock(&self.kept).get(name).cloned().ok_or_else(|| missing(name))
    }

    fn names(&self) -> Result<Vec<String>> {
        Ok(lock(&self.kept).keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> Result<()> {
        let removed = lock(&self.kept).remove(name);
        removed.map(drop).ok_or_else(|| missing(name))
    }
}
