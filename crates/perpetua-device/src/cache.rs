//! The on-disk cache of compiled kernels: what a driver's compiler made, found again by the next process. Must not know
//! what the entries are.
//!
//! One file an entry, written aside and renamed, so that readers never see half a file, whatever else runs or crashes. An
//! entry that is damaged, cut or of another format counts as absent and is written again. The cache never fails a
//! compilation: without a usable directory there simply is none.
//!
//! The directory is `PERPETUA_CACHE_DIR`, else `perpetua` in the user's cache directory (`$XDG_CACHE_HOME` or `~/.cache`;
//! macOS: `~/Library/Caches`; Windows: `%LOCALAPPDATA%`). `PERPETUA_CACHE=off` switches it off.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::source::KernelId;

/// Default bound on a cache's size in bytes.
pub const DEFAULT_MAX_BYTES: u64 = 512 << 20;

// Name and version of the file format; then the key, the checksum of the content, the content.
const MAGIC: [u8; 8] = *b"PERPCA01";
const HEADER: usize = 8 + 16 + 8;

/// Hashes of the sources that make machine code of a kernel: the syntax's, the IR's (lowering, passes, math library, renderers)
/// and this crate's. What the macros make of a kernel is in the kernel's own id: its tree, those of the device functions that it
/// calls, and what their names stand for. Libraries of others are not: of these only the driver's compiler makes code.
pub const CODE_HASHES: [&str; 3] = [
    perpetua_ir::CODE_HASHES[0],
    perpetua_ir::CODE_HASHES[1],
    env!("PERPETUA_CODE_HASH"),
];

/// The key of an entry: everything that the compiled form depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey(u128);

impl CacheKey {
    /// The key of a kernel (`KernelId::of` its text, or a carried kernel's own), compiled for `target` (with all options) by
    /// `driver` (with its version). [`CODE_HASHES`] are part of it.
    pub fn new(kernel: KernelId, target: &str, driver: &str) -> CacheKey {
        CacheKey::by(&CODE_HASHES, kernel, target, driver)
    }

    // The same for other sources.
    fn by(code: &[&str], kernel: KernelId, target: &str, driver: &str) -> CacheKey {
        let id = kernel.0.to_le_bytes();
        let mut parts = vec![&id[..], target.as_bytes(), driver.as_bytes()];
        parts.extend(code.iter().map(|hash| hash.as_bytes()));
        CacheKey(KernelId::of(&parts).0)
    }

    fn file_name(self) -> String {
        format!("{:032x}", self.0)
    }
}

/// A directory of entries.
#[derive(Clone, Debug)]
pub struct DiskCache {
    dir: PathBuf,
    max_bytes: u64,
}

impl DiskCache {
    /// The cache named `name` (`cuda`, `wgpu`) in the user's cache directory; `None` when caching is switched off or there is
    /// no such directory.
    pub fn open(name: &str) -> Option<DiskCache> {
        let dir = root(|variable| std::env::var_os(variable).filter(|v| !v.is_empty()))?;
        Some(DiskCache::at(dir.join(name), DEFAULT_MAX_BYTES))
    }

    /// The cache in `dir`, which is made at the first write, with at most about `max_bytes` bytes.
    pub fn at(dir: impl Into<PathBuf>, max_bytes: u64) -> DiskCache {
        DiskCache {
            dir: dir.into(),
            max_bytes,
        }
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The entry, if there is a sound one.
    pub fn get(&self, key: CacheKey) -> Option<Vec<u8>> {
        let path = self.dir.join(key.file_name());
        let mut file = fs::read(&path).ok()?;
        let sound = file.len() >= HEADER
            && file[..8] == MAGIC
            && file[8..24] == key.0.to_le_bytes()
            && file[24..HEADER] == checksum(&file[HEADER..]).to_le_bytes();
        if !sound {
            // Written again by the caller's `put`; if it cannot be removed, that replaces it.
            let _ = fs::remove_file(&path);
            return None;
        }
        // The oldest entries go first when the cache is full, so mark this one as used. Failing to is harmless.
        if let Ok(entry) = fs::File::options().append(true).open(&path) {
            let _ = entry.set_modified(SystemTime::now());
        }
        file.drain(..HEADER);
        Some(file)
    }

    /// Writes an entry, and removes the oldest ones when the cache has grown beyond its bound. A failure leaves the cache
    /// without the entry and may be ignored.
    ///
    /// # Errors
    /// What the file system says (no room, no permission).
    pub fn put(&self, key: CacheKey, content: &[u8]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(&self.dir)?;
        // Relaxed: only uniqueness within the process matters.
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let aside = self
            .dir
            .join(format!("{}.{}.{unique}.tmp", key.file_name(), std::process::id()));
        let written = (|| {
            let mut file = fs::File::create(&aside)?;
            file.write_all(&MAGIC)?;
            file.write_all(&key.0.to_le_bytes())?;
            file.write_all(&checksum(content).to_le_bytes())?;
            file.write_all(content)?;
            drop(file);
            fs::rename(&aside, self.dir.join(key.file_name()))
        })();
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
        written?;
        self.evict()
    }

    // Removes the entries used longest ago until the rest fits, and files left aside by processes that died.
    fn evict(&self) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            // Another process may have removed it meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let abandoned = entry.path().extension().is_some_and(|e| e == "tmp")
                && used.elapsed().is_ok_and(|age| age.as_secs() > 3600);
            if abandoned {
                let _ = fs::remove_file(entry.path());
            } else if metadata.is_file() {
                entries.push((used, metadata.len(), entry.path()));
            }
        }
        let mut total: u64 = entries.iter().map(|(_, len, _)| len).sum();
        entries.sort();
        for (_, len, path) in entries {
            if total <= self.max_bytes {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= len;
            }
        }
        Ok(())
    }
}

