//! Checks what a kernel declares: names, types, tables, sizes. Looks at no statement.

use std::collections::HashSet;

use super::error::{Cause, VerifyErrors};
use super::types::{MAX_PRIVATE_BYTES, MAX_SHARED_BYTES, Types, is_identifier, is_unit};
use super::{MAX_BLOCK_DEPTH, MAX_FUNCTION_PARAMS, MAX_STATEMENTS};
use crate::ir::{Block, Body, DeviceOp, Kernel, Op, ParamKind, Type};
use crate::ir::{Inst, Stmt};

/// Lanes of the largest block.
pub const MAX_BLOCK_LANES: u64 = 1024;

struct Check<'a, 'e> {
    types: Types<'a>,
    errors: &'e mut VerifyErrors,
    function: Option<&'a str>,
}

pub(super) fn check(kernel: &Kernel, errors: &mut VerifyErrors) {
    let mut check = Check {
        types: Types::default(),
        errors,
        function: None,
    };
    check.kernel(kernel);
    for name in std::mem::take(&mut check.types.twins) {
        check.fail(Cause::StructsDiffer { name });
    }
}

/// Counts statements as renderers write them, with the code of functions wherever they are called: functions that call the next one twice
/// each are few lines that become billions. A function calls only those before it.
pub(super) fn check_size(kernel: &Kernel, errors: &mut VerifyErrors) {
    let mut sizes: Vec<u64> = Vec::with_capacity(kernel.functions.len());
    let size = |body: &Body, sizes: &[u64]| {
        let mut count = 0u64;
        body.block.walk(&mut |stmt| {
            let written_out = match &stmt.inst {
                Inst::Let(_, Op::Call(function, _)) => sizes.get(*function as usize).copied(),
                _ => None,
            };
            count = count.saturating_add(written_out.unwrap_or(1));
        });
        count
    };
    for function in &kernel.functions {
        sizes.push(size(&function.body, &sizes));
    }
    let found = size(&kernel.body, &sizes);
    if found > MAX_STATEMENTS {
        let what = "the kernel's number of statements, with those of its functions at each call,".into();
        let limit = MAX_STATEMENTS;
        errors.declaration(None, Cause::TooLarge { what, found, limit });
    }
}

