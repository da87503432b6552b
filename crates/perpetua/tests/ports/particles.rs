//! Particles and points.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 48: molecular dynamics

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Atom {
    at: [f32; 3],
}

#[kernel]
fn forces(atoms: &[Atom], neighbours: &[u32], most: usize, cutoff: f32, lj: [f32; 2], out: &mut [[f32; 3]]) {
    let i = global_id_x();
    if i >= atoms.len() {
        return;
    }
    let own = atoms[i].at;
    let mut force = [0.0f32; 3];
    // Neighbours lie interleaved, so that lanes read next to each other.
    for &j in neighbours.iter().skip(i).step_by(atoms.len()).take(most) {
        let other = atoms[j as usize].at;
        let away = [own[0] - other[0], own[1] - other[1], own[2] - other[2]];
        let square: f32 = away.iter().map(|d| d * d).sum();
        if square >= cutoff * cutoff {
            continue;
        }
        let inverse = 1.0 / square;
        let sixth = inverse.powi(3);
        let size = inverse * sixth * (lj[0] * sixth - lj[1]);
        for (f, d) in force.iter_mut().zip(away) {
            *f += d * size;
        }
    }
    out[i] = force;
}

#[test]
fn md_sums_forces() {
    let mut random = Random(48);
    let (n, most, cutoff) = (150usize, 24usize, 1.8f32);
    let atoms: Vec<Atom> = (0..n)
        .map(|i| Atom {
            at: [i % 6, i / 6 % 5, i / 30].map(|v| v as f32 + (random.bits() % 100) as f32 / 500.0),
        })
        .collect();
    let square = |i: usize, j: usize| -> f64 {
        (0..3)
            .map(|k| (f64::from(atoms[i].at[k]) - f64::from(atoms[j].at[k])).powi(2))
            .sum()
    };
    let mut neighbours = vec![0u32; n * most];
    let mut expected = vec![[0f64; 3]; n];
    for i in 0..n {
        let mut others: Vec<usize> = (0..n).filter(|j| *j != i).collect();
        others.sort_by(|a, b| square(i, *a).total_cmp(&square(i, *b)));
        for (k, j) in others[..most].iter().enumerate() {
            neighbours[k * n + i] = *j as u32;
            if square(i, *j) < f64::from(cutoff * cutoff) {
                let r = square(i, *j).sqrt();
                let size = 1.5 * r.powi(-13) - 2.0 * r.powi(-7);
                for axis in 0..3 {
                    expected[i][axis] += size * f64::from(atoms[i].at[axis] - atoms[*j].at[axis]) / r;
                }
            }
        }
    }
    everywhere(|run| {
        let (atoms, neighbours) = (run.upload(&atoms), run.upload(&neighbours));
        let out = run.zeros::<[f32; 3]>(n);
        run.launch(
            forces::kernel(),
            LaunchConfig::linear(n, 64),
            args![&atoms, &neighbours, most, cutoff, [1.5f32, 2.0], &out],
        );
        let found = run.upload(&run.read(&out).concat());
        run.near(&found, &expected.concat(), 1e-4);
    });
}

// 53: angular correlation

#[kernel(block_size = 64)]
fn correlate(points: &[[f32; 3]], edges: &[f32], histogram: &mut [u32]) {
    let counts = shared_array::<[u32; 32]>();
    let (i, lane) = (global_id_x(), local_id_x());
    if lane < counts.len() {
        counts[lane] = 0;
    }
    sync_threads();
    if i < points.len() {
        for other in &points[i + 1..] {
            let cosine: f32 = points[i].iter().zip(other).map(|(a, b)| a * b).sum();
            // Edges are cosines, falling: the bin is how many are above.
            let bin = edges.partition_point(|edge| *edge > cosine);
            atomic_add(&mut counts[bin], 1);
        }
    }
    sync_threads();
    if lane < histogram.len() {
        atomic_add(&mut histogram[lane], counts[lane]);
    }
}

#[test]
fn tpacf_counts_angles() {
    let mut random = Random(53);
    let points: Vec<[f32; 3]> = (0..200)
        .map(|_| {
            let v = [0; 3].map(|_| (random.bits() % 2001) as f32 / 1000.0 - 1.0);
            let length = v.iter().map(|x| x * x).sum::<f32>().sqrt();
            v.map(|x| x / length)
        })
        .collect();
    let edges: Vec<f32> = (1..19).map(|k| (k as f32 * 10.0).to_radians().cos()).collect();
    let mut expected = vec![0u32; 19];
    for (i, a) in points.iter().enumerate() {
        for b in &points[i + 1..] {
            let cosine = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
            expected[edges.iter().filter(|e| **e > cosine).count()] += 1;
        }
    }
    everywhere(|run| {
        let (points, edges) = (run.upload(&points), run.upload(&edges));
        let histogram = run.zeros::<u32>(19);
        let config = LaunchConfig::linear(200, 64);
        run.launch(correlate::kernel(), config, args![&points, &edges, &histogram]);
        run.holds(&histogram, &expected);
    });
}
