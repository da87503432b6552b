//! Assertions and panics with messages: the fault on each device has the text with which plain Rust panics.

#![allow(
    clippy::todo,
    clippy::unimplemented,
    clippy::expect_used,
    reason = "kernels are written as users write them"
)]

use perpetua::prelude::*;

use crate::harness::{check, floats, panics};

#[kernel]
fn asserted(x: &[f32], y: &mut [u32]) {
    let i = global_id_x();
    if i < y.len() {
        let v = x[i];
        assert!(v > -100.0);
        assert!(v.abs() < 64.0, "lane {i}: {v:.2} is too large, {:?}", v as i32);
        assert_eq!(v as i32, x[i] as i32, "never");
        assert_ne!(v, -101.0);
        debug_assert!(v < 200.0, "also never");
        y[i] = v as u32 + 1;
    }
}

#[kernel]
fn compared(x: &[i32], y: &mut [u32]) {
    let i = global_id_x();
    if i < y.len() {
        let v = x[i];
        if v == 7 {
            assert_eq!(v * 2, v + 8, "in {} of {}", i, y.len());
        } else if v == 8 {
            assert_ne!(v as i8 - 1, 7);
        } else if v == 9 {
            debug_assert_eq!(v as u8 as f32 * 0.5, 1.0);
        }
        y[i] = v as u32;
    }
}

#[device]
fn checked_root(v: f32) -> f32 {
    if v < 0.0 {
        panic!("the root of {v}, {:08.3} {:>6}", v, v == -2.0);
    }
    v.sqrt()
}

#[device]
fn kind_of(v: u32) -> u32 {
    match v % 10 {
        0 => todo!(),
        1 => todo!("kind {}", v),
        2 => unimplemented!("kind {v:#x}"),
        3 => unreachable!("kind {}", v as u8),
        4 => unreachable!(),
        5 => panic!("{{braces}} and 100%"),
        6 => panic!(
            "four: {} {} {} {}",
            v as i8,
            v as i32 - 100,
            v as u16,
            v as f32 / 8.0
        ),
        k => k,
    }
}

#[device]
fn small(v: u32) -> Result<u32, u32> {
    if v < 100 { Ok(v) } else { Err(v * 2) }
}

#[kernel]
fn unwrapped(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    if i < y.len() {
        let v = x[i];
        let near = v.checked_sub(3);
        y[i] = match v % 4 {
            0 => near.unwrap() + 1,
            1 => near.expect("at least three") + 2,
            2 => small(v).unwrap() + 3,
            _ => small(v).expect("small") + 4,
        };
    }
}

#[kernel]
fn rooted(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = checked_root(x[i]);
    }
}

#[kernel]
fn kinds(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = kind_of(x[i]);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Point {
    x: f32,
    side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(i8)]
enum Side {
    Left = -2,
    Right = 9,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Pair<T>(T, u8);

#[derive(Clone, Copy, Debug, GpuType)]
enum Hit {
    Miss,
    Near(f32),
    Far { side: Side, by: (u32, bool) },
}

#[device]
fn hit(v: u32) -> Result<Pair<i32>, Hit> {
    match v {
        14 => Err(Hit::Miss),
        15 => Err(Hit::Near(0.5)),
        16 => Err(Hit::Far {
            side: Side::Right,
            by: (v, false),
        }),
        _ => Ok(Pair(-7, v as u8)),
    }
}

#[kernel]
fn whole(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    if i >= y.len() {
        return;
    }
    let v = x[i];
    let side = if v % 2 == 0 { Side::Left } else { Side::Right };
    let point = Point { x: v as f32, side };
    match v {
        10 => assert_eq!(point, Point { x: 10.5, ..point }),
        11 => assert_eq!(v.checked_sub(12), Some(v), "none of {:.1?}", (point.x, [side])),
        12 => assert_ne!(Some(side), Some(Side::Left)),
        13 => panic!("{:?}, {:?}", hit(v).unwrap(), (v, (0.25f32,))),
        _ => {}
    }
    hit(v).unwrap();
    y[i] = v;
}

#[kernel]
fn integer_roots(x: &[i32], y: &mut [i32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = x[i].isqrt();
    }
}

/// Barriers behind a fault: lanes that have faulted walk on.
#[kernel]
fn met(x: &[f32], y: &mut [f32]) {
    let tile = shared_array::<[f32; 32]>();
    let t = thread_idx_x() as usize;
    let i = global_id_x();
    assert!(x[i] < 9.0, "{} at {} is {}", i, t, x[i]);
    tile[t] = x[i];
    sync_threads();
    y[i] = tile[31 - t];
}

/// What panics in `met`: its barriers have no meaning outside a launch.
fn met_alone(x: &[f32], _: &mut [f32]) {
    let i = global_id_x();
    assert!(x[i] < 9.0, "{} at {} is {}", i, thread_idx_x(), x[i]);
}

#[test]
fn what_holds_costs_nothing_but_itself() {
    check::<f32, u32>(asserted::kernel(), asserted, &floats(70), &[0; 70]);
    check::<i32, u32>(compared::kernel(), compared, &[0, 1, 2, 3], &[0; 4]);
}

#[test]
fn messages_reach_the_host() {
    for (i, v) in [(0, -99.5), (13, 77.25), (69, f32::NAN), (40, 1e30)] {
        let mut x = floats(70);
        x[i] = v;
        panics::<f32, u32>(asserted::kernel(), asserted, &x, &[0; 70], i);
    }
    // The last one holds in `debug_assert_eq!`.
    for v in 7..if cfg!(debug_assertions) { 10 } else { 9 } {
        panics::<i32, u32>(compared::kernel(), compared, &[0, 1, v, 3], &[0; 4], 2);
    }
    panics::<f32, f32>(rooted::kernel(), rooted, &[1.0, 4.0, -2.0], &[0.0; 3], 2);
    panics::<f32, f32>(rooted::kernel(), rooted, &[-0.125, 4.0, 2.0], &[0.0; 3], 0);
    panics::<i32, i32>(integer_roots::kernel(), integer_roots, &[9, -1, 7], &[0; 3], 1);
    for v in [0, 1, 102, 103] {
        panics::<u32, u32>(unwrapped::kernel(), unwrapped, &[4, 5, v], &[0; 3], 2);
    }
    for v in 10..17 {
        panics::<u32, u32>(whole::kernel(), whole, &[7, 8, v], &[0; 3], 2);
    }
    let mut x = floats(64);
    x[37] = 1e9;
    panics::<f32, f32>(met::kernel(), met_alone, &x, &[0.0; 64], 37);
    for v in 250..257 {
        panics::<u32, u32>(kinds::kernel(), kinds, &[7, 8, v], &[0; 3], 2);
    }
}
