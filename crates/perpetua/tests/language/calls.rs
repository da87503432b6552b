//! Functions in iterators that change something through what they are given run for the items for which Rust runs them, and what an adaptor is called on is
//! computed where it stands.

use perpetua::prelude::*;

use crate::harness::check;
use crate::sweep::SIZE;

#[device]
fn draw(drawn: &mut [u32; 2], by: u32) -> u32 {
    drawn[0] += 1;
    drawn[1] = drawn[1].wrapping_mul(31) + by;
    drawn[1] ^ drawn[0]
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Dice {
    state: u32,
}

#[device]
impl Dice {
    fn roll(&mut self) -> u32 {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.state >> 16
    }
}

#[device]
fn rolls(dice: &mut Dice, part: &[u32]) -> u32 {
    let mut all = part.iter().map(|v| *v ^ dice.roll()).nth(2).unwrap_or(1);
    all ^= part
        .iter()
        .map(|v| *v ^ dice.roll())
        .skip(1)
        .step_by(2)
        .sum::<u32>();
    all.wrapping_mul(7) ^ dice.state
}

#[device]
fn drawn(by: &mut [u32; 2], part: &[u32]) -> u32 {
    let mut all = part.iter().map(|v| draw(by, *v)).last().unwrap_or(5);
    all ^= part.iter().map(|v| draw(by, *v)).count() as u32;
    all
}

#[kernel]
fn through(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut by = [0u32, i as u32];
    let mut dice = Dice { state: i as u32 };
    let all = drawn(&mut by, &x[..i % 7]) ^ rolls(&mut dice, &x[..i % 5]);
    y[i] = all ^ by[0].wrapping_mul(17) ^ by[1] ^ dice.state;
}

#[kernel]
fn at_once(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut k = i as u32;
    let mut all = 1u32;
    for (a, b) in x.iter().zip([1u32, 2, 3].map(|v| v * k)) {
        k += a + 1;
        all = all.wrapping_mul(5) ^ b;
    }
    for v in x[..i % 3].iter().copied().chain(x.get(i).map(|v| v * k)) {
        k += v;
        all = all.wrapping_mul(5) ^ v;
    }
    for v in (0..2u32).chain(Some(k).filter(|v| *v % 2 == 0)) {
        all = all.wrapping_mul(5) ^ v;
    }
    y[i] = all;
}

#[test]
fn functions_are_called_as_in_rust() {
    let x: Vec<u32> = (0..SIZE as u32).map(|i| i * 3 + 1).collect();
    check(through::kernel(), through, &x, &[0; SIZE]);
    check(at_once::kernel(), at_once, &x, &[0; SIZE]);
}
