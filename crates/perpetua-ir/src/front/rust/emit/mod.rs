//! From typed trees to the IR. Where a local is never changed it becomes a plain value; functions that take
//! references are inlined, so that a place is known wherever a reference is used.
//!
//! In the order of the reading: [`value`] says what an expression gives, [`types`] what types become,
//! [`scalar`] builds operators and folds constants ([`wide`] those of integers of two words), [`place`] finds memory, [`expr`] goes through expressions, [`operation`],
//! [`aggregate`] and [`action`] emit them,
//! [`branch`], [`matching`], [`looping`] through control flow ([`coverage`] checks arms, [`slice_pattern`] looks at elements),
//! [`call`] and [`closure`] through calls, [`method`] and [`intrinsic`] through what the language provides, [`grid`] and [`stencil`] through stencils; [`tidy`] ends it.

mod action;
mod aggregate;
mod branch;
mod call;
mod closure;
mod coverage;
mod expr;
mod followed;
mod grid;
mod intrinsic;
mod looping;
mod lower;
mod matching;
mod method;
mod number;
mod operation;
mod part;
mod place;
mod scalar;
mod several;
mod shown;
mod shown_wide;
mod slice_pattern;
mod stencil;
mod tidy;
mod types;
mod value;
mod wide;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use perpetua_syntax::{FunctionKind, Generic as GenericParam};

use super::describe::TypeDesc;
use super::error::LowerError;
use super::infer::tree::{Checked, Loaded, LocalId, TargetId};
use super::infer::ty::{Generic, Ty, show};
use super::infer::{self, Program, Result};
use super::instantiate::{GenericValue, Instantiation};
use super::resolve::{FunctionDef, FunctionKey};
use crate::ir::{Access, Base, Checks, Inst, Kernel, KernelBuilder, Place, Type, TypeError, Value};
pub use followed::{COMPUTED, Followed, INSIDE, lower_followed};
use grid::Grid;
use lower::Noted;
pub use lower::lower;
use types::{Types, plain};
use value::{Binding, Meanings, Slot, Src, Val};

/// Which function with which generic arguments.
type InstanceKey = (FunctionKey, Vec<Generic>);

/// How a `return` leaves the function being emitted.
enum Return {
    /// The kernel ends for this lane.
    Kernel,
    /// A function of the IR.
    Function,
    /// An inlined function: its block's level, and where its value goes.
    Inline(u32, Slot),
}

/// The function whose tree is being emitted.
struct Scope {
    /// Tells the scopes of one lowering apart.
    id: u32,
    f: Rc<Checked>,
    bindings: Vec<Binding>,
    ret: Return,
    /// Loops and labelled blocks that are open: their level and where their value goes.
    targets: HashMap<TargetId, (u32, Slot)>,
    /// The line that all statements carry, where the function stands in another file than the kernel.
    line: Option<u32>,
}

/// The body of the IR that is being built.
#[derive(Default)]
struct BodyState {
    /// Number of loops and labelled blocks that are open.
    depth: u32,
    /// Whether the present point cannot be reached.
    ended: bool,
    /// Bits of the values that are constants.
    known: HashMap<Value, u64>,
    /// For values that are one of a few constants: the bits of each.
    few: HashMap<Value, Vec<u64>>,
    /// The words of integers that were made of two.
    words: HashMap<Value, [Value; 2]>,
}

struct Emitter<'p> {
    program: &'p Program,
    /// The kernel, for errors that stand in no function.
    kernel: Rc<Loaded>,
    k: KernelBuilder,
    types: Types,
    scope: Scope,
    /// The functions into which the present one is inlined, outermost first.
    outer: Vec<Scope>,
    scopes: u32,
    body: BodyState,
    checked: HashMap<InstanceKey, Rc<Checked>>,
    /// The functions of the IR, by instance.
    functions: HashMap<InstanceKey, u32>,
    names: HashSet<String>,
    /// Instances whose code is being emitted.
    active: Vec<InstanceKey>,
    /// Shared variables by the call that declares them.
    shared: HashMap<(InstanceKey, usize), Base>,
    dynamic: Option<(Type, Base)>,
    /// Whether pairs of blocks fill stages together.
    pairs: bool,
    /// The local that the expression being emitted becomes: names shared variables.
    declared: Option<String>,
    grid: Option<Grid>,
    /// Expressions that are open.
    nesting: u32,
    /// Calls that were inlined.
    inlined: u32,
    /// Whether nothing is checked.
    unchecked: bool,
    /// The variables that conditions are written to, where those are asked for.
    noted: Option<Noted>,
    /// What references are known to mean before the code that says so.
    meanings: Meanings,
    /// Number of slots of references.
    chosen: u32,
}

