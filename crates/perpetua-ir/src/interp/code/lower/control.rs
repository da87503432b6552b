//! Control flow: branches that all lanes of a gang take together, and masks where they part. Knows of operations that they exist.

use super::super::tree::walk;
use super::*;
use crate::ops::BinaryOp;

/// Whether gangs meet somewhere in there.
fn meets(nodes: &[Node]) -> bool {
    let mut meets = false;
    walk(nodes, &mut |node| {
        meets |= matches!(
            node,
            Node::Op {
                act: Act::Barrier | Act::Subgroup(..),
                ..
            }
        );
    });
    meets
}

impl Lower<'_> {
    pub(super) fn block(&mut self, nodes: &[Node], skip: Label) -> Result<bool, Refusal> {
        for node in nodes {
            match node {
                Node::Op { pc, at, act, outs } => self.operation(*pc, *at, act, outs, skip)?,
                Node::If {
                    condition,
                    then,
                    otherwise,
                    ..
                } => self.choice(*condition, then, otherwise, skip)?,
                Node::Switch {
                    selector,
                    size,
                    cases,
                    default,
                    ..
                } => self.switch(*selector, *size, cases, default, skip)?,
                Node::Loop { frame, body, .. } => self.repeat(*frame, body, skip)?,
                Node::Labeled { frame, body, .. } => self.labeled(*frame, body, skip)?,
                Node::Leave { frame: None, .. } => {
                    self.nobody();
                    self.put(I::Jump(skip));
                    return Ok(false);
                }
                Node::Leave {
                    frame: Some(frame),
                    how,
                    ..
                } => {
                    let exits = self.exits.get(frame).copied();
                    let exits = exits.ok_or(Refusal::Unknown("a frame that is not around"))?;
                    match exits.masks {
                        None => {
                            let to = match how {
                                Leaving::Break => exits.exit,
                                Leaving::Continue => exits.next,
                            };
                            self.put(I::Jump(to));
                        }
                        Some((broken, continued)) => {
                            let to = match how {
                                Leaving::Break => broken,
                                Leaving::Continue => continued,
                            };
                            self.logic(MOp::Or, to, to, CURRENT);
                            self.nobody();
                            self.put(I::Jump(skip));
                        }
                    }
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Lanes of `waiting` go on beside those that are active; if there are none, to `skip`.
    pub(super) fn join(&mut self, waiting: R, skip: Label) {
        self.logic(MOp::Or, CURRENT, CURRENT, waiting);
        self.put(I::MJumpNone { m: CURRENT, to: skip });
    }

    pub(super) fn choice(
        &mut self,
        condition: V,
        then: &[Node],
        otherwise: &[Node],
        skip: Label,
    ) -> Result<(), Refusal> {
        if self.spreads.kind(condition) == Kind::Uniform {
            let (other, end) = (self.label(), self.label());
            let a = self.g(condition)?;
            self.put(I::GJump {
                cc: Cc::E,
                a,
                to: other,
            });
            if self.block(then, skip)? && !otherwise.is_empty() {
                self.put(I::Jump(end));
            }
            self.put(I::Label(other));
            self.block(otherwise, skip)?;
            self.put(I::Label(end));
            return Ok(());
        }
        let (c, rest, end) = (self.m(condition)?, self.mask(), self.label());
        self.logic(MOp::AndNot, rest, c, CURRENT);
        self.logic(MOp::And, CURRENT, c, CURRENT);
        self.put(I::MJumpNone { m: CURRENT, to: end });
        self.block(then, end)?;
        self.put(I::Label(end));
        if otherwise.is_empty() {
            self.join(rest, skip);
            return Ok(());
        }
        let (done, end) = (self.mask(), self.label());
        self.put(I::MMov { d: done, s: CURRENT });
        self.put(I::MMov { d: CURRENT, s: rest });
        self.put(I::MJumpNone { m: CURRENT, to: end });
        self.block(otherwise, end)?;
        self.put(I::Label(end));
        self.join(done, skip);
        Ok(())
    }

    pub(super) fn switch(
        &mut self,
        selector: V,
        size: u32,
        cases: &[(Vec<u64>, Vec<Node>)],
        default: &[Node],
        skip: Label,
    ) -> Result<(), Refusal> {
        let all = u64::MAX >> (64 - 8 * size);
        if self.spreads.kind(selector) == Kind::Uniform {
            let end = self.label();
            let a = self.g(selector)?;
            let mut starts = Vec::new();
            for (labels, _) in cases {
                let start = self.label();
                for label in labels {
                    let label = label & all;
                    let small = match size {
                        8 => i32::try_from(label as i64).ok(),
                        _ => Some(label as u32 as i32),
                    };
                    let b = match small {
                        Some(v) => G::Imm(v),
                        None => G::State(self.constant(&label.to_le_bytes(), 8)),
                    };
                    self.put(I::GCompareJump {
                        w: size == 8,
                        cc: Cc::E,
                        a,
                        b,
                        to: start,
                    });
                }
                starts.push(start);
            }
            if self.block(default, skip)? {
                self.put(I::Jump(end));
            }
            for ((_, body), start) in cases.iter().zip(starts) {
                self.put(I::Label(start));
                if self.block(body, skip)? {
                    self.put(I::Jump(end));
                }
            }
            self.put(I::Label(end));
            return Ok(());
        }
        let (rest, done) = (self.mask(), self.mask());
        let x = self.x(selector)?;
        self.put(I::MMov { d: rest, s: CURRENT });
        self.put(I::MConst { d: done, ones: false });
        for (labels, body) in cases {
            let end = self.label();
            let yes = self.mask();
            self.put(I::MConst { d: yes, ones: false });
            for label in labels {
                let b = self.splat(label & all);
                let equal = if size == 8 {
                    let low = self.compare(BinaryOp::Eq, Scalar::U64, x[0], b);
                    let high = self.compare(BinaryOp::Eq, Scalar::U64, x[1], b);
                    let d = self.mask();
                    self.put(I::MPair { d, low, high });
                    d
                } else {
                    self.compare(BinaryOp::Eq, Scalar::U32, x[0], b)
                };
                self.logic(MOp::Or, yes, yes, equal);
            }
            self.logic(MOp::And, CURRENT, yes, rest);
            self.logic(MOp::AndNot, rest, yes, rest);
            self.put(I::MJumpNone { m: CURRENT, to: end });
            self.block(body, end)?;
            self.put(I::Label(end));
            self.logic(MOp::Or, done, done, CURRENT);
        }
        let end = self.label();
        self.put(I::MMov { d: CURRENT, s: rest });
        self.put(I::MJumpNone { m: CURRENT, to: end });
        self.block(default, end)?;
        self.put(I::Label(end));
        self.join(done, skip);
        Ok(())
    }

    pub(super) fn repeat(&mut self, frame: Frame, body: &[Node], skip: Label) -> Result<(), Refusal> {
        let (head, next, exit) = (self.label(), self.label(), self.label());
        let masks = self.spreads.parts(frame).then(|| (self.mask(), self.mask()));
        if let Some((broken, continued)) = masks {
            self.put(I::MConst {
                d: broken,
                ones: false,
            });
            self.put(I::MConst {
                d: continued,
                ones: false,
            });
        }
        self.exits.insert(frame, Exits { exit, next, masks });
        // Where subgroups exchange something, gangs may come to a point in different turns of the loops around it.
        let turns = (self.tree.exchanges && meets(body)).then(|| self.general());
        if let Some(d) = turns {
            let s = G::Imm(0);
            self.put(I::GMov { w: true, d, s });
            self.turns.push((frame, d));
        }
        let start = self.out.code.len();
        self.put(I::Label(head));
        self.block(body, if masks.is_some() { next } else { skip })?;
        self.put(I::Label(next));
        if let Some((_, continued)) = masks {
            self.logic(MOp::Or, CURRENT, CURRENT, continued);
            self.put(I::MConst {
                d: continued,
                ones: false,
            });
            self.put(I::MJumpNone { m: CURRENT, to: exit });
        }
        if let Some(d) = turns {
            let (op, w, a, b) = (GOp::Add, true, G::R(d), G::Imm(1));
            self.put(I::GBin { op, w, d, a, b });
            self.turns.pop();
        }
        self.out.waits += 1;
        let id = self.out.waits;
        self.put(I::Poll { id });
        self.put(I::Jump(head));
        let end = self.out.code.len();
        self.out.loops.push((start, end));
        self.put(I::Label(exit));
        if let Some((broken, _)) = masks {
            self.join(broken, skip);
        }
        Ok(())
    }

    pub(super) fn labeled(&mut self, frame: Frame, body: &[Node], skip: Label) -> Result<(), Refusal> {
        let exit = self.label();
        let masks = self.spreads.parts(frame).then(|| {
            let broken = self.mask();
            (broken, broken)
        });
        if let Some((broken, _)) = masks {
            self.put(I::MConst {
                d: broken,
                ones: false,
            });
        }
        let exits = Exits {
            exit,
            next: exit,
            masks,
        };
        self.exits.insert(frame, exits);
        self.block(body, if masks.is_some() { exit } else { skip })?;
        self.put(I::Label(exit));
        if let Some((broken, _)) = masks {
            self.join(broken, skip);
        }
        Ok(())
    }
}
