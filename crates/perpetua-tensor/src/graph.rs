//! What is recorded and not computed yet, as a list in which sources stand before what is made of them. Walks iterate: a graph may be a
//! million operations deep.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::node::Tensor;
use crate::node::{Node, Op};

/// One operation of a graph, or a value that is known.
pub(crate) struct Entry {
    pub(crate) tensor: Tensor,
    /// Numbers of its sources, in their order. None of what is known.
    pub(crate) sources: SmallVec<[usize; 2]>,
    /// Numbers of what is made of it, each once.
    pub(crate) users: SmallVec<[usize; 2]>,
    pub(crate) is_known: bool,
    pub(crate) is_root: bool,
}

/// Everything that roots need.
pub(crate) struct Graph(pub(crate) Vec<Entry>);

impl Graph {
    /// The operations that lead to these tensors, and the known values that those begin with.
    pub(crate) fn of(roots: &[&Tensor]) -> Graph {
        Graph::walk(roots, |node| match node.op {
            // It gets its value elsewhere.
            Op::Example => None,
            _ => node.pending(),
        })
    }

    /// The tracked operations that lead to a tensor, known or not, and what they begin with: variables, and these ends.
    pub(crate) fn tracked(root: &Tensor, ends: &[&Tensor]) -> Graph {
        Graph::walk(&[root], |node| {
            let is_end = ends.iter().any(|end| std::ptr::eq(&*end.0, node));
            let goes_on = node.tracked && node.op != Op::Variable && !is_end;
            Some(node.sources()).filter(|sources| goes_on && !sources.is_empty())
        })
    }

    /// The number of a tensor.
    pub(crate) fn place(&self, tensor: &Tensor) -> Option<usize> {
        self.0
            .iter()
            .position(|entry| Arc::ptr_eq(&entry.tensor.0, &tensor.0))
    }

    /// All operations that lead to a tensor, known or not, as far as they are kept.
    pub(crate) fn whole(root: &Tensor) -> Graph {
        Graph::walk(&[root], |node| Some(node.kept()))
    }

    fn walk(roots: &[&Tensor], sources: impl Fn(&Node) -> Option<crate::node::Sources>) -> Graph {
        let mut numbers: HashMap<*const Node, usize> = HashMap::new();
        let mut entries: Vec<Entry> = Vec::new();
        // Each with its sources and how many of them have been looked at.
        let mut open: Vec<(Tensor, Option<crate::node::Sources>, usize)> = Vec::new();
        for root in roots {
            if !numbers.contains_key(&Arc::as_ptr(&root.0)) {
                open.push(((*root).clone(), sources(&root.0), 0));
            }
            while let Some((tensor, below, at)) = open.last_mut() {
                let key = Arc::as_ptr(&tensor.0);
                if numbers.contains_key(&key) {
                    open.pop();
                    continue;
                }
                if let Some(next) = below.as_ref().and_then(|below| below.get(*at)) {
                    *at += 1;
                    if !numbers.contains_key(&Arc::as_ptr(&next.0)) {
                        let next = next.clone();
                        let below = sources(&next.0);
                        open.push((next, below, 0));
                    }
                    continue;
                }
                let Some((tensor, below, _)) = open.pop() else {
                    break;
                };
                let number = entries.len();
                let is_known = below.is_none();
                let found: SmallVec<[usize; 2]> = below
                    .into_iter()
                    .flatten()
                    .filter_map(|source| numbers.get(&Arc::as_ptr(&source.0)).copied())
                    .collect();
                for source in &found {
                    let users = &mut entries[*source].users;
                    if users.last() != Some(&number) {
                        users.push(number);
                    }
                }
                numbers.insert(key, number);
                entries.push(Entry {
                    tensor,
                    sources: found,
                    users: SmallVec::new(),
                    is_known,
                    is_root: false,
                });
            }
            if let Some(number) = numbers.get(&Arc::as_ptr(&root.0)) {
                entries[*number].is_root = true;
            }
        }
        Graph(entries)
    }
}