/// Makes a kernel without code of its own that holds one device function, and those that it calls: for showing it
/// in a target's language. The function's index is the last.
///
/// # Errors
/// As [`lower`]; and the function takes or gives references, for such functions exist only inlined.
pub fn lower_device(def: &FunctionDef, how: &Instantiation) -> Result<Kernel> {
    let program = Program::new(how.pointer_width);
    let loaded = program.load(def)?;
    let tree = loaded.tree.clone();
    if tree.kind != FunctionKind::Device {
        return Err(loaded.error(
            tree.line,
            format!("`{}` is not a device function", tree.name),
            "lower it as a kernel",
        ));
    }
    let generics = bind_generics(&program, &loaded, &how.generics)?;
    let checked = Rc::new(infer::check(&program, &loaded, generics.clone())?);
    let mut emitter = Emitter::new(&program, checked.clone(), &format!("{}_alone", tree.name));
    emitter.unchecked = how.checks == Checks::Off;
    let key = (def.key(), generics);
    emitter.active.push(key.clone());
    emitter.instances(&checked)?;
    emitter.active.pop();
    if emitter.is_inlined(&checked) {
        return Err(loaded.error(
            tree.line,
            format!(
                "`{}` takes or gives references, or synchronises: it exists only inside its callers",
                tree.name
            ),
            "show a kernel that calls it, or let it take and give values",
        ));
    }
    emitter.function(key, checked)?;
    let mut kernel = emitter.k.finish();
    tidy::tidy(&mut kernel);
    kernel.source = Arc::from(tree.file.as_str());
    kernel.pointer_width = how.pointer_width;
    kernel.checks = how.checks;
    kernel.contract = how.contract;
    Ok(kernel)
}

/// A local of a function, with the type that inference gave it: what rustc must have found too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferredLocal {
    /// The function.
    pub function: String,
    /// The local.
    pub name: String,
    /// Where it is declared.
    pub line: u32,
    /// Its type, as Rust writes it.
    pub ty: String,
}

/// The locals of a function and of those that it calls, each function once for each set of generic arguments. For
/// tests that hold this inference against rustc's.
///
/// # Errors
/// As [`lower`].
pub fn inferred_locals(def: &FunctionDef, how: &Instantiation) -> Result<Vec<InferredLocal>> {
    let program = Program::new(how.pointer_width);
    let loaded = program.load(def)?;
    let generics = bind_generics(&program, &loaded, &how.generics)?;
    let checked = Rc::new(infer::check(&program, &loaded, generics.clone())?);
    let mut emitter = Emitter::new(&program, checked.clone(), "types");
    emitter.active.push((def.key(), generics));
    emitter.instances(&checked)?;
    let functions = emitter.checked.values().chain([&checked]);
    Ok(functions
        .flat_map(|f| {
            f.locals.iter().map(|local| InferredLocal {
                function: f.loaded.tree.name.clone(),
                name: local.name.clone(),
                line: local.line,
                ty: show(&f.types.deep(&local.ty, true)),
            })
        })
        .collect())
}

