//! The graph of a program's blocks: order, dominators, loops. Knows nothing of what blocks do.

use std::collections::BTreeSet;

use crate::verify::Flow;

/// Most members of all loops together.
const MAX_MEMBERS: usize = 1 << 18;

/// What is known of each block. Blocks are named by their numbers in the flow.
pub(super) struct Graph {
    /// Blocks so that each comes before those that it leads to, going back apart.
    pub(super) order: Vec<usize>,
    /// Each block's place in the order.
    pub(super) rank: Vec<usize>,
    /// The block through which all ways to it go, right before it, if the graph is reducible; the first block's is itself.
    pub(super) dominator: Vec<usize>,
    /// How many ways lead to it from earlier blocks.
    pub(super) entries: Vec<usize>,
    /// The blocks of the loop that it is the head of, itself included; `None` where it is no head.
    pub(super) loops: Vec<Option<BTreeSet<usize>>>,
    // Each block's place in a walk through the tree of dominators, and the end of those that it dominates.
    spans: Vec<(usize, usize)>,
    // Members of loops found so far.
    members: usize,
    /// Whether each way back leads to a block that dominates where it comes from.
    pub(super) reducible: bool,
}

impl Graph {
    pub(super) fn new(flow: &Flow) -> Graph {
        let count = flow.blocks.len();
        let next: Vec<Vec<usize>> = flow
            .blocks
            .iter()
            .map(|block| block.exit.blocks().collect())
            .collect();
        let order = order(&next);
        let mut rank = vec![0; count];
        for (place, block) in order.iter().enumerate() {
            rank[*block] = place;
        }
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (block, next) in next.iter().enumerate() {
            for to in next {
                before[*to].push(block);
            }
        }
        let dominator = dominators(&order, &rank, &before);
        let mut graph = Graph {
            spans: spans(&order, &dominator),
            dominator,
            members: 0,
            entries: vec![0; count],
            loops: vec![None; count],
            reducible: true,
            order,
            rank,
        };
        for (block, next) in next.iter().enumerate() {
            for &to in next {
                if graph.rank[to] > graph.rank[block] {
                    graph.entries[to] += 1;
                } else if graph.reducible && graph.dominates(to, block) {
                    graph.grow_loop(to, block, &before);
                } else {
                    graph.reducible = false;
                }
            }
        }
        graph
    }

    /// Whether all ways to `inner` go through `outer`.
    fn dominates(&self, outer: usize, inner: usize) -> bool {
        let (start, end) = self.spans[outer];
        (start..end).contains(&self.spans[inner].0)
    }

    /// Whether a block lies in the loop of a head.
    pub(super) fn is_in(&self, head: usize, block: usize) -> bool {
        self.loops[head]
            .as_ref()
            .is_some_and(|blocks| blocks.contains(&block))
    }

    // Adds what leads to `tail` without going through the head.
    fn grow_loop(&mut self, head: usize, tail: usize, before: &[Vec<usize>]) {
        let blocks = self.loops[head].get_or_insert_with(|| BTreeSet::from([head]));
        let mut work = vec![tail];
        while let Some(block) = work.pop() {
            if blocks.insert(block) {
                self.members += 1;
                work.extend(&before[block]);
            }
            // Loops within loops beyond all measure: no tree would hold them.
            if self.members > MAX_MEMBERS {
                self.reducible = false;
                return;
            }
        }
    }
}

// Where a walk through the tree of dominators comes to each block, and where it has seen all below.
fn spans(order: &[usize], dominator: &[usize]) -> Vec<(usize, usize)> {
    let mut sizes = vec![1; dominator.len()];
    for &block in order.iter().skip(1).rev() {
        sizes[dominator[block]] += sizes[block];
    }
    let mut spans = vec![(0, 0); dominator.len()];
    // Where the next child of a block begins.
    let mut next = vec![0; dominator.len()];
    for (i, &block) in order.iter().enumerate() {
        let start = match i {
            0 => 0,
            _ => next[dominator[block]],
        };
        if i > 0 {
            next[dominator[block]] += sizes[block];
        }
        spans[block] = (start, start + sizes[block]);
        next[block] = start + 1;
    }
    spans
}

// Reverse postorder, without recursion: programs may be long.
fn order(next: &[Vec<usize>]) -> Vec<usize> {
    let mut done = Vec::with_capacity(next.len());
    let mut seen = vec![false; next.len()];
    let mut open: Vec<(usize, usize)> = Vec::new();
    if let Some(first) = seen.first_mut() {
        *first = true;
        open.push((0, 0));
    }
    while let Some((block, taken)) = open.last_mut() {
        // The last way first, so that the first one comes first in the order.
        let ways = &next[*block];
        match ways.len().checked_sub(*taken + 1).map(|i| ways[i]) {
            Some(to) => {
                *taken += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    open.push((to, 0));
                }
            }
            None => {
                done.push(*block);
                open.pop();
            }
        }
    }
    done.reverse();
    done
}

// Of each block, of the ways that lead forward alone. Where each way back leads to a block that dominates where it comes from, these are
// the graph's dominators: a way through such an edge has been at its goal before. Where not, the graph is not reducible, and
// this shows it: ways back only make blocks dominate less.
fn dominators(order: &[usize], rank: &[usize], before: &[Vec<usize>]) -> Vec<usize> {
    let mut tree = Tree {
        parent: vec![0; rank.len()],
        jump: vec![0; rank.len()],
        depth: vec![0; rank.len()],
    };
    for &block in order.iter().skip(1) {
        let earlier = before[block].iter().copied().filter(|b| rank[*b] < rank[block]);
        // Each block but the first was found from an earlier one.
        let parent = earlier.reduce(|a, b| tree.meet(a, b)).unwrap_or_default();
        tree.insert(block, parent);
    }
    tree.parent
}

/// A tree that grows by leaves and finds common ancestors in logarithmic time: each node knows its parent, and an ancestor further
/// up (Myers, "An applicative random-access stack").
struct Tree {
    parent: Vec<usize>,
    jump: Vec<usize>,
    depth: Vec<usize>,
}

impl Tree {
    fn insert(&mut self, node: usize, parent: usize) {
        let (near, far) = (self.jump[parent], self.jump[self.jump[parent]]);
        self.parent[node] = parent;
        self.depth[node] = self.depth[parent] + 1;
        // Two jumps of one length become one.
        let equal = self.depth[parent] - self.depth[near] == self.depth[near] - self.depth[far];
        self.jump[node] = if equal { far } else { parent };
    }

    fn ancestor(&self, mut node: usize, depth: usize) -> usize {
        while self.depth[node] > depth {
            node = match self.depth[self.jump[node]] >= depth {
                true => self.jump[node],
                false => self.parent[node],
            };
        }
        node
    }

    fn meet(&self, a: usize, b: usize) -> usize {
        let depth = self.depth[a].min(self.depth[b]);
        let (mut a, mut b) = (self.ancestor(a, depth), self.ancestor(b, depth));
        while a != b {
            // At one depth jumps are of one length.
            (a, b) = match self.jump[a] == self.jump[b] {
                true => (self.parent[a], self.parent[b]),
                false => (self.jump[a], self.jump[b]),
            };
        }
        a
    }
}
