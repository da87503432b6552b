//! Drops what no access depends on. Knows slots and nodes, not what they mean.

use super::program::{Act, Node, Slot, UNKNOWN};

/// Keeps what decides which bytes are accessed.
pub(super) fn slice(nodes: &mut Vec<Node>, slots: usize) {
    let mut needed = vec![false; slots];
    // Of what is needed in a loop's next turn one learns only when the turn has been looked at.
    loop {
        let before = needed.clone();
        need(nodes, &mut needed);
        if needed == before {
            break;
        }
    }
    sweep(nodes, &needed);
}

/// Whether something in there accesses memory, decides where control goes, or writes what is needed behind it.
fn matters(nodes: &[Node], needed: &[bool]) -> bool {
    nodes.iter().any(|node| match node {
        // Values that are defined in a block are read nowhere else.
        Node::Let(..) => false,
        Node::Assign(to, _) => needed[*to as usize],
        Node::Access(_) | Node::Break(_) | Node::Continue(_) | Node::Return => true,
        Node::If(_, then, otherwise) => matters(then, needed) || matters(otherwise, needed),
        Node::Switch(_, _, cases, default) => {
            cases.iter().any(|(_, nodes)| matters(nodes, needed)) || matters(default, needed)
        }
        Node::Loop(body) | Node::Labeled(body) => matters(body, needed),
    })
}

fn need(nodes: &[Node], needed: &mut [bool]) {
    for node in nodes.iter().rev() {
        match node {
            node if !matters(std::slice::from_ref(node), needed) && !matches!(node, Node::Let(..)) => {}
            Node::Let(slot, act) if needed[*slot as usize] => {
                operands(act)
                    .into_iter()
                    .for_each(|slot| needed[slot as usize] = true);
            }
            Node::Assign(to, from) if needed[*to as usize] => needed[*from as usize] = true,
            Node::Let(..) | Node::Assign(..) => {}
            Node::Access(access) => {
                let slots = access.indices.iter().map(|index| index.slot);
                slots.for_each(|slot| needed[slot as usize] = true);
            }
            Node::If(condition, then, otherwise) => {
                needed[*condition as usize] = true;
                need(then, needed);
                need(otherwise, needed);
            }
            Node::Switch(selector, _, cases, default) => {
                needed[*selector as usize] = true;
                cases.iter().for_each(|(_, nodes)| need(nodes, needed));
                need(default, needed);
            }
            Node::Loop(body) | Node::Labeled(body) => need(body, needed),
            Node::Break(_) | Node::Continue(_) | Node::Return => {}
        }
    }
}

fn operands(act: &Act) -> [Slot; 3] {
    match *act {
        Act::Between(..) => [UNKNOWN; 3],
        Act::Copy(a) | Act::Unary(_, _, a) | Act::Cast(_, _, a) => [a, UNKNOWN, UNKNOWN],
        Act::Binary(_, _, a, _, b) => [a, b, UNKNOWN],
        Act::Ternary(_, _, all) => all,
    }
}

fn sweep(nodes: &mut Vec<Node>, needed: &[bool]) {
    nodes.retain_mut(|node| {
        if let Node::Let(slot, _) = node {
            return needed[*slot as usize];
        }
        if !matters(std::slice::from_ref(node), needed) {
            return false;
        }
        match node {
            Node::If(_, then, otherwise) => {
                sweep(then, needed);
                sweep(otherwise, needed);
            }
            Node::Switch(_, _, cases, default) => {
                cases.iter_mut().for_each(|(_, nodes)| sweep(nodes, needed));
                sweep(default, needed);
            }
            Node::Loop(body) | Node::Labeled(body) => sweep(body, needed),
            _ => {}
        }
        true
    });
}
