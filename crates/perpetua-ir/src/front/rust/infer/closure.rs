//! Closures: their bodies are checked where they stand, in the function's own scope; whoever gets one as an argument knows
//! parameters and result.

use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::{FunctionKind, Generic as GenericParam, Type};

use super::pattern::Borrowed;
use super::signature::convert_type;
use super::tree::{Block, ClosureBody, Expr, ExprKind, Loaded, LocalId, TargetId};
use super::ty::{ClosureTy, Generic, Kind, Ty, Unifier};
use super::{Checker, Program, Result};
use crate::front::rust::resolve::FunctionDef;

/// A closure whose body is being checked.
pub(super) struct OpenClosure {
    /// The first local that is its own.
    first: u32,
    /// What `return` leaves.
    target: TargetId,
    ret: Ty,
    returns: bool,
    captures: Vec<LocalId>,
}

/// Parameters and result that a bound `Fn(A) -> B` gives.
type Signature = (Vec<Ty>, Ty);

/// The type of a closure that does what a device function does, which has no generic parameters.
pub(crate) fn function_type(program: &Program, def: &FunctionDef) -> Result<Ty> {
    let function = program.load(def)?;
    let tree = &function.tree;
    if tree.kind != FunctionKind::Device || !tree.generics.is_empty() {
        return Err(function.error(
            tree.line,
            format!("`{}` stands in the place of a closure", tree.name),
            "name a `#[device]` function without generic parameters",
        ));
    }
    let mut types = Unifier::default();
    let mut convert = |ty: &Type, line| convert_type(program, &function, &[], &mut types, ty, line);
    let params = tree.params.iter().map(|param| convert(&param.ty, param.line));
    let params = params.collect::<Result<_>>()?;
    let ret = match &tree.ret {
        Some(ret) => convert(ret, tree.line)?,
        None => Ty::unit(),
    };
    let id = program.closure_id();
    program.given.borrow_mut().insert(id, function.clone());
    Ok(Ty::Closure(Rc::new(ClosureTy { id, params, ret })))
}

