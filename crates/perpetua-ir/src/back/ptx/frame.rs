//! Values and variables of the code being written: which leaves hold them. A frame is the kernel's body or one
//! inlined call.

use super::Renderer;
use super::emit::{Label, Leaf, emit};
use super::integer::bits;
use super::runs::variable_alignment;
use crate::ir::{Base, Block, Body, Effect, Inst, LocalId, Op, Place, Scalar, Step, Type, Value};

/// A run of leaves in [`Renderer::leaves`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl Span {
    /// A part of the run.
    pub(super) fn part(self, start: usize, len: usize) -> Span {
        Span {
            start: self.start + start as u32,
            len: len as u32,
        }
    }

    pub(super) fn indices(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// Where a variable lives.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    /// In registers, one for each scalar.
    Registers(Span),
    /// In local memory: the name of its declaration. So when it is indexed at run time.
    Memory(String),
    /// Each field for itself, where some of them are indexed at run time and others are not.
    Fields(Vec<Slot>),
}

/// What of a variable is indexed at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Indexed {
    /// Only what lies in these fields; none.
    Fields(Vec<u32>),
    /// It itself.
    Whole,
}

/// Where `break` and `continue` of a loop or labelled block go.
#[derive(Clone, Copy)]
pub(super) struct Construct {
    pub(super) end: Label,
    pub(super) head: Option<Label>,
}

/// What `return` does.
#[derive(Clone, Copy)]
pub(super) enum Exit {
    /// Ends the lane.
    Kernel,
    /// Leaves the inlined code with the result in these registers.
    Jump(Label, Span),
    /// The only `return` is the last statement: the result is the value itself.
    Last(Span),
}

/// The code being written.
pub(super) struct Frame<'k> {
    pub(super) body: &'k Body,
    pub(super) values: Vec<Span>,
    pub(super) locals: Vec<Slot>,
    pub(super) constructs: Vec<Construct>,
    pub(super) exit: Exit,
    /// Numbers of the next fault and print site.
    pub(super) next: (u32, u32),
}

impl<'k> Renderer<'k> {
    /// Declares a variable in local memory.
    fn memory(&mut self, ty: &Type) -> Slot {
        let name = format!("local_{}", self.variables.len());
        self.variables.push(format!(
            ".local .align {} .b8 {name}[{}]",
            variable_alignment(ty),
            ty.size().max(1)
        ));
        Slot::Memory(name)
    }

    pub(super) fn span(&mut self, leaves: impl IntoIterator<Item = Leaf>) -> Span {
        let start = self.leaves.len();
        self.leaves.extend(leaves);
        Span {
            start: start as u32,
            len: (self.leaves.len() - start) as u32,
        }
    }

    /// The register of a scalar variable that lives in one.
    pub(super) fn register_of(&self, local: LocalId) -> Leaf {
        match self.frame.locals.get(local.0 as usize) {
            Some(Slot::Registers(span)) => self.leaves.get(span.start as usize).copied(),
            _ => None,
        }
        .unwrap_or(Leaf::Imm(0))
    }

    pub(super) fn value(&self, v: Value) -> Span {
        self.frame.values.get(v.0 as usize).copied().unwrap_or_default()
    }

    pub(super) fn leaves_of(&self, span: Span) -> Vec<Leaf> {
        self.leaves.get(span.indices()).unwrap_or_default().to_vec()
    }

    /// The leaf of a scalar value.
    pub(super) fn leaf(&self, v: Value) -> Leaf {
        let at = self.value(v).start as usize;
        self.leaves.get(at).copied().unwrap_or(Leaf::Imm(0))
    }

