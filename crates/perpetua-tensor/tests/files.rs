//! Files of tensors: what is written is read; what is broken is an error, wherever it breaks.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::io::Write;
use std::path::PathBuf;

use common::values;
use perpetua_device::{BackendKind, Device, MemoryKind};
use perpetua_tensor::testing::bits;
use perpetua_tensor::{
    DType, Tensor, load_npz, load_safetensors, map_safetensors, save_npz, save_npz_compressed,
    save_safetensors,
};

const TYPES: [DType; 13] = [
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];

/// A file that goes with its test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("perpetua-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn same(a: &Tensor, b: &Tensor) {
    assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()));
    assert_eq!(bits(a).unwrap(), bits(b).unwrap());
}

#[test]
fn arrays_of_numpy_are_written_and_read() {
    let (device, file) = (Device::new(BackendKind::Cpu, 0).unwrap(), Scratch::new("a.npy"));
    for dtype in TYPES {
        for shape in [&[2usize, 3][..], &[], &[0, 4], &[1]] {
            let x = values(dtype, shape, 1, &device);
            let saved = x.save_npy(&file.0);
            match dtype {
                DType::BF16 => assert!(
                    saved
                        .unwrap_err()
                        .to_string()
                        .contains("NumPy has no elements of type bf16")
                ),
                _ => {
                    saved.unwrap();
                    same(&Tensor::load_npy(&file.0, &device).unwrap(), &x);
                }
            }
        }
    }
    // Bytes of `numpy.save(file, numpy.array([[1, 2]], dtype="<i2"))`.
    let head = "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2), }";
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{head:<117}\n").bytes());
    bytes.extend([1, 0, 2, 0]);
    std::fs::write(&file.0, bytes).unwrap();
    let x = Tensor::load_npy(&file.0, &device).unwrap();
    assert_eq!((x.shape(), x.to_vec::<i16>().unwrap()), (&[1, 2][..], vec![1, 2]));
    let error = Tensor::load_npy("no/such.npy", &device).unwrap_err().to_string();
    assert!(error.starts_with("no/such.npy: "), "{error}");
}

#[test]
fn tensors_are_written_and_read_by_name() {
    let (device, file) = (
        Device::new(BackendKind::Cpu, 0).unwrap(),
        Scratch::new("a.safetensors"),
    );
    let all: Vec<(String, Tensor)> = TYPES
        .iter()
        .enumerate()
        .map(|(i, dtype)| {
            (
                format!("layer.{i}.\"{dtype}\""),
                values(*dtype, &[i % 3, 4], i, &device),
            )
        })
        .collect();
    save_safetensors(&file.0, all.iter().map(|(name, tensor)| (name, tensor))).unwrap();
    let read = load_safetensors(&file.0, &device).unwrap();
    assert_eq!(read.len(), all.len());
    all.iter().for_each(|(name, tensor)| same(&read[name], tensor));
    let x = &all[0].1;
    let error = save_safetensors(&file.0, [("x", x), ("x", x)])
        .unwrap_err()
        .to_string();
    assert!(error.contains("`x` is there twice"), "{error}");
    // What other programs write: texts beside the tensors, blanks, any order.
    let header = br#"{"__metadata__":{"format":"pt"}, "b":{"dtype":"U8","shape":[],"data_offsets":[4,5]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} "#;
    let bytes = [
        &(header.len() as u64).to_le_bytes()[..],
        header,
        &[0, 0, 128, 63, 7],
    ]
    .concat();
    std::fs::write(&file.0, &bytes).unwrap();
    let read = load_safetensors(&file.0, &device).unwrap();
    assert_eq!(
        (
            read["a"].to_vec::<f32>().unwrap(),
            read["b"].to_vec::<u8>().unwrap()
        ),
        (vec![1.0], vec![7])
    );
}

