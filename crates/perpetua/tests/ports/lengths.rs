//! Bonds whose lengths are fixed.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::{Vec3, Wide, inner, minus, wide};

// 100: OpenMM's SHAKE

const HYDROGENS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Cluster {
    central: u32,
    /// -1 where there are fewer.
    hydrogens: [i32; HYDROGENS],
    central_mass: f32,
    hydrogen_mass: f32,
    length: f32,
}

#[kernel]
fn shake(tolerance: f32, clusters: &[Cluster], old: &[Vec3], moves: &mut [Vec3], turns: &mut [u32]) {
    let id = global_id_x();
    let Some(&cluster) = clusters.get(id) else { return };
    let central = cluster.central as usize;
    let (light, heavy) = (cluster.hydrogen_mass.recip(), cluster.central_mass.recip());
    let mut own = moves[central];
    let mut others = [None; HYDROGENS];
    for (slot, hydrogen) in others.iter_mut().zip(cluster.hydrogens) {
        if let Ok(hydrogen) = usize::try_from(hydrogen) {
            *slot = Some((hydrogen, old[central] - old[hydrogen], moves[hydrogen]));
        }
    }
    let wanted = cluster.length.powi(2);
    let mut turn = 0;
    let needed = loop {
        let mut converged = true;
        for (_, bond, other) in others.iter_mut().flatten() {
            let change = own - *other;
            let left = wanted - (*bond + change).length_squared();
            if left.abs() > wanted * tolerance {
                converged = false;
                let along = bond.dot(*bond + change);
                let correction = *bond * (0.5 * left / (along * (heavy + light)));
                own += correction * heavy;
                *other -= correction * light;
            }
        }
        turn += 1;
        if converged || turn == 50 {
            break turn;
        }
    };
    moves[central] = own;
    for (hydrogen, _, other) in others.into_iter().flatten() {
        moves[hydrogen] = other;
    }
    turns[id] = needed;
}

#[test]
fn shake_keeps_lengths_and_momentum() {
    let mut random = Random(100);
    let count = 130usize;
    let (mut clusters, mut old, mut moves) = (Vec::new(), Vec::<Vec3>::new(), Vec::new());
    for _ in 0..count {
        let (central, length) = (old.len(), random.between(0.8, 1.2));
        let middle = random.place(5.0);
        old.push(middle);
        let mut hydrogens = [-1; HYDROGENS];
        for hydrogen in hydrogens.iter_mut().take(1 + random.below(HYDROGENS)) {
            *hydrogen = old.len() as i32;
            let way = random.place(1.0);
            old.push(middle + way * (length as f32 / way.length()));
        }
        clusters.push(Cluster {
            central: central as u32,
            hydrogens,
            central_mass: random.between(10.0, 20.0) as f32,
            hydrogen_mass: 1.0,
            length: length as f32,
        });
    }
    moves.extend(old.iter().map(|_| random.place(0.05)));
    // Lagrange's multipliers by Gauss-Seidel to the last digit.
    let mut expected: Vec<Wide> = moves.iter().map(|m| wide(*m)).collect();
    for cluster in &clusters {
        let c = cluster.central as usize;
        let (heavy, light) = (
            1.0 / f64::from(cluster.central_mass),
            1.0 / f64::from(cluster.hydrogen_mass),
        );
        for _ in 0..200 {
            for h in cluster.hydrogens.iter().filter(|h| **h >= 0).map(|h| *h as usize) {
                let bond = minus(wide(old[c]), wide(old[h]));
                let now = [0, 1, 2].map(|k| bond[k] + expected[c][k] - expected[h][k]);
                let left = f64::from(cluster.length).powi(2) - inner(now, now);
                let by = left / (2.0 * inner(bond, now) * (heavy + light));
                for k in 0..3 {
                    expected[c][k] += by * heavy * bond[k];
                    expected[h][k] -= by * light * bond[k];
                }
            }
        }
    }
    everywhere(|run| {
        let (clusters, old, moves) = (run.upload(&clusters), run.upload(&old), run.upload(&moves));
        let turns = run.zeros::<u32>(count);
        run.launch(
            shake::kernel(),
            LaunchConfig::linear(count, 64),
            args![1e-5f32, &clusters, &old, &moves, &turns],
        );
        run.near(&moves.cast::<f32>().unwrap(), &expected.concat(), 1e-4);
        assert!(
            run.read(&turns).iter().all(|t| (1..50).contains(t)),
            "on {}",
            run.place()
        );
    });
}
