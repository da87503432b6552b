//! The language's own functions: indices, barriers, subgroups, shared memory, atomics.

use perpetua_syntax::Intrinsic;

use super::value::{Src, Val};
use super::{Emitter, Result};
use crate::front::rust::error::LowerError;
use crate::front::rust::infer::tree::Expr;
use crate::front::rust::infer::ty::Ty;
use crate::ir::{
    AtomicOp, Axis, Base, Builtin, DeviceOp, Effect, Factor, Op, Place, StageElement, Stages, Sync, Type,
    Value,
};
use crate::ops::{BinaryOp, Gives};

impl Emitter<'_> {
    /// A call of an intrinsic.
    pub(super) fn intrinsic(&mut self, what: Intrinsic, args: &[Expr], sync: Sync, e: &Expr) -> Result<Val> {
        use Axis::{X, Y, Z};
        use Intrinsic as I;
        let line = e.line;
        let cuda = |this: &mut Self, b| this.builtin_i32(b, line).map(Val::Value);
        let index = |this: &mut Self, b| this.builtin_usize(b, line).map(Val::Value);
        let product = |this: &mut Self, axis, a, b| this.product(axis, a, b, line).map(Val::Value);
        match what {
            I::ThreadIdxX => cuda(self, Builtin::ThreadIdx(X)),
            I::ThreadIdxY => cuda(self, Builtin::ThreadIdx(Y)),
            I::ThreadIdxZ => cuda(self, Builtin::ThreadIdx(Z)),
            I::BlockIdxX => cuda(self, Builtin::BlockIdx(X)),
            I::BlockIdxY => cuda(self, Builtin::BlockIdx(Y)),
            I::BlockIdxZ => cuda(self, Builtin::BlockIdx(Z)),
            I::BlockDimX => cuda(self, Builtin::BlockDim(X)),
            I::BlockDimY => cuda(self, Builtin::BlockDim(Y)),
            I::BlockDimZ => cuda(self, Builtin::BlockDim(Z)),
            I::GridDimX => cuda(self, Builtin::GridDim(X)),
            I::GridDimY => cuda(self, Builtin::GridDim(Y)),
            I::GridDimZ => cuda(self, Builtin::GridDim(Z)),
            I::GlobalIdX => self.global_id(X, line).map(Val::Value),
            I::GlobalIdY => self.global_id(Y, line).map(Val::Value),
            I::GlobalIdZ => self.global_id(Z, line).map(Val::Value),
            I::LocalIdX => index(self, Builtin::ThreadIdx(X)),
            I::LocalIdY => index(self, Builtin::ThreadIdx(Y)),
            I::LocalIdZ => index(self, Builtin::ThreadIdx(Z)),
            I::GroupIdX => index(self, Builtin::BlockIdx(X)),
            I::GroupIdY => index(self, Builtin::BlockIdx(Y)),
            I::GroupIdZ => index(self, Builtin::BlockIdx(Z)),
            I::GlobalSizeX => product(self, X, Builtin::GridDim, Builtin::BlockDim),
            I::GlobalSizeY => product(self, Y, Builtin::GridDim, Builtin::BlockDim),
            I::GlobalSizeZ => product(self, Z, Builtin::GridDim, Builtin::BlockDim),
            I::CheckIndex => match args {
                [index, length] => self.check_index(index, length, line),
                _ => Err(self.error(line, "`check_index` lacks its index", "")),
            },
            I::SharedArray | I::SharedSlice => self.shared(what, e),
            I::StageFactors => self.stage_factors(args, line),
            I::StageThird => self.stage_third(args, line),
            I::StageTwins => self.stage_twins(args, line),
            I::StageLayers => self.stage_layers(args, line),
            I::StagePairs => {
                self.pairs = true;
                if let Some(stages) = &mut self.k.kernel_mut().stages {
                    stages.pairs = true;
                }
                Ok(Val::unit())
            }
            _ if what.group() == perpetua_syntax::IntrinsicGroup::Atomic => {
                self.atomic(what, args, sync, line)
            }
            I::SubgroupSize => Ok(Val::Value(self.k.builtin(Builtin::SubgroupSize))),
            I::SubgroupLane => Ok(Val::Value(self.k.builtin(Builtin::SubgroupLane))),
            I::SubgroupId => {
                let lane = self.linear_thread(line)?;
                let size = self.k.builtin(Builtin::SubgroupSize);
                self.binary(BinaryOp::Div, lane, size, line).map(Val::Value)
            }
            _ => match DeviceOp::of_language(what.name()) {
                Some(op) => self.device(op, args, line),
                None => Err(self.error(line, format!("`{}` is not lowered", what.name()), "")),
            },
        }
    }

    fn effect(&mut self, effect: Effect, line: u32) -> Result<Val> {
        let done = self.k.effect(effect);
        self.typed(line, done)?;
        Ok(Val::unit())
    }

    /// The check that comes with an index into memory, of an index into a part of it.
    fn check_index(&mut self, index: &Expr, length: &Expr, line: u32) -> Result<Val> {
        let (index, length) = (self.value(index)?, self.value(length)?);
        self.check_below(index, length, "span".into(), line)?;
        Ok(Val::unit())
    }

    /// What a function asks of the device.
    fn device(&mut self, op: DeviceOp, args: &[Expr], line: u32) -> Result<Val> {
        let args = args.iter().map(|a| self.value(a)).collect::<Result<Vec<_>>>()?;
        if op.row().gives == Gives::Nothing {
            return self.effect(Effect::Device(op, args), line);
        }
        self.at(line);
        let done = self.k.op(Op::Device(op, args));
        Ok(Val::Value(self.typed(line, done)?))
    }

    fn product(
        &mut self,
        axis: Axis,
        a: fn(Axis) -> Builtin,
        b: fn(Axis) -> Builtin,
        line: u32,
    ) -> Result<Value> {
        let a = self.builtin_usize(a(axis), line)?;
        let b = self.builtin_usize(b(axis), line)?;
        self.binary(BinaryOp::Mul, a, b, line)
    }

    /// The lane's index in the grid, as `usize`.
    pub(super) fn global_id(&mut self, axis: Axis, line: u32) -> Result<Value> {
        let start = self.product(axis, Builtin::BlockIdx, Builtin::BlockDim, line)?;
        let thread = self.builtin_usize(Builtin::ThreadIdx(axis), line)?;
        self.binary(BinaryOp::Add, start, thread, line)
    }

    /// The lane's index in its block, all dimensions counted, as `u32`.
    pub(super) fn linear_thread(&mut self, line: u32) -> Result<Value> {
        let mut linear = self.k.builtin(Builtin::ThreadIdx(Axis::Z));
        for axis in [Axis::Y, Axis::X] {
            let size = self.k.builtin(Builtin::BlockDim(axis));
            let index = self.k.builtin(Builtin::ThreadIdx(axis));
            linear = self.binary(BinaryOp::Mul, linear, size, line)?;
            linear = self.binary(BinaryOp::Add, linear, index, line)?;
        }
        Ok(linear)
    }

    fn shared(&mut self, what: Intrinsic, e: &Expr) -> Result<Val> {
        let line = e.line;
        let target = match self.ty(&e.ty) {
            Ty::Ref(_, target) => target,
            _ => return Err(self.error(line, "shared memory has no type", "")),
        };
        let whole = |base| {
            Val::Ref(Src::Place(Place {
                base,
                path: Vec::new(),
            }))
        };
        match (&*target, what) {
            (Ty::Slice(element), Intrinsic::SharedSlice) => {
                let element = self.shared_type(element, line)?;
                match &self.dynamic {
                    Some((declared, base)) if *declared == element => Ok(whole(*base)),
                    Some((declared, _)) => Err(self.error(
                        line,
                        format!("the dynamic shared memory is used as `{element}` and as `{declared}`"),
                        "use one element type, and `to_bits` and `from_bits`",
                    )),
                    None => {
                        let name = self.declared.take().unwrap_or_else(|| "dynamic".into());
                        let name = self.shared_name(&name);
                        let base = self.k.dynamic_shared(name, element.clone());
                        self.dynamic = Some((element, base));
                        Ok(whole(base))
                    }
                }
            }
            (array, _) => {
                // One variable for each call in the source, however often its function is inlined.
                let key = (self.active_instance(), std::ptr::from_ref(e) as usize);
                if let Some(base) = self.shared.get(&key) {
                    return Ok(whole(*base));
                }
                let ty = self.ir_type(array, line)?;
                let name = self.declared.take().unwrap_or_else(|| "shared".into());
                let name = self.shared_name(&name);
                let base = self.k.shared(name, ty);
                self.shared.insert(key, base);
                Ok(whole(base))
            }
        }
    }

    /// What the kernel multiplies in stages.
    fn stage_factors(&mut self, args: &[Expr], line: u32) -> Result<Val> {
        let (left, right, (depth, count, element)) = self.two_factors(args, line)?;
        let pairs = self.pairs;
        let stages = &mut self.k.kernel_mut().stages;
        if stages.is_some() {
            return Err(self.error(
                line,
                "a second call of `stage_factors`",
                "multiply one pair of matrices in stages",
            ));
        }
        *stages = Some(Stages {
            count,
            element,
            left,
            right,
            third: None,
            twins: None,
            depth,
            pairs,
        });
        Ok(Val::unit())
    }

    /// Two factors that are as deep as each other: what each is, and how deep, how many and of what both are.
    fn two_factors(
        &mut self,
        args: &[Expr],
        line: u32,
    ) -> Result<(Factor, Factor, (u32, u32, StageElement))> {
        let (Some((left, rest)), Some([left_type, right_type])) = (args.split_at_checked(4), args.get(8..))
        else {
            return Err(self.error(line, "a product in stages lacks its factors and their types", ""));
        };
        let (left, depth, count, element) = self.factor(left, left_type)?;
        let (right, other_depth, other_count, other_element) = self.factor(rest, right_type)?;
        if (depth, count, element) != (other_depth, other_count, other_element) {
            return Err(self.error(
                line,
                format!(
                    "the factors are {count} stages of {element}, {depth} deep, and {other_count} of {other_element}, {other_depth} deep"
                ),
                "give both as many of the same elements, as deep",
            ));
        }
        Ok((left, right, (depth, count, element)))
    }

    /// The factors of a second product.
    fn stage_twins(&mut self, args: &[Expr], line: u32) -> Result<Val> {
        let (mut left, mut right, same) = self.two_factors(args, line)?;
        let stages = self.k.kernel_mut().stages.as_mut();
        let first = stages.filter(|stages| stages.third.is_none() && stages.twins.is_none());
        let Some(stages) = first.filter(|stages| (stages.depth, stages.count, stages.element) == same) else {
            return Err(self.error(
                line,
                "`stage_twins` stands behind one call of `stage_factors` of the same types",
                "say first what is multiplied, and then the second product, once, as deep and of as many stages of the same elements",
            ));
        };
        // One of their matrices stands with each of the first product's.
        (left.layers, right.layers) = (stages.left.layers, stages.right.layers);
        stages.twins = Some([left, right]);
        Ok(Val::unit())
    }

    /// The third factor of a chain.
    fn stage_third(&mut self, args: &[Expr], line: u32) -> Result<Val> {
        let (Some(third), Some([ty])) = (args.get(..4), args.get(4..)) else {
            return Err(self.error(line, "`stage_third` lacks its factor", ""));
        };
        let (mut third, depth, count, element) = self.factor(third, ty)?;
        let stages = self.k.kernel_mut().stages.as_mut();
        let Some(stages) = stages.filter(|stages| stages.third.is_none() && stages.twins.is_none()) else {
            return Err(self.error(
                line,
                "`stage_third` stands behind one call of `stage_factors`",
                "say first what is multiplied, and then what the product's weights are multiplied with, once",
            ));
        };
        let (wanted, same) = (stages.right.extent, (stages.count, stages.element));
        if (depth, (count, element)) != (wanted, same) {
            return Err(self.error(
                line,
                format!("the third factor is {count} stages of {element}, {depth} deep"),
                format!(
                    "it is as deep as the right one has columns of sums, {wanted}, of as many stages, {}, of the same elements, {}",
                    same.0, same.1
                ),
            ));
        }
        // One of its matrices stands with each of the right one's.
        third.layers = stages.right.layers;
        stages.third = Some(third);
        Ok(Val::unit())
    }

    /// How many matrices the factors' buffers hold.
    fn stage_layers(&mut self, args: &[Expr], line: u32) -> Result<Val> {
        let mut params = [0; 4];
        for (param, arg) in params.iter_mut().zip(args) {
            *param = self.described_param(arg)?;
        }
        let [a, a_apart, b, b_apart] = params;
        let Some(stages) = self.k.kernel_mut().stages.as_mut() else {
            return Err(self.error(
                line,
                "`stage_layers` stands behind `stage_factors`",
                "say first what is multiplied",
            ));
        };
        stages.left.layers = Some([a, a_apart]);
        for factor in [&mut stages.right].into_iter().chain(&mut stages.third) {
            factor.layers = Some([b, b_apart]);
        }
        if let Some([left, right]) = &mut stages.twins {
            (left.layers, right.layers) = (stages.left.layers, stages.right.layers);
        }
        Ok(Val::unit())
    }

    /// A parameter of the kernel that describes a factor.
    fn described_param(&mut self, arg: &Expr) -> Result<u32> {
        let value = self.value(arg)?;
        self.k.param_of(value).ok_or_else(|| {
            self.error(
                arg.line,
                "rows, columns and pitch of a factor in stages are parameters of the kernel",
                "add a parameter of type `usize`, and pass it as it is: launches describe the matrix by it",
            )
        })
    }

    /// A factor, how deep a stage of it is, how many it has, and its elements.
    fn factor(&mut self, args: &[Expr], ty: &Expr) -> Result<(Factor, u32, u32, StageElement)> {
        let line = ty.line;
        let ir = self.ir_type(&ty.ty, line)?;
        let Some((extent, across, depth, count, element)) = described(&ir) else {
            return Err(self.error(
                line,
                format!("a factor in stages is no `{ir}`"),
                "write `[[[T; DEPTH]; EXTENT]; STAGES]`, or `[[[[T; 64]; DEPTH]; EXTENT / 64]; STAGES]` where the depth goes from row to row; `DEPTH` is as many as take 128 bytes",
            ));
        };
        let buffer = match args.first().map(|arg| self.expr(arg)).transpose()? {
            Some(Val::Ref(Src::Place(Place {
                base: Base::Buffer(i),
                path,
            }))) if path.is_empty() => i,
            _ => {
                return Err(self.error(
                    line,
                    "a factor in stages is no buffer",
                    "pass a parameter `&[T]` as it is",
                ));
            }
        };
        let mut shape = [0; 3];
        for (param, arg) in shape.iter_mut().zip(args.iter().skip(1)) {
            *param = self.described_param(arg)?;
        }
        let factor = Factor {
            buffer,
            shape,
            layers: None,
            extent,
            across,
        };
        Ok((factor, depth, count, element))
    }

    /// A name that no shared variable has.
    fn shared_name(&mut self, name: &str) -> String {
        let stem = super::types::identifier(name);
        let mut free = stem.clone();
        let mut n = 1;
        while self.k.kernel_mut().shared.iter().any(|s| s.name == free) {
            n += 1;
            free = format!("{stem}_{n}");
        }
        free
    }

    fn atomic(&mut self, what: Intrinsic, args: &[Expr], sync: Sync, line: u32) -> Result<Val> {
        let Some((place, rest)) = args.split_first() else {
            return Err(self.error(line, format!("`{}` lacks its place", what.name()), ""));
        };
        let place = self.expr(place)?;
        let values = rest.iter().map(|a| self.value(a)).collect::<Result<Vec<_>>>()?;
        self.at(line);
        match &place {
            Val::Ref(Src::OneOf(which, all)) => self.over(*which, all, line, &mut |this, src| {
                this.atomic_at(what, src, &values, sync, line)
            }),
            Val::Ref(src) => self.atomic_at(what, src, &values, sync, line),
            _ => Err(self.own_memory(what, line)),
        }
    }

    fn own_memory(&self, what: Intrinsic, line: u32) -> LowerError {
        self.error(
            line,
            format!("`{}` works on memory that only one lane sees", what.name()),
            "use a buffer parameter or a shared array",
        )
    }

    fn atomic_at(
        &mut self,
        what: Intrinsic,
        src: &Src,
        values: &[Value],
        sync: Sync,
        line: u32,
    ) -> Result<Val> {
        use Intrinsic as I;
        let place = match src {
            Src::Place(place) if matches!(place.base, Base::Buffer(_) | Base::Shared(_)) => place.clone(),
            _ => return Err(self.own_memory(what, line)),
        };
        let op = match (what, values) {
            (I::AtomicLoad, []) => Op::Load(place, Some(sync)),
            (I::AtomicStore, [value]) => {
                return self.effect(Effect::Store(place, *value, Some(sync)), line);
            }
            (I::AtomicCompareExchange, [expected, new]) => Op::CompareExchange {
                place,
                expected: *expected,
                new: *new,
                sync,
            },
            (_, [value]) => {
                let op = match what {
                    I::AtomicAdd => AtomicOp::Add,
                    I::AtomicSub => AtomicOp::Sub,
                    I::AtomicMin => AtomicOp::Min,
                    I::AtomicMax => AtomicOp::Max,
                    I::AtomicAnd => AtomicOp::And,
                    I::AtomicOr => AtomicOp::Or,
                    I::AtomicXor => AtomicOp::Xor,
                    _ => AtomicOp::Exchange,
                };
                Op::Atomic(op, place, *value, sync)
            }
            _ => {
                return Err(self.error(
                    line,
                    format!("`{}` has a wrong number of arguments", what.name()),
                    "",
                ));
            }
        };
        let done = self.k.op(op);
        Ok(Val::Value(self.typed(line, done)?))
    }
}

/// What the type of a factor says: its extent, whether its depth goes from row to row, how deep a stage is, their number, and its elements.
fn described(ty: &Type) -> Option<(u32, bool, u32, u32, StageElement)> {
    let array = |ty: &Type| match ty {
        Type::Array(element, n) => Some(((**element).clone(), *n)),
        _ => None,
    };
    let (stage, count) = array(ty)?;
    let (outer, number) = array(&stage)?;
    let (inner, width) = array(&outer)?;
    match array(&inner) {
        Some((element, narrow)) => {
            let element = StageElement::of(&element)?;
            let extent = number.checked_mul(narrow)?;
            (narrow == element.depth()).then_some((extent, true, width, count, element))
        }
        None => Some((number, false, width, count, StageElement::of(&inner)?)),
    }
}
