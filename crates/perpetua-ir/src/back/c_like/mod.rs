//! The writer of C-like code: structured statements, readable expressions, Rust's meaning. Three dialects use it:
//! CUDA C, WGSL and MSL.
//!
//! A kernel arrives verified. [`prepare`] makes its fault checks explicit, takes apart what the dialect has no operator
//! for, and brings exits to one level; then each body is written by a [`writer::Writer`] into a [`module::Module`].

// What one dialect leaves unused another uses.
#![cfg_attr(
    not(all(feature = "cuda-c", feature = "msl", feature = "wgsl")),
    allow(dead_code, unused_imports)
)]

pub(super) mod c;
mod c_dialect;
mod dialect;
mod effects;
mod expr;
mod met;
mod module;
mod names;
mod repeat;
mod report;
mod statement;
mod uses;
mod writer;

pub(super) use c_dialect::CDialect;
pub(super) use dialect::Dialect;
pub(super) use effects::Needs;
pub(super) use expr::{Bind, Expr};
pub(super) use module::{COMPONENTS, Module, type_word};
pub(super) use names::Names;
pub(super) use report::Report;
pub(super) use writer::{Spot, SpotStep, Writer, array_levels};

use std::sync::Arc;

use super::RenderError;
use crate::fault::FaultSite;
use crate::ir::{Block, Body, Effect, Inst, Kernel, Scalar, Type};
use crate::pass::checks::make_explicit;
use crate::pass::{Operation, Sums, expand, expand_library, single_level};
use crate::print::PrintSite;
use crate::verify::{Facts, Verified};

/// A kernel ready to be written, with its sites. The `line` of fault and print statements is their site's number.
pub(super) struct Prepared {
    pub(super) kernel: Kernel,
    /// What is known of the kernel with its explicit checks; what the passes behind them add changes none of what is asked here.
    pub(super) facts: Arc<Facts>,
    pub(super) faults: Vec<FaultSite>,
    pub(super) prints: Vec<PrintSite>,
}

/// What a dialect writes itself: of the kernel's own operations, and of these and the math library's.
pub(super) type Native<'a> = (&'a dyn Fn(&Operation) -> bool, &'a dyn Fn(&Operation) -> bool);

/// Takes a kernel apart for a dialect that writes the operations that are `native`. `checked`: whether faults are
/// checked for as the kernel says, and library operators computed alike on every target, or neither.
pub(super) fn prepare(verified: &Verified, (own, native): Native<'_>, checked: bool) -> Prepared {
    let explicit = make_explicit(verified);
    let facts = Arc::clone(if checked {
        explicit.facts()
    } else {
        verified.facts()
    });
    let (mut kernel, mut faults, prints) = explicit.into_parts();
    if !checked {
        kernel = verified.kernel().clone();
        faults.clear();
    }
    number_sites(&mut kernel);
    let kernel = expand(kernel, own);
    let kernel = if checked {
        expand_library(kernel, Sums::Rearranged)
    } else {
        kernel
    };
    let kernel = expand(kernel, native);
    Prepared {
        kernel: single_level(kernel),
        facts,
        faults,
        prints,
    }
}

/// Checks the size of static shared memory.
pub(super) fn check_shared(kernel: &Kernel, limit: u32, target: &str) -> Result<(), RenderError> {
    let found = kernel.shared_bytes();
    if found <= limit {
        return Ok(());
    }
    Err(RenderError::Limit {
        kernel: kernel.name.clone(),
        what: "the size in bytes of its shared variables".into(),
        found: found.into(),
        limit: limit.into(),
        target: target.into(),
    })
}

/// Later passes may move statements: what a device reports is fixed before, in place of the line, which the site
/// itself keeps.
fn number_sites(kernel: &mut Kernel) {
    fn number(block: &mut Block, next: &mut (u32, u32)) {
        for stmt in &mut block.0 {
            let count = match &stmt.inst {
                inst if inst.faults() => Some(&mut next.0),
                Inst::Do(Effect::Print(..)) => Some(&mut next.1),
                _ => None,
            };
            if let Some(n) = count {
                stmt.line = *n;
                *n += 1;
            }
            stmt.inst.blocks_mut().into_iter().for_each(|b| number(b, next));
        }
    }
    let mut next = (0, 0);
    for f in &mut kernel.functions {
        number(&mut f.body.block, &mut next);
    }
    number(&mut kernel.body.block, &mut next);
}

