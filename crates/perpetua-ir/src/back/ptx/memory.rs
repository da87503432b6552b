//! Places, plain loads and stores, lengths. Scalars that lie side by side and aligned move as vectors.

use std::slice::Iter;

use super::Renderer;
use super::emit::{Leaf, emit, emit_once};
use super::frame::{Slot, Span};
use super::runs::{alignment, memory_type, runs, variable_alignment};
use crate::ir::{Base, ParamKind, Place, Scalar, Step, Type};

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Global,
    Shared,
    Local,
    /// Tables: global memory that nobody writes.
    Table,
}

impl Space {
    pub(super) fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Table => "global.nc",
        }
    }
}

/// Offsets from sums are smaller, for they stand in the instruction.
const FAR: u64 = 1 << 20;

/// Base, index and stride of an element's address.
pub(super) type AddressKey = (Leaf, Leaf, u32);

/// An address in memory.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) space: Space,
    base: Origin,
    pub(super) offset: i64,
    /// What the address is a multiple of.
    pub(super) align: u32,
}

#[derive(Clone, Debug)]
enum Origin {
    Register(Leaf),
    Name(String),
}

impl Location {
    /// A variable of the lane's own.
    pub(super) fn of_variable(name: &str, align: u32) -> Location {
        Location {
            space: Space::Local,
            base: Origin::Name(name.to_owned()),
            offset: 0,
            align,
        }
    }

    /// The address `more` bytes further, as an operand.
    pub(super) fn at(&self, more: u32) -> String {
        let offset = self.offset + i64::from(more);
        let base = match &self.base {
            Origin::Register(leaf) => leaf.to_string(),
            Origin::Name(name) => name.clone(),
        };
        if offset == 0 {
            format!("[{base}]")
        } else {
            format!("[{base}+{offset}]")
        }
    }
}

/// What a place is.
enum Target {
    Registers(Span),
    Memory(Location),
}

