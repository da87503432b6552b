//! Trees and colours of graphs.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 159: Gunrock's minimum spanning trees

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Edge {
    ends: [u32; 2],
    weight: u32,
}

const NO_EDGE: u32 = u32::MAX;

#[device]
fn root(parents: &[u32], mut vertex: u32) -> u32 {
    while parents[vertex as usize] != vertex {
        vertex = parents[vertex as usize];
    }
    vertex
}

/// The least weight of an edge that leaves each component.
#[kernel]
fn lightest_weights(edges: &[Edge], parents: &[u32], weights: &mut [u32]) {
    let Some(edge) = edges.get(global_id_x()) else {
        return;
    };
    let [a, b] = edge.ends.map(|end| root(parents, end));
    if a != b {
        for end in [a, b] {
            atomic_min(&mut weights[end as usize], edge.weight);
        }
    }
}

/// Among the edges of that weight the first.
#[kernel]
fn lightest_edges(edges: &[Edge], parents: &[u32], weights: &[u32], lightest: &mut [u32]) {
    let id = global_id_x();
    let Some(edge) = edges.get(id) else { return };
    let [a, b] = edge.ends.map(|end| root(parents, end));
    for end in [a, b].into_iter().filter(|_| a != b) {
        if weights[end as usize] == edge.weight {
            atomic_min(&mut lightest[end as usize], id as u32);
        }
    }
}

#[kernel]
fn hook(
    edges: &[Edge],
    lightest: &[u32],
    parents: &[u32],
    next: &mut [u32],
    taken: &mut [u32],
    joined: &mut u32,
) {
    let id = global_id_x();
    if id >= next.len() || lightest[id] == NO_EDGE {
        return;
    }
    let edge = lightest[id];
    let [a, b] = edges[edge as usize].ends.map(|end| root(parents, end));
    let other = if a == id as u32 { b } else { a };
    // Where two components choose each other, the lower one stays.
    let mutual = lightest[other as usize] == edge;
    if !mutual || other < id as u32 {
        next[id] = other;
        taken[edge as usize] = 1;
        atomic_add(joined, 1);
    }
}

#[test]
fn spanning_trees_are_kruskals() {
    let mut random = Random(159);
    let (vertices, count) = (200usize, 600usize);
    // The last vertices have no edges.
    let edges: Vec<Edge> = (0..count)
        .map(|_| Edge {
            ends: [random.below(190) as u32, random.below(190) as u32],
            weight: random.below(50) as u32,
        })
        .collect();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|e| (edges[*e].weight, *e));
    let mut component: Vec<u32> = (0..vertices as u32).collect();
    let mut expected = vec![0u32; count];
    for e in order {
        let [a, b] = edges[e].ends.map(|v| component[v as usize]);
        if a != b {
            expected[e] = 1;
            component.iter_mut().filter(|c| **c == a).for_each(|c| *c = b);
        }
    }
    everywhere(|run| {
        let edges = run.upload(&edges);
        let taken = run.zeros::<u32>(count);
        let mut parents: Vec<u32> = (0..vertices as u32).collect();
        for round in 0.. {
            assert!(round < 10, "on {}", run.place());
            let (weights, lightest) = (
                run.upload(&vec![u32::MAX; vertices]),
                run.upload(&vec![NO_EDGE; vertices]),
            );
            let (old, next, joined) = (run.upload(&parents), run.upload(&parents), run.zeros::<u32>(1));
            let over_edges = LaunchConfig::linear(count, 64);
            run.launch(
                lightest_weights::kernel(),
                over_edges,
                args![&edges, &old, &weights],
            );
            run.launch(
                lightest_edges::kernel(),
                over_edges,
                args![&edges, &old, &weights, &lightest],
            );
            run.launch(
                hook::kernel(),
                LaunchConfig::linear(vertices, 64),
                args![&edges, &lightest, &old, &next, &taken, &joined],
            );
            parents = run.read(&next);
            if run.read(&joined) == [0] {
                break;
            }
        }
        run.holds(&taken, &expected);
    });
}

// 160: Gunrock's colouring

/// A number as good as random for each vertex.
#[device]
fn priority(vertex: u32) -> u32 {
    let mut x = vertex.wrapping_mul(0x9e37_79b1);
    x ^= x >> 15;
    x = x.wrapping_mul(0x85eb_ca77);
    x ^ x >> 13
}

#[kernel]
fn colour(round: i32, starts: &[u32], neighbours: &[u32], old: &[i32], colours: &mut [i32], left: &mut u32) {
    let id = global_id_x();
    if id >= colours.len() || old[id] >= 0 {
        return;
    }
    let key = |v: u32| (priority(v), v);
    let own = key(id as u32);
    let neighbours = &neighbours[starts[id] as usize..starts[id + 1] as usize];
    let is_open = |v: &&u32| old[**v as usize] < 0 && **v as usize != id;
    let (mut largest, mut smallest) = (true, true);
    for v in neighbours.iter().filter(is_open) {
        let other = key(*v);
        largest &= own > other;
        smallest &= own < other;
    }
    colours[id] = match (largest, smallest) {
        (true, _) => 2 * round,
        (_, true) => 2 * round + 1,
        _ => {
            atomic_add(left, 1);
            return;
        }
    };
}

#[test]
fn colours_differ_along_edges() {
    let mut random = Random(160);
    let vertices = 150usize;
    let mut lists = vec![Vec::<u32>::new(); vertices];
    for _ in 0..500 {
        let (a, b) = (random.below(vertices), random.below(vertices));
        lists[a].push(b as u32);
        lists[b].push(a as u32);
    }
    let mut starts = vec![0u32];
    starts.extend(lists.iter().scan(0, |sum, l| {
        *sum += l.len() as u32;
        Some(*sum)
    }));
    let mut expected = vec![-1i32; vertices];
    for round in 0.. {
        let open: Vec<usize> = (0..vertices).filter(|v| expected[*v] < 0).collect();
        if open.is_empty() {
            break;
        }
        let rank = |v: usize| (priority(v as u32), v);
        let chosen: Vec<(usize, i32)> = open
            .iter()
            .filter_map(|v| {
                let others = lists[*v]
                    .iter()
                    .map(|n| *n as usize)
                    .filter(|n| n != v && expected[*n] < 0);
                let ranks: Vec<_> = others.map(rank).collect();
                let above = ranks.iter().all(|r| *r < rank(*v));
                let below = ranks.iter().all(|r| *r > rank(*v));
                if above {
                    Some((*v, 2 * round))
                } else {
                    below.then_some((*v, 2 * round + 1))
                }
            })
            .collect();
        chosen.iter().for_each(|(v, c)| expected[*v] = *c);
    }
    everywhere(|run| {
        let (starts, neighbours) = (run.upload(&starts), run.upload(&lists.concat()));
        let colours = run.upload(&vec![-1i32; vertices]);
        for round in 0.. {
            assert!(round < 30, "on {}", run.place());
            let (old, left) = (run.upload(&run.read(&colours)), run.zeros::<u32>(1));
            run.launch(
                colour::kernel(),
                LaunchConfig::linear(vertices, 64),
                args![round, &starts, &neighbours, &old, &colours, &left],
            );
            if run.read(&left) == [0] {
                break;
            }
        }
        run.holds(&colours, &expected);
    });
}
