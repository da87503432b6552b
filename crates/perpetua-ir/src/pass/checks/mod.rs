//! Makes the implicit checks of a kernel explicit: after this pass a faulting lane's behaviour is spelled out in
//! IR, and renderers write accesses as they stand. Knows nothing of targets.
//!
//! In a kernel without barriers and subgroup operations a lane that faults reports it and returns (a device
//! function returns zero, and its caller asks [`DeviceOp::IsDead`]). Otherwise a lane that faults goes dead and walks on:
//!
//! - a fault that all lanes of the group meet together (uniform operands, uniform flow) ends them all;
//! - a faulting load gives zero; a dead lane's stores, atomics and prints do not happen;
//! - statements without barriers that no later uniform decision depends on are left at once, and skipped
//!   when the lane is dead already: among them all loops without barriers whose conditions diverge;
//! - loops with barriers have uniform conditions, to which dead lanes contribute as before, so a dead lane comes to every barrier
//!   and leaves with the others;
//! - where such conditions depend on what lanes have written to the block's memory, dead lanes leave word there, and all lanes of the
//!   block end together;
//! - after the last barrier and subgroup operation a dead lane returns.
//!
//! Checks that are proven superfluous are dropped: constant indices into arrays, accesses dominated by a comparison
//! with the length or by the same check, masked and bounded indices, division by constants.

mod found;
mod known;
mod limit;
mod rewrite;
#[cfg(test)]
mod tests;
mod torn;

use std::borrow::Cow;
use std::sync::Arc;

use crate::fault::FaultSite;
use crate::ir::{Block, Body, Checks, DeviceOp, Effect, Inst, Kernel, Op, Scalar, SharedVar, Type, Value};
use crate::ops::Meeting;
use crate::pass::inline::inline_functions;
use crate::print::PrintSite;
use crate::verify::{Facts, Uniformity, Verified};
use found::Found;
pub use found::{Check, Checked, Proof};
use limit::limit_loops;
use rewrite::{Policy, Rewriter};

/// A verified kernel whose checks are statements, with the sites where it can fault and print.
#[derive(Clone, Debug)]
pub struct Explicit {
    kernel: Kernel,
    facts: Arc<Facts>,
    faults: Vec<FaultSite>,
    checks: Vec<Check>,
    prints: Vec<PrintSite>,
    dies_at_once: bool,
}

impl Explicit {
    /// The kernel; its [`Kernel::checks`] are [`Checks::Explicit`].
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// What is known of that kernel.
    pub fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// The fault sites, in the order of the [`Effect::Fault`] statements: functions first, then the body, each in
    /// pre-order.
    pub fn faults(&self) -> &[FaultSite] {
        &self.faults
    }

    /// The checks of indices and divisions, those that are proven superfluous, too: functions first, then the body, each in
    /// pre-order. Where lanes that have faulted walk on, functions stand where they are called.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// The print sites, in the order of the [`Effect::Print`] statements, likewise.
    pub fn prints(&self) -> &[PrintSite] {
        &self.prints
    }

    /// Whether a lane that faults can end there and then: what the kernel does between a fault and the lane's end is
    /// only to find its way out. So in kernels without barriers and subgroup operations.
    pub fn dies_at_once(&self) -> bool {
        self.dies_at_once
    }

    /// The parts: kernel, fault sites, print sites.
    pub fn into_parts(self) -> (Kernel, Vec<FaultSite>, Vec<PrintSite>) {
        (self.kernel, self.faults, self.prints)
    }
}

/// Number of the first fault site and of the first print site of each function, then of the body of a kernel
/// with explicit checks. Later passes may have added functions without sites.
pub fn first_sites(kernel: &Kernel) -> Vec<(u32, u32)> {
    let mut next = (0, 0);
    bodies(kernel)
        .map(|body| {
            let first = next;
            body.block.walk(&mut |stmt| match &stmt.inst {
                inst if inst.faults() => next.0 += 1,
                Inst::Do(Effect::Print(..)) => next.1 += 1,
                _ => {}
            });
            first
        })
        .collect()
}

