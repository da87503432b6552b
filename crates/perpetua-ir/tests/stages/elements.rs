//! What stages may hold: each kind of element is multiplied, and compared with `f64`.

use perpetua_cpu::interp::{Arg, BufferRef, Interpreter, LaunchConfig};
use perpetua_ir::ir::{Kernel, Scalar, StageElement};
use perpetua_ir::verify::verify;

use super::{BLOCK, HEAD, OWN, STAGES, body, dense, stores};

/// What an element of so many bits is, written another way than the interpreter has it.
fn number(element: StageElement, bits: u32) -> f64 {
    let float = |digits: u32, exponents: u32, bias: i32| {
        let (low, exponent) = (
            bits & ((1 << digits) - 1),
            (bits >> digits & ((1 << exponents) - 1)) as i32,
        );
        let sign = if bits >> (digits + exponents) == 0 {
            1.0
        } else {
            -1.0
        };
        let one = if exponent == 0 { 0 } else { 1 << digits };
        sign * f64::from(one + low) * 2f64.powi(exponent.max(1) - bias - digits as i32)
    };
    match element {
        StageElement::F16 => float(10, 5, 15),
        StageElement::Bf16 => float(7, 8, 127),
        StageElement::Tf32 => float(23, 8, 127),
        StageElement::E4m3 => float(3, 4, 7),
        StageElement::E5m2 => float(2, 5, 15),
        StageElement::I8 => f64::from(bits as i8),
        StageElement::U8 => f64::from(bits),
    }
}

#[test]
fn every_element_is_multiplied() {
    for element in StageElement::ALL {
        let (memory, sums, size) = (element.memory(), element.sums(), element.memory().size() as usize);
        let depth = element.depth() as usize;
        // All rows begin at multiples of 16 bytes.
        let k = 3 * depth - 16 / size;
        let mut state = 5u64;
        let mut numbers = || -> Vec<u32> {
            let next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let random = (state >> 33) as u32;
                match element {
                    // No more digits than count, of about one.
                    StageElement::F16 => 0x3c00 ^ random & 0x87ff,
                    StageElement::Bf16 => 0x3f80 ^ random & 0x80ff,
                    StageElement::Tf32 => 0x3f80_0000 ^ random & 0x807f_e000,
                    // What is not a number has digits or an exponent of ones.
                    StageElement::E4m3 => random & 0xf7,
                    StageElement::E5m2 => random & 0xbf,
                    StageElement::I8 | StageElement::U8 => random & 0xff,
                }
            };
            std::iter::repeat_with(next).take(64 * k).collect()
        };
        let (a, b) = (numbers(), numbers());
        // Of `f32` the low bits do not count.
        let stored = |x: &u32| x | if element == StageElement::Tf32 { 0x1fff } else { 0 };
        let bytes = |all: &[u32]| -> Vec<u8> {
            let each = all.iter().map(|x| stored(x).to_le_bytes());
            each.flat_map(|bytes| bytes.into_iter().take(size)).collect()
        };
        let typed = |text: String| {
            text.replace("buffer<bf16", &format!("buffer<{memory}"))
                .replace("stages(2, bf16", &format!("stages(2, {element}"))
                .replace("[[f32", &format!("[[{sums}"))
                .replace(": [f32", &format!(": [{sums}"))
                .replace("buffer<f32, read_write", &format!("buffer<{sums}, read_write"))
                .replace("%84: f32", &format!("%84: {sums}"))
        };
        let body = body(3, 3, ["%85: u32 = const 128", &stores(3, OWN), ""])
            .replace("const 64\n    fill", "const DEPTH\n    fill")
            .replace("const 128\n    fill", &format!("const {}\n    fill", 2 * depth))
            .replace("DEPTH", &depth.to_string());
        let text = dense(&typed(format!("{HEAD} {BLOCK} {STAGES} {{\n  {body}\n}}\n")));
        let text = text.replace(": f32 = extract", &format!(": {sums} = extract"));
        let verified = verify(text.parse::<Kernel>().unwrap_or_else(|e| panic!("{e}\n{text}")))
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut c = vec![0u32; 128];
        let (rows, k_bytes) = (64u64.to_ne_bytes(), (k as u64).to_ne_bytes());
        // Of words, so that they are aligned.
        let words = |bytes: &[u8]| -> Vec<u32> {
            let fours = bytes
                .chunks(4)
                .map(|four| four.iter().rev().fold(0, |w, b| w << 8 | u32::from(*b)));
            fours.collect()
        };
        let (mut a_words, mut b_words) = (words(&bytes(&a)), words(&bytes(&b)));
        let args = [
            Arg::Buffer(BufferRef::from_slice(&mut a_words)),
            Arg::Buffer(BufferRef::from_slice(&mut b_words)),
            Arg::Buffer(BufferRef::from_slice(&mut c)),
            Arg::Value(&rows),
            Arg::Value(&rows),
            Arg::Value(&k_bytes),
            Arg::Value(&rows),
            Arg::Value(&rows),
        ];
        let interpreter = Interpreter::new(&verified).unwrap();
        interpreter
            .launch(&LaunchConfig::new([1, 1, 1], [256, 1, 1], &args))
            .unwrap();
        for (lane, found) in c.into_iter().enumerate() {
            let (row, column) = (lane / 4 + lane / 32 * 8, lane % 4 * 2);
            let products =
                (0..k).map(|i| number(element, a[row * k + i]) * number(element, b[column * k + i]));
            let (sum, size) = products.fold((0.0, 0.0), |(sum, size), p: f64| (sum + p, size + p.abs()));
            let (found, bound) = match sums {
                Scalar::I32 => (f64::from(found as i32), 0.0),
                _ => (f64::from(f32::from_bits(found)), size * k as f64 * 6e-8),
            };
            assert!(
                (found - sum).abs() <= bound,
                "{element}, lane {lane}: {found} not {sum}"
            );
        }
    }
}
