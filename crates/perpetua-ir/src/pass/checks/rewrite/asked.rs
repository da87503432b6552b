//! What the rewriter asks of statements before it changes them.

use crate::ir::{Base, Block, DeviceOp, Effect, Inst, Stmt};
use crate::verify::Uniformity;

/// Whether a statement catches the fault of the block before it.
pub(super) fn is_catch(stmt: &Stmt) -> bool {
    stmt.inst.device() == Some(DeviceOp::CatchFault)
}

/// Number of statements in pre-order, the statement itself included.
pub(super) fn count(stmt: &Stmt) -> usize {
    let inside: usize = stmt.inst.blocks().into_iter().flat_map(|b| &b.0).map(count).sum();
    1 + inside
}

/// Whether a block neither makes a variable uniform nor leaves the statement around it in uniform flow.
pub(super) fn nothing_uniform_escapes(
    block: &Block,
    depth: u32,
    at: &mut usize,
    uniformity: &Uniformity,
) -> bool {
    block.0.iter().all(|stmt| {
        let here = *at;
        *at += 1;
        let fine = match &stmt.inst {
            Inst::Do(Effect::Store(place, ..)) => match place.base {
                Base::Local(_) => !uniformity.store(here),
                _ => true,
            },
            Inst::Break(d) | Inst::Continue(d) => *d < depth || !uniformity.flow(here),
            Inst::Return(_) => !uniformity.flow(here),
            _ => true,
        };
        let inside = depth + u32::from(matches!(stmt.inst, Inst::Loop(_) | Inst::Labeled(_)));
        fine && stmt
            .inst
            .blocks()
            .into_iter()
            .all(|b| nothing_uniform_escapes(b, inside, at, uniformity))
    })
}
