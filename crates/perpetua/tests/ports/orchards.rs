//! Learning from tables: forests of decision trees.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 225: forests of decision trees

const IS_LEAF: u32 = 1 << 31;
const IS_CATEGORY: u32 = 1 << 30;
const MISSING_LEFT: u32 = 1 << 29;

/// A node in memory: a leaf's value or a threshold, a set of categories, the left child, and a feature with flags.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct TreeNode {
    value: f32,
    set: u32,
    left: u32,
    bits: u32,
}

/// What a node asks.
#[derive(Clone, Copy, GpuType)]
enum Question {
    Leaf(f32),
    Less { feature: u32, threshold: f32 },
    Among { feature: u32, set: u32 },
}

#[device]
impl TreeNode {
    fn question(self) -> Question {
        let feature = self.bits & !(IS_LEAF | IS_CATEGORY | MISSING_LEFT);
        if self.bits & IS_LEAF != 0 {
            Question::Leaf(self.value)
        } else if self.bits & IS_CATEGORY != 0 {
            Question::Among {
                feature,
                set: self.set,
            }
        } else {
            Question::Less {
                feature,
                threshold: self.value,
            }
        }
    }
}

/// Whether the set of 64 bits has this category.
#[device]
fn among(set: &[u32], category: f32) -> bool {
    let category = category as usize;
    set.get(category / 32)
        .is_some_and(|word| word >> (category % 32) & 1 == 1)
}

#[device]
fn leaf_of(nodes: &[TreeNode], sets: &[u32], row: &[f32], missing: f32, root: usize) -> f32 {
    let mut at = root;
    loop {
        let node = nodes[at];
        let known = |feature: u32| Some(row[feature as usize]).filter(|v| *v != missing);
        let answer = match node.question() {
            Question::Leaf(value) => return value,
            Question::Less { feature, threshold } => known(feature).map(|v| v < threshold),
            Question::Among { feature, set } => {
                let set = &sets[2 * set as usize..][..2];
                known(feature).map(|v| among(set, v))
            }
        };
        let left = answer.unwrap_or(node.bits & MISSING_LEFT != 0);
        at = node.left as usize + usize::from(!left);
    }
}

/// How the leaves of a row become its result.
#[device]
trait Ensemble: Copy {
    /// The bin of a block's counters for a leaf, and what it adds there.
    fn entry(leaf: f32) -> (usize, u32);
    fn result(bins: &[u32; 16], trees: usize) -> f32;
}

/// The mean of leaves in parts of 1/64, kept in two bins by sign.
#[derive(Clone, Copy, GpuType)]
struct Mean;

#[device]
impl Ensemble for Mean {
    fn entry(leaf: f32) -> (usize, u32) {
        let parts = (leaf * 64.0).round() as i32;
        (usize::from(parts < 0), parts.unsigned_abs())
    }

    fn result(bins: &[u32; 16], trees: usize) -> f32 {
        let sum = bins[0] as f32 - bins[1] as f32;
        sum / 64.0 / trees as f32
    }
}

/// The class that most leaves name, the first of several.
#[derive(Clone, Copy, GpuType)]
struct Vote;

#[device]
impl Ensemble for Vote {
    fn entry(leaf: f32) -> (usize, u32) {
        (leaf as usize, 1)
    }

    fn result(bins: &[u32; 16], _trees: usize) -> f32 {
        let most = bins
            .iter()
            .enumerate()
            .max_by_key(|(class, count)| (**count, std::cmp::Reverse(*class)));
        most.map_or(-1.0, |(class, _)| class as f32)
    }
}

/// A block a row, a lane every 32nd tree.
#[kernel(block_size = 32)]
fn forest<E: Ensemble>(
    features: usize,
    missing: f32,
    nodes: &[TreeNode],
    sets: &[u32],
    roots: &[u32],
    rows: &[f32],
    out: &mut [f32],
) {
    let bins = shared_array::<[u32; 16]>();
    let lane = local_id_x();
    if lane < bins.len() {
        bins[lane] = 0;
    }
    sync_threads();
    let row = &rows[group_id_x() * features..][..features];
    for root in roots.iter().skip(lane).step_by(32) {
        let (bin, amount) = E::entry(leaf_of(nodes, sets, row, missing, *root as usize));
        atomic_add(&mut bins[bin], amount);
    }
    sync_threads();
    if lane == 0 {
        out[group_id_x()] = E::result(bins, roots.len());
    }
}

/// The same tree on the host.
enum Tree {
    Leaf(f32),
    Fork {
        feature: usize,
        test: Result<f32, u64>,
        missing: bool,
        sides: Box<[Tree; 2]>,
    },
}

fn grown(random: &mut Random, depth: u32, features: usize, leaf: &dyn Fn(u64) -> f32) -> Tree {
    if depth == 0 || random.bits() % 6 == 0 {
        return Tree::Leaf(leaf(random.bits()));
    }
    let feature = (random.bits() % features as u64) as usize;
    // The last features are categories.
    let test = if feature + 2 < features {
        Ok((random.bits() % 41) as f32 / 4.0 - 5.0)
    } else {
        Err(random.bits())
    };
    let missing = random.bits() % 2 == 0;
    let sides = Box::new([
        grown(random, depth - 1, features, leaf),
        grown(random, depth - 1, features, leaf),
    ]);
    Tree::Fork {
        feature,
        test,
        missing,
        sides,
    }
}