// The directory of all caches, by the environment.
fn root(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if cfg!(target_arch = "wasm32") || variable("PERPETUA_CACHE").is_some_and(|v| v == "off" || v == "0") {
        return None;
    }
    if let Some(dir) = variable("PERPETUA_CACHE_DIR") {
        return Some(dir.into());
    }
    let base = if cfg!(target_os = "windows") {
        variable("LOCALAPPDATA").map(PathBuf::from)
    } else if cfg!(target_vendor = "apple") {
        variable("HOME").map(|h| PathBuf::from(h).join("Library/Caches"))
    } else {
        variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            // The specification of these folders says to pass over relative ones.
            .filter(|folder| folder.is_absolute())
            .or_else(|| variable("HOME").map(|h| PathBuf::from(h).join(".cache")))
    };
    base.map(|b| b.join("perpetua"))
}

// Each step is a bijection of the state for a given word, so a change in one word is always seen, and others with a
// chance of 2^-64 to pass. Eight bytes at a time, because a cubin's checksum is on the way to its first launch.
fn checksum(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64 ^ 0x9e37_79b9_7f4a_7c15;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word))
            .wrapping_mul(0xff51_afd7_ed55_8ccd)
            .rotate_left(31);
    }
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    // A directory that is removed again.
    struct Scratch(PathBuf);
    impl Scratch {
        fn new(name: &str) -> Scratch {
            let dir = std::env::temp_dir().join(format!("perpetua-cache-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&dir);
            Scratch(dir)
        }
    }
    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn key(n: u8) -> CacheKey {
        CacheKey::new(KernelId::of(&[&[n]]), "sm_90", "driver 580")
    }

    #[test]
    fn an_entry_comes_back_and_only_under_its_key() {
        let scratch = Scratch::new("roundtrip");
        let cache = DiskCache::at(&scratch.0, 1 << 20);
        assert_eq!(cache.get(key(1)), None);
        cache.put(key(1), b"cubin").unwrap();
        cache.put(key(2), b"").unwrap();
        assert_eq!(cache.get(key(1)).as_deref(), Some(&b"cubin"[..]));
        assert_eq!(cache.get(key(2)).as_deref(), Some(&b""[..]));
        assert_ne!(
            key(1),
            CacheKey::new(KernelId::of(&[&[1]]), "sm_80", "driver 580")
        );
        assert_ne!(
            key(1),
            CacheKey::new(KernelId::of(&[&[1]]), "sm_90", "driver 581")
        );
    }

    #[test]
    fn a_changed_source_is_another_key() {
        let by = |code: &[&str]| CacheKey::by(code, KernelId::of(&[&[1]]), "sm_90", "driver 580");
        assert_eq!(by(&CODE_HASHES), key(1));
        for i in 0..CODE_HASHES.len() {
            assert_eq!(CODE_HASHES[i].len(), 32, "the hash of a crate's sources");
            let mut changed = CODE_HASHES;
            changed[i] = "00000000000000000000000000000000";
            assert_ne!(by(&changed), key(1), "crate {i}");
        }
    }

    #[test]
    fn damage_anywhere_counts_as_absent_and_is_written_over() {
        let scratch = Scratch::new("damage");
        let cache = DiskCache::at(&scratch.0, 1 << 20);
        cache.put(key(1), b"thirteen byte").unwrap();
        let path = scratch.0.join(key(1).file_name());
        let sound = fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[at] ^= 0x10;
            fs::write(&path, &damaged).unwrap();
            assert_eq!(cache.get(key(1)), None, "byte {at}");
            fs::write(&path, &sound[..at]).unwrap();
            assert_eq!(cache.get(key(1)), None, "cut to {at}");
        }
        cache.put(key(1), b"thirteen byte").unwrap();
        assert!(cache.get(key(1)).is_some());
    }

    #[test]
    fn the_entries_used_longest_ago_go_first() {
        let scratch = Scratch::new("evict");
        let cache = DiskCache::at(&scratch.0, 3 * (100 + HEADER as u64));
        let day = std::time::Duration::from_secs(86_400);
        for n in 1..=3u8 {
            cache.put(key(n), &[n; 100]).unwrap();
            let file = fs::File::options()
                .append(true)
                .open(scratch.0.join(key(n).file_name()))
                .unwrap();
            file.set_modified(SystemTime::now() - day * (4 - u32::from(n)))
                .unwrap();
        }
        assert!(cache.get(key(1)).is_some(), "used: now the youngest");
        cache.put(key(4), &[4; 100]).unwrap();
        let left: Vec<bool> = (1..=4).map(|n| cache.get(key(n)).is_some()).collect();
        assert_eq!(left, [true, false, true, true]);
    }

    #[test]
    fn the_environment_chooses_the_directory() {
        let find = |set: &[(&str, &str)]| {
            root(|name| {
                set.iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, v)| OsString::from(v))
            })
        };
        assert_eq!(find(&[("PERPETUA_CACHE_DIR", "/c")]), Some("/c".into()));
        assert_eq!(
            find(&[("PERPETUA_CACHE_DIR", "/c"), ("PERPETUA_CACHE", "off")]),
            None
        );
        assert_eq!(find(&[]), None);
        if cfg!(target_os = "linux") {
            assert_eq!(find(&[("HOME", "/h")]), Some("/h/.cache/perpetua".into()));
            assert_eq!(
                find(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]),
                Some("/x/perpetua".into())
            );
            assert_eq!(
                find(&[("HOME", "/h"), ("XDG_CACHE_HOME", "x")]),
                Some("/h/.cache/perpetua".into())
            );
        }
    }
}