    pub(super) fn type_of(&self, v: Value) -> &'k Type {
        static NONE: Type = Type::BOOL;
        self.frame.body.values.get(v.0 as usize).unwrap_or(&NONE)
    }

    pub(super) fn scalar_of(&self, v: Value) -> Scalar {
        self.type_of(v).as_scalar().unwrap_or(Scalar::U32)
    }

    pub(super) fn define(&mut self, v: Value, span: Span) {
        if let Some(slot) = self.frame.values.get_mut(v.0 as usize) {
            *slot = span;
        }
    }

    pub(super) fn define_leaf(&mut self, v: Value, leaf: Leaf) {
        let span = self.span([leaf]);
        self.define(v, span);
    }

    /// Fresh registers for the scalars of a type.
    pub(super) fn registers(&mut self, ty: &Type) -> Span {
        let leaves: Vec<Leaf> = ty
            .leaves()
            .into_iter()
            .map(|(s, _)| self.out.register(s))
            .collect();
        self.span(leaves)
    }

    /// Copies scalars of types `scalars` into registers.
    pub(super) fn assign(&mut self, to: Span, from: Span, scalars: &[Scalar]) {
        for ((to, from), s) in to.indices().zip(from.indices()).zip(scalars) {
            if let (Some(&to), Some(&from)) = (self.leaves.get(to), self.leaves.get(from)) {
                self.copy(to, from, *s);
            }
        }
    }

    pub(super) fn copy(&mut self, to: Leaf, from: Leaf, s: Scalar) {
        emit!(self, "mov.{} {to}, {}", bits(s), from.at(s));
    }

    /// A frame for `body`, its variables placed; the first values are its parameters.
    pub(super) fn frame(
        &mut self,
        body: &'k Body,
        params: &[Span],
        exit: Exit,
        next: (u32, u32),
    ) -> Frame<'k> {
        let mut values = vec![Span::default(); body.values.len()];
        values.iter_mut().zip(params).for_each(|(v, p)| *v = *p);
        let indexed = indexed_at_run_time(body);
        let locals = body
            .locals
            .iter()
            .zip(indexed)
            .map(|(local, indexed)| match indexed {
                Indexed::Whole => self.memory(&local.ty),
                Indexed::Fields(fields) if fields.is_empty() => Slot::Registers(self.registers(&local.ty)),
                Indexed::Fields(fields) => {
                    let parts =
                        (0..local.ty.component_count()).filter_map(|i| Some((i, local.ty.component(i)?)));
                    let slots = parts.map(|(i, ty)| match fields.contains(&i) {
                        true => self.memory(&ty),
                        false => Slot::Registers(self.registers(&ty)),
                    });
                    Slot::Fields(slots.collect())
                }
            })
            .collect();
        Frame {
            body,
            values,
            locals,
            constructs: Vec::new(),
            exit,
            next,
        }
    }

    /// Writes the code of function `f` in place; gives its result.
    pub(super) fn call(&mut self, f: u32, args: &[Value]) -> Span {
        let Some(function) = self.kernel.functions.get(f as usize) else {
            return Span::default();
        };
        let params: Vec<Span> = args.iter().map(|a| self.value(*a)).collect();
        let result = function.result.clone();
        let exit = if returns_last(&function.body.block) {
            Exit::Last(Span::default())
        } else {
            let end = self.out.label();
            let registers = match &result {
                Some(ty) => self.registers(ty),
                None => Span::default(),
            };
            Exit::Jump(end, registers)
        };
        let next = self.first_sites.get(f as usize).copied().unwrap_or_default();
        let frame = self.frame(&function.body, &params, exit, next);
        let caller = std::mem::replace(&mut self.frame, frame);
        let mask = self.mask;
        self.block(&function.body.block);
        // All lanes come back together.
        self.mask = mask;
        let callee = std::mem::replace(&mut self.frame, caller);
        match (callee.exit, result) {
            (Exit::Jump(end, registers), _) => {
                self.out.place(end);
                registers
            }
            // A function that never returns: nothing reads its result.
            (Exit::Last(Span { len: 0, .. }) | Exit::Kernel, Some(ty)) => self.registers(&ty),
            (Exit::Last(span), _) => span,
            (Exit::Kernel, None) => Span::default(),
        }
    }
}

/// Whether the only `return` is the last statement.
fn returns_last(block: &Block) -> bool {
    let mut returns = 0;
    block.walk(&mut |stmt| returns += usize::from(matches!(stmt.inst, Inst::Return(_))));
    returns == 0 || returns == 1 && matches!(block.0.last().map(|s| &s.inst), Some(Inst::Return(_)))
}

/// For each variable of a body, in what of it some index is not a constant.
fn indexed_at_run_time(body: &Body) -> Vec<Indexed> {
    let mut constant = vec![false; body.values.len()];
    let mut indexed = vec![Indexed::Fields(Vec::new()); body.locals.len()];
    body.block.walk(&mut |stmt| {
        let place = match &stmt.inst {
            Inst::Let(v, op) => {
                if let (Op::Const(..), Some(c)) = (op, constant.get_mut(v.0 as usize)) {
                    *c = true;
                }
                op.place()
            }
            Inst::Do(Effect::Store(place, ..)) => Some(place),
            _ => None,
        };
        if let Some(Place {
            base: Base::Local(LocalId(id)),
            path,
        }) = place
            && path
                .iter()
                .any(|step| matches!(step, Step::Index(v) if !constant.get(v.0 as usize).copied().unwrap_or(false)))
            && let Some(indexed) = indexed.get_mut(*id as usize)
        {
            match (path.first(), &mut *indexed) {
                (Some(Step::Field(i)), Indexed::Fields(fields)) => fields.push(*i),
                _ => *indexed = Indexed::Whole,
            }
        }
    });
    indexed
}
