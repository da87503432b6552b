//! Rust tokens to the tree.
//!
//! The reader knows syntax and lexical scopes only: which names are locals, which are generic parameters, and
//! which are the language's own functions. All else becomes a [`PathRef`](crate::PathRef). What the language
//! leaves out is an error at its span with its remedy ([`Refusal`]); all errors of a function are reported
//! together.

mod argument;
mod block;
pub mod by_example;
mod call;
mod chain;
mod chosen;
mod control;
mod data;
mod derive;
mod effects;
mod expr;
mod format;
mod inner;
pub mod iterate;
mod library;
mod macros;
mod native;
pub mod options;
mod order;
mod panic;
mod path;
mod pattern;
mod ranges;
mod reader;
pub mod refusal;
mod signature;
mod sugar;
mod types;

use std::collections::HashMap;
use std::fmt;

use crate::ast::{ConstDef, EnumDef, Function, FunctionKind, MOST_CONDITIONS, StructDef};
pub use derive::{as_local, derived_blocks};
pub use library::{REVERSE, STD_FUNCTIONS, is_reverse};
pub use native::{intrinsic_of, lacks_native};
use reader::Reader;
pub use refusal::Refusal;
use signature::Belongs;

/// A tree, and the paths that it refers to as they stand in the source.
#[derive(Clone)]
pub struct Read<T> {
    /// The tree.
    pub tree: T,
    /// The tokens of each entry of the tree's `paths`, by index, with the span of the first use: what a macro
    /// writes into the code that resolves it.
    pub paths: Vec<syn::Path>,
    /// Lengths of arrays that rustc computes, each a `usize`, and the names that the tree has for them.
    pub lengths: Vec<(syn::Ident, syn::Expr)>,
}

// Not derived: syn's types have Debug only with a feature that costs every user's build time.
impl<T: fmt::Debug> fmt::Debug for Read<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Read { tree, paths, lengths } = self;
        f.debug_struct("Read")
            .field("tree", tree)
            .field("paths", &paths.len())
            .field("lengths", &lengths.len())
            .finish()
    }
}

/// A struct or an enum.
#[derive(Debug, Clone)]
pub enum GpuType {
    /// A struct, and the paths of its fields' types.
    Struct(Read<StructDef>),
    /// An enum.
    Enum(EnumDef),
}

/// Reads a function. A [`FunctionKind::Kernel`] with a `GridPos` parameter is read as a
/// [`FunctionKind::Stencil`]. `file` names the source in faults. Attributes before the function are the
/// caller's to judge.
///
/// # Errors
/// All that is outside the language, each at its span.
pub fn read_function(item: &syn::ItemFn, kind: FunctionKind, file: &str) -> syn::Result<Read<Function>> {
    signature::read(&item.sig, &item.block, kind, &Belongs::Nothing, file)
}

/// Numbers of conditions, by the `if` that each belongs to.
pub type Conditions = HashMap<*const syn::ExprIf, u32>;

/// Numbers the first [`MOST_CONDITIONS`] conditions of a function in the order in which its source has them. What stands in a
/// macro's tokens has none.
pub fn conditions(block: &syn::Block) -> Conditions {
    struct Count(Conditions);
    impl syn::visit::Visit<'_> for Count {
        fn visit_expr_if(&mut self, branch: &syn::ExprIf) {
            let number = self.0.len() as u32;
            if number < MOST_CONDITIONS {
                self.0.insert(std::ptr::from_ref(branch), number);
            }
            syn::visit::visit_expr_if(self, branch);
        }
    }
    let mut count = Count(HashMap::new());
    syn::visit::Visit::visit_block(&mut count, block);
    count.0
}

/// Reads a trait's default method: a device function whose `Self` is known when it is lowered. `None` where the method
/// has no body.
///
/// # Errors
/// All that is outside the language, each at its span.
pub fn read_default_method(
    item: &syn::TraitItemFn,
    of_trait: &syn::Ident,
    file: &str,
) -> Option<syn::Result<Read<Function>>> {
    let (body, of_trait) = (item.default.as_ref()?, reader::name_of(of_trait));
    Some(signature::read(
        &item.sig,
        body,
        FunctionKind::Device,
        &Belongs::Trait(of_trait),
        file,
    ))
}

/// Reads a method or another function of an `impl` block; as [`read_function`].
///
/// # Errors
/// All that is outside the language, each at its span.
pub fn read_method(item: &syn::ImplItemFn, block: &syn::ItemImpl, file: &str) -> syn::Result<Read<Function>> {
    if let Some(refused) = refused_trait(block) {
        return Err(refused);
    }
    let belongs = Belongs::Block(block);
    signature::read(&item.sig, &item.block, FunctionKind::Device, &belongs, file)
}

