//! Several tensors by name in one file, in the format of Hugging Face's safetensors: the length of a header (8 bytes), the header (JSON: type, extents
//! and place of each), the elements. Read here and not by the crate of that name, whose features would build half of the workspace anew; the rules that
//! it checks are checked here, too: places lie one behind the other, without gaps, and fill the file.

use std::collections::BTreeMap;
use std::path::Path;

use perpetua_device::Device;
use serde_json::{Map, Value, json};

use crate::dtype::DType;
use crate::error::Result;
use crate::files::{Contents, failed, write};
use crate::node::Tensor;

const NAMES: [(&str, DType); 15] = [
    ("BOOL", DType::Bool),
    ("U8", DType::U8),
    ("I8", DType::I8),
    ("U16", DType::U16),
    ("I16", DType::I16),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("U32", DType::U32),
    ("I32", DType::I32),
    ("F32", DType::F32),
    ("U64", DType::U64),
    ("I64", DType::I64),
    ("F64", DType::F64),
    ("F8_E4M3", DType::E4m3),
    ("F8_E5M2", DType::E5m2),
];
/// What stands in the header beside the tensors: texts by name.
const METADATA: &str = "__metadata__";
/// Most bytes of a header, as the format has it.
const MOST: u64 = 100_000_000;

/// A tensor's place in a file.
struct Entry {
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    begin: usize,
    end: usize,
}

/// The tensors of a `.safetensors` file by their names.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Tensor, load_safetensors, save_safetensors};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// # let path = std::env::temp_dir().join(format!("perpetua-{}.safetensors", std::process::id()));
/// let weight = Tensor::from_slice(&[1.0f32, 2.0], [2, 1], &device);
/// save_safetensors(&path, [("layer.weight", &weight)])?;
/// let all = load_safetensors(&path, &device)?;
/// assert_eq!(all["layer.weight"].shape(), [2, 1]);
/// # std::fs::remove_file(&path).expect("it was written");
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
///
/// # Errors
/// If the file cannot be read, breaks the format's rules, has elements of other types than tensors have, or the device cannot hold them.
#[track_caller]
pub fn load_safetensors(path: impl AsRef<Path>, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let path = path.as_ref();
    tensors("load_safetensors", &Contents::read(path)?, path, device)
}

#[track_caller]
fn tensors(
    operation: &'static str,
    contents: &Contents,
    path: &Path,
    device: &Device,
) -> Result<BTreeMap<String, Tensor>> {
    let (entries, data) = parse(contents.bytes()).map_err(|cause| failed(path, cause))?;
    let mut all = BTreeMap::new();
    for entry in entries {
        let own = data.get(entry.begin..entry.end).unwrap_or_default();
        let loaded = contents.tensor(operation, own, entry.dtype, &entry.shape, device)?;
        all.insert(entry.name, loaded);
    }
    Ok(all)
}

/// As [`load_safetensors`](crate::load_safetensors), of a file that is mapped to memory: on the CPU nothing is read before it is wanted, and what lies at a multiple of its elements' size is not
/// copied.
///
/// # Errors
/// As [`load_safetensors`](crate::load_safetensors).
///
/// # Safety
/// As of [`Tensor::map_npy`].
#[cfg(feature = "mmap")]
#[track_caller]
pub unsafe fn map_safetensors(path: impl AsRef<Path>, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let path = path.as_ref();
    // SAFETY: the caller promises the same.
    let contents = unsafe { Contents::map(path)? };
    tensors("map_safetensors", &contents, path, device)
}

/// Writes tensors with their names. Waits for the device. A file that is there is replaced by a whole one.
///
/// # Errors
/// As [`Tensor::to_vec`]; if a name is there twice or is the format's own, or the file cannot be written.
pub fn save_safetensors<'a, N: AsRef<str>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
) -> Result<()> {
    let path = path.as_ref();
    let (mut header, mut data) = (Map::new(), Vec::new());
    for (name, tensor) in tensors {
        let name = name.as_ref();
        let bytes = tensor.to_bytes()?;
        let dtype = NAMES.iter().find(|(_, dtype)| *dtype == tensor.dtype());
        let (dtype, _) =
            dtype.ok_or_else(|| failed(path, format!("the format has no {}", tensor.dtype())))?;
        let begin = data.len();
        data.extend_from_slice(&bytes);
        let entry = json!({"dtype": dtype, "shape": tensor.shape(), "data_offsets": [begin, data.len()]});
        if name == METADATA || header.insert(name.to_owned(), entry).is_some() {
            return Err(failed(
                path,
                format!("`{name}` is there twice, or is the format's own name"),
            ));
        }
    }
    let mut text = Value::Object(header).to_string();
    // Elements begin at a multiple of 8 bytes.
    text.extend(std::iter::repeat_n(
        ' ',
        text.len().next_multiple_of(8) - text.len(),
    ));
    let file = [&(text.len() as u64).to_le_bytes(), text.as_bytes(), &data].concat();
    write(path, &file)
}

fn parse(bytes: &[u8]) -> std::result::Result<(Vec<Entry>, &[u8]), String> {
    let short = "the file ends within its header";
    let (len, rest) = bytes.split_first_chunk::<8>().ok_or(short)?;
    let len = u64::from_le_bytes(*len);
    if len > MOST {
        return Err(format!(
            "a header of {len} bytes is longer than the format allows"
        ));
    }
    let (header, data) = rest.split_at_checked(len as usize).ok_or(short)?;
    let header: Map<String, Value> = serde_json::from_slice(header)
        .map_err(|error| format!("its header is no object of JSON: {error}"))?;
    let mut entries: Vec<Entry> = Vec::new();
    for (name, value) in header {
        if name != METADATA {
            entries.push(entry(&name, &value).ok_or_else(|| {
                format!("`{name}` has not the type, extents and place that the format wants, or a type that tensors lack")
            })?);
        }
    }
    entries.sort_by_key(|entry| (entry.begin, entry.end));
    let mut end = 0;
    for entry in &entries {
        if entry.begin != end {
            return Err(format!(
                "`{}` begins at {}, not where the one before ends ({end})",
                entry.name, entry.begin
            ));
        }
        end = entry.end;
    }
    match end == data.len() {
        true => Ok((entries, data)),
        false => Err(format!(
            "its tensors end at {end}, its elements at {}",
            data.len()
        )),
    }
}

fn entry(name: &str, value: &Value) -> Option<Entry> {
    let text = value.get("dtype")?.as_str()?;
    let (_, dtype) = NAMES.iter().find(|(name, _)| *name == text)?;
    let numbers = |key: &str| -> Option<Vec<usize>> {
        let all = value.get(key)?.as_array()?;
        all.iter().map(|n| usize::try_from(n.as_u64()?).ok()).collect()
    };
    let (shape, place) = (numbers("shape")?, numbers("data_offsets")?);
    let &[begin, end] = &place[..] else { return None };
    let mut sizes = shape.iter();
    let size = sizes.try_fold(dtype.size() as usize, |size, n| size.checked_mul(*n))?;
    (end.checked_sub(begin)? == size).then(|| Entry {
        name: name.to_owned(),
        dtype: *dtype,
        shape,
        begin,
        end,
    })
}
