//! A whole source file: its kernels, and the functions, constants and types that they use, resolved within that
//! file alone.
//!
//! Modules and `use` within the file are followed, and paths into other crates where these are given; `std::f32::consts` is known.
//! Whatever else leads out of the file is refused where a kernel uses it. `#[cfg(…)]` is judged: for this machine, with debug assertions, without features.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use perpetua_syntax::{ConstDef, EnumDef, Function, StructDef};

use super::describe::TypeDesc;
use super::instantiate::Instantiation;
use super::resolve::members::MemberKind;
use super::resolve::{FunctionDef, Resolved};
use super::source::SourceError;

mod argument;
mod blocks;
mod collect;
mod conditions;
mod constants;
mod crates;
mod defined;
mod generic;
mod globs;
mod handlers;
mod inner;
mod known;
mod lookup;
mod marks;
mod modules;
mod parse;
mod unknown;

pub use collect::REFUSED;
pub use crates::Crates;
use handlers::HandlerPaths;
pub use handlers::{HandlerKernels, HandlerLibrary, handlers_in_file};
pub use modules::Files;

/// A module's name within the file; the file itself is empty.
type ModulePath = Vec<String>;

/// An item, with the module in which it stands.
struct Item {
    module: ModulePath,
    kind: ItemKind,
}

#[derive(Clone)]
enum ItemKind {
    Function(Arc<Function>),
    /// A `const fn` that kernels do not call: constants do.
    ConstFunction(Arc<Function>),
    Const(ConstDef),
    /// A type alias: its type, as a constant's type is read.
    Alias(ConstDef),
    Struct(StructDef),
    Enum(EnumDef),
    /// A type that the file does not define.
    Described(TypeDesc),
    /// A trait.
    Trait(Defaults),
    /// A type without `derive(GpuType)`, a function without an attribute, and so on: what to do about it.
    Unusable(String),
}

/// What a trait has for blocks without it, by name.
#[derive(Clone, Default)]
struct Defaults {
    /// Its methods and constants.
    known: Vec<(String, ItemKind)>,
    /// The same for generic blocks, whose types are not known.
    generic: Vec<(String, MemberKind, Arc<Function>)>,
}

/// An `impl` block of a generic type, or of several types.
struct GenericBlock {
    module: ModulePath,
    /// The trait, as written.
    of_trait: Option<Vec<String>>,
    /// Says what the block is of.
    own: Arc<Function>,
    /// Its functions, constants and types, by name.
    members: Vec<(String, MemberKind, Arc<Function>)>,
}

/// An `impl` block.
struct Block {
    /// The type's full path; a primitive type's is its name.
    owner: Vec<String>,
    /// The type's path as written, and the module in which it is.
    written: Vec<String>,
    module: ModulePath,
    /// The trait, as written.
    of_trait: Option<Vec<String>>,
    /// Its functions, constants and types, by name.
    members: Vec<(String, Item)>,
}

