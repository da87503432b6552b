//! Whose a checkpoint is, and what one of somebody else's may write. Must not know how a checkpoint keeps its options.
//!
//! A checkpoint names files that are written when its run goes on. It may come from anywhere, so its options have a mark that only this
//! user can make here: a keyed hash (SipHash-2-4, 128 bits), whose key lies in the user's own folder and nowhere else.

use std::ffi::OsString;
use std::fs;
use std::hash::Hasher;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

use siphasher::sip128::{Hasher128, SipHasher24};

use super::video::ENDINGS;

/// Options that name files which are written, with the endings of what is written there.
pub(super) const OUTPUTS: [(&str, &[&str]); 5] = [
    ("out", &["png"]),
    ("animate", &["png"]),
    ("video", &ENDINGS),
    ("probes", &["csv"]),
    ("plot", &["svg"]),
];

/// What marks this user's checkpoints.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key([u8; 16]);

/// The user's folder for what programs know between two runs, by the environment.
fn state_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| {
        variable(name)
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
    };
    let base = if cfg!(target_os = "windows") {
        set("LOCALAPPDATA")
    } else if cfg!(target_vendor = "apple") {
        Some(set("HOME")?.join("Library/Application Support"))
    } else {
        set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))
    };
    base.map(|base| base.join("perpetua"))
}

fn own_folder() -> Option<PathBuf> {
    state_folder(|name| std::env::var_os(name))
}

/// The key's file in its folder.
const FILE: &str = "checkpoint-key";

impl Key {
    /// This user's, if there is one.
    pub(super) fn known() -> Option<Key> {
        Key::of(&own_folder()?)
    }

    /// This user's, made if there is none.
    ///
    /// # Errors
    /// Why there can be none.
    pub(super) fn known_or_new() -> Result<Key, String> {
        let folder = own_folder().ok_or("no environment variable names a home")?;
        Key::made(&folder).map_err(|error| format!("{}: {error}", folder.join(FILE).display()))
    }

    fn of(folder: &Path) -> Option<Key> {
        let bytes = fs::read(folder.join(FILE)).ok()?;
        bytes.try_into().ok().map(Key)
    }

    fn made(folder: &Path) -> Result<Key, String> {
        if let Some(key) = Key::of(folder) {
            return Ok(key);
        }
        let words = |error: std::io::Error| error.to_string();
        fs::create_dir_all(folder).map_err(words)?;
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
        // Nobody else may read it, and of two runs that make one at a time the first is right.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(words)?;
        file.write_all(&bytes).map_err(words)?;
        let placed = file.persist_noclobber(folder.join(FILE));
        let there = Key::of(folder);
        match (placed, there) {
            (_, Some(key)) => Ok(key),
            (Err(error), None) => Err(format!("{}; it is no key: remove it", error.error)),
            (Ok(_), None) => Err("it cannot be read".into()),
        }
    }

    /// A number that nobody makes of these parts without the key.
    pub(super) fn mark<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        for part in parts {
            hasher.write_u64(part.len() as u64);
            hasher.write(part);
        }
        hasher.finish128().as_u128()
    }
}

/// Whether a checkpoint of somebody else's may write a file without being told to: a new one in this folder, of the option's kind, with
/// a plain name. So nothing is replaced, and nothing is made that a program would obey. What Windows takes for a device, or for a part of
/// another file, is no plain name anywhere.
pub(super) fn may_make(endings: &[&str], file: &str) -> bool {
    let path = Path::new(file);
    let mut parts = path.components();
    let is_here = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    let is_free = fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    is_here
        && !is_windows_own(file)
        && !file.starts_with('.')
        && endings.iter().any(|known| ending == *known)
        && is_free
}

/// Whether Windows means something else than a file of this name: a stream of a file (`a.txt:b.png`), or a device, whatever follows it.
fn is_windows_own(file: &str) -> bool {
    const DEVICES: [&str; 7] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"];
    let stem = file
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_uppercase();
    let is_port = |kind: &str| {
        let number = stem
            .strip_prefix(kind)
            .map(|rest| rest.chars().collect::<Vec<_>>());
        matches!(number.as_deref(), Some(['0'..='9' | '¹' | '²' | '³']))
    };
    file.contains(':') || DEVICES.contains(&stem.as_str()) || is_port("COM") || is_port("LPT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_its_marks_are_its_own() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("state/perpetua");
        assert_eq!(Key::of(&folder), None);
        let key = Key::made(&folder).unwrap();
        assert_eq!(Key::made(&folder).as_ref(), Ok(&key));
        assert_eq!(Key::of(&folder).as_ref(), Some(&key));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(folder.join(FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let other = Key::made(&home.path().join("other")).unwrap();
        let mark = |key: &Key, parts: [&str; 2]| key.mark(parts.map(str::as_bytes));
        assert_eq!(mark(&key, ["ab", "c"]), mark(&key.clone(), ["ab", "c"]));
        assert_ne!(mark(&key, ["ab", "c"]), mark(&key, ["a", "bc"]));
        assert_ne!(mark(&key, ["ab", "c"]), mark(&other, ["ab", "c"]));

        fs::write(folder.join(FILE), "short").unwrap();
        let said = Key::made(&folder).unwrap_err();
        assert!(said.contains("it is no key: remove it"), "{said}");
        assert_eq!(fs::read(folder.join(FILE)).unwrap(), b"short");
        assert!(Key::made(&folder.join(FILE).join("no")).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_key_lies_in_the_users_folder() {
        let find = |all: &[(&str, &str)]| {
            let of = |name: &str| all.iter().find(|(key, _)| *key == name).map(|(_, v)| v.into());
            state_folder(of).map(|folder| folder.display().to_string())
        };
        assert_eq!(
            find(&[("HOME", "/h")]).as_deref(),
            Some("/h/.local/state/perpetua")
        );
        let both = [("HOME", "/h"), ("XDG_STATE_HOME", "/s")];
        assert_eq!(find(&both).as_deref(), Some("/s/perpetua"));
        assert_eq!(find(&[("HOME", "h")]), None);
    }

    #[test]
    fn somebody_elses_checkpoint_makes_new_files_here_and_nothing_else() {
        for (file, expect) in [
            ("not-there.png", true),
            ("not-there.PNG", true),
            // Of this crate, where its tests run.
            ("Cargo.toml", false),
            ("src", false),
            (".png", false),
            (".not-there.png", false),
            ("not-there", false),
            ("not-there.sh", false),
            ("./not-there.png", false),
            ("src/not-there.png", false),
            ("../not-there.png", false),
            ("/tmp/not-there.png", false),
            ("", false),
            ("Cargo.toml:x.png", false),
            ("CON.png", false),
            ("nul .tar.png", false),
            ("com1.png", false),
            ("LPT².png", false),
            ("CONE.png", true),
            ("com10.png", true),
        ] {
            assert_eq!(may_make(&["png", "toml"], file), expect, "{file}");
        }
    }
}
