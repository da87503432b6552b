//! `match`: a switch where all arms are integers without guards, else a chain of conditions.

use std::sync::Arc;

use super::branch::Branch;
use super::value::Val;
use super::{Emitter, Result};
use crate::front::rust::describe::EnumDesc;
use crate::front::rust::infer::tree::{
    Arm, Expr, FloatBounds, Pat, always_matches, borrows_mut, follows_references,
};
use crate::front::rust::infer::ty::{Len, Ty};
use crate::ir::{Effect, FaultKind, Inst, Scalar, Value};
use crate::ops::BinaryOp;

/// Arms up to which conditions are nested.
const NESTED_ARMS: usize = 16;

/// Elements up to which a pattern takes an array apart.
pub(in crate::front::rust) const TAKEN_APART: u64 = 256;

/// Labels up to which a range is written out in a switch.
const SWITCH_LABELS: usize = 64;

impl Emitter<'_> {
    /// `match`.
    pub(super) fn match_expr(&mut self, scrutinee: &Expr, arms: &[Arm], ty: &Ty, line: u32) -> Result<Val> {
        let met = self.ty(&scrutinee.ty);
        let rows: Vec<&Pat> = arms
            .iter()
            .filter(|a| a.guard.is_none())
            .map(|a| &a.pattern)
            .collect();
        self.check_patterns(arms, &met)?;
        if let Some(missing) = self.missing(&rows, &met) {
            return Err(self.error(
                line,
                format!("the `match` does not cover {missing}"),
                "add an arm `_ => …`",
            ));
        }
        let changed = arms.iter().any(|arm| borrows_mut(&arm.pattern));
        let val = self.matched(scrutinee, changed)?;
        self.at(line);
        if self.body.ended {
            return Ok(Val::unit());
        }
        if let (Val::Value(selector), Ty::Scalar(_) | Ty::Enum(_)) = (&val, &met)
            && met != Ty::BOOL
            && self.known(*selector).is_none()
            && let Some(labels) = self.switch_labels(arms, &met, *selector, line)?
        {
            return self.switch(*selector, arms, labels, &met, ty, line);
        }
        if arms.len() > NESTED_ARMS {
            return self.ladder(&val, arms, &met, ty, line);
        }
        self.chain(&val, arms, &met, ty, line)
    }

    /// Arms as conditions side by side, each of which leaves a block around all: many arms do not nest.
    fn ladder(&mut self, val: &Val, arms: &[Arm], met: &Ty, ty: &Ty, line: u32) -> Result<Val> {
        let slot = self.slot(ty, "matched", line)?;
        let branch = self.framed(None, |this, level| {
            let mut rest = arms;
            while rest.len() > NESTED_ARMS {
                let (some, others) = rest.split_at(1);
                rest = others;
                let Some(arm) = some.first() else { break };
                this.at(arm.line);
                let Some(cond) = this.arm_condition(arm, val, met, false)? else {
                    rest = some;
                    break;
                };
                let then = this.branch(|this| this.arm_body(arm, val))?;
                let ended = then.ended;
                let block = this.finish_branch(then, &slot, arm.line)?;
                this.k.reopen_block(block);
                if !ended {
                    this.k.push(Inst::Break(this.depth(level)));
                }
                let block = this.k.close_block();
                this.k.push(Inst::If(cond, block, crate::ir::Block::default()));
            }
            let last = this.chain(val, rest, met, ty, line)?;
            if !this.body.ended {
                this.put(&slot, &last, line)?;
            }
            Ok(())
        })?;
        self.at(line);
        self.k.push(Inst::Labeled(branch.block));
        self.get(&slot, line)
    }

    /// An arm's condition; `None` where it always holds. What a reference of `Some` refers to is there only where it holds, so
    /// [`Emitter::arm_body`] binds the names again.
    fn arm_condition(&mut self, arm: &Arm, val: &Val, met: &Ty, last: bool) -> Result<Option<Value>> {
        // The last arm needs no test, unless memory can hold what no arm covers.
        let test = if last && arm.guard.is_none() && enum_of(met).is_none() {
            None
        } else {
            self.test(&arm.pattern, val, met, arm.line)?
        };
        let Some(guard) = &arm.guard else {
            return Ok(test);
        };
        let guarded = |this: &mut Self| {
            this.bind_pattern(&arm.pattern, val.clone(), arm.line)?;
            this.value(guard)
        };
        match test {
            None => guarded(self).map(Some),
            Some(test) => self.logic_with(true, test, arm.line, guarded).map(Some),
        }
    }

    /// Binds an arm's names and emits its body.
    fn arm_body(&mut self, arm: &Arm, val: &Val) -> Result<Val> {
        self.bind_pattern(&arm.pattern, val.clone(), arm.line)?;
        self.expr(&arm.body)
    }

    /// Labels of each arm of a switch, `None` for the default arm; nothing where a switch will not do.
    fn switch_labels(
        &self,
        arms: &[Arm],
        met: &Ty,
        selector: Value,
        line: u32,
    ) -> Result<Option<Vec<Option<Vec<u64>>>>> {
        let Some(s) = self.num_of(selector, line)?.word() else {
            return Ok(None);
        };
        let mask = u64::MAX >> (64 - s.bits());
        let (min, max) = self.range_of(met);
        let mut seen = std::collections::HashSet::new();
        let mut labels = Vec::new();
        let mut count = 0;
        for arm in arms {
            if arm.guard.is_some() {
                return Ok(None);
            }
            let mut ranges = Vec::new();
            match ranges_of(&arm.pattern, &mut ranges) {
                Cover::All => {
                    labels.push(None);
                    // What follows is never reached.
                    break;
                }
                Cover::Ranges => {}
                Cover::Other => return Ok(None),
            }
            let mut own = Vec::new();
            for (low, high) in ranges {
                let (low, high) = (low.unwrap_or(min), high.unwrap_or(max));
                if high - low >= SWITCH_LABELS as i128 {
                    return Ok(None);
                }
                for value in low..=high {
                    if seen.insert(value) {
                        own.push((value as u64) & mask);
                    }
                }
            }
            count += own.len();
            labels.push(Some(own));
        }
        Ok((count <= SWITCH_LABELS && arms.len() > 2).then_some(labels))
    }

    fn switch(
        &mut self,
        selector: Value,
        arms: &[Arm],
        labels: Vec<Option<Vec<u64>>>,
        met: &Ty,
        ty: &Ty,
        line: u32,
    ) -> Result<Val> {
        let mut cases: Vec<(Vec<u64>, Branch)> = Vec::new();
        let mut default = None;
        // An enum's default is a fault, unless it was made of constants here; integers without one end with their last arm.
        let all: Vec<u64> = labels.iter().flatten().flatten().copied().collect();
        let mask = self.num_of(selector, line)?.all_bits() as u64;
        let is_covered = |constants: Vec<u64>| constants.iter().all(|bits| all.contains(&(bits & mask)));
        let last_is_default =
            !matches!(met, Ty::Enum(_)) || self.constants_of(selector).is_some_and(is_covered);
        let ends_with_default = labels.iter().any(Option::is_none);
        let count = labels.len();
        for (i, (arm, labels)) in arms.iter().zip(labels).enumerate() {
            let branch = self.branch(|this| {
                this.bind_pattern(&arm.pattern, Val::Value(selector), arm.line)?;
                this.expr(&arm.body)
            })?;
            match labels {
                None => default = Some(branch),
                Some(_) if last_is_default && !ends_with_default && i + 1 == count => default = Some(branch),
                Some(labels) if !labels.is_empty() => cases.push((labels, branch)),
                Some(_) => {}
            }
        }
        let default = match default {
            Some(default) => default,
            None => self.branch(|this| this.no_variant(&Val::Value(selector), met, line))?,
        };
        self.at(line);
        let ended = default.ended && cases.iter().all(|(_, b)| b.ended);
        let slot = self.slot(if ended { &Ty::Never } else { ty }, "matched", line)?;
        let cases = cases
            .into_iter()
            .map(|(labels, branch)| Ok((labels, self.finish_branch(branch, &slot, line)?)))
            .collect::<Result<_>>()?;
        let default = self.finish_branch(default, &slot, line)?;
        self.k.push(Inst::Switch {
            selector,
            cases,
            default,
        });
        self.body.ended = ended;
        self.get(&slot, line)
    }

    /// The fault of an enum value that its type does not have.
    fn no_variant(&mut self, val: &Val, met: &Ty, line: u32) -> Result<Val> {
        self.at(line);
        let operand = self.enum_in(val, met, line)?;
        let operand = match operand {
            Some(operand) => operand,
            None => self.constant(Scalar::U32, 0),
        };
        let subject = enum_of(met).map_or(String::new(), |found| found.name.clone());
        let done = self.k.effect(Effect::Fault(
            FaultKind::UnreachableEnum,
            subject.into(),
            vec![operand],
        ));
        self.typed(line, done)?;
        Ok(Val::unit())
    }

    /// The first enum in what is matched.
    fn enum_in(&mut self, val: &Val, met: &Ty, line: u32) -> Result<Option<Value>> {
        match met {
            Ty::Enum(_) => {
                let val = self.value_met(val, met, line)?;
                self.value_of(&val, line).map(Some)
            }
            Ty::Ref(_, target) => {
                let val = self.dereferenced(val, line)?;
                self.enum_in(&val, target, line)
            }
            _ => {
                for (i, part) in parts_of(met).into_iter().flatten().enumerate() {
                    if enum_of(&part).is_some() {
                        let val = self.part_met(val, i as u32, line)?;
                        return self.enum_in(&val, &part, line);
                    }
                }
                Ok(None)
            }
        }
    }

    /// Arms as conditions, one after another.
    fn chain(&mut self, val: &Val, arms: &[Arm], met: &Ty, ty: &Ty, line: u32) -> Result<Val> {
        let Some((arm, rest)) = arms.split_first() else {
            return self.no_variant(val, met, line);
        };
        self.at(arm.line);
        let cond = self.arm_condition(arm, val, met, rest.is_empty())?;
        let Some(cond) = cond else {
            return self.arm_body(arm, val);
        };
        match self.known(cond) {
            Some(0) => return self.chain(val, rest, met, ty, line),
            Some(_) => return self.arm_body(arm, val),
            None => {}
        }
        let then = self.branch(|this| this.arm_body(arm, val))?;
        let otherwise = self.branch(|this| this.chain(val, rest, met, ty, line))?;
        self.join(cond, then, otherwise, ty, arm.line)
    }

    /// Both of two conditions, where there are two.
    fn both(&mut self, a: Option<Value>, b: Option<Value>, line: u32) -> Result<Option<Value>> {
        match (a, b) {
            (Some(a), Some(b)) => self.binary(BinaryOp::And, a, b, line).map(Some),
            (one, None) | (None, one) => Ok(one),
        }
    }

    /// Whether the value matches; `None` where it always does.
    pub(super) fn test(&mut self, pat: &Pat, val: &Val, ty: &Ty, line: u32) -> Result<Option<Value>> {
        match pat {
            Pat::Wild | Pat::Binding(_) | Pat::Borrow(_) | Pat::BorrowMut(_) => Ok(None),
            Pat::At(_, inner) => self.test(inner, val, ty, line),
            Pat::Deref(inner) => match ty {
                Ty::Ref(_, target) => {
                    let val = self.behind(val, inner, line)?;
                    self.test(inner, &val, target, line)
                }
                _ => Err(self.error(line, "a reference's pattern meets no reference", "")),
            },
            Pat::Range(low, high) => {
                let (min, max) = self.range_of(ty);
                let low = low.filter(|low| *low > min);
                let high = high.filter(|high| *high < max);
                if (low, high) == (None, None) {
                    return Ok(None);
                }
                let value = self.value_met(val, ty, line)?;
                let value = self.value_of(&value, line)?;
                let s = self.num_of(value, line)?;
                if s == Scalar::Bool {
                    return Ok(Some(if low.is_some() {
                        value
                    } else {
                        self.not(value, line)?
                    }));
                }
                let is_point = match (low, high) {
                    (Some(low), Some(high)) => low == high,
                    (Some(low), None) => low == max,
                    (None, Some(high)) => high == min,
                    (None, None) => false,
                };
                let compare = |this: &mut Self, op, bound: i128| {
                    let bound = this.integer(s, bound as u128 & s.all_bits());
                    this.binary(op, value, bound, line)
                };
                if is_point {
                    return compare(self, BinaryOp::Eq, low.or(high).unwrap_or(min)).map(Some);
                }
                let above = match low {
                    Some(low) => Some(compare(self, BinaryOp::Ge, low)?),
                    None => None,
                };
                let below = match high {
                    Some(high) => Some(compare(self, BinaryOp::Le, high)?),
                    None => None,
                };
                self.both(above, below, line)
            }
            Pat::Floats(bounds) => {
                let value = self.value_met(val, ty, line)?;
                let value = self.value_of(&value, line)?;
                let compare = |this: &mut Self, op, digits: &str| {
                    let bound = this.float(ty, digits, line)?;
                    this.binary(op, value, bound, line)
                };
                match bounds {
                    FloatBounds::Equal(digits) => compare(self, BinaryOp::Eq, digits).map(Some),
                    FloatBounds::Between(low, high) => {
                        let above = low.as_ref().map(|low| compare(self, BinaryOp::Ge, low));
                        let below = high.as_ref().map(|(high, included)| {
                            compare(self, if *included { BinaryOp::Le } else { BinaryOp::Lt }, high)
                        });
                        self.both(above.transpose()?, below.transpose()?, line)
                    }
                }
            }
            Pat::Or(pats) => {
                let mut any = None;
                for pat in pats {
                    let Some(test) = self.test(pat, val, ty, line)? else {
                        return Ok(None);
                    };
                    any = Some(match any {
                        Some(any) => self.binary(BinaryOp::Or, any, test, line)?,
                        None => test,
                    });
                }
                Ok(any)
            }
            Pat::Slice {
                front,
                rest,
                back,
                of,
            } => self.test_elements((front, rest.as_deref(), back), *of, val, ty, line),
            Pat::Tuple(pats) => {
                let Some(types) = parts_of(ty) else {
                    return Err(self.error(line, "a pattern with parts meets what has none", ""));
                };
                let mut all = None;
                for (i, (pat, ty)) in pats.iter().zip(types.iter()).enumerate() {
                    if always_matches(pat) {
                        continue;
                    }
                    if let (Some(before), true) = (all, follows_references(pat)) {
                        all = Some(self.logic_with(true, before, line, |this| {
                            let element = this.part_met(val, i as u32, line)?;
                            match this.test(pat, &element, ty, line)? {
                                Some(test) => Ok(test),
                                None => Ok(this.constant(Scalar::Bool, 1)),
                            }
                        })?);
                        continue;
                    }
                    let element = self.part_met(val, i as u32, line)?;
                    let Some(test) = self.test(pat, &element, ty, line)? else {
                        continue;
                    };
                    all = Some(match all {
                        Some(all) => self.binary(BinaryOp::And, all, test, line)?,
                        None => test,
                    });
                }
                Ok(all)
            }
        }
    }
}