impl Renderer<'_> {
    /// The address of a buffer parameter's first element.
    fn pointer(&mut self, i: u32) -> Leaf {
        if let Some(leaf) = self.pointers.get(&i) {
            return *leaf;
        }
        let (generic, d) = (self.out.wide(), self.out.wide());
        let name = self.parameter_name(i);
        emit_once!(self, "ld.param.u64 {generic}, [{name}]");
        emit_once!(self, "cvta.to.global.u64 {d}, {generic}");
        self.pointers.insert(i, d);
        d
    }

    /// Number of elements.
    pub(super) fn length(&mut self, base: Base, s: Scalar) -> Leaf {
        let (leaf, from) = match base {
            Base::Buffer(i) => match self.lengths.get(&i) {
                Some(leaf) => (*leaf, Scalar::U64),
                None => {
                    let d = self.out.wide();
                    let name = self.parameter_name(i);
                    emit_once!(self, "ld.param.u64 {d}, [{name}_len]");
                    self.lengths.insert(i, d);
                    (d, Scalar::U64)
                }
            },
            Base::Shared(i) => {
                let size = self.kernel.shared.get(i as usize).map_or(1, |v| v.ty.size());
                let d = self.out.word();
                emit!(self, "mov.u32 {d}, %dynamic_smem_size");
                let n = if size > 1 {
                    self.words("div.u32", d, size)
                } else {
                    d
                };
                (n, Scalar::U32)
            }
            // The verifier admits no other base.
            Base::Local(_) | Base::Constant(_) => (Leaf::Imm(0), Scalar::U32),
        };
        self.cast(from, s, leaf)
    }

    /// Where a place begins, and what is there. Takes the first step where it leads to a field that lies for itself.
    fn start(&mut self, base: Base, steps: &mut Iter<'_, Step>) -> Option<(Target, Type)> {
        let memory = |space, base, align| {
            Target::Memory(Location {
                space,
                base,
                offset: 0,
                align,
            })
        };
        Some(match base {
            Base::Local(id) => {
                let mut ty = self.frame.body.locals.get(id.0 as usize)?.ty.clone();
                let mut slot = self.frame.locals.get(id.0 as usize)?;
                if let Slot::Fields(slots) = slot {
                    // Wholes are moved field by field.
                    let Some(Step::Field(i)) = steps.next() else {
                        return None;
                    };
                    (slot, ty) = (slots.get(*i as usize)?, ty.component(*i)?);
                }
                let target = match slot {
                    Slot::Registers(span) => Target::Registers(*span),
                    Slot::Memory(name) => {
                        memory(Space::Local, Origin::Name(name.clone()), variable_alignment(&ty))
                    }
                    Slot::Fields(_) => return None,
                };
                (target, ty)
            }
            Base::Buffer(i) => {
                let ParamKind::Buffer { element, .. } = &self.kernel.params.get(i as usize)?.kind else {
                    return None;
                };
                let pointer = Origin::Register(self.pointer(i));
                (memory(Space::Global, pointer, element.align()), element.clone())
            }
            Base::Shared(i) => {
                let var = self.kernel.shared.get(i as usize)?;
                let (base, offset) = match var.dynamic || !self.stays {
                    true => (Origin::Name(self.shared_name(i)), 0),
                    false => (Origin::Register(self.shared_block()), self.shared_offset(i)),
                };
                let target = Target::Memory(Location {
                    space: Space::Shared,
                    base,
                    offset: offset.into(),
                    align: variable_alignment(&var.ty),
                });
                (target, var.ty.clone())
            }
            Base::Constant(i) => {
                let element = self.kernel.constants.get(i as usize)?.element;
                let name = Origin::Name(self.table_name(i));
                (memory(Space::Table, name, element.size()), element.into())
            }
        })
    }

    fn resolve(&mut self, place: &Place) -> Option<Target> {
        let mut steps = place.path.iter();
        let (mut target, mut ty) = self.start(place.base, &mut steps)?;
        let runs_first = match place.base {
            Base::Buffer(_) | Base::Constant(_) => true,
            Base::Shared(i) => self.kernel.shared.get(i as usize)?.dynamic,
            Base::Local(_) => false,
        };
        // The first index of a buffer, a table or dynamic memory selects one of many `ty`.
        if runs_first && let (Some(Step::Index(v)), Target::Memory(at)) = (steps.next(), &mut target) {
            self.advance(at, self.leaf(*v), self.scalar_of(*v), ty.size());
        }
        for step in steps {
            let index = match step {
                Step::Field(i) => Leaf::Imm(u64::from(*i)),
                Step::Index(v) => self.leaf(*v),
            };
            match (&mut target, index) {
                (Target::Registers(span), Leaf::Imm(n)) => {
                    // An index out of bounds stands behind a check that always fails.
                    let n = u32::try_from(n)
                        .ok()
                        .filter(|n| *n < ty.component_count())
                        .unwrap_or(0);
                    let inner = ty.component(n)?;
                    *span = span.part(ty.leaf_start(n), inner.leaf_count());
                    ty = inner;
                }
                (Target::Registers(_), _) => return None,
                (Target::Memory(at), _) => match step {
                    Step::Field(i) => {
                        let offset = ty.component_offset(*i)?;
                        at.offset += i64::from(offset);
                        at.align = alignment(offset, at.align);
                        ty = ty.component(*i)?;
                    }
                    Step::Index(v) => {
                        let inner = ty.component(0)?;
                        let s = self.scalar_of(*v);
                        self.advance(at, index, s, inner.size());
                        ty = inner;
                    }
                },
            }
        }
        Some(target)
    }

    /// A place in memory that all lanes see.
    pub(super) fn location(&mut self, place: &Place) -> Option<Location> {
        match self.resolve(place)? {
            Target::Memory(at) => Some(at),
            Target::Registers(_) => None,
        }
    }

    fn advance(&mut self, at: &mut Location, index: Leaf, s: Scalar, stride: u32) {
        at.align = alignment(stride, at.align);
        if let Leaf::Imm(n) = index {
            let n = if s.is_signed_int() && s.size() < 8 {
                i64::from(n as u32 as i32)
            } else {
                n as i64
            };
            let offset = n.wrapping_mul(i64::from(stride)).wrapping_add(at.offset);
            if i32::try_from(offset).is_ok() {
                at.offset = offset;
                return;
            }
        }
        // A sum's constant goes into the offset: base + (i + n) * stride = base + i * stride + n * stride, whatever wraps.
        let mut index = index;
        while let Some((of, more)) = self.sums.get(&index) {
            let Some(offset) = more
                .checked_mul(stride.into())
                .and_then(|bytes| bytes.checked_add(at.offset))
                .filter(|offset| offset.unsigned_abs() < FAR)
            else {
                break;
            };
            (index, at.offset) = (*of, offset);
        }
        let base = self.base_of(at);
        let key = (base, index, stride);
        const NEAR: usize = 32;
        let known = self.addresses.iter().rev().take(NEAR).find(|(k, _)| *k == key);
        let address = match known {
            Some((_, leaf)) => *leaf,
            None => {
                let leaf = self.address(at.space, key, s);
                self.addresses.push((key, leaf));
                leaf
            }
        };
        at.base = Origin::Register(address);
    }

    /// The register that holds what a location's offset counts from.
    pub(super) fn base_of(&mut self, at: &Location) -> Leaf {
        match &at.base {
            Origin::Register(leaf) => *leaf,
            Origin::Name(name) => {
                let name = name.clone();
                self.symbol(&name, at.space == Space::Shared)
            }
        }
    }

    /// base + index * stride.
    fn address(&mut self, space: Space, (base, index, stride): AddressKey, s: Scalar) -> Leaf {
        let index = self.in_register(index, s);
        let (word, signed) = match self.widened_words.get(&index) {
            Some((word, signed)) => (Some(*word), *signed),
            None if s.size() < 8 => (Some(index), s.is_signed_int()),
            None => (None, false),
        };
        if space == Space::Shared {
            let word = word.unwrap_or_else(|| {
                let d = self.out.word();
                emit!(self, "cvt.u32.u64 {d}, {index}");
                d
            });
            let d = self.out.word();
            emit!(self, "mad.lo.u32 {d}, {word}, {stride}, {base}");
            return d;
        }
        let d = self.out.wide();
        match word {
            Some(word) => {
                let ty = if signed { "s32" } else { "u32" };
                emit!(self, "mad.wide.{ty} {d}, {word}, {stride}, {base}");
            }
            None if stride.is_power_of_two() => {
                let scaled = self.out.wide();
                emit!(self, "shl.b64 {scaled}, {index}, {}", stride.trailing_zeros());
                emit!(self, "add.s64 {d}, {base}, {scaled}");
            }
            None => emit!(self, "mad.lo.s64 {d}, {index}, {stride}, {base}"),
        }
        d
    }

    /// The fields of a variable, where each lies for itself and all of them are meant.
    fn fields(&self, place: &Place, ty: &Type) -> Vec<(Place, Type)> {
        let Base::Local(id) = place.base else {
            return Vec::new();
        };
        match self.frame.locals.get(id.0 as usize) {
            Some(Slot::Fields(slots)) if place.path.is_empty() => (0..slots.len() as u32)
                .filter_map(|i| {
                    let path = vec![Step::Field(i)];
                    let base = place.base;
                    Some((Place { base, path }, ty.component(i)?))
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Reads a place of type `ty`.
    pub(super) fn load(&mut self, place: &Place, ty: &Type) -> Span {
        let fields = self.fields(place, ty);
        if !fields.is_empty() {
            let mut leaves = Vec::new();
            for (place, ty) in fields {
                let span = self.load(&place, &ty);
                leaves.extend(self.leaves_of(span));
            }
            return self.span(leaves);
        }
        let scalars = ty.leaves();
        match self.resolve(place) {
            Some(Target::Registers(from)) => {
                // A copy: the variable may change while the value is in use.
                let to = self.registers(ty);
                let scalars: Vec<Scalar> = scalars.iter().map(|(s, _)| *s).collect();
                self.assign(to, from, &scalars);
                to
            }
            Some(Target::Memory(at)) => {
                let mut leaves = Vec::with_capacity(scalars.len());
                for (first, n) in runs(&scalars, at.align) {
                    let run = scalars.get(first..first + n).unwrap_or_default();
                    leaves.extend(self.load_run(&at, run));
                }
                self.span(leaves)
            }
            None => self.span(scalars.iter().map(|_| Leaf::Imm(0))),
        }
    }

    fn load_run(&mut self, at: &Location, run: &[(Scalar, u32)]) -> Vec<Leaf> {
        let Some(&(s, offset)) = run.first() else {
            return Vec::new();
        };
        let in_memory = if s == Scalar::Bool { Scalar::U8 } else { s };
        let registers: Vec<Leaf> = run.iter().map(|_| self.out.register(in_memory)).collect();
        let (space, ty, address) = (at.space.name(), memory_type(s), at.at(offset));
        match &registers[..] {
            [d] => emit!(self, "ld.{space}.{ty} {d}, {address}"),
            [a, b] => emit!(self, "ld.{space}.v2.{ty} {{{a}, {b}}}, {address}"),
            [a, b, c, d] => emit!(self, "ld.{space}.v4.{ty} {{{a}, {b}, {c}, {d}}}, {address}"),
            // Runs have one, two or four scalars.
            _ => {}
        }
        run.iter()
            .zip(registers)
            .map(|((s, _), leaf)| match s {
                Scalar::Bool => self.compare("ne", "u32", Scalar::U32, leaf, Leaf::Imm(0)),
                _ => leaf,
            })
            .collect()
    }

    /// Writes a value of type `ty` to a place.
    pub(super) fn store(&mut self, place: &Place, value: Span, ty: &Type) {
        let fields = self.fields(place, ty);
        if !fields.is_empty() {
            for (i, (place, field)) in (0u32..).zip(fields) {
                let part = value.part(ty.leaf_start(i), field.leaf_count());
                self.store(&place, part, &field);
            }
            return;
        }
        let scalars = ty.leaves();
        match self.resolve(place) {
            Some(Target::Registers(to)) => {
                let scalars: Vec<Scalar> = scalars.iter().map(|(s, _)| *s).collect();
                self.assign(to, value, &scalars);
            }
            Some(Target::Memory(at)) => {
                let leaves = self.leaves_of(value);
                for (first, n) in runs(&scalars, at.align) {
                    let run = scalars.get(first..first + n).unwrap_or_default();
                    let leaves = leaves.get(first..first + n).unwrap_or_default();
                    self.store_run(&at, run, leaves);
                }
            }
            None => {}
        }
    }

    fn store_run(&mut self, at: &Location, run: &[(Scalar, u32)], leaves: &[Leaf]) {
        let Some(&(s, offset)) = run.first() else {
            return;
        };
        let values: Vec<Leaf> = run
            .iter()
            .zip(leaves)
            .map(|((s, _), leaf)| match (leaf, s) {
                (Leaf::Imm(v), _) => Leaf::Imm(v & (u64::MAX >> (64 - 8 * s.size()))),
                (p, Scalar::Bool) => self.choose(*p, Scalar::U32, Leaf::Imm(1), Leaf::Imm(0)),
                (leaf, _) => *leaf,
            })
            .collect();
        let ty = match s.size() {
            1 => "b8",
            2 => "b16",
            4 => "b32",
            _ => "b64",
        };
        let (space, address) = (at.space.name(), at.at(offset));
        match &values[..] {
            [a] => emit!(self, "st.{space}.{ty} {address}, {a}"),
            [a, b] => emit!(self, "st.{space}.v2.{ty} {address}, {{{a}, {b}}}"),
            [a, b, c, d] => emit!(self, "st.{space}.v4.{ty} {address}, {{{a}, {b}, {c}, {d}}}"),
            // Runs have one, two or four scalars.
            _ => {}
        }
    }
}
