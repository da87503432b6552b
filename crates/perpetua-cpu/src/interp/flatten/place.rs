//! Memory: regions, places in them, loads and stores.

use super::super::program::*;
use super::{Context, Flattener, Result};
use crate::eval::eval_cast;
use perpetua_ir::ir::*;

/// Where a path leads.
struct Path {
    /// What the constant steps add: bytes in a region, registers in a variable.
    offset: u32,
    steps: Vec<IndexStep>,
    ty: Type,
}

/// Greatest power of two that divides sizes and offsets of all scalars of a type: what the race detector watches
/// as one.
fn grain(ty: &Type) -> u32 {
    let bits = ty
        .leaves()
        .into_iter()
        .fold(ty.size() | 8, |bits, (s, o)| bits | s.size() | o);
    1 << bits.trailing_zeros()
}

impl<'a> Flattener<'a> {
    /// Lays out parameters, shared variables and constant tables.
    pub(super) fn declare(&mut self) {
        let kernel = self.kernel;
        for (i, param) in kernel.params.iter().enumerate() {
            let region = self.program.regions.len() as u32;
            let kind = match &param.kind {
                ParamKind::Buffer { element, access } => {
                    self.program.regions.push(Region {
                        kind: RegionKind::Buffer {
                            param: i as u32,
                            writable: *access == Access::ReadWrite,
                        },
                        name: param.name.clone(),
                        element: element.size(),
                        grain: grain(element),
                    });
                    ParameterKind::Buffer {
                        align: element.align(),
                    }
                }
                ParamKind::Value(ty) => ParameterKind::Value { size: ty.size() },
            };
            self.regions.params.push(region);
            let name = param.name.clone();
            self.program.params.push(Parameter { name, kind });
        }
        for var in &kernel.shared {
            self.regions.shared.push(self.program.regions.len() as u32);
            let (align, size) = (var.ty.align(), var.ty.size());
            let kind = if var.dynamic {
                self.program.dynamic_align = align;
                RegionKind::Dynamic
            } else {
                let offset = self.program.shared_bytes.next_multiple_of(align);
                self.program.shared_bytes = offset + size;
                RegionKind::Shared { offset, size }
            };
            let element = match &var.ty {
                Type::Array(element, _) if !var.dynamic => element.size(),
                ty => ty.size(),
            };
            self.program.regions.push(Region {
                kind,
                name: var.name.clone(),
                element,
                grain: grain(&var.ty),
            });
        }
        for table in &kernel.constants {
            self.regions.constants.push(self.program.regions.len() as u32);
            let size = table.element.size();
            let bytes = &mut self.program.constants;
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            let offset = bytes.len() as u32;
            for bits in &table.data {
                match size {
                    1 => bytes.push(*bits as u8),
                    2 => bytes.extend((*bits as u16).to_ne_bytes()),
                    4 => bytes.extend((*bits as u32).to_ne_bytes()),
                    _ => bytes.extend(bits.to_ne_bytes()),
                }
            }
            self.program.regions.push(Region {
                kind: RegionKind::Constant {
                    offset,
                    size: size * table.data.len() as u32,
                },
                name: table.name.clone(),
                element: size,
                grain: size,
            });
        }
    }

    /// The region of a base that is not a local variable.
    pub(super) fn region(&self, base: Base) -> Result<u32> {
        let (table, index, what) = match base {
            Base::Buffer(i) => (&self.regions.params, i, "parameter"),
            Base::Shared(i) => (&self.regions.shared, i, "shared variable"),
            Base::Constant(i) => (&self.regions.constants, i, "constant table"),
            Base::Local(_) => return Err(TypeError::Invalid("a local variable has no region".into())),
        };
        table.get(index as usize).copied().ok_or(TypeError::NoSuch {
            what,
            index,
            count: table.len(),
        })
    }

    fn subject(&self, cx: &Context<'a>, base: Base) -> String {
        let kernel = self.kernel;
        let name = match base {
            Base::Local(id) => cx.declarations.body.locals.get(id.0 as usize).map(|l| &l.name),
            Base::Shared(i) => kernel.shared.get(i as usize).map(|s| &s.name),
            Base::Buffer(i) => kernel.params.get(i as usize).map(|p| &p.name),
            Base::Constant(i) => kernel.constants.get(i as usize).map(|c| &c.name),
        };
        name.cloned().unwrap_or_default()
    }

