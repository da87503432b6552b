//! What the macros' output refers to, and nothing else. No part of the public interface: it changes with the macros.

pub use super::check::Registered;
#[cfg(feature = "compare")]
pub use super::check::compare;
pub use super::element::{Element, Invalid};
pub use super::entry::{Entry, Instance, KernelFn};
pub use super::equality;
pub use super::native;
pub use crate::{plain, registered};
pub use perpetua_ir::front::rust::inventory;
pub use perpetua_ir::front::rust::{
    ConstValue, DeviceImpl, Edge, FieldDesc, FieldType, FunctionDef, GenericBlock, GenericStruct,
    GenericValue, GpuConst, GpuType, GpuValue, ImplBlock, Instantiation, MemberKind, Members, Resolved,
    Resolver, StencilConfig, TypeArg, TypeDesc, TypeParam,
};
pub use perpetua_macros::GpuType;
pub use perpetua_syntax::Scalar;

/// The `#[device]` function of type `S` that `Self` stands for.
#[diagnostic::on_unimplemented(
    message = "a kernel is given `{Self}` for a function of type `{S}`",
    label = "no `#[device]` function of this type",
    note = "name a free function with `#[device]` and without generic parameters"
)]
pub trait DeviceFunction<S>: 'static {
    /// Its description.
    fn function() -> FunctionDef;
}

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

/// Says what a type is where a path names it. A generic struct has such a function of its own, which comes before this one: there
/// the path has no arguments, and no type would be known.
pub trait Described {
    /// Tells `resolver` that the path is this type.
    fn __perpetua_type(resolver: &mut Resolver, path: u32)
    where
        Self: GpuValue,
    {
        resolver.ty::<Self>(path);
    }

    /// Tells `resolver` that the path is this constant of the type. Of a generic type it may be a variant.
    fn __perpetua_value<C: GpuConst + ?Sized>(resolver: &mut Resolver, path: u32, value: &C) {
        resolver.constant(path, value);
    }
}

impl<T> Described for T {}

/// Compiles only where a generic struct stands by its own name: an alias may order its parameters otherwise.
///
/// # Panics
/// The names differ. Only constants call it.
pub const fn is_named(own: &str, written: &str) {
    let (own, written) = (own.as_bytes(), written.as_bytes());
    let mut same = own.len() == written.len();
    let mut i = 0;
    while same && i < own.len() {
        same = own[i] == written[i];
        i += 1;
    }
    assert!(
        same,
        "a generic struct has arguments behind another name than its own: write its own name"
    );
}
