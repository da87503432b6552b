//! Accesses to buffers, workgroup variables and tables.

use super::super::c_like::{Bind, Expr, Spot, SpotStep, Writer};
use super::dialect::Wgsl;
use super::region::{MOST_LEAVES, Region, atomic_scalar};
use super::scalar;
use super::words_memory::Words;
use crate::ir::{AtomicOp, Base, Scalar, Type};

/// Where a scalar lies that is accessed atomically.
pub(super) struct Cell {
    /// The atomic itself.
    pub(super) place: Expr,
    /// The scalar type of the atomic.
    pub(super) held: Scalar,
}

impl Wgsl {
    /// Memory that a spot leads to, for what is declared as itself or as atomics.
    fn lvalue(&self, w: &Writer<'_>, spot: &Spot) -> Expr {
        let (root, ty, run) = self.base_of(w.m, spot.base);
        match spot.steps.split_first() {
            Some((SpotStep::Index(first, s), rest)) if run => {
                let at = self.element_number(w, spot.base, *s, first);
                let e = w.path(format!("{root}[{}]", at.text), &ty, 0, rest);
                e.reading([first]).at_run_time()
            }
            _ => w.path(root, &ty, 0, &spot.steps).at_run_time(),
        }
    }

    /// Number of an element in its binding: buffers begin where the launch says.
    fn element_number(&self, w: &Writer<'_>, base: Base, s: Scalar, index: &Expr) -> Expr {
        let index = scalar::index(s, index);
        match base {
            Base::Buffer(i) => {
                let first = Expr::whole(self.first.get(i as usize).map_or("", String::as_str));
                if index.literal == Some(0) {
                    return first;
                }
                Expr::infix("+", Bind::Sum, &first, &index)
            }
            Base::Constant(i) => {
                let table = w.m.kernel.constants.get(i as usize);
                match (index.literal, table) {
                    // Never done, but seen where the module is read.
                    (Some(at), Some(t)) if at >= t.data.len() as u64 => {
                        scalar::opaque(w.m, Scalar::U32, &index)
                    }
                    _ => index,
                }
            }
            _ => index,
        }
    }

    /// The byte offset of a spot in a region of words, and whether it always is that of a word.
    fn byte_offset(&self, w: &Writer<'_>, spot: &Spot) -> (Expr, bool) {
        let (_, mut ty, run) = self.base_of(w.m, spot.base);
        let number = |n: u32| {
            let mut e = Expr::literal(format!("{n}u"), Bind::Whole, u64::from(n));
            e.constant = true;
            e
        };
        let mut fixed = 0u32;
        let mut total: Option<Expr> = None;
        let mut aligned = true;
        let mut add = |e: Expr| {
            total = Some(match total.take() {
                Some(t) => Expr::infix("+", Bind::Sum, &t, &e),
                None => e,
            });
        };
        for (i, step) in spot.steps.iter().enumerate() {
            match step {
                SpotStep::Index(e, s) => {
                    let index = if i == 0 && run {
                        self.element_number(w, spot.base, *s, e)
                    } else {
                        ty = ty.component(0).unwrap_or(Type::U32);
                        scalar::index(*s, e)
                    };
                    let size = ty.size();
                    aligned &= size.is_multiple_of(4);
                    add(if size == 1 {
                        index
                    } else {
                        Expr::infix("*", Bind::Product, &index, &number(size))
                    });
                }
                SpotStep::Field(i) => {
                    let offset = ty.component_offset(*i).unwrap_or(0);
                    aligned &= offset.is_multiple_of(4);
                    fixed += offset;
                    ty = ty.component(*i).unwrap_or(Type::U32);
                }
            }
        }
        if fixed > 0 {
            add(number(fixed));
        }
        let e = total.unwrap_or_else(|| number(0));
        (e, aligned)
    }

    pub(super) fn load_spot(&self, w: &mut Writer<'_>, spot: &Spot) -> Expr {
        match self.regions.get(spot.base) {
            Region::Plain => {
                let e = self.lvalue(w, spot);
                match spot.base {
                    Base::Constant(i) => self.table_value(w, i, e),
                    _ => e,
                }
            }
            Region::Atomic => {
                let place = self.lvalue(w, spot);
                let s = spot.scalar();
                let e = Expr::whole(format!("atomicLoad(&{})", place.text)).reading([&place]);
                self.unheld(w, s, e.at_run_time())
            }
            Region::Words { .. } => {
                let name = self.base_of(w.m, spot.base).0;
                let words = Words {
                    name: &name,
                    base: spot.base,
                };
                let load = self.loader(w.m, words, &spot.ty);
                let (at, aligned) = self.byte_offset(w, spot);
                let mut e = Expr::call(&load, std::slice::from_ref(&at)).at_run_time();
                if aligned && spot.ty.size().is_multiple_of(4) && spot.ty.leaf_count() > MOST_LEAVES {
                    e.copied = Some((spot.base, at.text));
                }
                e
            }
        }
    }

