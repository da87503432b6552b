//! What the reader leaves behind that says nothing: blocks that are only left at their ends, as those of functions written out are, and
//! names for values that have one already. Knows of operations only what they read.

use std::collections::{HashMap, HashSet};

use super::{Act, Frame, Leaving, Node, Tree, V, walk};

pub(super) fn simplify(tree: &mut Tree) {
    let nodes = std::mem::take(&mut tree.nodes);
    tree.nodes = flat(nodes);
    tree.find_meetings();
    let mut assignments = vec![0u32; tree.values.len()];
    let mut reads = tree.reads();
    walk(&tree.nodes, &mut |node| {
        if let Node::Op { outs, .. } = node {
            outs.iter().for_each(|v| assignments[v.index()] += 1);
        }
    });
    let mut nodes = std::mem::take(&mut tree.nodes);
    let mut names = Names {
        tree,
        assignments,
        reads: &mut reads,
        known: HashMap::new(),
    };
    names.block(&mut nodes);
    tree.nodes = nodes;
}

/// Blocks without those that are only left where they end.
fn flat(nodes: Vec<Node>) -> Vec<Node> {
    let mut out = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::Labeled { at, end, frame, body } => {
                let mut body = flat(body);
                ends(&mut body, frame);
                let mut left = false;
                walk(&body, &mut |node| {
                    left |= matches!(node, Node::Leave { frame: Some(f), .. } if *f == frame);
                });
                match left {
                    true => out.push(Node::Labeled { at, end, frame, body }),
                    false => out.extend(body),
                }
            }
            Node::If {
                at,
                end,
                condition,
                then,
                otherwise,
            } => out.push(Node::If {
                at,
                end,
                condition,
                then: flat(then),
                otherwise: flat(otherwise),
            }),
            Node::Switch {
                at,
                end,
                selector,
                size,
                cases,
                default,
            } => out.push(Node::Switch {
                at,
                end,
                selector,
                size,
                cases: cases
                    .into_iter()
                    .map(|(labels, body)| (labels, flat(body)))
                    .collect(),
                default: flat(default),
            }),
            Node::Loop { at, end, frame, body } => out.push(Node::Loop {
                at,
                end,
                frame,
                body: flat(body),
            }),
            node @ (Node::Op { .. } | Node::Leave { .. }) => out.push(node),
        }
        // What stands behind is never reached.
        if matches!(out.last(), Some(Node::Leave { .. })) {
            break;
        }
    }
    out
}

/// Takes away what leaves a block where it ends anyway.
fn ends(body: &mut Vec<Node>, frame: Frame) {
    match body.last_mut() {
        Some(Node::Leave {
            frame: Some(f),
            how: Leaving::Break,
        }) if *f == frame => {
            body.pop();
        }
        Some(Node::If { then, otherwise, .. }) => {
            ends(then, frame);
            ends(otherwise, frame);
        }
        Some(Node::Labeled { body, .. }) => ends(body, frame),
        _ => {}
    }
}

struct Names<'a> {
    tree: &'a Tree,
    /// How often the text assigns a value.
    assignments: Vec<u32>,
    /// Reads that have not been come across.
    reads: &'a mut Vec<u32>,
    /// What a name stands for, while the block lasts that says so.
    known: HashMap<V, V>,
}

impl Names<'_> {
    fn block(&mut self, nodes: &mut Vec<Node>) {
        let mut named = Vec::new();
        let mut dropped = HashSet::new();
        for (number, node) in nodes.iter_mut().enumerate() {
            match node {
                Node::Op { act, outs, .. } => {
                    act.each_read(&mut |v| {
                        self.reads[v.index()] -= 1;
                        if let Some(is) = self.known.get(v) {
                            *v = *is;
                        }
                    });
                    if let (Act::Move(from), [to]) = (&*act, outs.as_slice())
                        && self.is_name(*from, *to)
                    {
                        self.known.insert(*to, *from);
                        named.push((*to, number));
                        dropped.insert(number);
                    }
                }
                Node::If {
                    condition,
                    then,
                    otherwise,
                    ..
                } => {
                    self.read(condition);
                    self.block(then);
                    self.block(otherwise);
                }
                Node::Switch {
                    selector,
                    cases,
                    default,
                    ..
                } => {
                    self.read(selector);
                    cases.iter_mut().for_each(|(_, body)| self.block(body));
                    self.block(default);
                }
                Node::Loop { body, .. } | Node::Labeled { body, .. } => self.block(body),
                Node::Leave { .. } => {}
            }
        }
        for (name, number) in named {
            self.known.remove(&name);
            // Who reads it outside of the block reads the name.
            if self.reads[name.index()] > 0 {
                dropped.remove(&number);
            }
        }
        let mut number = 0;
        nodes.retain(|_| {
            number += 1;
            !dropped.contains(&(number - 1))
        });
    }

    fn read(&mut self, v: &mut V) {
        self.reads[v.index()] -= 1;
        if let Some(is) = self.known.get(v) {
            *v = *is;
        }
    }

    /// Whether a value is another one's name from here to the end of the block: it gets no other value, and that one stays.
    fn is_name(&self, from: V, to: V) -> bool {
        let (of, is) = (&self.tree.values[from.index()], &self.tree.values[to.index()]);
        self.assignments[to.index()] == 1
            && is.array.is_none()
            && is.fill.is_none()
            && of.array.is_none()
            && !of.variable
            && of.size == is.size
    }
}
