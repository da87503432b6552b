//! Walks a program once for all lanes of a box: both ways where a condition is not known, loops turn by turn, then by what holds
//! in every turn.

use super::form::{Form, limits, number};
use super::operator::{binary, cast, ternary, unary};
use super::order::{compare, less};
use super::program::*;
use super::space::{Cut, Space};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};

/// Turns of a loop that are walked one by one: at first, and where that takes too long.
pub(super) const TURNS: [u32; 2] = [8, 2];

/// Nodes that are walked at most.
const STEPS: u32 = 1 << 16;

/// How far a condition is looked into.
const DEPTH: u32 = 8;

/// By slot.
type State = Vec<Form>;

/// Accesses of a buffer that the lanes of a box may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) param: u32,
    pub(super) stores: bool,
    /// Bytes: from `bytes.low` up to, and without, `bytes.high`, moved on by the strides. They lie in the buffer.
    pub(super) bytes: Form,
    /// Elements; beyond the buffer where the box is not proven.
    pub(super) elements: Form,
}

/// What was seen of a condition, by the bits of its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// It was met.
    pub met: u64,
    /// It was the same for every lane whenever it was met.
    pub known: u64,
    /// It held then.
    pub truth: u64,
}

impl Conditions {
    fn note(&mut self, number: u32, truth: Option<bool>) {
        let bit = 1u64.checked_shl(number).unwrap_or(0);
        let again = self.met & bit != 0;
        let same = |truth: bool| self.known & bit != 0 && (self.truth & bit != 0) == truth;
        match truth {
            Some(truth) if !again || same(truth) => {
                self.known |= bit;
                self.truth |= if truth { bit } else { 0 };
            }
            _ => {
                self.known &= !bit;
                self.truth &= !bit;
            }
        }
        self.met |= bit;
    }
}

/// What a walk has seen.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) touches: Vec<Touch>,
    /// Whether each index was in range, for every lane.
    pub(super) proven: bool,
    /// Whether something was met, beside accesses of buffers, that may fault, last or be seen.
    pub(super) stops: bool,
    pub(super) conditions: Conditions,
}

/// Why a walk ends early.
pub(super) enum Stop {
    /// The box must be cut.
    Cut(Cut),
    /// It takes too long.
    Long,
}

impl From<Cut> for Stop {
    fn from(cut: Cut) -> Stop {
        Stop::Cut(cut)
    }
}

type Result<T> = std::result::Result<T, Stop>;

/// A loop or labelled block: the lanes that have left it, and those that start over.
#[derive(Default)]
struct Frame {
    broken: Option<State>,
    continued: Option<State>,
}

pub(super) struct Walk<'a> {
    program: &'a Program,
    space: Space,
    /// Elements of each buffer parameter.
    lengths: &'a [u64],
    frames: Vec<Frame>,
    steps: u32,
    turns: u32,
    /// By slot: where to cut the box so that more is known of a condition.
    cuts: Vec<Option<Cut>>,
    seen: Seen,
}

impl<'a> Walk<'a> {
    /// `state`: what is known when lanes begin. `turns`: those of a loop that are walked one by one.
    pub(super) fn run(
        program: &'a Program,
        space: Space,
        lengths: &'a [u64],
        state: State,
        turns: u32,
    ) -> Result<Seen> {
        let mut walk = Walk {
            program,
            space,
            lengths,
            frames: Vec::new(),
            steps: 0,
            turns,
            cuts: vec![None; state.len()],
            seen: Seen {
                touches: Vec::new(),
                proven: true,
                stops: false,
                conditions: Conditions::default(),
            },
        };
        walk.block(&program.nodes, Some(state))?;
        Ok(walk.seen)
    }

