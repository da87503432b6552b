//! Places: what they lead to, loads and stores.

use std::rc::Rc;

use super::part::holds_reference;
use super::value::{Binding, Src, Val};
use super::{Emitter, Result};
use crate::front::rust::describe::ConstValue;
use crate::front::rust::infer::methods::num;
use crate::front::rust::infer::tree::{Expr, ExprKind, GridMethod, LocalId};
use crate::front::rust::infer::ty::{Len, Ty};
use crate::ir::{Base, ConstTable, Op, Place, Step, Type, Value};

impl Emitter<'_> {
    /// What a place expression leads to. Of other expressions: their value.
    pub(super) fn src(&mut self, e: &Expr) -> Result<Src> {
        match &e.kind {
            ExprKind::Local(id) => match self.scope.bindings.get(id.0 as usize) {
                Some(Binding::Var(local)) => Ok(Src::Place(Place::local(*local))),
                Some(Binding::Val(val)) => Ok(Src::Val(Box::new(val.clone()))),
                Some(Binding::Kept(slot)) => {
                    let slot = slot.clone();
                    self.at(e.line);
                    self.get(&slot, e.line).map(|val| Src::Val(Box::new(val)))
                }
                _ => {
                    let name = self
                        .scope
                        .f
                        .locals
                        .get(id.0 as usize)
                        .map_or("?", |l| l.name.as_str());
                    Err(self.error(
                        e.line,
                        format!("`{name}` is read before it has a value"),
                        "give it one",
                    ))
                }
            },
            ExprKind::Constant(name, value) => Ok(Src::Constant(name.clone(), value.clone())),
            ExprKind::Deref(inner) => match self.expr(inner)? {
                Val::Ref(src) => Ok(src),
                other => Ok(Src::Val(Box::new(other))),
            },
            ExprKind::Field(base, index) => {
                let base = self.src(base)?;
                self.at(e.line);
                self.field(base, *index, e.line)
            }
            ExprKind::Index(base, index) => {
                let array = self.src(base)?;
                if let (ExprKind::Grid(GridMethod::Idx, _), Some(copy)) =
                    (&index.kind, self.existing_copy(&array))
                {
                    let cell = self.copied_cell(copy, e.line)?;
                    return Ok(Src::Val(Box::new(Val::Value(cell))));
                }
                let index = self.value(index)?;
                self.at(e.line);
                let ty = self.ty(&base.ty);
                self.element(array, index, &ty, e.line)
            }
            ExprKind::Element(base, index) => {
                let array = self.src(base)?;
                let index = self.value(index)?;
                self.at(e.line);
                let ty = self.ty(&base.ty);
                self.element_there(array, index, &ty, e.line)
            }
            ExprKind::Part(base, start, end, how) => {
                self.part_expr(base, start, end.as_deref(), *how, e.line)
            }
            _ => Ok(Src::Val(Box::new(self.expr(e)?))),
        }
    }

    pub(super) fn field(&mut self, base: Src, index: u32, line: u32) -> Result<Src> {
        Ok(match base {
            Src::Place(place) => Src::Place(place.step(Step::Field(index))),
            Src::Val(val) => Src::Val(Box::new(self.component(&val, index, line)?)),
            Src::Constant(name, value) => {
                let part = match &*value {
                    ConstValue::Struct(_, parts) | ConstValue::Tuple(parts) => parts.get(index as usize),
                    _ => None,
                };
                match part {
                    Some(part) => Src::Constant(name, Rc::new(part.clone())),
                    None => return Err(self.error(line, format!("`{name}` has no field {index}"), "")),
                }
            }
            Src::Part(_) => return Err(self.error(line, format!("a slice has no field {index}"), "")),
            Src::OneOf(which, all) => {
                self.one_of(which, &all, |this, src| this.field(src.clone(), index, line))?
            }
        })
    }

    /// Element `index`, which is there, of a slice or an array of type `ty`.
    pub(super) fn element_there(&mut self, array: Src, index: Value, ty: &Ty, line: u32) -> Result<Src> {
        match array {
            Src::Part(part) => self.part_element(&part, index, line),
            Src::OneOf(which, all) => self.one_of(which, &all, |this, src| {
                this.element_there(src.clone(), index, ty, line)
            }),
            array => self.element(array, index, ty, line),
        }
    }

    /// Element `index` of an array or slice of type `ty`.
    pub(super) fn element(&mut self, array: Src, index: Value, ty: &Ty, line: u32) -> Result<Src> {
        let fixed = self.known(index).and_then(|i| u32::try_from(i).ok());
        match array {
            Src::Place(place) => {
                // A constant index into an array needs no check.
                let fixed = match (fixed, self.k.place_type(&place)) {
                    (Some(i), Ok(Type::Array(_, n))) if i < n => Some(i),
                    _ => None,
                };
                Ok(Src::Place(match fixed {
                    Some(i) => place.step(Step::Field(i)),
                    None => place.step(Step::Index(index)),
                }))
            }
            Src::Val(val) => {
                let len = match ty {
                    Ty::Array(_, Len::Known(n)) => *n,
                    _ => 0,
                };
                match fixed {
                    Some(i) if u64::from(i) < len => Ok(Src::Val(Box::new(self.component(&val, i, line)?))),
                    _ if let (Val::Tuple(parts), Ty::Array(element, _)) = (&*val, ty)
                        && holds_reference(element) =>
                    {
                        self.check_count(index, parts.len(), line)?;
                        Ok(Src::Val(Box::new(self.picked(index, parts, line)?)))
                    }
                    _ => {
                        let place = self.spill(&val, line)?;
                        Ok(Src::Place(place.step(Step::Index(index))))
                    }
                }
            }
            Src::Constant(name, value) => self.constant_element(&name, &value, index, fixed, line),
            Src::Part(part) => {
                let subject = self.k.name_of(part.whole.base).into();
                self.check_below(index, part.len, subject, line)?;
                self.part_element(&part, index, line)
            }
            Src::OneOf(which, all) => {
                if all.iter().any(|src| matches!(src, Src::Part(_))) {
                    let array = Src::OneOf(which, all.clone());
                    let (len, subject) = (self.length(&array, ty, line)?, self.name_of(&array));
                    self.check_below(index, len, subject, line)?;
                }
                self.one_of(which, &all, |this, src| {
                    this.element_there(src.clone(), index, ty, line)
                })
            }
        }
    }

    fn constant_element(
        &mut self,
        name: &Rc<str>,
        value: &ConstValue,
        index: Value,
        fixed: Option<u32>,
        line: u32,
    ) -> Result<Src> {
        let ConstValue::Array(_, elements) = value else {
            return Err(self.error(line, format!("`{name}` is not an array"), ""));
        };
        if let Some(element) = fixed.and_then(|i| elements.get(i as usize)) {
            return Ok(Src::Constant(name.clone(), Rc::new(element.clone())));
        }
        let place = self.constant_place(name, value, line)?;
        Ok(Src::Place(place.step(Step::Index(index))))
    }

    /// A place with the constant array's content: a table, or a variable where the elements are no scalars.
    pub(super) fn constant_place(&mut self, name: &str, value: &ConstValue, line: u32) -> Result<Place> {
        let ConstValue::Array(_, elements) = value else {
            return Err(self.error(line, format!("`{name}` is not an array"), ""));
        };
        let width = self.program.width;
        let scalars: Option<Vec<_>> = elements
            .iter()
            .map(|e| match e {
                ConstValue::Scalar(s, bits) => Some((num(*s, width).word()?, *bits)),
                ConstValue::Enum(e, value) => Some((num(e.repr, width).word()?, *value as u64)),
                _ => None,
            })
            .collect();
        match scalars.as_deref() {
            Some([(element, _), ..]) => {
                let element = *element;
                let data = scalars
                    .iter()
                    .flatten()
                    .map(|(s, bits)| match s.bits() {
                        64 => *bits,
                        n => bits & ((1 << n) - 1),
                    })
                    .collect();
                let name = name.rsplit("::").next().unwrap_or(name);
                let table = ConstTable {
                    name: super::types::identifier(name),
                    element,
                    data,
                };
                Ok(Place {
                    base: Base::Constant(self.table(table)),
                    path: Vec::new(),
                })
            }
            _ => {
                let value = self.constant_value(value, line)?;
                self.spill(&Val::Value(value), line)
            }
        }
    }

    fn table(&mut self, table: ConstTable) -> u32 {
        let tables = &mut self.k.kernel_mut().constants;
        let same = |t: &ConstTable| t.element == table.element && t.data == table.data;
        if let Some(found) = tables.iter().position(same) {
            return found as u32;
        }
        let mut table = table;
        let stem = table.name.clone();
        let mut n = 1;
        while tables.iter().any(|t| t.name == table.name) {
            n += 1;
            table.name = format!("{stem}_{n}");
        }
        tables.push(table);
        tables.len() as u32 - 1
    }

    /// A constant as a value.
    pub(super) fn constant_value(&mut self, value: &ConstValue, line: u32) -> Result<Value> {
        let width = self.program.width;
        match value {
            ConstValue::Scalar(s, bits) => Ok(self.constant(num(*s, width), *bits)),
            ConstValue::Wide(s, bits) => Ok(self.integer(num(*s, width), *bits)),
            ConstValue::Enum(e, value) => Ok(self.constant(num(e.repr, width), *value as u64)),
            ConstValue::Array(_, parts)
            | ConstValue::Tuple(parts)
            | ConstValue::Struct(_, parts)
            | ConstValue::Standard(_, parts) => {
                let ty = self.ir_type(&Ty::from_desc(&value.type_desc()), line)?;
                if is_zero(value) {
                    let done = self.k.op(Op::Zero(ty));
                    return self.typed(line, done);
                }
                let parts = parts
                    .iter()
                    .map(|p| match is_empty(p) {
                        // Nobody looks at it.
                        true => Ok(self.bool(false)),
                        false => self.constant_value(p, line),
                    })
                    .collect::<Result<_>>()?;
                let done = self.k.op(Op::Compose(ty, parts));
                self.typed(line, done)
            }
        }
    }

    /// A new variable that holds the value.
    pub(super) fn spill(&mut self, val: &Val, line: u32) -> Result<Place> {
        let value = self.value_of(val, line)?;
        let ty = self.typed(line, self.k.type_of(value))?.clone();
        let place = Place::local(self.k.local("temporary", ty));
        self.store(&place, value, line)?;
        Ok(place)
    }

    pub(super) fn store(&mut self, place: &Place, value: Value, line: u32) -> Result<()> {
        let done = self.k.store(place.clone(), value);
        self.typed(line, done)
    }

    /// The value at a place.
    pub(super) fn load(&mut self, src: &Src, line: u32) -> Result<Val> {
        match src {
            Src::Place(place) => {
                let done = self.k.load(place.clone());
                Ok(Val::Value(self.typed(line, done)?))
            }
            Src::Val(val) => Ok((**val).clone()),
            Src::Constant(_, value) => match &**value {
                value if is_empty(value) => Ok(Val::unit()),
                value => Ok(Val::Value(self.constant_value(value, line)?)),
            },
            Src::Part(_) => Err(self.part_as_value(line)),
            // References and what is made of them are chosen, and looked at later.
            Src::OneOf(which, all) if all.iter().all(|src| matches!(src, Src::Val(_))) => {
                let vals = all.iter().map(|src| self.load(src, line));
                let vals = vals.collect::<Result<Vec<_>>>()?;
                self.picked(*which, &vals, line)
            }
            Src::OneOf(which, all) => self.over(*which, all, line, &mut |this, src| this.load(src, line)),
        }
    }

    /// Stores at a place.
    pub(super) fn store_at(&mut self, src: &Src, value: Value, line: u32) -> Result<()> {
        match src {
            Src::Place(place) => self.store(place, value, line),
            Src::Val(val) => self
                .spill(val, line)
                .and_then(|place| self.store(&place, value, line)),
            Src::Constant(name, _) => Err(self.error(
                line,
                format!("the constant `{name}` is changed"),
                "copy it to a variable",
            )),
            Src::Part(_) => Err(self.part_as_value(line)),
            Src::OneOf(which, all) => {
                let stored = self.over(*which, all, line, &mut |this, src| {
                    this.store_at(src, value, line)?;
                    Ok(Val::unit())
                });
                stored.map(|_| ())
            }
        }
    }

    /// Gives a local its value at its declaration.
    pub(super) fn bind(&mut self, id: LocalId, val: Val, line: u32) -> Result<()> {
        let binding = self.binding(id, val, line)?;
        if let Some(slot) = self.scope.bindings.get_mut(id.0 as usize) {
            *slot = binding;
        }
        Ok(())
    }

    fn binding(&mut self, id: LocalId, val: Val, line: u32) -> Result<Binding> {
        if let Some(slot) = self.keep(id, &val, line)? {
            return Ok(Binding::Kept(slot));
        }
        let Some((name, ty)) = self.in_memory(id, line)? else {
            return Ok(Binding::Val(val));
        };
        let value = self.value_of(&val, line)?;
        let local = self.k.local(name, ty);
        self.store(&Place::local(local), value, line)?;
        Ok(Binding::Var(local))
    }

    /// Declares the variable of a local that is kept in memory; `None` for one that is not.
    pub(super) fn declare(&mut self, id: LocalId, line: u32) -> Result<Option<Place>> {
        let Some((name, ty)) = self.in_memory(id, line)? else {
            return Ok(None);
        };
        let local = self.k.local(name, ty);
        if let Some(slot) = self.scope.bindings.get_mut(id.0 as usize) {
            *slot = Binding::Var(local);
        }
        Ok(Some(Place::local(local)))
    }

    /// Name and type of a local that needs a variable.
    fn in_memory(&mut self, id: LocalId, line: u32) -> Result<Option<(String, Type)>> {
        let f = self.scope.f.clone();
        let Some(local) = f.locals.get(id.0 as usize) else {
            return Ok(None);
        };
        let ty = self.ty(&local.ty);
        let empty = matches!(&ty, Ty::Tuple(e) if e.is_empty())
            || matches!(ty, Ty::Never | Ty::GridPos | Ty::Closure(_));
        if empty || !(local.assigned || local.indexed && holds_array(&ty)) {
            return Ok(None);
        }
        if matches!(ty, Ty::Ref(..)) {
            return Err(self.error(
                line,
                format!("the reference `{}` is assigned after its declaration", local.name),
                "bind a reference once: keep an index instead",
            ));
        }
        let name = super::types::identifier(&local.name);
        Ok(Some((name, self.ir_type(&ty, line)?)))
    }

    /// The number of elements of an array or slice.
    pub(super) fn length(&mut self, src: &Src, ty: &Ty, line: u32) -> Result<Value> {
        let usize_scalar = self.usize_scalar();
        if let Ty::Array(_, Len::Known(n)) = ty {
            return Ok(self.constant(usize_scalar, *n));
        }
        match src {
            Src::Constant(_, value) => {
                let n = match &**value {
                    ConstValue::Array(_, elements) => elements.len(),
                    _ => 0,
                };
                Ok(self.constant(usize_scalar, n as u64))
            }
            Src::Place(place) => match (place.base, self.k.place_type(place)) {
                (Base::Constant(i), _) => {
                    let n = self
                        .k
                        .kernel_mut()
                        .constants
                        .get(i as usize)
                        .map_or(0, |t| t.data.len());
                    Ok(self.constant(usize_scalar, n as u64))
                }
                (_, Ok(Type::Array(_, n))) => Ok(self.constant(usize_scalar, u64::from(n))),
                (base, _) => {
                    let done = self.k.op(Op::Len(base, usize_scalar));
                    self.typed(line, done)
                }
            },
            Src::Part(part) => Ok(part.len),
            Src::OneOf(which, all) => {
                let lens = all.iter().map(|src| self.length(src, ty, line).map(Val::Value));
                let lens = lens.collect::<Result<Vec<_>>>()?;
                let len = self.picked(*which, &lens, line)?;
                self.value_of(&len, line)
            }
            Src::Val(val) => {
                let value = self.value_of(val, line)?;
                match self.typed(line, self.k.type_of(value))? {
                    Type::Array(_, n) => {
                        let n = u64::from(*n);
                        Ok(self.constant(usize_scalar, n))
                    }
                    other => Err(self.error(line, format!("`{other}` has no length"), "")),
                }
            }
        }
    }
}

/// Whether a value of the type can be indexed somewhere.
fn holds_array(ty: &Ty) -> bool {
    match ty {
        Ty::Array(element, _) => !holds_reference(element),
        Ty::Tuple(elements) => elements.iter().any(holds_array),
        Ty::Struct(desc) => desc.fields.iter().any(|f| holds_array(&Ty::from_desc(&f.ty))),
        _ => false,
    }
}

/// Whether a constant is `()`, or of a struct without fields.
fn is_empty(value: &ConstValue) -> bool {
    matches!(value, ConstValue::Tuple(parts) | ConstValue::Struct(_, parts) if parts.is_empty())
}

/// Whether all of a constant's bits are zero.
fn is_zero(value: &ConstValue) -> bool {
    match value {
        ConstValue::Scalar(_, bits) => *bits == 0,
        ConstValue::Wide(_, bits) => *bits == 0,
        ConstValue::Enum(_, value) => *value == 0,
        ConstValue::Array(_, parts)
        | ConstValue::Tuple(parts)
        | ConstValue::Struct(_, parts)
        | ConstValue::Standard(_, parts) => parts.iter().all(is_zero),
    }
}
