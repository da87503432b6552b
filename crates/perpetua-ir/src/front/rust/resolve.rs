//! How a function arrives here, and what its names mean: the contract between the macros and the lowering.
//!
//! A macro sees tokens, no types and no scopes. So it hands over the function's tree as bytes
//! ([`perpetua_syntax::encode`]), and beside it a function of ordinary Rust, expanded in the user's own scope, that
//! tells a [`Resolver`] what each entry of the tree's `paths` is. Rust's own name resolution then does the work.
//! Nothing runs before first use.
//!
//! # An expansion
//! ```text
//! #[device]                                     #[kernel]
//! fn kinetic(p: Particle) -> f32 { … }          pub fn step(ps: &mut [Particle], out: &mut [f32]) {
//!                                                   … kinetic(p) … DT … Mode::Fast … p.momentum() …
//!                                               }
//! ```
//! Each function stays as it is, and gets a sibling in the type namespace: a struct of the same name with the same
//! visibility. `use module::kinetic;` imports both.
//! ```
//! # use perpetua_ir::front::rust::*;
//! # use perpetua_syntax::Scalar;
//! # #[derive(Clone, Copy)] #[repr(C)] struct Particle { v: f32 }
//! # unsafe impl GpuType for Particle { fn describe() -> TypeDesc {
//! #     TypeDesc::of_struct::<Self>("Particle", false, vec![FieldDesc {
//! #         name: "v".into(), ty: <f32 as GpuType>::describe(), offset: core::mem::offset_of!(Self, v) }])
//! # } }
//! # impl GpuValue for Particle { const ZEROED: Self = Particle { v: 0.0 }; }
//! # impl GpuConst for Particle {
//! #     fn to_const(&self) -> ConstValue {
//! #         ConstValue::of_struct(&Self::describe(), vec![GpuConst::to_const(&self.v)])
//! #     }
//! #     fn const_type() -> Option<TypeDesc> { Some(Self::describe()) }
//! # }
//! # const DT: f32 = 0.5;
//! # const BYTES: &[u8] = &[];
//! #[doc(hidden)]
//! #[allow(non_camel_case_types)]
//! struct kinetic {}
//! impl kinetic {
//!     #[doc(hidden)]
//!     pub const fn __perpetua_function() -> FunctionDef {
//!         FunctionDef::new(BYTES, |r| {
//!             r.ty::<Particle>(0); // a path of usage Type or StructLiteral
//!         })
//!     }
//! }
//!
//! // `#[device] impl Particle { fn momentum(self) -> f32 { … } }`: the block says what it has.
//! const _: () = {
//!     inventory::submit! {
//!         DeviceImpl::new(|members| {
//!             let mut block = members.block::<Particle>(None); // the name of the trait, where it is one's
//!             block.function("momentum", FunctionDef::new(BYTES, |r| {
//!                 r.self_type::<Particle>();
//!             }));
//!         })
//!     }
//! };
//!
//! struct step {}
//! impl step {
//!     pub const fn __perpetua_function() -> FunctionDef {
//!         FunctionDef::new(BYTES, |r| {
//!             r.ty::<Particle>(0);
//!             r.device(1, kinetic::__perpetua_function()); // Call of a free function
//!             r.constant(2, &DT);                          // Value or Pattern: constants, enum variants
//!         })
//!     }
//! }
//! # let names = step::__perpetua_function().resolve();
//! # assert_eq!(names.members().get(&Particle::describe(), "momentum").len(), 1);
//! ```
//! Further:
//! - `Foo::new(x)` and `Foo::BAR` (the segment before the last in camel case): `r.ty::<Foo>(id)`, and `r.constant(id,
//!   &<Foo>::BAR)`.
//! - Methods, and the functions, constants and types of type parameters, are no paths: the lowering finds them by type
//!   and name in the table of [`members`]. A trait with `#[device]` has a hidden function, by which the blocks
//!   that implement it get its default methods.
//! - A generic argument that is a bare name in capitals (`blur::<WIDTH>`, at least two letters, no lower case) is a
//!   constant to the resolver though the tree says type: `r.constant`. Other bare names are types.
//! - Paths inside a path's generic arguments have entries of their own; the resolving code writes a path without
//!   its generic arguments.
//! - Generic functions need nothing special: their parameters are not paths. They are bound by
//!   [`Instantiation`](super::Instantiation) for kernels, by unification for device functions.
//! - `Mode::Fast` and `Shape::Circle(r)` are members of types to the tree: their path is that of the enum.
//! - `derive(GpuType)` implements [`GpuType`](super::GpuType), [`GpuValue`] and [`GpuConst`] as above; for an enum with
//!   [`TypeDesc::of_enum`] and [`ConstValue::of_enum`]`(&Self::describe(), *self as i128)`. For an enum with data it implements the
//!   last two, with [`TypeDesc::of_variants`] and [`ConstValue::of_variant`].

pub mod members;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use perpetua_syntax::Function;

use super::describe::{ConstValue, GenericStruct, TypeDesc};
use super::gpu_type::{GpuConst, GpuValue};
use members::Members;

/// A function of the kernel language: its tree, and what its names mean. Cheap to copy about.
#[derive(Clone)]
pub struct FunctionDef {
    tree: Tree,
    names: Names,
}

