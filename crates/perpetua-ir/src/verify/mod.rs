//! The verifier: stands between every front end and every renderer. What it passes never makes a renderer fail
//! but for a capability or a limit of the target.
//!
//! In the order in which a kernel is checked: `declaration` checks types, names and tables, `body` each statement's
//! types, scope and structure, `assign` that no variable is read before it is written, `stages` what is special to staged products, `uniform` that all lanes
//! of a block meet at each barrier. Later checks assume what earlier ones established and run only when those
//! found nothing. `facts` is what is handed on of all that.

mod assign;
mod body;
mod declaration;
mod error;
mod facts;
mod stages;
mod taint;
mod types;
mod uniform;

use std::sync::{Arc, OnceLock};

use crate::hash::StableHasher;
use crate::ir::{Checks, Kernel};
use crate::ops::Meeting;

pub use declaration::MAX_BLOCK_LANES;
pub use error::*;
pub use facts::{Facts, require};
pub use types::{MAX_PRIVATE_BYTES, MAX_SHARED_BYTES, MAX_TYPE_DEPTH};
#[cfg(feature = "pass")]
pub(crate) use uniform::Uniformity;
pub use uniform::partings;

/// Deepest nesting of blocks that the verifier accepts and the text form reads.
pub const MAX_BLOCK_DEPTH: usize = 200;

/// Most parameters of a device function.
pub const MAX_FUNCTION_PARAMS: usize = 127;

/// Most statements of a kernel, those of device functions counted at each call: renderers write them out there.
pub const MAX_STATEMENTS: u64 = 1 << 20;

/// A kernel that the verifier has passed. Only [`verify`] makes one.
#[derive(Clone, Debug)]
pub struct Verified {
    kernel: Kernel,
    facts: Arc<Facts>,
    trusted: bool,
    // Computed when first asked for.
    id: OnceLock<u128>,
}

impl Verified {
    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// What the verifier has found of it.
    pub fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// A hash of the whole kernel ([`StableHasher`]), by which caches know it: the same in every process. Computed once.
    pub fn id(&self) -> u128 {
        *self.id.get_or_init(|| StableHasher::of(&self.kernel))
    }

    /// Numbers of the `&[T]` parameters that must not change while the kernel runs: whether all lanes come to its barriers
    /// depends on what they hold. A launch must not bind their memory to a parameter that is stored to.
    pub fn constant_buffers(&self) -> &[u32] {
        self.facts.constant_buffers()
    }

    /// The same with other code: the pass that made it answers for it.
    #[cfg(feature = "pass")]
    pub(crate) fn with_kernel(&self, kernel: Kernel) -> Verified {
        let mut facts = Facts::of(&kernel);
        if self.facts.uniformity.is_some() {
            facts.uniformity = Some(Uniformity::of(&kernel, self.constant_buffers()));
        }
        Verified {
            kernel,
            facts: Arc::new(facts),
            trusted: self.trusted,
            id: OnceLock::new(),
        }
    }

    /// Gives the kernel back, to change it.
    pub fn into_kernel(self) -> Kernel {
        self.kernel
    }

    /// Takes it on the caller's word that the kernel does nothing that [`Checks::On`] would find, although its checks are
    /// explicit or off. Without this such a kernel can be rendered, but devices do not compile it. Changes nothing where
    /// checks are on.
    ///
    /// # Safety
    /// In every launch, each index lies inside what it indexes, no integer is divided by zero, no `MIN` by -1, no
    /// enum is loaded that has no variant of that value, and all lanes of a block come to each barrier.
    pub unsafe fn trust(self) -> Verified {
        Verified {
            trusted: true,
            ..self
        }
    }

    /// Whether launching it is safe: its checks are on, or somebody answers for it ([`Verified::trust`]).
    pub fn is_safe(&self) -> bool {
        self.trusted || self.kernel.checks == Checks::On
    }
}

/// Checks a kernel.
///
/// # Errors
/// Everything that is wrong with it (up to [`VerifyErrors::MOST`] errors), each with the statement that it is
/// about. Errors of declarations hide those of code, errors of types those of data flow.
pub fn verify(kernel: Kernel) -> Result<Verified, VerifyErrors> {
    let mut errors = VerifyErrors::of(&kernel);
    declaration::check(&kernel, &mut errors);
    stages::check_declaration(&kernel, &mut errors);
    if errors.is_empty() {
        for (i, function) in kernel.functions.iter().enumerate() {
            body::check(&kernel, Some((i, function)), &mut errors);
        }
        body::check(&kernel, None, &mut errors);
    }
    if errors.is_empty() {
        declaration::check_size(&kernel, &mut errors);
    }
    let mut facts = Facts::default();
    if errors.is_empty() {
        facts = Facts::of(&kernel);
        for function in &kernel.functions {
            let site = error::Site {
                kernel: &kernel,
                function: Some(&function.name),
                body: &function.body,
            };
            assign::check(site, &mut errors);
            stages::check(site, &mut errors);
        }
        let site = error::Site {
            kernel: &kernel,
            function: None,
            body: &kernel.body,
        };
        assign::check(site, &mut errors);
        stages::check(site, &mut errors);
        // Where checks are explicit, lanes that have faulted walk on to the barriers by tests that look divergent.
        if kernel.checks != Checks::Explicit && facts.meets(Meeting::Block) {
            facts.uniformity = Some(uniform::check(&kernel, &mut errors));
        }
    }
    if errors.is_empty() {
        Ok(Verified {
            kernel,
            facts: Arc::new(facts),
            trusted: false,
            id: OnceLock::new(),
        })
    } else {
        Err(errors)
    }
}

#[cfg(test)]
mod tests;
