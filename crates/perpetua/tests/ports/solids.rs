//! Solids: signed distances, and normals of surfaces.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::{Vec3, Wide, inner, minus, outer, wide};

// 101: KinFu's volume

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Voxel {
    distance: i16,
    weight: i16,
}

#[device]
impl Voxel {
    const ONE: f32 = i16::MAX as f32;
    const MOST: i16 = 128;

    fn pack(distance: f32, weight: i16) -> Self {
        let distance = (distance * Self::ONE).clamp(-Self::ONE, Self::ONE) as i16;
        Self { distance, weight }
    }

    fn unpack(self) -> (f32, i16) {
        (f32::from(self.distance) / Self::ONE, self.weight)
    }
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Camera {
    focal: [f32; 2],
    center: [f32; 2],
    size: [u32; 2],
    /// From the world to the camera.
    rotation: [Vec3; 3],
    translation: Vec3,
}

#[device]
impl Camera {
    fn see(&self, p: Vec3) -> Vec3 {
        let [x, y, z] = self.rotation.map(|row| row.dot(p));
        self.translation + Vec3::new(x, y, z)
    }

    /// The pixel of a point before the camera.
    fn pixel(&self, p: Vec3) -> Option<[usize; 2]> {
        if p.z <= 0.0 {
            return None;
        }
        let [u, v] = [p.x, p.y].map(|c| c / p.z);
        let u = (u * self.focal[0] + self.center[0]).round() as i32;
        let v = (v * self.focal[1] + self.center[1]).round() as i32;
        let [width, height] = self.size.map(|n| n as i32);
        ((0..width).contains(&u) && (0..height).contains(&v)).then_some([u as usize, v as usize])
    }
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Volume {
    counts: [u32; 3],
    cell: f32,
    origin: Vec3,
    truncation: f32,
}

#[kernel(block_size = (8, 4, 2))]
fn integrate(volume: Volume, camera: Camera, depth: &[u16], voxels: &mut [Voxel]) {
    let at = [global_id_x(), global_id_y(), global_id_z()];
    if at.iter().zip(volume.counts).any(|(k, n)| *k >= n as usize) {
        return;
    }
    let [nx, ny, _] = volume.counts.map(|n| n as usize);
    let index = (at[2] * ny + at[1]) * nx + at[0];
    let middle = Vec3::from(at.map(|k| (k as f32 + 0.5) * volume.cell)) + volume.origin;
    let seen = camera.see(middle);
    let Some([u, v]) = camera.pixel(seen) else { return };
    let measured = match depth[v * camera.size[0] as usize + u] {
        0 => return,
        millimetres => f32::from(millimetres) / 1000.0,
    };
    let ray = Vec3::new(
        (u as f32 - camera.center[0]) / camera.focal[0],
        (v as f32 - camera.center[1]) / camera.focal[1],
        1.0,
    );
    let signed = measured * ray.length() - seen.length();
    if signed >= -volume.truncation {
        let fresh = (signed / volume.truncation).min(1.0);
        let (old, weight) = voxels[index].unpack();
        let mean = (old * f32::from(weight) + fresh) / f32::from(weight + 1);
        voxels[index] = Voxel::pack(mean, (weight + 1).min(Voxel::MOST));
    }
}

#[test]
fn tsdf_holds_the_mean_of_two_depth_images() {
    let mut random = Random(101);
    let (width, height) = (40usize, 30usize);
    let counts = [21u32, 18, 13];
    let volume = Volume {
        counts,
        cell: 0.1,
        origin: Vec3::new(-1.0, -0.9, 0.5),
        truncation: 0.15,
    };
    let total = counts.iter().product::<u32>() as usize;
    let views: Vec<(Camera, Vec<u16>)> = [0.1f32, -0.15]
        .map(|angle| {
            let (s, c) = angle.sin_cos();
            let camera = Camera {
                focal: [35.0, 36.0],
                center: [19.5, 14.5],
                size: [width as u32, height as u32],
                rotation: [
                    Vec3::new(c, 0.0, s),
                    Vec3::new(0.0, 1.0, 0.0),
                    Vec3::new(-s, 0.0, c),
                ],
                translation: random.place(0.1),
            };
            let depth =
                (0..width * height).map(|_| [0, 900, 1200, 1500][random.below(4)] + random.below(99) as u16);
            (camera, depth.map(|d| if d < 100 { 0 } else { d }).collect())
        })
        .into();
    // Places beside the edge between two pixels or at the end of the band are left to rounding.
    let mut expected: Vec<Option<(f64, i16)>> = vec![Some((0.0, 0)); total];
    for (camera, depth) in &views {
        for (index, voxel) in expected.iter_mut().enumerate() {
            let k = [index % 21, index / 21 % 18, index / (21 * 18)];
            let p = [0, 1, 2].map(|a| (k[a] as f64 + 0.5) * 0.1f32 as f64 + wide(volume.origin)[a]);
            let mut c = wide(camera.translation);
            (0..3).for_each(|a| c[a] += inner(wide(camera.rotation[a]), p));
            let [u, v] =
                [0, 1].map(|a| c[a] / c[2] * f64::from(camera.focal[a]) + f64::from(camera.center[a]));
            let unsure = |x: f64| (x - x.floor() - 0.5).abs() < 1e-3;
            if unsure(u) || unsure(v) {
                *voxel = None;
                continue;
            }
            let (u, v) = (u.round(), v.round());
            if u < 0.0 || v < 0.0 || u >= width as f64 || v >= height as f64 || c[2] <= 0.0 {
                continue;
            }
            let d = f64::from(depth[v as usize * width + u as usize]) / 1000.0;
            let ray = [(u - 19.5) / 35.0, (v - 14.5) / 36.0, 1.0];
            let signed = d * inner(ray, ray).sqrt() - inner(c, c).sqrt();
            if (signed + 0.15).abs() < 1e-4 {
                *voxel = None;
            } else if let Some((mean, weight)) = voxel
                && d > 0.0
                && signed > -0.15
            {
                *mean = (*mean * f64::from(*weight) + (signed / 0.15).min(1.0)) / f64::from(*weight + 1);
                *weight += 1;
            }
        }
    }
    assert!(expected.iter().filter(|e| e.is_none()).count() < total / 20);
    assert!(expected.iter().flatten().filter(|e| e.1 == 2).count() > total / 50);
    everywhere(|run| {
        let voxels = run.zeros::<Voxel>(total);
        for (camera, depth) in &views {
            let depth = run.upload(depth);
            let config = LaunchConfig::new((3, 5, 7), (8, 4, 2));
            run.launch(
                integrate::kernel(),
                config,
                args![volume, *camera, &depth, &voxels],
            );
        }
        for (i, (voxel, expected)) in run.read(&voxels).iter().zip(&expected).enumerate() {
            if let Some((mean, weight)) = expected {
                let off = (f64::from(voxel.distance) - mean * 32767.0).abs();
                assert!(
                    voxel.weight == *weight && off < 16.0,
                    "{i}: {voxel:?} {expected:?} on {}",
                    run.place()
                );
            }
        }
    });
}

// 115: normals of a map of points

const REACH: usize = 3;

/// Symmetric: xx, xy, xz, yy, yz, zz.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Covariance {
    entries: [f32; 6],
}

#[device]
impl std::ops::AddAssign<Vec3> for Covariance {
    fn add_assign(&mut self, d: Vec3) {
        let products = [d.x * d.x, d.x * d.y, d.x * d.z, d.y * d.y, d.y * d.z, d.z * d.z];
        self.entries
            .iter_mut()
            .zip(products)
            .for_each(|(entry, product)| *entry += product);
    }
}

#[device]
impl Covariance {
    /// The least root of the characteristic polynomial, by Cardano's formula.
    fn least_eigenvalue(&self) -> f32 {
        let [xx, xy, xz, yy, yz, zz] = self.entries;
        let c0 = xx * yy * zz + 2.0 * xy * xz * yz - xx * yz * yz - yy * xz * xz - zz * xy * xy;
        let c1 = xx * yy - xy * xy + xx * zz - xz * xz + yy * zz - yz * yz;
        let c2 = xx + yy + zz;
        let (third, root) = (c2 / 3.0, 3f32.sqrt());
        let a = ((c2 * third - c1) / 3.0).max(0.0);
        let half = 0.5 * (c0 + third * (2.0 * third * third - c1));
        let q = (a * a * a - half * half).max(0.0);
        let theta = q.sqrt().atan2(half) / 3.0;
        let (sin, cos) = theta.sin_cos();
        let rho = a.sqrt();
        let mut roots = [
            third + 2.0 * rho * cos,
            third - rho * (cos + root * sin),
            third - rho * (cos - root * sin),
        ];
        roots.sort_unstable_by(f32::total_cmp);
        roots[0]
    }

