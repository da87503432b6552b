//! A kernel of a function.

use std::rc::Rc;
use std::sync::Arc;

use perpetua_syntax::FunctionKind;

use super::value::Meanings;
use super::{Emitter, bind_generics, instance_name, tidy, types};
use crate::front::rust::infer::{self, Program, Result};
use crate::front::rust::instantiate::Instantiation;
use crate::front::rust::resolve::FunctionDef;
use crate::ir::{Checks, Kernel, LocalId};

/// The variables that conditions are written to, by number.
pub(super) type Noted = Vec<(u32, LocalId)>;

/// Makes a kernel of a function.
///
/// # Errors
/// What is outside the kernel language, with its line and a remedy. Where rustc accepts the function, that is only
/// what no device can do.
pub fn lower(def: &FunctionDef, how: &Instantiation) -> Result<Kernel> {
    lower_noting(def, how, None).map(|lowered| lowered.kernel)
}

pub(super) struct Lowered {
    pub(super) kernel: Kernel,
    pub(super) noted: Noted,
    /// Whether native code runs something of it as the user wrote it.
    pub(super) calls_host: bool,
}

/// The same, with a variable for each condition where those are asked for.
pub(super) fn lower_noting(def: &FunctionDef, how: &Instantiation, noted: Option<Noted>) -> Result<Lowered> {
    let mut meanings = Meanings::new();
    loop {
        let known = meanings.len();
        match lower_knowing(def, how, noted.clone(), &mut meanings) {
            // Begin again, with what a reference turned out to mean behind where it was looked at.
            Err(_) if (known + 1..=MOST_MEANINGS).contains(&meanings.len()) => {}
            done => return done,
        }
    }
}

/// How many meanings of references are found out before a kernel is refused.
const MOST_MEANINGS: usize = 256;

fn lower_knowing(
    def: &FunctionDef,
    how: &Instantiation,
    noted: Option<Noted>,
    meanings: &mut Meanings,
) -> Result<Lowered> {
    let program = Program::new(how.pointer_width);
    let loaded = program.load(def)?;
    let tree = loaded.tree.clone();
    if !matches!(how.pointer_width, 32 | 64) {
        return Err(loaded.error(
            tree.line,
            format!("the pointer width is {}", how.pointer_width),
            "it is 32 or 64",
        ));
    }
    if tree.kind == FunctionKind::Device {
        return Err(loaded.error(
            tree.line,
            format!("`{}` is a device function, not a kernel", tree.name),
            "mark it with `#[kernel]` to launch it",
        ));
    }
    let generics = bind_generics(&program, &loaded, &how.generics)?;
    let checked = Rc::new(infer::check(&program, &loaded, generics.clone())?);
    let mut name = tree.name.clone();
    if tree.kind == FunctionKind::Stencil && !how.stencil.name.is_empty() {
        name.clone_from(&how.stencil.name);
    }
    let name = types::identifier(&instance_name(&program, &name, &generics));
    let mut emitter = Emitter::new(&program, checked.clone(), &name);
    emitter.unchecked = how.checks == Checks::Off;
    emitter.noted = noted;
    emitter.meanings = std::mem::take(meanings);
    emitter.active.push((def.key(), generics));
    let emitted = emitter.instances(&checked).and_then(|()| match tree.kind {
        FunctionKind::Stencil => emitter.stencil(&how.stencil),
        _ => emitter.kernel_params().and_then(|()| emitter.kernel_body()),
    });
    *meanings = std::mem::take(&mut emitter.meanings);
    emitted?;
    let noted = emitter.noted.take().unwrap_or_default();
    let mut kernel = emitter.k.finish();
    tidy::tidy(&mut kernel);
    kernel.source = Arc::from(tree.file.as_str());
    kernel.pointer_width = how.pointer_width;
    kernel.checks = how.checks;
    kernel.contract = how.contract;
    if kernel.block_size.is_none() {
        kernel.block_size = how.block_size;
    }
    Ok(Lowered {
        kernel,
        noted,
        calls_host: program.calls_host.get(),
    })
}
