//! Brings blocks with branches into loops, labelled blocks and conditions, along the tree of dominators (Ramsey, "Beyond Relooper").
//!
//! A block to which several ways lead follows a labelled block that these ways leave; what a loop leads to follows the loop. Where a
//! program cannot be brought into that form, or only in one nested too deep, it becomes a loop around a choice of blocks:
//! blocks are never written twice, so hostile programs do not grow.

use super::graph::Graph;
use crate::verify::{Exit, Flow, Goal};

/// Deepest nesting; the IR's verifier takes 200, and WGSL 127 braces within each other, of which the function is one, some are an
/// instruction's own, and one or two stand around the code that leaves several loops at once.
pub(crate) const MAX_DEPTH: usize = 100;

/// A program's control flow.
pub(super) enum Structure {
    /// As a tree.
    Nested(Vec<Node>),
    /// A loop that runs the block whose number a variable holds.
    Dispatched,
}

/// A part of the tree.
#[derive(Debug, PartialEq)]
pub(super) enum Node {
    /// A block's instructions, without its exit.
    Block(usize),
    /// By the block's exit: where it acts, where not.
    If(usize, Vec<Node>, Vec<Node>),
    /// A loop whose head is the block.
    Loop(usize, Vec<Node>),
    /// What can be left towards the block, which follows.
    Labeled(usize, Vec<Node>),
    /// Leaves the labelled block in front of the block.
    Break(usize),
    /// Starts the block's loop again.
    Continue(usize),
    /// Ends the lane.
    End,
}

impl Node {
    /// Whether what follows it in its list can be reached through its end.
    pub(super) fn falls(&self) -> bool {
        match self {
            Node::Block(_) | Node::Labeled(..) => true,
            Node::If(_, a, b) => falls(a) || falls(b),
            Node::Loop(..) | Node::Break(_) | Node::Continue(_) | Node::End => false,
        }
    }
}

pub(super) fn falls(nodes: &[Node]) -> bool {
    nodes.iter().all(Node::falls)
}

pub(super) fn structure(flow: &Flow, graph: &Graph) -> Structure {
    if flow.blocks.is_empty() {
        return Structure::Nested(Vec::new());
    }
    let nested = graph
        .reducible
        .then(|| Structurer::new(flow, graph))
        .and_then(|mut structurer| {
            let mut nodes = Vec::new();
            structurer.tree(0, 0, None, &mut nodes)?;
            Some(nodes)
        });
    nested.map_or(Structure::Dispatched, Structure::Nested)
}

struct Structurer<'a> {
    flow: &'a Flow,
    graph: &'a Graph,
    // Blocks that follow a block's own code, and those that follow its loop; in the order.
    merges: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    // Whether a block follows a labelled block.
    follows: Vec<bool>,
    // How many breaks towards a block were made.
    breaks: Vec<usize>,
}

