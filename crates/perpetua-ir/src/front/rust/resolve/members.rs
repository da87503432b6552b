//! What belongs to types: the functions, constants and types of their `#[device] impl` blocks.
//!
//! The lowering meets a type by its description and a member by its name, often far from any place where the source
//! names the type. So each block of a program says by itself what it has ([`DeviceImpl`], collected by the crate
//! `inventory` before `main`), and all are put into one table when the first kernel is lowered. A file that is read at
//! run time has a table of its own.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// What the macros' output calls to say what a block has.
#[doc(hidden)]
pub use inventory;

use super::{FunctionDef, Resolved};
use crate::front::rust::describe::TypeDesc;
use crate::front::rust::gpu_type::{GpuConst, GpuValue};

/// A `#[device] impl` block of the running program.
pub struct DeviceImpl(fn(&mut Members));

impl DeviceImpl {
    /// The block that `describe` adds to a table.
    pub const fn new(describe: fn(&mut Members)) -> DeviceImpl {
        DeviceImpl(describe)
    }
}

inventory::collect!(DeviceImpl);

/// Browsers run no constructors before the first call. A linker that finds nobody who runs them has each exported function do
/// it at every call; one that finds this leaves it to us.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
#[allow(unsafe_code, reason = "the linker's own function")]
fn run_constructors() {
    unsafe extern "C" {
        fn __wasm_call_ctors();
    }
    // SAFETY: the linker defines the function, without parameters and result, in every module. It may run twice, where the
    // program calls it, too: `inventory` enters a block once.
    unsafe { __wasm_call_ctors() }
}

/// Elsewhere the loader has run them.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
fn run_constructors() {}

/// A member of a type.
#[derive(Clone, Debug)]
pub struct Member {
    /// The name of the trait that it is a member of, without its module; `None` for the type's own.
    pub of_trait: Option<String>,
    /// A function, a constant or a type.
    pub meaning: Resolved,
}

/// A member of a generic block.
#[derive(Clone, Debug)]
pub struct GenericMember {
    /// The name of the trait that it is a member of, without its module; `None` for the type's own.
    pub of_trait: Option<String>,
    /// Belongs where its block does.
    pub block: FunctionDef,
    /// What it is.
    pub kind: MemberKind,
    /// The function; of a constant one that gives it, of a type one whose result it is.
    pub definition: FunctionDef,
}

/// What a member of a generic block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// A function.
    Function,
    /// A constant.
    Constant,
    /// A type.
    Type,
}

/// The members of types, by type and name. One name has several where several traits, or one with different arguments
/// (`Mul<f32>`, `Mul<Vec2>`), bring it.
#[derive(Clone, Debug, Default)]
pub struct Members {
    found: HashMap<TypeDesc, HashMap<String, Vec<Member>>>,
    /// Those of generic blocks, by name.
    generic: HashMap<String, Vec<GenericMember>>,
    /// Which types have a trait: by its name those of blocks of one type, and the generic blocks.
    traits: HashMap<String, (HashSet<TypeDesc>, Vec<FunctionDef>)>,
}