impl Tree {
    fn leaf(&self, row: &[f32], missing_value: f32) -> f32 {
        match self {
            Tree::Leaf(value) => *value,
            Tree::Fork {
                feature,
                test,
                missing,
                sides,
            } => {
                let v = row[*feature];
                let left = if v == missing_value {
                    *missing
                } else {
                    match test {
                        Ok(threshold) => v < *threshold,
                        Err(set) => v < 64.0 && set >> (v as u64) & 1 == 1,
                    }
                };
                sides[usize::from(!left)].leaf(row, missing_value)
            }
        }
    }

    fn store(&self, at: usize, nodes: &mut Vec<TreeNode>, sets: &mut Vec<u32>) {
        match self {
            Tree::Leaf(value) => {
                nodes[at] = TreeNode {
                    value: *value,
                    set: 0,
                    left: 0,
                    bits: IS_LEAF,
                }
            }
            Tree::Fork {
                feature,
                test,
                missing,
                sides,
            } => {
                let left = nodes.len();
                let empty = TreeNode {
                    value: 0.0,
                    set: 0,
                    left: 0,
                    bits: 0,
                };
                nodes.extend([empty, empty]);
                let flag = if *missing { MISSING_LEFT } else { 0 };
                let (value, set, kind) = match test {
                    Ok(threshold) => (*threshold, 0, 0),
                    Err(bits) => {
                        sets.extend([*bits as u32, (bits >> 32) as u32]);
                        (0.0, sets.len() as u32 / 2 - 1, IS_CATEGORY)
                    }
                };
                nodes[at] = TreeNode {
                    value,
                    set,
                    left: left as u32,
                    bits: *feature as u32 | flag | kind,
                };
                sides[0].store(left, nodes, sets);
                sides[1].store(left + 1, nodes, sets);
            }
        }
    }
}

#[test]
fn forests_sum_and_vote() {
    let mut random = Random(225);
    let (trees, rows, features, missing) = (77, 41, 7, -999.0f32);
    let mut data = vec![0.0f32; rows * features];
    for (i, v) in data.iter_mut().enumerate() {
        *v = match random.bits() % 8 {
            0 => missing,
            _ if i % features + 2 < features => (random.bits() % 41) as f32 / 4.0 - 5.0,
            _ => (random.bits() % 70) as f32,
        };
    }
    let mut forests = vec![];
    let kinds: [&dyn Fn(u64) -> f32; 2] = [&|bits: u64| (bits % 257) as f32 / 64.0 - 2.0, &|bits: u64| {
        (bits % 11) as f32
    }];
    for leaf in kinds {
        let grown: Vec<Tree> = (0..trees)
            .map(|_| grown(&mut random, 5, features, leaf))
            .collect();
        let (mut nodes, mut sets, mut roots) = (vec![], vec![0u32; 2], vec![]);
        for tree in &grown {
            roots.push(nodes.len() as u32);
            nodes.push(TreeNode {
                value: 0.0,
                set: 0,
                left: 0,
                bits: IS_LEAF,
            });
            tree.store(nodes.len() - 1, &mut nodes, &mut sets);
        }
        let leaves: Vec<Vec<f32>> = data
            .chunks(features)
            .map(|row| grown.iter().map(|t| t.leaf(row, missing)).collect())
            .collect();
        forests.push((nodes, sets, roots, leaves));
    }
    let means: Vec<f64> = forests[0]
        .3
        .iter()
        .map(|l| l.iter().map(|v| f64::from(*v)).sum::<f64>() / trees as f64)
        .collect();
    let votes: Vec<f32> = forests[1]
        .3
        .iter()
        .map(|leaves| {
            let counts: Vec<usize> = (0..16)
                .map(|c| leaves.iter().filter(|v| **v == c as f32).count())
                .collect();
            let most = *counts.iter().max().unwrap();
            counts.iter().position(|c| *c == most).unwrap() as f32
        })
        .collect();
    everywhere(|run| {
        let data = run.upload(&data);
        let config = LaunchConfig::new(rows as u32, 32);
        let out = run.zeros::<f32>(rows);
        let (nodes, sets, roots, _) = &forests[0];
        let (nodes, sets, roots) = (run.upload(nodes), run.upload(sets), run.upload(roots));
        run.launch(
            forest::kernel::<Mean>(),
            config,
            args![features, missing, &nodes, &sets, &roots, &data, &out],
        );
        run.near(&out, &means, 1e-6);
        let config = LaunchConfig::new(rows as u32, 32);
        let (nodes, sets, roots, _) = &forests[1];
        let (nodes, sets, roots) = (run.upload(nodes), run.upload(sets), run.upload(roots));
        run.launch(
            forest::kernel::<Vote>(),
            config,
            args![features, missing, &nodes, &sets, &roots, &data, &out],
        );
        run.holds(&out, &votes);
    });
}
