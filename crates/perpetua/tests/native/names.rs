//! Names and numbers that mean something else to rustc than they seem to: what is proven must be proven of what runs.

use perpetua::prelude::*;

use crate::harness::{Argument, B, Proven, V, agree, check, proves};

/// To rustc the caller's names and the macro's are two; the tree knows them by their text.
macro_rules! two_of_a_name {
    ($i:ident) => {
        #[kernel]
        fn two_names(out: &mut [u32], far: u64) {
            let $i = far as usize;
            let i = global_id_x();
            if i < out.len() {
                out[$i] = 1;
            }
        }

        #[device]
        fn chosen(far: u64, near: usize) -> usize {
            let $i = far as usize;
            let i = near;
            if i > 1_000_000 { i } else { $i }
        }

        #[kernel]
        fn two_names_in_a_call(out: &mut [u32], far: u64) {
            out[chosen(far, global_id_x())] = 2;
        }
    };
}

two_of_a_name!(i);

#[test]
fn names_of_two_macros_are_one() {
    let out = vec![0u32; 64];
    let (config, far) = (LaunchConfig::new(2, 32), V(1u64 << 40));
    agree(two_names::kernel(), config, &[&B(&out), &far], Proven::All);
    agree(
        two_names_in_a_call::kernel(),
        config,
        &[&B(&out), &far],
        Proven::All,
    );
}

#[derive(Copy, GpuType)]
#[repr(C)]
struct Off {
    k: u32,
}

#[expect(clippy::non_canonical_clone_impl, reason = "the test's point")]
impl Clone for Off {
    fn clone(&self) -> Off {
        Off {
            k: self.k + 1_000_000,
        }
    }
}

#[kernel]
#[expect(clippy::clone_on_copy, reason = "the test's point")]
fn cloned(out: &mut [u32], p: Off) {
    let i = global_id_x();
    let q = p.clone();
    if i + (q.k as usize) < out.len() {
        out[i + q.k as usize] = 1;
    }
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Modular {
    n: u32,
}

#[device]
impl std::ops::Add<u32> for Modular {
    type Output = Modular;
    fn add(self, by: u32) -> Modular {
        Modular { n: (self.n + by) % 7 }
    }
}

#[device]
impl std::ops::ShlAssign<Modular> for Modular {
    fn shl_assign(&mut self, by: Modular) {
        self.n = (self.n << by.n) % 7;
    }
}

#[device]
impl std::ops::Index<usize> for Modular {
    type Output = u32;
    fn index(&self, _: usize) -> &u32 {
        &self.n
    }
}

#[device]
fn modular(n: u32) -> Modular {
    Modular { n: n % 7 }
}

#[device]
fn greater<'a>(a: &'a u32, b: &'a u32) -> &'a u32 {
    if *a > *b { a } else { b }
}

#[kernel]
fn adds_what_a_function_gave(out: &mut [u32]) {
    let i = global_id_x();
    let far = modular(i as u32) + 4_000_000_000;
    if i < out.len() {
        out[i] = far.n;
    }
}

#[kernel]
fn shifts_and_asks(out: &mut [u32], by: Modular) {
    let i = global_id_x();
    let mut p = modular(3);
    p <<= by;
    if i < out.len() {
        out[i] = p[i];
    }
}

#[kernel]
fn adds_references(out: &mut [u32]) {
    let i = global_id_x();
    let (a, b) = (i as u32, 4_294_967_290);
    let g = greater(&a, &b);
    if i < out.len() {
        out[i] = a + g - (g * g) / g;
    }
}

/// What rustc makes of a user's own code is not run in the IR's place.
#[test]
fn what_the_host_says_is_not_run() {
    let out = vec![0u32; 64];
    let config = LaunchConfig::new(2, 32);
    let args: [&dyn Argument; 2] = [&B(&out), &V(Off { k: 0 })];
    agree(cloned::kernel(), config, &args, Proven::Elsewhere);
    agree(
        adds_what_a_function_gave::kernel(),
        config,
        &args[..1],
        Proven::Elsewhere,
    );
    let args: [&dyn Argument; 2] = [&B(&out), &V(Modular { n: 5 })];
    agree(shifts_and_asks::kernel(), config, &args, Proven::Elsewhere);
    agree(adds_references::kernel(), config, &args[..1], Proven::Elsewhere);
}

#[kernel]
fn cut_to_a_byte(out: &mut [u32]) {
    let t = local_id_x();
    let w = t as u8 as usize;
    if t >= 256 {
        out[w - 256] = 1;
    }
}

#[kernel]
fn groups_by_byte(out: &mut [u32]) {
    out[group_id_x() as u8 as usize] = 1;
}

#[kernel]
fn groups_by_sign(out: &mut [u32]) {
    out[(group_id_x() as i8 as isize + 128) as usize] = 1;
}

#[kernel]
fn block_by_byte(x: &[u32], out: &mut [u32]) {
    out[global_id_x()] = x[block_dim_x() as u8 as usize + global_id_x()];
}

#[kernel]
fn beyond_31_bits(out: &mut [u32]) {
    let y = block_idx_y() as i64;
    if y >= 2_147_483_648 {
        out[(y - 2_147_483_648) as usize] = 1;
    }
}

#[test]
fn indices_that_are_cut_wrap() {
    let out = vec![0u32; 768];
    let fault = check(
        cut_to_a_byte::kernel(),
        LaunchConfig::new(1, 1024),
        &[&B(&out)],
        Proven::Exactly(256),
    );
    assert!(fault.is_some());
    let many = LaunchConfig::new(512, 1);
    proves(groups_by_byte::kernel(), many, &[&B(&out[..256])], Proven::None);
    proves(groups_by_sign::kernel(), many, &[&B(&out[..256])], Proven::None);
    agree(
        block_by_byte::kernel(),
        LaunchConfig::new(1, 256),
        &[&B(&out), &B(&out[..256])],
        Proven::AtLeast(0),
    );
    proves(
        beyond_31_bits::kernel(),
        LaunchConfig::new((1, (1 << 31) + 4, 1), 1),
        &[&B(&out)],
        Proven::None,
    );
}

macro_rules! many_conditions {
    ($($n:literal)*) => {
        #[kernel]
        fn many_conditions(x: &[u32], out: &mut [u32]) {
            let i = global_id_x();
            let mut sum = 0;
            $(
                if x[i] == $n {
                    sum += $n;
                }
            )*
            out[i] = sum;
        }
    };
}

many_conditions!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44
    45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
);

