//! Graphs: rows of neighbours behind one another, with the places where they begin.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

/// A random graph, each edge in both directions: where rows begin, neighbours.
pub(crate) fn graph(vertices: usize, edges: usize, seed: u64) -> (Vec<u32>, Vec<u32>) {
    let mut random = Random(seed);
    let mut rows = vec![Vec::new(); vertices];
    for _ in 0..edges {
        let [a, b] = [0; 2].map(|_| random.bits() as usize % vertices);
        if a != b {
            rows[a].push(b as u32);
            rows[b].push(a as u32);
        }
    }
    let mut starts = vec![0];
    for row in &rows {
        starts.push(starts[starts.len() - 1] + row.len() as u32);
    }
    (starts, rows.concat())
}

#[device]
pub(crate) fn neighbours<'a>(starts: &[u32], edges: &'a [u32], v: usize) -> &'a [u32] {
    &edges[starts[v] as usize..starts[v + 1] as usize]
}

// 17: breadth-first search

const UNSEEN: u32 = u32::MAX;

#[kernel]
fn expand(
    starts: &[u32],
    edges: &[u32],
    frontier: &[u32],
    count: usize,
    level: u32,
    levels: &mut [u32],
    next: &mut [u32],
    found: &mut [u32],
) {
    let i = global_id_x();
    if i >= count {
        return;
    }
    for &v in neighbours(starts, edges, frontier[i] as usize) {
        let before = atomic_compare_exchange(&mut levels[v as usize], UNSEEN, level);
        if before == UNSEEN {
            let at = atomic_add(&mut found[0], 1);
            next[at as usize] = v;
        }
    }
}

#[test]
fn bfs_finds_the_levels() {
    let n = 400;
    let (starts, edges) = graph(n, 500, 17);
    let mut expected = vec![UNSEEN; n];
    let mut queue = std::collections::VecDeque::from([0usize]);
    expected[0] = 0;
    while let Some(v) = queue.pop_front() {
        for &u in &edges[starts[v] as usize..starts[v + 1] as usize] {
            if expected[u as usize] == UNSEEN {
                expected[u as usize] = expected[v] + 1;
                queue.push_back(u as usize);
            }
        }
    }
    everywhere(|run| {
        let (starts, edges) = (run.upload(&starts), run.upload(&edges));
        let mut levels = vec![UNSEEN; n];
        levels[0] = 0;
        let levels = run.upload(&levels);
        let (mut frontier, mut count, mut level) = (run.zeros::<u32>(n), 1usize, 1u32);
        while count > 0 {
            let (next, found) = (run.zeros::<u32>(n), run.zeros::<u32>(1));
            run.launch(
                expand::kernel(),
                LaunchConfig::linear(count, 64),
                args![&starts, &edges, &frontier, count, level, &levels, &next, &found],
            );
            (frontier, count, level) = (next, run.read(&found)[0] as usize, level + 1);
        }
        run.holds(&levels, &expected);
    });
}

// 18: shortest paths

#[kernel]
fn relax(starts: &[u32], edges: &[[u32; 2]], distances: &mut [u32], changed: &mut [u32]) {
    let v = global_id_x();
    if v + 1 >= starts.len() {
        return;
    }
    let own = atomic_load(&distances[v]);
    if own == UNSEEN {
        return;
    }
    for [to, weight] in &edges[starts[v] as usize..starts[v + 1] as usize] {
        let through = own + weight;
        if atomic_min(&mut distances[*to as usize], through) > through {
            atomic_store(&mut changed[0], 1);
        }
    }
}

#[test]
fn sssp_finds_the_shortest() {
    let n = 300;
    let (starts, edges) = graph(n, 600, 18);
    let mut random = Random(180);
    let edges: Vec<[u32; 2]> = edges
        .iter()
        .map(|v| [*v, 1 + random.bits() as u32 % 20])
        .collect();
    let mut expected = vec![UNSEEN; n];
    let mut open = std::collections::BTreeSet::from([(0u32, 0usize)]);
    while let Some((distance, v)) = open.pop_first() {
        if distance >= expected[v] {
            continue;
        }
        expected[v] = distance;
        for [to, weight] in &edges[starts[v] as usize..starts[v + 1] as usize] {
            open.insert((distance + weight, *to as usize));
        }
    }
    everywhere(|run| {
        let (starts, edges) = (run.upload(&starts), run.upload(&edges));
        let mut distances = vec![UNSEEN; n];
        distances[0] = 0;
        let distances = run.upload(&distances);
        loop {
            let changed = run.zeros::<u32>(1);
            run.launch(
                relax::kernel(),
                LaunchConfig::linear(n, 64),
                args![&starts, &edges, &distances, &changed],
            );
            if run.read(&changed)[0] == 0 {
                break;
            }
        }
        run.holds(&distances, &expected);
    });
}

