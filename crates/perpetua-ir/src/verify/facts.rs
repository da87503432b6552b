//! What one look at a kernel tells about it: what it needs of its target, what it asks of its device, what it reports. Found
//! once and handed on with the kernel. Knows nothing of any target: those say themselves what they have.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::Verified;
use super::uniform::Uniformity;
use crate::back::{Capabilities, Capability, RenderError};
use crate::ir::*;
use crate::ops::{Meeting, Spelling};

/// What is known of a kernel. [`verify`](super::verify()) finds it for a kernel that it passes, `pass::checks` for the one that it makes.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    capabilities: BTreeMap<Capability, u32>,
    /// Each once.
    operations: Vec<DeviceOp>,
    faults: bool,
    prints: bool,
    /// Of the kernel's own body; where the verifier had to look, for barriers.
    pub(crate) uniformity: Option<Uniformity>,
}

impl Facts {
    /// Looks at a kernel whose types are right.
    pub fn of(kernel: &Kernel) -> Facts {
        let mut needs = Needs {
            found: Facts::default(),
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

    /// What the kernel needs, each with the source line of its first use (0: a declaration, or unknown).
    pub fn capabilities(&self) -> &BTreeMap<Capability, u32> {
        &self.capabilities
    }

    /// Whether the kernel needs this.
    pub fn needs(&self, capability: Capability) -> bool {
        self.capabilities.contains_key(&capability)
    }

    /// Whether the kernel asks this of its device anywhere, functions included.
    pub fn asks(&self, op: DeviceOp) -> bool {
        self.operations.contains(&op)
    }

    /// Whether something in the kernel brings these lanes together.
    pub fn meets(&self, whom: Meeting) -> bool {
        self.operations.iter().any(|op| op.row().meeting == whom)
    }

    /// Whether lanes that have faulted must come along: to barriers, or where lanes of a subgroup exchange values.
    pub fn synchronises(&self) -> bool {
        self.meets(Meeting::Block) || self.meets(Meeting::Subgroup)
    }

    /// Whether the kernel has fault statements.
    pub fn faults(&self) -> bool {
        self.faults
    }

    /// Parameters that launches must keep constant: see [`Verified::constant_buffers`].
    pub(crate) fn constant_buffers(&self) -> &[u32] {
        self.uniformity.as_ref().map_or(&[], Uniformity::constant_buffers)
    }

    /// Whether what lanes have written to the block's memory decides which barriers they come to, and how often. Where a lane has
    /// faulted, and so writes nothing more, all lanes of its block must end.
    pub fn relies_on_shared(&self) -> bool {
        self.uniformity.as_ref().is_some_and(Uniformity::relies_on_shared)
    }

    /// Whether the kernel prints.
    pub fn prints(&self) -> bool {
        self.prints
    }
}

/// Checks that a target has what a kernel needs.
///
/// # Errors
/// [`RenderError::Lacks`] for the first capability, in the order of [`Capability`], that is missing.
pub fn require(kernel: &Verified, have: &Capabilities, target: &str) -> Result<(), RenderError> {
    let mut needs = kernel.facts().capabilities().iter();
    match needs.find(|(capability, _)| !have.contains(capability)) {
        Some((capability, line)) => Err(RenderError::Lacks {
            kernel: kernel.kernel().name.clone(),
            line: *line,
            capability: *capability,
            target: target.into(),
        }),
        None => Ok(()),
    }
}

struct Needs {
    found: Facts,
    /// Structs looked into, by address.
    seen: HashSet<*const StructType>,
}

impl Needs {
    fn add(&mut self, capability: Capability, line: u32) {
        let first = self.found.capabilities.entry(capability).or_insert(line);
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
            self.add(Capability::ordering(sync.scope), line);
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
        if let Some(op) = stmt.inst.device() {
            if !self.found.operations.contains(&op) {
                self.found.operations.push(op);
            }
            if let Some(capability) = op.row().needs {
                self.add(capability, line);
            }
        }
        match &stmt.inst {
            Inst::Let(v, op) => {
                if let Some(ty) = body.values.get(v.0 as usize) {
                    self.types(ty, line);
                }
                let of_library = match op {
                    Op::Unary(op, _) => op.row().cuda == Spelling::Library,
                    Op::Binary(op, ..) => op.row().cuda == Spelling::Library,
                    _ => false,
                };
                if of_library && body.values.get(v.0 as usize) == Some(&Type::Scalar(Scalar::F64)) {
                    self.add(Capability::Math64, line);
                }
                match op {
                    Op::Builtin(Builtin::SubgroupSize | Builtin::SubgroupLane) => {
                        self.add(Capability::Subgroups, line);
                    }
                    Op::Load(place, Some(sync))
                    | Op::Atomic(_, place, _, sync)
                    | Op::CompareExchange { place, sync, .. } => {
                        self.atomic(declarations, place, *sync, line);
                    }
                    _ => {}
                }
            }
            Inst::Do(Effect::Store(place, _, Some(sync))) => self.atomic(declarations, place, *sync, line),
            Inst::Do(Effect::Print(..)) => {
                self.found.prints = true;
                self.add(Capability::Print, line);
            }
            Inst::Do(Effect::Fault(..) | Effect::Panic(..)) => self.found.faults = true,
            _ => {}
        }
    }
}
