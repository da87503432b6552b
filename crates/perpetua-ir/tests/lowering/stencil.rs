//! Stencils: every edge rule, with and without a tile, against neighbours computed here.

use perpetua_cpu::interp::{Arg, BufferRef};
use perpetua_ir::front::rust::{Edge, Instantiation, StencilConfig};
use perpetua_ir::ir::Type;

use crate::run::{kernel, launch, lowered};

const TEXT: &str = "
#[device]
fn around(pos: GridPos, a: &[f32]) -> f32 {
    pos.north(a) * 2.0 + pos.south(a) * 3.0 + pos.west(a) * 5.0 + pos.east(a) * 7.0
}
#[kernel]
fn flat(a: &[f32], b: &[f32], out: &mut [f32], pos: GridPos) {
    let mut s = around(pos, a) - 11.0 * a[pos.idx()];
    for dy in -2..=2 {
        for dx in -1..=1 {
            s += pos.at(b, dx, dy) * (dx * 3 + dy) as f32;
        }
    }
    s += pos.at(a, 2, -1) * 13.0;
    if pos.x() > 6 { s += pos.y() as f32; }
    out[pos.idx()] = s;
}
#[kernel]
fn solid(a: &[i32], out: &mut [i32], pos: GridPos) {
    out[pos.idx()] = pos.up(a) + pos.down(a) * 10 + pos.north(a) * 100 + pos.at(a, 1, 1, -1) * 1000
        + a[pos.idx()] * 10000 + pos.z() as i32;
}";

/// The neighbour's index, or the constant.
fn fold(edge: Edge, at: i64, size: i64) -> Option<i64> {
    match edge {
        Edge::Clamp => Some(at.clamp(0, size - 1)),
        Edge::Wrap => Some(at.rem_euclid(size)),
        Edge::Interior | Edge::Constant(_) => (0..size).contains(&at).then_some(at),
    }
}

fn read<T: Copy>(grid: &[T], size: [i64; 3], at: [i64; 3], edge: Edge, outside: T) -> T {
    let [w, h, d] = size;
    let folded = (fold(edge, at[0], w), fold(edge, at[1], h), fold(edge, at[2], d));
    match folded {
        (Some(x), Some(y), Some(z)) => grid[((z * h + y) * w + x) as usize],
        _ => outside,
    }
}

fn configs(tile: [u32; 3], halo: u32) -> Vec<StencilConfig> {
    let mut all = Vec::new();
    for edge in [Edge::Interior, Edge::Clamp, Edge::Wrap, Edge::Constant(-3.0)] {
        let config = StencilConfig::new("").with_halo(halo).with_edge(edge);
        all.push(config.clone());
        all.push(StencilConfig {
            tile: Some(tile),
            ..config
        });
    }
    all
}

fn how(config: &StencilConfig, pointer_width: u32) -> Instantiation {
    Instantiation {
        stencil: config.clone(),
        pointer_width,
        ..Instantiation::default()
    }
}

#[test]
fn flat_grids_agree_under_every_rule() {
    for (w, h) in [(19i64, 13i64), (8, 4), (3, 2), (1, 1)] {
        let n = (w * h) as usize;
        let a: Vec<f32> = (0..n).map(|i| (i * 7 % 23) as f32 - 4.0).collect();
        let b: Vec<f32> = (0..n).map(|i| (i * 5 % 17) as f32).collect();
        for config in configs([8, 4, 1], 2) {
            let edge = config.edge;
            let mut expected = vec![0.5f32; n];
            for y in 0..h {
                for x in 0..w {
                    if edge == Edge::Interior && (x < 2 || y < 2 || x + 2 >= w || y + 2 >= h) {
                        continue;
                    }
                    let near = |grid: &[f32], dx: i64, dy: i64| {
                        read(grid, [w, h, 1], [x + dx, y + dy, 0], edge, -3.0)
                    };
                    let mut s = near(&a, 0, -1) * 2.0
                        + near(&a, 0, 1) * 3.0
                        + near(&a, -1, 0) * 5.0
                        + near(&a, 1, 0) * 7.0
                        - 11.0 * near(&a, 0, 0);
                    for dy in -2..=2 {
                        for dx in -1..=1 {
                            s += near(&b, dx, dy) * (dx * 3 + dy) as f32;
                        }
                    }
                    s += near(&a, 2, -1) * 13.0;
                    if x > 6 {
                        s += y as f32;
                    }
                    expected[(y * w + x) as usize] = s;
                }
            }
            for pointer_width in [64, 32] {
                let k = kernel(TEXT, "flat", &how(&config, pointer_width));
                let (mut a, mut b, mut out) = (a.clone(), b.clone(), vec![0.5f32; n]);
                let (width, height) = ((w as u32).to_ne_bytes(), (h as u32).to_ne_bytes());
                let args = [
                    Arg::Buffer(BufferRef::from_slice(&mut a)),
                    Arg::Buffer(BufferRef::from_slice(&mut b)),
                    Arg::Buffer(BufferRef::from_slice(&mut out)),
                    Arg::Value(&width),
                    Arg::Value(&height),
                ];
                let grid = [(w as u32).div_ceil(8), (h as u32).div_ceil(4), 1];
                launch(&k, grid, [8, 4, 1], &args).unwrap_or_else(|e| panic!("{config:?}: {e}"));
                assert_eq!(out, expected, "{w} x {h}, {config:?}\n{}", k.kernel());
            }
        }
    }
}

