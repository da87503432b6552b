//! Members of types, which Rust finds by the type: functions, constants and types.

use std::rc::Rc;

use perpetua_syntax::{GenericArg, operator_functions};

use super::Argument;
use crate::front::rust::describe::ConstValue;
use crate::front::rust::infer::signature::{block_arguments, convert_type};
use crate::front::rust::infer::tree::{Expr, Loaded};
use crate::front::rust::infer::ty::{Generic, Ty};
use crate::front::rust::infer::{Checker, Result};
use crate::front::rust::resolve::members::{Member, MemberKind};
use crate::front::rust::resolve::{FunctionDef, Resolved};

/// Which of a type's members of one name a place in the source may mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::front::rust::infer) enum Reach {
    /// Those of the traits that bound the type here: they come before what the language has.
    Bounds,
    /// All.
    All,
}

/// A function that belongs to a type.
pub(in crate::front::rust::infer) struct Callee {
    pub(super) function: FunctionDef,
    /// The type, where the function is of a generic block or a trait's default.
    pub(super) own: Option<Ty>,
}

impl Checker<'_> {
    /// The members of `ty` called `name` that are meant here: of the trait `via` where the source says it, else of the
    /// traits that bound the type, else the type's own, else of any one trait.
    pub(in crate::front::rust::infer) fn members_of(
        &self,
        ty: &Ty,
        via: Option<&str>,
        name: &str,
        reach: Reach,
        line: u32,
    ) -> Result<Vec<Resolved>> {
        let all = self.all_members(ty, name)?;
        let meanings = |is: &dyn Fn(&Member) -> bool| -> Vec<Resolved> {
            all.iter()
                .filter(|member| is(member))
                .map(|member| member.meaning.clone())
                .collect()
        };
        if let Some(via) = via {
            return Ok(meanings(&|member| member.of_trait.as_deref() == Some(via)));
        }
        let bounds = self.bounds_of(ty);
        let bound = meanings(&|member| member.of_trait.as_ref().is_some_and(|of| bounds.contains(of)));
        if !bound.is_empty() || reach == Reach::Bounds {
            return Ok(bound);
        }
        let own = meanings(&|member| member.of_trait.is_none());
        if !own.is_empty() {
            return Ok(own);
        }
        if let [first, rest @ ..] = &all[..]
            && let Some(other) = rest.iter().find(|member| member.of_trait != first.of_trait)
            && let (Some(a), Some(b)) = (&first.of_trait, &other.of_trait)
        {
            return Err(self.error(
                line,
                format!("`{}` has `{name}` of both `{a}` and `{b}`", self.show(ty)),
                format!("say which: `<{} as {a}>::{name}`", self.show(ty)),
            ));
        }
        Ok(meanings(&|_| true))
    }

    /// The members of `ty` called `name`, of whatever block.
    fn all_members(&self, ty: &Ty, name: &str) -> Result<Vec<Member>> {
        let members = &self.loaded.members;
        let known = self.types.deep(ty, false).to_desc();
        let mut all = known.map_or_else(Vec::new, |desc| members.get(&desc, name).to_vec());
        for member in members.generic(name) {
            if self.is_block_of(&member.block, ty, 0)? {
                let definition = member.definition.clone();
                all.push(Member {
                    of_trait: member.of_trait.clone(),
                    meaning: match member.kind {
                        MemberKind::Function => Resolved::Device(definition),
                        MemberKind::Constant => Resolved::Computed(definition),
                        // Found where types are read.
                        MemberKind::Type => continue,
                    },
                });
            }
        }
        Ok(all)
    }

    /// Whether a generic block is one of `ty`: its type agrees, and so do its bounds, which tell apart what Rust tells apart by them.
    /// Bounds of bounds are asked for to a depth that no program has.
    fn is_block_of(&self, block: &FunctionDef, ty: &Ty, depth: u32) -> Result<bool> {
        let block = self.program.load(block)?;
        let mut types = self.types.clone();
        let Some(arguments) = block_arguments(self.program, &block, &mut types, ty) else {
            return Ok(false);
        };
        for (param, argument) in block.tree.generics.iter().zip(&arguments) {
            let Generic::Type(argument) = argument else {
                continue;
            };
            let argument = types.deep(argument, false);
            for bound in param.traits() {
                if depth < 16 && !self.has_trait(&argument, bound, depth)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether a type has a trait, as far as that is known: Rust's own traits are not asked for, nor types that are not known yet.
    fn has_trait(&self, ty: &Ty, of_trait: &str, depth: u32) -> Result<bool> {
        let (Some((types, blocks)), Some(desc)) = (self.loaded.members.of_trait(of_trait), ty.to_desc())
        else {
            return Ok(true);
        };
        if !operator_functions(of_trait).is_empty() || types.contains(&desc) {
            return Ok(true);
        }
        for block in blocks {
            if self.is_block_of(block, ty, depth + 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The names of the traits that bound the type in this function, as a type parameter or as the `Self` of a trait.
    fn bounds_of(&self, ty: &Ty) -> Vec<String> {
        let ty = self.types.deep(ty, false);
        let params = self.loaded.tree.generics.iter().zip(&self.generics);
        params
            .filter(|(_, generic)| matches!(generic, Generic::Type(bound) if *bound == ty))
            .flat_map(|(param, _)| param.traits().map(str::to_owned))
            .collect()
    }

    /// The functions among them.
    pub(in crate::front::rust::infer) fn functions_of(
        &self,
        ty: &Ty,
        via: Option<&str>,
        name: &str,
        reach: Reach,
        line: u32,
    ) -> Result<Vec<Callee>> {
        let found = self.members_of(ty, via, name, reach, line)?;
        let functions = found.into_iter().filter_map(|meaning| match meaning {
            Resolved::Device(function) => Some(function),
            _ => None,
        });
        functions.map(|function| self.callee(function, ty)).collect()
    }

    fn callee(&self, function: FunctionDef, ty: &Ty) -> Result<Callee> {
        let own = self
            .program
            .load(&function)?
            .tree
            .own
            .is_some()
            .then(|| ty.clone());
        Ok(Callee { function, own })
    }

    /// A constant that a function gives which belongs to no type.
    pub(in crate::front::rust::infer) fn computed_by(
        &mut self,
        function: &FunctionDef,
        line: u32,
    ) -> Result<Expr> {
        let callee = Callee {
            function: function.clone(),
            own: None,
        };
        self.call_one_of(vec![callee], Vec::new(), &[], line)
    }

    /// The constant `name` of a type, where a generic block computes it.
    pub(in crate::front::rust::infer) fn computed_constant(
        &mut self,
        ty: &Ty,
        via: Option<&str>,
        name: &str,
        line: u32,
    ) -> Result<Option<Expr>> {
        let found = self.members_of(ty, via, name, Reach::All, line)?;
        let computed = found.into_iter().find_map(|meaning| match meaning {
            Resolved::Computed(function) => Some(function),
            _ => None,
        });
        match computed {
            Some(function) => {
                let callee = self.callee(function, ty)?;
                self.call_one_of(vec![callee], Vec::new(), &[], line).map(Some)
            }
            None => Ok(None),
        }
    }

    /// The constant `name` of a type.
    pub(in crate::front::rust::infer) fn constant_of(
        &self,
        ty: &Ty,
        via: Option<&str>,
        name: &str,
        reach: Reach,
        line: u32,
    ) -> Result<Option<ConstValue>> {
        let found = self.members_of(ty, via, name, reach, line)?;
        Ok(found.into_iter().find_map(|meaning| match meaning {
            Resolved::Const(value) => Some(value),
            _ => None,
        }))
    }

    /// Calls the one of `functions`, a trait's, that takes these arguments.
    pub(in crate::front::rust::infer) fn call_one_of(
        &mut self,
        functions: Vec<Callee>,
        args: Vec<Argument<'_>>,
        written: &[GenericArg],
        line: u32,
    ) -> Result<Expr> {
        self.program.calls_host.set(true);
        self.call_method_of(functions, args, written, line)
    }

    /// The same for functions that native code calls as macros wrote them.
    pub(in crate::front::rust::infer) fn call_method_of(
        &mut self,
        functions: Vec<Callee>,
        args: Vec<Argument<'_>>,
        written: &[GenericArg],
        line: u32,
    ) -> Result<Expr> {
        let mut loaded = functions
            .into_iter()
            .map(|callee| Ok((self.program.load(&callee.function)?, callee.own)))
            .collect::<Result<Vec<_>>>()?;
        if let [(only, own)] = &loaded[..] {
            return self.call_loaded(only, own.as_ref(), args, written, line);
        }
        // Several: the arguments' types decide.
        let args = args
            .into_iter()
            .map(|arg| match arg {
                Argument::Syntax(arg) => Ok(Argument::Operand(self.expr(arg, None)?)),
                arg => Ok(arg),
            })
            .collect::<Result<Vec<_>>>()?;
        let name = loaded
            .first()
            .map_or_else(String::new, |(l, _)| l.tree.name.clone());
        loaded.retain(|(callee, own)| self.takes(callee, own.as_ref(), &args));
        match &loaded[..] {
            [(only, own)] => self.call_loaded(only, own.as_ref(), args, written, line),
            found => {
                let shown: Vec<String> = args
                    .iter()
                    .map(|arg| format!("`{}`", arg.ty().map_or_else(String::new, |ty| self.show(ty))))
                    .collect();
                let (how, remedy) = match found {
                    [] => (
                        "no",
                        "convert an argument, or implement the trait for these types",
                    ),
                    _ => ("more than one", "give the arguments' types"),
                };
                Err(self.error(
                    line,
                    format!("{how} `{name}` takes {}", shown.join(" and ")),
                    remedy,
                ))
            }
        }
    }

    /// Whether a function takes arguments of these types. Nothing is decided by that.
    pub(super) fn takes(&mut self, callee: &Rc<Loaded>, own: Option<&Ty>, args: &[Argument<'_>]) -> bool {
        if callee.tree.params.len() != args.len() {
            return false;
        }
        let saved = self.types.clone();
        let fits = self.call_generics(callee, &[], 0).is_ok_and(|generics| {
            own.is_none_or(|own| self.bind_own(callee, &generics, own, 0).is_ok())
                && callee.tree.params.iter().zip(args).all(|(param, arg)| {
                    let (program, types) = (self.program, &mut self.types);
                    let param = convert_type(program, callee, &generics, types, &param.ty, param.line);
                    let (Ok(param), Some(arg)) = (param, arg.ty().cloned()) else {
                        return false;
                    };
                    let (param, arg) = (self.peeled(&param), self.peeled(&arg));
                    self.types.unify(&param, &arg).is_ok()
                })
        });
        self.types = saved;
        fits
    }

    /// What a type is behind its references.
    pub(in crate::front::rust::infer) fn peeled(&self, ty: &Ty) -> Ty {
        let mut ty = self.types.shallow(ty);
        while let Ty::Ref(_, target) = ty {
            ty = self.types.shallow(&target);
        }
        ty
    }
}