/// Why kernels would not see what a block says of a trait of the standard library. A user's trait of the same name has other items.
#[must_use]
pub fn refused_trait(block: &syn::ItemImpl) -> Option<syn::Error> {
    let (_, path, _) = block.trait_.as_ref()?;
    let name = reader::name_of(&path.segments.last()?.ident);
    let function = |known: &str| {
        block.items.iter().find_map(|item| match item {
            syn::ImplItem::Fn(function) if function.sig.ident == known => Some(&function.sig),
            _ => None,
        })
    };
    let refusal = match name.as_str() {
        "Deref" if function("deref").is_some() => Refusal::DerefTrait,
        "DerefMut" if function("deref_mut").is_some() => Refusal::DerefTrait,
        "Sum" if function("sum").is_some_and(|sig| sig.receiver().is_none()) => Refusal::SumTrait,
        "Product" if function("product").is_some_and(|sig| sig.receiver().is_none()) => Refusal::SumTrait,
        _ => return None,
    };
    Some(syn::Error::new_spanned(path, refusal.message(&name)))
}

/// Reads what else than a function a generic `impl` block or a trait has.
///
/// # Errors
/// All that is outside the language, each at its span.
pub fn read_member(member: &Member<'_>, file: &str) -> syn::Result<Read<Function>> {
    let (sig, body) = member.as_function()?;
    let belongs = match member {
        Member::Constant(_, block) | Member::Type(_, block) | Member::Block(block) => Belongs::Block(block),
        Member::Default(_, of_trait) => Belongs::Trait(reader::name_of(of_trait)),
    };
    signature::read(&sig, &body, FunctionKind::Device, &belongs, file)
}

/// What else than a function a generic block, or a trait, has.
#[expect(
    missing_debug_implementations,
    reason = "syn's types have Debug only with a feature that costs build time"
)]
pub enum Member<'a> {
    /// A constant of a block.
    Constant(&'a syn::ImplItemConst, &'a syn::ItemImpl),
    /// A type of a block.
    Type(&'a syn::ImplItemType, &'a syn::ItemImpl),
    /// A trait's default constant.
    Default(&'a syn::TraitItemConst, &'a syn::Ident),
    /// What the block itself is of.
    Block(&'a syn::ItemImpl),
}

impl Member<'_> {
    /// The function that stands for it: a constant's gives it, a type's has it as its result.
    ///
    /// # Errors
    /// Its tokens are none of a function.
    pub fn as_function(&self) -> syn::Result<(syn::Signature, syn::Block)> {
        let (name, ty, value) = match self {
            Member::Constant(item, _) => (&item.ident, Some(&item.ty), Some(&item.expr)),
            Member::Type(item, _) => (&item.ident, Some(&item.ty), None),
            Member::Default(item, _) => {
                let value = item.default.as_ref().map(|(_, value)| value);
                (&item.ident, Some(&item.ty), value)
            }
            Member::Block(block) => {
                let name = syn::Ident::new("own", block.impl_token.span);
                return Ok((
                    syn::parse2(quote::quote!(fn #name()))?,
                    syn::parse2(quote::quote!({}))?,
                ));
            }
        };
        let ret = ty.map(|ty| quote::quote!(-> #ty));
        let sig = syn::parse2(quote::quote_spanned!(name.span()=> fn #name() #ret))?;
        Ok((sig, syn::parse2(quote::quote!({ #value }))?))
    }
}

/// Whether an `impl` block is of a generic type (`Pair<f32>`), of several types (`impl<T: Real> Norm for T`), or of a type without a
/// name (`[f32; 3]`).
#[must_use]
pub fn is_generic_block(block: &syn::ItemImpl) -> bool {
    signature::is_generic_block(block)
}

/// Reads a struct or an enum without data.
///
/// # Errors
/// A missing or unfit `repr`, and all else that has no layout on a device.
pub fn read_gpu_type(input: &syn::DeriveInput) -> syn::Result<GpuType> {
    data::read(input)
}

/// Reads a constant; for source that is resolved without a compiler.
///
/// # Errors
/// All that is outside the language, each at its span.
pub fn read_const(ident: &syn::Ident, ty: &syn::Type, value: &syn::Expr) -> syn::Result<Read<ConstDef>> {
    let mut reader = Reader::default();
    let ty = reader.read_type(ty);
    let value = reader.read_expr(value);
    let name = reader::name_of(ident);
    reader.finish(|paths| ConstDef {
        name,
        ty,
        value,
        paths,
    })
}
