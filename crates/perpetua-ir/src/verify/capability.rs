//! What a kernel needs of its target. Knows nothing of any target: those say themselves what they have.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::Verified;
use crate::back::{Capabilities, Capability, RenderError};
use crate::ir::*;

/// What a kernel needs, each with the source line of its first use (0: a declaration, or unknown).
pub fn capabilities(kernel: &Kernel) -> BTreeMap<Capability, u32> {
    let mut needs = Needs {
        found: BTreeMap::new(),
        seen: HashSet::new(),
    };
    for body in kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]) {
        body.block.walk(&mut |stmt| needs.statement(kernel, body, stmt));
        for local in &body.locals {
            needs.types(&local.ty, 0);
        }
    }
    for param in &kernel.params {
        match &param.kind {
            ParamKind::Buffer { element: ty, .. } | ParamKind::Value(ty) => needs.types(ty, 0),
        }
    }
    for function in &kernel.functions {
        for (_, ty) in &function.params {
            needs.types(ty, 0);
        }
    }
    for shared in &kernel.shared {
        needs.types(&shared.ty, 0);
        if shared.dynamic {
            needs.add(Capability::DynamicShared, 0);
        }
    }
    for table in &kernel.constants {
        needs.scalar(table.element, 0);
    }
    needs.found
}

/// Checks that a target has what a kernel needs.
///
/// # Errors
/// [`RenderError::Lacks`] for the first capability, in the order of [`Capability`], that is missing.
pub fn require(kernel: &Verified, have: &Capabilities, target: &str) -> Result<(), RenderError> {
    let kernel = kernel.kernel();
    match capabilities(kernel)
        .into_iter()
        .find(|(capability, _)| !have.contains(capability))
    {
        Some((capability, line)) => Err(RenderError::Lacks {
            kernel: kernel.name.clone(),
            line,
            capability,
            target: target.into(),
        }),
        None => Ok(()),
    }
}

/// What ordering at a scope needs.
const fn ordering(scope: Scope) -> Capability {
    match scope {
        Scope::Workgroup => Capability::WorkgroupOrdering,
        Scope::Device | Scope::System => Capability::DeviceOrdering,
    }
}

struct Needs {
    found: BTreeMap<Capability, u32>,
    /// Structs looked into, by address.
    seen: HashSet<*const StructType>,
}

impl Needs {
    fn add(&mut self, capability: Capability, line: u32) {
        let first = self.found.entry(capability).or_insert(line);
        if *first == 0 {
            *first = line;
        }
    }

    fn scalar(&mut self, s: Scalar, line: u32) {
        match s {
            Scalar::I64 | Scalar::U64 => self.add(Capability::Int64, line),
            Scalar::F64 => self.add(Capability::Float64, line),
            _ => {}
        }
    }

    fn types(&mut self, ty: &Type, line: u32) {
        match ty {
            Type::Scalar(s) | Type::Vector(s, _) => self.scalar(*s, line),
            Type::Array(element, _) => self.types(element, line),
            Type::Struct(s) => {
                if self.seen.insert(Arc::as_ptr(s)) {
                    for field in &s.fields {
                        self.types(&field.ty, line);
                    }
                }
            }
        }
    }

    fn sync(&mut self, sync: Sync, line: u32) {
        if sync.order != MemOrder::Relaxed {
            self.add(ordering(sync.scope), line);
        }
    }

    fn atomic(&mut self, declarations: Declarations<'_>, place: &Place, sync: Sync, line: u32) {
        self.sync(sync, line);
        match declarations.place(place).map(|at| at.ty.size()) {
            Ok(8) => self.add(Capability::Atomic64, line),
            Ok(16) => self.add(Capability::Residency, line),
            _ => {}
        }
    }

    fn statement(&mut self, kernel: &Kernel, body: &Body, stmt: &Stmt) {
        let declarations = Declarations { kernel, body };
        let line = stmt.line;
        match &stmt.inst {
            Inst::Let(v, op) => {
                if let Some(ty) = body.values.get(v.0 as usize) {
                    self.types(ty, line);
                }
                match op {
                    Op::Subgroup(..) | Op::Builtin(Builtin::SubgroupSize | Builtin::SubgroupLane) => {
                        self.add(Capability::Subgroups, line);
                    }
                    Op::Clock | Op::CatchFault(_) => self.add(Capability::Residency, line),
                    Op::Load(place, Some(sync))
                    | Op::Atomic(_, place, _, sync)
                    | Op::CompareExchange { place, sync, .. } => {
                        self.atomic(declarations, place, *sync, line);
                    }
                    _ => {}
                }
            }
            Inst::Do(Effect::Store(place, _, Some(sync))) => self.atomic(declarations, place, *sync, line),
            Inst::Do(Effect::Fence(scope)) => self.add(ordering(*scope), line),
            Inst::Do(Effect::Nap(_) | Effect::Converge | Effect::Meet) => {
                self.add(Capability::Residency, line)
            }
            Inst::Do(Effect::Print(..)) => self.add(Capability::Print, line),
            _ => {}
        }
    }
}