    /// The same for a place in workgroup memory from which all lanes load one value: control flow that depends on it is uniform only
    /// if it is loaded so.
    pub(super) fn load_alike(&self, w: &mut Writer<'_>, spot: &Spot) -> Option<Expr> {
        let alike = |place: &str| format!("workgroupUniformLoad(&{place})");
        let e = match self.regions.get(spot.base) {
            Region::Plain => {
                let place = self.lvalue(w, spot);
                Expr::whole(alike(&place.text)).reading([&place])
            }
            Region::Atomic => {
                let place = self.lvalue(w, spot);
                let e = Expr::whole(alike(&place.text)).reading([&place]);
                self.unheld(w, spot.scalar(), e.at_run_time())
            }
            Region::Words { .. } => {
                let at = self.constant_offset(w, spot)?;
                let name = self.base_of(w.m, spot.base).0;
                let word = |word| alike(&format!("{name}[{word}u]"));
                Expr::new(super::value_at(self, w.m, &spot.ty, at, &word), Bind::Bits)
            }
        };
        Some(e.at_run_time())
    }

    /// The byte offset of a spot whose indices are constants.
    fn constant_offset(&self, w: &Writer<'_>, spot: &Spot) -> Option<u32> {
        let (_, mut ty, run) = self.base_of(w.m, spot.base);
        let mut offset = 0u32;
        for (i, step) in spot.steps.iter().enumerate() {
            let (number, before) = match step {
                SpotStep::Index(e, _) => {
                    if !(i == 0 && run) {
                        ty = ty.component(0)?;
                    }
                    (u32::try_from(e.literal?).ok()?, ty.size())
                }
                SpotStep::Field(i) => {
                    let before = ty.component_offset(*i)?;
                    ty = ty.component(*i)?;
                    (1, before)
                }
            };
            offset = offset.checked_add(number.checked_mul(before)?)?;
        }
        Some(offset)
    }

    /// An element of a table, which may be kept as bits.
    fn table_value(&self, w: &Writer<'_>, i: u32, e: Expr) -> Expr {
        match w.m.kernel.constants.get(i as usize) {
            Some(t) if super::is_bits(t) => scalar::bitcast(t.element, &e).at_run_time(),
            _ => e,
        }
    }

    /// A scalar out of the atomic that holds it.
    fn unheld(&self, w: &Writer<'_>, s: Scalar, e: Expr) -> Expr {
        let held = atomic_scalar(s);
        match s {
            Scalar::Bool => Expr::infix("!=", Bind::Compare, &e, &scalar::literal(w.m, held, 0)),
            _ if scalar::held(s) == held => e,
            _ => scalar::bitcast(s, &e),
        }
    }

    /// A scalar as the atomic that holds it has it.
    fn to_held(&self, s: Scalar, e: &Expr) -> Expr {
        let held = atomic_scalar(s);
        match s {
            Scalar::Bool => scalar::convert(held, e),
            _ if scalar::held(s) == held => e.clone(),
            _ => scalar::bitcast(held, e),
        }
    }

    pub(super) fn store_spot(&self, w: &mut Writer<'_>, spot: &Spot, value: &Expr) {
        match self.regions.get(spot.base) {
            Region::Plain => {
                let place = self.lvalue(w, spot);
                w.write(&format!("{} = {};", place.text, value.text));
            }
            Region::Atomic => {
                let place = self.lvalue(w, spot);
                let value = self.to_held(spot.scalar(), value);
                w.write(&format!("atomicStore(&{}, {});", place.text, value.text));
            }
            Region::Words { .. } => {
                let name = self.base_of(w.m, spot.base).0;
                let words = Words {
                    name: &name,
                    base: spot.base,
                };
                let (at, aligned) = self.byte_offset(w, spot);
                if let (true, Some((base, from))) = (aligned, &value.copied) {
                    let name = self.base_of(w.m, *base).0;
                    let from_words = Words {
                        name: &name,
                        base: *base,
                    };
                    let copy = self.copier(w.m, words, from_words);
                    w.write(&format!("{copy}({}, {from}, {}u);", at.text, spot.ty.size() / 4));
                    return;
                }
                let store = self.storer(w.m, words, &spot.ty, aligned);
                w.write(&format!("{store}({}, {});", at.text, value.text));
            }
        }
    }

