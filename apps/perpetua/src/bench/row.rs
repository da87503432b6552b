//! One measured figure. Must not know how it came about, nor how it is shown.

use perpetua::kernels::measure::{Roof, Unit};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Matrix products
    Gemm,
    /// Attention forward, batch 2, 16 heads, full and causal
    Attention,
    /// Softmax, layer norm, RMS norm and cross entropy of rows
    Norm,
    /// Products of quantised weights with a vector, and with a matrix of 512 rows
    Quant,
    /// Copies, fills and sums within a device's memory, and copies from and to the host
    Memory,
}

/// The sizes of one problem.
pub(super) type Shape = Vec<usize>;

/// One measured figure.
pub(super) struct Row {
    pub(super) what: String,
    pub(super) kind: String,
    pub(super) shape: Shape,
    /// What computes; where nothing is computed, none.
    pub(super) unit: Option<Unit>,
    pub(super) seconds: f64,
    pub(super) operations: f64,
    pub(super) bytes: f64,
    /// Bytes come from the host or go to it, which the device's own memory says nothing about.
    pub(super) is_transfer: bool,
}

impl Row {
    /// How much of what the device could do was reached; `None` where that is not known.
    pub(super) fn of_best(&self, roof: &Roof) -> Option<f64> {
        if self.is_transfer {
            return None;
        }
        let least = roof.least_seconds(self.unit.unwrap_or(Unit::Lanes), self.operations, self.bytes)?;
        Some(least / self.seconds)
    }
}
