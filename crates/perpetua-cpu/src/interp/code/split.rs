//! Branches on several conditions at once (`a && b`) become branches in branches, where that spares lanes to be told apart: what all lanes
//! share is a jump, and what holds up to some lane is found by one subtraction. Knows of operations which compare, and no instructions.

use super::spread::{Kind, Spreads};
use super::tree::{Act, Node, Tree, V, ValueInfo};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::BinaryOp;

/// Takes conditions apart. Whether some were: what is known of the tree is then of another one.
pub(super) fn split(tree: &mut Tree, spreads: &Spreads) -> bool {
    let reads = tree.reads();
    let nodes = std::mem::take(&mut tree.nodes);
    let mut split = Split {
        values: &tree.values,
        spreads,
        reads,
        found: false,
    };
    let nodes = split.block(nodes);
    let found = split.found;
    tree.nodes = nodes;
    found
}

struct Split<'a> {
    values: &'a [ValueInfo],
    spreads: &'a Spreads,
    /// How often values are read.
    reads: Vec<u32>,
    found: bool,
}

/// What a branch asks for.
#[derive(Default)]
struct Asked {
    /// What lanes share.
    shared: Vec<V>,
    /// Where the operation stands that compares what ascends with what lanes share.
    limits: Vec<usize>,
    /// All else.
    others: Vec<V>,
    /// Where the operations stand that join them.
    joins: Vec<usize>,
}

impl Split<'_> {
    fn block(&mut self, nodes: Vec<Node>) -> Vec<Node> {
        let mut out = Vec::with_capacity(nodes.len());
        for mut node in nodes {
            match &mut node {
                Node::If { then, otherwise, .. } => {
                    *then = self.block(std::mem::take(then));
                    *otherwise = self.block(std::mem::take(otherwise));
                }
                Node::Switch { cases, default, .. } => {
                    for (_, body) in cases {
                        *body = self.block(std::mem::take(body));
                    }
                    *default = self.block(std::mem::take(default));
                }
                Node::Loop { body, .. } | Node::Labeled { body, .. } => {
                    *body = self.block(std::mem::take(body));
                }
                Node::Op { .. } | Node::Leave { .. } => {}
            }
            match node {
                Node::If {
                    at,
                    end,
                    condition,
                    then,
                    otherwise,
                } if otherwise.is_empty() => self.branch(&mut out, [at, end], condition, then),
                node => out.push(node),
            }
        }
        out
    }

    /// Puts a branch behind `out`, with what it asks for taken from there.
    fn branch(&mut self, out: &mut Vec<Node>, [at, end]: [u32; 2], condition: V, then: Vec<Node>) {
        let within = |condition: V, then: Vec<Node>| Node::If {
            at,
            end,
            condition,
            then,
            otherwise: Vec::new(),
        };
        let mut asked = Asked::default();
        self.ask(out, condition, &mut asked);
        if asked.joins.is_empty() || asked.shared.is_empty() && asked.limits.is_empty() {
            out.push(within(condition, then));
            return;
        }
        self.found = true;
        let moved: Vec<usize> = asked.joins.iter().chain(&asked.limits).copied().collect();
        let (mut kept, mut taken) = (Vec::with_capacity(out.len()), Vec::new());
        for (number, node) in std::mem::take(out).into_iter().enumerate() {
            match moved.contains(&number) {
                true => taken.push((number, node)),
                false => kept.push(node),
            }
        }
        *out = kept;
        let mut take = |number: usize| {
            let place = taken.iter().position(|(at, _)| *at == number);
            place.map(|place| taken.swap_remove(place).1)
        };
        let mut inner = then;
        // Those that nothing is known of are joined as before, by as many operations as that takes.
        let mut others = asked.others.into_iter();
        if let Some(mut all) = others.next() {
            let mut block = Vec::new();
            for (other, join) in others.zip(asked.joins) {
                let Some(Node::Op { pc, at, outs, .. }) = take(join) else {
                    continue;
                };
                let act = Act::Binary(BinaryOp::And, Scalar::Bool, all, other);
                all = outs[0];
                block.push(Node::Op { pc, at, act, outs });
            }
            block.push(within(all, inner));
            inner = block;
        }
        for limit in asked.limits.into_iter().rev() {
            let Some(node) = take(limit) else { continue };
            let Node::Op { outs, .. } = &node else { continue };
            let branch = within(outs[0], inner);
            inner = vec![node, branch];
        }
        for shared in asked.shared.into_iter().rev() {
            inner = vec![within(shared, inner)];
        }
        out.extend(inner);
    }

    /// Adds what `v` asks for.
    fn ask(&self, nodes: &[Node], v: V, asked: &mut Asked) {
        let of = |v: V| {
            // What stands in between must leave everything as it is.
            let mut last = nodes
                .iter()
                .enumerate()
                .rev()
                .take_while(|(_, node)| self.is_pure(node));
            last.find_map(|(number, node)| match node {
                Node::Op { act, outs, .. } if outs[..] == [v] => Some((number, act)),
                _ => None,
            })
        };
        let once = self.reads[v.index()] == 1;
        match of(v) {
            _ if self.spreads.kind(v) == Kind::Uniform => asked.shared.push(v),
            Some((number, Act::Binary(BinaryOp::And, Scalar::Bool, a, b))) if once => {
                self.ask(nodes, *a, asked);
                self.ask(nodes, *b, asked);
                asked.joins.push(number);
            }
            Some((number, Act::Binary(operator, s, a, b)))
                if once && self.is_limit(*operator, *s, *a, *b) =>
            {
                asked.limits.push(number);
            }
            _ => asked.others.push(v),
        }
    }

    /// Whether it computes a value from values, which may be done later.
    fn is_pure(&self, node: &Node) -> bool {
        let Node::Op { act, outs, .. } = node else {
            return false;
        };
        let computes = matches!(
            act,
            Act::Unary(..) | Act::Binary(..) | Act::Ternary(..) | Act::Cast(..)
        );
        computes
            && act
                .reads()
                .iter()
                .chain(outs)
                .all(|v| !self.values[v.index()].variable)
    }

    /// Whether it compares what ascends along the lanes with what they share.
    fn is_limit(&self, operator: BinaryOp, s: Scalar, a: V, b: V) -> bool {
        use BinaryOp::*;
        let kinds = [a, b].map(|v| self.spreads.kind(v));
        let ascends = matches!(
            kinds,
            [Kind::Affine(1), Kind::Uniform] | [Kind::Uniform, Kind::Affine(1)]
        );
        ascends && s.is_int() && matches!(operator, Lt | Le | Gt | Ge)
    }
}
