//! Choices of tiles and slices, by device and product, kept in a file. Must not know how they are found, nor what suits a product.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use perpetua_device::Device;
use perpetua_device::cache::DiskCache;

use crate::error::{Error, Result};

/// The first line of such a file, with the version of its format.
const HEADER: &str = "perpetua choices 1";
/// How lines about products begin. What else a file has is kept, and not read.
const PRODUCT: &str = "gemm\t";
/// Most bytes of a file.
const MOST_BYTES: u64 = 16 << 20;
/// What comes with the library: choices that were measured on devices of many users.
const SHIPPED: &str = include_str!("choices.txt");

/// How much of a product a block computes at a time, and in how many slices its depth is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    pub(super) tile: [usize; 2],
    pub(super) slices: usize,
}

impl Choice {
    /// Rows and columns, as [`GemmKernel::with_tile`](super::GemmKernel::with_tile) takes them.
    pub fn tile(&self) -> [usize; 2] {
        self.tile
    }

    /// Slices of the depth, as [`GemmKernel::with_slices`](super::GemmKernel::with_slices) takes them.
    pub fn slices(&self) -> usize {
        self.slices
    }

    fn parse(tile: &str, slices: &str) -> Option<Choice> {
        let (rows, columns) = tile.split_once('x')?;
        Some(Choice {
            tile: [rows.parse().ok()?, columns.parse().ok()?],
            slices: slices.parse().ok()?,
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rows, columns] = self.tile;
        write!(f, "tiles of {rows} x {columns}, {} slices", self.slices)
    }
}

/// A file of choices: which tiles and slices [`GemmKernel::tune`](super::GemmKernel::tune) has found to be fastest, by device and product.
///
/// Products in stages and by tensor cores whose tiles and slices are left open look into that of the user, [`Choices::of_user`], which a process reads at its first
/// such launch and after each `tune`. A choice that does not suit the product is passed over, and so is a file that cannot be read: then the library chooses as it does without one.
///
/// A file is text: a line `perpetua choices 1`, then a line a product, its parts divided by tabs. Others may be added by hand, or be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    path: PathBuf,
}

impl Choices {
    /// Those in this file, which is made when something is kept.
    pub fn at(path: impl Into<PathBuf>) -> Choices {
        Choices { path: path.into() }
    }

