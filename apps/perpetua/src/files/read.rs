//! Files that are read whole. Must not know what is in them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of a text.
pub(crate) const MOST_TEXT: u64 = 16 << 20;

/// The bytes of a file, or of a pipe until it ends: at most so many. Some devices never end.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Opening has effects on some devices.
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_char_device(&std::fs::metadata(path)?.file_type()) {
        return Err(io::Error::other("this is a device; name a file"));
    }
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("more than {most} bytes are not read")));
    }
    Ok(bytes)
}

/// The same as text.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(path, MOST_TEXT)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_or_never_ends_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"four");
        let refused = |path: &Path, most| read(path, most).unwrap_err().to_string();
        assert_eq!(refused(&path, 3), "more than 3 bytes are not read");
        #[cfg(unix)]
        assert_eq!(
            refused(Path::new("/dev/zero"), 3),
            "this is a device; name a file"
        );
        std::fs::write(&path, b"\xff").unwrap();
        assert!(read_text(&path).is_err());
    }
}