#[test]
fn conditions_without_a_number_are_no_others() {
    let x: Vec<u32> = (0..128).collect();
    let config = LaunchConfig::new(4, 32);
    agree(
        many_conditions::kernel(),
        config,
        &[&B(&x), &B(&x.clone())],
        Proven::All,
    );
}

/// Methods that rustc finds in a trait, since integers without a sign have none of these names.
#[device]
trait Folded {
    fn abs(self) -> Self;
    fn signum(self) -> Self;
    fn halved(self) -> Self;
}

#[device]
impl Folded for u32 {
    fn abs(self) -> u32 {
        self & 7
    }

    fn signum(self) -> u32 {
        self % 5
    }

    fn halved(self) -> u32 {
        self / 2
    }
}

#[kernel]
fn stores_folded(y: &mut [u32], n: u32) {
    let i = global_id_x();
    if i + 8 < y.len() {
        y[i + n.abs() as usize] = 1;
    }
}

#[kernel]
fn loads_folded(x: &[u32], y: &mut [u32], n: u32) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = x[(n.signum() + u32::halved(n) % 3) as usize];
    }
}

/// A trait's method is not the scalar's of the same name, of which accesses would not be proven.
#[test]
fn methods_of_traits_are_not_those_of_scalars() {
    let (x, y) = ((0..8).collect::<Vec<u32>>(), vec![0u32; 64]);
    let config = LaunchConfig::new(1, 64);
    for n in [100u32, 1 << 30, u32::MAX] {
        let elsewhere = Proven::Elsewhere;
        agree(stores_folded::kernel(), config, &[&B(&y), &V(n)], elsewhere);
        agree(
            loads_folded::kernel(),
            config,
            &[&B(&x), &B(&y), &V(n)],
            elsewhere,
        );
    }
}
