//! Structs as parameters.

use perpetua::prelude::*;

use crate::harness::{B, Proven, V, agree, numbers};

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Config {
    width: u32,
    offset: i64,
    factor: f32,
    rows: u32,
}

#[kernel]
fn configured(config: Config, flip: bool, x: &[f32], y: &mut [f32]) {
    let i = global_id_x() as u32;
    let row = global_id_y() as u32;
    if i < config.width && row < config.rows {
        let from = if flip { config.width - 1 - i } else { i };
        y[(row * config.width + i) as usize] = x[(row * config.width + from) as usize] * config.factor;
    }
}

#[test]
fn uniform_parameters() {
    let x: Vec<f32> = numbers(20 * 7, 3, |bits| (bits % 97) as f32);
    let config = Config {
        width: 20,
        offset: -4,
        factor: 1.5,
        rows: 7,
    };
    for flip in [false, true] {
        let launch = LaunchConfig::tiled(20, 7, (8, 4));
        agree(
            configured::kernel(),
            launch,
            &[&V(config), &V(flip), &B(&x), &B(&x.clone())],
            Proven::All,
        );
    }
}