// 19: connected components

#[device]
fn root(parents: &[u32], from: u32) -> u32 {
    let mut v = from;
    loop {
        let parent = atomic_load(&parents[v as usize]);
        if parent == v {
            break v;
        }
        v = parent;
    }
}

#[kernel]
fn hook(edges: &[[u32; 2]], parents: &mut [u32]) {
    let Some(&[a, b]) = edges.get(global_id_x()) else {
        return;
    };
    let (mut a, mut b) = (root(parents, a), root(parents, b));
    while a != b {
        if a < b {
            (a, b) = (b, a);
        }
        // The larger root becomes a child of the smaller, if it still is one.
        let before = atomic_compare_exchange(&mut parents[a as usize], a, b);
        if before == a {
            break;
        }
        a = root(parents, before);
        b = root(parents, b);
    }
}

#[kernel]
fn jump(parents: &[u32], labels: &mut [u32]) {
    let v = global_id_x();
    if v < labels.len() {
        labels[v] = root(parents, v as u32);
    }
}

#[test]
fn components_are_those_that_edges_join() {
    let n = 500;
    let (starts, targets) = graph(n, 300, 19);
    let row = |v: usize| targets[starts[v] as usize..starts[v + 1] as usize].iter();
    let edges: Vec<[u32; 2]> = (0..n).flat_map(|v| row(v).map(move |u| [v as u32, *u])).collect();
    let mut expected: Vec<u32> = (0..n as u32).collect();
    while let Some([a, b]) = edges
        .iter()
        .find(|[a, b]| expected[*a as usize] != expected[*b as usize])
    {
        let (x, y) = (expected[*a as usize], expected[*b as usize]);
        expected
            .iter_mut()
            .filter(|l| **l == x.max(y))
            .for_each(|l| *l = x.min(y));
    }
    everywhere(|run| {
        let parents = run.upload(&(0..n as u32).collect::<Vec<_>>());
        let (edges, labels) = (run.upload(&edges), run.zeros::<u32>(n));
        let config = LaunchConfig::linear(edges.len(), 64);
        run.launch(hook::kernel(), config, args![&edges, &parents]);
        run.launch(
            jump::kernel(),
            LaunchConfig::linear(n, 64),
            args![&parents, &labels],
        );
        run.holds(&labels, &expected);
    });
}

// 20: a maximal independent set

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum State {
    Open,
    In,
    Out,
}

#[kernel]
fn choose(starts: &[u32], edges: &[u32], priorities: &[u32], states: &[State], chosen: &mut [State]) {
    let v = global_id_x();
    if v >= chosen.len() {
        return;
    }
    let own = (priorities[v], v);
    let first = neighbours(starts, edges, v)
        .iter()
        .map(|u| *u as usize)
        .all(|u| states[u] != State::Open || (priorities[u], u) < own);
    chosen[v] = match states[v] {
        State::Open if first => State::In,
        state => state,
    };
}

#[kernel]
fn exclude(starts: &[u32], edges: &[u32], chosen: &[State], states: &mut [State], open: &mut [u32]) {
    let v = global_id_x();
    if v >= states.len() {
        return;
    }
    let beside = neighbours(starts, edges, v)
        .iter()
        .any(|&u| chosen[u as usize] == State::In);
    states[v] = if beside { State::Out } else { chosen[v] };
    if matches!(states[v], State::Open) {
        atomic_add(&mut open[0], 1);
    }
}

#[test]
fn mis_takes_vertices_by_their_priority() {
    let n = 300;
    let (starts, edges) = graph(n, 500, 20);
    let mut random = Random(200);
    let priorities: Vec<u32> = (0..n).map(|_| random.bits() as u32 % 50).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|v| std::cmp::Reverse((priorities[*v], *v)));
    let mut expected = vec![State::Open; n];
    for v in order {
        if expected[v] == State::Open {
            expected[v] = State::In;
            for u in &edges[starts[v] as usize..starts[v + 1] as usize] {
                expected[*u as usize] = State::Out;
            }
        }
    }
    everywhere(|run| {
        let (starts, edges, priorities) = (run.upload(&starts), run.upload(&edges), run.upload(&priorities));
        let states = run.upload(&vec![State::Open; n]);
        let chosen = run.upload(&vec![State::Open; n]);
        let config = || LaunchConfig::linear(n, 64);
        loop {
            let open = run.zeros::<u32>(1);
            run.launch(
                choose::kernel(),
                config(),
                args![&starts, &edges, &priorities, &states, &chosen],
            );
            run.launch(
                exclude::kernel(),
                config(),
                args![&starts, &edges, &chosen, &states, &open],
            );
            if run.read(&open)[0] == 0 {
                break;
            }
        }
        run.holds(&states, &expected);
    });
}