    /// Those of the user: the file that the environment variable `PERPETUA_CHOICES` names, else `choices/products.txt` beside the caches of compiled kernels (see
    /// [`perpetua_device::cache`]). `None` where `PERPETUA_CHOICES` is `off`, or there is no folder for caches.
    pub fn of_user() -> Option<Choices> {
        match std::env::var_os("PERPETUA_CHOICES").filter(|path| !path.is_empty()) {
            Some(off) if off == "off" || off == "0" => None,
            Some(path) => Some(Choices::at(path)),
            None => DiskCache::open("choices").map(|cache| Choices::at(cache.dir().join("products.txt"))),
        }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is kept under a key.
    ///
    /// # Errors
    /// The file cannot be read, or is none of choices.
    pub(super) fn get(&self, key: &str) -> Result<Option<Choice>> {
        Ok(table(&self.read()?).remove(key))
    }

    /// The file's text, or none where there is no file; looked at line by line.
    ///
    /// # Errors
    /// The file cannot be read, or is none of choices.
    pub(super) fn read(&self) -> Result<String> {
        let mut bytes = Vec::new();
        match File::open(&self.path) {
            Ok(file) => file
                .take(MOST_BYTES + 1)
                .read_to_end(&mut bytes)
                .map_err(|error| self.error(error.to_string()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(self.error(error.to_string())),
        };
        if bytes.len() as u64 > MOST_BYTES {
            return Err(self.error(format!("it has more than {MOST_BYTES} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| self.error("it is no text"))?;
        match text.lines().next() {
            None | Some(HEADER) => {}
            Some(_) => return Err(self.error(format!("its first line is not `{HEADER}`"))),
        }
        let wrong = text
            .lines()
            .position(|line| line.starts_with(PRODUCT) && entry(line).is_none());
        match wrong {
            Some(at) => Err(self.error(format!(
                "line {} does not end with a tile and a number of slices, as in `128x256<tab>2`",
                at + 1
            ))),
            None => Ok(text),
        }
    }

    /// Keeps a choice, in the place of an older one of the same key; all other lines stay. Processes that do so at the same time wait for each other.
    ///
    /// # Errors
    /// The file cannot be read, is none of choices, or cannot be written; then it stays as it was.
    pub(super) fn keep(&self, key: &str, choice: Choice) -> Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let failed = |error: std::io::Error| self.error(error.to_string());
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        // The system unlocks it also where a process dies. It stays: one that was removed would let two in.
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.beside("lock"))
            .map_err(failed)?;
        lock.lock().map_err(failed)?;
        // What is replaced is a file of choices, never a device or what a link leads to.
        if fs::symlink_metadata(&self.path).is_ok_and(|found| !found.is_file()) {
            return Err(failed(std::io::Error::other(
                "it is no plain file, and would be replaced",
            )));
        }
        let before = self.read()?;
        let mut text = String::new();
        let lines = before
            .lines()
            .filter(|line| entry(line).is_none_or(|(of, _)| of != key));
        for line in std::iter::once(HEADER).chain(lines.skip(1)) {
            text += line;
            text.push('\n');
        }
        let [rows, columns] = choice.tile;
        text += &format!("{key}\t{rows}x{columns}\t{}\n", choice.slices);
        // Relaxed: only that no two of this process are the same matters.
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let aside = self.beside(&format!("{}.{unique}.tmp", std::process::id()));
        let written = File::create(&aside)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&aside, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
        written.map_err(failed)?;
        // The next launch reads the user's anew.
        *KNOWN.write().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// The file of this name with something behind it.
    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".");
        name.push(ending);
        name.into()
    }

    fn error(&self, cause: impl Into<String>) -> Error {
        Error::Choices {
            path: self.path.display().to_string(),
            cause: cause.into(),
        }
    }
}

type Table = HashMap<String, Choice>;

/// The user's choices and those that come with the library, once a launch has asked for them.
static KNOWN: RwLock<Option<Arc<Table>>> = RwLock::new(None);

/// What the user has kept under a key, or what comes with the library. The key is made only where there is a choice at all.
pub(super) fn of_user(key: impl FnOnce() -> String) -> Option<Choice> {
    let found = KNOWN.read().unwrap_or_else(PoisonError::into_inner).clone();
    let known = found.unwrap_or_else(|| {
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        let read = || {
            let mut all = table(SHIPPED);
            // What cannot be read says nothing.
            if let Some(Ok(text)) = Choices::of_user().map(|choices| choices.read()) {
                all.extend(table(&text));
            }
            Arc::new(all)
        };
        known.get_or_insert_with(read).clone()
    });
    match known.is_empty() {
        true => None,
        false => known.get(&key()).copied(),
    }
}

/// The key of a product, in words, on a device.
pub(super) fn key(device: &Device, product: &str) -> String {
    let info = device.info();
    // A name from a driver must not divide a line.
    let name = info.name.replace(|c: char| c.is_control(), " ");
    let processors = info.multiprocessors.unwrap_or(0);
    format!(
        "{PRODUCT}{}\t{name}\t{processors}\t{product}",
        info.backend.name()
    )
}

/// A line about a product: its key, and what was chosen.
fn entry(line: &str) -> Option<(&str, Choice)> {
    if !line.starts_with(PRODUCT) {
        return None;
    }
    let (rest, slices) = line.rsplit_once('\t')?;
    let (key, tile) = rest.rsplit_once('\t')?;
    Some((key, Choice::parse(tile, slices)?))
}

fn table(text: &str) -> Table {
    let own = |(key, choice): (&str, Choice)| (key.to_owned(), choice);
    text.lines().filter_map(entry).map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed again.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let folder = std::env::temp_dir().join(format!("perpetua-choices-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            Scratch(folder)
        }

        fn choices(&self) -> Choices {
            Choices::at(self.0.join("deep/products.txt"))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn choice(slices: usize) -> Choice {
        Choice {
            tile: [128, 256],
            slices,
        }
    }

    #[test]
    fn a_choice_comes_back_and_only_under_its_key() {
        let scratch = Scratch::new("roundtrip");
        let choices = scratch.choices();
        assert_eq!(choices.get("gemm\ta"), Ok(None));
        choices.keep("gemm\ta", choice(1)).unwrap();
        choices.keep("gemm\tb", choice(2)).unwrap();
        choices.keep("gemm\ta", choice(3)).unwrap();
        let found = ["gemm\ta", "gemm\tb", "gemm\tc"].map(|key| choices.get(key).unwrap());
        assert_eq!(found, [Some(choice(3)), Some(choice(2)), None]);
        let text = fs::read_to_string(choices.path()).unwrap();
        assert_eq!(
            text,
            format!("{HEADER}\ngemm\tb\t128x256\t2\ngemm\ta\t128x256\t3\n")
        );
    }

    #[test]
    fn those_who_keep_at_the_same_time_lose_nothing() {
        let scratch = Scratch::new("together");
        std::thread::scope(|scope| {
            for who in 0..4 {
                let choices = scratch.choices();
                scope.spawn(move || {
                    for i in 0..20 {
                        choices.keep(&format!("gemm\t{who} {i}"), choice(i + 1)).unwrap();
                    }
                });
            }
        });
        let all = table(&scratch.choices().read().unwrap());
        assert_eq!(all.len(), 80);
        assert!((0..4).all(|who| (0..20).all(|i| all[&format!("gemm\t{who} {i}")] == choice(i + 1))));
        let left = fs::read_dir(scratch.0.join("deep")).unwrap().count();
        assert_eq!(left, 2, "the file and its lock");
    }

    #[test]
    fn what_cannot_be_read_is_said_and_stays() {
        let scratch = Scratch::new("unreadable");
        let choices = scratch.choices();
        fs::create_dir_all(scratch.0.join("deep")).unwrap();
        for (content, cause) in [
            (&b"a letter\n"[..], "its first line is not `perpetua choices 1`"),
            (b"perpetua choices 2\n", "its first line is not"),
            (b"\xff\xfe", "it is no text"),
            (
                b"perpetua choices 1\n#\ngemm\ta\t128x256\n",
                "line 3 does not end with",
            ),
            (
                b"perpetua choices 1\ngemm\ta\t128x256\t-1\n",
                "line 2 does not end with",
            ),
            (
                b"perpetua choices 1\ngemm\ta\t128\t1\n",
                "line 2 does not end with",
            ),
            (
                b"perpetua choices 1\ngemm\ta\t128x256\t99999999999999999999999\n",
                "line 2 does not end with",
            ),
        ] {
            fs::write(choices.path(), content).unwrap();
            let error = choices.keep("gemm\ta", choice(1)).unwrap_err().to_string();
            assert!(error.contains(cause) && error.contains("products.txt"), "{error}");
            assert_eq!(fs::read(choices.path()).unwrap(), content);
        }
        fs::write(choices.path(), vec![b' '; MOST_BYTES as usize + 1]).unwrap();
        let error = choices.read().unwrap_err().to_string();
        assert!(error.contains("more than 16777216 bytes"), "{error}");
        let folder = Choices::at(&scratch.0);
        assert!(folder.keep("gemm\ta", choice(1)).is_err() && scratch.0.is_dir());
    }

    #[test]
    fn other_lines_are_kept() {
        let scratch = Scratch::new("others");
        let choices = scratch.choices();
        fs::create_dir_all(scratch.0.join("deep")).unwrap();
        let others = format!("{HEADER}\n# mine\nattention\tof a later version\n\n");
        fs::write(choices.path(), &others).unwrap();
        choices.keep("gemm\ta", choice(1)).unwrap();
        let text = fs::read_to_string(choices.path()).unwrap();
        assert_eq!(text, others + "gemm\ta\t128x256\t1\n");
    }

    #[test]
    fn what_comes_with_the_library_can_be_read() {
        let mut lines = SHIPPED.lines();
        assert_eq!(lines.next(), Some(HEADER));
        assert!(lines.all(|line| line.starts_with('#') || entry(line).is_some()));
    }
}
