//! Several tensors by name in one file, as NumPy's `.npz` has them: an archive of zip, in which each is a `.npy` file.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::path::Path;

use perpetua_device::Device;
use perpetua_ir::ir::npy;
use zip::read::ZipFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::error::{Error, Result};
use crate::files::{Contents, failed, npy_of, write};
use crate::node::Tensor;

/// How names of arrays end in the archive.
const END: &str = ".npy";
/// So many bytes have the header of an array; NumPy's own are a hundred times as short.
const HEADER: u64 = 1 << 16;
/// No byte of what is packed gives more than so many.
const DENSEST: u64 = 1032;

/// The tensors of a `.npz` file, as `numpy.savez` and `numpy.savez_compressed` write it, by their names.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Tensor, load_npz, save_npz};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// # let path = std::env::temp_dir().join(format!("perpetua-{}.npz", std::process::id()));
/// let weight = Tensor::from_slice(&[1.0f32, 2.0], [2, 1], &device);
/// save_npz(&path, [("weight", &weight)])?;
/// assert_eq!(load_npz(&path, &device)?["weight"].shape(), [2, 1]);
/// # std::fs::remove_file(&path).expect("it was written");
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
///
/// # Errors
/// If the file cannot be read, is no such archive, has members that overlap, or one that is no array ([`Tensor::load_npy`]) or has not just the elements that its header's shape says, which
/// is known before they are unpacked, or memory or the device cannot hold them.
#[track_caller]
pub fn load_npz(path: impl AsRef<Path>, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let path = path.as_ref();
    let contents = Contents::read(path)?;
    let mut archive = ZipArchive::new(Cursor::new(contents.bytes())).map_err(|error| failed(path, error))?;
    // So that a byte is not unpacked again and again.
    let overlap = archive.has_overlapping_entries();
    if overlap.map_err(|error| failed(path, error))? {
        return Err(failed(path, "its members overlap"));
    }
    let mut all = BTreeMap::new();
    for number in 0..archive.len() {
        let member = archive.by_index(number).map_err(|error| failed(path, error))?;
        let whole = member.name().map_err(|error| failed(path, error))?.into_owned();
        let wrong = |cause: &dyn std::fmt::Display| failed(path, format!("`{whole}`: {cause}"));
        let name = whole
            .strip_suffix(END)
            .ok_or_else(|| wrong(&"it is no array: its name does not end in .npy"))?;
        let bytes = unpacked(member).map_err(|cause| wrong(&cause))?;
        let named = |error: Error| match error {
            Error::File { cause, .. } => wrong(&cause),
            other => other,
        };
        let array = Contents::Read(bytes)
            .array("load_npz", path, device)
            .map_err(named)?;
        all.insert(name.to_owned(), array);
    }
    Ok(all)
}

// A member of an archive, of which nothing is believed: what its header says must fit what the archive says, and what is packed.
fn unpacked(mut member: ZipFile<'_, impl Read>) -> std::result::Result<Vec<u8>, String> {
    let (said, most) = (member.size(), member.compressed_size().saturating_mul(DENSEST));
    let mut bytes = Vec::new();
    let begun = member.by_ref().take(HEADER).read_to_end(&mut bytes);
    begun.map_err(|error| error.to_string())?;
    let end = npy::header(&bytes)?.end;
    if end as u64 != said || said > most {
        return Err(format!(
            "its shape wants {end} bytes, the archive says {said}, and what is packed gives {most} at most"
        ));
    }
    let room = bytes.try_reserve_exact(end.saturating_sub(bytes.len()));
    room.map_err(|_| format!("memory cannot hold its {end} bytes"))?;
    // One more would tell that there is too much.
    let left = (said + 1).saturating_sub(bytes.len() as u64);
    let read = member.take(left).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    match bytes.len() == end {
        true => Ok(bytes),
        false => Err(format!("it has not the {end} bytes that its shape wants")),
    }
}

/// Writes tensors with their names as `numpy.load` reads them, not compressed. Waits for the device. A file that is there is replaced by a whole one.
///
/// # Errors
/// As [`Tensor::to_vec`]; if NumPy lacks a type (`bf16`, floats of one byte), a name is there twice, or the file cannot be written.
pub fn save_npz<'a, N: AsRef<str>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
) -> Result<()> {
    save(path.as_ref(), tensors, CompressionMethod::Stored)
}

/// As [`save_npz`], compressed.
///
/// # Errors
/// As [`save_npz`].
pub fn save_npz_compressed<'a, N: AsRef<str>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
) -> Result<()> {
    save(path.as_ref(), tensors, CompressionMethod::Deflated)
}

fn save<'a, N: AsRef<str>>(
    path: &Path,
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
    method: CompressionMethod,
) -> Result<()> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, tensor) in tensors {
        let name = format!("{}{END}", name.as_ref());
        let bytes = tensor.to_bytes()?;
        let file = npy_of(tensor.dtype(), tensor.shape(), &bytes);
        let file = file.map_err(|cause| failed(path, format!("`{name}`: {cause}")))?;
        // Sizes of 4 GiB and more need a longer header.
        let is_large = u32::try_from(file.len()).is_err();
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .large_file(is_large);
        let started = archive
            .start_file(&*name, options)
            .map_err(|error| failed(path, format!("`{name}`: {error}")));
        started?;
        archive.write_all(&file).map_err(|error| failed(path, error))?;
    }
    let file = archive.finish().map_err(|error| failed(path, error))?;
    write(path, file.get_ref())
}