/// Makes the checks of a verified kernel explicit. With [`Checks::Off`] nothing is checked: only the sites that
/// the source itself has are numbered.
pub fn make_explicit(verified: &Verified) -> Explicit {
    let (kernel, facts) = (verified.kernel(), verified.facts());
    let dies_at_once =
        kernel.checks == Checks::On && !facts.synchronises() && !facts.asks(DeviceOp::CatchFault);
    let (mut kernel, found, facts) = match kernel.checks {
        Checks::Off | Checks::Explicit => {
            let sites = source_sites(kernel);
            let found = Found {
                sites,
                ..Found::default()
            };
            (kernel.clone(), found, Arc::clone(facts))
        }
        checks => {
            let (kernel, found) = match checks {
                Checks::Caught => return_at_once(&limit_loops(kernel)),
                _ if facts.synchronises() => walk_on(kernel, facts),
                _ => return_at_once(kernel),
            };
            let facts = Arc::new(Facts::of(&kernel));
            (kernel, found, facts)
        }
    };
    kernel.checks = Checks::Explicit;
    let prints = print_sites(&kernel);
    Explicit {
        kernel,
        facts,
        faults: found.sites,
        checks: found.checks,
        prints,
        dies_at_once,
    }
}

fn bodies(kernel: &Kernel) -> impl Iterator<Item = &Body> {
    kernel.functions.iter().map(|f| &f.body).chain([&kernel.body])
}

fn is_barrier(inst: &Inst) -> bool {
    inst.meets(Meeting::Block)
}

fn is_subgroup(inst: &Inst) -> bool {
    inst.meets(Meeting::Subgroup)
}

fn contains(block: &Block, what: &dyn Fn(&Inst) -> bool) -> bool {
    block
        .0
        .iter()
        .any(|stmt| what(&stmt.inst) || stmt.inst.blocks().into_iter().any(|b| contains(b, what)))
}

/// Sites of the fault statements that a kernel has already.
fn source_sites(kernel: &Kernel) -> Vec<FaultSite> {
    let mut sites = Vec::new();
    for body in bodies(kernel) {
        body.block.walk(&mut |stmt| {
            let types = |values: &[Value]| values.iter().filter_map(|v| scalar_of(body, *v)).collect();
            match &stmt.inst {
                Inst::Do(Effect::Fault(kind, subject, operands)) => {
                    sites.push(FaultSite::new(*kind, stmt.line, &**subject, types(operands)));
                }
                Inst::Do(Effect::Panic(message, args)) => {
                    sites.push(FaultSite::panic(stmt.line, message.clone(), types(args)));
                }
                _ => {}
            }
        });
    }
    sites
}

fn print_sites(kernel: &Kernel) -> Vec<PrintSite> {
    let mut sites = Vec::new();
    for body in bodies(kernel) {
        body.block.walk(&mut |stmt| {
            if let Inst::Do(Effect::Print(pieces, args)) = &stmt.inst {
                sites.push(PrintSite {
                    line: stmt.line,
                    pieces: pieces.clone(),
                    args: args.iter().filter_map(|v| scalar_of(body, *v)).collect(),
                });
            }
        });
    }
    sites
}

fn scalar_of(body: &Body, v: Value) -> Option<Scalar> {
    body.values.get(v.0 as usize).and_then(Type::as_scalar)
}

fn return_at_once(kernel: &Kernel) -> (Kernel, Found) {
    let mut out = kernel.clone();
    let mut found = Found::default();
    let mut faulting = Vec::new();
    for (function, to) in kernel.functions.iter().zip(&mut out.functions) {
        let policy = Policy::Return(function.result.clone());
        to.body = Rewriter::new(kernel, &function.body, &faulting, None, &mut found).run(policy);
        let faults = contains(&to.body.block, &|inst| match inst {
            inst if inst.faults() => true,
            Inst::Let(_, Op::Call(f, _)) => faulting.get(*f as usize).copied().unwrap_or(false),
            _ => false,
        });
        faulting.push(faults);
    }
    out.body = Rewriter::new(kernel, &kernel.body, &faulting, None, &mut found).run(Policy::Return(None));
    (out, found)
}

fn walk_on(kernel: &Kernel, facts: &Facts) -> (Kernel, Found) {
    let known = facts.uniformity.as_ref().filter(|_| kernel.functions.is_empty());
    // In one body, so that a dead lane's way is seen as a whole.
    let kernel = inline_functions(kernel);
    let uniformity = known.map_or_else(
        || Cow::Owned(Uniformity::of(&kernel, facts.constant_buffers())),
        Cow::Borrowed,
    );
    let mut found = Found::default();
    let rewriter = Rewriter::new(&kernel, &kernel.body, &[], Some(&uniformity), &mut found);
    let body = rewriter.run(Policy::Walk);
    let mut out = Kernel { body, ..kernel };
    if found.told {
        out.shared.push(SharedVar {
            name: "a_lane_is_dead".into(),
            ty: Type::U32,
            dynamic: false,
        });
    }
    (out, found)
}