    /// A vector that is orthogonal to the rows of the matrix less the eigenvalue.
    fn normal(&self) -> Option<Vec3> {
        let scale = self
            .entries
            .iter()
            .map(|e| e.abs())
            .fold(f32::MIN_POSITIVE, f32::max);
        let scaled = Covariance {
            entries: self.entries.map(|e| e / scale),
        };
        let [xx, xy, xz, yy, yz, zz] = scaled.entries;
        let least = scaled.least_eigenvalue();
        let rows = [
            Vec3::new(xx - least, xy, xz),
            Vec3::new(xy, yy - least, yz),
            Vec3::new(xz, yz, zz - least),
        ];
        let candidates = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| rows[a].cross(rows[b]));
        candidates
            .into_iter()
            .max_by(|a, b| a.length_squared().total_cmp(&b.length_squared()))
            .filter(|v| v.length_squared() > 1e-12)
            .map(|v| v * v.length().recip())
    }
}

#[kernel]
fn normals(width: usize, points: &[Vec3], out: &mut [Vec3]) {
    let (x, y) = (global_id_x(), global_id_y());
    let height = points.len() / width;
    if x >= width || y >= height {
        return;
    }
    let missing = Vec3::new(f32::NAN, f32::NAN, f32::NAN);
    let columns = x.saturating_sub(REACH)..(x + REACH + 1).min(width);
    let rows = y.saturating_sub(REACH)..(y + REACH + 1).min(height);
    let mut mean = Vec3::ZERO;
    let mut count = 0u32;
    for row in rows.clone() {
        for p in points[row * width..][columns.clone()]
            .iter()
            .filter(|p| !p.x.is_nan())
        {
            mean += *p;
            count += 1;
        }
    }
    let own = points[y * width + x];
    out[y * width + x] = if own.x.is_nan() || count < 10 {
        missing
    } else {
        mean = mean * (count as f32).recip();
        let mut covariance = Covariance::default();
        for row in rows {
            for p in &points[row * width..][columns.clone()] {
                if !p.x.is_nan() {
                    covariance += *p - mean;
                }
            }
        }
        covariance
            .normal()
            .map_or(missing, |n| if n.dot(own) > 0.0 { -n } else { n })
    };
}

