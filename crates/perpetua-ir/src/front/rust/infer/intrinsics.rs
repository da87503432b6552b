//! Types of the language's own functions.

use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::{GenericArg, Intrinsic, IntrinsicGroup, MemoryArgs, MemoryOrder, MemoryScope};

use super::tree::{Expr, ExprKind};
use super::ty::{Len, Ty};
use super::{Checker, Result};
use crate::ir::{MemOrder, Scope, Sync};

/// The order and scope that an atomic operation has.
fn sync_of(memory: Option<MemoryArgs>) -> Sync {
    memory.map_or(Sync::RELAXED, |m| Sync {
        order: match m.order {
            MemoryOrder::Relaxed => MemOrder::Relaxed,
            MemoryOrder::Acquire => MemOrder::Acquire,
            MemoryOrder::Release => MemOrder::Release,
            MemoryOrder::AcqRel => MemOrder::AcqRel,
            MemoryOrder::SeqCst => MemOrder::SeqCst,
        },
        scope: match m.scope {
            MemoryScope::Workgroup => Scope::Workgroup,
            MemoryScope::Device => Scope::Device,
            MemoryScope::System => Scope::System,
        },
    })
}

impl Checker<'_> {
    /// A call of an intrinsic.
    pub(super) fn intrinsic(
        &mut self,
        intrinsic: Intrinsic,
        generics: &[GenericArg],
        args: &[syntax::Expr],
        memory: Option<MemoryArgs>,
        line: u32,
    ) -> Result<Expr> {
        let name = intrinsic.name();
        if args.len() != intrinsic.arg_count() {
            return Err(self.error(
                line,
                format!(
                    "`{name}` takes {} arguments, {} were given",
                    intrinsic.arg_count(),
                    args.len()
                ),
                "",
            ));
        }
        let (ty, args) = match intrinsic.group() {
            IntrinsicGroup::CudaIndex => (Ty::I32, Vec::new()),
            IntrinsicGroup::Index => (Ty::USIZE, Vec::new()),
            IntrinsicGroup::Sync => {
                self.collective |= intrinsic == Intrinsic::SyncThreads;
                (Ty::unit(), Vec::new())
            }
            IntrinsicGroup::Workgroup => {
                self.collective = true;
                let [GenericArg::Type(ty)] = generics else {
                    return Err(self.error(
                        line,
                        format!("`{name}` needs its type"),
                        format!("write `{name}::<…>()`"),
                    ));
                };
                let ty = self.ty(ty, line)?;
                let target = match (intrinsic, &ty) {
                    (Intrinsic::WorkgroupSlice, _) => Ty::Slice(Rc::new(ty)),
                    (_, Ty::Array(..)) => ty,
                    _ => {
                        let shown = self.show(&ty);
                        return Err(self.error(
                            line,
                            format!("`{name}` takes an array type, not `{shown}`"),
                            format!("write `{name}::<[{shown}; N]>()`"),
                        ));
                    }
                };
                (Ty::Ref(true, Rc::new(target)), Vec::new())
            }
            IntrinsicGroup::Subgroup => self.subgroup(intrinsic, args)?,
            IntrinsicGroup::Atomic => self.atomic(intrinsic, args)?,
            IntrinsicGroup::Resident => {
                // Faults are caught by the code whose lane it is, which a device function does not know.
                self.collective |= intrinsic == Intrinsic::CatchFault;
                let time = match intrinsic {
                    Intrinsic::CatchFault => Ty::Scalar(perpetua_syntax::Scalar::U64),
                    _ => Ty::U32,
                };
                let args = args.iter().map(|arg| self.expr_as(arg, &time));
                let args = args.collect::<Result<Vec<_>>>()?;
                let ty = match intrinsic {
                    Intrinsic::ClockNanos => Ty::Scalar(perpetua_syntax::Scalar::U64),
                    Intrinsic::CatchFault => Ty::U32,
                    _ => Ty::unit(),
                };
                (ty, args)
            }
        };
        Ok(Expr {
            line,
            ty,
            kind: ExprKind::Intrinsic(intrinsic, args, sync_of(memory)),
        })
    }

    fn subgroup(&mut self, intrinsic: Intrinsic, args: &[syntax::Expr]) -> Result<(Ty, Vec<Expr>)> {
        self.collective = true;
        Ok(match (intrinsic, args) {
            (_, []) => (Ty::U32, Vec::new()),
            (Intrinsic::SubgroupAny | Intrinsic::SubgroupAll, [arg]) => {
                (Ty::BOOL, vec![self.expr_as(arg, &Ty::BOOL)?])
            }
            (Intrinsic::SubgroupBallot, [arg]) => {
                let words = Ty::Array(Rc::new(Ty::U32), Len::Known(4));
                (words, vec![self.expr_as(arg, &Ty::BOOL)?])
            }
            (_, [value, rest @ ..]) => {
                let value = self.expr(value, None)?;
                let value = self.deref_all(value);
                let ty = value.ty.clone();
                let mut checked = vec![value];
                for lane in rest {
                    checked.push(self.expr_as(lane, &Ty::U32)?);
                }
                (ty, checked)
            }
        })
    }

    fn atomic(&mut self, intrinsic: Intrinsic, args: &[syntax::Expr]) -> Result<(Ty, Vec<Expr>)> {
        let mut checked = Vec::with_capacity(args.len());
        let mut ty = Ty::unit();
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                checked.push(self.expr_as(arg, &ty)?);
                continue;
            }
            let place = self.expr(arg, None)?;
            let (mutable, target) = match self.types.shallow(&place.ty) {
                Ty::Ref(mutable, target) => (mutable, target),
                other => {
                    let shown = self.show(&other);
                    return Err(self.error(
                        place.line,
                        format!("`{}` takes a reference, not a `{shown}`", intrinsic.name()),
                        "write `&mut x[i]`",
                    ));
                }
            };
            if !mutable && intrinsic != Intrinsic::AtomicLoad {
                return Err(self.error(
                    place.line,
                    format!("`{}` changes memory through a `&`", intrinsic.name()),
                    "write `&mut x[i]`",
                ));
            }
            ty = (*target).clone();
            checked.push(place);
        }
        let result = if intrinsic == Intrinsic::AtomicStore {
            Ty::unit()
        } else {
            ty
        };
        Ok((result, checked))
    }
}