/// A body's text: its lines, indented once.
pub(super) fn body_text(
    m: &Module<'_>,
    d: &dyn Dialect,
    body: &Body,
    params: &[(String, Type)],
    result: Option<&Type>,
) -> (Vec<String>, String) {
    let mut w = Writer::new(m, d, body);
    let names = w.parameters(params);
    w.run();
    if let Some(ty) = result
        && !ends_in_return(&body.block)
    {
        // Never reached, but the target cannot see that.
        let zero = d.zero(m, ty).text;
        w.write(&format!("return {zero};"));
    }
    (names, w.text())
}

/// The functions of a C target, each behind `specifier`; `hidden`: declaration and argument of what one is passed behind the scenes.
pub(super) fn c_functions(
    m: &Module<'_>,
    d: &(impl Dialect + c::CNames),
    specifier: &str,
    hidden: impl Fn(&Needs) -> Vec<(String, String)>,
) -> Vec<String> {
    let mut functions = Vec::new();
    for (i, f) in m.kernel.functions.iter().enumerate() {
        let (names, body) = body_text(m, d, &f.body, &f.params, f.result.as_ref());
        let types = f.params.iter().map(|(_, ty)| c::type_name(d, m, ty));
        let mut params: Vec<String> = types
            .zip(&names)
            .map(|(ty, name)| format!("{ty} {name}"))
            .collect();
        if let Some(needs) = m.needs.get(i) {
            params.extend(hidden(needs).into_iter().map(|(declared, _)| declared));
        }
        let result = f.result.as_ref();
        let result = result.map_or("void".to_owned(), |ty| c::type_name(d, m, ty));
        let name = m.functions.get(i).map_or("", String::as_str);
        let params = params.join(", ");
        functions.push(format!("{specifier} {result} {name}({params})\n{{\n{body}}}\n"));
    }
    functions
}

/// Whether a compiler that looks at nothing but the last statement sees that `block` returns. naga does so, and takes no
/// loop for one that never ends.
fn ends_in_return(block: &Block) -> bool {
    match block.0.last().map(|stmt| &stmt.inst) {
        Some(Inst::Return(_)) => true,
        Some(Inst::If(_, then, otherwise)) => ends_in_return(then) && ends_in_return(otherwise),
        Some(Inst::Switch { cases, default, .. }) => cases
            .iter()
            .map(|(_, block)| block)
            .chain([default])
            .all(ends_in_return),
        _ => false,
    }
}

/// The bits of an integer or `bool` constant after Rust's `as`.
pub(super) fn fold_cast(from: Scalar, to: Scalar, bits: u64) -> u64 {
    let shift = 64 - from.bits();
    let value = if from.is_signed_int() {
        ((bits << shift) as i64 >> shift) as u64
    } else {
        bits
    };
    if to.bits() == 64 {
        value
    } else {
        value & ((1 << to.bits()) - 1)
    }
}

/// Elements of a table in lines of reasonable length, indented once.
pub(super) fn wrapped(elements: &[String]) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for e in elements {
        if line.len() + e.len() > 96 {
            out.push_str(&format!("    {}\n", line.trim_end()));
            line.clear();
        }
        line.push_str(e);
        line.push_str(", ");
    }
    if !line.is_empty() {
        out.push_str(&format!("    {}\n", line.trim_end()));
    }
    out
}

/// The name of the flag that says whether the lane has faulted.
pub(super) const DEAD: &str = "dead";

/// Marks the lane dead, if anybody asks.
pub(super) fn mark_dead(w: &mut Writer<'_>) {
    if w.m.entry_needs.dead {
        w.write(&format!("{DEAD} = true;"));
    }
}
