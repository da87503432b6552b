//! The verifier: stands between every front end and every renderer. What it passes never makes a renderer fail
//! but for a capability or a limit of the target.

use crate::ir::Kernel;

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
