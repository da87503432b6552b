//! Type inference: from a function's syntax and the meanings of its names to its typed tree, by unification, in the
//! order in which rustc goes. It must agree with rustc wherever rustc accepts; what rustc refuses it may accept
//! only if the meaning is clear. Knows nothing of the IR's statements.

mod aggregate;
mod alternatives;
pub(crate) mod call;
mod checked;
mod closure;
mod coerce;
mod compare;
mod consteval;
mod control;
mod convert;
mod expr;
mod further;
mod instance;
mod intrinsics;
mod method_call;
mod method_rows;
pub(crate) mod methods;
pub(crate) mod option;
mod option_further;
mod order;
mod pattern;
mod pattern_const;
mod range;
mod scalar_consts;
mod signature;
pub(crate) mod slice;
mod slice_code;
mod steps;
pub(crate) mod tree;
pub(crate) mod ty;
mod variant;
mod widths;
mod written;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use perpetua_syntax as syntax;
use perpetua_syntax::{FunctionKind, Generic as GenericParam};

use super::error::LowerError;
use super::resolve::{FunctionDef, FunctionKey};
use closure::OpenClosure;
use tree::{Checked, Expr, ExprKind, Loaded, Local, LocalId, Settled, TargetId};
use ty::{Generic, Kind, Len, Ty, Unifier};

pub(crate) use closure::function_type;
pub(crate) use consteval::{constant_expr, float_bits, table_op};
#[cfg(feature = "transpile")]
pub(crate) use scalar_consts::lookup as scalar_constant;
#[cfg(feature = "transpile")]
pub(crate) use signature::constant;
pub(crate) use signature::{const_generic, convert_type};

pub(crate) type Result<T> = std::result::Result<T, LowerError>;

/// What all functions of one lowering share.
pub(crate) struct Program {
    /// Width of `usize` in bits.
    pub(crate) width: u32,
    loaded: RefCell<HashMap<FunctionKey, Rc<Loaded>>>,
    closures: Cell<u32>,
    /// The functions that kernels were given in the place of closures, by the numbers of those.
    given: RefCell<HashMap<u32, Rc<Loaded>>>,
    /// Whether something was called that native code runs as the user wrote it: an operator of a user's type or on references, `clone`,
    /// `From`, `Default`. What rustc makes of its names need not be what its tree says.
    pub(crate) calls_host: Cell<bool>,
}

impl Program {
    pub(crate) fn new(width: u32) -> Program {
        Program {
            width,
            loaded: RefCell::default(),
            closures: Cell::new(0),
            given: RefCell::default(),
            calls_host: Cell::new(false),
        }
    }

    /// A number that no other closure has.
    fn closure_id(&self) -> u32 {
        self.closures.replace(self.closures.get() + 1)
    }

    /// The name of the function that a kernel was given for a closure of this type.
    pub(crate) fn given_name(&self, ty: &Ty) -> Option<String> {
        let Ty::Closure(closure) = ty else {
            return None;
        };
        let given = self.given.borrow();
        given.get(&closure.id).map(|given| given.tree.name.clone())
    }

    /// The function's tree and names.
    pub(crate) fn load(&self, def: &FunctionDef) -> Result<Rc<Loaded>> {
        if let Some(loaded) = self.loaded.borrow().get(&def.key()) {
            return Ok(loaded.clone());
        }
        let tree = def.tree().map_err(|error| LowerError {
            file: Arc::from(""),
            line: 0,
            place: 0..0,
            cause: error.to_string(),
            remedy: String::new(),
        })?;
        let names = def.resolve();
        let loaded = Rc::new(Loaded {
            def: def.clone(),
            tree,
            members: names.members(),
            names,
        });
        self.loaded.borrow_mut().insert(def.key(), loaded.clone());
        Ok(loaded)
    }
}

impl Loaded {
    /// An error in this function.
    pub(crate) fn error(&self, line: u32, cause: impl Into<String>, remedy: impl Into<String>) -> LowerError {
        LowerError {
            file: Arc::from(self.tree.file.as_str()),
            line,
            place: 0..0,
            cause: cause.into(),
            remedy: remedy.into(),
        }
    }
}