/// Whether values of the type come from memory that may hold what the type does not have.
fn enum_of(ty: &Ty) -> Option<Arc<EnumDesc>> {
    match ty {
        Ty::Enum(found) => Some(found.clone()),
        Ty::Ref(_, inner) | Ty::Array(inner, _) => enum_of(inner),
        _ => parts_of(ty)?.iter().find_map(enum_of),
    }
}

/// The types of what a pattern takes apart.
pub(super) fn parts_of(ty: &Ty) -> Option<Vec<Ty>> {
    match ty {
        Ty::Tuple(elements) => Some(elements.to_vec()),
        Ty::Struct(desc) => Some(desc.fields.iter().map(|f| Ty::from_desc(&f.ty)).collect()),
        Ty::Array(element, Len::Known(n)) if *n <= TAKEN_APART => {
            Some(vec![(**element).clone(); usize::try_from(*n).ok()?])
        }
        _ => None,
    }
}

enum Cover {
    /// Everything.
    All,
    /// The ranges that were added.
    Ranges,
    /// Something that is no set of integers.
    Other,
}

fn ranges_of(pat: &Pat, out: &mut Vec<(Option<i128>, Option<i128>)>) -> Cover {
    match pat {
        Pat::Wild | Pat::Binding(_) | Pat::Borrow(_) | Pat::BorrowMut(_) => Cover::All,
        Pat::At(_, inner) => ranges_of(inner, out),
        Pat::Range(low, high) => {
            out.push((*low, *high));
            Cover::Ranges
        }
        Pat::Or(pats) => {
            for pat in pats {
                match ranges_of(pat, out) {
                    Cover::Ranges => {}
                    other => return other,
                }
            }
            Cover::Ranges
        }
        Pat::Tuple(_) | Pat::Deref(_) | Pat::Slice { .. } | Pat::Floats(_) => Cover::Other,
    }
}
