//! Floats of one byte: casts to them and back against their definition, all that moves them, and what refuses them.

#![allow(clippy::panic, reason = "what fails in a helper fails a test")]

mod common;

use common::{check, devices, has};
use perpetua_device::Device;
use perpetua_tensor::{DType, DlPack, Error, Slice, Statistics, Tensor, Window, testing};
use perpetua_vendor_tools::ptxas;

const TYPES: [DType; 2] = [DType::E4m3, DType::E5m2];

fn every(dtype: DType, device: &Device) -> Tensor {
    let all: Vec<u8> = (0..=255).collect();
    Tensor::from_bytes(&all, dtype, [256], device)
}

/// What a byte stands for, put together of its parts.
fn number(dtype: DType, byte: u8) -> f64 {
    let (digits, bias) = if dtype == DType::E4m3 { (3, 7) } else { (2, 15) };
    let (exponent, fraction) = (
        i32::from(byte >> digits) & ((1 << (7 - digits)) - 1),
        byte & ((1 << digits) - 1),
    );
    let fraction = f64::from(fraction) / f64::from(1 << digits);
    let size = match (dtype, byte & 0x7f) {
        (DType::E4m3, 0x7f) | (DType::E5m2, 0x7d..) => f64::NAN,
        (DType::E5m2, 0x7c) => f64::INFINITY,
        _ if exponent == 0 => fraction * 2f64.powi(1 - bias),
        _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
    };
    if byte < 0x80 { size } else { -size }
}

#[test]
fn every_byte_is_its_number() {
    for device in devices() {
        for dtype in TYPES {
            let all = every(dtype, &device);
            for wide in [DType::F32, DType::F16, DType::BF16, DType::F64] {
                if !has(&device, wide) {
                    continue;
                }
                let found = testing::bits(&all.cast(wide)).unwrap();
                for (byte, found) in (0..=255).zip(found) {
                    let found = f64::from_bits(testing::cast(wide, DType::F64, found));
                    let expected = number(dtype, byte);
                    let same = found == expected && found.is_sign_negative() == expected.is_sign_negative();
                    let is_nan = found.is_nan() && expected.is_nan();
                    assert!(
                        same || is_nan,
                        "{dtype} {byte:#x} as {wide} on {device:?}: {found}, not {expected}"
                    );
                }
                // Back again: nothing is lost but what NaN carries.
                let back = all.cast(wide).cast(dtype).to_bytes().unwrap();
                for (byte, back) in (0..=255).zip(back) {
                    let is_nan = number(dtype, byte).is_nan();
                    let fits = if is_nan {
                        number(dtype, back).is_nan()
                    } else {
                        back == byte
                    };
                    assert!(fits, "{dtype} {byte:#x} by {wide} on {device:?}: {back:#x}");
                }
            }
        }
    }
}

