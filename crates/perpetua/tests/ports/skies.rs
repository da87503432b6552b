//! What a renderer asks of a scene: how much light the air lets through, and which meshes are seen.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 175: Bevy's table of transmittance

/// Kilometres, and parts of a kilometre.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Atmosphere {
    bottom: f32,
    top: f32,
    rayleigh: [f32; 3],
    rayleigh_height: f32,
    mie: f32,
    mie_height: f32,
    ozone: [f32; 3],
    ozone_center: f32,
    ozone_width: f32,
}

#[device]
impl Atmosphere {
    fn extinction(&self, height: f32) -> [f32; 3] {
        let rayleigh = (-height / self.rayleigh_height).exp();
        let mie = self.mie * (-height / self.mie_height).exp();
        let ozone = (1.0 - (height - self.ozone_center).abs() / self.ozone_width).max(0.0);
        std::array::from_fn(|c| self.rayleigh[c] * rayleigh + mie + self.ozone[c] * ozone)
    }

    /// The radius and the cosine of the zenith angle that a place in the table stands for.
    fn ray(&self, u: f32, v: f32) -> (f32, f32) {
        let horizon = (self.top * self.top - self.bottom * self.bottom).sqrt();
        let rho = horizon * v;
        let radius = rho.hypot(self.bottom);
        let (nearest, farthest) = (self.top - radius, rho + horizon);
        let distance = nearest + u * (farthest - nearest);
        let cosine = if distance == 0.0 {
            1.0
        } else {
            (horizon * horizon - rho * rho - distance * distance) / (2.0 * radius * distance)
        };
        (radius, cosine.clamp(-1.0, 1.0))
    }

    fn distance_to_top(&self, radius: f32, cosine: f32) -> f32 {
        let squared = radius * radius * (cosine * cosine - 1.0) + self.top * self.top;
        (squared.max(0.0).sqrt() - radius * cosine).max(0.0)
    }
}

const SAMPLES: u32 = 40;

#[kernel(block_size = (8, 8))]
fn transmittance(atmosphere: Atmosphere, width: usize, height: usize, table: &mut [[f32; 3]]) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= width || y >= height {
        return;
    }
    let place = |i: usize, n: usize| (i as f32 + 0.5) / n as f32;
    let (radius, cosine) = atmosphere.ray(place(x, width), place(y, height));
    let step = atmosphere.distance_to_top(radius, cosine) / SAMPLES as f32;
    let mut depth = [0.0f32; 3];
    for k in 0..SAMPLES {
        let t = step * (k as f32 + 0.5);
        let at = (radius * radius + t * (2.0 * radius * cosine + t)).sqrt();
        let extinction = atmosphere.extinction(at - atmosphere.bottom);
        for (sum, part) in depth.iter_mut().zip(extinction) {
            *sum += part * step;
        }
    }
    table[y * width + x] = depth.map(|d| (-d).exp());
}