impl Members {
    /// Those of the running program.
    pub fn of_program() -> Arc<Members> {
        static ALL: OnceLock<Arc<Members>> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            run_constructors();
            let mut all = Members::default();
            for block in inventory::iter::<DeviceImpl> {
                (block.0)(&mut all);
            }
            Arc::new(all)
        });
        all.clone()
    }

    /// Starts an `impl` block of `T`; `of_trait` is the trait's name, without its module.
    pub fn block<T: GpuValue>(&mut self, of_trait: Option<&str>) -> ImplBlock<'_> {
        self.block_of(T::value_type(), of_trait)
    }

    /// Starts an `impl` block of a type.
    pub fn block_of(&mut self, ty: TypeDesc, of_trait: Option<&str>) -> ImplBlock<'_> {
        if let Some(of_trait) = of_trait {
            let (types, _) = self.traits.entry(of_trait.to_owned()).or_default();
            types.insert(ty.clone());
        }
        ImplBlock {
            members: self.found.entry(ty).or_default(),
            of_trait: of_trait.map(str::to_owned),
            own: Vec::new(),
        }
    }

    /// Starts a generic `impl` block; `of_trait` is the trait's name, without its module. The tree of `block` says which types it is of.
    pub fn generic_block(&mut self, of_trait: Option<&str>, block: FunctionDef) -> GenericBlock<'_> {
        if let Some(of_trait) = of_trait {
            let (_, blocks) = self.traits.entry(of_trait.to_owned()).or_default();
            blocks.push(block.clone());
        }
        GenericBlock {
            members: &mut self.generic,
            of_trait: of_trait.map(str::to_owned),
            block,
            own: Vec::new(),
        }
    }

    /// The types that have a trait of this name, and the generic blocks of it; `None` where kernels know no block of it.
    pub fn of_trait(&self, name: &str) -> Option<(&HashSet<TypeDesc>, &[FunctionDef])> {
        let (types, blocks) = self.traits.get(name)?;
        Some((types, blocks))
    }

    /// The members of generic blocks of this name.
    pub fn generic(&self, name: &str) -> &[GenericMember] {
        self.generic.get(name).map_or(&[], Vec::as_slice)
    }

    /// The members of this name.
    pub fn get(&self, ty: &TypeDesc, name: &str) -> &[Member] {
        self.found
            .get(ty)
            .and_then(|members| members.get(name))
            .map_or(&[], Vec::as_slice)
    }

    /// All members of generic blocks, in no particular order.
    pub fn iter_generic(&self) -> impl Iterator<Item = (&str, &GenericMember)> {
        let all = self.generic.iter();
        all.flat_map(|(name, all)| all.iter().map(move |member| (name.as_str(), member)))
    }

    /// All other members, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&TypeDesc, &str, &Member)> {
        self.found.iter().flat_map(|(ty, members)| {
            members
                .iter()
                .flat_map(move |(name, all)| all.iter().map(move |member| (ty, name.as_str(), member)))
        })
    }
}

/// An `impl` block as it says what it has.
pub struct ImplBlock<'m> {
    members: &'m mut HashMap<String, Vec<Member>>,
    of_trait: Option<String>,
    /// Names that the block has given.
    own: Vec<String>,
}

impl ImplBlock<'_> {
    /// A function.
    pub fn function(&mut self, name: &str, function: FunctionDef) {
        self.add(name, Resolved::Device(function));
    }

    /// A constant.
    pub fn constant(&mut self, name: &str, value: &(impl GpuConst + ?Sized)) {
        self.add(name, Resolved::Const(value.to_const()));
    }

    /// A type.
    pub fn ty<T: GpuValue>(&mut self, name: &str) {
        self.add(name, Resolved::Type(T::value_type()));
    }

    /// What the trait has for a block without it.
    pub fn default(&mut self, name: &str, meaning: Resolved) {
        if !self.own.iter().any(|own| own == name) {
            self.add(name, meaning);
        }
    }

    /// A member.
    pub fn add(&mut self, name: &str, meaning: Resolved) {
        self.own.push(name.to_owned());
        self.members.entry(name.to_owned()).or_default().push(Member {
            of_trait: self.of_trait.clone(),
            meaning,
        });
    }
}

/// A generic `impl` block as it says what it has.
pub struct GenericBlock<'m> {
    members: &'m mut HashMap<String, Vec<GenericMember>>,
    of_trait: Option<String>,
    block: FunctionDef,
    /// Names that the block has given.
    own: Vec<String>,
}

impl GenericBlock<'_> {
    /// A member.
    pub fn add(&mut self, name: &str, kind: MemberKind, definition: FunctionDef) {
        self.own.push(name.to_owned());
        self.members
            .entry(name.to_owned())
            .or_default()
            .push(GenericMember {
                of_trait: self.of_trait.clone(),
                block: self.block.clone(),
                kind,
                definition,
            });
    }

    /// What the trait has for a block without it.
    pub fn default(&mut self, name: &str, kind: MemberKind, definition: FunctionDef) {
        if !self.own.iter().any(|own| own == name) {
            self.add(name, kind, definition);
        }
    }
}
