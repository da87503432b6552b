//! A hash of a crate's own sources, for its build script: caches on disk are keyed by it, so that what an older
//! renderer made is never taken for what this one makes. Must not know what the sources are, and depends on nothing.
//!
//! The build script of a crate is one line, and the crate reads the hash as a constant:
//!
//! ```no_run
//! // build.rs
//! fn main() -> std::io::Result<()> {
//!     perpetua_code_hash::export()
//! }
//! ```
//!
//! ```text
//! // src/lib.rs
//! pub const CODE_HASH: &str = env!("PERPETUA_CODE_HASH");
//! ```
//!
//! A crate hashes its own folder only, so it works from a package as well as in the workspace.

use std::fs;
use std::io;
use std::path::Path;

/// Hashes `src` of the package being built, and hands the hash to the package's code as the environment variable
/// `PERPETUA_CODE_HASH` (32 hexadecimal digits). Cargo runs the script again only when a file in `src` has changed.
///
/// # Errors
/// A file that cannot be read, or a file name that is not Unicode.
pub fn export() -> io::Result<()> {
    // Relative to the package's folder, where Cargo runs build scripts.
    println!("cargo:rerun-if-changed=src");
    println!(
        "cargo:rustc-env=PERPETUA_CODE_HASH={:032x}",
        hash(Path::new("src"))?
    );
    Ok(())
}

/// Hash (FNV-1a, 128 bits) of all files under `folder`: each file's path within it, with `/` between its parts, and its
/// bytes as they are. Equal on every machine for equal files, whatever order the file system lists them in.
///
/// # Errors
/// A file that cannot be read, or a file name that is not Unicode.
pub fn hash(folder: &Path) -> io::Result<u128> {
    let mut files = Vec::new();
    list(folder, "", &mut files)?;
    files.sort();
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for path in files {
        let content = fs::read(folder.join(&path))?;
        // Each part with its length, so that no byte can move from one to the next.
        for part in [path.as_bytes(), &content] {
            feed(&mut hash, &(part.len() as u64).to_le_bytes());
            feed(&mut hash, part);
        }
    }
    Ok(hash)
}

fn feed(hash: &mut u128, bytes: &[u8]) {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    for b in bytes {
        *hash = (*hash ^ u128::from(*b)).wrapping_mul(PRIME);
    }
}

fn list(folder: &Path, prefix: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| {
            let message = format!("{}: the name is not Unicode", entry.path().display());
            io::Error::new(io::ErrorKind::InvalidData, message)
        })?;
        // Follows links, as the compiler does.
        if fs::metadata(entry.path())?.is_dir() {
            list(&entry.path(), &format!("{prefix}{name}/"), files)?;
        } else {
            files.push(format!("{prefix}{name}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    // A folder that is removed again.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, files: &[(&str, &str)]) -> io::Result<Folder> {
            let path = std::env::temp_dir().join(format!("perpetua-code-hash-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            for (file, content) in files {
                let file = path.join(file);
                fs::create_dir_all(file.parent().unwrap_or(&path))?;
                fs::write(file, content)?;
            }
            Ok(Folder(path))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const FILES: [(&str, &str); 3] = [("lib.rs", "mod a;"), ("a/mod.rs", "1"), ("a/b.rs", "2")];

    fn hash_of(name: &str, files: &[(&str, &str)]) -> io::Result<u128> {
        hash(&Folder::new(name, files)?.0)
    }

    #[test]
    fn equal_files_have_an_equal_hash_wherever_and_in_whatever_order_they_were_written() -> io::Result<()> {
        let mut backwards = FILES;
        backwards.reverse();
        assert_eq!(hash_of("forwards", &FILES)?, hash_of("backwards", &backwards)?);
        Ok(())
    }

    #[test]
    fn every_change_of_a_source_changes_the_hash() -> io::Result<()> {
        let mut seen = vec![hash_of("as it was", &FILES)?];
        let mut check = |what: &str, files: &[(&str, &str)]| -> io::Result<()> {
            let found = hash_of(what, files)?;
            assert!(!seen.contains(&found), "{what}");
            seen.push(found);
            Ok(())
        };
        check(
            "a byte",
            &[("lib.rs", "mod a;"), ("a/mod.rs", "1"), ("a/b.rs", "3")],
        )?;
        check(
            "a line ending",
            &[("lib.rs", "mod a;\r"), ("a/mod.rs", "1"), ("a/b.rs", "2")],
        )?;
        check(
            "another name",
            &[("lib.rs", "mod a;"), ("a/mod.rs", "1"), ("a/c.rs", "2")],
        )?;
        check(
            "another folder",
            &[("lib.rs", "mod a;"), ("a/mod.rs", "1"), ("b.rs", "2")],
        )?;
        check("one file less", &[("lib.rs", "mod a;"), ("a/mod.rs", "1")])?;
        check(
            "two contents swapped",
            &[("lib.rs", "mod a;"), ("a/mod.rs", "2"), ("a/b.rs", "1")],
        )?;
        check(
            "bytes moved",
            &[("lib.rs", "mod a;"), ("a/mod.rs", "12"), ("a/b.rs", "")],
        )
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(hash(Path::new("no such folder")).is_err());
    }
}
