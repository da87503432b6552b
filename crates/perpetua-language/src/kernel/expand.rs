//! What the macros' output refers to, and nothing else. No part of the public interface: it changes with the macros.

pub use super::element::{Element, Invalid};
pub use super::entry::{Entry, KernelFn};
pub use super::native;
pub use perpetua_ir::front::rust::{
    ConstValue, Edge, FieldDesc, FunctionDef, GenericValue, GpuConst, GpuType, Instantiation, Resolver,
    StencilConfig, TypeDesc,
};
pub use perpetua_syntax::Scalar;

/// Stands for the description of a function that the macro refused, beside its error.
pub const fn refused() -> FunctionDef {
    FunctionDef::new(&[], |_| {})
}
