//! Cells of matrices that the lanes of a subgroup hold together: where each element lies, and products within their bound. Expectations are made
//! here from whole matrices; the interpreter is a device like any other.

use half::{bf16, f16};
use perpetua_cpu::testing::Random;
use perpetua_ir::back::Capability;
use perpetua_ir::verify::verify;

use super::control::kernel;
use super::{Cell, Check, Failure, Need, same_all};
use crate::args;
use crate::device::Device;
use crate::dim::LaunchConfig;
use crate::kernel::Kernel;

const PROGRAMS: &str = include_str!("programs/matrices.rs");

/// Subgroups in a launch: of two blocks.
const GROUPS: usize = 4;
const LANES: usize = 32 * GROUPS;

pub(super) fn cells() -> Vec<Cell> {
    let cells = vec![
        Cell::new("matrices/products of f16", |d| {
            products(d, "of_f16", 2, |x| {
                let x = f16::from_f32(x);
                (x.to_bits().into(), x.to_f64())
            })
        }),
        Cell::new("matrices/products of bf16", |d| {
            products(d, "of_bf16", 2, |x| {
                let x = bf16::from_f32(x);
                (x.to_bits().into(), x.to_f64())
            })
        }),
        // Half of the bits that do not count are set.
        Cell::new("matrices/products of tf32", |d| {
            products(d, "of_tf32", 1, |x| {
                let bits = x.to_bits() & !0x1fff;
                (bits | 0x0aaa, f32::from_bits(bits).into())
            })
        }),
        Cell::new("matrices/rows and columns", distributed),
        Cell::new("matrices/rows of memory that changes", changed),
    ];
    let all = cells.into_iter();
    all.map(|c| {
        c.needs(Need::Compute)
            .needs(Need::Capability(Capability::Matrices))
    })
    .collect()
}

fn compiled(device: &Device, name: &str) -> Result<Kernel, Failure> {
    let kernel = kernel(device, PROGRAMS, "matrices.rs", name)?;
    let verified = verify(kernel).map_err(|e| Failure(e.to_string()))?;
    Ok(device.compile_ir(&verified)?)
}

fn config() -> LaunchConfig {
    LaunchConfig::new(GROUPS as u32 / 2, 64)
}

/// A product of each subgroup; `stored` gives the bits of a number and what it is then, `in_word` says how many lie in a word.
fn products(device: &Device, name: &str, in_word: usize, stored: fn(f32) -> (u32, f64)) -> Check {
    let depth = 8 * in_word;
    let bits = 32 / in_word;
    let kernel = compiled(device, name)?;
    for round in 0..8u64 {
        let mut random = Random::new(round);
        // Numbers of many sizes in later rounds, so that a wrong order of magnitude is no accident.
        let mut number = move || {
            let unit = (random.bits() >> 44) as f32 / (1 << 19) as f32 - 1.0;
            unit * 2f32.powi((random.bits() % (1 + 2 * round)) as i32 - round as i32)
        };
        let (mut a, mut b) = (vec![0u32; 4 * LANES], vec![0u32; 2 * LANES]);
        let (mut c, mut expect) = (vec![0f32; 4 * LANES], vec![(0.0, 0.0); 4 * LANES]);
        for group in 0..GROUPS {
            let mut left = vec![[0.0; 16]; 16];
            let mut right = vec![[0.0; 8]; 16];
            for k in 0..depth {
                // Elements side by side in a word, words in four lanes, and once more.
                let (half, lane, which) = (k / (4 * in_word), k / in_word % 4, k % in_word);
                for (row, left) in left.iter_mut().enumerate() {
                    let (word, value) = stored(number());
                    left[k] = value;
                    a[4 * (32 * group + 4 * (row % 8) + lane) + 2 * half + row / 8] |=
                        word << (bits * which % 32);
                }
                for column in 0..8 {
                    let (word, value) = stored(number());
                    right[k][column] = value;
                    b[2 * (32 * group + 4 * column + lane) + half] |= word << (bits * which % 32);
                }
            }
            for (row, left) in left.iter().enumerate() {
                for column in 0..8 {
                    let at = 4 * (32 * group + 4 * (row % 8) + column / 2) + row / 8 * 2 + column % 2;
                    c[at] = number();
                    let start = (f64::from(c[at]), f64::from(c[at]).abs());
                    let products = left.iter().zip(&right).map(|(l, r)| l * r[column]);
                    expect[at] = products.fold(start, |(sum, size), p| (sum + p, size + p.abs()));
                }
            }
        }
        let out = device.full(4 * LANES, f32::NAN)?;
        let (a, b, c) = (device.upload(&a)?, device.upload(&b)?, device.upload(&c)?);
        device.launch(&kernel, config(), args![&a, &b, &c, &out])?;
        for (i, (found, (sum, size))) in out.read()?.into_iter().zip(expect).enumerate() {
            let off = (f64::from(found) - sum).abs();
            if off.is_nan() || off > size / f64::from(1 << 20) {
                let text =
                    format!("round {round}, number {i}: found {found}, expected {sum}, of sizes {size}");
                return Err(Failure(text));
            }
        }
    }
    Ok(())
}

/// Words that all differ.
fn words() -> Vec<u32> {
    let element = |i: u32| i.wrapping_mul(0x9e37).wrapping_add(7) & 0xffff;
    let all = 0..4 * LANES as u32;
    all.map(|i| element(2 * i) | element(2 * i + 1) << 16).collect()
}

/// Word `matrix` of what a lane gets.
fn part(x: &[u32], lane: usize, matrix: usize, transposed: bool) -> u32 {
    let (first, q, r) = (lane / 32 * 32, lane % 32 / 4, lane % 4);
    let element = |row: usize, column: usize| {
        let brings = first + 8 * matrix + row;
        x[4 * brings + column / 2] >> (16 * (column % 2)) & 0xffff
    };
    let [low, high] = [2 * r, 2 * r + 1].map(|i| match transposed {
        false => element(q, i),
        true => element(i, q),
    });
    low | high << 16
}

fn expected(x: &[u32], transposed: bool) -> Vec<u32> {
    let all = 0..4 * LANES;
    all.map(|i| part(x, i / 4, i % 4, transposed)).collect()
}

fn distributed(device: &Device) -> Check {
    let kernel = compiled(device, "distributed")?;
    let x = words();
    let input = device.upload(&x)?;
    let out = [(); 4].map(|()| device.full(4 * LANES, 0xabcd_ef01u32));
    let [rows, columns, loaded, turned] = out;
    let (rows, columns, loaded, turned) = (rows?, columns?, loaded?, turned?);
    device.launch(
        &kernel,
        config(),
        args![&input, &rows, &columns, &loaded, &turned],
    )?;
    same_all("rows", &rows.read()?, &expected(&x, false))?;
    same_all("columns", &columns.read()?, &expected(&x, true))?;
    same_all("rows in memory", &loaded.read()?, &expected(&x, false))?;
    same_all("columns in memory", &turned.read()?, &expected(&x, true))
}

fn changed(device: &Device) -> Check {
    let kernel = compiled(device, "changed")?;
    let x = words();
    let (input, out) = (device.upload(&x)?, device.full(4 * LANES, 1u32)?);
    device.launch(&kernel, config(), args![&input, &out])?;
    same_all("rows", &out.read()?, &expected(&x, false))
}