#[test]
fn solid_grids_agree_under_every_rule() {
    let [w, h, d] = [6i64, 5, 4];
    let n = (w * h * d) as usize;
    let a: Vec<i32> = (0..n as i32).map(|i| i * 11 % 31).collect();
    for config in configs([4, 2, 2], 1) {
        let edge = config.edge;
        let mut expected = vec![-1; n];
        for z in 0..d {
            for y in 0..h {
                for x in 0..w {
                    let inner = x > 0 && y > 0 && z > 0 && x + 1 < w && y + 1 < h && z + 1 < d;
                    if edge == Edge::Interior && !inner {
                        continue;
                    }
                    let near =
                        |dx: i64, dy: i64, dz: i64| read(&a, [w, h, d], [x + dx, y + dy, z + dz], edge, -3);
                    expected[((z * h + y) * w + x) as usize] = near(0, 0, -1)
                        + near(0, 0, 1) * 10
                        + near(0, -1, 0) * 100
                        + near(1, 1, -1) * 1000
                        + near(0, 0, 0) * 10000
                        + z as i32;
                }
            }
        }
        let k = kernel(TEXT, "solid", &how(&config, 64));
        let (mut a, mut out) = (a.clone(), vec![-1i32; n]);
        let size = [w, h, d].map(|n| (n as u32).to_ne_bytes());
        let args = [
            Arg::Buffer(BufferRef::from_slice(&mut a)),
            Arg::Buffer(BufferRef::from_slice(&mut out)),
            Arg::Value(&size[0]),
            Arg::Value(&size[1]),
            Arg::Value(&size[2]),
        ];
        launch(&k, [2, 3, 2], [4, 2, 2], &args).unwrap_or_else(|e| panic!("{config:?}: {e}"));
        assert_eq!(out, expected, "{config:?}\n{}", k.kernel());
    }
}

#[test]
fn a_tile_of_16_by_16_with_halo_1_is_an_array_of_18_by_18() {
    let text = "#[kernel] fn laplacian(input: &[f32], output: &mut [f32], pos: GridPos) {
        let lap = pos.north(input) + pos.south(input) + pos.east(input) + pos.west(input) - 4.0 * input[pos.idx()];
        output[pos.idx()] = lap;
    }";
    let config = StencilConfig::new("laplacian")
        .with_tile_size(16, 16)
        .with_halo(1);
    let k = kernel(text, "laplacian", &how(&config, 64));
    let k = k.kernel();
    assert_eq!(k.block_size, Some([16, 16, 1]));
    assert_eq!(k.shared.len(), 1);
    assert_eq!(k.shared[0].ty, Type::array(Type::array(Type::F32, 18), 18));
    let params: Vec<&str> = k.params.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(params, ["input", "output", "width", "height"]);
}

#[test]
fn offsets_beyond_the_halo_are_refused_or_fault() {
    let fixed =
        "#[kernel] fn far(a: &[f32], out: &mut [f32], pos: GridPos) { out[pos.idx()] = pos.at(a, 0, 2); }";
    let config = StencilConfig::default();
    assert_eq!(
        lowered(fixed, "far", &how(&config, 64)),
        Err("program.rs:1: the offset 2 is farther than the halo 1: use `with_halo(2)`".into())
    );
    let run_time = "#[kernel] fn far(a: &[f32], out: &mut [f32], d: i32, pos: GridPos) { out[pos.idx()] = pos.at(a, 0, d); }";
    for config in configs([4, 4, 1], 1) {
        let k = kernel(run_time, "far", &how(&config, 64));
        let (mut a, mut out) = (vec![1.0f32; 16], vec![0.0f32; 16]);
        for (d, fine) in [(1i32, true), (-1, true), (2, false), (-2, false)] {
            let (four, d) = (4u32.to_ne_bytes(), d.to_ne_bytes());
            let args = [
                Arg::Buffer(BufferRef::from_slice(&mut a)),
                Arg::Buffer(BufferRef::from_slice(&mut out)),
                Arg::Value(&d),
                Arg::Value(&four),
                Arg::Value(&four),
            ];
            let done = launch(&k, [1, 1, 1], [4, 4, 1], &args);
            assert_eq!(done.is_ok(), fine, "{config:?}, {d:?}: {done:?}");
        }
    }
}
