//! Bugs planted in the code's bytes.

use super::*;

/// Puts a byte in place of another wherever such bytes stand; `None` stands for any.
fn replace(code: &mut [u8], from: &[Option<u8>], at: usize, to: u8) {
    for start in 0..code.len().saturating_sub(from.len()) {
        let window = &code[start..start + from.len()];
        if window.iter().zip(from).all(|(b, f)| f.is_none_or(|f| f == *b)) {
            code[start + at] = to;
        }
    }
}

/// Of words that are `word` under `mask`, the other of each of the `bits`.
fn flip(code: &mut [u8], mask: u32, word: u32, bits: u32) {
    for bytes in code.as_chunks_mut::<4>().0 {
        let found = u32::from_le_bytes(*bytes);
        if found & mask == word {
            *bytes = (found ^ bits).to_le_bytes();
        }
    }
}

/// Bugs of the kinds that a generator has are found by generated kernels: so the comparison compares something.
#[test]
fn planted_bugs_are_found() {
    let any = None;
    type Bug = (&'static str, Vec<Option<u8>>, usize, u8);
    // Vectors are put together of halves by another instruction at each of the two widths.
    let halves = |opcode: u8| -> Bug {
        (
            "halves of lanes are in a wrong order",
            vec![Some(0x62), any, any, any, Some(opcode), any, Some(0x01)],
            6,
            0x00,
        )
    };
    let bugs: [Bug; 7] = [
        (
            "code that does nothing",
            [0x53, 0x55, 0x41, 0x54].map(Some).to_vec(),
            0,
            0xC3,
        ),
        (
            "lanes of the other branch stay (a mask is taken for its complement)",
            vec![Some(0xC4), any, any, Some(0x42), any],
            3,
            0x41,
        ),
        (
            "lanes that join are lost",
            vec![Some(0xC4), any, Some(0x74), Some(0x45), any],
            3,
            0x41,
        ),
        (
            "a sum is a difference",
            vec![Some(0x62), any, any, any, Some(0xFE)],
            4,
            0xFA,
        ),
        (
            "a bitwise and is an or",
            vec![Some(0x62), any, any, any, Some(0xDB)],
            4,
            0xEB,
        ),
        (
            "a choice is the greater one",
            vec![Some(0x62), any, any, any, Some(0x64)],
            4,
            0x3D,
        ),
        (
            "a register is lost over a call (it is saved as another)",
            vec![Some(0x62), Some(0x41), Some(0x7E), any, Some(0x7F), Some(0x9E)],
            5,
            0x96,
        ),
    ];
    // The same without mask registers, where lanes lie in halves of vectors besides.
    let narrow: [Bug; 7] = [
        bugs[0].clone(),
        (
            "lanes of the other branch stay (a mask is taken for its complement)",
            vec![Some(0xC4), any, any, Some(0xDF), any],
            3,
            0xDB,
        ),
        (
            "lanes that join are lost",
            vec![Some(0xC4), any, any, Some(0xEB), any],
            3,
            0xDB,
        ),
        (
            "a sum is a difference",
            vec![Some(0xC4), any, any, Some(0xFE), any],
            3,
            0xFA,
        ),
        (
            "a mask counts for lanes in pairs",
            vec![Some(0xC4), any, any, Some(0x4A), any],
            3,
            0x4B,
        ),
        (
            "halves of lanes are in a wrong order",
            vec![Some(0xC4), any, any, Some(0x38), any, Some(0x01)],
            5,
            0x00,
        ),
        (
            "a register is lost over a call (it is saved as another)",
            vec![Some(0xC4), Some(0x41), Some(0x7E), Some(0x7F), Some(0x86)],
            4,
            0x8E,
        ),
    ];
    // AArch64 has a bit for most of these differences: mask, word and what is flipped.
    let neon = [
        ("a store is a load", 0xFFFF_0000, 0x3D80_0000, 1 << 22),
        (
            "lanes of the other branch stay (a mask is taken for its complement)",
            0xFFFF_FC00,
            0x4E3B_1C00,
            1 << 22,
        ),
        ("lanes that join are lost", 0xFFE0_FFFF, 0x4EA0_1F7B, 1 << 29),
        ("a sum is a difference", 0xFFE0_FC00, 0x4EA0_8400, 1 << 29),
        ("a choice is the other one", 0xFFE0_FC00, 0x6EA0_1C00, 1 << 22),
        (
            "halves of lanes are in a wrong order",
            0xFFE0_FC00,
            0x4E80_1800,
            1 << 14,
        ),
        (
            "a register is lost over a call (it is restored as another)",
            0xFFC0_03FF,
            0x3DC0_0396,
            3,
        ),
    ];
    for width in Width::detect() {
        type Plant<'p> = (&'p str, Box<dyn Fn(&mut [u8]) + 'p>);
        let of_bytes: Vec<Bug> = match width {
            Width::EightAvx2 => narrow.to_vec(),
            Width::Eight => [&bugs[..], &[halves(0x38)]].concat(),
            _ => [&bugs[..], &[halves(0x3A)]].concat(),
        };
        let plants: Vec<Plant<'_>> = match width {
            Width::FourNeon => neon
                .iter()
                .map(|(name, mask, word, bits)| -> Plant<'_> {
                    (name, Box::new(|code| flip(code, *mask, *word, *bits)))
                })
                .collect(),
            _ => of_bytes
                .iter()
                .map(|(name, from, at, to)| -> Plant<'_> {
                    (name, Box::new(|code| replace(code, from, *at, *to)))
                })
                .collect(),
        };
        for (name, plant) in &plants {
            let found = (0..400u64).any(|seed| {
                let config = Config {
                    statements: 20,
                    ..Config::default()
                };
                let tape = tape(seed, config.statements * 30);
                let case = generate(&config, &mut Choices::new(&tape)).unwrap();
                matches!(compare_changed(&case, *width, plant), Ok(Some(_)))
            });
            assert!(found, "nothing finds: {name} ({width:?})");
        }
    }
}
