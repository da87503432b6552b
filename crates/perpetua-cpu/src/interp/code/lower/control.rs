//! Control flow: branches that all lanes of a gang take together, and masks where they part. Knows of operations that they exist.

use super::super::tree::walk;
use super::*;
use perpetua_ir::ops::BinaryOp;

/// Whether gangs meet somewhere in there.
fn meets(nodes: &[Node]) -> bool {
    let mut meets = false;
    walk(nodes, &mut |node| {
        meets |= matches!(
            node,
            Node::Op {
                act: Act::Barrier | Act::Exchange(..),
                ..
            }
        );
    });
    meets
}

impl Lower<'_> {
    /// Lowers what runs one after the other; whether its end is reached.
    pub(super) fn block(&mut self, nodes: &[Node], skip: Label) -> Result<bool, Refusal> {
        self.depth += 1;
        let falls = self.sequence(nodes, skip);
        self.forget(self.depth);
        self.depth -= 1;
        falls
    }

    fn sequence(&mut self, nodes: &[Node], skip: Label) -> Result<bool, Refusal> {
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
                    let direct = self.out.end;
                    self.put(I::Leave {
                        to: None,
                        direct,
                        skip,
                    });
                    return Ok(false);
                }
                Node::Leave {
                    frame: Some(frame),
                    how,
                    ..
                } => {
                    let exits = self.exits.get(frame).copied();
                    let exits = exits.ok_or(Refusal::Unknown("a frame that is not around"))?;
                    let direct = match how {
                        Leaving::Break => exits.exit,
                        Leaving::Continue => exits.next,
                    };
                    self.put(match (exits.masks, how) {
                        (None, _) => I::Jump(direct),
                        (Some((to, _)), Leaving::Break) | (Some((_, to)), Leaving::Continue) => I::Leave {
                            to: Some(to),
                            direct,
                            skip,
                        },
                    });
                    return Ok(false);
                }
            }
        }
        Ok(true)
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
        let (c, rest) = (self.m(condition)?, self.mask());
        let below = self.only_wanted_here(condition, c);
        let (none, end) = (self.label(), self.label());
        if otherwise.is_empty() {
            self.put(I::Part {
                c,
                below,
                rest,
                done: None,
                none,
                other: none,
            });
            self.block(then, none)?;
            self.put(I::Label(none));
            self.put(I::Join { waiting: rest, skip });
            return Ok(());
        }
        let (done, other) = (self.mask(), self.label());
        self.put(I::Part {
            c,
            below,
            rest,
            done: Some(done),
            none,
            other,
        });
        self.block(then, none)?;
        self.put(I::Label(none));
        self.put(I::Other { done, rest, to: end });
        self.put(I::Label(other));
        self.block(otherwise, end)?;
        self.put(I::Label(end));
        self.put(I::Join { waiting: done, skip });
        Ok(())
    }

    /// The comparison whose result the last instruction gives, if nobody else reads it.
    fn only_wanted_here(&mut self, condition: V, c: R) -> Option<Below> {
        let once = self.reads[condition.index()] == 1;
        match self.sections[self.at].code.last_mut() {
            Some(I::MBelow { below, d, lazy }) if once && *d == c => {
                *lazy = true;
                Some(*below)
            }
            _ => None,
        }
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
        self.put(I::Masked);
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
            self.put(I::Masked);
            self.logic(MOp::Or, done, done, CURRENT);
        }
        let end = self.label();
        self.put(I::MMov { d: CURRENT, s: rest });
        self.put(I::MJumpNone { m: CURRENT, to: end });
        self.block(default, end)?;
        self.put(I::Label(end));
        self.put(I::Join { waiting: done, skip });
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
        self.sections.push(Section::of_loop(body));
        self.at += 1;
        self.put(I::Head);
        self.put(I::Label(head));
        self.block(body, if masks.is_some() { next } else { skip })?;
        self.put(I::Label(next));
        if let Some((_, continued)) = masks {
            self.put(I::Turn { continued, exit });
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
        self.put(I::Tail);
        let section = self.sections.pop().unwrap_or_default();
        self.at -= 1;
        self.sections[self.at].code.extend(section.code);
        self.put(I::Label(exit));
        if let Some((broken, _)) = masks {
            self.put(I::Join {
                waiting: broken,
                skip,
            });
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
            self.put(I::Join {
                waiting: broken,
                skip,
            });
        }
        Ok(())
    }
}
