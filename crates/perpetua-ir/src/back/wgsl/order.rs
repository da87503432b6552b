//! Which barriers must order accesses to buffers. WGSL's `storageBarrier` does, and reaches across the whole device in
//! SPIR-V, which costs many times what a barrier over workgroup memory does; so it is written only where lanes of a
//! work-group may hand something over through a buffer.

use std::ops::Range;

use crate::ir::{Base, Block, DeviceOp, Effect, Inst, Kernel, Op};

/// What a body does, in the order of its text.
#[derive(Default)]
struct Events {
    /// Accesses to buffers: the buffer, and whether it is written.
    accesses: Vec<(usize, u32, bool)>,
    /// Barriers, and the text of the outermost loop around each, which may run before as well as after it.
    barriers: Vec<Range<usize>>,
    /// The number of the next statement.
    next: usize,
}

impl Events {
    /// Goes through `block`, and through what it calls where it calls it.
    fn block(&mut self, kernel: &Kernel, block: &Block, in_loop: bool) {
        for stmt in &block.0 {
            let at = self.next;
            self.next += 1;
            match &stmt.inst {
                Inst::Let(_, Op::Load(place, _)) => self.access(at, place.base, false),
                Inst::Let(_, Op::Atomic(_, place, ..) | Op::CompareExchange { place, .. }) => {
                    self.access(at, place.base, true);
                }
                Inst::Do(Effect::Store(place, ..)) => self.access(at, place.base, true),
                Inst::Do(Effect::Device(DeviceOp::Barrier, _)) => self.barriers.push(at..at + 1),
                Inst::Let(_, Op::Call(f, _)) => {
                    if let Some(function) = kernel.functions.get(*f as usize) {
                        self.block(kernel, &function.body.block, in_loop);
                    }
                }
                Inst::Loop(body) => {
                    let first = self.barriers.len();
                    self.block(kernel, body, true);
                    if !in_loop {
                        let turns = at..self.next;
                        self.barriers
                            .iter_mut()
                            .skip(first)
                            .for_each(|b| *b = turns.clone());
                    }
                }
                inst => inst
                    .blocks()
                    .into_iter()
                    .for_each(|b| self.block(kernel, b, in_loop)),
            }
        }
    }

    fn access(&mut self, at: usize, base: Base, writes: bool) {
        if let Base::Buffer(buffer) = base {
            self.accesses.push((at, buffer, writes));
        }
    }

    /// Whether an access before and one after the barrier conflict.
    fn conflict(&self, barrier: &Range<usize>, distinct: bool) -> bool {
        let before = self.accesses.iter().filter(|a| a.0 < barrier.end);
        before.into_iter().any(|(_, buffer, writes)| {
            let after = self.accesses.iter().filter(|a| a.0 >= barrier.start);
            after
                .into_iter()
                .any(|(_, other, also)| (*writes || *also) && (!distinct || buffer == other))
        })
    }
}

/// Whether some barrier of the kernel must order accesses to buffers. With `distinct`, no two buffers share bytes.
pub(super) fn orders_buffers(kernel: &Kernel, distinct: bool) -> bool {
    let mut events = Events::default();
    events.block(kernel, &kernel.body.block, false);
    events.barriers.iter().any(|b| events.conflict(b, distinct))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Access, KernelBuilder, Place, Type, TypeError, Value};

    type Build = fn(&mut KernelBuilder, [Base; 2], Value) -> Result<(), TypeError>;

    /// Whether a kernel over the buffers `x` and `y` orders accesses to them: in any case, and where they are distinct.
    fn check(build: Build, expect: [bool; 2]) {
        let mut k = KernelBuilder::new("k");
        let x = k.buffer("x", Type::U32, Access::ReadWrite);
        let y = k.buffer("y", Type::U32, Access::ReadWrite);
        let zero = k.u32(0);
        build(&mut k, [x, y], zero).unwrap();
        let kernel = k.finish();
        let found = [false, true].map(|distinct| orders_buffers(&kernel, distinct));
        assert_eq!(found, expect, "{kernel}");
    }

    #[test]
    fn barriers_order_what_passes_through_buffers() {
        // From one buffer to another: only if they may be the same one.
        check(
            |k, [x, y], i| {
                let v = k.load(Place::element(x, i))?;
                k.effect(DeviceOp::Barrier.into())?;
                k.store(Place::element(y, i), v)
            },
            [true, false],
        );
        // Written, then read.
        check(
            |k, [x, _], i| {
                k.store(Place::element(x, i), i)?;
                k.effect(DeviceOp::Barrier.into())?;
                k.load(Place::element(x, i)).map(|_| ())
            },
            [true, true],
        );
        // Read, then written.
        check(
            |k, [x, _], i| {
                let v = k.load(Place::element(x, i))?;
                k.effect(DeviceOp::Barrier.into())?;
                k.store(Place::element(x, i), v)
            },
            [true, true],
        );
        // Nothing before, or nothing but loads.
        check(
            |k, [x, _], i| {
                k.effect(DeviceOp::Barrier.into())?;
                k.store(Place::element(x, i), i)
            },
            [false, false],
        );
        check(
            |k, [x, _], i| {
                k.load(Place::element(x, i))?;
                k.effect(DeviceOp::Barrier.into())?;
                k.load(Place::element(x, i)).map(|_| ())
            },
            [false, false],
        );
        // The barrier in a function that the kernel calls.
        check(
            |k, [x, _], i| {
                let wait = k.function("wait", vec![], None, |k| k.effect(DeviceOp::Barrier.into()))?;
                k.store(Place::element(x, i), i)?;
                k.call(wait, vec![])?;
                k.load(Place::element(x, i)).map(|_| ())
            },
            [true, true],
        );
        // A loop comes round: what stands behind the barrier runs before its next turn.
        check(
            |k, [x, _], i| {
                k.loop_(|k| {
                    k.effect(DeviceOp::Barrier.into())?;
                    k.store(Place::element(x, i), i)
                })
            },
            [true, true],
        );
    }
}