#[test]
fn light_comes_through_the_layers_of_an_atmosphere() {
    let earth = Atmosphere {
        bottom: 6360.0,
        top: 6460.0,
        rayleigh: [5.8e-3, 13.6e-3, 33.1e-3],
        rayleigh_height: 8.0,
        mie: 4.4e-3,
        mie_height: 1.2,
        ozone: [0.65e-3, 1.88e-3, 0.085e-3],
        ozone_center: 25.0,
        ozone_width: 15.0,
    };
    let (width, height) = (20usize, 12usize);
    let mut expected = Vec::new();
    for i in 0..width * height {
        let (u, v) = ((i % width) as f64 + 0.5, (i / width) as f64 + 0.5);
        let (u, v) = (u / width as f64, v / height as f64);
        let (bottom, top) = (6360.0f64, 6460.0f64);
        let horizon2 = (top - bottom) * (top + bottom);
        let rho = horizon2.sqrt() * v;
        let r = (rho * rho + bottom * bottom).sqrt();
        let d = (top - r) + u * (rho + horizon2.sqrt() - top + r);
        // The ray goes from (0, r) to a point of the top at this distance.
        let cosine = ((top * top - r * r - d * d) / (2.0 * r * d)).clamp(-1.0, 1.0);
        let sine = (1.0 - cosine * cosine).sqrt();
        let mut depth = [0.0f64; 3];
        for k in 0..40 {
            let t = d * (f64::from(k) + 0.5) / 40.0;
            let h = (t * sine).hypot(r + t * cosine) - bottom;
            let ozone = (1.0 - (h - 25.0).abs() / 15.0).max(0.0);
            for c in 0..3 {
                let molecules = f64::from(earth.rayleigh[c]) * (-h / 8.0).exp();
                let drops = f64::from(earth.mie) * (-h / f64::from(1.2f32)).exp();
                depth[c] += (molecules + drops + f64::from(earth.ozone[c]) * ozone) * d / 40.0;
            }
        }
        expected.extend(depth.map(|d| (-d).exp()));
    }
    everywhere(|run| {
        let table = run.zeros::<[f32; 3]>(width * height);
        let config = LaunchConfig::tiled(width as u32, height as u32, (8, 8));
        run.launch(
            transmittance::kernel(),
            config,
            args![earth, width, height, &table],
        );
        let found: Vec<f32> = run.read(&table).into_iter().flatten().collect();
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let apart = (f64::from(*found) - expected).abs();
            assert!(apart < 2e-3, "on {}: {i} {found} {expected}", run.place());
        }
    });
}