// By ml_dtypes 0.6 (`float8_e4m3fn`, `float8_e5m2`).
#[test]
fn numbers_between_go_to_the_nearest() {
    #[rustfmt::skip]
    const GOLDEN: &[(f32, u8, u8)] = &[
        (0.0, 0x00, 0x00), (-0.0, 0x80, 0x80), (1.0, 0x38, 0x3c), (-2.5, 0xc2, 0xc1),
        // In the middle of two.
        (1.0625, 0x38, 0x3c), (1.1875, 0x3a, 0x3d), (1.125, 0x39, 0x3c), (1.375, 0x3b, 0x3e),
        // The greatest, what rounds to them, and what is beyond.
        (448.0, 0x7e, 0x5f), (464.0, 0x7e, 0x5f), (464.00003, 0x7f, 0x5f), (480.0, 0x7f, 0x60), (57344.0, 0x7f, 0x7b),
        (61439.996, 0x7f, 0x7b), (61440.0, 0x7f, 0x7c), (-1e30, 0xff, 0xfc), (f32::INFINITY, 0x7f, 0x7c), (f32::NEG_INFINITY, 0xff, 0xfc),
        // Below the least normal ones: 2^-6 and 2^-14; units are 2^-9 and 2^-16.
        (0.015625, 0x08, 0x24), (0.013671875, 0x07, 0x23), (0.001953125, 0x01, 0x18), (0.0009765625, 0x00, 0x14), (0.000_976_562_6, 0x01, 0x14),
        (0.0029296875, 0x02, 0x1a), (6.1035156e-5, 0x00, 0x04), (1.5258789e-5, 0x00, 0x01), (7.6293945e-6, 0x00, 0x00), (7.629_395e-6, 0x00, 0x01),
        (1e-40, 0x00, 0x00), (-1e-40, 0x80, 0x80),
    ];
    let numbers: Vec<f32> = GOLDEN.iter().map(|(x, ..)| *x).collect();
    for device in devices() {
        let x = Tensor::from_slice(&numbers, [numbers.len()], &device);
        let [e4m3, e5m2] = TYPES.map(|dtype| x.cast(dtype).to_bytes().unwrap());
        for ((x, four, five), (a, b)) in GOLDEN.iter().zip(e4m3.iter().zip(&e5m2)) {
            assert_eq!((a, b), (four, five), "{x} on {device:?}: {a:#x}, {b:#x}");
        }
        let nan = Tensor::from_slice(&[f32::NAN, -f32::NAN], [2], &device);
        for dtype in TYPES {
            let found = nan.cast(dtype).to_bytes().unwrap();
            assert!(
                found.iter().all(|byte| number(dtype, *byte).is_nan()),
                "{found:?}"
            );
            // Each number, the middle to the next one, and what is beside both.
            let mut all = Vec::new();
            for byte in 0..0x7f {
                let (own, next) = (number(dtype, byte) as f32, number(dtype, byte + 1) as f32);
                for x in [own, (own + next) / 2.0].into_iter().filter(|x| x.is_finite()) {
                    all.extend([x, x.next_up(), x.next_down()].into_iter().flat_map(|x| [x, -x]));
                }
            }
            let all = Tensor::from_slice(&all, [all.len()], &device);
            check("nearest", &all.cast(dtype));
            for from in [DType::F16, DType::BF16, DType::I32, DType::U8, DType::Bool] {
                check("from others", &all.cast(from).cast(dtype));
            }
            check("to integers", &every(dtype, &device).cast(DType::I32));
            check("to bool", &every(dtype, &device).cast(DType::Bool));
            check(
                "to each other",
                &every(dtype, &device).cast(TYPES[usize::from(dtype == TYPES[0])]),
            );
            if has(&device, DType::F64) {
                // Rounded once: by way of an `f32` these would be in the middle of two.
                let beside = [
                    1.0625 + 1e-12,
                    1.1875 - 1e-12,
                    1.125 + 1e-12,
                    -1.375 + 1e-12,
                    464.0 + 1e-9,
                    1e300,
                    1e-300,
                ];
                check(
                    "f64",
                    &Tensor::from_slice(&beside, [beside.len()], &device).cast(dtype),
                );
            }
        }
        if has(&device, DType::F64) {
            let up = Tensor::from_slice(&[1.0625 + 1e-12, 1.0625, 1.1875 - 1e-12], [3], &device);
            assert_eq!(up.cast(DType::E4m3).to_bytes().unwrap(), [0x39, 0x38, 0x39]);
        }
    }
}

#[test]
fn nvidias_assembler_takes_casts() {
    let device = Device::new(perpetua_device::BackendKind::Cpu, 0).unwrap();
    for stored in TYPES {
        let x = every(stored, &device);
        for other in [DType::F32, DType::F16, DType::BF16, DType::F64, DType::I32] {
            let y = Tensor::coordinates([256], 0, &device).cast(other) * 3;
            for cast in [x.cast(other), y.cast(stored)] {
                let texts = testing::ptx(&[&cast]).unwrap();
                assert_eq!(texts.len(), 1);
                let Some(assembled) = ptxas(&texts[0], "sm_90a").required("casts").unwrap() else {
                    return;
                };
                let usage = &assembled.usage[0];
                assert_eq!(usage.stack_bytes, 0, "{stored} and {other}: {usage:?}");
            }
        }
    }
}

