//! Whether a kernel has loops whose turns nobody knows before it runs: compilers write out the others. Knows nothing of what a loop costs.

use std::collections::{HashMap, HashSet};

use crate::ir::{Base, Block, Effect, Inst, Kernel, LocalId, Op, Place, Value};

/// Whether the turns of some loop depend on arguments, on memory, or on where a lane is.
pub fn has_open_loop(kernel: &Kernel) -> bool {
    let mut bodies = kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]);
    bodies.any(|body| {
        let mut look = Look {
            mentions: mentions(&body.block),
            ..Look::default()
        };
        // A variable that is open makes others open that were looked at before.
        loop {
            let before = look.open.len();
            look.block(&body.block, None, None);
            if look.open.len() == before {
                return look.found;
            }
        }
    })
}

/// How often each variable stands in a block.
fn mentions(block: &Block) -> HashMap<LocalId, usize> {
    let mut all = HashMap::new();
    block.walk(&mut |stmt| {
        if let Inst::Let(_, Op::Load(place, _)) | Inst::Do(Effect::Store(place, ..)) = &stmt.inst
            && let Base::Local(id) = place.base
        {
            *all.entry(id).or_default() += 1;
        }
    });
    all
}

/// What is known of a body.
#[derive(Default)]
struct Look {
    /// Of the whole body.
    mentions: HashMap<LocalId, usize>,
    /// Values that follow from constants alone.
    known: HashSet<Value>,
    /// Variables that hold others.
    open: HashSet<LocalId>,
    found: bool,
}

impl Look {
    /// `chosen`: how often variables stand in the innermost block around this that lanes come to by a condition which is not known. `leaves`:
    /// whether a jump out of the innermost loop hangs on such a condition here; `None` outside of loops.
    fn block(&mut self, block: &Block, chosen: Option<&HashMap<LocalId, usize>>, leaves: Option<bool>) {
        for stmt in &block.0 {
            let mut known = true;
            stmt.inst.operands(&mut |v| known &= self.known.contains(&v));
            match &stmt.inst {
                Inst::Let(v, op) => {
                    let computes = match op {
                        Op::Load(place, _) => self.is_known(place),
                        Op::Param(_) | Op::Builtin(_) | Op::Len(..) | Op::Call(..) | Op::Device(..) => false,
                        Op::Atomic(..) | Op::CompareExchange { .. } => false,
                        _ => true,
                    };
                    match known && computes {
                        true => self.known.insert(*v),
                        false => self.known.remove(v),
                    };
                }
                Inst::Do(Effect::Store(place, ..)) => {
                    if let Base::Local(id) = place.base
                        // What lives inside the condition alone does not depend on it.
                        && (!known || chosen.is_some_and(|inside| inside.get(&id) != self.mentions.get(&id)))
                    {
                        self.open.insert(id);
                    }
                }
                Inst::Break(_) => self.found |= leaves == Some(true),
                _ => {}
            }
            let leaves = match stmt.inst {
                Inst::Loop(_) => Some(false),
                _ => leaves.map(|leaves| leaves || !known),
            };
            for inner in stmt.inst.blocks() {
                let inside = (!known).then(|| mentions(inner));
                self.block(inner, inside.as_ref().or(chosen), leaves);
            }
        }
    }

    fn is_known(&self, place: &Place) -> bool {
        matches!(place.base, Base::Local(id) if !self.open.contains(&id))
    }
}