/// A loop or labelled block being checked.
struct Target {
    label: Option<String>,
    is_loop: bool,
    /// Whether `break` may carry a value.
    takes_value: bool,
    /// What the breaks give; `None` before the first.
    ty: Option<Ty>,
}

/// Checks one function.
pub(crate) struct Checker<'p> {
    program: &'p Program,
    loaded: Rc<Loaded>,
    generics: Vec<Generic>,
    types: Unifier,
    locals: Vec<Local>,
    scopes: Vec<HashMap<String, LocalId>>,
    /// All targets; those not yet left are also in `open`.
    targets: Vec<Target>,
    open: Vec<TargetId>,
    closures: Vec<OpenClosure>,
    ret: Ty,
    early_return: bool,
    collective: bool,
    deep: bool,
    calls: Vec<(Rc<Loaded>, Vec<Generic>, u32)>,
    conversions: Vec<Conversion>,
    /// What the local of the reader's own that a block gives is expected to be.
    expected: Option<(String, Ty)>,
}

/// An `into` without a type so far.
struct Conversion {
    from: Ty,
    to: Ty,
    by: Settled,
    line: u32,
}

/// Infers the types of a function with these generic arguments, which are known.
pub(crate) fn check(program: &Program, loaded: &Rc<Loaded>, generics: Vec<Generic>) -> Result<Checked> {
    let mut checker = Checker::new(program, loaded.clone(), generics);
    let tree = loaded.tree.clone();
    let mut params = Vec::new();
    for param in &tree.params {
        let ty = checker.ty(&param.ty, param.line)?;
        params.push(checker.declare(&param.name, ty, param.mutable, param.line));
    }
    checker.ret = match &tree.ret {
        Some(ty) => checker.ty(ty, tree.line)?,
        None => Ty::unit(),
    };
    if tree.kind != FunctionKind::Device && !checker.ret.is_unit() {
        let shown = checker.types.show(&checker.ret);
        return Err(loaded.error(
            tree.line,
            format!("kernel `{}` returns `{shown}`", tree.name),
            "a kernel returns nothing: write results to a `&mut [T]` parameter",
        ));
    }
    let ret = checker.ret.clone();
    let body = checker.function_body(&tree.body, &ret)?;
    checker.settle_conversions()?;
    Ok(Checked {
        loaded: loaded.clone(),
        params,
        ret,
        body,
        locals: checker.locals,
        types: checker.types,
        early_return: checker.early_return,
        collective: checker.collective,
        deep: checker.deep,
        calls: checker.calls,
    })
}

