//! Kernels as ordinary Rust against the same text lowered and interpreted: equal to the bit.

use std::fmt::Debug;

use bytemuck::Pod;
use perpetua_cpu::interp::{Arg, BufferRef};
use perpetua_ir::front::rust::Instantiation;

use crate::run::{kernel, launch};
use crate::{lanes, programs};

const NUMBERS: &str = include_str!("programs/numbers.rs");
const CONTROL: &str = include_str!("programs/control.rs");
const DATA: &str = include_str!("programs/data.rs");
const GENERICS: &str = include_str!("programs/generics.rs");
const INFERENCE: &str = include_str!("programs/inference.rs");

/// All programs, by name.
pub(crate) const PROGRAMS: [(&str, &str); 5] = [
    ("numbers", NUMBERS),
    ("control", CONTROL),
    ("data", DATA),
    ("generics", GENERICS),
    ("inference", INFERENCE),
];

/// The text with its marks as the front end reads them; for rustc they are switched off.
pub(crate) fn marked(text: &str) -> String {
    text.replace("cfg_attr(any(), derive(GpuType))", "derive(GpuType)")
        .replace("cfg_attr(any(), device)", "device")
        .replace("cfg_attr(any(), kernel)", "kernel")
}

/// Runs `native` and the kernel of that name with the same inputs, one lane for each, and compares what they write.
fn check<T: Pod, U: Pod + Debug + Default>(
    text: &str,
    name: &str,
    native: fn(&[T], &mut [U]),
    inputs: &[T],
    per_lane: usize,
) {
    let mut expected = vec![U::default(); inputs.len() * per_lane];
    for lane in 0..inputs.len() {
        lanes::set_lane(lane);
        native(inputs, &mut expected);
    }
    for pointer_width in [64, 32] {
        let how = Instantiation {
            pointer_width,
            ..Instantiation::default()
        };
        let kernel = kernel(&marked(text), name, &how);
        assert_eq!(inputs.len() % lanes::BLOCK, 0);
        let grid = [(inputs.len() / lanes::BLOCK) as u32, 1, 1];
        let mut inputs = inputs.to_vec();
        let mut out = vec![U::default(); expected.len()];
        let args = [
            Arg::Buffer(BufferRef::from_slice(&mut inputs)),
            Arg::Buffer(BufferRef::from_slice(&mut out)),
        ];
        launch(&kernel, grid, [lanes::BLOCK as u32, 1, 1], &args).unwrap_or_else(|e| panic!("{name}: {e}"));
        let shown = kernel.kernel();
        for (at, (want, have)) in expected.iter().zip(&out).enumerate() {
            // As text, so that all NaNs are alike and zeros are not.
            assert_eq!(
                format!("{want:?}"),
                format!("{have:?}"),
                "{name}: element {at}, pointer width {pointer_width}\n{shown}"
            );
        }
    }
}

fn ints() -> Vec<i32> {
    let edges = [
        0,
        1,
        -1,
        2,
        -2,
        3,
        7,
        10,
        31,
        32,
        33,
        99,
        100,
        127,
        128,
        -128,
        -129,
        150,
        199,
        200,
        255,
        256,
        1000,
        i32::MAX,
        i32::MIN,
        i32::MAX - 1,
        i32::MIN + 1,
        0x5555_5555,
        -0x5555_5556,
        65535,
        65536,
        -65536,
    ];
    let mut all = edges.to_vec();
    let mut state = 12345u32;
    while all.len() < 256 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        all.push((state >> (state >> 28)) as i32);
    }
    all
}

fn floats() -> Vec<f32> {
    let mut all = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        3.25,
        10.5,
        -7.75,
        100.0,
        1e10,
        -1e10,
        1e-10,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        1e-40,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        0.1,
        12.0,
        16_777_216.0,
        -3.0,
        4.0,
        5.5,
        -6.25,
        7.0,
        8.125,
    ];
    all.extend(ints().into_iter().take(32).map(|i| i as f32 * 0.37));
    all
}

/// Floats of moderate size, for sums.
fn tame() -> Vec<f32> {
    (0..64).map(|i| ((i * 37) % 64) as f32 * 0.75 - 17.0).collect()
}

#[test]
fn numbers() {
    use programs::numbers::*;
    check(NUMBERS, "int_methods", int_methods, &ints(), 1);
    let wide: Vec<f64> = floats().into_iter().map(f64::from).collect();
    check(NUMBERS, "casts", casts, &wide, 1);
    check(NUMBERS, "float_methods", float_methods, &floats(), 20);
    let bytes: Vec<u8> = (0..=255).collect();
    check(NUMBERS, "narrow", narrow, &bytes, 1);
    let words: Vec<u32> = ints().into_iter().map(|i| i as u32 & 0xffff).collect();
    check(NUMBERS, "inference", inference, &words, 1);
}

#[test]
fn control() {
    use programs::control::*;
    check(CONTROL, "ranges", ranges, &ints(), 1);
    let words: Vec<u32> = ints().into_iter().map(|i| i as u32 & 0xffff).collect();
    check(CONTROL, "loops", loops, &words, 1);
    let small: Vec<i32> = ints().into_iter().map(|i| i % 1000).collect();
    check(CONTROL, "matches", matches, &small, 1);
    check(CONTROL, "values", values, &tame(), 1);
    check(CONTROL, "order", order, &small, 1);
}

#[test]
fn data() {
    use programs::data::*;
    check(DATA, "arrays", arrays, &tame(), 1);
    check(DATA, "structs", structs, &tame(), 1);
    check(DATA, "calls", calls, &tame(), 1);
}

#[test]
fn generics() {
    use programs::generics::*;
    check(GENERICS, "generic_types", generic_types, &tame(), 1);
}

#[test]
fn inference() {
    use programs::inference::*;
    let inputs: Vec<i16> = ints().into_iter().map(|i| i as i16 / 3).collect();
    check(INFERENCE, "literals", literals, &inputs, 1);
}
