//! Walks a program once for all lanes of some rows of blocks: both ways where a condition is not known, loops turn by turn, then
//! by what holds in every turn.

use super::form::{Cut, Form, Rows, binary, cast, limits, number, ternary, unary};
use super::program::*;
use crate::ir::Scalar;
use crate::ops::{BinaryOp, UnaryOp};

/// Turns of a loop that are walked one by one.
const TURNS: u32 = 8;

/// Nodes that are walked at most.
const STEPS: u32 = 1 << 16;

/// How far a condition is looked into.
const DEPTH: u32 = 8;

/// By slot.
type State = Vec<Form>;

/// Bytes of a buffer that the lanes of a row may access: from `form.low` up to, and without, `form.high`, a stride further with
/// each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) param: u32,
    pub(super) stores: bool,
    pub(super) form: Form,
}

/// Why a walk ends early.
pub(super) enum Stop {
    /// The rows must be cut.
    Cut(i64),
    /// It takes too long.
    Long,
}

impl From<Cut> for Stop {
    fn from(Cut(at): Cut) -> Stop {
        Stop::Cut(at)
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
    rows: Rows,
    /// Elements of each buffer parameter.
    lengths: &'a [u64],
    frames: Vec<Frame>,
    steps: u32,
    pub(super) touches: Vec<Touch>,
}

impl<'a> Walk<'a> {
    /// `state`: what is known when lanes begin.
    pub(super) fn run(
        program: &'a Program,
        rows: Rows,
        lengths: &'a [u64],
        state: State,
    ) -> Result<Vec<Touch>> {
        let mut walk = Walk {
            program,
            rows,
            lengths,
            frames: Vec::new(),
            steps: 0,
            touches: Vec::new(),
        };
        walk.block(&program.nodes, Some(state))?;
        Ok(walk.touches)
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
                Node::Let(slot, act) => state[*slot as usize] = self.act(act, &state)?,
                Node::Assign(to, from) => state[*to as usize] = state[*from as usize],
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
                    *into = join(into.take(), Some(state), &self.rows);
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

    fn construct(&mut self, node: &Node, state: State) -> Result<Option<State>> {
        match node {
            Node::If(condition, then, otherwise) => {
                let (mut yes, mut no) = (state.clone(), state);
                let yes = self.assume(&mut yes, *condition, true, 0).then_some(yes);
                let no = self.assume(&mut no, *condition, false, 0).then_some(no);
                let (yes, no) = (self.block(then, yes)?, self.block(otherwise, no)?);
                Ok(join(yes, no, &self.rows))
            }
            Node::Switch(selector, s, cases, default) => {
                let value = state[*selector as usize].actual(*s, &self.rows).flat(&self.rows);
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
                    after = join(after, here, &self.rows);
                }
                let rest = self.block(default, left.then_some(state))?;
                Ok(join(after, rest, &self.rows))
            }
            Node::Labeled(body) => {
                self.frames.push(Frame::default());
                let end = self.block(body, Some(state))?;
                let frame = self.frames.pop().unwrap_or_default();
                Ok(join(end, frame.broken, &self.rows))
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
            after = join(after, frame.broken, &self.rows);
            let next = join(end, frame.continued, &self.rows);
            turn += 1;
            head = match next {
                Some(next) if turn >= TURNS => {
                    let widest = self.widened(&now, next, turn > TURNS);
                    (turn == TURNS || widest != now).then_some(widest)
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
            let both = now.join(next, &self.rows);
            let (least, most) = limits(*s);
            match () {
                _ if both == *now => *now,
                // No longer a number of the type, or one for each row.
                _ if both.stride != 0 || both.low < least || both.high > most => Form::ANY,
                _ if both.low == now.low && now.high < most => Form::between(now.low, most),
                _ if both.high == now.high && now.low > least => Form::between(least, now.high),
                _ if !again => both,
                _ => Form::ANY,
            }
        })
        .collect()
    }

    fn act(&self, act: &Act, state: &State) -> Result<Form> {
        let get = |slot: Slot| state[slot as usize];
        Ok(match *act {
            Act::Between(low, high) => Form::between(low, high),
            Act::Copy(a) => get(a),
            Act::Unary(op, s, a) => unary(op, s, get(a), &self.rows),
            Act::Binary(op, s, a, t, b) => binary(op, s, get(a), t, get(b), &self.rows)?,
            Act::Ternary(op, s, all) => ternary(op, s, all.map(get), &self.rows)?,
            Act::Cast(from, to, a) => cast(from, to, get(a), &self.rows),
        })
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
        let actual = |state: &State, slot: Slot| state[slot as usize].actual(s, &self.rows).flat(&self.rows);
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
        // A form with a stride says more about a row.
        if slot == UNKNOWN || state[slot as usize].stride != 0 {
            return;
        }
        let before = state[slot as usize].actual(s, &self.rows);
        state[slot as usize] = to;
        let Some(Some(act)) = self.program.acts.get(slot as usize).filter(|_| depth < DEPTH) else {
            return;
        };
        match *act {
            Act::Cast(from, _, a) if from.is_int() => {
                let inner = state[a as usize].actual(from, &self.rows);
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
        for index in &access.indices {
            let length = match index.length {
                Length::Buffer => self.lengths.get(access.param as usize).copied().unwrap_or(0),
                Length::Fixed(n) => n.into(),
            };
            let Some(index_form) = self.inside(state[index.slot as usize], index.ty, length)? else {
                return Ok(false);
            };
            at = at.plus(index_form.scaled(index.size.into()).unwrap_or(Form::ANY));
        }
        let form = Form {
            high: at.high.saturating_add(access.size.into()),
            ..at
        };
        let Access { param, stores, .. } = *access;
        let is_like = |touch: &&mut Touch| {
            (touch.param, touch.stores, touch.form.stride) == (param, stores, form.stride)
        };
        match self.touches.iter_mut().find(is_like) {
            Some(touch) => touch.form = touch.form.join(form, &self.rows),
            None => self.touches.push(Touch { param, stores, form }),
        }
        Ok(true)
    }

    /// The values of an index that lie below a length; `None` where none does.
    fn inside(&self, form: Form, s: Scalar, length: u64) -> Result<Option<Form>> {
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let all = Form::between(0, length.saturating_sub(1));
        if length == 0 {
            return Ok(None);
        }
        // No other number congruent to one of the form is an index: those lie beyond the length or below zero.
        let alone = |(low, high): (i64, i64)| match s.bits() {
            64 => true,
            bits => high < 1 << bits && low >= length.saturating_sub(1 << bits),
        };
        let (form, (low, high)) = match form.range(&self.rows).filter(|range| alone(*range)) {
            Some(range) => (form, range),
            None => {
                let form = form.actual(s, &self.rows);
                match form.range(&self.rows) {
                    Some(range) => (form, range),
                    None => return Ok(Some(all)),
                }
            }
        };
        if low >= 0 && high < length {
            return Ok(Some(form));
        }
        if high < 0 || low >= length {
            return Ok(None);
        }
        if form.stride != 0 {
            // Rows in which every index is too large, or negative, need not make the others look worse.
            super::form::less(form, Form::constant(length), &self.rows)?;
            super::form::less(form, Form::constant(0), &self.rows)?;
        }
        Ok(Some(Form::between(low.max(0), high.min(length - 1))))
    }
}

fn join(a: Option<State>, b: Option<State>, rows: &Rows) -> Option<State> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.iter().zip(b).map(|(a, b)| a.join(b, rows)).collect()),
        (a, b) => a.or(b),
    }
}