// 176: Bevy's culling of meshes

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Mesh {
    /// Rows of four.
    world: [[f32; 4]; 3],
    center: [f32; 3],
    half: [f32; 3],
    draw: u32,
    flags: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Draw {
    first: u32,
    count: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Instance {
    mesh: u32,
    flags: u32,
    normals: [[f32; 3]; 3],
}

#[device]
fn dot(a: [f32; 3], b: [f32; 3]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[device]
fn cross([a, b, c]: [f32; 3], [x, y, z]: [f32; 3]) -> [f32; 3] {
    [b * z - c * y, c * x - a * z, a * y - b * x]
}

#[device]
impl Mesh {
    /// The linear part's rows.
    fn rows(&self) -> [[f32; 3]; 3] {
        self.world.map(|[x, y, z, _]| [x, y, z])
    }

    fn seen(&self, planes: &[[f32; 4]; 6]) -> bool {
        let rows = self.rows();
        let center: [f32; 3] = std::array::from_fn(|r| dot(rows[r], self.center) + self.world[r][3]);
        planes.iter().all(|[x, y, z, w]| {
            let normal = [*x, *y, *z];
            let reach: f32 = (0..3)
                .map(|c| dot(normal, rows.map(|row| row[c])).abs() * self.half[c])
                .sum();
            dot(normal, center) + w + reach > 0.0
        })
    }

    fn inverse_transpose(&self) -> [[f32; 3]; 3] {
        let [a, b, c] = self.rows();
        let cofactors = [cross(b, c), cross(c, a), cross(a, b)];
        let scale = 1.0 / dot(a, cofactors[0]);
        cofactors.map(|row| row.map(|v| v * scale))
    }
}

#[kernel(block_size = 64)]
fn cull(planes: [[f32; 4]; 6], meshes: &[Mesh], draws: &mut [Draw], instances: &mut [Instance]) {
    let i = global_id_x();
    let Some(mesh) = meshes.get(i) else {
        return;
    };
    if !mesh.seen(&planes) {
        return;
    }
    let draw = &mut draws[mesh.draw as usize];
    let at = draw.first + atomic_add(&mut draw.count, 1);
    instances[at as usize] = Instance {
        mesh: i as u32,
        flags: mesh.flags,
        normals: mesh.inverse_transpose(),
    };
}

#[test]
fn meshes_in_view_are_drawn() {
    let mut random = Random(176);
    let count = 200usize;
    let meshes: Vec<Mesh> = (0..count)
        .map(|i| Mesh {
            world: std::array::from_fn(|r| {
                std::array::from_fn(|c| match c {
                    3 => random.between(-12.0, 12.0) as f32,
                    _ if c == r => random.between(1.0, 2.0) as f32,
                    _ => random.between(-0.4, 0.4) as f32,
                })
            }),
            center: std::array::from_fn(|_| random.between(-1.0, 1.0) as f32),
            half: std::array::from_fn(|_| random.between(0.1, 1.0) as f32),
            draw: i as u32 % 4,
            flags: random.bits() as u32,
        })
        .collect();
    // A pyramid along z, and two planes that close it.
    let side = 0.5f32.sqrt();
    let planes = [
        [side, 0.0, side, 0.0],
        [-side, 0.0, side, 0.0],
        [0.0, side, side, 0.0],
        [0.0, -side, side, 0.0],
        [0.0, 0.0, 1.0, -0.5],
        [0.0, 0.0, -1.0, 9.0],
    ];
    let wide = |v: f32| f64::from(v);
    // The corner farthest along each plane's normal decides; how far it is from that plane says whether rounding might.
    let inside: Vec<f64> = meshes
        .iter()
        .map(|m| {
            let least = planes.iter().map(|p| {
                let corners = (0..8).map(|corner| {
                    let local: [f64; 3] = std::array::from_fn(|c| {
                        let sign = if corner >> c & 1 == 0 { 1.0 } else { -1.0 };
                        wide(m.center[c]) + sign * wide(m.half[c])
                    });
                    let mut distance = wide(p[3]);
                    for r in 0..3 {
                        let row = m.world[r].map(wide);
                        let world = row[0] * local[0] + row[1] * local[1] + row[2] * local[2] + row[3];
                        distance += wide(p[r]) * world;
                    }
                    distance
                });
                corners.fold(f64::NEG_INFINITY, f64::max)
            });
            least.fold(f64::INFINITY, f64::min)
        })
        .collect();
    everywhere(|run| {
        let uploaded = run.upload(&meshes);
        let start: Vec<Draw> = (0..4)
            .map(|d| Draw {
                first: 50 * d,
                count: 0,
            })
            .collect();
        let (draws, instances) = (run.upload(&start), run.zeros::<Instance>(count));
        let args = args![planes, &uploaded, &draws, &instances];
        run.launch(cull::kernel(), LaunchConfig::linear(count, 64), args);
        let (draws, instances) = (run.read(&draws), run.read(&instances));
        let mut seen = vec![false; count];
        for (d, draw) in draws.iter().enumerate() {
            for instance in &instances[draw.first as usize..][..draw.count as usize] {
                let mesh = &meshes[instance.mesh as usize];
                assert_eq!(
                    (mesh.draw as usize, mesh.flags),
                    (d, instance.flags),
                    "on {}",
                    run.place()
                );
                assert!(!seen[instance.mesh as usize], "on {}: twice", run.place());
                seen[instance.mesh as usize] = true;
                // The matrix times the transpose of this one is the identity.
                for r in 0..3 {
                    for c in 0..3 {
                        let product: f64 = (0..3)
                            .map(|k| wide(mesh.world[r][k]) * wide(instance.normals[c][k]))
                            .sum();
                        let one = if r == c { 1.0 } else { 0.0 };
                        assert!((product - one).abs() < 1e-4, "on {}: {product}", run.place());
                    }
                }
            }
        }
        for (i, distance) in inside.iter().enumerate() {
            assert!(
                distance.abs() < 1e-4 || seen[i] == (*distance > 0.0),
                "on {}: {i}",
                run.place()
            );
        }
        assert!(seen.iter().filter(|s| **s).count() > 10, "on {}", run.place());
    });
}
