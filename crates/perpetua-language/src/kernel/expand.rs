//! What the macros' output refers to, and nothing else. No part of the public interface: it changes with the macros.

pub use super::element::{Element, Invalid};
pub use super::entry::{Entry, KernelFn};
pub use super::equality;
pub use super::native;
pub use perpetua_ir::front::rust::inventory;
pub use perpetua_ir::front::rust::{
    ConstValue, DeviceImpl, Edge, FieldDesc, FunctionDef, GenericValue, GpuConst, GpuType, ImplBlock,
    Instantiation, Members, Resolved, Resolver, StencilConfig, TypeDesc,
};
pub use perpetua_syntax::Scalar;

/// Stands for the description of a function that the macro refused, beside its error.
pub const fn refused() -> FunctionDef {
    FunctionDef::new(&[], |_| {})
}

/// That a type which is called like the primitive type `P` is `P`.
#[diagnostic::on_unimplemented(
    message = "a type is called `{P}` here and is `{Self}`",
    label = "kernels take this name for Rust's own `{P}`",
    note = "give the type a name that no primitive type has"
)]
pub trait IsPrimitive<P> {}

impl<P> IsPrimitive<P> for P {}

/// Compiles only where `T`, which is called like it, is `P`.
pub const fn primitive<T: IsPrimitive<P>, P>() {}