/// The generic arguments that were chosen, checked against the parameters.
fn bind_generics(program: &Program, loaded: &Loaded, values: &[GenericValue]) -> Result<Vec<Generic>> {
    let tree = &loaded.tree;
    if values.len() != tree.generics.len() {
        return Err(loaded.error(
            tree.line,
            format!(
                "`{}` has {} generic parameters, {} arguments were given",
                tree.name,
                tree.generics.len(),
                values.len()
            ),
            "give one for each, in order",
        ));
    }
    tree.generics
        .iter()
        .zip(values)
        .map(|(param, value)| {
            let bound = match (param, value) {
                (GenericParam::Type { call: None, .. }, GenericValue::Type(desc)) => {
                    Some(Generic::Type(Ty::from_desc(desc)))
                }
                (GenericParam::Type { call: Some(_), .. }, GenericValue::Function(def)) => {
                    Some(Generic::Type(infer::function_type(program, def)?))
                }
                (GenericParam::Const { ty, .. }, GenericValue::Const(value)) => {
                    infer::const_generic(value, *ty)
                }
                _ => None,
            };
            bound.ok_or_else(|| {
                let wanted = match param {
                    GenericParam::Type { call: Some(_), .. } => "a device function".to_owned(),
                    GenericParam::Type { .. } => "a type".to_owned(),
                    GenericParam::Const { ty, .. } => format!("a constant of type `{}`", ty.name()),
                };
                let given = match value {
                    GenericValue::Type(desc) => format!("the type `{desc}`"),
                    GenericValue::Const(value) => format!("a constant of type `{}`", value.type_desc()),
                    GenericValue::Function(def) => format!("the function {def:?}"),
                };
                loaded.error(
                    tree.line,
                    format!(
                        "the generic parameter `{}` takes {wanted}, {given} was given",
                        param.name()
                    ),
                    "",
                )
            })
        })
        .collect()
}

/// A function's name with its generic arguments.
fn instance_name(program: &Program, name: &str, generics: &[Generic]) -> String {
    let mut out = name.to_owned();
    for generic in generics {
        let text = match generic {
            Generic::Type(ty) => program.given_name(ty).unwrap_or_else(|| show(ty)),
            Generic::Len(len) => match len {
                infer::ty::Len::Known(n) => n.to_string(),
                infer::ty::Len::Var(_) => "_".into(),
            },
            Generic::Value(v) => v.to_string().replace('-', "minus_"),
        };
        out.push('_');
        out.push_str(&text);
    }
    out
}