#[derive(Clone)]
enum Tree {
    Encoded(&'static [u8]),
    Read(Arc<Function>),
}

/// Tells a resolver what a function's names mean.
type NameSource = dyn Fn(&mut Resolver) + Send + Sync;

#[derive(Clone)]
enum Names {
    Program(fn(&mut Resolver)),
    Source(Arc<NameSource>),
}

/// Tells functions apart; a cache's key together with the [`Instantiation`](super::Instantiation).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionKey {
    tree: usize,
    names: usize,
}

impl FunctionDef {
    /// A function of the running program: its encoded tree, and the code that resolves its names.
    pub const fn new(tree: &'static [u8], names: fn(&mut Resolver)) -> FunctionDef {
        FunctionDef {
            tree: Tree::Encoded(tree),
            names: Names::Program(names),
        }
    }

    /// A function that was read from source text; its tree is its identity.
    pub fn from_source(
        tree: Arc<Function>,
        names: impl Fn(&mut Resolver) + Send + Sync + 'static,
    ) -> FunctionDef {
        FunctionDef {
            tree: Tree::Read(tree),
            names: Names::Source(Arc::new(names)),
        }
    }

    /// The function's tree.
    ///
    /// # Errors
    /// The tree's bytes are damaged or of another version.
    pub fn tree(&self) -> Result<Arc<Function>, perpetua_syntax::DecodeError> {
        match &self.tree {
            Tree::Encoded(bytes) => perpetua_syntax::decode(bytes).map(Arc::new),
            Tree::Read(tree) => Ok(tree.clone()),
        }
    }

    /// What the function's names mean.
    pub fn resolve(&self) -> Resolutions {
        let mut resolver = Resolver::default();
        match &self.names {
            Names::Program(code) => code(&mut resolver),
            Names::Source(code) => code(&mut resolver),
        }
        resolver.finish()
    }

    /// Which function it is.
    pub fn key(&self) -> FunctionKey {
        FunctionKey {
            tree: match &self.tree {
                Tree::Encoded(bytes) => bytes.as_ptr() as usize,
                Tree::Read(tree) => Arc::as_ptr(tree) as usize,
            },
            names: match &self.names {
                Names::Program(code) => *code as usize,
                Names::Source(_) => 0,
            },
        }
    }
}

impl PartialEq for FunctionDef {
    fn eq(&self, other: &FunctionDef) -> bool {
        self.key() == other.key()
    }
}

impl fmt::Debug for FunctionDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tree() {
            Ok(tree) => write!(f, "FunctionDef({})", tree.name),
            Err(error) => write!(f, "FunctionDef({error})"),
        }
    }
}

/// What a path means.
#[derive(Clone, Debug)]
pub enum Resolved {
    /// A constant, or an enum's variant.
    Const(ConstValue),
    /// A type.
    Type(TypeDesc),
    /// A generic struct; its arguments stand behind it, or follow from its use.
    GenericStruct(Arc<GenericStruct>),
    /// A `#[device]` function.
    Device(FunctionDef),
    /// A constant of a generic block, or of a file where it calls functions: the function that gives it.
    Computed(FunctionDef),
    /// Nothing that kernels can use; says why and what to do.
    Refused {
        /// What it is instead.
        cause: String,
        /// What to write.
        remedy: String,
    },
}

/// Collects what a function's names mean. Path numbers are indices into the tree's `paths`.
#[derive(Default)]
pub struct Resolver {
    found: Resolutions,
}

/// What a function's names mean.
#[derive(Clone, Debug, Default)]
pub struct Resolutions {
    paths: HashMap<u32, Resolved>,
    /// `None`: those of the running program.
    members: Option<Arc<Members>>,
    self_type: Option<TypeDesc>,
}

impl Resolver {
    /// The path is this constant or variant.
    pub fn constant(&mut self, path: u32, value: &(impl GpuConst + ?Sized)) {
        self.set(path, Resolved::Const(value.to_const()));
    }

    /// The path is this type.
    pub fn ty<T: GpuValue>(&mut self, path: u32) {
        self.set(path, Resolved::Type(T::value_type()));
    }

    /// The path is this generic struct.
    pub fn generic_struct(&mut self, path: u32, of: Arc<GenericStruct>) {
        self.set(path, Resolved::GenericStruct(of));
    }

    /// The path is this function.
    pub fn device(&mut self, path: u32, function: FunctionDef) {
        self.set(path, Resolved::Device(function));
    }

    /// `Self` is this type.
    pub fn self_type<T: GpuValue>(&mut self) {
        self.set_self_type(T::value_type());
    }

    /// The path means this.
    pub fn set(&mut self, path: u32, meaning: Resolved) {
        self.found.paths.insert(path, meaning);
    }

    /// Types have these members, and not those of the running program.
    pub fn set_members(&mut self, members: Arc<Members>) {
        self.found.members = Some(members);
    }

    /// `Self` is this type.
    pub fn set_self_type(&mut self, ty: TypeDesc) {
        self.found.self_type = Some(ty);
    }

    /// What was collected.
    pub fn finish(self) -> Resolutions {
        self.found
    }
}

impl Resolutions {
    /// What the path of this number means; `None` where nothing was said.
    pub fn path(&self, path: u32) -> Option<&Resolved> {
        self.paths.get(&path)
    }

    /// The members of types.
    pub fn members(&self) -> Arc<Members> {
        self.members.clone().unwrap_or_else(Members::of_program)
    }

    /// What `Self` is.
    pub fn self_type(&self) -> Option<&TypeDesc> {
        self.self_type.as_ref()
    }
}