impl Checker<'_> {
    /// What the bound of a parameter's type says of a closure there, where the parameter takes one.
    pub(super) fn closure_signature(
        &mut self,
        callee: &Rc<Loaded>,
        generics: &[Generic],
        param: &Type,
        line: u32,
    ) -> Result<Option<Signature>> {
        let index = match param {
            Type::Generic(index) => *index,
            Type::Ref { target, .. } => match **target {
                Type::Generic(index) => index,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let Some(GenericParam::Type {
            call: Some((params, ret)),
            ..
        }) = callee.tree.generics.get(index as usize)
        else {
            return Ok(None);
        };
        let mut convert = |ty: &Type| convert_type(self.program, callee, generics, &mut self.types, ty, line);
        let params = params.iter().map(&mut convert).collect::<Result<Vec<_>>>()?;
        let ret = match ret {
            Some(ret) => convert(ret)?,
            None => Ty::unit(),
        };
        Ok(Some((params, ret)))
    }

    /// `|a, b| body`; `expected` is what its callee says of it.
    pub(super) fn closure(&mut self, closure: &syntax::Expr, expected: Option<Signature>) -> Result<Expr> {
        let line = closure.line;
        let syntax::ExprKind::Closure {
            moved,
            params,
            ret,
            body,
        } = &closure.kind
        else {
            return self.expr(closure, None);
        };
        let (mut types, mut result) = (Vec::with_capacity(params.len()), None);
        if let Some((known, ret)) = expected {
            if known.len() != params.len() {
                return Err(self.error(
                    line,
                    format!(
                        "a closure of {} parameters stands where one of {} is taken",
                        params.len(),
                        known.len()
                    ),
                    "",
                ));
            }
            (types, result) = (known, Some(ret));
        }
        for (i, (pattern, ty)) in params.iter().enumerate() {
            let written = match ty {
                Some(ty) => Some(self.ty(ty, pattern.line)?),
                None => None,
            };
            match (types.get(i).cloned(), written) {
                (Some(known), Some(written)) => self.unify(pattern.line, &known, &written)?,
                (Some(_), None) => {}
                (None, Some(written)) => types.push(written),
                (None, None) => types.push(self.types.var(Kind::General)),
            }
        }
        if let Some(ret) = ret {
            let written = self.ty(ret, line)?;
            match &result {
                Some(known) => self.unify(line, &known.clone(), &written)?,
                None => result = Some(written),
            }
        }
        let result = result.unwrap_or_else(|| self.types.var(Kind::General));
        let outside = std::mem::take(&mut self.open);
        let target = self.open_target(&None, false, true);
        self.closures.push(OpenClosure {
            first: self.locals.len() as u32,
            target,
            ret: result.clone(),
            returns: false,
            captures: Vec::new(),
        });
        let checked = self.scoped(|c| {
            let mut patterns = Vec::with_capacity(params.len());
            for ((pattern, _), ty) in params.iter().zip(&types) {
                patterns.push(c.pattern(pattern, ty, Borrowed::No)?);
            }
            Ok((patterns, c.expr_as(body, &result)?))
        });
        self.close_target(target);
        self.open = outside;
        let open = self.closures.pop();
        let (patterns, mut body) = checked?;
        let (returns, captures) = open.map_or((false, Vec::new()), |open| (open.returns, open.captures));
        if returns {
            body = Expr {
                line: body.line,
                ty: result.clone(),
                kind: ExprKind::Block(
                    Some(target),
                    Block {
                        stmts: Vec::new(),
                        value: Some(Box::new(body)),
                    },
                ),
            };
        }
        let ty = Ty::Closure(Rc::new(ClosureTy {
            id: self.program.closure_id(),
            params: types,
            ret: result,
        }));
        Ok(Expr {
            line,
            ty,
            kind: ExprKind::Closure(Rc::new(ClosureBody {
                params: patterns,
                body,
                moved: moved.then_some(captures),
            })),
        })
    }

    /// Notes that a name was read, for the closures that capture it.
    pub(super) fn captured(&mut self, id: LocalId) {
        for closure in self.closures.iter_mut().filter(|closure| id.0 < closure.first) {
            if !closure.captures.contains(&id) {
                closure.captures.push(id);
            }
        }
    }

    /// `return` in a closure; `None` where there is none.
    pub(super) fn closure_return(&mut self, value: Option<&syntax::Expr>, line: u32) -> Option<Result<Expr>> {
        let open = self.closures.last_mut()?;
        open.returns = true;
        let (target, ret) = (open.target, open.ret.clone());
        let value = match value {
            Some(value) => self.expr_as(value, &ret).map(|value| Some(Box::new(value))),
            None => self.unify(line, &ret, &Ty::unit()).map(|()| None),
        };
        Some(value.map(|value| Expr {
            line,
            ty: Ty::Never,
            kind: ExprKind::Break(target, value),
        }))
    }

    /// What `return` gives here: in a closure, or in the function.
    pub(super) fn returned(&self) -> Ty {
        self.closures
            .last()
            .map_or_else(|| self.ret.clone(), |open| open.ret.clone())
    }

    /// Leaves the closure or the function with a value.
    pub(super) fn leaving(&mut self, value: Expr, line: u32) -> Expr {
        let value = Some(Box::new(value));
        let kind = match self.closures.last_mut() {
            Some(open) => {
                open.returns = true;
                ExprKind::Break(open.target, value)
            }
            None => {
                self.early_return = true;
                ExprKind::Return(value)
            }
        };
        Expr {
            line,
            ty: Ty::Never,
            kind,
        }
    }

    /// `f(args)`, where `f` is a local.
    pub(super) fn call_local(&mut self, name: &str, args: &[syntax::Expr], line: u32) -> Result<Expr> {
        let Some(id) = self.find(name) else {
            return Err(self.error(line, format!("`{name}` is not known here"), ""));
        };
        self.captured(id);
        let ty = self.locals.get(id.0 as usize).map_or(Ty::Never, |l| l.ty.clone());
        let function = self.deref_all(Expr {
            line,
            ty,
            kind: ExprKind::Local(id),
        });
        let Ty::Closure(closure) = self.types.shallow(&function.ty) else {
            let shown = self.show(&function.ty);
            return Err(self.error(
                line,
                format!("`{name}` is called and is a `{shown}`"),
                "call a closure, or a `#[device]` function by its name",
            ));
        };
        if closure.params.len() != args.len() {
            return Err(self.error(
                line,
                format!(
                    "`{name}` takes {} arguments, {} were given",
                    closure.params.len(),
                    args.len()
                ),
                "",
            ));
        }
        let args = args
            .iter()
            .zip(&closure.params)
            .map(|(arg, ty)| self.expr_as(arg, ty))
            .collect::<Result<_>>()?;
        Ok(self.called(function, &closure, args, line))
    }

    /// The call of a closure, or of the function that the kernel was given in its place.
    pub(super) fn called(&mut self, function: Expr, closure: &ClosureTy, args: Vec<Expr>, line: u32) -> Expr {
        let given = self.program.given.borrow().get(&closure.id).cloned();
        let kind = match given {
            Some(given) => {
                self.calls.push((given.clone(), Vec::new(), line));
                ExprKind::Call(given, Vec::new(), args)
            }
            None => ExprKind::CallClosure(Box::new(function), args),
        };
        self.make(line, closure.ret.clone(), kind)
    }
}
