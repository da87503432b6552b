//! Drops what no access depends on. Knows slots and nodes, not what they mean.

use super::program::{Act, Node, Program, Slot, UNKNOWN};

/// Keeps what decides which bytes are accessed, and numbers its slots anew.
pub(super) fn slice(program: &mut Program) {
    let mut needed = vec![false; program.types.len()];
    needed[UNKNOWN as usize] = true;
    // Of what is needed in a loop's next turn one learns only when the turn has been looked at.
    loop {
        let before = needed.clone();
        need(&program.nodes, &mut needed);
        if needed == before {
            break;
        }
    }
    sweep(&mut program.nodes, &needed);
    let mut numbers = vec![UNKNOWN; needed.len()];
    let kept = numbers.iter_mut().zip(&needed).filter(|(_, needed)| **needed);
    (0..).zip(kept).for_each(|(new, (number, _))| *number = new);
    let mut kept = needed.iter();
    program.types.retain(|_| kept.next() == Some(&true));
    let mut kept = needed.iter();
    program.acts.retain(|_| kept.next() == Some(&true));
    program.fills.retain(|(slot, _)| needed[*slot as usize]);
    let fills = program.fills.iter_mut().map(|(slot, _)| slot);
    fills.for_each(|slot| *slot = numbers[*slot as usize]);
    program
        .acts
        .iter_mut()
        .flatten()
        .for_each(|act| renumber_act(act, &numbers));
    renumber(&mut program.nodes, &numbers);
}

fn renumber(nodes: &mut [Node], numbers: &[Slot]) {
    let new = |slot: &mut Slot| *slot = numbers[*slot as usize];
    for node in nodes {
        match node {
            Node::Let(slot, act) => {
                new(slot);
                renumber_act(act, numbers);
            }
            Node::Assign(to, from) => [to, from].into_iter().for_each(new),
            Node::Access(access) => access.indices.iter_mut().for_each(|index| new(&mut index.slot)),
            Node::Condition(_, slot) => new(slot),
            Node::If(condition, then, otherwise) => {
                new(condition);
                renumber(then, numbers);
                renumber(otherwise, numbers);
            }
            Node::Switch(selector, _, cases, default) => {
                new(selector);
                cases.iter_mut().for_each(|(_, nodes)| renumber(nodes, numbers));
                renumber(default, numbers);
            }
            Node::Loop(body) | Node::Labeled(body) => renumber(body, numbers),
            Node::Stops | Node::Break(_) | Node::Continue(_) | Node::Return => {}
        }
    }
}

fn renumber_act(act: &mut Act, numbers: &[Slot]) {
    let new = |slot: &mut Slot| *slot = numbers[*slot as usize];
    match act {
        Act::Between(..) => {}
        Act::Copy(a) | Act::Unary(_, _, a) | Act::Cast(_, _, a) => new(a),
        Act::Binary(_, _, a, _, b) => [a, b].into_iter().for_each(new),
        Act::Ternary(_, _, all) => all.iter_mut().for_each(new),
    }
}

/// Whether something in there accesses memory, decides where control goes, or writes what is needed behind it.
fn matters(nodes: &[Node], needed: &[bool]) -> bool {
    nodes.iter().any(|node| match node {
        // Values that are defined in a block are read nowhere else.
        Node::Let(..) => false,
        Node::Assign(to, _) => needed[*to as usize],
        Node::Access(_) | Node::Condition(..) | Node::Stops => true,
        Node::Break(_) | Node::Continue(_) | Node::Return => true,
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
            Node::Condition(_, slot) => needed[*slot as usize] = true,
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
            Node::Stops | Node::Break(_) | Node::Continue(_) | Node::Return => {}
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