    /// One index. In `path` it steps over `element`s, of which there are `length`.
    fn index(
        &mut self,
        cx: &Context<'a>,
        place: &Place,
        path: &mut Path,
        index: Value,
        length: Length,
    ) -> Result<()> {
        let from = cx.declarations.scalar(index, "index")?;
        let reg = self.scalar(cx, index)?;
        let stride = match place.base {
            Base::Local(_) => path.ty.leaf_count() as u32,
            _ => path.ty.size(),
        };
        if let (Length::Fixed(n), Some(bits)) = (length, self.registers.constant(reg))
            // Sign extension makes a negative index a large one.
            && let bits = eval_cast(from, Scalar::I64, bits)
            && bits < u64::from(n)
        {
            path.offset += bits as u32 * stride;
            return Ok(());
        }
        let run_time = length == Length::Region;
        // As `pass::checks` types them, so that the same fault reads the same from every target.
        let wide = from.bits() == 64 || run_time && self.kernel.pointer_width == 64;
        let len = if wide { Scalar::U64 } else { Scalar::U32 };
        let subject = self.subject(cx, place.base);
        let site = self.site(cx, FaultKind::IndexOutOfBounds, subject, vec![from, len]);
        path.steps.push(IndexStep {
            index: reg,
            ty: from,
            length,
            stride,
            site,
        });
        Ok(())
    }

    fn path(&mut self, cx: &Context<'a>, place: &Place) -> Result<Path> {
        let kernel = self.kernel;
        let none = |what, index, count| TypeError::NoSuch { what, index, count };
        // The type before the first step, and how many there are if the first step is an index into a run.
        let (ty, run) = match place.base {
            Base::Local(id) => {
                let locals = &cx.declarations.body.locals;
                let local = locals.get(id.0 as usize);
                let local = local.ok_or_else(|| none("local", id.0, locals.len()))?;
                (local.ty.clone(), None)
            }
            Base::Shared(i) => {
                let var = kernel.shared.get(i as usize);
                let var = var.ok_or_else(|| none("shared variable", i, kernel.shared.len()))?;
                (var.ty.clone(), var.dynamic.then_some(Length::Region))
            }
            Base::Buffer(i) => match kernel.params.get(i as usize).map(|p| &p.kind) {
                Some(ParamKind::Buffer { element, .. }) => (element.clone(), Some(Length::Region)),
                _ => return Err(none("buffer", i, kernel.params.len())),
            },
            Base::Constant(i) => {
                let table = kernel.constants.get(i as usize);
                let table = table.ok_or_else(|| none("constant table", i, kernel.constants.len()))?;
                let length = Length::Fixed(table.data.len() as u32);
                (table.element.into(), Some(length))
            }
        };
        let mut path = Path {
            offset: 0,
            steps: Vec::new(),
            ty,
        };
        let mut steps = place.path.iter();
        if let Some(length) = run {
            match steps.next() {
                Some(Step::Index(v)) => self.index(cx, place, &mut path, *v, length)?,
                _ => return Err(TypeError::Invalid("the path must begin with an index".into())),
            }
        }
        for step in steps {
            match step {
                Step::Index(v) => {
                    let Type::Array(element, n) = path.ty.clone() else {
                        return Err(TypeError::Invalid(format!("{} is no array", path.ty)));
                    };
                    path.ty = (*element).clone();
                    self.index(cx, place, &mut path, *v, Length::Fixed(n))?;
                }
                Step::Field(i) => {
                    let count = path.ty.component_count() as usize;
                    path.offset += match place.base {
                        Base::Local(_) => path.ty.leaf_start(*i) as u32,
                        _ => path.ty.component_offset(*i).unwrap_or_default(),
                    };
                    let part = path.ty.component(*i);
                    path.ty = part.ok_or_else(|| none("component", *i, count))?;
                }
            }
        }
        Ok(path)
    }

    /// Registers of the part of a local variable that a path without run-time indices leads to.
    fn part(&self, cx: &Context<'a>, id: LocalId, path: &Path) -> Vec<Reg> {
        let start = path.offset as usize;
        let regs = cx
            .locals
            .get(id.0 as usize)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let part = regs.get(start..start + path.ty.leaf_count());
        part.unwrap_or_default().to_vec()
    }

    fn private(&mut self, cx: &Context<'a>, id: LocalId, path: Path, values: &[Reg]) -> u32 {
        let registers = cx.locals.get(id.0 as usize).cloned().unwrap_or_default();
        let sizes = path.ty.leaves().into_iter().map(|(s, _)| s.size());
        self.program.privates.push(PrivatePlace {
            registers,
            steps: path.steps,
            start: path.offset,
            values: sizes.zip(values.iter().copied()).collect(),
        });
        self.program.privates.len() as u32 - 1
    }

    fn access(&mut self, base: Base, path: Path, regs: &[Reg]) -> Result<u32> {
        let region = self.region(base)?;
        let leaves = path.ty.leaves().into_iter().zip(regs);
        self.program.accesses.push(SharedPlace {
            region,
            steps: path.steps,
            offset: path.offset,
            leaves: leaves.map(|((s, offset), reg)| (s, offset, *reg)).collect(),
        });
        Ok(self.program.accesses.len() as u32 - 1)
    }

