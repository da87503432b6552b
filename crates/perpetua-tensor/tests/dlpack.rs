//! DLPack: there and back in this process, structures made by hand, and NumPy in a Python inside this process where there is one.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{devices, from_bits, values};
use perpetua_device::{BackendKind, Device};
use perpetua_tensor::{DType, DlDataType, DlDevice, DlManagedTensor, DlPack, DlTensor, Tensor};

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

fn cpu() -> Device {
    Device::new(BackendKind::Cpu, 0).expect("the CPU")
}

fn bits(x: &Tensor) -> Vec<u64> {
    perpetua_tensor::testing::bits(x).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_type_goes_there_and_back() {
    for device in devices() {
        for dtype in TYPES.into_iter().filter(|dtype| common::has(&device, *dtype)) {
            for shape in [&[2usize, 3][..], &[], &[5], &[0, 4]] {
                let x = values(dtype, shape, 7, &device);
                let pack = match (device.backend(), x.to_dlpack()) {
                    (BackendKind::Cpu | BackendKind::Cuda, pack) => pack.expect("an address"),
                    (_, pack) => {
                        let text = pack.expect_err("no address").to_string();
                        assert!(text.contains("`to_dlpack`") && text.contains("`to`"), "{text}");
                        continue;
                    }
                };
                let raw = pack.into_raw();
                let expected = bits(&x);
                drop(x);
                // SAFETY: it is what was exported, which nobody writes to.
                let pack = unsafe { DlPack::from_raw(raw) };
                assert_eq!(pack.tensor().ndim as usize, shape.len());
                let y = Tensor::from_dlpack(pack, &device).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!((y.shape(), y.dtype()), (shape, dtype));
                assert_eq!(bits(&y), expected, "{y:?}");
            }
        }
        if device.backend() == BackendKind::Cpu {
            // The same memory.
            let x = values(DType::F32, &[4], 1, &device);
            let (a, b) = (x.to_dlpack().expect("memory"), x.to_dlpack().expect("memory"));
            let y = Tensor::from_dlpack(a, &device).expect("memory");
            assert_eq!(y.to_dlpack().expect("memory").tensor().data, b.tensor().data);
        }
    }
}

/// A structure of numbers of our own, with the number of times that it was given back.
struct Made {
    numbers: Vec<i32>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    managed: Option<DlManagedTensor>,
    given_back: Arc<AtomicUsize>,
}

unsafe extern "C" fn give_back(managed: *mut DlManagedTensor) {
    // SAFETY: `made` has put its box there, and the deleter is called once.
    let made = unsafe { Box::from_raw((*managed).manager_ctx.cast::<Made>()) };
    made.given_back.fetch_add(1, Ordering::SeqCst);
}

const INTEGERS: DlDataType = DlDataType {
    code: 0,
    bits: 32,
    lanes: 1,
};

fn made(
    shape: &[i64],
    strides: Option<&[i64]>,
    first: usize,
    dtype: DlDataType,
) -> (DlPack, Arc<AtomicUsize>) {
    let given_back = Arc::new(AtomicUsize::new(0));
    let made = Box::leak(Box::new(Made {
        numbers: (0..100).collect(),
        shape: shape.to_vec(),
        strides: strides.unwrap_or_default().to_vec(),
        managed: None,
        given_back: Arc::clone(&given_back),
    }));
    let tensor = DlTensor {
        data: made.numbers.as_mut_ptr().cast(),
        device: DlDevice {
            device_type: 1,
            device_id: 0,
        },
        ndim: shape.len() as i32,
        dtype,
        shape: made.shape.as_mut_ptr(),
        strides: match strides {
            Some(_) => made.strides.as_mut_ptr(),
            None => std::ptr::null_mut(),
        },
        byte_offset: first as u64 * 4,
    };
    let context = std::ptr::from_mut(made);
    let managed = made.managed.insert(DlManagedTensor {
        dl_tensor: tensor,
        manager_ctx: context.cast(),
        deleter: Some(give_back),
    });
    // SAFETY: the box stays until the deleter is called; its numbers are where shape and strides reach, or the test is of what is refused before any is read.
    (unsafe { DlPack::from_raw(managed) }, given_back)
}

#[test]
fn strides_of_any_kind_are_read_and_memory_is_given_back_once() {
    let device = cpu();
    for (shape, strides, first) in [
        (&[2i64, 3][..], None, 0),
        (&[2, 3], Some(&[3i64, 1][..]), 5),
        // Transposed, with an axis of one; every second; backwards; repeated; diagonals that share elements.
        (&[3, 1, 2], Some(&[1, 77, 3]), 0),
        (&[2, 3], Some(&[10, 2]), 1),
        (&[3, 4], Some(&[-4, -1]), 11),
        (&[3, 4], Some(&[0, 1]), 2),
        (&[4, 3], Some(&[1, 1]), 0),
        (&[0, 3], Some(&[9, 9]), 0),
        (&[], Some(&[]), 42),
        (&[2, 2, 2], Some(&[50, 1, 7]), 3),
    ] {
        let (pack, given_back) = made(shape, strides, first, INTEGERS);
        let x = Tensor::from_dlpack(pack, &device).unwrap_or_else(|error| panic!("{error}"));
        let rows: Vec<i64> = match strides {
            Some(strides) => strides.to_vec(),
            None => vec![3, 1],
        };
        let mut expected = vec![first as i64];
        for (extent, stride) in shape.iter().zip(rows) {
            expected = expected
                .iter()
                .flat_map(|at| (0..*extent).map(move |i| at + i * stride))
                .collect();
        }
        let found = x.to_vec::<i32>().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            found.iter().map(|x| i64::from(*x)).collect::<Vec<_>>(),
            expected,
            "{shape:?} {strides:?}"
        );
        let more = (&x + 1).sum(..).to_vec::<i32>().expect("a sum");
        assert_eq!(i64::from(more[0]), expected.iter().map(|x| x + 1).sum::<i64>());
        drop(x);
        device.synchronize().expect("nothing fails");
        assert_eq!(given_back.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn what_does_not_fit_is_an_error_and_given_back() {
    let device = cpu();
    let kind = |code, bits, lanes| DlDataType { code, bits, lanes };
    for (shape, strides, dtype, words) in [
        (&[2i64][..], None, kind(2, 8, 1), "no elements of its type"),
        (&[2], None, kind(0, 32, 4), "no elements of its type"),
        (&[-1], None, INTEGERS, "negative extent"),
        (&[i64::MAX, 3], None, INTEGERS, "no memory holds"),
        (&[3], Some(&[i64::MAX][..]), INTEGERS, "no memory holds"),
        (&[3], Some(&[i64::MIN][..]), INTEGERS, "no memory holds"),
        (&[1 << 62], None, INTEGERS, "more bytes than memory has addresses"),
    ] {
        let (pack, given_back) = made(shape, strides, 0, dtype);
        let error = Tensor::from_dlpack(pack, &device).expect_err(words).to_string();
        assert!(
            error.contains(words) && error.contains("dlpack.rs:") && error.contains("`from_dlpack`"),
            "{error}"
        );
        assert_eq!(given_back.load(Ordering::SeqCst), 1, "{words}");
    }
    let raw = made(&[2], None, 0, INTEGERS).0.into_raw();
    // SAFETY: nobody else has it.
    unsafe { (*raw).dl_tensor.device.device_type = 2 };
    // SAFETY: as before; what is refused is not read.
    let error = Tensor::from_dlpack(unsafe { DlPack::from_raw(raw) }, &device).expect_err("elsewhere");
    assert!(error.to_string().contains("its memory is not"), "{error}");
    let raw = made(&[2], None, 0, INTEGERS).0.into_raw();
    // SAFETY: nobody else has it; two elements from the second byte on are inside.
    unsafe { (*raw).dl_tensor.byte_offset = 1 };
    // SAFETY: as before.
    let error = Tensor::from_dlpack(unsafe { DlPack::from_raw(raw) }, &device).expect_err("between");
    assert!(error.to_string().contains("no multiple of that"), "{error}");
    // Bytes that are no bool are true.
    let (pack, _) = made(&[8], None, 0, kind(6, 8, 1));
    let found = Tensor::from_dlpack(pack, &device)
        .expect("bytes")
        .to_vec::<bool>();
    assert_eq!(
        found.expect("bools"),
        [false, false, false, false, true, false, false, false]
    );
}

/// The library of the Python that `PERPETUA_PYTHON` names, or `python3`, and where its packages are, if it has NumPy.
#[cfg(unix)]
fn python() -> Result<(String, String), String> {
    let program = std::env::var("PERPETUA_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = "import sysconfig, os, numpy\n\
                  get = sysconfig.get_config_var\n\
                  print(os.path.join(get('LIBDIR') or '', get('INSTSONAME') or ''))\n\
                  print(os.path.dirname(os.path.dirname(numpy.__file__)))";
    let output = std::process::Command::new(&program).args(["-c", script]).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines().map(str::to_owned);
    match (lines.next(), lines.next()) {
        (Some(library), Some(packages)) if library.ends_with(".so") || library.contains(".so.") => {
            Ok((library, packages))
        }
        _ => Err(format!("{program} has no NumPy, or no library of its own")),
    }
}

#[cfg(unix)]
#[test]
fn numpy_sees_the_same_memory() {
    let (library, packages) = match python() {
        Ok(found) => found,
        Err(error) => {
            eprintln!("skipped with NumPy: {error}");
            return;
        }
    };
    let device = cpu();
    // What the script hands over: an array's structure for each type.
    const NAMES: &str = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64";
    let mut handed = vec![0u64; 13];
    let mine: Vec<(usize, DType)> = TYPES
        .into_iter()
        .filter(|dtype| *dtype != DType::BF16)
        .enumerate()
        .collect();
    let exported: Vec<Tensor> = mine
        .iter()
        .map(|(_, dtype)| {
            let numbers: Vec<u64> = (0..6)
                .map(|i| {
                    perpetua_tensor::testing::cast(
                        DType::I32,
                        *dtype,
                        i % if *dtype == DType::Bool { 2 } else { 6 },
                    )
                })
                .collect();
            from_bits(*dtype, &numbers, &[2, 3], &device)
        })
        .collect();
    let pointers: Vec<String> = exported
        .iter()
        .map(|x| {
            format!(
                "{}",
                x.to_dlpack().expect("memory").into_raw().expose_provenance()
            )
        })
        .collect();
    let script = format!(
        "import sys, ctypes\n\
         sys.path.insert(0, {packages:?})\n\
         import numpy as np\n\
         api = ctypes.pythonapi\n\
         api.PyCapsule_New.restype = ctypes.py_object\n\
         api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]\n\
         api.PyCapsule_GetPointer.restype = ctypes.c_void_p\n\
         api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]\n\
         api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]\n\
         used = b'used_dltensor'\n\
         class Theirs:\n\
         \x20   def __init__(self, address): self.address = address\n\
         \x20   def __dlpack__(self, **more): return api.PyCapsule_New(self.address, b'dltensor', None)\n\
         \x20   def __dlpack_device__(self): return (1, 0)\n\
         names = '{NAMES}'.split()\n\
         kept = []\n\
         for name, address in zip(names, [{pointers}]):\n\
         \x20   found = np.from_dlpack(Theirs(address))\n\
         \x20   wanted = np.arange(6).reshape(2, 3)\n\
         \x20   wanted = (wanted % 2 if name == 'bool' else wanted).astype(name)\n\
         \x20   assert found.dtype == wanted.dtype and (found == wanted).all(), (name, found)\n\
         \x20   kept.append(found)\n\
         for place, name in enumerate(names):\n\
         \x20   mine = np.arange(24).reshape(4, 6).astype(name)[::-2, 1::2].T\n\
         \x20   kept.append(mine)\n\
         \x20   capsule = mine.__dlpack__()\n\
         \x20   address = api.PyCapsule_GetPointer(capsule, b'dltensor')\n\
         \x20   api.PyCapsule_SetName(capsule, used)\n\
         \x20   ctypes.c_uint64.from_address({handed} + 8 * place).value = address\n\
         ctypes.c_uint64.from_address({handed} + 8 * 12).value = 1\n",
        pointers = pointers.join(", "),
        handed = handed.as_mut_ptr().expose_provenance(),
    );
    let script = std::ffi::CString::new(script).expect("no zeros");
    // SAFETY: the library is Python's, whose functions have these types; it stays loaded, and the interpreter is used by this thread alone.
    unsafe {
        use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
        let library = match Library::open(Some(&library), RTLD_NOW | RTLD_GLOBAL) {
            Ok(library) => Box::leak(Box::new(library)),
            Err(error) => {
                eprintln!("skipped with NumPy: {error}");
                return;
            }
        };
        let begin = library
            .get::<unsafe extern "C" fn(i32)>(b"Py_InitializeEx")
            .expect("Python's");
        let run = library
            .get::<unsafe extern "C" fn(*const std::ffi::c_char) -> i32>(b"PyRun_SimpleString")
            .expect("Python's");
        begin(0);
        assert_eq!(run(script.as_ptr()), 0, "the script says above what is wrong");
        // Whoever gives memory back, on whatever thread, takes Python's lock.
        let leave = library
            .get::<unsafe extern "C" fn() -> *mut std::ffi::c_void>(b"PyEval_SaveThread")
            .expect("Python's");
        leave();
    }
    let handed = std::hint::black_box(handed);
    assert_eq!(handed[12], 1, "the script came to its end");
    for (place, dtype) in mine {
        let raw = std::ptr::with_exposed_provenance_mut::<DlManagedTensor>(handed[place] as usize);
        // SAFETY: it is NumPy's, whose capsule says that it is used, and whose array is kept.
        let x = Tensor::from_dlpack(unsafe { DlPack::from_raw(raw) }, &device);
        let x = x.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((x.shape(), x.dtype()), (&[3usize, 2][..], dtype));
        let expected = [19, 7, 21, 9, 23, 11].map(|i| {
            let number = if dtype == DType::Bool { 1 } else { i };
            perpetua_tensor::testing::cast(DType::I32, dtype, number)
        });
        assert_eq!(bits(&x), expected, "{dtype}");
        drop(x);
        device.synchronize().expect("nothing fails");
    }
}