#[test]
fn they_are_moved_as_bytes_are() {
    type Moves = fn(&Tensor) -> Tensor;
    const MOVES: &[(&str, Moves)] = &[
        ("transposed", |x| x.reshape([16, 16]).transpose()),
        ("sliced", |x| x.slice([Slice::from(3..200).step(3)])),
        ("flipped", |x| x.flip(0)),
        ("rolled", |x| x.roll(5, 0)),
        ("repeated", |x| x.reshape([256, 1]).expand([256, 3])),
        ("looked up", |x| {
            x.take(&Tensor::from_slice(&[7i32, 0, -1, 255], [4], x.device()), 0)
        }),
        ("stacked", |x| x.stack(&[&x.flip(0)], 0)),
        ("chosen", |x| {
            let place = Tensor::coordinates([256], 0, x.device());
            place.less(100).select(x, x.flip(0))
        }),
        ("laid together", |x| x.concat(&[x], 0)),
    ];
    for device in devices() {
        for dtype in TYPES {
            let bytes: Vec<u8> = (0..=255).collect();
            let plain = Tensor::from_slice(&bytes, [256], &device);
            for (name, moves) in MOVES {
                let (own, of_bytes) = (moves(&every(dtype, &device)), moves(&plain));
                assert_eq!((own.dtype(), own.shape()), (dtype, of_bytes.shape()), "{name}");
                assert_eq!(
                    own.to_bytes().unwrap(),
                    of_bytes.to_vec::<u8>().unwrap(),
                    "{name} on {device:?}"
                );
            }
            // Numbers go into them.
            let zeros = Tensor::zeros([2], dtype, &device).to_bytes().unwrap();
            let ones = Tensor::full([2], 1.5, dtype, &device)
                .cast(DType::F32)
                .to_vec::<f32>()
                .unwrap();
            assert_eq!((zeros, ones), (vec![0, 0], vec![1.5, 1.5]));
            let padded = every(dtype, &device)
                .pad([(1, 0)], 1.5)
                .cast(DType::F32)
                .to_vec::<f32>();
            assert_eq!(padded.unwrap()[..2], [1.5, 0.0]);
        }
    }
}

#[test]
fn they_fuse_with_what_is_around() {
    for device in devices() {
        let x = Tensor::from_slice(&[0.3f32, -7.7, 1000.0], [3], &device);
        let launched = || Statistics::of(&device).launched;
        let before = launched();
        let y = (&x * 2.0).cast(DType::E5m2).cast(DType::F32) + 1.0;
        assert_eq!(y.to_vec::<f32>().unwrap(), [1.625, -15.0, 2049.0]);
        assert_eq!(launched(), before + 1);
        // Their gradients have the type that is made of them, so they add up.
        let x = x.tracked();
        let stored = x.cast(DType::E4m3);
        let loss = (stored.cast(DType::F32) * 3.3 + stored.cast(DType::F32)).sum(..);
        assert_eq!(loss.grad(&[&x]).unwrap()[0].to_vec::<f32>().unwrap(), [4.3; 3]);
    }
}

#[test]
fn gradients_of_two_types_add_up_in_the_wider_one() {
    for device in devices() {
        if !has(&device, DType::F16) {
            continue;
        }
        let wide = |stored: &Tensor| (stored.cast(DType::F32) * 3.3).sum(..);
        let narrow = |stored: &Tensor| (stored.cast(DType::F16) * 0.5).sum(..).cast(DType::F32);
        let numbers = |gradient: &Tensor| gradient.to_vec::<f32>().unwrap();
        let x = Tensor::from_slice(&[0.3f32, -7.7, 100.0], [3], &device).tracked();
        let stored = x.cast(DType::E4m3);
        let loss = narrow(&stored) + wide(&stored);
        assert_eq!(numbers(&loss.grad(&[&x]).unwrap()[0]), [3.8; 3], "{device:?}");
        // Those that are kept by one that is stored itself, too.
        let weight = x.detach().cast(DType::E5m2).tracked();
        narrow(&weight).backward().unwrap();
        assert_eq!(weight.gradient().unwrap().dtype(), DType::F16);
        wide(&weight).backward().unwrap();
        assert_eq!(numbers(&weight.gradient().unwrap()), [3.8; 3], "{device:?}");
    }
}

