//! The verifier: stands between every front end and every renderer. What it passes never makes a renderer fail
//! but for a capability or a limit of the target.
//!
//! In the order in which a kernel is checked: `declaration` checks types, names and tables, `body` each statement's
//! types, scope and structure, `assign` that no variable is read before it is written, `uniform` that all lanes
//! of a work-group meet at each barrier. Later checks assume what earlier ones established and run only when those
//! found nothing. `capability` tells what a kernel needs of its target.

mod assign;
mod body;
mod capability;
mod declaration;
mod error;
mod types;
mod uniform;

use crate::ir::{Checks, Kernel};

pub use capability::{capabilities, require};
pub use error::*;
pub use types::{MAX_PRIVATE_BYTES, MAX_SHARED_BYTES, MAX_TYPE_DEPTH};

/// Deepest nesting of blocks that the verifier accepts and the text form reads.
pub const MAX_BLOCK_DEPTH: usize = 200;

/// Most parameters of a device function.
pub const MAX_FUNCTION_PARAMS: usize = 127;

/// A kernel that the verifier has passed. Only [`verify`] makes one.
#[derive(Clone, Debug)]
pub struct Verified(Kernel);

impl Verified {
    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.0
    }

    /// Gives the kernel back, to change it.
    pub fn into_kernel(self) -> Kernel {
        self.0
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
    if errors.is_empty() {
        for (i, function) in kernel.functions.iter().enumerate() {
            body::check(&kernel, Some((i, function)), &mut errors);
        }
        body::check(&kernel, None, &mut errors);
    }
    if errors.is_empty() {
        for function in &kernel.functions {
            let site = error::Site {
                kernel: &kernel,
                function: Some(&function.name),
                body: &function.body,
            };
            assign::check(site, &mut errors);
        }
        let site = error::Site {
            kernel: &kernel,
            function: None,
            body: &kernel.body,
        };
        assign::check(site, &mut errors);
        // Where checks are explicit, lanes that have faulted walk on to the barriers by tests that look divergent.
        if kernel.checks != Checks::Explicit {
            uniform::check(&kernel, &mut errors);
        }
    }
    if errors.is_empty() {
        Ok(Verified(kernel))
    } else {
        Err(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::*;
    use crate::ops::BinaryOp;

    #[test]
    fn a_right_kernel_passes_and_a_wrong_one_says_where() -> Result<(), TypeError> {
        let mut k = KernelBuilder::new("scale");
        let x = k.buffer("x", Type::F32, Access::ReadWrite);
        let a = k.param("a", Type::F32);
        k.set_line(7);
        let i = k.global_id(Axis::X)?;
        let n = k.op(Op::Len(x, Scalar::U32))?;
        let inside = k.binary(BinaryOp::Lt, i, n)?;
        k.if_(inside, |k| {
            let at = Place::element(x, i);
            let v = k.load(at.clone())?;
            let v = k.binary(BinaryOp::Mul, v, a)?;
            k.store(at, v)
        })?;
        let mut kernel = k.finish();
        assert!(verify(kernel.clone()).is_ok());
        kernel.body.block.0.push(Stmt {
            line: 9,
            inst: Inst::Do(Effect::Store(Place::element(x, i), inside, None)),
        });
        let errors = verify(kernel).map(|_| ()).unwrap_err().to_string();
        assert_eq!(
            errors,
            "kernel `scale`, line 9, `store x[%5], %7`: stored value has type bool, expected f32"
        );
        Ok(())
    }
}