/// A function with `#[kernel]`.
struct Kernel {
    /// Its full path.
    path: Vec<String>,
    /// What the attribute says.
    how: Instantiation,
    lacks_native: Option<(&'static str, u32)>,
}

/// What a file holds.
#[derive(Default)]
pub(super) struct Items {
    file: String,
    /// By full path.
    items: HashMap<Vec<String>, Item>,
    /// The `impl` blocks of types.
    blocks: Vec<Block>,
    generic_blocks: Vec<GenericBlock>,
    /// Names that `use` brings into a module: full path of the alias, path it stands for (as written).
    uses: HashMap<Vec<String>, Vec<String>>,
    /// Paths (as written) whose names `use …::*` brings into a module.
    globs: HashMap<ModulePath, Vec<Vec<String>>>,
    modules: Vec<ModulePath>,
    /// The other crates, each a module at the root.
    crates: Vec<String>,
    /// Why other crates are not known, where somebody asked.
    no_crates: Option<String>,
    kernels: Vec<Kernel>,
    handlers: Vec<HandlerPaths>,
    values: Mutex<Values>,
}

/// Constants, by who computed them and full path; `None` while that goes on.
type Values = HashMap<(ThreadId, Vec<String>), Option<lookup::Result<Resolved>>>;

/// A kernel of a source file.
#[derive(Clone, Debug)]
pub struct FileKernel {
    /// Its name.
    pub name: String,
    /// Its name behind those of the modules in which it stands: `a::k`.
    pub path: String,
    /// The function.
    pub function: FunctionDef,
    /// What the options of its attribute say; all else is the default, generic arguments are missing.
    pub how: Instantiation,
    /// The first form, with its line, for which native code is lacking: in a crate, too, the CPU then runs the kernel as machine code. Without one,
    /// a function that it calls may still have no native code.
    pub lacks_native: Option<(&'static str, u32)>,
    scope: argument::Scope,
}

impl FileKernel {
    /// Whether it is a stencil: its launch passes width, height and, in space, depth of the grid behind all other arguments.
    pub fn is_stencil(&self) -> bool {
        let is_position = |param: &perpetua_syntax::Param| param.ty == perpetua_syntax::Type::GridPos;
        let tree = self.function.tree();
        tree.is_ok_and(|tree| tree.params.iter().any(is_position))
    }
}

/// The kernels of a source file, in the order in which they stand. `#[cfg(…)]` is judged for this machine, with debug assertions, without
/// features, and not as in a test.
///
/// # Errors
/// The file does not parse, has two items of one name, has a condition of which nobody knows whether it holds, or a marked item is
/// outside the kernel language: all refusals together.
pub fn kernels_in_file(text: &str, file: &str) -> Result<Vec<FileKernel>, SourceError> {
    kernels_in_files(text, file, &|_| Ok(None))
}

/// As [`kernels_in_file`], of a file that has modules in files of their own (`mod name;`, also with `#[path]`): `files` gives their texts.
///
/// # Errors
/// As [`kernels_in_file`], of the first file that has any.
pub fn kernels_in_files(text: &str, file: &str, files: Files<'_>) -> Result<Vec<FileKernel>, SourceError> {
    kernels_in_crates(text, file, files, &|_, _| Ok(None))
}

/// As [`kernels_in_files`], of a file that uses constants, types and device functions of other crates, too: `crates` says where their first
/// files are, and `files` gives them.
///
/// # Errors
/// As [`kernels_in_file`], of the first file that has any.
pub fn kernels_in_crates(
    text: &str,
    file: &str,
    files: Files<'_>,
    crates: Crates<'_>,
) -> Result<Vec<FileKernel>, SourceError> {
    match kernels_and_refusals(text, file, files, crates)? {
        (kernels, None) => Ok(kernels),
        (_, Some(refused)) => Err(refused),
    }
}

/// As [`kernels_in_crates`], with what is refused of the file beside the kernels of which nothing is: what they use and is refused
/// refuses them when they are lowered.
///
/// # Errors
/// The file does not parse.
pub fn kernels_and_refusals(
    text: &str,
    file: &str,
    files: Files<'_>,
    crates: Crates<'_>,
) -> Result<(Vec<FileKernel>, Option<SourceError>), SourceError> {
    let parsed = parse::with_room(|| Ok(Items::collect(&parse::file(text, file)?, file, files, crates)))?;
    let (items, refused) = parsed;
    let items = Arc::new(items);
    let own = items
        .kernels
        .iter()
        .filter(|kernel| items.root_of(&kernel.path) == 0);
    let kernels = own
        .filter_map(|kernel| {
            let Kernel { path, how, .. } = kernel;
            let name = path.last()?.clone();
            let item = items.items.get(path)?;
            match &item.kind {
                ItemKind::Function(tree) => Some(FileKernel {
                    name,
                    path: path.join("::"),
                    function: items.function(tree.clone(), item.module.clone(), None),
                    how: how.clone(),
                    lacks_native: kernel.lacks_native,
                    scope: argument::Scope {
                        items: items.clone(),
                        module: item.module.clone(),
                    },
                }),
                _ => None,
            }
        })
        .collect();
    Ok((kernels, refused))
}