#[test]
fn what_computes_refuses_them() {
    type Computes = fn(&Tensor) -> Tensor;
    const ALL: &[(&str, Computes)] = &[
        ("add", |x| x + x),
        ("multiply", |x| x * 2.0),
        ("subtract", |x| 1 - x),
        ("of two types", |x| x + x.cast(DType::F32)),
        ("exp", Tensor::exp),
        ("negative", Tensor::negative),
        ("equal", |x| x.equal(0.0)),
        ("isnan", Tensor::isnan),
        ("sum", |x| x.sum(..)),
        ("max", |x| x.max(..)),
        ("mean", |x| x.mean(..)),
        ("matmul", |x| x.reshape([16, 16]).matmul(x.reshape([16, 16]))),
        ("softmax", |x| x.softmax(-1)),
        ("sort", |x| x.sort(0, false)),
        ("argsort of many", |x| x.expand([64, 256]).argsort(-1, false)),
        ("argmax", |x| x.argmax(0)),
        ("cumulative_sum", |x| x.cumulative_sum(0)),
        ("cumulative_sum of many", |x| {
            x.reshape([256, 1]).expand([256, 64]).flatten().cumulative_sum(0)
        }),
        ("relu", Tensor::relu),
        ("sorted values", |x| x.sort(0, true)),
        ("unfolded sums", |x| {
            x.reshape([1, 1, 16, 16])
                .conv2d(&x.reshape([1, 1, 16, 16]), &Window::default())
        }),
        ("fft", |x| x.rfft(0)),
        ("topk", |x| x.topk(3, 0).0),
        ("layer_norm", |x| x.layer_norm(-1, 1e-5)),
        ("logsumexp", |x| x.logsumexp(0)),
        ("var", |x| x.var(..)),
    ];
    for device in devices() {
        for dtype in TYPES {
            for (name, computes) in ALL {
                let error = computes(&every(dtype, &device))
                    .to_bytes()
                    .expect_err(name)
                    .to_string();
                let rule = format!("{dtype} is for storage: cast first, to f32, f16 or bf16");
                assert!(error.contains(&rule), "{name}: {error}");
            }
        }
        let error = Tensor::from_bytes(&[0, 2], DType::Bool, [2], &device)
            .check()
            .unwrap_err();
        assert!(error.to_string().contains("bool is 0 or 1, not 2"), "{error}");
        let error = Tensor::from_bytes(&[0; 6], DType::F32, [2], &device)
            .check()
            .unwrap_err();
        assert!(error.to_string().contains("an element has 4 bytes"), "{error}");
    }
}

#[test]
fn they_are_printed_and_shared() -> Result<(), Error> {
    let device = Device::new(perpetua_device::BackendKind::Cpu, 0).map_err(Error::from)?;
    let x = Tensor::from_bytes(&[0x38, 0xc0, 0x7e, 0x7f], DType::E4m3, [4], &device);
    assert_eq!(x.to_string(), x.cast(DType::F32).to_string());
    assert_eq!(format!("{x:?}"), "e4m3[4] of `from_bytes`");
    let error = Tensor::from_bytes(&[0; 3], DType::E4m3, [4], &device)
        .check()
        .unwrap_err()
        .to_string();
    assert!(error.contains("`from_bytes` of 3 values as e4m3"), "{error}");
    let error = x
        .save_npy(std::env::temp_dir().join("none.npy"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("NumPy has no elements of type e4m3"), "{error}");
    let pack = x.to_dlpack()?;
    assert_eq!((pack.tensor().dtype.code, pack.tensor().dtype.bits), (10, 8));
    // SAFETY: it is a tensor's, which nobody writes to.
    let pack = unsafe { DlPack::from_raw(pack.into_raw()) };
    assert_eq!(Tensor::from_dlpack(pack, &device)?.to_bytes()?, x.to_bytes()?);
    Ok(())
}

#[cfg(feature = "safetensors")]
#[test]
fn they_are_kept_in_files() -> Result<(), Error> {
    let device = Device::new(perpetua_device::BackendKind::Cpu, 0).map_err(Error::from)?;
    let x = Tensor::from_bytes(&[0x38, 0xc0, 0x7e, 0x7f], DType::E4m3, [4], &device);
    let path = std::env::temp_dir().join(format!("perpetua-{}-bytes.safetensors", std::process::id()));
    let y = Tensor::from_bytes(&[0x3c, 0x7c], DType::E5m2, [2], &device);
    perpetua_tensor::save_safetensors(&path, [("a", &x), ("b", &y)])?;
    let text = String::from_utf8_lossy(&std::fs::read(&path).expect("it was written")).into_owned();
    assert!(
        text.contains("\"F8_E4M3\"") && text.contains("\"F8_E5M2\""),
        "{text}"
    );
    let all = perpetua_tensor::load_safetensors(&path, &device)?;
    assert_eq!((all["a"].dtype(), all["b"].dtype()), (DType::E4m3, DType::E5m2));
    assert_eq!(
        (all["a"].to_bytes()?, all["b"].to_bytes()?),
        (x.to_bytes()?, y.to_bytes()?)
    );
    std::fs::remove_file(&path).expect("it was written");
    Ok(())
}
