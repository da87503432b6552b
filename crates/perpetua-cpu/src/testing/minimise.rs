//! Shrinks what fails: first the tape, which always gives a right kernel, then the kernel itself.

use super::case::Case;
use super::choices::Choices;
use super::compact::compact;
use super::config::Config;
use super::generator::generate;
use perpetua_ir::ir::*;
use perpetua_ir::ops::Meeting;
use perpetua_ir::verify::verify;

/// Shortens a tape as long as the case that it makes still fails; gives the shortest one found, with its case.
/// `fails` is asked at most `tries` times.
pub fn minimise_tape(
    config: &Config,
    tape: &[u32],
    tries: usize,
    mut fails: impl FnMut(&Case) -> bool,
) -> Option<(Vec<u32>, Case)> {
    let make = |tape: &[u32]| {
        let mut choices = Choices::new(tape);
        let case = generate(config, &mut choices).ok()?;
        Some((choices.used(), case))
    };
    let (used, case) = make(tape)?;
    let mut best = (tape.get(..used.min(tape.len()))?.to_vec(), case);
    let mut left = tries;
    let mut chunk = best.0.len() / 2;
    while chunk > 0 && left > 0 {
        let mut at = 0;
        let mut shrunk = false;
        while at < best.0.len() && left > 0 {
            let end = (at + chunk).min(best.0.len());
            let mut cut = best.0.clone();
            cut.drain(at..end);
            let mut zeroed = best.0.clone();
            zeroed.iter_mut().take(end).skip(at).for_each(|v| *v = 0);
            let mut better = None;
            for tape in [cut, zeroed] {
                if tape == best.0 || left == 0 {
                    continue;
                }
                let Some((used, case)) = make(&tape) else {
                    continue;
                };
                left -= 1;
                if fails(&case) {
                    better = tape.get(..used.min(tape.len())).map(|t| (t.to_vec(), case));
                    break;
                }
            }
            match better {
                Some(found) => {
                    shrunk |= found.0.len() < best.0.len();
                    at += if found.0.len() < best.0.len() { 0 } else { chunk };
                    best = found;
                }
                None => at += chunk,
            }
        }
        if !shrunk {
            chunk /= 2;
        }
    }
    Some(best)
}

/// Takes statements out of a case's kernel as long as it verifies and still fails. Barriers, shared memory and
/// atomics stay as they are, and so does what indices and the ends of loops are computed from, so that no race and
/// no endless loop comes in. `fails` is asked at most `tries` times.
pub fn minimise_kernel(case: &Case, tries: usize, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    let mut left = tries;
    loop {
        let mut shrunk = false;
        // From the end, so that what is used goes after what uses it.
        let mut at = size(&best.kernel);
        while at > 0 {
            at -= 1;
            for change in [Change::Remove, Change::Unwrap(0), Change::Unwrap(1), Change::Zero] {
                if left == 0 {
                    return tidied(best, fails);
                }
                let Some(kernel) = changed(&best.kernel, at, change) else {
                    continue;
                };
                if verify(kernel.clone()).is_err() {
                    continue;
                }
                let candidate = Case {
                    kernel,
                    ..best.clone()
                };
                left -= 1;
                if fails(&candidate) {
                    best = candidate;
                    shrunk = true;
                    break;
                }
            }
        }
        if !shrunk {
            return tidied(best, fails);
        }
    }
}

/// The case without what its kernel no longer uses, if it still fails so.
fn tidied(case: Case, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let kernel = compact(&case.kernel);
    let candidate = Case {
        kernel,
        ..case.clone()
    };
    if verify(candidate.kernel.clone()).is_ok() && fails(&candidate) {
        candidate
    } else {
        case
    }
}

/// One way to make a statement simpler.
#[derive(Clone, Copy)]
enum Change {
    /// Takes it out with all that is in it.
    Remove,
    /// Puts one of its blocks in its place.
    Unwrap(usize),
    /// Puts a zero in the place of an operation.
    Zero,
}

fn size(kernel: &Kernel) -> usize {
    let mut count = 0;
    for body in kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]) {
        body.block.walk(&mut |_| count += 1);
    }
    count
}

/// The kernel with one statement changed: they are numbered in order through all functions and the body.
fn changed(kernel: &Kernel, number: usize, change: Change) -> Option<Kernel> {
    let mut kernel = kernel.clone();
    let mut at = number;
    for i in 0..=kernel.functions.len() {
        let body = match kernel.functions.get_mut(i) {
            Some(function) => &mut function.body,
            None => &mut kernel.body,
        };
        let pinned = Pinned::of(body);
        let types = body.values.clone();
        match pinned.apply(&mut body.block, &mut at, change, &types) {
            Outcome::NotHere => {}
            Outcome::Changed => return Some(kernel),
            Outcome::Refused => return None,
        }
    }
    None
}

#[derive(PartialEq)]
enum Outcome {
    NotHere,
    Changed,
    Refused,
}

/// What must stay: that from which indices into memory that lanes share are computed, and that which decides about
/// barriers, such memory, and the ends of loops.
struct Pinned {
    values: Vec<bool>,
    locals: Vec<bool>,
}