impl<'p> Emitter<'p> {
    fn new(program: &'p Program, f: Rc<Checked>, name: &str) -> Emitter<'p> {
        Emitter {
            program,
            kernel: f.loaded.clone(),
            k: KernelBuilder::new(name),
            types: Types::default(),
            scope: Scope::new(0, f, Return::Kernel, None),
            outer: Vec::new(),
            scopes: 0,
            body: BodyState::default(),
            checked: HashMap::new(),
            functions: HashMap::new(),
            names: HashSet::from([name.to_owned()]),
            active: Vec::new(),
            shared: HashMap::new(),
            dynamic: None,
            pairs: false,
            declared: None,
            grid: None,
            nesting: 0,
            inlined: 0,
            unchecked: false,
            noted: None,
            meanings: Meanings::new(),
            chosen: 0,
        }
    }

    /// A number that no other scope has.
    fn scope_id(&mut self) -> u32 {
        self.scopes += 1;
        self.scopes
    }

    /// An error in the function being emitted.
    fn error(&self, line: u32, cause: impl Into<String>, remedy: impl Into<String>) -> LowerError {
        self.scope.f.loaded.error(line, cause, remedy)
    }

    /// The error that the builder's type check found.
    fn typed<T>(&self, line: u32, done: std::result::Result<T, TypeError>) -> Result<T> {
        done.map_err(|error| self.error(line, error.to_string(), ""))
    }

    /// Sets the line that the next statements carry.
    fn at(&mut self, line: u32) {
        self.k.set_line(self.scope.line.unwrap_or(line));
    }

    /// A type of the present function with nothing unknown.
    fn ty(&self, ty: &Ty) -> Ty {
        plain(&self.scope.f.types.deep(ty, true))
    }

    /// The IR's type for a type of the present function.
    fn ir_type(&mut self, ty: &Ty, line: u32) -> Result<Type> {
        let ty = self.ty(ty);
        let width = self.program.width;
        match self.types.convert(&ty, width) {
            Ok(ty) => Ok(ty),
            Err((cause, remedy)) => Err(self.error(line, cause, remedy)),
        }
    }

    /// Declares a kernel's parameters and binds them.
    fn kernel_params(&mut self) -> Result<()> {
        let f = self.scope.f.clone();
        for (param, local) in f.loaded.tree.params.iter().zip(&f.params) {
            self.kernel_param(&param.name, *local, param.line)?;
        }
        Ok(())
    }

    /// As [`Self::ir_type`], of what the host lays out, too.
    fn shared_type(&mut self, ty: &Ty, line: u32) -> Result<Type> {
        types::check_shared(ty, self.program.width)
            .map_err(|(cause, remedy)| self.error(line, cause, remedy))?;
        self.ir_type(ty, line)
    }

    fn kernel_param(&mut self, name: &str, local: LocalId, line: u32) -> Result<()> {
        self.at(line);
        let ty = self.local_type(local);
        if let Some(held) = self.without_layout(local) {
            return Err(self.error(
                line,
                format!("the parameter `{name}` holds a `{held}`, which no memory takes"),
                "pass the parts that memory takes (of an enum the number of the variant, too), and make it of them",
            ));
        }
        let access = |mutable| {
            if mutable { Access::ReadWrite } else { Access::Read }
        };
        let name = types::identifier(name);
        let val = match &ty {
            Ty::Ref(mutable, target) => match &**target {
                Ty::Slice(element) => {
                    let element = self.shared_type(element, line)?;
                    let base = self.k.buffer(name, element, access(*mutable));
                    Val::Ref(Src::Place(Place {
                        base,
                        path: Vec::new(),
                    }))
                }
                // A reference to one value is a buffer of one element.
                other => {
                    let element = self.shared_type(other, line)?;
                    let base = self.k.buffer(name, element, access(*mutable));
                    let array = Src::Place(Place {
                        base,
                        path: Vec::new(),
                    });
                    let usize_scalar = self.usize_scalar();
                    let (zero, len) = (self.constant(usize_scalar, 0), self.length(&array, &ty, line)?);
                    let name = self.name_of(&array);
                    self.check_below(zero, len, name, line)?;
                    Val::Ref(self.element(array, zero, &ty, line)?)
                }
            },
            // Calls of it are calls of the function that the kernel was given; nothing is passed.
            Ty::Closure(_) => self.function_value(),
            Ty::Tuple(_) => {
                return Err(self.error(
                    line,
                    format!("the parameter `{name}` is a tuple, which has no layout"),
                    "pass its elements one by one, or a struct with `#[derive(GpuType)]`",
                ));
            }
            other => {
                let ty = self.shared_type(other, line)?;
                Val::Value(self.k.param(name, ty))
            }
        };
        self.bind(local, val, line)
    }

    /// The type that a kernel's parameter holds and memory does not take: its values live in kernels only.
    fn without_layout(&self, id: LocalId) -> Option<TypeDesc> {
        let f = &self.scope.f;
        let mut ty = f.types.deep(&f.locals.get(id.0 as usize)?.ty, true);
        while let Ty::Ref(_, inner) | Ty::Slice(inner) | Ty::Array(inner, _) = &ty {
            ty = (**inner).clone();
        }
        ty.to_desc()
            .filter(|held| matches!(held, TypeDesc::Struct(_)) && held.host_layout().is_none())
    }

    /// Emits the kernel's code.
    fn kernel_body(&mut self) -> Result<()> {
        let f = self.scope.f.clone();
        self.block(&f.body)?;
        Ok(())
    }

    /// The type of a local of the present function.
    fn local_type(&self, id: LocalId) -> Ty {
        match self.scope.f.locals.get(id.0 as usize) {
            Some(local) => self.ty(&local.ty),
            None => Ty::Never,
        }
    }

    /// Closes a block: nothing follows a jump.
    fn close(&mut self) -> crate::ir::Block {
        let mut block = self.k.close_block();
        let jump = block
            .0
            .iter()
            .position(|s| matches!(s.inst, Inst::Break(_) | Inst::Continue(_) | Inst::Return(_)));
        if let Some(jump) = jump {
            block.0.truncate(jump + 1);
        }
        block
    }

    /// An identifier that no function has yet.
    fn unique(&mut self, name: &str) -> String {
        let name = types::identifier(name);
        let mut unique = name.clone();
        let mut n = 1;
        while !self.names.insert(unique.clone()) {
            n += 1;
            unique = format!("{name}_{n}");
        }
        unique
    }
}

impl Scope {
    fn new(id: u32, f: Rc<Checked>, ret: Return, line: Option<u32>) -> Scope {
        let bindings = vec![Binding::Unset; f.locals.len()];
        Scope {
            id,
            f,
            bindings,
            ret,
            targets: HashMap::new(),
            line,
        }
    }
}
