//! Which registers instructions read and write.

use super::*;

impl G {
    pub(in super::super) fn reg(self) -> Option<R> {
        match self {
            G::R(r) => Some(r),
            _ => None,
        }
    }
}

impl X {
    pub(in super::super) fn reg(self) -> Option<R> {
        match self {
            X::R(r) => Some(r),
            _ => None,
        }
    }
}

impl Operand {
    pub(in super::super) fn regs(self) -> impl Iterator<Item = R> {
        let regs = match self {
            Operand::One(g) | Operand::Affine(g, _) => [g.reg(), None],
            Operand::Lanes([a, b], n) => [Some(a), (n > 1).then_some(b)],
            Operand::Mask(m) => [Some(m), None],
        };
        regs.into_iter().flatten()
    }
}

impl I {
    /// Calls `visit` with each register read (`false`) or written (`true`).
    pub(in super::super) fn registers(&self, visit: &mut dyn FnMut(R, bool)) {
        let mut g = |g: &G| {
            if let G::R(r) = g {
                visit(*r, false);
            }
        };
        match self {
            I::Row | I::Block | I::Gang | I::Next | I::Head | I::Tail => {}
            I::Masked | I::At(_) | I::Label(_) | I::Jump(_) => {}
            I::GGang { d, .. } => visit(*d, true),
            I::GMov { d, s, .. } => {
                g(s);
                visit(*d, true);
            }
            I::GBin { d, a, b, .. } | I::GCompare { d, a, b, .. } | I::GDivide { d, a, b, .. } => {
                g(a);
                g(b);
                visit(*d, true);
            }
            I::GUnary { d, a, .. }
            | I::GExtend { d, a, .. }
            | I::MFromG { d, a }
            | I::XSplat { d, a, .. } => {
                g(a);
                visit(*d, true);
            }
            I::GSelect { d, c, a, b } => {
                g(c);
                g(a);
                g(b);
                visit(*d, true);
            }
            I::GJump { a, .. } => g(a),
            I::GCompareJump { a, b, .. } => {
                g(a);
                g(b);
            }
            I::MLogic { d, a, b, .. } => {
                visit(*a, false);
                visit(*b, false);
                visit(*d, true);
            }
            I::MMov { d, s } => {
                visit(*s, false);
                visit(*d, true);
            }
            I::MConst { d, .. } | I::XFrameLoad { d, .. } => visit(*d, true),
            I::MFromX { d, a }
            | I::XUnary { d, a, .. }
            | I::XConvert { d, a, .. }
            | I::XWiden { d, a, .. }
            | I::XShift { d, a, .. } => {
                visit(*a, false);
                visit(*d, true);
            }
            I::MPair { d, low, high } | I::XNarrow { d, low, high, .. } => {
                visit(*low, false);
                visit(*high, false);
                visit(*d, true);
            }
            I::MBelow { below, d, .. } => {
                g(&below.base);
                g(&below.n);
                visit(*d, true);
            }
            I::MKeep { d, m } => {
                visit(*m, false);
                visit(*d, false);
                visit(*d, true);
            }
            I::Part {
                c, below, rest, done, ..
            } => {
                if let Some(below) = below {
                    g(&below.base);
                    g(&below.n);
                }
                visit(*c, false);
                visit(*rest, true);
                done.iter().for_each(|done| visit(*done, true));
            }
            I::Other { done, rest, .. } => {
                visit(*rest, false);
                visit(*done, true);
            }
            I::Join { waiting, .. } => visit(*waiting, false),
            I::Leave { to, .. } => to.iter().for_each(|to| {
                visit(*to, false);
                visit(*to, true);
            }),
            I::Turn { continued, .. } => {
                visit(*continued, false);
                visit(*continued, true);
            }
            I::MJumpNone { m, .. } => visit(*m, false),
            I::XBin { d, a, b, .. } | I::XCompare { d, a, b, .. } => {
                visit(*a, false);
                if let Some(b) = b.reg() {
                    visit(b, false);
                }
                visit(*d, true);
            }
            I::XLoad { d, a, .. } => {
                if let Some(a) = a.reg() {
                    visit(a, false);
                }
                visit(*d, true);
            }
            I::XMov { d, s, masked } => {
                visit(*s, false);
                if *masked {
                    visit(*d, false);
                }
                visit(*d, true);
            }
            I::XBlend { d, m, a, b, .. } => {
                visit(*m, false);
                visit(*a, false);
                visit(*b, false);
                visit(*d, true);
            }
            I::XFma { d, a, b, c, .. } => {
                visit(*a, false);
                visit(*b, false);
                visit(*c, false);
                visit(*d, true);
            }
            I::XFromM { d, m, .. } => {
                visit(*m, false);
                visit(*d, true);
            }
            I::XFrameStore { s, .. } => visit(*s, false),
            I::Access {
                base,
                limit,
                ins,
                outs,
                ..
            } => {
                g(base);
                g(limit);
                ins.iter().flat_map(|o| o.regs()).for_each(|r| visit(r, false));
                outs.iter().flat_map(|o| o.regs()).for_each(|r| visit(r, true));
            }
            I::Call { ins, outs, .. } => {
                ins.iter().flat_map(|o| o.regs()).for_each(|r| visit(r, false));
                outs.iter().flat_map(|o| o.regs()).for_each(|r| visit(r, true));
            }
            I::Meet { turns, ins, outs, .. } => {
                turns.iter().for_each(|r| visit(*r, false));
                ins.iter().flat_map(|o| o.regs()).for_each(|r| visit(r, false));
                outs.iter().flat_map(|o| o.regs()).for_each(|r| visit(r, true));
            }
            I::Fence | I::Poll { .. } => {}
        }
    }
}
