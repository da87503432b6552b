//! How values differ between the lanes of a gang, and where lanes part. A gang is a run of lanes of one row of a block,
//! so the index along x ascends by one and all other indices are one.
//!
//! A fixed point from below: all values unknown, no construct divided. A value is uniform for the lanes that read it; a variable
//! may be kept once for all lanes if no lane waits while it is assigned that reads it later.

use super::tree::{AccessKind, Act, Frame, Leaving, Node, Tree, V};
use crate::interp::program::{Fill, Program};
use perpetua_ir::ir::{Axis, Builtin, Scalar};
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};

/// How a value differs from lane to lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nobody has computed it yet.
    Unset,
    /// One integer or `bool` for all lanes.
    Uniform,
    /// An integer that grows by so much from lane to lane, modulo its type.
    Affine(i32),
    /// Each lane has its own.
    Lanes,
}

/// Values known not to leave 0 to 2³¹-1, in any lane of a gang: a launch sees to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    ThreadIdx(Axis),
    BlockIdx(Axis),
    BlockDim(Axis),
    /// Block index times size.
    Start(Axis),
    GlobalId(Axis),
}

/// What is known of a tree.
pub(super) struct Spreads {
    pub(super) kinds: Vec<Kind>,
    /// For each frame: whether lanes break or continue one without the others.
    pub(super) parted: Vec<[bool; 2]>,
    /// Assignments (by position) that no waiting lane would notice.
    pub(super) plain: Vec<bool>,
    known: Vec<Known>,
    constants: Vec<Option<u64>>,
}

/// A construct around a point of the text.
#[derive(Clone, Copy)]
struct Around {
    start: u32,
    end: u32,
    /// A choice that lanes make differently.
    splits: bool,
    frame: Option<Frame>,
    is_loop: bool,
}

/// Where a variable is touched.
#[derive(Clone)]
struct Extent {
    /// Constructs around all accesses, outermost first, by their starts (an `if` has two blocks, which count as one here).
    around: Option<Vec<u32>>,
    last_read: u32,
}

impl Spreads {
    pub(super) fn kind(&self, v: V) -> Kind {
        self.kinds.get(v.0 as usize).copied().unwrap_or(Kind::Lanes)
    }

    /// Whether no lane's value leaves 0 to 2³¹-1.
    pub(super) fn is_small(&self, v: V) -> bool {
        self.known.get(v.0 as usize).is_some_and(|k| *k != Known::Nothing)
    }

    /// The bits, where the text says them.
    pub(super) fn constant(&self, v: V) -> Option<u64> {
        self.constants.get(v.0 as usize).copied().flatten()
    }

    pub(super) fn parts(&self, frame: Frame) -> bool {
        self.parted.get(frame as usize).is_some_and(|p| *p != [false; 2])
    }
}

pub(super) fn analyse(tree: &Tree, program: &Program) -> Spreads {
    let count = tree.values.len();
    let mut spreads = Spreads {
        kinds: vec![Kind::Unset; count],
        parted: vec![[false; 2]; tree.frames as usize],
        plain: vec![true; tree.count as usize + 1],
        known: vec![Known::Nothing; count],
        constants: vec![None; count],
    };
    for (i, info) in tree.values.iter().enumerate() {
        if let Some((_, fill)) = info.fill.and_then(|fill| program.fills.get(fill as usize)) {
            let (kind, known) = match fill {
                Fill::Builtin(Builtin::ThreadIdx(axis)) => {
                    let kind = match axis {
                        Axis::X => Kind::Affine(1),
                        _ => Kind::Uniform,
                    };
                    (kind, Known::ThreadIdx(*axis))
                }
                Fill::Builtin(Builtin::SubgroupLane) => (Kind::Lanes, Known::Nothing),
                Fill::Builtin(Builtin::BlockIdx(axis)) => (Kind::Uniform, Known::BlockIdx(*axis)),
                Fill::Builtin(Builtin::BlockDim(axis)) => (Kind::Uniform, Known::BlockDim(*axis)),
                Fill::Constant(bits) => {
                    spreads.constants[i] = Some(*bits);
                    (Kind::Uniform, Known::Nothing)
                }
                _ => (Kind::Uniform, Known::Nothing),
            };
            (spreads.kinds[i], spreads.known[i]) = (kind, known);
        } else if info.array.is_some() {
            spreads.kinds[i] = Kind::Lanes;
        }
    }
    let mut extents = vec![
        Extent {
            around: None,
            last_read: 0
        };
        count
    ];
    measure(&tree.nodes, &tree.arrays, &mut Vec::new(), &mut extents);
    loop {
        let mut pass = Pass {
            tree,
            program,
            spreads: &mut spreads,
            extents: &extents,
            around: Vec::new(),
            changed: false,
        };
        pass.nodes(&tree.nodes);
        if !pass.changed {
            break;
        }
    }
    // What is never computed is never read.
    spreads
        .kinds
        .iter_mut()
        .filter(|k| **k == Kind::Unset)
        .for_each(|k| *k = Kind::Lanes);
    spreads
}

