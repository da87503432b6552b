//! Types of the language's own functions.

use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::{GenericArg, Intrinsic, IntrinsicGroup, MemoryArgs, MemoryOrder, MemoryScope};

use super::tree::{Expr, ExprKind};
use super::ty::{Len, Ty};
use super::{Checker, Result};
use crate::ir::{DeviceOp, MemOrder, Scalar, Scope, Sync};
use crate::ops::{Gives, Meeting, Stands, Takes};

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
            MemoryScope::Block => Scope::Block,
            MemoryScope::Device => Scope::Device,
            MemoryScope::System => Scope::System,
        },
    })
}

/// The kernel language's type of an IR scalar.
fn scalar(s: Scalar) -> Ty {
    syntax::Scalar::from_name(s.name()).map_or(Ty::U32, Ty::Scalar)
}

fn array(s: Scalar, len: u32) -> Ty {
    Ty::Array(Rc::new(scalar(s)), Len::Known(len.into()))
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
            IntrinsicGroup::Shared
                if matches!(
                    intrinsic,
                    Intrinsic::StageFactors | Intrinsic::StageThird | Intrinsic::StageTwins
                ) =>
            {
                (Ty::unit(), self.stage_factors(generics, args, line)?)
            }
            IntrinsicGroup::Shared if intrinsic == Intrinsic::StageLayers => {
                self.collective = true;
                let args = args.iter().map(|arg| self.expr_as(arg, &Ty::USIZE));
                (Ty::unit(), args.collect::<Result<_>>()?)
            }
            IntrinsicGroup::Shared if intrinsic == Intrinsic::StagePairs => {
                self.collective = true;
                (Ty::unit(), Vec::new())
            }
            IntrinsicGroup::Shared => {
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
                    (Intrinsic::SharedSlice, _) => Ty::Slice(Rc::new(ty)),
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
            IntrinsicGroup::Atomic => self.atomic(intrinsic, args)?,
            IntrinsicGroup::Sync
            | IntrinsicGroup::Subgroup
            | IntrinsicGroup::Fast
            | IntrinsicGroup::Resident => {
                match DeviceOp::of_language(name) {
                    Some(op) => self.device(op, args)?,
                    None if intrinsic == Intrinsic::CheckIndex => {
                        let args = args.iter().map(|arg| self.expr_as(arg, &Ty::U32));
                        (Ty::unit(), args.collect::<Result<Vec<_>>>()?)
                    }
                    // The subgroup's size, and where the lane is in it.
                    None => {
                        self.collective = true;
                        (Ty::U32, Vec::new())
                    }
                }
            }
        };
        Ok(Expr {
            line,
            ty,
            kind: ExprKind::Intrinsic(intrinsic, args, sync_of(memory)),
        })
    }

    /// What a function asks of the device.
    fn device(&mut self, op: DeviceOp, args: &[syntax::Expr]) -> Result<(Ty, Vec<Expr>)> {
        let row = op.row();
        // Lanes meet where control flow is seen as a whole, and faults are caught by the code whose lane it is: neither is
        // known in a device function.
        self.collective |=
            matches!(row.meeting, Meeting::Subgroup | Meeting::Block) || row.stands == Stands::BehindBlock;
        let mut checked = Vec::with_capacity(args.len());
        for (arg, (takes, _)) in args.iter().zip(row.operands) {
            checked.push(match takes {
                Takes::Exactly(s) => self.expr_as(arg, &scalar(*s))?,
                Takes::Array(s, n) => self.expr_as(arg, &array(*s, *n))?,
                Takes::Sums => self.expr(arg, None)?,
                Takes::Number | Takes::Integer => {
                    let value = self.expr(arg, None)?;
                    self.deref_all(value)
                }
            });
        }
        let ty = match row.gives {
            Gives::Nothing => Ty::unit(),
            Gives::Exactly(s) => scalar(s),
            Gives::First => checked.first().map_or(Ty::U32, |value| value.ty.clone()),
            Gives::Array(s, n) => array(s, n),
        };
        Ok((ty, checked))
    }

    /// The arguments of `stage_factors` and its kin; behind them its types, as those of expressions that nobody computes.
    fn stage_factors(
        &mut self,
        generics: &[GenericArg],
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Vec<Expr>> {
        self.collective = true;
        let mut checked = Vec::with_capacity(args.len() + generics.len());
        for (i, arg) in args.iter().enumerate() {
            checked.push(match i % 4 {
                0 => self.expr(arg, None)?,
                _ => self.expr_as(arg, &Ty::USIZE)?,
            });
        }
        for generic in generics {
            let GenericArg::Type(ty) = generic else {
                return Err(self.error(line, "matrices in stages take types", ""));
            };
            let (ty, kind) = (self.ty(ty, line)?, ExprKind::Zero);
            checked.push(Expr { line, ty, kind });
        }
        Ok(checked)
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