#[test]
fn broken_files_are_errors() {
    let (device, file) = (
        Device::new(BackendKind::Cpu, 0).unwrap(),
        Scratch::new("b.safetensors"),
    );
    let refused = |bytes: &[u8], expect: &str| {
        std::fs::write(&file.0, bytes).unwrap();
        let error = load_safetensors(&file.0, &device).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    };
    let with = |header: &str, data: &[u8]| {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
    };
    refused(&[1, 2, 3], "the file ends within its header");
    refused(&u64::MAX.to_le_bytes(), "longer than the format allows");
    refused(&with("[]", &[]), "no object of JSON");
    let one = |dtype: &str, shape: &str, place: &str| {
        format!(r#"{{"x":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{place}}}}}"#)
    };
    refused(
        &with(&one("F8_E8M0", "[1]", "[0,1]"), &[0]),
        "a type that tensors lack",
    );
    refused(
        &with(&one("F32", "[2]", "[0,4]"), &[0; 4]),
        "`x` has not the type, extents and place",
    );
    refused(
        &with(&one("U8", "[18446744073709551615,2]", "[0,1]"), &[0]),
        "`x` has not",
    );
    refused(&with(&one("U8", "[-1]", "[0,1]"), &[0]), "`x` has not");
    refused(&with(&one("U8", "[1]", "[1,0]"), &[0]), "`x` has not");
    refused(
        &with(&one("U8", "[1]", "[1,2]"), &[0; 2]),
        "begins at 1, not where the one before ends (0)",
    );
    refused(
        &with(&one("U8", "[1]", "[0,1]"), &[0; 2]),
        "end at 1, its elements at 2",
    );
    refused(
        &with(&one("U8", "[9]", "[0,9]"), &[0; 2]),
        "end at 9, its elements at 2",
    );
    // Cut anywhere, or with any byte changed: an error or a tensor, never a panic.
    let x = values(DType::I16, &[2, 2], 1, &device);
    save_safetensors(&file.0, [("x", &x), ("y", &x)]).unwrap();
    let whole = std::fs::read(&file.0).unwrap();
    for len in 0..whole.len() {
        std::fs::write(&file.0, &whole[..len]).unwrap();
        load_safetensors(&file.0, &device).unwrap_err();
        for bit in [0, 4, 7] {
            let mut changed = whole.clone();
            changed[len] ^= 1 << bit;
            std::fs::write(&file.0, &changed).unwrap();
            if let Ok(all) = load_safetensors(&file.0, &device) {
                all.values().for_each(|tensor| drop(bits(tensor).unwrap()));
            }
        }
    }
}

#[test]
fn archives_of_numpy_are_written_and_read() {
    let (device, file) = (Device::new(BackendKind::Cpu, 0).unwrap(), Scratch::new("a.npz"));
    let all: Vec<(String, Tensor)> = TYPES
        .iter()
        .filter(|dtype| **dtype != DType::BF16)
        .enumerate()
        .map(|(i, dtype)| {
            (
                format!("layer/{i} {dtype}"),
                values(*dtype, &[i % 3, 40], i, &device),
            )
        })
        .collect();
    let named = || all.iter().map(|(name, tensor)| (name, tensor));
    let mut sizes = [0, 0];
    for (packed, size) in sizes.iter_mut().enumerate() {
        match packed {
            0 => save_npz(&file.0, named()).unwrap(),
            _ => save_npz_compressed(&file.0, named()).unwrap(),
        }
        *size = std::fs::metadata(&file.0).unwrap().len();
        let read = load_npz(&file.0, &device).unwrap();
        assert_eq!(read.len(), all.len());
        all.iter().for_each(|(name, tensor)| same(&read[name], tensor));
    }
    assert!(sizes[1] < sizes[0] * 2 / 3, "{sizes:?}");
    // What NumPy 2 writes: an array of `i2`, `[[1, 2]]`, and a number of `f4`, 3.
    for bytes in [
        &include_bytes!("numpy/savez.npz")[..],
        include_bytes!("numpy/savez_compressed.npz"),
    ] {
        std::fs::write(&file.0, bytes).unwrap();
        let read = load_npz(&file.0, &device).unwrap();
        assert_eq!(
            (read["a"].shape(), read["a"].to_vec::<i16>().unwrap()),
            (&[1, 2][..], vec![1, 2])
        );
        assert_eq!(
            (read["b"].shape(), read["b"].to_vec::<f32>().unwrap()),
            (&[][..], vec![3.0])
        );
    }
    let x = &all[0].1;
    let refused = |cause: Result<(), perpetua_tensor::Error>, expect: &str| {
        let error = cause.unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    };
    refused(save_npz(&file.0, [("x", x), ("x", x)]), "`x.npy`: ");
    let halves = values(DType::BF16, &[2], 1, &device);
    refused(
        save_npz(&file.0, [("h", &halves)]),
        "`h.npy`: NumPy has no elements of type bf16",
    );
}

#[test]
fn broken_archives_are_errors() {
    let (device, file) = (Device::new(BackendKind::Cpu, 0).unwrap(), Scratch::new("b.npz"));
    let refused = |bytes: &[u8], expect: &str| {
        std::fs::write(&file.0, bytes).unwrap();
        let error = load_npz(&file.0, &device).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    };
    refused(b"PK", "b.npz: ");
    let good = include_bytes!("numpy/savez.npz");
    let renamed = |from: &[u8], to: &[u8]| {
        let mut bytes = good.to_vec();
        while let Some(at) = bytes.windows(from.len()).position(|part| part == from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
        bytes
    };
    refused(&renamed(b"a.npy", b"a.txt"), "`a.txt`: it is no array");
    // Elements that are not those that were written.
    refused(&renamed(b"<i2", b"<u2"), "`a.npy`: ");
    // Bombs. Gigabytes of zeros are not unpacked if the header's shape does not want them, whatever the archive says; nor more than its bytes give.
    let head = |shape: &str| {
        let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        let len = (text.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &len[..], text.as_bytes()].concat()
    };
    let packed = |shape: &str, zeros: usize, member: &str| {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        archive.start_file(member, options).unwrap();
        archive.write_all(&head(shape)).unwrap();
        archive.write_all(&vec![0; zeros]).unwrap();
        archive.finish().unwrap().into_inner()
    };
    let replaced = |mut bytes: Vec<u8>, from: &[u8], to: &[u8]| {
        let places = (0..=bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from));
        for at in places.collect::<Vec<_>>() {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
        bytes
    };
    refused(
        &packed("(2,)", 1 << 24, "z.npy"),
        "`z.npy`: its shape wants 75 bytes, the archive says 16777283",
    );
    // Both lie.
    let zeros = 1u32 << 20;
    let size = zeros + head("(0250000000,)").len() as u32;
    let lies = replaced(
        packed("(0250000000,)", zeros as usize, "z.npy"),
        &size.to_le_bytes(),
        &(size - zeros + 1_000_000_000).to_le_bytes(),
    );
    refused(&lies, "what is packed gives");
    // One member twice.
    let twice = packed("(2,)", 8, "z.npy");
    let begin = twice.windows(4).position(|part| part == b"PK\x01\x02").unwrap();
    let end = twice.windows(4).position(|part| part == b"PK\x05\x06").unwrap();
    let again = replaced(twice[begin..end].to_vec(), b"z.npy", b"y.npy");
    let mut ending = twice[end..].to_vec();
    (ending[8], ending[10]) = (2, 2);
    ending[12..16].copy_from_slice(&(2 * (end - begin) as u32).to_le_bytes());
    refused(&[&twice[..end], &again, &ending].concat(), "overlap");
    // Cut anywhere, or with any byte changed: an error or tensors, never a panic.
    for whole in [&good[..], include_bytes!("numpy/savez_compressed.npz")] {
        for len in 0..whole.len() {
            std::fs::write(&file.0, &whole[..len]).unwrap();
            load_npz(&file.0, &device).unwrap_err();
            for bit in [0, 4, 7] {
                let mut changed = whole.to_vec();
                changed[len] ^= 1 << bit;
                std::fs::write(&file.0, &changed).unwrap();
                if let Ok(all) = load_npz(&file.0, &device) {
                    all.values().for_each(|tensor| drop(bits(tensor).unwrap()));
                }
            }
        }
    }
}

#[test]
fn mapped_files_are_tensors_without_copies() {
    let (device, file) = (Device::new(BackendKind::Cpu, 0).unwrap(), Scratch::new("c.map"));
    // SAFETY: nobody else knows the file, which is replaced, not changed.
    let map = |path: &PathBuf| unsafe { Tensor::map_npy(path, &device) };
    // SAFETY: as above.
    let map_all = |path: &PathBuf| unsafe { map_safetensors(path, &device) };
    for dtype in TYPES.into_iter().filter(|dtype| *dtype != DType::BF16) {
        for shape in [&[2usize, 3][..], &[], &[0, 4]] {
            let x = values(dtype, shape, 1, &device);
            x.save_npy(&file.0).unwrap();
            same(&map(&file.0).unwrap(), &x);
        }
    }
    // Memory of tensors is the file's own: allocations of the device are not counted for it.
    let x = values(DType::F32, &[1 << 20], 1, &device);
    x.save_npy(&file.0).unwrap();
    let used = || device.pool_stats(MemoryKind::Device).in_use;
    let before = used();
    let mapped = map(&file.0).unwrap();
    assert_eq!(used(), before);
    // The file may be gone before its tensor.
    std::fs::remove_file(&file.0).unwrap();
    same(&mapped, &x);
    same(&(&mapped * 2.0), &(&x * 2.0));
    // In a file of several the second one does not lie at a multiple of its size: it is copied.
    let (odd, one) = (
        values(DType::U8, &[3], 1, &device),
        values(DType::F64, &[2, 2], 1, &device),
    );
    save_safetensors(&file.0, [("odd", &odd), ("one", &one)]).unwrap();
    let all = map_all(&file.0).unwrap();
    same(&all["odd"], &odd);
    same(&all["one"], &one);
    drop(all);
    // Truths that are neither 0 nor 1 become 1.
    values(DType::Bool, &[4], 1, &device).save_npy(&file.0).unwrap();
    let mut bytes = std::fs::read(&file.0).unwrap();
    let len = bytes.len();
    bytes[len - 4..].copy_from_slice(&[0, 1, 2, 255]);
    std::fs::remove_file(&file.0).unwrap();
    std::fs::write(&file.0, &bytes).unwrap();
    assert_eq!(
        map(&file.0).unwrap().to_vec::<bool>().unwrap(),
        [false, true, true, true]
    );
    std::fs::remove_file(&file.0).unwrap();
    for broken in [&b""[..], b"\x93NUMPY"] {
        std::fs::write(&file.0, broken).unwrap();
        let error = map(&file.0).unwrap_err().to_string();
        assert!(error.contains("c.map: "), "{error}");
        map_all(&file.0).unwrap_err();
        std::fs::remove_file(&file.0).unwrap();
    }
}
