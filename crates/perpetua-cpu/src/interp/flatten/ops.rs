//! Operations and effects. Aggregates are lists of registers here, so taking them apart makes no code.

use super::super::program::*;
use super::{Context, Flattener, Result, leaf_sizes};
use crate::eval::{eval_cast, result_scalar};
use perpetua_ir::fault::FaultSite;
use perpetua_ir::ir::*;
use perpetua_ir::ops::{BinaryOp, Second, Takes, TernaryOp};
use perpetua_ir::print::PrintSite;

impl<'a> Flattener<'a> {
    /// Registers of a value.
    pub(super) fn value(&self, cx: &Context<'a>, v: Value) -> Result<Vec<Reg>> {
        let regs = cx.values.get(v.0 as usize);
        regs.cloned().ok_or(TypeError::NoSuchValue(v.0))
    }

    /// The one register of a scalar value.
    pub(super) fn scalar(&self, cx: &Context<'a>, v: Value) -> Result<Reg> {
        let first = cx.values.get(v.0 as usize).and_then(|regs| regs.first());
        first.copied().ok_or(TypeError::NoSuchValue(v.0))
    }

    /// A register for value `v` or a part of it.
    pub(super) fn fresh(&mut self, cx: &Context<'a>, v: Value, size: u32) -> Reg {
        self.registers.until(size, cx.liveness.last(v).max(cx.number))
    }

    /// A register for this statement alone.
    pub(super) fn scratch(&mut self, cx: &Context<'a>, size: u32) -> Reg {
        self.registers.until(size, cx.number)
    }

    pub(super) fn constant(&mut self, s: Scalar, bits: u64) -> Reg {
        self.registers.filled(s.size(), Fill::Constant(bits))
    }

    fn component(&self, cx: &Context<'a>, v: Value, index: u32) -> Result<std::ops::Range<usize>> {
        let ty = cx.declarations.value(v)?;
        let part = ty.component(index).ok_or(TypeError::NoSuch {
            what: "component",
            index,
            count: ty.component_count() as usize,
        })?;
        let start = ty.leaf_start(index);
        Ok(start..start + part.leaf_count())
    }

    /// `a` as a scalar of type `to`: a constant if it is one, else by a cast.
    fn converted(&mut self, cx: &Context<'a>, a: Reg, from: Scalar, to: Scalar) -> Reg {
        if let Some(bits) = self.registers.constant(a) {
            return self.constant(to, eval_cast(from, to, bits));
        }
        let out = self.scratch(cx, to.size());
        self.emit(cx, Code::Cast { from, to, a, out });
        out
    }

    pub(super) fn let_(&mut self, cx: &mut Context<'a>, v: Value, op: &'a Op) -> Result<()> {
        let regs = self.op(cx, v, op)?;
        if let Some(value) = cx.values.get_mut(v.0 as usize) {
            *value = regs;
        }
        Ok(())
    }

    fn op(&mut self, cx: &mut Context<'a>, v: Value, op: &'a Op) -> Result<Vec<Reg>> {
        Ok(match op {
            Op::Const(s, bits) => vec![self.constant(*s, *bits)],
            Op::Zero(ty) => {
                let leaves = ty.leaves();
                leaves.into_iter().map(|(s, _)| self.constant(s, 0)).collect()
            }
            Op::Param(param) => self.param(*param)?,
            Op::Builtin(b) => vec![self.registers.filled(4, Fill::Builtin(*b))],
            Op::Unary(op, a) => {
                let s = cx.declarations.scalar(*a, "operand 0")?;
                let a = self.scalar(cx, *a)?;
                let out = self.fresh(cx, v, result_scalar(op.row().result, s).size());
                self.emit(cx, Code::Unary { op: *op, s, a, out });
                vec![out]
            }
            Op::Binary(op, a, b) => vec![self.binary(cx, v, *op, *a, *b)?],
            Op::Ternary(op, a, b, c) => self.ternary(cx, v, *op, [*a, *b, *c])?,
            Op::Cast(to, a) => {
                let from = cx.declarations.scalar(*a, "cast operand")?;
                let a = self.scalar(cx, *a)?;
                if from == *to {
                    vec![a]
                } else if let Some(bits) = self.registers.constant(a) {
                    vec![self.constant(*to, eval_cast(from, *to, bits))]
                } else {
                    let out = self.fresh(cx, v, to.size());
                    self.emit(
                        cx,
                        Code::Cast {
                            from,
                            to: *to,
                            a,
                            out,
                        },
                    );
                    vec![out]
                }
            }
            Op::Bitcast(_, a) => self.value(cx, *a)?,
            Op::Compose(_, parts) => {
                let mut regs = Vec::new();
                for part in parts {
                    regs.extend(self.value(cx, *part)?);
                }
                regs
            }
            Op::Extract(a, i) => {
                let range = self.component(cx, *a, *i)?;
                let regs = self.value(cx, *a)?;
                regs.get(range).unwrap_or_default().to_vec()
            }
            Op::Insert(a, i, part) => {
                let range = self.component(cx, *a, *i)?;
                let mut regs = self.value(cx, *a)?;
                let part = self.value(cx, *part)?;
                for (to, from) in regs.iter_mut().skip(range.start).zip(part) {
                    *to = from;
                }
                regs
            }
            Op::Load(place, None) => self.load(cx, v, place)?,
            Op::Load(place, Some(sync)) => self.atomic_load(cx, v, place, *sync)?,
            Op::Len(base, s) => vec![self.len(*base, *s)?],
            Op::Atomic(op, place, value, sync) => {
                let value = self.scalar(cx, *value)?;
                let act = AtomicAct::Update { op: *op, value };
                vec![self.atomic(cx, v, place, act, *sync)?]
            }
            Op::CompareExchange {
                place,
                expected,
                new,
                sync,
            } => {
                let (expected, new) = (self.scalar(cx, *expected)?, self.scalar(cx, *new)?);
                let act = AtomicAct::CompareExchange { expected, new };
                vec![self.atomic(cx, v, place, act, *sync)?]
            }
            Op::Device(op, args) => self.device(cx, *op, args, Some(v))?,
            Op::Call(f, args) => self.call(cx, v, *f, args)?,
        })
    }