fn touch(extents: &mut [Extent], v: V, read: Option<u32>, around: &[u32]) {
    let Some(extent) = extents.get_mut(v.0 as usize) else {
        return;
    };
    if let Some(at) = read {
        extent.last_read = extent.last_read.max(at);
    }
    match &mut extent.around {
        Some(known) => {
            let same = known.iter().zip(around).take_while(|(a, b)| a == b).count();
            known.truncate(same);
        }
        None => extent.around = Some(around.to_vec()),
    }
}

/// `elements`: those of each array of a lane that is reached by indices.
fn measure(nodes: &[Node], elements: &[Vec<V>], around: &mut Vec<u32>, extents: &mut [Extent]) {
    for node in nodes {
        match node {
            Node::Op { at, act, outs, .. } => {
                for v in act.reads() {
                    touch(extents, v, Some(*at), around);
                }
                // Which element is read, its index says at run time.
                if let Act::PrivateLoad { array, .. } = act {
                    for v in &elements[*array as usize] {
                        touch(extents, *v, Some(*at), around);
                    }
                }
                for v in outs {
                    touch(extents, *v, None, around);
                }
            }
            Node::If { at, condition, .. } => touch(extents, *condition, Some(*at), around),
            Node::Switch { at, selector, .. } => touch(extents, *selector, Some(*at), around),
            _ => {}
        }
        let (start, blocks): (u32, Vec<&Vec<Node>>) = match node {
            Node::If {
                at, then, otherwise, ..
            } => (*at, vec![then, otherwise]),
            Node::Switch {
                at, cases, default, ..
            } => (*at, cases.iter().map(|(_, body)| body).chain([default]).collect()),
            Node::Loop { at, body, .. } | Node::Labeled { at, body, .. } => (*at, vec![body]),
            Node::Op { .. } | Node::Leave { .. } => continue,
        };
        around.push(start);
        for block in blocks {
            measure(block, elements, around, extents);
        }
        around.pop();
    }
}

struct Pass<'a> {
    tree: &'a Tree,
    program: &'a Program,
    spreads: &'a mut Spreads,
    extents: &'a [Extent],
    around: Vec<Around>,
    changed: bool,
}