impl<'a> Check<'a, '_> {
    fn fail(&mut self, cause: Cause) {
        self.errors.declaration(self.function, cause);
    }

    fn name(&mut self, what: &str, name: &str) {
        if !is_identifier(name) {
            self.fail(Cause::Name {
                what: what.into(),
                name: name.into(),
            });
        }
    }

    /// A name that no other one in `taken` may have.
    fn unique(&mut self, what: &'static str, name: &'a str, taken: &mut HashSet<&'a str>) {
        self.name(&format!("a {what}"), name);
        if !taken.insert(name) {
            self.fail(Cause::Duplicate {
                what,
                name: name.into(),
            });
        }
    }

    fn check_type(&mut self, what: impl Fn() -> String, ty: &'a Type, limit: u64) -> u64 {
        self.types.check(ty, limit).unwrap_or_else(|problem| {
            self.fail(Cause::BadType {
                what: what(),
                problem,
            });
            0
        })
    }

    fn kernel(&mut self, kernel: &'a Kernel) {
        self.name("the kernel", &kernel.name);
        if let Some([x, y, z]) = kernel.block_size {
            let lanes = [x, y, z]
                .into_iter()
                .fold(1u64, |n, d| n.saturating_mul(d.into()));
            if lanes == 0 {
                self.fail(Cause::Declaration(format!(
                    "the block size {x} x {y} x {z} has no lanes: each dimension is at least 1"
                )));
            } else if lanes > MAX_BLOCK_LANES {
                self.fail(Cause::TooLarge {
                    what: format!("the block size {x} x {y} x {z}"),
                    found: lanes,
                    limit: MAX_BLOCK_LANES,
                });
            }
        }
        let lanes = kernel
            .block_size
            .map(|size| size.into_iter().fold(1u64, |n, d| n.saturating_mul(d.into())));
        if has_matrices(kernel) && !lanes.is_some_and(|lanes| lanes.is_multiple_of(MATRIX_LANES)) {
            let found = lanes.map_or_else(
                || "the launch chooses the block size".into(),
                |lanes| format!("blocks have {lanes} lanes"),
            );
            self.fail(Cause::Declaration(format!(
                "{MATRIX_LANES} lanes hold a matrix together, but {found}: fix a block size that is a multiple of {MATRIX_LANES}"
            )));
        }
        if !matches!(kernel.pointer_width, 32 | 64) {
            self.fail(Cause::Declaration(format!(
                "the pointer width is {}, it is 32 or 64",
                kernel.pointer_width
            )));
        }
        let mut names = HashSet::new();
        for param in &kernel.params {
            self.unique("parameter", &param.name, &mut names);
            let ty = match &param.kind {
                ParamKind::Buffer { element, .. } => element,
                ParamKind::Value(ty) => ty,
            };
            self.check_type(|| format!("parameter `{}`", param.name), ty, MAX_PRIVATE_BYTES);
        }
        self.shared(kernel, &mut names);
        for table in &kernel.constants {
            self.unique("constant table", &table.name, &mut names);
            let bytes = u64::from(table.element.size()).saturating_mul(table.data.len() as u64);
            if table.data.is_empty() {
                self.fail(Cause::Declaration(format!(
                    "constant table `{}` is empty",
                    table.name
                )));
            } else if bytes > MAX_SHARED_BYTES {
                self.fail(Cause::TooLarge {
                    what: format!("the size in bytes of constant table `{}`", table.name),
                    found: bytes,
                    limit: MAX_SHARED_BYTES,
                });
            }
            let width = table.element.bits();
            if let Some((i, bits)) = table
                .data
                .iter()
                .enumerate()
                .find(|(_, bits)| width < 64 && **bits >> width != 0)
            {
                self.fail(Cause::Declaration(format!(
                    "element {i} of constant table `{}`, {bits:#x}, does not fit {}",
                    table.name, table.element
                )));
            }
        }
        let mut functions = HashSet::from([kernel.name.as_str()]);
        for function in &kernel.functions {
            self.function = Some(&function.name);
            self.unique("function", &function.name, &mut functions);
            self.function(function);
        }
        self.function = None;
        self.body(&kernel.body);
    }

    fn shared(&mut self, kernel: &'a Kernel, names: &mut HashSet<&'a str>) {
        let mut total = 0u64;
        for var in &kernel.shared {
            self.unique("shared variable", &var.name, names);
            let what = || format!("shared variable `{}`", var.name);
            if var.dynamic {
                self.check_type(what, &var.ty, MAX_PRIVATE_BYTES);
            } else {
                let size = self.check_type(what, &var.ty, MAX_SHARED_BYTES);
                if size > 0 {
                    total = total.next_multiple_of(var.ty.align().max(1).into()) + size;
                }
            }
        }
        if total > MAX_SHARED_BYTES {
            self.fail(Cause::TooLarge {
                what: "the size in bytes of all shared variables together".into(),
                found: total,
                limit: MAX_SHARED_BYTES,
            });
        }
        let dynamic = kernel.shared.iter().filter(|v| v.dynamic).count();
        if dynamic > 1 {
            self.fail(Cause::TooLarge {
                what: "the number of dynamic shared variables".into(),
                found: dynamic as u64,
                limit: 1,
            });
        }
    }

    fn function(&mut self, function: &'a crate::ir::Function) {
        if function.params.len() > MAX_FUNCTION_PARAMS {
            self.fail(Cause::TooLarge {
                what: "the number of parameters".into(),
                found: function.params.len() as u64,
                limit: MAX_FUNCTION_PARAMS as u64,
            });
        }
        let mut names = HashSet::new();
        for (i, (name, ty)) in function.params.iter().enumerate() {
            self.unique("parameter", name, &mut names);
            self.check_type(|| format!("parameter `{name}`"), ty, MAX_PRIVATE_BYTES);
            if function.body.values.get(i) != Some(ty) {
                self.fail(Cause::Declaration(format!(
                    "parameter `{name}` has type {ty}, the body's %{i} must have it too"
                )));
            }
        }
        if let Some(ty) = &function.result {
            self.check_type(|| "the result".into(), ty, MAX_PRIVATE_BYTES);
        }
        self.body(&function.body);
    }

    fn body(&mut self, body: &'a Body) {
        for local in &body.locals {
            self.name("a local variable", &local.name);
            self.check_type(
                || format!("local variable `{}`", local.name),
                &local.ty,
                MAX_PRIVATE_BYTES,
            );
        }
        for (i, ty) in body.values.iter().enumerate() {
            if !is_unit(ty) {
                self.check_type(|| format!("%{i}"), ty, MAX_PRIVATE_BYTES);
            }
        }
        self.block(&body.block, 1);
    }

    /// Types that operations themselves name.
    fn block(&mut self, block: &'a Block, depth: usize) {
        if depth > MAX_BLOCK_DEPTH {
            return self.fail(Cause::TooDeep(MAX_BLOCK_DEPTH));
        }
        for Stmt { inst, .. } in &block.0 {
            match inst {
                Inst::Let(v, Op::Zero(ty) | Op::Compose(ty, _)) => {
                    self.check_type(|| format!("the operation of %{}", v.0), ty, MAX_PRIVATE_BYTES);
                }
                _ => {
                    for inner in inst.blocks() {
                        self.block(inner, depth + 1);
                    }
                }
            }
        }
    }
}

/// Lanes that hold a matrix together.
const MATRIX_LANES: u64 = 32;

fn has_matrices(kernel: &Kernel) -> bool {
    let mut found = false;
    for body in kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]) {
        body.block
            .walk(&mut |stmt| found |= matches!(stmt.inst.device(), Some(DeviceOp::Matrix(_))));
    }
    found
}
