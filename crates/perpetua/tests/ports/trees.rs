//! Trees: range queries by blocks, and hierarchies over Morton codes.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::space::Vec3;

// 103: ranges in a B+ tree

const ORDER: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(C)]
struct TreeNode {
    count: u32,
    keys: [i32; ORDER],
    /// Children, or records in leaves. Child `k` holds keys from `keys[k]` on.
    children: [u32; ORDER],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Range {
    start: i32,
    end: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Found {
    first: u32,
    length: u32,
}

#[device]
impl TreeNode {
    /// Whether `key` belongs to this child.
    fn leads(&self, child: usize, key: i32) -> bool {
        let keys = &self.keys[..self.count as usize];
        match (keys.get(child), keys.get(child + 1)) {
            (Some(low), Some(high)) => (*low..*high).contains(&key),
            (Some(low), None) => *low <= key,
            (None, _) => false,
        }
    }
}

/// Records with keys from `start` to `end`, both among them; a block's lanes look at a node's keys together.
#[kernel(block_size = 16)]
fn ranges(height: u32, nodes: &[TreeNode], queries: &[Range], found: &mut [Found]) {
    let current = shared_array::<[u32; 2]>();
    let records = shared_array::<[u32; 2]>();
    let lane = local_id_x();
    let Range { start, end } = queries[group_id_x()];
    if lane < 2 {
        current[lane] = 0;
        records[lane] = u32::MAX;
    }
    sync_threads();
    for _ in 1..height {
        let at = [current[0], current[1]];
        sync_threads();
        for (side, key) in [start, end].into_iter().enumerate() {
            let node = &nodes[at[side] as usize];
            if node.leads(lane, key) {
                current[side] = node.children[lane];
            }
        }
        sync_threads();
    }
    for (side, key) in [start, end].into_iter().enumerate() {
        let leaf = &nodes[current[side] as usize];
        if (lane as u32) < leaf.count && leaf.keys[lane] == key {
            records[side] = leaf.children[lane];
        }
    }
    sync_threads();
    if lane == 0 {
        found[group_id_x()] = match (records[0], records[1]) {
            (u32::MAX, _) | (_, u32::MAX) => Found { first: 0, length: 0 },
            (first, last) => Found {
                first,
                length: last - first + 1,
            },
        };
    }
}

#[test]
fn tree_ranges_are_those_of_a_sorted_list() {
    let mut random = Random(103);
    let mut keys: Vec<i32> = (0..1500).map(|_| random.below(6000) as i32 - 3000).collect();
    keys.sort_unstable();
    keys.dedup();
    // Leaves first, then the nodes above them; the root is the first node in the end.
    let mut level: Vec<(i32, TreeNode)> = Vec::new();
    let mut levels = Vec::new();
    let records: Vec<(i32, u32)> = keys.iter().enumerate().map(|(i, k)| (*k, i as u32)).collect();
    let pack = |part: &[(i32, u32)]| {
        let mut node = TreeNode {
            count: part.len() as u32,
            keys: [0; ORDER],
            children: [0; ORDER],
        };
        for (k, (key, child)) in part.iter().enumerate() {
            (node.keys[k], node.children[k]) = (*key, *child);
        }
        (part[0].0, node)
    };
    level.extend(records.chunks(11).map(pack));
    while level.len() > 1 {
        let above: Vec<(i32, u32)> = level
            .iter()
            .enumerate()
            .map(|(i, (key, _))| (*key, i as u32))
            .collect();
        levels.push(std::mem::take(&mut level));
        level.extend(above.chunks(11).map(pack));
    }
    levels.push(level);
    let mut nodes: Vec<TreeNode> = Vec::new();
    let height = levels.len();
    for (depth, level) in levels.iter().rev().enumerate() {
        let below = nodes.len() + level.len();
        for (_, node) in level {
            let mut node = *node;
            if depth + 1 < height {
                node.children.iter_mut().for_each(|c| *c += below as u32);
            }
            nodes.push(node);
        }
    }
    let (mut queries, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..120 {
        let mut pick = || keys[random.below(keys.len())] + (random.below(4) == 0) as i32;
        let (a, b) = (pick(), pick());
        let range = Range {
            start: a.min(b),
            end: a.max(b),
        };
        queries.push(range);
        expected.push(
            match (keys.binary_search(&range.start), keys.binary_search(&range.end)) {
                (Ok(a), Ok(b)) => Found {
                    first: a as u32,
                    length: (b - a) as u32 + 1,
                },
                _ => Found { first: 0, length: 0 },
            },
        );
    }
    assert!(height > 2 && expected.iter().any(|f| f.length == 0));
    everywhere(|run| {
        let (nodes, queries) = (run.upload(&nodes), run.upload(&queries));
        let found = run.zeros::<Found>(expected.len());
        let config = LaunchConfig::new(expected.len() as u32, 16);
        run.launch(
            ranges::kernel(),
            config,
            args![height as u32, &nodes, &queries, &found],
        );
        run.holds(&found, &expected);
    });
}

// 117: a tree over Morton codes

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Inner {
    left: u32,
    right: u32,
}

#[device]
impl Inner {
    /// Set in children that are leaves.
    const LEAF: u32 = 1 << 31;
}

/// Two zero bits behind each of ten bits.
#[device]
const fn spread(v: u32) -> u32 {
    let v = (v * 0x0001_0001) & 0xff00_00ff;
    let v = (v * 0x0000_0101) & 0x0f00_f00f;
    let v = (v * 0x0000_0011) & 0xc30c_30c3;
    (v * 0x0000_0005) & 0x4924_9249
}

#[kernel]
fn morton(low: Vec3, high: Vec3, places: &[Vec3], codes: &mut [u32]) {
    let i = global_id_x();
    let (Some(place), Some(code)) = (places.get(i), codes.get_mut(i)) else {
        return;
    };
    let part = (*place - low).zip(high - low, |x, size| (x / size * 1024.0).clamp(0.0, 1023.0));
    *code = [part.x, part.y, part.z]
        .into_iter()
        .fold(0, |code, x| code << 1 | spread(x as u32));
}

/// How many leading bits the codes of two leaves share; equal codes go on with the indices.
#[device]
fn shared_bits(codes: &[u32], i: usize, j: Option<usize>) -> i32 {
    let Some((j, code)) = j.and_then(|j| codes.get(j).map(|code| (j, *code))) else {
        return -1;
    };
    match codes[i] ^ code {
        0 => 32 + (i as u32 ^ j as u32).leading_zeros() as i32,
        different => different.leading_zeros() as i32,
    }
}

#[kernel]
fn build(codes: &[u32], nodes: &mut [Inner], parents: &mut [u32]) {
    let i = global_id_x();
    let leaves = codes.len();
    if i + 1 >= leaves {
        return;
    }
    let bits = |step: isize| shared_bits(codes, i, i.checked_add_signed(step));
    let way: isize = if bits(1) > bits(-1) { 1 } else { -1 };
    let least = bits(-way);
    let mut most = 2;
    while bits(most * way) > least {
        most *= 2;
    }
    let mut length = 0;
    let mut step = most / 2;
    while step > 0 {
        if bits((length + step) * way) > least {
            length += step;
        }
        step /= 2;
    }
    let common = bits(length * way);
    let (mut split, mut step) = (0, length);
    loop {
        step = (step + 1) / 2;
        if bits((split + step) * way) > common {
            split += step;
        }
        if step <= 1 {
            break;
        }
    }
    let end = i.wrapping_add_signed(length * way);
    let middle = i.wrapping_add_signed(split * way) - usize::from(way < 0);
    let child = |at: usize, edge: usize| {
        if at == edge {
            at as u32 | Inner::LEAF
        } else {
            at as u32
        }
    };
    let node = Inner {
        left: child(middle, i.min(end)),
        right: child(middle + 1, i.max(end)),
    };
    nodes[i] = node;
    for at in [node.left, node.right] {
        let offset = if at & Inner::LEAF != 0 { leaves - 1 } else { 0 };
        parents[(at & !Inner::LEAF) as usize + offset] = i as u32;
    }
}

#[test]
fn lbvh_is_the_radix_tree_of_the_codes() {
    let mut random = Random(117);
    let count = 700usize;
    let mut places: Vec<Vec3> = (0..count - 48).map(|_| random.place(3.0)).collect();
    // Some in one place: their codes are equal.
    places.extend_from_within(..40);
    places.extend_from_within(..8);
    let [low, high] = [-3.0, 3.0].map(|x| Vec3::new(x, x, x));
    let code = |p: &Vec3| {
        let [x, y, z] = [p.x, p.y, p.z].map(|x| (((x + 3.0) / 6.0 * 1024.0) as u32).min(1023));
        (0..10).fold(0u32, |c, k| {
            c | (x >> k & 1) << (3 * k + 2) | (y >> k & 1) << (3 * k + 1) | (z >> k & 1) << (3 * k)
        })
    };
    places.sort_by_key(code);
    let codes: Vec<u32> = places.iter().map(code).collect();
    // From above: the last leaf whose first different bit is 0.
    let keys: Vec<u64> = codes
        .iter()
        .enumerate()
        .map(|(i, c)| u64::from(*c) << 32 | i as u64)
        .collect();
    let mut nodes = vec![Inner { left: 0, right: 0 }; count - 1];
    let mut parents = vec![0u32; 2 * count - 1];
    let mut open = vec![(0usize, count - 1, 0usize)];
    while let Some((first, last, index)) = open.pop() {
        let bit = 63 - (keys[first] ^ keys[last]).leading_zeros();
        let split = (first..last).rfind(|k| keys[*k] >> bit & 1 == 0).unwrap();
        let mut child = |a: usize, b: usize, at: usize| {
            parents[if a == b { at + count - 1 } else { at }] = index as u32;
            if a == b {
                return at as u32 | Inner::LEAF;
            }
            open.push((a, b, at));
            at as u32
        };
        nodes[index] = Inner {
            left: child(first, split, split),
            right: child(split + 1, last, split + 1),
        };
    }
    everywhere(|run| {
        let (p, c) = (run.upload(&places), run.zeros::<u32>(count));
        let config = LaunchConfig::linear(count, 64);
        run.launch(morton::kernel(), config, args![low, high, &p, &c]);
        run.holds(&c, &codes);
        let (n, up) = (run.zeros::<Inner>(count - 1), run.zeros::<u32>(2 * count - 1));
        run.launch(build::kernel(), config, args![&c, &n, &up]);
        run.holds(&n, &nodes);
        run.holds(&up, &parents);
    });
}