impl Pass<'_> {
    fn kind(&self, v: V) -> Kind {
        self.spreads
            .kinds
            .get(v.0 as usize)
            .copied()
            .unwrap_or(Kind::Lanes)
    }

    fn raise(&mut self, v: V, kind: Kind) {
        let old = self.kind(v);
        let new = match (old, kind) {
            (a, Kind::Unset) => a,
            (Kind::Unset, b) => b,
            (a, b) if a == b => a,
            _ => Kind::Lanes,
        };
        if new != old {
            self.spreads.kinds[v.0 as usize] = new;
            self.changed = true;
        }
    }

    fn part(&mut self, frame: Frame, how: Leaving) {
        let flag = &mut self.spreads.parted[frame as usize][how as usize];
        if !*flag {
            *flag = true;
            self.changed = true;
        }
    }

    fn inside(&mut self, around: Around, blocks: &[&Vec<Node>]) {
        self.around.push(around);
        for block in blocks {
            self.nodes(block);
        }
        self.around.pop();
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Op { at, act, outs, .. } => self.operation(*at, act, outs),
                Node::If {
                    at,
                    end,
                    condition,
                    then,
                    otherwise,
                } => {
                    let around = Around {
                        start: *at,
                        end: *end,
                        splits: !matches!(self.kind(*condition), Kind::Uniform | Kind::Unset),
                        frame: None,
                        is_loop: false,
                    };
                    self.inside(around, &[then, otherwise]);
                }
                Node::Switch {
                    at,
                    end,
                    selector,
                    cases,
                    default,
                    ..
                } => {
                    let around = Around {
                        start: *at,
                        end: *end,
                        splits: !matches!(self.kind(*selector), Kind::Uniform | Kind::Unset),
                        frame: None,
                        is_loop: false,
                    };
                    let blocks: Vec<&Vec<Node>> =
                        cases.iter().map(|(_, body)| body).chain([default]).collect();
                    self.inside(around, &blocks);
                }
                Node::Loop { at, end, frame, body } | Node::Labeled { at, end, frame, body } => {
                    let around = Around {
                        start: *at,
                        end: *end,
                        splits: false,
                        frame: Some(*frame),
                        is_loop: matches!(node, Node::Loop { .. }),
                    };
                    self.inside(around, &[body]);
                }
                Node::Leave { frame: None, .. } => {}
                Node::Leave {
                    frame: Some(frame),
                    how,
                    ..
                } => {
                    let inner = self.around.iter().rev().take_while(|a| a.frame != Some(*frame));
                    let parts = inner.into_iter().any(|a| self.waits(a));
                    // Where some wait for the next turn of the loop already, the others leave it without them.
                    if parts || self.spreads.parted[*frame as usize] != [false; 2] {
                        self.part(*frame, *how);
                    }
                }
            }
        }
    }

    /// Whether lanes that are in the construct may wait while others go on.
    fn waits(&self, a: &Around) -> bool {
        a.splits
            || a.frame
                .is_some_and(|f| self.spreads.parted[f as usize] != [false; 2])
    }

    /// Whether no lane that waits reads what is assigned to a variable here.
    fn is_plain(&self, v: V) -> bool {
        let Some(extent) = self.extents.get(v.0 as usize) else {
            return false;
        };
        let depth = extent.around.as_ref().map_or(0, Vec::len);
        let inner = self.around.get(depth..).unwrap_or_default();
        inner.iter().enumerate().all(|(i, a)| {
            if !self.waits(a) {
                return true;
            }
            let continues = a
                .frame
                .is_some_and(|f| self.spreads.parted[f as usize][Leaving::Continue as usize]);
            // Those that wait do so until the construct's end, and read nothing behind it.
            let turns = inner[..i].iter().any(|outer| outer.is_loop);
            !continues && !a.splits && !turns && extent.last_read < a.end && extent.last_read > a.start
        })
    }

    fn operation(&mut self, at: u32, act: &Act, outs: &[V]) {
        if let (Act::Move(from), [to]) = (act, outs) {
            let info = &self.tree.values[to.0 as usize];
            let plain = !info.variable || self.is_plain(*to);
            if self.spreads.plain[at as usize] && !plain {
                self.spreads.plain[at as usize] = false;
                self.changed = true;
            }
            let kind = if plain { self.kind(*from) } else { Kind::Lanes };
            self.raise(*to, kind);
            if !info.variable {
                self.spreads.known[to.0 as usize] = self.spreads.known[from.0 as usize];
            }
            return;
        }
        let kind = self.result(act, outs);
        for out in outs {
            self.raise(*out, kind);
        }
    }

    fn result(&mut self, act: &Act, outs: &[V]) -> Kind {
        use Kind::{Affine, Lanes, Uniform, Unset};
        let kinds: Vec<Kind> = act.reads().into_iter().map(|v| self.kind(v)).collect();
        if kinds.contains(&Unset) {
            return Unset;
        }
        let uniform = kinds.iter().all(|k| *k == Uniform);
        let scalar = |s: Scalar| s.is_int() && s.size() >= 4;
        match act {
            Act::Unary(op, s, _) => match op {
                UnaryOp::Not | UnaryOp::Neg if uniform && (scalar(*s) || *s == Scalar::Bool) => Uniform,
                _ => Lanes,
            },
            Act::Binary(op, s, a, b) => {
                if uniform {
                    let known = *op as u8 <= BinaryOp::Ge as u8
                        && !matches!(op, BinaryOp::RotateLeft | BinaryOp::RotateRight);
                    let bools = matches!(
                        op,
                        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Eq | BinaryOp::Ne
                    );
                    if known && scalar(*s) || bools && *s == Scalar::Bool {
                        self.know(*op, *a, *b, outs);
                        return Uniform;
                    }
                    return Lanes;
                }
                if !scalar(*s) {
                    return Lanes;
                }
                let constant = |v: &V| {
                    let bits = self.spreads.constants[v.0 as usize]?;
                    i32::try_from(if s.size() == 4 {
                        i64::from(bits as i32)
                    } else {
                        bits as i64
                    })
                    .ok()
                };
                let result = match (op, kinds[0], kinds[1]) {
                    (BinaryOp::Add, Affine(x), Affine(y)) => x.checked_add(y).map(Affine),
                    (BinaryOp::Sub, Affine(x), Affine(y)) => x.checked_sub(y).map(Affine),
                    (BinaryOp::Add, Affine(x), Uniform) | (BinaryOp::Add, Uniform, Affine(x)) => {
                        Some(Affine(x))
                    }
                    (BinaryOp::Sub, Affine(x), Uniform) => Some(Affine(x)),
                    (BinaryOp::Sub, Uniform, Affine(x)) => x.checked_neg().map(Affine),
                    (BinaryOp::Mul, Affine(x), Uniform) => {
                        constant(b).and_then(|c| x.checked_mul(c)).map(Affine)
                    }
                    (BinaryOp::Mul, Uniform, Affine(x)) => {
                        constant(a).and_then(|c| x.checked_mul(c)).map(Affine)
                    }
                    (BinaryOp::Shl, Affine(x), Uniform) => constant(b)
                        .filter(|c| (0..16).contains(c))
                        .and_then(|c| x.checked_mul(1 << c))
                        .map(Affine),
                    _ => None,
                };
                self.know(*op, *a, *b, outs);
                match result.unwrap_or(Lanes) {
                    Affine(0) => Uniform,
                    Affine(x) if x.unsigned_abs() > 1 << 20 => Lanes,
                    other => other,
                }
            }
            Act::Divide(_, s, ..) if uniform && scalar(*s) => Uniform,
            Act::Ternary(TernaryOp::Select, s, ..) if uniform && (scalar(*s) || *s == Scalar::Bool) => {
                Uniform
            }
            Act::Cast(from, to, a) => {
                let known = self.spreads.known[a.0 as usize];
                let both = scalar(*from) && scalar(*to);
                if both && let [out] = outs {
                    self.spreads.known[out.0 as usize] = known;
                }
                match kinds[0] {
                    Uniform if both => Uniform,
                    // Modulo a smaller power of two, or known not to leave the smaller type.
                    Affine(x) if both && (to.size() <= from.size() || known != Known::Nothing) => Affine(x),
                    _ => Lanes,
                }
            }
            Act::Access {
                kind: AccessKind::Load,
                access,
                ..
            } if uniform => match self.program.accesses[*access as usize].leaves.as_slice() {
                // A float is wanted in a vector register.
                [(s, ..)] if scalar(*s) => Uniform,
                _ => Lanes,
            },
            _ => Lanes,
        }
    }

    /// Follows how the front end computes a lane's index in the grid.
    fn know(&mut self, op: BinaryOp, a: V, b: V, outs: &[V]) {
        let [out] = outs else { return };
        let (x, y) = (self.spreads.known[a.0 as usize], self.spreads.known[b.0 as usize]);
        let known = match (op, x, y) {
            (BinaryOp::Mul, Known::BlockIdx(i), Known::BlockDim(j))
            | (BinaryOp::Mul, Known::BlockDim(i), Known::BlockIdx(j))
                if i == j =>
            {
                Known::Start(i)
            }
            (BinaryOp::Add, Known::Start(i), Known::ThreadIdx(j))
            | (BinaryOp::Add, Known::ThreadIdx(i), Known::Start(j))
                if i == j =>
            {
                Known::GlobalId(i)
            }
            _ => Known::Nothing,
        };
        self.spreads.known[out.0 as usize] = known;
    }
}