#[test]
fn normals_are_eigenvectors_of_the_neighbourhood() {
    let mut random = Random(115);
    let (width, height) = (35usize, 23usize);
    let mut points = Vec::new();
    for i in 0..width * height {
        let (x, y) = ((i % width) as f64 / 10.0 - 1.7, (i / width) as f64 / 10.0 - 1.1);
        let z = 3.0 + (x * 1.3).sin() * 0.5 + 0.3 * y * y;
        let hole = random.below(12) == 0;
        let noise = random.between(-0.002, 0.002);
        points.push(if hole {
            Vec3::new(f32::NAN, 0.0, 0.0)
        } else {
            Vec3::from([x, y, z + noise].map(|v| v as f32))
        });
    }
    let mut expected: Vec<Option<Wide>> = Vec::new();
    for i in 0..width * height {
        let (x, y) = (i % width, i / width);
        let near: Vec<Wide> = (0..width * height)
            .filter(|j| (j % width).abs_diff(x) <= REACH && (j / width).abs_diff(y) <= REACH)
            .filter(|j| !points[*j].x.is_nan())
            .map(|j| wide(points[j]))
            .collect();
        let mean = [0, 1, 2].map(|k| near.iter().map(|p| p[k]).sum::<f64>() / near.len() as f64);
        let offs: Vec<Wide> = near.iter().map(|p| minus(*p, mean)).collect();
        let m = [0, 1, 2].map(|a| [0, 1, 2].map(|b| offs.iter().map(|d| d[a] * d[b]).sum::<f64>()));
        // Inverse iteration finds the least eigenvector.
        let mut v = [0.3, 0.2, 1.0];
        for _ in 0..200 {
            let columns = [outer(m[1], m[2]), outer(m[2], m[0]), outer(m[0], m[1])];
            let next = [0, 1, 2].map(|a| (0..3).map(|b| columns[b][a] * v[b]).sum::<f64>());
            let size = inner(next, next).sqrt();
            v = next.map(|x| x / size);
        }
        let away = inner(v, wide(points[i])) > 0.0;
        let v = v.map(|x| if away { -x } else { x });
        expected.push((!points[i].x.is_nan() && near.len() >= 10).then_some(v));
    }
    assert!(expected.iter().flatten().count() > 600);
    everywhere(|run| {
        let (p, y) = (run.upload(&points), run.zeros::<Vec3>(points.len()));
        let config = LaunchConfig::tiled(width as u32, height as u32, (16, 16));
        run.launch(normals::kernel(), config, args![width, &p, &y]);
        for (i, (found, expected)) in run.read(&y).iter().zip(&expected).enumerate() {
            match expected {
                Some(v) => assert!(
                    inner(wide(*found), *v) > 1.0 - 1e-4,
                    "{i}: {found:?} {v:?} on {}",
                    run.place()
                ),
                None => assert!(found.x.is_nan(), "{i} on {}", run.place()),
            }
        }
    });
}