    /// The atomic at a spot.
    fn cell(&self, w: &mut Writer<'_>, spot: &Spot) -> Cell {
        let s = spot.scalar();
        if let Region::Words { .. } = self.regions.get(spot.base) {
            if s.size() == 8 {
                w.m.unsupported(w.line, "a 64-bit atomic inside a struct");
            }
            let name = self.base_of(w.m, spot.base).0;
            let (at, _) = self.byte_offset(w, spot);
            let word = Expr::infix(">>", Bind::Bits, &at, &scalar::literal(w.m, Scalar::U32, 2));
            return Cell {
                place: Expr::whole(format!("{name}[{}]", word.text))
                    .reading([&at])
                    .at_run_time(),
                held: Scalar::U32,
            };
        }
        Cell {
            place: self.lvalue(w, spot),
            held: atomic_scalar(s),
        }
    }

    /// The cell with its indices as names, so that it can be written more than once.
    fn steady(&self, w: &mut Writer<'_>, spot: &Spot) -> Spot {
        let mut spot = spot.clone();
        for step in &mut spot.steps {
            if let SpotStep::Index(e, s) = step {
                let simple = e.is_atom() || e.unwidened.as_ref().is_some_and(|(inner, _)| inner.is_atom());
                if !simple {
                    *e = w.named(&Type::Scalar(*s), e.clone(), "at");
                }
            }
        }
        spot
    }

    fn to_cell(cell: &Cell, s: Scalar, e: &Expr) -> Expr {
        if scalar::held(s) == cell.held {
            e.clone()
        } else {
            scalar::bitcast(cell.held, e)
        }
    }

    fn out_of_cell(cell: &Cell, s: Scalar, e: Expr) -> Expr {
        if scalar::held(s) == cell.held {
            e
        } else {
            scalar::bitcast(s, &e)
        }
    }

    pub(super) fn update(
        &self,
        w: &mut Writer<'_>,
        op: AtomicOp,
        spot: &Spot,
        value: &Expr,
        used: bool,
    ) -> Expr {
        let s = spot.scalar();
        let spot = self.steady(w, spot);
        let cell = self.cell(w, &spot);
        let by_sign = matches!(op, AtomicOp::Min | AtomicOp::Max);
        // The bits of a sum do not depend on the sign; which is smaller does.
        let native = match op {
            AtomicOp::Exchange => true,
            _ => s.is_int() && (scalar::held(s) == cell.held || !by_sign),
        };
        if native {
            let name = match op {
                AtomicOp::Add => "atomicAdd",
                AtomicOp::Sub => "atomicSub",
                AtomicOp::Min => "atomicMin",
                AtomicOp::Max => "atomicMax",
                AtomicOp::And => "atomicAnd",
                AtomicOp::Or => "atomicOr",
                AtomicOp::Xor => "atomicXor",
                AtomicOp::Exchange => "atomicExchange",
            };
            let value = Self::to_cell(&cell, s, value);
            let e = Expr::whole(format!("{name}(&{}, {})", cell.place.text, value.text))
                .reading([&cell.place, &value])
                .at_run_time();
            return if used { Self::out_of_cell(&cell, s, e) } else { e };
        }
        let value = w.named(&Type::Scalar(s), value.clone(), "operand");
        let old = w.name("old");
        let r = w.name("r");
        let now = Self::out_of_cell(&cell, s, Expr::whole(old.clone()));
        let combined = self.combined(w, op, s, &now, &value);
        let new = Self::to_cell(&cell, s, &combined);
        w.write(&format!(
            "var {old} = atomicLoad(&{place});\nloop {{\n    let {r} = atomicCompareExchangeWeak(&{place}, {old}, {});\n    if ({r}.exchanged) {{\n        break;\n    }}\n    {old} = {r}.old_value;\n}}",
            new.text,
            place = cell.place.text,
        ));
        let old = Expr::whole(old);
        if used {
            Self::out_of_cell(&cell, s, old)
        } else {
            old
        }
    }

    pub(super) fn exchange(
        &self,
        w: &mut Writer<'_>,
        spot: &Spot,
        expected: &Expr,
        new: &Expr,
        used: bool,
    ) -> Expr {
        let s = spot.scalar();
        let spot = self.steady(w, spot);
        let cell = self.cell(w, &spot);
        let held = Type::Scalar(cell.held);
        let expected = w.named(&held, Self::to_cell(&cell, s, expected), "expected");
        let new = w.named(&held, Self::to_cell(&cell, s, new), "desired");
        let old = w.name("old");
        let r = w.name("r");
        // The weak exchange may fail for no reason: then the old value is the expected one.
        w.write(&format!(
            "var {old} = {e};\nloop {{\n    let {r} = atomicCompareExchangeWeak(&{}, {e}, {});\n    {old} = {r}.old_value;\n    if ({r}.exchanged || {old} != {e}) {{\n        break;\n    }}\n}}",
            cell.place.text,
            new.text,
            e = expected.text,
        ));
        let old = Expr::whole(old);
        if used {
            Self::out_of_cell(&cell, s, old)
        } else {
            old
        }
    }
}