impl<'a> Structurer<'a> {
    fn new(flow: &'a Flow, graph: &'a Graph) -> Structurer<'a> {
        let count = flow.blocks.len();
        let mut made = Structurer {
            flow,
            graph,
            merges: vec![Vec::new(); count],
            after: vec![Vec::new(); count],
            follows: vec![false; count],
            breaks: vec![0; count],
        };
        // The innermost loops around each block come last.
        let heads: Vec<usize> = graph
            .order
            .iter()
            .copied()
            .filter(|b| graph.loops[*b].is_some())
            .collect();
        for &block in graph.order.iter().skip(1) {
            let dominator = graph.dominator[block];
            let left = heads
                .iter()
                .find(|head| graph.is_in(**head, dominator) && !graph.is_in(**head, block));
            match left {
                Some(head) => made.after[*head].push(block),
                None if graph.entries[block] > 1 => made.merges[dominator].push(block),
                None => continue,
            }
            made.follows[block] = true;
        }
        made
    }

    // Code from a block on; what falls off its end comes to `end`. `None` where it would nest too deep.
    fn tree(
        &mut self,
        mut block: usize,
        depth: usize,
        end: Option<usize>,
        out: &mut Vec<Node>,
    ) -> Option<()> {
        loop {
            if depth > MAX_DEPTH {
                return None;
            }
            let merges = std::mem::take(&mut self.merges[block]);
            let after = std::mem::take(&mut self.after[block]);
            let next = match self.graph.loops[block].is_some() {
                false => self.followed(block, &merges, depth, end, out)?,
                true => {
                    let mut body = Vec::new();
                    let inner = depth + after.len() + 1;
                    if let Some(next) = self.followed(block, &merges, inner, Some(block), &mut body)? {
                        self.tree(next, inner, Some(block), &mut body)?;
                    }
                    self.follow(vec![Node::Loop(block, body)], &after, depth, out)?
                }
            };
            match next {
                Some(next) => block = next,
                None => return Some(()),
            }
        }
    }

    // A block's own code with the blocks that follow it. Gives the block with which it goes on, if any.
    fn followed(
        &mut self,
        block: usize,
        followers: &[usize],
        depth: usize,
        end: Option<usize>,
        out: &mut Vec<Node>,
    ) -> Option<Option<usize>> {
        let Some(first) = followers.first() else {
            return self.straight(block, depth, end, out);
        };
        let mut inner = Vec::new();
        let deep = depth + followers.len();
        if let Some(next) = self.straight(block, deep, Some(*first), &mut inner)? {
            self.tree(next, deep, Some(*first), &mut inner)?;
        }
        self.follow(inner, followers, depth, out)
    }

    // Puts blocks behind code that leads to them.
    fn follow(
        &mut self,
        mut inner: Vec<Node>,
        followers: &[usize],
        depth: usize,
        out: &mut Vec<Node>,
    ) -> Option<Option<usize>> {
        for (i, block) in followers.iter().enumerate() {
            let labelled = match self.breaks[*block] {
                0 => inner,
                _ => vec![Node::Labeled(*block, inner)],
            };
            let Some(then) = followers.get(i + 1) else {
                out.extend(labelled);
                return Some(Some(*block));
            };
            inner = labelled;
            self.tree(*block, depth + followers.len() - i - 1, Some(*then), &mut inner)?;
        }
        out.extend(inner);
        Some(None)
    }

    // A block's instructions and its exit.
    fn straight(
        &mut self,
        block: usize,
        depth: usize,
        end: Option<usize>,
        out: &mut Vec<Node>,
    ) -> Option<Option<usize>> {
        out.push(Node::Block(block));
        let exit = self.flow.blocks[block].exit;
        let (Exit::If(_, a, b) | Exit::Count(_, a, b)) = exit else {
            let Exit::To(goal) = exit else { return Some(None) };
            return self.go(block, goal, end, out);
        };
        let mut acting = Vec::new();
        if let Some(next) = self.go(block, a, end, &mut acting)? {
            self.tree(next, depth + 1, end, &mut acting)?;
        }
        if !falls(&acting) {
            out.push(Node::If(block, acting, Vec::new()));
            return self.go(block, b, end, out);
        }
        let mut other = Vec::new();
        if let Some(next) = self.go(block, b, end, &mut other)? {
            self.tree(next, depth + 1, end, &mut other)?;
        }
        out.push(Node::If(block, acting, other));
        Some(None)
    }

    // The way to a goal; gives the block where the goal's code is to stand here.
    fn go(
        &mut self,
        from: usize,
        goal: Goal,
        end: Option<usize>,
        out: &mut Vec<Node>,
    ) -> Option<Option<usize>> {
        let Goal::Block(to) = goal else {
            out.push(Node::End);
            return Some(None);
        };
        if Some(to) == end {
            return Some(None);
        }
        if self.graph.rank[to] <= self.graph.rank[from] {
            out.push(Node::Continue(to));
        } else if self.follows[to] {
            self.breaks[to] += 1;
            out.push(Node::Break(to));
        } else {
            return Some(Some(to));
        }
        Some(None)
    }
}
