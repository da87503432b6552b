//! Shapes in the plane: polygons, boxes.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 45: points in a polygon

#[kernel]
fn inside(corners: &[[f32; 2]], points: &[[f32; 2]], out: &mut [u32]) {
    let i = global_id_x();
    if i >= points.len() {
        return;
    }
    let [x, y] = points[i];
    let mut crossed = false;
    let [mut bx, mut by] = *corners.last().unwrap();
    for &[ax, ay] in corners {
        if (ay > y) != (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax {
            crossed = !crossed;
        }
        (bx, by) = (ax, ay);
    }
    out[i] = crossed.into();
}

#[test]
fn polygon_holds_points() {
    let mut random = Random(45);
    // A star: each turn's angle tells the radius.
    let radius = |k: usize| if k % 2 == 0 { 2.0 } else { 0.8 };
    let angle = |k: usize| std::f64::consts::TAU * k as f64 / 14.0;
    let corners: Vec<[f32; 2]> = (0..14)
        .map(|k| {
            [
                (radius(k) * angle(k).cos()) as f32,
                (radius(k) * angle(k).sin()) as f32,
            ]
        })
        .collect();
    let points: Vec<[f32; 2]> = (0..700)
        .map(|_| [0; 2].map(|_| (random.bits() % 50001) as f32 / 10000.0 - 2.5))
        .collect();
    let expected: Vec<u32> = points
        .iter()
        .map(|[x, y]| {
            // In one of the triangles that the middle makes with each edge.
            let cross = |a: [f32; 2], b: [f32; 2]| {
                f64::from(a[0]) * f64::from(b[1]) - f64::from(a[1]) * f64::from(b[0])
            };
            let within = (0..14).any(|k| {
                let (a, b) = (corners[k], corners[(k + 1) % 14]);
                let total = cross(a, b);
                let (s, t) = (cross([*x, *y], b) / total, cross(a, [*x, *y]) / total);
                s >= 0.0 && t >= 0.0 && s + t <= 1.0
            });
            u32::from(within)
        })
        .collect();
    everywhere(|run| {
        let (corners, there) = (run.upload(&corners), run.upload(&points));
        let out = run.zeros::<u32>(points.len());
        let config = LaunchConfig::linear(points.len(), 64);
        run.launch(inside::kernel(), config, args![&corners, &there, &out]);
        run.holds(&out, &expected);
    });
}

// 46: non-maximum suppression

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Rect {
    low: [f32; 2],
    high: [f32; 2],
}

#[device]
impl Rect {
    fn area(&self) -> f32 {
        self.low
            .iter()
            .zip(&self.high)
            .map(|(a, b)| (b - a).max(0.0))
            .product()
    }

    fn overlap(&self, other: &Rect) -> f32 {
        let common = Rect {
            low: std::array::from_fn(|k| self.low[k].max(other.low[k])),
            high: std::array::from_fn(|k| self.high[k].min(other.high[k])),
        };
        let both = common.area();
        both / (self.area() + other.area() - both)
    }
}

#[kernel(block_size = 64)]
fn suppress(boxes: &[Rect], threshold: f32, masks: &mut [u64]) {
    let tile = shared_array::<[Rect; 64]>();
    let (columns, lane) = (boxes.len().div_ceil(64), local_id_x());
    let (row, column) = (group_id_y() * 64 + lane, group_id_x());
    if let Some(other) = boxes.get(64 * column + lane) {
        tile[lane] = *other;
    }
    sync_threads();
    let Some(own) = boxes.get(row) else { return };
    let count = (boxes.len() - 64 * column).min(64);
    let first = if row / 64 == column { lane + 1 } else { 0 };
    let mut mask = 0u64;
    for (k, other) in tile.iter().enumerate().take(count).skip(first) {
        if own.overlap(other) > threshold {
            mask |= 1 << k;
        }
    }
    masks[row * columns + column] = mask;
}

#[test]
fn nms_keeps_one_of_those_that_overlap() {
    let mut random = Random(46);
    let boxes: Vec<Rect> = (0..150)
        .map(|_| {
            let low = [0; 2].map(|_| (random.bits() % 100) as f32);
            let size = [0; 2].map(|_| 10.0 + (random.bits() % 40) as f32);
            Rect {
                low,
                high: [low[0] + size[0], low[1] + size[1]],
            }
        })
        .collect();
    let overlap = |a: &Rect, b: &Rect| {
        let side = |k: usize| (a.high[k].min(b.high[k]) - a.low[k].max(b.low[k])).max(0.0);
        let area = |r: &Rect| (r.high[0] - r.low[0]) * (r.high[1] - r.low[1]);
        let both = side(0) * side(1);
        both / (area(a) + area(b) - both)
    };
    let mut kept: Vec<usize> = Vec::new();
    for i in 0..boxes.len() {
        if kept.iter().all(|k| overlap(&boxes[*k], &boxes[i]) <= 0.3) {
            kept.push(i);
        }
    }
    everywhere(|run| {
        let (there, masks) = (run.upload(&boxes), run.zeros::<u64>(150 * 3));
        run.launch(
            suppress::kernel(),
            LaunchConfig::new((3, 3), 64),
            args![&there, 0.3f32, &masks],
        );
        let masks = run.read(&masks);
        let mut removed = [0u64; 3];
        let mut found = Vec::new();
        for i in 0..boxes.len() {
            if removed[i / 64] >> (i % 64) & 1 == 0 {
                found.push(i);
                for column in i / 64..3 {
                    removed[column] |= masks[3 * i + column];
                }
            }
        }
        assert_eq!(found, kept);
    });
}