impl Pinned {
    fn of(body: &Body) -> Pinned {
        let mut pinned = Pinned {
            values: vec![false; body.values.len()],
            locals: vec![false; body.locals.len()],
        };
        let mut statements = Vec::new();
        body.block.walk(&mut |stmt| statements.push(stmt));
        loop {
            let before = pinned.count();
            // Values are defined before they are used, so going back reaches nearly all at once.
            for stmt in statements.iter().rev() {
                pinned.grow(stmt);
            }
            if pinned.count() == before {
                return pinned;
            }
        }
    }

    fn count(&self) -> usize {
        self.values.iter().chain(&self.locals).filter(|p| **p).count()
    }

    fn pin(&mut self, v: Value) {
        if let Some(pinned) = self.values.get_mut(v.0 as usize) {
            *pinned = true;
        }
    }

    fn grow(&mut self, stmt: &Stmt) {
        let here = |base: Base| matches!(base, Base::Local(_) | Base::Constant(_));
        match &stmt.inst {
            Inst::Let(v, op) => {
                if let Some(place) = op.place()
                    && !here(place.base)
                {
                    place.operands(&mut |v| self.pin(v));
                }
                if self.values.get(v.0 as usize) == Some(&true) {
                    op.operands(&mut |v| self.pin(v));
                    if let Some(Base::Local(id)) = op.place().map(|p| p.base)
                        && let Some(local) = self.locals.get_mut(id.0 as usize)
                    {
                        *local = true;
                    }
                }
            }
            Inst::Do(Effect::Store(place, v, _)) => match place.base {
                Base::Local(id) if self.locals.get(id.0 as usize) == Some(&true) => {
                    place.operands(&mut |v| self.pin(v));
                    self.pin(*v);
                }
                base if here(base) => {}
                _ => place.operands(&mut |v| self.pin(v)),
            },
            Inst::If(v, ..) | Inst::Switch { selector: v, .. } if self.keeps(stmt, 0) => self.pin(*v),
            _ => {}
        }
    }

    /// Whether a statement inside `depth` loops and blocks must stay.
    fn keeps(&self, stmt: &Stmt, depth: u32) -> bool {
        let (here, inner) = match &stmt.inst {
            Inst::Let(_, op) => (shared_op(op), depth),
            Inst::Do(Effect::Store(place, _, sync)) => {
                let here = match place.base {
                    Base::Shared(_) => true,
                    Base::Local(id) => self.locals.get(id.0 as usize) == Some(&true),
                    _ => sync.is_some(),
                };
                (here, depth)
            }
            Inst::Do(Effect::Device(..)) => (true, depth),
            // What leaves only what is inside the statement goes with it.
            Inst::Break(to) => (*to >= depth, depth),
            Inst::Loop(_) | Inst::Labeled(_) => (false, depth + 1),
            _ => (false, depth),
        };
        here || stmt
            .inst
            .blocks()
            .iter()
            .any(|b| b.0.iter().any(|stmt| self.keeps(stmt, inner)))
    }

    fn apply(&self, block: &mut Block, at: &mut usize, change: Change, types: &[Type]) -> Outcome {
        for i in 0..block.0.len() {
            if *at == 0 {
                return self.apply_here(block, i, change, types);
            }
            *at -= 1;
            let Some(stmt) = block.0.get_mut(i) else {
                return Outcome::NotHere;
            };
            for inner in stmt.inst.blocks_mut() {
                let outcome = self.apply(inner, at, change, types);
                if outcome != Outcome::NotHere {
                    return outcome;
                }
            }
        }
        Outcome::NotHere
    }

    fn apply_here(&self, block: &mut Block, i: usize, change: Change, types: &[Type]) -> Outcome {
        let Some(stmt) = block.0.get_mut(i) else {
            return Outcome::NotHere;
        };
        match change {
            Change::Remove if !self.keeps(stmt, 0) => {
                block.0.remove(i);
                Outcome::Changed
            }
            Change::Unwrap(n) => {
                let inner = stmt.inst.blocks_mut().into_iter().nth(n).map(std::mem::take);
                match inner {
                    Some(inner) if !inner.0.iter().any(|stmt| self.keeps(stmt, 0)) => {
                        block.0.splice(i..=i, inner.0);
                        Outcome::Changed
                    }
                    _ => Outcome::Refused,
                }
            }
            Change::Zero => match &mut stmt.inst {
                Inst::Let(v, op) if !shared_op(op) && self.values.get(v.0 as usize) == Some(&false) => {
                    match types.get(v.0 as usize) {
                        Some(ty) if !matches!(op, Op::Zero(_) | Op::Const(..)) && ty.size() > 0 => {
                            *op = Op::Zero(ty.clone());
                            Outcome::Changed
                        }
                        _ => Outcome::Refused,
                    }
                }
                _ => Outcome::Refused,
            },
            Change::Remove => Outcome::Refused,
        }
    }
}

fn shared_op(op: &Op) -> bool {
    match op {
        Op::Atomic(..) | Op::CompareExchange { .. } => true,
        Op::Device(op, _) => op.row().meeting != Meeting::Alone,
        // A function may have a barrier; whether it may go, the verifier cannot say.
        Op::Call(..) => true,
        Op::Load(place, sync) => sync.is_some() || matches!(place.base, Base::Shared(_)),
        _ => false,
    }
}