    /// Asks the device, for a value or without one; gives its registers.
    fn device(
        &mut self,
        cx: &Context<'a>,
        op: DeviceOp,
        args: &[Value],
        v: Option<Value>,
    ) -> Result<Vec<Reg>> {
        let row = op.row();
        self.program.stays |= row.waits;
        self.program.synchronises |= matches!(op, DeviceOp::Fence(_));
        let s = match (row.operands.first(), args.first()) {
            (Some((Takes::Array(s, _), _)), _) => *s,
            (Some((Takes::Sums, _)), _) => Scalar::F32,
            (_, Some(first)) => cx.declarations.scalar(*first, "operand 0")?,
            (_, None) => Scalar::U32,
        };
        let mut regs = Vec::new();
        for arg in args {
            regs.extend(self.value(cx, *arg)?);
        }
        let first = args
            .first()
            .map_or(Ok(&Type::U32), |v| cx.declarations.value(*v))?;
        let sizes = row.gives.ty(first).map(|ty| leaf_sizes(&ty)).unwrap_or_default();
        let out: Vec<Reg> = v.map_or_else(Vec::new, |v| {
            sizes.into_iter().map(|size| self.fresh(cx, v, size)).collect()
        });
        let (args, results) = (regs, out.clone());
        self.emit(cx, Code::Device { op, s, args, out });
        Ok(results)
    }

    fn param(&mut self, param: u32) -> Result<Vec<Reg>> {
        let Some(Param {
            kind: ParamKind::Value(ty),
            ..
        }) = self.kernel.params.get(param as usize)
        else {
            return Err(TypeError::Invalid(format!("parameter {param} is not a value")));
        };
        let leaves = ty.leaves().into_iter();
        let fill = |(s, offset): (Scalar, u32)| {
            let fill = match s {
                Scalar::Bool => Fill::Bool { param, offset },
                _ => Fill::Param { param, offset },
            };
            self.registers.filled(s.size(), fill)
        };
        Ok(leaves.map(fill).collect())
    }

    fn len(&mut self, base: Base, s: Scalar) -> Result<Reg> {
        let region = self.region(base)?;
        Ok(self.registers.filled(s.size(), Fill::Len(region)))
    }

