//! What the constants of a file are. Must not know where paths lead.

use std::cell::Cell;
use std::sync::{Arc, PoisonError};

use perpetua_syntax::{Block, ConstDef, DEBUG_ASSERTIONS, Function, FunctionKind, PathUsage, Scalar};

use super::lookup::{Result, WIDTH};
use super::{Items, ModulePath};
use crate::front::rust::describe::ConstValue;
use crate::front::rust::infer::{Program, constant, convert_type, scalar_constant, ty::Unifier};
use crate::front::rust::resolve::Resolved;

/// What is wrong with a function that a kernel calls.
pub(super) const UNMARKED: &str = "it is a function without `#[device]`: add it";

thread_local! {
    /// How many constants are being computed within each other.
    static CONSTANTS: Cell<u32> = const { Cell::new(0) };
}

/// Whether a constant is computed, which may call a `const fn` without an attribute.
pub(super) fn is_in_constant() -> bool {
    CONSTANTS.get() > 0
}

struct InConstant;

impl InConstant {
    fn enter() -> InConstant {
        CONSTANTS.set(CONSTANTS.get() + 1);
        InConstant
    }
}

impl Drop for InConstant {
    fn drop(&mut self) {
        CONSTANTS.set(CONSTANTS.get() - 1);
    }
}

impl Items {
    /// Computes a constant once: several that lead to one another would be computed a number of times that doubles with each.
    pub(super) fn once(
        &self,
        path: Vec<String>,
        steps: u32,
        compute: impl FnOnce() -> Result<Resolved>,
    ) -> Result<Resolved> {
        let known = || self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (std::thread::current().id(), path);
        if steps <= 1 {
            // What was too far away from another place may be near enough from here.
            known().retain(|(thread, _), value| *thread != key.0 || !matches!(value, Some(Err(_))));
        }
        let before = known().get(&key).cloned();
        match before {
            Some(Some(value)) => return value,
            Some(None) => {
                let name = key.1.last().map_or("", String::as_str);
                return Err((format!("`{name}` leads in a circle"), String::new()));
            }
            None => {}
        }
        known().insert(key.clone(), None);
        let value = compute();
        known().insert(key, Some(value.clone()));
        value
    }

    pub(super) fn value(
        self: &Arc<Self>,
        def: &ConstDef,
        module: &ModulePath,
        owner: Option<&Vec<String>>,
        steps: u32,
    ) -> Result<ConstValue> {
        let (program, _within) = (Program::new(WIDTH), InConstant::enter());
        let called = def.paths.iter().find(|path| path.usage == PathUsage::Call);
        let refused = |e: crate::front::rust::LowerError| {
            if let Some(called) = called {
                return (
                    format!(
                        "the constant `{}` is what `{}` gives, which rustc alone computes: {}",
                        def.name,
                        called.text(),
                        e.cause
                    ),
                    "write its value, or compile the kernel in a crate, where rustc has computed it"
                        .to_owned(),
                );
            }
            let cause = if e.cause.starts_with("the constant `") {
                e.cause
            } else {
                format!("the constant `{}`: {}", def.name, e.cause)
            };
            (cause, e.remedy)
        };
        let place = self.place(&def.paths, module, owner, steps);
        let loaded = program.load(&place).map_err(refused)?;
        let ty =
            convert_type(&program, &loaded, &[], &mut Unifier::default(), &def.ty, 0).map_err(refused)?;
        constant(&program, &loaded, &[], &def.value, &ty).map_err(refused)
    }
}

impl Items {
    /// Whether a constant is what device functions give.
    pub(super) fn calls(self: &Arc<Self>, def: &ConstDef, module: &ModulePath, steps: u32) -> bool {
        let meaning = |path| (path, self.meaning(path, module, None, steps + 1));
        def.paths
            .iter()
            .map(meaning)
            .any(|(path, meaning)| match meaning {
                Ok(Resolved::Device(_) | Resolved::Computed(_)) => true,
                Ok(Resolved::Type(_) | Resolved::GenericStruct(_)) => path.usage == PathUsage::Call,
                _ => false,
            })
    }
}

/// A constant as the function that gives it.
pub(super) fn as_function(def: &ConstDef) -> Function {
    Function {
        name: def.name.clone(),
        kind: FunctionKind::Device,
        file: String::new(),
        line: def.value.line,
        own: None,
        generics: Vec::new(),
        params: Vec::new(),
        ret: Some(def.ty.clone()),
        body: Block {
            stmts: Vec::new(),
            end_line: def.value.line,
            value: Some(Box::new(def.value.clone())),
        },
        paths: def.paths.clone(),
    }
}

/// `std::f32::consts::PI` and its kin, and `f32::MAX`.
pub(super) fn std_constant(segments: &[String]) -> Option<ConstValue> {
    let names: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (ty, name) = match names[..] {
        // Nobody has said how the file is compiled; rustc would assert.
        [DEBUG_ASSERTIONS] => return Some(ConstValue::Scalar(Scalar::Bool, 1)),
        ["std" | "core", ty, "consts", name] | ["std" | "core", ty, name] | [ty, "consts", name] => {
            (ty, name)
        }
        _ => return None,
    };
    scalar_constant(Scalar::from_name(ty)?, name, WIDTH)
}