impl<'p> Checker<'p> {
    pub(crate) fn new(program: &'p Program, loaded: Rc<Loaded>, generics: Vec<Generic>) -> Checker<'p> {
        Checker {
            program,
            loaded,
            generics,
            types: Unifier::default(),
            locals: Vec::new(),
            scopes: vec![HashMap::new()],
            targets: Vec::new(),
            open: Vec::new(),
            closures: Vec::new(),
            ret: Ty::unit(),
            early_return: false,
            collective: false,
            deep: false,
            calls: Vec::new(),
            conversions: Vec::new(),
            expected: None,
        }
    }

    fn error(&self, line: u32, cause: impl Into<String>, remedy: impl Into<String>) -> LowerError {
        self.loaded.error(line, cause, remedy)
    }

    fn show(&self, ty: &Ty) -> String {
        self.types.show(ty)
    }

    /// The type that the syntax means in this function.
    fn ty(&mut self, ty: &syntax::Type, line: u32) -> Result<Ty> {
        convert_type(
            self.program,
            &self.loaded,
            &self.generics,
            &mut self.types,
            ty,
            line,
        )
    }

    fn declare(&mut self, name: &str, ty: Ty, mutable: bool, line: u32) -> LocalId {
        let id = LocalId(self.locals.len() as u32);
        self.locals.push(Local {
            name: name.to_owned(),
            line,
            ty,
            mutable,
            deferred: false,
            assigned: false,
            indexed: false,
        });
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), id);
        }
        id
    }

    fn find(&self, name: &str) -> Option<LocalId> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(name))
            .copied()
    }

    /// Runs `f` in a scope of its own.
    fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.scopes.push(HashMap::new());
        let done = f(self);
        self.scopes.pop();
        done
    }

    /// The common type of several branches: takes in one more.
    fn join(&mut self, joined: &mut Option<Ty>, branch: Expr) -> Result<Expr> {
        if matches!(self.types.shallow(&branch.ty), Ty::Never) {
            return Ok(branch);
        }
        match joined {
            Some(ty) => {
                let ty = ty.clone();
                self.coerce(branch, &ty)
            }
            None => {
                *joined = Some(branch.ty.clone());
                Ok(branch)
            }
        }
    }

    /// Notes that the place is stored to or borrowed mutably, and that it may be.
    fn assigned(&mut self, place: &Expr) -> Result<()> {
        match &place.kind {
            ExprKind::Local(id) => {
                let Some(local) = self.locals.get_mut(id.0 as usize) else {
                    return Ok(());
                };
                local.assigned = true;
                if !local.mutable && !local.deferred {
                    let name = local.name.clone();
                    return Err(self.error(
                        place.line,
                        format!("`{name}` is changed but is not `mut`"),
                        format!("declare it as `mut {name}`"),
                    ));
                }
                Ok(())
            }
            ExprKind::Field(base, _)
            | ExprKind::Index(base, _)
            | ExprKind::Element(base, _)
            | ExprKind::Part(base, ..) => self.assigned(base),
            ExprKind::Deref(inner) => match self.types.shallow(&inner.ty) {
                Ty::Ref(false, target) => Err(self.error(
                    place.line,
                    format!("a store through `&{}`, which is read-only", self.show(&target)),
                    "use `&mut`",
                )),
                _ => Ok(()),
            },
            // A temporary.
            _ => Ok(()),
        }
    }

    /// Notes that a local is indexed or borrowed, so that it should be kept in memory.
    fn indexed(&mut self, place: &Expr) {
        match &place.kind {
            ExprKind::Local(id) => {
                if let Some(local) = self.locals.get_mut(id.0 as usize) {
                    local.indexed = true;
                }
            }
            ExprKind::Field(base, _)
            | ExprKind::Index(base, _)
            | ExprKind::Element(base, _)
            | ExprKind::Part(base, ..) => self.indexed(base),
            _ => {}
        }
    }

    fn int_var(&mut self) -> Ty {
        self.types.var(Kind::Int)
    }

    /// The generic parameter of this number.
    fn generic(&self, index: u32, line: u32) -> Result<Generic> {
        self.generics.get(index as usize).cloned().ok_or_else(|| {
            let name = self
                .loaded
                .tree
                .generics
                .get(index as usize)
                .map_or("?", GenericParam::name);
            self.error(
                line,
                format!("generic parameter `{name}` has no value"),
                "give it in the instantiation",
            )
        })
    }

    /// The type of a const parameter.
    fn const_param_type(&self, index: u32) -> Ty {
        match self.loaded.tree.generics.get(index as usize) {
            Some(GenericParam::Const { ty, .. }) => Ty::Scalar(*ty),
            _ => Ty::USIZE,
        }
    }

    /// A length as an expression, whether it is known by now or not: then as a const parameter that inference finds.
    fn len_expr(&mut self, len: Len, line: u32) -> syntax::Expr {
        let kind = match self.types.len(len) {
            Len::Known(n) => syntax::ExprKind::Int {
                value: n.into(),
                suffix: None,
            },
            len => {
                self.generics.push(Generic::Len(len));
                syntax::ExprKind::ConstParam(self.generics.len() as u32 - 1)
            }
        };
        syntax::Expr {
            place: syntax::Place::default(),
            line,
            kind,
        }
    }

    /// A length that must be known by now.
    fn known_len(&self, len: Len, line: u32) -> Result<u64> {
        match self.types.len(len) {
            Len::Known(n) => Ok(n),
            Len::Var(_) => Err(self.error(line, "an array length is not known here", "write it out")),
        }
    }
}