    fn binary(&mut self, cx: &mut Context<'a>, v: Value, op: BinaryOp, a: Value, b: Value) -> Result<Reg> {
        let s = cx.declarations.scalar(a, "operand 0")?;
        let from = cx.declarations.scalar(b, "operand 1")?;
        let (a, mut b) = (self.scalar(cx, a)?, self.scalar(cx, b)?);
        if op.row().second == Second::Amount && from.size() != s.size() {
            b = self.converted(cx, b, from, s.to_unsigned());
        }
        let out = self.fresh(cx, v, result_scalar(op.row().result, s).size());
        let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem) && s.is_int();
        let minus_one = u64::MAX >> (64 - s.bits());
        let harmless = self.registers.constant(b).is_some_and(|bits| {
            let bits = bits & minus_one;
            bits != 0 && (bits != minus_one || s.is_unsigned_int())
        });
        if divides && !harmless {
            let subject = if op == BinaryOp::Div {
                "division"
            } else {
                "remainder"
            };
            let site = self.site(cx, FaultKind::DivisionByZero, subject.into(), vec![s]);
            self.site(cx, FaultKind::DivisionOverflow, subject.into(), vec![s, s]);
            self.emit(
                cx,
                Code::Divide {
                    op,
                    s,
                    a,
                    b,
                    out,
                    site,
                },
            );
        } else {
            self.emit(cx, Code::Binary { op, s, a, b, out });
        }
        Ok(out)
    }

    fn ternary(
        &mut self,
        cx: &mut Context<'a>,
        v: Value,
        op: TernaryOp,
        [a, b, c]: [Value; 3],
    ) -> Result<Vec<Reg>> {
        let leaves = cx.declarations.value(b)?.leaves();
        let (first, b, c) = (self.scalar(cx, a)?, self.value(cx, b)?, self.value(cx, c)?);
        let mut regs = Vec::new();
        for (((s, _), b), c) in leaves.into_iter().zip(b).zip(c) {
            let out = self.fresh(cx, v, s.size());
            self.emit(
                cx,
                Code::Ternary {
                    op,
                    s,
                    a: first,
                    b,
                    c,
                    out,
                },
            );
            regs.push(out);
        }
        Ok(regs)
    }

    fn call(&mut self, cx: &mut Context<'a>, v: Value, f: u32, args: &[Value]) -> Result<Vec<Reg>> {
        let Some(callee) = self.callees.get(f as usize) else {
            return Err(TypeError::NoSuch {
                what: "function defined before",
                index: f,
                count: self.callees.len(),
            });
        };
        let (entry, returned) = (callee.entry, callee.returned);
        let (params, result) = (callee.params.clone(), callee.result.clone());
        for (arg, params) in args.iter().zip(params) {
            let sizes = leaf_sizes(cx.declarations.value(*arg)?);
            let arg = self.value(cx, *arg)?;
            for ((from, to), size) in arg.into_iter().zip(params).zip(sizes) {
                self.emit(cx, Code::Copy { size, from, to });
            }
        }
        self.emit(cx, Code::Call { entry, returned });
        let sizes = cx.declarations.value(v).map(leaf_sizes).unwrap_or_default();
        let mut regs = Vec::new();
        for (from, size) in result.into_iter().zip(sizes) {
            // The next call overwrites the function's own.
            let to = self.fresh(cx, v, size);
            self.emit(cx, Code::Copy { size, from, to });
            regs.push(to);
        }
        Ok(regs)
    }

    /// A new fault site; its number.
    pub(super) fn site(
        &mut self,
        cx: &Context<'a>,
        kind: FaultKind,
        subject: String,
        operands: Vec<Scalar>,
    ) -> u32 {
        self.program
            .sites
            .push(FaultSite::new(kind, cx.line, subject, operands));
        self.program.sites.len() as u32 - 1
    }

    pub(super) fn effect(&mut self, cx: &mut Context<'a>, effect: &'a Effect) -> Result<()> {
        match effect {
            Effect::Store(place, v, None) => self.store(cx, place, *v)?,
            Effect::Store(place, v, Some(sync)) => self.atomic_store(cx, place, *v, *sync)?,
            Effect::Device(op, args) => {
                self.device(cx, *op, args, None)?;
            }
            Effect::Print(pieces, values) => {
                let (mut args, mut types) = (Vec::new(), Vec::new());
                for v in values {
                    args.push(self.scalar(cx, *v)?);
                    types.push(cx.declarations.scalar(*v, "printed value")?);
                }
                self.program.prints.push(PrintSite {
                    line: cx.line,
                    pieces: pieces.clone(),
                    args: types,
                });
                let site = self.program.prints.len() as u32 - 1;
                self.emit(cx, Code::Print { site, args });
            }
            Effect::Fault(kind, subject, values) => {
                let (operands, types) = self.reported(cx, values)?;
                let site = self.site(cx, *kind, subject.to_string(), types);
                self.fault(cx, site, operands);
            }
            Effect::Panic(message, values) => {
                let (operands, types) = self.reported(cx, values)?;
                let site = FaultSite::panic(cx.line, message.clone(), types);
                self.program.sites.push(site);
                self.fault(cx, self.program.sites.len() as u32 - 1, operands);
            }
        }
        Ok(())
    }

    /// Registers and types of what a fault reports.
    fn reported(&mut self, cx: &mut Context<'a>, values: &[Value]) -> Result<(Vec<Reg>, Vec<Scalar>)> {
        let (mut operands, mut types) = (Vec::new(), Vec::new());
        for v in values {
            operands.push(self.scalar(cx, *v)?);
            types.push(cx.declarations.scalar(*v, "operand of a fault")?);
        }
        Ok((operands, types))
    }

    fn fault(&mut self, cx: &mut Context<'a>, site: u32, operands: Vec<Reg>) {
        let number = self.program.statement_sites.len() as u32;
        self.program.statement_sites.push(site);
        self.emit(
            cx,
            Code::Fault {
                site,
                number,
                operands,
            },
        );
    }
}
