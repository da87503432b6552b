//! Generic kernels of files, which nobody names arguments for: what likely arguments say of them. Must not know how a kernel is refused.

use perpetua::kernel::check::{Refusal, on_targets};
use perpetua_ir::front::rust::FileKernel;

use crate::Failure;

/// What is known of a generic kernel.
pub(super) enum Tried {
    /// One of its instances is a kernel: its name, and what targets refuse of it.
    As(String, Vec<Refusal>),
    /// All are refused for the same reason.
    Refused(Vec<Refusal>),
    /// They are refused for different reasons, or there is nothing to try.
    Unknown,
}

/// Checks instances of a kernel until one is accepted.
pub(super) fn tried(kernel: &FileKernel) -> Result<Tried, Failure> {
    let mut refused: Vec<Vec<Refusal>> = Vec::new();
    for (name, how) in kernel.likely_instances()? {
        let found = on_targets(&name, &kernel.function, &how);
        if found.iter().all(|refusal| refusal.target.is_some()) {
            return Ok(Tried::As(name, found));
        }
        refused.push(found);
    }
    let same = |a: &Refusal, b: &Refusal| (&a.file, a.line, &a.cause) == (&b.file, b.line, &b.cause);
    let mut all = refused.into_iter();
    let Some(first) = all.next().filter(|_| all.len() > 0) else {
        return Ok(Tried::Unknown);
    };
    let agrees =
        |other: Vec<Refusal>| other.len() == first.len() && other.iter().zip(&first).all(|(a, b)| same(a, b));
    if !all.all(agrees) {
        return Ok(Tried::Unknown);
    }
    let own = |refusal: Refusal| Refusal {
        kernel: kernel.name.clone(),
        ..refusal
    };
    Ok(Tried::Refused(first.into_iter().map(own).collect()))
}