    /// The state behind the nodes; `None` where no lane gets there.
    fn block(&mut self, nodes: &[Node], state: Option<State>) -> Result<Option<State>> {
        let Some(mut state) = state else {
            return Ok(None);
        };
        for node in nodes {
            self.steps += 1;
            if self.steps > STEPS {
                return Err(Stop::Long);
            }
            match node {
                Node::Let(slot, act) => {
                    let (form, cut) = self.act(act, &state)?;
                    state[*slot as usize] = form;
                    self.cuts[*slot as usize] = cut;
                }
                Node::Assign(to, from) => {
                    state[*to as usize] = state[*from as usize];
                    self.cuts[*to as usize] = self.cuts[*from as usize];
                }
                Node::Condition(number, slot) => {
                    let truth = self.decided(*slot, &state)?;
                    self.seen.conditions.note(*number, truth);
                }
                Node::Stops => self.seen.stops = true,
                Node::Access(access) => {
                    if !self.access(access, &state)? {
                        return Ok(None);
                    }
                }
                Node::Return => return Ok(None),
                Node::Break(depth) | Node::Continue(depth) => {
                    let Some(frame) = self.frames.iter_mut().rev().nth(*depth as usize) else {
                        return Err(Stop::Long);
                    };
                    let into = match node {
                        Node::Break(_) => &mut frame.broken,
                        _ => &mut frame.continued,
                    };
                    *into = join(into.take(), Some(state), &self.space);
                    return Ok(None);
                }
                _ => match self.construct(node, state)? {
                    Some(after) => state = after,
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(state))
    }

    /// What is known of a condition. Where a cut tells more, that is asked for.
    fn decided(&self, condition: Slot, state: &State) -> Result<Option<bool>> {
        match (state[condition as usize].truth(), self.cuts[condition as usize]) {
            (None, Some(cut)) => Err(cut.into()),
            (truth, _) => Ok(truth),
        }
    }

    fn construct(&mut self, node: &Node, state: State) -> Result<Option<State>> {
        match node {
            Node::If(condition, then, otherwise) => {
                self.decided(*condition, &state)?;
                let (mut yes, mut no) = (state.clone(), state);
                let yes = self.assume(&mut yes, *condition, true, 0).then_some(yes);
                let no = self.assume(&mut no, *condition, false, 0).then_some(no);
                let (yes, no) = (self.block(then, yes)?, self.block(otherwise, no)?);
                Ok(join(yes, no, &self.space))
            }
            Node::Switch(selector, s, cases, default) => {
                let value = state[*selector as usize]
                    .actual(*s, &self.space)
                    .flat(&self.space);
                let (mut after, mut left) = (None, true);
                for (labels, nodes) in cases {
                    let mut labels = labels.iter().map(|bits| number(*s, *bits));
                    // What is unbounded may be a number that is negative here.
                    let wraps = value.high == i64::MAX && *s == Scalar::U64;
                    let met =
                        |label: &i64| value.low <= *label && *label <= value.high || wraps && *label < 0;
                    let met = labels.find(met).is_some();
                    // Then no other case is.
                    left &= !(met && value.low == value.high);
                    let here = self.block(nodes, met.then(|| state.clone()))?;
                    after = join(after, here, &self.space);
                }
                let rest = self.block(default, left.then_some(state))?;
                Ok(join(after, rest, &self.space))
            }
            Node::Labeled(body) => {
                self.frames.push(Frame::default());
                let end = self.block(body, Some(state))?;
                let frame = self.frames.pop().unwrap_or_default();
                Ok(join(end, frame.broken, &self.space))
            }
            Node::Loop(body) => self.turns(body, state),
            _ => Ok(Some(state)),
        }
    }

    /// Walks a loop.
    fn turns(&mut self, body: &[Node], state: State) -> Result<Option<State>> {
        let mut after = None;
        let mut head = Some(state);
        let mut turn = 0;
        while let Some(now) = head {
            self.frames.push(Frame::default());
            let end = self.block(body, Some(now.clone()))?;
            let frame = self.frames.pop().unwrap_or_default();
            after = join(after, frame.broken, &self.space);
            let next = join(end, frame.continued, &self.space);
            turn += 1;
            head = match next {
                Some(next) if turn >= self.turns => {
                    let widest = self.widened(&now, next, turn > self.turns);
                    (turn == self.turns || widest != now).then_some(widest)
                }
                next => next,
            };
        }
        Ok(after)
    }

    /// What holds in this turn of a loop and in the next, and, as far as numbers grow, in all others. The same as `now`: it holds.
    fn widened(&self, now: &State, next: State, again: bool) -> State {
        let types = &self.program.types;
        let all = now.iter().zip(next).zip(types);
        all.map(|((now, next), s)| {
            let both = now.join(next, &self.space);
            let (least, most) = limits(*s);
            let now_flat = now.flat(&self.space);
            let both = match both == *now {
                true => return *now,
                false => both.flat(&self.space),
            };
            match () {
                // No longer a number of the type.
                _ if both.low < least || both.high > most => Form::ANY,
                _ if both.low == now_flat.low && both.high < most => Form::between(both.low, most),
                _ if both.high == now_flat.high && both.low > least => Form::between(least, both.high),
                _ if !again => both,
                _ => Form::ANY,
            }
        })
        .collect()
    }

    /// A value, and where to cut the box so that more is known of it.
    fn act(&self, act: &Act, state: &State) -> Result<(Form, Option<Cut>)> {
        let get = |slot: Slot| state[slot as usize];
        let cut = |slot: Slot| self.cuts[slot as usize];
        let space = &self.space;
        let form = match *act {
            Act::Between(low, high) => Form::between(low, high),
            Act::Copy(a) => return Ok((get(a), cut(a))),
            Act::Unary(op, s, a) => {
                let asks = cut(a).filter(|_| (op, s) == (UnaryOp::Not, Scalar::Bool));
                return Ok((unary(op, s, get(a), space), asks));
            }
            Act::Binary(op, s, a, t, b) => {
                if let Some(compared) = compare(op, s, get(a), get(b), space) {
                    return Ok(compared);
                }
                let form = binary(op, s, get(a), t, get(b), space)?;
                let joins = s == Scalar::Bool && matches!(op, BinaryOp::And | BinaryOp::Or);
                let asks = joins && form.truth().is_none();
                return Ok((form, Cut::outermost(cut(a), cut(b)).filter(|_| asks)));
            }
            Act::Ternary(TernaryOp::Select, s, [a, b, c]) => {
                self.decided(a, state)?;
                ternary(TernaryOp::Select, s, [a, b, c].map(get), space)?
            }
            Act::Ternary(op, s, all) => ternary(op, s, all.map(get), space)?,
            Act::Cast(from, to, a) => cast(from, to, get(a), space),
        };
        Ok((form, None))
    }

    /// Learns that a condition holds, or does not; false where that cannot be.
    fn assume(&self, state: &mut State, condition: Slot, holds: bool, depth: u32) -> bool {
        if let Some(truth) = state[condition as usize].truth() {
            return truth == holds;
        }
        let act = self.program.acts.get(condition as usize).copied().flatten();
        let (Some(act), true) = (act, depth < DEPTH) else {
            return true;
        };
        match (act, holds) {
            (Act::Unary(UnaryOp::Not, Scalar::Bool, a), _) => self.assume(state, a, !holds, depth + 1),
            (Act::Binary(BinaryOp::And, Scalar::Bool, a, _, b), true)
            | (Act::Binary(BinaryOp::Or, Scalar::Bool, a, _, b), false) => {
                self.assume(state, a, holds, depth + 1) && self.assume(state, b, holds, depth + 1)
            }
            (Act::Binary(op, s, a, _, b), _) if s.is_int() => match (op, holds) {
                (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => self.assume_less(state, s, (a, b), 1),
                (BinaryOp::Gt, true) | (BinaryOp::Le, false) => self.assume_less(state, s, (b, a), 1),
                (BinaryOp::Le, true) | (BinaryOp::Gt, false) => self.assume_less(state, s, (a, b), 0),
                (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => self.assume_less(state, s, (b, a), 0),
                (BinaryOp::Eq, true) | (BinaryOp::Ne, false) => {
                    self.assume_less(state, s, (a, b), 0) && self.assume_less(state, s, (b, a), 0)
                }
                _ => true,
            },
            _ => true,
        }
    }

    /// Learns that `a + by <= b`.
    fn assume_less(&self, state: &mut State, s: Scalar, (a, b): (Slot, Slot), by: i64) -> bool {
        let actual =
            |state: &State, slot: Slot| state[slot as usize].actual(s, &self.space).flat(&self.space);
        let (x, y) = (actual(state, a), actual(state, b));
        if y.high < i64::MAX {
            let Some(high) = y.high.checked_sub(by).filter(|high| x.low <= *high) else {
                return false;
            };
            if x.high > high {
                self.narrow(state, s, a, Form::between(x.low, high), 0);
            }
        }
        let Some(low) = x.low.checked_add(by) else {
            return true;
        };
        // What has no bound above has no form.
        if y.low < low && (y.high < i64::MAX || s != Scalar::U64) {
            if y.high < low {
                return false;
            }
            self.narrow(state, s, b, Form::between(low, y.high), 0);
        }
        true
    }

    /// A slot's value lies in this interval; what it was made of likewise.
    fn narrow(&self, state: &mut State, s: Scalar, slot: Slot, to: Form, depth: u32) {
        // A form with strides says more about a box.
        if slot == UNKNOWN || !state[slot as usize].is_flat() {
            return;
        }
        let before = state[slot as usize].actual(s, &self.space);
        state[slot as usize] = to;
        let Some(Some(act)) = self.program.acts.get(slot as usize).filter(|_| depth < DEPTH) else {
            return;
        };
        match *act {
            Act::Cast(from, _, a) if from.is_int() => {
                let inner = state[a as usize].actual(from, &self.space);
                if inner == before {
                    self.narrow(state, from, a, to, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Notes an access; false where no lane survives it.
    fn access(&mut self, access: &Access, state: &State) -> Result<bool> {
        let mut at = Form::constant(access.offset.into());
        let mut elements = Form::constant(0);
        for index in &access.indices {
            let length = match index.length {
                Length::Buffer => self.lengths.get(access.param as usize).copied().unwrap_or(0),
                Length::Fixed(n) => n.into(),
            };
            let Some((inside, whole)) = self.inside(state[index.slot as usize], index.ty, length)? else {
                return Ok(false);
            };
            at = at.plus(inside.scaled(index.size.into()).unwrap_or(Form::ANY));
            if matches!(index.length, Length::Buffer) {
                elements = whole;
            }
        }
        let bytes = Form {
            high: at.high.saturating_add(access.size.into()),
            ..at
        };
        let Access { param, stores, .. } = *access;
        let new = Touch {
            param,
            stores,
            bytes,
            elements,
        };
        let shape = |touch: &Touch| {
            (
                touch.param,
                touch.stores,
                touch.bytes.strides,
                touch.elements.strides,
            )
        };
        match self
            .seen
            .touches
            .iter_mut()
            .find(|touch| shape(touch) == shape(&new))
        {
            Some(touch) => {
                touch.bytes = touch.bytes.join(bytes, &self.space);
                touch.elements = touch.elements.join(elements, &self.space);
            }
            None => self.seen.touches.push(new),
        }
        Ok(true)
    }

    /// The values of an index that lie below a length, and the index; `None` where it never does. Notes whether it always does.
    fn inside(&mut self, form: Form, s: Scalar, length: u64) -> Result<Option<(Form, Form)>> {
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let all = Form::between(0, length.saturating_sub(1));
        if length == 0 {
            self.seen.proven = false;
            return Ok(None);
        }
        // No other number congruent to one of the form is an index: those lie beyond the length or below zero.
        let alone = |(low, high): (i64, i64)| match s.bits() {
            64 => true,
            bits => high < 1 << bits && low >= length.saturating_sub(1 << bits),
        };
        let (form, (low, high)) = match form.range(&self.space).filter(|range| alone(*range)) {
            Some(range) => (form, range),
            None => {
                let form = form.actual(s, &self.space);
                match form.range(&self.space) {
                    Some(range) => (form, range),
                    None => {
                        self.seen.proven = false;
                        return Ok(Some((all, all)));
                    }
                }
            }
        };
        if low >= 0 && high < length {
            return Ok(Some((form, form)));
        }
        if high < 0 || low >= length {
            self.seen.proven = false;
            return Ok(None);
        }
        if !form.is_flat() {
            // Lanes whose index is too large, or negative, need not make the others look worse.
            let cuts = [Form::constant(length), Form::constant(0)].map(|end| less(form, end, &self.space).1);
            if let Some(cut) = cuts.into_iter().flatten().next() {
                return Err(cut.into());
            }
        }
        self.seen.proven = false;
        Ok(Some((Form::between(low.max(0), high.min(length - 1)), form)))
    }
}

fn join(a: Option<State>, b: Option<State>, space: &Space) -> Option<State> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.iter().zip(b).map(|(a, b)| a.join(b, space)).collect()),
        (a, b) => a.or(b),
    }
}
