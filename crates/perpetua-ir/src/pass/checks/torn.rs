//! Whether a fault that is caught can leave a buffer half written. Knows nothing of what the buffer means.

use super::{Explicit, contains};
use crate::ir::{Base, Block, DeviceOp, Effect, Inst, Kernel, Op, Place};

impl Explicit {
    /// Whether in a labelled block whose faults are caught one can come behind a write to this buffer (its index in
    /// [`Kernel::params`]). Where not, the buffer is as it was before the block whenever the block faults. A kernel in which no such
    /// block is found may tear anything.
    pub fn tears(&self, buffer: u32) -> bool {
        let kernel = self.kernel();
        let mut look = Look {
            kernel,
            buffer,
            exits: Vec::new(),
            found: false,
            torn: false,
        };
        look.outside(&kernel.body.block);
        // Those of functions are not looked into.
        let catches = |inst: &Inst| inst.device() == Some(DeviceOp::CatchFault);
        let elsewhere = || {
            let bodies = kernel.functions.iter().map(|function| &function.body.block);
            bodies.into_iter().any(|block| contains(block, &catches))
        };
        look.torn || !look.found || elsewhere()
    }
}

/// Before a statement: `None` where no lane comes, else whether the buffer may have been written in this block.
type Written = Option<bool>;

struct Look<'a> {
    kernel: &'a Kernel,
    buffer: u32,
    /// What is so behind the loops and labelled blocks around a statement, outermost first, as far as is known.
    exits: Vec<Written>,
    /// Whether there is a block whose faults are caught.
    found: bool,
    torn: bool,
}

fn join(a: Written, b: Written) -> Written {
    match (a, b) {
        (Some(a), Some(b)) => Some(a || b),
        (a, b) => a.or(b),
    }
}

impl Look<'_> {
    /// Finds the blocks whose faults are caught.
    fn outside(&mut self, block: &Block) {
        for (at, stmt) in block.0.iter().enumerate() {
            let next = block.0.get(at + 1).and_then(|next| next.inst.device());
            match &stmt.inst {
                Inst::Labeled(inner) if next == Some(DeviceOp::CatchFault) => {
                    self.found = true;
                    self.exits = vec![None];
                    self.inside(inner, Some(false));
                }
                inst => inst.blocks().into_iter().for_each(|inner| self.outside(inner)),
            }
        }
    }

    fn inside(&mut self, block: &Block, mut written: Written) -> Written {
        for stmt in &block.0 {
            let before = written?;
            written = match &stmt.inst {
                Inst::If(_, yes, no) => join(self.inside(yes, written), self.inside(no, written)),
                Inst::Switch { cases, default, .. } => {
                    let blocks = cases.iter().map(|(_, block)| block);
                    blocks.fold(self.inside(default, written), |all, block| {
                        join(all, self.inside(block, Some(before)))
                    })
                }
                Inst::Loop(turn) => {
                    // A turn before this one may have written.
                    let writes = contains(turn, &|inst| self.writes(inst));
                    self.exits.push(None);
                    self.inside(turn, Some(before || writes));
                    self.exits.pop().flatten()
                }
                Inst::Labeled(inner) => {
                    self.exits.push(None);
                    let end = self.inside(inner, written);
                    join(end, self.exits.pop().flatten())
                }
                Inst::Break(depth) => {
                    if let Some(exit) = self.exits.iter_mut().rev().nth(*depth as usize) {
                        *exit = join(*exit, written);
                    }
                    None
                }
                Inst::Continue(_) | Inst::Return(_) => None,
                inst => {
                    self.torn |= before && self.may_fault(inst);
                    Some(before || self.writes(inst))
                }
            };
        }
        written
    }

    fn writes(&self, inst: &Inst) -> bool {
        let here = |place: &Place| place.base == Base::Buffer(self.buffer);
        match inst {
            Inst::Do(Effect::Store(place, ..)) => here(place),
            Inst::Let(_, Op::Atomic(_, place, ..) | Op::CompareExchange { place, .. }) => here(place),
            _ => false,
        }
    }

    fn may_fault(&self, inst: &Inst) -> bool {
        match inst {
            Inst::Let(_, Op::Call(function, _)) => {
                let called = self.kernel.functions.get(*function as usize);
                called.is_none_or(|called| contains(&called.body.block, &|inst| self.may_fault(inst)))
            }
            inst => inst.faults(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::Kernel;
    use crate::pass::checks::make_explicit;
    use crate::verify::verify;

    /// Whether `states` can be torn by a caught block with this text; `%0` is a `u32`, `%1` a `bool`.
    fn tears(block: &str) -> bool {
        // Values are numbered as they come.
        let fault = if block.contains("%3:") { 4 } else { 3 };
        let text = format!(
            "kernel k(states: buffer<u32, read_write>, out: buffer<u32, read_write>) checks(caught) {{
  %0: u32 = thread_idx.x
  %1: bool = eq %0, %0
  %2: u64 = clock
  block {{
{block}
  }}
  %{fault}: u32 = catch_fault %2
  store states[%0], %0
}}
"
        );
        let kernel: Kernel = text.parse().expect("parses");
        make_explicit(&verify(kernel).expect("verifies")).tears(0)
    }

    #[test]
    fn a_buffer_is_torn_by_a_fault_behind_a_write() {
        // The store's own check comes before it, and is not made twice.
        assert!(!tears("store states[%0], %0"));
        assert!(!tears(
            "store out[%0], %0\nstore states[%0], %0\nstore states[%0], %0"
        ));
        assert!(tears("store states[%0], %0\nstore out[%0], %0"));
        assert!(tears(
            "%3: u32 = atomic_add states[%0], %0 relaxed device\nstore out[%0], %0"
        ));
    }

    #[test]
    fn a_kernel_that_catches_nothing_may_tear_anything() {
        let text = "kernel k(states: buffer<u32, read_write>) {
  %0: u32 = thread_idx.x
  block {
  store states[%0], %0
  }
}
";
        let kernel: Kernel = text.parse().expect("parses");
        assert!(make_explicit(&verify(kernel).expect("verifies")).tears(0));
    }

    #[test]
    fn only_what_comes_behind_it_counts() {
        // One arm writes and leaves, the other may fault.
        assert!(!tears(
            "if %1 {\nstore states[%0], %0\nbreak 0\n}\nstore out[%0], %0"
        ));
        assert!(tears("if %1 {\nstore states[%0], %0\n}\nstore out[%0], %0"));
        assert!(!tears(
            "if %1 {\nstore states[%0], %0\n} else {\nstore out[%0], %0\n}"
        ));
        assert!(tears(
            "block {\nif %1 {\nstore states[%0], %0\nbreak 0\n}\n}\nstore out[%0], %0"
        ));
        // The next turn looks at the clock, and may fault for that.
        assert!(tears("loop {\nstore states[%0], %0\nif %1 {\nbreak 0\n}\n}"));
        assert!(!tears("loop {\nif %1 {\nbreak 0\n}\n}\nstore states[%0], %0"));
    }
}
