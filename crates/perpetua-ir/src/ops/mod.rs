//! The operator table: one row per operator, read by the verifier, the interpreter, every renderer, the front
//! ends, the conformance suite and the documentation. A new operator is one row (and its meaning in `eval`).
//! What lanes ask of their device instead of computing it has a table of its own, in `device`, whose columns are in `row`.

mod capability;
mod device;
pub mod eval;
mod row;
mod table;

pub use capability::*;
pub use device::*;
pub use row::*;
pub use table::*;