    /// A plain load.
    pub(super) fn load(&mut self, cx: &mut Context<'a>, v: Value, place: &Place) -> Result<Vec<Reg>> {
        let path = self.path(cx, place)?;
        let leaves = path.ty.leaves();
        if let (Base::Local(id), true) = (place.base, path.steps.is_empty()) {
            let from = self.part(cx, id, &path);
            // Nothing writes to the variable as long as the value is read: they may share registers.
            if !cx.liveness.written(id.0, cx.number, cx.liveness.last(v)) {
                return Ok(from);
            }
            let mut regs = Vec::new();
            for ((s, _), from) in leaves.into_iter().zip(from) {
                let (size, to) = (s.size(), self.fresh(cx, v, s.size()));
                self.emit(cx, Code::Copy { size, from, to });
                regs.push(to);
            }
            return Ok(regs);
        }
        let mut regs: Vec<Reg> = leaves.iter().map(|(s, _)| self.fresh(cx, v, s.size())).collect();
        if let Base::Local(id) = place.base {
            let place = self.private(cx, id, path, &regs);
            self.emit(cx, Code::PrivateLoad { place });
            return Ok(regs);
        }
        let access = self.access(place.base, path, &regs)?;
        self.emit(cx, Code::Load { access });
        // Memory may hold any byte where a `bool` is: any but zero is true.
        for (reg, (s, _)) in regs.iter_mut().zip(leaves) {
            if s == Scalar::Bool {
                let (a, b) = (*reg, self.constant(Scalar::U8, 0));
                *reg = self.fresh(cx, v, 1);
                let (op, s, out) = (perpetua_ir::ops::BinaryOp::Ne, Scalar::U8, *reg);
                self.emit(cx, Code::Binary { op, s, a, b, out });
            }
        }
        Ok(regs)
    }

    /// A plain store.
    pub(super) fn store(&mut self, cx: &mut Context<'a>, place: &Place, v: Value) -> Result<()> {
        let path = self.path(cx, place)?;
        let regs = self.value(cx, v)?;
        match place.base {
            Base::Local(id) if path.steps.is_empty() => {
                let to = self.part(cx, id, &path);
                let sizes = super::leaf_sizes(&path.ty);
                // The value shares no register with the variable, for then nothing would write to it now.
                for ((from, to), size) in regs.iter().copied().zip(to).zip(sizes) {
                    let once = regs.iter().filter(|reg| **reg == from).count() <= 1;
                    let last = once && self.registers.ends(from, cx.number);
                    self.emit(cx, Code::Assign { size, from, to, last });
                }
            }
            Base::Local(id) => {
                let place = self.private(cx, id, path, &regs);
                self.emit(cx, Code::PrivateStore { place });
            }
            base => {
                let access = self.access(base, path, &regs)?;
                self.emit(cx, Code::Store { access });
            }
        }
        Ok(())
    }

    /// An atomic load: of a scalar, or of four words at once.
    pub(super) fn atomic_load(
        &mut self,
        cx: &mut Context<'a>,
        v: Value,
        place: &Place,
        sync: Sync,
    ) -> Result<Vec<Reg>> {
        let path = self.path(cx, place)?;
        let leaves = path.ty.leaves();
        if leaves.len() == 1 {
            return Ok(vec![self.atomic_part(
                cx,
                v,
                place.base,
                path,
                AtomicAct::Load,
                sync,
            )?]);
        }
        let regs: Vec<Reg> = leaves.iter().map(|(s, _)| self.fresh(cx, v, s.size())).collect();
        let access = self.access(place.base, path, &regs)?;
        self.emit(cx, Code::LoadWords { access, sync });
        Ok(regs)
    }

    /// An atomic store, likewise.
    pub(super) fn atomic_store(
        &mut self,
        cx: &mut Context<'a>,
        place: &Place,
        v: Value,
        sync: Sync,
    ) -> Result<()> {
        let path = self.path(cx, place)?;
        let regs = self.value(cx, v)?;
        if let [value] = regs[..] {
            return self
                .atomic_part(cx, v, place.base, path, AtomicAct::Store { value }, sync)
                .map(drop);
        }
        let access = self.access(place.base, path, &regs)?;
        self.emit(cx, Code::StoreWords { access, sync });
        Ok(())
    }

    /// An atomic access to a scalar; the register of the old value (of a store: one that nobody reads).
    pub(super) fn atomic(
        &mut self,
        cx: &mut Context<'a>,
        v: Value,
        place: &Place,
        act: AtomicAct,
        sync: Sync,
    ) -> Result<Reg> {
        let path = self.path(cx, place)?;
        self.atomic_part(cx, v, place.base, path, act, sync)
    }

    fn atomic_part(
        &mut self,
        cx: &mut Context<'a>,
        v: Value,
        base: Base,
        path: Path,
        act: AtomicAct,
        sync: Sync,
    ) -> Result<Reg> {
        let s = path.ty.as_scalar();
        let s = s.ok_or_else(|| TypeError::Invalid(format!("atomic access to a {}", path.ty)))?;
        let out = match act {
            AtomicAct::Store { .. } => self.scratch(cx, s.size()),
            _ => self.fresh(cx, v, s.size()),
        };
        self.program.synchronises |= sync.order != MemOrder::Relaxed;
        let access = self.access(base, path, &[out])?;
        self.emit(
            cx,
            Code::Atomic {
                access,
                s,
                act,
                sync,
                out,
            },
        );
        Ok(out)
    }
}
